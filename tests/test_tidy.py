"""`tests/tidy.py` finds a violation of each kind. One at a time is planted in a copy of the files."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

import pytest

import tidy
from conftest import ROOT

# What no check reads.
NOT_COPIED = shutil.ignore_patterns("target", "node_modules", "__pycache__", ".pytest_cache", "*.safetensors", "*.parquet", "*.arrow")
OS, OS_MANIFEST, DATA = "src/os/src/lib.rs", "src/os/Cargo.toml", "docs/data.md"
ARCHITECTURE, DEPENDENCIES = "docs/ARCHITECTURE.md", "docs/dependencies.md"
LOSS = "tests/additions/loss/addition.toml"
# Where a dependency is planted in a manifest, and code before unit tests; the end of any file.
LISTED, USES, END = r"(?<=^\[dependencies\]\n)", "^(?=use )", r"\Z"


@dataclass
class Plant:
    """A change of a file that `check` has to find: what `old` matches first is replaced by `new`.

    The finding is at the first line of the new text unless `at` names another place, and has `text` in it.
    """

    check: str
    path: str
    old: str
    new: str
    text: str
    at: str = ""

    def __str__(self):
        return f"{self.check}-{re.sub(r'[^a-z]+', '-', self.text)[:24]}"


def notebook(kernel="stratoscope", source=""):
    cell = {"cell_type": "code", "source": [source], "outputs": [], "execution_count": None, "metadata": {}}
    return json.dumps({"cells": [cell], "metadata": {"kernelspec": {"name": kernel}}}, indent=1)


PLANTS = [
    # Through our crates, through the crate that unites features, and through a third-party crate.
    Plant("kernel-without-burn", OS_MANIFEST, LISTED, "stratoscope-strategy.workspace = true\n",
          "`stratoscope-kernel` links stratoscope-os → stratoscope-strategy"),
    Plant("kernel-without-burn", "src/features/Cargo.toml", LISTED, 'burn-2 = { version = "0.22", package = "burn" }\n',
          "stratoscope-features → burn", at="src/features/Cargo.toml:1"),
    Plant("kernel-without-burn", "Cargo.lock", r'(?<=^name = "evcxr"\n)((.+\n)*?)(?<=^dependencies = \[\n)', r'\1 "burn",\n',
          "evcxr → burn", at="src/evaluator/Cargo.toml"),
    Plant("kernel-without-burn", "src/kernel/Cargo.toml", r"^stratoscope-evaluator.*\n", "", "reads something else", at="Cargo.lock:1"),
    Plant("facade-without-jupyter", "src/render/Cargo.toml", LISTED, "zeromq.workspace = true\n",
          "`stratoscope` links stratoscope-render → zeromq"),
    Plant("explained-dependencies", OS_MANIFEST, LISTED, "glob.workspace = true\n",
          "glob: the page has data, the manifests data, os", at=DEPENDENCIES),
    Plant("explained-dependencies", "src/train/Cargo.toml", r"(?<=^\[dev-dependencies\]\n)", "glob.workspace = true\n",
          "glob: the page has data, the manifests data (train)", at=DEPENDENCIES),
    Plant("explained-dependencies", DEPENDENCIES, r"^\| `glob` .*\n", "", "no row for glob, used by data", at=DEPENDENCIES),
    Plant("explained-dependencies", DEPENDENCIES, r"^(?=\| `glob` )", "| `nobody` | os | nothing |\n", "no manifest lists nobody"),
    Plant("explained-dependencies", DEPENDENCIES, r"(?<=\n)(\| `glob` .*\n)", r"\1\1", "a second row for glob", at=DEPENDENCIES),
    Plant("explained-dependencies", DEPENDENCIES, r"^\| `stratoscope-features` .*\n", "", "no row for stratoscope-features", at=DEPENDENCIES),
    Plant("workspace-dependencies", OS_MANIFEST, r"^libc\.workspace = true", 'libc = "0.2"', "libc has a version here"),
    Plant("workspace-dependencies", OS_MANIFEST, END, "\n[target.'cfg(unix)'.dev-dependencies]\nglob = { version = \"0.3\" }\n",
          "glob has a version here", at=OS_MANIFEST),
    Plant("pinned-evcxr", "Cargo.toml", r'^evcxr = "=', 'evcxr = "', "is not one version"),
    Plant("code-map", OS_MANIFEST, LISTED, "stratoscope-render.workspace = true\n", "os: only the manifest has render", at=ARCHITECTURE),
    Plant("code-map", OS_MANIFEST, LISTED, "stratoscope-render.workspace = true\n", "os uses render, which stands above", at=ARCHITECTURE),
    Plant("code-map", OS_MANIFEST, r"^stratoscope-features.*\n", "", "os: only the table has features", at=ARCHITECTURE),
    Plant("code-map", "src/newcomer/Cargo.toml", END, '[package]\nname = "stratoscope-newcomer"\n', "has no row for newcomer"),
    Plant("code-map", ARCHITECTURE, r"^(?=\| `os` )", "| `nobody` | nothing | – |\n", "there is no crate nobody"),
    Plant("code-map", ARCHITECTURE, "^## Code map", "## Map", "has no title `## Code map`", at=f"{ARCHITECTURE}:1"),
    Plant("diagnostics-without-io", "src/diagnostics/src/policy.rs", USES, 'fn speaks() { println!("{}", 1) }\n', "`println!`"),
    Plant("diagnostics-without-io", "src/diagnostics/src/policy.rs", USES, "use std::fs::File;\n", "`std::fs`"),
    Plant("escapes-in-render", OS, END, 'const LESS: &str = "&lt;";\n', "LESS"),
    Plant("long-files", "src/os/src/long.rs", END, "//! Lines.\n" * 451, "451 lines, at most 450", at="src/os/src/long.rs:450"),
    Plant("long-functions", OS, END, "fn long() {\n" + "    let _ = '{'; // }\n" * 79 + "}\n", "`long` has 81 lines, at most 80"),
    Plant("banned-words", DATA, END, "You are told.\n", "told: You are told."),
    Plant("banned-words", OS, END, "fn isMended_() {}\n", "mended: fn isMended_"),
    Plant("banned-words", OS, END, "pub struct Gone;\n", "struct Gone: pub"),
    Plant("banned-words", "notebooks/planted.ipynb", END, notebook(source="let keeper = 1;"), "keeper", at="notebooks/planted.ipynb:1"),
    Plant("clear-phrases", DATA, END, "Made Anew, with so many.\n", "anew, so many: Made"),
    Plant("clear-phrases", "notebooks/planted.ipynb", END, notebook(source="// a run is turned back"), "turned back",
          at="notebooks/planted.ipynb:1"),
    Plant("american-spelling", DATA, END, "The Behaviours of colour.\n", "Behaviours, colour: The"),
    Plant("american-spelling", "tests/planted.py", END, "grey = 1\n", "grey"),
    Plant("american-spelling", OS, END, "fn tokenises() {}\n", "tokenises"),
    Plant("kernel-of-notebooks", "notebooks/planted.ipynb", END, notebook(kernel="python3"), "the kernel python3", at="notebooks/planted.ipynb"),
    Plant("kernel-of-notebooks", "notebooks/planted.ipynb", END, "{", "Expecting property name", at="notebooks/planted.ipynb:1"),
    Plant("denied-lints", OS, r"missing_docs, ", "", "does not deny missing_docs", at=f"{OS}:1"),
    Plant("denied-lints", OS, r", clippy::undocumented_unsafe_blocks", "", "does not deny clippy::undocumented", at=f"{OS}:1"),
    Plant("introduced-crates", OS, r"\A//! ", "// ", "does not begin with what the crate is"),
    Plant("introduced-crates", OS, r"Start with", "See", "does not say where to start", at=f"{OS}:1"),
    Plant("introduced-crates", "src/features/src/lib.rs", END, "pub fn code() {}\n", "does not say where", at="src/features/src/lib.rs:1"),
    Plant("few-places", LOSS, r'after = "pub mod own;"', 'after = "mod nowhere;"', "loss/mod.rs has 0 times the line: mod nowhere;"),
    Plant("few-places", "src/metrics/src/loss/mod.rs", "^pub mod own;\n", "", "has 0 times the line: pub mod own;", at=LOSS),
    Plant("few-places", "src/metrics/src/loss/mod.rs", "^(pub mod own;\n)", r"\1\1", "has 2 times the line: pub mod own;", at=LOSS),
    Plant("few-places", LOSS, r"\Z", "".join(f'\n[[lines]]\nfile = "src/{crate}/src/lib.rs"\nafter = "mod {name};"\nadd = "mod x;"\n'
                                           for crate, name in (("optim", "sgd"), ("strategy", "buffers"))),
          "4 places, at most 3: src/metrics/src/loss/mod.rs,", at=f"{LOSS}:1"),
    Plant("few-places", LOSS, r'add = "mod poisson;"', r'add = "mod poisson;\\n\\n\\n"', "gets 5 lines, at most 4", at=LOSS),
    Plant("few-places", LOSS, r'"poisson.rs" = .*', '"poisson.rs" = "src/metrics/src/loss/huber.rs"', "loss/huber.rs exists"),
    Plant("few-places", LOSS, r'"poisson.rs" = .*', '"poisson.rs" = "src/metrics/src/losses/poisson.rs"', "no folder src/metrics/src/losses"),
    Plant("few-places", "tests/additions/loss/more.rs", END, "// More.\n", "more.rs is in the folder, and goes nowhere", at=f"{LOSS}:1"),
    Plant("few-places", "src/stratoscope/src/prelude.rs", "LogCosh, ", "", "prelude.rs does not name LogCosh", at=LOSS),
    Plant("few-places", LOSS, "^like = .*\n", "", "'like'", at=f"{LOSS}:1"),
    Plant("documented-paths", DATA, END, "It is in `src/data/src/nowhere.rs`.\n", "`src/data/src/nowhere.rs` does not exist"),
    Plant("document-links", DATA, END, "[nowhere](nowhere.md)\n", "docs/nowhere.md does not exist"),
    Plant("document-links", DATA, END, "[nowhere](devices.md#nowhere)\n", "docs/devices.md has no title #nowhere"),
    Plant("document-links", "README.md", END, "[here](#nowhere)\n", "README.md has no title #nowhere"),
    Plant("table-rows", DATA, END, "\n| a | b |\n| --- | --- |\n| `x|y` | 1 |\n", "3 cells, the head has 2", at=DATA),
    Plant("workspace-dependencies", OS_MANIFEST, END, "= no TOML\n", "Invalid", at=f"{OS_MANIFEST}:1"),
]

# What looks like a violation and is none.
ALLOWED = [
    Plant("kernel-without-burn", OS_MANIFEST, END, "\n[dev-dependencies]\nburn.workspace = true\n", "a dependency of tests"),
    Plant("explained-dependencies", "src/features/Cargo.toml", LISTED, 'unknown = "1"\n', "only features lists it"),
    Plant("diagnostics-without-io", "src/diagnostics/src/policy.rs", USES, 'const CELL: &str = r#"println!("std::fs")"#;\n', "a cell"),
    Plant("escapes-in-render", OS, END, "#[cfg(test)]\nmod tests {\n    const LESS: &str = \"&lt;\";\n}\n", "a test"),
    Plant("long-files", OS, END, "#[cfg(test)]\nmod tests {\n" + "\n" * 450 + "}\n", "unit tests"),
    Plant("long-functions", OS, END, "fn long() {\n" + "    let _ = '}'; // }\n" * 78 + "}\n", "the limit"),
    Plant("banned-words", OS, END, "// The amendment is secure, and it is a manifold.\n", "parts of words"),
    Plant("clear-phrases", DATA, END, "Renewed: put outside, in someone's ownership.\n", "parts of words"),
    Plant("american-spelling", DATA, END, "A pessimist analyses optimism of an organism: `optimisers`.\n", "other words"),
    Plant("document-links", DATA, END, "```\n[nowhere](nowhere.md)\n```\n[data](#read-a-file)\n", "a block of code"),
    Plant("table-rows", DATA, END, "\n| a | b |\n| --- | --- |\n| `x\\|y` | 1 |\n", "an escaped bar"),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tidy") / "copy"
    folder.mkdir()
    for name in ("Cargo.toml", "Cargo.lock", "README.md"):
        shutil.copy(ROOT / name, folder)
    for name in (*tidy.FOLDERS, "kernel-spec"):
        shutil.copytree(ROOT / name, folder / name, ignore=NOT_COPIED)
    return folder


@pytest.fixture(scope="module")
def before(copy):
    """What a check finds without a plant. It is nothing in a clean tree, and no reason to fail here otherwise."""
    found = {}

    def of(check):
        if check not in found:
            found[check] = set(tidy.findings(tidy.CHECKS[check], tidy.Tree(copy)))
        return found[check]

    return of


@pytest.fixture
def plant(copy):
    """Changes a file for the time of a test; returns the line of the new text."""
    undo = []

    def change(planted):
        path = copy / planted.path
        text = path.read_text() if path.exists() else None
        undo.append((path, text))
        path.parent.mkdir(exist_ok=True)
        match = re.search(planted.old, text or "", re.MULTILINE)
        assert match, f"{planted.path} has no {planted.old}"
        path.write_text((text or "")[: match.start()] + match.expand(planted.new) + (text or "")[match.end():])
        return (text or "").count("\n", 0, match.start()) + 1

    yield change
    for path, text in undo:
        if text is None:
            path.unlink()
        else:
            path.write_text(text)


@pytest.mark.parametrize("planted", PLANTS, ids=str)
def test_a_violation_is_found(copy, before, plant, planted):
    known = before(planted.check)
    line = plant(planted)
    found = set(tidy.findings(tidy.CHECKS[planted.check], tidy.Tree(copy))) - known
    places = {f"{finding.path}:{finding.line}" for finding in found if planted.text in finding.text}
    if not planted.at:
        assert places == {f"{planted.path}:{line}"}, found
    elif ":" in planted.at:
        assert places == {planted.at}, found
    else:
        assert {place.split(":")[0] for place in places} == {planted.at}, found


@pytest.mark.parametrize("planted", ALLOWED, ids=str)
def test_nothing_else_is_found(copy, before, plant, planted):
    known = before(planted.check)
    plant(planted)
    assert set(tidy.findings(tidy.CHECKS[planted.check], tidy.Tree(copy))) <= known


def test_a_leftover_in_the_root_is_found(tmp_path):
    """Only tracked files count: a folder that git ignores is not a part of the project."""
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "target").mkdir()
    assert tidy.findings(tidy.root_entries, tidy.Tree(tmp_path)) == []
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "notes.txt"], cwd=tmp_path, check=True)
    assert tidy.findings(tidy.root_entries, tidy.Tree(tmp_path)) == [("notes.txt", 1, "not a part of the project")]


def test_each_check_has_a_violation():
    assert {planted.check for planted in PLANTS} | {"root-entries"} == set(tidy.CHECKS)


def tidy_of(copy, *arguments):
    """Runs the program of the copy as a shell does, without any package."""
    command = [sys.executable, "-I", "-S", copy / "tests" / "tidy.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_program_reports_and_ends_with_a_status(copy, plant):
    assert tidy_of(copy, "pinned-evcxr", "table-rows").stdout == "2 passed, 0 failed\n"
    plant(Plant("table-rows", "README.md", END, "\n| a | b |\n| --- | --- |\n| 1 |\n", ""))
    ran = tidy_of(copy, "pinned-evcxr", "table-rows")
    title, finding, empty, end = ran.stdout.splitlines()
    assert ran.returncode == 1 and title.startswith("table-rows: ") and empty == "" and end == "1 passed, 1 failed"
    assert re.fullmatch(r"README\.md:\d+: 1 cells, the head has 2: \| 1 \|", finding)


def test_the_program_names_its_checks(copy):
    helped = tidy_of(copy, "--help")
    assert helped.returncode == 0 and all(f"  {name} " in helped.stdout for name in tidy.CHECKS)
    unknown = tidy_of(copy, "long-nights")
    assert unknown.returncode == 2 and "no such check: long-nights" in unknown.stderr


def test_functions_are_counted():
    """The counter takes no bracket from a comment, a string, a character or a signature."""
    text = r"""fn one<'a>(x: [u8; 2], f: impl Fn(&'a str) -> u8) -> Vec<u8>
where
    u8: Copy,
{
    let brace = '{'; // }
    let text = "}\"}"; /* } */
    let raw = br#"} " }"#;
    let byte = b'}';
}
fn declared(x: u8);
fn two() {}
"""
    assert list(tidy.functions_of(tidy.code_of(text))) == [("one", 1, 9), ("two", 11, 1)]


def test_anchors_are_those_of_github():
    text = "# A page\n## What `x_y` is, and why\n```\n# a comment\n```\n## [A link](data.md) – more\n## A page\n"
    assert list(tidy.anchors_of(text)) == ["a-page", "what-x_y-is-and-why", "a-link--more", "a-page-1"]
