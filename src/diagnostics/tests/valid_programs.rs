//! Valid programs of many shapes: the checker of texts says nothing about any of them.
//!
//! What only a run decides is tested where it runs: `src/train/tests/train/heads.rs`, `tests/test_false_alarms.py`.

use stratoscope_diagnostics::Profile;
use stratoscope_diagnostics::check::{CellContext, check_cell};

/// Heads with the losses that fit them: activation of the last layer, outputs, loss.
const HEADS: &[(&str, usize, &str)] = &[
    ("", 3, "SparseCategoricalCrossentropy { from_logits: true }"),
    (
        ".activation(\"softmax\")",
        3,
        "SparseCategoricalCrossentropy { from_logits: false }",
    ),
    (
        ".activation(\"softmax\")",
        3,
        "CategoricalCrossentropy { from_logits: false }.label_smoothing(0.1)",
    ),
    (
        ".activation(Activation::Linear)",
        3,
        "\"sparse_categorical_crossentropy\"",
    ),
    ("", 1, "BinaryCrossentropy { from_logits: true }"),
    (
        ".activation(\"sigmoid\")",
        1,
        "BinaryCrossentropy { from_logits: false }",
    ),
    (".activation(\"sigmoid\")", 1, "MeanSquaredError"),
    (".activation(\"tanh\")", 1, "\"mse\""),
    ("", 1, "loss"),
    ("", 3, "if logits { one } else { other }"),
];

const OPTIMIZERS: &[&str] = &[
    "Adam::new(1e-3)",
    "Adam::new(rate)",
    "SGD::new(0.01).momentum(0.9).nesterov(true)",
    "AdamW::new(warmup_linear(5e-5, 0.1)).weight_decay(0.01).global_clipnorm(1.0)",
    "AdamW::new(5e-5).exclude_from_weight_decay([\"bias\", \"LayerNorm\"]).epsilon(1e-6)",
    "Adam::new(PolynomialDecay::new(5e-5, 1000).end_learning_rate(0.0)).clipvalue(0.5)",
    "SGD::new(1.0)",
    "\"adamw\"",
    "optimizer",
    "optimizer.clone()",
    "optimizers[index].clone()",
    "make_optimizer(rate, &names)",
];

/// Arguments of `compile!` behind optimizer and loss.
const SETTINGS: &[&str] = &[
    "",
    ", metrics = [accuracy(), macro_f1()]",
    ", metrics = [\"accuracy\"], gradient_accumulation_steps = 4",
    ", metrics = metrics.clone(), steps_per_execution = n + 1, strategy = &strategy",
    ", sync_every = 8, drop_unsupported = true, strategy = none",
    ",\n    metrics = vec![accuracy()],\n    gradient_accumulation_steps = batches.len(),\n",
];

/// Arguments of `fit!` behind model and data.
const RUNS: &[&str] = &[
    "",
    ", epochs = 3, batch_size = 32",
    ", epochs = 2, validation_data = dev, verbose = false",
    ", epochs = n, validation_split = 0.2, seed = 7, shuffle = false",
    ", epochs = 2, batch_size = 64, group_by_length = true",
    ", callbacks = [on_epoch_end(|epoch| println!(\"{}, {}\", epoch.epoch, epoch.loss)), LearningRateLogger]",
    ", callbacks = [EarlyStopping::new(\"val_loss\").patience(2)], checkpoint = \"best\", resume = true",
    ", class_weight = [(0, 1.0), (1, 2.5)], steps_per_epoch = 5, validation_steps = 2",
    ", epochs = if quick { 1 } else { 10 }, max_length = lengths.iter().copied().max().unwrap_or(64)",
    ", initial_epoch = 2, epochs = 5, validation_freq = 2, validation_data = Dataset::from_arrays(x, y)?",
];

/// Shapes around a `compile!` (`C`) and a `fit!` (`F`), each an expression that ends in `?`.
const SHAPES: &[&str] = &[
    "C; F;",
    "let receipt = C;\nlet history = F;\nhistory.plot();",
    "scope!(strategy, {\n    let model = build()?;\n    C;\n    F;\n});",
    "%%scope strategy\nC;\nF;",
    "for rate in [1e-3, 1e-4] {\n    C;\n    F;\n}",
    "let run = |rate: f64| -> Result<()> { C; F; Ok(()) };\nrun(1e-3)?;",
    "fn train(model: &Model, train: &Dataset) -> Result<History> {\n    C;\n    Ok(F)\n}",
    "struct Trainer { model: Sequential, train: Dataset }\nimpl Trainer {\n    fn run(&self) -> Result<()> { let \
     model = &self.model; C; F; Ok(()) }\n}",
    "macro_rules! run { ($model:expr, $($rest:tt)*) => {{ compile!($model, $($rest)*)?; fit!($model, train)? }} }\n\
     run!(model, optimizer = Adam::new(1e-3)); C; F;",
    "if quick { C; } else { F; }",
    "match kind { Kind::A => { C; } _ => { F; } }",
    "let results: Vec<_> = (0..3).map(|seed| { let model = build(seed)?; C; Ok(F) }).collect::<Result<_>>()?;",
    "let best = loop {\n    C;\n    let history = F;\n    if history.epochs[0].loss < 0.1 { break history; }\n};",
    "let handle = std::thread::spawn(move || -> Result<History> { C; Ok(F) });",
    "let models = vec![(\"a\", a), (\"b\", b)];\nfor (name, model) in &models {\n    println!(\"{name}: {:?}\", C);\n    F;\n}",
    "mod mine { use stratoscope::prelude::*; pub fn go(model: &Sequential, train: &Dataset) -> Result<()> { C; F; Ok(()) } }",
    "async { C; F; Ok::<_, Box<dyn std::error::Error>>(()) };",
    "assert!(F.epochs.len() > 0); C;",
    ":dep itertools = \"0.14\"\n// what is next\nC; F;",
    "let text = \"compile!(model, optimiser = 1)\"; // fit!(model, epoch = 3)\nC; F;",
    "let shown = stringify!(compile!(model, optimiser = 1)); C; F;",
];

/// Cells that have no such shape.
const OTHERS: &[&str] = &[
    "let x = vec![[1.0, 2.0], [3.0, 4.0]];\nlet y = vec![0, 1];\nfit!(model, Dataset::from_arrays(x, y)?, epochs = 3)?;",
    "evaluate!(model, dev)?",
    "let [a, b] = [evaluate!(one, dev, batch_size = 8)?, evaluate!(two, &dev, steps = 2, verbose = false)?];",
    "evaluate!(self.models[0], (dev.take(8)))?;",
    "fit!(model, (train), epochs = 1)?;",
    "fit!(models.first().unwrap(), splits.0, validation_data = splits.1)?;",
    "compile!(&model, optimizer = Adam::new(f64::from(rate)))?;",
    "compile!(model, optimizer = { let rate = 1e-3; Adam::new(rate) })?;",
    "compile!(model, optimizer = Adam::new(if warm { 1e-3 } else { 0.0 }))?;",
    "compile!(model, optimizer = Adam::new(1e-3).clone())?;",
    "compile!(model, optimizer = crate::mine::Nadam::new(1))?;",
    "compile!(model, optimizer = SGD::new(-(-0.1)))?;",
    "struct Adam; impl Adam { fn new(n: usize) -> Self { Adam } }\nlet a = Adam::new(1);",
    "let optimizers: Vec<Box<dyn Fn() -> Optimizer>> = vec![Box::new(|| Adam::new(1e-3).into())];",
    "let strategy = MirroredStrategy::on([cpu(0), cpu(1)])?;",
    "let strategy = ParameterServerStrategy::logical(2, 1)?;",
    "let compile = |x: usize| x + 1; let fit = compile(2); fit == 3",
    "let evaluate = 1; evaluate != 2",
    "model.predict([\"a text\"])?",
    "let loss = BinaryCrossentropy { from_logits: false };",
    "let rates: Vec<f64> = (0..10).map(|step| warmup_linear(5e-5, 0.1).plan(100).rate(step)).collect();",
    "fit!(model, train, epochs = a < b as usize, seed = m::<u64, 2>(3))?;",
    "fit!(model, train, epochs = 1, callbacks = [on_batch_end(|record| { let (a, b) = (1, record.batches); a == b; Flow::Continue })])?;",
    "println!(\"{:?}\", fit!(model, train)?.epochs.last());",
];

fn program(shape: &str, compile: &str, fit: &str) -> String {
    // A letter that stands alone.
    let mut text = String::new();
    let mut previous = ' ';
    let letters: Vec<char> = shape.chars().collect();
    for (index, &letter) in letters.iter().enumerate() {
        let next = letters.get(index + 1).copied().unwrap_or(' ');
        let alone = !previous.is_alphanumeric() && !next.is_alphanumeric() && next != '_';
        match letter {
            'C' if alone => text += compile,
            'F' if alone => text += fit,
            _ => text.push(letter),
        }
        previous = letter;
    }
    text
}

fn programs() -> Vec<String> {
    let mut programs: Vec<String> = OTHERS.iter().map(|cell| (*cell).to_owned()).collect();
    for (index, shape) in SHAPES.iter().enumerate() {
        for turn in 0..HEADS.len() {
            // Every head, optimizer, setting and run meets every shape in turn.
            let (activation, outputs, loss) = HEADS[(turn + index) % HEADS.len()];
            let optimizer = OPTIMIZERS[(turn * 5 + index) % OPTIMIZERS.len()];
            let setting = SETTINGS[(turn + index * 2) % SETTINGS.len()];
            let run = RUNS[(turn * 2 + index) % RUNS.len()];
            let compile =
                format!("compile!(model, optimizer = {optimizer}, loss = {loss}{setting})?");
            let fit = format!("fit!(model, train{run})?");
            let made = format!(
                "let model = Sequential([Dense(8).activation(\"relu\"), Dense({outputs}){activation}])?;\n"
            );
            let text = program(shape, &compile, &fit);
            programs.push(match text.starts_with(['%', ':']) {
                true => text,
                false => made + &text,
            });
        }
    }
    programs
}

/// As Rust, without the lines that are the kernel's.
fn is_rust(cell: &str) -> bool {
    let code: Vec<&str> = cell
        .lines()
        .filter(|line| !line.starts_with(['%', ':']))
        .collect();
    let code = format!("fn cell() -> R {{ {} }}", code.join("\n"));
    syn::parse_file(&code).is_ok()
}

#[test]
fn valid_programs_have_no_finding() {
    let programs = programs();
    assert!(programs.len() >= 200, "{} programs", programs.len());
    for cell in &programs {
        assert!(is_rust(cell), "no Rust, and so nothing is tested:\n{cell}");
        for profile in [None, Some(Profile::Keras3)] {
            let context = CellContext {
                profile,
                ..CellContext::default()
            };
            let found = check_cell(cell, &context);
            assert!(found.is_empty(), "{found:?}\n{cell}");
        }
    }
}

/// The same programs with a slip in them are found: the test above looks at cells that are looked at.
#[test]
fn the_same_programs_with_a_slip_have_one() {
    let mut seen = 0;
    for cell in programs() {
        let slipped = cell.replacen(
            "compile!(model, optimizer =",
            "compile!(model, optimiser =",
            9,
        );
        // What a macro's definition or a text holds is no call.
        if slipped == cell {
            continue;
        }
        let found = check_cell(&slipped, &CellContext::default());
        let codes: Vec<&str> = found.iter().map(|found| found.code.as_str()).collect();
        assert!(codes.contains(&"SC0101"), "{codes:?}\n{slipped}");
        seen += 1;
    }
    assert!(seen > 150, "{seen}");
}
