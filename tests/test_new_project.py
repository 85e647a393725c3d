"""`stratoscope new`: a notebook as a project of plain cargo, whose program prints what the notebook shows, bit for bit."""

import os
import subprocess

import nbformat
import pytest

from conftest import ROOT

TRAINING = [
    "use std::fmt::Write;\nlet data = make_regression(64, 5, 0)?;",
    "%profile tf-2.4",
    "let strategy = MirroredStrategy::logical(2)?;",
    """%%scope strategy
let model = Sequential([Dense(16).activation("relu").input_shape((5,)), Dropout(0.1), Dense(1)])?;
compile!(model, optimizer = Adam::new(0.01), loss = MeanSquaredError);""",
    """// Bits, not digits.
fn bits(losses: &[f64]) -> String {
    let mut text = String::new();
    for loss in losses {
        write!(text, "{:016x} ", loss.to_bits()).unwrap();
    }
    text
}
let history = fit!(model, data, epochs = 3, batch_size = 8, seed = 5, verbose = false)?;
bits(&history["loss"])""",
    "!true\nprintln!(\"{}\", bits(&[evaluate!(model, data, verbose = false)?.loss]))",
    "model.predict([[0.5, -1.0, 2.0, 0.0, 1.0]])?",
]


def project(stratoscope, notebook, folder):
    """Makes a project; returns what the command prints."""
    done = subprocess.run([stratoscope, "new", folder, "--from", notebook], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def cargo(folder, *words):
    """Plain cargo in a project; nothing is downloaded."""
    env = {name: value for name, value in os.environ.items() if name not in ("CARGO_TARGET_DIR", "RUSTFLAGS")}
    env |= {"CARGO_NET_OFFLINE": "true", "STRATOSCOPE_DEVICE": "cpu"}
    done = subprocess.run(["cargo", *words], cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def shown(notebook):
    """What the cells print and show as text, in order."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stdout":
                yield output.text.strip()
            if output.output_type == "execute_result":
                yield output.data["text/plain"].strip()


def check_order(printed, texts):
    """All texts stand in the output, one behind the other."""
    at = 0
    for text in texts:
        found = printed.find(text, at)
        assert found >= 0, f"{text!r} is not in the rest of the output:\n{printed[at:]}"
        at = found + len(text)


def test_a_program_has_the_bits_of_its_notebook(stratoscope, tmp_path):
    cells = [nbformat.v4.new_code_cell(code) for code in TRAINING]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "small.ipynb")
    command = [stratoscope, "run", "small.ipynb", "--output", "ran.ipynb"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    texts = list(shown(nbformat.read(tmp_path / "ran.ipynb", as_version=4)))
    assert len(texts) == 3, texts
    said = project(stratoscope, tmp_path / "small.ipynb", tmp_path / "trained")
    assert "cell 2: `%profile tf-2.4` is a comment, as it is for the kernel" in said
    assert "cell 6: `!true` is a comment, as it is a command of the shell" in said
    assert "cargo run" in said
    folder = tmp_path / "trained"
    readme = (folder / "README.md").read_text()
    assert "`!true` is a command of the shell" in readme and "small.ipynb" in readme
    check_order(cargo(folder, "run", "--quiet"), texts)
    assert "the_cells_run_to_the_end ... ok" in cargo(folder, "test", "--quiet", "--", "--format=pretty")
    # The library did not change, so that nothing is compiled again.
    assert "Compiling" not in subprocess.run(["cargo", "build"], cwd=folder, capture_output=True, text=True, timeout=60).stderr


@pytest.mark.parametrize("name", ["steps_per_execution", "model_outside_scope"])
def test_a_notebook_of_the_repository(stratoscope, tmp_path, name):
    """With cells that fail on purpose, magics, a custom network; its outputs are those in the repository."""
    path = ROOT / "notebooks" / f"{name}.ipynb"
    project(stratoscope, path, tmp_path / "it")
    printed = cargo(tmp_path / "it", "run", "--quiet")
    notebook = nbformat.read(path, as_version=4)
    counters = [text for text in shown(notebook) if "optimizer steps" in text]
    assert counters or name == "model_outside_scope"
    check_order(printed, counters)
    source = (tmp_path / "it" / "src" / "main.rs").read_text()
    assert "in the notebook:" in source and "// %profile tf" in source


def test_what_is_no_project_is_refused(stratoscope, tmp_path):
    def refused(words, *arguments):
        done = subprocess.run([stratoscope, "new", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and words in done.stderr, done.stderr

    good = ROOT / "notebooks" / "steps_per_execution.ipynb"
    refused("is no name of a package", "Größe", "--from", good)
    refused("cannot", "it", "--from", "missing.ipynb")
    python = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import numpy as np\ndef f(x):\n    return x")])
    nbformat.write(python, tmp_path / "python.ipynb")
    refused("stratoscope translate", "it", "--from", "python.ipynb")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("mine")
    refused("exists", "taken", "--from", good)
    assert (tmp_path / "taken" / "file").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["python.ipynb", "taken"]
