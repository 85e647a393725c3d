"""Python cells: the card with the mistakes that the rules know and both programs side by side, the translated cell as the next
cell of the notebook, and that cell run by the kernel. The cells are those of src/python/tests/*.md."""

import re
import shutil
import subprocess

import nbformat
import pytest

from cell_files import applied
from conftest import ROOT, STRATOSCOPE
from kernel_client import DIAGNOSTIC, Kernel, check_card, check_error, check_static_html

CHECKPOINT = r'"(bert-base-(un)?cased|roberta-base)"'
# Rows of MRPC as the benchmark lays them out.
MRPC = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n" + "".join(
    f"{row % 2}\t{row}\t{row + 100}\tthe file server number {row}\ta library of fonts {row % 2}\n" for row in range(24))
DATA = "let (train_dataset, _) = debian_pairs()?;\nlet train_dataset = train_dataset.take(16);\nlet num_epochs = 1;"
BERT = "let model = BertForSequenceClassification::from_pretrained(\"bert-base-uncased\", 2)?;"
ROWS = "let x = vec![[1.0_f32, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0], [0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]];\nlet y = vec![0, 1, 0, 1];"
ONE = "let model = Sequential([Dense(1).input_shape((4,))])?;"
SMALL = "let model = Sequential([Dense(2).input_shape((4,))])?;"


def cells_of(name):
    """The cells of a table: title, Python, Rust, what is found."""
    sections = (ROOT / "src" / "python" / "tests" / name).read_text().split("\n## ")[1:]

    def block(section, language):
        found = re.search(rf"```{language}\n(.*?)\n```", section, re.DOTALL)
        return found[1] if found else ""

    return {each.splitlines()[0]: tuple(block(each, language) for language in ("python", "rust", "text")) for each in sections}


ARTICLES = cells_of("articles.md")
CELLS = cells_of("cells.md")

# What the cells of the articles take from cells before them.
GIVEN = {
    "a loop by hand whose sum is made anew in every step":
        f"{DATA}\n{BERT}\nlet compute_loss = SparseCategoricalCrossentropy {{ from_logits: true }};",
    "a pipeline with a tokenizer": 'let train_texts = vec!["a game", "a font"];\nlet train_labels = vec![1, 0];',
    "a model outside of the scope, and a sum that is not divided": DATA,
    "a scope and fit": DATA,
    "a data set by its name": "let batch_size = 8;",
}
# Others that are run, with what they take from cells before them.
RUN = {
    "layers that are added": ROWS + "\nlet X = x.clone();",
    "the functional interface": "",
    "a subclass with an activation of tf.nn": "",
    "Python without Keras": "",
    "a script with a main function": f"{ROWS}\nlet train = Dataset::from_arrays(&x, &y)?;",
    "tokens of texts": f"{BERT}\ncompile!(model, optimizer = Adam::new(1e-3), "
                       "loss = SparseCategoricalCrossentropy { from_logits: true })?;\nlet EPOCHS = 1;",
    "data sets of Hugging Face": "",
    "sigmoid twice": "",
    "one device": "",
    "central storage": "",
    "arguments of an optimizer": "",
    "the old name of the rate": "",
    "a misspelled argument of an optimizer": "",
    "Adam that decays": "",
    "a cosine": "",
    "a polynomial": "",
    "smoothed labels": "",
    "losses and metrics by their functions": ONE,
    "a loss of Huber": ONE,
    "top k": SMALL,
    "class weights and validation":
        f"{ROWS}\nlet (x_train, y_train, x_val, y_val) = (x.clone(), y.clone(), x.clone(), y.clone());\n{SMALL}\n"
        "compile!(model, optimizer = Adam::new(1e-3), loss = SparseCategoricalCrossentropy { from_logits: true })?;",
    "arrays in a pipeline": f"{ROWS}\n{SMALL}\ncompile!(model, optimizer = Adam::new(1e-3), "
                            "loss = SparseCategoricalCrossentropy { from_logits: true })?;",
    "rows that are written out": "let model = Sequential([Dense(2).input_shape((2,))])?;\ncompile!(model, "
                                 "optimizer = Adam::new(1e-3), loss = SparseCategoricalCrossentropy { from_logits: true })?;",
    "words as numbers": "",
    "tasks of GLUE, Parquet, Arrow and text files": "",
    "a RoBERTa": "",
    "RMSprop, Lion, LAMB and Adafactor": "",
    "logs": "let rows = make_regression(8, 3, 1)?;",
    "images as rows": "",
    "an input layer and layers by name": "",
    "a step that averages and clips each tensor": f"{ROWS}\nlet dataset = Dataset::from_arrays(&x, &y)?;\n{SMALL}",
    "a loop that is distributed by hand": f"{ROWS}\nlet dataset = Dataset::from_arrays(&x, &y)?;",
    "names that are words of Rust": "",
    "texts with quotes and braces": "",
    "numbers": "",
    "a text over several lines": "",
    "BERT with frozen embeddings": "",
    "arguments of an optimizer by their places": "",
    "a decay of Hugging Face": "",
    "arguments of layers and callbacks": "",
    "layers in slices": "",
    "data parallel by a mesh": ROWS,
    "data parallel on all devices": "",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """A kernel in a folder with the files that cells read."""
    folder = tmp_path_factory.mktemp("pasted")
    (folder / "glue" / "mrpc").mkdir(parents=True)
    for name in ("train.tsv", "dev.tsv"):
        (folder / "glue" / "mrpc" / name).write_text(MRPC)
    (folder / "glue" / "sst2").mkdir()
    for name in ("train.tsv", "dev.tsv"):
        (folder / "glue" / "sst2" / name).write_text("sentence\tlabel\na fine film\t1\nslow\t0\n")
    (folder / "glue" / "mnli").mkdir()
    for name in ("train.tsv", "dev_matched.tsv", "dev_mismatched.tsv"):
        rows = "sentence1\tsentence2\tgold_label\nIt is red.\tIt is blue.\tcontradiction\n"
        (folder / "glue" / "mnli" / name).write_text(rows)
    shutil.copy(ROOT / "src/data/tests/files/reviews.parquet", folder)
    (folder / "saved").mkdir()
    shutil.copy(ROOT / "src/data/tests/files/reviews.arrow", folder / "saved")
    # As `save_to_disk` writes it.
    (folder / "saved" / "state.json").write_text('{"_data_files": [{"filename": "reviews.arrow"}]}')
    (folder / "lines.txt").write_text("a line\nanother\n")
    with Kernel(cwd=folder) as running:
        yield running


def pasted(kernel, code):
    """Runs a cell as a front end does in which somebody sits: it can be asked, and inserts cells."""
    return kernel.collect(kernel.client.execute(code, allow_stdin=True), code)


def next_cell(cell):
    """The cell that is put below."""
    (payload,) = cell.reply["payload"]
    assert (payload["source"], payload["replace"]) == ("set_next_input", False)
    return payload["text"]


def codes(cell):
    return [bundle[DIAGNOSTIC]["code"] for bundle in cell.diagnostics]


def run_translated(kernel, tiny, rust, given):
    """Runs a translated cell in a notebook of its own. What its comments leave out is left out."""
    kernel.run("%reset")
    for code in (given, rust):
        if code:
            cell = kernel.execute(re.sub(CHECKPOINT, f'"{tiny}"', code))
            cell.ok()
    return cell


@pytest.mark.parametrize("name", ARTICLES)
def test_a_cell_of_an_article_is_answered_and_runs(notebook, tiny, name):
    python, rust, found = ARTICLES[name]
    # A warning is shown once; here the article before may have had the same one.
    notebook.run("%warnings again")
    cell = pasted(notebook, python).ok()
    assert next_cell(cell) == rust
    card = check_card(cell, "SC1013", "this is Python")
    assert card[DIAGNOSTIC]["severity"] == "note"
    check_static_html(card["text/html"])
    for line in rust.splitlines():
        assert line.strip() in card["text/plain"], line
    wanted = [line.split()[0] for line in found.splitlines() if line.startswith("SC")]
    assert codes(cell)[1:] == wanted
    ran = run_translated(notebook, tiny, next_cell(cell), GIVEN.get(name, ""))
    if name == "an error that is printed":
        assert "The error is: SC0201" in ran.stream()
    if name == "a fallback for the argument":
        assert "SC0102" in codes(ran)


@pytest.mark.sampled
@pytest.mark.parametrize("name", RUN)
def test_a_translated_cell_runs(notebook, tiny, name):
    run_translated(notebook, tiny, CELLS[name][1], RUN[name])


def test_numbers_are_those_of_python(notebook):
    """The cell of plain Python prints what Python prints."""
    code = CELLS["Python without Keras"][0].split("x = lambda")[0]
    expected = subprocess.run(["python3", "-c", code], capture_output=True, text=True, check=True).stdout
    notebook.run("%reset")
    assert notebook.run(next_cell(pasted(notebook, code))).stream() == expected


def test_the_mistakes_are_underlined_in_the_python_text(notebook):
    python = ARTICLES["an argument that needs a strategy, and the call without it"][0]
    cell = pasted(notebook, python)
    (card,) = [each for each in cell.diagnostics if each[DIAGNOSTIC]["code"] == "SC0102"]
    span = card[DIAGNOSTIC]["labels"][0]["place"]["span"]
    assert python.encode()[span["start"]:span["end"]].decode() == "steps_per_execution=16"
    assert "^" in card["text/plain"] and "steps_per_execution=16" in card["text/plain"]
    fixed = applied(python, card[DIAGNOSTIC]["fixes"][0])
    assert "SC0102" not in codes(pasted(notebook, fixed))


def test_a_program_that_executes_a_notebook_gets_an_error(notebook):
    """Nobody is there to run the cell below: the cell has failed."""
    cell = notebook.execute("import tensorflow as tf\nmodel = tf.keras.Sequential([tf.keras.layers.Dense(1)])")
    check_error(cell, "SC1013", "this is Python", line=1)
    assert "let model = Sequential([Dense(1)])?;" in cell.shown()


def test_a_line_for_ipython_is_left_out(notebook):
    """Above Python it is no unknown magic; above Rust it is a note."""
    python, rust, _ = CELLS["lines for IPython"]
    python = python[python.index("%matplotlib"):]
    for line in ("%matplotlib inline", "%load_ext tensorboard"):
        cell = pasted(notebook, python.replace("%matplotlib inline", line)).ok()
        assert next_cell(cell) == rust
        assert codes(cell)[0] == "SC1013"
    cell = notebook.run("%matplotlib inline\n%load_ext autoreload\nlet x = 1;")
    assert cell.stream("stderr").count("has nothing to set here") == 2


@pytest.mark.parametrize("interactive", [True, False])
def test_a_cell_of_imports_is_a_note(notebook, interactive):
    """There is nothing to do, also where nobody sits: the cell has not failed."""
    code = "import numpy as np\nimport pandas as pd\nimport matplotlib.pyplot as plt"
    cell = pasted(notebook, code) if interactive else notebook.execute(code)
    cell.ok()
    card = check_card(cell, "SC1013", "nothing to import")
    assert card[DIAGNOSTIC]["severity"] == "note"
    assert not cell.reply["payload"]


# One line each: what stands on the card.
SHORT = {
    "train_ds = tf.data.Dataset.from_tensor_slices((dict(encodings), labels)).shuffle(1000).batch(16)": "this is Python",
    "tf.keras.utils.plot_model(model)": "this is Python",
    "[len(t) for t in texts]": "a list made by a loop",
    "train_df, val_df = train_test_split(df, test_size=0.2)": "stratified_split",
    "preds = model.predict(tokenizer([\"a\"], padding=True))\nprint(np.argmax(preds.logits, axis=1))": "this is Python",
    "x = " + "not " * 20_000 + "True": "deeper nesting than is read",
}


@pytest.mark.parametrize("code", SHORT, ids=lambda code: code[:30])
def test_short_cells_of_python_are_recognized(notebook, code):
    notebook.run("%reset")
    cell = pasted(notebook, code)
    assert codes(cell)[0] == "SC1013"
    assert SHORT[code] in " ".join(cell.shown().split())


def test_a_slip_of_rust_is_no_python(notebook):
    """A `;` that is missing, and names of the notebook that libraries of Python have too."""
    notebook.run("%reset")
    cell = notebook.execute("let mut np = vec![1];\nnp.push(2)\nnp.len()")
    assert "SC1013" not in codes(cell)
    notebook.run("let np = \"text\";")
    assert "4" in notebook.run("np.len()").shown()


def test_the_environment_is_set_by_a_translated_cell(notebook):
    cell = pasted(notebook, "import os\nos.environ[\"STRATOSCOPE_OF_PYTHON\"] = \"a b\"").ok()
    assert "STRATOSCOPE_OF_PYTHON=a b" in notebook.run(next_cell(cell)).stream()


def test_what_is_not_translated_is_named_with_its_line(notebook):
    cell = pasted(notebook, CELLS["a layer that is not here"][0])
    check_error(cell, "SC1013")
    plain = " ".join(cell.shown().split())
    for text in ("line 2", "the data set `mnist` is not here", "there is no layer `Conv2D` here", "it needs `model`, which line 3"):
        assert text in plain, plain


def test_names_of_the_notebook_are_not_asked_for(notebook):
    notebook.run("%reset")
    code = "import tensorflow as tf\nmodel.compile(optimizer='adam', loss='mse')"
    assert "`model`" in " ".join(pasted(notebook, code).shown().split("to be given")[1:])
    notebook.run(SMALL)
    assert "to be given" not in pasted(notebook, code).shown()


def test_a_notebook_is_translated(notebook, stratoscope, tmp_path):
    cells = [
        nbformat.v4.new_markdown_cell("# A model"),
        nbformat.v4.new_code_cell("import tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy()"),
        nbformat.v4.new_code_cell("with strategy.scope():\n    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(4,))])\n"
                                  "    model.compile(optimizer='adam', loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))"),
        nbformat.v4.new_code_cell("x = [[1, 2, 3, 4], [4, 3, 2, 1]]\ny = [0, 1]\nmodel.fit(x, y, epochs=2)"),
        nbformat.v4.new_code_cell("this is no Python"),
    ]
    source, output = tmp_path / "keras.ipynb", tmp_path / "rust.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), source)
    ran = subprocess.run([stratoscope, "translate", source, "--output", output], capture_output=True, text=True, check=True)
    assert "written to" in ran.stdout
    translated = nbformat.read(output, as_version=4)
    nbformat.validate(translated)
    assert translated.metadata.kernelspec.name == "stratoscope"
    sources = [cell.source for cell in translated.cells]
    assert sources[0] == "# A model" and sources[4] == "// this is no Python"
    notebook.run("%reset")
    for code in sources[1:]:
        notebook.run(code)


def test_a_file_is_translated(stratoscope, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(ARTICLES["an argument that needs a strategy, and the call without it"][0])
    ran = subprocess.run([stratoscope, "translate", path], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ARTICLES["an argument that needs a strategy, and the call without it"][1]
    assert "SC0102" in ran.stderr and "train.py" in ran.stderr
    path.write_text("let x = 1;")
    ran = subprocess.run([stratoscope, "translate", path], capture_output=True, text=True)
    assert ran.returncode == 1 and "holds no Python" in ran.stderr
