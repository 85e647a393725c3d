//! Measures training through the public API, on the workload of `tests/bench/torch_reference.py`:
//! all-MiniLM-L6-v2, every row of `--seq` tokens, AdamW with warm-up, global clipping, dropout on.
//!
//! ```text
//! cargo run --example train_step -- --batch 16 --seq 64
//! ```
//!
//! One JSON line: `seq_per_s` from the median of the steps after the warm-up, without tokenization.

use std::error::Error;
use std::process::ExitCode;

use stratoscope_data::Dataset;
use stratoscope_diagnostics::{Diagnostic, render};
use stratoscope_train::{
    AdamW, BertForSequenceClassification, CompileArgs, FitArgs, SparseCategoricalCrossentropy,
    warmup_linear,
};

const STEPS: usize = 8;
const WARMUP: usize = 3;
const LABELS: usize = 8;

const USAGE: &str = "usage: train_step [--batch N] [--seq N]

  --batch N  rows a step (default 16)
  --seq N    tokens a row (default 64)";

fn main() -> ExitCode {
    let Err(problem) = run() else {
        return ExitCode::SUCCESS;
    };
    match problem.downcast_ref::<Box<Diagnostic>>() {
        Some(diagnostic) => {
            let source = render::Source {
                text: "",
                name: "train_step",
            };
            eprintln!("{}", render::plain(diagnostic, &source));
        }
        None => eprintln!("train_step: {problem}"),
    }
    ExitCode::FAILURE
}

/// The arguments of the command line; `None` for `--help`.
fn arguments() -> Result<Option<(usize, usize)>, String> {
    let (mut batch, mut seq) = (16_usize, 64_usize);
    let mut words = std::env::args().skip(1);
    while let Some(name) = words.next() {
        let number = match name.as_str() {
            "-h" | "--help" => return Ok(None),
            "--batch" => &mut batch,
            "--seq" => &mut seq,
            _ => return Err(format!("there is no option {name}\n{USAGE}")),
        };
        let value = words.next().and_then(|value| value.parse().ok());
        let value = value.filter(|&value| value > 0);
        *number = value.ok_or_else(|| format!("{name} needs a number above 0\n{USAGE}"))?;
    }
    Ok(Some((batch, seq)))
}

fn run() -> Result<(), Box<dyn Error>> {
    let Some((batch, seq)) = arguments()? else {
        println!("{USAGE}");
        return Ok(());
    };
    // Each word is one word piece, and there are more words than `--seq`: truncation makes all rows equally long.
    let rows = batch * (STEPS + WARMUP);
    let common = [
        "the", "of", "and", "in", "to", "was", "he", "is", "for", "on",
    ];
    let row = |row: usize| -> String {
        (0..seq)
            .map(|word| common[(row * 7 + word * 3) % common.len()])
            .collect::<Vec<_>>()
            .join(" ")
    };
    let labelled = (0..rows).map(|index| (row(index), format!("label {}", index % LABELS)));
    let data = Dataset::from_labelled(labelled);

    let model = BertForSequenceClassification::from_pretrained("all-MiniLM-L6-v2", LABELS)?;
    model.compile(
        CompileArgs::new()
            .optimizer(AdamW::new(warmup_linear(5e-5, 0.1)).global_clipnorm(1.0))
            .loss(SparseCategoricalCrossentropy { from_logits: true }),
    )?;
    let history = model.fit(
        &data,
        FitArgs::new()
            .epochs(1)
            .batch_size(batch)
            .max_length(seq)
            .verbose(false),
    )?;
    let mut seconds: Vec<f64> = history.executions[WARMUP..]
        .iter()
        .map(|record| record.seconds)
        .collect();
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    println!(
        "{}",
        serde_json::json!({ "batch": batch, "seq": seq, "seconds": median, "seq_per_s": batch as f64 / median })
    );
    Ok(())
}
