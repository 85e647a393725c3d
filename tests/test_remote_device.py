"""A device of another machine: served by a process of its own, used by the real kernel, lost, and reached again."""

import json
import re
import subprocess

import pytest

from conftest import STRATOSCOPE
from kernel_client import check_card

PLACEMENT = "application/vnd.stratoscope.placement+json"


class Serving:
    """`stratoscope serve` of the processor, on loopback."""

    def __init__(self, key, address="127.0.0.1:0"):
        command = [STRATOSCOPE, "serve", "--device", "cpu", "--listen", address, "--key", key]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.text = ""
        while "in a notebook" not in self.text:
            line = self.process.stdout.readline()
            assert line, self.text
            self.text += line
        self.address = re.search(r"serving cpu:0 \(.+\) at (\S+)", self.text)[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def strategy(server, key, name="far"):
    return f'let {name} = OneDeviceStrategy::new(remote("{server.address}", "{key}"))?;'


def trained(tiny, name):
    """Three batches of a tiny BERT under a strategy, with dropout; the losses, what it predicts, where it is."""
    return f"""let train = Dataset::from_labelled((0..24).map(|row| (format!("w{{}} w{{}}", 10 + row, 40 + row), ["a", "b"][row % 2])));
scope!({name}, {{
    let model = BertForSequenceClassification::from_pretrained("{tiny}", 2)?;
    compile!(model, optimizer = AdamW::new(1e-3), loss = SparseCategoricalCrossentropy {{ from_logits: true }}, metrics = ["accuracy"])?;
}});
let history = fit!(model, train, epochs = 1, batch_size = 8, seed = 3, verbose = false)?;"""


def losses(kernel):
    return json.loads(kernel.run("history.steps.iter().map(|it| it.loss).collect::<Vec<_>>()").shown())


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    return tmp_path_factory.mktemp("remote") / "job.pem"


def test_a_model_trains_there_as_here_and_outlives_the_loss_of_its_server(kernel, tiny, key):
    with Serving(key) as server:
        assert f"made the key {key}" in server.text and key.stat().st_mode & 0o077 == 0
        assert server.address.startswith("127.0.0.1:")
        kernel.run("let near = OneDeviceStrategy::new(cpu(0))?;")
        kernel.run(trained(tiny, "near"))
        here = losses(kernel)
        kernel.run(strategy(server, key))
        kernel.run(trained(tiny, "far"))
        there = losses(kernel)
        assert len(here) == 3 and here == pytest.approx(there, rel=1e-5)
        report = next(each[PLACEMENT] for each in kernel.run("placement(&model);").bundles if PLACEMENT in each)
        assert report["devices"][0]["name"] == f"remote:{server.address}", report["devices"]
        evaluated = kernel.run('evaluate!(model, train, verbose = false)?.loss.is_finite()').shown()
        assert evaluated == "true"
        # What was placed elsewhere lives on when the server is killed.
        kernel.run(f"""scope!(near, {{
    let kept = BertForSequenceClassification::from_pretrained("{tiny}", 2)?;
}});""")
        server.process.kill()
        server.process.wait()
        cell = kernel.execute("let again = fit!(model, train, epochs = 1, batch_size = 8, verbose = false)?;", timeout=60)
        check_card(cell, "SC0709", f"remote:{server.address} was lost", "stratoscope serve")
        assert kernel.run('kept.predict("w10 w11")?.rows.len()').shown().endswith("\n1")
        assert kernel.run("history.steps.len()").shown() == "3"
    # Served at the same address again, a new strategy reaches it.
    with Serving(key, server.address) as again:
        kernel.run(strategy(again, key, "back"), timeout=60)
        kernel.run(trained(tiny, "back"))
        assert losses(kernel) == pytest.approx(here, rel=1e-5)


def test_a_server_that_cannot_be_used_is_a_diagnostic(kernel, tmp_path, key):
    with Serving(key) as server:
        Serving(tmp_path / "other.pem").__exit__()
        cell = kernel.execute(strategy(server, tmp_path / "other.pem"), timeout=60)
        check_card(cell, "SC0715", server.address)
        cell = kernel.execute(strategy(server, tmp_path / "none.pem"), timeout=60)
        check_card(cell, "SC0715", "none.pem")
        cell = kernel.execute(f'let mixed = MirroredStrategy::on([cpu(0), remote("{server.address}", "{key}")])?;')
        check_card(cell, "SC0915", "OneDeviceStrategy")
        address = server.address
    cell = kernel.execute(f'let nobody = OneDeviceStrategy::new(remote("{address}", "{key}"))?;', timeout=60)
    check_card(cell, "SC0715", "no device answers", "stratoscope serve")


def test_a_server_ends_when_it_is_asked_to_and_says_what_keeps_it_from_beginning(tmp_path, key):
    with Serving(key) as server:
        command = [STRATOSCOPE, "serve", "--device", "cpu", "--listen", server.address, "--key", key]
        second = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert second.returncode == 1 and "stratoscope serve: " in second.stderr, second
        server.process.terminate()
        assert server.process.wait(20) == 0
    open_key = tmp_path / "open.pem"
    open_key.write_bytes(key.read_bytes())
    open_key.chmod(0o644)
    refused = subprocess.run([STRATOSCOPE, "serve", "--key", open_key], capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1 and "chmod 600" in refused.stderr, refused
