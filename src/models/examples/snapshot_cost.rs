//! What snapshots cost: a training step of a network of dense layers without them, with one before every step, and what a
//! plain copy of the same memory takes.
//!
//! `cargo run --example snapshot_cost -- [units] [steps]`

use std::time::Instant;

use stratoscope_data::make_regression;
use stratoscope_models::{AdamW, CompileArgs, Dense, FitArgs, MeanSquaredError, Sequential};

fn main() -> stratoscope_diagnostics::Result<()> {
    let mut numbers = std::env::args()
        .skip(1)
        .filter_map(|it| it.parse::<usize>().ok());
    let (units, steps) = (numbers.next().unwrap_or(2048), numbers.next().unwrap_or(20));
    let data = make_regression(64 * (steps + 10), units, 3)?;
    let mut parameters = 0;
    for (name, every) in [
        ("none", 1_000_000_u64),
        ("one a step", 1),
        ("none again", 1_000_000),
    ] {
        let model = Sequential([Dense(units).seed(1), Dense(units).seed(2), Dense(1).seed(3)])?;
        model.compile(
            CompileArgs::new()
                .optimizer(AdamW::new(1e-4))
                .loss(MeanSquaredError),
        )?;
        let run = model.start(&data, FitArgs::new().batch_size(64).verbose(false))?;
        parameters = model.num_parameters();
        run.step(3)?;
        // Room for two: an old one is freed for each that is taken.
        run.keep_snapshots(every, (parameters * 12 * 5 / 2 / 1_000_000) as u64)?;
        run.step(3)?;
        let begun = Instant::now();
        run.step(steps as u64)?;
        let seconds = begun.elapsed().as_secs_f64() / steps as f64;
        println!("snapshots: {name}: {:.1} ms a step", seconds * 1e3);
    }
    let held = vec![1_u8; parameters * 12];
    let begun = Instant::now();
    let mut copies = Vec::new();
    for _ in 0..5 {
        copies = held.clone();
    }
    let seconds = begun.elapsed().as_secs_f64() / 5.0;
    println!(
        "{parameters} parameters; a copy of them and their moments: {:.1} ms",
        seconds * 1e3
    );
    drop(copies);
    Ok(())
}
