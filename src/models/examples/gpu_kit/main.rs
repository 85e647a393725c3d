//! The measurements of `tests/gpu.sh` on a machine that has a GPU and neither Rust nor checkpoints: a BERT of a stated size with random
//! weights trains, predicts, and is profiled.
//!
//! ```text
//! cargo run --example gpu_kit -- train --device wgpu:0 --batch 2 --seq 16
//! ```
//!
//! Each line `row`, tab, what was measured, tab, the result is a row of the kit's table. The other lines are for its log.

mod attention;
mod graph;
mod network;
mod profile;
mod training;

use std::error::Error;
use std::process::ExitCode;

use stratoscope_diagnostics::{Diagnostic, render};
use stratoscope_models::set_global_policy;
use stratoscope_strategy::device::choice;
use stratoscope_strategy::{BackendKind, LogicalDevice, default_device};

const USAGE: &str = "usage: gpu_kit COMMAND [OPTION VALUE]…

  device        which device it is
  train         seconds of a training step, and the memory of the device
  agree         losses beside those of the processor
  predict       seconds of a prediction
  memory        memory in the course of a run
  profile       what a step does: phases, kernels, and how long the device works in it
  graph         predict, or Adam's update, captured once and replayed
  attention     attention with its S × S probabilities, and burn's that computes them in tiles

  --device NAME wgpu:0, cuda:0, … (default: the best that works)
  --policy NAME float32, mixed_float16 or mixed_bfloat16 (default float32)
  --batch N     rows (default 16)
  --seq N       tokens of a row (default 64)
  --steps N     measured steps (default 20)
  --replicas N  logical devices (default 1: no strategy)
  --of NAME     of graph: predict or update; of attention: ours or tiles
  --layers N, --hidden N, --heads N, --inner N, --words N
                the network's size (default 6, 384, 12, 1536, 30522)";

/// The arguments of the command line.
pub struct Arguments {
    command: String,
    of: String,
    device: Option<String>,
    policy: String,
    batch: usize,
    seq: usize,
    steps: usize,
    replicas: usize,
    size: network::Size,
}

impl Arguments {
    /// `None` for `--help`.
    fn read() -> Result<Option<Self>, String> {
        let mut words = std::env::args().skip(1);
        let mut read = Self {
            command: words.next().ok_or("which command?")?,
            of: String::new(),
            device: None,
            policy: "float32".to_owned(),
            batch: 16,
            seq: 64,
            steps: 20,
            replicas: 1,
            size: network::Size::default(),
        };
        if ["-h", "--help"].contains(&read.command.as_str()) {
            return Ok(None);
        }
        while let Some(name) = words.next() {
            let value = words.next().ok_or(format!("{name} needs a value"))?;
            let number = match name.as_str() {
                "--device" => {
                    read.device = Some(value);
                    continue;
                }
                "--policy" => {
                    read.policy = value;
                    continue;
                }
                "--of" => {
                    read.of = value;
                    continue;
                }
                "--batch" => &mut read.batch,
                "--seq" => &mut read.seq,
                "--steps" => &mut read.steps,
                "--replicas" => &mut read.replicas,
                "--layers" => &mut read.size.layers,
                "--hidden" => &mut read.size.hidden,
                "--heads" => &mut read.size.heads,
                "--inner" => &mut read.size.inner,
                "--words" => &mut read.size.words,
                _ => return Err(format!("there is no option {name}")),
            };
            let given = value.parse().ok().filter(|&given| given > 0);
            *number = given.ok_or_else(|| format!("{name} needs a number above 0"))?;
        }
        Ok(Some(read))
    }

    /// `16 × 64, float32`
    fn shape(&self) -> String {
        let replicas = match self.replicas {
            1 => String::new(),
            count => format!(", {count} logical devices"),
        };
        format!("{} × {}, {}{replicas}", self.batch, self.seq, self.policy)
    }
}

fn main() -> ExitCode {
    let arguments = match Arguments::read() {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(problem) => {
            eprintln!("gpu_kit: {problem}\n{USAGE}");
            return ExitCode::FAILURE;
        }
    };
    let Err(problem) = run(&arguments) else {
        return ExitCode::SUCCESS;
    };
    match problem.downcast_ref::<Box<Diagnostic>>() {
        Some(diagnostic) => {
            let source = render::Source {
                text: "",
                name: "gpu_kit",
            };
            eprintln!("{}", render::plain(diagnostic, &source));
        }
        None => eprintln!("gpu_kit: {problem}"),
    }
    ExitCode::FAILURE
}

fn run(asked: &Arguments) -> Result<(), Box<dyn Error>> {
    if let Some(device) = &asked.device {
        choice::choose(device)?;
    }
    let device = default_device()?;
    println!("{}: {}", device.name, device.description);
    set_global_policy(&asked.policy)?;
    match asked.command.as_str() {
        "device" => {
            let is = format!("{}: {}", device.name, device.description);
            row("device", &is);
            Ok(())
        }
        "train" => training::train(asked, &device),
        "agree" => training::agree(asked, &device),
        "predict" => training::predict(asked, &device),
        "memory" => training::memory(asked, &device),
        "profile" => profile::profile(asked),
        "graph" => graph::graph(asked, &device.burn),
        "attention" => attention::attention(asked, &device),
        other => Err(format!("there is no command {other}\n{USAGE}").into()),
    }
}

/// A row of the table.
pub fn row(what: &str, result: &str) {
    println!("row\t{what}\t{result}");
}

/// The middle one; of an even number the later of the two.
pub fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().unwrap_or(0.0)
}

/// `24.1 ms`
pub fn milliseconds(seconds: f64) -> String {
    format!("{:.3} ms", seconds * 1e3)
}

/// Memory of a device's pool, or of the process where the device is the processor.
pub struct Memory {
    /// In use now.
    pub used: u64,
    /// Taken from the device; a pool gives little back, so that this is near the most that was in use.
    pub reserved: u64,
    /// The process's own, resident.
    pub host: u64,
}

impl Memory {
    pub fn of(device: &LogicalDevice) -> Self {
        let usage = match device.backend {
            BackendKind::Flex => None,
            _ => device.burn.memory_pool_usage(),
        };
        let (used, reserved) = usage.map_or((0, 0), |it| (it.bytes_in_use, it.bytes_reserved));
        Self {
            used,
            reserved,
            host: resident(),
        }
    }
}

/// `587 MB`
pub fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

/// The resident set of this process in bytes; 0 where it is not known.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
    kilobytes.unwrap_or(0_u64) * 1024
}
