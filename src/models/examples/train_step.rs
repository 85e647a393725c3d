//! Measures training through the public API, on the workload of `tests/bench/torch_reference.py`:
//! all-MiniLM-L6-v2, every row of `--seq` tokens, AdamW with warm-up, global clipping, dropout on.
//!
//! ```text
//! cargo run --example train_step -- --batch 16 --seq 64 --device cpu
//! ```
//!
//! `--policy mixed_bfloat16` trains in bfloat16, `--infer` measures `predict` instead, `--layers` a network of this shape
//! with other layers and random weights, `--profile` measures steps in turns, one by `run.profile` and one by `run.step`, `--replicas` logical devices, `--zero` what they divide among them. One JSON line: `seq_per_s` from the median of the
//! steps after the warm-up, without tokenization (of `predict` with it); the losses of all steps; the peak of memory; the
//! rate of the step's products, and of one large product of float32 on the same device.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use burn::tensor::{Device, Tensor};
use serde_json::json;
use stratoscope_bert::{BertConfig, BertTokenizer, SequenceClassifier, checkpoint, source};
use stratoscope_data::Dataset;
use stratoscope_diagnostics::{Diagnostic, render};
use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, FitArgs, SparseCategoricalCrossentropy,
    set_global_policy, warmup_linear,
};
use stratoscope_strategy::device::choice;
use stratoscope_strategy::{BackendKind, MirroredStrategy, Shard, default_device, devices, scope};
use tempfile::TempDir;

const WARMUP: usize = 3;
const LABELS: usize = 8;
const MODEL: &str = "all-MiniLM-L6-v2";

const USAGE: &str = "usage: train_step [OPTION VALUE]… [--infer]

  --batch N     rows a step (default 16)
  --seq N       tokens a row (default 64)
  --steps N     measured steps, after 3 that are not (default 8)
  --device NAME cpu, wgpu:0, cuda:0, … (default: the best that works)
  --policy NAME float32, mixed_float16 or mixed_bfloat16 (default float32)
  --replicas N  logical devices (default 1: no strategy)
  --zero N      what they divide: ZeRO-1, 2 or 3 (default: nothing)
  --layers N    layers of a network with random weights (default: the checkpoint)
  --infer       measure predict instead of training
  --profile     as many steps again by run.profile, in turns; with the median of their ratio
  --no-product  do not measure the large product, which a GPU has to be tuned for";

fn main() -> ExitCode {
    let arguments = match Arguments::read() {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(problem) => {
            eprintln!("train_step: {problem}\n{USAGE}");
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
                name: "train_step",
            };
            eprintln!("{}", render::plain(diagnostic, &source));
        }
        None => eprintln!("train_step: {problem}"),
    }
    ExitCode::FAILURE
}

/// The arguments of the command line.
struct Arguments {
    batch: usize,
    seq: usize,
    steps: usize,
    replicas: usize,
    /// 0: the replicas divide nothing.
    zero: usize,
    /// 0: those of the checkpoint.
    layers: usize,
    device: Option<String>,
    policy: String,
    infer: bool,
    profile: bool,
    /// Whether one large product is measured, too.
    product: bool,
}

impl Arguments {
    /// `None` for `--help`.
    fn read() -> Result<Option<Self>, String> {
        let mut read = Self {
            batch: 16,
            seq: 64,
            steps: 8,
            replicas: 1,
            zero: 0,
            layers: 0,
            device: None,
            policy: "float32".to_owned(),
            infer: false,
            profile: false,
            product: true,
        };
        let mut words = std::env::args().skip(1);
        while let Some(name) = words.next() {
            let mut value = || words.next().ok_or(format!("{name} needs a value"));
            let number = match name.as_str() {
                "-h" | "--help" => return Ok(None),
                "--infer" => {
                    read.infer = true;
                    continue;
                }
                "--profile" => {
                    read.profile = true;
                    continue;
                }
                "--no-product" => {
                    read.product = false;
                    continue;
                }
                "--device" => {
                    read.device = Some(value()?);
                    continue;
                }
                "--policy" => {
                    read.policy = value()?;
                    continue;
                }
                "--batch" => &mut read.batch,
                "--seq" => &mut read.seq,
                "--steps" => &mut read.steps,
                "--replicas" => &mut read.replicas,
                "--layers" => &mut read.layers,
                "--zero" => &mut read.zero,
                _ => return Err(format!("there is no option {name}")),
            };
            let given = value()?.parse().ok().filter(|&given| given > 0);
            *number = given.ok_or_else(|| format!("{name} needs a number above 0"))?;
        }
        Ok(Some(read))
    }
}

/// What was measured: seconds of the first step, in which a GPU's kernels are compiled and tuned, then the median.
struct Measured {
    first: f64,
    seconds: f64,
    losses: Vec<f64>,
    /// The median ratio of a step that is profiled to the step before it.
    profiled: Option<f64>,
}

fn run(asked: &Arguments) -> Result<(), Box<dyn Error>> {
    if let Some(device) = &asked.device {
        choice::choose(device)?;
    }
    let device = default_device()?;
    set_global_policy(&asked.policy)?;
    let (folder, config, _kept) = checkpoint_of(asked.layers)?;
    let strategy = match asked.replicas {
        1 => None,
        count => Some(MirroredStrategy::logical(count)?),
    };
    let strategy = match (strategy, Shard::ALL.get(asked.zero.wrapping_sub(1))) {
        (Some(strategy), Some(&shard)) => Some(strategy.shard(shard)?),
        (strategy, _) => strategy,
    };
    let scope = strategy.as_ref().map(scope::enter).transpose()?;
    let model = BertForSequenceClassification::from_pretrained(&folder.to_string_lossy(), LABELS)?;
    let measured = match asked.infer {
        true => predict(&model, asked)?,
        false => train(&model, asked)?,
    };
    drop(scope);
    // Before the product, which takes memory of its own.
    let (peak, peak_of) = peak_memory(&device.burn, device.backend);
    let flops =
        flops(&config, asked.seq) * asked.batch as f64 * if asked.infer { 1.0 } else { 3.0 };
    let large = match asked.product {
        true => Some(product(&device.burn, &device.name)?),
        false => None,
    };
    println!(
        "{}",
        json!({
            "batch": asked.batch, "seq": asked.seq, "device": device.name, "description": device.description, "software": software(&device.name),
            "policy": asked.policy, "layers": config.num_hidden_layers, "replicas": asked.replicas, "zero": asked.zero,
            "first_seconds": measured.first, "seconds": measured.seconds,
            "seq_per_s": asked.batch as f64 / measured.seconds, "losses": measured.losses,
            "profiled_ratio": measured.profiled, "peak_memory_bytes": peak, "peak_memory_of": peak_of,
            "gflops": flops / measured.seconds / 1e9, "product_gflops": large,
        })
    );
    Ok(())
}

/// The folder of the checkpoint, or of a network of its shape with so many layers and random weights.
fn checkpoint_of(layers: usize) -> Result<(PathBuf, BertConfig, Option<TempDir>), Box<dyn Error>> {
    let found = source::find(MODEL)?.folder;
    let mut config = BertConfig::from_folder(&found)?.with_num_labels(LABELS)?;
    if layers == 0 {
        return Ok((found, config, None));
    }
    config.num_hidden_layers = layers;
    let folder = TempDir::new()?;
    let network = SequenceClassifier::init(&config, 1, &Device::flex())?;
    let tokenizer = BertTokenizer::from_folder(&found)?;
    checkpoint::save(folder.path(), &network, &config, &tokenizer)?;
    Ok((folder.path().to_owned(), config, Some(folder)))
}

/// So many texts, each word one word piece.
fn texts(rows: usize, words: usize) -> impl Iterator<Item = String> {
    const COMMON: [&str; 10] = [
        "the", "of", "and", "in", "to", "was", "he", "is", "for", "on",
    ];
    (0..rows).map(move |row| {
        let words = (0..words).map(|word| COMMON[(row * 7 + word * 3) % COMMON.len()]);
        words.collect::<Vec<_>>().join(" ")
    })
}

/// `fit` for one epoch. There are more words than `--seq`: truncation makes all rows equally long.
fn train(
    model: &BertForSequenceClassification,
    asked: &Arguments,
) -> Result<Measured, Box<dyn Error>> {
    let steps = asked.steps * if asked.profile { 2 } else { 1 };
    let rows = asked.batch * (steps + WARMUP);
    let labelled = texts(rows, asked.seq).enumerate();
    let labelled = labelled.map(|(index, text)| (text, format!("label {}", index % LABELS)));
    let data = Dataset::from_labelled(labelled);
    model.compile(
        CompileArgs::new()
            .optimizer(AdamW::new(warmup_linear(5e-5, 0.1)).global_clipnorm(1.0))
            .loss(SparseCategoricalCrossentropy { from_logits: true }),
    )?;
    let args = FitArgs::new()
        .epochs(1)
        .batch_size(asked.batch)
        .max_length(asked.seq)
        .verbose(false);
    let history = match asked.profile {
        true => {
            let run = model.start(&data, args)?;
            run.step(WARMUP)?;
            for step in 0..steps {
                match is_profiled(step) {
                    true => drop(run.profile(1)?),
                    false => drop(run.step(1)?),
                }
            }
            run.finish()?
        }
        false => model.fit(&data, args)?,
    };
    let records = &history.executions;
    let seconds: Vec<f64> = records[WARMUP..].iter().map(|it| it.seconds).collect();
    let (mut plain, mut profiled) = (Vec::new(), Vec::new());
    for (step, seconds) in seconds.into_iter().enumerate() {
        match asked.profile && is_profiled(step) {
            true => profiled.push(seconds),
            false => plain.push(seconds),
        }
    }
    let pairs = profiled.iter().zip(&plain);
    let ratios: Vec<f64> = pairs.map(|(profiled, plain)| profiled / plain).collect();
    Ok(Measured {
        first: records[0].seconds,
        seconds: median(plain),
        losses: records.iter().map(|record| record.loss).collect(),
        profiled: (!ratios.is_empty()).then(|| median(ratios)),
    })
}

/// Whether a step is made by `run.profile`: of two steps one, and of every second pair the first, so that neither is always the later one.
fn is_profiled(step: usize) -> bool {
    matches!(step % 4, 1 | 2)
}

/// `predict` of one batch, again and again. The two special tokens of a row are part of `--seq`.
fn predict(
    model: &BertForSequenceClassification,
    asked: &Arguments,
) -> Result<Measured, Box<dyn Error>> {
    let data = Dataset::from_texts(texts(asked.batch, asked.seq.saturating_sub(2).max(1)));
    let mut seconds = Vec::new();
    for _ in 0..asked.steps + WARMUP {
        let begun = Instant::now();
        model.predict(&data)?;
        seconds.push(begun.elapsed().as_secs_f64());
    }
    Ok(Measured {
        first: seconds[0],
        seconds: median(seconds.split_off(WARMUP)),
        losses: Vec::new(),
        profiled: None,
    })
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Operations of the products of a forward pass over one row, a multiplication and an addition being two; the formula of
/// `torch_reference.py`.
fn flops(config: &BertConfig, seq: usize) -> f64 {
    let [layers, hidden, inner, seq] = [
        config.num_hidden_layers,
        config.hidden_size,
        config.intermediate_size,
        seq,
    ]
    .map(|number| number as f64);
    let dense = 4.0 * hidden * hidden + 2.0 * hidden * inner;
    layers * seq * (2.0 * dense + 4.0 * seq * hidden)
}

/// The most memory of this process that was in use, on a GPU what its pool has reserved; and which of the two it is.
fn peak_memory(device: &Device, backend: BackendKind) -> (u64, &'static str) {
    if backend != BackendKind::Flex {
        let usage = device.memory_pool_usage();
        return (
            usage.map_or(0, |usage| usage.bytes_reserved),
            "pool of the device",
        );
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status.lines().find_map(|line| {
        let words = line.strip_prefix("VmHWM:")?;
        words
            .trim()
            .trim_end_matches("kB")
            .trim()
            .parse::<u64>()
            .ok()
    });
    (kilobytes.unwrap_or(0) * 1024, "resident set of the process")
}

/// Whether it is a software adapter, which computes on the processor.
fn software(name: &str) -> bool {
    devices()
        .iter()
        .any(|info| info.name == name && info.software)
}

/// The best of seven square products of float32, in operations (1e9) a second. Its size is one that keeps the device busy
/// and ends within a second.
fn product(device: &Device, name: &str) -> Result<f64, Box<dyn Error>> {
    let size = match (name.starts_with("cpu"), software(name)) {
        (true, _) => 1024,
        (false, true) => 256,
        (false, false) => 4096,
    };
    let ones = Tensor::<2>::ones([size, size], device);
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let begun = Instant::now();
        let product = ones.clone().matmul(ones.clone());
        // The read waits for the product.
        product.slice([0..1, 0..1]).try_into_data()?;
        best = best.min(begun.elapsed().as_secs_f64());
    }
    Ok(2.0 * (size as f64).powi(3) / best / 1e9)
}
