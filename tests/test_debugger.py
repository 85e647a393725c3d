"""The debugger's protocol as JupyterLab's debugger panel and VS Code speak it: `debug_request` on control. Variables are
read between two cells and while one runs; what is malformed, huge or out of order gets an answer with a reason."""

import itertools
import json
import queue
import re
import time

import pytest
from jupyter_client import BlockingKernelClient

from kernel_client import KERNEL_NAME, check_error

pytestmark = pytest.mark.own_kernel

SEQUENCE = itertools.count(1)

TYPES = """#[derive(Debug, Clone)]
struct Point { x: i32, tags: Vec<&'static str>, next: Option<Box<Point>> }
struct Secret(u8);"""
VALUES = """let point = Point { x: 3, tags: vec!["a", "b"], next: Some(Box::new(Point { x: 4, tags: vec![], next: None })) };
let points = vec![point.clone(); 5];
let secret = Secret(1);
let numbers: Vec<f32> = (0..1_000_000).map(|it| it as f32 / 2.0).collect();
let words = std::collections::HashMap::from([("one".to_string(), 1), ("two".to_string(), 2)]);
let ones = Tensor::<2>::ones([1000, 1000], &Device::flex());
let shared = std::rc::Rc::new(5);
let name = "<b>\\u{1b}[31m".to_string();"""
MODEL = """let net = Sequential([Dense(4).input_shape(2).activation("relu"), Dense(1)])?;
compile!(net, optimizer = SGD::new(1e-3), loss = MeanSquaredError)?;
let rows: Vec<Vec<f32>> = (0..200_000).map(|row| vec![(row % 7) as f32, (row % 5) as f32]).collect();
let sums: Vec<f32> = rows.iter().map(|row| row[0] + row[1]).collect();
let data = Dataset::from_arrays(rows.clone(), sums)?;
// No line fits these, so each batch pulls its own way, however long a run has gone on.
let noise: Vec<f32> = (0..200_000_u64).map(|row| (row * 2_654_435_761 % 97) as f32).collect();
let noisy = Dataset::from_arrays(rows, noise)?;
let history = fit!(net, data, batch_size = 20_000, epochs = 2)?;"""


def send(kernel, content):
    """Sends a `debug_request` with any content; returns the id of the message."""
    message = kernel.client.session.msg("debug_request", content)
    kernel.client.control_channel.send(message)
    return message["header"]["msg_id"]


def receive(kernel, message, timeout=30):
    """The content of the reply to a message."""
    deadline = time.monotonic() + timeout
    while True:
        reply = kernel.client.get_control_msg(timeout=max(deadline - time.monotonic(), 0.01))
        if reply["parent_header"]["msg_id"] == message:
            assert reply["msg_type"] == "debug_reply"
            return reply["content"]


def ask(kernel, command, timeout=30, **arguments):
    """The reply to a request of the protocol."""
    number = next(SEQUENCE)
    message = send(kernel, {"seq": number, "type": "request", "command": command, "arguments": arguments})
    reply = receive(kernel, message, timeout)
    assert (reply["type"], reply["request_seq"], reply["command"]) == ("response", number, command)
    return reply


def body(kernel, command, **arguments):
    """The body of a reply that says success."""
    reply = ask(kernel, command, **arguments)
    assert reply["success"], reply
    return reply["body"]


def variables(kernel):
    """The variables of the notebook, by name."""
    return {each["name"]: each for each in body(kernel, "inspectVariables")["variables"]}


def unfold(kernel, variable, **part):
    """The children of a variable, by name and in order."""
    assert variable["variablesReference"] > 0, variable
    children = body(kernel, "variables", variablesReference=variable["variablesReference"], **part)["variables"]
    return {each["name"]: each for each in children}


@pytest.fixture(scope="module")
def notebook(kernel):
    """A kernel with variables of many types."""
    for cell in (TYPES, VALUES, MODEL):
        kernel.run(cell)
    return kernel


def test_a_front_end_finds_the_debugger_and_starts_it(kernel):
    assert "debugger" in kernel.info["supported_features"] and kernel.info["debugger"] is True
    assert kernel.manager.kernel_spec.metadata["debugger"] is True, KERNEL_NAME
    info = body(kernel, "debugInfo")
    assert info["isStarted"] is False and info["stoppedThreads"] == [] and info["richRendering"] is True
    early = ask(kernel, "attach")
    assert not early["success"] and "initialize" in early["message"]
    capabilities = body(kernel, "initialize", clientID="test", adapterID="", pathFormat="path", linesStartAt1=True)
    assert capabilities["supportsConfigurationDoneRequest"] is True
    assert body(kernel, "attach") == {}
    deadline = time.monotonic() + 10
    while True:
        event = kernel.client.get_iopub_msg(timeout=deadline - time.monotonic())
        if event["msg_type"] == "debug_event":
            assert event["content"]["event"] == "initialized"
            break
    assert body(kernel, "configurationDone") == {}
    assert body(kernel, "debugInfo")["isStarted"] is True
    assert [each["name"] for each in body(kernel, "threads")["threads"]] == ["cells"]
    assert body(kernel, "stackTrace", threadId=1)["stackFrames"] == []
    assert body(kernel, "modules")["modules"] == []
    assert body(kernel, "setExceptionBreakpoints", filters=[]) == {"breakpoints": []}


def test_a_cell_gets_the_path_that_a_front_end_computes(kernel):
    from ipykernel.compiler import murmur2_x86

    info = body(kernel, "debugInfo")
    assert info["hashMethod"] == "Murmur2"
    code = "let größe = 1;\nprintln!(\"{größe}\");"
    path = body(kernel, "dumpCell", code=code)["sourcePath"]
    assert path == f"{info['tmpFilePrefix']}{murmur2_x86(code, info['hashSeed'])}{info['tmpFileSuffix']}"
    assert body(kernel, "source", source={"path": path})["content"] == code
    assert not ask(kernel, "source", source={"path": "/etc/passwd"})["success"]
    (breakpoint_,) = body(kernel, "setBreakpoints", source={"path": path}, breakpoints=[{"line": 2}])["breakpoints"]
    # Without LLDB it cannot stop, and says so.
    assert breakpoint_["line"] == 2 and (breakpoint_["verified"] or "break_when" in breakpoint_["message"])
    assert body(kernel, "debugInfo")["breakpoints"] == [{"source": path, "breakpoints": [{"line": 2}]}]
    body(kernel, "setBreakpoints", source={"path": path}, breakpoints=[])
    assert body(kernel, "debugInfo")["breakpoints"] == []


def test_every_variable_has_a_type_and_a_short_value(notebook):
    found = variables(notebook)
    assert found["point"]["value"].startswith("Point { x: 3, tags: [") and found["point"]["type"] == "Point"
    assert found["secret"]["value"].startswith("(its type has no `Debug`")
    assert found["numbers"]["value"].startswith("1000000 elements: [0.0, 0.5, ") and found["numbers"]["type"] == "Vec<f32>"
    assert found["ones"]["value"] == "[1000, 1000] f32 on cpu:0"
    assert found["shared"]["value"] == "5"
    assert "17 parameters" in found["net"]["value"]
    assert re.match(r"200\D000 examples", found["data"]["value"])
    assert found["history"]["value"].startswith("2 epochs, 20 steps, loss ")
    assert all(len(each["value"]) <= 200 and "\\x1b" not in each["value"] for each in found.values())
    # The list of all variables is the one scope, too.
    (scope,) = body(notebook, "scopes", frameId=0)["scopes"]
    assert set(unfold(notebook, scope)) == set(found)


def test_structs_lists_and_maps_unfold(notebook):
    found = variables(notebook)
    fields = unfold(notebook, found["point"])
    assert list(fields) == ["x", "tags", "next"] and fields["x"]["value"] == "3"
    assert [each["value"] for each in unfold(notebook, fields["tags"]).values()] == ['"a"', '"b"']
    inner = unfold(notebook, unfold(notebook, fields["next"])["0"])
    assert inner["x"]["value"] == "4" and inner["x"]["evaluateName"] == "point.next.0.x"
    assert list(unfold(notebook, found["points"])) == [f"[{place}]" for place in range(5)]
    assert {name: each["value"] for name, each in unfold(notebook, found["words"]).items()} == {'["one"]': "1", '["two"]': "2"}


def test_a_million_elements_unfold_page_by_page(notebook):
    numbers = variables(notebook)["numbers"]
    assert numbers["indexedVariables"] == 1_000_000
    outer = unfold(notebook, numbers)
    assert len(outer) == 100
    inner = unfold(notebook, outer["[990000 … 999999]"])
    last = unfold(notebook, inner["[999900 … 999999]"])
    assert len(last) == 100 and last["[999999]"]["value"] == "499999.5"
    assert last["[999999]"]["evaluateName"] == "numbers[999999]"
    page = unfold(notebook, numbers, filter="indexed", start=500_000, count=3)
    assert [each["value"] for each in page.values()] == ["250000.0", "250000.5", "250001.0"]


def test_a_tensor_unfolds_into_statistics_and_rows(notebook):
    parts = unfold(notebook, variables(notebook)["ones"])
    assert parts["statistics"]["value"] == "min 1, mean 1, max 1, standard deviation 0"
    row = unfold(notebook, unfold(notebook, parts["[0 … 99]"])["[7]"])
    assert "[0 … 99]" in row
    assert body(notebook, "evaluate", expression="ones[7][999]")["result"] == "1"


def test_a_model_a_data_set_and_a_history_unfold(notebook):
    found = variables(notebook)
    layers = unfold(notebook, found["net"])
    assert list(layers) == ["dense", "dense_1"]
    weight = unfold(notebook, layers["dense"])["weight"]
    assert weight["value"].startswith("[4, 2] f32, ")
    assert re.match(r"min .*, mean .*, max ", unfold(notebook, weight)["statistics"]["value"])
    row = unfold(notebook, found["data"], filter="indexed", start=199_999, count=5)
    assert list(row) == ["[199999]"] and "→" in row["[199999]"]["value"]
    parts = unfold(notebook, found["history"])
    epoch = unfold(notebook, unfold(notebook, parts["epochs"])["[1]"])
    assert epoch["epoch"]["value"] == "1" and float(epoch["loss"]["value"]) > 0


def test_the_rich_view_is_what_a_cell_displays(notebook):
    placement = body(notebook, "richInspectVariables", variableName="net")
    assert "application/vnd.stratoscope.placement+json" in placement["data"] and placement["metadata"] == {}
    shown = notebook.run("history").bundles[-1]
    assert body(notebook, "richInspectVariables", variableName="history")["data"]["text/html"] == shown["text/html"]
    tensor = body(notebook, "richInspectVariables", variableName="ones", frameId=0)["data"]["text/plain"]
    assert tensor.startswith("Tensor [1000, 1000] f32 on cpu:0")
    assert body(notebook, "richInspectVariables", variableName="net.dense.weight")["data"]["text/plain"].startswith("[4, 2]")
    unknown = ask(notebook, "richInspectVariables", variableName="nothing")
    assert not unknown["success"] and "no variable `nothing`" in unknown["message"]


def test_expressions_are_read_and_evaluated(notebook):
    read = body(notebook, "evaluate", expression="points[1].tags[0]", context="watch")
    assert read["result"] == '"a"'
    assert body(notebook, "evaluate", expression='words["two"]')["result"] == "2"
    assert body(notebook, "evaluate", expression="point.x + 1", context="repl")["result"] == "4"
    hovered = ask(notebook, "evaluate", expression="{ drop(point); 1 }", context="hover")
    assert not hovered["success"], "hovering executes nothing"
    wrong = ask(notebook, "evaluate", expression="point.y", context="repl")
    assert not wrong["success"] and wrong["message"]
    assert "point" in variables(notebook)


def test_values_follow_the_cells(fresh_kernel):
    kernel = fresh_kernel
    kernel.run("#[derive(Debug)] struct Size { width: u8 }\nlet size = Size { width: 1 };")
    size = variables(kernel)["size"]
    assert list(unfold(kernel, size)) == ["width"]
    # The type is another one of the same name: what was registered of the old one is not used.
    kernel.execute("#[derive(Debug)] struct Size { width: String, height: u64 }")
    kernel.run('let size = Size { width: "wide".to_string(), height: 7 };')
    fields = unfold(kernel, variables(kernel)["size"])
    assert {name: each["value"] for name, each in fields.items()} == {"width": '"wide"', "height": "7"}
    # The number of a variable stays; after a crash it has no value.
    kernel.execute("std::process::abort();")
    assert "size" not in variables(kernel)
    gone = ask(kernel, "variables", variablesReference=size["variablesReference"])
    assert not gone["success"] and gone["message"]
    check_error(kernel.execute("panic!(\"no\");"), "panic")
    assert variables(kernel) == {}


def test_a_debug_that_panics_or_never_stops_writing_harms_nothing(fresh_kernel):
    kernel = fresh_kernel
    kernel.run("""struct Bad; struct Endless;
impl std::fmt::Debug for Bad { fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { panic!("no") } }
impl std::fmt::Debug for Endless { fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { loop { f.write_str("more ")?; } } }
let bad = Bad; let endless = Endless;""")
    found = variables(kernel)
    assert found["bad"]["value"].strip() == "(its `Debug` panicked: no)"
    assert found["endless"]["value"].startswith("more more ") and found["endless"]["value"].endswith("…")
    cell = kernel.run("1 + 1")
    assert cell.stream("stderr") == ""
    assert set(variables(kernel)) == {"bad", "endless"}


def test_a_debug_that_never_ends_blocks_neither_the_panel_nor_cells(fresh_kernel):
    kernel = fresh_kernel
    kernel.run("""struct Waiting;
impl std::fmt::Debug for Waiting { fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { loop { std::thread::yield_now(); } } }
let waiting = Waiting; let number = 3;""")
    found = variables(kernel)
    assert found["waiting"]["value"] == "(its `Debug` has not ended)"
    assert found["number"]["value"] == "3"
    begun = time.monotonic()
    again = variables(kernel)
    assert again["waiting"]["value"] == found["waiting"]["value"]
    refused = ask(kernel, "richInspectVariables", variableName="waiting")
    assert not refused["success"] and "has not ended" in refused["message"]
    assert time.monotonic() - begun < 60, "nobody waits for it a second time"
    # A cell cannot have it, and says so; the others are there.
    cell = kernel.execute("println!(\"{number}\");")
    assert cell.stream("stdout") == "3\n"
    assert "`waiting` is lost" in cell.stream("stderr"), cell.stream("stderr")
    assert set(variables(kernel)) == {"number"}


@pytest.fixture
def endings(notebook):
    """Requests of cells that train until they are interrupted, also after a failure, so that the next test has the kernel."""
    requests = []
    yield requests
    for request in requests:
        notebook.manager.interrupt_kernel()
        notebook.collect(request)


def test_variables_are_read_while_a_cell_runs(notebook, endings):
    """Their names and types, and the model of the run: between two optimizer steps."""
    variables(notebook)
    endings.append(notebook.request("let long = fit!(net, noisy, batch_size = 200, epochs = 1000)?;"))
    deadline = time.monotonic() + 60
    while "(in training)" not in (found := variables(notebook))["net"]["value"]:
        assert time.monotonic() < deadline, found["net"]
        time.sleep(0.1)
    assert set(found) >= {"point", "numbers", "data"} and found["point"]["type"] == "Point"
    # evcxr hands every variable to the cell.
    assert found["noisy"]["value"] == "(in use by the running cell)"
    bias = unfold(notebook, unfold(notebook, found["net"])["dense_1"])["bias"]
    first = unfold(notebook, bias)["[0]"]["value"]
    deadline = time.monotonic() + 60
    while unfold(notebook, bias)["[0]"]["value"] == first:
        assert time.monotonic() < deadline, "the run goes on"
    assert "application/vnd.stratoscope.placement+json" in body(notebook, "richInspectVariables", variableName="net")["data"]
    # The history, which the cell has not returned yet.
    history = unfold(notebook, found["net"])["history"]
    assert int(unfold(notebook, history)["steps"]["value"].split()[0]) > 0, history
    curves = body(notebook, "richInspectVariables", variableName="net.history.plot")["data"]
    assert "<svg" in curves["image/svg+xml"] and "loss" in curves["image/svg+xml"]
    busy = ask(notebook, "evaluate", expression="1 + 1", context="repl")
    assert not busy["success"] and "a cell is running" in busy["message"]
    for _ in range(20):
        variables(notebook)
    notebook.manager.interrupt_kernel()
    notebook.collect(endings.pop())
    assert variables(notebook)["net"]["value"].count("parameters") == 1
    assert "history" not in unfold(notebook, variables(notebook)["net"])


def event(kernel, name, timeout=60):
    """The body of the next event of the debugger with this name."""
    deadline = time.monotonic() + timeout
    while True:
        if kernel.debug_events:
            message = kernel.debug_events.pop(0)
        else:
            message = kernel.client.get_iopub_msg(timeout=max(deadline - time.monotonic(), 0.01))
        if message["msg_type"] == "debug_event" and message["content"]["event"] == name:
            return message["content"]["body"]


def test_a_run_is_a_thread_that_pauses_steps_and_goes_on(notebook, endings):
    """By the implementation of its buttons, without a front end that has any."""
    body(notebook, "initialize")
    body(notebook, "attach")
    notebook.run("let moving = Sequential([Dense(4).input_shape(2), Dense(1)])?;\n"
                 "compile!(moving, optimizer = SGD::new(1e-3), loss = MeanSquaredError)?;")
    endings.append(notebook.request("let long = fit!(moving, noisy, batch_size = 200, epochs = 1000)?;"))
    deadline = time.monotonic() + 60
    while len(threads := body(notebook, "threads")["threads"]) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert threads[1]["name"].endswith("(training)")
    # JupyterLab names thread 1 where none is stopped.
    body(notebook, "pause", threadId=1)
    stopped = event(notebook, "stopped")
    thread = stopped["threadId"]
    assert (stopped["reason"], thread) == ("pause", threads[1]["id"])
    assert body(notebook, "debugInfo")["stoppedThreads"] == [thread]
    (frame,) = body(notebook, "stackTrace", threadId=thread)["stackFrames"]
    assert "between two optimizer steps" in frame["name"]
    (scope,) = body(notebook, "scopes", frameId=frame["id"])["scopes"]

    def bias():
        model = unfold(notebook, scope)["moving"]
        values = unfold(notebook, unfold(notebook, unfold(notebook, model)["dense_1"])["bias"])
        return values["[0]"]["value"], values["statistics"]["value"]

    before = bias()
    assert bias() == before, "it stands"
    for _ in range(3):
        body(notebook, "next", threadId=thread)
        assert event(notebook, "stopped")["reason"] == "step"
    assert bias() != before
    back = ask(notebook, "stepBack", threadId=thread)
    assert not back["success"] and "rewind" in back["message"]
    body(notebook, "continue", threadId=thread)
    assert event(notebook, "continued")["threadId"] == thread
    assert body(notebook, "debugInfo")["stoppedThreads"] == []
    # A run that is interrupted while it stands is not shown as stopped for good.
    body(notebook, "pause", threadId=thread)
    event(notebook, "stopped")
    notebook.manager.interrupt_kernel()
    event(notebook, "continued")
    notebook.collect(endings.pop())
    assert len(body(notebook, "threads")["threads"]) == 1
    body(notebook, "disconnect")


def test_a_run_of_start_is_a_thread_that_steps_back(notebook):
    """Between two cells, by the calls that a cell would make: one history."""
    body(notebook, "initialize")
    body(notebook, "attach")
    notebook.run("let walked = Sequential([Dense(4).input_shape(2), Dense(1)])?;\n"
                 "compile!(walked, optimizer = Adam::new(1e-3), loss = MeanSquaredError)?;\n"
                 "let run = start!(walked, data, batch_size = 2_000, epochs = 20)?;")
    stopped = event(notebook, "stopped")
    thread = stopped["threadId"]
    assert stopped["reason"] == "entry" and body(notebook, "debugInfo")["stoppedThreads"] == [thread]
    assert [each["name"] for each in body(notebook, "threads")["threads"]] == ["cells", "run `run` (stands)"]

    def frames():
        return body(notebook, "stackTrace", threadId=thread)["stackFrames"]

    names = [each["name"] for each in frames()]
    assert names == ["step 1 of 2000, not made yet", "batch 1 of 100", "epoch 1 of 20", "run `run` of Sequential"]
    of_run, of_notebook = body(notebook, "scopes", frameId=frames()[0]["id"])["scopes"]
    assert (of_run["name"], of_notebook["name"]) == ("Run", "Variables")
    early = ask(notebook, "stepBack", threadId=thread)
    assert not early["success"] and "no step" in early["message"]

    def bias():
        model = unfold(notebook, of_run)["model"]
        numbers = unfold(notebook, unfold(notebook, model)["dense"])["weight"]
        return [each["value"] for each in unfold(notebook, unfold(notebook, numbers)["[0]"]).values()]

    def move(command, reason="step"):
        body(notebook, command, threadId=thread)
        stopped = event(notebook, "stopped")
        assert (stopped["threadId"], stopped["reason"]) == (thread, reason), stopped
        return stopped

    seen = [bias()]
    for command in ("next", "stepOut", "next"):
        move(command)
        seen.append(bias())
    assert len({str(each) for each in seen}) == 4
    move("stepBack")
    assert bias() == seen[2], "the same bits"
    # What the coming step will see and do, when it is asked for.
    parts = unfold(notebook, of_run)
    example = unfold(notebook, parts["batch"], filter="indexed", start=0, count=1)["[0]"]
    assert float(unfold(notebook, example)["loss"]["value"]) >= 0
    gradients = unfold(notebook, parts["gradients"])
    assert list(gradients) == ["dense.weight", "dense.bias", "dense_1.weight", "dense_1.bias"]
    assert all("norm" in each["value"] for each in gradients.values())
    assert "step 3 of" in parts["position"]["value"] and parts["latest step"]["value"].startswith("step 2: loss ")
    assert "text/html" in body(notebook, "richInspectVariables", variableName="run.batch")["data"]
    # The cells move the same run.
    notebook.run("run.step(2)?")
    assert event(notebook, "stopped")["threadId"] == thread
    assert frames()[0]["name"].startswith("step 5 of")
    assert notebook.run("run.history()?.steps.len()").shown().strip() == "4"
    # Conditions that the panel has chosen.
    refused = ask(notebook, "setExceptionBreakpoints", filters=["raised"])
    assert not refused["success"] and "update_ratio" in refused["message"]
    body(notebook, "setExceptionBreakpoints", filters=["nan"], filterOptions=[{"filterId": "update_ratio", "condition": "1e-12"}])
    hit = move("continue", "exception")
    assert hit["text"] == "update_ratio().above(1e-12)" and frames()[0]["name"].startswith("step 5 of")
    body(notebook, "setExceptionBreakpoints", filters=[])
    # A variable of the model is watched: its layer, beside its weights.
    dense = unfold(notebook, unfold(notebook, of_run)["model"])["dense"]
    info = body(notebook, "dataBreakpointInfo", variablesReference=dense["variablesReference"], name="weight")
    assert info["dataId"] == "dense.weight"
    assert body(notebook, "dataBreakpointInfo", variablesReference=1, name="point")["dataId"] is None
    body(notebook, "setDataBreakpoints", breakpoints=[{"dataId": "dense.weight", "condition": "1e-12"}])
    assert move("continue", "exception")["text"] == 'update_ratio().above(1e-12).of("dense.weight")'
    body(notebook, "setDataBreakpoints", breakpoints=[])
    move("next")
    move("reverseContinue")
    assert frames()[0]["name"].startswith("step 5 of"), "where the condition has stopped it"
    move("reverseContinue")
    assert bias() == seen[0]
    # An interrupt is a pause, and a run that ends is no thread.
    body(notebook, "continue", threadId=thread)
    busy = ask(notebook, "next", threadId=thread)
    assert not busy["success"]
    body(notebook, "pause", threadId=thread)
    assert event(notebook, "stopped")["reason"] in ("pause", "step")
    body(notebook, "continue", threadId=thread)
    assert event(notebook, "thread")["reason"] == "exited"
    assert [each["name"] for each in body(notebook, "threads")["threads"]] == ["cells"]
    body(notebook, "disconnect")


def test_a_step_is_gone_through_layer_by_layer(notebook, tiny):
    """Forward and backward, each value readable, back again, and out: the step has the bits that it has without a look."""
    body(notebook, "initialize")
    body(notebook, "attach")
    notebook.run(f"""let texts = ["a game of chess", "a mail server", "a font of letters", "a library of functions"];
let rows = Dataset::from_labelled((0..16).map(|row| (texts[row % 4], ["game", "server", "font", "library"][row % 4])));
let of_text = BertForSequenceClassification::from_pretrained("{tiny}", 4)?;
compile!(of_text, optimizer = AdamW::new(1e-3), loss = SparseCategoricalCrossentropy {{ from_logits: true }}, gradient_accumulation_steps = 2)?;
let first = start!(of_text, rows, batch_size = 4, seed = 1, verbose = false)?;""")
    thread = event(notebook, "stopped")["threadId"]

    def frames():
        return body(notebook, "stackTrace", threadId=thread)["stackFrames"]

    def move(command):
        body(notebook, command, threadId=thread)
        assert event(notebook, "stopped")["reason"] == "step"
        return frames()[0]["name"]

    def scopes(frame):
        return {each["name"]: each for each in body(notebook, "scopes", frameId=frame["id"])["scopes"]}

    names = [move("stepIn")]
    layer, micro_batch, step, *_ = frames()
    assert (micro_batch["name"], step["name"]) == ("micro-batch 1 of 2", "step 1 of 2, not made yet")
    # The frames have their lines in a text that names all layers of the micro-batch.
    text = body(notebook, "source", source=layer["source"])["content"].splitlines()
    assert text[layer["line"] - 1].strip() == "forward: bert.embeddings" and text[micro_batch["line"] - 1].strip() == "each micro-batch"
    assert sum("backward: bert.encoder.layer." in line for line in text) == 2, text
    # What the layer puts out, number by number.
    shown = scopes(layer)
    assert list(shown) == ["Layer", "Run", "Variables"]
    values = unfold(notebook, shown["Layer"])
    output = values["bert.embeddings"]
    assert output["value"].startswith("[4, ") and "norm" in output["value"]
    assert "[0]" in unfold(notebook, output)
    assert "text/html" in body(notebook, "richInspectVariables", variableName="first.layer")["data"]
    examples = unfold(notebook, scopes(micro_batch)["Micro-batch"], filter="indexed", start=0, count=10)
    assert len(examples) == 4
    while not names[-1].startswith("the update"):
        names.append(move("stepIn"))
        assert len(names) < 40
    directions = [name.split(":")[0] for name in names]
    half = directions.index("backward")
    assert set(directions[:half]) == {"forward"} and directions.count("forward") == 2 * half
    assert "micro-batch 2 of 2" in [each["name"] for each in frames()]
    updates = unfold(notebook, scopes(frames()[0])["Layer"])
    assert "of the weights" in updates["classifier.weight"]["value"]
    computed = unfold(notebook, unfold(notebook, shown["Run"])["computed"])
    assert computed["[0]"]["value"] == "forward: bert.embeddings"
    # Back, layer by layer, and on to the end of the step.
    assert move("stepBack") == names[-2]
    assert move("stepBack") == names[-3]
    notebook.run("let seen = first.gradients()?.total().norm;")
    assert frames()[0]["name"] == names[-3], "to look changes nothing"
    assert move("stepOut").startswith("step 2 of 2")
    assert move("stepIn").startswith("forward: bert.embeddings")
    assert notebook.run("first.history()?.steps.len()").shown().strip() == "1"
    body(notebook, "continue", threadId=thread)
    assert event(notebook, "thread")["reason"] == "exited"
    notebook.run(f"""let again = BertForSequenceClassification::from_pretrained("{tiny}", 4)?;
compile!(again, optimizer = AdamW::new(1e-3), loss = SparseCategoricalCrossentropy {{ from_logits: true }}, gradient_accumulation_steps = 2)?;
let plain = fit!(again, rows, batch_size = 4, seed = 1, verbose = false)?;""")
    equal = notebook.run("plain.steps.iter().map(|it| it.loss.to_bits()).eq(first.history()?.steps.iter().map(|it| it.loss.to_bits()))")
    assert equal.shown().strip() == "true"
    # The same by calls.
    notebook.run("let second = start!(again, rows, batch_size = 4, seed = 1, verbose = false)?;")
    shown = notebook.run("second.next_layer()?").shown()
    assert shown.startswith("step 1 of 2, micro-batch 1 of 2, forward: bert.embeddings (1 of "), shown
    notebook.run("drop(second);")
    body(notebook, "disconnect")


HOSTILE = [
    {}, {"command": None}, {"command": ["variables"]}, {"command": "x" * 100_000},
    {"command": "variables"}, {"command": "variables", "arguments": []},
    {"command": "variables", "arguments": {"variablesReference": -1}},
    {"command": "variables", "arguments": {"variablesReference": 1e300}},
    {"command": "variables", "arguments": {"variablesReference": 2**63}},
    {"command": "variables", "arguments": {"variablesReference": 987_654}},
    {"command": "variables", "arguments": {"variablesReference": "1; drop table"}},
    {"command": "evaluate", "arguments": {"expression": {"a": 1}}},
    {"command": "evaluate", "arguments": {"expression": "[" * 50_000, "context": "hover"}},
    {"command": "evaluate", "arguments": {"expression": "ä" * 50_000 + "\x00", "context": "hover"}},
    {"command": "richInspectVariables", "arguments": {"variableName": "x.y" * 10_000}},
    {"command": "setBreakpoints", "arguments": {"source": {"path": "p"}, "breakpoints": [{}] * 20_000}},
    {"command": "setBreakpoints", "arguments": {"source": 3}},
    {"command": "dumpCell", "arguments": {"code": 5}}, {"command": "source", "arguments": {"source": {"path": "../../etc/passwd"}}},
    {"command": "next", "arguments": {"threadId": 1}}, {"command": "stepBack", "arguments": {"threadId": 99}},
    {"command": "pause", "arguments": {}}, {"command": "copyToGlobals", "arguments": {"srcVariableName": "a"}},
    {"command": "setVariable", "arguments": {"name": "a", "value": "1"}},
    {"command": "variables", "arguments": {"variablesReference": json.loads("[" * 100 + "]" * 100)}},
]


def test_hostile_requests_get_a_reason_and_harm_nothing(kernel):
    sent = [(content, send(kernel, content)) for content in HOSTILE]
    replies = {}
    while len(replies) < len(sent):
        reply = kernel.client.get_control_msg(timeout=30)
        replies[reply["parent_header"]["msg_id"]] = reply
    for content, message in sent:
        reply = replies[message]["content"]
        shown = str(content)[:100]
        assert reply["type"] == "response" and reply["success"] is False, (shown, reply)
        assert 10 < len(reply["message"]) < 1000, (shown, reply["message"][:200])
    assert body(kernel, "debugInfo")["hashMethod"] == "Murmur2"
    assert kernel.client.kernel_info(reply=True, timeout=20)["content"]["status"] == "ok"


def test_many_requests_at_once_are_all_answered(kernel):
    """Also on shell, where no front end sends them, and from two clients."""
    variables(kernel)
    messages = [send(kernel, {"seq": seq, "type": "request", "command": "inspectVariables"}) for seq in range(100)]
    # With a session of its own: a socket is known by its session.
    other = BlockingKernelClient(connection_file=kernel.manager.connection_file)
    other.load_connection_file()
    other.start_channels()
    try:
        message = other.session.msg("debug_request", {"seq": 1, "type": "request", "command": "inspectVariables"})
        other.control_channel.send(message)
        assert other.get_control_msg(timeout=30)["content"]["success"]
        message = other.session.msg("debug_request", {"seq": 2, "type": "request", "command": "threads"})
        other.shell_channel.send(message)
        assert other.get_shell_msg(timeout=30)["content"]["success"]
    finally:
        other.stop_channels()
    answered = {kernel.client.get_control_msg(timeout=30)["parent_header"]["msg_id"] for _ in messages}
    assert answered == set(messages)
    with pytest.raises(queue.Empty):
        kernel.client.get_control_msg(timeout=0.2)


def test_a_session_ends_and_begins_again(kernel):
    body(kernel, "initialize")
    body(kernel, "attach")
    assert body(kernel, "disconnect", restart=False, terminateDebuggee=False) == {}
    assert body(kernel, "debugInfo")["isStarted"] is False
    kernel.run("1")
    body(kernel, "initialize")
    body(kernel, "attach")
    assert body(kernel, "debugInfo")["isStarted"] is True
