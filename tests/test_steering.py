"""Runs that others read and steer: by the comm `stratoscope.runs` and by the socket of `%steer socket`; both lead to one
handler, with the checks of a cell and a line in the history. Alerts and the runs of MLflow are here too."""

import csv
import http.client
import importlib.util
import json
import os
import pathlib
import re
import stat
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernel_client import Kernel
from test_run_controls import DATA, TRAIN

pytestmark = pytest.mark.own_kernel

RUN = "let run = start!(model, data, batch_size = 1000, epochs = 2)?;"


class Comm:
    """A comm to the runs of a kernel."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.count = 0
        self.send("comm_open", target_name="stratoscope.runs", data={})

    def send(self, kind, **content):
        client = self.kernel.client
        client.shell_channel.send(client.session.msg(kind, {"comm_id": "5" * 32, **content}))

    def ask(self, action, **request):
        """The answer to a request."""
        self.count += 1
        self.send("comm_msg", data={"id": self.count, "action": action, **request})
        deadline = time.monotonic() + 60
        while True:
            message = self.kernel.client.get_iopub_msg(timeout=max(deadline - time.monotonic(), 0.001))
            data = message["content"].get("data", {})
            if message["msg_type"] == "comm_msg" and data.get("id") == self.count:
                return data

    def until(self, is_there, seconds=60):
        """Waits until the runs are so; returns them."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            answer = self.ask("runs")
            if answer["ok"] and is_there(answer["result"]):
                return answer["result"]
            time.sleep(0.2)
        raise AssertionError(answer)


def refused(answer, code):
    assert answer["ok"] is False and answer["error"]["code"] == code, answer
    return answer["error"]["message"]


@pytest.fixture(scope="module")
def comm(kernel):
    kernel.run(DATA)
    return Comm(kernel)


def test_a_run_that_trains_is_steered_by_a_comm(kernel, comm):
    assert refused(comm.ask("pause"), "no_run")
    cell = kernel.request(TRAIN)
    runs = comm.until(lambda it: it["training"] and it["training"][0]["at"])
    (run,) = runs["training"]
    assert run["state"] == "training" and run["planned"]["epochs"] == 100 and run["at"]["optimizer_steps"] > 0
    actions = {each["action"]: each for each in runs["actions"]}
    assert actions["set_learning_rate"]["arguments"]["properties"]["rate"]["minimum"] == 0
    assert (actions["rewind"]["training"], actions["rewind"]["standing"], actions["pause"]["standing"]) == (True, True, False)

    assert comm.ask("pause", run=run["run"])["result"]["what"] == "paused"
    comm.until(lambda it: it["training"][0]["state"] == "paused")
    before = comm.ask("report")["result"]
    assert before["settings"]["clipping"] == {"kind": "none", "limit": None} and before["settings"]["batch_size"] == 2
    assert comm.ask("step")["ok"]
    assert comm.ask("report")["result"]["position"]["step"] == before["position"]["step"] + 1
    answer = comm.ask("set_learning_rate", arguments={"rate": 5e-4})
    assert answer["result"]["what"] == "learning rate 5e-4 from here on", answer
    assert comm.ask("set_clipping", arguments={"kind": "global_clipnorm", "limit": 1.0})["ok"]
    after = comm.ask("report")["result"]
    assert after["position"]["learning_rate"] == 5e-4 and after["settings"]["clipping"]["limit"] == 1.0
    # The checks are those of a cell: the table's, then the method's.
    assert "≥ 0" in refused(comm.ask("set_learning_rate", arguments={"rate": -1}), "bad_argument")
    assert "SGD has none" in refused(comm.ask("set_weight_decay", arguments={"decay": 0.1}), "SC0103")
    assert "above 0" in refused(comm.ask("set_clipping", arguments={"kind": "clipvalue"}), "SC0103")
    refused(comm.ask("set_learning_rate", arguments={"rate": 1, "x": 2}), "bad_argument")
    refused(comm.ask("drop_table"), "unknown_action")
    assert "`fit!`" in refused(comm.ask("rewind", arguments={"step": 0}), "not_now")
    refused(comm.ask("pause"), "not_now")
    # The batches of a run that trains are changed, and the table and the list of runs follow.
    assert comm.ask("set_batch_size", arguments={"examples": 4})["result"]["what"] == "batches of 4 examples"
    assert comm.ask("drop_examples", arguments={"rows": [7, 8]})["result"]["what"] == "2 examples dropped: 7, 8"
    assert comm.ask("set_accumulation", arguments={"batches": 2})["ok"]
    refused(comm.ask("drop_examples", arguments={"rows": [200_000]}), "SC0522")
    (planned,) = [it["planned"] for it in comm.ask("runs")["result"]["training"]]
    assert (planned["batch_size"], planned["examples"]) == (4, 199_998) and planned["optimizer_steps"] < 100 * 25_010
    assert comm.ask("step")["ok"]
    settings = comm.ask("report")["result"]["settings"]
    assert (settings["batch_size"], settings["accumulation"]) == (4, 2)
    refused(comm.ask("pause", run=999_999), "no_run")
    refused(comm.ask("pause", run="run"), "not_now")
    refused(comm.ask("pause", other=1), "malformed")
    refused(comm.ask("freeze", arguments={"prefix": "x" * 20_000}), "too_large")
    assert comm.ask("continue")["ok"]
    assert comm.ask("stop")["result"]["what"] == "stopped"
    kernel.collect(cell).ok()

    requests = kernel.run("for it in &history.requests { println!(\"{it}\"); }").stream().splitlines()
    assert all(", by comm: " in each for each in requests), requests
    said = "\n".join(requests)
    for line in ("pause: paused", 'set_learning_rate {"rate":0.0005}: learning rate 5e-4 from here on',
                 'set_learning_rate {"rate":-1}: refused (bad_argument)', "drop_table: refused (unknown_action)",
                 "pause: refused (not_now): the run is paused already", "stop: stopped"):
        assert line in said, said
    assert "report" not in said, "reading is not recorded"
    assert "learning rate 5e-4 from here on" in kernel.run("history.edits").shown()
    assert "requested from outside" in kernel.run("history").shown()


def test_a_run_that_stands_is_steered_as_a_cell_would(kernel, comm):
    kernel.run(RUN)
    (standing,) = comm.until(lambda it: it["standing"])["standing"]
    assert (standing["run"], standing["optimizer_steps"]) == ("run", 0)
    refused(comm.ask("pause", run="run"), "not_now")
    refused(comm.ask("step", run="other"), "no_run")
    assert "step 4" in comm.ask("step", run="run", arguments={"steps": 3})["result"]["what"]
    assert comm.ask("set_batch_size", arguments={"examples": 500})["ok"]
    assert comm.ask("freeze", arguments={"prefix": 'dense"); drop(run); ("'})["error"]["code"] == "SC0103"
    assert comm.ask("rewind", arguments={"step": 1})["result"]["step"] == 1
    report = comm.ask("report", run="run")["result"]
    assert report["position"]["step"] == 1 and report["settings"]["batch_size"] == 1000 and report["edits"] == []
    # What a run that is turned back was asked for is not forgotten.
    requests = kernel.run("for it in &run.history()?.requests { println!(\"{it}\"); }").stream().splitlines()
    assert [each.split(": ")[1].split(" ")[0] for each in requests] == ["pause", "step", "set_batch_size", "freeze", "rewind"], requests
    # A cell that runs something else has no run to be steered.
    cell = kernel.request("std::thread::sleep(std::time::Duration::from_secs(3));")
    time.sleep(1)
    refused(comm.ask("step", run="run"), "not_now")
    refused(comm.ask("step"), "no_run")
    kernel.collect(cell).ok()
    kernel.run("drop(run);")


def test_a_run_without_a_table_is_steered(kernel, comm):
    cell = kernel.request("let quiet = fit!(model, data, batch_size = 2, epochs = 100, verbose = false)?;")
    (run,) = comm.until(lambda it: it["training"] and it["training"][0]["at"])["training"]
    assert run["planned"]["epochs"] == 100
    assert comm.ask("scale_learning_rate", arguments={"factor": 0.5})["ok"]
    assert comm.ask("stop")["ok"]
    done = kernel.collect(cell).ok()
    assert not done.shown(), "it shows nothing"
    assert "learning rate × 0.5" in kernel.run("quiet.edits").shown()


def test_a_run_is_turned_back_while_a_cell_drives_it(kernel, comm):
    kernel.run("let run = start!(model, data, batch_size = 2, epochs = 100)?;")
    cell = kernel.request("let stop = run.step(1_000_000)?;")
    comm.until(lambda it: it["training"] and it["training"][0]["at"])
    assert comm.ask("pause")["ok"]
    assert comm.ask("set_learning_rate", arguments={"rate": 1e-5})["ok"]
    step = comm.ask("report")["result"]["position"]["step"]
    assert "SC0915" == comm.ask("rewind", arguments={"step": step + 1})["error"]["code"]
    answer = comm.ask("rewind", arguments={"step": 3})
    assert answer["result"]["step"] == 3 and "undone: after step" in answer["result"]["what"], answer
    comm.until(lambda it: it["training"] and it["training"][0]["state"] == "paused")
    report = comm.ask("report")["result"]
    assert report["position"]["step"] == 3 and report["edits"] == []
    assert comm.ask("continue")["ok"]
    assert comm.ask("stop")["ok"]
    kernel.collect(cell).ok()
    # The run goes on between two cells.
    assert comm.ask("step", run="run")["ok"]
    kernel.run("drop(run);")


def opened(kernel):
    text = kernel.run("%steer socket").shown()
    url, file = re.search(r"at (http://127\.0\.0\.1:\d+/) with the key in (\S+),", text).groups()
    return url, pathlib.Path(file), text


def http_answer(url, key, request=None, **headers):
    """The status and the answer."""
    data = None if request is None else request if isinstance(request, bytes) else json.dumps(request).encode()
    asked = urllib.request.Request(url, data, {"Authorization": f"Bearer {key}", **headers})
    try:
        with urllib.request.urlopen(asked, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_the_socket_needs_its_key(kernel, comm):
    url, file, text = opened(kernel)
    assert opened(kernel)[:2] == (url, file), "it is open already"
    key = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert len(key) == 64 and key not in text
    # As the cell says it.
    listed = json.loads(subprocess.check_output(text.splitlines()[-1] + " -s", shell=True, text=True, timeout=60))
    assert listed["ok"] and listed["result"]["training"] == []
    assert http_answer(url, key)[0] == 200
    for wrong, status in ((key[:-1], 401), ("", 401), (key[1:] + "x", 401)):
        assert http_answer(url, wrong)[0] == status
    assert http_answer(url, key, Origin="http://example.org")[0] == 403
    assert http_answer(url, key, Host="example.org")[0] == 403
    assert http_answer(url, key, b"{")[0] == 400
    assert http_answer(url, key, b"[]")[0] == 400
    assert http_answer(url, key, b" " * 20_000)[0] == 413
    assert http_answer(url + "other", key)[0] == 404

    kernel.run(RUN)
    status, answer = http_answer(url, key, {"id": "a", "run": "run", "action": "set_learning_rate", "arguments": {"rate": 1e-4}})
    assert (status, answer["id"], answer["ok"]) == (200, "a", True), answer
    status, answer = http_answer(url, key, {"action": "set_learning_rate", "arguments": {"rate": "high"}})
    assert status == 409 and refused(answer, "bad_argument")
    # Other clients go on while one sends nothing.
    host, port = re.search(r"//(.*):(\d+)/", url).groups()
    silent = http.client.HTTPConnection(host, int(port))
    silent.connect()
    assert http_answer(url, key)[0] == 200
    silent.close()
    # More than 40 at once are too many.
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: http_answer(url, key, b"[]")[0], range(200)))
    assert set(statuses) == {400, 429}, statuses
    requests = kernel.run("for it in &run.history()?.requests { println!(\"{it}\"); }").stream()
    assert "by socket: set_learning_rate" in requests and key not in requests

    kernel.run("drop(run);")
    assert "no socket is open" in kernel.run("%steer off").shown()
    assert not file.exists()
    with pytest.raises(OSError):
        http_answer(url, key)


def test_the_key_goes_with_the_kernel(fresh_kernel):
    _, file, _ = opened(fresh_kernel)
    assert file.exists()
    fresh_kernel.manager.shutdown_kernel()
    deadline = time.monotonic() + 10
    while file.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not file.parent.exists()


LINE = """let rows = make_regression(64, 3, 1)?;
let line = Sequential([Dense(1).seed(1)])?;
compile!(line, optimizer = SGD::new(0.01), loss = MeanSquaredError, metrics = [mae()])?;"""


def test_alerts_reach_the_notebook_a_command_and_a_closure(tmp_path):
    (tmp_path / "hear").write_text('#!/bin/sh\nprintf "%s\\n" "$1" >> heard\n')
    (tmp_path / "hear").chmod(0o755)
    with Kernel(cwd=tmp_path) as kernel:
        kernel.run(LINE)
        cell = kernel.run("""let mut heard = Vec::new();
let history = fit!(line, rows, epochs = 2, batch_size = 16, callbacks = [on_alert(AlertTo::notebook()),
    on_alert(AlertTo::command("./hear", [""; 0])), on_alert(|alert: &Alert| heard.push(alert.message.clone()))])?;""")
        assert re.search(r"run \d+, step 8: finished: loss \d", cell.shown()), cell.shown()
        assert "border-left" in cell.shown("text/html")
        assert re.fullmatch(r"run \d+, step 8: finished: loss \d.*\n", (tmp_path / "heard").read_text())
        assert "in the last epoch" in kernel.run("heard").shown()
        # An error ends the call, and is an alert.
        kernel.run("compile!(line, optimizer = SGD::new(1e30), loss = MeanSquaredError)?;")
        failed = kernel.execute('fit!(line, rows, epochs = 3, callbacks = [on_alert(AlertTo::command("./hear", [""; 0]))])?;')
        (error,) = failed.errors
        assert f": failed {error['ename']}: " in (tmp_path / "heard").read_text()


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """A folder with logs, and the losses of the epochs and the executions."""
    folder = tmp_path_factory.mktemp("logs")
    with Kernel(cwd=folder) as kernel:
        kernel.run(LINE)
        kernel.run("""let course = fit!(line, rows, epochs = 3, batch_size = 16, validation_split = 0.25,
    callbacks = [MlflowLogger::new("mlruns", "lines")?, TrackioLogger::new("run.csv")?, WandbLogger::new("wandb", "lines")?])?;""")
        losses = json.loads(kernel.run("course.epochs.iter().map(|it| it.loss).collect::<Vec<_>>()").shown())
        steps = json.loads(kernel.run("course.executions.iter().map(|it| it.loss).collect::<Vec<_>>()").shown())
    return folder, losses, steps


def test_loggers_have_what_the_history_holds(logged):
    folder, losses, steps = logged
    rows = list(csv.DictReader((folder / "run.csv").open()))
    assert list(rows[0]) == ["step", "batch/loss", "lr", "grad/norm", "train/loss", "train/mae", "val/loss", "val/mae"]
    assert [float(row["batch/loss"]) for row in rows if row["batch/loss"]] == steps
    assert [(int(row["step"]), float(row["train/loss"])) for row in rows if row["train/loss"]] == [
        (len(steps) // 3 * (epoch + 1), loss) for epoch, loss in enumerate(losses)]
    (experiment,) = (folder / "mlruns").iterdir()
    (run,) = [each for each in experiment.iterdir() if each.is_dir()]
    assert "name: \"lines\"\n" in (experiment / "meta.yaml").read_text()
    assert re.fullmatch("[0-9a-f]{32}", run.name)

    def metric(name):
        return [(float(value), int(step)) for _, value, step in (line.split() for line in (run / "metrics" / name).open())]

    assert metric("loss") == [(loss, epoch) for epoch, loss in enumerate(losses)]
    assert metric("batch_loss") == [(loss, step + 1) for step, loss in enumerate(steps)]
    assert {each.name for each in (run / "metrics").iterdir()} == {
        "batch_loss", "gradient_norm", "learning_rate", "loss", "mae", "val_loss", "val_mae"}
    assert (run / "params" / "batch_size").read_text() == "16"
    meta = dict(line.split(": ", 1) for line in (run / "meta.yaml").read_text().splitlines())
    assert (meta["status"], meta["lifecycle_stage"], meta["run_id"]) == ("3", "active", f'"{run.name}"')
    assert int(meta["end_time"]) >= int(meta["start_time"])


def records_of(log):
    """The records of a log of W&B, its checksums checked."""
    assert log[:7] == b":W&B\xe1\xbe\x00"
    at, record = 7, b""
    while at < len(log):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        checksum, length, mark = struct.unpack_from("<IHB", log, at)
        part = log[at + 7:at + 7 + length]
        assert zlib.crc32(part, zlib.crc32(bytes([mark]))) == checksum
        record += part
        at += 7 + length
        if mark in (1, 4):
            yield record
            record = b""


def fields_of(message):
    """The fields of a message of Protocol Buffers: numbers with whole numbers, or with bytes."""
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    at = 0
    while at < len(message):
        key = varint()
        assert key & 7 in (0, 2)
        value = varint()
        if key & 7 == 2:
            value, at = message[at:at + value], at + value
        yield key >> 3, value


def test_an_offline_run_of_wandb_has_what_the_history_holds(logged):
    folder, losses, steps = logged
    (run,) = (folder / "wandb").iterdir()
    name = re.fullmatch(r"offline-run-\d{8}_\d{6}-([0-9a-z]{8})", run.name)[1]
    rows, kinds = [], []
    for record in records_of((run / f"run-{name}.wandb").read_bytes()):
        fields = dict(fields_of(record))
        kinds += [kind for kind in fields if kind not in (1, 200)]
        assert fields[1] == len(kinds)
        if history := fields.get(2):
            items = [dict(fields_of(item)) for number, item in fields_of(history) if number == 1]
            rows.append({item[2].decode(): json.loads(item[16]) for item in items})
        if described := dict(fields_of(fields.get(17, b""))):
            assert (described[1], described[3]) == (name.encode(), b"lines")
        if 18 in fields:
            assert dict(fields_of(fields[18]))[1] == 0
    assert kinds == [21, 17, *[3, 2] * len(steps), 18]
    assert [row["batch/loss"] for row in rows] == steps and [row["_step"] for row in rows] == [*range(1, len(steps) + 1)]
    assert [row["train/loss"] for row in rows if "train/loss" in row] == losses
    assert [row["epoch"] for row in rows if "val/mae" in row] == [1, 2, 3]


# mlflow, trackio and wandb are large: their tests are there where somebody has installed them.
def where_installed(package):
    return lambda test: test if importlib.util.find_spec(package) else None


@where_installed("mlflow")
def test_mlflow_reads_its_runs(logged, monkeypatch):
    import mlflow

    folder, losses, steps = logged
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    client = mlflow.MlflowClient((folder / "mlruns").as_uri())
    (found,) = client.search_runs([client.get_experiment_by_name("lines").experiment_id])
    assert found.info.status == "FINISHED" and found.data.metrics["loss"] == losses[-1]
    assert [each.value for each in client.get_metric_history(found.info.run_id, "batch_loss")] == steps


@where_installed("trackio")
def test_trackio_imports_its_file(logged, tmp_path):
    folder, losses, steps = logged
    code = f"""import json, trackio
trackio.import_csv({str(folder / "run.csv")!r}, project="lines")
from trackio.sqlite_storage import SQLiteStorage
print(json.dumps(SQLiteStorage.get_logs("lines", "run")))"""
    environment = {**os.environ, "HOME": str(tmp_path), "HF_HOME": str(tmp_path)}
    said = subprocess.check_output([sys.executable, "-c", code], text=True, env=environment, timeout=120)
    logs = json.loads(said.splitlines()[-1])
    assert [each["batch/loss"] for each in logs if "batch/loss" in each] == steps
    assert [each["train/loss"] for each in logs if "train/loss" in each] == losses


@where_installed("wandb")
def test_wandb_reads_its_records(logged):
    from wandb.proto import wandb_internal_pb2

    folder, losses, _ = logged
    (path,) = (folder / "wandb").glob("*/*.wandb")
    records = [wandb_internal_pb2.Record.FromString(record) for record in records_of(path.read_bytes())]
    assert records[1].run.project == "lines" and records[-1].exit.exit_code == 0
    items = [item for record in records for item in record.history.item if item.nested_key == ["train/loss"]]
    assert [json.loads(item.value_json) for item in items] == losses
