//! SC0704 `length-mismatch`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Profile, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Two lists that belong together and differ in length.
#[derive(Clone, Debug)]
pub struct LengthMismatch {
    /// What the first list holds: `texts`.
    pub first: String,
    /// Its length.
    pub first_length: usize,
    /// What the second list holds: `labels`.
    pub second: String,
    /// Its length.
    pub second_length: usize,
}

impl Rule for LengthMismatch {
    const PAGE: RulePage = RulePage {
        code: "SC0704",
        name: "length-mismatch",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "Texts and labels, or other lists that belong together, of different lengths.",
        why: "If the longer list were truncated, every pair after a missing row would be wrong.",
        bad: "let reviews = Dataset::from_rows(texts, labels)?; // 4 texts, 2 labels",
        good: "let reviews = Dataset::from_rows(texts[..2].to_vec(), labels)?; // 2 texts, 2 labels",
        tensorflow: tensorflow::page("SC0704"),
    };

    const GIVEN: &'static [&'static str] = &[
        "let texts = vec![\"a game\", \"a font\", \"a tool\", \"a puzzle\"];\n\
         let labels = vec![\"games\", \"fonts\"];",
    ];

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "there are {} {}, but {} {}",
            text::thousands(self.first_length),
            self.first,
            text::thousands(self.second_length),
            self.second
        ))
        .why("each row needs both; truncating the longer list could give wrong pairs")
        .fix("pass lists of the same length")
        .tensorflow(Quote::of("SC0704"))
        .with_answers(|profile| answer(profile, self.first_length, self.second_length))
    }
}

/// docs/keras-semantics.md E29.
fn answer(profile: Profile, x: usize, y: usize) -> Answer {
    const SAME: &str = "Make sure all arrays contain the same number of samples.";
    let says = match profile {
        Profile::Tf23 => format!(
            "ValueError: Data cardinality is ambiguous:\n  x sizes: {x}\n  y sizes: {y}\nPlease provide data \
             which shares the same first dimension."
        ),
        Profile::Tf24 | Profile::TfKeras218 => format!(
            "ValueError: Data cardinality is ambiguous:\n  x sizes: {x}\n  y sizes: {y}\n{SAME}"
        ),
        Profile::Keras3 => format!(
            "ValueError: Data cardinality is ambiguous. {SAME}'x' sizes: {x}\n'y' sizes: {y}"
        ),
    };
    Answer::says(profile, "raises in `fit`", says)
}
