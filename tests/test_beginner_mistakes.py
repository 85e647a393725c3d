"""Common beginner's mistakes in Rust, one per cell: the error has rustc's code or ours, names the line, explains the
mistake in simple words, and shows none of the code that the kernel or evcxr adds around the cell. The mistakes are those of
`tests/cells/mistakes.md`."""

import json
import re

import pytest

from cell_files import read
from kernel_client import check_error, without_ansi

SECTIONS = read("mistakes.md")
GIVEN = SECTIONS["Before each cell"].given
MISTAKES = SECTIONS["Mistakes"].cases

# Generated code: names of evcxr and of the kernel, crates, paths of the build.
GENERATED = re.compile(
    r"evcxr|EVCXR|Evcxr|run_user_code|variable_store|CellError|catch_unwind|AssertUnwind|stratoscope::__|stratoscope::cell"
    r"|__compile_arguments|__fit_arguments|`ctx`|ctx::|src/lib\.rs|/tmp/|\$crate|end of input|keyword `fn`"
)


def shown(cell):
    """Everything that a front end receives for a cell, except its source."""
    texts = []
    for message in cell.messages:
        if message.kind != "execute_input":
            texts.append(json.dumps(message.content, ensure_ascii=False))
    reply = dict(cell.reply)
    return without_ansi("\n".join([*texts, json.dumps(reply, ensure_ascii=False)]).replace("\\u001b", "\x1b"))


def messages(cell):
    """The visible text, on one line."""
    error = cell.errors[0]
    parts = [error["evalue"], *error["traceback"], cell.shown()]
    return " ".join(without_ansi("\n".join(parts)).split())


@pytest.fixture(scope="module", autouse=True)
def given(kernel):
    """The first cell, which the file calls `In[1]`."""
    return kernel.run(GIVEN)


@pytest.mark.sampled
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_explained_in_the_words_of_the_cell(kernel, given, mistake):
    case = MISTAKES[mistake]
    ename, line = re.match(r"(\w+) in line (\d+), found by (?:the text|rustc)$", case.expected).groups()
    cell = kernel.execute(case.code)
    assert cell.errors, f"{case.code!r} is no error"
    everything = shown(cell)
    generated = GENERATED.search(everything)
    assert not generated, everything[max(0, generated.start() - 200):generated.end() + 200]
    check_error(cell, ename, line=int(line))
    for word in case.words:
        word = word.replace("In[1]", f"In[{given.number}]")
        assert " ".join(word.split()) in messages(cell), f"{word!r} is not in: {messages(cell)}"


def test_a_fix_for_a_missing_mut_works(kernel):
    kernel.run("let mut n = n;")
    assert kernel.run("n += 1;\nn").shown() == "6"
    assert kernel.run("n += 1;\nn").shown() == "7"
    kernel.run("let n = 5;")


def test_a_fix_for_a_closure_works(kernel):
    kernel.run("let f: Box<dyn Fn(i32) -> i32> = Box::new(move |x| x + n);")
    assert kernel.run("f(1)").shown() == "6"


def test_variables_are_kept_through_all_mistakes(kernel):
    assert kernel.run('format!("{n} {v:?} {name}")').shown() == '"5 [1, 2, 3] Ada"'
