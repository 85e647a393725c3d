"""Files of other users and other containers: configuration that names programs to run, folders of kernels in other
containers, variables that name missing folders."""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

import pytest
from jupyter_client.kernelspec import KernelSpecManager

from conftest import STRATOSCOPE
from kernel_client import Kernel

NOBODY = 65534


@pytest.fixture
def shared():
    """A folder that is writable by everyone, like the system's temporary folder, with a short path."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="shared-", dir="/tmp"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def as_stranger(script, folder):
    """Runs a command as another user of the machine."""
    if os.geteuid() == 0:
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        subprocess.run(["sh", "-c", script], cwd=folder, check=True, umask=0o022, **who)
    else:
        # Only we can distinguish their effect from ours.
        subprocess.run(["sh", "-c", script], cwd=folder, check=True)


class Trap:
    """Configuration that names a program; a process that trusts it runs the program, which leaves a mark."""

    def __init__(self, folder):
        self.folder = folder
        self.marks = folder / "marks"
        program = folder / "program"
        as_stranger(f"mkdir -m 0777 {self.marks}", folder)
        # As a wrapper it is called with the real program before its arguments.
        write(program, f'#!/bin/sh\necho "$0 $*" > {self.marks}/$$\ncase "$1" in *rustc*) exec "$@";; esac\nexit 1\n', 0o755)
        toolchain = folder / "toolchain" / "bin"
        as_stranger(f"mkdir -p {toolchain} && cp {program} {toolchain}/rustc && cp {program} {toolchain}/cargo", folder)

    def set_in(self, folder):
        """Writes the files that rustup, cargo and evcxr would read into a folder."""
        program = self.folder / "program"
        as_stranger(f"mkdir -p {folder}/.cargo", self.folder)
        write(folder / "rust-toolchain.toml", f'[toolchain]\npath = "{self.folder}/toolchain"\n')
        write(folder / ".cargo" / "config.toml",
              f'[build]\nrustc-wrapper = "{program}"\nrustc-workspace-wrapper = "{program}"\n'
              f'[target.x86_64-unknown-linux-gnu]\nlinker = "{program}"\n[target.aarch64-unknown-linux-gnu]\nlinker = "{program}"\n')
        write(folder / "evcxr.toml", f'[evcxr]\ntmpdir = "{self.folder}"\nsccache = "{program}"\n')

    def sprung(self):
        return [mark.read_text() for mark in self.marks.iterdir()]

    def reset(self):
        for mark in self.marks.iterdir():
            mark.unlink()


def write(path, text, mode=0o644):
    script = f"cat > {path} <<'END'\n{text}END\nchmod {mode:o} {path}"
    as_stranger(script, path.parent)


def crate(folder):
    """A crate of our own, which a notebook may depend on."""
    (folder / "src").mkdir(parents=True)
    (folder / "Cargo.toml").write_text('[package]\nname = "own"\nversion = "0.1.0"\nedition = "2024"\n[workspace]\n')
    (folder / "src" / "lib.rs").write_text("pub fn seven() -> u32 { 7 }\n")
    # So that something is linked on the way.
    (folder / "build.rs").write_text("fn main() {}\n")
    return folder


def test_configuration_of_another_user_is_not_read(shared, tmp_path):
    trap = Trap(shared)
    notebooks = shared / "notebooks"
    as_stranger(f"mkdir -m 0777 {notebooks}", shared)
    own = crate(tmp_path / "own")
    # cargo and rustup themselves walk into it.
    trap.set_in(shared)
    probe = crate(notebooks / "probe")
    toolchain = pathlib.Path(subprocess.run(["rustc", "--print", "sysroot"], cwd="/", capture_output=True, text=True,
                                            check=True).stdout.strip())
    subprocess.run([toolchain / "bin" / "cargo", "check", "-q"], cwd=probe, capture_output=True)
    assert trap.sprung(), "the trap does not work"
    shutil.rmtree(probe)
    trap.reset()
    # And there may be a workspace that includes all folders below.
    write(shared / "Cargo.toml", '[workspace]\nmembers = ["*/cells"]\n')
    trap.set_in(notebooks)

    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RUSTUP_TOOLCHAIN", "CARGO_TARGET"))}
    environment["TMPDIR"] = str(shared)
    with Kernel(cwd=notebooks, env=environment) as kernel:
        assert kernel.run("1 + 1").shown() == "2"
        (home,) = {path.parent for path in shared.glob("stratoscope-*/evcxr.toml")}
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        cell = kernel.run(f'%dep own = {{ path = "{own}" }}\nown::seven()')
        assert cell.of_kind("execute_result")[0]["data"]["text/plain"] == "7"
        assert "did not match" in kernel.run("%explain E0308").shown()
        assert kernel.run("!pwd").stream().strip() == str(notebooks), "cells run in the notebook's folder"
        kernel.run("%save saved.rs 1")
        assert (notebooks / "saved.rs").read_text() == "1 + 1\n"
    for arguments in (["doctor"], ["explain", "E0308"]):
        subprocess.run([STRATOSCOPE, *arguments], cwd=notebooks, env=environment, capture_output=True, check=True)
    assert not trap.sprung()


# ---------------------------------------------------------------- other containers


def in_a_container(folder, number):
    """A kernel spec that starts this kernel in a new process namespace."""
    spec = json.loads((pathlib.Path(sys.prefix) / "share/jupyter/kernels/stratoscope/kernel.json").read_text())
    script = f'echo {number - 1} > /proc/sys/kernel/ns_last_pid; "$@" & wait $!'
    spec["argv"] = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, "sh", *spec["argv"]]
    (folder / "stratoscope").mkdir(parents=True)
    (folder / "stratoscope" / "kernel.json").write_text(json.dumps(spec))
    return KernelSpecManager(kernel_dirs=[str(folder)])


def free_number():
    """A process id that is not in use here."""
    return next(number for number in range(32_000, 20_000, -1) if not os.path.exists(f"/proc/{number}"))


def is_locked(folder):
    try:
        with (folder / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False


def test_a_kernel_of_another_container_keeps_its_folders(tmp_path):
    folders = tmp_path / "t"
    folders.mkdir()
    environment = dict(os.environ, TMPDIR=str(folders))
    unshared = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True).returncode == 0
    if not unshared:
        # Where that is not allowed: a folder in use by a process without a number here.
        folder = folders / f"stratoscope-{free_number()}-0a1b2c3d"
        folder.mkdir(mode=0o700)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with Kernel(cwd=tmp_path, env=environment) as kernel:
                kernel.run("1")
            assert folder.exists()
        return
    number = free_number()
    manager = in_a_container(tmp_path / "specs", number)
    with Kernel(cwd=tmp_path, env=environment, kernel_spec_manager=manager) as contained:
        contained.run("let precious = 3;")
        there = set(folders.glob("stratoscope-*"))
        assert len(there) == 2, "the evaluator's and that of the sockets"
        with Kernel(cwd=tmp_path, env=environment) as kernel:
            kernel.run("1")
        assert there <= set(folders.iterdir())
        assert contained.run("precious + 1").shown() == "4"
        os.killpg(contained.pid, signal.SIGKILL)
        contained.manager.provisioner.process.wait(10)
    # A folder without a lock holder is removed by the next kernel. The processes in the container end a little later.
    deadline = time.monotonic() + 60
    while any(is_locked(folder) for folder in there):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    with Kernel(cwd=tmp_path, env=environment) as kernel:
        kernel.run("1")
        while there & set(folders.iterdir()):
            assert time.monotonic() < deadline
            time.sleep(0.1)


# ---------------------------------------------------------------- folders for temporary files


@pytest.mark.parametrize(("name", "note"), [
    ("a b", None),
    ("", None),
    ("none", "does not exist"),
    ("relative", "is not an absolute path"),
    ("open", "is open to other users")])
def test_cells_run_with_any_folder_for_temporary_files(tmp_path, shared, name, note):
    (tmp_path / "a b").mkdir()
    (shared / "open").mkdir()
    (shared / "open").chmod(0o777)
    folder = {"a b": tmp_path / "a b", "none": tmp_path / "none", "open": shared / "open"}.get(name, name)
    environment = dict(os.environ, TMPDIR=str(folder))
    doctor = subprocess.run([STRATOSCOPE, "doctor"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    (line,) = (line for line in doctor.stdout.splitlines() if "temporary files" in line)
    assert line.startswith("ok") and (note or "") in line
    if name in ("relative", "open"):
        # The cells' side is that of a folder that does not exist.
        assert str(folder) in line and "→" in line
        return
    with Kernel(cwd=tmp_path / "a b", env=environment) as kernel:
        cell = kernel.run('let x = vec![1, 2];\nx.len()')
        assert cell.shown() == "2"
        text = cell.stream("stderr")
        if note:
            assert note in text and str(folder) in text and text.count("\n") == 1, text
        else:
            assert text == ""
        assert kernel.run("std::env::temp_dir().is_dir()").shown() == "true"
        assert kernel.run("fn f() -> u8 { 1 }\nf()").stream("stderr") == "", "it is said once"


# ---------------------------------------------------------------- files left by a kernel


def children_with(text):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if text in words and state != "Z" and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


def test_commands_of_the_shell_end_with_a_kernel_that_is_killed(tmp_path):
    mark = f"6{time.time_ns() % 1_000_000:06}"
    with Kernel(cwd=tmp_path) as kernel:
        request = kernel.request(f"!echo begun; sleep {mark}; echo never")
        kernel.wait_for(request, "stream")
        deadline = time.monotonic() + 10
        while not children_with(f"sleep {mark} "):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.kill(kernel.pid, signal.SIGKILL)
        kernel.manager.provisioner.process.wait(10)
        deadline = time.monotonic() + 20
        while children_with(f"sleep {mark}"):
            assert time.monotonic() < deadline, "it goes on without a kernel"
            time.sleep(0.1)


def test_the_shell_and_the_cells_have_what_they_need(tmp_path):
    """Also without variables that name them: `pip` of the environment that is searched for checkpoints, and a private
    folder for the sockets of displays, without which drivers print warnings."""
    hidden = ("VIRTUAL_ENV", "XDG_RUNTIME_DIR", "CONDA_PREFIX")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    folders = environment["PATH"].split(os.pathsep)
    environment["PATH"] = os.pathsep.join(each for each in folders if not each.startswith(sys.prefix))
    os.mkfifo(tmp_path / "pipe")
    with Kernel(cwd=tmp_path, env=environment) as kernel:
        command = "!command -v pip; command -v python; echo $VIRTUAL_ENV; echo $XDG_RUNTIME_DIR; stat -c %a $XDG_RUNTIME_DIR"
        pip, python, active, runtime, mode = kernel.run(command).stream().splitlines()
        assert (pip, python) == (f"{sys.prefix}/bin/pip", f"{sys.prefix}/bin/python")
        assert active == sys.prefix and os.path.isabs(runtime) and mode == "700"
        source = kernel.run('stratoscope::bert::source::find("all-MiniLM-L6-v2")?.folder.display().to_string()').shown()
        assert sys.prefix in source
        opened = kernel.execute("let strategy = OneDeviceStrategy::new(wgpu(0))?;")
        assert "XDG_RUNTIME_DIR" not in opened.stream("stderr")
        # Only regular files are waited for.
        for path, reason in (("pipe", "a device or a pipe"), (".", "it is a folder"), ("/dev/zero", "a device or a pipe")):
            (error,) = kernel.execute(f"%load {path}", timeout=20).errors
            assert reason in error["evalue"], error
