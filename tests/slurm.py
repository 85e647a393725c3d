"""A Slurm cluster on this machine: munge, the controller, and a daemon for each of its nodes, in a folder of its own."""

import os
import pathlib
import shutil
import socket
import subprocess
import time

# Names that every machine resolves, so that the first node of a step is found by its name.
CONFIGURATION = """ClusterName=stratoscope
SlurmctldHost=localhost
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
KillWait=2
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdSpoolDir={folder}/spool/%n
StateSaveLocation={folder}/state
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
NodeName=127.0.0.[1-3] NodeHostname=localhost NodeAddr=127.0.0.[1-3] Port=[{first}-{last}] CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def is_running(process):
    """Whether there is a process of this number; one that has ended and that nobody has waited for is none."""
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def free_ports(count):
    """The first of so many successive ports that nobody listens on. They are below those that the system gives to
    connections, so that no other test of the run gets one before the daemons do."""
    begin = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for first in range(begin - count, 1024, -count):
        try:
            for port in range(first, first + count):
                with socket.socket() as taken:
                    taken.bind(("", port))
        except OSError:
            continue
        return first
    raise AssertionError("no ports are free")


class Slurm:
    """The cluster; a context manager, which ends its daemons."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.port = free_ports(1 + 3)
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def __enter__(self):
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _begin(self):
        for name in ("state", *(f"spool/127.0.0.{node}" for node in (1, 2, 3))):
            (self.folder / name).mkdir(parents=True)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(64))
        key.chmod(0o600)
        text = CONFIGURATION.format(folder=self.folder, port=self.port, first=self.port + 1, last=self.port + 3)
        (self.folder / "slurm.conf").write_text(text)
        files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid", "log-file": "munged.log",
                 "seed-file": "munge.seed"}
        self._run("munged", "--force", *(f"--{option}={self.folder / name}" for option, name in files.items()))
        self._run("slurmctld", "-c")
        for node in (1, 2, 3):
            self._run("slurmd", "-N", f"127.0.0.{node}")
        # Beside other work on the machine the daemons take their time.
        until = time.monotonic() + 60
        while (idle := self._run("sinfo", "-h", "-t", "idle", "-o", "%D").strip()) != "3":
            logs = "".join(log.read_text() for log in self.folder.glob("*.log"))
            assert time.monotonic() < until, f"{idle} nodes are idle: {logs}"
            time.sleep(0.1)

    def _run(self, program, *arguments):
        program = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")
        # A file, since the daemons keep what they are given open.
        output = self.folder / "output"
        with output.open("w") as file:
            ran = subprocess.run([program, *arguments], env=os.environ | self.environment, stdin=subprocess.DEVNULL,
                                 stdout=file, stderr=subprocess.STDOUT, timeout=30)
        assert ran.returncode == 0, output.read_text()
        return output.read_text()

    def __exit__(self, *_):
        if (self.folder / "slurmctld.pid").exists():
            self._run("scancel", "--user=root")
        processes = []
        for pattern in ("slurmd.*.pid", "slurmctld.pid", "munged.pid"):
            for file in self.folder.glob(pattern):
                process = int(file.read_text())
                processes.append(process)
                try:
                    os.kill(process, 15)
                except ProcessLookupError:
                    pass
        until = time.monotonic() + 10
        while any(is_running(process) for process in processes) and time.monotonic() < until:
            time.sleep(0.1)
