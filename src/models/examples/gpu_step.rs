//! What one training step asks of a GPU with burn's operations alone and with this project's kernels: the kernels launched, the
//! time of a step, and the processor time of the thread that drives it.
//!
//! ```text
//! cargo run --example gpu_step -- --batch 8 --seq 32
//! ```
//!
//! AdamW with warm-up and global clipping, dropout on. One JSON line for each way, which runs in a process of its own;
//! `--kernels` lists the launches by name.

#[path = "shared/tiny.rs"]
mod tiny;

use std::error::Error;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use stratoscope_data::Dataset;
use stratoscope_gpu::{Launches, count_launches, set_enabled};
use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, FitArgs, SparseCategoricalCrossentropy,
    warmup_linear,
};
use stratoscope_strategy::device::choice;

const WARMUP: usize = 2;
/// As many as the small network of the tests has.
const LABELS: usize = 3;

/// Names of the two ways on the command line of a measuring process, and what they are.
const WAYS: [(&str, &str); 2] = [("burn", "burn's operations"), ("ours", "our kernels")];
const USAGE: &str =
    "usage: gpu_step [--model NAME] [--device NAME] [--batch N] [--seq N] [--steps N] [--kernels]

  --model NAME   tiny (the default: a network of the tests' sizes) or a checkpoint
  --device NAME  wgpu:0, cuda:0, … (default wgpu:0)
  --batch N      rows of a step (default 8)
  --seq N        tokens of a row (default 32)
  --steps N      measured steps (default 5)
  --kernels      also the launches of one step by the kernel's name";

fn main() -> ExitCode {
    let Err(problem) = run() else {
        return ExitCode::SUCCESS;
    };
    eprintln!("gpu_step: {problem}");
    ExitCode::FAILURE
}

/// The arguments of the command line.
struct Arguments {
    model: String,
    device: String,
    batch: usize,
    seq: usize,
    steps: usize,
    kernels: bool,
    /// Of a measuring process: one of [`WAYS`].
    way: Option<String>,
}

/// `None` for `--help`.
fn arguments() -> Result<Option<Arguments>, String> {
    let mut known = Arguments {
        model: "tiny".to_owned(),
        device: "wgpu:0".to_owned(),
        batch: 8,
        seq: 32,
        steps: 5,
        kernels: false,
        way: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(name) = words.next() {
        let number = match name.as_str() {
            "-h" | "--help" => return Ok(None),
            "--kernels" => {
                known.kernels = true;
                continue;
            }
            "--device" | "--model" | "--way" => {
                let value = words.next();
                let value = value.ok_or_else(|| format!("{name} needs a name\n{USAGE}"))?;
                match name.as_str() {
                    "--device" => known.device = value,
                    "--way" => known.way = Some(value),
                    _ => known.model = value,
                }
                continue;
            }
            "--batch" => &mut known.batch,
            "--seq" => &mut known.seq,
            "--steps" => &mut known.steps,
            _ => return Err(format!("there is no option {name}\n{USAGE}")),
        };
        let value = words.next().and_then(|value| value.parse().ok());
        let value = value.filter(|&value| value > 0);
        *number = value.ok_or_else(|| format!("{name} needs a number above 0\n{USAGE}"))?;
    }
    Ok(Some(known))
}

/// What was measured in one way.
struct Measured {
    launches: Launches,
    /// Medians of a step.
    seconds: f64,
    thread_seconds: f64,
    losses: Vec<f64>,
}

fn run() -> Result<(), Box<dyn Error>> {
    let Some(arguments) = arguments()? else {
        println!("{USAGE}");
        return Ok(());
    };
    if arguments.way.is_some() {
        return one_way(&arguments);
    }
    for (way, in_words) in WAYS {
        let printed = process(way)?;
        let (row, kernels) = printed.split_once('\n').unwrap_or((&printed, ""));
        let mut row: serde_json::Value = serde_json::from_str(row)?;
        row["way"] = in_words.into();
        print!("{row}\n{kernels}");
    }
    Ok(())
}

/// Runs this program with the same arguments for one way; what it prints.
fn process(way: &str) -> Result<String, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args().skip(1)).args(["--way", way]);
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("measuring {way} failed:\n{log}").into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn one_way(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    choice::choose(&arguments.device)?;
    let folder = tiny::bert(128)?;
    let model = match arguments.model.as_str() {
        "tiny" => folder.path().to_string_lossy().into_owned(),
        name => name.to_owned(),
    };
    set_enabled(arguments.way.as_deref() != Some(WAYS[0].0));
    let measured = measure(&model, arguments)?;
    println!(
        "{}",
        serde_json::json!({
            "model": arguments.model, "device": arguments.device, "batch": arguments.batch,
            "seq": arguments.seq, "launches": measured.launches.total(),
            "seconds": measured.seconds, "thread_seconds": measured.thread_seconds, "losses": measured.losses,
        })
    );
    if arguments.kernels {
        let mut kernels: Vec<_> = measured.launches.by_kernel.into_iter().collect();
        kernels.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (kernel, count) in kernels {
            println!("{count:6} {kernel}");
        }
    }
    Ok(())
}

fn measure(model: &str, arguments: &Arguments) -> Result<Measured, Box<dyn Error>> {
    let Arguments {
        batch, seq, steps, ..
    } = *arguments;
    // Each word is one word piece or more, and there are more words than `--seq`: truncation makes all rows equally long.
    let row = |row: usize| -> String {
        let words = (0..seq).map(|word| format!("w{}", 10 + (row * 7 + word * 3) % 90));
        words.collect::<Vec<_>>().join(" ")
    };
    let rows = batch * (steps + WARMUP + 1);
    let labelled = (0..rows).map(|index| (row(index), format!("label {}", index % LABELS)));
    let data = Dataset::from_labelled(labelled);

    let model = BertForSequenceClassification::from_pretrained(model, LABELS)?;
    let args = CompileArgs::new()
        .optimizer(AdamW::new(warmup_linear(5e-5, 0.1)).global_clipnorm(1.0))
        .loss(SparseCategoricalCrossentropy { from_logits: true });
    model.compile(args)?;
    let args = FitArgs::new().batch_size(batch).max_length(seq);
    let run = model.start(&data, args.verbose(false))?;
    run.step(WARMUP)?;
    let (mut seconds, mut thread_seconds) = (Vec::new(), Vec::new());
    for _ in 0..steps {
        let (begun, worked) = (Instant::now(), thread_time());
        run.step(1)?;
        seconds.push(begun.elapsed().as_secs_f64());
        thread_seconds.push(thread_time() - worked);
    }
    let (outcome, launches) = count_launches(|| run.step(1));
    outcome?;
    let history = run.history()?;
    Ok(Measured {
        launches,
        seconds: median(seconds),
        thread_seconds: median(thread_seconds),
        losses: history.executions.iter().map(|it| it.loss).collect(),
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The processor time of this thread so far, in seconds; 0 where it is not known.
fn thread_time() -> f64 {
    #[cfg(target_os = "linux")]
    {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the clock writes a time to a valid place.
        if unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) } == 0 {
            return time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
        }
    }
    0.0
}
