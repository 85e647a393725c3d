"""The most important cards in JupyterLab, in nbconvert's page (light and dark), and in a terminal. One notebook
creates them with the real kernel: errors found in the source, by rustc and at run time, warnings about schedule and
data, a placement, the progress of a run. The screenshots are in $STRATOSCOPE_SCREENSHOTS, or else in
target/screenshots/.
"""

import re
from dataclasses import dataclass

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert.filters import ansi2html
from wcwidth import wcswidth

import lab
import page_checks
from kernel_client import DIAGNOSTIC, check_static_html, without_ansi

# Columns of text. Code is cut around the place that is meant, everything else is wrapped.
COLUMNS = 100
MODEL = 'let model = BertForSequenceClassification::from_pretrained("all-MiniLM-L6-v2", 8)?;'
LOSS = "loss = SparseCategoricalCrossentropy { from_logits: true }"

# Cells by the names of their pictures; the code of the card that each shows, if it is a diagnostic's.
CELLS = {
    "misspelt": ("SC0101", f"""{MODEL}
compile!(model,
    optimiser = AdamW::new(warmup_linear(5e-5, 0.1)),
    {LOSS},
    metrics = [accuracy()],
)?;"""),
    "wrong-place": ("SC0106", f"compile!(model, optimizer = AdamW::new(warmup_linear(5e-5, 0.1)), {LOSS}, "
                              "metrics = [accuracy()], weight_decay = 0.01)?;"),
    "wrong-type": ("SC0120", f"""let adam = Adam::new(1e-3);
{MODEL}
compile!(model, optimizer = AdamW::new(5e-5), loss = adam)?;"""),
    "no-scope": ("SC0102", f"""{MODEL}
compile!(model,
    optimizer = AdamW::new(warmup_linear(5e-5, 0.1)),
    {LOSS},
    steps_per_execution = 16,
)?;"""),
    "label": ("SC0301", f"""let (train, dev) = debian_sections()?;
{MODEL.replace('8)', '2)')} // the data has 8 classes
compile!(model, optimizer = AdamW::new(5e-5), {LOSS})?;
fit!(model, train)?;"""),
    "unknown-words": ("SC0403", f"""let notes = Dataset::from_rows(
    ["a game of chess: ᐃᓄᒃᑎᑐᑦ ᐅᖃᐅᓯᖅ", "ᑎᑎᖅᑲᑦ ᐊᓪᓚᕕᒃ: a mail server", "chess for two", "a server for names"],
    ["game", "server", "game", "server"],
)?;
{MODEL.replace('8)', '2)')}
compile!(model, optimizer = AdamW::new(5e-5), {LOSS})?;
fit!(model, notes)?;"""),
    "schedule": ("SC0502", f"""let (train, dev) = debian_sections()?;
let (train, dev) = (train.shuffled(1).take(32), dev.shuffled(1).take(16));
let decay = ExponentialDecay::new(3e-5, 1000, 0.96).staircase(true);
{MODEL}
compile!(model, optimizer = AdamW::new(decay), {LOSS})?;
fit!(model, train, batch_size = 16, max_length = 16)?;"""),
    "accumulation": ("SC0506", """let mut sum = Gradients::zeros();
for index in 0..4 {
    sum = model.gradients(&train.skip(4 * index).take(4))?; // a new sum each time
    if index % 4 == 3 { model.apply(sum.clone() / 4.0)?; }
}"""),
    "placement": (None, f"""let strategy = MirroredStrategy::logical(2)?;
scope!(strategy, {{
    let classifier = BertForSequenceClassification::from_pretrained("all-MiniLM-L6-v2", 8)?;
    let receipt = compile!(classifier,
        optimizer = AdamW::new(warmup_linear(5e-5, 0.1)).weight_decay(0.01).global_clipnorm(1.0),
        {LOSS},
        metrics = [accuracy(), macro_f1()],
    )?;
}});
receipt"""),
    "progress": (None, "let history = fit!(classifier, train, epochs = 2, batch_size = 16, validation_data = dev, max_length = 16)?;"),
    "plot": (None, "history.plot();"),
    "outside": ("SC0201", f"""{MODEL.replace('model', 'outside')}
compile!(outside, optimizer = AdamW::new(5e-5), {LOSS})?;"""),
}
MEDIA = ["lab-light", "lab-dark", "static-light", "static-dark"]


@dataclass
class Card:
    """A card in the executed notebook: an output of the cell of its name."""

    name: str
    code: str | None
    source: str
    cell: int
    number: int
    data: dict

    @property
    def html(self):
        return self.data["text/html"]

    @property
    def plain(self):
        return self.data["text/plain"]


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """The executed cells; those that should fail do."""
    made = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "stratoscope", "display_name": "Rust (stratoscope)"}})
    made.cells = [nbformat.v4.new_code_cell(source) for _, source in CELLS.values()]
    NotebookClient(made, kernel_name="stratoscope", timeout=300, allow_errors=True,
                   resources={"metadata": {"path": str(tmp_path_factory.mktemp("cards"))}}).execute()
    return made


@pytest.fixture(scope="module")
def cards(notebook):
    found = []
    for index, (name, (code, source)) in enumerate(CELLS.items()):
        outputs = list(enumerate(notebook.cells[index].outputs))
        shown = [(number, output.data) for number, output in outputs if "text/html" in output.get("data", {})]
        codes = [data.get(DIAGNOSTIC, {}).get("code") for _, data in shown]
        failed = [output.evalue for _, output in outputs if output.output_type == "error"]
        assert code in codes, f"{name}: shows {codes}, fails with {failed}"
        # The last one: a checkpoint that takes long to read shows its progress in a line above the card.
        number, data = shown[max(index for index, each in enumerate(codes) if each == code)]
        found.append(Card(name, code, source, index, number, data))
    return found


@pytest.fixture(scope="module", params=MEDIA)
def page(request, notebook, cards, chromium, jupyter_lab, tmp_path_factory):
    """The notebook in one medium, and the measurements of each card by name."""
    medium, theme = request.param.split("-")
    if medium == "lab":
        jupyter_lab.show(chromium, notebook, "cards", theme)
    else:
        lab.show_static(chromium, notebook, tmp_path_factory.mktemp("static"), "cards", theme)
    page_checks.load(chromium)
    chromium.medium = request.param
    chromium.seen = {card.name: page_checks.output(chromium, card.cell, card.number, card.html) for card in cards}
    chromium.tracebacks = {
        name: page_checks.output(chromium, index, number)
        for index, name in enumerate(CELLS)
        for number, output in enumerate(notebook.cells[index].outputs)
        if output.output_type == "error"
    }
    return chromium


def test_the_cells_show_their_cards(notebook, cards):
    for card in cards:
        check_static_html(card.html)
        errors = [output for output in notebook.cells[card.cell].outputs if output.output_type == "error"]
        is_error = card.code and card.data[DIAGNOSTIC]["severity"] == "error"
        assert [error.ename for error in errors] == ([card.code] if is_error else []), card.name


def test_every_card_is_seen(page, cards, pictures):
    for card in cards:
        seen = page.seen[card.name]
        assert seen and seen["shown"], card.name
        _, y, width, height = seen["box"]
        assert width > 400 and height > 60, f"{card.name} has no size"
        # The source of the cell and all outputs down to the card.
        left, top, cell_width, _ = seen["cell"]
        page.picture(pictures / f"card-{card.name}-{page.medium}.png", (left, top, cell_width, y + height + 8 - top))
        parts = [card.code, card.data[DIAGNOSTIC]["message"].split("`")[0]] if card.code else []
        parts += {"placement": ["cpu:0", "cpu:1", "planned"], "progress": ["loss", "all-reduces", "100 %"], "plot": [],
                  "outside": ["cpu:0", "cpu:1", "no copy"]}.get(card.name, [])
        for part in parts:
            assert part in seen["text"], f"{card.name}: {part}"


def test_the_sanitizer_removes_nothing(page):
    """JupyterLab sanitizes the HTML of untrusted notebooks, such as this one."""
    changed = {name: seen["differences"] for name, seen in page.seen.items() if seen["differences"]}
    assert not changed


def test_no_card_overflows_horizontally(page):
    found = {name: seen["overflowing"] for name, seen in page.seen.items() if seen["overflowing"]}
    assert not found


def test_every_text_can_be_read_on_its_background(page):
    """4.5 is WCAG's bound for text of this size. Tracebacks have a red background, whatever their own colors."""
    assert len(page.tracebacks) == 6
    for kind in (page.seen, page.tracebacks):
        assert all(seen["contrasts"] or seen["drawn"] for seen in kind.values()), "there is no text"
        found = {name: [each for each in seen["contrasts"] if each["ratio"] < 4.5] for name, seen in kind.items()}
        assert not any(found.values()), {name: each[:4] for name, each in found.items() if each}


def test_every_curve_and_text_of_a_plot_can_be_seen(page):
    """On a light and on a dark page, because the background is transparent. No color reaches more than 4.35 to 1 on
    both white and JupyterLab's dark background; WCAG asks for 3 to 1 for graphics and large text."""
    drawn = page.seen["plot"]["drawn"]
    assert {"text", "polyline"} <= {each["kind"] for each in drawn}
    texts = [each for each in drawn if each["kind"] == "text"]
    assert {"loss", "accuracy", "optimizer step", "training", "validation"} <= {each["text"] for each in texts}
    assert min(each["ratio"] for each in texts) >= 4.2, texts[0]
    assert drawn[0]["ratio"] >= 3.7, drawn[0]
    assert min(each["size"] for each in texts) >= 11.5, "texts are small"


def test_charts_of_a_plot_stand_side_by_side_as_far_as_the_page_is_wide(page, cards):
    """Each keeps its width of 400 pixels where the page has them, and none is wider than the page."""
    (card,) = (each for each in cards if each.name == "plot")
    boxes = f"""[...page_checks.output({card.cell}, {card.number}).querySelectorAll('img')]
        .map(each => each.getBoundingClientRect()).map(({{top, width}}) => [Math.round(top), Math.round(width)])"""
    size = page.size
    try:
        page.resize(1920, size[1])
        page.wait_until(f"new Set({boxes}.map(([top]) => top)).size === 2")
        assert [width for _, width in page.evaluate(boxes)] == [400] * 5
        if page.medium.startswith("static"):
            page.resize(400, size[1])
            page.wait_until(f"new Set({boxes}.map(([top]) => top)).size === 5")
            assert all(200 < width <= 400 for _, width in page.evaluate(boxes))
    finally:
        page.resize(*size)


def test_an_error_is_shown_once(notebook, cards):
    """The card explains the error; the error output below it has the code and the place, for programs that read the
    notebook."""
    failed = [card for card in cards if card.code and card.data[DIAGNOSTIC]["severity"] == "error"]
    assert len(failed) >= 6
    for card in failed:
        (error,) = (output for output in notebook.cells[card.cell].outputs if output.output_type == "error")
        head, *rest = [without_ansi(line) for line in error.traceback]
        assert re.fullmatch(rf"Cell In\[\d+\], line \d+: {card.code}", head), head
        # Kept and lost variables are not on a card.
        text_left = " ".join(rest)
        assert not re.search(r"error\[|fix|-->", text_left) and card.data[DIAGNOSTIC]["message"] not in text_left, rest
        assert error.ename == card.code and error.evalue


def columns(line):
    """One entry per column; the second column of a wide character is NUL."""
    return [part for character in line for part in [character, "\0"][:max(wcswidth(character), 0)]]


def test_cards_fit_into_a_terminal(notebook, cards):
    too_long = [(card.name, line) for card in cards for line in card.plain.splitlines() if wcswidth(line) > COLUMNS]
    for name, cell in zip(CELLS, notebook.cells, strict=True):
        lines = [line for output in cell.outputs if output.output_type == "error" for line in output.traceback]
        too_long += [(name, line) for line in lines if wcswidth(without_ansi(line)) > COLUMNS]
        # Nothing stays colored after its line.
        assert all(line.rfind("\x1b[0m") >= line.rfind("\x1b[") for line in lines), name
    assert not too_long


def test_carets_are_under_the_reported_span(cards):
    for card in cards:
        if not card.code:
            continue
        lines = card.plain.splitlines()
        at = next(number for number, line in enumerate(lines) if re.match(r"^ *\| *\^", line))
        marked = "".join(above for above, caret in zip(columns(lines[at - 1]), columns(lines[at]), strict=False) if caret == "^")
        label = card.data[DIAGNOSTIC]["labels"][0]["place"]["span"]
        meant = card.source.encode()[label["start"]:label["end"]].decode().split("\n")[0]
        assert marked.replace("\0", "") == meant, card.plain


TERMINAL = """<body style="margin:0;background:%s;color:%s"><style>%s</style>
<pre style="margin:0;padding:12px;display:inline-block;width:101ch;white-space:pre-wrap;overflow-wrap:anywhere;
font:13px/1.3 'DejaVu Sans Mono',monospace">%s</pre></body>"""
# The palettes of xterm, roughly, on black and on white.
COLORS = {
    "dark": ("#000000", "#e5e5e5", {"red": "#ff5f5f", "green": "#5fd75f", "yellow": "#ffd75f", "blue": "#8787ff", "cyan": "#5fd7d7"}),
    "light": ("#ffffff", "#000000", {"red": "#cd0000", "green": "#00875f", "yellow": "#875f00", "blue": "#0000ee", "cyan": "#00878f"}),
}


@pytest.mark.parametrize("theme", COLORS)
def test_pictures_of_a_terminal(notebook, cards, chromium, pictures, tmp_path, theme):
    """The output of `jupyter console`: the text of each display, then the lines of the traceback."""
    ground, ink, palette = COLORS[theme]
    style = "".join(f".ansi-{name}-fg,.ansi-{name}-intense-fg{{color:{code}}}" for name, code in palette.items())
    style += ".ansi-bold{font-weight:bold}"
    for card in cards:
        lines = [card.plain]
        for output in notebook.cells[card.cell].outputs:
            lines += output.traceback if output.output_type == "error" else []
        path = tmp_path / f"{card.name}.html"
        path.write_text(TERMINAL % (ground, ink, style, ansi2html("\n".join(lines))))
        chromium.open(path.as_uri())
        chromium.wait_until(f"location.href === '{path.as_uri()}' && document.readyState === 'complete'")
        box = chromium.evaluate("(() => { const b = document.querySelector('pre').getBoundingClientRect();"
                                " return [0, 0, b.width, b.height]; })()")
        assert box[2] > 700 and box[3] > 60, card.name
        chromium.resize(lab.WIDTH, int(box[3]) + 40)
        chromium.picture(pictures / f"card-{card.name}-terminal-{theme}.png", box)

