"""Three tasks of a new user, each from the first command to the result, without the time that a person thinks and types:
from the wheel to the first trained model, from a pasted Keras cell to the running one, from an error to its correction."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time

from programs import ROOT, WORK, log

DIAGNOSTIC = "application/vnd.stratoscope.diagnostic+json"
FIRST = [
    "let (train, dev) = make_classification(256, 8, 3, 1)?.split(0.25)?;",
    'let model = Sequential([Dense(16).activation("relu"), Dense(3)])?;\n'
    "compile!(model, optimizer = Adam::new(0.01), loss = SparseCategoricalCrossentropy { from_logits: true }, metrics = [accuracy()])?;\n"
    "let history = fit!(model, train, epochs = 3, batch_size = 32, validation_data = dev)?;",
]
KERAS = """import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(16, activation="relu", input_shape=(8,)),
        tf.keras.layers.Dense(1),
    ])
    model.compile(optimizer=tf.keras.optimizers.Adam(0.01), loss="mse", metrics=["mae"])
model.fit(x, y, epochs=2, batch_size=32)
"""
DATA = """let x: Vec<[f32; 8]> = (0..256).map(|row| std::array::from_fn(|column| ((row * 7 + column * 3) % 11) as f32 / 11.0)).collect();
let y: Vec<f32> = x.iter().map(|row| row.iter().sum()).collect();"""
WRONG = FIRST[1].replace("optimizer =", "optimiser =")


def wheel():
    """The wheel, made once."""
    folder = WORK / "wheels"
    shutil.rmtree(folder, ignore_errors=True)
    log("making the wheel")
    subprocess.run([ROOT / "target/debug/stratoscope", "package", "--output", folder, "--level", "3"], check=True, stdout=subprocess.DEVNULL)
    (made,) = folder.iterdir()
    return made


def install_to_first_result(made):
    """Seconds of each step in a new environment, a new home and an empty cache."""
    home = WORK / "newcomer"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    cells = [{"cell_type": "code", "id": f"c{index}", "metadata": {}, "execution_count": None, "outputs": [], "source": cell}
             for index, cell in enumerate(FIRST)]
    spec = {"kernelspec": {"name": "stratoscope", "display_name": "Rust", "language": "rust"}}
    (home / "first.ipynb").write_text(json.dumps({"cells": cells, "metadata": spec, "nbformat": 4, "nbformat_minor": 5}))
    environment = {name: os.environ[name] for name in ("RUSTUP_HOME", "CARGO_HOME") if name in os.environ}
    rustup = os.path.expanduser("~/.rustup")
    environment = {"RUSTUP_HOME": rustup, **environment, "HOME": str(home), "PATH": os.environ["PATH"], "STRATOSCOPE_DEVICE": "cpu"}
    python, program = home / "venv/bin/python", home / "venv/bin/stratoscope"
    steps = {}
    for name, command in {
        "python -m venv": [sys.executable, "-m", "venv", home / "venv"],
        "pip install": [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", made],
        "stratoscope install": [program, "install", "--prefix", home / "venv"],
        "first training": [program, "run", "first.ipynb"],
    }.items():
        began = time.perf_counter()
        done = subprocess.run([str(word) for word in command], cwd=home, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{name}: {done.stdout}{done.stderr}")
        steps[name] = time.perf_counter() - began
    shutil.rmtree(home, ignore_errors=True)
    return steps


def cell(session, code):
    """Seconds, the reply and the outputs of a cell that may fail."""
    outputs = []
    began = time.perf_counter()
    reply = session.client.execute_interactive(code, timeout=600, allow_stdin=False, output_hook=outputs.append)
    return time.perf_counter() - began, reply["content"], [message["content"] for message in outputs]


def pasted(session):
    """Seconds until the card of a pasted Keras cell, and of the cell that it proposes."""
    session.run(DATA)
    card, reply, _ = cell(session, KERAS)
    (proposed,) = [part["text"] for part in reply["payload"] if part["source"] == "set_next_input"]
    return {"card of the pasted cell": card, "the proposed cell": session.run(proposed)}


def corrected(session):
    """Seconds until the card of an error, and of the cell with its fix applied."""
    session.run(FIRST[0])
    card, reply, outputs = cell(session, WRONG)
    (diagnostic,) = [out["data"][DIAGNOSTIC] for out in outputs if DIAGNOSTIC in out.get("data", {})]
    if (reply["status"], diagnostic["code"]) != ("error", "SC0101"):
        raise RuntimeError(f"not the expected error: {reply}")
    (edit,) = next(fix["edits"] for fix in diagnostic["fixes"] if fix["edits"])
    span, text = edit["place"]["span"], WRONG.encode()
    fixed = text[: span["start"]] + edit["replacement"].encode() + text[span["end"] :]
    return {"card of the error": card, "the corrected cell": session.run(fixed.decode())}


def in_new_kernel(task, new_session):
    session = new_session()
    try:
        session.kernel_info()
        return task(session)
    finally:
        session.close()


def measure(repeats, new_session):
    """Prints a table of medians."""
    made = wheel()
    rows = []
    for _ in range(repeats):
        tasks = [in_new_kernel(task, new_session) for task in (pasted, corrected)]
        rows.append({**install_to_first_result(made), **tasks[0], **tasks[1]})
        log(json.dumps({name: round(seconds, 2) for name, seconds in rows[-1].items()}))
    tasks = {
        "install to first result": ["python -m venv", "pip install", "stratoscope install", "first training"],
        "pasted cell to running cell": ["card of the pasted cell", "the proposed cell"],
        "error to fix": ["card of the error", "the corrected cell"],
    }
    print("| task | s | of which |\n| --- | --- | --- |")
    for task, steps in tasks.items():
        total = statistics.median(sum(row[step] for step in steps) for row in rows)
        parts = ", ".join(f"{step} {statistics.median(row[step] for row in rows):.2f}" for step in steps)
        print(f"| {task} | {total:.2f} | {parts} |")
