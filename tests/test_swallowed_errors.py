"""No error is swallowed: a call of ours whose error nobody looks at ends the cell with its card, every time. Errors that a
cell does look at are no error of the cell."""

import pytest

from kernel_client import DIAGNOSTIC, check_card, check_error, without_ansi

LOSS = "loss = SparseCategoricalCrossentropy { from_logits: true }"

# A model with settings, data that it can be trained on, and data with more columns than it takes.
GIVEN = f"""let data = make_classification(64, 4, 3, 0)?;
let net = Sequential([Dense(3).input_shape(4)])?;
compile!(net, optimizer = Adam::new(0.01), {LOSS})?;
let bad = make_classification(64, 7, 3, 0)?;
let other = Sequential([Dense(3).input_shape(4)])?;
compile!(other, optimizer = Adam::new(0.01), {LOSS})?;
fn train(net: &Sequential, data: &Dataset) -> stratoscope::diagnostics::Result<History> {{ fit!(net, data.clone(), epochs = 1) }}
fn train_silently(net: &Sequential, data: &Dataset) {{ fit!(net, data.clone(), epochs = 1); }}
fn train_unread(net: &Sequential, data: &Dataset) {{ let _history = fit!(net, data.clone(), epochs = 1); }}
fn works(net: &Sequential, data: &Dataset) -> bool {{ train(net, data).is_ok() }}"""

# Name: a cell that must end with its card.
SWALLOWED = {
    # As a statement.
    "fit": "fit!(net, bad, epochs = 1);\nprintln!(\"trained\");",
    "compile": "compile!(net, optimizer = Adam::new(0.01), loss = MeanSquaredError);\nprintln!(\"trained\");",
    "evaluate": "evaluate!(net, bad);\nprintln!(\"trained\");",
    "start": "start!(net, bad);\nprintln!(\"trained\");",
    "predict": "net.predict(&bad);\nprintln!(\"trained\");",
    "sweep": "sweep!(rate = [0.1] => { fit!(net, bad, epochs = 1)? });\nprintln!(\"trained\");",
    "a path": "stratoscope::fit!(net, bad, epochs = 1);\nprintln!(\"trained\");",
    "in brackets": "(fit!(net, bad, epochs = 1));\nprintln!(\"trained\");",
    "a function that trains": "train(&net, &bad);\nprintln!(\"trained\");",
    # Into nothing.
    "let _": "let _ = fit!(net, bad, epochs = 1);\nprintln!(\"trained\");",
    "_ =": "_ = fit!(net, bad, epochs = 1);\nprintln!(\"trained\");",
    "drop": "drop(fit!(net, bad, epochs = 1));\nprintln!(\"trained\");",
    "ok": "fit!(net, bad, epochs = 1).ok();\nprintln!(\"trained\");",
    "let _ is_err": "let _ = fit!(net, bad, epochs = 1).is_err();\nprintln!(\"trained\");",
    "let _ of predict": "let _ = net.predict(&bad);\nprintln!(\"trained\");",
    "ok of predict": "net.predict(&bad).ok();\nprintln!(\"trained\");",
    "let _ of a function": "let _ = train(&net, &bad);\nprintln!(\"trained\");",
    # In a block, a condition, a loop.
    "a block": "{ fit!(net, bad, epochs = 1); }\nprintln!(\"trained\");",
    "a condition": "if data.len() > 3 { fit!(net, bad, epochs = 1); }\nprintln!(\"trained\");",
    "a loop": "for e in 0..3 { fit!(net, bad, epochs = 1); }\nprintln!(\"trained\");",
    "a loop with let _": "for e in 0..3 { let _ = fit!(net, bad, epochs = 1); }\nprintln!(\"trained\");",
    "a loop with predict": "for e in 0..3 { net.predict(&bad); }\nprintln!(\"trained\");",
    "while": "let mut e = 0;\nwhile e < 3 { e += 1; fit!(net, bad, epochs = 1); }\nprintln!(\"trained\");",
    "match": "match 1 { 1 => { fit!(net, bad, epochs = 1); } _ => {} }\nprintln!(\"trained\");",
    # In a closure, a function, a trial, on a thread.
    "a closure": "let go = || { fit!(net, bad, epochs = 1); };\ngo();\nprintln!(\"trained\");",
    "a closure with let _": "(0..3).for_each(|_| { let _ = fit!(net, bad, epochs = 1); });\nprintln!(\"trained\");",
    "a closure with predict": "(0..3).for_each(|_| { net.predict(&bad); });\nprintln!(\"trained\");",
    "a function": "train_silently(&net, &bad);\nprintln!(\"trained\");",
    "a function that binds": "train_unread(&net, &bad);\nprintln!(\"trained\");",
    "results that are counted": "let n = (0..3).map(|_| fit!(net, bad, epochs = 1)).count();\nprintln!(\"trained\");",
    "results that are collected": "let all: Vec<_> = (0..3).map(|_| fit!(net, bad, epochs = 1)).collect();\ndrop(all);\nprintln!(\"trained\");",
    "a list": "drop(vec![fit!(net, bad, epochs = 1)]);\nprintln!(\"trained\");",
    "a trial": "let s = sweep!(rate = [0.1] => { fit!(net, bad, epochs = 1); 1.0 })?;\nprintln!(\"trained\");",
    "a macro": "macro_rules! go { ($net:expr, $data:expr) => { fit!($net, $data, epochs = 1); } }\ngo!(net, bad);\nprintln!(\"trained\");",
    "a callback": "fit!(net, data, epochs = 1, callbacks = [on_epoch_end(|_| { evaluate!(other, bad); })])?;\nprintln!(\"trained\");",
    # As the last line.
    "the last line": "fit!(net, bad, epochs = 1)",
    "the last line, compile": "compile!(net, optimizer = Adam::new(0.01), loss = MeanSquaredError)",
    "the last line, predict": "net.predict(&bad)",
    "the last line, a function": "train(&net, &bad)",
    "the last line, a variable": "let run = start!(net, bad);\nrun",
    "the last line, a closure's": "(|| fit!(net, bad, epochs = 1))()",
    "the last line of a scope": f"let one = OneDeviceStrategy::new(cpu(0))?;\nscope!(one, {{\n    let inside = Sequential([Dense(3).input_shape(4)])?;\n"
                                f"    compile!(inside, optimizer = Adam::new(0.01), {LOSS});\n    fit!(inside, bad, epochs = 1);\n}});\nprintln!(\"trained\");",
    # As if it were good.
    "a variable": "let history = fit!(net, bad, epochs = 1);\nhistory.plot();\nprintln!(\"trained\");",
    "a variable that is not used": "let run = start!(net, bad);\nprintln!(\"trained\");",
    "a method": "fit!(net, bad, epochs = 1).plot();\nprintln!(\"trained\");",
    "a field": "let loss = evaluate!(net, bad).loss;\nprintln!(\"trained\");",
    "two at once": "let (a, b) = (fit!(net, data, epochs = 1), fit!(net, bad, epochs = 1));\nprintln!(\"trained\");",
    # By a panic.
    "unwrap": "fit!(net, bad).unwrap();",
    "expect": "fit!(net, bad).expect(\"it trains\");",
    "unwrap of predict": "let p = net.predict(&bad).unwrap();",
    "unwrap in a closure": "let go = || fit!(net, bad, epochs = 1).unwrap();\ngo();",
}

# Name: a cell that looks at the error, and what it prints.
HANDLED = {
    "if let Err": ("if let Err(error) = fit!(net, bad, epochs = 1) { println!(\"{}\", error.code); }", "SC"),
    "match": ("match fit!(net, bad, epochs = 1) { Ok(_) => println!(\"good\"), Err(_) => println!(\"failed\") }", "failed"),
    "is_err": ("println!(\"{}\", fit!(net, bad, epochs = 1).is_err());", "true"),
    "ok, used": ("if fit!(net, bad, epochs = 1).ok().is_none() { println!(\"none\"); }", "none"),
    "a variable": ("let tried = fit!(net, bad, epochs = 1);\nif let Err(error) = &tried { println!(\"{error}\"); }", "SC"),
    "a variable, asked": ("let tried = fit!(net, bad, epochs = 1);\nassert!(tried.is_err());\nprintln!(\"asked\");", "asked"),
    "unwrap_or_else": ("let n = fit!(net, bad, epochs = 1).map_or(0, |it| it.epochs.len());\nprintln!(\"{n}\");", "0"),
    "counted": ("let n = (0..3).map(|_| fit!(net, bad, epochs = 1)).filter(|it| it.is_err()).count();\nprintln!(\"{n}\");", "3"),
    "a function that asks": ("println!(\"{}\", works(&net, &bad));", "false"),
    "a function that asks, of a closure": (
        "{ let go = |d: &Dataset| train(&net, d);\nif go(&bad).is_err() { println!(\"asked\"); } }", "asked"),
    "predict": ("if net.predict(&bad).is_err() { println!(\"asked\"); }", "asked"),
    "printed": ("println!(\"{:?}\", fit!(net, bad, epochs = 1).map(|_| ()));", "Err(SC"),
    "no error": ("fit!(net, data, epochs = 1);\nlet _ = evaluate!(net, data);\nnet.predict(&data);\nprintln!(\"good\");", "good"),
    "a good variable": ("let history = fit!(net, data, epochs = 2);\nprintln!(\"{}\", history.epochs.len());", "2"),
    "a good last line": ("println!(\"good\");\nfit!(net, data, epochs = 1)", "good"),
    "question marks": ("let h = fit!(net, data, epochs = 1)?;\ncompile!(net, optimizer = Adam::new(0.01), " + LOSS + ")?;\nprintln!(\"good\");", "good"),
    "another's result": ("\"x\".parse::<i32>().ok();\nlet _ = std::fs::remove_file(\"no such file\");\nprintln!(\"good\");", "good"),
}


@pytest.fixture(scope="module", autouse=True)
def given(kernel):
    kernel.run(GIVEN)


def fails_with_its_card(cell):
    """The cell ended with a card of ours, and nothing behind the call ran."""
    assert cell.errors, f"{cell.code!r} is no error"
    error = cell.errors[0]
    code = error["ename"]
    assert code.startswith("SC"), error
    # The call may stand in a function of another cell.
    check_error(cell, code, without_line=True)
    card = check_card(cell, code)
    assert "trained" not in cell.stream(), cell.stream()
    for bundle in cell.bundles:
        assert "Diagnostic {" not in bundle.get("text/plain", ""), bundle
    assert "Diagnostic {" not in without_ansi("\n".join(error["traceback"]))
    return card[DIAGNOSTIC]


@pytest.mark.parametrize("name", SWALLOWED)
def test_an_error_that_nobody_looks_at_ends_the_cell_every_time(kernel, name):
    for _ in range(2):
        fails_with_its_card(kernel.execute(SWALLOWED[name]))
    # A strategy that lives on would be missed around the next models.
    kernel.execute("%reset one")


@pytest.mark.parametrize("name", HANDLED)
def test_an_error_that_is_looked_at_is_no_error_of_the_cell(kernel, name):
    code, printed = HANDLED[name]
    cell = kernel.execute(code)
    assert not cell.errors, cell.errors
    assert printed in cell.stream(), cell.stream()
    errors = [it for it in cell.diagnostics if it[DIAGNOSTIC]["severity"] == "error"]
    assert not errors, errors


def test_an_error_on_a_thread_ends_the_cell(kernel):
    cell = kernel.execute(
        "let (d, n) = (bad.clone(), net.clone());\nstd::thread::spawn(move || { fit!(n, d, epochs = 1); }).join().unwrap();")
    fails_with_its_card(cell)


def test_an_error_in_a_variable_of_a_closure_is_the_cells_and_the_variable_stays(kernel):
    fails_with_its_card(kernel.execute("let tried = train(&net, &bad);"))
    cell = kernel.execute("println!(\"{}\", tried.is_err());")
    assert cell.stream().strip() == "true"


def test_the_words_of_an_expect_stand_on_the_card(kernel):
    card = fails_with_its_card(kernel.execute("fit!(net, bad).expect(\"it trains\");"))
    assert {"name": "panic", "value": "it trains"} in card["evidence"], card


def test_the_line_is_that_of_the_statement(kernel):
    cell = kernel.execute("let a = 1;\nlet n = (0..3).map(|_| fit!(net, bad, epochs = 1)).count();\nlet b = 2;")
    fails_with_its_card(cell)
    check_error(cell, cell.errors[0]["ename"], line=2)


def test_a_missing_semicolon_is_added_with_its_question_mark(kernel):
    cell = kernel.execute("let history = fit!(net, data, epochs = 1)")
    card = fails_with_its_card(cell)
    assert card["code"] == "SC1012"
    [fix] = card["fixes"]
    assert [edit["replacement"] for edit in fix["edits"]] == ["?;"]
    kernel.run("let history = fit!(net, data, epochs = 1)?;")
    kernel.run("history.plot();")


def test_no_advice_hides_an_error(kernel):
    for code in ("std::fs::remove_file(\"no such file\");", "fn forgets() { std::fs::remove_file(\"no such file\"); }",
                 "compile!(net, optimizer = Adam::new(0.01), loss = MeanSquaredError);"):
        cell = kernel.execute(code)
        assert "let _" not in cell.shown(), cell.shown()


def test_a_failed_compile_names_the_settings_in_force(kernel):
    kernel.run(f"compile!(net, optimizer = Adam::new(0.01), {LOSS})?;")
    card = fails_with_its_card(kernel.execute("compile!(net, optimizer = Adam::new(0.5), loss = MeanSquaredError)?;"))
    [force] = [it["value"] for it in card["evidence"] if it["name"] == "still in force"]
    assert "Adam::new(1e-2)" in force and "SparseCategoricalCrossentropy" in force, force
    kernel.run("fit!(net, data)?;")


def test_a_failed_trial_is_no_error_of_the_sweep(kernel):
    cell = kernel.run("let tried = sweep!(fails = [true, false] => {\n"
                      "    let history = fit!(net, if fails { bad.clone() } else { data.clone() }, epochs = 1)?;\n    history\n})?;\n"
                      "println!(\"{}\", tried.trials.len());")
    assert cell.stream().strip().endswith("2"), cell.stream()
