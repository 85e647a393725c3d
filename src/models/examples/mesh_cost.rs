//! What the strategies cost that divide a model: one training step of all-MiniLM-L6-v2 at the same global batch on one device, on
//! two mirrored logical devices, with ZeRO-1, -2 and -3 on two, in slices on two, and in a pipeline of two stages with four
//! micro-batches, in turns.
//!
//! ```text
//! cargo run --example mesh_cost -- --batch 32 --seq 20 --steps 15
//! ```
//!
//! One JSON line with the medians of the steps, and their ratios to mirrored training. `processor_seconds` is the time of all
//! threads, which a busy machine disturbs less.

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use stratoscope_data::Dataset;
use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, FitArgs, Run, SparseCategoricalCrossentropy,
};
use stratoscope_strategy::{
    AsStrategy, MirroredStrategy, ModelParallel, OneDeviceStrategy, PipelineStrategy, Shard,
    Strategy, cpu, scope,
};

const WARMUP: usize = 2;
const LABELS: usize = 8;
/// The way that the ratios are to.
const MIRRORED: &str = "mirrored 2";
const USAGE: &str = "usage: mesh_cost [--batch N] [--seq N] [--steps N]

  --batch N  rows of a step, a multiple of 4 (default 32)
  --seq N    tokens of a row (default 20)
  --steps N  measured steps of each way (default 15)";

fn main() -> ExitCode {
    let Err(problem) = run() else {
        return ExitCode::SUCCESS;
    };
    eprintln!("mesh_cost: {problem}");
    ExitCode::FAILURE
}

/// Rows, tokens, steps; `None` for `--help`.
fn arguments() -> Result<Option<[usize; 3]>, String> {
    let mut numbers = [32, 20, 15];
    let mut words = std::env::args().skip(1);
    while let Some(name) = words.next() {
        let index = match name.as_str() {
            "-h" | "--help" => return Ok(None),
            "--batch" => 0,
            "--seq" => 1,
            "--steps" => 2,
            _ => return Err(format!("there is no option {name}\n{USAGE}")),
        };
        let value = words.next().and_then(|value| value.parse().ok());
        let value = value.filter(|&value| value > 0);
        numbers[index] = value.ok_or_else(|| format!("{name} needs a number above 0\n{USAGE}"))?;
    }
    Ok(Some(numbers))
}

/// A strategy with its name. The handle keeps it alive.
struct Way {
    name: &'static str,
    strategy: Strategy,
    _handle: Box<dyn std::any::Any>,
}

impl Way {
    fn new(name: &'static str, handle: impl AsStrategy + 'static) -> Self {
        Self {
            name,
            strategy: handle.strategy(),
            _handle: Box::new(handle),
        }
    }
}

fn ways() -> stratoscope_diagnostics::Result<Vec<Way>> {
    let zero = |shard| MirroredStrategy::logical_on(cpu(0), 2)?.shard(shard);
    Ok(vec![
        Way::new("one device", OneDeviceStrategy::new(cpu(0))?),
        Way::new(MIRRORED, MirroredStrategy::logical_on(cpu(0), 2)?),
        Way::new("ZeRO-1", zero(Shard::Optimizer)?),
        Way::new("ZeRO-2", zero(Shard::Gradients)?),
        Way::new("ZeRO-3", zero(Shard::Parameters)?),
        Way::new("tensor 2", ModelParallel::logical_on(cpu(0), 2)?),
        Way::new(
            "pipeline 2 × 4",
            PipelineStrategy::logical_on(cpu(0), 2)?.micro_batches(4)?,
        ),
    ])
}

/// A run that stands before its first step.
fn started(
    way: &Way,
    data: &Dataset,
    [batch, seq]: [usize; 2],
) -> stratoscope_diagnostics::Result<Run> {
    let _scope = scope::enter(&way.strategy)?;
    let model = BertForSequenceClassification::from_pretrained("all-MiniLM-L6-v2", LABELS)?;
    let args = CompileArgs::new()
        .optimizer(AdamW::new(5e-5))
        .loss(SparseCategoricalCrossentropy { from_logits: true });
    model.compile(args)?;
    let args = FitArgs::new().batch_size(batch).max_length(seq);
    model.start(data, args.verbose(false))
}

fn run() -> Result<(), Box<dyn Error>> {
    let Some([batch, seq, steps]) = arguments()? else {
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
    let ways = ways()?;
    let mut runs = Vec::new();
    for way in &ways {
        runs.push(started(way, &data, [batch, seq])?);
    }
    let mut seconds = vec![Vec::new(); ways.len()];
    let mut processor = vec![Vec::new(); ways.len()];
    for step in 0..steps + WARMUP {
        for index in 0..runs.len() {
            // The order changes from turn to turn.
            let index = (index + step) % runs.len();
            let (begun, used) = (Instant::now(), processor_seconds());
            runs[index].step(1)?;
            if step >= WARMUP {
                seconds[index].push(begun.elapsed().as_secs_f64());
                processor[index].push(processor_seconds() - used);
            }
        }
    }
    let seconds: Vec<f64> = seconds.into_iter().map(median).collect();
    let processor: Vec<f64> = processor.into_iter().map(median).collect();
    let base = ways
        .iter()
        .position(|way| way.name == MIRRORED)
        .unwrap_or(0);
    let line = |(index, way): (usize, &Way)| {
        serde_json::json!({
            "way": way.name, "seconds": seconds[index], "ratio": seconds[index] / seconds[base],
            "processor_seconds": processor[index], "processor_ratio": processor[index] / processor[base],
        })
    };
    let lines: Vec<serde_json::Value> = ways.iter().enumerate().map(line).collect();
    println!(
        "{}",
        serde_json::json!({ "batch": batch, "seq": seq, "ways": lines })
    );
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
