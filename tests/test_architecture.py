"""The invariants of docs/ARCHITECTURE.md that manifests and sources can prove."""

import json
import re
import subprocess
import tomllib

import pytest

# What each crate may use, as the code map says; tests may use more.
ALLOWED = {
    "kernel": {"wire", "diagnostics"},
    "stratoscope": {"train", "bert", "data", "strategy", "macros", "wire", "diagnostics"},
    "train": {"strategy", "bert", "data", "diagnostics"},
    "bert": {"strategy", "data", "diagnostics"},
    "data": {"diagnostics"},
    "strategy": {"diagnostics"},
    "macros": {"diagnostics"},
    "wire": {"diagnostics"},
    "diagnostics": set(),
    "cubecl-llvm": set(),
}


@pytest.fixture(scope="module")
def manifests(root):
    return {path.parent.name: tomllib.loads(path.read_text()) for path in root.glob("src/*/Cargo.toml")}


def test_no_arrow_points_up(manifests):
    assert set(manifests) <= set(ALLOWED), "a crate that docs/ARCHITECTURE.md does not know"
    for crate, manifest in manifests.items():
        ours = {name.removeprefix("stratoscope-") for name in manifest.get("dependencies", {})
                if name.startswith("stratoscope")}
        assert ours <= ALLOWED[crate], f"{crate} uses {ours - ALLOWED[crate]}"


def ours(manifests):
    """All but the stand-in, whose manifest copies that of the crate it replaces."""
    return [(crate, manifest) for crate, manifest in manifests.items() if crate != "cubecl-llvm"]


def dependencies(root, package):
    """The names of everything a package is built from, by the resolved graph of the whole workspace."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    graph = json.loads(subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout)
    names = {each["id"]: each["name"] for each in graph["packages"]}
    uses = {
        node["id"]: [dep["pkg"] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        for node in graph["resolve"]["nodes"]
    }
    seen, waiting = set(), [identity for identity, name in names.items() if name == package]
    while waiting:
        identity = waiting.pop()
        if identity not in seen:
            seen.add(identity)
            waiting += uses[identity]
    return {names[identity] for identity in seen}


def test_the_kernel_does_not_link_burn(root):
    found = dependencies(root, "stratoscope-kernel")
    assert "evcxr" in found, "the command lists something else"
    assert not {name for name in found if re.match(r"burn|cubecl|wgpu|stratoscope-(train|bert|strategy)", name)}


def test_the_facade_does_not_know_jupyter(root):
    found = dependencies(root, "stratoscope")
    assert "burn" in found, "the command lists something else"
    assert not found & {"zeromq", "evcxr", "jupyter-protocol", "stratoscope-kernel"}


def test_diagnostics_does_no_io(root):
    banned = re.compile(r"\bstd::(fs|net|process|env)\b|\b(print|eprint|println|eprintln)!")
    for path in sorted(root.glob("src/diagnostics/src/**/*.rs")):
        code = path.read_text().split("#[cfg(test)]")[0]
        # The examples in texts may name anything.
        code = re.sub(r'r#".*?"#', '""', code, flags=re.DOTALL)
        code = re.sub(r'"(?:\\.|[^"\\])*"', '""', code, flags=re.DOTALL)
        lines = [line for line in code.splitlines() if not line.lstrip().startswith("//")]
        found = [line for line in lines if banned.search(line)]
        assert not found, f"{path.name}: {found}"


def test_every_dependency_is_explained(root, manifests):
    page = (root / "docs" / "dependencies.md").read_text()
    for crate, manifest in ours(manifests):
        for table in ("dependencies", "dev-dependencies", "build-dependencies"):
            for name in manifest.get(table, {}):
                assert name.startswith("stratoscope") or f"`{name}`" in page, f"{crate} uses {name}, unexplained"


def test_every_dependency_comes_from_the_workspace(manifests):
    for crate, manifest in ours(manifests):
        for name, value in manifest.get("dependencies", {}).items():
            assert isinstance(value, dict) and value.get("workspace"), f"{crate}: {name} has a version of its own"


def test_the_notebook_is_written_for_our_kernel(root):
    for path in root.glob("notebooks/*.ipynb"):
        metadata = json.loads(path.read_text())["metadata"]
        assert metadata["kernelspec"]["name"] == "stratoscope", path.name
