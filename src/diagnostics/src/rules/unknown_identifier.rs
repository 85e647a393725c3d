//! SC0105 `unknown-identifier`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, ArgumentRow, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A text that names no loss, metric or optimizer.
#[derive(Clone, Debug)]
pub struct UnknownIdentifier {
    /// What it should name: `loss`, `metric` or `optimizer`.
    pub kind: String,
    /// The text between the quotes.
    pub given: String,
    /// The text with its quotes; at run time the argument or call that holds it.
    pub place: Place,
    /// Known names that look like it, best first.
    pub similar: Vec<String>,
    /// All names that are known.
    pub known: Vec<String>,
    /// What stands in for it, a sentence, where the name is one of another library.
    pub hint: Option<String>,
    /// The call's arguments; empty when raised at run time.
    pub arguments: Vec<ArgumentRow>,
}

impl Rule for UnknownIdentifier {
    const PAGE: RulePage = RulePage {
        code: "SC0105",
        name: "unknown-identifier",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A string for `loss`, `metrics` or `optimizer` that is not a known name.",
        why: "Keras resolves losses and metrics at the first batch, so the error appears after minutes of \
              loading; here the names are checked before the cell runs.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), metrics = [\"acuracy\"])?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), metrics = [\"accuracy\"])?;",
        tensorflow: tensorflow::page("SC0105"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let kind = &self.kind;
        let mut diagnostic = Self::start(format!("there is no {kind} `{}`", self.given))
            .label(self.place.clone(), format!("unknown {kind}"));
        if let Some(hint) = &self.hint {
            diagnostic = diagnostic.why(hint.clone());
        }
        diagnostic = diagnostic.why(format!("known: {}", text::names(&self.known, 20)));
        for name in self.similar.iter().take(3) {
            diagnostic =
                diagnostic.suggest_edit_of_span(name, self.place.clone(), format!("\"{name}\""));
        }
        if self.similar.is_empty() {
            diagnostic = diagnostic.fix("take one from the list, or pass a value of a custom type");
        }
        let diagnostic = diagnostic.arguments(self.arguments.clone());
        let case = match kind.as_str() {
            "optimizer" => "optimizer",
            "loss" | "metric" => "fit",
            _ => return diagnostic,
        };
        diagnostic
            .tensorflow(Quote::case("SC0105", case))
            .with_answers(|profile| answer(profile, kind, &self.given))
    }
}

/// docs/keras-semantics.md E27.
fn answer(profile: Profile, kind: &str, given: &str) -> Answer {
    let does = match kind {
        "optimizer" => "raises in `compile`",
        _ => "compiles; `fit` fails",
    };
    let what = match kind {
        "optimizer" => "optimizer",
        "loss" => "loss function",
        _ => "metric function",
    };
    let says = match profile {
        Profile::Tf23 | Profile::Tf24 => format!("ValueError: Unknown {what}: {given}"),
        Profile::TfKeras218 if kind == "metric" => {
            "TypeError: 'str' object is not callable".to_owned()
        }
        Profile::TfKeras218 => format!(
            "ValueError: Unknown {what}: '{given}'. Please ensure you are using a \
             `keras.utils.custom_object_scope` and that this object is included in the scope. See \
             https://www.tensorflow.org/guide/keras/save_and_serialize#registering_the_custom_object for \
             details."
        ),
        Profile::Keras3 => format!("ValueError: Could not interpret {kind} identifier: {given}"),
    };
    Answer::says(profile, does, says)
}
