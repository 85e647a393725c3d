//! `model.compile(…)`.

use stratoscope_diagnostics::arguments::{self, COMPILE};
use stratoscope_diagnostics::{CellSpan, Diagnostic};

use super::arguments::see_whole;
use super::thing::{Compiled, LossFacts, ModelFacts, Thing};
use super::{Translator, Why, text};
use crate::model::{Call, Keyword, Kind, Value};
use crate::rules;

/// What a `compile` is inside of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Around {
    /// Nothing: what the rules refuse is corrected.
    Plain,
    /// A `try` that shows the error: it is written as it stands.
    Shown,
    /// A `try` that compiles again without the argument: `drop_unsupported`.
    Dropped,
}

/// What `None` for an argument says.
pub(crate) const DEFAULT: &str = "`None` is the default";

impl Translator<'_> {
    /// `compile!(model, …)` without its `?`.
    pub(crate) fn compile(
        &mut self,
        model: &Value,
        call: &Call,
        around: Around,
    ) -> Result<String, Why> {
        call.see_all();
        let rust = self.model_name(model)?;
        let facts = self.facts(model);
        let mut parts = Vec::new();
        // The order of Keras 2.
        let names = ["optimizer", "loss", "metrics"];
        if call.arguments.len() > names.len() {
            return Err("the arguments of `compile` are not all named".to_owned());
        }
        let mut given: Vec<(String, &Value, Option<&Keyword>)> = names
            .iter()
            .zip(&call.arguments)
            .map(|(name, value)| ((*name).to_owned(), value, None))
            .collect();
        for keyword in &call.keywords {
            given.push((keyword.name.clone(), &keyword.value, Some(keyword)));
        }
        let mut loss = None;
        for (name, value, keyword) in &given {
            if value.kind == Kind::None {
                self.idle(keyword.map_or(value.span, |it| it.span), DEFAULT);
                continue;
            }
            match name.as_str() {
                "optimizer" => parts.push(format!("optimizer = {}", self.optimizer(value)?)),
                "loss" => loss = Some(self.loss(value)?),
                "metrics" => parts.push(format!("metrics = {}", self.metrics(value)?)),
                "steps_per_execution" | "experimental_steps_per_execution" => {
                    parts.extend(self.steps_per_execution(call, *keyword, value, &facts, around)?);
                }
                name if arguments::find(COMPILE, name).is_some() => {
                    parts.push(format!("{name} = {}", self.value(value)?));
                }
                _ => {
                    if let Some(keyword) = keyword {
                        self.argument_of("compile", keyword, &mut parts);
                    }
                }
            }
        }
        let has_optimizer = parts.iter().any(|it| it.starts_with("optimizer"));
        if !has_optimizer {
            self.note(
                call.span,
                "it names no optimizer: Keras's default is `RMSprop::new(1e-3)`; BERT's rates are near 5e-5",
            );
            parts.push("optimizer = RMSprop::new(1e-3)".to_owned());
        }
        if let (Some(loss), Some(name)) = (&loss, model.name()) {
            self.losses.insert(name.to_owned(), loss.clone());
        }
        self.loss_of(call, &facts, loss, &mut parts);
        self.outside(model, call, &facts);
        parts.sort_by_key(|part| {
            let name = part.split(" = ").next().unwrap_or_default();
            COMPILE.iter().position(|argument| argument.name == name)
        });
        let compiled = text::call("compile!", &rust, &parts, "");
        if let Some(Thing::Model(facts)) = model.name().and_then(|it| self.things.get_mut(it)) {
            facts.compiled = Some(Compiled {
                line: 0,
                count: compiled.lines().count(),
                parts,
            });
        }
        Ok(compiled)
    }

    /// Adds the `compile!` of a model to the cell.
    pub(crate) fn push_compile(&mut self, model: &Value, compiled: &str, span: CellSpan) {
        let line = self.translation.lines.len();
        if let Some(name) = model.name() {
            self.uncompiled.remove(name);
        }
        if let Some(Thing::Model(facts)) = model.name().and_then(|it| self.things.get_mut(it))
            && let Some(compiled) = &mut facts.compiled
        {
            compiled.line = line;
        }
        self.push(format!("{compiled}?;"), span);
    }

    /// What is known of the model of a call.
    pub(crate) fn facts(&self, model: &Value) -> Option<ModelFacts> {
        match model.name().and_then(|name| self.things.get(name)) {
            Some(Thing::Model(facts)) => Some(facts.clone()),
            _ => None,
        }
    }

    /// The name of a model.
    pub(crate) fn model_name(&mut self, model: &Value) -> Result<String, Why> {
        let name = model.name().ok_or("the model is no name")?.to_owned();
        match self.things.get(&name) {
            Some(Thing::Model(_) | Thing::Missing(_)) => self.value(model),
            None => {
                let rust = self.value(model)?;
                self.free(
                    &name,
                    "a model, such as `Sequential([…])?` or `BertForSequenceClassification`",
                )?;
                Ok(rust)
            }
            Some(other) => Err(format!("`{name}` is {}, no model", other.word())),
        }
    }

    fn loss_of(
        &mut self,
        call: &Call,
        facts: &Option<ModelFacts>,
        loss: Option<LossFacts>,
        parts: &mut Vec<String>,
    ) {
        match (loss, facts) {
            (Some(loss), facts) => {
                if let Some(facts) = facts {
                    let found = rules::loss_and_head(&loss, facts);
                    found.into_iter().for_each(|it| self.find(it));
                }
                parts.push(format!("loss = {}", loss.rust));
            }
            (None, Some(facts)) if facts.is_bert => {
                let (loss, words) = match facts.outputs {
                    Some(1) => (
                        "MeanSquaredError",
                        "the mean squared error of its one output",
                    ),
                    _ => (
                        "SparseCategoricalCrossentropy { from_logits: true }",
                        "the cross-entropy of its logits",
                    ),
                };
                self.note(
                    call.span,
                    format!("without a loss Hugging Face's model has its own, which is this one: {words}"),
                );
                parts.push(format!("loss = {loss}"));
            }
            _ => self.note(
                call.span,
                "it names no loss: nothing can be trained with it",
            ),
        }
    }

    /// `steps_per_execution`: kept in a scope, dropped outside of one.
    fn steps_per_execution(
        &mut self,
        call: &Call,
        keyword: Option<&Keyword>,
        value: &Value,
        facts: &Option<ModelFacts>,
        around: Around,
    ) -> Result<Vec<String>, Why> {
        let rust = self.value(value)?;
        let steps = self.integer(value);
        let in_scope = !self.scopes.is_empty()
            || self.of_scope
            || facts.as_ref().is_some_and(|facts| facts.scope.is_some())
            || (facts.is_none() && self.names_a_strategy());
        let written = format!("steps_per_execution = {rust}");
        if in_scope || steps == Some(1) {
            return Ok(vec![written]);
        }
        let span = keyword.map_or(value.span, |it| it.span);
        let drop = keyword.map_or(value.span, |it| it.drop_span);
        let found = rules::steps_per_execution(steps, span, drop, around == Around::Dropped);
        self.find(found);
        Ok(match around {
            Around::Dropped => vec![written, "drop_unsupported = true".to_owned()],
            Around::Shown => vec![written],
            Around::Plain => {
                let text = format!("`{written}` is left out, since no strategy is active");
                self.correct(call.span, "SC0102", text);
                Vec::new()
            }
        })
    }

    /// Whether the notebook may have a strategy that the model belongs to.
    pub(crate) fn names_a_strategy(&self) -> bool {
        self.known
            .variables
            .values()
            .any(|kind| kind.ends_with("Strategy"))
    }

    /// A correction by a rule, in the cell and beside it.
    pub(crate) fn correct(&mut self, span: CellSpan, code: &str, text: String) {
        self.push_alone(format!("// {code}: {text}."));
        self.note(span, format!("{text} ({code})"));
    }

    /// An argument that is not in the table: misspelt, of another call, or one of Keras that is not here.
    pub(crate) fn argument_of(&mut self, call: &str, keyword: &Keyword, parts: &mut Vec<String>) {
        let found: Result<Diagnostic, String> = rules::argument(call, keyword);
        match found {
            Ok(found) => {
                let meant = rules::meant(call, &keyword.name);
                self.find(found);
                let code = self
                    .translation
                    .findings
                    .last()
                    .map_or(String::new(), |it| it.code.clone());
                if let Some(meant) = meant
                    && let Ok(value) = self.meant_value(meant, &keyword.value)
                {
                    let text = match arguments::translated(call, &keyword.name) {
                        Some(_) => format!("`{}` is called `{meant}` here", keyword.name),
                        None => format!("typo `{}` corrected to `{meant}`", keyword.name),
                    };
                    self.correct(keyword.span, &code, text);
                    parts.push(format!("{meant} = {value}"));
                    return;
                }
                let text = format!("`{}` is left out", keyword.name);
                self.correct(keyword.span, &code, text);
            }
            Err(why) => self.leave_argument(keyword, why),
        }
    }

    fn meant_value(&mut self, meant: &str, value: &Value) -> Result<String, Why> {
        match meant {
            "optimizer" => self.optimizer(value),
            "loss" => Ok(self.loss(value)?.rust),
            "metrics" => self.metrics(value),
            _ => self.value(value),
        }
    }

    /// An argument that is left out.
    pub(crate) fn leave_argument(&mut self, keyword: &Keyword, why: String) {
        self.leave(keyword.span, why);
        see_whole(&keyword.value);
    }

    /// SC0201: a model that was made outside of the scope of a strategy that exists.
    fn outside(&mut self, model: &Value, call: &Call, facts: &Option<ModelFacts>) {
        // A function that is called in the scope builds and compiles there.
        if self.of_scope {
            return;
        }
        let (Some(facts), Some(strategy)) = (facts, self.strategies.last().cloned()) else {
            return;
        };
        let compile_inside = !self.scopes.is_empty();
        if facts.scope.is_some() || (compile_inside && !facts.is_built) {
            return;
        }
        let strategy = self.scopes.last().cloned().unwrap_or(strategy);
        let line = self.line(facts.span.start);
        let found = rules::model_outside(
            &strategy,
            model.span,
            call.span,
            facts,
            compile_inside,
            line,
        );
        self.find(found);
    }
}
