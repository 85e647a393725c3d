//! Times a training step of a BERT sequence classifier with random weights, part by part.
//!
//! ```text
//! cargo run --example encoder_step -- --batch 16 --seq 64
//! ```
//!
//! `--model` is `tiny`, `minilm` (default), `bert-base`, or, for long texts, the ModernBERTs `ettin-32m` and `modernbert`; `--mode` is `train` (default) or `infer`.
//! `--replicas N` trains N copies at once, on N threads with a batch each. A step is forward,
//! cross-entropy, backward, AdamW, without gradient clipping. CPU time is that of the whole process; it
//! is more reliable than the clock on a shared machine.

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{Device, Int, Tensor, TensorData};
use stratoscope_bert::{BatchTensors, BertConfig, Mode, SequenceClassifier};

const LABELS: usize = 8;

/// The arguments of the command line.
#[derive(Clone, Debug)]
struct Arguments {
    model: String,
    training: bool,
    batch: usize,
    seq: usize,
    steps: usize,
    warmup: usize,
    replicas: u32,
}

impl Arguments {
    /// `None` for `--help`.
    fn parse() -> Result<Option<Self>, Box<dyn Error>> {
        let mut arguments = Self {
            model: "minilm".into(),
            training: true,
            batch: 16,
            seq: 64,
            steps: 20,
            warmup: 3,
            replicas: 1,
        };
        let mut words = std::env::args().skip(1);
        while let Some(name) = words.next() {
            if ["-h", "--help"].contains(&name.as_str()) {
                return Ok(None);
            }
            let value = words.next().ok_or(format!("{name} needs a value"))?;
            let number = || -> Result<usize, String> {
                let number = value.parse();
                number.map_err(|_| format!("{name} needs a number, not `{value}`"))
            };
            match name.as_str() {
                "--model" => arguments.model = value,
                "--mode" if ["train", "infer"].contains(&value.as_str()) => {
                    arguments.training = value == "train";
                }
                "--mode" => return Err(format!("no mode {value}: train or infer").into()),
                "--batch" => arguments.batch = number()?.max(1),
                "--seq" => arguments.seq = number()?.max(1),
                "--steps" => arguments.steps = number()?.max(1),
                "--warmup" => arguments.warmup = number()?,
                "--replicas" => arguments.replicas = u32::try_from(number()?)?.max(1),
                _ => return Err(format!("there is no option {name}").into()),
            }
        }
        Ok(Some(arguments))
    }

    fn config(&self) -> Result<BertConfig, Box<dyn Error>> {
        let (vocabulary, hidden, layers, heads, widened, positions) = match self.model.as_str() {
            "tiny" => (128, 32, 2, 4, 64, 64),
            "minilm" => (30522, 384, 6, 12, 1536, 512),
            "bert-base" => (30522, 768, 12, 12, 3072, 512),
            "ettin-32m" => (50368, 384, 10, 6, 576, 8192),
            "modernbert" => (50368, 768, 22, 12, 1152, 8192),
            other => return Err(format!("there is no model {other}").into()),
        };
        let family = match positions {
            8192 => "modernbert",
            _ => "bert",
        };
        // Windows and bases of ModernBERT are its defaults.
        let text = format!(
            r#"{{"model_type": "{family}", "vocab_size": {vocabulary}, "hidden_size": {hidden},
                "num_hidden_layers": {layers}, "num_attention_heads": {heads},
                "intermediate_size": {widened}, "max_position_embeddings": {positions}}}"#
        );
        let config = BertConfig::from_json(&text, "config.json".as_ref());
        Ok(config?.with_num_labels(LABELS)?)
    }
}

/// Seconds of each part of one step.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    forward: f64,
    backward: f64,
    update: f64,
}

impl Parts {
    fn step(&self) -> f64 {
        self.forward + self.backward + self.update
    }
}

const USAGE: &str = "usage: encoder_step [OPTION VALUE]…

  --model NAME  tiny, minilm, bert-base, ettin-32m or modernbert (default minilm)
  --mode MODE   train or infer (default train)
  --batch N     rows a step (default 16)
  --seq N       tokens a row (default 64)
  --steps N     steps that are timed (default 20)
  --warmup N    steps before them (default 3)
  --replicas N  copies of the model at once, each on a thread (default 1)";

fn main() -> ExitCode {
    match Arguments::parse() {
        Ok(None) => println!("{USAGE}"),
        Ok(Some(arguments)) => {
            if let Err(problem) = measure(&arguments) {
                eprintln!("encoder_step: {problem}");
                return ExitCode::FAILURE;
            }
        }
        Err(problem) => {
            eprintln!("encoder_step: {problem}\n{USAGE}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn measure(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let config = arguments.config()?;
    let before = processor_seconds();
    let threads: Vec<_> = (0..arguments.replicas)
        .map(|replica| {
            let (arguments, config) = (arguments.clone(), config.clone());
            std::thread::spawn(move || run(replica, &arguments, &config))
        })
        .collect();
    for (replica, thread) in threads.into_iter().enumerate() {
        let (parts, loss) = thread.join().map_err(|_| "a replica panicked")??;
        let median = |part: fn(&Parts) -> f64| {
            let mut seconds: Vec<f64> = parts.iter().map(part).collect();
            seconds.sort_by(f64::total_cmp);
            seconds[seconds.len() / 2]
        };
        println!(
            "replica {replica}: forward {:.3} s, backward {:.3} s, update {:.3} s, step {:.3} s \
             (medians of {}), {:.1} sequences/s, last loss {loss:.4}",
            median(|parts| parts.forward),
            median(|parts| parts.backward),
            median(|parts| parts.update),
            median(Parts::step),
            parts.len(),
            arguments.batch as f64 / median(Parts::step),
        );
    }
    if let (Some(before), Some(after)) = (before, processor_seconds()) {
        let steps = (arguments.steps + arguments.warmup) as f64;
        println!(
            "processor time per step, start included: {:.3} s",
            (after - before) / steps
        );
    }
    Ok(())
}

fn run(
    replica: u32,
    arguments: &Arguments,
    config: &BertConfig,
) -> Result<(Vec<Parts>, f32), String> {
    let device = if arguments.training {
        Device::flex().autodiff()
    } else {
        Device::flex()
    };
    let network = SequenceClassifier::init(config, u64::from(replica), &device);
    let mut network = network.map_err(|problem| problem.to_string())?;
    let mut optimizer = AdamWConfig::new()
        .with_epsilon(1e-8)
        .with_weight_decay(0.01)
        .init();
    let criterion = CrossEntropyLossConfig::new().init(&device);

    let shape = [arguments.batch, arguments.seq];
    let count = arguments.batch * arguments.seq;
    let ids = (0..count)
        .map(|i| (i * 7919 % config.vocab_size) as i64)
        .collect();
    let batch = BatchTensors::from_values(ids, vec![1.0; count], vec![0; count], shape, &device);
    let labels: Vec<i64> = (0..arguments.batch).map(|i| (i % LABELS) as i64).collect();
    let labels = Tensor::<1, Int>::from_data(TensorData::new(labels, [arguments.batch]), &device);

    let mut parts = Vec::new();
    let mut last = f32::NAN;
    for step in 0..arguments.warmup + arguments.steps {
        let start = Instant::now();
        let mut times = Parts::default();
        if arguments.training {
            let mode = Mode::Train {
                seed: 1,
                step: step as u64,
                replica,
            };
            let logits = network.forward(batch.clone(), mode);
            let loss: Tensor<1> = criterion.forward(logits, labels.clone());
            last = loss.clone().into_scalar::<f32>();
            times.forward = start.elapsed().as_secs_f64();

            let start = Instant::now();
            let gradients = GradientsParams::from_grads(loss.backward(), &network);
            times.backward = start.elapsed().as_secs_f64();

            let start = Instant::now();
            network = optimizer.step(5e-5, network, gradients);
            times.update = start.elapsed().as_secs_f64();
        } else {
            let logits = network.forward(batch.clone(), Mode::Eval);
            last = logits.sum().into_scalar::<f32>();
            times.forward = start.elapsed().as_secs_f64();
        }
        if step >= arguments.warmup {
            parts.push(times);
        }
    }
    Ok((parts, last))
}

/// User and system time of this process so far, if the system reports it.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = text.rsplit(')').next()?.split_whitespace().collect();
    let ticks = |index: usize| {
        fields
            .get(index)
            .and_then(|field| field.parse::<f64>().ok())
    };
    // Fields 14 and 15 of proc(5), in hundredths of a second.
    Some((ticks(11)? + ticks(12)?) / 100.0)
}
