"""The executed notebook in JupyterLab, as a reader opens it: sanitized, in light and dark. It saves screenshots."""

import json

import pytest

import lab
import page_checks


@pytest.fixture(scope="module", params=lab.THEMES)
def page(request, executed, chromium, jupyter_lab):
    """The notebook, rendered in one theme; all of it is in view."""
    jupyter_lab.show(chromium, executed, "fine_tune_bert", request.param)
    page_checks.load(chromium)
    chromium.theme = request.param
    return chromium


def outputs_with(page, text):
    """The rectangle of the output that holds a text, and its visible text."""
    return page.evaluate(
        """(() => {
            const all = [...document.querySelectorAll('.jp-OutputArea-output')];
            const found = all.find(each => each.innerText.includes(%s));
            if (!found) return null;
            const box = found.getBoundingClientRect();
            return {text: found.innerText, box: [box.x, box.y, box.width, box.height]};
        })()"""
        % json.dumps(text)
    )


def test_the_whole_notebook(page, pictures):
    page.picture(pictures / f"notebook-{page.theme}.png")
    text = page.evaluate("document.body.innerText")
    for part in ("SC0101", "SC0102", "SC0201", "all-reduces", "cpu:0", "cpu:1", "macro_f1"):
        assert part in text, part


@pytest.mark.parametrize(
    ("name", "text", "parts"),
    [
        ("unknown-argument", "SC0101", ["optimiser", "did you mean", "optimizer"]),
        ("without-scope", "SC0102", ["steps_per_execution", "scope"]),
        ("outside-scope", "SC0201", ["cpu:0", "cpu:1"]),
        ("placement", "planned", ["cpu:0", "cpu:1", "logical"]),
        ("training", "seq/s", ["loss", "accuracy", "executions", "optimizer steps", "all-reduces"]),
    ],
)
def test_the_main_outputs_are_visible(page, pictures, name, text, parts):
    found = outputs_with(page, text)
    assert found, f"no output shows {text}"
    x, y, width, height = found["box"]
    page.picture(pictures / f"{name}-{page.theme}.png", (max(x - 20, 0), max(y - 20, 0), width + 40, min(height, 3000) + 40))
    for part in parts:
        assert part in found["text"], part
    assert width > 200 and height > 40, "it has no size"


def test_the_curves_are_seen(page, pictures):
    """Also in an untrusted notebook, in which JupyterLab shows no SVG."""
    box = page.wait_until(
        """(() => {
            const image = document.querySelector('.jp-OutputArea-output img');
            if (!image?.complete || image.naturalWidth < 300) return null;
            const box = image.getBoundingClientRect();
            return [box.x, box.y, box.width, box.height];
        })()"""
    )
    page.picture(pictures / f"curves-{page.theme}.png", box)
    assert box[2] > 300 and box[3] > 150


def test_text_can_be_read_on_its_background(page):
    """The contrast of every text of our outputs; 4.5 is WCAG's bound for text of this size."""
    found = page.evaluate("[...document.querySelectorAll('.jp-RenderedHTMLCommon.jp-OutputArea-output')]"
                          ".flatMap(page_checks.contrasts)")
    assert found, "there is no text"
    unreadable = sorted((each for each in found if each["ratio"] < 4.5), key=lambda each: each["ratio"])
    assert not unreadable, unreadable[:8]
