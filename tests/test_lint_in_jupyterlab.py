"""Mistakes are underlined in JupyterLab while a cell is typed, by the extension that `stratoscope install` installs: the
squiggle, what hovering shows, the fix, while a cell runs, after a restart, in two notebooks and without a kernel. The
screenshots are in target/screenshots/."""

import json
import os
import signal
import time
import urllib.request

import nbformat
import pytest

import browser
import lab
from test_widgets import press, run
from test_widgets import kernel as state_of

MISSPELLED = "// 😀 größe\ncompile!(model, optimiser = AdamW::new(5e-5))?;"
STEPS = "compile!(model, optimizer = AdamW::new(5e-5), loss = MeanSquaredError, steps_per_execution = 4)?;"
LOOP = "loop { std::thread::sleep(std::time::Duration::from_millis(50)); }"
PANEL = "document.querySelector('.jp-NotebookPanel:not(.lm-mod-hidden)')"
# The underlined texts of the notebook that is seen, each once.
UNDERLINED = f"[...new Set([...{PANEL}.querySelectorAll('.cm-lintRange')].map(each => each.textContent))]"
TOOLTIP = "document.querySelector('.cm-tooltip-lint')"


@pytest.fixture
def page(tmp_path):
    """A browser of its own: one that leaves a notebook that was changed asks whether it may."""
    if browser.find() is None:
        pytest.skip("no Chromium is installed")
    with browser.Browser(tmp_path / "user") as opened:
        yield opened


def notebook(sources, kernel="stratoscope"):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    kernelspec = {"name": kernel, "display_name": kernel, "language": "rust"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernelspec})


def write(jupyter_lab, name, sources, kernel="stratoscope"):
    nbformat.write(notebook(sources, kernel), jupyter_lab.work / f"{name}.ipynb")


def show(page, jupyter_lab, name, cells, theme="light"):
    body = json.dumps({"raw": json.dumps({"theme": lab.THEMES[theme]})}).encode()
    request = urllib.request.Request(f"{jupyter_lab.address}/lab/api/settings/@jupyterlab/apputils-extension:themes", body,
                                     {"Content-Type": "application/json"}, method="PUT")
    urllib.request.urlopen(request, timeout=20).read()
    page.resize(1280, 900)
    page.open(f"{jupyter_lab.address}/lab/workspaces/lint-{name}/tree/{name}.ipynb?reset")
    page.wait_until(f"document.querySelectorAll('.jp-NotebookPanel .jp-CodeCell .cm-content').length === {cells}", 120)
    page.evaluate("window.failures = []; addEventListener('unhandledrejection', each => failures.push(String(each.reason)));"
                  "addEventListener('error', each => failures.push(each.message))")


def wait_for_kernel(jupyter_lab, name, state="idle"):
    deadline = time.monotonic() + 120
    while (found := state_of(jupyter_lab, f"{name}.ipynb")) is None or found[0] != state or found[1] < 1:
        assert time.monotonic() < deadline, found
        time.sleep(0.3)


def opened(page, jupyter_lab, name, sources, theme="light"):
    """A notebook of its own with a running kernel."""
    write(jupyter_lab, name, sources)
    show(page, jupyter_lab, name, len(sources), theme)
    wait_for_kernel(jupyter_lab, name)


def type_into(page, cell, text):
    """Appends a text to a cell, as somebody who types does."""
    press(page, f"{PANEL}.querySelectorAll('.jp-CodeCell .cm-content')[{cell}]")
    for kind in ("rawKeyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="End", code="End", windowsVirtualKeyCode=35, modifiers=2)
    for piece in text.split("\n"):
        if piece is not text.split("\n")[0]:
            page.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
        page.call("Input.insertText", text=piece)


def text_of(page, cell):
    return page.evaluate(f"{PANEL}.querySelectorAll('.jp-CodeCell .cm-content')[{cell}].innerText")


def hover(page, text):
    """Moves the mouse to an underlined text and waits for what that shows."""
    box = page.wait_until(f"(() => {{ const found = [...{PANEL}.querySelectorAll('.cm-lintRange')].find(each => "
                          f"each.textContent === {json.dumps(text)}); if (!found) return null;"
                          "const box = found.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] - 3, y=box[1])
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    return page.wait_until(f"{TOOLTIP}?.innerText")


def underlined(page, *texts, seconds=30):
    """Waits until exactly these texts are underlined."""
    page.wait_until(f"JSON.stringify({UNDERLINED}) === {json.dumps(json.dumps(list(texts), ensure_ascii=False, separators=(',', ':')))}",
                    seconds)


def check_no_failure(page):
    assert page.evaluate("window.failures") == []


@pytest.mark.parametrize("theme", lab.THEMES)
def test_a_misspelled_argument_is_underlined_explained_and_fixed(page, jupyter_lab, pictures, theme):
    opened(page, jupyter_lab, f"typed-{theme}", [""], theme)
    type_into(page, 0, MISSPELLED)
    underlined(page, "optimiser")
    shown = hover(page, "optimiser")
    for part in ("SC0101", "optimiser", "did you mean optimizer?", "unknown-compile-argument", "Example:"):
        assert part in shown, shown
    time.sleep(0.5)
    page.picture(pictures / f"lint-{theme}.png")
    box = page.evaluate(f"(() => {{ const box = {TOOLTIP}.getBoundingClientRect();"
                        "return [box.x, box.y, box.right, box.bottom, innerWidth, innerHeight]; })()")
    assert box[0] >= 0 and box[1] >= 0 and box[2] <= box[4] and box[3] <= box[5], box
    press(page, f"{TOOLTIP}.querySelector('.cm-diagnosticAction')")
    page.wait_until(f"!{PANEL}.querySelector('.jp-CodeCell .cm-content').innerText.includes('optimiser')")
    assert "optimizer = AdamW" in text_of(page, 0) and "größe" in text_of(page, 0)
    page.wait_until(f"{UNDERLINED}.every(text => text !== 'optimizer')")
    check_no_failure(page)


def test_a_cell_is_checked_while_another_runs_and_the_kernel_stays_busy(page, jupyter_lab, pictures):
    opened(page, jupyter_lab, "running", [LOOP, ""])
    time.sleep(2)
    press(page, f"{PANEL}.querySelectorAll('.jp-InputPrompt')[0]")
    run(page, "*")
    wait_for_kernel(jupyter_lab, "running", "busy")
    indicator = f"{PANEL}.querySelector('.jp-Notebook-ExecutionIndicator')"
    page.wait_until(f"{indicator}.dataset.status === 'busy'")
    page.evaluate(f"window.states = []; new MutationObserver(() => states.push({indicator}.dataset.status))"
                  f".observe({indicator}, {{attributes: true, attributeFilter: ['data-status']}})")
    type_into(page, 1, MISSPELLED)
    underlined(page, "optimiser")
    page.picture(pictures / "lint-while-a-cell-runs.png")
    assert "*" in page.evaluate(f"{PANEL}.querySelector('.jp-InputPrompt').innerText"), "the cell has ended"
    assert set(page.evaluate("states")) <= {"busy"}
    press(page, "document.querySelector('.jp-NotebookPanel [data-command=\"notebook:interrupt-kernel\"]')")
    wait_for_kernel(jupyter_lab, "running")
    check_no_failure(page)


def test_it_goes_on_after_a_restart_and_after_the_kernel_was_killed(page, jupyter_lab):
    opened(page, jupyter_lab, "restarted", [MISSPELLED, ""])
    underlined(page, "optimiser")
    press(page, "document.querySelector('.jp-NotebookPanel [data-command=\"notebook:restart-kernel\"]')")
    press(page, "document.querySelector('.jp-Dialog .jp-mod-accept')")
    wait_for_kernel(jupyter_lab, "restarted")
    type_into(page, 1, MISSPELLED.replace("optimiser", "optimizr"))
    underlined(page, "optimiser", "optimizr", seconds=60)

    with urllib.request.urlopen(f"{jupyter_lab.address}/api/sessions", timeout=20) as answer:
        kernel = next(each["kernel"]["id"] for each in json.load(answer) if each["path"] == "restarted.ipynb")
    (pid,) = [int(process) for process in filter(str.isdigit, os.listdir("/proc")) if kernel in arguments(process)]
    os.kill(pid, signal.SIGKILL)
    # The dialog that says so.
    press(page, "[...document.querySelectorAll('.jp-Dialog button')].find(each => each.innerText.trim() === 'Ok')")
    wait_for_kernel(jupyter_lab, "restarted")
    type_into(page, 1, "\ncompile!(model, lss = MeanSquaredError)?;")
    page.wait_until(f"{UNDERLINED}.includes('lss')", 60)
    check_no_failure(page)


def arguments(process):
    try:
        with open(f"/proc/{process}/cmdline") as file:
            words = file.read()
    except OSError:
        return ""
    return words if "\0kernel\0" in words or "toy" in words else ""


def test_two_notebooks_are_checked_each_by_its_kernel(page, jupyter_lab):
    write(jupyter_lab, "second", ["compile!(model, lss = MeanSquaredError)?;"])
    opened(page, jupyter_lab, "first", [MISSPELLED])
    underlined(page, "optimiser")
    # Opened from the list of files, in the same page.
    item = "[...document.querySelectorAll('.jp-DirListing-item')].find(each => each.innerText.includes('second.ipynb'))"
    x, y = page.wait_until(f"(() => {{ const e = {item}; if (!e) return null; const box = e.getBoundingClientRect();"
                           "return [box.x + 20, box.y + 8]; })()")
    for count in (1, 2):
        for kind in ("mousePressed", "mouseReleased"):
            page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)
    page.wait_until("document.querySelectorAll('.jp-NotebookPanel').length === 2", 60)
    wait_for_kernel(jupyter_lab, "second")
    page.wait_until(f"{UNDERLINED}.includes('lss')", 60)
    type_into(page, 0, "\n" + MISSPELLED.replace("optimiser", "optimizr"))
    page.wait_until(f"{UNDERLINED}.includes('optimizr') && {UNDERLINED}.includes('lss')", 60)
    assert "optimiser" not in page.evaluate(UNDERLINED)
    check_no_failure(page)


def test_a_strategy_in_another_cell_decides_about_steps_per_execution(page, jupyter_lab):
    """Also before any of the cells has run."""
    opened(page, jupyter_lab, "scopes", [STEPS, ""])
    underlined(page, "steps_per_execution = 4")
    assert "SC0102" in hover(page, "steps_per_execution = 4")
    type_into(page, 1, "let strategy = MirroredStrategy::logical(2)?;")
    underlined(page)
    check_no_failure(page)


@pytest.mark.parametrize("kernel", ["no-such-kernel", "python3"])
def test_without_a_kernel_of_ours_nothing_changes(page, jupyter_lab, kernel):
    write(jupyter_lab, kernel, [MISSPELLED], kernel)
    show(page, jupyter_lab, kernel, 1)
    if kernel == "python3":
        wait_for_kernel(jupyter_lab, kernel)
    page.evaluate("document.head.insertAdjacentHTML('beforeend', '<style>.jp-Dialog{display:none!important}</style>')")
    time.sleep(3)
    assert page.evaluate(UNDERLINED) == [] and "optimiser" in text_of(page, 0)
    check_no_failure(page)
