#!/usr/bin/env python3
"""How many places does a new loss, metric, schedule, optimizer, callback or strategy need? One of each is added, in at most three.

    tests/additions.py --list         # the additions and their places, without a build; fails if one does not fit the sources
    tests/additions.py [KIND …]       # adds them to a copy of the sources, builds and tests it, and prints the table

`tests/additions/KIND/` has the new files as a contributor writes them, with their tests, and `addition.toml`: where the files go, and
the lines that are added to other files, each behind a line that is exactly once in its file. A place is a file that exists and is
changed. `cells` are the files in which a notebook learns the name or the text; they are counted beside.

The copy is `target/additions/`, so the checkout does not change. It shares the target folder, so that third-party crates are not
compiled again. Ours are: five minutes on two cores for the first time, later only what has changed. `tests/tidy.py` checks what
`--list` checks.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as tree
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "tests/additions"
# One of each.
KINDS = ("loss", "metric", "schedule", "optimizer", "callback", "strategy")
# Changed files of an addition, and lines added to each.
MAX_PLACES, MAX_LINES = 3, 4
# Folders of `src/` that are built or installed.
NOT_COPIED = {"target", "node_modules", "__pycache__"}
# Where our crates are in the copy. Cargo names what it builds by the path of a crate in its workspace: in `src/`, our crates of the copy
# would replace those of the checkout. Burn stands on the crate of ours that stays there.
CRATES, STAND_IN = "crates", "src/cubecl-llvm"


@dataclass
class Insertion:
    """Lines that are added to a file, behind its only line with this text."""

    file: str
    after: str
    add: str


@dataclass
class Addition:
    """What a contributor adds, read from the `addition.toml` of a folder."""

    kind: str
    what: str
    source: str
    package: str
    # The beginning of the names of its tests.
    tests: str
    # New files: their names in the folder, and where they go.
    files: dict
    lines: list
    # What a notebook needs beside, each of which has the name of `like`, an older one of its kind.
    cells: list
    like: str
    # Which tests of the package are built: its unit tests, or an integration test.
    target: list = field(default_factory=lambda: ["--lib"])

    @property
    def folder(self):
        return f"{FOLDER}/{self.kind}"

    def places(self):
        """The files that are changed, and how many lines each gets."""
        places = {}
        for insertion in self.lines:
            places[insertion.file] = places.get(insertion.file, 0) + insertion.add.count("\n") + 1
        return places


def read(root, kind):
    values = tomllib.loads((root / FOLDER / kind / "addition.toml").read_text())
    values["lines"] = [Insertion(**line) for line in values["lines"]]
    return Addition(**values)


def all_of(root):
    return [read(root, kind) for kind in KINDS]


# --- What needs no build


def problems(root):
    """What does not fit the sources: path, line and text of each problem."""
    for kind in KINDS:
        path = f"{FOLDER}/{kind}/addition.toml"
        if not (root / path).is_file():
            yield path, 1, f"there is no addition of a {kind}"
            continue
        manifest = (root / path).read_text()
        try:
            addition = read(root, kind)
        except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
            yield path, 1, str(error)
            continue
        for part, text in (*problems_of_files(root, addition), *problems_of_places(root, addition)):
            position = manifest.find(part)
            yield path, manifest.count("\n", 0, max(position, 0)) + 1, text


def problems_of_files(root, addition):
    """The new files exist, and where they go nothing is yet."""
    folder = root / addition.folder
    present = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {"addition.toml"}
    for name in sorted(present ^ addition.files.keys()):
        yield name, f"{name} is not in the folder" if name in addition.files else f"{name} is in the folder, and goes nowhere"
    for place in addition.files.values():
        if (root / place).exists():
            yield place, f"{place} exists"
    # The first file of a module goes to a folder that is there.
    first = next(iter(addition.files.values()))
    if not (root / first).parent.is_dir():
        yield first, f"there is no folder {Path(first).parent}"


def problems_of_places(root, addition):
    """Every line has its place, and the places are few."""
    for insertion in addition.lines:
        path = root / insertion.file
        count = path.read_text().splitlines().count(insertion.after) if path.is_file() else 0
        if count != 1:
            escaped = insertion.after.replace('"', '\\"')
            yield f'after = "{escaped}"', f"{insertion.file} has {count} times the line: {insertion.after.strip()}"
    places = addition.places()
    if len(places) > MAX_PLACES:
        yield "kind", f"{len(places)} places, at most {MAX_PLACES}: {', '.join(places)}"
    for place, lines in places.items():
        if lines > MAX_LINES:
            yield place, f"{place} gets {lines} lines, at most {MAX_LINES}"
    for place in addition.cells:
        path = root / place
        if not path.is_file() or not re.search(rf"\b{re.escape(addition.like)}\b", path.read_text()):
            yield place, f"{place} does not name {addition.like}, so a cell does not learn the new name there"


# --- The copy


def changed_files(root, additions):
    """The texts of new and changed files, by their paths."""
    texts = {}
    for addition in additions:
        for name, place in addition.files.items():
            texts[place] = (root / addition.folder / name).read_text()
        for insertion in addition.lines:
            text = texts.get(insertion.file) or (root / insertion.file).read_text()
            begin, end = f"\n{text}".split(f"\n{insertion.after}\n")
            texts[insertion.file] = f"{begin}\n{insertion.after}\n{insertion.add}\n{end}".removeprefix("\n")
    return texts


def write(path, content):
    """Writes a file unless it is like this: cargo builds what is newer."""
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def in_copy(path):
    """Where the copy has a file."""
    return path if path.startswith(f"{STAND_IN}/") else re.sub("^src/", f"{CRATES}/", path)


def manifest_of_copy(text):
    """The manifest of the workspace, with the paths of the copy."""
    text = text.replace('members = ["src/*"]', f'members = ["{CRATES}/*"]')
    return re.sub(r'path = "(src/[^"]*)"', lambda match: f'path = "{in_copy(match[1] + "/")[:-1]}"', text)


def copy(root, to, texts):
    """Manifests and sources with the changed files; all else is a link."""
    to.mkdir(parents=True, exist_ok=True)
    wanted = {"Cargo.lock": (root / "Cargo.lock").read_bytes()}
    wanted["Cargo.toml"] = manifest_of_copy((root / "Cargo.toml").read_text()).encode()
    for parent, folders, names in os.walk(root / "src"):
        folders[:] = [name for name in folders if name not in NOT_COPIED]
        for path in (Path(parent) / name for name in names):
            place = path.relative_to(root).as_posix()
            if not place.startswith(f"{STAND_IN}/"):
                wanted[in_copy(place)] = path.read_bytes()
    # With its times, so that it is the one that was compiled.
    shutil.copytree(root / STAND_IN, to / STAND_IN, dirs_exist_ok=True)
    wanted |= {in_copy(path): text.encode() for path, text in texts.items()}
    for path in [path for path in (to / CRATES).rglob("*") if path.is_file()]:
        if path.relative_to(to).as_posix() not in wanted:
            path.unlink()
    for path, content in wanted.items():
        write(to / path, content)
    for name in ("docs", "kernel-spec", "notebooks", "tests"):
        if not (to / name).is_symlink():
            (to / name).symlink_to(root / name)


def run(to, additions):
    """Builds and tests the changed crates: whether all tests passed, and the names of those that did by package."""
    report = to / "target" / "nextest" / "default" / "additions.xml"
    config = to / "nextest.toml"
    config.write_text((ROOT / "tests" / "nextest.toml").read_text() + '\n[profile.default.junit]\npath = "additions.xml"\n')
    environment = os.environ | {
        "CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target")),
        "RUST_BACKTRACE": "0",
        "STRATOSCOPE_DEVICE": os.environ.get("STRATOSCOPE_DEVICE", "cpu"),
    }
    passed, has_failed = {}, False
    for target in dict.fromkeys(tuple(addition.target) for addition in additions):
        packages = dict.fromkeys(addition.package for addition in additions if tuple(addition.target) == target)
        command = ["cargo", "nextest", "run", "--config-file", config, "--locked", "--no-fail-fast", *target, "-E", "not test(on_gpu)"]
        command += [argument for package in packages for argument in ("-p", package)]
        report.unlink(missing_ok=True)
        has_failed |= subprocess.run(command, cwd=to, env=environment).returncode != 0
        for suite in tree.parse(report).iter("testsuite") if report.is_file() else ():
            package = suite.get("name").split("::")[0]
            good = [case.get("name") for case in suite.iter("testcase") if case.find("failure") is None and case.find("error") is None]
            passed.setdefault(package, []).extend(good)
    return not has_failed, passed


def unformatted(to, texts):
    """Whether a file is not formatted as `cargo fmt` does it."""
    files = [to / in_copy(path) for path in texts if path.endswith(".rs")]
    return subprocess.run(["rustfmt", "--check", "--edition", "2024", *files]).returncode != 0


# --- The table


def row(addition, tests):
    places = ", ".join(f"`{path.removeprefix('src/')}` ({lines})" for path, lines in addition.places().items())
    cells = ["", addition.kind, addition.what, str(len(addition.files)), places, str(len(addition.cells)), tests, ""]
    return " | ".join(cells).strip()


def table(additions, tests):
    """Files added, files changed with the lines added to each, files for cells, tests."""
    rows = [row(addition, tests(addition)) for addition in additions]
    head = "| kind | what | new files | places (lines) | for cells | tests |\n| --- | --- | --- | --- | --- | --- |"
    return "\n".join((head, *rows))


def main(arguments):
    wrong = [f"{path}:{line}: {text}" for path, line, text in problems(ROOT)]
    if wrong:
        raise SystemExit("\n".join(wrong))
    if arguments == ["--list"]:
        print(table(all_of(ROOT), lambda addition: "not run"))
        return
    if not set(arguments) <= set(KINDS):
        raise SystemExit(__doc__)
    additions = [addition for addition in all_of(ROOT) if not arguments or addition.kind in arguments]
    texts, to = changed_files(ROOT, additions), ROOT / "target" / "additions"
    copy(ROOT, to, texts)
    is_formatted = not unformatted(to, texts)
    have_passed, passed = run(to, additions)

    def tests(addition):
        names = [name for name in passed.get(addition.package, ()) if name.startswith(addition.tests)]
        return f"{len(names)} passed" if names else "none passed"

    print(table(additions, tests))
    if not is_formatted:
        raise SystemExit("a file is not formatted")
    if not have_passed or any(tests(addition) == "none passed" for addition in additions):
        raise SystemExit("a test has failed, or the copy does not compile")


if __name__ == "__main__":
    main(sys.argv[1:])
