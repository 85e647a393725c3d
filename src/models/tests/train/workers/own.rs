//! Networks of one's own in worker processes.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::tanh;
use burn::tensor::{Device, Tensor};
use stratoscope_bert::Mode;
use stratoscope_data::Batch;
use stratoscope_models::{Model, ModelOf, Outputs, features};

use super::*;

/// Two layers that wait for the width of their input.
#[derive(Module, Debug)]
struct Two {
    hidden: Option<Linear>,
    last: Option<Linear>,
    units: usize,
}

impl Two {
    fn waiting(_: &Device) -> Self {
        Self {
            hidden: None,
            last: None,
            units: 6,
        }
    }
}

impl Network for Two {
    type Files = Outputs;

    fn is_built(&self) -> bool {
        self.hidden.is_some()
    }

    fn build(mut self, width: usize, device: &Device) -> Self {
        device.seed(5);
        self.hidden = Some(LinearConfig::new(width, self.units).init(device));
        self.last = Some(LinearConfig::new(self.units, 1).init(device));
        self
    }

    fn logits(&self, batch: &Batch, _: Mode, device: &Device) -> Tensor<2> {
        let (hidden, last) = self.hidden.as_ref().zip(self.last.as_ref()).expect("built");
        last.forward(tanh(hidden.forward(features(batch, device))))
    }
}

fn compiled_of(strategy: &impl AsStrategy, model: impl FnOnce() -> ModelOf<Two>) -> ModelOf<Two> {
    let _scope = scope::enter(strategy).expect("no scope is active");
    let model = model();
    let args = CompileArgs::new().optimizer(Adam::new(0.01));
    model.compile(args.loss(MeanSquaredError)).expect("valid");
    model
}

fn made() -> ModelOf<Two> {
    Model::made_by(Two::waiting, Outputs::new("Two", 1)).expect("a device")
}

/// The function is called in the workers, where the network is built for the width that the chief has found; a fork of the
/// run has it, too.
#[test]
fn a_network_that_a_function_makes_has_the_bits_of_logical_devices() {
    let train = make_regression(37, 5, 1).expect("data");
    let fit = || FitArgs::new().epochs(2).batch_size(8).verbose(false);
    let run = |strategy: Strategy| {
        let model = compiled_of(&strategy, made);
        let run = model.start(&train, fit()).expect("it starts");
        run.step(2).expect("steps");
        let fork = run.fork().expect("it goes on");
        let history = run.finish().expect("it ends");
        let of_fork = fork.finish().expect("it ends");
        (left(&model, &history), left(&fork.model(), &of_fork))
    };
    assert_eq!(run(workers(2).strategy()), run(logical(2).strategy()));
}

#[test]
fn a_value_cannot_travel() {
    let team = workers(2);
    let value = || Model::of(Two::waiting(&Device::flex()), Outputs::new("Two", 1)).expect("one");
    let model = compiled_of(&team, value);
    let train = make_regression(16, 5, 1).expect("data");
    let fit = FitArgs::new().batch_size(8).verbose(false);
    let error = model.fit(&train, fit).expect_err("workers cannot make it");
    assert_eq!(error.code, "SC0810");
    assert!(error.fixes[0].title.contains("made_by"), "{error:?}");
}
