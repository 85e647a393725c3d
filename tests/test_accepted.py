"""Our own API takes what people write where it is unambiguous, and shows the way elsewhere. The cells are those of
`tests/cells/accepted.md`."""

import pytest

from cell_files import read
from kernel_client import DIAGNOSTIC, Kernel

SECTIONS = {title: section for title, section in read("accepted.md").items() if section.cases}
CASES = [(title, name) for title, section in SECTIONS.items() for name in section.cases]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """A kernel for each section, in a folder of its own, after the section's first cell."""
    started = {}

    def of(title):
        if title not in started:
            started[title] = Kernel(cwd=tmp_path_factory.mktemp("accepted"))
            started[title].run(SECTIONS[title].given)
        return started[title]

    yield of
    for kernel in started.values():
        kernel.__exit__(None, None, None)


def codes(cell, severity):
    cards = [bundle[DIAGNOSTIC] for bundle in cell.diagnostics]
    return [card["code"] for card in cards if card["severity"] == severity]


def answer(cell):
    """What the reader sees: outputs, cards, and an error without a card."""
    return " ".join(" ".join([cell.shown(), *(error["evalue"] for error in cell.errors)]).split())


# A whole section: a case may use variables of the cases before it.
@pytest.mark.sampled
@pytest.mark.parametrize("title", SECTIONS)
def test_what_people_write_is_taken_or_shows_the_way(kernels, title):
    kernel, wrong = kernels(title), []
    for case in SECTIONS[title].cases.values():
        cell = kernel.execute(case.code)
        kind, _, code = case.expected.rpartition(" ")
        plain = answer(cell)
        missing = [word for word in case.words if " ".join(word.split()) not in plain]
        if kind == "warning":
            right = not cell.errors and code in codes(cell, "warning")
        elif code == "ok":
            right = not cell.errors
        elif code in ("error", "panic"):
            right = bool(cell.errors)
        else:
            right = [error["ename"] for error in cell.errors] == [code]
        if not right or missing:
            wrong.append(f"{case.name}: {case.code!r} should be {case.expected!r}, without {missing}:\n{plain[:900]}")
    assert not wrong, "\n\n".join(wrong)


def test_there_are_enough_cases():
    assert len(CASES) >= 80
