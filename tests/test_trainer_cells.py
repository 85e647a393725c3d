"""Cells of the Trainer and of PyTorch: pasted, answered, and the translated cell run by the kernel. The cells are those of
src/python/tests/trainer.md; the losses are those of transformers, from tests/parity/tiny-bert/trainer."""

import json
import re
import shutil

import pytest

from conftest import ROOT
from kernel_client import Kernel, check_card, check_error
from test_python_cells import DIAGNOSTIC, cells_of, codes, next_cell, pasted, run_translated

CELLS = cells_of("trainer.md")
PARITY = ROOT / "tests" / "parity" / "tiny-bert" / "trainer"
LOSSES = json.loads((PARITY / "losses.json").read_text())["losses"]
# The losses of a step agree to this share.
LIMIT = 1e-5

PAIRS = ("let (train_dataset, eval_dataset) = debian_pairs()?;\nlet (train_dataset, eval_dataset) = "
         "(train_dataset.take(16), eval_dataset.take(8));\nlet val_dataset = eval_dataset.clone();\nlet test_dataset = eval_dataset.clone();")
ROWS = "let x = vec![[1.0_f32, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0], [0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]];\nlet y = vec![0, 1, 0, 1];"
# Cells that are run, with what they take from cells before them.
RUN = {name: PAIRS for name in (
    "the defaults of the Trainer", "names of transformers 4", "a cosine with a share of warm-up", "a constant rate",
    "a polynomial schedule", "brain floats and smoothed labels", "betas and epsilon", "other optimizers of the Trainer",
    "early stopping", "reports to services", "scores of scikit-learn", "macro and weighted scores", "adapters of PEFT",
    "a loop of PyTorch", "a loop with an evaluation", "accumulated gradients", "groups of variables", "accelerate",
    "get_scheduler", "a loss of the cell over logits",
)} | {
    "a whole program of the Trainer": "",
    "texts that are written out": "",
    "a split by hand": "",
    "a class of data": "",
    "vectors of sentences": "",
    "a masked language model": "",
    "a number of steps": PAIRS,
    "a net of layers": ROWS,
    "a class of a net": ROWS,
    "a regression of the Trainer": "let scores = Dataset::from_rows(vec![\"a game\", \"a font\"], vec![0.5, 1.5])?;",
    "tags of words": "let wnut = Dataset::from_words([(vec![\"Ada\", \"sings\"], vec![\"B-PER\", \"O\"]), "
                     "(vec![\"Ada\", \"King\"], vec![\"B-PER\", \"I-PER\"])])?;",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """A kernel in a folder with the files that the cells read, and the checkpoint `tiny` of the losses."""
    folder = tmp_path_factory.mktemp("trainer")
    rows = "text,label\n" + "".join(f"{'a game of chess' if row % 2 else 'a mail server'} {row},{row % 2}\n" for row in range(24))
    for name in ("dev.csv", "reviews.csv"):
        (folder / name).write_text(rows)
    (folder / "lines.txt").write_text("a line of text\nanother line of text\n")
    tiny, classifier = folder / "tiny", PARITY.parent / "sequence-classification"
    tiny.mkdir()
    config = json.loads((classifier / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (tiny / "config.json").write_text(json.dumps(config))
    (tiny / "tokenizer_config.json").write_text('{"do_lower_case": true, "tokenizer_class": "BertTokenizer"}')
    shutil.copy(classifier / "model.safetensors", tiny)
    shutil.copy(PARITY / "vocab.txt", tiny)
    with Kernel(cwd=folder) as running:
        running.folder = folder
        yield running


def steps(kernel, cell, batches):
    """The mean loss of each optimizer step of a translated cell."""
    if "let result" not in cell:
        cell = cell.replace("fit!(", "let result = fit!(", 1)
    kernel.execute(cell).ok()
    shown = kernel.run("for record in &result.executions {\n    println!(\"{:.9}\", record.loss);\n}").stream()
    losses = [float(line) for line in shown.split()]
    return [sum(losses[at:at + batches]) / batches for at in range(0, len(losses), batches)]


@pytest.mark.parametrize(("name", "batches"), [("linear", 1), ("cosine", 2), ("loop", 1)])
def test_the_losses_are_those_of_transformers(notebook, name, batches):
    notebook.run("%reset")
    shutil.copy(PARITY / "train.csv", notebook.folder)
    cell = pasted(notebook, (PARITY / f"{name}.py").read_text()).ok()
    found = steps(notebook, next_cell(cell), batches)
    expected = LOSSES[name]
    assert len(found) == len(expected) == 5, found
    for step, (here, there) in enumerate(zip(found, expected)):
        assert abs(here - there) <= LIMIT * there, (name, step, here, there)


@pytest.mark.sampled
@pytest.mark.parametrize("name", RUN)
def test_a_translated_cell_runs(notebook, tiny, name):
    (notebook.folder / "train.csv").write_text((notebook.folder / "dev.csv").read_text())
    # The tiny checkpoint has 96 positions.
    rust = re.sub(r"max_length = (128|512)", "max_length = 32", CELLS[name][1])
    run_translated(notebook, tiny, rust, RUN[name])


def test_a_program_of_the_trainer_is_answered(notebook):
    python, rust, _ = CELLS["a whole program of the Trainer"]
    # The check of the card's HTML takes `processing_class=` of the Python text for an attribute.
    cell = pasted(notebook, python.replace("processing_class=", "tokenizer=")).ok()
    assert next_cell(cell) == rust
    card = check_card(cell, "SC1013", "this is Python")
    assert card[DIAGNOSTIC]["severity"] == "note"
    for line in rust.splitlines():
        assert line.strip() in card["text/plain"], line
    shown = " ".join(card["text/plain"].split())
    for text in ("`logging_steps=50`", "`push_to_hub=False`", "a patience of all epochs"):
        assert text in shown, shown


@pytest.mark.parametrize(("name", "code"), [
    ("evaluation without data", "SC0103"),
    ("the best model without evaluation", "SC0103"),
    ("a collator of another head", "SC0431"),
    ("an area under a curve of classes", "SC0103"),
    ("tags without a tag are counted", "SC0312"),
    ("gradients that are never cleared", "SC0506"),
    ("softmax before the loss", "SC0303"),
])
def test_the_mistakes_are_found_in_the_python_text(notebook, name, code):
    notebook.run("%warnings again")
    assert code in codes(pasted(notebook, CELLS[name][0]))


def test_without_a_translation_the_cell_is_an_error(notebook):
    cell = pasted(notebook, "from transformers import AutoModelForCausalLM\nmodel = AutoModelForCausalLM.from_pretrained(\"gpt2\")")
    check_error(cell, "SC1013")
    assert "there is no `AutoModelForCausalLM` here" in " ".join(cell.shown().split())
    assert not cell.reply["payload"]
