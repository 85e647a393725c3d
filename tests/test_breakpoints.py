"""Breakpoints in Rust cells, by LLVM's debug adapter, which is attached to the process of the cells."""

import os
import pathlib
import time

import pytest

from kernel_client import Kernel
from test_debugger import ask, body, event, variables


def adapter():
    """A reason why there are no breakpoints here; None: there are."""
    names = (name for folder in os.environ["PATH"].split(os.pathsep) if pathlib.Path(folder).is_dir() for name in os.listdir(folder))
    return next((name for name in names if name == "lldb-dap" or name.startswith("lldb-dap-")), None)


pytestmark = [
    pytest.mark.own_kernel,
    pytest.mark.skipif(adapter() is None, reason="LLDB is not installed (Debian: apt install lldb-19 python3-lldb-19)"),
]

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


def attach(kernel, **arguments):
    body(kernel, "initialize", clientID="test")
    body(kernel, "attach", **arguments)
    body(kernel, "configurationDone")


@pytest.fixture
def debugged(tmp_path):
    """A kernel whose debugger is on."""
    with Kernel(cwd=tmp_path) as kernel:
        attach(kernel)
        yield kernel


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
    refused = ask(debugged, "evaluate", expression="double(3).unwrap()", context="watch")
    assert not refused["success"] and "LLDB reads" in refused["message"]
    # The list of variables is answered at once, although the process that has them is stopped.
    begun = time.monotonic()
    variables(debugged)
    assert time.monotonic() - begun < 2
    body(debugged, "continue", threadId=1)
    assert event(debugged, "continued")["threadId"] == 1
    event(debugged, "stopped")
    assert local(debugged)["index"]["value"] == "1", "it stops once in each round"
    body(debugged, "setBreakpoints", source={"path": path}, breakpoints=[])
    cell = goes_on(debugged, request).ok()
    assert cell.stream() == "total: 30 2\n"
    assert body(debugged, "debugInfo")["stoppedThreads"] == []


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
