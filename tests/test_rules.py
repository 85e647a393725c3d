"""The documentation of every rule through the real kernel: the wrong cell shows the rule's code, the corrected one has
no finding.

The cells are those of `%explain CODE`. Pages with cells that cannot run here give the reason (`Rule::NOT_RUN`). The
code that a page needs before its cells is in `Rule::GIVEN`, beside the names that all pages assume. Here the assumed
checkpoint is a tiny one and the data a few rows of the real data, so that a page takes a second.
"""

import json
import os
import re
import subprocess

import pytest

from cell_files import applied
from conftest import ROOT, STRATOSCOPE
from kernel_client import DIAGNOSTIC, Kernel, without_ansi

CATALOGUE = (
    json.loads(subprocess.run([STRATOSCOPE, "explain", "--json"], capture_output=True, text=True, check=True).stdout)
    if STRATOSCOPE.exists()
    else {"granted": [], "rules": []}
)
RULES = {rule["code"]: rule for rule in CATALOGUE["rules"]}
RUN = [code for code, rule in RULES.items() if not rule["not_run"]]

CHECKPOINT = '"all-MiniLM-L6-v2"'
DATA = "debian_sections()?"
# The memory limits of pages about memory, and their values for the tiny checkpoint.
MEMORY = {"memory_limit(1000)": "memory_limit(32)", "memory_limit(900)": "memory_limit(2)"}


class Notebook:
    """A kernel, and the state of earlier cells that affects later models: live strategies, and the models that a page
    compares."""

    def __init__(self, kernel, tiny):
        self.kernel = kernel
        self.tiny = tiny
        self.left = []
        self.good = {}

    def run_good(self, cell, given):
        """The same for a corrected cell, once per cell: several pages share one."""
        key = (cell, *given)
        if key not in self.good:
            self.good[key] = self.run(cell, given)
        return self.good[key]

    def run(self, cell, given=()):
        """Executes a cell after the statements that it assumes and those that its page gives, as one cell."""
        magics = [each for each in given if each.startswith("%")]
        statements = [each for each in given if not each.startswith("%")]
        before = self.granted("\n".join([*statements, cell])) + statements
        for magic in magics:
            self.kernel.run(magic)
        if before and cell.startswith("%%"):
            self.execute("\n".join(before))
            before = []
        ran = self.execute("\n".join([*before, cell]))
        if any(magic.startswith("%profile") for magic in magics):
            self.kernel.run("%profile off")
        return ran

    def granted(self, cell):
        """The statements that define the names that a cell uses and does not define itself."""
        statements = []
        code = re.sub(r'"[^"]*"|//.*', "", cell)
        for each in CATALOGUE["granted"]:
            name = rf"(?<![.\w]){re.escape(each['name'])}\b(?!\s*[(=])"
            # `let train = …;` defines the name; after it, the name is the cell's own.
            before = re.split(rf"let (?:mut )?{re.escape(each['name'])}\b", code, maxsplit=1)
            made_of_itself = len(before) > 1 and re.search(name, before[1].split(";")[0])
            if (re.search(name, before[0]) or made_of_itself) and each["statement"] not in statements:
                statements.append(each["statement"])
        return statements

    def execute(self, code):
        code = code.replace(CHECKPOINT, f'"{self.tiny}"').replace(
            f"let (train, dev) = {DATA};",
            f"let (train, dev) = {DATA};\nlet (train, dev) = (train.shuffled(1).take(160), dev.shuffled(1).take(16));",
        )
        for page, here in MEMORY.items():
            code = code.replace(page, here)
        for name in self.left:
            # A name that a cell has moved, or not reached, does not exist.
            self.kernel.execute(f"%reset {name}")
        cell = self.kernel.execute(code)
        # Strategies stay alive, also those of a cell that fails after them; the next page has its own.
        made = re.findall(r"^ *let (\w+) = \w*(?:Strategy|Parallel)::|^ *let (first|second) = ", code, re.MULTILINE)
        dropped = re.findall(r"\bdrop\((\w+)\)", code)
        made = [name for names in made for name in names if name and name not in dropped]
        self.left = made
        return cell


@pytest.fixture(scope="module")
def notebook(tmp_path_factory, tiny):
    # Cells of pages write to the folder for temporary files, where an earlier run of the tests may have left its own.
    folder = tmp_path_factory.mktemp("rules")
    with Kernel(cwd=folder, env={**os.environ, "TMPDIR": str(folder)}) as kernel:
        yield Notebook(kernel, tiny)


def codes(cell):
    return [bundle[DIAGNOSTIC]["code"] for bundle in cell.diagnostics]


def messages(cell):
    return cell.code + "\n---\n" + "\n".join(without_ansi("\n".join(error["traceback"])) for error in cell.errors)


def test_the_catalogue_is_there():
    assert len(RUN) > 50, f"{len(RUN)} of {len(RULES)} pages have cells that run"
    for code, rule in RULES.items():
        assert rule["bad"] and rule["good"], code


@pytest.mark.sampled
@pytest.mark.parametrize("code", RUN)
def test_the_cells_of_a_page_behave_as_documented(notebook, code):
    rule = RULES[code]
    # Warnings that an earlier page has shown are shown again.
    notebook.kernel.run("%warnings again")
    bad = notebook.run(rule["bad"], rule["given"])
    assert code in codes(bad), f"{codes(bad)}\n{messages(bad)}"
    if rule["severity"] == "error":
        assert [error["ename"] for error in bad.errors] == [code], messages(bad)
    else:
        assert not bad.errors, messages(bad)
    check_the_fixes(notebook, bad, code)
    notebook.kernel.run("%warnings again")
    good = notebook.run_good(rule["good"], rule["given"])
    assert not good.errors, messages(good)
    assert code not in codes(good), messages(good)
    # A page names the codes that its cell shows on the tiny checkpoint and few rows; no other is accepted.
    assert set(codes(good)) <= set(rule["tolerates"]), messages(good)


def edits_of(cell, code):
    """The fixes of a code's card that are edits: title, and the cell after each."""
    data = [bundle[DIAGNOSTIC] for bundle in cell.diagnostics if bundle[DIAGNOSTIC]["code"] == code]
    for fix in (fix for card in data for fix in card["fixes"] if fix["edits"]):
        yield fix["title"], applied(cell.code, fix)


def check_the_fixes(notebook, bad, code):
    """The cell after the edit of a card runs, without that finding and without another error."""
    for title, text in edits_of(bad, code):
        after = notebook.execute(text)
        assert not after.errors, f"{title}\n{messages(after)}"
        assert code not in codes(after), f"{title}\n{messages(after)}"


def test_a_warning_marks_the_call_that_runs_and_not_the_first_of_its_name(notebook):
    cell = f"""let long = Dataset::from_labelled([("a game of and for the library", "games"), ("a font", "fonts")]);
{MODEL.replace('8)', '2)')}
compile!(model, optimizer = AdamW::new(5e-5), {LOSS})?;
fit!(model, long, max_length = 64)?;
fit!(model, long, max_length = 4)?;"""
    notebook.kernel.run("%warnings again")
    ran = notebook.execute(cell).ok()
    card = next(bundle for bundle in ran.diagnostics if bundle[DIAGNOSTIC]["code"] == "SC0407")
    assert "fit!(model, long, max_length = 4)" in card["text/plain"], card["text/plain"]


def test_a_name_that_is_bound_twice_is_named_once(notebook):
    ran = notebook.execute("let twice = 1;\nlet twice = twice + 1;\nDataset::csv(\"nowhere.csv\")?;")
    assert "kept: " in messages(ran) and messages(ran).count("`twice`") == 1, messages(ran)
    assert notebook.execute("twice").shown() == "2"


# Pages without a check: nothing is found, but the cells that they recommend must run.
READ = [code for code, rule in RULES.items() if rule["not_run"] and rule["stage"] == "page"]


@pytest.mark.sampled
@pytest.mark.parametrize("code", READ)
def test_the_cells_of_a_page_without_a_check_run(notebook, code):
    rule = RULES[code]
    cells = [rule["good"]] + [rule["bad"]] * rule["not_run"].startswith("both cells are valid")
    for cell in cells:
        ran = notebook.run(cell, rule["given"])
        assert not ran.errors, messages(ran)
        assert set(codes(ran)) <= set(rule["tolerates"]), messages(ran)


# What each version of TensorFlow does with a cell, as its card has it: the code, the cell and the answers. A golden file: with
# UPDATE_DOCS=1 it is written, and the difference is to be read. `docs/keras-semantics.md` says where the answers come from.
ANSWERS = ROOT / "tests" / "cells" / "answers.json"
TABLE = json.loads(ANSWERS.read_text())
PROFILES = ["tf-2.3", "tf-2.4", "tf_keras-2.18", "keras-3"]
MODEL = f"let model = BertForSequenceClassification::from_pretrained({CHECKPOINT}, 8)?;"
LOSS = "loss = SparseCategoricalCrossentropy { from_logits: true }"


@pytest.mark.sampled
@pytest.mark.parametrize("name", TABLE)
def test_a_profile_adds_the_words_of_its_version(notebook, name):
    row = TABLE[name]
    # A cell that is checked in the source is cheap and runs under every profile; others run under one.
    chosen = PROFILES if row["found"] == "by the text" else [PROFILES[list(TABLE).index(name) % 4]]
    for profile in chosen:
        notebook.kernel.run(f"%profile {profile}")
        ran = notebook.run(row["cell"]) if "train" in row["cell"] else notebook.execute(row["cell"])
        card = next(bundle for bundle in ran.diagnostics if bundle[DIAGNOSTIC]["code"] == row["code"])
        data = card[DIAGNOSTIC]
        assert data["profile"] == profile
        if os.environ.get("UPDATE_DOCS"):
            row["answers"] = data["answers"]
            ANSWERS.write_text(json.dumps(TABLE, indent=1, ensure_ascii=False) + "\n")
        assert data["answers"] == row["answers"]
        (answer,) = [answer for answer in data["answers"] if answer["profile"] == profile]
        for word in answer.get("says", answer["does"]).split("\n")[0].split()[:6]:
            assert word in card["text/plain"], card["text/plain"]
    notebook.kernel.run("%profile off")
    card = notebook.execute(TABLE["unknown argument"]["cell"]).diagnostics[0]
    assert "profile" not in card[DIAGNOSTIC] and "Trainer.compile" not in card["text/plain"]


def test_a_valid_cell_has_a_note_on_what_a_version_rejects(notebook):
    cell = f"""let one = OneDeviceStrategy::new(cpu(0))?;
scope!(one, {{
    {MODEL}
    compile!(model, optimizer = AdamW::new(5e-5), {LOSS}, steps_per_execution = 2)?;
}});"""
    for profile in ("tf-2.3", "tf-2.4"):
        notebook.kernel.run(f"%profile {profile}")
        ran = notebook.execute(cell).ok()
        assert codes(ran) == (["SC0119"] if profile == "tf-2.3" else [])
    assert notebook.kernel.execute("%profile tf-9").errors[0]["ename"] == "UnknownProfile"
    notebook.kernel.run("%profile off")


def test_a_wrong_type_has_one_card_for_source_and_compiler(notebook):
    """Errors found in the source and errors that only rustc finds have the same card."""
    for made, value in (("", "Adam::new(1e-3)"), (f"let adam = Adam::new(1e-3);\n{MODEL}\n", "adam")):
        ran = notebook.execute(f"{made}compile!(model, optimizer = AdamW::new(5e-5), loss = {value})?;")
        error = ran.errors[0]
        assert (error["ename"], error["evalue"]) == ("SC0120", f"`loss = {value}`: expected `loss`, got `optimizer`")
        card = next(bundle for bundle in ran.diagnostics if bundle[DIAGNOSTIC]["code"] == "SC0120")
        rows = {row["name"]: row["state"] for row in card[DIAGNOSTIC]["arguments"]}
        assert (rows["optimizer"], rows["loss"], rows["metrics"]) == ("given", "invalid", "default")


def test_warnings_are_shown_each_time_silenced_denied(notebook):
    kernel = notebook.kernel
    notebook.execute(MODEL).ok()
    call = "compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: false })?;"
    cell = call
    kernel.run("%warnings default SC0302")
    assert codes(kernel.run(cell)) == ["SC0302"]
    assert codes(kernel.run(cell)) == ["SC0302"], "the condition holds again"
    # Two places of a cell are two findings, a loop is one.
    assert codes(kernel.run(f"{call}\n{call}")) == ["SC0302", "SC0302"]
    assert codes(kernel.run(f"for _ in 0..3 {{\n    {call}\n}}")) == ["SC0302"]
    kernel.run("%warnings default SC0302")
    kernel.run("%warnings silence SC0302")
    assert codes(kernel.run(cell)) == []
    table = kernel.run("%warnings").shown()
    assert "SC0302" in table and "silenced" in table
    kernel.run("%warnings deny SC0302")
    denied = kernel.execute(cell)
    assert [error["ename"] for error in denied.errors] == ["SC0302"]
    kernel.run("%warnings default SC0302")
    assert kernel.execute("%warnings silence SC9999").errors[0]["ename"] == "UnknownWarning"


def test_a_denied_warning_stops_a_run_in_the_present_process_and_in_the_next(notebook):
    """SC0407 is reported by the process that trains, not by the kernel, which has the source only."""
    kernel = notebook.kernel
    cell = f"""let long = Dataset::from_labelled([("a game of and for the library and the data", "games"), ("a font", "fonts")]);
{MODEL.replace('8)', '2)')}
compile!(model, optimizer = AdamW::new(5e-5), {LOSS})?;
let history = fit!(model, long, max_length = 4)?;"""
    kernel.run("%warnings default SC0407")
    assert "SC0407" in codes(notebook.execute(cell).ok())
    kernel.run("%warnings deny SC0407")
    assert [error["ename"] for error in notebook.execute(cell).errors] == ["SC0407"]
    # A new process gets the setting before its first cell.
    assert kernel.execute("std::process::exit(3);").errors[0]["ename"] == "ProcessEnded"
    assert [error["ename"] for error in notebook.execute(cell).errors] == ["SC0407"]
    kernel.run("%warnings default SC0407")
    assert "SC0407" in codes(notebook.execute(cell).ok())
