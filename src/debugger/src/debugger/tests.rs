use stratoscope_wire::{RunAction, RunState};

use super::*;

fn debugger() -> Debugger {
    Debugger::new("/tmp/cells_".to_owned())
}

fn request(command: &str, arguments: Value) -> Value {
    json!({"seq": 7, "type": "request", "command": command, "arguments": arguments})
}

fn replied(action: Action) -> Answered {
    match action {
        Action::Reply(answered) => answered,
        other => panic!("not answered: {other:?}"),
    }
}

fn answered(debugger: &mut Debugger, command: &str, arguments: Value) -> Value {
    replied(debugger.request(&request(command, arguments))).reply
}

fn asked(action: Action) -> (InspectQuestion, Pending) {
    match action {
        Action::Inspect { question, then } => (question, then),
        other => panic!("nothing is asked: {other:?}"),
    }
}

fn value(name: &str, named: usize, indexed: usize) -> InspectedValue {
    InspectedValue {
        name: name.to_owned(),
        value: Some("…".to_owned()),
        type_name: "T".to_owned(),
        named,
        indexed,
    }
}

fn found(
    values: Vec<InspectedValue>,
    named: usize,
    all_named: usize,
    all_indexed: usize,
) -> InspectAnswer {
    InspectAnswer::Values {
        values,
        named,
        all_named,
        all_indexed,
    }
}

/// The `variables` of the reply to a request, where the process answers with these.
fn variables(
    debugger: &mut Debugger,
    asks: &Value,
    answer: InspectAnswer,
) -> (InspectQuestion, Vec<Value>) {
    let (question, pending) = asked(debugger.request(asks));
    let reply = replied(debugger.inspected(pending, answer)).reply;
    assert_eq!(reply["success"], true, "{reply}");
    (
        question,
        reply["body"]["variables"]
            .as_array()
            .expect("a list")
            .clone(),
    )
}

#[test]
fn a_session_begins_and_ends() {
    let mut debugger = debugger();
    let early = answered(&mut debugger, "attach", json!({}));
    assert_eq!(
        (&early["success"], &early["request_seq"]),
        (&json!(false), &json!(7))
    );
    assert_eq!(
        answered(&mut debugger, "debugInfo", Value::Null)["body"]["isStarted"],
        false
    );
    let reply = answered(&mut debugger, "initialize", json!({"clientID": "test"}));
    assert_eq!(reply["body"]["supportsConfigurationDoneRequest"], true);
    let attached = replied(debugger.request(&request("attach", json!({}))));
    assert_eq!(attached.events[0]["event"], "initialized");
    let info = answered(&mut debugger, "debugInfo", json!({}))["body"].clone();
    assert_eq!(
        (&info["isStarted"], &info["hashMethod"]),
        (&json!(true), &json!("Murmur2"))
    );
    assert_eq!(
        answered(&mut debugger, "disconnect", json!({"restart": false}))["success"],
        true
    );
    assert_eq!(
        answered(&mut debugger, "debugInfo", json!({}))["body"]["isStarted"],
        false
    );
}

#[test]
fn what_is_not_understood_is_refused_with_a_reason() {
    let mut debugger = debugger();
    let hostile = [
        json!(null),
        json!([]),
        json!("initialize"),
        json!({}),
        json!({"command": 7}),
        json!({"command": ""}),
        json!({"command": "x".repeat(1_000_000)}),
        request("initialize", json!([1])),
        request("variables", json!({})),
        request("variables", json!({"variablesReference": "1"})),
        request("variables", json!({"variablesReference": -1})),
        request("variables", json!({"variablesReference": 99})),
        request("variables", json!({"variablesReference": u64::MAX})),
        request("evaluate", json!({"expression": 3})),
        request("richInspectVariables", json!({})),
        request("dumpCell", json!({"code": null})),
        request("source", json!({"source": {"path": "/etc/passwd"}})),
        request("source", json!({"sourceReference": 0})),
        request(
            "setBreakpoints",
            json!({"source": {"path": "a"}, "breakpoints": 1}),
        ),
        request(
            "setBreakpoints",
            json!({"source": {"path": "a"}, "breakpoints": [{"line": -3}]}),
        ),
        request("setBreakpoints", json!({"breakpoints": []})),
        request("next", json!({"threadId": 1})),
        request("stepBack", json!({})),
        request("copyToGlobals", json!({})),
    ];
    for request in hostile {
        let reply = replied(debugger.request(&request)).reply;
        assert_eq!(reply["success"], false, "{request:.200}");
        let reason = reply["message"].as_str().expect("a reason");
        assert!(reason.len() > 10 && reason.len() < 1000, "{reason}");
    }
}

#[test]
fn breakpoints_are_answered_honestly_and_listed() {
    let mut debugger = debugger();
    debugger.set_missing(Some("there is no LLDB".to_owned()));
    let path =
        answered(&mut debugger, "dumpCell", json!({"code": "let x = 1;"}))["body"]["sourcePath"]
            .clone();
    let source = answered(&mut debugger, "source", json!({"source": {"path": path}}));
    assert_eq!(source["body"]["content"], "let x = 1;");
    let set = json!({"source": {"path": path}, "breakpoints": [{"line": 1}, {"line": 2}]});
    let set = answered(&mut debugger, "setBreakpoints", set)["body"]["breakpoints"].clone();
    assert_eq!(
        (&set[0]["verified"], &set[1]["line"]),
        (&json!(false), &json!(2))
    );
    assert!(
        set[0]["message"]
            .as_str()
            .is_some_and(|it| it.contains("break_when"))
    );
    let listed = answered(&mut debugger, "debugInfo", json!({}))["body"]["breakpoints"].clone();
    assert_eq!(
        listed,
        json!([{"source": path, "breakpoints": [{"line": 1}, {"line": 2}]}])
    );
    let none = json!({"source": {"path": path}, "breakpoints": []});
    assert_eq!(
        answered(&mut debugger, "setBreakpoints", none)["body"]["breakpoints"],
        json!([])
    );
    assert_eq!(
        answered(&mut debugger, "debugInfo", json!({}))["body"]["breakpoints"],
        json!([])
    );
}

#[test]
fn a_value_unfolds_by_its_reference() {
    let mut debugger = debugger();
    let asks = request("inspectVariables", json!({}));
    let values = vec![
        value("point", 2, 0),
        value("number", 0, 0),
        InspectedValue {
            value: None,
            ..value("used", 0, 0)
        },
    ];
    let (question, all) = variables(&mut debugger, &asks, found(values, 3, 3, 0));
    assert_eq!(question, InspectQuestion::Variables);
    assert_eq!(
        (&all[1]["variablesReference"], &all[0]["namedVariables"]),
        (&json!(0), &json!(2))
    );
    assert!(
        all[2]["value"]
            .as_str()
            .is_some_and(|it| it.contains("running cell"))
    );
    let asks = request(
        "variables",
        json!({"variablesReference": all[0]["variablesReference"]}),
    );
    let (question, parts) = variables(
        &mut debugger,
        &asks,
        found(vec![value("x", 0, 0), value("y", 1, 0)], 2, 2, 0),
    );
    assert!(
        matches!(question, InspectQuestion::Children { path, .. } if path == ValuePath::of("point"))
    );
    assert_eq!(parts[1]["evaluateName"], "point.y");
    let asks = request(
        "variables",
        json!({"variablesReference": parts[1]["variablesReference"]}),
    );
    let (question, _) = asked(debugger.request(&asks));
    assert!(
        matches!(question, InspectQuestion::Children { path, .. } if path == ValuePath::of("point").child(1))
    );
    // The list of all variables has a number, too.
    let scope =
        answered(&mut debugger, "scopes", json!({"frameId": 0}))["body"]["scopes"][0].clone();
    let asks = request(
        "variables",
        json!({"variablesReference": scope["variablesReference"]}),
    );
    assert_eq!(asked(debugger.request(&asks)).0, InspectQuestion::Variables);
}

#[test]
fn a_long_list_is_divided_unless_a_part_is_asked_for() {
    let mut debugger = debugger();
    let asks = request("inspectVariables", json!({}));
    let (_, all) = variables(
        &mut debugger,
        &asks,
        found(vec![value("list", 1, 1_000_000)], 1, 1, 0),
    );
    let list = &all[0]["variablesReference"];
    let page = |first: usize| {
        let elements = (first..first + 100).map(|it| value(&format!("[{it}]"), 0, 0));
        elements.collect::<Vec<_>>()
    };
    let whole: Vec<_> = [value("len", 0, 0)].into_iter().chain(page(0)).collect();
    let asks = request("variables", json!({"variablesReference": list}));
    let (_, ranges) = variables(&mut debugger, &asks, found(whole, 1, 1, 1_000_000));
    assert_eq!((ranges.len(), &ranges[0]["name"]), (101, &json!("len")));
    assert_eq!(ranges[100]["name"], "[990000 … 999999]");
    let asks = request(
        "variables",
        json!({"variablesReference": ranges[100]["variablesReference"]}),
    );
    let inner = replied(debugger.request(&asks)).reply["body"]["variables"].clone();
    assert_eq!(inner[99]["name"], "[999900 … 999999]");
    let asks = request(
        "variables",
        json!({"variablesReference": inner[99]["variablesReference"]}),
    );
    let (question, last) = variables(&mut debugger, &asks, found(page(999_900), 0, 1, 1_000_000));
    let InspectQuestion::Children { indexed, .. } = question else {
        panic!("{question:?}")
    };
    assert_eq!(
        indexed,
        Window {
            start: 999_900,
            count: 100
        }
    );
    assert_eq!(
        (last.len(), &last[99]["evaluateName"]),
        (100, &json!("list[999999]"))
    );
    // A client that pages.
    let asks = json!({"variablesReference": list, "filter": "indexed", "start": 500, "count": 100});
    let (question, part) = variables(
        &mut debugger,
        &request("variables", asks),
        found(page(500), 0, 1, 1_000_000),
    );
    let InspectQuestion::Children { indexed, named, .. } = question else {
        panic!("{question:?}")
    };
    assert_eq!((indexed.start, indexed.count, named.count), (500, 100, 0));
    assert_eq!(part[0]["name"], "[500]");
}

#[test]
fn an_expression_is_read_or_evaluated_but_never_by_hovering() {
    let mut debugger = debugger();
    let missing = || InspectAnswer::missing("there is no variable `x`");
    let asks = |context: &str| {
        request(
            "evaluate",
            json!({"expression": "x + 1", "context": context}),
        )
    };
    let (_, pending) = asked(debugger.request(&asks("hover")));
    let reply = replied(debugger.inspected(pending, missing())).reply;
    assert_eq!(reply["message"], "there is no variable `x`");
    let (_, pending) = asked(debugger.request(&asks("repl")));
    let Action::Evaluate { expression, then } = debugger.inspected(pending, missing()) else {
        panic!("it is evaluated")
    };
    assert_eq!(expression, "x + 1");
    let data = MimeBundle::from_iter([("text/plain".to_owned(), json!("3"))]);
    let reply = replied(debugger.evaluated(then, Ok(data))).reply;
    assert_eq!(
        (&reply["body"]["result"], &reply["request_seq"]),
        (&json!("3"), &json!(7))
    );
    let (_, pending) = asked(debugger.request(&request("evaluate", json!({"expression": "p.y"}))));
    let path = ValuePath::of("p").child(1);
    let answer = InspectAnswer::Found {
        path,
        value: value("y", 3, 0),
    };
    let reply = replied(debugger.inspected(pending, answer)).reply;
    assert!(reply["body"]["variablesReference"].as_u64() > Some(VARIABLES));
}

#[test]
fn the_rich_view_is_found_first() {
    let mut debugger = debugger();
    let asks = request(
        "richInspectVariables",
        json!({"variableName": "model.bias"}),
    );
    let (question, pending) = asked(debugger.request(&asks));
    assert_eq!(
        question,
        InspectQuestion::Find {
            expression: "model.bias".to_owned()
        }
    );
    let path = ValuePath::of("model").child(0);
    let answer = InspectAnswer::Found {
        path: path.clone(),
        value: value("bias", 0, 3),
    };
    let (question, pending) = asked(debugger.inspected(pending, answer));
    assert_eq!(question, InspectQuestion::Rich { path });
    let data = MimeBundle::from_iter([("text/html".to_owned(), json!("<b>3</b>"))]);
    let reply = replied(debugger.inspected(pending, InspectAnswer::Rich { data })).reply;
    assert_eq!(reply["body"]["data"]["text/html"], "<b>3</b>");
}

#[test]
fn a_run_is_a_thread_while_it_trains() {
    let mut debugger = debugger();
    assert!(debugger.run_changed(1, RunState::Running).is_empty());
    answered(&mut debugger, "initialize", json!({}));
    answered(&mut debugger, "attach", json!({}));
    let paused = replied(debugger.request(&request("pause", json!({"threadId": 1}))));
    assert_eq!(paused.then, Some(Then::Control(1, RunAction::Pause)));
    let events = debugger.run_changed(1, RunState::Paused);
    assert_eq!(events[0]["event"], "stopped");
    let thread = &events[0]["body"]["threadId"];
    let info = answered(&mut debugger, "debugInfo", json!({}));
    assert_eq!(info["body"]["stoppedThreads"], json!([thread]));
    let frames = answered(&mut debugger, "stackTrace", json!({"threadId": thread}));
    assert_eq!(frames["body"]["totalFrames"], 1);
    let of_cells = answered(&mut debugger, "stackTrace", json!({"threadId": 1}));
    assert_eq!(of_cells["body"], frames["body"]);
    let stepped = replied(debugger.request(&request("next", json!({"threadId": thread}))));
    assert_eq!(stepped.then, Some(Then::Control(1, RunAction::Step)));
    assert_eq!(debugger.cell_ended()[0]["event"], "continued");
    assert!(debugger.cell_ended().is_empty());
}
