//! SC0707 `unseen-examples`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// `steps_per_epoch` that is not the number of batches of the data.
#[derive(Clone, Debug)]
pub struct UnseenExamples {
    /// Examples that no epoch of the run comes to.
    pub never: usize,
    /// Examples of the data.
    pub examples: usize,
    /// As it was written.
    pub steps_per_epoch: u64,
    /// Batches that the data has.
    pub batches: u64,
    /// Examples of a batch.
    pub batch_size: usize,
    /// Epochs of the run.
    pub epochs: u64,
    /// Whether each epoch has a new order.
    pub shuffle: bool,
}

impl Rule for UnseenExamples {
    const PAGE: RulePage = RulePage {
        code: "SC0707",
        name: "unseen-examples",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "A `steps_per_epoch` below the number of batches, if some examples are then in no epoch of the run. \
                Also a `steps_per_epoch` above the number of batches.",
        why: "The model does not learn from examples that are in no epoch, and without shuffling these are \
              always the same ones. If there are too many steps, the epoch ends with the data. A short last \
              batch is never dropped.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              fit!(model, train.take(52), batch_size = 8, steps_per_epoch = 4)?; // the data has 7 batches",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               fit!(model, train.take(52), batch_size = 8)?;",
        tensorflow: tensorflow::page("SC0707"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            steps_per_epoch,
            batches,
            batch_size,
            ..
        } = self;
        let too_many = steps_per_epoch > batches;
        let diagnostic = match too_many {
            true => Self::start(format!(
                "`steps_per_epoch = {steps_per_epoch}`, but the data has {batches} batches: the epoch ends with them"
            )),
            false => Self::start(format!(
                "{} of {} examples are never seen",
                text::thousands(self.never),
                text::thousands(self.examples)
            )),
        };
        let diagnostic = diagnostic
            .label(
                Place::call("fit"),
                format!("the data has {batches} batches"),
            )
            .why(match (too_many, self.shuffle) {
                (true, _) => "an epoch passes over the data once; datasets do not repeat",
                (false, true) => {
                    "each epoch uses the first batches of its own order, and the run is too short \
                                  to reach all examples"
                }
                (false, false) => "without shuffling every epoch uses the same first batches",
            })
            .evidence(
                "batches",
                format!(
                    "{} examples / {batch_size} = {batches}, {steps_per_epoch} requested",
                    text::thousands(self.examples)
                ),
            )
            .evidence("epochs", text::thousands(self.epochs as usize));
        diagnostic
            .fix_edit(
                "remove `steps_per_epoch`: an epoch is then all of the data",
                Place::argument("fit", "steps_per_epoch"),
                "",
            )
            .tensorflow(Quote::case(
                "SC0707",
                match too_many {
                    true => "too many",
                    false => "too few",
                },
            ))
            .with_answers(|profile| answer(profile, too_many, steps_per_epoch * self.epochs))
    }
}

/// docs/keras-semantics.md §1.2, `steps_per_epoch`.
fn answer(profile: Profile, too_many: bool, batches: u64) -> Answer {
    match too_many {
        true => Answer::says(
            profile,
            "warns and ends the training",
            format!(
                "Your input ran out of data; interrupting training. Make sure that your dataset or generator can \
                 generate at least `steps_per_epoch * epochs` batches (in this case, {batches} batches). You may need \
                 to use the repeat() function when building your dataset."
            ),
        ),
        false => Answer::does(profile, "trains on the first batches without a message"),
    }
}
