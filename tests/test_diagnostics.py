"""The three diagnostics of the main notebook, in the messages of the protocol: an unknown argument,
`steps_per_execution` without a scope, a model outside the live strategy's scope."""

import pytest

from kernel_client import DIAGNOSTIC, check_card, check_error, check_static_html


@pytest.fixture(scope="module")
def model(kernel, tiny):
    """A cell that makes a model called `model`."""
    return f'let model = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;'


COMPILE = """compile!(model,
    optimizer = AdamW::new(warmup_linear(5e-5, 0.1)),
    loss = SparseCategoricalCrossentropy { from_logits: true },
    metrics = [accuracy()],
)?;"""


def compile_cell(extra="", **replaced):
    """The cell above with arguments replaced, renamed (`name=None` drops it) or added."""
    cell = COMPILE
    for old, new in replaced.items():
        cell = cell.replace(f"    {old} =", f"    {new} =")
    return cell.replace(")?;", f"{extra})?;") if extra else cell


def test_a_misspelt_argument_is_caught_before_rustc(kernel, model):
    kernel.run(model)
    code = compile_cell(optimizer="optimiser") + '\nlet rustc_would_stop_here: i32 = "text";'
    cell = kernel.execute(code)
    check_error(cell, "SC0101", "optimiser", "optimizer", line=2)
    card = check_card(cell, "SC0101", "optimiser", "did you mean `optimizer`?", "^")
    # Underlined in the cell's own text, and beside it the table of what is accepted.
    span = card[DIAGNOSTIC]["labels"][0]["place"]["span"]
    assert code.encode()[span["start"]:span["end"]] == b"optimiser"
    names = {row["name"] for row in card[DIAGNOSTIC]["arguments"]}
    assert {"optimizer", "loss", "metrics", "steps_per_execution", "gradient_accumulation_steps"} <= names
    for name in names:
        assert name in card["text/html"]
    assert len(cell.diagnostics) == 1


@pytest.mark.parametrize(
    ("typo", "meant"),
    [("optimizr", "optimizer"), ("los", "loss"), ("metric", "metrics"), ("steps_per_executions", "steps_per_execution"),
     ("gradient_acumulation_steps", "gradient_accumulation_steps")],
)
def test_the_nearest_name_is_suggested(kernel, typo, meant):
    # Nothing is compiled, so the model does not have to exist.
    others = "" if meant == "optimizer" else "optimizer = AdamW::new(5e-5), "
    cell = kernel.execute(f"compile!(anything, {others}{typo} = 1)?;")
    check_error(cell, "SC0101", typo, meant, line=1)


def test_an_argument_of_another_call_is_recognized(kernel):
    cell = kernel.execute("compile!(anything, optimizer = AdamW::new(5e-5), learning_rate = 5e-5)?;")
    check_error(cell, "SC0106", "learning_rate")
    check_card(cell, "SC0106", "optimizer")
    cell = kernel.execute("fit!(anything, train, epoch = 3)?;")
    check_error(cell, "SC0114", "epoch", "epochs")


def test_non_ascii_text_before_the_place_does_not_shift_it(kernel):
    code = '/* größer — 漢字 */ compile!(modèle, optimiser = AdamW::new(5e-5))?;'
    cell = kernel.execute(code)
    check_error(cell, "SC0101", line=1)
    card = check_card(cell, "SC0101")
    span = card[DIAGNOSTIC]["labels"][0]["place"]["span"]
    assert code.encode()[span["start"]:span["end"]] == b"optimiser"


def test_steps_per_execution_needs_a_scope(kernel, model):
    kernel.run(model)
    cell = kernel.execute(compile_cell("    steps_per_execution = 16,\n"))
    check_error(cell, "SC0102", "steps_per_execution", line=5)
    check_card(cell, "SC0102", "steps_per_execution", "scope", "^")
    # 1 is the default, and accepted everywhere.
    kernel.run(compile_cell("    steps_per_execution = 1,\n"))


def test_steps_per_execution_inside_a_scope_is_fine(kernel, tiny):
    kernel.run(
        f"""let strategy = MirroredStrategy::logical(2)?;
scope!(strategy, {{
    let inside = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;
    let receipt = compile!(inside,
        optimizer = AdamW::new(warmup_linear(5e-5, 0.1)),
        loss = SparseCategoricalCrossentropy {{ from_logits: true }},
        steps_per_execution = 16,
    )?;
}});
drop(strategy);"""
    )
    # What the scope bound is an ordinary variable of the notebook.
    assert kernel.run('inside.predict(["a game"])?').shown()


def test_the_suggested_fix_works(kernel, tiny):
    """SC0102's card: a strategy of one device, and `%%scope` as the cell's first line."""
    kernel.run("let one = OneDeviceStrategy::new(cpu(0))?;")
    kernel.run(f"""%%scope one
let scoped = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;
let receipt = compile!(scoped,
    optimizer = AdamW::new(1e-3),
    loss = SparseCategoricalCrossentropy {{ from_logits: true }},
    steps_per_execution = 16,
)?;""")
    kernel.run("drop(one);")


def test_a_model_outside_the_live_strategy(kernel, tiny):
    kernel.run("let live = MirroredStrategy::logical(2)?;")
    made = kernel.run(f'let outside = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;')
    code = COMPILE.replace("model,", "outside,")
    cell = kernel.execute(code)
    check_error(cell, "SC0201", line=1)
    card = check_card(cell, "SC0201", "TensorFlow")
    # The grid of variables by devices: the second replica has none of them, and the line that created them is named.
    figure = card[DIAGNOSTIC]["figure"]
    check_static_html(figure["html"])
    for text in (figure["html"], figure["plain"], card["text/html"]):
        assert "bert.embeddings" in text or "embeddings" in text
        assert f"cell {made.number}" in text
    # The same cell is valid without the strategy, and with `strategy = none`.
    kernel.run(code.replace(")?;", "    strategy = none,\n)?;"))
    kernel.run("drop(live);")
    kernel.run(code)


def test_a_failing_statement_leaves_the_scope(kernel, tiny):
    kernel.run("let strategy = MirroredStrategy::logical(2)?;")
    cell = kernel.execute('scope!(strategy, {\n    let number: i32 = "x".parse()?;\n});')
    check_error(cell, cell.errors[0]["ename"], "invalid digit", line=2)
    kernel.run("drop(strategy);")
    kernel.run(f'let plain = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;')
    cell = kernel.execute(COMPILE.replace("model,", "plain,").replace(")?;", "    steps_per_execution = 2,\n)?;"))
    check_error(cell, "SC0102")


def test_variables_survive_a_diagnostic(kernel):
    kernel.run("let kept = 11;")
    assert kernel.execute("compile!(anything, optimiser = 1)?;").reply["status"] == "error"
    assert kernel.run("kept").shown() == "11"
