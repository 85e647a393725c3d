//! What replicas cost: one training step of all-MiniLM-L6-v2 at the same global batch on one device and on 2 and 4 logical
//! devices of this processor, in turns.
//!
//! ```text
//! cargo run --example replica_cost -- --batch 32 --seq 20 --steps 15
//! ```
//!
//! One JSON line for each number of replicas: the median of the steps, and its ratio to one device. `processor_seconds`
//! is the time of all threads, which a busy machine disturbs less.

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use stratoscope_data::Dataset;
use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, FitArgs, SparseCategoricalCrossentropy,
    warmup_linear,
};
use stratoscope_strategy::{MirroredStrategy, scope};

const WARMUP: usize = 3;
const LABELS: usize = 8;
const USAGE: &str = "usage: replica_cost [--batch N] [--seq N] [--steps N] [--replicas N]

  --batch N  rows of a step (default 32)
  --seq N    tokens of a row (default 20)
  --steps N  measured steps (default 15)
  --replicas N  only this number of replicas, for a profiler";

fn main() -> ExitCode {
    let Err(problem) = run() else {
        return ExitCode::SUCCESS;
    };
    eprintln!("replica_cost: {problem}");
    ExitCode::FAILURE
}

/// Rows, tokens, steps, replicas (0 for all); `None` for `--help`.
fn arguments() -> Result<Option<[usize; 4]>, String> {
    let mut numbers = [32, 20, 15, 0];
    let mut words = std::env::args().skip(1);
    while let Some(name) = words.next() {
        let index = match name.as_str() {
            "-h" | "--help" => return Ok(None),
            "--batch" => 0,
            "--seq" => 1,
            "--steps" => 2,
            "--replicas" => 3,
            _ => return Err(format!("there is no option {name}\n{USAGE}")),
        };
        let value = words.next().and_then(|value| value.parse().ok());
        let value = value.filter(|&value| value > 0);
        numbers[index] = value.ok_or_else(|| format!("{name} needs a number above 0\n{USAGE}"))?;
    }
    Ok(Some(numbers))
}

fn run() -> Result<(), Box<dyn Error>> {
    let Some([batch, seq, steps, only]) = arguments()? else {
        println!("{USAGE}");
        return Ok(());
    };
    // Each word is one word piece, and there are more words than `--seq`: truncation makes all rows equally long.
    let common = [
        "the", "of", "and", "in", "to", "was", "he", "is", "for", "on",
    ];
    let row = |row: usize| -> String {
        let words = (0..seq).map(|word| common[(row * 7 + word * 3) % common.len()]);
        words.collect::<Vec<_>>().join(" ")
    };
    let rows = batch * (steps + WARMUP);
    let labelled = (0..rows).map(|index| (row(index), format!("label {}", index % LABELS)));
    let data = Dataset::from_labelled(labelled);

    let started = |replicas: u64| {
        let strategy = MirroredStrategy::logical(replicas)?;
        let _scope = scope::enter(&strategy)?;
        let model = BertForSequenceClassification::from_pretrained("all-MiniLM-L6-v2", LABELS)?;
        let args = CompileArgs::new()
            .optimizer(AdamW::new(warmup_linear(5e-5, 0.1)).global_clipnorm(1.0))
            .loss(SparseCategoricalCrossentropy { from_logits: true });
        model.compile(args)?;
        let args = FitArgs::new().batch_size(batch).max_length(seq);
        model.start(&data, args.verbose(false))
    };
    let counts = if only == 0 {
        vec![1, 2, 4]
    } else {
        vec![only as u64]
    };
    let runs: Vec<_> = counts.iter().map(|&count| started(count)).collect();
    let mut seconds = vec![Vec::new(); counts.len()];
    let mut processor = vec![Vec::new(); counts.len()];
    for step in 0..steps + WARMUP {
        for (index, run) in runs.iter().enumerate() {
            let Ok(run) = run else { continue };
            let (begun, used) = (Instant::now(), processor_seconds());
            run.step(1)?;
            if step >= WARMUP {
                seconds[index].push(begun.elapsed().as_secs_f64());
                processor[index].push(processor_seconds() - used);
            }
        }
    }
    for run in runs {
        run?;
    }
    let seconds: Vec<f64> = seconds.into_iter().map(median).collect();
    let processor: Vec<f64> = processor.into_iter().map(median).collect();
    for (index, replicas) in counts.iter().enumerate() {
        println!(
            "{}",
            serde_json::json!({
                "replicas": replicas, "batch": batch, "seq": seq, "seconds": seconds[index],
                "ratio": seconds[index] / seconds[0], "processor_seconds": processor[index],
                "processor_ratio": processor[index] / processor[0],
            })
        );
    }
    Ok(())
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// What all threads of this process have computed, in seconds; 0 where the system does not tell.
fn processor_seconds() -> f64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return 0.0;
    };
    let nanoseconds = |path: std::path::PathBuf| -> Option<f64> {
        let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    let all = tasks.flatten().filter_map(|task| nanoseconds(task.path()));
    all.sum::<f64>() * 1e-9
}
