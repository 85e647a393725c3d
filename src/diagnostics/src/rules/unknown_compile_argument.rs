//! SC0101 `unknown-compile-argument`.

use super::shared::{Unknown, unknown_argument};
use crate::{ArgumentRow, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage, arguments};

/// An argument of `compile!` whose name is not in the table of arguments.
#[derive(Clone, Debug)]
pub struct UnknownCompileArgument {
    /// The name as typed.
    pub given: String,
    /// Where the name stands.
    pub place: Place,
    /// What goes when the argument goes, its comma included.
    pub drop: Place,
    /// Known names that look like it, best first.
    pub similar: Vec<String>,
    /// What the name means elsewhere, a sentence, where that is known.
    pub hint: Option<String>,
    /// The call's arguments, those passed and those left at their defaults.
    pub arguments: Vec<ArgumentRow>,
    /// The version whose exact words are to be shown.
    pub profile: Option<Profile>,
}

impl Rule for UnknownCompileArgument {
    const PAGE: RulePage = RulePage {
        code: "SC0101",
        name: "unknown-compile-argument",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "An argument of `compile!` whose name is not in the table of its arguments. Names that \
                are one slip away are offered first; names of other libraries are translated.",
        why: "Ignored, it would leave the default in force: the run would train with other settings \
              than those on the screen.",
        bad: "compile!(model, optimiser = AdamW::new(5e-5), loss = \"sparse_categorical_crossentropy\")?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), loss = \"sparse_categorical_crossentropy\")?;",
        tensorflow: "A `TypeError` when the line runs. Keras 2 lists legacy names only, two of which raise \
                     errors themselves; Keras 3 names the first unknown argument and lists none.",
    };

    fn diagnostic(&self) -> Diagnostic {
        let told = Self::start(format!("`compile!` has no argument `{}`", self.given));
        unknown_argument(
            told,
            Unknown {
                call: "compile",
                given: &self.given,
                place: &self.place,
                drop: &self.drop,
                similar: &self.similar,
                hint: self.hint.as_deref(),
                known: arguments::COMPILE
                    .iter()
                    .map(|argument| argument.name)
                    .collect(),
            },
        )
        .arguments(self.arguments.clone())
        .tensorflow(tensorflow(&self.given, self.profile))
    }
}

/// What `Model.compile` says of an unknown argument.
fn tensorflow(given: &str, profile: Option<Profile>) -> String {
    match profile {
        None => "raises a TypeError when the line runs, not before".to_owned(),
        Some(profile @ (Profile::Tf23 | Profile::Tf24)) => format!(
            "{}: TypeError: Invalid keyword argument(s) in `compile`: {{'{given}'}}",
            profile.title()
        ),
        Some(profile @ Profile::TfKeras218) => format!(
            "{}: TypeError: Invalid keyword argument(s) in `compile()`: ({{'{given}'}},). Valid keyword \
             arguments include \"cloning\", \"experimental_run_tf_function\", \"distribute\", \
             \"target_tensors\", or \"sample_weight_mode\".",
            profile.title()
        ),
        Some(profile @ Profile::Keras3) => format!(
            "{}: TypeError: Trainer.compile() got an unexpected keyword argument '{given}'",
            profile.title()
        ),
    }
}
