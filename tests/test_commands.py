"""The `stratoscope` command: run, install, uninstall, doctor, explain."""

import io
import json
import os
import pathlib
import signal
import subprocess
import time

import nbformat
import pexpect
import pytest
from jupyter_client.kernelspec import KernelSpecManager

from cell_files import applied
from kernel_client import DIAGNOSTIC, without_ansi


@pytest.fixture
def command(stratoscope, tmp_path):
    """Runs the command in a folder of the test; returns the finished process."""

    def run(*arguments, env=None, timeout=300):
        return subprocess.run([stratoscope, *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True,
                              timeout=timeout, env=os.environ | (env or {}))

    return run


def notebook(path, *cells, tags=()):
    """Writes a notebook with these code cells; `tags` belong to the last one."""
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    made.cells.insert(0, nbformat.v4.new_markdown_cell("# A small notebook"))
    made.cells[-1].metadata["tags"] = list(tags)
    made.metadata["kernelspec"] = {"name": "stratoscope", "display_name": "Rust", "language": "rust"}
    nbformat.write(made, path)
    return path


def test_run_executes_in_place_when_asked(command, tmp_path):
    path = notebook(tmp_path / "small.ipynb", "let x = 20;", 'println!("printed");\nx + 1')
    before = nbformat.read(path, as_version=4)
    finished = command("run", path, "--inplace")
    assert finished.returncode == 0, finished.stderr
    executed = nbformat.read(path, as_version=4)
    assert [(cell.id, cell.metadata) for cell in executed.cells] == [(cell.id, cell.metadata) for cell in before.cells]
    nbformat.validate(executed)
    assert [cell.cell_type for cell in executed.cells] == ["markdown", "code", "code"]
    assert [cell.get("execution_count") for cell in executed.cells[1:]] == [1, 2]
    stream, result = executed.cells[2].outputs
    assert (stream.output_type, stream.text) == ("stream", "printed\n")
    assert (result.output_type, result.data["text/plain"]) == ("execute_result", "21")


def test_run_in_place_is_deterministic(command, tmp_path):
    """No timestamps, no new ids: a second run leaves the file as it is."""
    path = notebook(tmp_path / "small.ipynb", "let x = 20;", 'println!("printed");\nx', "x + 1")
    assert command("run", path, "--inplace").returncode == 0
    first = path.read_bytes()
    assert command("run", path, "--inplace").returncode == 0
    assert path.read_bytes() == first


def test_run_leaves_the_notebook_alone(command, tmp_path):
    """The executed copy is in the target folder of the workspace, elsewhere beside the notebook."""
    path = notebook(tmp_path / "small.ipynb", "1 + 1")
    before = path.read_bytes()
    (tmp_path / "workspace" / "notebooks").mkdir(parents=True)
    (tmp_path / "workspace" / "Cargo.toml").write_text('[workspace]\nmembers = []\n')
    inside = notebook(tmp_path / "workspace" / "notebooks" / "inside.ipynb", "1 + 1")
    for made, expected in ((path, tmp_path / "small.executed.ipynb"),
                           (inside, tmp_path / "workspace" / "target" / "notebooks" / "inside.ipynb")):
        finished = command("run", made, env={"CARGO_TARGET_DIR": "target"})
        assert finished.returncode == 0, finished.stderr
        assert str(expected) in finished.stdout
        assert nbformat.read(expected, as_version=4).cells[1].outputs[0].data["text/plain"] == "2"
    assert path.read_bytes() == before
    assert command("run", path, "--inplace", "--output", tmp_path / "x.ipynb").returncode != 0, "which of the two?"


def test_run_writes_where_it_is_asked_to(command, tmp_path):
    path = notebook(tmp_path / "small.ipynb", "1 + 1")
    before = path.read_bytes()
    finished = command("run", path, "--output", tmp_path / "done.ipynb")
    assert finished.returncode == 0, finished.stderr
    assert path.read_bytes() == before
    assert nbformat.read(tmp_path / "done.ipynb", as_version=4).cells[1].outputs[0].data["text/plain"] == "2"


def test_run_stops_at_an_error_with_an_exit_code(command, tmp_path):
    path = notebook(tmp_path / "bad.ipynb", "1", "compile!(model, optimiser = 1)?;", "2")
    finished = command("run", path, "--inplace")
    assert finished.returncode != 0
    assert "SC0101" in without_ansi(finished.stderr + finished.stdout)
    executed = nbformat.read(path, as_version=4)
    kinds = [output.output_type for output in executed.cells[2].outputs]
    assert kinds == ["display_data", "error"], "the outputs of the failed cell are kept"
    assert DIAGNOSTIC in executed.cells[2].outputs[0].data
    assert not executed.cells[3].outputs, "the cell after it was not run"


def test_run_shows_the_card_of_a_cell_that_fails(command, tmp_path):
    """The terminal has what a notebook shows: the place, the reason, the fix, and where the outputs are."""
    wrong = "// Too high.\nlet model = 1;\ncompile!(model, optimiser = 1)?;"
    path = notebook(tmp_path / "bad.ipynb", "1", wrong, "2")
    finished = command("run", path)
    shown = finished.stderr
    assert finished.returncode == 1 and "\x1b" not in shown + finished.stdout, "colors are for terminals"
    card = nbformat.read(tmp_path / "bad.executed.ipynb", as_version=4).cells[2].outputs[0].data["text/plain"]
    assert card.strip() in shown, shown
    for part in ("error[SC0101]", "--> Cell In[2], line 3", "^^^^^^^^^", "fix", "Cell In[2], line 3: SC0101",
                 "cell 2 (`// Too high.`) failed", "bad.executed.ipynb"):
        assert part in shown, f"{part!r} is not in:\n{shown}"
    path = notebook(tmp_path / "rustc.ipynb", "let x: i32 = \"text\";")
    shown = command("run", path).stderr
    assert "E0308" in shown and "\x1b" not in shown and 'let x: i32 = "text";' in shown, shown
    allowed = command("run", path, "--allow-errors")
    assert allowed.returncode == 0 and "E0308" in allowed.stderr
    path = notebook(tmp_path / "meant.ipynb", wrong, tags=["expect:SC0101"])
    assert command("run", path).stderr == "", "a card that is expected is in the notebook"


@pytest.mark.parametrize(("settings", "has_colors"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_run_has_colors_on_a_terminal(stratoscope, tmp_path, settings, has_colors):
    path = notebook(tmp_path / "bad.ipynb", "compile!(model, optimiser = 1)?;")
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"} | settings
    output = io.BytesIO()
    terminal = pexpect.spawn(str(stratoscope), ["run", path.name], cwd=str(tmp_path), env=env, timeout=120)
    terminal.logfile_read = output
    terminal.expect(pexpect.EOF)
    terminal.close()
    shown = output.getvalue().decode()
    assert terminal.exitstatus == 1
    assert ("\x1b[1;31m^" in shown) == has_colors and ("\x1b" in shown) == has_colors, shown
    assert "error[SC0101]" in without_ansi(shown)


def test_run_continues_if_the_error_has_the_expected_code(command, tmp_path):
    meant = "compile!(model, optimiser = 1)?;"
    path = notebook(tmp_path / "meant.ipynb", meant, tags=["raises-exception", "expect:SC0101"])
    finished = command("run", path)
    assert finished.returncode == 0 and "(expected)" in finished.stdout
    path = notebook(tmp_path / "other.ipynb", "1 + 1", tags=["raises-exception", "expect:SC0102"])
    finished = command("run", path)
    assert finished.returncode == 1
    assert "ok, but SC0102 was expected" in finished.stdout


def test_notebooks_here_expect_their_errors_by_code(root):
    for path in sorted((root / "notebooks").rglob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            tags = cell.metadata.get("tags", [])
            if "raises-exception" in tags:
                codes = [tag.removeprefix("expect:") for tag in tags if tag.startswith("expect:")]
                assert len(codes) == 1, f"{path.name}, {cell.id}: which error?"


def test_run_writes_the_outputs_so_far_when_it_is_terminated(stratoscope, tmp_path):
    path = notebook(tmp_path / "long.ipynb", "let x = 20;\nx + 1", 'println!("begun");\nsleep(600);', "3")
    process = subprocess.Popen([stratoscope, "run", "--inplace", path.name], cwd=tmp_path, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    begun = next(line for line in process.stdout if line.startswith("cell 2/3"))
    assert "begun" in begun
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    _, output = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, output
    assert "cell 2" in output and "long.ipynb" in output
    executed = nbformat.read(path, as_version=4)
    nbformat.validate(executed)
    first, second, third = executed.cells[1:]
    assert first.outputs[0].data["text/plain"] == "21"
    assert second.outputs[-1].output_type == "error" and second.outputs[-1].ename == "Interrupted"
    assert not third.outputs and third.execution_count is None


def test_run_continues_after_an_expected_error(command, tmp_path):
    path = notebook(tmp_path / "meant.ipynb", "compile!(model, optimiser = 1)?;", tags=["raises-exception"])
    assert command("run", path).returncode == 0
    path = notebook(tmp_path / "allowed.ipynb", "compile!(model, optimiser = 1)?;", "7")
    assert command("run", path, "--allow-errors", "--inplace").returncode == 0
    assert nbformat.read(path, as_version=4).cells[2].outputs[0].data["text/plain"] == "7"


@pytest.mark.parametrize("content", ["", "{}", "not json", '{"cells": 3, "nbformat": 4}'])
def test_run_refuses_invalid_notebooks(command, tmp_path, content):
    path = tmp_path / "odd.ipynb"
    path.write_text(content)
    finished = command("run", path)
    assert finished.returncode != 0
    assert "odd.ipynb" in finished.stderr and "panicked" not in finished.stderr
    assert path.read_text() == content, "what cannot be read is not overwritten"


def test_parameters_are_bound_behind_their_defaults(command, tmp_path):
    path = notebook(tmp_path / "small.ipynb", "let epochs = 1;\nlet name = \"a\";", 'format!("{name}: {epochs}")')
    made = nbformat.read(path, as_version=4)
    made.cells[1].metadata["tags"] = ["parameters"]
    nbformat.write(made, path)
    finished = command("run", path, "-p", "epochs=3", "--parameter", "name=all-MiniLM-L6-v2", "--output", "out.ipynb")
    assert finished.returncode == 0, finished.stderr
    executed = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    nbformat.validate(executed)
    assert executed.cells[2].metadata["tags"] == ["injected-parameters"]
    assert executed.cells[3].outputs[0].data["text/plain"] == '"all-MiniLM-L6-v2: 3"'
    finished = command("run", path, "-p", "epoch=3")
    assert finished.returncode != 0 and "did you mean `epochs`?" in finished.stderr, finished.stderr
    finished = command("run", path, "-p", "epochs")
    assert finished.returncode == 2 and "NAME=VALUE" in finished.stderr, finished.stderr


def test_run_says_that_a_notebook_is_missing(command, tmp_path):
    finished = command("run", tmp_path / "none.ipynb")
    assert finished.returncode != 0
    assert "none.ipynb" in finished.stderr and "panicked" not in finished.stderr


def test_install_and_uninstall_in_a_prefix(command, tmp_path):
    prefix = tmp_path / "prefix"
    finished = command("install", "--no-build", "--prefix", prefix, "--name", "other-name",
                       "--display-name", "Rust, again", "--env", "RUST_LOG=debug", "--env", "EMPTY=")
    assert finished.returncode == 0, finished.stderr
    folder = prefix / "share" / "jupyter" / "kernels" / "other-name"
    spec = json.loads((folder / "kernel.json").read_text())
    assert spec["display_name"] == "Rust, again" and spec["language"] == "rust"
    assert spec["env"]["RUST_LOG"] == "debug" and spec["env"]["EMPTY"] == ""
    assert "{connection_file}" in spec["argv"]
    assert spec.get("interrupt_mode") == "message"
    logos = list(folder.glob("logo-*"))
    assert logos, "a launcher shows a logo"
    found = KernelSpecManager(kernel_dirs=[str(folder.parent)]).find_kernel_specs()
    assert found["other-name"] == str(folder)
    finished = command("uninstall", "--prefix", prefix, "--name", "other-name")
    assert finished.returncode == 0, finished.stderr
    assert not folder.exists()
    finished = command("uninstall", "--prefix", prefix, "--name", "other-name")
    assert finished.returncode != 0 and "other-name" in finished.stderr


def test_install_for_the_user(command, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    # The folders of Rust stay: the test is about Jupyter's folders and must not cause a build.
    real = pathlib.Path.home()
    env = {"HOME": str(home), "XDG_DATA_HOME": "", "JUPYTER_DATA_DIR": str(home / "data"),
           "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(real / ".rustup")),
           "CARGO_HOME": os.environ.get("CARGO_HOME", str(real / ".cargo"))}
    finished = command("install", "--user", "--no-build", env=env)
    assert finished.returncode == 0, finished.stderr
    assert list(home.rglob("kernels/stratoscope/kernel.json"))
    assert command("uninstall", "--user", env=env).returncode == 0
    assert not list(home.rglob("kernel.json"))


def test_install_does_not_overwrite_another_kernel(command, tmp_path):
    folder = tmp_path / "share" / "jupyter" / "kernels" / "python3"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text('{"argv": ["python"], "display_name": "Python", "language": "python"}')
    for verb in ("install", "uninstall"):
        options = ["--no-build"] if verb == "install" else []
        finished = command(verb, *options, "--prefix", tmp_path, "--name", "python3")
        assert finished.returncode != 0, verb
    assert "python" in (folder / "kernel.json").read_text()


@pytest.mark.parametrize("arguments", [["--env", "NOVALUE"], ["--name", "../escape"], ["--name", ""], ["--user", "--sys-prefix"]])
def test_install_refuses_odd_arguments(command, tmp_path, arguments):
    prefix = [] if "--user" in arguments else ["--prefix", tmp_path / "prefix"]
    finished = command("install", "--no-build", *prefix, *arguments)
    assert finished.returncode != 0
    assert finished.stderr and "panicked" not in finished.stderr
    assert not list(tmp_path.rglob("kernel.json"))


def test_doctor_finds_everything_here(command):
    finished = command("doctor")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    lines = finished.stdout.lower()
    for part in ("toolchain", "linker", "library", "temporary files", "vulkan", "cuda", "checkpoint", "jupyter"):
        assert part in lines, part


def test_doctor_says_what_to_do(command, tmp_path):
    finished = command("doctor", env={"PATH": str(tmp_path)})
    assert finished.returncode != 0
    missing = [line for line in finished.stdout.splitlines() if line.startswith("missing")]
    # The compiler that built the library is known without a path; the linker is not.
    assert len(missing) == 1 and "linker" in missing[0] and "→ install a C toolchain" in missing[0], finished.stdout


def test_explain(command):
    finished = command("explain", "SC0102")
    assert finished.returncode == 0
    assert "steps_per_execution" in finished.stdout
    finished = command("explain", "E0308")
    assert finished.returncode == 0 and "did not match" in finished.stdout
    finished = command("explain", "SC9999")
    assert finished.returncode != 0 and "SC9999" in finished.stderr
    assert "did you mean `SC0201`?" in command("explain", "SC201").stderr


def test_explain_applies_a_fix_of_a_card(stratoscope):
    def edit(start, end, replacement):
        return {"place": {"span": {"start": start, "end": end}}, "replacement": replacement}

    fix = {"title": "", "edits": [edit(4, 4, ","), edit(0, 2, "a")]}
    assert applied("ä(1 2)\n", fix) == "a(1, 2)\n"
    for given in ("no JSON", '{"cell": "a"}', '{"cell": "a", "fix": {"title": "", "edits": []}}'):
        finished = subprocess.run([stratoscope, "explain", "--apply"], input=given, capture_output=True, text=True)
        assert finished.returncode != 0 and finished.stderr and not finished.stdout, given
