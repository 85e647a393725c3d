"""The pages of docs/: their cells run in the real kernel, and the book has all of them. Their links: `tests/tidy.py`.

The ```rust cells of a page are one notebook, top to bottom. ```rust,SC0101 is a cell that must fail with this code, and
```rust,shown one whose output the book shows; ```rust,ignore is not run, and the comment before it says why:
`<!-- not run: it needs a GPU -->`. What a page takes for granted is in comments, `<!-- cell` to `-->`, which are run as
cells at their place.

Cells use a tiny checkpoint and little data. With UPDATE_DOCS=1 the outputs that the book shows, and the cards of all
rules, are written to docs/cards/; for these the real checkpoint is used.
"""

import hashlib
import html
import json
import os
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

import pytest

import page_checks
from conftest import ROOT, STRATOSCOPE, TARGET
from kernel_client import DIAGNOSTIC, Kernel, without_ansi
from test_rules import MEMORY, Notebook

DOCS = ROOT / "docs"
CARDS = DOCS / "cards"
PAGES = sorted(DOCS.glob("*.md"))
UPDATE = bool(os.environ.get("UPDATE_DOCS"))
sys.path.insert(0, str(DOCS))
import book  # noqa: E402  (docs/book.py)

# A cell that is shown, or a comment that is run.
CELL = re.compile(r"^```rust(?P<info>,[\w,]+)?\n(?P<code>.*?)^```$|^<!-- cell\n(?P<hidden>.*?)^-->$",
                  re.MULTILINE | re.DOTALL)
REASON = re.compile(r"<!-- not run: .+ -->\n\Z")
TINY = {"workers(4)": "workers(2)",
        '"all-MiniLM-L6-v2"': None,
        "let (train, dev) = debian_sections()?;": "let (train, dev) = debian_sections()?;\nlet (train, dev) = (train.shuffled(1).take(320), dev.shuffled(1).take(80));"}


@dataclass
class PageCell:
    """A cell of a page. `number` counts the cells that readers see, from 1, as docs/book.py does."""

    number: int
    line: int
    code: str
    expects: set
    is_run: bool
    is_shown: bool


def cells(text):
    number = 0
    for match in CELL.finditer(text):
        info = (match["info"] or "")[1:].split(",")
        hidden = match["hidden"] is not None
        number += not hidden
        line = text.count("\n", 0, match.start()) + 1
        is_run = "ignore" not in info
        assert is_run or REASON.search(text[: match.start()]), f"line {line}: a cell that is not run needs its reason"
        yield PageCell(number, line, match["hidden"] or match["code"], {each for each in info if each.startswith("SC")},
                       is_run, not hidden and book.is_shown(match["info"]))


def digest(code):
    """The first line of a file of docs/cards: which cell it is the output of."""
    return f"<!-- {hashlib.sha256(code.encode()).hexdigest()[:16]} -->"


def codes(ran):
    return [bundle[DIAGNOSTIC]["code"] for bundle in ran.diagnostics]


def messages(ran):
    return ran.code + "\n---\n" + "\n".join(without_ansi("\n".join(error["traceback"])) for error in ran.errors)


def shown_html(ran):
    """What a front end shows of a cell: HTML where there is any, text otherwise."""
    parts = {}
    for index, message in enumerate(ran.messages):
        content = message.content
        if message.kind in ("display_data", "execute_result", "update_display_data"):
            data = content["data"]
            key = content.get("transient", {}).get("display_id") or index
            parts[key] = data.get("text/html") or f"<pre>{html.escape(data.get('text/plain', ''))}</pre>"
        elif message.kind == "stream":
            parts[index] = f"<pre>{html.escape(without_ansi(content['text']))}</pre>"
    return steady("\n".join(parts.values()))


def steady(text):
    """The output without what differs from run to run: numbers of cells and folders of this machine."""
    text = re.sub(r"In\[\d+\]", "In[1]", text)
    text = re.sub(r"\bcell \d+, line", "cell 1, line", text)
    return re.sub(r"/(?:tmp|root|home|work)/[\w./-]*?([\w.-]+)(?=[\s<`\"':,)]|$)", r"…/\1", text)


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    with Kernel(cwd=folder, env={**os.environ, "TMPDIR": str(folder)}) as kernel:
        yield kernel


def run_page(kernel, path, tiny):
    """Executes the cells of a page; returns the outputs that the book shows."""
    text = path.read_text()
    page = list(cells(text))
    real = UPDATE and any(cell.is_shown for cell in page)
    outputs = {}
    kernel.run("%reset")
    kernel.run("%warnings again")
    for cell in page:
        if not cell.is_run:
            continue
        code = cell.code.rstrip("\n")
        if not real:
            for theirs, ours in TINY.items():
                code = code.replace(theirs, ours or f'"{tiny}"')
        ran = kernel.execute(code, timeout=900)
        found = {error["ename"] for error in ran.errors}
        assert found == cell.expects, f"{path.name}:{cell.line}: {found or 'no error'}\n{messages(ran)}"
        if cell.is_shown:
            outputs[f"{path.stem}-{cell.number}"] = f"{digest(cell.code)}\n{shown_html(ran)}\n"
            assert shown_html(ran).strip(), f"{path.name}:{cell.line}: nothing is shown"
    return outputs


@pytest.mark.parametrize("path", [path for path in PAGES if "```rust" in path.read_text()], ids=lambda path: path.stem)
def test_the_cells_of_a_page_run(notebook, tiny, path):
    outputs = run_page(notebook, path, tiny)
    if UPDATE:
        CARDS.mkdir(exist_ok=True)
        for old in CARDS.glob(f"{path.stem}-*.html"):
            old.unlink()
        for name, text in outputs.items():
            (CARDS / f"{name}.html").write_text(text)
    for name in outputs:
        assert (CARDS / f"{name}.html").exists(), f"docs/cards/{name}.html is missing: run this test with UPDATE_DOCS=1"


# The catalogue of the rules, as the executable prints it.
CATALOGUE = (json.loads(subprocess.run([STRATOSCOPE, "explain", "--json"], capture_output=True, text=True, check=True).stdout)
             if STRATOSCOPE.exists() else {"rules": [], "granted": []})
RUN = [rule for rule in CATALOGUE["rules"] if not rule["not_run"]]


def rule_digest(rule):
    return digest("\n".join([*rule["given"], rule["bad"]]))


CHECKPOINT, DATA = '"all-MiniLM-L6-v2"', "let (train, dev) = debian_sections()?;"
FEWER = " let (train, dev) = (train.shuffled(1).take(160), dev.shuffled(1).take(16));"


def card_of(kernel, tiny, rule):
    """The card of a rule's wrong cell, run by itself after what its page takes for granted, as HTML."""
    kernel.run("%reset")
    kernel.run("%warnings again")
    cells_before = Notebook(kernel, tiny).granted("\n".join([*rule["given"], rule["bad"]])) + rule["given"]
    for cell in [*cells_before, rule["bad"]]:
        code = cell.replace(CHECKPOINT, f'"{tiny}"').replace(DATA, DATA + FEWER)
        for page, here in MEMORY.items():
            code = code.replace(page, here)
        ran = kernel.execute(code)
    if any(magic.startswith("%profile") for magic in rule["given"]):
        kernel.run("%profile off")
    card = next((bundle for bundle in ran.diagnostics if bundle[DIAGNOSTIC]["code"] == rule["code"]), None)
    assert card, f"{codes(ran)}\n{messages(ran)}"
    shown = card["text/html"].replace(html.escape(FEWER), "").replace(FEWER, "")
    return f"{rule_digest(rule)}\n{steady(shown.replace(str(tiny), 'all-MiniLM-L6-v2'))}\n"


# Long: with UPDATE_DOCS=1 and in tests/run.sh --full.
@(pytest.mark.timeout(1500) if UPDATE else pytest.mark.full)
@pytest.mark.parametrize("rule", RUN, ids=lambda rule: rule["code"])
def test_the_card_of_a_rule_is_that_of_its_cell(notebook, tiny, rule):
    text = card_of(notebook, tiny, rule)
    path = CARDS / f"{rule['code']}.html"
    if UPDATE:
        CARDS.mkdir(exist_ok=True)
        path.write_text(text)
    assert letters(path.read_text()) == letters(text), f"{path.name} is stale: run this test with UPDATE_DOCS=1"


def letters(text):
    """The words of a card without numbers and markup, which depend on the machine."""
    return re.findall(r"[a-z_]{3,}", re.sub(r"<[^>]*>|`[^`]*`", " ", text))


def test_the_cards_of_the_book_are_those_of_its_cells():
    """A file of docs/cards names its cell; none is left over."""
    expected = {rule["code"]: rule_digest(rule) for rule in RUN}
    for path in PAGES:
        expected |= {f"{path.stem}-{cell.number}": digest(cell.code) for cell in cells(path.read_text()) if cell.is_shown}
    found = {path.stem: path.read_text().split("\n", 1)[0] for path in CARDS.glob("*.html")}
    stale = {name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)}
    assert not stale, f"docs/cards: {sorted(stale)} are missing or stale: UPDATE_DOCS=1 .venv/bin/python -m pytest tests/test_book.py"


def chapters(items):
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            yield item["Chapter"]
            yield from chapters(item["Chapter"]["sub_items"])


def test_the_book_has_every_page():
    """docs/SUMMARY.md lists the pages, docs/book.py adds those of the rules."""
    summary = (DOCS / "SUMMARY.md").read_text()
    listed = re.findall(r"\[([^\]]*)\]\(([^)]+)\)", summary)
    items = [book.chapter(name, path, (DOCS / path).read_text(), []) for name, path in listed]
    items.append(book.list_of_notebooks())
    book.visit(items, {"fine_tune_bert"})
    assert "](notebooks/fine_tune_bert.html)" in items[-1]["Chapter"]["content"]
    pages = {page["path"]: page for page in chapters(items)}
    missing = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - set(pages) - {"SUMMARY.md"}
    assert not missing, f"not in docs/SUMMARY.md: {sorted(missing)}"
    # Cards are in the pages, and no link leaves the book.
    page = pages["diagnostics/SC0201.md"]
    assert '<div class="output">' in page["content"] and "no copy" in page["content"]
    assert page["content"].index('<div class="output">') < page["content"].index("## The corrected cell")
    outside = [target for page in pages.values() for target in re.findall(r"(?<!!)\]\((\.\./[^)]*)\)", page["content"])
               if not target.startswith(("../notebooks/fine_tune_bert.html",)) and not (DOCS / "diagnostics" / target).exists()]
    assert not outside, outside


def test_the_readme_is_a_screen_and_a_half():
    lines = (ROOT / "README.md").read_text().splitlines()
    # The table of notebooks has a row for each and may grow.
    assert len([line for line in lines if not line.startswith("| [`")]) <= 70


def bare_pages(folder):
    """The pages of the built book that are read: not the one for printing, and no page for a missing address."""
    return sorted(path for path in folder.rglob("*.html") if path.name not in ("print.html", "404.html", "toc.html"))


@pytest.mark.full
def test_the_book_is_built_searched_and_read_on_a_phone(chromium, pictures):
    """docs/build.sh, which installs mdBook if it is missing, and its pages in the browser: links, widths, contrast."""
    finished = subprocess.run([DOCS / "build.sh"], cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert finished.returncode == 0 and "WARN" not in finished.stdout + finished.stderr, finished.stdout + finished.stderr
    folder = TARGET / "book"
    lacking = []
    for path in bare_pages(folder):
        if path.parent.name == "notebooks":
            continue
        text = path.read_text()
        for target in re.findall(r'href="([^"#]+)(?:#[^"]*)?"', text):
            there = path.parent / html.unescape(target)
            if not re.match(r"https?:|data:|mailto:", target) and not there.exists():
                lacking.append(f"{path.relative_to(folder)}: {target}")
    assert not lacking, "\n".join(sorted(set(lacking))[:20])

    def show(page, theme, width):
        chromium.resize(width, 1400)
        chromium.open(f"file://{folder}/{page}")
        chromium.wait_until("document.readyState == 'complete'")
        chromium.evaluate(f"localStorage.setItem('mdbook-theme', '{theme}')")
        chromium.open(f"file://{folder}/{page}?{theme}{width}")
        chromium.wait_until(f"location.search == '?{theme}{width}' && document.readyState == 'complete'")
        page_checks.load(chromium)

    for page in ("first-steps.html", "diagnostics/SC0201.html", "diagnostics/arguments.html", "kernel.html"):
        for theme in ("light", "navy"):
            for width in (1280, 390):
                show(page, theme, width)
                assert chromium.evaluate("document.documentElement.scrollWidth") <= width, (page, width)
                worst = chromium.evaluate("page_checks.contrasts(document.querySelector('main')).slice(0, 3)")
                assert worst[0]["ratio"] >= 3, (page, theme, worst)
                chromium.picture(pictures / f"book-{page.split('/')[-1][:-5]}-{theme}-{width}.png")
    show("first-steps.html", "light", 1280)
    chromium.evaluate("document.querySelector('#mdbook-search-toggle').click()")
    chromium.wait_until("document.querySelector('#mdbook-searchbar').offsetParent !== null")
    chromium.evaluate("""(() => {
        const bar = document.querySelector('#mdbook-searchbar');
        bar.value = 'outside the scope';
        bar.dispatchEvent(new Event('input', {bubbles: true}));
        bar.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}));
    })()""")
    chromium.wait_until("document.querySelector('#mdbook-searchresults').innerText.includes('SC0201')", seconds=20)
    chromium.picture(pictures / "book-search.png")
