//! What threads and logical devices cost. Run by hand: `cargo test --workspace --locked --test strategy -- scaling
//! --ignored --nocapture`.

use std::time::{Duration, Instant};

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::GradientsParams;
use burn::tensor::{Distribution, Tensor};
use stratoscope_strategy::{MirroredStrategy, Origin, Replicas, scope};

#[derive(Module, Debug)]
struct Wide {
    layers: Vec<Linear>,
}

fn step(module: &Wide, input: Tensor<2>) -> GradientsParams {
    let output = module
        .layers
        .iter()
        .fold(input, |x, layer| layer.forward(x).tanh());
    GradientsParams::from_grads(output.sum().backward(), module)
}

/// A step of 1024 rows on one device, on two replicas at once, on two replicas one after the other.
#[test]
#[ignore = "a measurement, not a check"]
fn two_threads_against_one() {
    let time = |name: &str, work: &dyn Fn()| {
        work();
        let mut times: Vec<Duration> = (0..5)
            .map(|_| {
                let start = Instant::now();
                work();
                start.elapsed()
            })
            .collect();
        times.sort();
        println!("{name:<28} {:>8.1} ms", times[2].as_secs_f64() * 1e3);
    };
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let _scope = scope::enter(&strategy).expect("no scope is active");
    let device = scope::device().expect("a processor");
    let layers = (0..12)
        .map(|_| LinearConfig::new(512, 512).init(&device))
        .collect();
    let replicas = Replicas::place(Wide { layers }, &[], Origin::current())
        .expect("the processor takes copies");
    let rows = |count| Tensor::<2>::random([count, 512], Distribution::Default, &device);
    let (whole, halves) = (rows(1024), [rows(512), rows(512)]);
    time("one replica, 1024 rows", &|| {
        step(replicas.first(), whole.clone());
    });
    time("two threads, 512 rows each", &|| {
        let work = |_, module: &Wide, input| step(module, input);
        replicas
            .for_each_replica(halves.to_vec(), work)
            .expect("one input per replica");
    });
    time("one after the other", &|| {
        for (module, input) in replicas.modules().iter().zip(halves.clone()) {
            step(module, input);
        }
    });
    let gradients = || {
        let work = |_, module: &Wide, input| step(module, input);
        replicas
            .for_each_replica(halves.to_vec(), work)
            .expect("one input per replica")
    };
    let mut times = Vec::new();
    for _ in 0..5 {
        let gradients = gradients();
        let start = Instant::now();
        replicas
            .all_reduce(gradients, &[512, 512])
            .expect("two of each");
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let bytes = replicas
        .collectives()
        .recent()
        .last()
        .map_or(0, |record| record.bytes);
    println!("all-reduce of {bytes} bytes: {times:.1?} ms");
    let start = Instant::now();
    replicas.checksums().expect("the processor answers");
    println!(
        "checksums of both copies: {:.1} ms",
        start.elapsed().as_secs_f64() * 1e3
    );
}
