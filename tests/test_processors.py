"""The same program on an older processor: nothing beyond x86-64-v2 is needed, and losses agree up to rounding.

The older processor is emulated (`tests/other_processor.sh`), the newest level is that of this machine.
"""

import json
import platform
import shutil
import subprocess
import sys

import pytest
from jupyter_client import BlockingKernelClient
from jupyter_client.connect import write_connection_file

from conftest import ROOT, example

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="levels of x86-64 alone"),
    pytest.mark.skipif(not shutil.which("qemu-x86_64"), reason="qemu-x86_64 is not installed (Debian: qemu-user)"),
]

OLD = [str(ROOT / "tests" / "other_processor.sh"), "x86-64-v2"]
# As in src/models/tests/train/support.rs: some hundred roundings.
ROUNDING = 1e-5


def run(command, seconds=300):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


@pytest.mark.parametrize("words", [["--version"], ["explain", "SC0102"]], ids=" ".join)
def test_the_command_says_the_same(stratoscope, words):
    assert run([*OLD, stratoscope, *words]) == run([stratoscope, *words])


def test_the_kernel_answers(stratoscope, tmp_path):
    file, _ = write_connection_file(str(tmp_path / "connection.json"))
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen([*OLD, stratoscope, "kernel", "--connection-file", file], stdout=log, stderr=log)
    client = BlockingKernelClient(connection_file=file)
    client.load_connection_file()
    client.start_channels()
    try:
        info = client.kernel_info(reply=True, timeout=120)["content"]
        assert info["language_info"]["name"] == "rust"
        asked = client.is_complete("fn f() {")
        answer = client.get_shell_msg(timeout=120)
        assert answer["parent_header"]["msg_id"] == asked and answer["content"]["status"] == "incomplete", answer
        client.shutdown()
        assert process.wait(timeout=120) == 0, (tmp_path / "log").read_text()[-2000:]
    finally:
        client.stop_channels()
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def losses():
    program = example("losses")
    return lambda *before, checkpoint: json.loads(run([*before, program, checkpoint]))["losses"]


def test_training_steps_have_the_same_losses(losses, tiny):
    here, old = losses(checkpoint=tiny), losses(*OLD, checkpoint=tiny)
    assert len(here) == 5 and here[-1] < here[0], here
    assert old == pytest.approx(here, rel=ROUNDING)
    assert here == losses(checkpoint=tiny), "on one processor to the last bit"
