"""CUDA as far as it can be proven without a GPU: NVRTC compiles every kernel of a training step of all-MiniLM-L6-v2 for
compute capability 8.0 (A100) and 9.0 (H100), in float32 and under both 16-bit policies, down to the instructions of the
chip. What the kernels compute is not tested: the driver under them executes nothing (`tests/cuda_machine.py`)."""

import collections
import json
import os
import platform
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import cuda_machine
from conftest import TARGET, example

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="NVRTC of Linux on x86-64 alone"),
    pytest.mark.skipif(not cuda_machine.toolkit(), reason="NVRTC is not installed (pip install -r tests/cuda/requirements.lock)"),
]

FULL = bool(os.environ.get("STRATOSCOPE_FULL_TESTS"))
# Each architecture and each policy; in a full run each architecture with each policy.
VARIANTS = [(capability, policy) for capability in ("8.0", "9.0") for policy in ("float32", "mixed_bfloat16", "mixed_float16")
            if FULL or (capability, policy) not in (("8.0", "mixed_bfloat16"), ("9.0", "float32"), ("9.0", "mixed_float16"))]
# What NVRTC is asked to compile for.
ARCHITECTURES = {"8.0": "sm_80", "9.0": "sm_90a"}
# A training step multiplies, reduces, looks up and has a loss.
FAMILIES = ["matmul_entry", "reduce_kernel", "kernel_binop", "unary_float", "normalize_rows", "softmax_rows", "bias_gelu",
            "cross_entropy_rows", "cross_entropy_backward", "adam_variables", "embed_rows", "rows_of_entries", "rows_of_types"]


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    return cuda_machine.Machine(tmp_path_factory.mktemp("cuda"), cuda_machine.toolkit())


@pytest.fixture(scope="module")
def train_step():
    return example("train_step")


def step(policy="float32", batch=16, seq=64):
    return ["--device", "cuda:0", "--batch", batch, "--seq", seq, "--steps", 1, "--policy", policy]


@pytest.fixture(scope="module")
def runs(machine, train_step):
    """Each variant's training, two at a time: compiling is the work of one thread."""

    def run(variant):
        capability, policy = variant
        # In a full run autotuning tries, and so compiles, every candidate: minutes.
        tried = {"CUBECL_AUTOTUNE_SHORT_CIRCUIT": "0"} if FULL else {}
        return machine.run(f"{capability}-{policy}", [train_step, *step(policy)], timeout=3600, capability=capability, **tried)

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(VARIANTS, pool.map(run, VARIANTS)))


@pytest.mark.parametrize("variant", VARIANTS, ids="-".join)
def test_every_kernel_of_a_training_step_compiles(runs, variant):
    run = runs[variant]
    assert run.code == 0, run.output[-3000:]
    found = json.loads(run.output.splitlines()[-1])
    assert found["device"] == "cuda:0" and "executes nothing" in found["description"], found

    refused = [program for program in run.programs if not program.accepted]
    assert not refused, "\n".join(f"{program.name}: {program.log}" for program in refused)
    assert {program.architecture for program in run.programs} == {ARCHITECTURES[variant[0]]}
    assert not run.refused, collections.Counter(run.refused).most_common(5)

    # Compiled for this architecture, loaded, launched: the same kernels.
    names = {program.name for program in run.programs}
    loaded = {name for name, _ in run.modules}
    launched = {name for name, *_ in run.launches}
    assert loaded == names and launched <= names
    assert {target for _, target in run.modules} == {ARCHITECTURES[variant[0]]}
    families = collections.Counter(program.family for program in run.programs)
    wanted = [*FAMILIES, "product_tiles"] if variant[1] == "float32" else FAMILIES
    lacking = [family for family in wanted if not any(name.startswith(family) for name in families)]
    assert not lacking, (lacking, sorted(families))
    assert len(names) >= (63 if variant[1] == "float32" else 79), sorted(names)

    listed = TARGET / "cuda-kernels" / f"{'-'.join(variant)}.txt"
    listed.parent.mkdir(parents=True, exist_ok=True)
    counted = collections.Counter(name for name, *_ in run.launches)
    lines = [f"{program.name}  compiled in {program.seconds:.2f} s, launched {counted[program.name]} times" for program in run.programs]
    listed.write_text("\n".join(sorted(lines)) + "\n")
    print(f"{'-'.join(variant)}: {len(names)} kernels compiled in {sum(program.seconds for program in run.programs):.0f} s, "
          f"{len(run.launches)} launches; {listed}")


@pytest.mark.parametrize("policy, kind", [("mixed_bfloat16", "__nv_bfloat16"), ("mixed_float16", "__half")])
def test_the_16_bit_policies_have_16_bit_kernels(runs, policy, kind):
    """They would otherwise prove the kernels of float32 once more."""
    def has_the_kind(run):
        return any(kind in program.source for program in run.programs)

    of_policy = [run for (_, found), run in runs.items() if found == policy]
    assert of_policy and all(has_the_kind(run) for run in of_policy)
    assert not any(has_the_kind(run) for (_, found), run in runs.items() if found == "float32")


def test_a_wrong_kernel_is_refused_and_the_run_says_so(machine, train_step):
    """The proof can fail: the same training with one kernel made wrong."""
    run = machine.run("spoiled", [train_step, *step(batch=2, seq=8)], RECORDER_SPOIL="rows_of_entries")
    wrong = [program for program in run.programs if not program.accepted]
    assert wrong and all("rows_of_entries" in program.name for program in wrong), run.output[-2000:]
    assert "this_is_not_cuda" in wrong[0].log, wrong[0].log
    assert run.code != 0
    assert "error[SC0710]: cuda:0 cannot compile an operation" in run.output, run.output[-3000:]


def test_a_device_that_computes_nothing_is_not_taken(machine, train_step):
    """Of the default devices, one that gives a wrong answer falls to the next, with a note."""
    run = machine.run("wrong", [train_step, "--batch", 2, "--seq", 8, "--steps", 1], STANDIN_ANSWER="5")
    assert run.code == 0, run.output[-2000:]
    assert "SC0713: the default device is" in run.output and "cuda:0 did not start" in run.output, run.output
    assert json.loads(run.output.splitlines()[-1])["device"] != "cuda:0"


@pytest.mark.parametrize("lacking, named", [({"CUDA_PATH": "/nonexistent"}, "CUDA_PATH"), ({"LD_LIBRARY_PATH": "{driver}"}, "NVRTC")])
def test_what_is_missing_is_named(machine, train_step, tmp_path, lacking, named):
    (tmp_path / "libcuda.so.1").symlink_to(machine.libraries / "libcuda.so.1")
    lacking = {name: value.format(driver=tmp_path) for name, value in lacking.items()}
    run = machine.run(f"lacking-{named}", [train_step, "--device", "cuda:0", "--batch", 2, "--seq", 8], **lacking)
    assert run.code != 0
    assert "SC0907" in run.output and named in run.output and "pip install" in run.output, run.output
    assert "panicked" not in run.output, run.output
