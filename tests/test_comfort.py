"""Everyday comfort: `%why` shows the last error once more, and charts of any numbers."""

import nbformat
import pytest

import lab
from kernel_client import DIAGNOSTIC, check_card, check_error, check_static_html, without_ansi

MISSPELLED = "let rate = 5e-5;\ncompile!(model, optimiser = AdamW::new(rate))?;"


def test_why_shows_the_last_error_once_more(fresh_kernel):
    kernel = fresh_kernel
    assert kernel.run("%why").shown() == "no cell has failed yet"
    failed = kernel.execute(MISSPELLED)
    error = check_error(failed, "SC0101", line=2)
    card = check_card(failed, "SC0101")
    kernel.run("1 + 1")
    again = kernel.run("%why")
    assert f"cell {failed.number} failed: {error['evalue']}; `%explain SC0101` has its page" in again.shown()
    assert again.diagnostics == [card]
    # The message is in the first line already.
    traceback = without_ansi("\n".join(error["traceback"]))
    assert traceback.startswith("Cell In[") and traceback.startswith(without_ansi(again.stream()).strip())
    # It is the same for an error without a card, and for IPython's names of the magic.
    failed = kernel.execute("let x: u8 = \"text\";")
    (error,) = failed.errors
    for magic in ("%why", "%tb", "%debug"):
        again = kernel.run(magic)
        assert not again.diagnostics and error["ename"] in again.shown() + again.stream()
    failed = kernel.execute("let v: Vec<u8> = vec![]; v[3]")
    assert failed.errors[0]["ename"] == "panic" and "index out of bounds" in kernel.run("%why").stream()


def test_an_index_below_zero_is_explained(kernel):
    for code in ("let list = vec![1, 2];\nlet empty: Vec<u8> = vec![];\nlist[empty.len() - 1]",
                 "let (first, second) = (2usize, 3usize);\nlet list = vec![1, 2];\nlist[first - second]"):
        (error,) = kernel.execute(code).errors
        traceback = without_ansi("\n".join(error["traceback"]))
        assert error["ename"] == "panic" and "no numbers below 0" in traceback and "`a.checked_sub(b)`" in traceback, traceback


@pytest.mark.parametrize(("code", "plain"), [
    ("plot(&[1.0, 4.0, 9.0])", "3 points, lowest 1, highest 9, last 9"),
    ("let losses: Vec<f32> = vec![0.9, f32::NAN, 0.5]; plot(&losses)?.title(\"loss\")", "1 value is no number and left out"),
    ("plot(&[3, 2, 1])?.named(\"training\").line(\"validation\", &[4, 3, 3])?", "validation: 3 points"),
    ("scatter(&[1.0, 2.0, 3.0], &[1, 4, 9])?", "x from 1 to 3, y from 1 to 9"),
    ("histogram(&(0..100).collect::<Vec<i32>>())?.bins(4)?", "████████████████████████████████████████ 25"),
    ("heatmap(&Tensor::<2>::ones([2, 3], &Device::flex()))?", "2 × 3, from 1"),
])
def test_numbers_of_any_kind_are_drawn(kernel, code, plain):
    (bundle,) = kernel.run(code).bundles
    assert plain in bundle["text/plain"] and bundle["image/svg+xml"].startswith("<svg")
    assert "NaN" not in bundle["image/svg+xml"] and "<img" in bundle["text/html"]
    check_static_html(bundle["text/html"])


@pytest.mark.parametrize(("code", "expected", "text"), [
    ("plot::<[f64]>(&[])?", "SC1020", "`plot` has no values to draw"),
    ("heatmap(&[[f64::NAN; 2]; 2])?", "SC1020", "4 values, but no finite number"),
    ("scatter(&[1.0, 2.0], &[1.0])?", "SC1021", "xs has 2 values, ys has 1 value"),
    ("heatmap(&[vec![1.0, 2.0], vec![1.0]])?", "SC1021", "row 0 has 2 values, row 1 has 1 value"),
    ("histogram(&[1.0])?.bins(0)?", "SC0915", "`bins` is 0, but must be between 1 and 1000"),
])
def test_what_cannot_be_drawn_is_explained(kernel, code, expected, text):
    failed = kernel.execute(code)
    check_error(failed, expected, text)
    assert failed.diagnostics[0][DIAGNOSTIC]["code"] == expected


@pytest.mark.parametrize("theme", lab.THEMES)
def test_charts_in_jupyterlab(kernel, chromium, jupyter_lab, pictures, theme):
    """Looked at in target/screenshots/."""
    sources = ["let losses: Vec<f64> = (1..200).map(|step| 2.0 / f64::from(step).sqrt()).collect();\n"
               "plot(&losses)?.title(\"loss\").x_label(\"step\")",
               "histogram(&losses)?.title(\"losses\")",
               "let rows: Vec<Vec<f64>> = (0..12).map(|i| (0..12).map(|j| f64::from(i * j)).collect()).collect(); heatmap(&rows)?"]
    cells = []
    for source in sources:
        (bundle,) = kernel.run(source).bundles
        output = nbformat.v4.new_output("execute_result", bundle, execution_count=1)
        cells.append(nbformat.v4.new_code_cell(source, outputs=[output], execution_count=1))
    notebook = nbformat.v4.new_notebook(cells=cells)
    jupyter_lab.show(chromium, notebook, "charts", theme)
    sizes = chromium.wait_until("(() => { const all = [...document.querySelectorAll('.jp-OutputArea-output img')];"
                                "return all.length === 3 && all.every(each => each.complete && each.naturalWidth > 300) "
                                "&& all.map(each => each.naturalHeight); })()")
    chromium.picture(pictures / f"charts-{theme}.png")
    assert all(height > 200 for height in sizes)


@pytest.mark.parametrize(("code", "mime", "shown"), [
    ("%%html\n<b class=\"a\">bold</b>\n", "text/html", "<b class=\"a\">bold</b>"),
    ("%%markdown\n# A title\n\nIt's text.", "text/markdown", "# A title\n\nIt's text."),
    ("%%latex\n\\frac{1}{2}", "text/latex", "$\\displaystyle \\frac{1}{2}$"),
    ("%%latex\nHalf is $\\frac{1}{2}$.", "text/markdown", "Half is $\\frac{1}{2}$."),
])
def test_a_cell_of_text_is_shown(kernel, code, mime, shown):
    (bundle,) = kernel.run(code).bundles
    assert bundle[mime].strip() == shown


def test_a_cell_for_the_shell(kernel):
    cell = kernel.run("%%bash\nfor i in 1 2; do\n  echo \"it's $i\"\ndone")
    assert cell.stream() == "it's 1\nit's 2\n"
    check_error(kernel.execute("%%bash\necho before; exit 3"), "Error", "exit status: 3", line=1)
    assert kernel.run("%%sh\ncd / && pwd").stream() == "/\n"


@pytest.mark.parametrize("code", ["AdamW?", "AdamW??", "help(AdamW)", "?AdamW", "fit!?"])
def test_help_is_asked_as_in_python(kernel, code):
    (page,) = kernel.run(code).reply["payload"]
    assert page["source"] == "page" and code.strip("?!").removeprefix("help(").rstrip(")?!") in page["data"]["text/plain"]


def test_a_question_mark_of_rust_stays_one(fresh_kernel):
    kernel = fresh_kernel
    kernel.run("let parsed: Result<i32, String> = Ok(3); let found: Option<i32> = None;")
    assert kernel.run("parsed?").shown() == "3"
    kernel.run("fn help(n: i32) -> i32 { n + 1 }\nlet number = 4;")
    assert kernel.run("help(number)").shown() == "5"


@pytest.mark.parametrize(("code", "name", "part"), [
    ("%load_ext rpy2.ipython", "UnknownMagic", "there are no extensions"),
    ("%profile tf-2.16", "UnknownProfile", "`%profile keras-3`"),
    ("%%python\nprint(1)", "UnknownMagic", "is translated to Rust"),
    ("%dep <img src=x> = \"1\"", "MagicIncomplete", "is no crate"),
    ("pip install serde", "ShellCommand", "`!pip install serde`"),
])
def test_habits_of_ipython_are_answered(kernel, code, name, part):
    check_error(kernel.execute(code), name, part, line=1)


def test_a_program_is_not_run_and_says_so(kernel):
    cell = kernel.run("fn main() { println!(\"hello\"); }")
    assert "`main()`" in cell.shown() and not cell.stream()
    assert kernel.run("main();").stream() == "hello\n"


def test_a_long_result_is_cut(kernel):
    text = kernel.run("vec![0u8; 1_000_000]").shown()
    assert len(text) < 25_000 and text.startswith("[0, 0, ") and "only the beginning is shown" in text


def test_saved_cells_that_are_left_out_are_named(fresh_kernel, tmp_path):
    fresh_kernel.run("let a = 1;")
    fresh_kernel.execute("let b: i32 = \"no\";")
    fresh_kernel.run("a")
    said = fresh_kernel.run(f"%save {tmp_path}/out.rs 1-3").shown()
    assert "2 cells written" in said and "without cell 2" in said
