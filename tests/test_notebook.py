"""The main notebook, executed with real weights, real data and real training."""

import nbformat
import pytest
from nbclient import NotebookClient

from kernel_client import DIAGNOSTIC, history_column, without_ansi

# What Hugging Face and PyTorch reach with this recipe is 79 %; the project asks for 76 % or more.
WANTED_ACCURACY = 0.76


def codes(cell):
    return [output.data[DIAGNOSTIC]["code"] for output in cell.outputs
            if output.output_type == "display_data" and DIAGNOSTIC in output.data]


def shown(cell, mime="text/plain"):
    return "\n".join(str(output.data[mime]) for output in cell.outputs
                     if output.output_type in ("display_data", "execute_result") and mime in output.data)


def cell_with(notebook, text):
    return next(cell for cell in notebook.cells if cell.cell_type == "code" and text in cell.source)


def test_only_the_broken_cells_fail(executed):
    failed = {}
    for cell in executed.cells:
        if cell.cell_type != "code":
            continue
        errors = [output for output in cell.outputs if output.output_type == "error"]
        meant = "raises-exception" in cell.metadata.get("tags", [])
        assert len(errors) == int(meant), without_ansi("\n".join(line for error in errors for line in error.traceback))
        if meant:
            failed[errors[0].ename] = codes(cell)
    assert set(failed) == {"SC0101", "SC0102", "SC0201"}
    for ename, cards in failed.items():
        assert ename in cards


def test_the_placement_follows_compile(executed):
    text = shown(cell_with(executed, "receipt = compile!"))
    assert "cpu:0" in text and "cpu:1" in text and "Mirrored" in text
    assert "planned" in text
    after = shown(cell_with(executed, "placement(&classifier)"))
    assert "measured" in after and "planned" not in after


def test_training_reaches_the_accuracy(executed):
    history = shown(next(cell for cell in executed.cells if cell.source.strip() == "history"))
    accuracy = history_column(history, "val accuracy")
    assert len(accuracy) == 3 and accuracy[-1] >= WANTED_ACCURACY, history
    assert "189 optimizer steps" in history and "189 all-reduces" in history, history


def test_sentences_are_classified(executed):
    text = shown(cell_with(executed, "classifier.predict("))
    for sentence, section in (("side-scrolling platform game", "games"), ("sans serif typeface", "fonts"),
                              ("DNS server", "net")):
        line = next(line for line in text.splitlines() if sentence in line)
        assert section in line, text


def test_the_saved_model_is_loaded_again(executed):
    assert "games" in shown(cell_with(executed, "again.predict("))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(5))
def test_every_seed_reaches_the_accuracy(root, tmp_path, seed):
    notebook = nbformat.read(root / "notebooks" / "fine_tune_bert.ipynb", as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code" and "seed = 0" in cell.source:
            cell.source = cell.source.replace("seed = 0", f"seed = {seed}")
    NotebookClient(notebook, kernel_name="stratoscope", timeout=1800,
                   resources={"metadata": {"path": str(tmp_path)}}).execute()
    test_training_reaches_the_accuracy(notebook)
