"""Incorrect calls of the DSL, and Python in a cell: each has a card with the corrected line. After the edit that the
card offers, the cell runs."""

import pytest

from kernel_client import DIAGNOSTIC, check_card, check_error

GIVEN = """let model = Sequential([Dense(2).input_shape(2)])?;
let rows = [[1.0_f32, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]];
let train = Dataset::from_arrays(rows, [0, 1, 0, 1])?;
let dev = Dataset::from_arrays(rows, [0, 1, 0, 1])?;
let x = vec![[1.0_f32, 2.0], [3.0, 4.0]];
let y = vec![0, 1];"""

LOSS = "loss = SparseCategoricalCrossentropy { from_logits: true }"
# Before a cell that trains: others compile without a loss.
COMPILED = f"compile!(model, optimizer = AdamW::new(1e-3), {LOSS})?;"

# The source, the code of the diagnostic, and the source after applying the first fix until there is none.
FIXED = {
    # SC0122
    "no comma after the model": (
        "compile!(model optimizer = AdamW::new(1e-3))?;", "SC0122", "compile!(model, optimizer = AdamW::new(1e-3))?;"),
    "no comma between arguments": (
        f"compile!(model,\n    optimizer = AdamW::new(1e-3)\n    {LOSS})?;", "SC0122",
        f"compile!(model,\n    optimizer = AdamW::new(1e-3),\n    {LOSS})?;"),
    "no comma after the data": (
        "fit!(model, train epochs = 1)?;", "SC0122", "fit!(model, train, epochs = 1)?;"),
    "no comma between operands": ("evaluate!(model dev)?;", "SC0122", "evaluate!(model, dev)?;"),
    # SC0123
    "a colon": (
        "compile!(model, optimizer: AdamW::new(1e-3))?;", "SC0123", "compile!(model, optimizer = AdamW::new(1e-3))?;"),
    "two colons": (
        "fit!(model, train, epochs: 1, batch_size : 2)?;", "SC0123", "fit!(model, train, epochs = 1, batch_size = 2)?;"),
    "by position": (
        'compile!(model, AdamW::new(1e-3), "sparse_categorical_crossentropy", ["accuracy"])?;', "SC0123",
        'compile!(model, optimizer = AdamW::new(1e-3), loss = "sparse_categorical_crossentropy", metrics = ["accuracy"])?;'),
    "epochs by position": ("fit!(model, train, 1)?;", "SC0123", "fit!(model, train, epochs = 1)?;"),
    "by position behind names": (
        'compile!(model, loss = "sparse_categorical_crossentropy", AdamW::new(1e-3))?;', "SC0123",
        'compile!(model, loss = "sparse_categorical_crossentropy", optimizer = AdamW::new(1e-3))?;'),
    "validation data by position": (
        "fit!(model, train, epochs = 1, dev)?;", "SC0123", "fit!(model, train, epochs = 1, validation_data = dev)?;"),
    # SC0124
    "no model": (
        "compile!(optimizer = AdamW::new(1e-3))?;", "SC0124", "compile!(model, optimizer = AdamW::new(1e-3))?;"),
    "no model to train": ("fit!(train, epochs = 1)?;", "SC0124", "fit!(model, train, epochs = 1)?;"),
    "no data": ("let train = train.take(4);\nfit!(model, epochs = 1)?;", "SC0124",
                "let train = train.take(4);\nfit!(model, train, epochs = 1)?;"),
    "swapped": ("fit!(train, model, epochs = 1)?;", "SC0124", "fit!(model, train, epochs = 1)?;"),
    "swapped, to be evaluated": ("evaluate!(dev, model)?;", "SC0124", "evaluate!(model, dev)?;"),
    "two arrays": ("fit!(model, &x, &y, epochs = 1)?;", "SC0124", "fit!(model, Dataset::from_arrays(&x, &y)?, epochs = 1)?;"),
    # SC0125
    "an activation by name": (
        'let layer = Dense(10, activation = "relu");', "SC0125", 'let layer = Dense(10).activation("relu");'),
    "units by name": ("let layer = Dense(units = 10);", "SC0125", "let layer = Dense(10);"),
    "what Dense has not": (
        'let layer = Dense(10, activation = "relu", use_bias = false);', "SC0125", 'let layer = Dense(10).activation("relu");'),
    "a layer in a model": (
        'let small = Sequential([Dense(4, activation = "relu", input_shape = (2,)), Dense(2)])?;', "SC0125",
        'let small = Sequential([Dense(4).activation("relu").input_shape((2,)), Dense(2)])?;'),
    "logits by name": (
        "compile!(model, optimizer = AdamW::new(1e-3), loss = SparseCategoricalCrossentropy(from_logits = true))?;", "SC0125",
        f"compile!(model, optimizer = AdamW::new(1e-3), {LOSS})?;"),
    "logits as in Python": (
        "compile!(model, optimizer = AdamW::new(1e-3), loss = SparseCategoricalCrossentropy(from_logits = True))?;", "SC0125",
        f"compile!(model, optimizer = AdamW::new(1e-3), {LOSS})?;"),
    "an optimizer's rate by name": (
        "compile!(model, optimizer = Adam(learning_rate = 1e-3))?;", "SC0125", "compile!(model, optimizer = Adam::new(1e-3))?;"),
    "an optimizer's arguments by name": (
        "compile!(model, optimizer = AdamW(1e-3, weight_decay = 0.1))?;", "SC0125",
        "compile!(model, optimizer = AdamW::new(1e-3).weight_decay(0.1))?;"),
    "patience by name": (
        'fit!(model, train, epochs = 1, validation_data = dev, callbacks = [EarlyStopping(patience = 2, monitor = "val_loss")])?;',
        "SC0125",
        'fit!(model, train, epochs = 1, validation_data = dev, callbacks = [EarlyStopping::new().patience(2).monitor("val_loss")])?;'),
    "a schedule's values by name": (
        "let rate = warmup_linear(peak = 1e-3, share = 0.1);", "SC0125", "let rate = warmup_linear(1e-3, 0.1);"),
    "a function of one's own": (
        "fn area(width: f64, height: f64) -> f64 { width * height }\narea(2.0, height = 3.0)", "SC0125",
        "fn area(width: f64, height: f64) -> f64 { width * height }\narea(2.0, 3.0)"),
    # SC0126
    "compile as a method": (
        "model.compile(optimizer = AdamW::new(1e-3))", "SC0126", "compile!(model, optimizer = AdamW::new(1e-3))?"),
    "compile as a method, on lines": (
        f"model.compile(\n    optimizer = AdamW::new(1e-3),\n    {LOSS},\n);", "SC0126",
        f"compile!(model,\n    optimizer = AdamW::new(1e-3),\n    {LOSS},\n)?;"),
    "fit as a method": ("model.fit(&train, epochs = 1);", "SC0126", "fit!(model, train, epochs = 1)?;"),
    "fit as a method, with arrays": (
        "let history = model.fit(&x, &y, epochs = 1, batch_size = 2)?;", "SC0126",
        "let history = fit!(model, Dataset::from_arrays(&x, &y)?, epochs = 1, batch_size = 2)?;"),
    "fit as a method, arrays by name": (
        "model.fit(x = &x, y = &y, epochs = 1);", "SC0126", "fit!(model, Dataset::from_arrays(&x, &y)?, epochs = 1)?;"),
    "evaluate as a method": ("let scores = model.evaluate(&dev);", "SC0126", "let scores = evaluate!(model, dev)?;"),
    "evaluate as a method, with a size": (
        "model.evaluate(&dev, batch_size = 2);", "SC0126", "evaluate!(model, dev, batch_size = 2)?;"),
    "no !": ("compile(model, optimizer = AdamW::new(1e-3))?;", "SC0126", "compile!(model, optimizer = AdamW::new(1e-3))?;"),
    "no ! and no ?": ("fit(model, train, epochs = 1);", "SC0126", "fit!(model, train, epochs = 1)?;"),
    "a strategy without new": (
        "let two = MirroredStrategy();\ndrop(two);", "SC0126", "let two = MirroredStrategy::new()?;\ndrop(two);"),
    "a strategy of named devices": (
        'let two = MirroredStrategy(["cpu:0"]);\ndrop(two);', "SC0126",
        "let two = MirroredStrategy::on([cpu(0)])?;\ndrop(two);"),
    "a strategy of TensorFlow's devices": (
        'let one = OneDeviceStrategy(device = "/cpu:0");\ndrop(one);', "SC0125",
        "let one = OneDeviceStrategy::new(cpu(0))?;\ndrop(one);"),
    "an optimizer without new": ("let o = Adam(1e-3);", "SC0126", "let o = Adam::new(1e-3);"),
    "a loss with brackets": (
        "compile!(model, optimizer = AdamW::new(1e-3), loss = SparseCategoricalCrossentropy())?;", "SC0126",
        f"compile!(model, optimizer = AdamW::new(1e-3), {LOSS})?;"),
    "a loss without settings": ("let l = MeanSquaredError();", "SC0126", "let l = MeanSquaredError;"),
    # SC0127
    "None": ("fit!(model, train, epochs = 1, validation_data = None)?;", "SC0127", "fit!(model, train, epochs = 1)?;"),
    "None for a strategy": (
        "compile!(model, optimizer = AdamW::new(1e-3), strategy = None)?;", "SC0127",
        "compile!(model, optimizer = AdamW::new(1e-3), strategy = none)?;"),
    "True": ("fit!(model, train, epochs = 1, shuffle = True)?;", "SC0103", "fit!(model, train, epochs = 1, shuffle = true)?;"),
    "texts in single quotes": (
        "compile!(model, optimizer = 'adamw', loss = 'sparse_categorical_crossentropy')?;", "SC0127",
        'compile!(model, optimizer = "adamw", loss = "sparse_categorical_crossentropy")?;'),
    "a line of Keras": (
        "model.compile(optimizer='adam', loss='sparse_categorical_crossentropy')", "SC0127",
        'compile!(model, optimizer="adam", loss="sparse_categorical_crossentropy")?'),
    "a comment": ("# train\nfit!(model, train, epochs = 1)?;", "SC0127", "// train\nfit!(model, train, epochs = 1)?;"),
    # SC0128
    "the block behind the brackets": (
        "let two = MirroredStrategy::logical(2)?;\nscope!(two) {\n    let inside = 1;\n}\ndrop(two);", "SC0128",
        "let two = MirroredStrategy::logical(2)?;\nscope!(two, {\n    let inside = 1;\n});\ndrop(two);"),
    "no comma before the block": (
        "let two = MirroredStrategy::logical(2)?;\nscope!(two {\n    let inside = 1;\n});\ndrop(two);", "SC0128",
        "let two = MirroredStrategy::logical(2)?;\nscope!(two, {\n    let inside = 1;\n});\ndrop(two);"),
    "no ! of scope": (
        "let two = MirroredStrategy::logical(2)?;\nscope(two, {\n    let inside = 1;\n});\ndrop(two);", "SC0128",
        "let two = MirroredStrategy::logical(2)?;\nscope!(two, {\n    let inside = 1;\n});\ndrop(two);"),
    # SC0129
    "a misspelt strategy": (
        "let strategy = MirroredStrategy::logical(2)?;\nlet stage = 1;\nscope!(stategy, {\n    let inside = stage;\n});\ndrop(strategy);",
        "SC0129",
        "let strategy = MirroredStrategy::logical(2)?;\nlet stage = 1;\nscope!(strategy, {\n    let inside = stage;\n});\ndrop(strategy);"),
    # SC1012
    "no closing bracket": (
        "compile!(model, optimizer = AdamW::new(1e-3)?;", "SC1012", "compile!(model, optimizer = AdamW::new(1e-3))?;"),
    "no closing bracket on lines": (
        f"compile!(model,\n    optimizer = AdamW::new(1e-3,\n    {LOSS},\n)?;", "SC1012",
        f"compile!(model,\n    optimizer = AdamW::new(1e-3),\n    {LOSS},\n)?;"),
    "no closing brace of a scope": (
        "scope!(two, {\n    let a = 1;\n);", "SC1012", None),
    "no closing quote": (
        'compile!(model, optimizer = "adamw)?;', "SC1012", 'compile!(model, optimizer = "adamw")?;'),
    # SC1014
    "a scope in a function": (
        "fn build(two: &MirroredStrategy) {\n    scope!(two, {\n        let a = 1;\n    });\n}", "SC1014",
        "fn build(two: &MirroredStrategy) -> Result<(), Box<dyn std::error::Error>> {\n    scope!(two, {\n        let a = 1;\n"
        "    });\n    Ok(())\n}"),
    "a question mark in a function": (
        "fn count(rows: &[[f32; 2]]) -> usize {\n    let data = Dataset::from_arrays(rows, [0, 1])?;\n    data.len()\n}", "SC1014",
        "fn count(rows: &[[f32; 2]]) -> Result<usize, Box<dyn std::error::Error>> {\n"
        "    let data = Dataset::from_arrays(rows, [0, 1])?;\n    Ok(data.len())\n}"),
    # SC0105
    "a loss by some of its words": (
        'compile!(model, optimizer = AdamW::new(1e-3), loss = "sparse_crossentropy")?;', "SC0105",
        'compile!(model, optimizer = AdamW::new(1e-3), loss = "sparse_categorical_crossentropy")?;'),
}

# Python that is not just a spelling: one card, with the corresponding Rust. tests/test_python_cells.py has more.
PYTHON = {
    "a model": (
        'model = Sequential([\n    Dense(10, activation="relu"),  # hidden\n    Dense(2),\n])',
        ['let model = Sequential([Dense(10).activation("relu"), Dense(2)])?;']),
    "a scope": ("with strategy.scope():\n    model = Sequential([Dense(1)])", ["scope!(strategy, {", "let model = Sequential([Dense(1)])?;"]),
    "an import": ("import tensorflow as tf", []),
    "an import of something else": ("from pathlib import Path", []),
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

# Nothing is wrong with these.
FINE = {
    "no metrics": f"compile!(model, optimizer = AdamW::new(1e-3), {LOSS}, metrics = [])?;",
    "no metrics in a vector": f"compile!(model, metrics = vec![], optimizer = AdamW::new(1e-3), {LOSS})?;",
    "a call as a text": 'println!("{}", stringify!(compile!(model, optimiser = 1)));',
    "a call in a comment and a text": '// compile!(model optimizer = 1)\nlet s = "fit!(train, model)"; /* model.fit(x = 1) */',
    "a call in a macro of one's own": (
        "macro_rules! train { ($m:expr, $d:expr) => { fit!($m, $d, epochs = 1, verbose = false) } }\ntrain!(model, train)?;"),
    "a macro of one's own with its own form": (
        "macro_rules! later { ($($t:tt)*) => { 1 } }\nlater!(compile!(model optimizer = 3))"),
    "a method of one's own": (
        "struct Line; impl Line { fn fit(&self, x: &[f32], y: &[f32]) -> usize { x.len() + y.len() } }\n"
        "Line.fit(&[1.0], &[2.0])"),
    "a function of one's own": "fn fit(x: u8) -> u8 { x }\nfit(3)",
    "lifetimes and characters": (
        "fn first<'a>(a: &'a str, b: &'a str) -> &'a str { if a > b { a } else { b } }\nfirst(\"a\", \"b\").contains('b')"),
    "a generic value": "let epochs = 1;\nfit!(model, train, epochs = (epochs as f64).max(1.0) as usize)?;",
}


@pytest.fixture(scope="module", autouse=True)
def given(kernel):
    kernel.run(GIVEN)


def prepare(kernel, code):
    if "fit" in code or "evaluate" in code or "train!" in code:
        kernel.run(COMPILED)


def errors(cell):
    return [bundle[DIAGNOSTIC] for bundle in cell.diagnostics if bundle[DIAGNOSTIC]["severity"] == "error"]


def applied(code, fix):
    """The cell after a fix."""
    text = code.encode()
    edits = sorted(fix["edits"], key=lambda edit: edit["place"]["span"]["start"], reverse=True)
    for edit in edits:
        span = edit["place"]["span"]
        text = text[:span["start"]] + edit["replacement"].encode() + text[span["end"]:]
    return text.decode()


@pytest.mark.sampled
@pytest.mark.parametrize("name", FIXED)
def test_a_call_is_explained_and_the_fix_works(kernel, name):
    code, ename, expected = FIXED[name]
    prepare(kernel, code)
    cell = kernel.execute(code)
    assert cell.errors, f"{code!r} is no error"
    check_error(cell, ename)
    card = check_card(cell, ename)[DIAGNOSTIC]
    assert card["fixes"] and card["labels"], card
    if expected is None:
        return
    fixed = code
    for _ in range(8):
        fixable = [error for error in errors(cell) if error["fixes"] and error["fixes"][0]["edits"]]
        if not fixable:
            break
        fixed = applied(fixed, fixable[0]["fixes"][0])
        cell = kernel.execute(fixed)
    assert fixed == expected
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


@pytest.mark.sampled
@pytest.mark.parametrize("name", FINE)
def test_correct_cells_have_no_card(kernel, name):
    prepare(kernel, FINE[name])
    cell = kernel.run(FINE[name])
    assert not errors(cell)
