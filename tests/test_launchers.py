"""Jobs of Open MPI, MPICH and Slurm, started as docs/distributed.md says: the losses of one process, to the bit, and what
happens when a worker is killed. The launchers are Debian's."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import nbformat
import pytest
import yaml

from conftest import ROOT, STRATOSCOPE, TARGET, example
from kernel_client import check_card, without_ansi
from slurm import Slurm

DOCUMENT = (ROOT / "docs" / "distributed.md").read_text()
SECTION = re.search(r"\n## Under mpirun, Slurm and Kubernetes\n.*?(?=\n## )", DOCUMENT, re.DOTALL)[0]
DATA = "let train = make_regression(64, 5, 2)?;"
MODEL = """scope!(strategy, {
    let model = Sequential([Dense(16).activation("tanh").input_shape((5,)), Dropout(0.2), Dense(1)])?;
    compile!(model, optimizer = Adam::new(0.01), loss = "mse")?;
});"""
# Printed, since long results are cut.
LOSSES = 'println!("{:?}", history.steps.iter().map(|it| it.loss.to_bits()).collect::<Vec<_>>());'
# Which programs a package has, and under which name they are called.
PACKAGES = {"mpirun": "openmpi-bin", "mpiexec.hydra": "mpich", "munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd",
            "srun": "slurm-client"}


def blocks(language):
    """The blocks of the section in a language, in their order."""
    return re.findall(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)


def command(program):
    """The command of the section that begins with a program."""
    return next(block.strip() for block in blocks("bash") if block.startswith(program + " "))


def fit(epochs):
    return f"let history = fit!(model, train, epochs = {epochs}, batch_size = 8, seed = 4)?;"


def found(program):
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")


@pytest.fixture(scope="session")
def installed():
    """Skips the test where programs are missing; `tests/run.sh` installs them."""
    def check(*programs):
        for program in programs:
            if not found(program):
                pytest.skip(f"no {program} (apt-get install {PACKAGES[program]})")

    return check


@pytest.fixture(scope="module")
def expected(kernel):
    """The bits of the losses of one process."""
    for cell in (DATA, "let strategy = MirroredStrategy::logical(3)?;", MODEL, fit(2)):
        kernel.run(cell)
    return json.loads(kernel.run(LOSSES).stream())


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Job:
    """A folder as the section describes it: the notebook, the key, and `target/debug/stratoscope`."""

    def __init__(self, folder, epochs=2, strategy="MultiWorkerMirroredStrategy::from_environment()?"):
        self.folder = folder
        cells = [DATA, f"let strategy = {strategy};", MODEL, fit(epochs), LOSSES, "strategy.status()"]
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
                                            metadata={"kernelspec": {"name": "stratoscope", "display_name": "Rust"}})
        nbformat.write(notebook, folder / "job.ipynb")
        (folder / "target").mkdir()
        (folder / "target" / "debug").symlink_to(TARGET / "debug")
        (folder / "job.conf").write_text(blocks("conf")[0])
        (folder / "job.sbatch").write_text(blocks("sbatch")[0])
        prepare = blocks("bash")[0]
        assert "--new-key job.pem" in prepare
        subprocess.run(["bash", "-euc", prepare], cwd=folder, check=True, capture_output=True)
        more = {"STRATOSCOPE_WORKER_KEY": "job.pem", "MASTER_PORT": str(free_port()),
                # What the section says of containers and of few cores.
                "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        self.environment = {**os.environ, **more}

    def begin(self, line, **more):
        """A command as a shell starts it; its output goes to a file."""
        self.output = self.folder / "output"
        with self.output.open("w") as output:
            self.process = subprocess.Popen(["bash", "-euc", line], cwd=self.folder, env=self.environment | more,
                                            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                            start_new_session=True)

    def said(self):
        return without_ansi(self.output.read_text())

    def ended(self, seconds=120):
        """The exit status, once the command has ended."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise AssertionError(f"not over after {seconds} s: {self.said()}") from None

    def run(self, line, **more):
        self.begin(line, **more)
        status = self.ended()
        assert status == 0, self.said()

    def done(self):
        return nbformat.read(self.folder / "job.executed.ipynb", as_version=4)

    def losses(self):
        printed = (each["text"] for each in self.done().cells[4].outputs if each.get("name") == "stdout")
        return json.loads("".join(printed))

    def processes(self):
        """The numbers of the processes of the job that are running, by what they do: `run` or `worker`."""
        running = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().decode().split("\0")
                here = (folder / "cwd").resolve() == self.folder.resolve()
            except OSError:
                continue
            if here and len(words) > 1 and words[0].endswith("stratoscope"):
                running.append((words[1], int(folder.name)))
        return running

    def begun(self):
        """Waits until an epoch is over; then the number of a worker's process."""
        until = time.monotonic() + 120
        while True:
            workers = [process for what, process in self.processes() if what == "worker"]
            connected = self.said().count(": connected to ")
            if len(workers) == 2 and connected == 2 and "cell 4/" in self.said():
                time.sleep(1)
                return workers[0]
            assert time.monotonic() < until and self.process.poll() is None, self.said()
            time.sleep(0.1)


@pytest.mark.parametrize("program", ["mpirun", "mpiexec.hydra"])
def test_mpi_starts_a_job_with_the_bits_of_one_process(tmp_path, installed, expected, program):
    installed(program)
    job = Job(tmp_path)
    job.run(command(program))
    assert job.losses() == expected
    assert "worker 1 of 3: connected to 127.0.0.1" in job.said() and "worker 2 of 3: connected" in job.said(), job.said()
    assert not job.processes()


@pytest.mark.parametrize("program", ["mpirun", "mpiexec.hydra"])
def test_a_killed_worker_ends_a_job_of_mpi(tmp_path, installed, program):
    """As MPI does by default, and nothing of the job is left. Whether the outputs so far are written depends on how long the
    launcher waits between SIGTERM and SIGKILL."""
    installed(program)
    job = Job(tmp_path, epochs=100_000)
    job.begin(command(program))
    os.kill(job.begun(), signal.SIGKILL)
    assert job.ended(60) != 0
    said = " ".join(job.said().split())
    assert "signal 9" in said or "EXIT CODE: 9" in said, job.said()
    if (tmp_path / "job.executed.ipynb").exists():
        assert not job.done().cells[4].outputs, "the run did not come to its end"
    until = time.monotonic() + 30
    while job.processes():
        assert time.monotonic() < until, job.processes()
        time.sleep(0.1)


OVER_MPI = next(line for line in blocks("rust,ignore") if '.communication("mpi")' in line).strip()
CARRIED = "gradients and weights travel over "


@pytest.mark.parametrize("program, name", [("mpirun", "Open MPI v4"), ("mpiexec.hydra", "MPICH 4")])
def test_gradients_travel_over_the_mpi_of_the_launcher(tmp_path, installed, expected, program, name):
    """With the same bits, and with an end that the launcher takes for one."""
    installed(program)
    job = Job(tmp_path, strategy=OVER_MPI.removeprefix("let strategy = ").removesuffix(";"))
    job.run(command(program))
    assert job.losses() == expected
    assert CARRIED + name in json.dumps(job.done().cells[5].outputs), job.done().cells[5].outputs
    assert not job.processes()


def test_the_all_reduce_is_measured_over_tcp_and_mpi(tmp_path, installed):
    installed("mpirun")
    program = example("all_reduce")
    job = Job(tmp_path)
    found = {}
    for transport in ("tcp", "mpi"):
        job.run(f"mpirun --bind-to none -n 2 {program} {transport} 1000 100000")
        found[transport] = [json.loads(line) for line in job.said().splitlines()]
    assert [(run["carrier"], run["bytes"]) for run in found["tcp"]] == [("TCP with TLS", 4000), ("TCP with TLS", 400_000)]
    assert found["mpi"][1]["carrier"].startswith("Open MPI v") and found["mpi"][1]["seconds"] > 0


def test_without_mpi_the_diagnostic_says_why(tmp_path, kernel):
    """Where no launcher has started the workers, and where the library is none."""
    cell = kernel.execute('let strategy = MultiWorkerMirroredStrategy::workers(2)?.communication("mpi")?;')
    check_card(cell, "SC0103", "no launcher has started the workers")
    job = Job(tmp_path, strategy=OVER_MPI.removeprefix("let strategy = ").removesuffix(";"))
    job.begin(command("mpirun"), STRATOSCOPE_MPI="libnone.so")
    assert job.ended() != 0
    text = json.dumps(job.done().cells[1].outputs)
    assert "SC0103" in text and "libnone.so" in text, text


def test_nccl_is_refused_where_workers_have_no_cuda_device_of_their_own(tmp_path, kernel):
    """In a notebook, and between processes of a launcher, which end with the reason."""
    cell = kernel.execute('let strategy = MultiWorkerMirroredStrategy::workers(2)?.communication("nccl")?;')
    check_card(cell, "SC0103", "NCCL joins CUDA devices, and the workers of this strategy compute on CPU")
    job = Job(tmp_path)
    job.begin(f"mpirun --bind-to none -n 2 {example('all_reduce')} nccl 1000")
    assert job.ended() != 0
    assert "libcuda.so" in job.said() or "libnccl.so" in job.said(), job.said()


@pytest.fixture(scope="module")
def slurm(tmp_path_factory, installed):
    installed("munged", "slurmctld", "slurmd", "srun")
    if os.geteuid() != 0:
        pytest.skip("the daemons of Slurm need root")
    with Slurm(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster.environment


def without_port(job):
    """Slurm's numbers say the port."""
    del job.environment["MASTER_PORT"]


def test_srun_starts_a_job_on_three_nodes(tmp_path, slurm, expected):
    job = Job(tmp_path)
    without_port(job)
    job.run(command("srun"), **slurm)
    assert job.losses() == expected
    assert re.search(r"worker 2 of 3: connected to 127\.0\.0\.1:2\d{4}", job.said()), job.said()


def test_sbatch_starts_a_job(tmp_path, slurm, expected):
    job = Job(tmp_path)
    without_port(job)
    assert "`sbatch job.sbatch`" in SECTION
    job.run("sbatch --wait job.sbatch", **slurm)
    assert job.losses() == expected
    assert "worker 1 of 3: connected" in (tmp_path / "job.out").read_text()


def test_a_run_goes_on_when_srun_has_lost_a_worker(tmp_path, slurm, kernel):
    """With the diagnostic, and with the bits of an undisturbed run."""
    epochs = 150
    job = Job(tmp_path, epochs)
    without_port(job)
    job.begin(command("srun"), **slurm)
    os.kill(job.begun(), signal.SIGKILL)
    assert job.ended() == 137, job.said()
    text = json.dumps(job.done().cells[3].outputs)
    assert "SC0808" in text and " is lost" in text and "in its place" not in text, text
    for cell in (DATA, "let strategy = MirroredStrategy::logical(3)?;", MODEL, fit(epochs)):
        kernel.run(cell)
    assert json.loads(kernel.run(LOSSES).stream()) == job.losses()
    assert not job.processes()


def test_the_pods_of_the_manifest_are_a_job(tmp_path, expected):
    """The commands of the three pods, as processes: the key is a link, as in a volume of a secret."""
    job = Job(tmp_path)
    service, manifest = yaml.safe_load_all(blocks("yaml")[0])
    spec = manifest["spec"]
    assert manifest["kind"] == "Job" and spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"]
    pod = spec["template"]["spec"]
    assert service["spec"]["clusterIP"] == "None" and service["metadata"]["name"] == pod["subdomain"]
    (container,) = pod["containers"]
    given = {each["name"]: each["value"] for each in container["env"]}
    assert int(given["WORLD_SIZE"]) == spec["completions"]
    assert given["MASTER_ADDR"] == f"{manifest['metadata']['name']}-0.{pod['subdomain']}"
    pods = []
    for index in range(spec["completions"]):
        folder = tmp_path / f"pod{index}"
        (folder / "key").mkdir(parents=True)
        (folder / "key" / "job.pem").symlink_to(tmp_path / "job.pem")
        (folder / "tmp").mkdir()

        def placed(text):
            return text.replace("/key/", f"{folder}/key/").replace("/tmp/job.pem", f"{folder}/tmp/job.pem")

        own = {name: placed(value) for name, value in given.items()}
        own |= {"JOB_COMPLETION_INDEX": str(index), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(job.environment["MASTER_PORT"]),
                "PATH": f"{STRATOSCOPE.parent}:{os.environ['PATH']}"}
        line = [*container["command"], *(placed(text) for text in container["args"])]
        pods.append(subprocess.Popen(line, cwd=tmp_path, env=os.environ | own))
    assert [each.wait(120) for each in pods] == [0, 0, 0]
    assert job.losses() == expected
