"""A headless Chromium, controlled over its DevTools protocol: opens a page, runs JavaScript in it, waits for a
condition, takes screenshots. It needs no driver program and no other Python package.
"""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import time
import urllib.request

import websocket

CANDIDATES = ("chromium", "chromium-browser", "google-chrome")


def find():
    """The path of a Chromium, if there is one."""
    return next(filter(None, map(shutil.which, CANDIDATES)), None)


class Browser:
    """One page of a browser of its own, started with these options besides. Use it as a context manager."""

    def __init__(self, folder, width=1280, height=1600, options=()):
        self.folder = pathlib.Path(folder)
        # No profile, no network of its own, and no sandbox where root would need one.
        options = [*options, "--headless=new", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-sync",
                   "--disable-background-networking", "--disable-component-update", "--disable-quic",
                   "--disable-dev-shm-usage", "--remote-debugging-port=0", f"--user-data-dir={self.folder}",
                   f"--window-size={width},{height}"]
        if os.getuid() == 0:
            options.append("--no-sandbox")
        self.process = subprocess.Popen([find(), *options, "about:blank"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self.last_id = 0
        self.size = (width, height)

    def __enter__(self):
        try:
            port = self._port()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=20) as answer:
                page = next(target for target in json.load(answer) if target["type"] == "page")
            self.socket = websocket.create_connection(page["webSocketDebuggerUrl"], timeout=120, suppress_origin=True)
            self.call("Page.enable")
            self.resize(*self.size)
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        if hasattr(self, "socket"):
            self.socket.close()
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _port(self):
        path = self.folder / "DevToolsActivePort"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if path.exists() and path.read_text().strip():
                return int(path.read_text().split()[0])
            if self.process.poll() is not None:
                raise RuntimeError(f"the browser ended with {self.process.returncode}")
            time.sleep(0.1)
        raise TimeoutError("the browser did not start")

    def call(self, method, **parameters):
        """One command of the protocol, and its result."""
        self.last_id += 1
        self.socket.send(json.dumps({"id": self.last_id, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("method") == "Page.javascriptDialogOpening":
                # A page with unsaved changes asks before it is left, and nothing is answered until it is.
                accept = {"id": 0, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}
                self.socket.send(json.dumps(accept))
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def resize(self, width, height):
        self.size = (width, height)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, address):
        self.call("Page.navigate", url=address)

    def evaluate(self, script):
        """The value of a JavaScript expression, awaited if it is a promise."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description", result["exceptionDetails"]))
        return result["result"].get("value")

    def wait_until(self, script, seconds=60):
        """Until a JavaScript expression is true; returns its value."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if value := self.evaluate(script):
                    return value
            except RuntimeError:
                pass  # the page is being replaced
            time.sleep(0.2)
        raise TimeoutError(f"never true: {script}\n{self.evaluate('document.body.innerText')[:2000]}")

    def picture(self, path, clip=None):
        """Writes a screenshot as PNG; `clip` is x, y, width, height in the page."""
        options = {}
        if clip:
            options["clip"] = dict(zip(("x", "y", "width", "height"), clip), scale=1)
        data = self.call("Page.captureScreenshot", format="png", **options)["data"]
        path.write_bytes(base64.b64decode(data))
        return path
