#!/usr/bin/env python3
"""clippy and rustdoc over our crates, with third-party crates as they were compiled for the tests.

`cargo clippy` and `cargo doc` read metadata that `cargo check` writes: for them, the 600 third-party crates are read once more,
which takes minutes. `cargo build` has metadata of them already. With this program as `RUSTC_WORKSPACE_WRAPPER`, cargo calls it in
place of rustc for our crates alone:

    RUSTC_WORKSPACE_WRAPPER=$PWD/tests/front_end.py cargo build --workspace --locked --all-targets

A crate is linted by clippy's driver, which stops after its metadata, and a library is documented, too. Nothing is linked: what
`cargo build` has put into `target/debug` stays.
"""

import os
import subprocess
import sys
from pathlib import Path


def main():
    rustc, *arguments = sys.argv[1:]
    kinds = values(arguments, "--crate-type")
    name = (values(arguments, "--crate-name") or [""])[0]
    # A question about the compiler.
    if name in ("", "___"):
        os.execvp(rustc, [rustc, *arguments])
    # What cargo itself loads or runs.
    runs_in_cargo = "proc-macro" in kinds or name.startswith("build_script_")
    programs = toolchain(rustc)
    if not runs_in_cargo:
        arguments = [metadata_only(it) for it in arguments]
    linted = subprocess.run([programs / "clippy-driver", rustc, *arguments, "-D", "warnings"], close_fds=False).returncode
    if linted or runs_in_cargo or "--test" in arguments or "bin" in kinds:
        return linted
    return document(programs / "rustdoc", arguments)


def document(rustdoc, arguments):
    """Runs rustdoc with rustc's arguments that it takes, too."""
    taken = {"--crate-name", "--edition", "--extern", "-L", "--cfg", "--check-cfg", "--cap-lints", "--error-format", "--json"}
    chosen, rest = [], iter(arguments)
    for argument in rest:
        option = argument.split("=")[0]
        if argument.endswith(".rs") or option in taken:
            chosen.append(argument)
        if argument in taken:
            chosen.append(next(rest))
    folder = Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "doc"
    return subprocess.run([rustdoc, *chosen, "-D", "warnings", "-o", folder], close_fds=False).returncode


def values(arguments, option):
    """What follows an option, each time."""
    return [after for before, after in zip(arguments, arguments[1:]) if before == option]


def metadata_only(argument):
    """Nothing is generated or linked: of our own crates there is only metadata to read, too."""
    if argument.startswith("--emit="):
        return "--emit=dep-info,metadata"
    path = argument.partition("=")[2]
    if path.endswith((".rlib", ".so", ".dylib", ".dll")) and not Path(path).exists():
        return argument.removesuffix(path) + str(Path(path).with_suffix(".rmeta"))
    return argument


def toolchain(rustc):
    """The folder of the programs of the toolchain; `rustc` may be that of rustup."""
    found = subprocess.run([rustc, "--print", "sysroot"], capture_output=True, text=True, check=True)
    return Path(found.stdout.strip()) / "bin"


if __name__ == "__main__":
    sys.exit(main())
