"""The comm `stratoscope.lint`: what the checks find in a cell that is being typed, before it is executed."""

import hashlib
import json
import pathlib
import queue
import subprocess
import time

import pytest

pytestmark = pytest.mark.own_kernel

MISSPELLED = "// 😀 größe 👩‍👩‍👧\nlet x = \"𝄞\"; compile!(model, optimiser = AdamW::new(5e-5))?;"
STEPS = "compile!(model, optimizer = AdamW::new(5e-5), loss = MeanSquaredError, steps_per_execution = 4)?;"
LOOP = "loop { std::thread::sleep(std::time::Duration::from_millis(20)); }"


class Comm:
    """The comm of a front end."""

    def __init__(self, kernel, name="lint", target="stratoscope.lint"):
        self.kernel, self.name, self.sequence = kernel, name, 0
        # What other requests have published meanwhile.
        self.others = []
        self.send("comm_open", target_name=target, data={})

    def send(self, kind, **content):
        message = self.kernel.client.session.msg(kind, {"comm_id": self.name} | content)
        self.kernel.client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def request(self, text, cell="a", **more):
        """Sends a request; returns its number."""
        self.sequence += 1
        self.send("comm_msg", data={"sequence": self.sequence, "cell": cell, "text": text} | more)
        return self.sequence

    def next(self, timeout=20):
        """The next answer."""
        deadline = time.monotonic() + timeout
        while True:
            message = self.kernel.client.get_iopub_msg(timeout=max(deadline - time.monotonic(), 0.001))
            if message["msg_type"] == "comm_msg" and message["content"]["comm_id"] == self.name:
                return message["content"]["data"]
            self.others.append(message)

    def ask(self, text, **more):
        """The ranges for a text."""
        sequence = self.request(text, **more)
        answer = self.next()
        assert (answer["sequence"], answer["cell"]) == (sequence, more.get("cell", "a"))
        return answer["ranges"]

    def codes(self, text, **more):
        return [each["code"] for each in self.ask(text, **more)]

    def close(self):
        self.send("comm_close", data={})


@pytest.fixture
def comm(kernel):
    opened = Comm(kernel)
    yield opened
    opened.close()


def cut(text, place):
    """The text between two places in UTF-16 code units."""
    return text.encode("utf-16-le")[2 * place["from"]:2 * place["to"]].decode("utf-16-le")


def fixed(text, fix):
    units = text.encode("utf-16-le")
    for edit in reversed(fix["edits"]):
        units = units[:2 * edit["from"]] + edit["insert"].encode("utf-16-le") + units[2 * edit["to"]:]
    return units.decode("utf-16-le")


def test_places_are_utf_16_and_the_fix_can_be_applied(comm):
    (found,) = [each for each in comm.ask(MISSPELLED) if each["code"] == "SC0101"]
    assert cut(MISSPELLED, found) == "optimiser" and found["severity"] == "error"
    assert found["message"] == "`compile!` has no argument `optimiser`"
    assert found["page"]["name"] == "unknown-compile-argument" and found["page"]["finds"] and found["page"]["good"]
    text = fixed(MISSPELLED, found["fixes"][0])
    assert text == MISSPELLED.replace("optimiser", "optimizer")
    assert "SC0101" not in comm.codes(text)


@pytest.mark.parametrize(("text", "code"), [
    ("fit!(model, train, epoch = 3)?;", "SC0114"),
    ("let m = AdamW::new(5e-5).clip_norm(1.0);", "SC0504"),
    ("let x = (1 + 2;", "SC1012"),
    ("with strategy.scope():\n    model = make()", "SC1013"),
    ("let x = 'text';", "SC0127"),
])
def test_the_checks_are_those_of_an_executed_cell(kernel, comm, text, code):
    assert code in comm.codes(text)
    assert kernel.execute(text).errors[0]["ename"] == code


def test_magics_and_good_cells_have_no_ranges(comm):
    for text in ("", "%vars", "%%time\nlet x = 1;", "!ls 'x", "?model", "let x = 1;\nx + 1", "scope!(s, { let m = 1; });"):
        assert comm.ask(text) == [], text


def test_what_the_cells_have_made_is_known(fresh_kernel):
    comm = Comm(fresh_kernel)
    # Nothing is said where another cell may make a strategy.
    assert "SC0102" not in comm.codes(STEPS)
    assert "SC0102" not in comm.codes(STEPS, strategy_elsewhere=True)
    assert "SC0102" in comm.codes(STEPS, strategy_elsewhere=False)
    fresh_kernel.run("let two = MirroredStrategy::logical(2)?;")
    assert "SC0102" not in comm.codes(STEPS, strategy_elsewhere=False)


def test_the_settings_are_those_of_a_cell(fresh_kernel):
    comm = Comm(fresh_kernel)

    def severities():
        return [each["severity"] for each in comm.ask(STEPS) if each["code"] == "SC0119"]

    assert severities() == []
    fresh_kernel.run("%profile tf-2.3")
    assert severities() == ["note"]
    fresh_kernel.run("%warnings silence SC0119")
    assert severities() == []
    fresh_kernel.run("%warnings deny SC0119")
    assert severities() == ["error"]


def test_a_cell_is_checked_while_another_runs_and_no_state_is_published(kernel, comm):
    request = kernel.request(LOOP)
    kernel.wait_for(request, "execute_input")
    # Each answer is one message.
    for _ in range(100):
        assert "SC0101" in comm.codes(MISSPELLED)
    assert {message["msg_type"] for message in comm.others} <= {"status"}
    states = [message for message in comm.others if message["msg_type"] == "status"]
    assert all(each["parent_header"]["msg_id"] == request for each in states), states
    assert "idle" not in [each["content"]["execution_state"] for each in states]
    kernel.manager.interrupt_kernel()
    assert kernel.collect(request).reply["status"] == "error"


def test_only_the_last_request_of_a_cell_must_be_answered(comm):
    last = [comm.request(MISSPELLED + " " * number) for number in range(200)][-1]
    other = comm.request(MISSPELLED, cell="b")
    answered = []
    while not {last, other} <= set(answered):
        answered.append(comm.next()["sequence"])
    assert answered == sorted(set(answered)), "an answer was older than one before"
    with pytest.raises(queue.Empty):
        comm.next(timeout=0.5)


def test_invalid_requests_end_nothing(kernel, comm):
    hostile = [None, [], "text", {}, {"sequence": -1, "cell": "a", "text": ""}, {"sequence": 1, "cell": 1, "text": ""},
               {"sequence": 1, "cell": "a"}, {"sequence": 1, "cell": "a" * 1000, "text": ""}]
    for data in hostile:
        comm.send("comm_msg", data=data)
    comm.send("comm_open", target_name="stratoscope.lint", data={})
    assert "SC0101" in comm.codes(MISSPELLED)
    for text in ("\0", "(" * 200_000, "!" * 30_000 + "x", "\"" * 999, "compile!(" * 3000, "a=" * 16_000, "\u2028'\\", "r#" * 999,
                 "/*" * 9999, "compile!(m, optimiser = 1)?;\n" * 2000):
        assert isinstance(comm.ask(text), list)
    assert len(comm.ask("compile!(m, optimiser = 1)?;\n" * 900)) <= 100
    assert comm.ask(MISSPELLED + " " * (1 << 20)) == [], "longer than what is looked at"
    assert "SC0101" in comm.codes(MISSPELLED)
    assert kernel.run("1 + 1").shown() == "2"


def test_comms_are_listed_closed_and_bounded(kernel):
    first = Comm(kernel, "first")
    assert "SC0101" in first.codes(MISSPELLED)
    comms = kernel.client.comm_info("stratoscope.lint", reply=True, timeout=20)["content"]["comms"]
    assert comms["first"] == {"target_name": "stratoscope.lint"}
    others = [Comm(kernel, f"comm-{number}") for number in range(100)]
    comms = kernel.client.comm_info("stratoscope.lint", reply=True, timeout=20)["content"]["comms"]
    assert len(comms) == 64 and "first" not in comms and others[-1].name in comms
    assert "SC0101" in others[-1].codes(MISSPELLED)
    for each in others:
        each.close()
    assert kernel.client.comm_info("stratoscope.lint", reply=True, timeout=20)["content"]["comms"] == {}
    # A closed one is not answered.
    others[0].request(MISSPELLED)
    with pytest.raises(queue.Empty):
        others[0].next(timeout=0.5)


def test_the_built_extension_is_that_of_its_sources(root):
    folder = root / "kernel-spec" / "labextension"
    names = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json", "webpack.config.js"]
    names += [f"{part}/{path.name}" for part in ("src", "style") for path in (folder / part).iterdir()]
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(name.encode() + b"\0" + (folder / name).read_bytes() + b"\0")
    built = json.loads((folder / "built" / "package.json").read_text())
    assert built["stratoscope"]["sources"] == digest.hexdigest(), "run `npm ci && npm run build` in kernel-spec/labextension"
    # CodeMirror's state and view are those of JupyterLab: a second copy would not work.
    licenses = json.loads((folder / "built" / "static" / "third-party-licenses.json").read_text())
    assert {each["name"] for each in licenses["packages"]} <= {"@codemirror/lint", "crelt", "css-loader", "style-loader"}


def test_it_is_installed_where_jupyterlab_looks_and_removed_with_the_last_kernel(stratoscope, tmp_path):
    def command(*arguments):
        return subprocess.run([stratoscope, *arguments, "--prefix", tmp_path], check=True, capture_output=True, text=True)

    extension = tmp_path / "share" / "jupyter" / "labextensions" / "stratoscope-lint"
    command("install", "--no-build", "--no-lab-extension")
    assert not extension.exists()
    command("install", "--no-build")
    command("install", "--no-build", "--name", "second")
    built = pathlib.Path(__file__).parent.parent / "kernel-spec" / "labextension" / "built"
    for path in built.rglob("*.*"):
        if path.is_file():
            assert (extension / path.relative_to(built)).read_bytes() == path.read_bytes()
    command("uninstall")
    assert extension.exists()
    command("uninstall", "--name", "second")
    assert not extension.exists()
