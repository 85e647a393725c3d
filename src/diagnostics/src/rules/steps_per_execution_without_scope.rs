//! SC0102 `steps-per-execution-without-scope`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage};

/// `steps_per_execution` above 1 while no strategy is active and the model is bound to none.
#[derive(Clone, Debug)]
pub struct StepsPerExecutionWithoutScope {
    /// The value that was asked for, above 1.
    pub value: usize,
    /// `drop_unsupported = true` was given: compile goes on with 1, and this is a warning.
    pub dropped: bool,
}

impl Rule for StepsPerExecutionWithoutScope {
    const PAGE: RulePage = RulePage {
        code: "SC0102",
        name: "steps-per-execution-without-scope",
        severity: Severity::Error,
        stage: Stage::Compile,
        finds: "`steps_per_execution` above 1 in a `compile!` outside of any strategy scope, with a model that \
                belongs to no strategy. 1 is always accepted.",
        why: "The argument is the number of batches run between two returns to the host. It is often believed to \
              save synchronization or memory; it saves neither, and requiring a scope makes that mistake \
              visible.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
              compile!(model,\n    optimizer = AdamW::new(5e-5),\n    \
              loss = SparseCategoricalCrossentropy { from_logits: true },\n    \
              steps_per_execution = 16,\n)?;",
        good: "let strategy = OneDeviceStrategy::new(cpu(0))?;\nscope!(strategy, {\n    \
               let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
               compile!(model,\n        optimizer = AdamW::new(5e-5),\n        \
               loss = SparseCategoricalCrossentropy { from_logits: true },\n        \
               steps_per_execution = 16,\n    )?;\n});",
        tensorflow: tensorflow::page("SC0102"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let place = Place::argument("compile", "steps_per_execution");
        if self.dropped {
            // The first line is the one that the fallback of old scripts prints, two spaces included.
            let mut diagnostic = Self::start(
                "steps_per_execution not supported.  Falling back to standard compilation",
            );
            diagnostic.severity = Severity::Warning;
            return diagnostic
                .label(place.clone(), "dropped: no strategy is active")
                .why("`drop_unsupported = true`: compiled with `steps_per_execution = 1`")
                .fix_edit("drop the argument", place, "")
                .tensorflow(Quote::of("SC0102"))
                .with_answers(answer);
        }
        let value = self.value;
        Self::start(format!("`steps_per_execution = {value}` needs an active strategy scope"))
            .label(place.clone(), "no strategy is active here")
            .why(format!(
                "it is the number of batches run per compiled call: {value} batches are still {value} \
                 optimizer steps and, under a strategy, {value} all-reduces"
            ))
            .why(
                "it saves neither memory nor synchronization; use `gradient_accumulation_steps` to make one \
                 optimizer step from several batches",
            )
            .fix(
                "wrap the cell in a scope, one device is enough: \
                 `let strategy = OneDeviceStrategy::new(cpu(0))?;` in a cell of its own, then \
                 `%%scope strategy` as the first line of this one",
            )
            .fix_edit("drop the argument", place, "")
            .tensorflow(Quote::of("SC0102"))
            .with_answers(answer)
    }
}

/// docs/keras-semantics.md E4.
fn answer(profile: Profile) -> Answer {
    match profile {
        Profile::Tf23 => tensorflow::answer("compile", "steps_per_execution", profile),
        _ => Answer::does(profile, "accepts this call"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fallback_is_a_warning_with_the_line_of_old_scripts() {
        let facts = StepsPerExecutionWithoutScope {
            value: 16,
            dropped: true,
        };
        let diagnostic = facts.diagnostic();
        assert_eq!(diagnostic.severity, Severity::Warning);
        assert!(diagnostic.message.starts_with(
            "steps_per_execution not supported.  Falling back to standard compilation"
        ));
    }

    #[test]
    fn only_tensorflow_2_3_is_quoted_with_an_error() {
        let facts = StepsPerExecutionWithoutScope {
            value: 4,
            dropped: false,
        };
        for answer in facts.diagnostic().answers {
            let refuses = answer.says.is_some_and(|says| says.contains("TypeError"));
            assert_eq!(
                refuses,
                answer.profile == Profile::Tf23,
                "{}",
                answer.profile.name()
            );
        }
    }
}
