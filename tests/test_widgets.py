"""`%vars live` in JupyterLab, which draws it with Jupyter's widgets: a table beside the notebook that follows
the cells. The picture lies in target/screenshots/ afterwards, to be looked at."""

import json

import nbformat

CELLS = ["let words = vec![\"ä\".to_string(); 3];", "%vars live", "let ones = Tensor::<2>::ones([20, 30], &Device::flex());",
         "let angle = \"<b>\";", "drop(words);"]

# What a view of the table says; in the notebook and in a panel of its own.
TABLE = "[...document.querySelectorAll('.jp-NotebookPanel .widget-html-content')].map(each => each.innerText)"
BESIDE = "[...document.querySelectorAll('.jp-LinkedOutputView .widget-html-content')].map(each => each.innerText)"


def run_next(page):
    page.evaluate("document.querySelector('.jp-NotebookPanel [data-command=\"notebook:run-cell-and-select-next\"]').click()")


def test_the_live_table_stands_beside_the_notebook_and_follows_the_cells(jupyter_lab, chromium, pictures):
    page = chromium
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    kernelspec = {"name": "stratoscope", "display_name": "Rust", "language": "rust"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernelspec})
    nbformat.write(notebook, jupyter_lab.work / "variables.ipynb")
    page.resize(1400, 900)
    page.open(f"{jupyter_lab.address}/lab/workspaces/variables/tree/variables.ipynb?reset")
    page.wait_until(f"document.querySelectorAll('.jp-NotebookPanel .jp-CodeCell').length === {len(CELLS)}", 120)
    page.wait_until("document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status === 'idle'", 120)
    run_next(page)
    run_next(page)
    page.wait_until(f"{TABLE}.some(text => text.includes('words') && text.includes('Vec<String>'))", 120)

    # "Create New View for Cell Output" in the menu of the output.
    page.evaluate("""(() => {
        const output = document.querySelector('.jp-NotebookPanel .jp-OutputArea-output');
        const {x, y} = output.getBoundingClientRect();
        output.dispatchEvent(new MouseEvent('contextmenu', {bubbles: true, clientX: x + 5, clientY: y + 5}));
    })()""")
    item = "[...document.querySelectorAll('.lm-Menu-item')].find(each => each.dataset.command === 'notebook:create-output-view')"
    page.wait_until(f"!!{item}")
    page.evaluate(f"""(() => {{
        const {{x, y}} = {item}.getBoundingClientRect();
        for (const kind of ['mousemove', 'mousedown', 'mouseup'])
            {item}.dispatchEvent(new MouseEvent(kind, {{bubbles: true, clientX: x + 5, clientY: y + 5}}));
    }})()""")
    page.wait_until(f"{BESIDE}.some(text => text.includes('words'))")

    run_next(page)
    page.wait_until(f"{BESIDE}.some(text => text.includes('ones') && text.includes('2.6 KiB') && text.includes('In[3]'))", 120)
    run_next(page)
    page.wait_until(f"{BESIDE}.some(text => text.includes('angle'))", 120)
    page.picture(pictures / "variables-live.png")
    run_next(page)
    page.wait_until(f"!{BESIDE}.some(text => text.includes('words')) && {BESIDE}.some(text => text.includes('ones'))", 120)
    assert json.loads(page.evaluate(f"JSON.stringify({TABLE})")) == json.loads(page.evaluate(f"JSON.stringify({BESIDE})"))
