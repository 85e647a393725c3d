//! SC0202 `optimizer-of-other-model`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage};

/// An optimizer that belongs to another model, or to another strategy's scope.
#[derive(Clone, Debug)]
pub struct OptimizerOfOtherModel {
    /// The optimizer's type: `AdamW`.
    pub optimizer: String,
    /// What it belongs to.
    pub owner: OptimizerOwner,
}

/// What an optimizer belongs to.
#[derive(Clone, Debug)]
pub enum OptimizerOwner {
    /// Another model that is still alive.
    Model {
        /// Where that model was compiled: `cell 3, line 2`.
        compiled_at: String,
    },
    /// The scope of another strategy.
    Strategy {
        /// The strategy in whose scope it was made: `MirroredStrategy (2 replicas)`.
        made_under: String,
        /// The model's strategy.
        model: String,
    },
}

impl Rule for OptimizerOfOtherModel {
    const PAGE: RulePage = RulePage {
        code: "SC0202",
        name: "optimizer-of-other-model",
        severity: Severity::Error,
        stage: Stage::Compile,
        finds: "An optimizer in `compile!` that another model uses, or that was made under another \
                strategy's scope.",
        why: "An optimizer has moments for the variables of its model. For another model's variables they are \
              missing or, worse, have the same shape and wrong values.",
        bad: "let optimizer = AdamW::new(5e-5);\n\
              compile!(first, optimizer = optimizer.clone(), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              fit!(first, train)?;\n\
              compile!(second, optimizer = optimizer, loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        good: "compile!(first, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              fit!(first, train)?;\n\
              compile!(second, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        tensorflow: tensorflow::page("SC0202"),
    };

    const GIVEN: &'static [&'static str] = &[
        "let first = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
         let second = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;",
    ];

    fn diagnostic(&self) -> Diagnostic {
        let optimizer = &self.optimizer;
        let place = Place::argument("compile", "optimizer");
        match &self.owner {
            OptimizerOwner::Model { compiled_at } => {
                Self::start(format!("this `{optimizer}` already trains another model"))
                    .label(place, "used by another model")
                    .why("its moments belong to the other model's variables")
                    .evidence("used by", format!("the model compiled at {compiled_at}"))
                    .fix(format!(
                        "create a new one: `optimizer = {optimizer}::new(5e-5)`"
                    ))
                    .tensorflow(Quote::of("SC0202"))
                    .with_answers(answer)
            }
            OptimizerOwner::Strategy { made_under, model } => {
                let message =
                    format!("this `{optimizer}` was made in the scope of another strategy");
                Self::start(message)
                    .label(place, format!("made under `{made_under}`"))
                    .why("an optimizer keeps its moments where its strategy keeps the weights: both \
                          must belong to one strategy")
                    .evidence("the model's strategy", format!("`{model}`"))
                    .fix(format!(
                        "make it in the scope of the model: `optimizer = {optimizer}::new(5e-5)` in \
                         `compile!`"
                    ))
            }
        }
    }
}

/// docs/keras-semantics.md E14, for an optimizer that is used for a second model.
fn answer(profile: Profile) -> Answer {
    let says = match profile {
        Profile::Tf23 | Profile::Tf24 => {
            return Answer::does(profile, "accepts it without a message");
        }
        Profile::TfKeras218 => {
            "KeyError: 'The optimizer cannot recognize variable dense_2/kernel:0. This usually means you are \
             trying to call the optimizer to update different parts of the model separately. Please call \
             `optimizer.build(variables)` with the full list of trainable variables before the training loop \
             or use legacy optimizer `tf.keras.optimizers.legacy.Adam.'"
        }
        Profile::Keras3 => {
            "ValueError: Unknown variable: <Variable path=sequential_1/dense_2/kernel, shape=(8, 4), \
             dtype=float32>. This optimizer can only be called for the variables it was originally built \
             with. When working with a new set of variables, you should recreate a new optimizer instance."
        }
    };
    Answer::says(profile, "compiles; `fit` fails", says)
}
