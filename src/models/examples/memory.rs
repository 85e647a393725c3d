//! What a training step takes of memory beside what is `memory_plan`'s: on the CPU the bytes that the allocator gives out,
//! on wgpu those of the device's pool.
//!
//! `cargo run --example memory -- MODEL BATCH LENGTH [recompute] [wgpu] [accumulate=N] [replicas=N] [zero=N] [words=N]
//! [mixed] [parts]`
//!
//! MODEL is `tiny`, a network of the sizes of the tests' one (with `words=N` words), or the name or folder of a checkpoint. Prints one line of JSON.

#[path = "../tests/memory/counted.rs"]
mod counted;
#[path = "shared/tiny.rs"]
mod tiny;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use burn::tensor::Device;
use stratoscope_data::Dataset;
use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, ExecutionRecord, FitArgs,
    SparseCategoricalCrossentropy, memory_plan, on_batch_end, set_global_policy,
};
use stratoscope_strategy::{AsStrategy, MirroredStrategy, OneDeviceStrategy, Shard, scope, wgpu};

#[global_allocator]
static ALLOCATOR: counted::Counted = counted::Counted;

/// Steps that warm up, and steps that are measured.
const WARM: usize = 2;
const MEASURED: usize = 3;

struct Asked {
    model: String,
    batch: usize,
    length: usize,
    flags: Vec<String>,
}

impl Asked {
    fn read() -> Option<Self> {
        let mut words = std::env::args().skip(1);
        Some(Self {
            model: words.next()?,
            batch: words.next()?.parse().ok()?,
            length: words.next()?.parse().ok()?,
            flags: words.collect(),
        })
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|given| given == flag)
    }

    fn number(&self, name: &str) -> usize {
        let value = |flag: &String| flag.strip_prefix(name)?.strip_prefix('=')?.parse().ok();
        self.flags.iter().find_map(value).unwrap_or(1)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked = Asked::read().ok_or("MODEL BATCH LENGTH [recompute] [wgpu] …")?;
    let (accumulate, replicas) = (asked.number("accumulate"), asked.number("replicas"));
    let folder = tiny::bert(asked.number("words").max(128))?;
    let name = match asked.model.as_str() {
        "tiny" => folder.path().to_string_lossy().into_owned(),
        name => name.to_owned(),
    };
    if asked.has("mixed") {
        set_global_policy("mixed_float16")?;
    }
    let strategy = match (asked.has("wgpu"), replicas) {
        (true, _) => Some(OneDeviceStrategy::new(wgpu(0))?.strategy()),
        (false, 1) => None,
        (false, _) => {
            let strategy = MirroredStrategy::logical(replicas)?;
            let level = Shard::ALL.get(asked.number("zero").wrapping_sub(1));
            let level = level.filter(|_| asked.flags.iter().any(|it| it.starts_with("zero=")));
            Some(match level {
                Some(&shard) => strategy.shard(shard)?.strategy(),
                None => strategy.strategy(),
            })
        }
    };
    let scope = strategy.as_ref().map(scope::enter).transpose()?;
    let model = BertForSequenceClassification::from_pretrained(&name, 3)?;
    model.compile(
        CompileArgs::new()
            .optimizer(AdamW::new(1e-5).global_clipnorm(1.0))
            .loss(SparseCategoricalCrossentropy { from_logits: true })
            .gradient_accumulation_steps(accumulate),
    )?;
    drop(scope);
    let device = strategy
        .as_ref()
        .filter(|_| asked.has("wgpu"))
        .map(|strategy| strategy.replicas()[0].burn.clone());
    let pool = device.map(Pool::watch);
    let steps: Mutex<Vec<Step>> = Mutex::default();
    let begun = Mutex::new((0, Instant::now()));
    let data = texts(asked.batch * accumulate * (WARM + MEASURED), asked.length);
    let mut batches = 0;
    let look = |_: &ExecutionRecord| {
        batches += 1;
        if batches % accumulate != 0 {
            return;
        }
        let seconds = begun
            .lock()
            .map_or(0.0, |begun| begun.1.elapsed().as_secs_f64());
        let (peak, live) = match &pool {
            Some(pool) => (pool.peak(), pool.live()),
            None => (counted::peak(), counted::live()),
        };
        if let (Ok(mut steps), Ok(mut begun)) = (steps.lock(), begun.lock()) {
            let bytes = peak.saturating_sub(begun.0);
            steps.push(Step {
                bytes,
                held: live,
                seconds,
            });
            *begun = (live, Instant::now());
        }
    };
    model.fit(
        &data,
        FitArgs::new()
            .batch_size(asked.batch)
            .max_length(asked.length)
            .shuffle(false)
            .recompute(asked.has("recompute"))
            .callbacks(on_batch_end(look))
            .verbose(false),
    )?;
    let mut plan = memory_plan(&model, asked.batch, asked.length);
    if asked.has("recompute") {
        plan = plan.recomputed().ok_or("this network cannot")?;
    }
    let planned = plan.to_come();
    let steps = steps.into_inner()?;
    let steps = &steps[WARM.min(steps.len() - 1)..];
    let bytes = steps.iter().map(|step| step.bytes).max().unwrap_or(0);
    let held = steps.last().map_or(0, |step| step.held);
    let planned_held = replicas as u64 * (plan.of("weights") + plan.of("moments"));
    let mut seconds: Vec<f64> = steps.iter().map(|step| step.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let ratio = planned as f64 / bytes as f64;
    println!(
        "{{\"model\": {:?}, \"batch\": {}, \"length\": {}, \"flags\": {:?}, \"measured\": {bytes}, \"planned\": {planned}, \
         \"ratio\": {ratio:.3}, \"held\": {held}, \"planned_held\": {planned_held}, \"seconds\": {:.4}}}",
        asked.model,
        asked.batch,
        asked.length,
        asked.flags.join(" "),
        seconds[seconds.len() / 2],
    );
    if asked.has("parts") {
        println!("{plan}");
    }
    Ok(())
}

/// An optimizer step: the most bytes above those before it, and its time.
struct Step {
    bytes: usize,
    /// What is left when it is over: weights and moments.
    held: usize,
    seconds: f64,
}

/// The pool of a device, looked at every millisecond on a thread of its own.
struct Pool {
    device: Device,
    peak: Arc<AtomicUsize>,
}

fn in_use(device: &Device) -> usize {
    device
        .memory_pool_usage()
        .map_or(0, |usage| usage.bytes_in_use as usize)
}

impl Pool {
    fn watch(device: Device) -> Self {
        let peak = Arc::new(AtomicUsize::new(0));
        let (watched, most) = (device.clone(), Arc::clone(&peak));
        std::thread::spawn(move || {
            loop {
                most.fetch_max(in_use(&watched), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { device, peak }
    }

    fn live(&self) -> usize {
        in_use(&self.device)
    }

    /// The most that was seen since the last call.
    fn peak(&self) -> usize {
        let live = self.live();
        self.peak.swap(live, Ordering::Relaxed).max(live)
    }
}

/// Texts that fill rows of `length` tokens, of three classes.
fn texts(count: usize, length: usize) -> Dataset {
    let words = |index: usize| {
        let words = (0..length).map(|word| 10 + (index * 11 + word * 5) % 90);
        let words = words.map(|word| format!("w{word}"));
        words.collect::<Vec<_>>().join(" ")
    };
    let label = |index: usize| ["red", "green", "blue"][index % 3];
    Dataset::from_labelled((0..count).map(|index| (words(index), label(index))))
}
