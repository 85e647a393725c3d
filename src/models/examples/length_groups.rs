//! What `group_by_length` saves: an epoch over texts of mixed lengths with it and without it, in turns.
//!
//! `cargo run --example length_groups -- [ROUNDS]`
//!
//! One JSON line for each epoch: its seconds and examples a second. The texts are descriptions of packages, joined until
//! they have the length that they are to have: from 4 to 120 words, few of them long.

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;
use std::time::Instant;

use serde_json::json;
use stratoscope_data::{Dataset, RandomStream, debian_sections};
use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, FitArgs, SparseCategoricalCrossentropy,
    on_train_begin,
};

const EXAMPLES: usize = 960;
const BATCH: usize = 32;
const MAX_LENGTH: usize = 128;

fn main() -> Result<(), Box<dyn Error>> {
    let rounds = std::env::args().nth(1).and_then(|word| word.parse().ok());
    let rounds: usize = rounds.unwrap_or(3);
    let data = texts()?;
    for round in 0..rounds {
        for grouped in [false, true] {
            let model = BertForSequenceClassification::from_pretrained(
                "all-MiniLM-L6-v2",
                data.num_labels(),
            )?;
            model.compile(
                CompileArgs::new()
                    .optimizer(AdamW::new(5e-5).global_clipnorm(1.0))
                    .loss(SparseCategoricalCrossentropy { from_logits: true }),
            )?;
            let said: Rc<RefCell<(Option<Instant>, Option<String>)>> = Rc::default();
            let begun = Rc::clone(&said);
            let callback = on_train_begin(move |run| {
                *begun.borrow_mut() = (Some(Instant::now()), run.tokens.clone());
            });
            let args = FitArgs::new().batch_size(BATCH).max_length(MAX_LENGTH);
            let args = args.group_by_length(grouped).callbacks(callback);
            let history = model.fit(&data, args.verbose(false))?;
            let (begun, words) = said.take();
            let seconds = begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64());
            println!(
                "{}",
                json!({
                    "round": round, "group_by_length": grouped, "seconds": seconds,
                    "examples_per_second": data.len() as f64 / seconds,
                    "loss": history.epochs.first().map(|epoch| epoch.loss), "said": words,
                })
            );
        }
    }
    Ok(())
}

/// Texts whose lengths are spread as those of reviews or posts are: the logarithm of the length is uniform.
fn texts() -> Result<Dataset, Box<dyn Error>> {
    let (train, _) = debian_sections()?;
    let mut random = RandomStream::new(7, 0);
    let mut rows = train.examples.iter().cycle();
    let texts = (0..EXAMPLES).map(|_| {
        let share = random.below(1 << 20) as f64 / f64::from(1 << 20);
        let words = (4.0 * 30.0_f64.powf(share)) as usize;
        let (mut text, mut label) = (Vec::new(), String::new());
        while text.len() < words {
            let Some(row) = rows.next() else { break };
            label = row.label_name.as_deref().unwrap_or_default().to_owned();
            text.extend(row.text.split_whitespace().map(str::to_owned));
        }
        text.truncate(words);
        (text.join(" "), label)
    });
    Ok(Dataset::from_labelled(texts.collect::<Vec<_>>()))
}
