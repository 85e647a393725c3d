"""`tests/gpu.sh`: the folder for a machine with a GPU is made, is small, and runs elsewhere with an empty environment. Mesa's lavapipe
stands for a GPU."""

import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import ROOT

LAVAPIPE = sorted(pathlib.Path("/usr/share/vulkan/icd.d").glob("*lvp*"))
pytestmark = [
    # Packing the programs takes minutes.
    pytest.mark.full,
    pytest.mark.skipif(not LAVAPIPE, reason="no wgpu adapter (install mesa-vulkan-drivers and libvulkan1)"),
    pytest.mark.skipif(not shutil.which("xz"), reason="xz was not found (install xz-utils)"),
]

MAX_BYTES = 60_000_000
PATH = "/usr/bin:/bin"
PARITY_TESTS = ["classification_on_gpu", "layers_and_gradients_are_those_of_transformers_on_gpu", "the_traces_on_gpu"]


def run(*command, **variables):
    """What a command prints, in an environment that has these variables alone."""
    environment = {"PATH": PATH, "VK_DRIVER_FILES": str(LAVAPIPE[0])} | variables
    return subprocess.run([str(word) for word in command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=1200)


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """The folder, moved away from where it was made to a path with a blank."""
    folder = tmp_path_factory.mktemp("kit")
    made = subprocess.run([ROOT / "tests" / "gpu.sh", "make", folder / "made"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert made.returncode == 0, made.stdout[-3000:]
    return shutil.move(folder / "made", folder / "elsewhere and moved")


def rows(report):
    """The cells of the table of results."""
    table = report.read_text().split("## Results")[1]
    lines = [line for line in table.splitlines() if line.startswith("| ")][2:]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]


def test_it_is_small(kit):
    files = [path for path in pathlib.Path(kit).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MAX_BYTES
    assert {path.name for path in files} >= {"run.sh", "about.txt", "torch_reference.py", "train.xz", "kit.xz"}


def test_a_part_runs_elsewhere_and_writes_a_table(kit, tmp_path):
    done = run("bash", f"{kit}/run.sh", "--device", "vulkan", "--small", "--results", tmp_path / "results", "parity")
    assert done.returncode == 0, done.stdout[-3000:]
    assert done.stdout.splitlines()[-1] == str(tmp_path / "results" / "report.md")
    found = rows(tmp_path / "results" / "report.md")
    assert {tuple(row[:2]) for row in found} == {("vulkan", "parity")}
    results = {what.split("::")[-1]: result for _, _, what, result, _ in found}
    assert "llvmpipe" in results["device"], results
    for name in PARITY_TESTS:
        assert results[name] == "ok", results
    agreement = next(result for what, result in results.items() if what.startswith("losses of 3 steps beside the processor"))
    assert float(agreement.split()[3]) < 1e-5, agreement
    assert results["all of parity"] == "reached its end"
    log = (tmp_path / "results" / "vulkan-parity.log").read_text()
    assert "on the processor [" in log and "test parity::classification_on_gpu" in log

    # The reference values are those of the folder, and not those of the checkout.
    program, test = f"{kit}/unpacked/bert", "parity::classification_on_gpu"
    lacking = run(program, "--exact", test, STRATOSCOPE_PARITY=f"{kit}/nowhere")
    assert lacking.returncode != 0 and "the reference values are in the repository" in lacking.stdout, lacking.stdout


def test_what_is_wrong_is_in_the_table(kit, tmp_path):
    """A program that is damaged; a failed test, one that ends its process, and one after them."""
    copy = tmp_path / "kit"
    shutil.copytree(kit, copy, ignore=shutil.ignore_patterns("unpacked"))
    programs = tmp_path / "unpacked"
    programs.mkdir()
    for name in ("kit", "bert", "train", "gpu"):
        (programs / name).write_text(STANDIN)
        (programs / name).chmod(0o755)
    os.utime(copy / "programs", (0, 0))
    for packed in (copy / "programs").glob("*.xz"):
        os.utime(packed, (0, 0))
    done = run("bash", copy / "run.sh", "--device", "vulkan", "tests", GPU_KIT_UNPACKED=str(programs))
    assert done.returncode == 0, done.stdout[-3000:]
    found = {what: result for _, _, what, result, _ in rows(copy / "results" / "report.md")}
    assert found["device"].startswith("FAILED (3): the adapter is broken"), found
    assert found["on_gpu::optimizers_on_gpu"] == "FAILED: not as on the CPU: [Adam]", found
    assert found["on_gpu::policies_on_gpu"] == "FAILED: ended its process: 134", found
    assert found["on_gpu::pieces_of_one_output_on_gpu"] == "ok", found
    assert found["other tests of gpu"] == "1 passed, 1 skipped, 0 not reached", found


# Stands for each program: prints as the harness of Rust's tests does.
STANDIN = """#!/bin/bash
names=(on_gpu::pieces_of_one_output_on_gpu on_gpu::optimizers_on_gpu on_gpu::policies_on_gpu on_gpu::layers_on_gpu on_gpu::skipped_on_gpu)
case "$1" in
    --list) for name in "${names[@]}"; do [[ $name != *"$2"* ]] || echo "$name: test"; done; exit ;;
    device) echo "error[SC0907]: the adapter is broken" >&2; exit 3 ;;
esac
for name in "$@"; do
    case $name in
        --*) ;;
        *optimizers*) printf 'test %s ... ' "$name"; printf '\\nthread x panicked at a.rs:1:2:\\nnot as on the CPU: [Adam]\\nFAILED\\n' ;;
        *policies*) printf 'test %s ... ' "$name"; kill -ABRT $$ ;;
        *skipped*) printf 'test %s ... skipped: nothing here\\nok\\n' "$name" ;;
        *::*) echo "test $name ... ok" ;;
    esac
done
"""
