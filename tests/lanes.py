#!/usr/bin/env python3
"""Lanes: groups of tests that cost much and depend on little. A short run takes those whose inputs have changed.

    tests/lanes.py                   # all lanes: what they test, and whether their inputs have changed
    tests/lanes.py choose            # the lanes of a short run, one a line
    tests/lanes.py fit SECONDS NAME …    # those of the lanes for which there is so much time
    tests/lanes.py passed FOLDER NAME …  # records the inputs with which these lanes have passed, in tests/lanes.json
    tests/lanes.py names, files NAME, left-out NAME …, not-run NAME …   # for tests/run.sh

`tests/lanes.json` is tracked: it has a checksum of each lane's inputs as they were when the lane last passed, and the seconds that
its tests took. A lane is due when its inputs differ. With `tests/run.sh --full` all lanes run. A short run takes those that are
due as far as there is time for them (`SECONDS`), another one first after each commit, and names those that it leaves out; where
there is time left, one of the others, so that a change that no input shows is noticed within as many commits as there are lanes.
"""

import hashlib
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as tree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "lanes.json"
# The time for lanes of a short run, in seconds of their tests. It keeps CI below 45 minutes after a change of everything.
SECONDS = int(os.environ.get("STRATOSCOPE_LANE_SECONDS") or 1200)
# Of a lane that has never passed.
UNKNOWN = 300


@dataclass
class Lane:
    """Which files of `tests/` it runs, and the files and folders whose change makes it run."""

    about: str
    files: tuple
    inputs: tuple


LANES = {
    "additions": Lane(
        "a loss, a metric, a schedule, an optimizer, a callback and a strategy, added to a copy of the sources",
        ("test_additions.py",),
        ("tests/additions", "tests/additions.py", "src/metrics/src/loss/criterion.rs", "src/metrics/src/loss/list.rs",
         "src/metrics/src/metric/measure.rs", "src/metrics/src/metric/list.rs", "src/optim/src/list.rs", "src/optim/src/rule.rs",
         "src/optim/src/schedule/curve.rs", "src/optim/src/schedule/list.rs", "src/strategy/src/strategy/distribution.rs",
         "src/strategy/src/strategy/list.rs", "src/arguments/src/callbacks.rs"),
    ),
    "book": Lane(
        "the cells of the pages of the book and of the rules",
        ("test_book.py",),
        ("docs", "src/diagnostics/src/rules", "src/stratoscope/src/macros.rs", "src/stratoscope/src/prelude.rs"),
    ),
    "commands": Lane(
        "every command of the documents, in a plain shell",
        ("test_documented_commands.py",),
        ("README.md", "docs", "tests/bench", "src/kernel/src/cli", "src/models/examples", "src/bert/examples"),
    ),
    "course": Lane(
        "lessons and solutions of the course",
        ("test_course.py",),
        ("notebooks/course", "src/course", "src/render/src/chart"),
    ),
    "cuda": Lane(
        "CUDA kernels through NVRTC, with a driver that executes nothing",
        ("test_cuda_kernels.py",),
        ("src/gpu", "src/cubecl-llvm", "src/strategy/src/device", "src/kernel/src/cli/cuda", "tests/cuda", "tests/cuda_machine.py"),
    ),
    "gpu": Lane(
        "all tests on a software GPU, and the kit for other machines; a short run has the tests named in tests/run.sh",
        ("test_gpu_kit.py",),
        ("src/gpu", "src/bert/src/ops", "src/optim", "src/metrics/src/loss", "src/strategy/src/device",
         "src/arguments/src/context/mixed_precision.rs", "src/models/tests/train/on_gpu.rs", "src/models/examples/gpu_kit", "tests/gpu.sh",
         "tests/gpu_kit", "tests/bench/torch_reference.py"),
    ),
    "jupyterlab": Lane(
        "JupyterLab in a browser: cards, tables, underlines, widgets, pictures",
        ("test_cards.py", "test_debugger_in_jupyterlab.py", "test_fixes_in_jupyterlab.py", "test_jupyterlab.py", "test_lint_in_jupyterlab.py",
         "test_tables_in_jupyterlab.py", "test_widgets.py"),
        ("kernel-spec", "src/debugger", "src/render", "src/diagnostics/src/render", "src/strategy/src/placement", "src/jupyter/src/comm", "src/jupyter/src/debug",
         "tests/browser.py", "tests/lab.py", "tests/page_checks.py"),
    ),
    "launchers": Lane(
        "jobs under Open MPI, MPICH and Slurm",
        ("test_launchers.py",),
        ("src/workers", "src/step/src/workers", "src/strategy/src/strategy/multi_worker", "tests/slurm.py"),
    ),
    "machines": Lane(
        "a kernel on another machine, and files of other users",
        ("test_other_machine.py", "test_other_users.py"),
        ("src/os", "src/jupyter/src/connection.rs", "src/jupyter/src/socket", "docs/devices.md"),
    ),
    "notebooks": Lane(
        "the notebooks, beside their outputs in the repository",
        ("test_articles.py", "test_notebook_outputs.py"),
        ("notebooks/ask_the_run.ipynb", "notebooks/beyond_copies.ipynb", "notebooks/data.ipynb",
         "notebooks/debug_a_run.ipynb", "notebooks/debugger.ipynb", "notebooks/fine_tuning_errors.ipynb", "notebooks/many_workers.ipynb",
         "notebooks/model_outside_scope.ipynb", "notebooks/one_or_many_devices.ipynb", "notebooks/question_answering.ipynb",
         "notebooks/steps_per_execution.ipynb", "notebooks/sweep.ipynb", "notebooks/token_classification.ipynb",
         "notebooks/webgpu.ipynb", "src/report", "src/strategy/src/placement", "src/evaluation", "src/audit", "src/explain"),
    ),
    "onnx": Lane(
        "exported files through onnxruntime",
        ("test_onnx.py",),
        ("src/onnx", "src/models/src/model/onnx", "src/models/src/model/sequential", "src/bert/src/family.rs",
         "src/models/examples/export_onnx.rs", "docs/beyond_notebook.md", "tests/onnx"),
    ),
    "package": Lane(
        "the wheel: made, installed and uninstalled; a release, and the ways to it: a shell, Docker, Binder, Colab",
        ("test_package.py", "test_release.py"),
        ("src/package", "src/kernel/src/cli", "src/compile/src/packaged.rs", "kernel-spec/wheel", "kernel-spec/release", "kernel-spec/docker",
         "kernel-spec/colab", ".binder", ".github", "docs/install.md", "tests/dockerfile.py", "tests/machine_root.py"),
    ),
    "processors": Lane(
        "an emulated older processor",
        ("test_processors.py",),
        ("src/bert/src/ops/cpu", "src/optim/src", "tests/other_processor.sh"),
    ),
    "serving": Lane(
        "a server in Rust and a page in a browser that answer with a model of a notebook",
        ("test_serving.py",),
        ("docs/serving.md", "tests/serving", "tests/browser.py", "src/kernel/src/cli/new.rs", "src/cell-text/src/program.rs", "src/onnx",
         "src/models/src/model/onnx"),
    ),
}


def inputs_of(lane):
    """A checksum of the tracked and new files that the lane depends on, its own tests among them; `None` in a copy without its
    repository, where every lane runs."""
    places = [*lane.inputs, *(f"tests/{name}" for name in lane.files)]
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *places]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        return None
    checksum = hashlib.sha256()
    for name in sorted(filter(None, set(listed.stdout.split("\0")))):
        path = ROOT / name
        if path.is_file():
            checksum.update(f"{name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return checksum.hexdigest()[:16]


def recorded():
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def changed():
    """The lanes whose inputs differ from those that they passed with."""
    passed = recorded()
    now = {name: inputs_of(lane) for name, lane in LANES.items()}
    return [name for name in LANES if now[name] is None or passed.get(name, {}).get("inputs") != now[name]]


def choose():
    """The lanes of a short run: those that are due, and one of the rest, as far as there is time."""
    due = changed()
    others = [name for name in LANES if name not in due]
    command = ["git", "-c", f"safe.directory={ROOT}", "rev-list", "--count", "HEAD"]
    commits = int(subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip() or 0)
    return within(turned(due, commits) + turned(others, commits)[:1], recorded(), SECONDS)


def turned(names, by):
    """The names, beginning with another one."""
    first = by % len(names) if names else 0
    return names[first:] + names[:first]


def within(names, passed, seconds):
    """Those of the lanes for which there is time, in the order given."""
    chosen, spent = [], 0
    for name in names:
        cost = passed.get(name, {}).get("seconds", UNKNOWN)
        if spent + cost <= seconds:
            chosen.append(name)
            spent += cost
    return chosen


def without_failures(names, folder):
    """Those of the lanes of which no test has failed, by the reports of pytest in the folder."""
    failed = set()
    for report in Path(folder).glob("*.xml"):
        for case in tree.parse(report).iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                failed.add(case.get("classname", "").split(".")[-1] + ".py")
    return [name for name in names if not failed & set(LANES[name].files)]


def seconds_of(name, folder):
    """What the tests of a lane took, by the reports of pytest in the folder and what `tests/run.sh` writes of tests on a GPU."""
    files, seconds = LANES[name].files, 0.0
    for report in Path(folder).glob("*.xml"):
        for case in tree.parse(report).iter("testcase"):
            if case.get("classname", "").split(".")[-1] + ".py" in files:
                seconds += float(case.get("time", 0))
    beside = Path(folder) / f"{name}.seconds"
    return round(seconds + (float(beside.read_text()) if beside.exists() else 0))


def record(names, folder):
    """These lanes have passed with their inputs of now."""
    now = {name: {"inputs": inputs_of(LANES[name]), "seconds": seconds_of(name, folder)} for name in names}
    known = {name: value for name, value in recorded().items() if name in LANES}
    RECORD.write_text(json.dumps(dict(sorted((known | now).items())), indent=1) + "\n")


def main(arguments):
    match arguments:
        case []:
            waiting, passed = changed(), recorded()
            for name, lane in LANES.items():
                seconds = passed.get(name, {}).get("seconds", "?")
                print(f"{name:12} {'due' if name in waiting else 'passed':8} {seconds:>5} s  {lane.about}")
        case ["names"]:
            print("\n".join(LANES))
        case ["choose"]:
            print("\n".join(choose()))
        case ["fit", seconds, *names]:
            print("\n".join(within(names, recorded(), int(seconds))))
        case ["files", name]:
            print("\n".join(f"tests/{file}" for file in LANES[name].files) if name in LANES else "")
        case ["left-out", *names]:
            print("\n".join(file for name, lane in LANES.items() if name not in names for file in lane.files))
        case ["not-run", *names]:
            waiting = changed()
            left = {"lanes that have passed with these sources": [], "lanes that are due": []}
            for name in LANES:
                if name not in names:
                    left["lanes that are due" if name in waiting else "lanes that have passed with these sources"].append(name)
            print("; ".join(f"{words}: {', '.join(those)}" for words, those in left.items() if those))
        case ["passed", folder, *names] if not set(names) - LANES.keys():
            record(without_failures(names, folder), folder)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
