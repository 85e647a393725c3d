"""The programs that the bench runs: our examples, built once, and PyTorch in an environment of its own."""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "bench"


def log(text):
    print(text, file=sys.stderr, flush=True)


def example(name):
    """The program of an example, built."""
    # The whole workspace: one crate alone would be built with other features, and burn again.
    subprocess.run(["cargo", "build", "-q", "--workspace", "--locked", "--example", name], check=True, cwd=ROOT)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return str(target / "debug/examples" / name)


class Failed(Exception):
    """A program ended with an error; its text is the first line that says why."""


def last_json(command, **environment):
    """What a program prints in its last line."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
                          env=os.environ | environment)
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        coded = [line for line in lines if "SC0" in line]
        raise Failed((coded or lines[-1:] or ["it ended without a word"])[0])
    return json.loads(done.stdout.splitlines()[-1])


def torch_python():
    python = WORK / "torch" / "bin" / "python"
    if not python.exists():
        log("installing PyTorch and transformers")
        subprocess.run([sys.executable, "-m", "venv", str(WORK / "torch")], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "torch", "transformers"], check=True)
    return python
