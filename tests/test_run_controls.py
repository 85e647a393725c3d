"""The buttons below the table of a run: Pause, Step, Continue, Stop and two for the rate. They are pressed while the
cell runs, through the protocol of widgets and in JupyterLab. The screenshot is in target/screenshots/."""

import re
import time

import pytest

from kernel_client import check_error
from test_widgets import opened, press, run

pytestmark = pytest.mark.own_kernel

DATA = """let rows: Vec<Vec<f32>> = (0..200_000).map(|row| vec![(row % 7) as f32, (row % 5) as f32]).collect();
let sums: Vec<f32> = rows.iter().map(|row| row[0] + row[1]).collect();
let data = Dataset::from_arrays(rows, sums)?;
let model = Sequential([Dense(8).activation("relu"), Dense(1)])?;
compile!(model, optimizer = SGD::new(1e-3), loss = MeanSquaredError)?;"""
# 100 000 optimizer steps an epoch: it does not end by itself.
TRAIN = "let history = fit!(model, data, batch_size = 2, epochs = 100)?;"


class Run:
    """A cell that trains, in a kernel whose front end has widgets."""

    def __init__(self, kernel, code):
        self.kernel = kernel
        self.buttons = {}  # text: the id of the comm
        self.enabled = {}  # text: whether it can be pressed
        self.kinds = []
        self.states = []  # what the kernel does, and for which kind of request
        self.table = ""
        self.request = kernel.request(code)

    def read(self, timeout=60):
        """The next message of the run or of its buttons."""
        message = self.kernel.client.get_iopub_msg(timeout=timeout)
        kind, content = message["msg_type"], message["content"]
        self.kinds.append((kind, content))
        if kind == "status":
            self.states.append((content["execution_state"], message["parent_header"]["msg_type"]))
        if kind == "comm_open" and "description" in content["data"]["state"]:
            state = content["data"]["state"]
            self.buttons[state["description"]] = content["comm_id"]
            self.enabled[state["description"]] = not state["disabled"]
        if kind == "comm_msg" and "disabled" in content["data"].get("state", {}):
            text = next(text for text, comm in self.buttons.items() if comm == content["comm_id"])
            self.enabled[text] = not content["data"]["state"]["disabled"]
        if kind in ("display_data", "update_display_data") and "steps" in content["data"]["text/plain"]:
            self.table = content["data"]["text/plain"]
        assert kind != "error", content
        return kind, content

    def until(self, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not what():
            self.read(timeout=max(deadline - time.monotonic(), 0.001))

    def press(self, text):
        send(self.kernel, "comm_msg", comm_id=self.buttons[text],
             data={"method": "custom", "content": {"event": "click"}})

    @property
    def steps(self):
        """Optimizer steps that the table shows."""
        found = re.search(r"optimizer steps ([\d  ]+)/", self.table)
        return int(re.sub(r"\D", "", found[1])) if found else 0

    @property
    def is_paused(self):
        return " paused" in self.table.partition("\n")[0]


def send(kernel, kind, **content):
    kernel.client.shell_channel.send(kernel.client.session.msg(kind, content))


@pytest.fixture(scope="module")
def with_widgets(kernel):
    """A kernel with a model, connected to a front end that has widgets."""
    kernel.run(DATA)
    send(kernel, "comm_open", comm_id="0123456789abcdef", target_name="jupyter.widget.control", data={})
    return kernel


def test_a_run_is_paused_stepped_changed_and_stopped(with_widgets):
    running = Run(with_widgets, TRAIN)
    running.until(lambda: "Pause" in running.buttons and running.steps > 0)
    assert list(running.buttons) == ["Pause", "Step", "Continue", "Stop", "Rate × ½", "Rate × 2"]
    assert [text for text, is_enabled in running.enabled.items() if is_enabled] == ["Pause", "Stop", "Rate × ½", "Rate × 2"]

    running.press("Pause")
    running.until(lambda: running.is_paused and running.enabled["Step"])
    paused_at = running.steps
    assert not running.enabled["Pause"]
    for steps in (1, 2):
        running.press("Step")
        running.until(lambda: running.is_paused and running.steps == paused_at + steps)
    assert "1.00e-3" in running.table

    running.press("Rate × ½")
    running.press("Step")
    running.until(lambda: running.is_paused and running.steps == paused_at + 3)
    assert "5.00e-4" in running.table
    running.press("Continue")
    running.until(lambda: not running.is_paused and running.steps > paused_at + 20)
    running.press("Stop")
    cell = with_widgets.collect(running.request)
    cell.ok()
    assert "epoch" in with_widgets.run("history").shown()
    # The row of buttons is gone, and so are its comms.
    assert with_widgets.client.comm_info(reply=True, timeout=20)["content"]["comms"].keys() == {"0123456789abcdef"}


def test_the_kernel_is_busy_after_a_button_was_answered(with_widgets):
    """A front end shows the last state: after each answer during a cell it is that of the cell."""
    running = Run(with_widgets, TRAIN)
    running.until(lambda: "Pause" in running.buttons and running.steps > 0)
    running.press("Pause")
    with_widgets.client.complete("let x = data.le", 15)
    running.until(lambda: {("idle", "comm_msg"), ("idle", "complete_request")} <= set(running.states)
                  and running.states[-1][0] == "busy")
    for at, state in enumerate(running.states):
        if state[0] == "idle" and state[1] != "execute_request":
            assert running.states[at + 1] == ("busy", "execute_request"), running.states
    running.press("Stop")
    with_widgets.collect(running.request).ok()


def test_the_interrupt_button_works_while_a_run_is_paused(with_widgets):
    running = Run(with_widgets, TRAIN)
    running.until(lambda: "Pause" in running.buttons and running.steps > 0)
    running.press("Pause")
    running.until(lambda: running.is_paused)
    with_widgets.manager.interrupt_kernel()
    check_error(with_widgets.collect(running.request), "Interrupted", "all variables are kept", without_line=True)
    with_widgets.run('model.predict(Dataset::from_features([[1.0, 2.0]])?)?;')


def test_a_piece_of_a_run_has_buttons_when_it_has_a_table(with_widgets):
    """A short piece has neither; the buttons of a long one are below its table."""
    with_widgets.run("let run = start!(model, data, batch_size = 2, epochs = 100)?;")
    # One that a busy machine delays for half a second has both.
    assert any(not with_widgets.run("run.step(3)?").of_kind("comm_open") for _ in range(3))
    running = Run(with_widgets, "run.epoch()?;")
    running.until(lambda: sum(kind == "display_data" for kind, _ in running.kinds) == 2)
    shown = [content["data"] for kind, content in running.kinds if kind == "display_data"]
    assert ["optimizer steps" in data["text/plain"] for data in shown] == [True, False], "the table, then the buttons"
    running.press("Stop")
    assert "interrupted, next: step" in with_widgets.collect(running.request).ok().shown() + with_widgets.run("run").shown()
    with_widgets.run("drop(run);")


def test_without_widgets_there_are_no_buttons(fresh_kernel):
    fresh_kernel.run(DATA)
    cell = fresh_kernel.run("let history = fit!(model, data, batch_size = 20_000, epochs = 2)?;")
    assert not cell.of_kind("comm_open")
    # Encoding that takes long has a line above it.
    shown = [each["data"]["text/plain"] for each in cell.of_kind("display_data")]
    assert sum("optimizer steps" in text for text in shown) == 1, shown


def test_buttons_in_jupyterlab(jupyter_lab, chromium, pictures):
    page = chromium
    opened(page, jupyter_lab, "controls", (DATA, TRAIN))
    run(page, 1)
    # The second cell does not end by itself, so that its number does not appear.
    press(page, "document.querySelector('.jp-NotebookPanel [data-command=\"notebook:run-cell-and-select-next\"]')")

    def button(text):
        return f"[...document.querySelectorAll('.jp-NotebookPanel button.jupyter-button')].find(each => each.innerText === '{text}')"

    outputs = "[...document.querySelectorAll('.jp-NotebookPanel .jp-OutputArea-output')].map(each => each.innerText).join(' ')"
    page.wait_until(f"{button('Pause')} && {outputs}.includes('left')", 120)
    press(page, button("Pause"))
    page.wait_until(f"{outputs}.includes('paused') && !({button('Step')}.disabled) && {button('Pause')}.disabled", 60)
    page.picture(pictures / "run-controls.png")
    assert page.evaluate(f"{button('Step')}.title") == "Make one optimizer step, then wait again"
    # By the keyboard.
    page.evaluate(f"{button('Continue')}.focus()")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    page.wait_until(f"!{outputs}.includes('paused') && {button('Step')}.disabled", 60)
    press(page, button("Stop"))
    page.wait_until(f"!{button('Pause')} && {outputs}.includes('ended before its last epoch')", 60)
