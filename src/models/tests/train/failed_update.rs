//! A GPU whose memory is full when the weights are updated: the run stands before the step, with the weights of one step.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn::module::{
    Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor,
};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use stratoscope_bert::Mode;
use stratoscope_data::{Batch, make_classification};
use stratoscope_models::{CompileArgs, FitArgs, Model, Network, Outputs, SGD, features, scale};
use stratoscope_strategy::scope;

use crate::support::{assert_near, assert_near_weights, cross_entropy, heard, one_gpu, weights};

/// A layer that fails as an allocation of cubecl does: when its variables are updated for the so many-th time from now,
/// counted down to 0. The layers before it are updated by then.
#[derive(Clone, Debug)]
struct Failing {
    inner: Linear,
    left: Arc<AtomicUsize>,
}

impl Module for Failing {
    fn collect_devices(&self, devices: Devices) -> Devices {
        self.inner.collect_devices(devices)
    }

    fn fork(self, device: &Device) -> Self {
        let inner = self.inner.fork(device);
        Self { inner, ..self }
    }

    fn to_device(self, device: &Device) -> Self {
        let inner = self.inner.to_device(device);
        Self { inner, ..self }
    }

    fn train(self) -> Self {
        let inner = self.inner.train();
        Self { inner, ..self }
    }

    fn valid(&self) -> Self {
        let (inner, left) = (self.inner.valid(), Arc::clone(&self.left));
        Self { inner, left }
    }

    fn materialize(self) -> Self {
        let inner = self.inner.materialize();
        Self { inner, ..self }
    }

    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.inner.visit(visitor);
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        let is_last = |left: usize| left.checked_sub(1);
        let last = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_last);
        assert!(last != Ok(1), "can't allocate buffer of size: 4096");
        let inner = self.inner.map(mapper);
        Self { inner, ..self }
    }
}

impl ModuleDisplayDefault for Failing {
    fn content(&self, content: Content) -> Option<Content> {
        content.add_single(&self.inner).optional()
    }
}

impl ModuleDisplay for Failing {}

#[derive(Module, Debug)]
struct TwoLayers {
    first: Linear,
    second: Failing,
}

impl Network for TwoLayers {
    type Files = Outputs;

    fn logits(&self, batch: &Batch, _: Mode, device: &Device) -> Tensor<2> {
        let hidden = self.first.forward(features(batch, device)).tanh();
        self.second.inner.forward(hidden)
    }
}

#[test]
fn an_update_without_memory_is_undone() {
    let Some(strategy) = one_gpu() else {
        return;
    };
    let _scope = scope::enter(&strategy).expect("no scope is active");
    let data = make_classification(64, 4, 3, 1).expect("sizes above 0");
    let left = Arc::new(AtomicUsize::new(0));
    let model = || {
        let device = scope::device().expect("a device");
        device.seed(7);
        let network = TwoLayers {
            first: LinearConfig::new(4, 8).init(&device),
            second: Failing {
                inner: LinearConfig::new(8, 3).init(&device),
                left: Arc::clone(&left),
            },
        };
        let model = Model::of(network, Outputs::new("TwoLayers", 3)).expect("there is room");
        let args = CompileArgs::new()
            .optimizer(SGD::new(0.1).momentum(0.9))
            .loss(cross_entropy());
        model.compile(args).expect("valid arguments");
        model
    };
    let args = || {
        FitArgs::new()
            .epochs(2)
            .batch_size(4)
            .seed(3)
            .verbose(false)
    };
    let run = |model: &Model| model.start(&data, args()).expect("it is free");

    let (reference, model) = (model(), model());
    let undisturbed = run(&reference);
    undisturbed.step(12).expect("steps");
    undisturbed.set_learning_rate(scale(0.5)).expect("a rate");
    let run = run(&model);
    run.step(12).expect("steps");
    run.set_learning_rate(scale(0.5)).expect("a rate");
    // The first call of `map` in an update takes the weights out of their places, the last one changes them.
    for fails_at in [1, 2] {
        left.store(fails_at, Ordering::SeqCst);
        let (outcome, notices) = heard(&["SC0610"], || run.step(1));
        let problem = outcome.expect_err("no memory");
        assert_eq!(left.load(Ordering::SeqCst), 0);
        assert_eq!(problem.code, "SC0607", "{problem}");
        assert!(
            problem
                .why
                .iter()
                .any(|it| it.contains("while it changed the weights")),
            "{problem:?}"
        );
        let said: Vec<&str> = notices.iter().map(|it| it.message.as_str()).collect();
        let expected = "the update of step 13 failed; the run is back at step 12 (snapshot of step 10 and 2 steps replayed)";
        assert_eq!(said, [expected]);
        assert_near_weights(&weights(&model), &weights(&reference));
    }
    let (found, expected) = (run.finish(), undisturbed.finish());
    let (found, expected) = (found.expect("it goes on"), expected.expect("it ends"));
    assert_eq!(found.steps.len(), 32);
    assert_eq!(found.edits, expected.edits);
    for (found, expected) in found.steps.iter().zip(&expected.steps) {
        assert_near(found.loss, expected.loss);
    }
    assert_near_weights(&weights(&model), &weights(&reference));
}
