"""Breakpoints in Rust cells, by LLVM's debug adapter, which is attached to the process of the cells: where it stops, what it
reads, how it steps, and that nothing hangs when a cell, the adapter or the client ends."""

import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from jupyter_client import BlockingKernelClient

import test_debugger
from conftest import STRATOSCOPE
from kernel_client import Kernel, Message, check_card

PTRACE_ATTACH = 16
# Bounds each wait, in seconds: longer than what the kernel waits for LLDB, on a machine that is busy with other tests.
WAIT = 240


def adapter():
    """The name of LLVM's debug adapter in PATH."""
    names = (name for folder in os.environ["PATH"].split(os.pathsep) if pathlib.Path(folder).is_dir() for name in os.listdir(folder))
    return next((name for name in names if name == "lldb-dap" or name.startswith("lldb-dap-")), None)


def may_trace():
    """Whether this machine lets a process trace its child."""
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            return ctypes.CDLL(None).ptrace(PTRACE_ATTACH, child.pid, None, None) == 0
        finally:
            child.kill()


pytestmark = [
    pytest.mark.own_kernel,
    pytest.mark.skipif(adapter() is None, reason="LLDB is not installed (Debian: apt install lldb-19 python3-lldb-19)"),
]
traces = pytest.mark.skipif(not may_trace(), reason="processes may not be traced here (in a container: --cap-add=SYS_PTRACE)")

LOOP = """fn double(x: i32) -> i32 {
    let twice = x * 2;
    i32::max(twice, 0)
}
let mut total = 0;
for index in 0..6 {
    let next = double(index);
    total += next;
}
let name = String::from("total");
let list = vec![total, 7];
println!("{name}: {total} {}", list.len());"""


def ask(kernel, command, **arguments):
    return test_debugger.ask(kernel, command, timeout=WAIT, **arguments)


def body(kernel, command, **arguments):
    """The body of a reply that says success."""
    reply = ask(kernel, command, **arguments)
    assert reply["success"], reply
    return reply["body"]


def event(kernel, name):
    return test_debugger.event(kernel, name, timeout=WAIT)


def until(holds, message):
    """Waits until a condition holds."""
    deadline = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < deadline, message
        time.sleep(0.1)


def attach(kernel, **arguments):
    body(kernel, "initialize", clientID="test")
    body(kernel, "attach", **arguments)
    body(kernel, "configurationDone")


@pytest.fixture(scope="module")
def turned_on(kernel):
    """A kernel whose debugger is on."""
    attach(kernel)
    yield kernel
    body(kernel, "disconnect")


@pytest.fixture
def debugged(turned_on, request):
    """A kernel whose debugger is on. The breakpoints of a test are gone behind it, and no cell is stopped."""
    turned_on.debug_events.clear()
    failed = request.session.testsfailed
    yield turned_on
    for each in body(turned_on, "debugInfo")["breakpoints"]:
        body(turned_on, "setBreakpoints", source={"path": each["source"]}, breakpoints=[])
    body(turned_on, "setExceptionBreakpoints", filters=[])
    while body(turned_on, "debugInfo")["stoppedThreads"]:
        ask(turned_on, "continue", threadId=1)
    if request.session.testsfailed > failed:
        # Its cell may run for long.
        turned_on.manager.interrupt_kernel()


def set_breakpoints(kernel, code, *breakpoints):
    """Sets breakpoints in a cell, each a line or what `setBreakpoints` takes; returns the path of the cell."""
    path = body(kernel, "dumpCell", code=code)["sourcePath"]
    wanted = [each if isinstance(each, dict) else {"line": each} for each in breakpoints]
    set_ = body(kernel, "setBreakpoints", source={"path": path}, breakpoints=wanted)["breakpoints"]
    assert all(each["verified"] for each in set_), set_
    return path


def stack(kernel):
    """The frames, as name, path and line."""
    frames = body(kernel, "stackTrace", threadId=1)["stackFrames"]
    return [(each["name"], each.get("source", {}).get("path"), each["line"]) for each in frames]


def here(kernel):
    """The line of the top frame."""
    return stack(kernel)[0][2]


def local(kernel, frame=0):
    """The values in the scopes of a frame, by name."""
    number = body(kernel, "stackTrace", threadId=1)["stackFrames"][frame]["id"]
    found = {}
    for scope in reversed(body(kernel, "scopes", frameId=number)["scopes"][:-1]):
        of_scope = body(kernel, "variables", variablesReference=scope["variablesReference"])["variables"]
        found.update({each["name"]: each for each in of_scope})
    return found


def evaluate(kernel, expression):
    return body(kernel, "evaluate", expression=expression, context="watch")["result"]


def goes_on(kernel, request):
    body(kernel, "continue", threadId=1)
    return kernel.collect(request)


@traces
def test_a_breakpoint_that_is_set_before_the_cell_has_run_stops_it(debugged):
    path = set_breakpoints(debugged, LOOP, 8)
    request = debugged.request(LOOP)
    stopped = event(debugged, "stopped")
    assert (stopped["reason"], stopped["threadId"]) == ("breakpoint", 1)
    assert body(debugged, "debugInfo")["stoppedThreads"] == [1]
    (frame,) = stack(debugged)
    assert frame[0].startswith("cell [") and frame[1:] == (path, 8)
    found = local(debugged)
    assert (found["index"]["value"], found["next"]["value"], found["index"]["type"]) == ("0", "0", "i32")
    assert evaluate(debugged, "total + next + 3") == "3"
    for refused in ("double(3)", "total = 4"):
        reply = ask(debugged, "evaluate", expression=refused, context="watch")
        assert not reply["success"] and "LLDB reads" in reply["message"]
    # The list of variables is answered, although the process that has them is stopped.
    assert isinstance(body(debugged, "inspectVariables")["variables"], list)
    body(debugged, "continue", threadId=1)
    assert event(debugged, "continued")["threadId"] == 1
    event(debugged, "stopped")
    assert local(debugged)["index"]["value"] == "1", "it stops once in each round"
    body(debugged, "setBreakpoints", source={"path": path}, breakpoints=[])
    cell = goes_on(debugged, request).ok()
    assert cell.stream() == "total: 30 2\n"
    assert body(debugged, "debugInfo")["stoppedThreads"] == []


@traces
def test_conditions_hit_counts_and_log_points(debugged):
    set_breakpoints(debugged, LOOP, {"line": 8, "condition": "index == 3 && next > 1"})
    request = debugged.request(LOOP)
    event(debugged, "stopped")
    assert local(debugged)["index"]["value"] == "3"
    goes_on(debugged, request).ok()
    set_breakpoints(debugged, LOOP, {"line": 8, "hitCondition": "% 4"}, {"line": 7, "logMessage": "round {index}, {{total}}"})
    request = debugged.request(LOOP)
    event(debugged, "stopped")
    assert local(debugged)["index"]["value"] == "3"
    cell = goes_on(debugged, request).ok()
    assert "round 5, {total}\n" in cell.stream() and cell.stream().endswith("total: 30 2\n")
    wrong = body(debugged, "setBreakpoints", source={"path": "x"}, breakpoints=[{"line": 1, "hitCondition": "often"}])
    assert not wrong["breakpoints"][0]["verified"] and ">= 3" in wrong["breakpoints"][0]["message"]


@traces
def test_steps_over_into_and_out_of_a_function(debugged):
    path = set_breakpoints(debugged, LOOP, {"line": 7, "hitCondition": "2"})
    request = debugged.request(LOOP)
    event(debugged, "stopped")
    body(debugged, "stepIn", threadId=1)
    assert event(debugged, "stopped")["reason"] == "step"
    function, cell = stack(debugged)
    assert function[:2] == ("double", path) and function[2] in (1, 2) and cell[2] == 7
    while here(debugged) < 3:
        body(debugged, "next", threadId=1)
        event(debugged, "stopped")
    assert local(debugged)["twice"]["value"] == "2" and local(debugged, 1)["index"]["value"] == "1"
    body(debugged, "stepOut", threadId=1)
    event(debugged, "stopped")
    assert here(debugged) in (7, 8) and len(stack(debugged)) == 1
    goes_on(debugged, request).ok()


@traces
def test_steps_go_from_statement_to_statement(debugged):
    set_breakpoints(debugged, LOOP, 5)
    request = debugged.request(LOOP)
    event(debugged, "stopped")
    seen = [here(debugged)]
    while seen[-1] < 12:
        body(debugged, "next", threadId=1)
        event(debugged, "stopped")
        seen.append(here(debugged))
    assert seen[0] == 5 and {6, 7, 8, 10, 11, 12} <= set(seen), seen
    found = local(debugged)
    assert found["name"]["value"] == '"total"' and found["list"]["type"].startswith("Vec<i32"), found
    # The last step ends the cell.
    body(debugged, "next", threadId=1)
    assert debugged.collect(request).ok().stream() == "total: 30 2\n"


@traces
def test_a_function_of_an_earlier_cell_stops(debugged):
    definition = "fn half(x: u64) -> u64 {\n    // A comment.\n\n    let half = x / 2;\n    half\n}"
    debugged.run(definition)
    path = set_breakpoints(debugged, definition, 4)
    call = "let halves: Vec<u64> = [4, 6]\n    .iter()\n    .map(|it| half(*it))\n    .collect();\nprintln!(\"{halves:?}\");"
    request = debugged.request(call)
    event(debugged, "stopped")
    frames = stack(debugged)
    assert frames[0] == ("half", path, 4), frames
    assert frames[1][0].startswith("closure in cell [") and frames[1][2] == 3
    assert frames[-1][0].startswith("cell [") and frames[-1][2] in (1, 2, 3, 4)
    assert local(debugged)["x"]["value"] == "4"
    body(debugged, "setBreakpoints", source={"path": path}, breakpoints=[])
    assert goes_on(debugged, request).ok().stream() == "[2, 3]\n"


@traces
def test_a_panic_and_a_failing_question_mark_stop(debugged):
    body(debugged, "setExceptionBreakpoints", filters=["panic", "error"])
    panics = "let numbers: Vec<i32> = Vec::new();\nlet at = 3;\nnumbers[at]"
    request = debugged.request(panics)
    stopped = event(debugged, "stopped")
    assert (stopped["reason"], stopped["text"]) == ("exception", "a panic")
    assert here(debugged) == 3 and local(debugged)["at"]["value"] == "3"
    assert goes_on(debugged, request).reply["status"] == "error"
    fails = "let text = \"seven\";\nlet number: i32 = text.parse()?;"
    request = debugged.request(fails)
    stopped = event(debugged, "stopped")
    assert stopped["reason"] == "exception" and "`?`" in stopped["text"] and here(debugged) == 2
    cell = goes_on(debugged, request)
    assert cell.reply["status"] == "error" and "invalid digit" in cell.reply["evalue"]
    body(debugged, "setExceptionBreakpoints", filters=[])
    assert debugged.execute(panics).reply["status"] == "error"


# Ten minutes; after an interrupt nothing sleeps, and the statement behind the loop ends the cell.
LONG = """let mut round = 0u64;
while round < 30_000 {
    round += 1;
    std::hint::black_box(&round);
    stratoscope::cell::sleep(0.02);
}
let behind = round;"""


def pauses(kernel):
    """Pauses the running cell; until the cell is compiled, the reply refuses."""
    until(lambda: ask(kernel, "pause", threadId=1)["success"], "the cell is not compiled")
    assert event(kernel, "stopped")["reason"] == "pause"


@traces
def test_a_long_loop_pauses_and_takes_breakpoints_while_it_runs(debugged):
    # Cells have lines and local variables while there is a breakpoint anywhere.
    set_breakpoints(debugged, LONG, 7)
    request = debugged.request(LONG)
    pauses(debugged)
    assert here(debugged) in (2, 3, 4, 5) and stack(debugged)[-1][0].startswith("cell [")
    first = int(local(debugged)["round"]["value"])
    body(debugged, "continue", threadId=1)
    path = set_breakpoints(debugged, LONG, 4)
    assert event(debugged, "stopped")["reason"] == "breakpoint"
    assert here(debugged) == 4 and int(local(debugged)["round"]["value"]) > first
    body(debugged, "setBreakpoints", source={"path": path}, breakpoints=[])
    body(debugged, "continue", threadId=1)
    pauses(debugged)
    debugged.manager.interrupt_kernel()
    assert debugged.collect(request, timeout=WAIT).reply["ename"] == "Interrupted"


@traces
def test_an_interrupt_at_a_breakpoint_keeps_the_variables(debugged):
    debugged.run("let kept = 5;")
    set_breakpoints(debugged, LONG, 3)
    request = debugged.request(LONG)
    event(debugged, "stopped")
    debugged.manager.interrupt_kernel()
    cell = debugged.collect(request, timeout=WAIT)
    assert cell.reply["ename"] == "Interrupted"
    assert debugged.run("kept").shown().strip() == "5"
    # Breakpoints stop the next cell.
    set_breakpoints(debugged, LOOP, 10)
    request = debugged.request(LOOP)
    event(debugged, "stopped")
    goes_on(debugged, request).ok()


BIG = """use std::collections::HashMap;
fn look() -> usize {
    let numbers = vec![0.5_f32; 3_000_000];
    let map: HashMap<u64, String> = (0..300_000).map(|it| (it, it.to_string())).collect();
    let text = "x".repeat(3_000_000);
    numbers.len() + map.len() + text.len()
}
look()"""


@traces
def test_large_values_are_read_in_part(debugged):
    set_breakpoints(debugged, BIG, 6)
    request = debugged.request(BIG)
    event(debugged, "stopped")
    found = local(debugged)
    assert found["numbers"]["value"] == "size=3000000" and found["map"]["value"] == "size=300000", found
    assert len(found["text"]["value"]) < 3000
    for name in ("numbers", "map"):
        children = body(debugged, "variables", variablesReference=found[name]["variablesReference"])["variables"]
        assert 100 <= len(children) <= 201
    assert goes_on(debugged, request).shown().strip() == "6300000"


@traces
def test_libraries_are_shown_on_request(debugged):
    body(debugged, "attach", justMyCode=False)
    set_breakpoints(debugged, LOOP, 2)
    request = debugged.request(LOOP)
    event(debugged, "stopped")
    names = [name for name, _, _ in stack(debugged)]
    assert names[0] == "double" and len(names) > 5 and any("stratoscope" in name for name in names), names
    body(debugged, "attach")
    assert len(stack(debugged)) == 2
    body(debugged, "setBreakpoints", source={"path": stack(debugged)[0][1]}, breakpoints=[])
    goes_on(debugged, request).ok()


@traces
def test_a_second_client_sees_and_moves_the_same_stop(debugged):
    set_breakpoints(debugged, LOOP, 10)
    request = debugged.request(LOOP)
    event(debugged, "stopped")
    other = BlockingKernelClient(connection_file=debugged.manager.connection_file)
    other.load_connection_file()
    other.start_channels(shell=False, iopub=False, stdin=False, hb=False)
    try:
        for command in ("stackTrace", "continue"):
            content = {"seq": 1, "type": "request", "command": command, "arguments": {"threadId": 1}}
            other.control_channel.send(other.session.msg("debug_request", content))
            assert other.get_control_msg(timeout=WAIT)["content"]["success"]
    finally:
        other.stop_channels()
    debugged.collect(request).ok()


@traces
def test_requests_that_come_too_late_get_a_reason(debugged):
    set_breakpoints(debugged, LOOP, 10)
    request = debugged.request(LOOP)
    event(debugged, "stopped")
    frame = body(debugged, "stackTrace", threadId=1)["stackFrames"][0]["id"]
    (scope, *_) = body(debugged, "scopes", frameId=frame)["scopes"]
    for late in (False, True):
        for command, arguments in (
            ("variables", {"variablesReference": scope["variablesReference"] + 10_000}),
            ("scopes", {"frameId": frame + 10_000}),
            ("evaluate", {"expression": "x" * 10_000, "frameId": frame + 10_000}),
            ("next", {"threadId": 77}), ("continue", {"threadId": 1}) if late else ("stepBack", {"threadId": 1}),
        ):
            reply = ask(debugged, command, **arguments)
            assert reply["type"] == "response" and (command == "scopes" or not reply["success"]), reply
        if not late:
            goes_on(debugged, request).ok()


def adapters(kernel):
    """The debug adapters of a kernel, as process numbers."""
    found = subprocess.run(["pgrep", "-P", str(kernel.pid), "-f", "lldb-dap"], capture_output=True, text=True).stdout
    return [int(each) for each in found.split()]


def process_of_cells(kernel):
    """The process that runs the cells."""
    found = subprocess.run(["pgrep", "-P", str(kernel.pid), "-f", "stratoscope cells"], capture_output=True, text=True).stdout
    return int(found.split()[0])


def newest_library(kernel):
    """The library of the cell that was loaded last."""
    maps = pathlib.Path(f"/proc/{process_of_cells(kernel)}/maps").read_text()
    found = set(re.findall(r"(/\S+/libcode_(\d+)\.so)", maps))
    return pathlib.Path(max(found, key=lambda it: int(it[1]))[0])


@traces
def test_cells_have_debug_information_only_while_something_may_stop_them(debugged):
    code = "let seven = 7;"

    def has_debug_information():
        debugged.run(code)
        return b".debug_info" in newest_library(debugged).read_bytes()

    assert not has_debug_information(), "the debugger alone costs nothing"
    path = set_breakpoints(debugged, LOOP, 1)
    assert has_debug_information(), "the breakpoint may be in a function of this cell"
    body(debugged, "setBreakpoints", source={"path": path}, breakpoints=[])
    assert not has_debug_information()
    body(debugged, "setExceptionBreakpoints", filters=["panic"])
    assert has_debug_information()


def displays(kernel):
    """What is displayed until the next stop."""
    found = []
    while True:
        message = kernel.client.get_iopub_msg(timeout=WAIT)
        if message["msg_type"] == "display_data":
            found.append(Message(message["msg_type"], message["content"], message["metadata"]))
        if message["msg_type"] == "debug_event" and message["content"]["event"] == "stopped":
            return found


@traces
def test_a_condition_that_lldb_cannot_evaluate_stops_with_a_card(debugged):
    condition = "double(index) > 3"
    set_breakpoints(debugged, LOOP, {"line": 8, "condition": condition})
    request = debugged.request(LOOP)
    shown = displays(debugged)
    set_breakpoints(debugged, LOOP)
    cell = goes_on(debugged, request).ok()
    cell.messages[:0] = shown
    check_card(cell, "SC1032", condition, "line 8", "calls and assignments are not evaluated")
    debugged.run("%warnings silence SC1032")
    set_breakpoints(debugged, LOOP, {"line": 8, "condition": condition})
    request = debugged.request(LOOP)
    assert not displays(debugged)
    set_breakpoints(debugged, LOOP)
    assert not goes_on(debugged, request).ok().diagnostics
    debugged.run("%warnings default SC1032")


@traces
def test_an_adapter_that_dies_loses_nothing(debugged):
    debugged.run("let kept = 5;")
    set_breakpoints(debugged, LOOP, 10)
    request = debugged.request(LOOP)
    event(debugged, "stopped")
    (process,) = adapters(debugged)
    os.kill(process, signal.SIGKILL)
    cell = debugged.collect(request, timeout=WAIT).ok()
    assert cell.stream().endswith("total: 30 2\n")
    check_card(cell, "SC1031", "lldb-dap", "its process has ended", "run the cell again")
    assert debugged.run("kept").shown().strip() == "5"
    # The next cell is debugged again.
    request = debugged.request(LOOP)
    event(debugged, "stopped")
    goes_on(debugged, request).ok()


@traces
def test_a_crash_while_stopped_is_reported(debugged):
    code = "let x = 1;\nstd::process::abort();"
    set_breakpoints(debugged, code, 2)
    request = debugged.request(code)
    event(debugged, "stopped")
    body(debugged, "continue", threadId=1)
    # The signal stops it once more.
    stopped = event(debugged, "stopped")
    assert stopped["reason"] == "exception" and "SIGABRT" in stopped["text"]
    assert goes_on(debugged, request).reply["status"] == "error"
    # A process that is killed while it is stopped.
    set_breakpoints(debugged, LOOP, 10)
    request = debugged.request(LOOP)
    event(debugged, "stopped")
    os.kill(process_of_cells(debugged), signal.SIGKILL)
    assert debugged.collect(request, timeout=WAIT).reply["status"] == "error"
    request = debugged.request(LOOP)
    event(debugged, "stopped")
    goes_on(debugged, request).ok()


@traces
def test_turning_the_debugger_off_lets_a_stopped_cell_go_on(debugged):
    set_breakpoints(debugged, LOOP, 10)
    request = debugged.request(LOOP)
    event(debugged, "stopped")
    body(debugged, "disconnect")
    assert debugged.collect(request).ok().stream() == "total: 30 2\n"
    attach(debugged)
    until(lambda: len(adapters(debugged)) <= 1, "the adapter ends with the debugger")


@traces
def test_a_kernel_that_is_restarted_while_stopped_leaves_no_process(tmp_path):
    with Kernel(cwd=tmp_path) as kernel:
        attach(kernel)
        set_breakpoints(kernel, LOOP, 10)
        kernel.request(LOOP)
        event(kernel, "stopped")
        (process,) = adapters(kernel)
        kernel.manager.restart_kernel(now=False)
        until(lambda: not pathlib.Path(f"/proc/{process}").exists(), "the adapter ends with its kernel")


def test_without_lldb_a_card_says_how_to_get_it(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("cc", "ld", "rustc", "cargo", "rustup", "jupyter"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    with Kernel(cwd=tmp_path, env={**os.environ, "PATH": str(folder)}) as kernel:
        attach(kernel)
        # Nobody misses breakpoints where there are none.
        assert not kernel.run("1").diagnostics
        path = body(kernel, "dumpCell", code=LOOP)["sourcePath"]
        (set_,) = body(kernel, "setBreakpoints", source={"path": path}, breakpoints=[{"line": 10}])["breakpoints"]
        assert not set_["verified"] and "apt install lldb" in set_["message"] and "break_when" in set_["message"]
        cell = kernel.run(LOOP)
        assert cell.stream() == "total: 30 2\n"
        check_card(cell, "SC1030", "LLDB was not found", "apt install lldb-19", "STRATOSCOPE_LLDB_DAP", "break_when")
        # Where the cell has none it is shown once, if the filters would stop it.
        assert not kernel.run("1").diagnostics
        body(kernel, "setExceptionBreakpoints", filters=["panic"])
        check_card(kernel.run("1"), "SC1030")
        assert not kernel.run("1").diagnostics
        assert kernel.run(LOOP).diagnostics


def doctor(**environment):
    """What `stratoscope doctor` reports of the debugger."""
    command = [STRATOSCOPE, "doctor"]
    run = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=WAIT)
    (line,) = (line for line in run.stdout.splitlines() if " debugger: " in line)
    return line


def test_the_doctor_names_the_adapter_or_says_how_to_get_it(tmp_path):
    assert doctor().startswith("ok ") and adapter() in doctor()
    missing = doctor(PATH=str(tmp_path))
    assert missing.startswith("optional ") and "apt install lldb-19" in missing
    named = doctor(STRATOSCOPE_LLDB_DAP=str(tmp_path / "none"))
    assert named.startswith("optional ") and "none`, which is no file" in named
    # An LLDB without its Python module.
    for name, script in (("lldb-dap", ""), ("lldb", f"echo {tmp_path}\n")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}")
        (tmp_path / name).chmod(0o755)
    plain = doctor(STRATOSCOPE_LLDB_DAP=str(tmp_path / "lldb-dap"))
    assert plain.startswith("optional ") and "python3-lldb-19" in plain


REFUSES = """import json, sys
while True:
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        length = int(line.split(b":")[1])
    if not length:
        break
    request = json.loads(sys.stdin.buffer.read(length))
    reply = {"type": "response", "seq": 0, "request_seq": request["seq"], "command": request["command"], "success": True}
    if request["command"] == "attach":
        reply.update(success=False, message="attach failed: Operation not permitted")
    text = json.dumps(reply)
    print(f"Content-Length: {len(text)}\\r\\n\\r\\n{text}", end="", flush=True)
"""


def test_where_processes_may_not_be_traced_cells_run_and_a_card_says_why(tmp_path):
    program = tmp_path / "adapter"
    program.write_text(f"#!{sys.executable}\n{REFUSES}")
    program.chmod(0o755)
    with Kernel(cwd=tmp_path, env={**os.environ, "STRATOSCOPE_LLDB_DAP": str(program)}) as kernel:
        attach(kernel)
        set_breakpoints(kernel, LOOP, 10)
        cell = kernel.run(LOOP)
        assert cell.stream() == "total: 30 2\n"
        check_card(cell, "SC1030", "Operation not permitted", "SYS_PTRACE")
        check_card(kernel.run(LOOP), "SC1030")
        assert not kernel.run("1").diagnostics
