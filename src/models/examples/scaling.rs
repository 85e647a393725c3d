//! A run of workers, measured, with what it predicts for other runs: `tests/bench/scaling.py` compares the two.
//!
//! ```text
//! scaling key job.pem
//! scaling worker 127.0.0.1:2222 job.pem
//! STRATOSCOPE_WORKER_KEY=job.pem scaling chief 127.0.0.1:2222 --steps 12 --rows 64 --rates 100e6,200e6
//! ```
//!
//! The chief's line of JSON has the seconds of a step from outside, and by number of workers what the run predicts: with the
//! link that it has measured, and with each rate, in bits in a second.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use stratoscope_data::make_regression;
use stratoscope_models::{
    Activation, Adam, CompileArgs, Dense, FitArgs, MeanSquaredError, Sequential, work_at,
};
use stratoscope_strategy::{
    AsStrategy, MultiWorkerMirroredStrategy, OneDeviceStrategy, ScalingOptions, Strategy, cpu,
    scope,
};
use stratoscope_workers::{ChiefAddress, JobKey};

/// All workers share so many cores.
const CORES: usize = 2;
const COLUMNS: usize = 256;
const MOST_WORKERS: usize = 8;
const WARM_UP: usize = 3;

/// What the command line says of a run.
struct Given {
    addresses: Vec<String>,
    steps: usize,
    /// Of each worker in a step.
    rows: usize,
    /// The width of the hidden layers.
    width: usize,
    rates: Vec<f64>,
}

fn given(words: &[String]) -> Result<Given, Box<dyn Error>> {
    let mut given = Given {
        addresses: Vec::new(),
        steps: 12,
        rows: 64,
        width: 1500,
        rates: Vec::new(),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with("--") {
            given.addresses.push(word.clone());
            continue;
        }
        let value = words.next().ok_or("a number is missing")?;
        match word.as_str() {
            "--steps" => given.steps = value.parse()?,
            "--rows" => given.rows = value.parse()?,
            "--width" => given.width = value.parse()?,
            "--rates" => {
                let rates: Result<_, _> = value.split(',').map(str::parse).collect();
                given.rates = rates?;
            }
            other => return Err(format!("no option {other}").into()),
        }
    }
    Ok(given)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((role, [address, key])) if role == "worker" => {
            let chief = ChiefAddress::Listen(address.parse()?);
            Ok(work_at(chief, Path::new(key), &|address| {
                println!("waiting for a notebook at {address}");
            })?)
        }
        Some((role, rest)) if role == "chief" => chief(&given(rest)?),
        Some((role, [key])) if role == "key" => Ok(JobKey::new()?.write(Path::new(key))?),
        _ => Err("the first word is key, worker or chief".into()),
    }
}

fn chief(given: &Given) -> Result<(), Box<dyn Error>> {
    if given.addresses.is_empty() {
        let seconds = step_seconds(&OneDeviceStrategy::new(cpu(0))?.strategy(), 1, given)?;
        println!("{{\"workers\": 1, \"seconds\": {seconds}, \"predicted\": {{}}}}");
        return Ok(());
    }
    let strategy = MultiWorkerMirroredStrategy::on(&given.addresses)?;
    let workers = given.addresses.len() + 1;
    let seconds = step_seconds(&strategy.strategy(), workers, given)?;
    let as_measured = ("measured".to_owned(), ScalingOptions::new());
    let rates = given.rates.iter();
    let rates = rates.map(|&rate| (format!("{rate}"), ScalingOptions::new().bandwidth(rate)));
    let mut links = Vec::new();
    for (name, options) in std::iter::once(as_measured).chain(rates) {
        let predicted = strategy.predict_scaling(MOST_WORKERS, options.cores(CORES))?;
        let steps = predicted.rows().iter();
        let steps: Vec<String> = steps
            .map(|row| format!("\"{}\": {}", row.workers, row.step))
            .collect();
        links.push(format!("\"{name}\": {{{}}}", steps.join(", ")));
        if name == "measured" {
            eprintln!("{predicted}\n{}", strategy.status());
        }
    }
    println!(
        "{{\"workers\": {workers}, \"seconds\": {seconds}, \"predicted\": {{{}}}}}",
        links.join(", ")
    );
    Ok(())
}

/// The seconds of a step, of a second run after one that is not measured.
fn step_seconds(strategy: &Strategy, workers: usize, given: &Given) -> Result<f64, Box<dyn Error>> {
    let _scope = scope::enter(strategy)?;
    let layers = [
        Dense(given.width)
            .activation(Activation::Tanh)
            .input_shape(COLUMNS),
        Dense(given.width).activation(Activation::Tanh),
        Dense(1),
    ];
    let model = Sequential(layers)?;
    let args = CompileArgs::new().optimizer(Adam::new(1e-4));
    model.compile(args.loss(MeanSquaredError))?;
    let batch = given.rows * workers;
    let fit = || FitArgs::new().batch_size(batch).verbose(false);
    model.fit(&make_regression(WARM_UP * batch, COLUMNS, 1)?, fit())?;
    let data = make_regression(given.steps * batch, COLUMNS, 2)?;
    let since = Instant::now();
    model.fit(&data, fit())?;
    Ok(since.elapsed().as_secs_f64() / given.steps as f64)
}
