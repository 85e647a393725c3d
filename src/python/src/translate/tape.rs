//! Steps by hand: what a `GradientTape` computes and what is done with its gradients.

use std::collections::BTreeSet;

use stratoscope_diagnostics::CellSpan;

use super::thing::Thing;
use super::{Translator, Why};
use crate::model::{Call, Kind, Statement, StatementKind, Value, each_statement, each_value};

/// A step by hand.
#[derive(Clone, Debug)]
pub(crate) struct Tape {
    /// The `with` of the tape.
    pub span: CellSpan,
    /// The model that is called.
    pub model: Option<Value>,
    /// Its loss.
    pub loss: TapeLoss,
    /// What the loss is divided by.
    pub divides_loss: bool,
    /// The optimizer that applies the gradients.
    pub optimizer: Option<Value>,
    /// A method of the optimizer that clips as the step does, and its number.
    pub clip: Option<(&'static str, Value)>,
    /// Metrics that are updated in it.
    pub metrics: Vec<Value>,
    /// Calls that make one number of the losses of a batch, and whether that is their mean.
    pub reductions: Vec<(CellSpan, bool)>,
}

/// The loss of a step.
#[derive(Clone, Debug)]
pub(crate) enum TapeLoss {
    /// `model(…, labels=…).loss`: that of Hugging Face's head.
    Head,
    /// A function or an object that is called.
    Called(Box<Value>),
    /// Not known.
    Unknown,
}

impl Translator<'_> {
    /// The step of a block: a tape in it, or a function with one that it calls.
    pub(crate) fn tape_in(&self, body: &[Statement]) -> Option<Tape> {
        let mut found = None;
        each_statement(body, &mut |statement| {
            if let StatementKind::With(items, inside) = &statement.kind
                && found.is_none()
                && let [(value, name)] = items.as_slice()
                && self.names.called(value).as_deref() == Some("tensorflow.GradientTape")
            {
                let tape = name.as_ref().and_then(Value::name).unwrap_or_default();
                found = Some(self.tape(statement.span, tape, inside, body));
            }
        });
        if found.is_some() {
            return found;
        }
        each_value(body, &mut |value| {
            if let Some(name) = value.name()
                && found.is_none()
                && let Some(Thing::Step(tape)) = self.things.get(name)
            {
                found = Some((**tape).clone());
            }
        });
        found
    }

    fn tape(&self, span: CellSpan, tape: &str, inside: &[Statement], body: &[Statement]) -> Tape {
        let mut step = Tape {
            span,
            model: None,
            loss: TapeLoss::Unknown,
            divides_loss: false,
            optimizer: None,
            clip: None,
            metrics: Vec::new(),
            reductions: Vec::new(),
        };
        let mut target = None;
        let (clip, metrics) = (&mut step.clip, &mut step.metrics);
        let (optimizer, model) = (&mut step.optimizer, &mut step.model);
        each_value(body, &mut |value| {
            let Some(call) = value.call() else {
                return;
            };
            if let Kind::Attribute(object, method) = &call.function.kind {
                match method.as_str() {
                    "gradient" if object.name() == Some(tape) => target = call.arguments.first(),
                    "apply_gradients" => *optimizer = optimizer.take().or(Some((**object).clone())),
                    "update_state" => metrics.push((**object).clone()),
                    _ => {}
                }
            }
            let full = self.names.full(&call.function).unwrap_or_default();
            let (method, place) = match full.as_str() {
                "tensorflow.clip_by_global_norm" => ("global_clipnorm", "clip_norm"),
                "tensorflow.clip_by_norm" => ("clipnorm", "clip_norm"),
                "tensorflow.clip_by_value" => ("clipvalue", "clip_value_max"),
                _ => return,
            };
            let index = if method == "clipvalue" { 2 } else { 1 };
            if let Some(value) = call.argument(place, index) {
                *clip = Some((method, value.clone()));
            }
        });
        each_value(inside, &mut |value| {
            let is_model = |call: &&Call| match call
                .function
                .name()
                .map(|name| (name, self.things.get(name)))
            {
                Some((_, Some(Thing::Model(_)))) => true,
                Some((name, None)) => {
                    !self.names.has(name) && name.to_lowercase().contains("model")
                }
                _ => false,
            };
            if let Some(call) = value.call().filter(is_model) {
                *model = model.take().or(Some(call.function.clone()));
            }
        });
        let reductions = &mut step.reductions;
        each_value(inside, &mut |value| {
            let full = value
                .call()
                .and_then(|call| self.names.full(&call.function))
                .unwrap_or_default();
            if let "tensorflow.reduce_mean"
            | "tensorflow.reduce_sum"
            | "tensorflow.math.reduce_mean" = full.as_str()
            {
                reductions.push((value.span, full.ends_with("mean")));
            }
        });
        if let Some(target) = target {
            self.loss_of_tape(target, inside, &mut step, 0);
        }
        step
    }

    /// Follows a loss to the function that computes it.
    fn loss_of_tape(&self, value: &Value, inside: &[Statement], step: &mut Tape, depth: usize) {
        if depth > 8 {
            return;
        }
        match &value.kind {
            Kind::Name(name) => {
                let mut made = None;
                each_statement(inside, &mut |statement| {
                    if let StatementKind::Assign(targets, value) = &statement.kind
                        && targets.iter().any(|it| it.name() == Some(name))
                    {
                        let is_itself = value.name() == Some(name);
                        made = Some(value).filter(|_| !is_itself);
                    }
                });
                if let Some(made) = made {
                    self.loss_of_tape(made, inside, step, depth + 1);
                }
            }
            Kind::Attribute(_, name) if name == "loss" => step.loss = TapeLoss::Head,
            Kind::Index(_, index) if index.text() == Some("loss") || index.integer() == Some(0) => {
                step.loss = TapeLoss::Head;
            }
            Kind::Binary(left, op, _) if *op == "/" || *op == "*" => {
                step.divides_loss |= *op == "/";
                self.loss_of_tape(left, inside, step, depth + 1);
            }
            Kind::Call(call) => {
                let full = self.names.full(&call.function).unwrap_or_default();
                let is_mean = full.starts_with("tensorflow.reduce_")
                    || full.ends_with("compute_average_loss");
                let is_scaled = matches!(&call.function.kind, Kind::Attribute(_, name) if name == "get_scaled_loss");
                match call.arguments.first() {
                    Some(inner) if is_mean || is_scaled => {
                        self.loss_of_tape(inner, inside, step, depth + 1)
                    }
                    _ => step.loss = TapeLoss::Called(Box::new(call.function.clone())),
                }
            }
            _ => {}
        }
    }
}

/// What a loop by hand does with the gradients of several steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accumulation {
    /// How many steps, as `N` in `(step + 1) % N == 0`.
    pub steps: Option<Value>,
    /// Where the sum is made anew in every step.
    pub made_anew: Option<CellSpan>,
    /// Where a gradient is added that is not divided.
    pub added: Option<CellSpan>,
    /// The sum is divided somewhere.
    pub is_divided: bool,
}

/// Reads the accumulation of a loop whose body this is. A sum that `apply_gradients` does not get, of losses or of steps, is
/// none, and `% N` counts in the condition of `apply_gradients` alone.
///
/// With one of the two alone the loop does something that is not known: it is neither a plain step nor an accumulation.
pub(crate) fn accumulation(body: &[Statement], tape: &Tape) -> Result<Option<Accumulation>, Why> {
    let applied = applied(body);
    let mut found = Accumulation {
        is_divided: tape.divides_loss,
        ..Accumulation::default()
    };
    let mut sums: Vec<&str> = Vec::new();
    each_statement(body, &mut |statement| match &statement.kind {
        StatementKind::If(branches) => {
            for (condition, block) in branches {
                if let Some(steps) = condition.as_ref().and_then(every)
                    && applies(block)
                {
                    found.steps = Some(steps.clone());
                }
            }
        }
        StatementKind::Augment(target, "+", value) => {
            let is_gradient = |name: &&str| applied.contains(name) || has_gradient(value);
            if let Some(name) = indexed(target).filter(is_gradient) {
                sums.push(name);
                let is_divided = matches!(&value.kind, Kind::Binary(_, "/", _));
                found.is_divided |= is_divided;
                if !is_divided {
                    found.added = Some(statement.span);
                }
            }
        }
        StatementKind::Assign(targets, value) => {
            // `sums = [sum + gradient for sum, gradient in zip(sums, gradients)]`, and division of all.
            if let (Some(name), Kind::Comprehension(it)) =
                (targets.first().and_then(Value::name), &value.kind)
            {
                let is_sum = matches!(&it.element.kind, Kind::Binary(_, "+", _));
                if is_sum && applied.contains(name) {
                    sums.push(name);
                    found.added = Some(statement.span);
                }
            }
        }
        _ => {}
    });
    each_value(body, &mut |value| {
        if let Kind::Comprehension(it) = &value.kind {
            found.is_divided |= matches!(&it.element.kind, Kind::Binary(_, "/", _));
        }
    });
    match (found.steps.is_some(), sums.is_empty()) {
        (false, true) => Ok(None),
        (true, false) => {
            found.made_anew = made_anew(body, tape, &sums);
            Ok(Some(found))
        }
        _ => Err("how it adds up gradients is not known".to_owned()),
    }
}

/// In the block of the step itself, not under the condition, a sum is made anew each time.
fn made_anew(body: &[Statement], tape: &Tape, sums: &[&str]) -> Option<CellSpan> {
    let mut found = None;
    for statement in block_of_tape(body, tape.span)? {
        if let StatementKind::Assign(targets, value) = &statement.kind
            && targets
                .iter()
                .any(|it| it.name().is_some_and(|name| sums.contains(&name)))
            && let Kind::Comprehension(it) = &value.kind
            && it.element.call().is_some_and(is_zero)
        {
            found = Some(statement.span);
        }
    }
    found
}

/// `N` of the condition `(step + 1) % N == 0`, also where the last step of the data is one too: `… or step + 1 == len(data)`.
pub(crate) fn every(condition: &Value) -> Option<&Value> {
    match &condition.kind {
        Kind::Binary(left, "or", right) => [(left, right), (right, left)]
            .into_iter()
            .find_map(|(own, other)| every(own).filter(|_| is_last_step(other, own))),
        Kind::Binary(left, "==", _) => match &left.kind {
            Kind::Binary(_, "%", steps) => Some(&**steps),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a condition compares the counter of another one with a number that is not written out, such as a length.
fn is_last_step(condition: &Value, counting: &Value) -> bool {
    let names = |value: &Value| {
        let mut found = BTreeSet::new();
        value.visit(&mut |inner| found.extend(inner.name().map(str::to_owned)));
        found
    };
    let Kind::Binary(left, "==", right) = &condition.kind else {
        return false;
    };
    let (left, right, counted) = (names(left), names(right), names(counting));
    !left.is_empty() && !right.is_empty() && !left.union(&right).all(|it| !counted.contains(it))
}

/// Whether a block applies gradients.
fn applies(block: &[Statement]) -> bool {
    let mut found = false;
    each_value(block, &mut |value| {
        found |= value.method("apply_gradients").is_some();
    });
    found
}

/// Whether a tape's gradients stand in a value.
fn has_gradient(value: &Value) -> bool {
    let mut found = false;
    value.visit(&mut |inner| found |= inner.method("gradient").is_some());
    found
}

/// The names that reach `apply_gradients`, also by way of others.
fn applied(body: &[Statement]) -> BTreeSet<&str> {
    /// A name by way of more names than these is not followed.
    const MOST: usize = 8;
    let mut names = BTreeSet::new();
    each_value(body, &mut |value| {
        if let Some((_, call)) = value.method("apply_gradients") {
            let keywords = call.keywords.iter().map(|keyword| &keyword.value);
            for given in call.arguments.iter().chain(keywords) {
                names.extend(made_of(given));
            }
        }
    });
    for _ in 0..MOST {
        let before = names.len();
        each_statement(body, &mut |statement| {
            if let StatementKind::Assign(targets, value) = &statement.kind
                && targets
                    .iter()
                    .any(|target| made_of(target).iter().any(|name| names.contains(name)))
            {
                names.extend(made_of(value));
            }
        });
        if names.len() == before {
            break;
        }
    }
    names
}

/// The names in a value, but for those that a tape derives it by: a loss is no gradient.
fn made_of(value: &Value) -> Vec<&str> {
    let (mut names, mut derived) = (Vec::new(), Vec::<CellSpan>::new());
    value.visit(&mut |inner| {
        let at = inner.span;
        if inner.method("gradient").is_some() {
            derived.push(at);
        }
        let is_derived = derived
            .iter()
            .any(|it| it.start <= at.start && at.end <= it.end);
        names.extend(inner.name().filter(|_| !is_derived));
    });
    names
}

/// `sums[i]`.
fn indexed(target: &Value) -> Option<&str> {
    match &target.kind {
        Kind::Index(object, _) => object.name(),
        Kind::Name(name) => Some(name),
        _ => None,
    }
}

pub(super) fn is_zero(call: &Call) -> bool {
    match call.function.path() {
        Some(path) => path.last().is_some_and(|name| name.contains("zeros")),
        None => false,
    }
}

/// The block that a tape stands in directly.
fn block_of_tape(body: &[Statement], tape: CellSpan) -> Option<&[Statement]> {
    if body.iter().any(|it| it.span == tape) {
        return Some(body);
    }
    let blocks = body.iter().flat_map(Statement::blocks);
    blocks
        .into_iter()
        .find_map(|block| block_of_tape(block, tape))
}
