"""The diagnostics of a newcomer's cells: the right code or none, and advice that works when it is followed."""

import pytest

from cell_files import applied
from kernel_client import DIAGNOSTIC, without_ansi

DATA = """let data = make_classification(64, 4, 2, 0)?;
let eight = make_classification(64, 4, 8, 0)?;
let x: Vec<[f32; 2]> = (0..32).map(|i| [i as f32, 1.0]).collect();
let y: Vec<i64> = (0..32).map(|i| i % 2).collect();"""


@pytest.fixture(scope="module")
def notebook(kernel):
    kernel.run(DATA)
    return kernel


def cards(cell):
    return [bundle[DIAGNOSTIC] for bundle in cell.diagnostics]


def codes(cell):
    return [card["code"] for card in cards(cell)]


def traceback_of(cell):
    return "\n".join([cell.code, *(without_ansi("\n".join(error["traceback"])) for error in cell.errors)]
                     + [bundle["text/plain"] for bundle in cell.diagnostics])


def corrected(cell, card, index=0):
    """The cell after a fix of a card."""
    return applied(cell.code, card["fixes"][index])


def head(layer, loss):
    return (f'let model = Sequential([Dense(8).activation("relu"), {layer}])?;\n'
            f"compile!(model, optimizer = Adam::new(0.01), loss = {loss})?;")


BINARY = "BinaryCrossentropy {{ from_logits: {} }}"
SPARSE = "SparseCategoricalCrossentropy {{ from_logits: {} }}"
HEADS = [
    ('Dense(1).activation("sigmoid")', BINARY.format("false"), []),
    ('Dense(1).activation("sigmoid")', BINARY.format("true"), ["SC0303"]),
    ("Dense(1)", BINARY.format("false"), ["SC0302"]),
    ("Dense(1)", BINARY.format("true"), []),
    ('Dense(3).activation("softmax")', SPARSE.format("false"), []),
    ('Dense(3).activation("softmax")', SPARSE.format("true"), ["SC0303"]),
    ("Dense(3)", SPARSE.format("false"), ["SC0302"]),
]


@pytest.mark.parametrize("layer, loss, expected", HEADS)
def test_the_head_decides_about_logits(notebook, layer, loss, expected):
    ran = notebook.run(head(layer, loss))
    assert codes(ran) == expected, traceback_of(ran)
    for card in cards(ran):
        # The first fix is an edit of the cell; the edited cell has no diagnostic.
        after = notebook.run(corrected(ran, card))
        assert codes(after) == [], traceback_of(after)


def test_softmax_applied_twice_is_reported_at_compile_and_the_collapse_does_not_blame_pretraining(notebook):
    cell = head('Dense(1).activation("sigmoid")', BINARY.format("true")).replace("Adam::new(0.01)", "SGD::new(100.0)")
    ran = notebook.run(cell + "\nfit!(model, data, epochs = 3, batch_size = 16)?;")
    assert codes(ran)[0] == "SC0303", traceback_of(ran)
    assert "SC0303" not in codes(ran)[1:], traceback_of(ran)
    assert "pretrained" not in "".join(str(card["fixes"]) for card in cards(ran)), traceback_of(ran)


RATES = [
    ("Adam::new(1)", "write `Adam::new(1e-3)`", "too high"),
    ("AdamW::new(-1.0)", "write `AdamW::new(5e-5)`", "expected a finite number ≥ 0"),
    ("SGD::new(1)", "write `SGD::new(1.0)`", "expected a float"),
]


@pytest.mark.parametrize("written, fix, words", RATES)
def test_the_fix_of_a_rate_edits_its_own_place(notebook, written, fix, words):
    cell = f"let model = Sequential([Dense(2)])?;\ncompile!(model, optimizer = {written}, loss = {SPARSE.format('true')})?;"
    ran = notebook.execute(cell)
    assert [error["ename"] for error in ran.errors] == ["SC0103"], traceback_of(ran)
    (card,) = cards(ran)
    assert card["fixes"][0]["title"] == fix
    assert words in traceback_of(ran), traceback_of(ran)
    notebook.run(corrected(ran, card))


def test_arrays_become_a_data_set(notebook):
    start = head("Dense(2)", SPARSE.format("true"))
    ran = notebook.execute(f"{start}\nfit!(model, (x.clone(), y.clone()), epochs = 2, verbose = false)?;")
    assert [error["ename"] for error in ran.errors] == ["SC0120"], traceback_of(ran)
    (card,) = cards(ran)
    assert card["fixes"][0]["title"] == "write `Dataset::from_arrays(x.clone(), y.clone())?`"
    notebook.run(corrected(ran, card))
    # Known to the compiler only: the pair has a name.
    ran = notebook.execute(f"{start}\nlet pair = (x.clone(), y.clone());\nfit!(model, pair)?;")
    (card,) = [card for card in cards(ran) if card["code"] == "SC0120"]
    assert card["fixes"][0]["title"] == "write `Dataset::from_arrays(pair.0, pair.1)?`", traceback_of(ran)
    notebook.run(corrected(ran, card))


def test_labels_out_of_range_quote_the_argument_as_written(notebook):
    start = head("Dense(4)", SPARSE.format("true"))
    ran = notebook.execute(f"{start}\nfit!(model, eight, verbose = false)?;")
    (card,) = cards(ran)
    assert card["code"] == "SC0301" and card["message"].endswith("the head has 4 outputs"), traceback_of(ran)
    assert card["fixes"][0]["title"] == "write `Dense(8)`"
    after = corrected(ran, card)
    assert "Dense(8)])?" in after and 'Dense(8).activation("relu")' in after
    notebook.run(after)
    # The model of an earlier cell: the cell and the line are named.
    made = notebook.run(start)
    ran = notebook.execute("fit!(model, eight, verbose = false)?;")
    (card,) = cards(ran)
    assert card["fixes"][0] == {"title": f"write `Dense(8)` in `In[{made.number}]`, line 1", "edits": []}, traceback_of(ran)


ACCEPTED = ["run_eagerly = true", "jit_compile = true", "loss_weights = [1.0]", "weighted_metrics = [accuracy()]"]


@pytest.mark.parametrize("argument", ACCEPTED)
def test_a_card_does_not_claim_an_error_that_tensorflow_does_not_raise(notebook, argument):
    ran = notebook.execute(f"compile!(model, optimizer = Adam::new(0.01), {argument})?;")
    (card,) = cards(ran)
    assert card["code"] == "SC0101" and "accept" in card["tensorflow"], traceback_of(ran)
    if "jit" not in argument:
        assert "TypeError" not in traceback_of(ran), traceback_of(ran)


def test_a_long_text_is_no_reason_for_an_argument_that_predict_lacks(notebook, tiny):
    cell = f"""let bert = BertForSequenceClassification::from_pretrained("{tiny}", 2)?;
let answers = bert.predict("a game of and for the library ".repeat(400))?;"""
    ran = notebook.run(cell)
    (card,) = [card for card in cards(ran) if card["code"] == "SC0407"]
    assert "max_length = " not in str(card["fixes"]) and "split longer texts" in str(card["fixes"]), traceback_of(ran)


def test_a_constant_rate_is_reported_once(notebook):
    ran = notebook.run(head("Dense(2)", SPARSE.format("true")) + "\nfit!(model, data, epochs = 2, batch_size = 8)?;")
    shown = ran.shown()
    assert "constant 1e-2" in shown and "1e-2 at step 0" not in shown, shown
