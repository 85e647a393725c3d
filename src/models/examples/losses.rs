//! Trains a BERT for a few steps and prints their losses, so that runs on different processors can be compared:
//! `tests/test_processors.py` compares with an emulated one.
//!
//! ```text
//! cargo run --example losses -- path/to/a/checkpoint
//! ```
//!
//! One JSON line: the loss of each step, and the validation loss after them.

use std::error::Error;

use stratoscope_data::Dataset;
use stratoscope_models::{
    BertForSequenceClassification, CompileArgs, EvaluateArgs, FitArgs, SGD,
    SparseCategoricalCrossentropy, accuracy,
};

const STEPS: usize = 4;
const BATCH: usize = 4;
const CLASSES: [&str; 3] = ["games", "fonts", "math"];

fn main() -> Result<(), Box<dyn Error>> {
    let Some(checkpoint) = std::env::args().nth(1) else {
        return Err("name a folder with a checkpoint".into());
    };
    let texts = ["a puzzle game", "a font family with images", "functions"];
    let rows = (0..STEPS * BATCH).map(|row| {
        let class = row % CLASSES.len();
        (format!("{} {row}", texts[class]), CLASSES[class])
    });
    let data = Dataset::from_labelled(rows);
    let model = BertForSequenceClassification::from_pretrained(&checkpoint, CLASSES.len())?;
    // Plain gradient descent: its steps are proportional to the gradients, so that rounding errors are not amplified.
    model.compile(
        CompileArgs::new()
            .optimizer(SGD::new(0.1))
            .loss(SparseCategoricalCrossentropy { from_logits: true })
            .metrics([accuracy()]),
    )?;
    let args = FitArgs::new().epochs(1).batch_size(BATCH).verbose(false);
    let history = model.fit(&data, args)?;
    let mut losses: Vec<f64> = history.executions.iter().map(|step| step.loss).collect();
    losses.push(
        model
            .evaluate(&data, EvaluateArgs::new().verbose(false))?
            .loss,
    );
    println!("{}", serde_json::json!({ "losses": losses }));
    Ok(())
}
