//! SC0119 `version-specific-argument`.

use crate::tensorflow;
use crate::{Answer, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage};

/// An argument that is fine here, in a notebook whose profile is a version that does not know it.
#[derive(Clone, Debug)]
pub struct VersionSpecificArgument {
    /// The argument's name: `steps_per_execution`.
    pub argument: String,
    /// Where it stands, name and value.
    pub place: Place,
    /// The version.
    pub profile: Profile,
}

impl VersionSpecificArgument {
    /// Whether `Model.compile` of the version does not know an argument that Keras has otherwise.
    pub fn concerns(profile: Profile, argument: &str) -> bool {
        profile == Profile::Tf23 && argument == "steps_per_execution"
    }
}

impl Rule for VersionSpecificArgument {
    const PAGE: RulePage = RulePage {
        code: "SC0119",
        name: "version-specific-argument",
        severity: Severity::Note,
        stage: Stage::Text,
        finds: "An argument of `compile!` that is valid here but rejected by the version selected with \
                `%profile`: `steps_per_execution` under `tf-2.3`, in a scope or not.",
        why: "The cell works here, so no other message would say that the same line fails on that version.",
        bad: "let strategy = OneDeviceStrategy::new(cpu(0))?;\nscope!(strategy, {\n    \
              let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
              compile!(model, optimizer = AdamW::new(5e-5), steps_per_execution = 16)?;\n});",
        good: "let strategy = OneDeviceStrategy::new(cpu(0))?;\nscope!(strategy, {\n    \
               let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
               compile!(model, optimizer = AdamW::new(5e-5))?;\n});",
        tensorflow: tensorflow::page("SC0119"),
    };

    const GIVEN: &'static [&'static str] = &["%profile tf-2.3"];

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            argument, profile, ..
        } = self;
        Self::start(format!(
            "`{argument}` works here; {} does not have it",
            profile.title()
        ))
        .label(
            self.place.clone(),
            format!("unknown to {}", profile.title()),
        )
        .why(format!(
            "its name there is `experimental_{argument}`; in a scope the call fails all the same"
        ))
        .fix("nothing to do here; `%profile off` turns these notes off")
        .with_answers(|version| {
            match VersionSpecificArgument::concerns(version, argument) {
                true => tensorflow::answer("compile", argument, version),
                false => Answer::does(version, "accepts this call"),
            }
        })
    }
}
