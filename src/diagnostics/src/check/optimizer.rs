//! SC0504, SC0118 and SC0103 on optimizers: `AdamW::new(lr = 5e-5)`, `AdamW::new(5e-5).weight_decy(0.01)`.
//!
//! Only what the text decides: a method that looks like none of the arguments may come from a trait,
//! and is left to rustc.

use super::calls::{CallArgument, Chain, Method};
use super::literal::Literal;
use super::{literal, signatures, suggest, table};
use crate::arguments::{self, Interval, OPTIMIZERS};
use crate::rules::{ConflictingArguments, InvalidArgumentValue, UnknownOptimizerArgument};
use crate::{CellSpan, Diagnostic, Edit, Fix, Place, Rule};

/// Methods that every type may have.
const COMMON_METHODS: &[&str] = &[
    "clone", "into", "borrow", "to_owned", "as_ref", "unwrap", "expect",
];

/// The findings of one optimizer.
pub(super) fn check(chain: &Chain) -> Vec<Diagnostic> {
    let Some(optimizer) = arguments::optimizer(&chain.optimizer) else {
        return Vec::new();
    };
    let known: Vec<&'static str> = optimizer
        .arguments
        .iter()
        .map(|argument| argument.name)
        .collect();
    let at_once = all_at_once(chain);
    let named = chain
        .named
        .iter()
        .take(if at_once.is_some() { 1 } else { usize::MAX });
    let named = named.map(|argument| {
        let fixes = match &at_once {
            Some((fix, _)) => vec![fix.clone()],
            None => in_brackets(chain, &known, argument),
        };
        let mut found = unknown(chain, &known, &argument.name, argument.name_span, fixes);
        let notes = at_once.iter().flat_map(|(_, notes)| notes.clone());
        found.why.extend(notes);
        found
    });
    let methods = chain.methods.iter().filter(|method| {
        !known.contains(&method.name.as_str()) && !COMMON_METHODS.contains(&method.name.as_str())
    });
    let methods = methods.filter_map(|method| {
        let fixes = of_method(chain, &known, method);
        (!fixes.is_empty()).then(|| unknown(chain, &known, &method.name, method.name_span, fixes))
    });
    let mut findings: Vec<Diagnostic> = named
        .chain(methods)
        .chain(conflicts(chain))
        .chain(numbers(chain, optimizer))
        .collect();
    let at_fault = |method: &Method| {
        let is_marked = |found: &Diagnostic| {
            found.labels.iter().any(|label| match label.place {
                Place::Span(span) => method.span.start <= span.start && span.end <= method.span.end,
                _ => false,
            })
        };
        findings.iter().any(is_marked)
    };
    let invalid: Vec<String> = chain
        .methods
        .iter()
        .filter(|method| at_fault(method))
        .map(|method| method.name.clone())
        .collect();
    if let Some(first) = findings.first_mut() {
        first.arguments = table::optimizer_rows(chain, &invalid);
    }
    findings
}

fn unknown(
    chain: &Chain,
    known: &[&str],
    given: &str,
    span: CellSpan,
    fixes: Vec<Fix>,
) -> Diagnostic {
    UnknownOptimizerArgument {
        optimizer: chain.optimizer.clone(),
        given: given.to_owned(),
        place: Place::Span(span),
        fixes,
        known: known.iter().map(|name| (*name).to_owned()).collect(),
    }
    .diagnostic()
}

/// Several values of the optimizer in its brackets: `Adam::new(learning_rate = 0.01, beta_1 = 0.8)`. One edit, since those of
/// several values would overlap; without one if a value has no place.
fn all_at_once(chain: &Chain) -> Option<(Fix, Vec<String>)> {
    let signature = arguments::signature(&chain.optimizer)?;
    let is_known = |it: &CallArgument| signature.parameter(&it.name).is_some();
    let given = chain.named.len() + chain.operands.len();
    if chain.named.is_empty() || given < 2 || !chain.named.iter().all(is_known) {
        return None;
    }
    let operands: Vec<&str> = chain.operands.iter().map(String::as_str).collect();
    let named = chain.named.iter();
    let named: Vec<(&str, &str)> = named
        .map(|it| (it.name.as_str(), it.value.as_str()))
        .collect();
    let found = signatures::written(signature, &operands, &named);
    let inside = found.text.split_once("::new(")?.1;
    let whole = CellSpan {
        start: chain.inside.start,
        end: chain.after,
    };
    let edits = if found.is_whole {
        vec![edit(whole, inside)]
    } else {
        Vec::new()
    };
    let title = if found.is_whole {
        format!("did you mean `{}`?", found.text)
    } else {
        format!("without what has no place in it: `{}`", found.text)
    };
    let fix = Fix {
        kind: if found.is_whole {
            crate::FixKind::Suggestion
        } else {
            crate::FixKind::Change
        },
        title,
        edits,
    };
    Some((fix, found.notes))
}

/// Ways out for `name = value` inside the constructor's brackets.
fn in_brackets(chain: &Chain, known: &[&str], argument: &CallArgument) -> Vec<Fix> {
    let value = if argument.value.is_empty() {
        "5e-5"
    } else {
        argument.value.as_str()
    };
    if is_rate(&argument.name) {
        let name = CellSpan {
            start: argument.span.start,
            end: argument.value_span.start,
        };
        return vec![Fix {
            kind: crate::FixKind::Suggestion,
            title: format!("did you mean `{}::new({value})`?", chain.optimizer),
            edits: vec![edit(name, "")],
        }];
    }
    let names = near(&argument.name, known);
    names
        .iter()
        .map(|name| {
            let method = format!(".{name}({value})");
            let after = CellSpan {
                start: chain.after,
                end: chain.after,
            };
            Fix {
                kind: crate::FixKind::Suggestion,
                title: format!("did you mean `{method}`?"),
                edits: vec![edit(argument.drop_span, ""), edit(after, &method)],
            }
        })
        .collect()
}

/// Ways out for a method that is no argument of the optimizer.
fn of_method(chain: &Chain, known: &[&str], method: &Method) -> Vec<Fix> {
    if is_rate(&method.name) {
        return vec![Fix {
            kind: crate::FixKind::Suggestion,
            title: format!("did you mean `{}::new({})`?", chain.optimizer, method.value),
            edits: vec![edit(chain.inside, &method.value), edit(method.span, "")],
        }];
    }
    let mut fixes: Vec<Fix> = near(&method.name, known)
        .iter()
        .map(|name| Fix {
            kind: crate::FixKind::Suggestion,
            title: format!("did you mean `{name}`?"),
            edits: vec![edit(method.name_span, name)],
        })
        .collect();
    let other = OPTIMIZERS
        .iter()
        .find(|other| arguments::find(other.arguments, &method.name).is_some());
    if let Some(other) = other {
        let name = &method.name;
        let drop = Fix {
            kind: crate::FixKind::Change,
            title: format!("remove `.{name}({})`", method.value),
            edits: vec![edit(method.span, "")],
        };
        // In words: whose optimizer it is decides, not we.
        let take = Fix {
            kind: crate::FixKind::Change,
            title: format!(
                "or take `{}`, which has `.{name}({})`",
                other.name, method.value
            ),
            edits: Vec::new(),
        };
        fixes.splice(0..0, [drop, take]);
    }
    fixes
}

/// Names at distance 1, then the name that another library's stands for, then names further off.
fn near(name: &str, known: &[&str]) -> Vec<String> {
    let mut names = suggest::similar(name, known.iter().copied());
    // An argument that is only written in the wrong way is the best suggestion of all.
    if known.contains(&name) {
        return vec![name.to_owned()];
    }
    let translated = match name {
        "decay" | "wd" | "l2" => "weight_decay",
        "clip_norm" | "max_grad_norm" | "clip_grad_norm" | "clip" => "global_clipnorm",
        "clip_value" => "clipvalue",
        "eps" => "epsilon",
        "betas" | "b1" => "beta_1",
        "b2" => "beta_2",
        _ => return names,
    };
    if known.contains(&translated) {
        names.retain(|other| other != translated);
        let first = names
            .iter()
            .take_while(|other| suggest::distance(name, other) == 1)
            .count();
        names.insert(first, translated.to_owned());
    }
    names
}

fn is_rate(name: &str) -> bool {
    matches!(name, "lr" | "rate") || suggest::distance(name, "learning_rate") <= 1
}

/// SC0103: the rate and the arguments of the methods, where they are literals.
fn numbers(chain: &Chain, optimizer: &arguments::Optimizer) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let mut refused = |name: &str, value: &str, span: CellSpan, refusal: literal::Refusal| {
        let facts = InvalidArgumentValue {
            call: format!("{}::new", chain.optimizer),
            argument: name.to_owned(),
            given: value.to_owned(),
            expects: refusal.expects,
            place: Place::Span(span),
            replacement: refusal.replacement,
            arguments: Vec::new(),
        };
        findings.push(facts.diagnostic());
    };
    if let Some(span) = chain.rate_span
        && let Some(rate) = literal::read_text(&chain.rate)
        && let Err(refusal) = judge_rate(&rate, optimizer)
    {
        refused("learning_rate", &chain.rate, span, refusal);
    }
    for method in &chain.methods {
        if let Some(argument) = arguments::find(optimizer.arguments, &method.name)
            && let Some(value) = literal::read_text(&method.value)
            && let Err(refusal) = literal::judge(argument, &value)
        {
            refused(&method.name, &method.value, method.value_span, refusal);
        }
    }
    findings
}

/// A rate is a float that is not negative. The nearest one is offered, unless that is a rate that nobody
/// means: then the usual one of this optimizer.
fn judge_rate(rate: &Literal, optimizer: &arguments::Optimizer) -> Result<(), literal::Refusal> {
    /// From this on a rate with the wrong sign is no slip of the sign alone, and one of Adam's is too high.
    const HIGH: f64 = 0.1;
    let usual = || Some(optimizer.usual_rate.to_owned());
    let is_adam = matches!(optimizer.name, "Adam" | "AdamW");
    let near = |value: f64| match is_adam && value >= HIGH {
        true => usual(),
        false => Some(literal::decimal(value)),
    };
    let replacement = match *rate {
        Literal::Float(value) if Interval::NotNegative.holds(value) => return Ok(()),
        // Rust does not make a float of an integer by itself.
        Literal::Integer(value) if value >= 0 => near(value as f64),
        Literal::Float(value) if (-HIGH..0.0).contains(&value) => near(-value),
        Literal::Text(ref text) => match text.trim().parse::<f64>() {
            Ok(value) if Interval::NotNegative.holds(value) => near(value),
            _ => usual(),
        },
        _ => usual(),
    };
    let expects = match rate {
        Literal::Integer(0..) => "a float, with a point or an exponent",
        _ => Interval::NotNegative.words(),
    };
    Err(literal::Refusal {
        expects: expects.to_owned(),
        replacement,
    })
}

fn edit(span: CellSpan, replacement: &str) -> Edit {
    Edit {
        place: Place::Span(span),
        replacement: replacement.to_owned(),
    }
}

/// SC0118: methods that exclude each other.
fn conflicts(chain: &Chain) -> Vec<Diagnostic> {
    let Some(optimizer) = arguments::optimizer(&chain.optimizer) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (index, method) in chain.methods.iter().enumerate() {
        let Some(argument) = arguments::find(optimizer.arguments, &method.name) else {
            continue;
        };
        for (other, reason) in argument.conflicts {
            let Some(earlier) = chain.methods[..index]
                .iter()
                .find(|earlier| earlier.name == *other)
            else {
                continue;
            };
            let facts = ConflictingArguments {
                call: format!("{}::new", chain.optimizer),
                first: earlier.name.clone(),
                first_place: Place::Span(earlier.span),
                first_drop: Place::Span(earlier.span),
                second: method.name.clone(),
                second_place: Place::Span(method.span),
                second_drop: Place::Span(method.span),
                reason: (*reason).to_owned(),
                arguments: Vec::new(),
            };
            findings.push(facts.diagnostic());
        }
    }
    findings
}
