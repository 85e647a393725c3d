"""A release, step by step as its workflow has it, and what its users do with the wheel: the commands of docs/install.md, of the
Dockerfile, of Binder and of Colab, one after the other on a bare Debian, up to the first training.

Not from where they come: the compiler is this machine's, served by a server of the test as rustup's server would, and so is the
page of the release. Debian's and Python's packages come from their registries.
"""

import email
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import time

import nbformat
import pytest

import machine_root
from conftest import ROOT
from dockerfile import Build
from kernel_client import without_ansi
from test_package import FIRST_CELLS, notebook

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a root of its own"),
    pytest.mark.skipif(not shutil.which("debootstrap"), reason="debootstrap is not installed"),
]
RELEASE = ROOT / "kernel-spec" / "release"
# A limit against hanging, not a measure.
LIMIT = 1800


@pytest.fixture(scope="module")
def shared():
    """A folder that every user can read."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="release-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    # Nothing of this machine, such as its /dev, even if a root could not be left.
    subprocess.run(["rm", "-rf", "--one-file-system", folder])


def step(script, *arguments, **variables):
    """Runs a step of the workflow; returns what it prints."""
    finished = subprocess.run(["bash", RELEASE / script, *map(str, arguments)], cwd=ROOT, env=os.environ | variables, capture_output=True,
                              text=True, timeout=LIMIT)
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
    return finished.stdout


@pytest.fixture(scope="module")
def tools(shared):
    """The environment of the tools, by its lock file."""
    step("tools.sh", shared / "tools")
    return shared / "tools" / "bin"


@pytest.fixture(scope="module")
def wheel(shared):
    """The step that makes the wheel, from what is built."""
    print(step("wheel.sh", shared / "dist", 3))
    (path,) = (shared / "dist").glob("*.whl")
    return path


# ---- the steps -------------------------------------------------------------------------------------------------------

def test_a_wheel_for_a_later_system_than_wanted_is_refused(shared, wheel):
    """The system of this machine is not the oldest one."""
    finished = subprocess.run(["bash", RELEASE / "wheel.sh", shared / "older", "1"], cwd=ROOT, env=os.environ | {"MAX_GLIBC": "2.17"},
                              capture_output=True, text=True, timeout=LIMIT)
    assert finished.returncode == 1 and "at most 2.17 was wanted" in finished.stderr, finished.stderr


def test_zizmor_finds_nothing_in_the_workflows(tools):
    finished = subprocess.run([tools / "zizmor", "--offline", "--no-progress", ROOT / ".github" / "workflows"], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout


def test_bills_checksums_and_upload(shared, wheel, tools):
    """The steps of the job `release`; the index is a server of the test."""
    dist = wheel.parent
    assert "checked against the schema" in step("bills.sh", dist, tools / "python", SOURCE_DATE_EPOCH="1700000000")
    (path,) = dist.glob("*.cdx.json")
    bill = json.loads(path.read_text())
    assert bill["specVersion"] == "1.6" and bill["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    by_name = {}
    for component in bill["components"]:
        by_name.setdefault(component["name"], []).append(component)
    lock = (ROOT / "Cargo.lock").read_text()
    (burn,) = by_name["burn"]
    assert burn["purl"] == f"pkg:cargo/burn@{burn['version']}" and burn["hashes"][0]["content"] in lock
    assert by_name["rust-std"] and by_name["@codemirror/lint"] and by_name["stratoscope-kernel"]
    # A crate of tests alone.
    assert "name = \"insta\"" in lock and "insta" not in by_name
    assert all(component.get("licenses") for component in bill["components"] if component["name"] != "cfg_block")

    assert wheel.name in step("checksums.sh", dist)
    with index() as server:
        path = f"{tools}:{os.environ['PATH']}"
        printed = step("upload.sh", "pypi", dist, PYPI_TOKEN="pypi-secret", PYPI_LIMIT_MB="2000", TWINE_REPOSITORY_URL=server.address, PATH=path)
        assert "PASSED" in without_ansi(printed) and "pypi-secret" not in printed
        (taken,) = server.taken
    assert taken["name"] == "stratoscope" and "+" not in taken["version"] and taken["filename"] == wheel.name
    assert taken["sha256"] == hashlib.sha256(wheel.read_bytes()).hexdigest() == taken["sha256_digest"]


class index:
    """An index that takes files with a token, as PyPI does by its protocol of uploads."""

    def __enter__(self):
        self.taken = taken = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                message = email.message_from_bytes(b"Content-Type: " + self.headers["Content-Type"].encode() + b"\r\n\r\n" + body)
                form = {}
                for part in message.get_payload():
                    name = part.get_param("name", header="content-disposition")
                    if name == "content":
                        form["filename"] = part.get_filename()
                        form["sha256"] = hashlib.sha256(part.get_payload(decode=True)).hexdigest()
                    else:
                        form[name] = part.get_payload()
                # `__token__:pypi-secret`
                allowed = self.headers["Authorization"] == "Basic X190b2tlbl9fOnB5cGktc2VjcmV0"
                if allowed:
                    taken.append(form)
                self.send_response(200 if allowed else 403)
                self.end_headers()

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}/"
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


# ---- users -----------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def trusted(shared, wheel):
    (shared / "served").mkdir()
    with machine_root.servers(shared / "served", wheel) as certificate:
        yield certificate


@pytest.fixture(scope="module")
def base(shared):
    return machine_root.debian(shared / "debian")


@pytest.fixture
def root(shared, base, trusted, request):
    with machine_root.Root(shared / request.node.name, base) as made:
        made.trust(trusted)
        yield made


# What a user of a notebook has before: a linker, curl, Python.
USUAL = "apt-get update -qq && apt-get install -qq --no-install-recommends --yes ca-certificates curl gcc libc6-dev python3 python3-venv"


def outputs(root, path):
    """The last output of an executed notebook in the root."""
    cells = nbformat.read(root.folder / path.lstrip("/"), as_version=4).cells
    return [output.data["text/plain"] for output in cells[-1].outputs if output.output_type == "execute_result"]


def commands(document, heading):
    """The lines of the first shell block below a heading."""
    text = (ROOT / document).read_text()
    block = re.search(r"```sh\n(.*?)```", text[text.index(heading):], re.DOTALL)[1]
    return [line.split("  #")[0].strip() for line in block.splitlines() if line.strip()]


def test_from_the_wheel_to_the_first_training(root, wheel):
    """The commands of docs/install.md in one shell, without a compiler before; prints the seconds of each."""
    root.run(USUAL, timeout=LIMIT)
    root.run("useradd --create-home --shell /bin/bash user")
    home = root.folder / "home" / "user"
    shutil.copy(wheel, home)
    notebook(home / "first.ipynb", FIRST_CELLS)
    root.run("chown -R user /home/user")
    lines = commands("docs/install.md", "# Install without a build")
    assert lines[1].startswith("pip install stratoscope-") and lines[2] == "stratoscope install --fetch-rustc", lines
    before = [line for line in lines if "jupyterlab" not in line]
    script = ["set -e"]
    for line in [*before, "stratoscope run first.ipynb --inplace"]:
        # `doctor` ends with 1 where Jupyter is missing.
        script += ["begun=$(date +%s.%N)", line + (" || true" if line.endswith("doctor") else ""),
                   f'echo "seconds $(date +%s.%N) $begun {line}"']
    printed = root.run("\n".join(script), user="user", cwd="/home/user", shell="/bin/bash", more={"HOME": "/home/user"}, timeout=LIMIT)
    seconds = {line: float(ended) - float(begun) for ended, begun, line in re.findall(r"^seconds (\S+) (\S+) (.*)$", printed, re.MULTILINE)}
    print({line: round(taken, 1) for line, taken in seconds.items()}, f"sum {sum(seconds.values()):.1f} s")
    assert len(seconds) == len(before) + 1
    assert outputs(root, "/home/user/first.ipynb") == ["3"]
    output = without_ansi(printed)
    assert "running `curl " in output and re.search(r"ok +toolchain: rustc .*, which built the library of this package", output), output
    # It is there now: nothing is fetched again, and with rustup no installer is run.
    again = root.run(". notebook/bin/activate && stratoscope install --fetch-rustc", user="user", cwd="/home/user", shell="/bin/bash",
                     more={"HOME": "/home/user"})
    assert "running `" not in again
    root.run("rm -rf /home/user/.rustup/toolchains/*", user="user")
    refused = root.result(". notebook/bin/activate && stratoscope install", user="user", cwd="/home/user", shell="/bin/bash", more={"HOME": "/home/user"})
    assert refused.returncode != 0 and "SC1001" in refused.stdout + refused.stderr, "nobody was asked, so nothing is fetched"


ASK = """
import pexpect, sys
child = pexpect.spawn("chroot", ["--userspec=user", sys.argv[1], "/bin/bash", "-c",
    "cd && . notebook/bin/activate && stratoscope install"], env={"HOME": "/home/user", "PATH": "/usr/sbin:/usr/bin:/bin", "LANG": "C.UTF-8"},
    encoding="utf-8", timeout=600)
child.logfile_read = sys.stdout
child.expect(r"Run it now\\? \\[y/N\\] ")
child.sendline(sys.argv[2])
child.expect(pexpect.EOF)
child.close()
sys.exit(child.exitstatus)
"""


def test_the_user_is_asked_in_a_terminal(root, wheel, shared):
    root.run(USUAL, timeout=LIMIT)
    root.run("useradd --create-home --shell /bin/bash user")
    shutil.copy(wheel, root.folder / "home" / "user")
    root.run("cd && python3 -m venv notebook && notebook/bin/pip install --quiet stratoscope-*.whl", user="user", more={"HOME": "/home/user"})

    def answer(word):
        command = [ROOT / ".venv/bin/python", "-c", ASK, root.folder, word]
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)

    declined = answer("n")
    assert declined.returncode != 0 and "running `" not in declined.stdout, declined.stdout + declined.stderr
    assert not (root.folder / "home/user/.rustup").exists()
    agreed = answer("y")
    assert agreed.returncode == 0 and "installed the kernel `stratoscope`" in agreed.stdout, agreed.stdout + agreed.stderr
    assert not (root.folder / "home/user/.profile").exists() or ".cargo" not in (root.folder / "home/user/.profile").read_text()


def test_the_dockerfile(root, wheel, shared):
    """Each instruction, as `docker build` runs it; then the server answers."""
    context = shared / "context"
    (context / "wheels").mkdir(parents=True)
    shutil.copy(wheel, context / "wheels")
    (context / "notebooks").symlink_to(ROOT / "notebooks")
    build = Build(root, context)
    assert build.all((ROOT / "kernel-spec/docker/Dockerfile").read_text()) == f"debian:{machine_root.SUITE}-slim"
    print(build.seconds)
    assert (root.folder / "home/user/steps_per_execution.ipynb").is_file()
    # In a network of its own, where no other server has the port.
    script = f"""JUPYTER_TOKEN=secret {build.command} > /tmp/log 2>&1 &
        for _ in $(seq 100); do
            curl --silent --fail 'http://127.0.0.1:8888/api/kernelspecs?token=secret' && kill $! && exit
            sleep 1
        done; cat /tmp/log; exit 1"""
    chroot = ["chroot", "--userspec=user", root.folder, "/bin/sh", "-c", f"cd {build.folder} && {script}"]
    finished = subprocess.run(["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *chroot], capture_output=True, text=True,
                              env=root.environment | build.environment, timeout=300)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "stratoscope" in json.loads(finished.stdout)["kernelspecs"]


def environment(root):
    """A user with an environment of notebooks on PATH, as images of Binder and Colab have one."""
    root.run(USUAL, timeout=LIMIT)
    root.run("useradd --create-home --shell /bin/bash jovyan && mkdir /srv/conda && chown jovyan /srv/conda")
    root.run("python3 -m venv /srv/conda", user="jovyan")
    root.environment |= {"PATH": f"/srv/conda/bin:{root.environment['PATH']}", "HOME": "/home/jovyan"}


def test_the_files_for_binder(root):
    """The order of repo2docker: Debian's packages, requirements, `postBuild` by the user in the environment."""
    environment(root)
    shutil.copytree(ROOT / ".binder", root.folder / "home/jovyan/.binder")
    notebook(root.folder / "home/jovyan/first.ipynb", FIRST_CELLS)
    root.run("chown -R jovyan /home/jovyan")
    packages = " ".join((ROOT / ".binder/apt.txt").read_text().split())
    root.run(f"apt-get install -qq --no-install-recommends --yes {packages}", timeout=LIMIT)
    user = {"user": "jovyan", "cwd": "/home/jovyan", "timeout": LIMIT}
    root.run("pip install --quiet --no-cache-dir -r .binder/requirements.txt", **user)
    printed = without_ansi(root.run(".binder/postBuild", **user))
    assert "ok       kernel spec" in printed and "ok       checkpoint: all-MiniLM-L6-v2" in printed, printed
    assert "stratoscope" in root.run("jupyter kernelspec list", **user)
    root.run("stratoscope run first.ipynb --inplace", **user)
    assert outputs(root, "/home/jovyan/first.ipynb") == ["3"]


def test_the_cells_for_colab(root):
    """The first cell in bash, as Python's magic runs it; the others in Rust."""
    environment(root)
    cells = nbformat.read(ROOT / "kernel-spec/colab/stratoscope.ipynb", as_version=4).cells
    first, *rest = [cell.source for cell in cells if cell.cell_type == "code"]
    begun = time.monotonic()
    root.run(first.removeprefix("%%bash\n").replace("stratoscope doctor", "stratoscope doctor || true"), user="jovyan", shell="/bin/bash", timeout=LIMIT)
    notebook(root.folder / "home/jovyan/rest.ipynb", rest)
    root.run("chown -R jovyan /home/jovyan")
    root.run("stratoscope run rest.ipynb --inplace", user="jovyan", cwd="/home/jovyan", timeout=LIMIT)
    print(f"{time.monotonic() - begun:.1f} s")
    assert outputs(root, "/home/jovyan/rest.ipynb") == ["3"]
