"""The history of cells across sessions: the file, `history_request` and `%history`."""

import json
import os
import stat
import time

import pytest

from kernel_client import Kernel

HEADER = '{"stratoscope_history":1}'


@pytest.fixture
def file(tmp_path):
    return tmp_path / "data" / "history.jsonl"


def start(tmp_path, place):
    return Kernel(cwd=tmp_path, env=os.environ | {"STRATOSCOPE_HISTORY": str(place)})


def ask(kernel, kind, **options):
    """`(session, number, text)` of each cell in the reply."""
    options = {"raw": True, "output": False} | options
    reply = kernel.client.history(hist_access_type=kind, reply=True, timeout=30, **options)["content"]
    assert reply["status"] == "ok"
    return [tuple(entry) for entry in reply["history"]]


def kept(file):
    """The texts of the cells in the file."""
    lines = file.read_text().splitlines()
    assert lines[0] == HEADER
    return [json.loads(line)["input"] for line in lines[1:]]


def wait_for(file, text, seconds=10):
    """A cell is written after its reply."""
    deadline = time.monotonic() + seconds
    while not (file.exists() and text in kept(file)):
        assert time.monotonic() < deadline, file
        time.sleep(0.02)


def test_a_kernel_finds_the_cells_of_the_one_before(tmp_path, file):
    with start(tmp_path, file) as first:
        first.run("let loss = 3;")
        first.run("!echo ä\n!echo b")
        first.run(" !echo private")
        first.run("%env MY_TOKEN=abc")
        # This session has all of them.
        assert [number for _, number, _ in ask(first, "tail", n=9)] == [1, 2, 3, 4]
    assert kept(file) == ["let loss = 3;", "!echo ä\n!echo b"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    with start(tmp_path, file) as second:
        second.run("!echo two")
        both = [(1, 1, "let loss = 3;"), (1, 2, "!echo ä\n!echo b"), (2, 1, "!echo two")]
        assert ask(second, "tail", n=9) == both
        assert ask(second, "tail", n=2) == both[1:]
        assert ask(second, "search", pattern="!echo*") == both[1:]
        assert ask(second, "search", pattern="*o*", n=1) == both[2:]
        assert ask(second, "range", session=0, start=1) == [(0, 1, "!echo two")]
        assert ask(second, "range", session=-1, start=1, stop=2) == both[:1]
        assert ask(second, "range", session=1, start=2) == both[1:2]
        assert ask(second, "range", session=9, start=1) == []
        second.run("!echo two")
        assert ask(second, "search", pattern="!echo t*", unique=True) == [(2, 2, "!echo two")]

        shown = second.run("%history loss")
        assert shown.shown() == f"1/1  let loss = 3;\n1 cell with `loss`; kept in {file}"
        assert "<pre style=\"margin:0\">let loss = 3;</pre>" in shown.shown("text/html")
        assert second.run("%history -n 1 echo").shown().startswith("2/2  !echo two\nthe last 1 of 3 cells")
        assert second.run("%history nothing of this").shown().startswith("no cell with `nothing of this`")
        wrong = second.execute("%history -x")
        assert wrong.reply["ename"] == "UnknownOption" and "%history -n 50" in wrong.reply["evalue"]


def test_kernels_that_run_at_once_share_the_file(tmp_path, file):
    with start(tmp_path, file) as one, start(tmp_path, file) as two:
        for number in range(1, 6):
            requests = [(kernel, kernel.request(f"!echo {name} {number}")) for name, kernel in (("one", one), ("two", two))]
            for kernel, request in requests:
                kernel.collect(request).ok()
        wait_for(file, "!echo two 5")
        wait_for(file, "!echo one 5")
        assert {session for session, _, _ in ask(one, "tail", n=99)} == {1, 2}
        assert "two 5" in one.run("%history 'two 5'".replace("'", "")).shown()
    texts = kept(file)
    assert sorted(text for text in texts if "echo" in text) == sorted(
        f"!echo {name} {number}" for name in ("one", "two") for number in range(1, 6))


def test_a_damaged_file_is_set_aside(tmp_path, file):
    file.parent.mkdir()
    good = json.dumps({"session": 4, "line": 2, "input": "let a = 1;"})
    damaged = f"{HEADER}\nnot json\n{good}\n"
    file.write_text(damaged)
    with start(tmp_path, file) as kernel:
        shown = kernel.run("%history").shown()
        assert "4/2  let a = 1;" in shown
        assert "was damaged" in shown and "history.damaged" in shown
        wait_for(file, "%history")
    assert kept(file) == ["let a = 1;", "%history"]
    assert file.with_suffix(".damaged").read_text() == damaged


def test_it_is_turned_off_on_and_cleared(tmp_path, file):
    with start(tmp_path, file) as kernel:
        kernel.run("!echo before")
        assert "not kept" in kernel.run("%history off").shown()
        kernel.run("!echo hidden")
        assert kernel.run("%history").shown().endswith("cells are not kept for later sessions")
        kernel.run("%history on")
        kernel.run("!echo after")
        wait_for(file, "!echo after")
        assert kept(file) == ["!echo before", "%history on", "!echo after"]
        kernel.run("%history clear")
        assert not file.exists()
        assert ask(kernel, "tail", n=9) == []
        kernel.run("!echo new")
        wait_for(file, "!echo new")
        assert kept(file) == ["!echo new"]


def test_no_file_is_made_where_it_is_off(tmp_path):
    with start(tmp_path, "off") as kernel:
        kernel.run("!echo a")
        assert ask(kernel, "tail", n=9) == [(0, 1, "!echo a")]
        assert kernel.run("%history").shown() == "1  !echo a\n1 cell; cells are not kept for later sessions"
        refused = kernel.execute("%history on")
        assert refused.reply["ename"] == "HistoryError" and "STRATOSCOPE_HISTORY" in refused.reply["evalue"]
    assert not list(tmp_path.rglob("history.*"))


def test_a_folder_that_cannot_be_used_hinders_no_cell(tmp_path):
    (tmp_path / "a file").write_text("")
    with start(tmp_path, tmp_path / "a file" / "history.jsonl") as kernel:
        kernel.run("!echo a")
        shown = kernel.run("%history").shown()
        assert shown.startswith("1  !echo a\n") and "STRATOSCOPE_HISTORY=off" in shown


def test_a_link_is_not_followed_and_the_answer_says_so(tmp_path):
    (tmp_path / "real.jsonl").write_text("")
    (tmp_path / "history.jsonl").symlink_to(tmp_path / "real.jsonl")
    with start(tmp_path, tmp_path / "history.jsonl") as kernel:
        kernel.run("!echo a")
        shown = " ".join(kernel.run("%history").shown().split())
        assert f"it is a symbolic link to {tmp_path / 'real.jsonl'}, and links are not followed" in shown, shown
        assert "os error" not in shown
    assert (tmp_path / "real.jsonl").read_text() == ""
