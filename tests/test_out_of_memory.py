"""Devices that are out of memory or refuse a buffer, through the real kernel: the run goes on in parts or ends with a
diagnostic, and the kernel and its variables live. lavapipe, Mesa's software device, stands for a GPU."""

import glob
import os

import pytest

from kernel_client import DIAGNOSTIC, Kernel, check_card, check_error

LAVAPIPE = glob.glob("/usr/share/vulkan/icd.d/*lvp*")
needs_lavapipe = pytest.mark.skipif(not LAVAPIPE, reason="no wgpu adapter (install mesa-vulkan-drivers and libvulkan1)")

LIMITED = "let small = OneDeviceStrategy::new(cpu(0).memory_limit({}))?;"
SCOPED = """scope!({}, {{
    let {} = Sequential([Dense({}).seed(1), Dense(1).seed(2)])?;
    compile!({}, optimizer = SGD::new(0.001), loss = "mse")?;
}});"""


def model(strategy, name, width):
    return SCOPED.format(strategy, name, width, name)


def codes(cell):
    return [bundle[DIAGNOSTIC]["code"] for bundle in cell.diagnostics]


def test_a_run_without_room_is_an_error_and_nothing_is_lost(kernel):
    kernel.run("let kept = 41;")
    kernel.run(LIMITED.format(1))
    kernel.run(model("small", "wide", 600))
    kernel.run("let data = make_regression(16, 600, 3)?;")
    cell = kernel.execute("fit!(wide, data, batch_size = 8)?;")
    check_error(cell, "SC0607", "out of memory")
    check_card(cell, "SC0607")
    assert kernel.run("kept + 1").shown() == "42"
    # The model lives, and so does a run of it.
    kernel.run("let run = start!(wide, data, batch_size = 8)?;")
    check_error(kernel.execute("run.step(1)?"), "SC0607")
    assert kernel.run("run.report()?.position.step").shown() == "0"
    kernel.run("drop(run);")
    assert kernel.run("wide.num_parameters()").shown()


def test_auto_says_what_it_chose(kernel):
    kernel.run(LIMITED.format(500))
    kernel.run(model("small", "narrow", 4))
    kernel.run("let rows = make_regression(256, 5, 3)?;")
    shown = kernel.run("fit!(narrow, rows, batch_size = auto)?;")
    assert "batch_size = 8, chosen: " in shown.shown(), shown.shown()
    kernel.run("let run = start!(narrow, rows, batch_size = auto(64))?; run.step(1)?; drop(run);")
    check_error(kernel.execute("fit!(narrow, rows, batch_size = auto, steps_per_epoch = 3)?;"), "SC0118")


@needs_lavapipe
def test_a_gpu_that_refuses_a_buffer(tmp_path):
    env = os.environ | {"VK_DRIVER_FILES": LAVAPIPE[0], "VK_ICD_FILENAMES": LAVAPIPE[0], "XDG_RUNTIME_DIR": str(tmp_path)}
    with Kernel(cwd=tmp_path, env=env) as kernel:
        kernel.run("let kept = 41;\nlet gpu = OneDeviceStrategy::new(wgpu(0))?;")
        # A variable of 144 MB, where a buffer of lavapipe ends at 128 MiB.
        cell = kernel.execute("scope!(gpu, {\n    let wide = Sequential([Dense(6000).input_shape(6000)])?;\n});")
        check_error(cell, "SC0609", "128 MiB")
        check_card(cell, "SC0609")
        assert kernel.run("kept + 1").shown() == "42"
        # A minute on a software device, which `a_failed_allocation_of_wgpu_is_divided` in Rust takes too.
        if not os.environ.get("STRATOSCOPE_FULL_TESTS"):
            return
        # A batch of 150 MB: the run goes on in parts.
        kernel.run(model("gpu", "model", 1).replace("Dense(1).seed(1), ", ""))
        kernel.run("let data = make_regression(60_000, 625, 3)?;")
        cell = kernel.run("let history = fit!(model, data, batch_size = 60_000, epochs = 2)?;\nhistory")
        assert "SC0608" in codes(cell), codes(cell)
        assert "parts of 30000" in cell.shown(), cell.shown()
        assert kernel.run("kept + 1").shown() == "42"
        assert kernel.run("history.steps.len()").shown() == "2"
