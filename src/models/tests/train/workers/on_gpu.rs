//! Workers whose device is a GPU; Mesa's software one is enough.

use stratoscope_strategy::device::choice;

use super::*;
use crate::support::{gpu, largest_difference, one_gpu};

/// Makes it the default device until it is dropped.
struct Gpu;

impl Gpu {
    /// `None`, and a line that is counted, without an adapter.
    fn chosen() -> Option<Self> {
        one_gpu()?;
        choice::choose(&gpu().to_string()).expect("it has just started");
        Some(Self)
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        choice::choose("cpu").expect("there is a processor");
    }
}

/// The workers take the chief's kind of device, have its values after every update, and learn what processors learn;
/// when one is lost, the others compute its share.
#[test]
fn workers_train_on_the_default_device() {
    let train = make_regression(24, 5, 2).expect("data");
    let args = || CompileArgs::new().optimizer(Adam::new(0.01));
    let fit = || FitArgs::new().epochs(2).batch_size(8).verbose(false);
    let expected = sequential(&logical(2), args());
    let losses = |history: &History| -> Vec<f64> {
        let steps = history.steps.iter();
        steps.map(|it| it.loss).collect()
    };
    let on_processors = losses(&expected.fit(&train, fit()).expect("it trains"));
    let Some(_gpu) = Gpu::chosen() else {
        return;
    };
    let team = workers(2).replace_lost(false);
    let model = sequential(&team, args());
    let run = model.start(&train, fit()).expect("it starts");
    run.step(4).expect("steps");
    let report = model.placement().expect("readable");
    for row in &report.variables {
        assert_eq!(row.copies.len(), 2, "{}", report.to_plain());
        assert!(row.is_equal(), "{}", report.to_plain());
    }
    let on = match stratoscope_gpu::testing::is_cuda() {
        true => ", on CUDA",
        false => ", on wgpu",
    };
    for device in team.strategy().replicas() {
        assert!(device.description.ends_with(on), "{device:?}");
    }
    let process = team.process(1).expect("a worker").expect("it is there");
    signal(process, libc::SIGKILL);
    let (history, notices) = heard(&["SC0808"], || run.finish().expect("it ends"));
    assert_eq!(codes(&notices, "SC0808"), 1, "{notices:?}");
    for (found, expected) in losses(&history).iter().zip(&on_processors) {
        let limit = 1e-5 * expected.abs().max(1.0);
        assert!((found - expected).abs() <= limit, "{found} {expected}");
    }
    for ((name, found), (_, expected)) in weights(&model).iter().zip(&weights(&expected)) {
        let off = largest_difference(found, expected);
        assert!(off <= 5e-5, "`{name}` is off by {off:e}");
    }
}
