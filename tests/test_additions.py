"""One of each kind that users add, in a copy of the sources (`tests/additions.py`)."""

import subprocess
import sys
import tomllib

import pytest

import additions
from conftest import ROOT


def test_one_of_each_is_added_in_few_places():
    """What a contributor would add compiles, and its tests and those of its crate pass."""
    ran = subprocess.run([sys.executable, ROOT / "tests" / "additions.py"], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = [line for line in ran.stdout.splitlines() if line.startswith("| ")][2:]
    assert [row.split(" | ")[0] for row in rows] == [f"| {kind}" for kind in additions.KINDS]


def test_lines_are_added_behind_their_place(tmp_path):
    """The text of a changed file, with insertions of two additions in it."""
    folder = tmp_path / additions.FOLDER
    (tmp_path / "list.rs").write_text("// list\nfirst\nlast\n")
    added = []
    for kind, after, line in (("loss", "// list", "zeroth"), ("metric", "last", "behind\nit")):
        (folder / kind).mkdir(parents=True)
        (folder / kind / "new.rs").write_text(f"// {kind}\n")
        added.append(additions.Addition(
            kind=kind, what="", source="", package="", tests="", files={"new.rs": f"{kind}.rs"}, cells=[], like="",
            lines=[additions.Insertion("list.rs", after, line)]))
    texts = additions.changed_files(tmp_path, added)
    assert texts == {"loss.rs": "// loss\n", "metric.rs": "// metric\n", "list.rs": "// list\nzeroth\nfirst\nlast\nbehind\nit\n"}
    assert [addition.places() for addition in added] == [{"list.rs": 1}, {"list.rs": 2}]


def test_our_crates_have_other_paths_in_the_copy():
    """In `src/`, cargo would take the crates of the copy for those of the checkout."""
    manifest = tomllib.loads(additions.manifest_of_copy((ROOT / "Cargo.toml").read_text()))
    assert manifest["workspace"]["members"] == ["crates/*"]
    paths = [value["path"] for value in manifest["workspace"]["dependencies"].values() if isinstance(value, dict) and "path" in value]
    assert paths and all(path.startswith("crates/") for path in paths)
    assert [value["path"] for value in manifest["patch"]["crates-io"].values()] == [additions.STAND_IN]


@pytest.mark.parametrize("have_passed, passing, is_formatted, failure", [
    (True, additions.KINDS, True, None),
    (False, additions.KINDS, True, "a test has failed"),
    (True, additions.KINDS[1:], True, "a test has failed"),
    (True, additions.KINDS, False, "not formatted"),
], ids=["all-passed", "a-test-failed", "no-test-ran", "not-formatted"])
def test_a_failure_is_reported(monkeypatch, capsys, have_passed, passing, is_formatted, failure):
    """The table is printed, and the program ends with a failure unless all is well; without a build."""
    passed = {}
    for addition in additions.all_of(ROOT):
        names = [f"{addition.tests}one"] if addition.kind in passing else []
        passed.setdefault(addition.package, []).extend(names)
    monkeypatch.setattr(additions, "copy", lambda *_: None)
    monkeypatch.setattr(additions, "unformatted", lambda *_: not is_formatted)
    monkeypatch.setattr(additions, "run", lambda *_: (have_passed, passed))
    if failure:
        with pytest.raises(SystemExit, match=failure):
            additions.main([])
    else:
        additions.main([])
    shown = capsys.readouterr().out
    assert shown.count("| 1 passed |") == len(passing)
    assert shown.count("| none passed |") == len(additions.KINDS) - len(passing)
