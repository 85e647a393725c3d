"""The wheel that installs the kernel without a build: what is in it, and what a new user gets from it. The user is another
one than who built it, in an environment of his own, without a network, and with nothing but a copy of the compiler."""

import base64
import csv
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import zipfile

import nbformat
import pytest

import checkpoint
from conftest import ROOT, STRATOSCOPE
from kernel_client import without_ansi

NOBODY = 65534
FOLDER = "share/stratoscope"
IS_ROOT = os.geteuid() == 0

FIRST_CELLS = [
    'let (train, dev) = make_classification(256, 8, 3, 1)?.split(0.25)?;\nlet strategy = MirroredStrategy::logical(2)?;',
    'scope!(strategy, {\n    let model = Sequential([Dense(16).activation("relu"), Dense(3)])?;\n    compile!(model, optimizer = Adam::new(0.01), '
    'loss = SparseCategoricalCrossentropy { from_logits: true }, metrics = [accuracy()])?;\n});',
    "let history = fit!(model, train, epochs = 3, batch_size = 32, validation_data = dev)?;\nhistory.epochs.len()",
]
BERT_CELLS = [
    'let strategy = MirroredStrategy::logical(2)?;\nlet (train, _) = debian_sections()?;\nlet train = train.take(16);',
    'scope!(strategy, {\n    let model = BertForSequenceClassification::from_pretrained("CHECKPOINT", 8)?;\n    compile!(model, '
    'optimizer = AdamW::new(1e-4), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n});',
    "let history = fit!(model, train, epochs = 1, batch_size = 8)?;\nhistory.epochs.len()",
]


def notebook(path, cells):
    """Writes a notebook with these code cells."""
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    made.metadata["kernelspec"] = {"name": "stratoscope", "display_name": "Rust", "language": "rust"}
    nbformat.write(made, path)
    return path


def release():
    """The compiler that built the library: its line, and its release."""
    line = subprocess.run(["rustc", "--version"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    return line, line.split()[1]


# ---- without a wheel -------------------------------------------------------------------------------------------------

@pytest.fixture
def other_compiler(tmp_path):
    """An environment whose package was built by a compiler that nobody has."""
    (tmp_path / "bin").mkdir()
    (tmp_path / FOLDER).mkdir(parents=True)
    shutil.copy(STRATOSCOPE, tmp_path / "bin" / "stratoscope")
    contents = {"format": 1, "version": "0.1.0", "rustc": "rustc 1.42.0 (0123abcde 2020-03-09)", "sha256": "00" * 32, "files": 3, "bytes": 5 << 20}
    (tmp_path / FOLDER / "library.json").write_text(json.dumps(contents))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment |= {name: os.environ[name] for name in ("RUSTUP_HOME", "CARGO_HOME") if name in os.environ}

    def run(*arguments):
        return subprocess.run([tmp_path / "bin" / "stratoscope", *arguments], cwd=tmp_path, env=environment, capture_output=True,
                              text=True, timeout=120)

    return run


def test_another_compiler_is_named_with_the_command_that_installs_the_right_one(other_compiler, tmp_path):
    command = "rustup toolchain install 1.42.0 --profile minimal"
    doctor = other_compiler("doctor")
    (line,) = [line for line in doctor.stdout.splitlines() if " toolchain:" in line]
    assert doctor.returncode == 1 and line.startswith("missing"), doctor.stdout
    assert "rustc 1.42.0 (0123abcde 2020-03-09)" in line and release()[0] in line
    assert command in line and "cargo build --workspace" in line
    assert re.search(r"ok +rust-src: not needed", doctor.stdout)
    assert re.search(r"ok +library: in .*library.tar.zst; the first start .* unpacks 5 MiB into ", doctor.stdout)
    notebook(tmp_path / "first.ipynb", ["1 + 1"])
    for arguments in (["install"], ["run", "first.ipynb"]):
        finished = other_compiler(*arguments)
        output = " ".join(without_ansi(finished.stdout + finished.stderr).split())
        assert finished.returncode != 0 and "SC1003" in output, output
        if arguments[0] == "run":
            # The card is in the executed notebook.
            executed = json.loads((tmp_path / "first.executed.ipynb").read_text())
            (card,) = [out["data"] for out in executed["cells"][0]["outputs"] if out["output_type"] == "display_data"]
            output += " ".join("".join(card["text/plain"]).split())
        assert command in output and "or build stratoscope with your compiler" in output
        assert "Diagnostic {" not in output and "panicked" not in output
    assert not (tmp_path / "cache").exists(), "nothing is unpacked that nobody can use"


def test_the_command_of_a_wheel_makes_no_wheel(other_compiler, tmp_path):
    finished = other_compiler("package", "--output", str(tmp_path / "wheels"))
    assert finished.returncode == 1 and "target/debug/stratoscope package" in finished.stderr
    assert not (tmp_path / "wheels").exists()


ENTRY_POINTS = "[papermill.engine]\nstratoscope = stratoscope.papermill:Engine\n"


def test_papermill_writes_parameters_in_rust(tmp_path):
    """papermill with the Python module of the wheel, and the kernel of the checkout."""
    site = tmp_path / "site"
    shutil.copytree(ROOT / "kernel-spec" / "wheel", site / "stratoscope", ignore=shutil.ignore_patterns("*.md", "__pycache__"))
    about = site / "stratoscope-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stratoscope\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    given = notebook(tmp_path / "in.ipynb", ['let rate = 0.1;\nlet name = "none";\nlet sizes = vec![1];\nlet deep = true;',
                                             'format!("{rate} {name} {sizes:?} {deep} {limit}")'])
    content = json.loads(given.read_text())
    content["cells"][0]["metadata"]["tags"] = ["parameters"]
    given.write_text(json.dumps(content))

    def run(parameters):
        (tmp_path / "parameters.yaml").write_text(json.dumps(parameters))
        command = [ROOT / ".venv/bin/python", "-m", "papermill", given, tmp_path / "out.ipynb", "-f", tmp_path / "parameters.yaml"]
        return subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(site)}, capture_output=True, text=True, timeout=300)

    finished = run({"rate": 0.003, "name": 'a "b" \\ c', "sizes": [8, 16], "deep": False, "limit": 7})
    assert finished.returncode == 0, finished.stderr
    assert re.findall("unknown parameter: (.*)", finished.stderr) == ["limit"], finished.stderr
    cells = json.loads((tmp_path / "out.ipynb").read_text())["cells"]
    source = "".join(cells[1]["source"])
    assert cells[1]["metadata"]["tags"] == ["injected-parameters"]
    assert source.splitlines() == ["// Parameters", "let rate = 0.003;", 'let name = "a \\"b\\" \\\\ c";', "let sizes = vec![8, 16];",
                                   "let deep = false;", "let limit = 7;"], source
    shown = "".join(cells[2]["outputs"][-1]["data"]["text/plain"])
    assert '0.003 a \\"b\\" \\\\ c [8, 16] false 7' in shown, shown
    refused = run({"rate": {"first": 1}})
    assert refused.returncode != 0 and "no counterpart in Rust" in refused.stderr, refused.stderr


def test_papermill_of_the_checkout_writes_parameters_in_rust():
    """`tests/setup.sh` registers the translator in .venv."""
    text = "import papermill.engines; from papermill.translators import papermill_translators; " \
           "print(papermill_translators.find_translator('stratoscope', 'rust').codify({'rate': 0.003}))"
    finished = subprocess.run([ROOT / ".venv/bin/python", "-c", text], capture_output=True, text=True, timeout=60)
    assert finished.returncode == 0, finished.stderr
    assert "let rate = 0.003;" in finished.stdout


# ---- the wheel -------------------------------------------------------------------------------------------------------

def make(folder):
    finished = subprocess.run([STRATOSCOPE, "package", "--output", folder, "--level", "1"], capture_output=True, text=True, timeout=900)
    assert finished.returncode == 0, finished.stderr
    print(finished.stdout)
    (wheel,) = folder.iterdir()
    return wheel


@pytest.fixture(scope="module")
def shared():
    """A folder that every user can read, with the wheel and the compiler."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="package-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def wheel(shared):
    return make(shared / "wheels")


@pytest.mark.full
def test_the_wheel_is_what_it_says(wheel, tmp_path):
    line, number = release()
    name, version, build, python, abi, platform = wheel.stem.split("-")
    assert (name, python, abi) == ("stratoscope", "py3", "none") and re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert re.fullmatch(rf"\d{{4}}_rustc{re.escape(number)}", build)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        entries = archive.infolist()
        assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
        info = f"stratoscope-{version}.dist-info"
        rows = {row[0]: row[1:] for row in csv.reader(archive.read(f"{info}/RECORD").decode().splitlines())}
        assert set(rows) == {entry.filename for entry in entries}
        for entry in entries:
            digest, size = rows[entry.filename]
            if entry.filename == f"{info}/RECORD":
                assert (digest, size) == ("", "")
                continue
            found = base64.urlsafe_b64encode(hashlib.sha256(archive.read(entry)).digest()).rstrip(b"=").decode()
            assert (digest, int(size)) == (f"sha256={found}", entry.file_size), entry.filename
        program = archive.getinfo(f"stratoscope-{version}.data/scripts/stratoscope")
        assert program.external_attr >> 16 == 0o100755
        assert f"Tag: py3-none-{platform}\nBuild: {build}\n" in archive.read(f"{info}/WHEEL").decode()
        assert f"rustup toolchain install {number} --profile minimal" in archive.read(f"{info}/METADATA").decode()
        assert archive.read(f"{info}/entry_points.txt").decode() == ENTRY_POINTS
        archive.getinfo("stratoscope/papermill.py")
        data = f"stratoscope-{version}.data/data"
        contents = json.loads(archive.read(f"{data}/{FOLDER}/library.json"))
        assert contents["rustc"] == line
        compressed = archive.read(f"{data}/{FOLDER}/library.tar.zst")
        assert contents["sha256"] == hashlib.sha256(compressed).hexdigest()
        spec = json.loads(archive.read(f"{data}/share/jupyter/kernels/stratoscope/kernel.json"))
        assert spec["argv"][:4] == ["python", "-m", "stratoscope", "kernel"]
        for file in ("share/jupyter/labextensions/stratoscope-lint/package.json", "share/doc/stratoscope/docs/install.md",
                     "share/doc/stratoscope/docs/diagnostics/SC0201.md", "share/doc/stratoscope/LICENSE-MIT"):
            archive.getinfo(f"{data}/{file}")
        archive.extract(program, tmp_path)
    # The platform tag, by a reader of symbols that is not ours.
    if shutil.which("objdump") and shutil.which("zstd"):
        (tmp_path / "library.tar.zst").write_bytes(compressed)
        subprocess.run(["tar", "--zstd", "-xf", "library.tar.zst", "--wildcards", "*.so"], cwd=tmp_path, check=True)
        files = [tmp_path / program.filename, *tmp_path.glob("library/*.so")]
        assert len(files) > 20
        symbols = subprocess.run(["objdump", "-T", *files], capture_output=True, text=True, check=True).stdout
        newest = max(tuple(map(int, found)) for found in re.findall(r"\bGLIBC_(\d+)\.(\d+)", symbols))
        assert platform == f"manylinux_{newest[0]}_{newest[1]}_x86_64"


@pytest.mark.full
def test_the_same_build_is_the_same_wheel(wheel, tmp_path):
    again = make(tmp_path / "again")
    assert again.name == wheel.name
    assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(wheel.read_bytes()).digest()


# ---- a new user ------------------------------------------------------------------------------------------------------

class User:
    """Another user of the machine, who has a compiler, a home and no network."""

    def __init__(self, shared, name, toolchains):
        self.home = shared / name
        self.home.mkdir()
        os.chown(self.home, NOBODY, NOBODY)
        self.environment = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "RUSTUP_HOME": str(toolchains), "HF_HUB_OFFLINE": "1",
                            "STRATOSCOPE_DEVICE": "cpu", "LANG": "C.UTF-8"}

    def run(self, *command, timeout=300, check=True):
        alone = ["unshare", "--net", "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
        finished = subprocess.run([*alone, *map(str, command)], cwd=self.home, env=self.environment, capture_output=True, text=True,
                                  timeout=timeout, umask=0o022)
        output = without_ansi(finished.stdout + finished.stderr)
        if check:
            assert finished.returncode == 0, output
        return output

    def notebook(self, name, cells):
        path = notebook(self.home / name, cells)
        os.chown(path, NOBODY, NOBODY)
        return path

    def result(self, program, cells):
        """The last output of a notebook that is executed."""
        path = self.notebook("cells.ipynb", cells)
        self.run(program, "run", path, "--inplace")
        executed = nbformat.read(path, as_version=4)
        (result,) = [output for output in executed.cells[-1].outputs if output.output_type == "execute_result"]
        return result.data["text/plain"]


def others_python():
    """A Python that every user can run."""
    for candidate in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if subprocess.run(["sh", "-c", f"{candidate} -c 'import venv, ensurepip'"], capture_output=True).returncode == 0:
            return candidate
    pytest.skip("no Python with venv that every user can run (Debian: python3-venv)")


@pytest.fixture(scope="module")
def toolchains(shared):
    """The compiler without the sources of the standard library, as `rustup toolchain install --profile minimal` leaves it."""
    if not IS_ROOT or not shutil.which("setpriv"):
        pytest.skip("only root can be another user")
    sysroot = pathlib.Path(subprocess.run(["rustc", "--print", "sysroot"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip())
    copy = shared / "rustup" / "toolchains" / "the-one"
    shutil.copytree(sysroot, copy, symlinks=True, ignore=shutil.ignore_patterns("share", "src", "etc"))
    subprocess.run(["chmod", "-R", "a+rX", shared / "rustup"], check=True)
    return shared / "rustup"


def environment(user, folder, wheel):
    """A new virtual environment with the wheel."""
    user.run(others_python(), "-m", "venv", folder)
    user.run(folder / "bin" / "pip", "install", "--no-index", "--quiet", "--disable-pip-version-check", wheel)
    return folder / "bin" / "stratoscope"


@pytest.mark.full
def test_a_new_user_has_a_first_result(shared, wheel, toolchains):
    user = User(shared, "first", toolchains)
    folder = user.home / "some where" / "env"
    user.run("mkdir", user.home / "some where")
    user.run(others_python(), "-m", "venv", folder)
    cells = user.notebook("first.ipynb", FIRST_CELLS)
    program = folder / "bin" / "stratoscope"
    times = {}

    def timed(name, *command):
        begun = time.monotonic()
        output = user.run(*command)
        times[name] = time.monotonic() - begun
        return output

    timed("pip install", folder / "bin" / "pip", "install", "--no-index", "--quiet", "--disable-pip-version-check", wheel)
    installed = timed("stratoscope install", program, "install")
    assert "unpacked the library that cells link to" in installed and str(folder / FOLDER) in installed
    assert f"installed the kernel `stratoscope` in {folder}/share/jupyter/kernels/stratoscope" in installed
    timed("first notebook", program, "run", cells, "--inplace")
    print({name: round(seconds, 1) for name, seconds in times.items()}, f"sum {sum(times.values()):.1f} s")
    assert [output.data["text/plain"] for output in nbformat.read(cells, as_version=4).cells[-1].outputs if output.output_type == "execute_result"] == ["3"]

    doctor = user.run(program, "doctor", check=False)
    for expected in (r"ok +toolchain: rustc .*, which built the library of this package", r"ok +rust-src: not needed", r"ok +library: .*, unpacked from",
                     r"ok +kernel spec: "):
        assert re.search(expected, doctor), doctor
    # BERT, from files: the weights are read, trained and of the right number of epochs.
    small = checkpoint.write(shared / "tiny-bert")
    subprocess.run(["chmod", "-R", "a+rX", small], check=True)
    assert user.result(program, [cell.replace("CHECKPOINT", str(small)) for cell in BERT_CELLS]) == "1"
    # The interpreter of the environment finds the program, too.
    assert "0.1.0" in user.run(folder / "bin" / "python", "-m", "stratoscope", "--version")

    # Any folder: the environment is moved.
    moved = user.home / "moved"
    user.run("mv", folder, moved)
    assert user.result(moved / "bin" / "stratoscope", FIRST_CELLS) == "3"

    # And gone.
    removed = user.run(moved / "bin" / "stratoscope", "uninstall")
    assert "library-0.1.0" in removed and "pip uninstall" in removed
    user.run(moved / "bin" / "python", "-m", "pip", "uninstall", "--yes", "--quiet", "stratoscope")
    left = [path for path in moved.rglob("*") if "stratoscope" in path.name.lower() and path.is_file()]
    assert not left, left


@pytest.mark.full
def test_an_environment_of_somebody_else_is_shared(shared, wheel, toolchains):
    """Installed by root: its users do not write to it, and unpack the library only where root has not."""
    folder = shared / "everybodys"
    subprocess.run([others_python(), "-m", "venv", folder], check=True)
    quiet = {"env": os.environ | {"HOME": str(shared), "RUSTUP_HOME": str(toolchains)}, "check": True, "umask": 0o022}
    subprocess.run([folder / "bin" / "pip", "install", "--no-index", "--quiet", "--disable-pip-version-check", wheel], **quiet)
    program = folder / "bin" / "stratoscope"

    user = User(shared, "second", toolchains)
    assert user.result(program, FIRST_CELLS) == "3"
    cache = user.home / ".cache" / "stratoscope"
    (own,) = cache.glob("library-*")
    assert cache.stat().st_mode & 0o777 == 0o700 and not list((folder / FOLDER).glob("library-*"))
    assert own.name in user.run(program, "uninstall", check=False)

    subprocess.run([program, "install", "--prefix", folder], **quiet)
    (common,) = (folder / FOLDER).glob("library-*")
    user = User(shared, "third", toolchains)
    assert user.result(program, FIRST_CELLS) == "3"
    cache = user.home / ".cache" / "stratoscope"
    assert [path.name for path in cache.iterdir()] == [f"kept-{common.name}"], "what is compiled is private"
    assert list((cache / f"kept-{common.name}" / "cells").iterdir())

    homeless = User(shared, "fourth", toolchains)
    homeless.environment["HOME"] = "/nonexistent"
    path = homeless.notebook("cells.ipynb", ["1 + 1"])
    refused = " ".join(homeless.run(program, "run", path, check=False).split())
    assert "XDG_CACHE_HOME" in refused and "panicked" not in refused


@pytest.mark.full
def test_a_disk_that_is_full_says_how_much_is_needed(shared, wheel, toolchains, tmp_path):
    folder = shared / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400m,mode=0777", "none", folder], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        user = User(shared, "fifth", toolchains)
        program = environment(user, folder / "env", wheel)
        refused = " ".join(user.run(program, "install", check=False).split())
        assert re.search(r"\d+ MiB are needed, and \d+ MiB are free", refused), refused
        assert not list((folder / "env" / FOLDER).glob("library-*"))
    finally:
        subprocess.run(["umount", folder], check=True)
