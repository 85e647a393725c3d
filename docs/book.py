"""A preprocessor of mdBook, run by docs/build.sh: adds to the pages of docs/ what only the book has.

- Below "Errors", a chapter for each family of rules and in it the page of each rule, with the card of its wrong cell.
- After a cell of a page that fails on purpose, or whose output is shown, that output. Cards and outputs are
  docs/cards/*.html, written by tests/test_book.py from a run of the real kernel.
- Links to files of the repository that are not in the book: notebooks are pages if docs/build.sh has converted them,
  other files are shown as paths.

mdBook calls it with `supports html`, then gives [context, book] as JSON on stdin and reads the book from stdout.
"""

import json
import os
import pathlib
import re
import sys

DOCS = pathlib.Path(__file__).resolve().parent
CARDS = DOCS / "cards"
FAMILIES = {
    "SC01": "Arguments of calls",
    "SC02": "Scopes",
    "SC03": "Labels, losses and metrics",
    "SC04": "Texts and columns",
    "SC05": "Optimizers and runs",
    "SC06": "Memory",
    "SC07": "Data and devices",
    "SC08": "Strategies and workers",
    "SC09": "Files and checkpoints",
    "SC10": "Cells and the library",
}
# A cell: its info string and its code.
CELL = re.compile(r"^```rust(,[\w,]+)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def is_shown(info):
    """Whether the book shows the output of a cell."""
    return bool(re.search(r"SC\d{4}|shown", info or ""))


def card(name):
    """A file of docs/cards as one block of HTML: without its first line, which is for the tests, and without empty lines,
    at which Markdown would end the block."""
    path = CARDS / f"{name}.html"
    if not path.exists():
        return ""
    html = path.read_text().split("\n", 1)[1].strip()
    return f'<div class="output">{html}</div>'.replace("\n", "&#10;")


def with_outputs(page, text):
    """The text of a page with the outputs of its cells."""
    numbers = iter(range(1, 1000))

    def shown(match):
        info, number = match[1], next(numbers)
        code = f"```rust\n{match[2]}```"
        if not is_shown(info):
            return code + (match["picture"] or "")
        return f"{code}\n\n{card(f'{page}-{number}')}\n"

    # A picture behind a cell stands for its output where there is no HTML.
    return re.sub(CELL.pattern + r"(?P<picture>\n\n!\[[^\]]*\]\([^)]*\)$)?", shown, text, flags=CELL.flags)


def with_card(code, text):
    """The page of a rule with the card of its wrong cell."""
    html = card(code)
    if not html:
        return text
    before, rest = text.split("## A cell that triggers it", 1)
    block = CELL.search(rest)
    return f"{before}## A cell that triggers it{rest[:block.end()]}\n\n{html}\n{rest[block.end():]}"


def with_links(path, text, notebooks):
    """The text of a page without links that leave the book."""
    def link(match):
        label, target = match[1], match[2]
        file = (DOCS / path).parent / target.split("#")[0]
        if re.match(r"https?:|#", target) or file.resolve().is_relative_to(DOCS):
            # mdBook makes index.html of a README.
            return match[0].replace("README.md", "index.md")
        shown = file.resolve().relative_to(DOCS.parent).as_posix()
        # The page of notebooks/course/01.ipynb is course-01.html.
        page = shown.removeprefix("notebooks/").removesuffix(".ipynb").replace("/", "-")
        if page in notebooks:
            up = "../" * (len(pathlib.PurePath(path).parts) - 1)
            return f"[{label}]({up}notebooks/{page}.html)"
        return label if shown in label else f"{label} (`{shown}`)"

    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", link, text)


def chapter(name, path, content, parents, number=None, children=()):
    """A chapter as mdBook writes it; its number says how deep it is in the table of contents."""
    return {"Chapter": {"name": name, "content": content, "number": number, "sub_items": list(children), "path": path,
                        "source_path": path, "parent_names": parents}}


def rules(parents, number):
    """A chapter for each family, and in it one for each rule."""
    families = {}
    for path in sorted((DOCS / "diagnostics").glob("SC*.md")):
        families.setdefault(path.stem[:4], []).append(path)
    for index, (family, paths) in enumerate(families.items(), 1):
        title = FAMILIES.get(family, "Other rules")
        below, place = [*parents, title], [*number, index]
        pages, rows = [], []
        for path in paths:
            text = path.read_text()
            code, name = re.match(r"# (SC\d+) `(.+?)`", text).groups()
            pages.append(chapter(f"{code} {name}", f"diagnostics/{path.name}", text, below, [*place, len(pages) + 1]))
            finds = re.search(r"## What it finds\n\n(.*?)\n\n", text, re.DOTALL)[1].replace("|", "\\|").replace("\n", " ")
            rows.append(f"| [{code}]({path.name}) | {finds} |")
        table = "\n".join(["| code | what it finds |", "| --- | --- |", *rows])
        yield chapter(f"{family}: {title}", f"diagnostics/{family}.md", f"# {family}: {title}\n\n{table}\n", parents, place,
                      pages)


def visit(items, notebooks):
    """Changes the chapters in place."""
    for item in items:
        if not isinstance(item, dict) or "Chapter" not in item:
            continue
        page = item["Chapter"]
        path = page["path"]
        if path == "diagnostics/README.md" or page.get("source_path") == "diagnostics/README.md":
            page["sub_items"] += rules([*page["parent_names"], page["name"]], page["number"] or [])
        if path:
            stem = pathlib.PurePath(path).stem
            is_rule = re.fullmatch(r"SC\d{4}", stem)
            text = with_card(stem, page["content"]) if is_rule else with_outputs(stem, page["content"])
            if path == "diagnostics/arguments.md":
                # Its rows are stacked on a narrow page.
                text = f'<div class="arguments">\n\n{text}\n</div>\n'
            page["content"] = with_links(page["source_path"], text, notebooks)
        visit(page["sub_items"], notebooks)


def list_of_notebooks():
    """The section of the README that lists the notebooks, as a chapter."""
    readme = (DOCS.parent / "README.md").read_text()
    section = re.search(r"^## (The notebooks\n.*?)(?=^## )", readme, re.MULTILINE | re.DOTALL)[1]
    return chapter("The notebooks", "notebooks.md", "# " + section.replace("](notebooks/", "](../notebooks/"), [])


def main():
    if sys.argv[1:2] == ["supports"]:
        sys.exit(sys.argv[2] != "html")
    _, book = json.load(sys.stdin)
    # docs/build.sh converts the notebooks, and copies their pages into the book when it is built.
    folder = os.environ.get("BOOK_NOTEBOOKS")
    notebooks = {path.stem for path in pathlib.Path(folder).glob("*.html")} if folder else set()
    items = book.get("items", book.get("sections"))
    # Behind the chapters before the first part.
    parts = (index for index, item in enumerate(items) if not (isinstance(item, dict) and "Chapter" in item))
    items.insert(next(parts, len(items)), list_of_notebooks())
    visit(items, notebooks)
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
