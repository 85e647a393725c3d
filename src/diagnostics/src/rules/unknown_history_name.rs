//! SC0518 `unknown-history-name`.

use crate::check::suggest::similar;
use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A name that the record of a run does not have.
#[derive(Clone, Debug)]
pub struct UnknownHistoryName {
    /// The name between the brackets: `acc`.
    pub given: String,
    /// The names that are there.
    pub known: Vec<String>,
}

impl Rule for UnknownHistoryName {
    const PAGE: RulePage = RulePage {
        code: "SC0518",
        name: "unknown-history-name",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "`history[\"…\"]` with a name that the run did not measure.",
        why: "A history has the loss, the metrics of `compile!` and the learning rate; with validation data also \
              the same names with the prefix `val_`. `history.get(\"…\")` is `None` for any other name.",
        bad: "let model = Sequential([Dense(1).input_shape(5)])?;\n\
              compile!(model, optimizer = SGD::new(0.01), loss = MeanSquaredError)?;\n\
              let history = fit!(model, make_regression(16, 5, 0)?, verbose = false)?;\n\
              history[\"val_loss\"].to_vec()",
        good: "let model = Sequential([Dense(1).input_shape(5)])?;\n\
               compile!(model, optimizer = SGD::new(0.01), loss = MeanSquaredError)?;\n\
               let history = fit!(model, make_regression(16, 5, 0)?, verbose = false)?;\n\
               history[\"loss\"].to_vec()",
        tensorflow: tensorflow::page("SC0518"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Self::start(format!("the history has no `{}`", self.given))
            .why(format!("it has {}", text::names(&self.known, 20)));
        let mut near = similar(&self.given, self.known.iter().map(String::as_str));
        // Keras's own short names.
        if let Some(rest) = self.given.strip_prefix("val_")
            && near.is_empty()
            && !self.known.iter().any(|name| name.starts_with("val_"))
            && self.known.iter().any(|name| name == rest)
        {
            diagnostic = diagnostic
                .fix("pass `validation_data` to `fit!`, which evaluates it after every epoch");
        }
        near.extend(longer(&self.given, &self.known));
        near.dedup();
        for name in near.iter().take(2) {
            diagnostic = diagnostic.suggest(name);
        }
        diagnostic
            .fix(format!(
                "use `history.get(\"{}\")`, which is `None` for a missing name",
                self.given
            ))
            .tensorflow(Quote::of("SC0518"))
    }
}

/// `accuracy` for `acc`, `learning_rate` for `lr`.
fn longer(given: &str, known: &[String]) -> Option<String> {
    let begins = |name: &&String| given.len() >= 3 && name.starts_with(given);
    let initials = |name: &&String| {
        let initials: String = name
            .split('_')
            .filter_map(|part| part.chars().next())
            .collect();
        initials == given
    };
    let found = known.iter().find(begins);
    found.or_else(|| known.iter().find(initials)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_was_meant_is_proposed() {
        let check = |given: &str, expected: &str| {
            let rule = UnknownHistoryName {
                given: given.to_owned(),
                known: ["loss", "accuracy", "learning_rate"]
                    .map(str::to_owned)
                    .into(),
            };
            let fixes: Vec<String> = rule
                .diagnostic()
                .fixes
                .into_iter()
                .map(|fix| fix.title)
                .collect();
            assert!(fixes[0].contains(expected), "{given}: {fixes:?}");
        };
        check("acc", "`accuracy`");
        check("accuracyy", "`accuracy`");
        check("lr", "`learning_rate`");
        check("val_loss", "`validation_data`");
        check("f1", "`history.get(\"f1\")`");
    }
}
