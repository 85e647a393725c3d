#!/usr/bin/env python3
"""Compares the features of third-party crates that each crate of the workspace sees alone with those of the whole workspace.

    tests/features.py          # lists the differences; ends with 1 if there are any
    tests/features.py --write  # writes src/features/Cargo.toml, so that there are none

With a difference, `cargo test -p CRATE` compiles the third-party crate again, and burn above it: half an hour instead of
seconds. `src/features/src/lib.rs` says why the crate exists. Cargo's list of what it would compile is compared, for the machine
that this runs on; the list is not a stable feature of cargo, nothing else here is unstable, and nothing is built.
"""

import collections
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MANIFEST = ROOT / "src/features/Cargo.toml"
# Crates that no small crate of ours may depend on: those of us who need them name them in their own manifests.
HEAVY = ("burn", "cube", "cudarc", "gemm", "pulp")
MAX_ROUNDS = 6


def units(*packages):
    """What cargo compiles of third-party crates for the tests of these packages: `(name, version, kind, optimization level,
    features)`. Macros and build scripts, and what they use, have level 0."""
    command = ["cargo", "test", "--no-run", "--offline", "--unit-graph", "-Zunstable-options", "--tests", *packages]
    environment = os.environ | {"RUSTC_BOOTSTRAP": "1"}
    listed = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if listed.returncode != 0:
        raise SystemExit(listed.stderr)
    found = set()
    for unit in json.loads(listed.stdout)["units"]:
        place, _, rest = unit["pkg_id"].rpartition("#")
        name, _, version = rest.rpartition("@")
        if unit["mode"] == "build" and place.startswith("registry+") and unit["target"]["kind"] != ["custom-build"]:
            name = name or place.rpartition("/")[2]
            found.add((name, version, unit["target"]["kind"][0], unit["profile"]["opt_level"], ",".join(unit["features"])))
    return found


def members():
    """The names of the workspace's crates, but the one that unites features."""
    manifests = [*ROOT.glob("src/*/Cargo.toml")]
    names = [re.search(r'^name = "(.*)"', manifest.read_text(), re.M)[1] for manifest in manifests]
    # The macros are compiled for the compiler, and so would be all that they depend on.
    return sorted(set(names) - {"cubecl-llvm", "stratoscope-features", "stratoscope-macros"})


def differences():
    """`{crate of ours: {unit that the workspace does not have}}`"""
    workspace = units("--workspace")
    found = {member: units("--package", member) - workspace for member in members()}
    return {member: missing for member, missing in found.items() if missing}


def requirement(version):
    major, minor, *_ = version.split(".")
    return major if major != "0" else f"0.{minor}"


def section(title, crates, renamed):
    lines = [f"\n[{title}]"]
    for name, version in sorted(crates):
        wanted = requirement(version)
        key, package = name, ""
        if name in renamed:
            key, package = f"{name}-{wanted.replace('.', '-')}", f', package = "{name}"'
        features = ", ".join(f'"{feature}"' for feature in crates[name, version].split(",") if feature)
        lines.append(f'{key} = {{ version = "{wanted}"{package}, default-features = false, features = [{features}] }}')
    return "\n".join(lines) + "\n"


def write():
    """Adds crates until no crate of ours sees other features: first for the target, then for macros and build scripts."""
    head = MANIFEST.read_text().split("\n[dependencies]")[0].rstrip() + "\n"
    MANIFEST.write_text(head)
    whole = {unit[:4]: unit[4] for unit in units("--workspace")}
    target, host = {}, {}
    for _ in range(MAX_ROUNDS):
        missing = {unit[:4] for crates in differences().values() for unit in crates if not unit[0].startswith(HEAVY)}
        if not missing:
            break
        for name, version, kind, level in missing:
            crates = host if level == "0" and kind != "proc-macro" else target
            crates[name, version] = whole[name, version, kind, level]
        versions = collections.Counter(name for name, _ in {*target, *host})
        renamed = {name for name, count in versions.items() if count > 1}
        text = head + section("dependencies", target, renamed)
        MANIFEST.write_text(text + (section("build-dependencies", host, renamed) if host else ""))


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
    found = differences()
    for member, crates in found.items():
        for name, version, kind, level, features in sorted(crates):
            print(f"{member} alone: {name} {version} ({kind}, level {level}) with {features or 'no features'}")
    sys.exit(bool(found))
