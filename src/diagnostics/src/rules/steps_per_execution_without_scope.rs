//! SC0102 `steps-per-execution-without-scope`.

use super::built_at::{BuiltAt, StrategyName};
use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage};

/// `steps_per_execution` above 1 while no strategy is active and the model is bound to none.
#[derive(Clone, Debug)]
pub struct StepsPerExecutionWithoutScope {
    /// The value that was asked for, above 1.
    pub value: usize,
    /// `drop_unsupported = true` was given: compile goes on with 1, and this is a warning.
    pub dropped: bool,
    /// `strategy = none` was given.
    pub none_asked: bool,
    /// Where the model was built.
    pub built: BuiltAt,
    /// The strategy that is there, if SC0201 stands beside it.
    pub strategy: Option<StrategyName>,
    /// The model's device in code: `cpu(0)`.
    pub device: String,
}

impl StepsPerExecutionWithoutScope {
    /// What the text of the call shows, without a run.
    pub fn of_text(value: usize, dropped: bool) -> Self {
        Self {
            value,
            dropped,
            none_asked: false,
            built: BuiltAt::Unknown,
            strategy: None,
            device: "cpu(0)".to_owned(),
        }
    }

    /// The fix that keeps the argument.
    fn enter_a_scope(&self) -> String {
        if let Some(strategy) = &self.strategy {
            return self.built.in_scope(strategy, "");
        }
        let make = format!("let strategy = OneDeviceStrategy::new({})?;", self.device);
        match &self.built {
            BuiltAt::Program(_) => format!(
                "build and compile the model in a scope, one device is enough: `{make}`, then \
                 `scope!(strategy, {{ let model = …; compile!(model, …)?; }});`"
            ),
            built => built.in_scope(
                &StrategyName::of_variable("strategy"),
                &format!(
                    "make a strategy, one device is enough: run `{make}` in a new cell; then "
                ),
            ),
        }
    }
}

impl Rule for StepsPerExecutionWithoutScope {
    const PAGE: RulePage = RulePage {
        code: "SC0102",
        name: "steps-per-execution-without-scope",
        severity: Severity::Error,
        stage: Stage::Compile,
        finds: "`steps_per_execution` above 1 in a `compile!` outside of any strategy scope, with a model that \
                belongs to no strategy. 1 is always accepted.",
        why: "The argument sets how many batches run before control returns to the host. It is often believed to save synchronization or memory. It saves neither, and requiring a scope makes that mistake visible.",
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
        let diagnostic =
            Self::start(format!("`steps_per_execution = {value}` needs an active strategy scope"))
                .label(
                    place.clone(),
                    match self.none_asked {
                        true => "`strategy = none` leaves it without a strategy",
                        false => "no strategy is active here",
                    },
                )
                .why(format!(
                    "it sets how many batches run before control returns to the host: {value} batches are still \
                     {value} optimizer steps and {value} all-reduces"
                ))
                .why(
                    "here it needs a scope, because it is often taken for fewer synchronizations, and only a \
                     strategy synchronizes",
                )
                .why(
                    "for fewer optimizer steps use `gradient_accumulation_steps`, for fewer synchronizations \
                     `sync_every`",
                );
        let diagnostic = match self.none_asked {
            true => diagnostic,
            false => diagnostic.fix(self.enter_a_scope()),
        };
        diagnostic
            .fix_edit("drop the argument: the result is the same", place, "")
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
    fn the_fix_is_for_the_cell_that_builds_the_model() {
        let fix = |built: BuiltAt| {
            let facts = StepsPerExecutionWithoutScope {
                built,
                ..StepsPerExecutionWithoutScope::of_text(16, false)
            };
            facts.diagnostic().fixes[0].title.clone()
        };
        let make = "make a strategy, one device is enough: run \
                    `let strategy = OneDeviceStrategy::new(cpu(0))?;` in a new cell; then ";
        let line = "write `%%scope strategy` as the first line of ";
        let (number, line_of_it) = (1, Some(2));
        assert_eq!(
            fix(BuiltAt::Cell {
                number,
                line: line_of_it
            }),
            format!(
                "{make}{line}cell 1, which builds the model, and run it; then run this cell again"
            )
        );
        assert_eq!(
            fix(BuiltAt::Here(Some(1))),
            format!("{make}{line}this cell")
        );
        assert_eq!(
            fix(BuiltAt::Unknown),
            format!("{make}{line}the cell that builds the model")
        );
    }

    #[test]
    fn the_fallback_is_a_warning_with_the_line_of_old_scripts() {
        let facts = StepsPerExecutionWithoutScope::of_text(16, true);
        let diagnostic = facts.diagnostic();
        assert_eq!(diagnostic.severity, Severity::Warning);
        assert!(diagnostic.message.starts_with(
            "steps_per_execution not supported.  Falling back to standard compilation"
        ));
    }

    #[test]
    fn only_tensorflow_2_3_is_quoted_with_an_error() {
        let facts = StepsPerExecutionWithoutScope::of_text(4, false);
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
