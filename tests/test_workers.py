"""Worker processes through the real kernel: the bits of one process, workers that are killed, stopped, called at an
address or found by the environment, and that end with their chief."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import pytest

from conftest import STRATOSCOPE
from kernel_client import Kernel, check_card, check_error, check_static_html
from network import another_machine, ip

PLACEMENT = "application/vnd.stratoscope.placement+json"
DATA = """let train = make_regression(64, 5, 2)?;
let dev = make_regression(24, 5, 3)?;"""


def model(strategy):
    """A small network with dropout under a strategy, which may be a new one, compiled."""
    name = strategy if strategy.isidentifier() else "other"
    begun = "" if name == strategy else f"let other = {strategy};\n"
    return begun + f"""scope!({name}, {{
    let model = Sequential([Dense(16).activation("tanh").input_shape((5,)), Dropout(0.2), Dense(1)])?;
    compile!(model, optimizer = Adam::new(0.01), loss = "mse")?;
}});"""


def fit(epochs, more=""):
    return f"let history = fit!(model, train, epochs = {epochs}, batch_size = 8, seed = 4{more})?;"


def is_running(process):
    """Whether there is a process of this number; one that has ended and whose parent does not know it is none."""
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_until(condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"not within {seconds} s"
        time.sleep(0.05)


def process_of(kernel, worker, strategy="strategy"):
    """The number of a worker's process, 0 if it is lost."""
    return int(kernel.run(f"{strategy}.process({worker})?.unwrap_or(0)").shown())


def left(kernel):
    """The checksums of all weights of `model`, and the bits of all losses of `history`."""
    report = next(each[PLACEMENT] for each in kernel.run("placement(&model);").bundles if PLACEMENT in each)
    sums = [(each["name"], each["checksums"][0]) for each in report["variables"]]
    losses = kernel.run("history.steps.iter().map(|it| it.loss.to_bits()).collect::<Vec<_>>()").shown()
    return sums, losses


def key(folder):
    """The environment of a kernel that holds the key of a job, which is made by the first worker."""
    return {**os.environ, "STRATOSCOPE_WORKER_KEY": str(folder / "job.pem")}


class Listening:
    """`stratoscope worker --listen` in a process of its own."""

    def __init__(self, folder, name="job.pem", there=(), address="127.0.0.1:0"):
        command = [*there, STRATOSCOPE, "worker", "--listen", address, "--key", folder / name]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.text = ""
        while "waiting for a notebook at" not in self.text:
            line = self.process.stdout.readline()
            assert line, self.text
            self.text += line
        self.address = self.text.rsplit(" ", 1)[1].strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.text += self.process.communicate()[0]


@pytest.fixture(scope="module")
def ready(kernel):
    """A kernel with data and what four epochs under two logical devices leave."""
    kernel.run(DATA)
    kernel.run(model("MirroredStrategy::logical(2)?"))
    kernel.run(fit(4, ", validation_data = dev"))
    return kernel, left(kernel)


def test_workers_have_the_bits_of_one_process(ready):
    kernel, expected = ready
    kernel.run("let strategy = MultiWorkerMirroredStrategy::workers(2)?;")
    kernel.run(model("strategy"))
    cell = kernel.run(fit(4, ", validation_data = dev"))
    assert left(kernel) == expected
    text, html = cell.shown(), cell.shown("text/html")
    assert "2 worker processes, the first of which is this one; each sends up to" in " ".join(text.split()), text
    assert re.search(r"worker +process +step +examples +seq/s +waiting +sent +heard", text), text
    assert re.search(r"^ +1 +\d+ on this machine", text, re.MULTILINE), text
    check_static_html(html)

    cell = kernel.run("strategy.status()")
    rows = cell.shown().splitlines()
    assert len(rows) == 3 and rows[1].endswith("runs the notebook") and rows[2].endswith("waits"), rows
    assert re.match(r" +1 +\d+ on this machine +32 +128 ", rows[2]), rows
    check_static_html(cell.shown("text/html"))
    cell = kernel.run("placement(&model);")
    assert "hop 1" in cell.shown() and "worker:1" in cell.shown(), cell.shown()
    assert "a process on this machine" in cell.shown("text/html")
    # The key is in a file, which only this user can read.
    process = process_of(kernel, 1)
    environment = pathlib.Path(f"/proc/{process}/environ").read_text()
    path = pathlib.Path(re.search(r"STRATOSCOPE_WORKER_KEY=([^\0]+)", environment)[1])
    secret = path.read_text().split("-----")[6].split()[-1]
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    command = pathlib.Path(f"/proc/{process}/cmdline").read_text()
    logs = "".join(log.read_text() for log in path.parent.glob("*.log"))
    assert all(secret not in text for text in (environment, command, logs, cell.shown()))


def test_a_prediction_says_what_was_measured(ready):
    kernel, _ = ready
    kernel.run("let strategy = MultiWorkerMirroredStrategy::workers(2)?;")
    check_error(kernel.execute("strategy.predict_scaling(1024, ScalingOptions::new())?"), "SC0915", "not known")
    kernel.run(model("strategy"))
    kernel.run(fit(2))
    cell = kernel.run("strategy.predict_scaling(1024, ScalingOptions::new().bandwidth(10e9))?")
    text = cell.shown()
    assert "a prediction: nothing of it was measured" in text
    for number, source in (("seconds per example", "measured"), ("bandwidth", "given"), ("latency", "assumed")):
        assert re.search(rf"^ *{number} .* {source}$", text, re.MULTILINE), text
    assert re.search(r"^ *1024  .* %", text, re.MULTILINE) and "Measured: 16 steps of 2 workers" in text, text
    check_static_html(cell.shown("text/html"))


def test_every_worker_sees_all_examples(ready):
    kernel, _ = ready
    kernel.run("let strategy = MultiWorkerMirroredStrategy::workers(2)?;")
    kernel.run(model("strategy"))
    every = "model, train.clone().auto_shard(AutoShardPolicy::{}), epochs = 1, batch_size = 8"
    cell = kernel.run(f"let history = fit!({every.format('Off')})?;")
    check_card(cell, "SC0813", "an epoch has 128")
    assert kernel.run("history.counters.optimizer_steps").shown() == "16"
    check_error(kernel.execute(f"fit!({every.format('File')})?;"), "SC0803", "from no file")


def test_a_worker_has_the_files_that_are_its_own(ready):
    kernel, _ = ready
    for part, rows in (("a", 24), ("b", 8)):
        lines = "".join(f"a game of chess {row}\\tgames\\na mail server {row}\\tmail\\n" for row in range(rows // 2))
        kernel.run(f'std::fs::write("part-{part}.tsv", "text\\tlabel\\n{lines}")?;')
    kernel.run('let parts = Dataset::tsv("part-*.tsv")?.auto_shard(AutoShardPolicy::File);')
    kernel.run("let strategy = MultiWorkerMirroredStrategy::workers(2)?;")
    kernel.run(
        'scope!(strategy, {\n    let small = BertForSequenceClassification::from_pretrained("all-MiniLM-L6-v2", 2)?;\n'
        "    compile!(small, optimizer = SGD::new(0.01), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n});"
    )
    shown = kernel.run("let history = fit!(small, parts, epochs = 1, batch_size = 8)?;").shown()
    assert "2 files over 2 workers: 24, 8 examples; worker 1 has none left after 16 of an epoch" in " ".join(shown.split()), shown
    assert kernel.run("history.counters.optimizer_steps").shown() == "4"


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_is_lost_in_the_middle_of_a_run(ready, sent):
    kernel, expected = ready
    kernel.run("let strategy = MultiWorkerMirroredStrategy::workers(2)?;")
    kernel.run(model("strategy"))
    kernel.run("let run = start!(model, train, epochs = 4, batch_size = 8, seed = 4, validation_data = dev)?; run.step(5)?;")
    process = process_of(kernel, 1)
    os.kill(process, sent)
    cell = kernel.run("let history = run.finish()?; history", timeout=60)
    reason = {signal.SIGKILL: r"signal: 9 \(SIGKILL\)", signal.SIGSTOP: r"nothing was heard for ([3-9]|\d\d)"}[sent]
    card = check_card(cell, "SC0808", f"worker 1 (process {process} on this machine)")
    assert re.search(reason, " ".join(card["text/plain"].split())), card["text/plain"]
    assert left(kernel) == expected
    # It was killed, its parent knows that it has ended, and another one has its place.
    wait_until(lambda: process_of(kernel, 1) not in (0, process))
    wait_until(lambda: not pathlib.Path(f"/proc/{process}").exists())


def test_a_run_is_paused_looked_at_and_rewound(ready):
    kernel, _ = ready
    seen = []
    for strategy in ("MirroredStrategy::logical(2)?", "MultiWorkerMirroredStrategy::workers(2)?"):
        kernel.run(model(strategy))
        kernel.run("let run = start!(model, train, epochs = 2, batch_size = 8, seed = 4)?; run.step(6)?;")
        gradients = kernel.run("run.gradients()?").shown()
        kernel.run("run.rewind(3)?; run.step(2)?;")
        kernel.run("let history = run.finish()?;")
        seen.append((re.sub(r"\s+", " ", gradients.replace("worker:", "cpu:")), left(kernel)))
    assert seen[0] == seen[1]


def test_replicas_step_alone_and_a_worker_is_lost_meanwhile(ready):
    kernel, _ = ready

    def alone(strategy):
        return model(strategy).replace('loss = "mse"', 'loss = "mse", sync_every = 25')

    kernel.run(alone("MirroredStrategy::logical(2)?"))
    kernel.run(fit(4, ", validation_data = dev"))
    expected = left(kernel)
    kernel.run("let strategy = MultiWorkerMirroredStrategy::workers(2)?;")
    kernel.run(alone("strategy"))
    receipt = kernel.run('compile!(model, optimizer = Adam::new(0.01), loss = "mse", sync_every = 25)?').shown()
    assert re.search(r"each sends up to [\d.]+ KiB every 25 steps, [\d.]+ ms at 1 Gb/s", " ".join(receipt.split())), receipt
    kernel.run("let run = start!(model, train, epochs = 4, batch_size = 8, seed = 4, validation_data = dev)?; run.step(3)?;")
    # Between two averages; the others go on from where it was.
    process = process_of(kernel, 1)
    os.kill(process, signal.SIGKILL)
    cell = kernel.run("let history = run.finish()?; history")
    check_card(cell, "SC0808", f"worker 1 (process {process} on this machine)")
    assert "parameter average" in cell.shown(), cell.shown()
    assert left(kernel) == expected


def test_gradients_travel_in_half_of_the_bytes(ready):
    kernel, _ = ready
    sent, weights = [], []
    for dtype in ("float32", "bfloat16"):
        kernel.run(f'let strategy = MultiWorkerMirroredStrategy::workers(3)?.gradient_dtype("{dtype}")?;')
        kernel.run(model("strategy"))
        receipt = kernel.run('compile!(model, optimizer = Adam::new(0.01), loss = "mse")?').shown()
        receipt = " ".join(receipt.split())
        said = re.search(r"each sends up to ([\d.]+) (B|KiB) a step, [\d.]+ ms at 1 Gb/s", receipt)
        assert said, receipt
        kernel.run(fit(1))
        bytes_of = "strategy.status().tally().members.iter().map(|it| it.bytes).collect::<Vec<_>>()"
        sent.append(json.loads(kernel.run(bytes_of).shown()))
        report = next(each[PLACEMENT] for each in kernel.run("placement(&model);").bundles if PLACEMENT in each)
        assert all(len(set(each["checksums"])) == 1 and len(each["checksums"]) == 3 for each in report["variables"])
        weights.append(left(kernel)[0])
    assert [2 * each for each in sent[1]] == sent[0]
    assert weights[0] != weights[1]
    cell = kernel.execute('let strategy = MultiWorkerMirroredStrategy::workers(2)?.gradient_dtype("float16")?;')
    check_error(cell, "SC0103", "bfloat16")
    check_card(cell, "SC0103", "would become 0")


WRONG = {
    "no JSON": "no JSON",
    '{"cluster": {"worker": ["a:1", "a:1"]}, "task": {"type": "worker", "index": 0}}': "`a:1` twice",
    '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}': "task 1 of `worker`",
    '{"cluster": {"chief": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}}': "2 chiefs",
    '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}': "process 1 of 2",
}


@pytest.mark.parametrize("value", WRONG)
def test_a_cluster_that_is_wrong_is_refused(ready, value):
    kernel, _ = ready
    cell = kernel.execute(f"""unsafe {{ std::env::set_var("TF_CONFIG", {json.dumps(value)}) }};
let strategy = MultiWorkerMirroredStrategy::new()?;""")
    check_error(cell, "SC0805", WRONG[value], line=2)
    check_card(cell, "SC0805", "TF_CONFIG")
    kernel.run("""unsafe { std::env::remove_var("TF_CONFIG") };""")
    check_error(kernel.execute("let strategy = MultiWorkerMirroredStrategy::new()?;"), "SC0806")


def test_workers_of_other_machines_are_called(tmp_path):
    with Listening(tmp_path) as one, Listening(tmp_path) as two, Kernel(cwd=tmp_path, env=key(tmp_path)) as kernel:
        assert "made the key" in one.text and (tmp_path / "job.pem").stat().st_mode & 0o777 == 0o600
        kernel.run(DATA)
        kernel.run(model("MirroredStrategy::logical(3)?"))
        kernel.run(fit(2))
        expected = left(kernel)
        addresses = f'["{one.address}", "{two.address}"]'
        kernel.run(f"let strategy = MultiWorkerMirroredStrategy::on({addresses})?;")
        kernel.run(model("strategy"))
        kernel.run(fit(2))
        assert left(kernel) == expected
        # They wait for the next job when this one is over.
        kernel.run("drop(model); drop(strategy); drop(history);")
        kernel.run(f"let strategy = MultiWorkerMirroredStrategy::on({addresses})?;")
        # Somebody else's key is refused on both sides.
        secret = (tmp_path / "job.pem").read_text().split("-----")[6].split()[-1]
        with Listening(tmp_path, "other.pem") as other:
            cell = kernel.execute(f'let strategy = MultiWorkerMirroredStrategy::on(["{other.address}"])?;')
            check_error(cell, "SC0807", other.address)
    assert secret not in one.text + two.text + other.text


def test_workers_end_with_their_chief(tmp_path):
    with Kernel(cwd=tmp_path) as kernel:
        kernel.run("let strategy = MultiWorkerMirroredStrategy::workers(3)?;")
        processes = [process_of(kernel, worker) for worker in (1, 2)]
        folder = pathlib.Path(f"/proc/{processes[0]}/environ").read_text()
        folder = pathlib.Path(re.search(r"STRATOSCOPE_WORKER_KEY=([^\0]+)", folder)[1]).parent
        # With the last handle.
        kernel.run("drop(strategy);")
        wait_until(lambda: not any(pathlib.Path(f"/proc/{process}").exists() for process in processes))
        assert not folder.exists()
        # With the process of the cells.
        kernel.run("let strategy = MultiWorkerMirroredStrategy::workers(3)?;")
        processes = [process_of(kernel, worker) for worker in (1, 2)]
        os.kill(process_of(kernel, 0), signal.SIGKILL)
        wait_until(lambda: not any(is_running(process) for process in processes))
    with Kernel(cwd=tmp_path) as kernel:
        # With the kernel.
        kernel.run("let strategy = MultiWorkerMirroredStrategy::workers(3)?;")
        processes = [process_of(kernel, worker) for worker in (1, 2)]
        os.kill(kernel.pid, signal.SIGKILL)
        wait_until(lambda: not any(is_running(process) for process in processes))


def test_an_interrupt_ends_a_run_across_workers(ready):
    kernel, _ = ready
    kernel.run("let strategy = MultiWorkerMirroredStrategy::workers(2)?;")
    kernel.run(model("strategy"))
    request = kernel.request(fit(100_000))
    kernel.wait_for(request, "display_data")
    time.sleep(1)
    kernel.manager.interrupt_kernel()
    cell = kernel.collect(request, timeout=20)
    assert "interrupted" in cell.shown() + "".join(error["evalue"] for error in cell.errors), cell.shown()
    # The workers are still there for the next run.
    kernel.run(fit(1))
    assert process_of(kernel, 1)


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def described(how, rank, port):
    """The variables of process `rank` of two."""
    workers = [f"127.0.0.1:{port}", f"127.0.0.1:{port + 1}"]
    task = {"type": "worker", "index": rank}
    return {
        "TF_CONFIG": {"TF_CONFIG": json.dumps({"cluster": {"worker": workers}, "task": task})},
        "torchrun": {"RANK": f"{rank}", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": f"{port}"},
        "Slurm": {"SLURM_PROCID": f"{rank}", "SLURM_NTASKS": "2", "SLURM_STEP_NODELIST": "localhost",
                  "SLURM_JOB_ID": f"{port % 20_000}"},
    }[how]


@pytest.mark.parametrize("how", ["TF_CONFIG", *(pytest.param(how, marks=pytest.mark.full) for how in ("torchrun", "Slurm"))])
def test_the_environment_says_who_belongs_together(tmp_path, how):
    port, path = free_port(), tmp_path / "job.pem"
    subprocess.run([STRATOSCOPE, "worker", "--new-key", path], check=True)
    again = subprocess.run([STRATOSCOPE, "worker", "--new-key", path], capture_output=True, text=True)
    assert again.returncode == 1 and "exists" in again.stderr, again
    # The worker may come first.
    command = [STRATOSCOPE, "worker", "--from-environment", "--key", path]
    worker = subprocess.Popen(command, env={**os.environ, **described(how, 1, port)})
    with Kernel(cwd=tmp_path, env={**key(tmp_path), **described(how, 0, port)}) as kernel:
        kernel.run(DATA)
        kernel.run("let strategy = MultiWorkerMirroredStrategy::from_environment()?;")
        assert process_of(kernel, 1) == worker.pid
        kernel.run(model("strategy"))
        kernel.run(fit(2))
        found = left(kernel)
        kernel.run(model("MirroredStrategy::logical(2)?"))
        kernel.run(fit(2))
        assert left(kernel) == found
    assert worker.wait(timeout=20) == 0


def test_a_cluster_of_one_is_a_warning(tmp_path):
    path = tmp_path / "job.pem"
    subprocess.run([STRATOSCOPE, "worker", "--new-key", path], check=True)
    alone = json.dumps({"cluster": {"worker": [f"127.0.0.1:{free_port()}"]}, "task": {"type": "worker", "index": 0}})
    with Kernel(cwd=tmp_path, env={**key(tmp_path), "TF_CONFIG": alone}) as kernel:
        check_card(kernel.run("let strategy = MultiWorkerMirroredStrategy::from_environment()?;"), "SC0801", "one worker")


@pytest.fixture
def far():
    """A network namespace at the end of a cable; the fixture gives what runs a command there and what pulls the plug."""
    with another_machine("sw", "10.77.31") as name:
        yield ["ip", "netns", "exec", name], lambda state: ip("link", "set", "sw0", state)


MODULE = '''use stratoscope::burn::{self, module::Module, nn::{Linear, LinearConfig}, tensor::activation::gelu};
#[derive(Module, Debug)]
pub struct Two { hidden: Linear, last: Linear }
impl Network for Two {
    type Files = Outputs;
    fn logits(&self, batch: &Batch, _: Mode, device: &Device) -> Tensor<2> {
        self.last.forward(gelu(self.hidden.forward(features(batch, device))))
    }
}
pub fn two(device: &Device) -> Two {
    device.seed(3);
    Two { hidden: LinearConfig::new(5, 16).init(device), last: LinearConfig::new(16, 1).init(device) }
}'''


def of_a_cell(strategy, made):
    return f"""let {strategy[0]} = {strategy[1]};
scope!({strategy[0]}, {{
    let model = {made};
    compile!(model, optimizer = Adam::new(0.01), loss = "mse")?;
}});"""


def test_a_module_of_a_cell_trains_in_other_processes(ready):
    """It is compiled by the cell, and the workers call the function that makes it."""
    kernel, _ = ready
    kernel.run(MODULE)
    made = 'Model::made_by(two, Outputs::new("Two", 1))?'
    kernel.run(of_a_cell(("one", "MirroredStrategy::logical(2)?"), made))
    kernel.run(fit(2))
    expected = left(kernel)
    kernel.run(of_a_cell(("own", "MultiWorkerMirroredStrategy::workers(2)?"), made))
    kernel.run(fit(2))
    assert left(kernel) == expected


@pytest.mark.full
def test_a_network_is_cut_and_comes_back(tmp_path, far):
    there, link = far
    with Listening(tmp_path, there=there, address="10.77.31.2:2222") as one, Kernel(cwd=tmp_path, env=key(tmp_path)) as kernel:
        kernel.run(DATA)
        kernel.run(f'let strategy = MultiWorkerMirroredStrategy::on(["{one.address}"])?;')
        kernel.run(model("strategy"))
        kernel.run("let run = start!(model, train, epochs = 4, batch_size = 8, seed = 4)?; run.step(5)?;")
        process = process_of(kernel, 1)
        link("down")
        cell = kernel.run("run.step(5)?")
        check_card(cell, "SC0808", "the network is cut")
        assert process_of(kernel, 1) == 0
        link("up")
        # The same process, which has heard nothing of the end either.
        wait_until(lambda: process_of(kernel, 1) == process, seconds=40)
        cell = kernel.run("run.step(5)?")
        check_card(cell, "SC0812")
        kernel.run("let history = run.finish()?;")
        assert process_of(kernel, 1) == process
        found = left(kernel)
        kernel.run(model("MirroredStrategy::logical(2)?"))
        kernel.run(fit(4))
        assert left(kernel) == found
