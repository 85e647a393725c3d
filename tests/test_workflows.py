"""The workflows of the repository and the files of a release, as far as files can show it; `test_release.py` runs them."""

import json
import os
import re
import shutil
import subprocess
import tomllib

import nbformat
import pytest
from ruamel.yaml import YAML

from conftest import ROOT
from dockerfile import instructions

RELEASE = ROOT / "kernel-spec" / "release"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CARGO = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]


def jobs(workflow):
    return YAML(typ="safe").load(workflow)["jobs"].values()


def steps():
    return [step for workflow in WORKFLOWS for job in jobs(workflow) for step in job["steps"]]


def test_workflows_fit_githubs_schema(tmp_path):
    def check(*files):
        command = [ROOT / ".venv/bin/check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert len(WORKFLOWS) == 2
    checked = check(*WORKFLOWS)
    assert checked.returncode == 0, checked.stdout
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(WORKFLOWS[0].read_text().replace("runs-on:", "run-on:"))
    assert "runs-on" in check(wrong).stdout


def test_steps_are_scripts_of_the_repository_or_pinned_actions():
    for step in steps():
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"]), step
            continue
        script, *_ = re.findall(r"bash (\S+)", step["run"])
        assert "\n" not in step["run"].strip() and (ROOT / script).is_file(), step
        # What GitHub writes into a script would be code of whoever named a branch.
        assert "${{" not in step["run"], step


def test_jobs_may_no_more_than_they_must():
    for workflow in WORKFLOWS:
        assert YAML(typ="safe").load(workflow)["permissions"] == {}
        for job in jobs(workflow):
            assert job["permissions"] == {"contents": "write" if "environment" in job else "read"} and "timeout-minutes" in job


def test_wheels_are_made_for_releases_that_compile_it():
    (matrix,) = [job["strategy"]["matrix"] for workflow in WORKFLOWS for job in jobs(workflow) if "strategy" in job]
    oldest = tuple(map(int, CARGO["rust-version"].split(".")))
    assert all(re.fullmatch(r"1\.\d+\.\d+", rust) and tuple(map(int, rust.split("."))) >= oldest for rust in matrix["rust"])
    assert {processor["machine"] for processor in matrix["processor"]} == {"x86_64", "aarch64"}


def test_binder_and_colab_take_the_wheel_of_this_version():
    page = f"{CARGO['repository']}/releases/expanded_assets/v{CARGO['version']}"
    assert (ROOT / ".binder" / "wheels.txt").read_text().strip() == page
    cells = nbformat.read(ROOT / "kernel-spec" / "colab" / "stratoscope.ipynb", as_version=4)
    nbformat.validate(cells)
    assert cells.metadata.kernelspec.name == "stratoscope"
    assert page in cells.cells[1].source and cells.cells[1].source.startswith("%%bash\n")


@pytest.mark.parametrize("script", [*RELEASE.glob("*.sh"), ROOT / ".binder" / "postBuild"], ids=lambda path: path.name)
def test_scripts_can_be_read_and_say_what_they_need(script, tmp_path):
    subprocess.run(["bash", "-n", script], check=True)
    assert os.access(script, os.X_OK)
    if script.name != "postBuild":
        finished = subprocess.run(["bash", script], cwd=tmp_path, capture_output=True, text=True)
        assert finished.returncode == 1 and re.search(r"line \d+: 1: (a|the|pypi) ", finished.stderr), finished.stderr


INSTRUCTIONS = {"FROM", "ENV", "RUN", "COPY", "USER", "WORKDIR", "EXPOSE", "CMD"}


def test_the_dockerfile_can_be_read():
    steps = instructions((ROOT / "kernel-spec" / "docker" / "Dockerfile").read_text())
    assert {name for name, _ in steps} == INSTRUCTIONS
    for name, argument in steps:
        if name == "RUN":
            subprocess.run(["sh", "-n"], input=re.sub(r"^--mount=\S+ +", "", argument), text=True, check=True)
    (copied,) = [argument.split()[1] for name, argument in steps if name == "COPY"]
    assert len(list(ROOT.glob(copied))) > 5 and (ROOT / "notebooks" / "steps_per_execution.ipynb").is_file()


# ---- steps on small files --------------------------------------------------------------------------------------------

def run(script, *arguments, folder, **variables):
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)} | variables
    return subprocess.run(["bash", RELEASE / script, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


@pytest.fixture
def dist(tmp_path):
    """The folder of a release, with a wheel of a few bytes."""
    folder = tmp_path / "dist"
    folder.mkdir()
    name = "stratoscope-0.1.0-1095_rustc1.95.0-py3-none-manylinux_2_31_x86_64"
    (folder / f"{name}.whl").write_text("a wheel")
    (folder / f"{name}.cdx.json").write_text("{}")
    return folder


def test_checksums_are_of_all_files_and_found_wrong_after_a_change(dist, tmp_path):
    made = run("checksums.sh", "dist", folder=tmp_path)
    assert made.returncode == 0 and made.stdout.count("\n") == 2, made
    check = ["sha256sum", "--check", "--ignore-missing", "SHA256SUMS"]
    assert subprocess.run(check, cwd=dist, capture_output=True).returncode == 0
    (dist / "stratoscope-0.1.0-1095_rustc1.95.0-py3-none-manylinux_2_31_x86_64.whl").write_text("another wheel")
    assert subprocess.run(check, cwd=dist, capture_output=True).returncode == 1
    refused = run("upload.sh", "pypi", "dist", folder=tmp_path, PYPI_TOKEN="pypi-x")
    assert refused.returncode != 0 and "FAILED" in refused.stdout
    (dist / "stratoscope-0.1.0-1095_rustc1.95.0-py3-none-manylinux_2_31_x86_64.cdx.json").unlink()
    refused = run("checksums.sh", "dist", folder=tmp_path)
    assert refused.returncode == 1 and "bill of materials" in refused.stderr


def test_an_upload_without_a_token_says_what_it_waits_for(dist, tmp_path):
    assert run("checksums.sh", "dist", folder=tmp_path).returncode == 0
    for where, words in [("pypi", "PYPI_TOKEN is not set"), ("github", "GH_TOKEN or RELEASE_TAG is not set")]:
        # What the workflow gives where there is no secret, and no tag.
        waits = run("upload.sh", where, "dist", folder=tmp_path, PYPI_TOKEN="", GH_TOKEN="x", RELEASE_TAG="")
        assert waits.returncode == 0 and words in waits.stdout, waits
    assert run("upload.sh", "elsewhere", "dist", folder=tmp_path).returncode == 1


def test_a_wheel_above_the_limit_of_the_index_is_not_uploaded(dist, tmp_path):
    with open(next(dist.glob("*.whl")), "ab") as wheel:
        wheel.truncate(3_000_000)
    assert run("checksums.sh", "dist", folder=tmp_path).returncode == 0
    refused = run("upload.sh", "pypi", "dist", folder=tmp_path, PYPI_TOKEN="pypi-x", PYPI_LIMIT_MB="2")
    assert refused.returncode == 1 and "has 3 MB, and PyPI takes 2 MB" in refused.stderr, refused


def test_the_folder_of_a_new_wheel_is_empty(dist, tmp_path):
    refused = run("wheel.sh", "dist", folder=tmp_path)
    assert refused.returncode == 1 and "has a wheel already" in refused.stderr


def test_binder_asks_for_the_wheel_without_an_index(tmp_path):
    """`postBuild` with programs that write down how they are called."""
    shutil.copytree(ROOT / ".binder", tmp_path / "binder")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("python", "stratoscope"):
        (tools / name).write_text(f'#!/bin/bash\necho "{name} $*" >> {tmp_path}/calls\n')
        (tools / name).chmod(0o755)
    environment = {"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(tmp_path)}
    subprocess.run(["/bin/bash", tmp_path / "binder" / "postBuild"], env=environment, check=True)
    calls = (tmp_path / "calls").read_text().splitlines()
    page = (ROOT / ".binder" / "wheels.txt").read_text().strip()
    assert calls[0] == f"python -m pip install --no-cache-dir --no-index --find-links {page} stratoscope"
    assert "stratoscope install --sys-prefix --fetch-rustc" in calls and calls[-1] == "stratoscope doctor"
    (tmp_path / "binder" / "wheels.txt").unlink()
    assert subprocess.run(["/bin/bash", tmp_path / "binder" / "postBuild"], env=environment, capture_output=True).returncode != 0


def test_the_bundle_of_the_extension_lists_its_packages():
    """`sbom.py` reads them there."""
    packages = json.loads((ROOT / "kernel-spec/labextension/built/static/third-party-licenses.json").read_text())["packages"]
    assert packages and all({"name", "versionInfo", "licenseId"} <= set(package) for package in packages)
