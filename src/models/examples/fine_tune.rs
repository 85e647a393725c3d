//! The training of the notebook `fine_tune_bert`, or of those for tagged words and for questions, once per seed, with one
//! JSON line each. `docs/results.md` has the results.
//!
//! `cargo run --example fine_tune -- [--seeds 5] [--epochs 3] [--replicas 2]
//! [--model all-MiniLM-L6-v2] [--limit ROWS] [--device wgpu:0]
//! [--policy mixed_bfloat16] [--data pairs]`

use std::io::{self, Write};
use std::process::ExitCode;

use stratoscope_bert::LoadOptions;
use stratoscope_data::{Dataset, debian_entities, debian_pairs, debian_questions, debian_sections};
use stratoscope_diagnostics::{Result, render};
use stratoscope_models::{
    AdamW, BertForQuestionAnswering, BertForSequenceClassification, BertForTokenClassification,
    CompileArgs, FitArgs, Metric, Model, SparseCategoricalCrossentropy, accuracy, answer_f1,
    entity_f1, exact_match, macro_f1, set_global_policy, warmup_linear,
};
use stratoscope_strategy::device::choice;
use stratoscope_strategy::{MirroredStrategy, default_device, scope};

const USAGE: &str = "usage: fine_tune [OPTION VALUE]…

  --seeds N     how many trainings, each with another seed (default 5)
  --epochs N    epochs of each (default 3)
  --replicas N  logical devices (default 2)
  --model NAME  a checkpoint (default all-MiniLM-L6-v2)
  --limit N     take the first N rows (default: all)
  --device NAME cpu, wgpu:0, cuda:0, … (default: the best that works)
  --policy NAME float32, mixed_float16 or mixed_bfloat16 (default float32)
  --data NAME   sections, 8 classes of texts (default); pairs, 2 classes of pairs of texts; entities, tagged words;
                questions, answers in texts";

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
                    "sections" | "pairs" | "entities" | "questions" => options.data = value,
                    _ => return Err(format!("there is no data set `{value}`")),
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
        "entities" => debian_entities()?,
        "questions" => debian_questions()?,
        _ => debian_sections()?,
    };
    let (train, dev) = (train.take(options.limit), dev.take(options.limit));
    if let Some(device) = &options.device {
        choice::choose(device)?;
    }
    set_global_policy(&options.policy)?;
    for seed in 0..options.seeds {
        let strategy = MirroredStrategy::logical(options.replicas)?;
        let _scope = scope::enter(&strategy)?;
        let load = LoadOptions::new().num_labels(train.num_labels()).seed(seed);
        let classes = Recipe {
            rate: 5e-5,
            batch: 32,
            tokens: 64,
            metrics: [accuracy(), macro_f1()],
        };
        let heads = |tokens, metrics| Recipe {
            rate: 3e-4,
            batch: 16,
            tokens,
            metrics,
        };
        let name = &options.model;
        let line = match options.data.as_str() {
            "entities" => {
                let model = BertForTokenClassification::from_pretrained_with(name, &load)?;
                heads(48, [entity_f1(), accuracy()]).train(&model, (&train, &dev), options, seed)?
            }
            "questions" => {
                let model = BertForQuestionAnswering::from_pretrained_with(name, &load)?;
                let recipe = heads(128, [exact_match(), answer_f1()]);
                recipe.train(&model, (&train, &dev), options, seed)?
            }
            _ => {
                let model = BertForSequenceClassification::from_pretrained_with(name, &load)?;
                classes.train(&model, (&train, &dev), options, seed)?
            }
        };
        // Standard output was closed.
        if writeln!(io::stdout(), "{line}").is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// What differs between tasks, as their notebooks have it.
struct Recipe {
    rate: f64,
    batch: usize,
    tokens: usize,
    metrics: [Metric; 2],
}

impl Recipe {
    /// Trains, and returns what is printed.
    fn train(
        self,
        model: &Model,
        (train, dev): (&Dataset, &Dataset),
        options: &Options,
        seed: u64,
    ) -> Result<serde_json::Value> {
        let optimizer = AdamW::new(warmup_linear(self.rate, 0.1)).weight_decay(0.01);
        model.compile(
            CompileArgs::new()
                .optimizer(optimizer.global_clipnorm(1.0))
                .loss(SparseCategoricalCrossentropy { from_logits: true })
                .metrics(self.metrics)
                .steps_per_execution(16),
        )?;
        let args = FitArgs::new()
            .epochs(options.epochs)
            .batch_size(self.batch)
            .max_length(self.tokens)
            .seed(seed);
        let history = model.fit(train, args.validation_data(dev))?;
        Ok(serde_json::json!({
            "data": options.data,
            "seed": seed,
            "replicas": options.replicas,
            "device": default_device()?.name,
            "policy": options.policy,
            "epochs": history.epochs,
            "counters": history.counters,
            "train_seconds": history.seconds(),
            "sequences_per_second": options.epochs as f64 * train.len() as f64 / history.seconds(),
            "copies_are_equal": model.placement()?.copies_are_equal(),
        }))
    }
}
