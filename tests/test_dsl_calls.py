"""Incorrect calls of the DSL, and Python in a cell: each has a card with the corrected line. After the edit that the
card offers, the cell runs. The calls are those of `tests/cells/calls.md`."""

import pytest

from cell_files import applied, read
from kernel_client import DIAGNOSTIC, check_card, check_error

CALLS = read("calls.md")
GIVEN = CALLS["Before each cell"].given
CASES = CALLS["Calls"].cases

# Before a cell that trains: others compile without a loss.
COMPILED = "compile!(model, optimizer = AdamW::new(1e-3), loss = SparseCategoricalCrossentropy { from_logits: true })?;"

# Python that is not just a spelling: one card, with the corresponding Rust. tests/test_python_cells.py has more.
PYTHON = {
    "a model": (
        'model = Sequential([\n    Dense(10, activation="relu"),  # hidden\n    Dense(2),\n])',
        ['let model = Sequential([Dense(10).activation("relu"), Dense(2)])?;']),
    "a scope": ("with strategy.scope():\n    model = Sequential([Dense(1)])", ["scope!(strategy, {", "let model = Sequential([Dense(1)])?;"]),
    "a function": ("def f(x):\n    return x + 1", ["the type of its argument `x` is not known"]),
    "a loop": ("for i in range(3):\n    print(i)", ["for i in 0..3 {", 'println!("{i}");']),
    "a condition": ("x = 4\nif x > 3:\n    print('large')\nelse:\n    print('small')", ["if x > 3 {", 'println!("large");', "} else {"]),
    "a whole cell": (
        "import tensorflow as tf\n\nstrategy = tf.distribute.MirroredStrategy()\nwith strategy.scope():\n"
        "    model = tf.keras.Sequential([tf.keras.layers.Dense(10, activation='relu')])\n"
        "    model.compile(optimizer='adam', loss='mse', metrics=['mae'])\nmodel.fit(x_train, y_train, epochs=3)",
        ["let strategy = MirroredStrategy::new()?;", "scope!(strategy, {", "compile!(model, optimizer = Adam::new(1e-3)"]),
    "a class": ("class Net(keras.Model):\n    pass", ["a subclass of `Model` is translated where it is a chain of layers"]),
    "a list": ("squares = [n * n for n in numbers]", ["a list made by a loop is not translated"]),
    "a decorator": ("@tf.function\ndef step(x):\n    return x", ["the type of its argument `x` is not known"]),
    "a text with values": ("loss = 0.5\nprint(f'loss {loss:.2f}')", ['println!("loss {loss:.2}");']),
}


@pytest.fixture(scope="module", autouse=True)
def given(kernel):
    kernel.run(GIVEN)


def prepare(kernel, code):
    if "fit" in code or "evaluate" in code:
        kernel.run(COMPILED)


def errors(cell):
    return [bundle[DIAGNOSTIC] for bundle in cell.diagnostics if bundle[DIAGNOSTIC]["severity"] == "error"]


@pytest.mark.sampled
@pytest.mark.parametrize("name", CASES)
def test_a_call_is_explained_and_the_fix_works(kernel, name):
    case = CASES[name]
    code, ename = case.code, case.expected.split(",")[0]
    prepare(kernel, code)
    cell = kernel.execute(code)
    assert cell.errors, f"{code!r} is no error"
    check_error(cell, ename)
    card = check_card(cell, ename)[DIAGNOSTIC]
    assert card["fixes"] and card["labels"], card
    if len(case.blocks) == 1:
        return
    fixed = code
    for _ in range(8):
        fixable = [error for error in errors(cell) if error["fixes"] and error["fixes"][0]["edits"]]
        if not fixable:
            break
        fixed = applied(fixed, fixable[0]["fixes"][0])
        cell = kernel.execute(fixed)
    assert fixed == case.blocks[1]
    cell.ok()


@pytest.mark.sampled
@pytest.mark.parametrize("name", PYTHON)
def test_python_in_a_cell_is_recognized(kernel, name):
    code, forms = PYTHON[name]
    cell = kernel.execute(code)
    error = cell.errors[0]
    assert error["ename"] in ("SC1013", "SC0127"), error
    assert len(cell.diagnostics) == 1
    plain = " ".join(cell.shown().split())
    assert "Python" in plain
    for form in forms:
        assert " ".join(form.split()) in plain, plain
    assert not any(part in plain for part in ("literal", "codepoint", "keyword", "found `"))
