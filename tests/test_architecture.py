"""The invariants of docs/ARCHITECTURE.md that manifests and sources can prove."""

import json
import re
import subprocess
import tomllib

import pytest

from sources import code_of, functions_of, notebook_sources, without_tests, words_of

# The limits of a file and of a function, in lines; unit tests at the end of a file are not counted.
FILE_LINES, FUNCTION_LINES = 450, 80
# What the root of the repository may contain.
ROOT_ENTRIES = {".ci", ".gitignore", "Cargo.lock", "Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md",
                "docs", "kernel-spec", "notebooks", "src", "tests"}
# Words for which the field has a standard term: diagnostic, message, finding; fix; device; scatter; non-finite.
BANNED_WORDS = {
    "told", "mend", "mends", "mended", "mending", "cure", "cures", "cured", "keeper", "keepers", "dealt", "spoilt",
    "wholes",
}
# Names of types and modules that had a standard one.
BANNED_NAMES = re.compile(r"\b(?:struct|enum|trait|type)\s+(Gone|Whose|Apart|By|Door|Follower)\b"
                          r"|\bmod\s+(second_try|unable|kept|answers|late|outside|memory_will_not_do|one_seed"
                          r"|data_has_an_end)\b"
                          r"|\bfn\s+(live_and_die_with_us)\b")
BRITISH = re.compile(
    r"\b\w*(colour|behaviour|neighbour|favour|honour|flavour|initialis|normalis|recognis|synchronis|serialis|tokenis"
    r"|summaris|utilis|organis(?!m)|minimis|maximis|optimis(?!ti|m\b)|analys(?!is|es\b|t)|centralis|centre"
    r"|licence|judgement)\w*"
    r"|\b(learnt|spelt|grey|whilst|amongst)\b", re.IGNORECASE)
# British words that are part of a name of somebody else, or that a page shows as the mistake.
BRITISH_ALLOWED = {"optimiser", "optimisers"}


@pytest.fixture(scope="module")
def code_map(root):
    """The table of docs/ARCHITECTURE.md: crate, and the crates it uses."""
    page = (root / "docs" / "ARCHITECTURE.md").read_text()
    table = page.split("## Code map")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([\w-]+)` \|.*\| ([^|]*) \|$", table, re.MULTILINE)
    return {crate: set() if uses.strip() == "–" else set(uses.split(", ")) for crate, uses in rows}


@pytest.fixture(scope="module")
def manifests(root):
    return {path.parent.name: tomllib.loads(path.read_text()) for path in root.glob("src/*/Cargo.toml")}


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


def users_by_page(root):
    """The table of docs/dependencies.md: each third-party crate, which of our crates list it, and which list it for
    tests only."""
    page = (root / "docs" / "dependencies.md").read_text()
    table = page.split("## Rust\n")[1].split("\n### ")[0]
    users = {}
    for names, used_by in re.findall(r"^\| (`[^|]*) \| ([^|]*) \| [^|]+ \|$", table, re.MULTILINE):
        usual, _, in_tests = used_by.partition("(")
        for name in re.findall(r"`([\w-]+)`", names):
            assert name not in users, f"two rows for {name}"
            users[name] = tuple(re.findall(r"[\w-]+", part.replace("–", "")) for part in (usual, in_tests))
    return users


def users_by_manifest(root):
    """The same by the manifests; a package with the tests of a crate belongs to the crate."""
    usual, in_tests = {}, {}
    for path in [*root.glob("src/*/Cargo.toml"), *root.glob("src/*/tests/Cargo.toml")]:
        crate = path.relative_to(root / "src").parts[0]
        if crate == "cubecl-llvm":
            continue
        manifest = tomllib.loads(path.read_text())
        for tables in (manifest, *manifest.get("target", {}).values()):
            for kind, users in (("dependencies", usual), ("build-dependencies", usual), ("dev-dependencies", in_tests)):
                for name in tables.get(kind, {}):
                    if not name.startswith("stratoscope"):
                        users.setdefault(name, set()).add(crate)
    return {name: (sorted(usual.get(name, set())), sorted(in_tests.get(name, set()) - usual.get(name, set())))
            for name in usual.keys() | in_tests.keys()}


def test_every_dependency_is_explained(root):
    """docs/dependencies.md has a row for each third-party crate, and its column `used by` is what the manifests say."""
    page, found = users_by_page(root), users_by_manifest(root)
    # No manifest lists it: it replaces a dependency of a dependency.
    assert page.pop("cubecl-llvm") == ([], [])
    assert page.keys() == found.keys(), f"unexplained or no longer used: {sorted(page.keys() ^ found.keys())}"
    different = [name for name in sorted(found) if page[name] != found[name]]
    wrong = [f"{name}: the page has {page[name]}, the manifests {found[name]}" for name in different]
    assert not wrong, "\n".join(wrong)


def test_every_dependency_comes_from_the_workspace(manifests):
    for crate, manifest in ours(manifests):
        for name, value in manifest.get("dependencies", {}).items():
            assert isinstance(value, dict) and value.get("workspace"), f"{crate}: {name} has a version of its own"


def test_evcxr_is_pinned(root):
    """The kernel replaces texts that one version of evcxr writes."""
    version = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["dependencies"]["evcxr"]
    assert (version if isinstance(version, str) else version["version"]).startswith("=")


def test_the_notebook_is_written_for_our_kernel(root):
    for path in root.glob("notebooks/**/*.ipynb"):
        metadata = json.loads(path.read_text())["metadata"]
        assert metadata["kernelspec"]["name"] == "stratoscope", path.name


def test_the_root_has_nothing_else(root):
    """The tracked files and folders at the root of the repository are those of a list: a leftover is noticed."""
    if not (root / ".git").exists():
        return  # a copy without its repository
    command = ["git", "-c", f"safe.directory={root}", "ls-files", "-z"]
    tracked = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
    found = {path.split("/")[0] for path in tracked if path}
    # A file that was deleted is tracked until the next commit.
    found = {name for name in found if (root / name).exists()}
    assert found <= ROOT_ENTRIES, f"not a part of the project: {sorted(found - ROOT_ENTRIES)}"


def test_the_code_map_lists_every_arrow_and_each_points_down(code_map, manifests):
    """`uses` of the table is what the manifests say, and what is used stands below."""
    order = list(code_map)
    assert set(manifests) == set(order), "a crate that the code map of docs/ARCHITECTURE.md lacks, or one too many"
    for crate, manifest in manifests.items():
        names = [name for name in manifest.get("dependencies", {}) if name.startswith("stratoscope")]
        uses = {name.removeprefix("stratoscope-") for name in names}
        assert uses == code_map[crate], f"{crate}: the manifest has {sorted(uses)}, the table {sorted(code_map[crate])}"
        assert all(order.index(name) > order.index(crate) for name in uses), f"an arrow of {crate} points up"


def rust_files(root):
    """Sources of our crates, tests and examples aside."""
    for path in sorted(root.glob("src/*/src/**/*.rs")):
        if "tests" not in path.relative_to(root).parts and not path.stem.endswith("tests"):
            yield path


def long_files(root):
    for path in rust_files(root):
        lines = without_tests(path.read_text()).count("\n")
        if lines > FILE_LINES:
            yield path.relative_to(root), FILE_LINES, f"{lines} lines, at most {FILE_LINES}"


def long_functions(root):
    for path in rust_files(root):
        for name, line, lines in functions_of(without_tests(path.read_text())):
            if lines > FUNCTION_LINES:
                yield path.relative_to(root), line, f"`{name}` has {lines} lines, at most {FUNCTION_LINES}"


def texts(root):
    """Everything that is read: sources, documents, scripts, and notebooks as typed."""
    patterns = ("src/*/src/**/*.rs", "src/*/tests/**/*.rs", "src/*/examples/*.rs", "docs/**/*.md", "*.md",
                "tests/**/*.py", "tests/*.sh", "notebooks/*", "notebooks/course/**/*.ipynb")
    for pattern in patterns:
        for path in sorted(root.glob(pattern)):
            if path.is_file() and path.name not in ("test_architecture.py",):
                text = path.read_text()
                yield path.relative_to(root), notebook_sources(text) if path.suffix == ".ipynb" else text


def banned_words(root):
    names = re.compile(r"[A-Za-z_]\w*")
    for path, text in texts(root):
        for number, line in enumerate(text.splitlines(), 1):
            found = {word for name in names.findall(line) for word in words_of(name)} & BANNED_WORDS
            if path.suffix == ".rs":
                found |= {match[0] for match in BANNED_NAMES.finditer(line)}
            if found:
                yield path, number, f"{', '.join(sorted(found))}: {line.strip()[:100]}"


def british_words(root):
    for path, text in texts(root):
        for number, line in enumerate(text.splitlines(), 1):
            found = {match[0] for match in BRITISH.finditer(line.replace("\\t", " "))} - BRITISH_ALLOWED
            if found:
                yield path, number, f"{', '.join(sorted(found))}: {line.strip()[:100]}"


def other_escapes(root):
    """HTML is escaped by the crate `render` only."""
    for path in rust_files(root):
        if path.relative_to(root).parts[1] == "render":
            continue
        for number, line in enumerate(without_tests(path.read_text()).splitlines(), 1):
            if re.search(r"&(lt|gt|amp|quot|#39|#x27);", line) and not line.lstrip().startswith("//"):
                yield path.relative_to(root), number, line.strip()[:100]


def upward_uses(root):
    """Inside `train` a module uses only those before it, in the order of docs/ARCHITECTURE.md, which names all of them
    and the arrows that go up."""
    page = (root / "docs" / "ARCHITECTURE.md").read_text()
    order = re.findall(r"`(\w+)`", re.search(r"Inside `train`.*?order: (.*)", page)[1])
    allowed = set(re.findall(r"`(\w+)` uses `(\w+)::", re.search(r"arrows? of `train` goe?s? up: (.*)", page)[1]))
    source = root / "src" / "train" / "src"
    assert sorted(order) == sorted({path.stem for path in source.iterdir()} - {"lib"}), "the order names every module"
    # The crate's root re-exports modules and types of the folders.
    home = {folder: folder for folder in order}
    for folder, names in re.findall(r"pub use (\w+)::(?:\w+::)*(\{[^}]*\}|\w+);", (source / "lib.rs").read_text()):
        home |= {name: folder for name in re.findall(r"\w+", names) if folder in order}
    for path in sorted(source.rglob("*.rs")):
        folder = path.relative_to(source).parts[0].removesuffix(".rs")
        if folder == "lib":
            continue
        for number, line in enumerate(code_of(without_tests(path.read_text())).splitlines(), 1):
            names = [home.get(name) for name in re.findall(r"\bcrate::(\w+)", line)]
            later = order[order.index(folder) + 1:]
            above = [name for name in names if name in later and (folder, name) not in allowed]
            if above:
                yield path.relative_to(root), number, f"`{folder}` uses `{above[0]}`"


FINDINGS = {"long files": long_files, "long functions": long_functions, "banned words": banned_words,
            "British spelling": british_words, "HTML escapes": other_escapes,
            "upward uses in train": upward_uses}


@pytest.mark.parametrize("kind", FINDINGS)
def test_house_rules(root, kind):
    findings = [f"{path}:{line}: {what}" for path, line, what in FINDINGS[kind](root)]
    assert not findings, f"{len(findings)} findings\n" + "\n".join(findings)


def test_functions_are_counted():
    """The counter takes no bracket from a comment, a string, a character or a signature."""
    text = r"""fn one<'a>(x: [u8; 2], f: impl Fn(&'a str) -> u8) -> Vec<u8>
where
    u8: Copy,
{
    let brace = '{'; // }
    let text = "}\"}"; /* } */
    let raw = r#"} " }"#;
}
fn declared(x: u8);
fn two() {}
"""
    assert list(functions_of(text)) == [("one", 1, 8), ("two", 10, 1)]


def test_every_crate_denies_undocumented_items_and_unsafe_blocks(root, manifests):
    workspace = tomllib.loads((root / "Cargo.toml").read_text()).get("workspace", {}).get("lints", {})

    def is_denied(level):
        return (level if isinstance(level, str) else level["level"]) in ("deny", "forbid")

    lacking = []
    for crate, manifest in ours(manifests):
        folder = root / "src" / crate / "src"
        main = next(path for path in (folder / "lib.rs", folder / "main.rs") if path.exists()).read_text()
        inherits = manifest.get("lints", {}).get("workspace")
        for tool, lint in (("rust", "missing_docs"), ("clippy", "undocumented_unsafe_blocks")):
            by_workspace = inherits and is_denied(workspace.get(tool, {}).get(lint, "allow"))
            prefix = "clippy::" if tool == "clippy" else ""
            by_itself = re.search(rf"#!\[(?:deny|forbid)\([^)]*\b{prefix}{lint}\b", main)
            if not by_workspace and not by_itself:
                lacking.append(f"{crate}: {lint}")
    assert not lacking, lacking


def test_every_crate_says_what_it_is(root, manifests):
    """The first comment of a crate: what it is, and where to start reading. What it uses is in the code map."""
    for crate, _ in ours(manifests):
        folder = root / "src" / crate / "src"
        main = next(path for path in (folder / "lib.rs", folder / "main.rs") if path.exists())
        text = main.read_text()
        assert text.startswith("//! "), f"{main} does not begin with what it is"
        head = re.match(r"(?://!.*\n)+", text)[0]
        says = re.search(r"\bstart (reading|with)\b", head, re.IGNORECASE)
        assert says, f"{main} does not say where to start reading"


def test_paths_in_the_documents_exist(root):
    """Links, and paths in code quotes that begin with a folder of the repository."""
    lacking = []
    for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            links = [path.parent / link.split("#")[0] for link in re.findall(r"\]\((?!https?:)([^)#][^)]*)\)", line)]
            quotes = re.findall(r"`((?:src/[\w-]+|tests|docs|notebooks|kernel-spec)/[\w./-]*)`", line)
            quotes = [root / quote for quote in quotes]
            lacking += [f"{path.name}:{number}: {each}" for each in links + quotes if not each.exists()]
    assert not lacking, "\n".join(lacking)
