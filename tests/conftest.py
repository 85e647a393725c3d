"""Fixtures: the folders of the project, a tiny checkpoint, kernels."""

import collections
import functools
import hashlib
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import time

import nbformat
import pytest
from nbclient import NotebookClient

import browser
import checkpoint
from kernel_client import Kernel
from lab import Lab

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
STRATOSCOPE = TARGET / "debug" / "stratoscope"


def example(name):
    """The program of an example. `tests/run.sh` builds it before: cargo would wait here for the lints beside, minutes."""
    program = TARGET / "debug" / "examples" / name
    if not program.exists():
        # The whole workspace: one crate alone would be built with other features, and burn again.
        subprocess.run(["cargo", "build", "-q", "--workspace", "--locked", "--example", name], cwd=ROOT, check=True)
    return program


def pytest_configure(config):
    if pathlib.Path(sys.prefix) != ROOT / ".venv":
        raise pytest.UsageError("run the tests with tests/run.sh, or with .venv/bin/python -m pytest tests")
    # Programs of the environment (jupyter, python) come first, as in an activated one.
    os.environ["PATH"] = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    os.environ["VIRTUAL_ENV"] = str(ROOT / ".venv")
    # Nothing is downloaded: what a test needs is in the project or in the environment.
    os.environ["HF_HUB_OFFLINE"] = "1"
    # Tests write no cell into the user's history; `test_history.py` names files of its own.
    os.environ["STRATOSCOPE_HISTORY"] = "off"


# A short run takes one of this many of the tests that are marked `sampled`: those of many cases, and those that take long.
SAMPLED_ONE_IN = 6


def is_in_sample(item):
    """Whether this run takes a test. There are six fixed samples, so that each can be tried; another change of the sources
    takes another one."""
    return number(item.nodeid) % SAMPLED_ONE_IN == sample()


@functools.cache
def sample():
    """The sample of this run: `STRATOSCOPE_SAMPLE`, or one that follows from the tree of sources."""
    named = os.environ.get("STRATOSCOPE_SAMPLE")
    return int(named) % SAMPLED_ONE_IN if named else number(sources()) % SAMPLED_ONE_IN


def number(text):
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


def sources():
    """The name of the tree of sources that is tested; empty in a copy without its repository."""
    command = ["git", "-c", f"safe.directory={ROOT}", "rev-parse", "HEAD:src"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout


def pytest_collection_modifyitems(config, items):
    if os.environ.get("STRATOSCOPE_FULL_TESTS"):
        return
    # Removed rather than skipped: a skip would be reported. A file that is named on the command line is tested as a whole.
    if not os.environ.get("STRATOSCOPE_SHORT_TESTS"):
        items[:] = [item for item in items if not item.get_closest_marker("full")]
        return
    items[:] = [item for item in items
                if not item.get_closest_marker("full") and (not item.get_closest_marker("sampled") or is_in_sample(item))]


# What `tests/run.sh` counts beside the skips: the time of the run is over.
OUT_OF_TIME = "no time was left"


def pytest_runtest_setup(item):
    """A short run begins no test after its time: a slow machine would need longer than CI waits."""
    end = os.environ.get("STRATOSCOPE_TESTS_END")
    if end and time.time() > float(end):
        pytest.skip(OUT_OF_TIME)


def pytest_terminal_summary(terminalreporter):
    """The files that took longest, beside the tests that did."""
    seconds = collections.Counter()
    for report in (each for reports in terminalreporter.stats.values() for each in reports):
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid.split("::")[0]] += report.duration
    if len(seconds) > 1:
        terminalreporter.section("slowest files")
        for name, taken in seconds.most_common(30):
            terminalreporter.write_line(f"{taken:.1f}s {name}")


# Notebooks that train for minutes; `test_heads.py` and `test_evaluation.py` do the same with less each time.
LONG_NOTEBOOKS = ("question_answering", "sweep")


def long_ones(values, are_long):
    """Parameters of a test: the long ones among these values are run with STRATOSCOPE_FULL_TESTS only."""
    return [pytest.param(value, marks=pytest.mark.full if value in are_long else ()) for value in values]


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def stratoscope():
    """The path of the command."""
    assert STRATOSCOPE.exists(), "run tests/run.sh, which builds it"
    return STRATOSCOPE


@pytest.fixture(scope="session", autouse=True)
def jupyter_folders(tmp_path_factory):
    """Jupyter's own files (connection files, history, settings) in a folder of the session."""
    folder = tmp_path_factory.mktemp("jupyter")
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        os.environ[name] = str(folder / name.lower())
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """The folder of a tiny BERT checkpoint."""
    return checkpoint.write(tmp_path_factory.mktemp("checkpoints") / "tiny-bert")


class Pool:
    """A kernel that files of tests use one after the other. A start takes seconds, most of them in rust-analyzer; a reset ends
    the process that runs the cells and leaves nothing of a notebook but the count of its cells."""

    def __init__(self, folder):
        self.folder = folder
        self.kernel = None

    def take(self):
        """The kernel as after a start, in an empty folder."""
        if self.kernel and not self._is_reset():
            self.end()
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        if not self.kernel:
            self.kernel = Kernel(cwd=self.folder).__enter__()
        return self.kernel

    def _is_reset(self):
        """Whether the kernel could be reset; one that has ended, or runs a cell, could not."""
        if not self.kernel.manager.is_alive():
            return False
        try:
            levels = re.findall(r"^(\w+) +(?:silenced|denied)\b", self.kernel.run("%warnings", timeout=60).shown(), re.MULTILINE)
            for magic in ("%reset", "%profile off", *(f"%warnings default {code}" for code in levels), "%warnings again"):
                self.kernel.run(magic, timeout=60)
            return True
        except (AssertionError, TimeoutError, queue.Empty, RuntimeError):
            return False

    def end(self):
        kernel, self.kernel = self.kernel, None
        kernel.__exit__()


@pytest.fixture(scope="session")
def pool(tmp_path_factory):
    kernels = Pool(tmp_path_factory.mktemp("notebook"))
    yield kernels
    if kernels.kernel:
        kernels.end()


@pytest.fixture(scope="module")
def kernel(request, tmp_path_factory):
    """One kernel for all tests of a file: from the pool, or its own where a test ends it or looks at its start."""
    if request.node.get_closest_marker("own_kernel"):
        with Kernel(cwd=tmp_path_factory.mktemp("notebook")) as running:
            yield running
    else:
        yield request.getfixturevalue("pool").take()


@pytest.fixture
def fresh_kernel(tmp_path):
    """A kernel for this test alone."""
    with Kernel(cwd=tmp_path) as running:
        yield running


@pytest.fixture(scope="session")
def run_notebook(root, tmp_path_factory):
    """Executes a notebook of the repository with nbclient, once; a copy is written to target/notebooks/. The name may have a
    folder: `course/solutions/01_one_step`. With `allow_errors`, cells after one that fails are executed too."""
    done = {}

    def run(name, allow_errors=False):
        if name == "webgpu" and not list(pathlib.Path("/usr/share/vulkan/icd.d").glob("*")):
            pytest.skip("no wgpu adapter (install mesa-vulkan-drivers and libvulkan1)")
        if name not in done:
            notebook = nbformat.read(root / "notebooks" / f"{name}.ipynb", as_version=4)
            for cell in notebook.cells:
                if cell.cell_type == "code":
                    cell.outputs, cell.execution_count = [], None
            begun = time.monotonic()
            folder = tmp_path_factory.mktemp(name.replace("/", "-"))
            NotebookClient(notebook, kernel_name="stratoscope", timeout=1800, allow_errors=allow_errors,
                           resources={"metadata": {"path": str(folder)}}).execute()
            print(f"{name} took {time.monotonic() - begun:.0f} s")
            nbformat.validate(notebook)
            copy = TARGET / "notebooks" / f"{name}.nbclient.ipynb"
            copy.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(notebook, copy)
            done[name] = notebook
        return done[name]

    return run


@pytest.fixture(scope="session")
def executed(run_notebook):
    """The main notebook after its run."""
    return run_notebook("fine_tune_bert")


@pytest.fixture(scope="session")
def pictures(root):
    """The folder for screenshots."""
    folder = pathlib.Path(os.environ.get("STRATOSCOPE_SCREENSHOTS") or root / "target" / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """The page of a browser; each test opens what it looks at."""
    if browser.find() is None:
        pytest.skip("no Chromium is installed")
    with browser.Browser(tmp_path_factory.mktemp("profile") / "user") as page:
        yield page


@pytest.fixture(scope="session")
def jupyter_lab(tmp_path_factory):
    """A JupyterLab that shows notebooks; nothing runs in it."""
    with Lab(tmp_path_factory.mktemp("lab")) as running:
        yield running
