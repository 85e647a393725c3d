"""Valid cells of many shapes, run one after the other in one kernel: none shows a warning or an error of ours. The cells are
those of `tests/cells/valid.md`."""

import pytest

from cell_files import read
from kernel_client import DIAGNOSTIC, without_ansi

SECTIONS = read("valid.md")
CASES = [(title, name) for title, section in SECTIONS.items() for name in section.cases]


@pytest.fixture(scope="module")
def notebook(kernel):
    """The kernel after the first cell of a section, which is run when the section changes."""
    ran = []

    def after(title):
        if ran[-1:] != [title]:
            kernel.run("%reset")
            kernel.run(SECTIONS[title].given)
            ran.append(title)
        return kernel

    return after


@pytest.mark.sampled
@pytest.mark.parametrize(("title", "name"), CASES)
def test_a_valid_cell_shows_nothing(notebook, title, name):
    code = SECTIONS[title].cases[name].code
    ran = notebook(title).execute(code)
    said = "\n".join(without_ansi("\n".join(error["traceback"])) for error in ran.errors)
    assert not ran.errors, f"{code}\n---\n{said}"
    cards = [bundle["text/plain"] for bundle in ran.diagnostics]
    assert not cards, f"{code}\n---\n" + "\n".join(cards)
    assert DIAGNOSTIC not in ran.shown("text/plain")


def test_types_of_earlier_cells_may_have_the_names_of_ours(kernel):
    """Of a name that a cell defines the checks know nothing in later cells either."""
    kernel.run("struct SGD { steps: usize }\nimpl SGD { fn new(steps: usize) -> Self { SGD { steps } } }")
    kernel.run("enum Animal { Lion(String), Ox }")
    ran = kernel.execute("""let steps = SGD::new(1).steps;
let name = match Animal::Lion("a".to_owned()) {
    Animal::Lion(name) => name,
    Animal::Ox => String::new(),
};
assert_eq!((steps, name.as_str()), (1, "a"));""")
    assert not ran.errors, ran.errors
    # As at the start of a notebook, the name is ours again.
    kernel.run("%reset")
    assert kernel.execute("let optimizer = SGD::new(1);").errors[0]["ename"] == "SC0103"
