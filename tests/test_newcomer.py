"""A newcomer's view of a notebook: summaries, histories, data, devices, variables, hovers and completions, and each
error once. One kernel runs all cells."""

import re

import pytest

from kernel_client import check_card, check_error, check_static_html, without_ansi

MODEL = """let model = Sequential([Dense(4).input_shape(5), Dense(1)])?;
compile!(model, optimizer = SGD::new(0.01), loss = MeanSquaredError, metrics = [pearson()])?;
let data = make_regression(64, 5, 0)?;
let history = fit!(model, data, epochs = 3, batch_size = 8, validation_data = data, verbose = false)?;"""
COMPILE = "compile!(model, optimizer = AdamW::new(5e-5), loss = MeanSquaredError, metrics = [accuracy()])?;"


@pytest.fixture(scope="module")
def notebook(kernel, tiny):
    kernel.run(MODEL)
    kernel.run(f'let bert = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;')
    kernel.run("let texts = Dataset::from_rows([\"chess\", \"a server\"], [\"games\", \"net\"])?;")
    return kernel


# ---------------------------------------------------------------- an error is shown once

def test_an_error_with_a_card_has_a_short_traceback(notebook):
    """The notebook shows the card, so the error has the place and the code only."""
    code = "let here = 1;\ncompile!(model, optimiser = SGD::new(0.01))?;"
    request = notebook.client.execute(code, allow_stdin=True)
    cell = notebook.collect(request, code)
    error = check_error(cell, "SC0101", "did you mean `optimizer`?", line=2)
    check_card(cell, "SC0101", "unknown argument")
    assert [without_ansi(line) for line in error["traceback"]] == [f"Cell In[{cell.number}], line 2: SC0101"]


def test_a_program_that_runs_notebooks_has_the_message_too(notebook):
    """nbclient, nbconvert and papermill print the traceback and no card."""
    cell = notebook.execute("compile!(model, optimiser = SGD::new(0.01))?;")
    lines = [without_ansi(line) for line in cell.errors[0]["traceback"]]
    assert lines == [f"Cell In[{cell.number}], line 1: SC0101", "`compile!` has no argument `optimiser`; did you mean `optimizer`?"]


def test_an_error_without_a_card_has_a_complete_traceback(notebook):
    cell = notebook.execute("let n: i32 = \"text\";")
    error = check_error(cell, "E0308", "mismatched types", line=1)
    assert not cell.diagnostics
    text = without_ansi("\n".join(error["traceback"]))
    assert "let n: i32 = \"text\";" in text and "^" in text


# ---------------------------------------------------------------- values

def test_a_summary_is_shown_once_however_it_is_asked_for(notebook):
    for code, kind in [("model.summary();", "stream"), ("model.summary()", "execute_result"),
                       ("display(&model.summary());", "display_data"), ("println!(\"{}\", model.summary());", "stream")]:
        cell = notebook.run(code)
        shown = cell.stream() + cell.shown()
        assert shown.count("parameters: 29 (116 B), trainable: 29, frozen: 0") == 1, f"{code}: {shown}"
        assert cell.of_kind(kind), code
    assert not notebook.run("let kept = model.summary();").stream()
    assert "dense_1 (Dense)" in notebook.run("kept").shown()


def test_every_model_has_a_summary(notebook):
    cell = notebook.run("bert.summary()")
    check_static_html(cell.bundles[0]["text/html"])
    text = cell.shown()
    assert "BertForSequenceClassification" in text and "classifier.weight" in text
    # Layers that are alike are one row.
    assert re.search(r"encoder\.layer\.0–\d+ +\d+ × 16 variables", text), text
    assert len(text.splitlines()) < 20, text
    notebook.run("""use stratoscope::burn::{self, module::Module, nn::{Linear, LinearConfig}};
#[derive(Module, Debug)]
pub struct Mine { only: Linear }
impl Network for Mine {
    type Files = Outputs;
    fn logits(&self, batch: &Batch, _: Mode, device: &Device) -> Tensor<2> { self.only.forward(features(batch, device)) }
}""")
    text = notebook.run("""let mine = Model::of(Mine { only: LinearConfig::new(5, 2).init(&Device::flex()) }, Outputs::new("Mine", 2))?;
mine.summary()""").shown()
    assert re.search(r"only\.weight +\[5, 2\] +10 +f32 +yes", text), text
    # A cell's own network is known to `%vars` too.
    assert re.search(r"mine +ModelOf<Mine> +\S+ B +cpu:0", notebook.run("%vars").shown())


def test_a_history_has_columns_by_name(notebook):
    assert notebook.run("history[\"loss\"].len()").shown() == "3"
    assert notebook.run("history[\"val_pearson\"].len()").shown() == "3"
    assert notebook.run("history.get(\"acc\").is_none()").shown() == "true"
    cell = notebook.execute("let x = 1;\nhistory[\"losss\"][0]")
    check_error(cell, "SC0518", "the history has no `losss`", "did you mean `loss`?", line=2)
    check_card(cell, "SC0518", "`val_loss`")
    assert notebook.run("history.epochs.len()").shown() == "3", "nothing is lost"
    for records, title in (("epochs", "epoch +loss"), ("steps", "step +loss +rate"), ("executions", "epoch +first batch")):
        cell = notebook.run(f"history.{records}")
        assert re.search(title, cell.shown()) and "Record {" not in cell.shown(), cell.shown()
        check_static_html(cell.bundles[0]["text/html"])


def test_examples_and_the_head_of_a_data_set(notebook):
    cell = notebook.run("texts[1]")
    assert re.search(r"text +a server\nlabel +net \(class 1\)", cell.shown()), cell.shown()
    check_static_html(cell.bundles[0]["text/html"])
    cell = notebook.run("texts.head(5)")
    assert "chess" in cell.shown() and cell.shown().endswith("2 of 2 examples")
    assert "<table" in cell.bundles[0]["text/html"]
    assert notebook.run("texts.len()").shown() == "2"
    check_error(notebook.execute("texts[2].text.len()"), "panic", "has 2 examples, numbered 0 to 1: there is no example 2")


def test_devices_are_a_table(notebook):
    cell = notebook.run("devices()")
    head = r"name +backend +kind +memory +16 bits +default +what it is"
    assert re.match(head + r"\ncpu:0 +flex +physical +[\d.]+ GiB +(none|bfloat16) +yes: ", cell.shown()), cell.shown()
    assert cell.bundles[0]["text/html"].count("<table") == 1
    notebook.run("let strategy = MirroredStrategy::logical(2)?;")
    assert re.search(r"cpu:1 +flex +logical, 1 of 2", notebook.run("strategy.strategy().replicas()").shown())


@pytest.mark.parametrize("code", ["gpu(1)", "let one = OneDeviceStrategy::new(\"gpu:1\")?;", "let one = OneDeviceStrategy::new(gpu(1))?;"])
def test_a_gpu_is_cuda_or_wgpu(notebook, code):
    cell = notebook.execute(code)
    check_error(cell, "SC0906", "there is no device gpu:1", "(1)`?", line=1)
    card = check_card(cell, "SC0906", "did you mean `cuda(1)`?", "did you mean `wgpu(1)`?")
    assert "did you mean `cpu" not in card["text/plain"]


def test_variables_have_real_sizes_and_devices(notebook):
    notebook.run("let tensor = Tensor::<2>::ones([10, 10], &Device::flex());\nlet tokenizer = bert.tokenizer();\n"
                 "let pair = MirroredStrategy::logical(2)?;")
    notebook.run("scope!(pair, { let both = Sequential([Dense(4).input_shape(5)])?; });")
    text = notebook.run("%vars").shown()
    rows = {line.split()[0]: line for line in text.splitlines()[1:]}
    # 29 parameters of 4 bytes, and the handle; 24 of them twice.
    assert re.search(r"ModelOf<Layers> +124 B +cpu:0 ", rows["model"]), rows["model"]
    assert re.search(r"ModelOf<Layers> +200 B +cpu:0, cpu:1 ", rows["both"]), rows["both"]
    assert re.search(r"([4-9]\d\d B|1\.\d KiB) +cpu:0 ", rows["tensor"]), rows["tensor"]
    assert re.search(r"KiB +cpu:0 ", rows["bert"]), rows["bert"]
    assert re.search(r" cpu:0, cpu:1 ", rows["pair"]), rows["pair"]
    for name in ("history", "data", "texts", "tokenizer"):
        size = re.search(r"([\d.]+) (B|KiB|MiB)", rows[name])
        assert size and (size[2] != "B" or float(size[1]) > 200), rows[name]


# ---------------------------------------------------------------- plots

def test_a_plot_has_every_step_and_a_constant_rate_is_named(notebook):
    cell = notebook.run("history.plot();")
    svg = cell.bundles[0]["image/svg+xml"]
    assert "learning rate: constant 1e-2" in svg
    assert "#FFFFFF" not in svg, "it has a ground of its own"
    assert min(float(size) for size in re.findall(r'font-size="([\d.]+)"', svg)) >= 12
    html = cell.bundles[0]["text/html"]
    check_static_html(html)
    # A panel an image, so that a narrow page shrinks none: loss, pearson, rate, norm.
    assert html.count("<img ") == 4
    assert notebook.run("5e-5.plan(125)").shown() == "constant 5e-5"


# ---------------------------------------------------------------- completion and hover

def completions(notebook, code):
    reply = notebook.client.complete(code, len(code), reply=True, timeout=60)["content"]
    return reply["matches"]


def hover(notebook, code, at, detail=0):
    reply = notebook.client.inspect(code, at, detail_level=detail, reply=True, timeout=60)["content"]
    return reply["data"].get("text/plain", "") if reply["found"] else ""


def test_common_methods_are_completed_first(notebook):
    found = completions(notebook, "model.")
    calls = [each for each in found if "!" in each]
    members = [each.removeprefix("model.") for each in found if "!" not in each]
    assert found[:len(calls)] == calls and "fit!(model, " in calls, found
    assert members[:2] == ["predict", "summary"], found
    for private in ("inner", "network", "fit_from", "placement_here"):
        assert private not in members, found
    assert members.index("try_into") > members.index("freeze"), found
    members = [each for each in completions(notebook, "bert.") if "!" not in each]
    assert members[2] == "bert.save_pretrained", members


@pytest.mark.parametrize("word, says", [
    ("compile", "Sets how a model is trained"),
    ("AdamW", "global_clipnorm"),
    ("MeanSquaredError", "Squared distance"),
    ("accuracy", "largest output is the label's"),
])
def test_hovers_inside_compile(notebook, word, says):
    assert says in hover(notebook, COMPILE, COMPILE.index(word) + 3)


def test_hovers_of_macros(notebook):
    assert "under a strategy" in hover(notebook, "scope!(strategy, { });", 3)
    short = hover(notebook, "fit!(model, data)?;", 2)
    assert "epochs" in short
    cell = notebook.run("?fit!")
    (page,) = cell.reply["payload"]
    assert set(short.splitlines()) <= set(page["data"]["text/plain"].splitlines())
    assert len(page["data"]["text/plain"]) > len(short)
