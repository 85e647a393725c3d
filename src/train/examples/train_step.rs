//! Measures training through the public API, on the workload of `tests/bench/torch_reference.py`:
//! all-MiniLM-L6-v2, every row of `--seq` tokens, AdamW with warm-up, global clipping, dropout on.
//!
//! ```text
//! cargo run -p stratoscope-train --example train_step -- --batch 16 --seq 64
//! ```
//!
//! One JSON line: `seq_per_s` from the median of the steps after the warm-up, data already tokenized.

use std::error::Error;

use stratoscope_data::Dataset;
use stratoscope_train::{
    AdamW, BertForSequenceClassification, CompileArgs, FitArgs, SparseCategoricalCrossentropy,
    warmup_linear,
};

const STEPS: usize = 8;
const WARMUP: usize = 3;
const LABELS: usize = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut batch, mut seq) = (16_usize, 64_usize);
    let mut words = std::env::args().skip(1);
    while let Some(name) = words.next() {
        let value = words.next().ok_or(format!("{name} needs a value"))?;
        match name.as_str() {
            "--batch" => batch = value.parse()?,
            "--seq" => seq = value.parse()?,
            _ => return Err(format!("no option {name}").into()),
        }
    }
    // One word piece a word, more of them than the longest row takes: truncation makes all rows equal.
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
