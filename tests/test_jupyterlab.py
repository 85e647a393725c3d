"""The executed notebook in JupyterLab, as a reader opens it: sanitized, in light and dark. The
pictures lie in target/screenshots/ afterwards, to be looked at."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest

import browser

pytestmark = pytest.mark.skipif(browser.find() is None, reason="no Chromium is installed")

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}


@pytest.fixture(scope="module")
def pictures(root):
    folder = root / "target" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def lab(executed, tmp_path_factory):
    """The address of a JupyterLab that shows the executed notebook."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "work").mkdir()
    nbformat.write(executed, folder / "work" / "fine_tune_bert.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        # Everything is rendered, not only what is in view, so that one picture can hold it all.
        "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
        "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    }
    overrides = folder / "settings"
    overrides.mkdir()
    (overrides / "overrides.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}", "--port-retries=0",
               "--IdentityProvider.token=", "--ServerApp.password=", "--allow-root", "--ServerApp.disable_check_xsrf=True",
               f"--LabApp.app_settings_dir={overrides}", f"--ServerApp.root_dir={folder / 'work'}"]
    env = os.environ | {"JUPYTERLAB_SETTINGS_DIR": str(folder / "user"), "JUPYTERLAB_WORKSPACES_DIR": str(folder / "ws")}
    log = open(folder / "log", "wb")
    server = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 90
        while True:
            try:
                urllib.request.urlopen(f"{address}/api/status", timeout=5).read()
                break
            except OSError:
                if time.monotonic() > deadline or server.poll() is not None:
                    raise AssertionError((folder / "log").read_text()[-3000:]) from None
                time.sleep(0.3)
        yield address
    finally:
        server.terminate()
        server.wait(30)
        log.close()


def set_theme(address, theme):
    body = json.dumps({"raw": json.dumps({"theme": theme})}).encode()
    request = urllib.request.Request(f"{address}/lab/api/settings/@jupyterlab/apputils-extension:themes", body,
                                     {"Content-Type": "application/json"}, method="PUT")
    urllib.request.urlopen(request, timeout=20).read()


@pytest.fixture(scope="module", params=THEMES)
def page(request, lab, executed, tmp_path_factory):
    """The notebook, rendered in one theme; all of it is in view."""
    set_theme(lab, THEMES[request.param])
    with browser.Browser(tmp_path_factory.mktemp("profile") / "user") as page:
        page.theme = request.param
        page.open(f"{lab}/lab/tree/fine_tune_bert.ipynb?reset")
        page.wait_until("document.querySelectorAll('.jp-CodeCell').length > 5", 120)
        page.wait_until(f"document.body.dataset.jpThemeName === {json.dumps(THEMES[request.param])}")
        # A question about the kernel, where there is one: the notebook is read, not run.
        page.evaluate("document.querySelectorAll('.jp-Dialog button.jp-mod-reject').forEach(each => each.click())")
        outputs = sum(len(cell.outputs) > 0 for cell in executed.cells if cell.cell_type == "code")
        page.wait_until(f"[...document.querySelectorAll('.jp-CodeCell')].filter(each => each.querySelector("
                        f"'.jp-OutputArea-output')).length >= {outputs}", 120)
        # As high as the whole notebook; cells that come into view may still grow.
        height = 0
        while height != (needed := page.evaluate(
                "document.querySelector('.jp-WindowedPanel-outer').scrollHeight") + 120) and needed < 16000:
            height = needed
            page.resize(1280, height)
            time.sleep(1)
        yield page


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
def test_what_is_seen(page, pictures, name, text, parts):
    found = outputs_with(page, text)
    assert found, f"no output shows {text}"
    x, y, width, height = found["box"]
    page.picture(pictures / f"{name}-{page.theme}.png", (max(x - 20, 0), max(y - 20, 0), width + 40, min(height, 3000) + 40))
    for part in parts:
        assert part in found["text"], part
    assert width > 200 and height > 40, "it has no size"


def test_the_curves_are_seen(page, pictures):
    """Also in a notebook that is not trusted, where JupyterLab shows no SVG."""
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
    """The contrast of every text of our outputs, as WCAG computes it: 4.5 is its bound for small text;
    3 leaves room for muted marks."""
    worst = page.evaluate(CONTRAST)
    assert worst, "there is no text"
    assert worst[0]["ratio"] >= 3.0, worst[:8]


CONTRAST = """(() => {
    const parse = colour => (colour.match(/[\\d.]+/g) || []).map(Number);
    const light = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const over = (top, bottom) => {
        const a = top.length > 3 ? top[3] : 1;
        return [0, 1, 2].map(i => top[i] * a + bottom[i] * (1 - a));
    };
    const background = node => {
        const layers = [];
        for (let each = node; each; each = each.parentElement) layers.push(parse(getComputedStyle(each).backgroundColor));
        return layers.reverse().reduce((below, layer) => layer.length ? over(layer, below) : below, [255, 255, 255]);
    };
    const found = [];
    for (const output of document.querySelectorAll('.jp-RenderedHTMLCommon')) {
        if (!output.closest('.jp-OutputArea-output')) continue;
        const walker = document.createTreeWalker(output, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
            const text = walker.currentNode.textContent.trim();
            const node = walker.currentNode.parentElement;
            if (!text || !/[\\w]/.test(text) || !node.offsetParent) continue;
            const behind = background(node);
            const [a, b] = [light(over(parse(getComputedStyle(node).color), behind)), light(behind)];
            found.push({ratio: (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), text: text.slice(0, 60)});
        }
    }
    return found.sort((a, b) => a.ratio - b.ratio).slice(0, 20);
})()"""
