//! Valid programs of many shapes, made of parts.

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

/// The programs of all shapes.
pub fn programs() -> Vec<String> {
    let mut programs = Vec::new();
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
            programs.push(if text.starts_with(['%', ':']) {
                text
            } else {
                made + &text
            });
        }
    }
    programs
}
