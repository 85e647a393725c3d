//! What bfloat16 gains on this processor: the bare products at a layer's shapes, a training step without the optimizer,
//! and the memory that activations take. Both precisions are measured in turns.
//!
//! ```text
//! cargo run --example bfloat16 -- [--batch 16] [--seq 64] [--rounds 5]
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use burn::nn::loss::CrossEntropyLossConfig;
use burn::tensor::{Device, Int, Tensor, TensorData};
use stratoscope_bert::ops::{self, Precision, bfloat16_on_cpu};
use stratoscope_bert::{BatchTensors, BertConfig, Mode, SequenceClassifier};

/// Counts the bytes that are held, and the most that were.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work; counting changes nothing of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const PRECISIONS: [(&str, Precision); 2] = [
    ("float32", Precision::Float32),
    ("bfloat16", Precision::Bfloat16),
];
const LABELS: usize = 8;
const USAGE: &str = "usage: bfloat16 [--batch N] [--seq N] [--rounds N]";

fn main() -> ExitCode {
    match arguments().and_then(|(batch, seq, rounds)| {
        println!("bfloat16 is {:?} on this processor", bfloat16_on_cpu());
        layers(batch * seq, rounds);
        network(batch, seq, rounds)
    }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("bfloat16: {problem}\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<(usize, usize, usize), Box<dyn Error>> {
    let (mut batch, mut seq, mut rounds) = (16, 64, 5);
    let mut words = std::env::args().skip(1);
    while let Some(name) = words.next() {
        let number = match name.as_str() {
            "--batch" => &mut batch,
            "--seq" => &mut seq,
            "--rounds" => &mut rounds,
            _ => return Err(format!("there is no option {name}").into()),
        };
        let value = words.next().ok_or(format!("{name} needs a value"))?;
        *number = value.parse::<usize>()?.max(1);
    }
    Ok((batch, seq, rounds))
}

/// Seconds of the wall and of the processor, the least of several turns.
#[derive(Clone, Copy)]
struct Least {
    wall: f64,
    processor: f64,
}

impl Least {
    const NONE: Self = Self {
        wall: f64::MAX,
        processor: f64::MAX,
    };

    fn take(&mut self, work: impl FnOnce()) {
        let (before, start) = (processor_seconds(), Instant::now());
        work();
        self.wall = self.wall.min(start.elapsed().as_secs_f64());
        self.processor = self.processor.min(processor_seconds() - before);
    }
}

/// Forward and backward through one dense layer, as the layers of MiniLM have them: three products.
fn layers(rows: usize, rounds: usize) {
    let device = Device::flex().autodiff();
    println!(
        "\nlayer, rows × inputs × outputs    GFLOP/s by wall: float32  bfloat16   ratio; by processor time: ratio"
    );
    for (inputs, outputs) in [(384, 384), (384, 1536), (1536, 384), (768, 3072)] {
        let number = |i: usize| ((i * 7919) % 997) as f32 / 500.0 - 1.0;
        let data = |count| (0..count).map(number).collect::<Vec<f32>>();
        let x = TensorData::new(data(rows * inputs), [1, rows, inputs]);
        let x = Tensor::<3>::from_data(x, &device).require_grad();
        let w = TensorData::new(data(outputs * inputs), [outputs, inputs]);
        let w = Tensor::<2>::from_data(w, &device).require_grad();
        let b = Tensor::<1>::zeros([outputs], &device).require_grad();
        let g = TensorData::new(data(rows * outputs), [1, rows, outputs]);
        let g = Tensor::<3>::from_data(g, &device);
        let mut least = [Least::NONE; 2];
        let repeats = (4_000_000_000 / (6 * rows * inputs * outputs)).max(1);
        for _ in 0..rounds {
            for (least, (_, precision)) in least.iter_mut().zip(PRECISIONS) {
                least.take(|| {
                    for _ in 0..repeats {
                        let y = precision.during(|| ops::linear(x.clone(), w.clone(), b.clone()));
                        let gradients = (y * g.clone()).backward();
                        std::hint::black_box(w.grad(&gradients));
                    }
                });
            }
        }
        let work = (6 * rows * inputs * outputs * repeats) as f64 / 1e9;
        let [plain, half] = least;
        println!(
            "{:<34}{:>25.0}{:>10.0}{:>8.2}{:>26.2}",
            format!("{rows} × {inputs} × {outputs}"),
            work / plain.wall,
            work / half.wall,
            plain.wall / half.wall,
            plain.processor / half.processor,
        );
    }
}

/// Forward and backward of MiniLM with a head, and the memory of activations.
fn network(batch: usize, seq: usize, rounds: usize) -> Result<(), Box<dyn Error>> {
    let text = r#"{"model_type": "bert", "vocab_size": 30522, "hidden_size": 384, "num_hidden_layers": 6,
        "num_attention_heads": 12, "intermediate_size": 1536, "max_position_embeddings": 512,
        "type_vocab_size": 2, "hidden_act": "gelu"}"#;
    let config = BertConfig::from_json(text, "config.json".as_ref())?.with_num_labels(LABELS)?;
    let device = Device::flex().autodiff();
    let network = SequenceClassifier::init(&config, 1, &device)?;
    let criterion = CrossEntropyLossConfig::new().init(&device);
    let count = batch * seq;
    let ids = (0..count).map(|i| (i * 7919 % 30522) as i64).collect();
    let inputs =
        BatchTensors::from_values(ids, vec![1.0; count], vec![0; count], [batch, seq], &device);
    let labels: Vec<i64> = (0..batch).map(|i| (i % LABELS) as i64).collect();
    let labels = Tensor::<1, Int>::from_data(TensorData::new(labels, [batch]), &device);
    let forward = |precision: Precision| -> Tensor<1> {
        let mode = Mode::Train {
            seed: 1,
            step: 0,
            replica: 0,
        };
        let logits = precision.during(|| network.forward(inputs.clone(), mode));
        criterion.forward(logits, labels.clone())
    };
    let mut found = [Measured::NONE; 2];
    // The first round allocates what the others find again.
    for round in 0..=rounds {
        for (found, (_, precision)) in found.iter_mut().zip(PRECISIONS) {
            if round == 1 {
                *found = Measured::NONE;
            }
            found.take(|| forward(precision));
        }
    }
    println!("\nMiniLM-L6, {batch} × {seq}, without the optimizer, the least of {rounds} turns");
    for ((name, _), found) in PRECISIONS.into_iter().zip(found) {
        found.print(name);
    }
    let [plain, half] = found;
    println!(
        "float32 / bfloat16: wall {:.2}, processor {:.2}, kept {:.2}",
        plain.both(|least| least.wall) / half.both(|least| least.wall),
        plain.both(|least| least.processor) / half.both(|least| least.processor),
        plain.kept as f64 / half.kept as f64,
    );
    Ok(())
}

/// Of a step: the times, and the bytes held after and at most during the forward pass.
#[derive(Clone, Copy)]
struct Measured {
    forward: Least,
    backward: Least,
    kept: usize,
    most: usize,
}

impl Measured {
    const NONE: Self = Self {
        forward: Least::NONE,
        backward: Least::NONE,
        kept: 0,
        most: 0,
    };

    fn take(&mut self, forward: impl FnOnce() -> Tensor<1>) {
        let before = HELD.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let mut loss = None;
        self.forward.take(|| loss = Some(forward()));
        self.kept = HELD.load(Ordering::Relaxed) - before;
        self.most = MOST.load(Ordering::Relaxed) - before;
        self.backward.take(|| {
            std::hint::black_box(loss.map(|loss| loss.backward()));
        });
    }

    fn both(&self, of: fn(&Least) -> f64) -> f64 {
        of(&self.forward) + of(&self.backward)
    }

    fn print(&self, name: &str) {
        let megabytes = |bytes: usize| bytes as f64 / f64::from(1 << 20);
        println!(
            "{name:<9} forward {:.1} ms, backward {:.1} ms, both {:.1} ms, processor {:.1} ms; \
             kept for backward {:.1} MiB, most during forward {:.1} MiB",
            1e3 * self.forward.wall,
            1e3 * self.backward.wall,
            1e3 * self.both(|least| least.wall),
            1e3 * self.both(|least| least.processor),
            megabytes(self.kept),
            megabytes(self.most),
        );
    }
}

/// User and system time of this process so far; 0 where the system does not report it.
fn processor_seconds() -> f64 {
    let of_thread = |path: std::path::PathBuf| -> Option<f64> {
        let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    let threads = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    threads
        .filter_map(|thread| of_thread(thread.path()))
        .sum::<f64>()
        / 1e9
}
