"""`jupyter console` with this kernel: cells, cards as text, rustc's errors, an input, an interrupt, and the end of the kernel
with the console."""

import os
import sys

import pexpect
import pytest

from conftest import ROOT
from kernel_client import without_ansi


class Console:
    """A console in a terminal of its own."""

    def __init__(self, folder):
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "50"}
        self.child = pexpect.spawn(
            str(ROOT / ".venv" / "bin" / "jupyter"), ["console", "--kernel", "stratoscope", "--simple-prompt"],
            env=environment, cwd=folder, encoding="utf-8", timeout=90, dimensions=(50, 120))
        self.number = 1
        self.wait()

    def wait(self):
        """What has been shown before the next prompt."""
        self.child.expect(rf"In \[{self.number}\]:")
        self.number += 1
        return without_ansi(self.child.before)

    def run(self, cell):
        self.child.sendline(cell)
        return self.wait()


@pytest.fixture
def console(tmp_path):
    console = Console(tmp_path)
    yield console
    console.child.close(force=True)


@pytest.mark.skipif(sys.platform == "win32", reason="pexpect needs a terminal of Unix")
def test_a_session_in_the_console(console):
    assert "Out[1]: 42" in console.run("let x = 6 * 7; x")
    assert "printed 43" in console.run('println!("printed {}", x + 1);')
    rustc = console.run('let y: i32 = "a";')
    assert "error[E0308]: mismatched types" in rustc and "Cell In[3], line 1" in rustc, rustc
    card = console.run("compile!(model, optimiser = 3)?;")
    for words in ("error[SC0101]", "did you mean `optimizer`?", "Cell In[4], line 1: SC0101"):
        assert words in card, card

    console.child.sendline('input("name? ")')
    console.child.expect(r"name\? ")
    assert '"Ada"' in console.run("Ada")

    # The sum is not in the line that the terminal echoes: when it is shown, the console waits for the cell.
    console.child.sendline('println!("{}", 600 + 66); sleep(60.0);')
    console.child.expect("666")
    console.child.sendintr()
    assert "nterrupt" in console.wait()
    process = console.run("(x, std::process::id())")
    assert "(42, " in process, "the variables are there after the interrupt"

    console.child.sendeof()
    console.child.expect("Do you really want to exit")
    console.child.sendline("y")
    console.child.expect(pexpect.EOF)
    console.child.close()
    assert console.child.exitstatus == 0
    number = int(process.split("(42, ")[1].split(")")[0])
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


@pytest.mark.skipif(sys.platform == "win32", reason="pexpect needs a terminal of Unix")
@pytest.mark.parametrize("word", ["exit", "quit()"])
def test_a_word_ends_the_console(console, word):
    console.run("let exit = 3;")
    if word == "exit":
        assert "a variable has this name" in console.run("exit")
        assert "3" in console.run("{exit}")
        console.run("%reset exit")
    console.child.sendline(word)
    console.child.expect(pexpect.EOF)
    console.child.close()
    assert console.child.exitstatus == 0


def test_a_console_sees_the_table_of_a_run_with_its_rows(kernel):
    """It ignores updates of a display: the last state comes once more. With `--simple-prompt` it asks nothing, and is not known."""
    kernel.run("let net = Sequential([Dense(3).input_shape(4)])?;")
    kernel.run("compile!(net, optimizer = Adam::new(0.01), loss = SparseCategoricalCrossentropy { from_logits: true })?;")
    fit = "fit!(net, make_classification(64, 4, 3, 0)?, epochs = 2)?;"

    def shown(cell):
        return [content["data"]["text/plain"] for content in cell.of_kind("display_data")]

    (only,) = shown(kernel.run(fit))
    assert "starting" in only
    kernel.client.is_complete("1")
    kernel.client.get_shell_msg(timeout=60)
    first, last = shown(kernel.collect(kernel.client.execute(fit, allow_stdin=True), fit).ok())
    assert "starting" in first and "100 %  finished" in last and "2/2" in last, last


def test_a_notebook_goes_on_after_exit(kernel):
    cell = kernel.run("exit()")
    assert "A notebook goes on" in cell.shown()
    assert cell.reply["payload"] == [{"source": "ask_exit", "keepkernel": False}]
    assert kernel.run("1 + 1").shown() == "2"
