"""A client of the kernel: starts one, runs cells, keeps every message.

`Kernel.execute` returns a `Cell` with the reply and the messages of that one execution, in order.
It uses the Jupyter protocol only, through jupyter_client.
"""

import queue
import re
import time
from dataclasses import dataclass, field

from jupyter_client import KernelManager

KERNEL_NAME = "stratoscope"
DIAGNOSTIC = "application/vnd.stratoscope.diagnostic+json"
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def without_ansi(text):
    """The text as a reader sees it, without colors."""
    return ANSI.sub("", text)


@dataclass
class Message:
    """One iopub message of an execution."""

    kind: str
    content: dict
    metadata: dict = field(default_factory=dict)


@dataclass
class Cell:
    """The result of one execution."""

    code: str
    reply: dict
    messages: list

    def of_kind(self, kind):
        """The contents of all messages of a kind."""
        return [message.content for message in self.messages if message.kind == kind]

    @property
    def errors(self):
        return self.of_kind("error")

    @property
    def number(self):
        """`In[number]`."""
        return self.reply["execution_count"]

    def stream(self, name="stdout"):
        """Everything written to a stream, joined."""
        return "".join(each["text"] for each in self.of_kind("stream") if each["name"] == name)

    @property
    def bundles(self):
        """Every MIME bundle shown, results included, updates not."""
        kinds = ("display_data", "execute_result")
        return [message.content["data"] for message in self.messages if message.kind in kinds]

    def shown(self, mime="text/plain"):
        """All that was shown of a MIME type, joined, and the last state of what was updated."""
        updates = [each["data"] for each in self.of_kind("update_display_data")]
        bundles = self.bundles + updates[-1:]
        return "\n".join(str(bundle[mime]) for bundle in bundles if mime in bundle)

    @property
    def diagnostics(self):
        """The bundles that are diagnostics."""
        return [bundle for bundle in self.bundles if DIAGNOSTIC in bundle]

    def ok(self):
        """This cell, which must have succeeded."""
        tracebacks = [without_ansi("\n".join(error["traceback"])) for error in self.errors]
        assert self.reply["status"] == "ok", f"{self.code}\n---\n" + "\n".join(tracebacks or [str(self.reply)])
        assert not self.errors, tracebacks
        return self


class Kernel:
    """A running kernel. Use it as a context manager, which ends it."""

    def __init__(self, cwd=None, env=None, stderr=None, **manager):
        self.manager = KernelManager(kernel_name=KERNEL_NAME, **manager)
        options = {"cwd": str(cwd)} if cwd else {}
        if env:
            options["env"] = env
        if stderr:
            options["stderr"] = stderr
        self.manager.start_kernel(**options)
        self.client = self.manager.client()
        # What the debugger has published while a cell ran, for the test that looks for it.
        self.debug_events = []
        self.client.start_channels()

    def __enter__(self):
        try:
            # Answered at once; cells wait until the evaluator is ready.
            self.info = self.client.kernel_info(reply=True, timeout=60)["content"]
            self._wait_for_iopub()
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        self.client.stop_channels()
        if self.manager.is_alive():
            self.manager.shutdown_kernel(now=False)
        self.manager.cleanup_resources()

    def _wait_for_iopub(self, timeout=60):
        """Asks until a message arrives on iopub. A subscription takes effect some time after the
        socket is connected, and what the kernel publishes before that is lost: front-ends ask
        again in the same way before they run a cell."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                self.client.get_iopub_msg(timeout=0.2)
                return
            except queue.Empty:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"nothing was published within {timeout} s") from None
                self.client.kernel_info(reply=True, timeout=timeout)

    @property
    def pid(self):
        return self.manager.provisioner.pid

    def request(self, code, **options):
        """Sends a cell; `collect` waits for it."""
        return self.client.execute(code, allow_stdin=False, **options)

    def collect(self, request, code="", timeout=180):
        """The cell of a request that was sent: its messages until idle, and its reply."""
        deadline = time.monotonic() + timeout
        messages = []
        while not messages or messages[-1].content.get("execution_state") != "idle":
            left = deadline - time.monotonic()
            try:
                message = self.client.get_iopub_msg(timeout=max(left, 0.001))
            except queue.Empty:
                seen = [(each.kind, str(each.content)[:300]) for each in messages[-5:]]
                raise TimeoutError(f"no end of the cell after {timeout} s:\n{code}\n{seen}") from None
            if message["parent_header"].get("msg_id") == request:
                messages.append(Message(message["msg_type"], message["content"], message["metadata"]))
            elif message["msg_type"] == "debug_event":
                self.debug_events.append(message)
        while True:
            reply = self.client.get_shell_msg(timeout=max(deadline - time.monotonic(), 0.001))
            if reply["parent_header"].get("msg_id") == request:
                return Cell(code, reply["content"], messages)

    def execute(self, code, timeout=180, **options):
        """Runs a cell to its end."""
        return self.collect(self.request(code, **options), code, timeout)

    def run(self, code, timeout=180):
        """Runs a cell that must succeed."""
        return self.execute(code, timeout).ok()

    def wait_for(self, request, kind, timeout=60, count=1):
        """Waits until `count` messages of a kind have arrived for the request."""
        deadline = time.monotonic() + timeout
        found = []
        while len(found) < count:
            message = self.client.get_iopub_msg(timeout=max(deadline - time.monotonic(), 0.001))
            if message["parent_header"].get("msg_id") == request and message["msg_type"] == kind:
                found.append(message["content"])
        return found


def check_error(cell, name, *in_evalue, line=None, without_line=False):
    """The cell failed as one Jupyter error: the reply's status, exactly one `error` message, the
    same in both, a message that stands alone and a traceback that names cell and line.

    `without_line`: the cell was ended from outside, so that its line is unknown."""
    assert cell.reply["status"] == "error", cell.reply
    assert len(cell.errors) == 1, cell.errors
    error = cell.errors[0]
    assert error["ename"] == name, error
    for key in ("ename", "evalue", "traceback"):
        assert cell.reply[key] == error[key], key
    assert error["evalue"] and "\n" not in error["evalue"] and "\x1b" not in error["evalue"], error["evalue"]
    for part in in_evalue:
        assert part in error["evalue"], f"{part!r} is not in {error['evalue']!r}"
    first = without_ansi("\n".join(error["traceback"])).splitlines()[0]
    place = re.match(r"Cell In\[(\d+)\]" + ("" if without_line else r", line (\d+)"), first)
    assert place, f"the traceback begins with {first!r}"
    assert int(place[1]) == cell.number, first
    if line is not None:
        assert int(place[2]) == line, first
    return error


def check_card(cell, code, *in_plain):
    """A diagnostic was shown as a card before the error: HTML, plain text and JSON that agree."""
    cards = [bundle for bundle in cell.diagnostics if bundle[DIAGNOSTIC]["code"] == code]
    assert cards, [bundle.keys() for bundle in cell.bundles]
    card = cards[0]
    html, plain, json = card["text/html"], card["text/plain"], card[DIAGNOSTIC]
    check_static_html(html)
    for text in (html, plain):
        assert code in text
    # A long one is wrapped.
    begins = json["message"].split("`")[0]
    assert " ".join(begins.split()) in " ".join(plain.split()), plain
    for part in in_plain:
        assert part in plain, f"{part!r} is not in:\n{plain}"
    kinds = [message.kind for message in cell.messages]
    if "error" in kinds:
        assert kinds.index("display_data") < kinds.index("error"), "the card comes first"
    return card


def check_static_html(html):
    """HTML that looks the same after JupyterLab's sanitizer and in a static page. Our classes have no style: our extension finds
    tables and cards by them."""
    lowered = re.sub(r' class="stratoscope-[a-z-]+"', "", html.lower())
    for banned in ("<style", "<script", "<svg", "var(--", "class=", "onclick", "javascript:"):
        assert banned not in lowered, f"{banned} would be removed, or needs a style sheet"
    assert "style=" in lowered


def history_column(table, name):
    """The numbers of a column in the plain text of a history."""
    head, *rows = table.splitlines()
    # Names of two words are one column: `val loss`.
    names = re.findall(r"val \S+|\S+", head)
    values = [row.replace("★", "").split() for row in rows if re.match(r"\s*\d+ +\d", row)]
    return [float(row[names.index(name)]) for row in values]
