"""The default device: the order, the variable, `%device`, `doctor`, and what says so. lavapipe, Mesa's software device,
stands for a GPU where one is named."""

import glob
import json
import os
import subprocess

import pytest

from conftest import STRATOSCOPE
from kernel_client import Kernel, check_card, check_error

LAVAPIPE = glob.glob("/usr/share/vulkan/icd.d/*lvp*")
needs_lavapipe = pytest.mark.skipif(not LAVAPIPE, reason="no wgpu adapter (install mesa-vulkan-drivers and libvulkan1)")

MODEL = "let model = Sequential([Dense(4).input_shape(5), Dense(1)])?;"
# What code written for burn takes.
BURNS_DEFAULT = 'format!("{:?}", Device::default())'
COMPILE = 'compile!(model, optimizer = AdamW::new(0.01), loss = "mse", strategy = none)?'


def environment(tmp_path, device):
    """lavapipe alone, so that a machine's own GPU does not answer."""
    changed = {"STRATOSCOPE_DEVICE": device, "XDG_RUNTIME_DIR": str(tmp_path)}
    if LAVAPIPE:
        changed |= {"VK_DRIVER_FILES": LAVAPIPE[0], "VK_ICD_FILENAMES": LAVAPIPE[0]}
    return os.environ | changed


def doctor(env):
    done = subprocess.run([STRATOSCOPE, "doctor"], env=env, capture_output=True, text=True)
    return next(line for line in done.stdout.splitlines() if "default device" in line), done.returncode


@needs_lavapipe
def test_a_software_adapter_is_never_the_default_by_itself(tmp_path):
    env = environment(tmp_path, "")
    with Kernel(env=env) as kernel:
        table = kernel.run("devices()").shown().splitlines()
        adapter = next(line for line in table if line.startswith("wgpu:0"))
        if "software" not in adapter:
            pytest.skip("this machine has a GPU that wgpu lists first")
        assert "no: a software adapter" in adapter, table
        assert "yes: no GPU was found" in next(line for line in table if line.startswith("cpu:0")), table
        # Code written for burn asks for burn's own default, which would be CUDA.
        assert kernel.run("Tensor::<1>::from_floats([1.0, 2.0], &Default::default()).sum().into_scalar::<f32>()").shown() == "3.0"
        if not any(line.startswith("cuda:0") for line in table):
            check_error(kernel.execute("Tensor::<1>::zeros([2], &Device::cuda(0))"), "SC0906", "there is no device cuda:0")
        assert "cpu:0" in kernel.run(MODEL + "\nmodel").shown()
    line, code = doctor(env)
    assert line.startswith("ok       default device: cpu:0") and "no GPU was found" in line and code == 0, line


@needs_lavapipe
def test_the_variable_names_it(tmp_path):
    env = environment(tmp_path, "wgpu")
    with Kernel(env=env) as kernel:
        kernel.run(MODEL)
        receipt = kernel.run(COMPILE).shown()
        assert "runs on" in receipt and "wgpu:0" in receipt, receipt
        assert "the default device: set by STRATOSCOPE_DEVICE" in " ".join(receipt.split()), receipt
        fit = kernel.run("let history = fit!(model, make_regression(16, 5, 0)?, epochs = 1, batch_size = 8)?;\nhistory").shown()
        assert "on wgpu:0" in fit, fit
        assert "wgpu:0/1" in kernel.run("MirroredStrategy::logical(2)?.replicas()[1].name.clone()").shown()
        assert "wgpu:0" in kernel.run("MirroredStrategy::new()?.replicas()[0].name.clone()").shown()
        # Set anew in the process, it decides anew; models that exist stay.
        kernel.run("%env STRATOSCOPE_DEVICE=cpu")
        assert "Flex" in kernel.run(BURNS_DEFAULT).shown()
        assert "cpu:0" in kernel.run("default_device()?.name").shown()
        assert "wgpu:0" in kernel.run("model").shown()
    line, code = doctor(env)
    assert "ok       default device: wgpu:0" in line and "set by STRATOSCOPE_DEVICE" in line and code == 0, line


@needs_lavapipe
def test_the_magic_shows_and_sets_it(tmp_path):
    with Kernel(env=environment(tmp_path, "cpu")) as kernel:
        shown = kernel.run("%device").shown()
        assert "yes: set by STRATOSCOPE_DEVICE" in shown and "wgpu:0" in shown, shown
        assert "Flex" in kernel.run(BURNS_DEFAULT).shown()
        said = kernel.run("%device wgpu:0\n" + MODEL).stream()
        assert "Wgpu" in kernel.run(BURNS_DEFAULT).shown()
        assert "the default device is wgpu:0" in said and "software" in said, said
        assert "wgpu:0" in kernel.run("model").shown()
        assert "yes: set by %device" in kernel.run("devices()").shown()
        kernel.run("%device cpu")
        assert "cpu:0" in kernel.run("default_device()?.name").shown()


def test_a_wrong_name_is_a_diagnostic(tmp_path):
    with Kernel(env=environment(tmp_path, "cpuu")) as kernel:
        cell = kernel.execute(MODEL)
        check_error(cell, "SC0712", "`STRATOSCOPE_DEVICE` names `cpuu`")
        check_card(cell, "SC0712", "cpu:0", "auto")
        assert "none: " in kernel.run("devices()").shown()
        cell = kernel.execute("%device cuda:7")
        check_error(cell, "SC0712", "`%device` names `cuda:7`")
        kernel.run("%device auto")
        kernel.run(MODEL)
    line, code = doctor(environment(tmp_path, "cpuu"))
    assert line.startswith("missing  default device") and "SC0712" not in line.split("→")[1] and code == 1, line


def test_the_kernel_spec_fixes_it(tmp_path):
    """`stratoscope install --env`, and `doctor` reads the spec as Jupyter does."""
    command = [STRATOSCOPE, "install", "--no-build", "--prefix", tmp_path, "--name", "fixed", "--env", "STRATOSCOPE_DEVICE=cpu:0"]
    subprocess.run(command, check=True, capture_output=True)
    spec = json.loads((tmp_path / "share/jupyter/kernels/fixed/kernel.json").read_text())
    assert spec["env"]["STRATOSCOPE_DEVICE"] == "cpu:0"
    env = environment(tmp_path, "cuda:9") | {"JUPYTER_PATH": str(tmp_path / "share/jupyter")}
    done = subprocess.run([STRATOSCOPE, "doctor", "--name", "fixed"], env=env, capture_output=True, text=True)
    line = next(line for line in done.stdout.splitlines() if "default device" in line)
    assert "ok       default device: cpu:0" in line and "set by STRATOSCOPE_DEVICE" in line, line


def test_the_magic_is_completed_and_explained(kernel):
    kernel.run("1 + 1")
    completed = kernel.client.complete("%device wg", reply=True, timeout=60)["content"]
    assert "wgpu:0" in completed["matches"]
    assert "%device" in kernel.run("%help").shown()
