//! What several rules tell in the same words.

use crate::{Answer, Diagnostic, Place, Profile, words};

/// An argument whose name the call does not know: the facts of SC0101, SC0114 and SC0115 alike.
pub(super) struct Unknown<'a> {
    /// Name of the call without `!`.
    pub call: &'a str,
    /// The name as typed.
    pub given: &'a str,
    /// Where the name stands.
    pub place: &'a Place,
    /// What goes when the argument goes.
    pub drop: &'a Place,
    /// Known names that look like it, best first.
    pub similar: &'a [String],
    /// What the name means elsewhere, a sentence, where that is known.
    pub hint: Option<&'a str>,
    /// What the call accepts.
    pub known: Vec<&'static str>,
}

/// Adds label, reason and fixes to `diagnostic`.
pub(super) fn unknown_argument(diagnostic: Diagnostic, facts: Unknown<'_>) -> Diagnostic {
    let mut told = diagnostic.label(facts.place.clone(), "unknown argument");
    told = match facts.hint {
        Some(hint) => told.why(hint),
        None => told.why(
            "an argument that is not in the table is never ignored: its default would stay in \
             force unseen",
        ),
    };
    if facts.similar.is_empty() && facts.hint.is_none() {
        let known = words::names(&facts.known, 20);
        told = told.why(format!("`{}!` accepts {known}", facts.call));
    }
    for name in facts.similar.iter().take(3) {
        told = told.fix_edit(
            format!("did you mean `{name}`?"),
            facts.place.clone(),
            name.clone(),
        );
    }
    if facts.similar.is_empty() {
        told = told.fix_edit(format!("drop `{}`", facts.given), facts.drop.clone(), "");
    }
    told
}

/// What `Model.compile` of a version says of an argument it does not know. keras-semantics E1–E3.
pub(super) fn unknown_to_compile(profile: Profile, name: &str) -> Answer {
    let says = match profile {
        Profile::Tf23 | Profile::Tf24 => {
            format!("TypeError: Invalid keyword argument(s) in `compile`: {{'{name}'}}")
        }
        Profile::TfKeras218 => format!(
            "TypeError: Invalid keyword argument(s) in `compile()`: ({{'{name}'}},). Valid keyword arguments \
             include \"cloning\", \"experimental_run_tf_function\", \"distribute\", \"target_tensors\", or \
             \"sample_weight_mode\"."
        ),
        Profile::Keras3 => {
            format!("TypeError: Trainer.compile() got an unexpected keyword argument '{name}'")
        }
    };
    Answer::says(profile, "raises in `compile`", says)
}

/// What `Model.fit` and `Model.evaluate` say of an argument they do not know.
pub(super) fn unknown_to_method(profile: Profile, method: &str, name: &str) -> Answer {
    let owner = match profile {
        Profile::Tf23 | Profile::Tf24 => "",
        Profile::TfKeras218 => "Model.",
        Profile::Keras3 => "TensorFlowTrainer.",
    };
    let says = format!("TypeError: {owner}{method}() got an unexpected keyword argument '{name}'");
    Answer::says(profile, format!("raises in `{method}`"), says)
}
