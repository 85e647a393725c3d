//! The training loop as one writes it for the first time: for each batch the gradient, for each step the update. `fit!`, with
//! everything that happens beside its loop, ends at the same bits.

use std::ops::Deref;

use stratoscope_data::{Dataset, make_classification};
use stratoscope_diagnostics::Result;
use stratoscope_models::by_hand::Gradients;
use stratoscope_models::{
    Adam, AdamW, CompileArgs, Dense, Dropout, FitArgs, Model, Sequential, breakpoints,
};
use stratoscope_strategy::{AsStrategy, MirroredStrategy};

use crate::support::{compiled, cross_entropy, plain_args, sentences, weights};

/// A model of any type.
type AnyModel = dyn Deref<Target = Model>;

const EPOCHS: u64 = 2;
const BATCH_SIZE: usize = 4;

/// The loop of `fit!` and nothing else.
fn naive_loop(model: &Model, data: &Dataset, accumulation: usize) -> Result<()> {
    for _epoch in 0..EPOCHS {
        let mut sum = Gradients::zeros();
        for batch in 0..data.len() / BATCH_SIZE {
            // Forward and backward: the gradient of the mean loss over the examples of the batch, on all replicas.
            let examples = data.skip(batch * BATCH_SIZE).take(BATCH_SIZE);
            sum += model.gradients(&examples)?;
            if sum.batches() == accumulation {
                // The optimizer step, with the mean gradient over all examples of its batches.
                model.apply(std::mem::take(&mut sum) / accumulation as f64)?;
            }
        }
    }
    Ok(())
}

/// The same in the order of the data, with the dropout masks of seed 0.
fn args() -> FitArgs<'static> {
    FitArgs::new()
        .epochs(EPOCHS)
        .batch_size(BATCH_SIZE)
        .shuffle(false)
        .seed(0)
        .verbose(false)
}

/// Trains three models that begin alike, each in another way, and compares all weights bit for bit.
fn compare(model: impl Fn() -> Box<AnyModel>, data: &Dataset, accumulation: usize) {
    let models = [model(), model(), model()];
    let [by_hand, at_once, in_pieces]: [&Model; 3] = models.each_ref().map(|it| &***it);
    let begin = weights(by_hand);
    naive_loop(by_hand, data, accumulation).expect("it trains");
    assert_ne!(weights(by_hand), begin, "nothing was trained");

    at_once.fit(data, args()).expect("it trains");
    assert_eq!(weights(at_once), weights(by_hand), "fit!");

    // With breakpoints, snapshots, and one turn back in the middle.
    let run = in_pieces.start(data, args()).expect("good data");
    let never = breakpoints::custom(|step| step.loss > 1e6);
    run.break_when(never | breakpoints::nan()).expect("valid");
    run.step(3).expect("three steps");
    run.rewind(1).expect("a step that was made");
    run.finish().expect("the rest");
    assert_eq!(weights(in_pieces), weights(by_hand), "start!");
}

#[test]
fn layers_train_as_in_a_naive_loop() {
    let data = make_classification(24, 4, 3, 1).expect("rows");
    let layers = || {
        let layers = [
            Dense(8).activation("relu").input_shape(4).seed(7),
            Dropout(0.25),
            Dense(3).seed(8),
        ];
        let model = Sequential(layers).expect("layers");
        let args = CompileArgs::new()
            .optimizer(Adam::new(0.01))
            .loss(cross_entropy());
        model.compile(args).expect("it fits");
        model
    };
    compare(|| Box::new(layers()), &data, 1);
}

#[test]
fn bert_trains_as_in_a_naive_loop() {
    let bert = || compiled(None, "float32", plain_args());
    compare(|| Box::new(bert()), &sentences(24), 1);
}

#[test]
fn replicas_train_as_in_a_naive_loop() {
    let strategy = || Some(MirroredStrategy::logical(2).expect("two").strategy());
    let bert = || compiled(strategy(), "float32", plain_args());
    compare(|| Box::new(bert()), &sentences(24), 1);
}

/// Two batches a step, and clipping of the global norm.
#[test]
fn accumulated_batches_train_as_in_a_naive_loop() {
    let clipped = || AdamW::new(1e-3).global_clipnorm(1.0);
    let args = || {
        plain_args()
            .optimizer(clipped())
            .gradient_accumulation_steps(2)
    };
    let bert = || compiled(None, "float32", args());
    compare(|| Box::new(bert()), &sentences(24), 2);
}
