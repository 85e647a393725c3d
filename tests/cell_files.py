"""The cells of `tests/cells/*.md`, which tests in Rust (`src/diagnostics/tests/cells.rs`) and tests with the kernel share, and
fixes applied to a cell.

A `# ` title begins a section. Its first cell, if it has no title of its own, runs before the others. A `## ` title begins a case:
a line that says what is expected, lines after `- ` that the output has, and blocks of code."""

import json
import subprocess
from dataclasses import dataclass, field

from conftest import ROOT, STRATOSCOPE


@dataclass
class Case:
    """A cell, what is expected of it, and further blocks, such as the corrected cell."""

    name: str
    expected: str = ""
    words: list = field(default_factory=list)
    blocks: list = field(default_factory=list)

    @property
    def code(self):
        return self.blocks[0]


@dataclass
class Section:
    """Cases that follow the same cell."""

    title: str
    before: list = field(default_factory=list)
    cases: dict = field(default_factory=dict)

    @property
    def given(self):
        return self.before[0]


def read(name):
    """The sections of a file, by title."""
    sections, case, block = {}, None, None
    for line in (ROOT / "tests" / "cells" / name).read_text().splitlines():
        if block is not None:
            if line != "```":
                block.append(line)
                continue
            blocks = case.blocks if case else section.before
            blocks.append("\n".join(block))
            block = None
        elif line.startswith("```"):
            block = []
        elif line.startswith("# "):
            section, case = Section(line[2:]), None
            sections[section.title] = section
        elif line.startswith("## "):
            case = Case(line[3:])
            assert case.name not in section.cases, f"{name}: two cases are called {case.name}"
            section.cases[case.name] = case
        elif case and line.startswith("- "):
            case.words.append(line[2:])
        elif case and line:
            case.expected += line
    return sections


def applied(code, fix):
    """The cell after a fix of a card, as the product applies it."""
    given = json.dumps({"cell": code, "fix": fix})
    finished = subprocess.run([STRATOSCOPE, "explain", "--apply"], input=given, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, f"{fix}\n{finished.stderr}"
    return finished.stdout.removesuffix("\n")
