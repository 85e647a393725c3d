"""Fixes in JupyterLab: by the button in a card and by the keyboard in the editor, with what screen readers are given, by the
extension that `stratoscope install` installs. The screenshots are in target/screenshots/."""

import json
import time

import nbformat
import pytest

import lab
from test_lint_in_jupyterlab import (  # noqa: F401 (page is a fixture)
    MISSPELLED, PANEL, check_no_failure, notebook, opened, page, show, text_of, type_into, underlined)
from test_widgets import press, run

# Its first fix is the right one, and the cell then runs.
MODEL = 'let net = Sequential([Dense(3).input_shape(4)])?;'
WRONG = '// größe 😀\ncompile!(net, optimiser = Adam::new(0.01), loss = SparseCategoricalCrossentropy { from_logits: true })?;\nprintln!("it runs");'
CARD = f"{PANEL}.querySelector('.stratoscope-card')"
APPLY = f"{PANEL}.querySelector('.stratoscope-fix .stratoscope-button')"
PROBLEM = "document.querySelector('.stratoscope-problem')"
FOCUS = "document.activeElement"
SHIFT, CONTROL = 8, 2


def key(page, name, code, modifiers=0, text=None):  # noqa: F811
    down = {"text": text} if text else {}
    for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, modifiers=modifiers,
                  **(down if kind == "keyDown" else {}))


def enter(page, modifiers=0):  # noqa: F811
    key(page, "Enter", 13, modifiers, "\r")


def f8(page, modifiers=0):  # noqa: F811
    key(page, "F8", 119, modifiers)


def control_period(page):  # noqa: F811
    for kind in ("rawKeyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=".", code="Period", windowsVirtualKeyCode=190, modifiers=CONTROL)


@pytest.mark.parametrize("theme", lab.THEMES)
def test_a_button_in_the_card_applies_its_fix(page, jupyter_lab, pictures, theme):  # noqa: F811
    opened(page, jupyter_lab, f"card-{theme}", [MODEL, WRONG], theme)
    time.sleep(2)
    run(page, 1)
    run(page, 2)
    page.wait_until(f"{APPLY} !== null")
    # Headings and the group for screen readers: JupyterLab has removed what the kernel wrote.
    roles = page.evaluate(f"[{CARD}.getAttribute('role'), {CARD}.getAttribute('aria-label'), ...[...{CARD}.querySelectorAll("
                          "'[role=heading]')].map(each => each.getAttribute('aria-level'))]")
    assert roles[0] == "group" and "SC0101" in roles[1] and roles[2] == "4" and "5" in roles[3:], roles
    assert page.evaluate(f"{APPLY}.getAttribute('aria-label')") == "Apply: did you mean optimizer?"
    page.evaluate(f"{APPLY}.scrollIntoView({{block: 'center'}})")
    time.sleep(0.3)
    page.picture(pictures / f"fix-button-{theme}.png")
    # With the keyboard: the fix of the card of a cell that has no squiggle any more is reached by Ctrl-. too.
    page.evaluate(f"{APPLY}.focus()")
    enter(page)
    page.wait_until(f"{PANEL}.querySelectorAll('.jp-CodeCell .cm-content')[1].innerText.includes('optimizer')")
    assert "größe 😀" in text_of(page, 1) and "optimiser" not in text_of(page, 1)
    assert page.evaluate(f"{FOCUS}.closest('.jp-CodeCell') === {PANEL}.querySelectorAll('.jp-CodeCell')[1]")
    page.picture(pictures / f"fix-applied-{theme}.png")
    # The editor has the focus: the cell runs.
    enter(page, SHIFT)
    page.wait_until(f"{PANEL}.innerText.includes('it runs\\n') && !{CARD}", 120)
    check_no_failure(page)


def test_a_fix_does_not_touch_a_cell_that_was_changed(page, jupyter_lab):  # noqa: F811
    opened(page, jupyter_lab, "changed", [MODEL, WRONG])
    time.sleep(2)
    run(page, 1)
    run(page, 2)
    page.wait_until(f"{APPLY} !== null")
    # A line above moves the place of the fix.
    press(page, f"{PANEL}.querySelectorAll('.jp-CodeCell .cm-content')[1]")
    key(page, "Home", 36, CONTROL)
    page.call("Input.insertText", text="// above")
    enter(page)
    page.evaluate(f"{APPLY}.click()")
    page.wait_until(f"{PANEL}.querySelectorAll('.jp-CodeCell .cm-content')[1].innerText.includes('optimizer = Adam')")
    before = text_of(page, 1)
    assert before.startswith("// above\n// größe"), before
    # What the fix replaces is gone.
    page.evaluate(f"{APPLY}.click()")
    page.wait_until(f"{CARD}.innerText.includes('does not fit any more')")
    assert text_of(page, 1) == before
    check_no_failure(page)


@pytest.mark.parametrize("theme", lab.THEMES)
def test_problems_are_found_and_fixed_by_the_keyboard(page, jupyter_lab, pictures, theme):  # noqa: F811
    second = MISSPELLED.replace("optimiser", "optimizr")
    opened(page, jupyter_lab, f"keys-{theme}", [MISSPELLED, "1 + 1", second], theme)
    underlined(page, "optimiser", "optimizr")
    press(page, f"{PANEL}.querySelectorAll('.jp-CodeCell .cm-content')[0]")
    key(page, "Home", 36, CONTROL)
    f8(page)
    shown = page.wait_until(f"{PROBLEM}?.innerText")
    for part in ("SC0101", "did you mean optimizer?", "Example:"):
        assert part in shown, shown
    assert page.evaluate(f"{PROBLEM}.getAttribute('role')") == "alert"
    assert page.evaluate(f"{FOCUS}.classList.contains('cm-content')"), "the editor keeps the focus"
    time.sleep(0.3)
    page.picture(pictures / f"next-problem-{theme}.png")
    # The next cell with a problem, then the first one again, and back.
    f8(page)
    page.wait_until(f"{PROBLEM}?.innerText.includes('optimizr')")
    f8(page)
    page.wait_until(f"{PROBLEM}?.innerText.includes('optimiser')")
    f8(page, SHIFT)
    page.wait_until(f"{PROBLEM}?.innerText.includes('optimizr')")
    key(page, "Escape", 27)
    page.wait_until(f"!{PROBLEM}")
    assert page.evaluate(f"{PANEL}.querySelector('.jp-Notebook').classList.contains('jp-mod-editMode')"), "still edited"
    # Its fixes: the first one has the focus, and Enter applies it.
    control_period(page)
    page.wait_until(f"{FOCUS}.matches('.stratoscope-problem button')")
    assert page.evaluate(f"{PROBLEM}.getAttribute('role')") == "dialog"
    time.sleep(0.3)
    page.picture(pictures / f"fix-by-keyboard-{theme}.png")
    enter(page)
    page.wait_until(f"{PANEL}.querySelectorAll('.jp-CodeCell .cm-content')[2].innerText.includes('optimizer')")
    assert "größe" in text_of(page, 2) and "optimiser" in text_of(page, 0)
    page.wait_until(f"{FOCUS}.classList.contains('cm-content') && !{PROBLEM}")
    key(page, "z", 90, CONTROL)
    page.wait_until(f"{PANEL}.querySelectorAll('.jp-CodeCell .cm-content')[2].innerText.includes('optimizr')")
    check_no_failure(page)


def saved(data):
    """A notebook that was saved with a card."""
    made = notebook([WRONG])
    made.cells[0].outputs = [nbformat.v4.new_output("display_data", data=data)]
    return made


def test_a_card_is_right_without_what_a_button_needs(page, jupyter_lab):  # noqa: F811
    """As of an earlier kernel, or where a card is shown outside of a notebook."""
    html = ('<div class="stratoscope-card" role="group"><div class="stratoscope-card-head">error SC0101</div>'
            '<div class="stratoscope-fix"><div>did you mean <code>optimizer</code>?</div></div></div>')
    nbformat.write(saved({"text/html": html, "text/plain": "error"}), jupyter_lab.work / "saved.ipynb")
    show(page, jupyter_lab, "saved", 1)
    page.wait_until(f"{CARD}?.getAttribute('aria-label') === 'error SC0101'")
    assert page.evaluate(f"{APPLY} === null") and "did you mean optimizer?" in page.evaluate(f"{CARD}.innerText")
    # With the data of a card the button is there before the notebook is trusted.
    data = {"version": 1, "changes": [{"start": 11, "before": WRONG.split("\n")[1], "after": "fixed"}]}
    mime = {"application/vnd.stratoscope.diagnostic+json": data}
    nbformat.write(saved({"text/html": html, "text/plain": "error", **mime}), jupyter_lab.work / "with-data.ipynb")
    show(page, jupyter_lab, "with-data", 1)
    page.wait_until(f"{APPLY} !== null")
    page.evaluate(f"{APPLY}.click()")
    page.wait_until(f"{json.dumps(WRONG.replace(WRONG.split(chr(10))[1], 'fixed'))} === "
                    f"{PANEL}.querySelector('.jp-CodeCell .cm-content').innerText.trim()")
    check_no_failure(page)
