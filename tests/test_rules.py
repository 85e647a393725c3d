"""Every rule's page through the real kernel: the bad cell shows the rule's code, the good one has no finding.

The cells are those of `%explain CODE`. A page whose cells cannot run here says so itself, with the reason
(`Rule::NOT_RUN`); what a page needs before its cells it says too (`Rule::GIVEN`), beside what all pages take for
granted. Here the granted checkpoint is a tiny one and the data a few rows of the real ones, so that a page takes a
second.
"""

import json
import re
import subprocess

import pytest

from conftest import STRATOSCOPE
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
# What the stand-ins bring about by themselves: a tiny vocabulary makes many tokens of a word and knows few words, a
# few rows of eight classes are unevenly spread and soon repeat themselves.
OF_THE_STAND_INS = {"SC0403", "SC0407", "SC0410", "SC0503", "SC0510", "SC0512", "SC0513", "SC0517", "SC0602", "SC0703"}


class Notebook:
    """A kernel and the strategies that its cells have left behind: one that is alive concerns every later model."""

    def __init__(self, kernel, tiny):
        self.kernel = kernel
        self.tiny = tiny
        self.strategies = []

    def run(self, cell, given=()):
        """Executes a cell behind what it takes for granted; what is given goes before it, as one cell."""
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
        """The statements that make the names a cell uses and does not make itself."""
        statements = []
        for each in CATALOGUE["granted"]:
            name = re.escape(each["name"])
            uses = re.search(rf"(?<![.\w]){name}\b(?!\s*\()", re.sub(r'"[^"]*"|//.*', "", cell))
            first_use = uses and uses.start()
            made = re.search(rf"let (?:\([^)]*)?{name}\b", cell)
            if uses and not (made and made.start() <= first_use) and each["statement"] not in statements:
                statements.append(each["statement"])
        return statements

    def execute(self, code):
        code = code.replace(CHECKPOINT, f'"{self.tiny}"').replace(
            f"let (train, dev) = {DATA};",
            f"let (train, dev) = {DATA};\nlet (train, dev) = (train.shuffled(1).take(64), dev.shuffled(1).take(16));",
        )
        if self.strategies:
            self.kernel.run("".join(f"drop({name});" for name in self.strategies))
        cell = self.kernel.execute(code)
        # A cell that fails keeps nothing of what it has made.
        made = re.findall(r"^let (\w+) = \w*Strategy::", code, re.MULTILINE)
        self.strategies = made if cell.reply["status"] == "ok" else []
        return cell


@pytest.fixture(scope="module")
def notebook(tmp_path_factory, tiny):
    with Kernel(cwd=tmp_path_factory.mktemp("rules")) as kernel:
        yield Notebook(kernel, tiny)


def codes(cell):
    return [bundle[DIAGNOSTIC]["code"] for bundle in cell.diagnostics]


def told(cell):
    return cell.code + "\n---\n" + "\n".join(without_ansi("\n".join(error["traceback"])) for error in cell.errors)


def test_the_catalogue_is_there():
    assert len(RUN) > 50, f"{len(RUN)} of {len(RULES)} pages have cells that run"
    for code, rule in RULES.items():
        assert rule["bad"] and rule["good"], code


@pytest.mark.parametrize("code", RUN)
def test_the_page_tells_the_truth(notebook, code):
    rule = RULES[code]
    # What an earlier page has told is told again.
    notebook.kernel.run("%warnings again")
    bad = notebook.run(rule["bad"], rule["given"])
    assert code in codes(bad), f"{codes(bad)}\n{told(bad)}"
    if rule["severity"] == "error":
        assert [error["ename"] for error in bad.errors] == [code], told(bad)
    else:
        assert not bad.errors, told(bad)
    notebook.kernel.run("%warnings again")
    good = notebook.run(rule["good"], rule["given"])
    assert not good.errors, told(good)
    assert code not in codes(good), told(good)
    assert set(codes(good)) <= OF_THE_STAND_INS, told(good)
