"""The debugger panel of JupyterLab: it is opened with the bug button, shows the variables after each cell, unfolds a model,
steps a run of training forward and back, and stops a cell at a breakpoint. The screenshots are in target/screenshots/."""

import json
import time

import pytest

from test_breakpoints import adapter, may_trace
from test_widgets import opened, press, run

CELLS = [
    "#[derive(Debug)]\nstruct Setting { name: &'static str, values: Vec<f64> }\n"
    'let setting = Setting { name: "rates", values: vec![1e-3, 5e-5] };\n'
    "let numbers: Vec<f32> = (0..1_000_000).map(|it| it as f32).collect();",
    'let model = Sequential([Dense(8).input_shape(4).activation("relu"), Dense(1)])?;\n'
    'compile!(model, optimizer = AdamW::new(1e-3), loss = MeanSquaredError)?;',
    "let ones = Tensor::<2>::ones([20, 30], &Device::flex());",
    "let run = start!(model, make_regression(256, 4, 0)?, batch_size = 8, epochs = 2)?;",
]

# The rows of the tree, each as its own name and value.
ROWS = ("[...document.querySelectorAll('.jp-DebuggerVariables-body .jp-TreeItem')].map(each => ["
        "each.querySelector(':scope > .jp-DebuggerVariables-name')?.innerText ?? '', "
        "each.querySelector(':scope > .jp-DebuggerVariables-detail')?.innerText ?? ''])")


def item(name):
    """A JavaScript expression: the row with this name."""
    return ("[...document.querySelectorAll('.jp-DebuggerVariables-body .jp-TreeItem')].find(each => "
            f"each.querySelector(':scope > .jp-DebuggerVariables-name')?.innerText === {json.dumps(name)})")


def shows(page, name, text, seconds=60):
    """Waits for a row with this name and this text beside it: JupyterLab's tree shows the type of what unfolds, and the value of what does not."""
    page.wait_until(f"{ROWS}.some(([name, value]) => name === {json.dumps(name)} && value.includes({json.dumps(text)}))", seconds)


def unfold(page, name, child):
    """Unfolds a row, and again where the panel has drawn its rows anew meanwhile, which folds them."""
    for _ in range(8):
        page.evaluate(f"{item(name)}.scrollIntoView({{block: 'center'}})")
        press(page, f"{item(name)}.querySelector(':scope > .jp-DebuggerVariables-name')")
        deadline = time.monotonic() + 6
        while time.monotonic() < deadline:
            if page.evaluate(f"Boolean({item(child)})"):
                return
            time.sleep(0.2)
    raise AssertionError(f"`{name}` shows no `{child}`")


def test_the_panel_shows_variables_and_unfolds_a_model(jupyter_lab, chromium, pictures):
    page = chromium
    opened(page, jupyter_lab, "debugger", CELLS, (1500, 950))
    run(page, 1)

    button = "document.querySelector('.jp-NotebookPanel .jp-DebuggerBugButton')"
    page.wait_until(f"{button} && !{button}.disabled && {button}.getAttribute('aria-disabled') !== 'true'", 60)
    press(page, button)
    shows(page, "setting", "Setting")
    shows(page, "numbers", "Vec<f32>")

    # The panel follows the cells.
    press(page, "document.querySelectorAll('.jp-NotebookPanel .jp-InputPrompt')[1]")
    run(page, 2)
    shows(page, "model", "Model", 120)
    run(page, 3)
    shows(page, "ones", "Tensor<2>", 120)

    unfold(page, "model", "dense")
    unfold(page, "dense", "weight")
    unfold(page, "weight", "statistics")
    shows(page, "statistics", "min -")
    unfold(page, "setting", "name")
    shows(page, "name", '"rates"')
    unfold(page, "numbers", "[990000 … 999999]")
    page.evaluate(f"{item('model')}.scrollIntoView()")
    time.sleep(1)
    page.picture(pictures / "debugger-variables.png")

    # A run steps forward by the panel's button and back by ours.
    button = "document.querySelector('[data-command=\"{}\"]')".format
    press(page, "document.querySelectorAll('.jp-NotebookPanel .jp-InputPrompt')[3]")
    run(page, 4)
    shows(page, "position", "step 1 of 64", 120)
    frame = "document.querySelector('.jp-DebuggerCallstack-body li.selected')?.textContent ?? ''"
    page.wait_until(f"({frame}).includes('step 1 of 64, not made yet')", 60)
    for name, step in (("debugger:next", 2), ("debugger:next", 3), ("stratoscope:step-back", 2)):
        page.wait_until(f"{button(name)} && !{button(name)}.disabled && {button(name)}.getAttribute('aria-disabled') !== 'true'", 60)
        press(page, button(name))
        shows(page, "position", f"step {step} of 64")
    unfold(page, "gradients", "dense.weight")
    time.sleep(1)
    page.picture(pictures / "debugger-run.png")
    page.wait_until(f"!{button('stratoscope:run-back')}.disabled", 60)
    press(page, button("stratoscope:run-back"))
    shows(page, "position", "step 1 of 64")

    # Into the coming step, layer by layer: the frame, its line in the text of the step, and what the layer puts out.
    for name, layer in (("debugger:stepIn", "forward: dense "), ("debugger:stepIn", "forward: dense_1"), ("stratoscope:step-back", "forward: dense ")):
        page.wait_until(f"{button(name)} && !{button(name)}.disabled && {button(name)}.getAttribute('aria-disabled') !== 'true'", 60)
        press(page, button(name))
        page.wait_until(f"({frame}).includes({json.dumps(layer)})", 60)
    marked = "document.querySelector('.jp-DebuggerEditor-highlight')?.textContent ?? ''"
    page.wait_until(f"({marked}).trim() === 'forward: dense'", 60)
    shows(page, "dense", "[8, 1, 8], norm")
    time.sleep(1)
    page.picture(pictures / "debugger-layers.png")


LOOP = "let mut total = 0;\nfor index in 0..3 {\n    let next = index * 2;\n    total += next;\n}\ntotal"


@pytest.mark.skipif(adapter() is None or not may_trace(), reason="LLDB is not installed, or processes may not be traced here")
def test_a_breakpoint_beside_a_line_stops_the_cell(jupyter_lab, chromium, pictures):
    page = chromium
    opened(page, jupyter_lab, "breakpoint", ["let first = 1;", LOOP], (1500, 950))
    run(page, 1)
    button = "document.querySelector('.jp-NotebookPanel .jp-DebuggerBugButton')"
    page.wait_until(f"{button} && !{button}.disabled && {button}.getAttribute('aria-disabled') !== 'true'", 60)
    press(page, button)
    gutter = "document.querySelectorAll('.jp-NotebookPanel .jp-CodeCell')[1].querySelectorAll('.cm-breakpoint-gutter .cm-gutterElement')"
    line = f"[...{gutter}].filter(each => each.offsetHeight > 5)[3]"
    page.wait_until(f"Boolean({line})", 60)
    press(page, line)
    page.wait_until("document.querySelector('.jp-DebuggerBreakpoints-body')?.innerText.includes('4')", 60)
    press(page, "document.querySelector('.jp-NotebookPanel [data-command=\"notebook:run-cell-and-select-next\"]')")
    page.wait_until("document.querySelector('.jp-DebuggerCallstack-body')?.innerText.includes('cell [')", 120)
    time.sleep(1)
    page.picture(pictures / "debugger-breakpoint.png")
    for _ in range(3):
        go = "document.querySelector('[data-command=\"debugger:continue\"]')"
        page.wait_until(f"!{go}.disabled && {go}.getAttribute('aria-disabled') !== 'true'", 60)
        press(page, go)
        time.sleep(1)
    page.wait_until("document.querySelectorAll('.jp-NotebookPanel .jp-CodeCell')[1].querySelector('.jp-OutputArea')?.innerText.includes('6')", 60)
