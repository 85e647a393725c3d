//! What questions to a run cost, as multiples of an optimizer step: `what_if`, `influence` and `profile`.
//!
//! ```text
//! cargo run --example ask_costs -- [--model all-MiniLM-L6-v2] [--batch 16] [--seq 64] [--turns 8]
//! ```
//!
//! In each turn one step is made as it is, one by `profile(1)`, and two questions are asked: a step without an attention head,
//! and a step with another label. The order changes from turn to turn, so that a busy moment affects all. Then `influence`
//! makes all steps again without the first row. One JSON line: medians of seconds, and of ratios to the step of the same turn;
//! of `influence` the ratio to as many steps.

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use stratoscope_data::Dataset;
use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, FitArgs, Run, SparseCategoricalCrossentropy,
};

const LABELS: usize = 3;
/// Steps before the first turn.
const WARMUP: usize = 3;
/// Steps of a turn: one as it is, and one by `profile`.
const STEPS_OF_A_TURN: usize = 2;

const USAGE: &str = "usage: ask_costs [OPTION VALUE]…

  --model NAME  a checkpoint (default all-MiniLM-L6-v2)
  --batch N     rows a step (default 16)
  --seq N       tokens a row (default 64)
  --turns N     how often each question is asked (default 8)";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("ask_costs: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The arguments of the command line.
struct Options {
    model: String,
    batch: usize,
    seq: usize,
    turns: usize,
}

impl Options {
    /// `None` for `--help`.
    fn parse() -> Result<Option<Self>, String> {
        let mut options = Self {
            model: "all-MiniLM-L6-v2".to_owned(),
            batch: 16,
            seq: 64,
            turns: 8,
        };
        let mut words = std::env::args().skip(1);
        while let Some(name) = words.next() {
            if ["-h", "--help"].contains(&name.as_str()) {
                return Ok(None);
            }
            let value = words
                .next()
                .ok_or(format!("{name} needs a value\n{USAGE}"))?;
            let number = match name.as_str() {
                "--model" => {
                    options.model = value;
                    continue;
                }
                "--batch" => &mut options.batch,
                "--seq" => &mut options.seq,
                "--turns" => &mut options.turns,
                _ => return Err(format!("there is no option {name}\n{USAGE}")),
            };
            let value = value.parse().ok().filter(|&value| value > 0);
            *number = value.ok_or(format!("{name} needs a number above 0\n{USAGE}"))?;
        }
        Ok(Some(options))
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let Some(options) = Options::parse()? else {
        println!("{USAGE}");
        return Ok(());
    };
    let steps = WARMUP + options.turns * STEPS_OF_A_TURN;
    let model = BertForSequenceClassification::from_pretrained(&options.model, LABELS)?;
    let loss = SparseCategoricalCrossentropy { from_logits: true };
    let args = CompileArgs::new().optimizer(AdamW::new(5e-5)).loss(loss);
    model.compile(args)?;
    let data = texts(options.batch * (steps + 1), options.seq);
    // In the order of the data, so that the first row is in the first step.
    let args = FitArgs::new()
        .epochs(1)
        .batch_size(options.batch)
        .max_length(options.seq)
        .shuffle(false)
        .verbose(false);
    let run = model.start(&data, args)?;
    run.step(WARMUP)?;
    let mut measured = vec![Vec::new(); WAYS.len()];
    for turn in 0..options.turns {
        for at in 0..WAYS.len() {
            let way = (turn + at) % WAYS.len();
            let begun = Instant::now();
            ask(&run, WAYS[way])?;
            measured[way].push(begun.elapsed().as_secs_f64());
        }
    }
    let step = median(measured[0].iter().copied());
    let begun = Instant::now();
    run.influence("the of and in to", "label 0", [0])?;
    let influence = begun.elapsed().as_secs_f64();
    let mut line = serde_json::json!({
        "model": options.model, "batch": options.batch, "seq": options.seq, "turns": options.turns, "steps": steps,
        "influence": {"seconds": influence, "ratio": influence / (steps as f64 * step)},
    });
    for (name, way) in WAYS.iter().zip(&measured) {
        let ratios = way.iter().zip(&measured[0]).map(|(it, step)| it / step);
        line[*name] = serde_json::json!({
            "seconds": median(way.iter().copied()), "ratio": median(ratios),
        });
    }
    println!("{line}");
    Ok(())
}

/// What is measured; the first is what the others are compared with.
const WAYS: [&str; 4] = ["step", "profile", "what_if_head", "what_if_label"];

fn ask(run: &Run, way: &str) -> stratoscope_diagnostics::Result<()> {
    match way {
        "step" => run.step(1).map(drop),
        "profile" => run.profile(1).map(drop),
        "what_if_head" => run.what_if(|it| it.head(0, 0).scale(0.0)).map(drop),
        _ => run.what_if(|it| it.label(0, "label 1")).map(drop),
    }
}

/// Rows of equally many word pieces, as `train_step` makes them.
fn texts(rows: usize, seq: usize) -> Dataset {
    let common = [
        "the", "of", "and", "in", "to", "was", "he", "is", "for", "on",
    ];
    let row = |row: usize| -> String {
        let words = (0..seq).map(|word| common[(row * 7 + word * 3) % common.len()]);
        words.collect::<Vec<_>>().join(" ")
    };
    Dataset::from_labelled((0..rows).map(|at| (row(at), format!("label {}", at % LABELS))))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
