"""Tables of data in JupyterLab: rows are sorted by a press on a heading, with the mouse and with the keyboard, and long tables
have pages, by the extension that `stratoscope install` installs. Without it the table is static. The screenshots are in
target/screenshots/."""

import json
import time

import nbformat
import pytest

import lab
from test_lint_in_jupyterlab import check_no_failure, opened, page, show  # noqa: F401 (a fixture)
from test_widgets import press as press_at, run

# Numbers with units and a missing one, texts, and pairs of equal values.
UNITS = '''let rows = [("b", "1.20 KiB", "85 %", "2 min 05 s"), ("a10", "900 B", "9.5 %", "0.5 s"), ("a9", "–", "85 %", "1 h 00 min"), ("c", "86.7 MiB", "100 %", "45 s")];
let mut table = Table::new(["name", "size", "share", "time"]);
for (name, size, share, time) in rows { table.push([name, size, share, time]); }
display(&table);'''
LONG = '''let mut long = Table::new(["row", "square", "parity"]);
for row in 0..57i64 { long.push([row, (row - 30) * (row - 30), row % 2]); }
display(&long);'''
TABLES = "document.querySelectorAll('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-OutputArea-output table')"


def press(page, element):
    """A mouse click; what is outside of the window comes into view first."""
    page.wait_until(f"(() => {{ const e = {element}; e?.scrollIntoView({{block: 'center'}}); return !!e; }})()")
    time.sleep(0.2)
    press_at(page, element)


def column(page, table, number):
    """The texts of a column as far as they are seen, from the top."""
    return page.evaluate(f"[...{TABLES}[{table}].rows].slice(1).filter(row => row.getBoundingClientRect().height > 0)"
                         f".map(row => row.cells[{number}].innerText.trim())")


def heading(table, number):
    return f"{TABLES}[{table}].rows[0].cells[{number}]"


def button(table, number):
    return f"{heading(table, number)}.querySelector('button.stratoscope-sort')"


def direction(page, table, number):
    return page.evaluate(f"{heading(table, number)}.getAttribute('aria-sort')")


def key(page, name, code, text):
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=name, code=name.strip() or "Space", windowsVirtualKeyCode=code,
                  **({"text": text} if kind == "keyDown" else {}))


def executed(page, jupyter_lab, name, sources, theme="light"):
    opened(page, jupyter_lab, name, sources, theme)
    time.sleep(2)
    for number in range(1, len(sources) + 1):
        run(page, number)
    page.wait_until(f"{TABLES}.length === {len(sources)} && {button(len(sources) - 1, 0)} !== null", 120)


def bar(word):
    return f"[...document.querySelectorAll('.stratoscope-pages button')].find(each => each.innerText.trim() === {json.dumps(word)})"


@pytest.mark.parametrize("theme", lab.THEMES)
def test_rows_are_sorted_by_a_press_and_long_tables_have_pages(page, jupyter_lab, pictures, theme):  # noqa: F811
    executed(page, jupyter_lab, f"tables-{theme}", [UNITS, LONG], theme)
    unsorted = ["b", "a10", "a9", "c"]
    assert column(page, 0, 0) == unsorted and direction(page, 0, 1) is None
    # Bytes by their size, not by their text; a missing value is last in both directions.
    press(page, button(0, 1))
    assert column(page, 0, 1) == ["900 B", "1.20 KiB", "86.7 MiB", "–"] and direction(page, 0, 1) == "ascending"
    press(page, button(0, 1))
    assert column(page, 0, 1) == ["86.7 MiB", "1.20 KiB", "900 B", "–"] and direction(page, 0, 1) == "descending"
    press(page, button(0, 1))
    assert column(page, 0, 0) == unsorted and direction(page, 0, 1) is None
    # Equal values keep their order in both directions; another column begins anew.
    press(page, button(0, 2))
    assert column(page, 0, 0) == ["a10", "b", "a9", "c"]
    press(page, button(0, 2))
    assert column(page, 0, 0) == ["c", "b", "a9", "a10"]
    press(page, button(0, 3))
    assert column(page, 0, 3) == ["0.5 s", "45 s", "2 min 05 s", "1 h 00 min"] and direction(page, 0, 2) is None
    press(page, button(0, 0))
    assert column(page, 0, 0) == ["a9", "a10", "b", "c"]

    assert column(page, 1, 0) == [str(row) for row in range(20)]
    assert "rows 1 to 20 of 57" in page.evaluate("document.querySelector('.stratoscope-pages').innerText")
    press(page, bar("›"))
    assert column(page, 1, 0) == [str(row) for row in range(20, 40)]
    # All rows are sorted, not those of the page, and the first page is shown.
    press(page, button(1, 1))
    assert column(page, 1, 1)[:5] == ["0", "1", "1", "4", "4"] and column(page, 1, 0)[:5] == ["30", "29", "31", "28", "32"]
    time.sleep(0.5)
    page.picture(pictures / f"tables-{theme}.png")
    press(page, bar("›"))
    press(page, bar("›"))
    assert len(column(page, 1, 0)) == 17 and page.evaluate(f"{bar('›')}.disabled")
    press(page, bar("all rows"))
    assert len(column(page, 1, 0)) == 57
    press(page, bar("pages"))
    assert len(column(page, 1, 0)) == 20
    check_no_failure(page)


def test_headings_are_pressed_with_the_keyboard_and_the_cell_is_not_edited(page, jupyter_lab):  # noqa: F811
    executed(page, jupyter_lab, "tables-keyboard", [UNITS])
    page.evaluate(f"{button(0, 0)}.focus()")
    key(page, "Enter", 13, "\r")
    assert column(page, 0, 0) == ["a9", "a10", "b", "c"] and direction(page, 0, 0) == "ascending"
    key(page, " ", 32, " ")
    assert column(page, 0, 0) == ["c", "b", "a10", "a9"] and direction(page, 0, 0) == "descending"
    assert page.evaluate(f"document.activeElement === {button(0, 0)}")
    assert page.evaluate("document.querySelector('.jp-Notebook').classList.contains('jp-mod-commandMode')")
    # Tab goes on to the next heading.
    key(page, "Tab", 9, "")
    assert page.evaluate(f"document.activeElement === {button(0, 1)}")
    check_no_failure(page)


def test_a_stored_notebook_has_the_order_of_the_kernel(page, jupyter_lab):  # noqa: F811
    """Sorting is of the page alone."""
    executed(page, jupyter_lab, "tables-stored", [LONG])
    press(page, button(0, 1))
    assert column(page, 0, 0)[0] == "30"
    press(page, "document.querySelector('.jp-NotebookPanel [data-command=\"docmanager:save\"]')")
    path = jupyter_lab.work / "tables-stored.ipynb"
    deadline = time.monotonic() + 30
    while not (stored := nbformat.read(path, as_version=4)).cells[0].outputs:
        assert time.monotonic() < deadline
        time.sleep(0.3)
    html = stored.cells[0].outputs[0].data["text/html"]
    assert "<button" not in html and "hidden" not in html and html.index("<td>0</td>") < html.index("<td>30</td>")


def test_a_table_of_an_untrusted_notebook_is_sorted(page, jupyter_lab, kernel):  # noqa: F811
    """JupyterLab cleans what it does not trust: the mark of a table is not removed."""
    output = nbformat.v4.new_output("display_data", {"text/html": kernel.run(LONG).shown("text/html"), "text/plain": "a table"})
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(LONG, execution_count=1, outputs=[output])],
                                        metadata={"kernelspec": {"name": "stratoscope", "display_name": "Rust"}})
    nbformat.write(notebook, jupyter_lab.work / "tables-untrusted.ipynb")
    show(page, jupyter_lab, "tables-untrusted", 1)
    page.wait_until(f"{TABLES}.length === 1 && {button(0, 0)} !== null", 60)
    assert column(page, 0, 0) == [str(row) for row in range(20)]
    press(page, button(0, 1))
    assert column(page, 0, 0)[0] == "30"
    check_no_failure(page)
