//! Attention for long rows: this project's, which stores the S × S probabilities, and burn's, whose kernels for GPUs compute them in tiles
//! and store none. Forward only: burn's has no dropout, and its backward pass computes the probabilities again.

use std::error::Error;
use std::time::Instant;

use burn::tensor::module::attention as burn_attention;
use burn::tensor::{Distribution, Tensor};
use stratoscope_bert::ops;
use stratoscope_strategy::LogicalDevice;

use crate::training::WARMUP;
use crate::{Arguments, Memory, median, megabytes, milliseconds, row};

pub fn attention(asked: &Arguments, device: &LogicalDevice) -> Result<(), Box<dyn Error>> {
    let (heads, hidden) = (asked.size.heads, asked.size.hidden);
    let shape = [asked.batch, asked.seq, hidden];
    let uniform = Distribution::Uniform(-1.0, 1.0);
    let [query, key, value] = [0; 3].map(|_| Tensor::<3>::random(shape, uniform, &device.burn));
    let mask = Tensor::<2>::ones([asked.batch, asked.seq], &device.burn);
    let ours = || {
        let [query, key, value] = [&query, &key, &value].map(Tensor::clone);
        ops::attention(query, key, value, heads, mask.clone(), None)
    };
    // [B, S, H] → [B, N, S, H / N]
    let by_head = |x: &Tensor<3>| -> Tensor<4> {
        let split = [asked.batch, asked.seq, heads, hidden / heads];
        x.clone().reshape(split).swap_dims(1, 2)
    };
    let tiles = || {
        let [query, key, value] = [&query, &key, &value].map(by_head);
        let found = burn_attention(query, key, value, None, None, Default::default());
        found.swap_dims(1, 2).reshape(shape)
    };
    let run: &dyn Fn() -> Tensor<3> = match asked.of.as_str() {
        "ours" => &ours,
        "tiles" => &tiles,
        other => return Err(format!("--of is ours or tiles, not `{other}`").into()),
    };
    let mut seconds = Vec::new();
    for _ in 0..asked.steps + WARMUP {
        let begun = Instant::now();
        let found = run();
        device.burn.sync()?;
        seconds.push(begun.elapsed().as_secs_f64());
        drop(found);
    }
    let first = seconds[0];
    let memory = Memory::of(device);
    let off = (ours() - tiles()).abs().max().try_into_data()?;
    let off = off.iter::<f32>().next().unwrap_or(f32::NAN);
    row(
        &format!(
            "attention of {} × {} tokens, {heads} heads, {}",
            asked.batch,
            asked.seq,
            match asked.of.as_str() {
                "ours" => "probabilities stored (ours)",
                _ => "burn's own choice",
            }
        ),
        &format!(
            "{}, first {first:.1} s, {} reserved, the two differ by {off:e}",
            milliseconds(median(seconds.split_off(WARMUP))),
            megabytes(memory.reserved),
        ),
    );
    Ok(())
}
