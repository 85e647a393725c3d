#!/usr/bin/env python3
"""Compares the features of third-party crates that each crate of the workspace sees alone with those of the whole workspace.

    tests/features.py          # lists the differences; ends with 1 if there are any
    tests/features.py --write  # writes src/features/Cargo.toml, so that there are none

With a difference, `cargo test -p CRATE` compiles the third-party crate again, and burn above it: half an hour instead of
seconds. `src/features/src/lib.rs` says why the crate exists. Compares Linux on x86-64.
"""

import collections
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MANIFEST = ROOT / "src/features/Cargo.toml"
# Crates that no small crate of ours may depend on: those of us who need them name them in their own manifests.
HEAVY = ("burn", "cube", "cudarc", "gemm", "pulp")
MAX_ROUNDS = 6


def tree(*packages):
    """The third-party crates of these packages, each as `(name version, features)`."""
    command = ["cargo", "tree", "--offline", *packages, "--edges", "normal,build,dev", "--prefix", "none"]
    command += ["--target", "x86_64-unknown-linux-gnu", "--format", "{p}|{f}"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        raise SystemExit(listed.stderr)
    lines = (line.replace(" (*)", "").replace(" (proc-macro)", "") for line in listed.stdout.splitlines())
    return {tuple(line.split("|")) for line in lines if "|" in line and not line.startswith("stratoscope")}


def members():
    """The names of the workspace's crates, but the one that unites features."""
    manifests = [*ROOT.glob("src/*/Cargo.toml"), *ROOT.glob("src/*/tests/Cargo.toml")]
    names = [re.search(r'^name = "(.*)"', manifest.read_text(), re.M)[1] for manifest in manifests]
    return sorted(set(names) - {"cubecl-llvm", "stratoscope-features"})


def differences():
    """`{crate of ours: {(name version, features) that the workspace does not have}}`"""
    workspace = tree("--workspace")
    found = {member: tree("--package", member) - workspace for member in members()}
    return {member: crates for member, crates in found.items() if crates}


def requirement(version):
    major, minor, *_ = version.lstrip("v").split(".")
    return major if major != "0" else f"0.{minor}"


def section(title, crates, renamed):
    lines = [f"\n[{title}]"]
    for crate in sorted(crates):
        name, version = crate.split()
        wanted = requirement(version)
        key, package = name, ""
        if name in renamed:
            key, package = f"{name}-{wanted.replace('.', '-')}", f', package = "{name}"'
        features = ", ".join(f'"{feature}"' for feature in crates[crate].split(",") if feature)
        lines.append(f'{key} = {{ version = "{wanted}"{package}, default-features = false, features = [{features}] }}')
    return "\n".join(lines) + "\n"


def write():
    """Adds crates until no crate of ours sees other features: first for the target, then for macros and build scripts."""
    head = MANIFEST.read_text().split("\n[dependencies]")[0].rstrip() + "\n"
    MANIFEST.write_text(head)
    whole = collections.defaultdict(list)
    for crate, features in sorted(tree("--workspace"), key=lambda pair: len(pair[1])):
        whole[crate].append(features)
    target, host = {}, {}
    for _ in range(MAX_ROUNDS):
        missing = {crate for crates in differences().values() for crate, _ in crates if not crate.startswith(HEAVY)}
        if not missing:
            break
        for crate in missing:
            (host if crate in target else target)[crate] = whole[crate][-1]
        versions = collections.Counter(crate.split()[0] for crate in {*target, *host})
        renamed = {name for name, count in versions.items() if count > 1}
        text = head + section("dependencies", target, renamed)
        MANIFEST.write_text(text + (section("build-dependencies", host, renamed) if host else ""))


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
    found = differences()
    for member, crates in found.items():
        for crate, features in sorted(crates):
            print(f"{member} alone: {crate} with {features or 'no features'}")
    sys.exit(bool(found))
