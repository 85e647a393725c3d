//! What cards advise: an edit leads to a cell that is accepted, and code in a fix is code of this notebook.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use stratoscope_diagnostics::arguments::{CALLS, OPTIMIZERS};
use stratoscope_diagnostics::check::{CellContext, check_cell, resolve};
use stratoscope_diagnostics::render::apply;
use stratoscope_diagnostics::rules::{CATALOGUE, explain};
use stratoscope_diagnostics::{Diagnostic, Severity};
use syn::parse::Parser;

use super::{all, context};

/// Cells with slips beside those of the pages.
const CELLS: &[&str] = &[
    "let o = Adam::new(1);",
    "let o = Adam::new(1).clipnorm(1.0);",
    "let o = AdamW::new(-1.0);",
    "let o = AdamW::new(-5e-5);",
    "let o = SGD::new(-1);",
    "let o = SGD::new(\"0.01\");",
    "let o = SGD::new(true).momentum(0.9);",
    "let o = Adam::new(1e-3).weight_decay(0.01);",
    "let o = SGD::new(0.1).beta_1(0.5).nesterov(True);",
    "let o = AdamW::new(lr = 5e-5);",
    "let o = AdamW::new(5e-5, weight_decay = 0.01);",
    "let o = AdamW::new(5e-5).clipnorm(1.0).clipvalue(0.5);",
    "let o = AdamW::new(5e-5).beta_2(-0.9).epsilon(\"1e-6\");",
    "compile!(model, optimizer = 1)?;",
    "compile!(model, optimizer = 5e-5)?;",
    "compile!(model, optimizer = 3, loss = \"mse\")?;",
    "compile!(model, loss = \"mse\")?;",
    "compile!(model, optimizer = o, metric = [accuracy()])?;",
    "compile!(model, optimizer = o, steps_per_execution = 0, sync_every = 2.0)?;",
    "compile!(model, optimizer = o, drop_unsupported = True)?;",
    "compile!(model, optimizer = o, learning_rate = 1e-3)?;",
    "compile!(model, optimizer = o, clipnorm = 1.0)?;",
    "compile!(model, optimizer = Adam::new(1e-3), lr = 1e-4)?;",
    "compile!(model, optimizer = Adam::new(1e-3), weight_decay = 0.01)?;",
    "compile!(model, optimizer = \"sgd\", momentum = 0.9)?;",
    "compile!(model, optimizer = \"adam\", learning_rate = 1e-4)?;",
    "compile!(model, optimizer = o, run_eagerly = true)?;",
    "compile!(model,\n    optimizer = o,\n    jit_compile = true,\n    loss = l,\n)?;",
    "compile!(model, optimizer = o, epochs = 3)?;",
    "compile!(model, optimizer = o, loss = Adam::new(1e-3))?;",
    "compile!(model, optimizer = o, loss = 3, metrics = true)?;",
    "compile!(model, optimizer = o, loss = \"sparse_categorical_crossentropi\", metrics = [\"acuracy\", \"f2\"])?;",
    "compile!(model, optimizer = o, strategy = \"none\")?;",
    "compile!(model, optimizer = o, optimizer = p)?;",
    "compile!(model, optimizer = o, steps_per_execution = 4, experimental_steps_per_execution = 4)?;",
    "fit!(model, (x, y), epochs = 3)?;",
    "fit!(model, (&x, &y))?;",
    "evaluate!(model, (vec![[1.0, 2.0]], vec![0]))?;",
    "fit!(model, train, validation_data = (a, b))?;",
    "fit!(model, train, validation_data = 3)?;",
    "fit!(model, train, epoch = 3, bs = 8)?;",
    "fit!(model, train, epochs = -3, batch_size = \"8\", shuffle = 1)?;",
    "fit!(model, train, validation_split = 20)?;",
    "fit!(model, train, validation_data = dev, validation_split = 0.2)?;",
    "fit!(model, train, learning_rate = 1e-3, sample_weight = w)?;",
    "evaluate!(model, dev, batchsize = 8, return_dict = true)?;",
];

fn statements(cell: &str) -> Option<TokenStream> {
    let code: Vec<&str> = cell
        .lines()
        .filter(|line| !line.starts_with(['%', ':']))
        .collect();
    let tokens: TokenStream = code.join("\n").parse().ok()?;
    let is_rust = syn::Block::parse_within.parse2(tokens.clone()).is_ok();
    is_rust.then_some(tokens)
}

fn errors(found: &[Diagnostic]) -> Vec<String> {
    let errors = found
        .iter()
        .filter(|found| found.severity == Severity::Error);
    errors.map(|found| found.one_line()).collect()
}

#[test]
fn an_edit_leads_to_a_cell_that_is_accepted() {
    let mut edits = 0;
    for (page, mut found) in all() {
        let context = explain(page.code).map(context).unwrap_or_default();
        resolve(page.bad, &mut found);
        for fix in found.fixes.iter().filter(|fix| !fix.edits.is_empty()) {
            let after = apply(page.bad, fix)
                .unwrap_or_else(|| panic!("{}: {fix:?} cannot be applied", page.code));
            assert!(
                statements(&after).is_some(),
                "{}: no Rust: {after}",
                page.code
            );
            let left = check_cell(&after, &context);
            assert_eq!(
                errors(&left),
                [""; 0],
                "{}: {}\n{after}",
                page.code,
                fix.title
            );
            edits += 1;
        }
    }
    assert!(edits > 20, "{edits} edits");
}

#[test]
fn an_edit_takes_its_problem_away_and_brings_no_other() {
    let mut edits = 0;
    for cell in CELLS {
        assert!(statements(cell).is_some(), "no Rust: {cell}");
        let found = check_cell(cell, &CellContext::default());
        assert!(!found.is_empty(), "nothing is wrong with {cell}");
        let before = errors(&found);
        for problem in &found {
            assert!(!problem.fixes.is_empty(), "{problem}: no way out\n{cell}");
            for fix in problem.fixes.iter().filter(|fix| !fix.edits.is_empty()) {
                let after = apply(cell, fix).unwrap_or_else(|| panic!("{cell}: {fix:?}"));
                assert!(
                    statements(&after).is_some(),
                    "{}: no Rust: {after}",
                    fix.title
                );
                let left = errors(&check_cell(&after, &CellContext::default()));
                let is_fixed = !left.contains(&problem.one_line());
                let new: Vec<&String> = left.iter().filter(|it| !before.contains(it)).collect();
                assert!(
                    is_fixed && new.is_empty(),
                    "{cell}\n{}\n{after}\n{left:?}",
                    fix.title
                );
                edits += 1;
            }
        }
    }
    assert!(edits > 40, "{edits} edits");
}

/// An optimizer that is written in a cell is written there after every edit, too.
#[test]
fn no_edit_swaps_the_optimizer() {
    for cell in CELLS {
        let Some(own) = ["AdamW::new", "Adam::new", "SGD::new"]
            .into_iter()
            .find(|name| cell.contains(name))
            .filter(|_| !cell.contains("loss = Adam"))
        else {
            continue;
        };
        for problem in check_cell(cell, &CellContext::default()) {
            for fix in problem.fixes.iter().filter(|fix| !fix.edits.is_empty()) {
                let after = apply(cell, fix).expect("an edit applies");
                let dropped = after.matches("::new").count() < cell.matches("::new").count();
                assert!(
                    after.contains(own) || dropped,
                    "{cell}: {}\n{after}",
                    fix.title
                );
                assert!(
                    own == "AdamW::new" || !after.contains("AdamW"),
                    "{cell}\n{after}"
                );
            }
        }
    }
}

#[test]
fn rates_are_fixed_in_the_form_they_are_written_in() {
    let check = |cell: &str, title: &str, after: &str| {
        let found = check_cell(cell, &CellContext::default());
        assert_eq!(found.len(), 1, "{found:?}");
        let fix = &found[0].fixes[0];
        assert_eq!(fix.title, title);
        assert_eq!(apply(cell, fix).as_deref(), Some(after));
        found.into_iter().next().expect("one")
    };
    let found = check("Adam::new(1)", "write `Adam::new(1e-3)`", "Adam::new(1e-3)");
    assert_eq!(
        found.message,
        "`Adam::new(1)`: expected a float, with a point or an exponent"
    );
    assert!(found.why[0].starts_with("a rate of 1.0 is too high: Adam changes every weight"));
    let found = check("SGD::new(1)", "write `SGD::new(1.0)`", "SGD::new(1.0)");
    assert!(found.why.is_empty(), "{:?}", found.why);
    check("Adam::new(0)", "write `Adam::new(0.0)`", "Adam::new(0.0)");
    check(
        "AdamW::new(-1.0)",
        "write `AdamW::new(5e-5)`",
        "AdamW::new(5e-5)",
    );
    check(
        "AdamW::new(-3e-5)",
        "write `AdamW::new(3e-5)`",
        "AdamW::new(3e-5)",
    );
    check(
        "Adam::new(-1)",
        "write `Adam::new(1e-3)`",
        "Adam::new(1e-3)",
    );
    check(
        "SGD::new(-0.01)",
        "write `SGD::new(0.01)`",
        "SGD::new(0.01)",
    );
    check(
        "SGD::new(\"0.1\")",
        "write `SGD::new(0.1)`",
        "SGD::new(0.1)",
    );
    let cell = "Adam::new(1e-3).beta_1(-0.9)";
    check(cell, "write `.beta_1(0.9)`", "Adam::new(1e-3).beta_1(0.9)");
}

#[test]
fn arrays_in_place_of_a_data_set_become_one() {
    let check = |cell: &str, message: &str, expected: &str| {
        let found = check_cell(cell, &CellContext::default());
        assert_eq!(found.len(), 1, "{cell}: {found:?}");
        assert_eq!(
            (found[0].code.as_str(), found[0].message.as_str()),
            ("SC0120", message)
        );
        assert_eq!(apply(cell, &found[0].fixes[0]).as_deref(), Some(expected));
    };
    check(
        "fit!(model, (x, y), epochs = 3)?;",
        "`(x, y)`: expected `dataset`, got `two arrays`",
        "fit!(model, Dataset::from_arrays(x, y)?, epochs = 3)?;",
    );
    check(
        "evaluate!(model, (&self.x, &y))?;",
        "`(&self.x, &y)`: expected `dataset`, got `two arrays`",
        "evaluate!(model, Dataset::from_arrays(&self.x, &y)?)?;",
    );
    check(
        "fit!(model, train, validation_data = (a, vec![0, 1]))?;",
        "`validation_data = (a, vec![0, 1])`: expected `dataset`, got `two arrays`",
        "fit!(model, train, validation_data = Dataset::from_arrays(a, vec![0, 1])?)?;",
    );
}

/// The pieces of a text that stand in backticks.
fn code_of(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// A single bracket or quotation mark: what is missing, and no code.
fn is_sign(code: &str) -> bool {
    matches!(code, "(" | ")" | "[" | "]" | "{" | "}" | "\"" | "'" | "*/")
}

/// Commands of a shell and of the notebook, and variables of the environment, which are no Rust.
fn is_command(code: &str) -> bool {
    if code.contains('_') && code.chars().all(|c| c.is_ascii_uppercase() || c == '_') {
        return true;
    }
    let first = code.split_whitespace().next().unwrap_or_default();
    let known = [
        "stratoscope",
        "cargo",
        "rustup",
        "pip",
        "python",
        "export",
        "ulimit",
        "apt",
        "sysctl",
        "PATH",
        "HF_HUB_OFFLINE=0",
    ];
    known.contains(&first)
        || (first.starts_with(['%', '!', ':', '-', '/', '~']))
        || first.contains('=')
}

/// Code as tokens, if it is an expression, statements, a method, a field, a type or the name of a macro.
fn rust(code: &str) -> Option<TokenStream> {
    let code = code.replace('…', "x");
    let chosen = match code.as_str() {
        method if method.starts_with('.') => format!("x{method}"),
        name if name.ends_with('!') => format!("{name}()"),
        field if field.contains(": ") && !field.contains(['{', '(']) => format!("L {{ {field} }}"),
        _ => code,
    };
    let tokens: TokenStream = chosen.parse().ok()?;
    let fits = syn::parse2::<syn::Expr>(tokens.clone()).is_ok()
        || syn::parse2::<syn::Type>(tokens.clone()).is_ok()
        || syn::Block::parse_within.parse2(tokens.clone()).is_ok();
    fits.then_some(tokens)
}

/// Names that must exist: types and variants, and what is called.
fn called(tokens: TokenStream, names: &mut BTreeSet<String>) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    for (index, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Group(group) => called(group.stream(), names),
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                let is_called = matches!(trees.get(index + 1), Some(TokenTree::Group(_)));
                let is_macro = matches!(trees.get(index + 1), Some(TokenTree::Punct(sign)) if sign.as_char() == '!');
                if (name.starts_with(char::is_uppercase) || is_called || is_macro) && name.len() > 1
                {
                    names.insert(name);
                }
            }
            _ => {}
        }
    }
}

/// What a cell can name: the words of the prelude, functions and methods of our crates and of burn's and the
/// standard library's that cards speak of.
fn known() -> BTreeSet<String> {
    let sources = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.map(str::to_owned).collect()
    };
    let prelude = fs::read_to_string(sources.join("stratoscope/src/prelude.rs"));
    let mut known: BTreeSet<String> = words(&prelude.expect("the prelude")).into_iter().collect();
    let crates = [
        "stratoscope",
        "explain",
        "audit",
        "models",
        "run",
        "train",
        "inspect",
        "step",
        "arguments",
        "network",
        "metrics",
        "optim",
        "report",
        "strategy",
        "data",
        "bert",
    ];
    let mut pending: Vec<PathBuf> = crates.map(|name| sources.join(name).join("src")).to_vec();
    while let Some(path) = pending.pop() {
        if Path::is_dir(&path) {
            let entries = fs::read_dir(&path).expect("a folder of sources").flatten();
            pending.extend(entries.map(|entry| entry.path()));
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        for line in text.lines() {
            // Variants of an enum stand at the beginning of their lines.
            if line.trim_start().starts_with(char::is_uppercase) {
                known.extend(words(line.trim_start()).into_iter().next());
            }
            for word in ["fn ", "struct ", "enum ", "type ", "macro_rules! "] {
                if let Some((_, rest)) = line.split_once(word) {
                    known.extend(words(rest).into_iter().next());
                }
            }
        }
    }
    for argument in CALLS.iter().flat_map(|call| call.arguments) {
        known.insert(argument.name.to_owned());
    }
    for argument in OPTIMIZERS.iter().flat_map(|it| it.arguments) {
        known.insert(argument.name.to_owned());
    }
    let of_rust = "Ok Some None Result Vec vec String println print drop format move iter copied map collect into \
                   Box Class Value Path PathBuf trim let len clone to_owned is_empty filter contains";
    known.extend(of_rust.split(' ').map(str::to_owned));
    known
}

#[test]
fn code_in_a_fix_is_code_of_this_notebook() {
    let known = known();
    let mut checked = 0;
    let mut wrong = Vec::new();
    let pages = all().into_iter().map(|(_, found)| found);
    let cells = CELLS
        .iter()
        .flat_map(|cell| check_cell(cell, &CellContext::default()));
    for found in pages.chain(cells) {
        for fix in &found.fixes {
            // A card on Python names the line as it is written, then what it is in Rust.
            let of_python = usize::from(found.code == "SC1013");
            let pieces = code_of(&fix.title).skip(of_python);
            for code in pieces.filter(|code| !is_command(code) && !is_sign(code)) {
                checked += 1;
                let Some(tokens) = rust(code) else {
                    wrong.push(format!("{}: no Rust: `{code}`", found.code));
                    continue;
                };
                let mut names = BTreeSet::new();
                called(tokens, &mut names);
                let strange: Vec<&String> = names.difference(&known).collect();
                if !strange.is_empty() {
                    wrong.push(format!("{}: `{code}` names {strange:?}", found.code));
                }
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert!(checked > 80, "{checked} pieces of code");
    assert!(CATALOGUE.len() > 100);
}

/// What is raised while a cell runs names places; in the cell's text they are found, or nothing is replaced.
#[test]
fn run_time_findings_are_fixed_in_the_cell() {
    use stratoscope_diagnostics::rules::{
        DoubleSoftmax, HeadWritten, LabelOutOfRange, LossWithoutLogits, NoProbabilities,
        Probabilities, SoftmaxOverOneOutput,
    };
    use stratoscope_diagnostics::{Rule, check::resolve_at};
    let check =
        |cell: &str, line: usize, mut found: Diagnostic, title: &str, after: Option<&str>| {
            resolve_at(cell, &mut found, Some(line));
            let fix = &found.fixes[0];
            assert_eq!(fix.title, title, "{cell}");
            assert_eq!(apply(cell, fix).as_deref(), after, "{cell}");
        };
    let logits = |binary| {
        let outputs = NoProbabilities::Activation("linear".into());
        let loss = "L".into();
        LossWithoutLogits {
            loss,
            binary,
            outputs,
        }
        .diagnostic()
    };
    check(
        "compile!(a, loss = L { from_logits: true })?;\ncompile!(m, loss = CategoricalCrossentropy { from_logits: \
         false }.label_smoothing(0.1), optimizer = o)?;",
        2,
        logits(false),
        "write `from_logits: true`",
        Some(
            "compile!(a, loss = L { from_logits: true })?;\ncompile!(m, loss = CategoricalCrossentropy { \
             from_logits: true }.label_smoothing(0.1), optimizer = o)?;",
        ),
    );
    // A variable holds the loss: its name is not replaced.
    let cell = "compile!(m, optimizer = o, loss = loss)?;";
    check(cell, 1, logits(true), "write `from_logits: true`", None);
    let twice = DoubleSoftmax {
        loss: "BinaryCrossentropy".into(),
        classes: 1,
        outputs: Probabilities::Activation("sigmoid".into()),
    };
    check(
        "compile!(m, optimizer = o, loss = BinaryCrossentropy { from_logits: true })?;",
        1,
        twice.diagnostic(),
        "write `from_logits: false`",
        Some("compile!(m, optimizer = o, loss = BinaryCrossentropy { from_logits: false })?;"),
    );
    // The call is in a function of an earlier cell: nothing of this one is replaced.
    let one = SoftmaxOverOneOutput {
        loss: "L".into(),
        in_the_head: false,
    };
    let title =
        "for two classes with one output: `loss = BinaryCrossentropy { from_logits: true }`";
    check("train_it(&model)?;", 1, one.diagnostic(), title, None);

    let label = |call, elsewhere: Option<&str>, line, is_binary| {
        let rule = LabelOutOfRange {
            label: 7,
            row: 3,
            rows: 1,
            largest: 7,
            smallest: Some(0),
            classes: if is_binary { 2 } else { 4 },
            head: Some(HeadWritten {
                call,
                elsewhere: elsewhere.map(str::to_owned),
                line,
                is_binary,
            }),
            source: "arrays in memory".into(),
            text: None,
            call: "fit".into(),
        };
        rule.diagnostic()
    };
    let cell = "let other = Sequential([Dense(4)])?;\nlet model = Sequential([\n    Dense(4).activation(\"relu\"),\n    \
                Dense(4),\n])?;\nfit!(model, data)?;";
    let after = "let other = Sequential([Dense(4)])?;\nlet model = Sequential([\n    Dense(4).activation(\"relu\"),\n    \
                 Dense(8),\n])?;\nfit!(model, data)?;";
    check(
        cell,
        6,
        label(Some("Dense"), None, Some(2), false),
        "write `Dense(8)`",
        Some(after),
    );
    check(
        "let model = BertForSequenceClassification::from_pretrained(\"a\", 4)?;\nfit!(model, data)?;",
        2,
        label(Some("from_pretrained"), None, Some(1), false),
        "write `from_pretrained(\"…\", 8)`",
        Some(
            "let model = BertForSequenceClassification::from_pretrained(\"a\", 8)?;\nfit!(model, data)?;",
        ),
    );
    // The number has a name: it is the user's, and stays.
    let cell = "let n = 4;\nlet model = Sequential([Dense(n)])?;\nfit!(model, data)?;";
    check(
        cell,
        3,
        label(Some("Dense"), None, Some(2), false),
        "write `Dense(8)`",
        None,
    );
    let made = Some("`In[2]`, line 5");
    let cell = "fit!(model, data)?;";
    check(
        cell,
        1,
        label(Some("Dense"), made, None, false),
        "write `Dense(8)` in `In[2]`, line 5",
        None,
    );
    check(
        cell,
        1,
        label(Some("Dense"), None, None, true),
        "write `Dense(8)`, and `loss = SparseCategoricalCrossentropy { from_logits: true }`",
        None,
    );
}
