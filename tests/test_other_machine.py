"""The GPU of another machine (docs/devices.md): the commands of the page. The other machine is a network namespace with an
ssh server, so that only what ssh carries reaches it."""

import contextlib
import json
import os
import pathlib
import pwd
import re
import shutil
import socket
import subprocess
import time
import urllib.request
import uuid

import pexpect
import pytest
import websocket

from conftest import ROOT
from kernel_client import without_ansi
from network import another_machine

NETWORK = "10.78.31"
IS_THERE = f'std::net::TcpListener::bind("{NETWORK}.2:0").is_ok()'
SECTION = (ROOT / "docs" / "devices.md").read_text().split("\n## The GPU of another machine")[1].split("\n## ")[0]
BLOCKS = "\n".join(re.findall(r"```bash\n(.*?)```", SECTION, re.DOTALL)).splitlines()
INTERRUPT = re.search(r"`(ssh workstation \"pkill[^`]+)`", SECTION)[1]


def documented(words):
    """The command of the page that has these words."""
    (command,) = [line for line in BLOCKS if words in line]
    return command


def found(program):
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def is_open(port):
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        return True


def wait_until(holds):
    """Asks until it holds, and is no error of the network."""
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError):
            if holds():
                return
        assert time.monotonic() < deadline
        time.sleep(0.1)


class Machine:
    """The other machine and the way to it: `ssh workstation` in a shell of this one."""

    def __init__(self, folder, name):
        self.here, self.there = folder / "here", folder / "there"
        programs = folder / "programs"
        for each in (self.here, self.there, programs):
            each.mkdir()
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
        variables = {
            # The environment that is active there.
            "PATH": os.environ["PATH"],
            "JUPYTER_DATA_DIR": self.there / "data",
            "JUPYTER_CONFIG_DIR": self.there / "config",
            "JUPYTER_RUNTIME_DIR": self.there / "runtime",
            "STRATOSCOPE_DEVICE": "cpu",
            "STRATOSCOPE_HISTORY": "off",
        }
        variables |= {name: os.environ[name] for name in ("CARGO_HOME", "RUSTUP_HOME") if name in os.environ}
        (self.there / "config").mkdir()
        (self.there / "config" / "jupyter_server_config.json").write_text(json.dumps(
            {"ServerApp": {"allow_root": True, "root_dir": str(self.there)}}))
        (folder / "sshd_config").write_text(f"""ListenAddress {NETWORK}.2
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
StrictModes no
UsePAM no
PasswordAuthentication no
Subsystem sftp internal-sftp
PidFile none
SetEnv {" ".join(f'"{name}={value}"' for name, value in variables.items())}
""")
        (folder / "ssh_config").write_text(f"""Host workstation
HostName {NETWORK}.2
User root
IdentityFile {folder}/user
UserKnownHostsFile {folder}/known
StrictHostKeyChecking accept-new
LogLevel ERROR
""")
        for program in ("ssh", "scp"):
            script = programs / program
            script.write_text(f'#!/bin/sh\nexec {shutil.which(program)} -F {folder}/ssh_config "$@"\n')
            script.chmod(0o755)
        self.environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "TERM": "xterm"}
        # The folder of a package's service, which need not run.
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        self.log = folder / "sshd.log"
        command = ["ip", "netns", "exec", name, found("sshd"), "-D", "-f", folder / "sshd_config", "-E", self.log]
        self.server = subprocess.Popen(command)
        wait_until(lambda: "Server listening" in self.log.read_text())

    def run(self, command):
        subprocess.run(["bash", "-c", command], cwd=self.here, env=self.environment, check=True)

    @contextlib.contextmanager
    def terminal(self, command):
        """A command in a terminal of this machine; the terminal is closed at the end."""
        child = pexpect.spawn("bash", ["-c", f"exec {command}"], cwd=str(self.here), env=self.environment, encoding="utf-8",
                              timeout=90, dimensions=(50, 300))
        try:
            yield child
        finally:
            child.close(force=True)


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    missing = [program for program in ("ip", "ssh", "scp", "sshd") if not found(program)]
    if missing:
        pytest.skip(f"no {', '.join(missing)} (apt-get install iproute2 openssh-client openssh-server)")
    if os.geteuid():
        pytest.skip("only root starts an ssh server here")
    with another_machine("gpu", NETWORK) as name:
        machine = Machine(tmp_path_factory.mktemp("machine"), name)
        yield machine
        machine.server.terminate()
        machine.server.wait(20)


class Served:
    """A new kernel of a Jupyter server, by the server's interface for front ends."""

    def __init__(self, port, token):
        self.server, self.token, self.session = f"127.0.0.1:{port}", token, uuid.uuid4().hex
        # It listens a little later than it prints its address.
        wait_until(lambda: self.ask("GET", "/api/status"))
        self.path = f"/api/kernels/{self.ask('POST', '/api/kernels', {'name': 'stratoscope'})['id']}"
        self.socket = websocket.create_connection(
            f"ws://{self.server}{self.path}/channels?session_id={self.session}", timeout=180, suppress_origin=True,
            header=[f"Authorization: token {token}"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.ask("DELETE", self.path)

    def ask(self, method, path, body=None):
        request = urllib.request.Request(f"http://{self.server}{path}", json.dumps(body).encode() if body else None,
                                         {"Authorization": f"token {self.token}"}, method=method)
        answer = urllib.request.urlopen(request, timeout=60).read()
        return json.loads(answer) if answer else None

    def run(self, code, at_output=lambda: None):
        """The outputs of a cell as text. `at_output` is called at the first one."""
        number = uuid.uuid4().hex
        header = {"msg_id": number, "msg_type": "execute_request", "session": self.session, "username": "", "version": "5.4"}
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False, "stop_on_error": True}
        self.socket.send(json.dumps({"channel": "shell", "header": header, "parent_header": {}, "metadata": {}, "content": content}))
        outputs = []
        while True:
            message = json.loads(self.socket.recv())
            kind, content = message["msg_type"], message["content"]
            if message["parent_header"].get("msg_id") != number:
                continue
            if kind == "status" and content["execution_state"] == "idle":
                return "".join(outputs)
            if kind in ("stream", "execute_result", "error"):
                if not outputs:
                    at_output()
                outputs.append(content.get("text") or content.get("ename") or content["data"]["text/plain"])

    def interrupt(self):
        self.ask("POST", f"{self.path}/interrupt")


def test_jupyterlab_there_and_jupyterlab_here_with_its_kernels(machine):
    port, own = free_port(), free_port()
    with machine.terminal(documented("ssh -t -L 8888").replace("-L 8888", f"-L {port}")) as lab:
        lab.expect(r"http://127.0.0.1:8888/lab\?token=(\w+)")
        token = lab.match[1]
        with Served(port, token) as kernel:
            assert kernel.run(IS_THERE) == "true"
        here = documented("--gateway-url").replace("TOKEN=TOKEN", f"TOKEN={token}").replace("8888", str(port))
        assert here.startswith("JUPYTER_GATEWAY_AUTH_TOKEN=")
        options = f"--allow-root --no-browser --port {own} --IdentityProvider.token=here"
        with machine.terminal(f"env {here} {options}") as front_end:
            front_end.expect("is running at")
            with Served(own, "here") as kernel:
                assert kernel.run(IS_THERE) == "true"
                # Where the other JupyterLab was started.
                folder = kernel.run("std::env::current_dir()?.display().to_string()")
                assert folder == f'"{pwd.getpwuid(os.geteuid()).pw_dir}"'
                kernel.run("let kept = 3;")
                assert "Interrupted" in kernel.run('println!("begun"); sleep(60.0);', at_output=kernel.interrupt)
                assert kernel.run("kept") == "3"


class Console:
    """A console that is attached to a kernel."""

    def __init__(self, terminal):
        self.terminal = terminal
        self.wait()

    def wait(self):
        """What has been shown before the next prompt."""
        self.terminal.expect(r"In \[\d+\]:")
        return without_ansi(self.terminal.before)

    def run(self, cell):
        self.terminal.sendline(cell)
        return self.wait()


def test_consoles_here_share_a_kernel_there(machine):
    there = machine.there / "gpu.json"
    with machine.terminal(documented("jupyter kernel").replace("gpu.json", str(there))) as kernel:
        kernel.expect("To connect a client")
        machine.run(documented("scp ").replace("gpu.json", str(there)))
        file = machine.here / "gpu.json"
        assert file.stat().st_mode & 0o077 == 0
        ports = [value for name, value in json.loads(file.read_text()).items() if name.endswith("_port")]
        assert len(ports) == 5
        with machine.terminal(documented("ssh -N")):
            wait_until(lambda: all(map(is_open, ports)))
            console = documented("jupyter console") + " --simple-prompt"
            with machine.terminal(console) as one, machine.terminal(console) as two:
                one, two = Console(one), Console(two)
                assert "true" in one.run(IS_THERE)
                one.run("let x = 41;")
                assert "42" in two.run("x + 1")
                # Interrupted as the page has it. The sum is not in the line that the terminal echoes.
                one.terminal.sendline('println!("{}", 600 + 66); sleep(60.0);')
                one.terminal.expect("666")
                machine.run(INTERRUPT.replace("gpu.json", str(there)))
                assert "nterrupt" in one.wait()
                assert "41" in one.run("x")
        kernel.sendintr()
        kernel.expect(pexpect.EOF)
    assert not there.exists(), "the kernel has ended"
