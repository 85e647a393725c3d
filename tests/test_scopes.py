"""Scopes through the real kernel: the truth table of docs/keras-semantics.md, the cells of articles S0 and S3 in Rust,
scopes over several cells, and the state after a failure inside a scope."""

import re

import pytest

from kernel_client import DIAGNOSTIC, check_card, check_error, check_static_html, without_ansi

BUILT = 'let model = Sequential([Dense(10).activation("relu").input_shape((5,)), Dense(1)])?;'
UNBUILT = 'let model = Sequential([Dense(10).activation("relu"), Dense(1)])?;'
FUNCTION = """fn build_model() -> Result<Sequential, Box<stratoscope::diagnostics::Diagnostic>> {
    Sequential([Dense(10).activation("relu").input_shape((5,)), Dense(1)])
}"""
CUSTOM = """use stratoscope::burn::{self, module::Module, nn::{Linear, LinearConfig}, tensor::activation::relu};
#[derive(Module, Debug)]
pub struct Custom { hidden: Option<Linear>, last: Option<Linear> }
impl Network for Custom {
    type Files = Outputs;
    fn is_built(&self) -> bool { self.hidden.is_some() }
    fn build(mut self, width: usize, device: &Device) -> Self {
        self.hidden = Some(LinearConfig::new(width, 10).init(device));
        self.last = Some(LinearConfig::new(10, 1).init(device));
        self
    }
    fn logits(&self, batch: &Batch, _: Mode, device: &Device) -> Tensor<2> {
        let (hidden, last) = self.hidden.as_ref().zip(self.last.as_ref()).expect("it is built");
        last.forward(relu(hidden.forward(features(batch, device))))
    }
}"""
COMPILE = 'compile!(model, optimizer = "adam", loss = "mse")?;'
FIT = "let history = fit!(model, data, epochs = 1, batch_size = 8, verbose = false)?;"


@pytest.fixture(scope="module")
def notebook(kernel):
    """A kernel with data and without a live strategy: the tests that need that come first."""
    kernel.run("let data = make_regression(16, 5, 3)?;")
    return kernel


@pytest.fixture(scope="module")
def strategy(notebook):
    """The same with `strategy` alive, from the first test that needs one."""
    notebook.run("let strategy = MirroredStrategy::logical(2)?;")
    return notebook


def at(where, *statements):
    """Statements inside the scope or outside."""
    text = "\n".join(statements)
    return f"scope!(strategy, {{\n{text}\n}});" if where == "in" else text


SEEN = "let seen = model.placement()?.devices.len();\n(seen, history.counters.all_reduces)"


def devices(notebook):
    """How many devices `model` is on."""
    return int(notebook.run("let seen = model.placement()?.devices.len();\nseen").shown())


def error(cell):
    """The code of a cell's error; `None` if it succeeded."""
    return cell.errors[0]["ename"] if cell.errors else None


# No strategy is alive ---------------------------------------------------------------------------------


def test_without_a_strategy_one_device_is_used_without_a_message(notebook):
    for model in (BUILT, UNBUILT):
        cell = notebook.run("\n".join((model, COMPILE, FIT, SEEN)))
        assert not cell.diagnostics
        assert cell.shown().endswith("(1, 0)")


# Article S0, on one device. Example 2 is below.
S0 = 'compile!(model, optimizer = "adam", loss = "mse", steps_per_execution = 16{more})?'


def test_s0_example_1_on_one_device(notebook):
    cell = notebook.execute(BUILT + "\n" + S0.format(more=""))
    check_error(cell, "SC0102", "needs an active strategy scope", line=2)
    card = check_card(cell, "SC0102", "sync_every")
    assert len(card[DIAGNOSTIC]["fixes"]) == 2
    # Both fixes run.
    notebook.run("let one = OneDeviceStrategy::new(cpu(0))?;")
    notebook.run(f"scope!(one, {{ {BUILT} {S0.format(more='')}; }});\ndrop(one);")
    notebook.run(f"{BUILT}\n{COMPILE}")


def test_s0_example_3_the_fallback(notebook):
    cell = notebook.run(BUILT + "\n" + S0.format(more=", drop_unsupported = true") + ";")
    message = "steps_per_execution not supported.  Falling back to standard compilation"
    card = check_card(cell, "SC0102")
    assert message in card["text/plain"]
    # Other errors are not hidden.
    cell = notebook.execute(S0.format(more=", drop_unsupported = true, metric = accuracy()") + ";")
    check_error(cell, "SC0101", "did you mean `metrics`?")


def test_a_model_outlives_its_strategy(notebook):
    notebook.run("let short = MirroredStrategy::logical(2)?;")
    notebook.run(f"scope!(short, {{ {UNBUILT} }});\ndrop(short);")
    notebook.run(COMPILE + FIT)
    assert devices(notebook) == 2
    # And the strategy is no longer alive: no later card mentions it.
    notebook.run(BUILT + COMPILE)


def test_a_summary_is_shown(notebook):
    cell = notebook.run(UNBUILT + "\nmodel.summary()")
    check_static_html(cell.bundles[0]["text/html"])
    assert "not built" in cell.shown()
    cell = notebook.run("model.build((None, 5))?;\nmodel.summary()")
    assert "(None, 10)" in cell.shown() and "parameters: 71" in cell.shown()


def test_input_of_another_width(notebook):
    notebook.run(BUILT + COMPILE)
    cell = notebook.execute("fit!(model, make_regression(16, 8, 0)?)?")
    check_error(cell, "SC0411", "`Sequential` takes rows of 5 numbers, got rows of 8 numbers", line=1)
    cell = notebook.execute("let short = Dataset::from_arrays([[1.0], [2.0]], [0.5])?;")
    check_error(cell, "SC0704", "there are 2 rows in `x`, but 1 in `y`", line=1)


# A strategy is alive ----------------------------------------------------------------------------------

TABLE = [
    # model, written, compile, fit: the code of compile's or fit's error, or None
    ("in", BUILT, "in", "in", None),
    ("in", UNBUILT, "in", "out", None),
    ("in", BUILT, "out", "out", None),
    ("in", UNBUILT, "out", "in", None),
    ("out", BUILT, "in", None, "SC0201"),
    ("out", BUILT, "out", None, "SC0201"),
    ("out", UNBUILT, "in", "in", None),
    ("out", UNBUILT, "in", "out", None),
    ("out", UNBUILT, "out", None, "SC0201"),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("model", "written", "compile", "fit", "code"), TABLE)
def test_the_truth_table(strategy, model, written, compile, fit, code):
    strategy.run(at(model, written))
    cell = strategy.execute(at(compile, COMPILE))
    assert error(cell) == code
    if code is None:
        assert strategy.run(at(fit, FIT) + "\n" + SEEN).shown().endswith("(2, 2)")


# Article S3 -------------------------------------------------------------------------------------------


def test_s3_example_1_model_and_compile_outside(strategy):
    cell = strategy.execute("\n".join((BUILT, COMPILE)))
    check_error(cell, "SC0201", "4 variables are on cpu:0 only")
    card = check_card(cell, "SC0201", "TensorFlow would compile this and train on one device without a message")
    assert "strategy = none" in card["text/plain"] and "%%scope strategy" in card["text/plain"]
    for name in ("dense.weight", "cpu:0", "cpu:1"):
        assert name in card["text/html"], name
    strategy.run(BUILT + '\ncompile!(model, optimizer = "adam", loss = "mse", strategy = none)?;')


@pytest.mark.parametrize(
    ("profile", "text"),
    [
        ("tf-2.4", "It is most likely due to not all layers or the model or optimizer being created outside"),
        ("tf_keras-2.18", "It is most likely because some layers, model, or optimizer was being created outside"),
        ("keras-3", "`colocate_vars_with` must only be passed a variable created in this"),
    ],
)
def test_s3_example_1_bis_compile_moved_inside(strategy, profile, text):
    strategy.run(f"%profile {profile}")
    cell = strategy.execute(BUILT + "\n" + at("in", COMPILE))
    strategy.run("%profile none")
    check_error(cell, "SC0201")
    # Terminals wrap: the words count.
    shown = " ".join(check_card(cell, "SC0201")["text/plain"].split())
    assert text in re.sub(r"\s*\|\s*", " ", shown), shown


def test_s3_example_2_everything_inside(strategy):
    strategy.run(at("in", BUILT, COMPILE))
    assert strategy.run(FIT + "\n" + SEEN).shown() == "(2, 2)"


def test_s3_through_a_function(strategy):
    strategy.run(FUNCTION)
    cell = strategy.run(at("in", "let model = build_model()?;", COMPILE, FIT) + "\n" + SEEN)
    assert cell.shown() == "(2, 2)"
    cell = strategy.execute("let model = build_model()?;\n" + COMPILE)
    check_error(cell, "SC0201")


def test_s3_example_3_a_custom_model_with_and_without_build(strategy):
    strategy.run(CUSTOM)
    made = 'let model = Model::of(Custom { hidden: None, last: None }, Outputs::new("Custom", 1))?;'
    for build, before in (("model.build((None, 5))?;", "71"), ("", "0")):
        strategy.run(at("in", made, build, COMPILE))
        assert strategy.run("model.num_parameters()").shown() == before
        assert strategy.run(FIT + "\n" + SEEN).shown() == "(2, 2)"
        cell = strategy.run("let equal = model.placement()?.copies_are_equal();\n(model.num_parameters(), equal)")
        assert cell.shown() == "(71, true)"
    (result,) = strategy.run("evaluate!(model, data, verbose = false)?").bundles
    loss, examples = result["text/plain"].splitlines()[1].split()[:2]
    assert 0 < float(loss) < 10 and examples == "16", result
    assert len(strategy.run("model.predict(&data)?").shown().splitlines()) == 16
    # The grid names the variables by their fields.
    bundle = strategy.run("placement(&model);").bundles[-1]
    check_static_html(bundle["text/html"])
    assert "hidden.weight" in bundle["text/html"] and "cpu:1" in bundle["text/html"]


def test_s0_example_2_inside_a_mirrored_scope(strategy):
    strategy.run("%profile tf-2.3")
    cell = strategy.execute(at("in", BUILT, S0.format(more="") + ";"))
    strategy.run("%profile none")
    assert error(cell) is None, "it is right here, whatever TensorFlow 2.3 says"
    strategy.run("let history = fit!(model, data, epochs = 3, batch_size = 2, verbose = false)?;")
    # 8 batches are one execution of at most 16, and 8 steps and all-reduces all the same.
    shown = strategy.run("let all = history.counters;\n(all.executions, all.optimizer_steps, all.all_reduces)").shown()
    assert shown == "(3, 24, 24)"


# Scopes and cells -------------------------------------------------------------------------------------


def test_a_whole_cell_in_a_scope(strategy):
    cell = strategy.run(f"%%scope strategy\n{UNBUILT}\n{COMPILE}\nmodel")
    assert "not built" in cell.shown()
    strategy.run(FIT)
    assert devices(strategy) == 2
    assert strategy.run("stratoscope::strategy::scope::depth()").shown() == "0"
    cell = strategy.execute(f"%%scope strategy\n{BUILT}\nlet other = Sequential([Dense(0)])?;")
    check_error(cell, "SC0915", line=3)
    assert strategy.run("stratoscope::strategy::scope::depth()").shown() == "0"


def test_a_scope_is_a_value_too(strategy):
    made = "Sequential([Dense(1).input_shape(5)])?"
    strategy.run(f"let model = scope!(strategy, {{ let inner = {made}; inner }});")
    assert devices(strategy) == 2
    strategy.run(f"let model = scope!(strategy, {{ {made} }});\n{COMPILE}")


def test_a_scope_in_a_loop_keeps_what_it_makes(strategy):
    """As at the top of a cell: what the scope's `let`s bind is there after it, until the block ends."""
    cell = strategy.run(f"""use stratoscope::strategy::scope::depth;
for turn in 0..2 {{
    scope!(strategy, {{
        {BUILT}
        scope!(strategy, {{ let inside = depth(); }});
        {COMPILE}
    }});
    println!("{{turn}} {{}} {{inside}} {{}}", model.placement()?.devices.len(), depth());
}}""")
    assert cell.stream().split("\n")[:2] == ["0 2 2 0", "1 2 2 0"], cell.stream()


def test_a_default_acts_from_the_next_cell_on(strategy):
    strategy.run(f"strategy.set_default();\n{BUILT}")
    assert devices(strategy) == 1, "not in the cell that sets it"
    strategy.run(BUILT)
    assert devices(strategy) == 2
    strategy.run("stratoscope::strategy::scope::reset_to_default();")
    strategy.run(BUILT)
    assert devices(strategy) == 1


def test_scopes_of_two_strategies(strategy):
    strategy.run("let other = OneDeviceStrategy::new(cpu(0))?;")
    cell = strategy.execute(f"scope!(strategy, {{ scope!(other, {{ {BUILT} }}); }});")
    check_error(cell, "SC0204", "cannot be entered inside")
    strategy.run(f"scope!(strategy, {{ scope!(strategy, {{ {BUILT} }}); }});")
    assert devices(strategy) == 2
    strategy.run(COMPILE)
    cell = strategy.execute(f"scope!(other, {{ {FIT} }});")
    check_error(cell, "SC0205", "`fit!` is in `other`'s scope, but the model belongs to `strategy`")
    strategy.run(FIT + "\ndrop(other);")


def test_an_optimizer_trains_one_model(strategy):
    strategy.run("let optimizer = Adam::new(0.01);")
    compiled = 'compile!(model, optimizer = optimizer.clone(), loss = "mse")?;'
    strategy.run(at("in", BUILT, compiled))
    strategy.run("let first = model.clone();")
    check_error(strategy.execute(at("in", BUILT, compiled)), "SC0202")


def test_a_failure_inside_a_scope_leaves_it(strategy):
    strategy.run("let before = 1;")
    cell = strategy.execute(at("in", "let early = Sequential([Dense(1).input_shape(5)])?;", "let model = Sequential([Dense(0)])?;"))
    failure = check_error(cell, "SC0915", line=3)
    assert strategy.run("stratoscope::strategy::scope::depth()").shown() == "0"
    assert strategy.run("before").shown() == "1"
    # The variables that the failing cell created before are kept, and the error says so.
    assert error(strategy.execute("early")) is None
    assert "early" in re.search(r"(?s)kept: .*", without_ansi("\n".join(failure["traceback"])))[0]


def test_a_scope_inside_a_function(strategy):
    """There the macro opens the scope, elsewhere the kernel does."""
    strategy.run("""use stratoscope::diagnostics::Result;
use stratoscope::strategy::scope::depth;
fn depths(strategy: &MirroredStrategy) -> Result<(usize, usize, usize)> {
    scope!(strategy, {
        let outer = depth();
        scope!(strategy, { let inner = depth(); });
    });
    let value = scope!(strategy, { depth() + 10 });
    Ok((outer, inner, value))
}
fn fails(strategy: &MirroredStrategy) -> Result<()> {
    scope!(strategy, { Sequential([Dense(0)])?; });
    Ok(())
}""")
    assert strategy.run("(depths(&strategy)?, depth())").shown() == "((1, 2, 11), 0)"
    assert strategy.run("(fails(&strategy).is_err(), depth())").shown() == "(true, 0)"
