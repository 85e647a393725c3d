//! SC0914 `empty-dataset`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Profile, Rule, RulePage, Severity, Stage};

/// A dataset without a single example.
#[derive(Clone, Debug)]
pub struct EmptyDataset {
    /// Where it came from: a path, or `validation split`.
    pub source: String,
    /// What was to be done with it: `fit!`, `evaluate!`, `loading`.
    pub wanted_by: String,
}

impl Rule for EmptyDataset {
    const PAGE: RulePage = RulePage {
        code: "SC0914",
        name: "empty-dataset",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A dataset without examples: an empty file, one with only a header, or a split that left nothing.",
        why: "An epoch without batches ends at once and looks like a success.",
        bad: "let train = Dataset::tsv(\"only-a-header.tsv\")?;",
        good: "let train = Dataset::tsv(\"train.tsv\")?;",
        tensorflow: tensorflow::page("SC0914"),
    };

    const GIVEN: &'static [&'static str] = &[
        "std::fs::write(\"train.tsv\", \"text\\tlabel\\na fine game\\tgames\\n\")?;\n\
         std::fs::write(\"only-a-header.tsv\", \"text\\tlabel\\n\")?;",
    ];

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!("no examples in {}", self.source))
            .why(format!("{} needs at least one", self.wanted_by))
            .fix(self.way_out())
            .tensorflow(Quote::of("SC0914"))
            .with_answers(answer)
    }
}

impl EmptyDataset {
    /// What was in memory has no file.
    fn way_out(&self) -> &'static str {
        match self.wanted_by.trim_matches('`') {
            "predict" | "embed" => {
                "pass at least one example: `model.predict([\"a text\"])?` or `model.predict([[1.0, 2.0]])?`"
            }
            call if call.starts_with("Dataset::from_") => "pass at least one example",
            _ => "check that the file has rows below its header, and that a split leaves some",
        }
    }
}

/// docs/keras-semantics.md E30.
fn answer(profile: Profile) -> Answer {
    let says = match profile {
        Profile::Tf23 => "UnboundLocalError: local variable 'logs' referenced before assignment",
        Profile::Tf24 => "ValueError: Expect x to be a non-empty array or dataset.",
        Profile::TfKeras218 => "ValueError: Expected input data to be non-empty.",
        Profile::Keras3 => {
            return Answer::does(
                profile,
                "trains nothing and returns an empty history, no message",
            );
        }
    };
    Answer::says(profile, "raises in `fit`", says)
}
