//! What the checker says about the text of cells: nothing about a valid one, the right thing about a slip.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use stratoscope_diagnostics::arguments::{
    self, Accepts, Argument, CALLS, CallTable, IdentifierKind, Interval, OPTIMIZERS,
    foreign_identifier,
};
use stratoscope_diagnostics::check::suggest::distance;
use stratoscope_diagnostics::check::{CellContext, calls, check_cell, defined_in};
use stratoscope_diagnostics::render::apply;
use stratoscope_diagnostics::{ArgumentState, Diagnostic, Place};

fn check(text: &str) -> Vec<Diagnostic> {
    check_cell(text, &CellContext::default())
}

fn codes(text: &str) -> Vec<String> {
    check(text).into_iter().map(|found| found.code).collect()
}

/// The text under the first label.
fn marked<'a>(text: &'a str, found: &Diagnostic) -> &'a str {
    match found.labels[0].place {
        Place::Span(span) => &text[span.start..span.end],
        ref other => panic!("{other:?} is no span"),
    }
}

/// A value that the argument takes, as text.
fn value_of(argument: &'static Argument) -> BoxedStrategy<String> {
    match argument.accepts {
        Accepts::Integer(least) => prop_oneof![
            (least..=least + 1000).prop_map(|value| value.to_string()),
            Just("n + 1".to_owned()),
            Just("1_000usize".to_owned()),
            Just("größe".to_owned()),
            Just("f::<A, B>(x, y)".to_owned()),
        ]
        .boxed(),
        Accepts::Share(..) => select(vec!["0.1", "1e-3", "share"])
            .prop_map(str::to_owned)
            .boxed(),
        Accepts::Number(Interval::Positive) => numbers(&["1e-8", "1.0", "5.0", "limit"]),
        Accepts::Number(Interval::FromOne) => numbers(&["1.0", "2.5", "limit"]),
        Accepts::Number(Interval::NegativeUpToOne) => numbers(&["-1.0", "-0.8", "exponent"]),
        Accepts::Number(_) => numbers(&["0.0", "0.01", "1e-3", "0.999", "-(-0.5)", "share"]),
        Accepts::Flag => select(vec!["true", "false", "flag", "!flag"])
            .prop_map(str::to_owned)
            .boxed(),
        Accepts::Value(_) => select(vec![
            "dev",
            "none",
            "|a, b| a == b",
            "Some(dev.clone())",
            "&other",
        ])
        .prop_map(str::to_owned)
        .boxed(),
        Accepts::Identifier(kind) => identifier(kind),
    }
}

fn numbers(values: &'static [&'static str]) -> BoxedStrategy<String> {
    select(values).prop_map(str::to_owned).boxed()
}

/// An optimizer with some of its methods, none of which exclude each other.
fn optimizer() -> impl Strategy<Value = String> {
    select(OPTIMIZERS).prop_flat_map(|optimizer| {
        let count = optimizer.arguments.len();
        let rates = vec!["5e-5", "0.0", "rate", "warmup_linear(5e-5, 0.1)", "1.0"];
        let methods = subsequence(optimizer.arguments, 0..=count).prop_shuffle();
        (select(rates), methods).prop_flat_map(move |(rate, chosen)| {
            let mut arguments: Vec<&'static Argument> = Vec::new();
            for argument in chosen {
                let argument = arguments::find(optimizer.arguments, argument.name);
                let argument = argument.expect("chosen from it");
                let excludes = |other: &&Argument| {
                    let mut names = other.conflicts.iter().map(|(name, _)| *name);
                    names.any(|name| name == argument.name)
                };
                if !arguments.iter().any(excludes) {
                    arguments.push(argument);
                }
            }
            let values: Vec<_> = arguments
                .iter()
                .map(|argument| value_of(argument))
                .collect();
            values.prop_map(move |values| {
                let mut text = format!("{}::new({rate})", optimizer.name);
                for (argument, value) in arguments.iter().zip(values) {
                    text += &format!(".{}({value})", argument.name);
                }
                text
            })
        })
    })
}

fn identifier(kind: IdentifierKind) -> BoxedStrategy<String> {
    let text = select(kind.names()).prop_map(|name| format!("\"{name}\""));
    match kind {
        IdentifierKind::Optimizer => prop_oneof![
            text,
            Just(
                "AdamW::new(warmup_linear(5e-5, 0.1)).weight_decay(0.01).global_clipnorm(1.0)"
                    .to_owned()
            ),
            optimizer(),
        ]
        .boxed(),
        IdentifierKind::Loss => prop_oneof![
            text,
            Just("SparseCategoricalCrossentropy { from_logits: true }".to_owned()),
            Just("MeanSquaredError".to_owned()),
            Just("my_loss(|a, b| a - b)".to_owned()),
        ]
        .boxed(),
        IdentifierKind::Metric => prop_oneof![
            proptest::collection::vec(text, 0..3)
                .prop_map(|names| format!("[{}]", names.join(", "))),
            Just("[accuracy(), macro_f1()]".to_owned()),
            Just("vec![accuracy()]".to_owned()),
        ]
        .boxed(),
    }
}

/// A call with some of its arguments, none of which exclude each other; `compile!` has its optimizer.
fn valid_call() -> impl Strategy<Value = (CallTable, String)> {
    select(CALLS).prop_flat_map(|call| {
        let count = call.arguments.len();
        subsequence(call.arguments, 0..=count)
            .prop_shuffle()
            .prop_flat_map(move |chosen| {
                let mut arguments: Vec<&'static Argument> = Vec::new();
                for argument in &chosen {
                    let argument =
                        arguments::find(call.arguments, argument.name).expect("chosen from it");
                    let excluded = arguments.iter().any(|other| {
                        other
                            .conflicts
                            .iter()
                            .any(|(name, _)| *name == argument.name)
                    });
                    if !excluded {
                        arguments.push(argument);
                    }
                }
                if call.name == "compile"
                    && !arguments
                        .iter()
                        .any(|argument| argument.name == "optimizer")
                {
                    arguments.push(
                        arguments::find(call.arguments, "optimizer").expect("compile has it"),
                    );
                }
                let values: Vec<BoxedStrategy<String>> = arguments
                    .iter()
                    .map(|argument| value_of(argument))
                    .collect();
                let layout = select(vec![
                    ", ",
                    ",\n    ",
                    " , ",
                    ", /* größe */ ",
                    ", // Größe = 1\n",
                ]);
                (values, layout, any::<bool>()).prop_map(move |(values, separator, trailing)| {
                    let mut parts: Vec<String> = call
                        .operands
                        .iter()
                        .map(|name| (*name).to_owned())
                        .collect();
                    parts.extend(
                        arguments
                            .iter()
                            .zip(&values)
                            .map(|(argument, value)| format!("{} = {value}", argument.name)),
                    );
                    let end = if trailing { "," } else { "" };
                    (
                        call,
                        format!("{}!({}{end})", call.name, parts.join(separator)),
                    )
                })
            })
    })
}

/// A cell around a call.
fn cell(call: &str) -> impl Strategy<Value = String> + use<> {
    let call = call.to_owned();
    select(vec![
        ("", "?;"),
        ("let x = ", "?;"),
        (
            "// größe\nlet text = \"日本 compile!(model)\"; ",
            "?;\ntext",
        ),
        (
            "scope!(strategy, {\n    let model = build()?;\n    ",
            "?;\n});",
        ),
        ("%%scope strategy\n", "?;"),
        (
            ":dep something = \"1\"\nfn train() -> Result<()> { ",
            "?; Ok(()) }",
        ),
        ("let f = |x| { if x { ", "? } };"),
        ("println!(\"{}\", ", ");"),
        ("stratoscope::", ".map(|a| a).unwrap_or_default();"),
    ])
    .prop_map(move |(before, after)| format!("{before}{call}{after}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_valid_call_has_no_findings((_, text) in valid_call().prop_flat_map(|(call, text)| cell(&text).prop_map(move |cell| (call, cell)))) {
        let found = check(&text);
        prop_assert!(found.is_empty(), "{text}\n{found:#?}");
    }

    #[test]
    fn every_call_is_found_with_its_own_text((call, text) in valid_call().prop_flat_map(|(call, text)| cell(&text).prop_map(move |cell| (call, cell)))) {
        let found = calls(&text);
        prop_assert_eq!(found.len(), 1, "{}", text);
        let found = &found[0];
        prop_assert_eq!(&found.name, call.name);
        prop_assert_eq!(found.operands.len(), call.operands.len());
        for argument in &found.arguments {
            prop_assert_eq!(&text[argument.name_span.start..argument.name_span.end], &argument.name);
            prop_assert_eq!(&text[argument.value_span.start..argument.value_span.end], &argument.value);
        }
    }

    /// Every slip of one edit gets a suggestion that is one edit away; applied, it fixes the cell, unless the
    /// slip is as near to another name.
    #[test]
    fn a_slip_is_suggested_away((call, argument, slip) in slip()) {
        let operands = call.operands.join(", ");
        let optimizer = if call.name == "compile" && argument.name != "optimizer" { ", optimizer = o" } else { "" };
        let text = format!("/* größe */ {}!({operands}{optimizer}, {slip} = value)?;", call.name);
        let found = check(&text);
        prop_assert_eq!(found.len(), 1, "{}\n{:?}", text, found);
        let diagnostic = &found[0];
        if diagnostic.code == "SC0106" {
            // The slip is a name of the optimizer's or the loss's.
            return Ok(());
        }
        prop_assert!(["SC0101", "SC0114", "SC0115"].contains(&diagnostic.code.as_str()), "{}", diagnostic.code);
        prop_assert_eq!(marked(&text, diagnostic), slip.as_str());
        let first = &diagnostic.fixes[0];
        let name = first.title.trim_start_matches("did you mean `").trim_end_matches("`?");
        prop_assert_eq!(distance(&slip, name), 1, "{} → {}", slip, first.title);
        prop_assert!(diagnostic.one_line().contains(name));
        let fixed = apply(&text, first).expect("a rename is an edit");
        let rest = codes(&fixed);
        prop_assert!(rest.is_empty() || name != argument.name, "{fixed}: {rest:?}");
    }

    /// The same for texts that name losses, metrics and optimizers.
    #[test]
    fn a_slip_in_a_text_is_suggested_away((kind, name, slip) in identifier_slip()) {
        let text = match kind {
            IdentifierKind::Optimizer => format!("compile!(model, optimizer = \"{slip}\")?;"),
            IdentifierKind::Loss => format!("compile!(model, optimizer = o, loss = \"{slip}\")?;"),
            IdentifierKind::Metric => format!("compile!(model, optimizer = o, metrics = [\"{slip}\"])?;"),
        };
        let found = check(&text);
        prop_assert_eq!(found.len(), 1, "{}\n{:?}", text, found);
        prop_assert_eq!(&found[0].code, "SC0105");
        // A name of another library is translated first, however near it is to one of ours.
        if foreign_identifier(kind, &slip).is_some() {
            return Ok(());
        }
        let first = found[0].fixes[0].title.trim_start_matches("did you mean `").trim_end_matches("`?");
        prop_assert_eq!(distance(&slip, first), 1, "{} for {}: {}", slip, name, first);
        let fixed = apply(&text, &found[0].fixes[0]).expect("a rename is an edit");
        prop_assert!(codes(&fixed).is_empty(), "{}", fixed);
    }

    #[test]
    fn a_slip_in_an_optimizer_is_suggested_away((optimizer, argument, slip) in optimizer_slip()) {
        let text = format!("let o = {}::new(5e-5).{slip}(x);", optimizer.name);
        let found = check(&text);
        prop_assert_eq!(found.len(), 1, "{}\n{:?}", text, found);
        prop_assert_eq!(&found[0].code, "SC0504");
        prop_assert_eq!(marked(&text, &found[0]), slip.as_str());
        let fixed = apply(&text, &found[0].fixes[0]).expect("a rename is an edit");
        prop_assert!(codes(&fixed).is_empty(), "{}: {}", argument.name, fixed);
    }

    /// Whatever stands in a cell, the checker ends, and what it marks is text of the cell.
    #[test]
    fn any_text_is_survived(text in "(compile!|fit!|AdamW::new|[(){}\\[\\],=:.!|<>\"'#a-zäß日 \n\t0-9-]){0,60}") {
        for found in check(&text) {
            for label in &found.labels {
                if let Place::Span(span) = label.place {
                    prop_assert!(text.get(span.start..span.end).is_some());
                }
            }
            for fix in &found.fixes {
                if !fix.edits.is_empty() {
                    prop_assert!(apply(&text, fix).is_some(), "{fix:?}");
                }
            }
        }
    }
}

fn edits() -> impl Strategy<Value = (usize, char, u8)> {
    (
        0usize..40,
        select(
            "abcdefghijklmnopqrstuvwxyz_0123456789"
                .chars()
                .collect::<Vec<_>>(),
        ),
        0u8..4,
    )
}

/// One insertion, deletion, replacement or transposition.
fn edited(name: &str, (at, letter, kind): (usize, char, u8)) -> String {
    let mut letters: Vec<char> = name.chars().collect();
    let end = letters.len();
    let at = at % end;
    match kind {
        // Behind the last letter too.
        0 => letters.insert(if at + 1 == end { end } else { at }, letter),
        1 => {
            letters.remove(at);
        }
        2 => letters[at] = letter,
        _ => letters.swap(at, (at + 1) % name.len()),
    }
    letters.into_iter().collect()
}

fn is_name(slip: &str) -> bool {
    syn::parse_str::<syn::Ident>(slip).is_ok() && slip != "_"
}

fn slip() -> impl Strategy<Value = (CallTable, &'static Argument, String)> {
    select(CALLS)
        .prop_flat_map(|call| (Just(call), select(call.arguments), edits()))
        .prop_map(|(call, argument, edit)| (call, argument.name, edited(argument.name, edit)))
        .prop_map(|(call, name, slip)| {
            (
                call,
                arguments::find(call.arguments, name).expect("selected from it"),
                slip,
            )
        })
        .prop_filter(
            "a name that is no name of the call",
            |(call, argument, slip)| {
                is_name(slip)
                    && arguments::find(call.arguments, slip).is_none()
                    && distance(slip, argument.name) == 1
            },
        )
}

fn identifier_slip() -> impl Strategy<Value = (IdentifierKind, &'static str, String)> {
    let kinds = vec![
        IdentifierKind::Loss,
        IdentifierKind::Metric,
        IdentifierKind::Optimizer,
    ];
    select(kinds)
        .prop_flat_map(|kind| (Just(kind), select(kind.names()), edits()))
        .prop_map(|(kind, name, edit)| (kind, name, edited(name, edit)))
        .prop_filter("a text that names nothing", |(kind, name, slip)| {
            !kind.knows(slip) && distance(slip, name) == 1
        })
}

fn optimizer_slip()
-> impl Strategy<Value = (&'static arguments::Optimizer, &'static Argument, String)> {
    select(arguments::OPTIMIZERS)
        .prop_flat_map(|optimizer| (Just(optimizer.name), select(optimizer.arguments), edits()))
        .prop_map(|(optimizer, argument, edit)| {
            let optimizer = arguments::optimizer(optimizer).expect("selected from it");
            let slip = edited(argument.name, edit);
            (
                optimizer,
                arguments::find(optimizer.arguments, argument.name).expect("so is it"),
                slip,
            )
        })
        .prop_filter("a name that is no method", |(optimizer, argument, slip)| {
            is_name(slip)
                && arguments::find(optimizer.arguments, slip).is_none()
                && distance(slip, argument.name) == 1
        })
}

#[test]
fn all_findings_of_a_cell_are_reported_at_once_in_order() {
    let text = "compile!(model, metric = [accuracy()], steps_per_execution = 0, epochs = 3)?;\n\
                fit!(model, train, epoch = 3)?;";
    let found = check(text);
    let seen: Vec<(&str, &str)> = found
        .iter()
        .map(|found| (found.code.as_str(), marked(text, found)))
        .collect();
    assert_eq!(
        seen,
        [
            ("SC0116", "compile"),
            ("SC0101", "metric"),
            ("SC0103", "0"),
            ("SC0106", "epochs"),
            ("SC0114", "epoch"),
        ]
    );
    let tables = found
        .iter()
        .filter(|found| !found.arguments.is_empty())
        .count();
    assert_eq!(tables, 2, "one table a call");
}

#[test]
fn a_misspelt_optimizer_is_not_also_a_missing_one() {
    assert_eq!(
        codes("compile!(model, optimiser = AdamW::new(5e-5))?;"),
        ["SC0101"]
    );
    assert_eq!(
        codes("compile!(model, opt = AdamW::new(5e-5))?;"),
        ["SC0101"]
    );
    assert_eq!(codes("compile!(model, loss = mse)?;"), ["SC0116"]);
}

#[test]
fn other_libraries_names_are_translated() {
    for (given, meant) in [
        ("metric", "metrics"),
        ("losses", "loss"),
        ("loss_fn", "loss"),
        ("criterion", "loss"),
        ("experimental_steps_per_execution", "steps_per_execution"),
        ("accumulation_steps", "gradient_accumulation_steps"),
        ("accumulate", "gradient_accumulation_steps"),
    ] {
        let text = format!("compile!(model, optimizer = o, {given} = x)?;");
        let found = check(&text);
        assert_eq!(found.len(), 1, "{given}");
        assert_eq!(
            found[0].fixes[0].title,
            format!("did you mean `{meant}`?"),
            "{given}"
        );
    }
}

#[test]
fn what_belongs_to_the_optimizer_is_moved_there() {
    let text = "compile!(model, optimizer = AdamW::new(5e-5), weight_decay = 0.01)?;";
    let found = check(text);
    assert_eq!(found[0].code, "SC0106");
    let fixed = apply(text, &found[0].fixes[0]).expect("an edit");
    assert_eq!(
        fixed,
        "compile!(model, optimizer = AdamW::new(5e-5).weight_decay(0.01))?;"
    );
    let text = "compile!(model, lr = 3e-5, optimizer = AdamW::new(1e-3).epsilon(1e-6))?;";
    let fixed = apply(text, &check(text)[0].fixes[0]).expect("an edit");
    assert_eq!(
        fixed,
        "compile!(model, optimizer = AdamW::new(3e-5).epsilon(1e-6))?;"
    );
}

#[test]
fn arguments_that_do_not_exist_here_are_refused_with_the_reason() {
    for name in [
        "loss_weights",
        "weighted_metrics",
        "jit_compile",
        "run_eagerly",
    ] {
        let text = format!("compile!(model, optimizer = o, {name} = x)?;");
        let found = check(&text);
        assert_eq!(found[0].code, "SC0101", "{name}");
        let fixed = apply(&text, &found[0].fixes[0]).expect("dropping is an edit");
        assert_eq!(fixed, "compile!(model, optimizer = o)?;");
    }
}

#[test]
fn clipping_is_the_optimizers() {
    for name in [
        "clip_norm",
        "clipnorm",
        "global_clipnorm",
        "clipvalue",
        "learning_rate",
        "lr",
        "epochs",
    ] {
        let text = format!("compile!(model, optimizer = o, {name} = 1.0)?;");
        assert_eq!(codes(&text), ["SC0106"], "{name}");
    }
}

#[test]
fn scope_is_decided_by_the_text_only_when_the_notebook_is_known() {
    let text = "compile!(model, optimizer = o, steps_per_execution = 16)?;";
    let outside = CellContext {
        active_scope: Some(false),
        ..CellContext::default()
    };
    let in_code = |text: &str, context: &CellContext| -> Vec<String> {
        check_cell(text, context)
            .into_iter()
            .map(|found| found.code)
            .collect()
    };
    assert!(in_code(text, &CellContext::default()).is_empty());
    assert_eq!(in_code(text, &outside), ["SC0102"]);
    for accepted in [
        format!("%%scope s\n{text}"),
        format!("scope!(s, {{ {text} }});"),
        text.replace("16", "1"),
        text.replace("16", "n"),
        text.replace("16", "16, drop_unsupported = true"),
    ] {
        assert!(in_code(&accepted, &outside).is_empty(), "{accepted}");
    }
}

#[test]
fn a_value_of_another_kind_is_known_in_two_words() {
    for (argument, expected, fixed) in [
        (
            "loss = Adam::new(1e-3)",
            "expected `loss`, got `optimizer`",
            "loss = ",
        ),
        ("loss = 3", "expected `loss`, got `integer`", "loss = "),
        (
            "metrics = true",
            "expected `metric`, got `bool`",
            "metrics = [accuracy()]",
        ),
        (
            "strategy = \"none\"",
            "expected `strategy`, got `text`",
            "strategy = none",
        ),
        (
            "steps_per_execution = accuracy()",
            "expected `integer ≥ 1`, got `metric`",
            "metrics = accuracy()",
        ),
    ] {
        let text = format!("compile!(model, optimizer = o, {argument})?;");
        let found = check(&text);
        assert_eq!(codes(&text), ["SC0120"], "{argument}");
        assert!(found[0].message.ends_with(expected), "{}", found[0].message);
        let after = apply(&text, &found[0].fixes[0]).expect("an edit");
        assert!(after.contains(fixed), "{after}");
        assert!(codes(&after).is_empty(), "{after}: {:?}", codes(&after));
    }
    // An optimizer under another name is not missing.
    assert_eq!(
        codes("compile!(model, loss = AdamW::new(5e-5))?;"),
        ["SC0120"]
    );
    let text = "compile!(model, optimizer = warmup_linear(5e-5, 0.1))?;";
    let fixed = apply(text, &check(text)[0].fixes[0]).expect("an edit");
    assert_eq!(
        fixed,
        "compile!(model, optimizer = AdamW::new(warmup_linear(5e-5, 0.1)))?;"
    );
}

#[test]
fn a_number_of_an_optimizer_out_of_its_range_is_marked_in_its_table() {
    let text = "let o = AdamW::new(-5e-5).beta_2(1.5).epsilon(1e-6);";
    let found = check(text);
    assert_eq!(codes(text), ["SC0103", "SC0103"]);
    let state = |name: &str| {
        let row = found[0].arguments.iter().find(|row| row.name == name);
        row.map(|row| row.state)
    };
    assert_eq!(state("beta_2"), Some(ArgumentState::Invalid));
    assert_eq!(state("epsilon"), Some(ArgumentState::Given));
    assert_eq!(state("beta_1"), Some(ArgumentState::Default));
}

/// Names of ours. `tests/cells/valid.md` has types, functions and macros of the notebook and of other crates with the same names.
#[test]
fn what_is_ours_is_checked_among_other_names() {
    for (text, expected) in [
        ("match animal { Ox(n) => Lion(n), Cat => 0 };", "SC0126"),
        ("let x = { let a = 1; Adam(a) };", "SC0126"),
        ("if matches!(Adam(1), Ox(_)) {}", "SC0126"),
        (
            "use stratoscope::train::{Adam, SGD};\nSGD::new(1);",
            "SC0103",
        ),
        ("use Animal::*;\nSGD::new(1);", "SC0103"),
        ("stratoscope::train::SGD::new(1);", "SC0103"),
        ("crate::SGD::new(1);", "SC0103"),
        ("fn fit() {}\nfit!(model, train, epoch = 3)?;", "SC0114"),
        (
            "let m = Dataset::tsv(p)?;\nfit!(m, d, epochs = 1)?;",
            "SC0124",
        ),
    ] {
        assert_eq!(codes(text), [expected], "{text}");
    }
}

#[test]
fn what_earlier_cells_define_is_known() {
    let found = |earlier: &[&str], text: &str| {
        let mut context = CellContext::default();
        for cell in earlier {
            context.defined.extend(defined_in(cell));
        }
        let found = check_cell(text, &context).into_iter();
        found.map(|found| found.code).collect::<Vec<_>>()
    };
    let cell = "SGD::new(1);";
    assert_eq!(found(&[], cell), ["SC0103"]);
    assert!(found(&["struct SGD { n: u8 }", "let a = 1;"], cell).is_empty());
    assert!(found(&["use linfa::SGD;"], cell).is_empty());
    assert_eq!(found(&["fn f() { struct SGD; }"], cell), ["SC0103"]);
    assert_eq!(found(&["use stratoscope::train::SGD;"], cell), ["SC0103"]);
    let animals = "enum Animal { Lion(String), Cat }\nuse Animal::*;";
    assert!(found(&[animals], "let a = Lion(name);").is_empty());
    assert!(found(&["fn scope(a: u8, b: u8) {}"], "scope(1, { 2 });").is_empty());
    let own = "macro_rules! fit { ($($t:tt)*) => {} }";
    assert!(found(&[own], "fit!(epoch = 3);").is_empty());
    // A variable of an earlier cell that this one binds anew.
    let context = CellContext::with_variables([("m", "ModelOf<Layers>")]);
    let text = "fit!(m, d, epochs = 1)?;\nlet m = Dataset::tsv(p)?;";
    assert!(check_cell(text, &context).is_empty());
}

/// Calls that are not written as they should be: the code, and the cell after the first way out of each
/// finding in its turn.
#[test]
fn a_call_is_put_right_by_its_ways_out() {
    let variables = [
        ("bert", "ModelOf<Layers>"),
        ("train", "stratoscope_data::Dataset"),
    ];
    let context = CellContext::with_variables(variables);
    for (code, text, expected) in [
        (
            "SC0122",
            "compile!(m optimizer = o)?;",
            "compile!(m, optimizer = o)?;",
        ),
        (
            "SC0122",
            "compile!(m, optimizer = f(1) loss = l)?;",
            "compile!(m, optimizer = f(1), loss = l)?;",
        ),
        ("SC0122", "evaluate!(m dev)?;", "evaluate!(m, dev)?;"),
        (
            "SC0123",
            "compile!(m, optimizer: o)?;",
            "compile!(m, optimizer = o)?;",
        ),
        (
            "SC0123",
            "compile!(m, optimizer := o)?;",
            "compile!(m, optimizer = o)?;",
        ),
        (
            "SC0123",
            "compile!(m, AdamW::new(5e-5))?;",
            "compile!(m, optimizer = AdamW::new(5e-5))?;",
        ),
        (
            "SC0123",
            "fit!(m, train, 3, 32)?;",
            "fit!(m, train, epochs = 3, batch_size = 32)?;",
        ),
        (
            "SC0124",
            "compile!(optimizer = o)?;",
            "compile!(bert, optimizer = o)?;",
        ),
        (
            "SC0124",
            "fit!(epochs = 3)?;",
            "fit!(bert, train, epochs = 3)?;",
        ),
        ("SC0124", "fit!(train, bert)?;", "fit!(bert, train)?;"),
        (
            "SC0124",
            "fit!(m, x, y)?;",
            "fit!(m, Dataset::from_arrays(x, y)?)?;",
        ),
        (
            "SC0124",
            "let d = Dataset::tsv(p)?;\nfit!(&d, other, epochs = 1)?;",
            "let d = Dataset::tsv(p)?;\nfit!(other, d, epochs = 1)?;",
        ),
        (
            "SC0125",
            "Dense(10, activation = \"relu\")",
            "Dense(10).activation(\"relu\")",
        ),
        (
            "SC0125",
            "let l = BinaryCrossentropy(from_logits = true, label_smoothing = 0.1);",
            "let l = BinaryCrossentropy { from_logits: true }.label_smoothing(0.1);",
        ),
        (
            "SC0125",
            "let l = SparseCategoricalCrossentropy(from_logits = true, label_smoothing = 0.1);",
            "let l = CategoricalCrossentropy { from_logits: true }.label_smoothing(0.1);",
        ),
        (
            "SC0125",
            "Dataset::tsv(path = \"a.tsv\")?",
            "Dataset::tsv(\"a.tsv\")?",
        ),
        (
            "SC0126",
            "m.compile(optimizer = o)?;",
            "compile!(m, optimizer = o)?;",
        ),
        (
            "SC0126",
            "self.m.fit(&t, epochs = 3);",
            "fit!(self.m, t, epochs = 3)?;",
        ),
        (
            "SC0126",
            "m[0].fit(x, y, 3, epochs = 3);",
            "fit!(m[0], Dataset::from_arrays(x, y)?, batch_size = 3, epochs = 3)?;",
        ),
        (
            "SC0126",
            "fit(m, t, epochs = 3);",
            "fit!(m, t, epochs = 3)?;",
        ),
        (
            "SC0126",
            "let s = MirroredStrategy();",
            "let s = MirroredStrategy::new()?;",
        ),
        (
            "SC0126",
            "let s = tf.distribute.MirroredStrategy();",
            "let s = MirroredStrategy::new()?;",
        ),
        (
            "SC0126",
            "let s = MultiWorkerMirroredStrategy();",
            "let s = MultiWorkerMirroredStrategy::new()?;",
        ),
        ("SC0126", "let o = Adam();", "let o = Adam::new(1e-3);"),
        (
            "SC0127",
            "fit!(m, t, validation_data = None)?;",
            "fit!(m, t)?;",
        ),
        (
            "SC0127",
            "compile!(m, optimizer = 'adam')?;",
            "compile!(m, optimizer = \"adam\")?;",
        ),
        (
            "SC0127",
            "m.compile(optimizer='adam')",
            "compile!(m, optimizer=\"adam\")?",
        ),
        ("SC0127", "# one\nlet a = 1;", "// one\nlet a = 1;"),
        (
            "SC0127",
            "let s = f\"{n} of {m}\";",
            "let s = format!(\"{n} of {m}\");",
        ),
        (
            "SC0127",
            "let n = 1;\nlet s = f'one {n}'; # two",
            "let n = 1;\nlet s = format!(\"one {n}\"); // two",
        ),
        ("SC0128", "scope!(s) { a(); }", "scope!(s, { a(); });"),
        ("SC0128", "scope!(s { a(); });", "scope!(s, { a(); });"),
        ("SC0128", "scope(s, { a(); });", "scope!(s, { a(); });"),
        ("SC1012", "let a = f(g(1);", "let a = f(g(1));"),
        ("SC1012", "let a = vec![1, 2, 3;", "let a = vec![1, 2, 3];"),
        ("SC1012", "let a = vec![1, 2, 3);", "let a = vec![1, 2, 3];"),
        (
            "SC1012",
            "println!(\"{}\", v[0);",
            "println!(\"{}\", v[0]);",
        ),
        ("SC1012", "println!(\"a);", "println!(\"a\");"),
        ("SC1012", "fn f() {\n    1;\n", "fn f() {\n    1;\n}\n"),
        ("SC1012", "let a = (1 + 2));", "let a = (1 + 2);"),
        ("SC1012", "let a = 1", "let a = 1;"),
        ("SC1012", "let h = fit!(m, d)", "let h = fit!(m, d)?;"),
        ("SC1012", "let h = fit!(m, d)?", "let h = fit!(m, d)?;"),
        ("SC1012", "let p = m.predict(&d)", "let p = m.predict(&d);"),
        (
            "SC1012",
            "let pd = 1;\nlet a = pd",
            "let pd = 1;\nlet a = pd;",
        ),
        (
            "SC0130",
            "let a = pd.read_csv(\"a.csv\")",
            "let a = Dataset::csv(\"a.csv\")?;",
        ),
    ] {
        let mut found = check_cell(text, &context);
        assert!(
            found.iter().any(|found| found.code == code),
            "{text}: {found:#?}"
        );
        let mut fixed = text.to_owned();
        for _ in 0..6 {
            let next = found
                .iter()
                .find_map(|found| apply(&fixed, found.fixes.first()?));
            let Some(next) = next else { break };
            fixed = next;
            found = check_cell(&fixed, &context);
        }
        assert_eq!(fixed, expected, "{text}");
        assert!(found.is_empty(), "{fixed}: {found:#?}");
    }
}

#[test]
fn many_calls_have_all_their_findings() {
    let line = "compile!(model, optimizer = AdamW::new(5e-5).weight_decy(0.01), metric = [\"acuracy\"])?;\n";
    assert_eq!(check(&line.repeat(20)).len(), 40);
}
