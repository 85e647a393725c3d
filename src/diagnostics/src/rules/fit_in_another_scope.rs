//! SC0205 `fit-in-another-scope`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage};

/// A run that stands in the scope of a strategy that is not the model's.
#[derive(Clone, Debug)]
pub struct FitInAnotherScope {
    /// The scope's strategy: `mirrored#2`.
    pub active: String,
    /// The model's: `mirrored#1`; none for a model outside of any.
    pub bound: Option<String>,
    /// Where the model is: `cpu:0`.
    pub device: String,
}

impl Rule for FitInAnotherScope {
    const PAGE: RulePage = RulePage {
        code: "SC0205",
        name: "fit-in-another-scope",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "`fit!` in the scope of a strategy that the model does not belong to: it was compiled outside of \
                any scope, or it belongs to another strategy.",
        why: "`fit!` runs where the model's variables are. The surrounding scope would have no effect, although \
              the cell suggests that it has one.",
        bad: "let model = Sequential([Dense(1).input_shape(5)])?;\n\
              compile!(model, optimizer = Adam::new(0.01), loss = MeanSquaredError)?;\n\
              let strategy = MirroredStrategy::logical(2)?;\n\
              scope!(strategy, { fit!(model, make_regression(16, 5, 0)?)?; });",
        good: "let strategy = MirroredStrategy::logical(2)?;\nscope!(strategy, {\n    \
               let model = Sequential([Dense(1).input_shape(5)])?;\n    \
               compile!(model, optimizer = Adam::new(0.01), loss = MeanSquaredError)?;\n    \
               fit!(model, make_regression(16, 5, 0)?)?;\n});",
        tensorflow: tensorflow::page("SC0205"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let active = &self.active;
        let (whose, why) = match &self.bound {
            Some(bound) => (
                format!("the model belongs to `{bound}`"),
                format!("its variables and moments are on the devices of `{bound}`"),
            ),
            None => (
                format!(
                    "the model was compiled outside of any scope and is on {} only",
                    self.device
                ),
                "the model has no connection to the scope's strategy".to_owned(),
            ),
        };
        Self::start(format!("`fit!` is in `{active}`'s scope, but {whose}"))
            .label(Place::call("fit"), format!("`{active}` is active here"))
            .why(why)
            .fix("build and compile the model in this scope")
            .fix("or call `fit!` outside of it: a model always trains under its own strategy")
            .tensorflow(Quote::of("SC0205"))
            .with_answers(answer)
    }
}

/// docs/keras-semantics.md E15 to E17.
fn answer(profile: Profile) -> Answer {
    let scope = "<tensorflow.python.distribute.mirrored_strategy.MirroredStrategy object at 0x7f…>";
    let says = match profile {
        Profile::Tf23 | Profile::Tf24 => format!(
            "ValueError: Trying to create optimizer slot variable under the scope for tf.distribute.Strategy \
             ({scope}), which is different from the scope used for the original variable (<tf.Variable …>). \
             Make sure the slot variables are created under the same strategy scope. This may happen if \
             you're restoring from a checkpoint outside the scope"
        ),
        Profile::TfKeras218 => {
            "ValueError: `colocate_vars_with` must only be passed a variable created in \
             this tf.distribute.Strategy.scope(), not: <tf.Variable …>"
                .to_owned()
        }
        Profile::Keras3 => format!(
            "RuntimeError: Mixing different tf.distribute.Strategy objects: {scope} is not \
             <tensorflow.python.distribute.distribute_lib._DefaultDistributionStrategy object at 0x…>"
        ),
    };
    Answer::says(profile, "raises in `fit`", says)
}
