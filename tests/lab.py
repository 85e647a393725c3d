"""Pages of executed notebooks: JupyterLab as a reader opens it, in either theme, and the static HTML of nbconvert."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
from nbconvert import HTMLExporter

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
WIDTH = 1280


class Lab:
    """A JupyterLab server that shows notebooks without trusting them. Use it as a context manager."""

    def __init__(self, folder):
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
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
        command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
                   "--port-retries=0", "--IdentityProvider.token=", "--ServerApp.password=", "--allow-root",
                   "--ServerApp.disable_check_xsrf=True", f"--LabApp.app_settings_dir={overrides}",
                   f"--ServerApp.root_dir={self.work}"]
        env = os.environ | {"JUPYTERLAB_SETTINGS_DIR": str(folder / "user"), "JUPYTERLAB_WORKSPACES_DIR": str(folder / "ws")}
        self.log = open(folder / "log", "wb")
        self.server = subprocess.Popen(command, env=env, stdout=self.log, stderr=subprocess.STDOUT)
        self.address = f"http://127.0.0.1:{port}"

    def __enter__(self):
        deadline = time.monotonic() + 90
        while True:
            try:
                urllib.request.urlopen(f"{self.address}/api/status", timeout=5).read()
                return self
            except OSError:
                if time.monotonic() > deadline or self.server.poll() is not None:
                    self.__exit__()
                    raise AssertionError((self.folder / "log").read_text()[-3000:]) from None
                time.sleep(0.3)

    def __exit__(self, *_):
        self.server.terminate()
        self.server.wait(30)
        self.log.close()

    def show(self, page, notebook, name, theme):
        """The notebook in a browser's page, in a theme; all of it is in view."""
        nbformat.write(notebook, self.work / f"{name}.ipynb")
        body = json.dumps({"raw": json.dumps({"theme": THEMES[theme]})}).encode()
        request = urllib.request.Request(f"{self.address}/lab/api/settings/@jupyterlab/apputils-extension:themes", body,
                                         {"Content-Type": "application/json"}, method="PUT")
        urllib.request.urlopen(request, timeout=20).read()
        page.resize(WIDTH, 1600)
        # A new workspace: it does not reopen the documents of another page.
        page.open(f"{self.address}/lab/workspaces/{name}-{theme}/tree/{name}.ipynb?reset")
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        page.wait_until(f"document.querySelectorAll('.jp-CodeCell').length >= {len(cells)}", 120)
        page.wait_until(f"document.body.dataset.jpThemeName === {json.dumps(THEMES[theme])}")
        # The dialog that asks for a kernel may appear late and is closed: the notebook is not run.
        page.evaluate("document.head.insertAdjacentHTML('beforeend', '<style>.jp-Dialog{display:none!important}</style>')")
        outputs = sum(len(cell.outputs) > 0 for cell in cells)
        page.wait_until("[...document.querySelectorAll('.jp-CodeCell')].filter(each => each.querySelector("
                        f"'.jp-OutputArea-output')).length >= {outputs}", 120)
        whole(page)


def show_static(page, notebook, folder, name, theme):
    """The same for the static page of nbconvert."""
    exporter = HTMLExporter(theme=theme)
    # External scripts (mathematics, diagrams) are not loaded.
    exporter.require_js_url = exporter.mathjax_url = exporter.mermaid_js_url = ""
    html, _ = exporter.from_notebook_node(notebook)
    path = folder / f"{name}-{theme}.html"
    path.write_text(html)
    page.resize(WIDTH, 1600)
    page.open(path.as_uri())
    page.wait_until(f"location.href === {json.dumps(path.as_uri())} && document.readyState === 'complete'")
    whole(page)


def whole(page):
    """Makes the page as high as its content; cells that come into view may still grow."""
    height = 0
    while height != (needed := page.evaluate(
            "Math.ceil([...document.querySelectorAll('.jp-Cell')].at(-1).getBoundingClientRect().bottom) + 80")):
        height = needed
        page.resize(WIDTH, height)
        time.sleep(0.5)
