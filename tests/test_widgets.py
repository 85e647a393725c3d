"""`%vars live` in JupyterLab, which shows it with Jupyter's widgets: a table beside the notebook, updated after each
cell. The screenshot is in target/screenshots/."""

import json
import time
import urllib.request

import nbformat

CELLS = ["let words = vec![\"ä\".to_string(); 3];", "%vars live", "let ones = Tensor::<2>::ones([20, 30], &Device::flex());",
         "let angle = \"<b>\";", "drop(words);"]

# What a view of the table says; in the notebook and in a panel of its own.
TABLE = "[...document.querySelectorAll('.jp-NotebookPanel .widget-html-content')].map(each => each.innerText)"
BESIDE = "[...document.querySelectorAll('.jp-LinkedOutputView .widget-html-content')].map(each => each.innerText)"


def press(page, element, button="left"):
    """A mouse click on the element that a JavaScript expression returns."""
    x, y = page.wait_until(f"(() => {{ const e = {element}; if (!e) return null;"
                           "const box = e.getBoundingClientRect(); return [box.x + 8, box.y + 8]; })()")
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1)


def kernel(lab, name):
    """The state of a notebook's kernel, and how many are connected to it; None before there is one. Other
    tests' kernels may be there too."""
    with urllib.request.urlopen(f"{lab.address}/api/sessions", timeout=20) as answer:
        found = [each["kernel"] for each in json.load(answer) if each["path"] == name]
    return (found[0]["execution_state"], found[0]["connections"]) if found else None


def run(page, number):
    """Runs the next cell, which gets the number."""
    press(page, "document.querySelector('.jp-NotebookPanel [data-command=\"notebook:run-cell-and-select-next\"]')")
    page.wait_until("[...document.querySelectorAll('.jp-NotebookPanel .jp-InputPrompt')]"
                    f".some(each => each.innerText.includes('[{number}]'))", 120)


def opened(page, lab, name, sources, size=(1400, 900)):
    """Shows a notebook with these cells in JupyterLab, and waits for its kernel."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    kernelspec = {"name": "stratoscope", "display_name": "Rust", "language": "rust"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernelspec})
    nbformat.write(notebook, lab.work / f"{name}.ipynb")
    page.resize(*size)
    page.open(f"{lab.address}/lab/workspaces/{name}/tree/{name}.ipynb?reset")
    page.wait_until(f"document.querySelectorAll('.jp-NotebookPanel .jp-CodeCell').length === {len(sources)}", 120)
    # A cell that is run before its kernel is there is not run.
    deadline = time.monotonic() + 120
    while kernel(lab, f"{name}.ipynb") != ("idle", 1):
        assert time.monotonic() < deadline
        time.sleep(0.3)
    time.sleep(2)


def test_the_live_table_is_beside_the_notebook_and_updated_after_cells(jupyter_lab, chromium, pictures):
    page = chromium
    opened(page, jupyter_lab, "variables", CELLS)
    run(page, 1)
    run(page, 2)
    page.wait_until(f"{TABLE}.some(text => text.includes('words') && text.includes('Vec<String>'))", 120)

    # "Create New View for Cell Output" in the menu of the output.
    press(page, "document.querySelector('.jp-NotebookPanel .jp-OutputArea-output .widget-html-content')", "right")
    press(page, "[...document.querySelectorAll('.lm-Menu-item')].find("
                "each => each.dataset.command === 'notebook:create-output-view')")
    page.wait_until(f"{BESIDE}.some(text => text.includes('words'))")

    # The menu has made its cell the active one.
    press(page, "document.querySelectorAll('.jp-NotebookPanel .jp-InputPrompt')[2]")
    run(page, 3)
    page.wait_until(f"{BESIDE}.some(text => text.includes('ones') && text.includes('3.0 KiB') && text.includes('In[3]'))", 120)
    run(page, 4)
    page.wait_until(f"{BESIDE}.some(text => text.includes('angle'))", 120)
    page.picture(pictures / "variables-live.png")
    run(page, 5)
    page.wait_until(f"!{BESIDE}.some(text => text.includes('words')) && {BESIDE}.some(text => text.includes('ones'))", 120)
    assert json.loads(page.evaluate(f"JSON.stringify({TABLE})")) == json.loads(page.evaluate(f"JSON.stringify({BESIDE})"))


def test_a_page_with_unsaved_changes_is_left(chromium):
    chromium.open("data:text/html,first<script>onbeforeunload = event => { event.preventDefault(); return 'x' }</script>")
    chromium.wait_until("document.body.innerText === 'first'")
    # A page that nobody has touched does not ask.
    for kind in ("mousePressed", "mouseReleased"):
        chromium.call("Input.dispatchMouseEvent", type=kind, x=20, y=20, button="left", clickCount=1)
    chromium.open("data:text/html,second")
    chromium.wait_until("document.body.innerText === 'second'")
