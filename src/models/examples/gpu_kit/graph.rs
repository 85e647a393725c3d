//! burn's graphs: a computation is captured once, and its launches are replayed together. Two are tried: the forward pass of `predict`,
//! and Adam's update. Inputs of both lie in buffers that stay, which is what a graph needs.

use std::error::Error;
use std::time::Instant;

use burn::tensor::{Device, Tensor, capture};
use stratoscope_bert::{Mode, SequenceClassifier};
use stratoscope_gpu::{AdamStep, Flat, Slots, adam};

use crate::{Arguments, median, milliseconds, network, row};

pub fn graph(asked: &Arguments, device: &Device) -> Result<(), Box<dyn Error>> {
    match asked.of.as_str() {
        "predict" => predict(asked, device),
        "update" => update(asked, device),
        other => Err(format!("--of is predict or update, not `{other}`").into()),
    }
}

/// Seconds of each call, until the device has done its work.
fn timed<T>(
    steps: usize,
    mut work: impl FnMut() -> Result<T, Box<dyn Error>>,
) -> Result<f64, Box<dyn Error>> {
    let mut seconds = Vec::new();
    for _ in 0..steps {
        let begun = Instant::now();
        work()?;
        seconds.push(begun.elapsed().as_secs_f64());
    }
    Ok(median(seconds))
}

fn kind(is_hardware: bool) -> &'static str {
    match is_hardware {
        true => "captured",
        false => "not captured: a replay computes it again",
    }
}

/// The forward pass of a batch, read by the host.
fn predict(asked: &Arguments, device: &Device) -> Result<(), Box<dyn Error>> {
    let config = asked.size.config(asked.seq)?;
    let network = SequenceClassifier::init(&config, 1, device)?;
    let batch = network::batch(asked.batch, asked.seq, device);
    let forward = || network.forward(batch.clone(), Mode::Eval);
    let read = |logits: Tensor<2>| -> Result<Vec<f32>, Box<dyn Error>> {
        Ok(logits.try_into_data()?.iter::<f32>().collect())
    };
    let expected = read(forward())?;
    let eager = timed(asked.steps, || read(forward()))?;
    let mut graph = capture(device, forward);
    let is_hardware = graph.is_hardware();
    // SAFETY: the closure borrows network and batch, which live until the end of this function; nothing else uses them, and all of it
    // is this thread's stream.
    let found = read(unsafe { graph.replay() }.clone())?;
    let off = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
    let off = off.fold(0.0, f32::max);
    let replayed = timed(asked.steps, || {
        // SAFETY: as above.
        read(unsafe { graph.replay() }.clone())
    })?;
    row(
        &format!("graph of predict {} × {}", asked.batch, asked.seq),
        &format!(
            "{}; {} without, {} replayed, logits differ by {off:e}",
            kind(is_hardware),
            milliseconds(eager),
            milliseconds(replayed)
        ),
    );
    Ok(())
}

/// Adam's update of all variables of the network, each changed where it lies.
fn update(asked: &Arguments, device: &Device) -> Result<(), Box<dyn Error>> {
    let config = asked.size.config(asked.seq)?;
    let sizes = asked.size.variables(&config);
    let zeros = |&size: &usize| Flat::new(Tensor::<1>::zeros([size], device));
    let gradients: Vec<Tensor<1>> = (sizes.iter())
        .map(|&size| Tensor::ones([size], device) * 0.01)
        .collect();
    let slots = |size: &usize| {
        Some(Slots {
            weights: zeros(size)?,
            first: zeros(size)?,
            second: zeros(size)?,
            gradient: None,
        })
    };
    let slots: Option<Vec<Slots>> = sizes.iter().map(slots).collect();
    let mut slots = slots.ok_or("the update is a kernel on a GPU only")?;
    // The numbers of a step are arguments of the launches: a graph repeats those that it was captured with.
    let step = AdamStep {
        factor: 1.0,
        limit: f32::INFINITY,
        keep: 1.0,
        first: 0.1,
        beta_2: 0.999,
        second: 0.001,
        root: 0.03,
        epsilon: 1e-8,
        size: 1e-3,
    };
    let mut one = || {
        let mut before = std::mem::take(&mut slots);
        for (slots, gradient) in before.iter_mut().zip(&gradients) {
            slots.gradient = Flat::new(gradient.clone());
        }
        slots = adam(before, step);
    };
    one();
    device.sync()?;
    let eager = timed(asked.steps, || {
        one();
        Ok(device.sync()?)
    })?;
    let mut graph = capture(device, one);
    let is_hardware = graph.is_hardware();
    let replayed = timed(asked.steps, || {
        // SAFETY: the closure owns or borrows all tensors, which live until the end of this function, and all of it is this thread's
        // stream.
        unsafe { graph.replay() };
        Ok(device.sync()?)
    })?;
    drop(graph);
    let first = slots.into_iter().next().map(|it| it.weights);
    let first = first.ok_or("there are variables")?.into_tensor::<1>();
    let moved: Vec<f32> = first
        .narrow(0, 0, 1)
        .try_into_data()?
        .iter::<f32>()
        .collect();
    row(
        &format!("graph of Adam's update of {} variables", sizes.len()),
        &format!(
            "{}; {} without, {} replayed, the first weight is {:?}",
            kind(is_hardware),
            milliseconds(eager),
            milliseconds(replayed),
            moved
        ),
    );
    Ok(())
}
