//! SC0411 `input-does-not-fit`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Examples of another kind or width than the model was made for.
#[derive(Clone, Debug)]
pub struct InputDoesNotFit {
    /// What users call the model: `Sequential`.
    pub model: String,
    /// What the model takes.
    pub wants: Examples,
    /// What the data set holds.
    pub given: Examples,
    /// The data set, as its author named it.
    pub source: String,
    /// Name of the call without `!`: `fit`.
    pub call: String,
}

/// What examples are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Examples {
    /// Texts.
    Texts,
    /// Rows of numbers, of this width where it is known.
    Numbers(Option<usize>),
}

impl Examples {
    fn words(self) -> String {
        match self {
            Self::Texts => "texts".to_owned(),
            Self::Numbers(None) => "rows of numbers".to_owned(),
            Self::Numbers(Some(width)) => format!("rows of {}", text::count(width, "number")),
        }
    }
}

impl Rule for InputDoesNotFit {
    const PAGE: RulePage = RulePage {
        code: "SC0411",
        name: "input-does-not-fit",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A data set whose rows have another number of columns than the model was built for, or texts \
                given to a model of numbers, or the reverse.",
        why: "A layer's weights have a row for each input: there is no product of 5 numbers with the weights of \
              8. Once built, a model keeps its width.",
        bad: "let model = Sequential([Dense(1).input_shape(8)])?;\n\
              compile!(model, optimizer = Adam::new(0.01), loss = MeanSquaredError)?;\n\
              fit!(model, make_regression(16, 5, 0)?)?;",
        good: "let model = Sequential([Dense(1).input_shape(5)])?;\n\
               compile!(model, optimizer = Adam::new(0.01), loss = MeanSquaredError)?;\n\
               fit!(model, make_regression(16, 5, 0)?)?;",
        tensorflow: tensorflow::page("SC0411"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let (wants, given) = (self.wants.words(), self.given.words());
        let told = Self::start(format!("`{}` takes {wants}, got {given}", self.model))
            .label(Place::call(&self.call), format!("got {given}"))
            .evidence("data", self.source.clone());
        match (self.wants, self.given) {
            (Examples::Numbers(Some(wants)), Examples::Numbers(Some(given))) => told
                .why("it was built for that many numbers: its first layer has weights for each of them")
                .fix(format!(
                    "give rows of {wants}, or build the model for {given}: `.input_shape({given})` in its \
                     first layer"
                ))
                .tensorflow(Quote::of("SC0411"))
                .answers(|profile| answer(profile, wants, given)),
            (Examples::Texts, _) => {
                told.fix("give texts: `Dataset::from_labelled`, `Dataset::tsv` and the like")
            }
            _ => told
                .why("it has no tokenizer: it cannot turn a text into numbers")
                .fix("give numbers: `Dataset::from_arrays(x, y)?`"),
        }
    }
}

/// keras-semantics E28.
fn answer(profile: Profile, wants: usize, given: usize) -> Answer {
    let expected = format!(
        "ValueError: Input 0 of layer sequential is incompatible with the layer: expected axis -1 of input \
         shape to have value {wants} but received input with shape"
    );
    let says = match profile {
        Profile::Tf23 => format!("{expected} [None, {given}]"),
        Profile::Tf24 => format!("{expected} (None, {given})"),
        Profile::TfKeras218 => format!(
            "ValueError: Input 0 of layer \"sequential\" is incompatible with the layer: expected \
             shape=(None, {wants}), found shape=(None, {given})"
        ),
        Profile::Keras3 => return Answer::does(profile, "raises a ValueError at the first batch"),
    };
    Answer::says(profile, "raises in `fit`", says)
}
