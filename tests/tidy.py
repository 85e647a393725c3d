#!/usr/bin/env python3
"""Checks what the files alone can show: sizes, words, layers, dependencies, links. Needs no build and no packages.

    tests/tidy.py            # all checks
    tests/tidy.py CHECK …    # these checks
    tests/tidy.py --help     # the names of the checks

Prints the findings of each failed check as `path:line: text`, and ends with status 1 if there are any. A check is a function
from a `Tree` to its findings, listed in `CHECKS`; `tests/test_tidy.py` plants a violation of each.
"""

import argparse
import functools
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

# The folder of this file, which an isolated Python leaves out.
sys.path.append(str(Path(__file__).resolve().parent))
import additions

# The limits of a file and of a function, in lines; unit tests at the end of a file are not counted.
MAX_FILE_LINES, MAX_FUNCTION_LINES = 450, 80
# What the root of the repository may contain.
ROOT_ENTRIES = {".binder", ".ci", ".github", ".gitignore", "Cargo.lock", "Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md",
                "docs", "kernel-spec", "notebooks", "src", "tests"}
# The folders whose files are read, and those in them that are built or installed.
FOLDERS, SKIPPED_FOLDERS = ("src", "docs", "tests", "notebooks"), {"target", "node_modules"}
# Files that contain the words below in order to name them.
ABOUT_WORDS = {"tests/tidy.py", "tests/test_tidy.py"}
# Words for which the field has a standard term: diagnostic, message, finding; fix; device; scatter; non-finite.
BANNED_WORDS = {
    "told", "mend", "mends", "mended", "mending", "cure", "cures", "cured", "keeper", "keepers", "dealt", "spoilt",
    "wholes",
}
# Types, modules and functions that had a name for which there is a standard one.
BANNED_NAMES = {
    "struct|enum|trait|type": ("Gone", "Whose", "Apart", "By", "Door", "Follower"),
    "mod": ("second_try", "unable", "kept", "answers", "late", "outside", "memory_will_not_do", "one_seed", "data_has_an_end"),
    "fn": ("live_and_die_with_us",),
}
BANNED_NAME = re.compile("|".join(rf"\b(?:{kinds})\s+(?:{'|'.join(names)})\b" for kinds, names in BANNED_NAMES.items()))
# Phrases of pages and notebooks that a reader has to read twice: "again", "rewound", "inspected", "custom", "has no", "compared with".
BANNED_PHRASES = (
    "so many", "anew", "one's own", "turned back", "turns back", "looked into", "held against", "is none", "are none", "put out",
    "puts out", "what is said",
)
BANNED_PHRASE = re.compile(rf"\b(?:{'|'.join(BANNED_PHRASES)})\b", re.IGNORECASE)
BRITISH_STEMS = (
    "colour", "behaviour", "neighbour", "favour", "honour", "flavour", "initialis", "normalis", "recognis", "synchronis",
    "serialis", "tokenis", "summaris", "utilis", r"organis(?!m)", "minimis", "maximis", r"optimis(?!ti|m\b)",
    r"analys(?!is|es\b|t)", "centralis", "centre", "licence", "judgement",
)
BRITISH_WORDS = ("learnt", "spelt", "grey", "whilst", "amongst")
BRITISH = re.compile(rf"\b\w*(?:{'|'.join(BRITISH_STEMS)})\w*|\b(?:{'|'.join(BRITISH_WORDS)})\b", re.IGNORECASE)
# British words that are part of a name of somebody else, or that a page shows as the mistake.
BRITISH_ALLOWED = {"optimiser", "optimisers"}
# A replacement of a third-party crate, whose manifest and rules are those of that crate; and the crate that unites features.
STAND_IN, FEATURES = "cubecl-llvm", "features"


class Finding(NamedTuple):
    """A violation and its place; `path` is relative to the root of the repository."""

    path: str
    line: int
    text: str


class Unreadable(Exception):
    """A file is not what a check expects of it."""

    def __init__(self, path, line, text):
        super().__init__(text)
        self.finding = Finding(path, line, text)


class Package(NamedTuple):
    """A package of Cargo.lock."""

    name: str
    version: str


class Tree:
    """The files of a checkout. Each is read once, whichever checks ask for it."""

    def __init__(self, root):
        self.root = Path(root)
        # A cache of this tree alone: a tree that is dropped takes its texts along.
        for method in (self.text, self.lowered, self.prose, self.notebook, self.toml, self.before_tests, self.code):
            setattr(self, method.__name__, functools.cache(method))

    @functools.cached_property
    def files(self):
        """The paths of all files in `FOLDERS`, relative to the root."""
        found = [path.name for path in sorted(self.root.iterdir()) if path.suffix == ".md"]
        for folder in FOLDERS:
            for parent, folders, names in os.walk(self.root / folder):
                folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS and name[0] not in "._")
                relative = os.path.relpath(parent, self.root).replace(os.sep, "/")
                found += [f"{relative}/{name}" for name in sorted(names)]
        return found

    def exists(self, path):
        return (self.root / path).exists()

    def text(self, path):
        return (self.root / path).read_bytes().decode()

    def lowered(self, path):
        """`prose` in lower case, to look for words before lines are taken apart."""
        return self.prose(path).lower()

    def prose(self, path):
        """What somebody has typed: of a notebook its cells, without their outputs."""
        if not path.endswith(".ipynb"):
            return self.text(path)
        return "\n".join("".join(cell["source"]) for cell in self.notebook(path)["cells"])

    def notebook(self, path):
        try:
            return json.loads(self.text(path))
        except json.JSONDecodeError as error:
            raise Unreadable(path, error.lineno, error.msg) from None

    def toml(self, path):
        try:
            return tomllib.loads(self.text(path))
        except tomllib.TOMLDecodeError as error:
            raise Unreadable(path, 1, str(error)) from None

    def before_tests(self, path):
        """Rust without the unit tests at the end of the file."""
        text = self.text(path)
        tests = UNIT_TESTS.search(text) if "#[cfg(test)]" in text else None
        return text[: tests.start()] if tests else text

    def code(self, path):
        """Rust without unit tests, comments and literals; every line keeps its number."""
        return code_of(self.before_tests(path))

    @functools.cached_property
    def typed_files(self):
        """Everything that is read by people: sources, documents, scripts, and notebooks as typed."""
        kinds = {"src": (".rs", ".py"), "docs": (".md", ".py", ".sh"), "tests": (".md", ".py", ".rs", ".sh"), "notebooks": (".ipynb", ".sh")}
        return [path for path in self.files
                if path.endswith(kinds.get(path.split("/")[0], (".md",))) and path not in ABOUT_WORDS]

    @functools.cached_property
    def sources(self):
        """The Rust files of our crates, tests and examples aside."""
        return [path for path in self.files if re.match(r"src/[^/]+/src/.*\.rs$", path)
                and "tests" not in path.split("/")[:-1] and not path.endswith("tests.rs")]

    @functools.cached_property
    def documents(self):
        """The pages of the book and the README."""
        return [path for path in self.files if path == "README.md" or (path.startswith("docs/") and path.endswith(".md"))]

    @functools.cached_property
    def manifests(self):
        """The manifest of each folder of `src/`."""
        paths = [path for path in self.files if re.fullmatch(r"src/[^/]+/Cargo\.toml", path)]
        return {path.split("/")[1]: self.toml(path) for path in paths}

    @functools.cached_property
    def manifests_by_hand(self):
        """The manifests that somebody writes, and the crate of each; a package with the tests of a crate belongs to the crate."""
        matches = [re.fullmatch(r"src/([^/]+)/(?:tests/)?Cargo\.toml", path) for path in self.files]
        return {match[0]: match[1] for match in matches if match and match[1] not in (STAND_IN, FEATURES)}

    def dependency_line(self, path, name):
        """The line of a manifest that lists a dependency."""
        return line_where(self.text(path), rf"^{re.escape(name)}\s*[.=]")

    @functools.cached_property
    def roots(self):
        """The first file of each of our crates."""
        files = set(self.files)
        found = {}
        for crate in self.manifests.keys() - {STAND_IN}:
            paths = [f"src/{crate}/src/{name}.rs" for name in ("lib", "main")]
            found[crate] = next((path for path in paths if path in files), None)
            if not found[crate]:
                raise Unreadable(f"src/{crate}/Cargo.toml", 1, "the crate has neither lib.rs nor main.rs")
        return dict(sorted(found.items()))

    def crates_with_code(self):
        """Our crates and their first files; the crate that unites features has nothing but a comment."""
        return [(crate, path) for crate, path in self.roots.items() if self.code(path).strip()]

    def section(self, path, title):
        """The part of a page from a title to the next one of its kind, and the number of its first line."""
        text = self.text(path)
        begin = re.search(rf"^{re.escape(title)}$", text, re.MULTILINE)
        if not begin:
            raise Unreadable(path, 1, f"has no title `{title}`")
        level = title.split()[0]
        end = re.compile(rf"^#{{1,{len(level)}}} ", re.MULTILINE).search(text, begin.end())
        return text[begin.start():end.start() if end else len(text)], line_at(text, begin.start())


# --- Texts

UNIT_TESTS = re.compile(r"^#\[cfg\(test\)\]\s+mod \w+ \{", re.MULTILINE)
# Comments, strings (raw ones too) and characters; a lifetime is none of these. Every alternative begins with a character of its own:
# such an expression skips the rest of a text quickly.
NOT_CODE = re.compile(
    r"""/(?:/[^\n]*|\*.*?\*/)"""
    r"""|"[^"\\]*(?:\\.[^"\\]*)*\""""
    r"""|'(?:\\.[^'\n]*|[^\\'\n])'"""
    r"""|r(?P<hashes>\#*)".*?"(?P=hashes)""",
    re.DOTALL,
)
FUNCTION = re.compile(r"\bfn\s+([A-Za-z_]\w*)")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def line_at(text, position):
    return text.count("\n", 0, position) + 1


def line_where(text, pattern):
    """The line of the first match, or the first line."""
    match = re.search(pattern, text, re.MULTILINE)
    return line_at(text, match.start()) if match else 1


def blank(match):
    """A space and the line ends of a match."""
    return " " + "\n" * match[0].count("\n")


def code_of(text):
    """Rust without comments and literals; every line keeps its number."""
    return NOT_CODE.sub(blank, text)


def end_of_block(code, start):
    """The position behind the bracket that closes the one at `start`."""
    depth = 0
    for match in re.compile("[{}]").finditer(code, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    return len(code)


def functions_of(code):
    """Name, first line and number of lines of every function with a body, in the result of `code_of`."""
    for match in FUNCTION.finditer(code):
        depth = 0
        for sign in re.compile(r"[()\[\]{;]").finditer(code, match.end()):
            if sign[0] in "([":
                depth += 1
            elif sign[0] in ")]":
                depth -= 1
            elif depth == 0:
                if sign[0] == "{":
                    lines = code.count("\n", match.start(), end_of_block(code, sign.start())) + 1
                    yield match[1], line_at(code, match.start()), lines
                break


def words_of(name):
    """`made_of_HTMLCell` → made, of, html, cell."""
    return [word.lower() for word in WORD.findall(name)]


def lines_with(text, parts, lowered=None):
    """The lines of a text with one of these parts, numbered. Most texts have none, which is found without taking them apart."""
    whole = text if lowered is None else lowered
    parts = [part for part in parts if part in whole]
    if parts:
        for number, line in enumerate(text.splitlines(), 1):
            if any(part in (line if lowered is None else line.lower()) for part in parts):
                yield number, line


def rows_of(section, first_line):
    """The rows of the tables of a section: line and cells."""
    for number, line in enumerate(section.splitlines(), first_line):
        if line.startswith("| ") and not line.startswith("| ---"):
            yield number, [cell.strip() for cell in line.strip("|").split("|")]


# --- Dependencies


def listed(manifest, kinds):
    """The dependencies of these kinds (`dependencies`, `dev-dependencies`, …) in a manifest, those of single platforms too."""
    for tables in (manifest, *manifest.get("target", {}).values()):
        for kind in kinds:
            yield from tables.get(kind, {}).items()


def package_named(key, value, workspace):
    """The package that a line of a manifest means: a line may name it differently."""
    if isinstance(value, dict) and value.get("workspace"):
        value = workspace.get(key, {})
    return value.get("package", key) if isinstance(value, dict) else key


def locked_graph(tree):
    """What each package is built from, by Cargo.lock.

    Of our crates it also names what their tests need: their manifests say what they are built from. Of third-party crates it names
    what any platform and feature may need: more than is built, never less.
    """
    workspace = tree.toml("Cargo.toml")["workspace"]["dependencies"]
    ours = {manifest["package"]["name"]: {package_named(*each, workspace) for each in listed(manifest, ["dependencies"])}
            for manifest in tree.manifests.values()}
    locked = tree.toml("Cargo.lock")["package"]
    versions = {}
    for package in locked:
        versions.setdefault(package["name"], []).append(Package(package["name"], package["version"]))
    graph = {}
    for package in locked:
        edges = {}
        for dependency in package.get("dependencies", []):
            # `name`, or `name version` where there are several.
            name, *version = dependency.split()[:2]
            edges.setdefault(name, []).extend(each for each in versions[name] if not version or each.version == version[0])
        if package["name"] in ours and "source" not in package:
            # A manifest may be newer than the lock file.
            edges = {name: edges.get(name) or versions.get(name, []) for name in ours[package["name"]]}
        graph[Package(package["name"], package["version"])] = [each for group in edges.values() for each in group]
    return graph


def chains(tree, name):
    """Everything that a package is built from: the shortest chain of names from the package to each."""
    graph = locked_graph(tree)
    start = next((package for package in graph if package.name == name), None)
    if not start:
        raise Unreadable("Cargo.lock", 1, f"has no package `{name}`")
    found, waiting = {start: [name]}, [start]
    for package in waiting:
        for used in graph[package]:
            if used not in found:
                found[used] = [*found[package], used.name]
                waiting.append(used)
    return list(found.values())


def unwanted_dependencies(tree, name, pattern, expected):
    """A finding for each way to a dependency with such a name, at the line of ours that leads to it."""
    found = chains(tree, name)
    crates = {manifest["package"]["name"]: crate for crate, manifest in tree.manifests.items()}
    if not any(chain[-1] == expected for chain in found):
        yield Finding("Cargo.lock", 1, f"`{name}` does not depend on `{expected}`: this check reads something else")
    for chain in found:
        # What an unwanted dependency brings is not reported beside it.
        if [each for each in chain if re.match(pattern, each)] == chain[-1:]:
            last = max(index for index, each in enumerate(chain[:-1]) if each in crates)
            path = f"src/{crates[chain[last]]}/Cargo.toml"
            yield Finding(path, tree.dependency_line(path, chain[last + 1]), f"`{name}` links {' → '.join(chain[1:])}")


def kernel_without_burn(tree):
    """The kernel does not link burn."""
    yield from unwanted_dependencies(tree, "stratoscope-kernel", r"burn|cubecl|wgpu|stratoscope-(train|bert|strategy)", "evcxr")


def facade_without_jupyter(tree):
    """The facade does not know Jupyter."""
    yield from unwanted_dependencies(tree, "stratoscope", r"(zeromq|evcxr|jupyter-protocol|stratoscope-kernel)$", "burn")


def explained_dependencies(tree):
    """docs/dependencies.md has a row for each third-party crate, and its column `used by` is what the manifests say.

    What only `features` lists needs no row: the row of that crate explains it.
    """
    page = "docs/dependencies.md"
    section, first_line = tree.section(page, "## Rust")
    rows = {}
    for number, cells in rows_of(section.split("\n### ")[0], first_line):
        usual, _, in_tests = cells[1].partition("(")
        for name in re.findall(r"`([\w-]+)`", cells[0]):
            if name in rows:
                yield Finding(page, number, f"a second row for {name}")
            rows[name] = number, tuple(re.findall(r"[\w-]+", part.replace("–", "")) for part in (usual, in_tests))
    found = users_of_crates(tree)
    # No manifest lists a replacement of a dependency's dependency, and all list the crate that unites features.
    for name in (STAND_IN, f"stratoscope-{FEATURES}"):
        if not rows.pop(name, None):
            yield Finding(page, first_line, f"no row for {name}")
    for name in sorted(rows.keys() | found.keys()):
        number, users = rows.get(name, (first_line, None))
        if users is None:
            yield Finding(page, number, f"no row for {name}, used by {cell_of(found[name])}")
        elif name not in found:
            yield Finding(page, number, f"no manifest lists {name}")
        elif users != found[name]:
            yield Finding(page, number, f"{name}: the page has {cell_of(users)}, the manifests {cell_of(found[name])}")


def users_of_crates(tree):
    """Which of our crates list a third-party crate, and which list it for tests only."""
    usual, in_tests = {}, {}
    for path, crate in tree.manifests_by_hand.items():
        for users, kinds in ((usual, ["dependencies", "build-dependencies"]), (in_tests, ["dev-dependencies"])):
            for name, _ in listed(tree.toml(path), kinds):
                if not name.startswith("stratoscope"):
                    users.setdefault(name, set()).add(crate)
    return {name: (sorted(usual.get(name, set())), sorted(in_tests.get(name, set()) - usual.get(name, set())))
            for name in usual.keys() | in_tests.keys()}


def cell_of(users):
    """The cell `used by` of docs/dependencies.md."""
    usual, in_tests = (", ".join(crates) for crates in users)
    return f"{usual} ({in_tests})" if usual and in_tests else usual or f"({in_tests})"


def workspace_dependencies(tree):
    """Every dependency has its version in the workspace's manifest. `features` has versions itself, since `tests/features.py` writes it."""
    for path in tree.manifests_by_hand:
        for name, value in listed(tree.toml(path), ["dependencies", "build-dependencies", "dev-dependencies"]):
            if not (isinstance(value, dict) and value.get("workspace")):
                yield Finding(path, tree.dependency_line(path, name), f"{name} has a version here")


def pinned_evcxr(tree):
    """evcxr is pinned: the kernel replaces texts that one version of it writes."""
    value = tree.toml("Cargo.toml")["workspace"]["dependencies"]["evcxr"]
    version = value if isinstance(value, str) else value["version"]
    if not version.startswith("="):
        yield Finding("Cargo.toml", line_where(tree.text("Cargo.toml"), "^evcxr"), f"evcxr {version} is not one version")


# --- Layers


def code_map(tree):
    """The order of the crates is that of the code map of docs/ARCHITECTURE.md; each uses what its row names, which stands below."""
    page = "docs/ARCHITECTURE.md"
    section, first_line = tree.section(page, "## Code map")
    rows = {}
    for number, cells in rows_of(section, first_line):
        if crate := re.fullmatch(r"`([\w-]+)`", cells[0]):
            rows[crate[1]] = number, set() if cells[-1] == "–" else set(cells[-1].split(", "))
    order = list(rows)
    # One sentence instead of a name in every row.
    everywhere = re.search(r"[Ee]very crate above `([\w-]+)` uses it", section)
    for crate in sorted(tree.manifests.keys() ^ rows.keys()):
        if crate in rows:
            yield Finding(page, rows[crate][0], f"there is no crate {crate}")
        else:
            yield Finding(f"src/{crate}/Cargo.toml", 1, f"the code map of {page} has no row for {crate}")
    for crate in (crate for crate in order if crate in tree.manifests):
        number, expected = rows[crate]
        if everywhere and everywhere[1] in order and order.index(crate) < order.index(everywhere[1]):
            expected = expected | {everywhere[1]}
        names = tree.manifests[crate].get("dependencies", {})
        uses = {name.removeprefix("stratoscope-") for name in names if name.startswith("stratoscope")}
        if uses != expected:
            only = [f"only {where} has {', '.join(sorted(few))}"
                    for where, few in (("the manifest", uses - expected), ("the table", expected - uses)) if few]
            yield Finding(page, number, f"{crate}: {'; '.join(only)}")
        up = sorted(name for name in uses if name in order and order.index(name) <= order.index(crate))
        if up:
            yield Finding(page, number, f"{crate} uses {', '.join(up)}, which stands above")


def diagnostics_without_io(tree):
    """`diagnostics` does no I/O."""
    banned = re.compile(r"\bstd::(?:fs|net|process|env)\b|\be?print(?:ln)?!")
    for path in tree.files:
        if path.startswith("src/diagnostics/src/") and path.endswith(".rs") and banned.search(tree.text(path)):
            for number, line in lines_with(tree.code(path), ["std::", "print"]):
                if match := banned.search(line):
                    yield Finding(path, number, f"`{match[0]}`")


def escapes_in_render(tree):
    """HTML is escaped by the crate `render` only."""
    escape = re.compile(r"&(?:lt|gt|amp|quot|#39|#x27);")
    for path in tree.sources:
        if not path.startswith("src/render/"):
            for number, line in lines_with(tree.before_tests(path), ["&lt;", "&gt;", "&amp;", "&quot;", "&#39;", "&#x27;"]):
                if escape.search(line) and not line.lstrip().startswith("//"):
                    yield Finding(path, number, line.strip()[:100])


# --- Sizes and words


def long_files(tree):
    """No file of our crates is too long."""
    for path in tree.sources:
        lines = tree.before_tests(path).count("\n")
        if lines > MAX_FILE_LINES:
            yield Finding(path, MAX_FILE_LINES, f"{lines} lines, at most {MAX_FILE_LINES}")


def long_functions(tree):
    """No function of our crates is too long."""
    for path in tree.sources:
        if tree.before_tests(path).count("\n") > MAX_FUNCTION_LINES:
            for name, line, lines in functions_of(tree.code(path)):
                if lines > MAX_FUNCTION_LINES:
                    yield Finding(path, line, f"`{name}` has {lines} lines, at most {MAX_FUNCTION_LINES}")


def banned_words(tree):
    """Names and texts use the terms of the field."""
    names = [f" {name}" for names in BANNED_NAMES.values() for name in names]
    for path in tree.typed_files:
        text = tree.prose(path)
        found = {}
        for number, line in lines_with(text, BANNED_WORDS, tree.lowered(path)):
            found[number] = {word for name in IDENTIFIER.findall(line) for word in words_of(name)} & BANNED_WORDS
        for number, line in lines_with(text, names) if path.endswith(".rs") else ():
            found[number] = found.get(number, set()) | {match[0] for match in BANNED_NAME.finditer(line)}
        lines = text.splitlines() if any(found.values()) else []
        for number in sorted(number for number, words in found.items() if words):
            yield Finding(path, number, f"{', '.join(sorted(found[number]))}: {lines[number - 1].strip()[:100]}")


def clear_phrases(tree):
    """Pages and notebooks are understood at the first reading."""
    for path in (*tree.documents, *(path for path in tree.typed_files if path.endswith(".ipynb"))):
        for number, line in lines_with(tree.prose(path), BANNED_PHRASES, tree.lowered(path)):
            found = {match[0].lower() for match in BANNED_PHRASE.finditer(line)}
            if found:
                yield Finding(path, number, f"{', '.join(sorted(found))}: {line.strip()[:100]}")


def american_spelling(tree):
    """Spelling is American."""
    parts = [re.split(r"\(\?!", stem)[0] for stem in (*BRITISH_STEMS, *BRITISH_WORDS)]
    for path in tree.typed_files:
        for number, line in lines_with(tree.prose(path), parts, tree.lowered(path)):
            # The `t` of `\t` in a string is no letter of the word behind it.
            found = {match[0] for match in BRITISH.finditer(line.replace("\\t", " "))} - BRITISH_ALLOWED
            if found:
                yield Finding(path, number, f"{', '.join(sorted(found))}: {line.strip()[:100]}")


# --- Files


def root_entries(tree):
    """The tracked files and folders at the root of the repository are those of a list: a leftover is noticed."""
    if not tree.exists(".git"):
        return  # a copy without its repository
    command = ["git", "-c", f"safe.directory={tree.root}", "ls-files", "-z"]
    tracked = subprocess.run(command, cwd=tree.root, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in sorted({path.split("/")[0] for path in tracked if path} - ROOT_ENTRIES):
        # A file that was deleted is tracked until the next commit.
        if tree.exists(name):
            yield Finding(name, 1, "not a part of the project")


def kernel_of_notebooks(tree):
    """Notebooks are written for our kernel."""
    for path in tree.files:
        if path.startswith("notebooks/") and path.endswith(".ipynb"):
            name = tree.notebook(path)["metadata"].get("kernelspec", {}).get("name")
            if name != "stratoscope":
                yield Finding(path, line_where(tree.text(path), '^ "metadata"'), f"is for the kernel {name}")


def denied_lints(tree):
    """Every crate denies undocumented items and undocumented unsafe blocks."""
    workspace = tree.toml("Cargo.toml").get("workspace", {}).get("lints", {})

    def is_denied(level):
        return (level if isinstance(level, str) else level["level"]) in ("deny", "forbid")

    for crate, path in tree.crates_with_code():
        inherits = tree.manifests[crate].get("lints", {}).get("workspace")
        for tool, lint in (("rust", "missing_docs"), ("clippy", "undocumented_unsafe_blocks")):
            by_workspace = inherits and is_denied(workspace.get(tool, {}).get(lint, "allow"))
            prefix = "clippy::" if tool == "clippy" else ""
            by_itself = re.search(rf"#!\[(?:deny|forbid)\([^)]*\b{prefix}{lint}\b", tree.text(path))
            if not by_workspace and not by_itself:
                yield Finding(path, 1, f"does not deny {prefix}{lint}")


def introduced_crates(tree):
    """The first comment of a crate says what it is and where to start reading. What it uses is in the code map."""
    for crate, path in tree.roots.items():
        head = re.match(r"(?://!.*\n)+", tree.text(path))
        if not head or not head[0].startswith("//! "):
            yield Finding(path, 1, "does not begin with what the crate is")
    for crate, path in tree.crates_with_code():
        head = re.match(r"(?://!.*\n)+", tree.text(path))
        if head and not re.search(r"\bstart (?:reading|with)\b", head[0], re.IGNORECASE):
            yield Finding(path, 1, "does not say where to start reading")


def few_places(tree):
    """A loss, a metric, a schedule, an optimizer, a callback and a strategy are added in at most three places (tests/additions.py)."""
    for path, line, text in additions.problems(tree.root):
        yield Finding(path, line, text)


# --- Documents


def documented_paths(tree):
    """Paths in code quotes that begin with a folder of the repository exist."""
    quote = re.compile(r"`((?:src/[\w-]+|tests|docs|notebooks|kernel-spec)/[\w./-]*)`")
    for path in tree.documents:
        for number, line in lines_with(tree.text(path), ["`src/", "`tests/", "`docs/", "`notebooks/", "`kernel-spec/"]):
            for quoted in quote.findall(line):
                if not tree.exists(quoted):
                    yield Finding(path, number, f"`{quoted}` does not exist")


def anchors_of(text):
    """The anchors of a page as mdBook and GitHub make them."""
    seen = {}
    for title in re.findall(r"^#+ (.*)$", FENCED.sub(blank, text), re.MULTILINE):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = "".join(each for each in title.lower().strip().replace(" ", "-") if each.isalnum() or each in "-_")
        count = seen[slug] = seen.get(slug, -1) + 1
        yield f"{slug}-{count}" if count else slug


def document_links(tree):
    """Relative links of the documents lead to a file, and to a title of it if they name one."""
    anchors = functools.cache(lambda path: set(anchors_of(tree.text(path))))
    for path in tree.documents:
        text = FENCED.sub(blank, tree.text(path))
        for link in re.finditer(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]*))?\)", text):
            there = os.path.normpath(os.path.join(os.path.dirname(path), link[1])) if link[1] else path
            if not tree.exists(there):
                yield Finding(path, line_at(text, link.start()), f"{there} does not exist")
            elif link[2] and there.endswith(".md") and link[2] not in anchors(there):
                yield Finding(path, line_at(text, link.start()), f"{there} has no title #{link[2]}")


def table_rows(tree):
    """The rows of a table have as many cells as its head. A bar inside of code ends a cell, too, and the rest is not shown."""
    bar = re.compile(r"(?<!\\)\|")
    for path in tree.documents:
        columns = None
        for number, line in enumerate(FENCED.sub(blank, tree.text(path)).splitlines(), 1):
            if not line.startswith("|"):
                columns = None
                continue
            count = len(bar.findall(line))
            columns = columns or count
            if count != columns:
                yield Finding(path, number, f"{count - 1} cells, the head has {columns - 1}: {line[:100]}")


CHECKS = {
    check.__name__.replace("_", "-"): check
    for check in (
        kernel_without_burn,
        facade_without_jupyter,
        explained_dependencies,
        workspace_dependencies,
        pinned_evcxr,
        code_map,
        diagnostics_without_io,
        escapes_in_render,
        long_files,
        long_functions,
        banned_words,
        clear_phrases,
        american_spelling,
        root_entries,
        kernel_of_notebooks,
        denied_lints,
        introduced_crates,
        few_places,
        documented_paths,
        document_links,
        table_rows,
    )
}


def purpose(check):
    """The first sentence of a check's documentation."""
    return check.__doc__.split("\n")[0]


def findings(check, tree):
    found = []
    try:
        for finding in check(tree):
            found.append(finding)
    except Unreadable as error:
        found.append(error.finding)
    return found


def main():
    names = "\n".join(f"  {name:24} {purpose(check)}" for name, check in CHECKS.items())
    parser = argparse.ArgumentParser(usage="%(prog)s [--help] [CHECK …]", description=__doc__.split("\n")[0], epilog=f"checks:\n{names}",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checks", metavar="CHECK", nargs="*", help="a check to run; all of them without a name")
    chosen = parser.parse_args().checks or list(CHECKS)
    if unknown := [name for name in chosen if name not in CHECKS]:
        parser.error(f"no such check: {', '.join(unknown)}; --help lists them")
    tree = Tree(Path(__file__).resolve().parent.parent)
    failed = 0
    for name in chosen:
        found = findings(CHECKS[name], tree)
        if found:
            failed += 1
            print(f"{name}: {purpose(CHECKS[name])}")
            for finding in found:
                print(f"{finding.path}:{finding.line}: {finding.text}")
            print()
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
