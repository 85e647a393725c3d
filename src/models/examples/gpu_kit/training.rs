//! Training, predicting, and memory in the course of a run.

use std::error::Error;
use std::time::Instant;

use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, FitArgs, SparseCategoricalCrossentropy,
    warmup_linear,
};
use stratoscope_strategy::device::choice;
use stratoscope_strategy::{LogicalDevice, MirroredStrategy, scope};

use crate::network::{self, LABELS};
use crate::{Arguments, Memory, median, megabytes, milliseconds, row};

/// Steps before those that are measured.
pub const WARMUP: usize = 3;
/// How often memory is read in a run.
const READINGS: usize = 10;

/// A compiled network, on the devices that are asked for.
pub fn model(asked: &Arguments) -> Result<BertForSequenceClassification, Box<dyn Error>> {
    let folder = network::checkpoint(&asked.size, asked.seq)?;
    let strategy = match asked.replicas {
        1 => None,
        count => Some(MirroredStrategy::logical(count)?),
    };
    let scope = strategy.as_ref().map(scope::enter).transpose()?;
    let path = folder.path().to_string_lossy();
    let model = BertForSequenceClassification::from_pretrained(&path, LABELS)?;
    drop(scope);
    model.compile(
        CompileArgs::new()
            .optimizer(AdamW::new(warmup_linear(5e-5, 0.1)).global_clipnorm(1.0))
            .loss(SparseCategoricalCrossentropy { from_logits: true }),
    )?;
    Ok(model)
}

pub fn arguments(asked: &Arguments) -> FitArgs<'static> {
    FitArgs::new()
        .epochs(1)
        .batch_size(asked.batch)
        .max_length(asked.seq)
        .verbose(false)
}

pub fn train(asked: &Arguments, device: &LogicalDevice) -> Result<(), Box<dyn Error>> {
    let model = model(asked)?;
    let data = network::labelled(asked.batch * (asked.steps + WARMUP), asked.seq);
    let history = model.fit(&data, arguments(asked))?;
    let seconds: Vec<f64> = history.executions.iter().map(|it| it.seconds).collect();
    let losses: Vec<f64> = history.executions.iter().map(|it| it.loss).collect();
    println!("seconds {seconds:?}\nlosses {losses:?}");
    let first = seconds[0];
    let step = median(seconds[WARMUP..].to_vec());
    let result = format!(
        "{:.0} sequences/s, {} a step, first step {first:.1} s, {} reserved, last loss {:.4}",
        asked.batch as f64 / step,
        milliseconds(step),
        megabytes(Memory::of(device).reserved),
        losses.last().copied().unwrap_or(f64::NAN),
    );
    row(&format!("train {}", asked.shape()), &result);
    Ok(())
}

/// The same steps on the processor and on the device, with dropout.
pub fn agree(asked: &Arguments, device: &LogicalDevice) -> Result<(), Box<dyn Error>> {
    let losses = |name: &str| -> Result<Vec<f64>, Box<dyn Error>> {
        choice::choose(name)?;
        let model = model(asked)?;
        let data = network::labelled(asked.batch * asked.steps, asked.seq);
        let history = model.fit(&data, arguments(asked))?;
        Ok(history.executions.iter().map(|it| it.loss).collect())
    };
    let (expected, found) = (losses("cpu")?, losses(&device.name)?);
    println!("on the processor {expected:?}\non the device {found:?}");
    let off = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
    let off = off.fold(0.0, f64::max);
    let what = format!(
        "losses of {} steps beside the processor; train {}",
        asked.steps,
        asked.shape()
    );
    row(&what, &format!("they differ by {off:.1e} at most"));
    Ok(())
}

pub fn predict(asked: &Arguments, device: &LogicalDevice) -> Result<(), Box<dyn Error>> {
    let model = model(asked)?;
    let data = network::unlabelled(asked.batch, asked.seq);
    let mut seconds = Vec::new();
    for _ in 0..asked.steps + WARMUP {
        let begun = Instant::now();
        model.predict(&data)?;
        seconds.push(begun.elapsed().as_secs_f64());
    }
    println!("seconds {seconds:?}");
    let first = seconds[0];
    let step = median(seconds.split_off(WARMUP));
    let result = format!(
        "{:.0} sequences/s, {} a batch, first {first:.1} s, {} reserved",
        asked.batch as f64 / step,
        milliseconds(step),
        megabytes(Memory::of(device).reserved),
    );
    row(&format!("predict {}", asked.shape()), &result);
    Ok(())
}

/// Memory at ten times of a run: what grows with the steps is a leak.
pub fn memory(asked: &Arguments, device: &LogicalDevice) -> Result<(), Box<dyn Error>> {
    let model = model(asked)?;
    let part = asked.steps.div_ceil(READINGS);
    let data = network::labelled(asked.batch * part * READINGS, asked.seq);
    let run = model.start(&data, arguments(asked))?;
    let mut readings = Vec::new();
    for reading in 1..=READINGS {
        run.step(part)?;
        let memory = Memory::of(device);
        println!(
            "step {}: {} in use, {} reserved, {} of the process",
            part * reading,
            megabytes(memory.used),
            megabytes(memory.reserved),
            megabytes(memory.host),
        );
        readings.push(memory);
    }
    let (Some(first), Some(last)) = (readings.first(), readings.last()) else {
        return Ok(());
    };
    let course = |of: fn(&Memory) -> u64| {
        let (first, last) = (of(first), of(last));
        let change = (last as f64 - first as f64) / 1e6;
        format!("{} ({change:+.1} MB)", megabytes(last))
    };
    let what = format!(
        "memory after {} steps, and its change since step {part}; train {}",
        part * READINGS,
        asked.shape()
    );
    let result = format!(
        "{} in use, {} reserved, {} of the process",
        course(|it| it.used),
        course(|it| it.reserved),
        course(|it| it.host)
    );
    row(&what, &result);
    Ok(())
}
