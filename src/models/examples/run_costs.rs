//! What watching a run costs: alarms, armed breakpoints, snapshots and checkpoints, each as a share of an optimizer step.
//!
//! ```text
//! cargo run --example run_costs -- [--model all-MiniLM-L6-v2] [--batch 16] [--seq 64] [--turns 20]
//! ```
//!
//! One run makes every step, so that all are of one process, one model and one batch size. In each turn every way is made
//! once, in an order that changes from turn to turn: without measured updates, twice, which shows how much two equal steps
//! differ; with the alarms as they are always on; with conditions; with a snapshot before it; with a checkpoint before
//! it. The norm of gradients is part of every step and is measured by itself. A turn gives each way's time as a ratio to
//! that of the first way in the same turn. One JSON line: medians of seconds, of processor time of all threads, and of
//! both ratios.

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use stratoscope_data::{Dataset, make_regression};
use stratoscope_models::breakpoints::{accuracy_drop, grad_norm, loss, nan, spike, update_ratio};
use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, Dense, FitArgs, Gradients, MeanSquaredError,
    Run, Sequential, SparseCategoricalCrossentropy,
};

const LABELS: usize = 3;
/// Steps of a turn, and from one checkpoint to the next. As many are made before the first turn.
const STEPS: usize = 8;

const USAGE: &str = "usage: run_costs [OPTION VALUE]…

  --model NAME  a checkpoint, or `dense` for two small dense layers (default all-MiniLM-L6-v2)
  --batch N     rows a step (default 16)
  --seq N       tokens a row (default 64)
  --turns N     how often each way is measured (default 20)";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("run_costs: {problem}");
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
            turns: 20,
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
    let steps = (options.turns + 1) * STEPS + 1;
    let rows = options.batch * steps;
    let folder = std::env::temp_dir().join(format!("stratoscope-run-costs-{}", std::process::id()));
    let args = FitArgs::new()
        .epochs(1)
        .batch_size(options.batch)
        .max_length(options.seq)
        .checkpoint(&folder)
        .every(STEPS)
        .keep_last(1)
        .verbose(false);
    let measured = if options.model == "dense" {
        let model = Sequential([
            Dense(64).input_shape(32).activation("relu").seed(1),
            Dense(1).seed(2),
        ])?;
        let optimizer = AdamW::new(1e-4).global_clipnorm(1.0);
        model.compile(
            CompileArgs::new()
                .optimizer(optimizer)
                .loss(MeanSquaredError),
        )?;
        let data = make_regression(rows, 32, 3)?;
        let gradients = model.gradients(&data.take(options.batch))?;
        measure(&model.start(&data, args)?, &gradients, options.turns)
    } else {
        let model = BertForSequenceClassification::from_pretrained(&options.model, LABELS)?;
        let optimizer = AdamW::new(5e-5).global_clipnorm(1.0);
        let loss = SparseCategoricalCrossentropy { from_logits: true };
        model.compile(CompileArgs::new().optimizer(optimizer).loss(loss))?;
        let data = texts(rows, options.seq);
        let gradients = model.gradients(&data.take(options.batch))?;
        measure(&model.start(&data, args)?, &gradients, options.turns)
    };
    // What cannot be removed is in the system's temporary folder.
    let _ = std::fs::remove_dir_all(&folder);
    let measured = measured?;
    let mut line = serde_json::json!({
        "model": options.model, "batch": options.batch, "seq": options.seq, "turns": options.turns,
    });
    for (name, way) in WAYS.iter().zip(&measured) {
        line[*name] = serde_json::json!({
            "seconds": median(way.iter().map(|it| it.seconds)),
            "cpu_seconds": median(way.iter().map(|it| it.cpu)),
            "ratio": median(way.iter().zip(&measured[0]).map(|(it, none)| it.seconds / none.seconds)),
            "cpu_ratio": median(way.iter().zip(&measured[0]).map(|(it, none)| it.cpu / none.cpu)),
        });
    }
    println!("{line}");
    Ok(())
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

/// The ways of making a step; the first is what the others are compared with.
const WAYS: [&str; 8] = [
    "nothing",
    "nothing_again",
    "alarms",
    "conditions",
    "update_ratio",
    "snapshot",
    "checkpoint",
    "norm",
];

#[derive(Clone, Copy)]
struct Time {
    seconds: f64,
    cpu: f64,
}

/// Each way's times, in the order of [`WAYS`].
fn measure(
    run: &Run,
    gradients: &Gradients,
    turns: usize,
) -> stratoscope_diagnostics::Result<Vec<Vec<Time>>> {
    const NEVER: u64 = 1_000_000_000;
    let mut measured = vec![Vec::new(); WAYS.len()];
    let (norm, checkpoint, others) = (WAYS.len() - 1, WAYS.len() - 2, WAYS.len() - 2);
    run.keep_snapshots(NEVER, 1_000_000)?;
    run.step(STEPS)?;
    for turn in 0..turns {
        // A checkpoint is due at the first step of each turn.
        run.measure_updates(true)?;
        measured[checkpoint].push(timed(|| run.step(1).map(drop))?);
        for at in 0..others {
            let way = (turn + at) % others;
            run.measure_updates(!WAYS[way].starts_with("nothing"))?;
            match WAYS[way] {
                "conditions" => run.break_when(
                    nan()
                        | spike(1e9)
                        | loss().above(1e9)
                        | grad_norm().above(1e9)
                        | accuracy_drop().by(0.999),
                )?,
                "update_ratio" => run.break_when(update_ratio().above(1e9))?,
                // The next step takes one, and those after it do not.
                "snapshot" => run.keep_snapshots(NEVER, 1_000_000)?,
                _ => {}
            }
            measured[way].push(timed(|| run.step(1).map(drop))?);
            run.clear_breakpoints()?;
        }
        run.step(STEPS - others - 1)?;
        // Each step computes this norm, whatever is measured. The step before has left none of it in the caches.
        measured[norm].push(timed(|| {
            std::hint::black_box(gradients.norm());
            Ok(())
        })?);
    }
    Ok(measured)
}

fn timed(
    work: impl FnOnce() -> stratoscope_diagnostics::Result<()>,
) -> stratoscope_diagnostics::Result<Time> {
    let (cpu, begun) = (processor_time(), Instant::now());
    work()?;
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Time {
        seconds,
        cpu: processor_time() - cpu,
    })
}

/// Seconds that the threads of this process have computed.
fn processor_time() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes to the valid place it is given, and every kernel has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
