"""The fixes of SC0102 and SC0201 in a notebook as people lay it out, the model in one cell and `compile!` in the next: each fix
is followed as the card writes it, and the cell then runs."""

import re

import pytest

from kernel_client import DIAGNOSTIC, check_card, check_error

MODEL = "let net = Sequential([Dense(8).activation(\"relu\").input_shape(4), Dense(3)])?;"
COMPILE = ("compile!(net, optimizer = Adam::new(0.01), "
           "loss = SparseCategoricalCrossentropy { from_logits: true }%s)?;")
STEPS = COMPILE % ", steps_per_execution = 16"
FIT = "fit!(net, make_classification(64, 4, 3, 0)?, verbose = false)?;"


@pytest.fixture
def notebook(kernel):
    """Without a live strategy."""
    kernel.run("%reset")
    return kernel


def fixes(cell, code):
    return [fix["title"] for fix in check_card(cell, code)[DIAGNOSTIC]["fixes"]]


def code_in(title):
    return re.findall("`([^`]+)`", title)


def test_steps_per_execution_for_a_model_of_an_earlier_cell(notebook):
    built = notebook.run(MODEL)
    cell = notebook.execute(STEPS)
    check_error(cell, "SC0102")
    make, drop = fixes(cell, "SC0102")
    strategy, scope = code_in(make)
    assert f"first line of cell {built.number}, which builds the model" in make, make
    notebook.run(strategy)
    notebook.run(f"{scope}\n{MODEL}")
    notebook.run(STEPS)
    notebook.run(FIT)


def test_steps_per_execution_for_a_model_of_the_same_cell(notebook):
    cell = notebook.execute(f"{MODEL}\n{STEPS}")
    check_error(cell, "SC0102")
    strategy, scope = code_in(fixes(cell, "SC0102")[0])
    notebook.run(strategy)
    notebook.run(f"{scope}\n{MODEL}\n{STEPS}")


def test_a_model_that_was_built_before_its_strategy(notebook):
    built = notebook.run(MODEL)
    notebook.run("let two = MirroredStrategy::logical(2)?;")
    cell = notebook.execute(COMPILE % "")
    check_error(cell, "SC0201", "built outside the scope of `two`: its 4 variables are on cpu:0 only")
    first, second = fixes(cell, "SC0201")
    assert f"cell {built.number}, which builds the model" in first, first
    # The second fix first: it changes nothing for the other.
    notebook.run(COMPILE % f", {code_in(second)[0]}")
    notebook.run(f"{code_in(first)[0]}\n{MODEL}")
    notebook.run(COMPILE % "")
    assert notebook.run("net.placement()?.devices.len()").shown() == "2"


def test_a_model_that_was_built_outside_of_one_device(notebook):
    notebook.run("let one = OneDeviceStrategy::new(cpu(0))?;")
    notebook.run(MODEL)
    cell = notebook.execute(f"%%scope one\n{STEPS}")
    check_error(cell, "SC0201")
    # It is on that device: nothing else can be wrong with its place.
    assert "cpu:0 only" not in cell.errors[0]["evalue"]
    notebook.run(f"{code_in(fixes(cell, 'SC0201')[0])[0]}\n{MODEL}")
    notebook.run(f"%%scope one\n{STEPS}")


@pytest.fixture
def two_strategies(notebook):
    """`net` belongs to the first of two strategies of one type."""
    notebook.run("let s1 = MirroredStrategy::logical(2)?;")
    notebook.run("let s2 = MirroredStrategy::logical(4)?;")
    notebook.run(f"%%scope s1\n{MODEL}")
    return notebook


def test_a_model_of_another_strategy(two_strategies):
    notebook = two_strategies
    cell = notebook.execute(f"%%scope s2\n{COMPILE % ''}")
    check_error(cell, "SC0201", "built in the scope of `s1`, not in that of `s2`")
    keep, move = fixes(cell, "SC0201")
    assert "the scope of `s1`" in keep and "outside of any scope" in keep, keep
    notebook.run(f"%%scope s1\n{COMPILE % ''}")
    notebook.run(COMPILE % "")
    (_, scope) = code_in(move)
    notebook.run(f"{scope}\n{MODEL}")
    notebook.run(f"%%scope s2\n{COMPILE % ''}")
    assert notebook.run("net.placement()?.devices.len()").shown() == "4"


@pytest.mark.parametrize("argument", ["s2", "none"])
def test_another_strategy_by_name(two_strategies, argument):
    cell = two_strategies.execute(COMPILE % f", strategy = {argument}")
    code = check_error(cell, {"s2": "SC0201", "none": "SC0103"}[argument])["ename"]
    first = fixes(cell, code)[0]
    assert first == "pass the strategy the model was built in: `strategy = s1`"
    two_strategies.run(COMPILE % f", {code_in(first)[0]}")


def test_strategies_of_the_cell_itself_have_their_names(notebook):
    cell = notebook.execute(f"""let s1 = MirroredStrategy::logical(2)?;
let s2 = MirroredStrategy::logical(4)?;
scope!(s1, {{ {MODEL} }});
scope!(s2, {{ {COMPILE % ''} }});""")
    check_error(cell, "SC0201", "built in the scope of `s1`, not in that of `s2`")
    assert "mirrored#" not in check_card(cell, "SC0201")["text/plain"]


def test_a_strategy_of_the_cell_itself(notebook):
    cell = notebook.execute(f"let own = MirroredStrategy::logical(2)?;\n{MODEL}\n{COMPILE % ''}")
    check_error(cell, "SC0201")
    (title, _) = fixes(cell, "SC0201")
    assert title.endswith("`scope!(own, { let model = …; compile!(model, …)?; });`"), title
    notebook.run(f"let own = MirroredStrategy::logical(2)?;\nscope!(own, {{ {MODEL} {COMPILE % ''} }});")
