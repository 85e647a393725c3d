//! The notebook's training, once per seed, with a JSON line for each: what `docs/results.md` records.
//!
//! `cargo run -p stratoscope-train --example fine_tune -- [--seeds 5] [--epochs 3] [--replicas 2]
//! [--model all-MiniLM-L6-v2] [--limit ROWS]`

use std::io::{self, Write};

use stratoscope_bert::LoadOptions;
use stratoscope_data::debian_sections;
use stratoscope_diagnostics::{Result, render};
use stratoscope_strategy::{MirroredStrategy, scope};
use stratoscope_train::{
    AdamW, BertForSequenceClassification, CompileArgs, FitArgs, SparseCategoricalCrossentropy,
    accuracy, macro_f1, warmup_linear,
};

fn main() {
    if let Err(problem) = run() {
        let source = render::Source {
            text: "",
            name: "fine_tune",
        };
        eprintln!("{}", render::plain(&problem, &source));
        std::process::exit(1);
    }
}

/// The value behind `--name`, or the default.
fn option(name: &str, default: &str) -> String {
    let given = std::env::args()
        .skip_while(|argument| argument != name)
        .nth(1);
    given.unwrap_or_else(|| default.to_owned())
}

fn number(name: &str, default: u64) -> u64 {
    option(name, "").parse().unwrap_or(default)
}

fn run() -> Result<()> {
    let (train, dev) = debian_sections()?;
    let limit = number("--limit", u64::MAX) as usize;
    let (train, dev) = (train.take(limit), dev.take(limit));
    let (epochs, replicas) = (number("--epochs", 3), number("--replicas", 2));
    let model_name = option("--model", "all-MiniLM-L6-v2");
    for seed in 0..number("--seeds", 5) {
        let strategy = MirroredStrategy::logical(replicas)?;
        let _scope = scope::enter(&strategy)?;
        let options = LoadOptions::new().num_labels(8).seed(seed);
        let model = BertForSequenceClassification::from_pretrained_with(&model_name, &options)?;
        let optimizer = AdamW::new(warmup_linear(5e-5, 0.1)).weight_decay(0.01);
        model.compile(
            CompileArgs::new()
                .optimizer(optimizer.global_clipnorm(1.0))
                .loss(SparseCategoricalCrossentropy { from_logits: true })
                .metrics([accuracy(), macro_f1()])
                .steps_per_execution(16),
        )?;
        let args = FitArgs::new()
            .epochs(epochs)
            .batch_size(32)
            .max_length(64)
            .seed(seed);
        let history = model.fit(&train, args.validation_data(&dev))?;
        let line = serde_json::json!({
            "seed": seed,
            "replicas": replicas,
            "epochs": history.epochs,
            "counters": history.counters,
            "train_seconds": history.seconds(),
            "sequences_per_second": epochs as f64 * train.len() as f64 / history.seconds(),
            "copies_are_equal": model.placement()?.copies_are_equal(),
        });
        // Nobody reads any more: there is nothing left to tell.
        if writeln!(io::stdout(), "{line}").is_err() {
            return Ok(());
        }
    }
    Ok(())
}
