//! SC0201 `model-outside-scope`.

use super::built_at::{BuiltAt, StrategyName};
use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Figure, Place, Profile, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A model whose variables were made outside the scope of the strategy that is meant.
#[derive(Clone, Debug)]
pub struct ModelOutsideScope {
    /// The strategy of the scope, of `strategy = …`, or the notebook's.
    pub strategy: StrategyName,
    /// Its replicas.
    pub replicas: usize,
    /// The strategy that the model belongs to; none if it was built outside of any scope.
    pub bound: Option<StrategyName>,
    /// How many variables the model has; 0 before it is built.
    pub variables: usize,
    /// Where they are: `cpu:0`.
    pub device: String,
    /// Whether `compile!` itself stands inside the scope.
    pub compile_inside: bool,
    /// Whether the call has `strategy = …`.
    pub is_named: bool,
    /// Where the model was built.
    pub built: BuiltAt,
    /// The grid of variables by devices.
    pub figure: Option<Figure>,
}

impl ModelOutsideScope {
    /// The message, the label of the model, and that of the line that builds it.
    fn words(&self) -> [String; 3] {
        let strategy = &self.strategy.shown;
        if let Some(StrategyName { shown: bound, .. }) = &self.bound {
            return [
                format!(
                    "the model was built in the scope of `{bound}`, not in that of `{strategy}`"
                ),
                format!("belongs to `{bound}`"),
                format!("built here, in the scope of `{bound}`"),
            ];
        }
        let line = format!("built here, outside the scope of `{strategy}`");
        if self.variables == 0 {
            return [
                format!(
                    "neither the model nor `compile!` is in the scope of `{strategy}`: the variables, which are \
                     created later, would not belong to it"
                ),
                format!("not built yet, and outside the scope of `{strategy}`"),
                line,
            ];
        }
        let variables = text::count(self.variables, "variable");
        let verb = if self.variables == 1 { "is" } else { "are" };
        let places = match self.replicas {
            // The only device of the strategy may be the same.
            1 => String::new(),
            _ => format!(": its {variables} {verb} on {} only", self.device),
        };
        [
            format!("the model was built outside the scope of `{strategy}`{places}"),
            format!("{variables} outside the scope of `{strategy}`"),
            line,
        ]
    }

    /// For a model of another strategy.
    fn keep_the_strategy(&self, diagnostic: Diagnostic, bound: &StrategyName) -> Diagnostic {
        let outside = "call `compile!` outside of any scope: the model keeps its strategy";
        match &bound.variable {
            Some(own) if self.is_named => diagnostic.fix_edit(
                format!("pass the strategy the model was built in: `strategy = {own}`"),
                Place::argument("compile", "strategy"),
                format!("strategy = {own}"),
            ),
            None if self.is_named => diagnostic.fix_edit(
                "drop `strategy`: the model keeps the one it was built in",
                Place::argument("compile", "strategy"),
                "",
            ),
            Some(own) => diagnostic.fix(format!(
                "enter the scope of `{own}` in this cell, or {outside}"
            )),
            None => diagnostic.fix(outside),
        }
    }
}

impl Rule for ModelOutsideScope {
    const PAGE: RulePage = RulePage {
        code: "SC0201",
        name: "model-outside-scope",
        severity: Severity::Error,
        stage: Stage::Compile,
        finds: "`compile!` of a model whose variables were created outside the scope of the notebook's strategy, \
                wherever `compile!` itself is called. A model that is not built yet may be compiled inside the \
                scope: its variables are then created there.",
        why: "Its variables exist on one device only. A strategy mirrors variables when they are created, not \
              afterwards: the other replicas would have nothing to train.",
        bad: "let strategy = MirroredStrategy::logical(2)?;\n\
              let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
              compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        good: "let strategy = MirroredStrategy::logical(2)?;\nscope!(strategy, {\n    \
               let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
               compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n});",
        tensorflow: tensorflow::page("SC0201"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let [message, label, line_label] = self.words();
        let mut diagnostic = Self::start(message).label(Place::model("compile"), label);
        if let Some(line) = self.built.line_here() {
            diagnostic = diagnostic.label(Place::Line(line), line_label);
        }
        diagnostic = diagnostic.why(format!(
            "`{}` places variables when they are created; it cannot adopt them later",
            self.strategy.shown
        ));
        if let Some(place) = self.built.elsewhere() {
            diagnostic = diagnostic.evidence("built at", place);
        }
        diagnostic = match &self.bound {
            Some(bound) => self.keep_the_strategy(diagnostic, bound).fix(format!(
                "or, to train it under `{}`, {}",
                self.strategy.shown,
                self.built.in_scope(&self.strategy, "")
            )),
            None => diagnostic
                .fix(self.built.in_scope(&self.strategy, ""))
                .fix("pass `strategy = none` to `compile!` to train on one device on purpose"),
        };
        let case = match self.compile_inside {
            false => "outside",
            true => "inside",
        };
        diagnostic = diagnostic
            .tensorflow(Quote::case("SC0201", case))
            .with_answers(|profile| answer(profile, self.compile_inside));
        match &self.figure {
            Some(figure) => diagnostic.figure(figure.clone()),
            None => diagnostic,
        }
    }
}

/// docs/keras-semantics.md E10–E12.
fn answer(profile: Profile, compile_inside: bool) -> Answer {
    if !compile_inside {
        return Answer::does(profile, "compiles; trains on one device, no message");
    }
    let scope = "<tensorflow.python.distribute.mirrored_strategy.MirroredStrategy object at 0x7f…>";
    let reason = match profile {
        Profile::Tf23 | Profile::Tf24 => {
            "It is most likely due to not all layers or the model or optimizer being created outside the \
             distribution strategy scope."
        }
        Profile::TfKeras218 => {
            "It is most likely because some layers, model, or optimizer was being created outside the \
             distribution strategy scope."
        }
        Profile::Keras3 => {
            return Answer::says(
                profile,
                "`compile` succeeds; `fit` fails",
                "ValueError: `colocate_vars_with` must only be passed a variable created in this \
                 tf.distribute.Strategy.scope(), not: <tf.Variable …>",
            );
        }
    };
    Answer::says(
        profile,
        "raises in `compile`",
        format!(
            "ValueError: Variable (<tf.Variable …>) was not created in the distribution strategy scope of \
             ({scope}). {reason} Try to make sure your code looks similar to the following.\n\
             with strategy.scope():\n  model=_create_model()\n  model.compile(...)"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> ModelOutsideScope {
        ModelOutsideScope {
            strategy: StrategyName::of_variable("s2"),
            replicas: 4,
            bound: None,
            variables: 4,
            device: "cpu:0".into(),
            compile_inside: false,
            is_named: false,
            built: BuiltAt::Cell {
                number: 3,
                line: Some(2),
            },
            figure: None,
        }
    }

    fn fixes(facts: &ModelOutsideScope) -> Vec<String> {
        let fixes = facts.diagnostic().fixes.into_iter();
        fixes.map(|fix| fix.title).collect()
    }

    /// (facts, message, first fix)
    #[test]
    fn no_scope_another_strategy_and_one_device_differ() {
        let in_cell_3 = "write `%%scope s2` as the first line of cell 3, which builds the model, and run it; then \
                         run this cell again";
        let other = Some(StrategyName::of_variable("s1"));
        let of_s1 = "the model was built in the scope of `s1`, not in that of `s2`";
        let cases = [
            (
                facts(),
                "the model was built outside the scope of `s2`: its 4 variables are on cpu:0 only",
                in_cell_3,
            ),
            (
                ModelOutsideScope {
                    replicas: 1,
                    ..facts()
                },
                "the model was built outside the scope of `s2`",
                in_cell_3,
            ),
            (
                ModelOutsideScope {
                    built: BuiltAt::Here(Some(1)),
                    ..facts()
                },
                "the model was built outside the scope of `s2`: its 4 variables are on cpu:0 only",
                "write `%%scope s2` as the first line of this cell",
            ),
            (
                ModelOutsideScope {
                    bound: other.clone(),
                    compile_inside: true,
                    ..facts()
                },
                of_s1,
                "enter the scope of `s1` in this cell, or call `compile!` outside of any scope: the model keeps its \
                 strategy",
            ),
            (
                ModelOutsideScope {
                    bound: other,
                    is_named: true,
                    ..facts()
                },
                of_s1,
                "pass the strategy the model was built in: `strategy = s1`",
            ),
        ];
        for (facts, message, fix) in cases {
            assert_eq!(facts.diagnostic().message, message);
            assert_eq!(fixes(&facts)[0], fix, "{message}");
        }
    }

    #[test]
    fn a_strategy_of_the_same_cell_cannot_be_its_scope() {
        let strategy = StrategyName {
            is_made_here: true,
            ..StrategyName::of_variable("s2")
        };
        let built_in = |built| {
            let facts = ModelOutsideScope {
                strategy: strategy.clone(),
                built,
                ..facts()
            };
            fixes(&facts)[0].clone()
        };
        assert!(built_in(BuiltAt::Here(Some(1))).contains("`scope!(s2, { let model = …;"));
        let line = None;
        assert!(built_in(BuiltAt::Cell { number: 3, line }).contains("in a cell of its own"));
    }
}
