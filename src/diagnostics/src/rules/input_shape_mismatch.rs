//! SC0411 `input-shape-mismatch`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Examples of another kind or width than the model was made for.
#[derive(Clone, Debug)]
pub struct InputShapeMismatch {
    /// What users call the model: `Sequential`.
    pub model: String,
    /// What the model takes.
    pub wants: Examples,
    /// What the dataset holds.
    pub given: Examples,
    /// The dataset's name: its file or variable.
    pub source: String,
    /// Name of the call without `!`: `fit`.
    pub call: String,
    /// Whether they are the validation data of the call.
    pub is_validation: bool,
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

impl Rule for InputShapeMismatch {
    const PAGE: RulePage = RulePage {
        code: "SC0411",
        name: "input-shape-mismatch",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A dataset whose rows have another number of columns than the model was built for, or texts \
                passed to a model of numbers, or the reverse.",
        why: "A layer's weights have a row for each input: 5 numbers cannot be multiplied with the weights of 8 \
              inputs. A built model keeps its input width.",
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
        let (whose, place, data) = match self.is_validation {
            true => (
                "validation data of ",
                Place::argument(&self.call, "validation_data"),
                "validation data",
            ),
            false => ("", Place::call(&self.call), "data"),
        };
        let diagnostic = Self::start(format!(
            "`{}` takes {wants}, got {whose}{given}",
            self.model
        ))
        .label(place, format!("{whose}{given}"))
        .evidence(data, self.source.clone());
        match (self.wants, self.given) {
            (Examples::Numbers(Some(wants)), Examples::Numbers(Some(_))) if self.is_validation => {
                diagnostic
                    .why("training and validation data need the same columns: the model has a weight for each")
                    .fix(format!("pass validation data with the {wants} columns of the training data"))
            }
            (Examples::Numbers(Some(wants)), Examples::Numbers(Some(given))) => diagnostic
                .why("it was built for that width: its first layer has a weight for each input")
                .fix(format!(
                    "pass rows of {wants}, or build the model for {given}: `.input_shape({given})` in its first \
                     layer"
                ))
                .tensorflow(Quote::of("SC0411"))
                .with_answers(|profile| answer(profile, wants, given)),
            (Examples::Texts, _) => {
                diagnostic.fix("pass texts: `Dataset::from_labelled`, `Dataset::tsv` and the like")
            }
            _ => diagnostic
                .why("it has no tokenizer, so it cannot encode text")
                .fix("pass numbers: `Dataset::from_arrays(x, y)?`"),
        }
    }
}

/// docs/keras-semantics.md E28.
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
