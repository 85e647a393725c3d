#!/usr/bin/env python3
"""Writes what a wheel is made of, as a bill of materials in CycloneDX 1.6:

    kernel-spec/release/sbom.py OUTPUT [--target aarch64-unknown-linux-gnu]

The components are the crates that are compiled into the kernel and into the library of cells, with their licenses and the
checksums of Cargo.lock; the npm packages in the extension for JupyterLab; and Rust's standard library. Crates that only tests or
build scripts use are left out. The same lock file makes the same bytes. The file is checked against the schema of CycloneDX.
"""

import argparse
import json
import os
import subprocess
import sys
import tomllib
import uuid
from datetime import datetime, timezone
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parent.parent.parent
# The packages that a wheel contains in compiled form.
IN_THE_WHEEL = ("stratoscope-kernel", "stratoscope")
NPM = ROOT / "kernel-spec" / "labextension" / "built" / "static" / "third-party-licenses.json"
# The names that numbers of bills are made from.
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://github.com/stratoscope/stratoscope")


def metadata(target):
    """What cargo says about all crates for a target."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    return json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)


def checksums():
    """SHA-256 of a crate's archive, by name and version."""
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    return {(package["name"], package["version"]): package.get("checksum") for package in packages}


def linked(told):
    """The packages that are compiled into the wheel, and those that each of them uses; both by cargo's ids."""
    nodes = {node["id"]: node for node in told["resolve"]["nodes"]}
    waiting = [package["id"] for package in told["packages"] if package["name"] in IN_THE_WHEEL]
    assert len(waiting) == len(IN_THE_WHEEL), "a package of the wheel has another name now"
    uses = {}
    while waiting:
        package = waiting.pop()
        if package not in uses:
            uses[package] = sorted({dependency["pkg"] for dependency in nodes[package]["deps"]
                                    if any(kind["kind"] is None for kind in dependency["dep_kinds"])})
            waiting += uses[package]
    return uses


def license_of(package):
    """The license as an SPDX expression; crates of old wrote `/` for `OR`. None where a crate only has a file."""
    expression = package["license"]
    return [LicenseExpression(" OR ".join(part.strip() for part in expression.split("/")))] if expression else []


def crate(package, checksum):
    source = package.get("repository")
    return Component(
        type=ComponentType.LIBRARY, name=package["name"], version=package["version"], bom_ref=f"cargo:{package['name']}@{package['version']}",
        purl=PackageURL("cargo", None, package["name"], package["version"]), licenses=license_of(package),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=checksum)] if checksum else [],
        external_references=[ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(source))] if source else [],
    )


def npm_packages():
    """The packages whose code is in the bundle of the extension, by its own list of licenses."""
    for package in json.loads(NPM.read_text())["packages"]:
        name, version = package["name"], package["versionInfo"]
        scope, _, short = name.rpartition("/")
        yield Component(
            type=ComponentType.LIBRARY, name=name, version=version, bom_ref=f"npm:{name}@{version}",
            purl=PackageURL("npm", scope or None, short, version),
            licenses=[LicenseExpression(package["licenseId"])] if package["licenseId"] else [],
        )


def standard_library():
    """Rust's standard library, of the compiler that compiles the rest."""
    rustc = subprocess.run(["rustc", "--version"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()[1]
    return Component(type=ComponentType.LIBRARY, name="rust-std", version=rustc, bom_ref=f"rust-std@{rustc}",
                     licenses=[LicenseExpression("MIT OR Apache-2.0")])


def bill(target):
    told = metadata(target)
    packages, sums, uses = {package["id"]: package for package in told["packages"]}, checksums(), linked(told)
    version = next(package["version"] for package in told["packages"] if package["name"] == "stratoscope")
    made = {package: crate(packages[package], sums.get((packages[package]["name"], packages[package]["version"]))) for package in uses}
    bom = Bom(serial_number=uuid.uuid5(NAMESPACE, target + (ROOT / "Cargo.lock").read_text()))
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "315532800")), timezone.utc)
    bom.metadata.component = Component(
        type=ComponentType.APPLICATION, name="stratoscope", version=version, bom_ref=f"stratoscope@{version}",
        purl=PackageURL("pypi", None, "stratoscope", version), licenses=[LicenseExpression("MIT OR Apache-2.0")],
    )
    others = [*npm_packages(), standard_library()]
    for component in [*made.values(), *others]:
        bom.components.add(component)
    bom.register_dependency(bom.metadata.component, [*(made[package] for package in uses if packages[package]["name"] in IN_THE_WHEEL), *others])
    for package, used in uses.items():
        bom.register_dependency(made[package], [made[name] for name in used])
    return bom


def main():
    parser = argparse.ArgumentParser(description="Writes the bill of materials of a wheel (CycloneDX 1.6).")
    parser.add_argument("output", type=Path)
    parser.add_argument("--target", default="x86_64-unknown-linux-gnu")
    arguments = parser.parse_args()
    bom = bill(arguments.target)
    text = JsonV1Dot6(bom).output_as_string(indent=1) + "\n"
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if problem is not None:
        sys.exit(f"the bill does not fit the schema: {problem}")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(text)
    print(f"{arguments.output}: {len(bom.components)} components, checked against the schema of CycloneDX 1.6")


if __name__ == "__main__":
    main()
