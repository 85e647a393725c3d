"""The Jupyter protocol: identity, outputs, errors, shutdown, interrupt."""

import json
import os
import time

import pytest

from kernel_client import Kernel, check_error, without_ansi

pytestmark = pytest.mark.own_kernel


def say(kernel, kind, **content):
    """Sends a message over the shell channel; returns the comm messages of the answer."""
    message = kernel.client.session.msg(kind, content)
    kernel.client.shell_channel.send(message)
    found = []
    while True:
        answer = kernel.client.get_iopub_msg(timeout=20)
        if answer["parent_header"].get("msg_id") != message["header"]["msg_id"]:
            continue
        if answer["msg_type"].startswith("comm_"):
            found.append(answer)
        if answer["content"].get("execution_state") == "idle":
            return found


def open_comms(kernel, target=None):
    return kernel.client.comm_info(target, reply=True, timeout=20)["content"]["comms"]


def test_a_table_of_the_variables_follows_the_cells(fresh_kernel):
    """`%vars live`, as Jupyter's widgets see it: their protocol, version 2.1."""
    kernel = fresh_kernel
    kernel.run("let first = vec![1_u8, 2];")
    assert open_comms(kernel) == {}
    cell = kernel.run("%vars live")
    opened = cell.of_kind("comm_open")
    assert [each["target_name"] for each in opened] == ["jupyter.widget"] * 3
    assert all(message.metadata == {"version": "2.1.0"} for message in cell.messages if message.kind == "comm_open")
    models = {each["comm_id"]: each["data"]["state"] for each in opened}
    (shown,) = cell.of_kind("display_data")
    view = shown["data"]["application/vnd.jupyter.widget-view+json"]
    assert (view["version_major"], view["version_minor"]) == (2, 0)
    table = models[view["model_id"]]
    assert (table["_model_name"], table["_view_name"]) == ("HTMLModel", "HTMLView")
    for part, name in [("layout", "LayoutModel"), ("style", "HTMLStyleModel")]:
        assert models[table[part].removeprefix("IPY_MODEL_")]["_model_name"] == name
    assert "first" in table["value"] and "Vec&lt;u8&gt;" in table["value"] and "first" in shown["data"]["text/plain"]
    assert set(open_comms(kernel)) == set(models) == set(open_comms(kernel, "jupyter.widget"))
    assert open_comms(kernel, "other") == {}

    def changes(cell):
        return [each["data"]["state"]["value"] for each in cell.of_kind("comm_msg") if each["comm_id"] == view["model_id"]
                and each["data"]["method"] == "update"]

    (value,) = changes(kernel.run("let second = 1.5;"))
    assert "second" in value and "first" in value
    assert not changes(kernel.run("1 + 1")), "nothing has changed"
    (value,) = changes(kernel.execute("std::process::abort();"))
    assert "second" not in value
    # A second view is one of the same model.
    again = kernel.run("%vars live")
    assert not again.of_kind("comm_open")
    assert again.of_kind("display_data")[0]["data"]["application/vnd.jupyter.widget-view+json"] == view
    kernel.run("let third = 3;")

    # A reloaded page asks for all states at once, or for each.
    (answer,) = say(kernel, "comm_msg", comm_id=view["model_id"], data={"method": "request_state"})
    assert "third" in answer["content"]["data"]["state"]["value"]
    assert say(kernel, "comm_open", comm_id="control", target_name="jupyter.widget.control", data={}) == []
    (answer,) = say(kernel, "comm_msg", comm_id="control", data={"method": "request_states"})
    data = answer["content"]["data"]
    assert data["method"] == "update_states" and set(data["states"]) == set(models)
    assert data["states"][view["model_id"]]["model_name"] == "HTMLModel"
    assert "third" in data["states"][view["model_id"]]["state"]["value"]
    say(kernel, "comm_close", comm_id="control", data={})
    assert set(open_comms(kernel)) == set(models)

    # Unknown comms and invalid data end nothing.
    (closed,) = say(kernel, "comm_open", comm_id="nowhere", target_name="no.such.target", data={})
    assert closed["msg_type"] == "comm_close" and closed["content"]["comm_id"] == "nowhere"
    assert say(kernel, "comm_msg", comm_id="nobody", data={"method": "request_state"}) == []
    assert say(kernel, "comm_msg", comm_id=view["model_id"], data=[1]) == []
    assert say(kernel, "comm_msg", wrong=1) == []

    say(kernel, "comm_close", comm_id=view["model_id"], data={})
    assert open_comms(kernel) == {}
    assert not kernel.run("let fourth = 4;").of_kind("comm_msg")
    check_error(kernel.execute("%vars alive"), "UnknownOption", "`%vars live`", line=1)


def test_kernel_info_is_answered_before_cells_can_run(fresh_kernel):
    """The answer overtakes the first cell, which waits for the evaluator. How long it takes is measured by the bench command."""
    request = fresh_kernel.request("1 + 1")
    asked = fresh_kernel.client.kernel_info()
    reply = fresh_kernel.client.get_shell_msg(timeout=60)
    assert (reply["msg_type"], reply["parent_header"]["msg_id"]) == ("kernel_info_reply", asked)
    assert fresh_kernel.collect(request).ok().shown() == "2"


def test_kernel_info_is_true(kernel):
    info = kernel.info
    assert info["status"] == "ok"
    assert info["implementation"] == "stratoscope"
    assert info["protocol_version"].startswith("5.")
    language = info["language_info"]
    assert (language["name"], language["file_extension"], language["mimetype"]) == ("rust", ".rs", "text/rust")
    assert info["implementation_version"] and language["version"] and info["banner"]


def test_the_first_cell_is_number_1_and_busy_comes_first_and_idle_last(fresh_kernel):
    cell = fresh_kernel.run('println!("out"); 7')
    kinds = [message.kind for message in cell.messages]
    states = [state["execution_state"] for state in cell.of_kind("status")]
    assert states == ["busy", "idle"]
    assert kinds[0] == "status" and kinds[-1] == "status"
    assert kinds.index("execute_input") == 1
    assert cell.of_kind("execute_input")[0]["execution_count"] == 1
    assert cell.number == 1
    assert cell.of_kind("execute_result")[0]["execution_count"] == 1
    assert fresh_kernel.run("8").number == 2


def test_streams_are_separate_and_complete(kernel):
    cell = kernel.run('println!("to out"); eprintln!("to err"); print!("no line end"); eprint!("none here");')
    assert cell.stream("stdout") == "to out\nno line end"
    assert cell.stream("stderr") == "to err\nnone here"
    assert not cell.bundles


def test_streams_come_while_the_cell_runs(kernel, tmp_path):
    """The cell waits until the test has seen its first line."""
    request = kernel.request(f'''println!("first");
while !std::path::Path::new("{tmp_path}/seen").exists() {{ std::thread::sleep(std::time::Duration::from_millis(10)); }}
println!("second");''')
    assert kernel.wait_for(request, "stream")[0]["text"] == "first\n"
    (tmp_path / "seen").touch()
    assert kernel.collect(request).ok().stream() == "second\n"


def test_the_last_expression_is_the_result(kernel):
    cell = kernel.run('let numbers = vec![1, 2, 3];\nnumbers')
    assert [message.kind for message in cell.messages].count("execute_result") == 1
    assert cell.shown() == "[1, 2, 3]"
    for silent in ("let nothing = 1;", "numbers.len();", "()", "// nothing at all", ""):
        assert not kernel.run(silent).bundles, silent
    assert kernel.run("numbers.len()").shown() == "3"


def test_prints_and_displays_come_in_the_order_of_the_program(kernel):
    cell = kernel.run(
        'for i in 0..60 { print!("p{i}"); display_html(&format!("d{i}")); eprintln!("e{i}"); '
        'display_html(&format!("f{i}")); }\nprint!("last");\n"result"'
    )
    text = ""
    for message in cell.messages:
        if message.kind == "stream":
            text += message.content["text"].strip()
        elif message.kind in ("display_data", "execute_result"):
            data = message.content["data"]
            text += data.get("text/html", data["text/plain"])
    assert text == "".join(f"{letter}{i}" for i in range(60) for letter in "pdef") + 'last"result"'


def test_a_cell_shows_several_things_in_order(kernel):
    cell = kernel.run(
        'display_html("<b>one</b>");\nprintln!("between");\ndisplay(&Markdown("*two*"));\ndisplay_html("<i>three</i>");\n4'
    )
    displays = cell.of_kind("display_data")
    assert [next(iter(set(each["data"]) - {"text/plain"})) for each in displays] == [
        "text/html", "text/markdown", "text/html"]
    assert displays[0]["data"]["text/html"] == "<b>one</b>"
    assert all("text/plain" in each["data"] for each in displays)
    assert cell.stream() == "between\n"
    assert cell.of_kind("execute_result")[0]["data"]["text/plain"] == "4"


def test_a_display_is_updated_in_place(kernel):
    cell = kernel.run('display_as("bar", &Html("0 %"));\nfor done in [50, 100] { display_update("bar", &Html(format!("{done} %"))); }')
    (first,) = cell.of_kind("display_data")
    updates = cell.of_kind("update_display_data")
    assert [each["data"]["text/html"] for each in updates] == ["50 %", "100 %"]
    names = {each["transient"]["display_id"] for each in [first, *updates]}
    assert len(names) == 1


def test_a_compile_error_is_one_error_with_its_place(kernel):
    cell = kernel.execute('let fine = 1;\nlet wrong: i32 = "text";')
    error = check_error(cell, cell.errors[0]["ename"], "mismatched types", line=2)
    text = without_ansi("\n".join(error["traceback"]))
    assert 'let wrong: i32 = "text";' in text
    assert "^" in text
    assert kernel.execute("fine").reply["status"] == "error", "nothing of the cell ran"


def test_a_panic_is_an_error_and_variables_stay(kernel):
    kernel.run("let kept = vec![1, 2, 3];")
    cell = kernel.execute('let before = 1;\nlet index = before + 9;\nkept[index]')
    check_error(cell, cell.errors[0]["ename"], "index out of bounds", line=3)
    assert kernel.run("kept.len()").shown() == "3"
    cell = kernel.execute('panic!("with {} words", 3)')
    check_error(cell, cell.errors[0]["ename"], "with 3 words", line=1)
    assert kernel.run("kept").shown() == "[1, 2, 3]"


def test_a_failing_question_mark_is_an_error_and_variables_stay(kernel):
    kernel.run("let tally = 5;")
    cell = kernel.execute('let text = "12x";\nlet number: i32 = text.parse()?;\nnumber')
    check_error(cell, cell.errors[0]["ename"], "invalid digit", line=2)
    assert kernel.run("tally").shown() == "5"
    cell = kernel.execute('std::fs::read_to_string("/no/such/file")?')
    check_error(cell, cell.errors[0]["ename"], "No such file", line=1)
    assert kernel.run("tally").shown() == "5"


def test_lines_are_counted_in_the_cell_as_typed(kernel):
    cell = kernel.execute('// a comment\n\nlet ünïcode = "größe";\n\nlet bad: u8 = ünïcode;\n')
    check_error(cell, cell.errors[0]["ename"], line=5)


def test_a_process_that_ends_is_reported_and_the_next_cell_runs(kernel):
    cell = kernel.execute("std::process::exit(3)")
    check_error(cell, cell.errors[0]["ename"], without_line=True)
    assert kernel.run("1 + 2").shown() == "3"


def test_printing_the_protocol_of_the_evaluator_has_no_effect(kernel):
    cell = kernel.run('println!("EVCXR_EXECUTION_COMPLETE"); println!("{{\\"kind\\":\\"result\\"}}"); 5')
    assert "EVCXR_EXECUTION_COMPLETE" in cell.stream()
    assert cell.of_kind("execute_result")[0]["data"]["text/plain"] == "5"


def test_a_message_with_a_bad_signature_is_ignored(kernel):
    session = kernel.client.session
    key, session.key = session.key, b"not the key"
    try:
        kernel.client.execute('println!("must not run")')
    finally:
        session.key = key
    cell = kernel.run('println!("runs")')
    assert cell.stream() == "runs\n"


def test_the_heart_beats_while_a_cell_runs(kernel):
    request = kernel.request("std::thread::sleep(std::time::Duration::from_secs(3));")
    kernel.client.hb_channel.unpause()
    time.sleep(2)
    assert kernel.client.hb_channel.is_beating()
    kernel.collect(request).ok()


@pytest.mark.parametrize(
    "code",
    [
        "std::thread::sleep(std::time::Duration::from_secs(120));",
        "let mut count = 0_u64; loop { count = std::hint::black_box(count + 1); }",
    ],
    ids=["sleeping", "computing"],
)
def test_interrupt_ends_the_cell_and_the_kernel_goes_on(kernel, code):
    request = kernel.request(f'println!("started");\n{code}')
    kernel.wait_for(request, "stream")
    kernel.manager.interrupt_kernel()
    cell = kernel.collect(request, code, timeout=60)
    check_error(cell, cell.errors[0]["ename"], "interrupted", without_line=True)
    assert kernel.run("40 + 2").shown() == "42"


def test_shutdown_is_clean(tmp_path):
    with Kernel(cwd=tmp_path) as kernel:
        kernel.run("let held = vec![0_u8; 1000];")
        children = children_of(kernel.pid)
        assert children, "the cells run in a process of their own"
        reply = kernel.client.shutdown(reply=True, timeout=20)
        assert reply["content"] == {"status": "ok", "restart": False}
        assert ended(kernel.pid) and all(ended(child) for child in children)


def test_restart_gives_a_new_process_with_nothing_in_it(tmp_path):
    with Kernel(cwd=tmp_path) as kernel:
        kernel.run("let held = 1;")
        kernel.manager.restart_kernel(now=False)
        kernel.client.wait_for_ready(timeout=60)
        assert kernel.execute("held").reply["status"] == "error"
        assert kernel.run("2").shown() == "2"


def test_two_kernels_are_independent(tmp_path, kernel):
    with Kernel(cwd=tmp_path) as other:
        other.run("let mine = 1;")
        kernel.run("let mine = 2;")
        assert other.run("mine").shown() == "1"


def test_silent_cells_leave_no_trace(kernel):
    number = kernel.run("1").number
    cell = kernel.execute("2", silent=True)
    assert cell.reply["status"] == "ok" and not cell.bundles
    assert kernel.run("3").number == number + 1


def test_is_complete(kernel):
    def status(code):
        kernel.client.is_complete(code)
        while True:
            reply = kernel.client.get_shell_msg(timeout=20)
            if reply["msg_type"] == "is_complete_reply":
                return reply["content"]["status"]

    assert status("let x = 1;") == "complete"
    assert status("fn f() {") == "incomplete"
    assert status("let x = );") == "invalid"


def test_the_working_folder_is_the_notebooks(kernel):
    here = json.loads(json.dumps(kernel.run("std::env::current_dir()?").shown()))
    assert os.path.basename(here.strip('"')).startswith("notebook")


def children_of(pid):
    path = f"/proc/{pid}/task/{pid}/children"
    # The process's children may have been started by any of its threads.
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(path.replace(f"task/{pid}", f"task/{task}")) as children:
            found += [int(child) for child in children.read().split()]
    return found


def ended(pid, seconds=10):
    """Whether the process ends (or is a zombie) within some seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rsplit(")", 1)[1].split()[0] in "ZX":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.1)
    return False
