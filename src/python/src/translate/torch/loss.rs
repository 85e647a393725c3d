//! Losses of PyTorch, the loss that a loop computes, and what the rules find in its steps.

use super::super::thing::{LossFacts, ModelFacts, Thing};
use super::super::{Translator, Why};
use super::training::Step;
use crate::model::{Call, Kind, Statement, StatementKind, Value, each_statement};
use crate::{rules, trainer_rules};

/// Losses of PyTorch: their modules and functions, what they are here, and whether they take logits.
pub(super) const LOSSES: &[(&[&str], &str, Option<bool>)] = &[
    (
        &["CrossEntropyLoss", "cross_entropy"],
        "SparseCategoricalCrossentropy",
        Some(true),
    ),
    (
        &["BCEWithLogitsLoss", "binary_cross_entropy_with_logits"],
        "BinaryCrossentropy",
        Some(true),
    ),
    (
        &["BCELoss", "binary_cross_entropy"],
        "BinaryCrossentropy",
        Some(false),
    ),
    (&["NLLLoss", "nll_loss"], "", None),
    (&["MSELoss", "mse_loss"], "MeanSquaredError", None),
    (&["L1Loss", "l1_loss"], "MeanAbsoluteError", None),
    (
        &["HuberLoss", "huber_loss", "SmoothL1Loss", "smooth_l1_loss"],
        "Huber",
        None,
    ),
];

/// The loss of a step.
pub(super) enum StepLoss {
    /// That of the head of the model.
    Head,
    /// A loss of PyTorch, and what it gets.
    Called(LossFacts, Option<Value>),
}

impl Translator<'_> {
    /// `nn.CrossEntropyLoss(label_smoothing=0.1)`, `F.cross_entropy`.
    pub(crate) fn torch_loss(&mut self, full: &str, call: &Call) -> Result<LossFacts, Why> {
        let last = full.rsplit('.').next().unwrap_or_default();
        let row = LOSSES.iter().find(|(names, ..)| names.contains(&last));
        let (_, name, from_logits) =
            row.ok_or_else(|| format!("there is no loss `{last}` here"))?;
        if name.is_empty() {
            return Err("`NLLLoss` takes logarithms of probabilities; the loss here takes the logits before `log_softmax`".to_owned());
        }
        let mut rust = match from_logits {
            Some(value) => format!("{name} {{ from_logits: {value} }}"),
            None if *name == "Huber" => "Huber { delta: 1.0 }".to_owned(),
            None => (*name).to_owned(),
        };
        for keyword in &call.keywords {
            match keyword.name.as_str() {
                "label_smoothing" if *name == "SparseCategoricalCrossentropy" => {
                    let share = self.float(&keyword.value)?;
                    rust = format!(
                        "CategoricalCrossentropy {{ from_logits: true }}.label_smoothing({share})"
                    );
                    call.keyword("label_smoothing");
                }
                "ignore_index" => {
                    call.keyword("ignore_index");
                    self.idle(
                        keyword.span,
                        "tokens without a tag have −100 and do not count",
                    );
                }
                "reduction" if keyword.value.text() == Some("mean") => {
                    call.keyword("reduction");
                    self.idle(keyword.span, "it is the default");
                }
                "reduction" => {
                    return Err(
                        "the loss is the mean over the examples of the global batch".to_owned()
                    );
                }
                "weight" | "pos_weight" => {
                    return Err("weights of classes are `class_weight` of `fit!`".to_owned());
                }
                _ => {}
            }
        }
        Ok(LossFacts {
            name: (*name).to_owned(),
            rust,
            from_logits: *from_logits,
            span: call.span,
        })
    }

    /// The loss that `backward` is called on, and whether it is divided.
    pub(super) fn loss_of_loop(
        &mut self,
        backward: Option<&Value>,
        body: &[Statement],
    ) -> Result<(StepLoss, bool), Why> {
        const UNKNOWN: &str = "its loss is not known from the cell";
        let mut value = backward.ok_or(UNKNOWN)?.clone();
        let mut divides = false;
        for _ in 0..12 {
            let next = match &value.kind {
                Kind::Name(name) => assigned(body, name).cloned(),
                Kind::Attribute(_, name) if name == "loss" => return Ok((StepLoss::Head, divides)),
                Kind::Index(_, index)
                    if index.text() == Some("loss") || index.integer() == Some(0) =>
                {
                    return Ok((StepLoss::Head, divides));
                }
                Kind::Binary(left, "/", _) => {
                    divides = true;
                    // `loss = loss / 4`: the one before.
                    match left.name() {
                        Some(name) => first_assigned(body, name, &value).cloned(),
                        None => Some((**left).clone()),
                    }
                }
                Kind::Call(call) => {
                    return self
                        .called_loss(&value.clone(), call)
                        .and_then(|found| match found {
                            Ok(loss) => Ok((loss, divides)),
                            Err(inner) => self
                                .loss_of_loop(Some(&inner), body)
                                .map(|(loss, more)| (loss, divides || more)),
                        });
                }
                _ => None,
            };
            value = next.ok_or(UNKNOWN)?;
        }
        Err(UNKNOWN.to_owned())
    }

    /// A loss that is called; `Ok(Err(…))`: the loss is an argument of the call, as in `scaler.scale(loss)`.
    pub(super) fn called_loss(
        &mut self,
        value: &Value,
        call: &Call,
    ) -> Result<Result<StepLoss, Value>, Why> {
        if let Kind::Attribute(object, method) = &call.function.kind {
            match method.as_str() {
                "scale" if let Some(inner) = call.arguments.first() => {
                    return Ok(Err(inner.clone()));
                }
                "mean" => return Ok(Err((**object).clone())),
                _ => {}
            }
        }
        let input = call.arguments.first().cloned();
        if let Some(name) = call.function.name()
            && let Some(Thing::Loss(loss)) = self.things.get(name)
        {
            return Ok(Ok(StepLoss::Called(loss.clone(), input)));
        }
        match self.names.called(value) {
            Some(full) if full.starts_with("torch.") => {
                let loss = self.torch_loss(&full, call)?;
                Ok(Ok(StepLoss::Called(loss, input)))
            }
            _ => Err(
                match call.function.name().and_then(|name| self.missing(name)) {
                    Some(why) => why,
                    None => "its loss is a function that is not known from the cell".to_owned(),
                },
            ),
        }
    }

    /// SC0146 and SC0506: gradients that are never cleared, cleared too early, or added and not divided.
    pub(super) fn check_step(&mut self, step: &Step<'_>, body: &[Statement], divides: bool) {
        let Some(backward) = step.backward_span else {
            return;
        };
        let Some(_) = step.zeroed else {
            let found = trainer_rules::gradients_not_cleared(backward);
            self.find(found);
            return;
        };
        let Some(count) = step.every else {
            return;
        };
        let count = self.integer(count);
        let clears_always = body.iter().find(|statement| match &statement.kind {
            StatementKind::Expression(value) => value.method("zero_grad").is_some(),
            _ => false,
        });
        if let Some(statement) = clears_always {
            let found = rules::sum_made_anew(statement.span, count);
            self.find(found);
        }
        if !divides {
            let found = rules::sum_not_divided(backward, count);
            self.find(found);
        }
    }

    /// SC0302 and SC0303: a loss of logits that gets probabilities, and the other way round.
    pub(super) fn check_activation(
        &mut self,
        loss: &LossFacts,
        input: Option<&Value>,
        facts: Option<ModelFacts>,
        body: &[Statement],
    ) {
        let (mut applied, mut at) = (None, None);
        if let Some(input) = input {
            let made = input.name().and_then(|name| assigned(body, name));
            for value in [Some(input), made].into_iter().flatten() {
                value.visit(&mut |inner| {
                    let last = inner.call().and_then(|call| match &call.function.kind {
                        Kind::Attribute(_, name) | Kind::Name(name) => Some(name.as_str()),
                        _ => None,
                    });
                    if let Some(name @ ("softmax" | "sigmoid")) = last {
                        applied = Some(name.to_owned());
                        let of = inner.call().and_then(|it| it.arguments.first());
                        at = Some((inner.span, of.map(|it| it.span)));
                    }
                });
            }
        }
        let Some(mut facts) = facts else {
            return;
        };
        facts.activation = applied.or(facts.activation);
        let name = facts.activation.clone().unwrap_or_default();
        let in_network = self
            .hub
            .activations
            .iter()
            .rev()
            .find(|(known, ..)| *known == name);
        let at = at.or(in_network.map(|(_, span, of)| (*span, *of)));
        let applied = at.map(|(span, of)| trainer_rules::Applied {
            span,
            written: self
                .source(span)
                .split('(')
                .next()
                .unwrap_or_default()
                .to_owned(),
            of: of.map(|it| self.source(it).to_owned()),
        });
        let called = self
            .source(loss.span)
            .split('(')
            .next()
            .unwrap_or_default()
            .to_owned();
        for mut found in rules::loss_and_head(loss, &facts) {
            trainer_rules::in_words_of_torch(&mut found, loss, &called, &name, applied.as_ref());
            self.find(found);
        }
    }
}

/// The last value that a block gives to a name.
pub(super) fn assigned<'v>(body: &'v [Statement], wanted: &str) -> Option<&'v Value> {
    let mut found = None;
    each_statement(body, &mut |statement| match &statement.kind {
        StatementKind::Assign(targets, value)
            if targets.iter().any(|it| it.name() == Some(wanted)) =>
        {
            found = Some(value)
        }
        // `loss /= 4` leaves the value before.
        _ => {}
    });
    found
}

/// The value of a name before the statement that this value is of.
fn first_assigned<'v>(body: &'v [Statement], wanted: &str, after: &Value) -> Option<&'v Value> {
    let mut found = None;
    each_statement(body, &mut |statement| {
        if let StatementKind::Assign(targets, value) = &statement.kind
            && targets.iter().any(|it| it.name() == Some(wanted))
            && value.span.start < after.span.start
        {
            found = Some(value);
        }
    });
    found
}
