//! The training of the notebook `fine_tune_bert`, once per seed, with one JSON line each. `docs/results.md` has
//! the results.
//!
//! `cargo run --example fine_tune -- [--seeds 5] [--epochs 3] [--replicas 2]
//! [--model all-MiniLM-L6-v2] [--limit ROWS] [--device wgpu:0]
//! [--policy mixed_bfloat16] [--data pairs]`

use std::io::{self, Write};
use std::process::ExitCode;

use stratoscope_bert::LoadOptions;
use stratoscope_data::{debian_pairs, debian_sections};
use stratoscope_diagnostics::{Result, render};
use stratoscope_strategy::device::choice;
use stratoscope_strategy::{MirroredStrategy, default_device, scope};
use stratoscope_train::{
    AdamW, BertForSequenceClassification, CompileArgs, FitArgs, SparseCategoricalCrossentropy,
    accuracy, macro_f1, set_global_policy, warmup_linear,
};

const USAGE: &str = "usage: fine_tune [OPTION VALUE]…

  --seeds N     how many trainings, each with another seed (default 5)
  --epochs N    epochs of each (default 3)
  --replicas N  logical devices (default 2)
  --model NAME  a checkpoint (default all-MiniLM-L6-v2)
  --limit N     take the first N rows (default: all)
  --device NAME cpu, wgpu:0, cuda:0, … (default: the best that works)
  --policy NAME float32, mixed_float16 or mixed_bfloat16 (default float32)
  --data NAME   sections, 8 classes of texts, or pairs, 2 classes of pairs of texts (default sections)";

fn main() -> ExitCode {
    let options = match Options::parse() {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(problem) => {
            eprintln!("fine_tune: {problem}\n{USAGE}");
            return ExitCode::FAILURE;
        }
    };
    let Err(problem) = run(&options) else {
        return ExitCode::SUCCESS;
    };
    let source = render::Source {
        text: "",
        name: "fine_tune",
    };
    eprintln!("{}", render::plain(&problem, &source));
    ExitCode::FAILURE
}

/// The arguments of the command line.
struct Options {
    seeds: u64,
    epochs: u64,
    replicas: u64,
    model: String,
    limit: usize,
    device: Option<String>,
    policy: String,
    data: String,
}

impl Options {
    /// `None` for `--help`.
    fn parse() -> std::result::Result<Option<Self>, String> {
        let mut options = Self {
            seeds: 5,
            epochs: 3,
            replicas: 2,
            model: "all-MiniLM-L6-v2".to_owned(),
            limit: usize::MAX,
            device: None,
            policy: "float32".to_owned(),
            data: "sections".to_owned(),
        };
        let mut words = std::env::args().skip(1);
        while let Some(name) = words.next() {
            if ["-h", "--help"].contains(&name.as_str()) {
                return Ok(None);
            }
            let number = match name.as_str() {
                "--seeds" => Some(&mut options.seeds),
                "--epochs" => Some(&mut options.epochs),
                "--replicas" => Some(&mut options.replicas),
                "--model" | "--limit" | "--device" | "--policy" | "--data" => None,
                _ => return Err(format!("there is no option {name}")),
            };
            let value = words.next().ok_or(format!("{name} needs a value"))?;
            let no_number = |_| format!("{name} needs a number, not `{value}`");
            match number {
                Some(number) => *number = value.parse().map_err(no_number)?,
                None if name == "--limit" => options.limit = value.parse().map_err(no_number)?,
                None if name == "--device" => options.device = Some(value),
                None if name == "--policy" => options.policy = value,
                None if name == "--data" => match value.as_str() {
                    "sections" | "pairs" => options.data = value,
                    _ => return Err(format!("--data is sections or pairs, not `{value}`")),
                },
                None => options.model = value,
            }
        }
        Ok(Some(options))
    }
}

fn run(options: &Options) -> Result<()> {
    let (train, dev) = match options.data.as_str() {
        "pairs" => debian_pairs()?,
        _ => debian_sections()?,
    };
    let (train, dev) = (train.take(options.limit), dev.take(options.limit));
    if let Some(device) = &options.device {
        choice::choose(device)?;
    }
    let device = default_device()?.name;
    let (epochs, replicas) = (options.epochs, options.replicas);
    set_global_policy(&options.policy)?;
    for seed in 0..options.seeds {
        let strategy = MirroredStrategy::logical(replicas)?;
        let _scope = scope::enter(&strategy)?;
        let load = LoadOptions::new().num_labels(train.num_labels()).seed(seed);
        let model = BertForSequenceClassification::from_pretrained_with(&options.model, &load)?;
        let optimizer = AdamW::new(warmup_linear(5e-5, 0.1)).weight_decay(0.01);
        model.compile(
            CompileArgs::new()
                .optimizer(optimizer.global_clipnorm(1.0))
                .loss(SparseCategoricalCrossentropy { from_logits: true })
                .metrics([accuracy(), macro_f1()])
                .steps_per_execution(16),
        )?;
        let args = FitArgs::new()
            .epochs(epochs)
            .batch_size(32)
            .max_length(64)
            .seed(seed);
        let history = model.fit(&train, args.validation_data(&dev))?;
        let line = serde_json::json!({
            "data": options.data,
            "seed": seed,
            "replicas": replicas,
            "device": device,
            "policy": options.policy,
            "epochs": history.epochs,
            "counters": history.counters,
            "train_seconds": history.seconds(),
            "sequences_per_second": epochs as f64 * train.len() as f64 / history.seconds(),
            "copies_are_equal": model.placement()?.copies_are_equal(),
        });
        // Standard output was closed.
        if writeln!(io::stdout(), "{line}").is_err() {
            return Ok(());
        }
    }
    Ok(())
}
