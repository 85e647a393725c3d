//! A call as other libraries write it, with each value at the place that its name has here.

use super::suggest;
use crate::arguments::{self, Form, Number, Parameter, Signature, To};

/// A call as it is written here.
pub(super) struct Written {
    /// The call.
    pub text: String,
    /// Whether it means the same: each value has its place, and none is missing.
    pub is_whole: bool,
    /// What is said about values without a place.
    pub notes: Vec<String>,
}

/// The parts of a call, as they are collected.
struct Parts<'s> {
    signature: &'s Signature,
    operands: Vec<Option<String>>,
    fields: Vec<(&'static str, String)>,
    methods: Vec<(&'static str, String)>,
    is_whole: bool,
    notes: Vec<String>,
}

/// The call of a signature with values in order, then values with names.
pub(super) fn written(signature: &Signature, operands: &[&str], named: &[(&str, &str)]) -> Written {
    let mut parts = Parts {
        signature,
        operands: vec![None; signature.places.len()],
        fields: Vec::new(),
        methods: Vec::new(),
        is_whole: true,
        notes: Vec::new(),
    };
    let warmed_up = warmed_up(signature, operands, named);
    let (operands, named) = match &warmed_up {
        Some((operands, named)) => (operands.as_slice(), named.as_slice()),
        None => (operands, named),
    };
    for (at, value) in operands.iter().enumerate() {
        match signature.parameters.get(at) {
            Some(parameter) => parts.put(parameter, value),
            None => parts.lost(format!("there is no place for the value `{value}`")),
        }
    }
    for (name, value) in named {
        match signature.parameter(name) {
            Some(parameter) => parts.put(parameter, value),
            None => parts.unknown(name),
        }
    }
    parts.written()
}

/// Keras's cosine that warms up from a rate of 0: the rate that the warm-up ends with is the one that is given here.
type Values<'v> = (Vec<&'v str>, Vec<(&'v str, &'v str)>);
fn warmed_up<'v>(
    signature: &Signature,
    operands: &[&'v str],
    named: &[(&'v str, &'v str)],
) -> Option<Values<'v>> {
    let is_zero = |value: &str| value.parse::<f64>() == Ok(0.0);
    let (_, target) = named.iter().find(|(name, _)| *name == "warmup_target")?;
    let mut operands = operands.to_vec();
    let mut named = named.to_vec();
    let initial = match operands.first_mut() {
        Some(initial) => initial,
        None => {
            let mut named = named.iter_mut();
            &mut named.find(|(name, _)| *name == "initial_learning_rate")?.1
        }
    };
    if signature.name != "CosineDecay" || !is_zero(initial) || *target == "None" {
        return None;
    }
    *initial = target;
    named.retain(|(name, _)| *name != "warmup_target");
    Some((operands, named))
}

impl Parts<'_> {
    fn lost(&mut self, note: String) {
        self.is_whole = false;
        self.notes.push(note);
    }

    fn unknown(&mut self, name: &str) {
        let all = self.signature.parameters.iter().chain(self.signature.also);
        let names = all.map(|it| it.name);
        let similar = suggest::similar(name, names);
        let meant = similar
            .first()
            .map_or_else(String::new, |it| format!("; did you mean `{it}`?"));
        let callee = self.signature.written;
        self.lost(format!("`{name}` is no value of `{callee}`{meant}"));
    }

    /// Puts a value where it goes.
    fn put(&mut self, parameter: &Parameter, value: &str) {
        // What is `None` is not given.
        if matches!(value, "None" | "none") {
            return;
        }
        let name = parameter.name;
        let number = literal(parameter.number, value);
        match parameter.to {
            To::Operand(at) => match self.operands.get_mut(at) {
                Some(place @ None) => *place = Some(number),
                _ => self.lost(format!("`{name}` is given twice")),
            },
            To::Field(field) => self.fields.push((field, number)),
            To::Method(method) if self.methods.iter().any(|(it, _)| *it == method) => {
                self.lost(format!("`{name}` is given twice"));
            }
            To::Method(method) if let Some(others) = not_of(self.signature, method) => {
                let name = self.signature.written;
                self.lost(format!("`{name}` has no `{method}`{others}"));
            }
            To::Method(method) => self.methods.push((method, number)),
            To::Pair(first, second) => match pair(value) {
                _ if not_of(self.signature, first).is_some() => {
                    let callee = self.signature.written;
                    self.lost(format!("`{callee}` has no `{name}`"));
                }
                Some((one, other)) => {
                    self.methods.push((first, literal(Number::Float, one)));
                    self.methods.push((second, literal(Number::Float, other)));
                }
                None => self.lost(format!(
                    "`{name}` is two settings here: `.{first}(…)` and `.{second}(…)`"
                )),
            },
            To::Absent(why) if is_default(name, value) => {
                self.notes
                    .push(format!("`{name} = {value}` is left out: {why}"));
            }
            To::Absent(why) => self.lost(format!("`{name} = {value}` has no place: {why}")),
            To::Ignored(why) => self
                .notes
                .push(format!("`{name} = {value}` is left out: {why}")),
        }
    }

    fn written(mut self) -> Written {
        let signature = self.signature;
        let mut operands = Vec::new();
        let places = signature
            .places
            .iter()
            .zip(std::mem::take(&mut self.operands));
        for (at, (place, given)) in places.enumerate() {
            if signature.form == Form::Braces {
                break;
            }
            if given.is_none() && !place.is_default {
                let mut names = signature.parameters.iter();
                let name = names.find(|it| it.to == To::Operand(at));
                let name = name.map_or("a value", |it| it.name);
                self.lost(format!(
                    "`{name}` is missing: `{}` stands for it",
                    place.value
                ));
            }
            operands.push(given.unwrap_or_else(|| place.value.to_owned()));
        }
        let smooths = self.methods.iter().any(|(it, _)| *it == "label_smoothing");
        let name = match signature.written {
            // The categorical loss smooths labels, and takes class numbers as the sparse one does.
            name if smooths => name.trim_start_matches("Sparse"),
            name => name,
        };
        let all = operands.join(", ");
        let mut text = match signature.form {
            Form::New | Form::NewOrError => format!("{name}::new({all})"),
            Form::Function => format!("{name}({all})"),
            Form::Braces => self.in_braces(name),
        };
        for (method, value) in &self.methods {
            text += &format!(".{method}({value})");
        }
        Written {
            text,
            is_whole: self.is_whole,
            notes: self.notes,
        }
    }

    fn in_braces(&self, name: &str) -> String {
        let signature = self.signature;
        let all = signature.parameters.iter().filter_map(|it| match it.to {
            To::Field(field) => Some(field),
            _ => None,
        });
        let given = |field: &str| self.fields.iter().find(|(it, _)| *it == field);
        let fields: Vec<String> = all
            .zip(signature.places)
            .map(|(field, place)| {
                let value = given(field).map_or(place.value, |(_, value)| value);
                format!("{field}: {value}")
            })
            .collect();
        if fields.is_empty() {
            name.to_owned()
        } else {
            format!("{name} {{ {} }}", fields.join(", "))
        }
    }
}

/// Of a method that an optimizer does not have: those that have it, in words.
fn not_of(signature: &Signature, method: &str) -> Option<String> {
    let optimizer = arguments::optimizer(signature.written)?;
    if arguments::find(optimizer.arguments, method).is_some() {
        return None;
    }
    let others = arguments::OPTIMIZERS.iter();
    let others = others.filter(|it| arguments::find(it.arguments, method).is_some());
    let others: Vec<String> = others.map(|it| format!("`{}`", it.name)).collect();
    Some(match others.as_slice() {
        [] => String::new(),
        [one] => format!("; {one} has it"),
        several => format!("; {} have it", several.join(", ")),
    })
}

/// Whether a value without a place is the one that holds here anyway.
fn is_default(name: &str, value: &str) -> bool {
    let value = value.trim_matches(['"', '\'']);
    match name {
        "use_bias" => value.eq_ignore_ascii_case("true"),
        "kernel_initializer" => value == "glorot_uniform",
        "bias_initializer" => value == "zeros",
        "reduction" => value == "sum_over_batch_size",
        "curve" => value == "ROC",
        "threshold" | "thresholds" => value == "0.5",
        "gradient_accumulation_steps" => value == "1",
        "dampening" | "weight_decay" | "histogram_freq" => value.parse::<f64>() == Ok(0.0),
        "maximize" | "append" | "write_images" | "mask_zero" | "keepdims" => {
            value.eq_ignore_ascii_case("false")
        }
        "separator" => value == ",",
        "start_from_epoch" => value == "0",
        _ => false,
    }
}

/// A value that is written out, as Rust has it: `true`, `1.0` for a float, `100` for a whole number.
fn literal(number: Number, value: &str) -> String {
    let value = match value {
        "True" => "true",
        "False" => "false",
        value => value,
    };
    let is_integer = |it: &str| !it.is_empty() && it.chars().all(|it| it.is_ascii_digit());
    match number {
        Number::Float if is_integer(value.trim_start_matches('-')) => format!("{value}.0"),
        Number::Integer => match value.strip_suffix(".0") {
            Some(whole) if is_integer(whole) => whole.to_owned(),
            _ => value.to_owned(),
        },
        _ => value.to_owned(),
    }
}

/// `(0.9, 0.999)`
fn pair(value: &str) -> Option<(&str, &str)> {
    let inner = value.strip_prefix('(').or(value.strip_prefix('['))?;
    let inner = inner.strip_suffix(')').or(inner.strip_suffix(']'))?;
    let (first, second) = inner.split_once(',')?;
    let (first, second) = (first.trim(), second.trim().trim_end_matches(',').trim());
    let is_one = |it: &str| !it.is_empty() && !it.contains([',', '(', '[']);
    (is_one(first) && is_one(second)).then_some((first, second))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::signatures;

    /// The value that a place is tried with.
    fn value_of(parameter: &Parameter, index: usize) -> String {
        match (parameter.to, parameter.number) {
            (To::Pair(..), _) => format!("(0.{index}1, 0.{index}2)"),
            (_, Number::Integer) => format!("7{index}"),
            (_, Number::Float) => format!("0.7{index}"),
            (_, Number::Any) => format!("value_{index}"),
        }
    }

    /// Where a value is to stand in the call.
    fn stands(text: &str, signature: &Signature, parameter: &Parameter, value: &str) -> bool {
        match parameter.to {
            To::Operand(at) => {
                let open = text.find('(').expect("brackets");
                let end = text[open..].find(')').expect("brackets") + open;
                text[open + 1..end].split(", ").nth(at) == Some(value)
            }
            To::Method(method) => text.contains(&format!(".{method}({value})")),
            To::Field(field) => text.contains(&format!("{field}: {value}")),
            To::Pair(first, second) => {
                let (one, other) = pair(value).expect("a pair");
                text.contains(&format!(".{first}({one})"))
                    && text.contains(&format!(".{second}({other})"))
            }
            To::Absent(_) | To::Ignored(_) => !text.contains(value) && signature.written != value,
        }
    }

    /// Each value of each constructor alone, all of them, and all of them in the other order: a value stands at the place of its
    /// name, or is named, and nothing else changes.
    #[test]
    fn every_value_stands_where_its_name_says() {
        let mut tried = 0;
        for signature in signatures() {
            let parameters: Vec<&Parameter> =
                signature.parameters.iter().chain(signature.also).collect();
            let values: Vec<String> = parameters
                .iter()
                .enumerate()
                .map(|(index, it)| value_of(it, index))
                .collect();
            let alone = written(signature, &[], &[]);
            for (parameter, value) in parameters.iter().zip(&values) {
                if let To::Method(method) | To::Pair(method, _) = parameter.to
                    && not_of(signature, method).is_some()
                {
                    let found = written(signature, &[], &[(parameter.name, value)]);
                    assert!(!found.is_whole && !found.text.contains(value.as_str()));
                    continue;
                }
                let found = written(signature, &[], &[(parameter.name, value)]);
                assert!(
                    stands(&found.text, signature, parameter, value),
                    "{}: {} = {value}: {}",
                    signature.name,
                    parameter.name,
                    found.text
                );
                let is_named = found.notes.iter().any(|it| it.contains(value.as_str()));
                match parameter.to {
                    To::Absent(_) => assert!(is_named && !found.is_whole, "{}", found.text),
                    To::Ignored(_) => {
                        assert!(is_named, "{}", found.text);
                        assert_eq!(found.text, alone.text);
                    }
                    _ => assert!(!is_named, "{:?}", found.notes),
                }
                tried += 1;
            }
            let own = signature.parameters.iter().zip(&values);
            let all: Vec<(&str, &str)> = own.map(|(it, value)| (it.name, value.as_str())).collect();
            let mut backward = all.clone();
            backward.reverse();
            let in_order: Vec<&str> = all.iter().map(|(_, value)| *value).collect();
            for found in [
                written(signature, &[], &all),
                written(signature, &[], &backward),
                written(signature, &in_order, &[]),
            ] {
                for (parameter, value) in signature.parameters.iter().zip(&values) {
                    let is_there = stands(&found.text, signature, parameter, value);
                    assert!(is_there, "{}: {}", parameter.name, found.text);
                }
            }
        }
        assert!(tried > 250, "{tried} values");
    }

    /// The methods of the optimizers are those of their tables, and each of Keras's arguments is known.
    #[test]
    fn methods_exist() {
        for optimizer in arguments::OPTIMIZERS {
            let signature = arguments::signature(optimizer.name).expect("a signature");
            for parameter in signature.parameters {
                if let To::Method(method) = parameter.to {
                    let known = arguments::find(optimizer.arguments, method);
                    assert!(known.is_some(), "{}: {method}", optimizer.name);
                }
            }
            for argument in optimizer.arguments {
                let is_ours = argument.name == "rate_for";
                let known = signature.parameter(argument.name);
                assert!(is_ours || known.is_some(), "{}", argument.name);
            }
        }
    }

    #[test]
    fn a_value_has_its_name() {
        for (name, operands, named, expected, is_whole) in [
            (
                "PolynomialDecay",
                &["0.01"][..],
                &[
                    ("end_learning_rate", "0.001"),
                    ("decay_steps", "100"),
                    ("power", "2.0"),
                ][..],
                "PolynomialDecay::new(0.01, 100).end_learning_rate(0.001).power(2.0)",
                true,
            ),
            (
                "CosineDecay",
                &[],
                &[
                    ("initial_learning_rate", "0.01"),
                    ("decay_steps", "100"),
                    ("warmup_target", "0.02"),
                ],
                "CosineDecay::new(0.01, 100)",
                false,
            ),
            (
                "CosineDecay",
                &["0.0", "1000"],
                &[("warmup_target", "0.02"), ("warmup_steps", "100")],
                "CosineDecay::new(0.02, 1000).warmup_steps(100)",
                true,
            ),
            (
                "ExponentialDecay",
                &["0.01", "100", "0.9"],
                &[("staircase", "True")],
                "ExponentialDecay::new(0.01, 100, 0.9).staircase(true)",
                true,
            ),
            (
                "warmup_linear",
                &["5e-5"],
                &[("warmup_steps", "100")],
                "warmup_linear(5e-5, 0.1)",
                false,
            ),
            (
                "Adam",
                &[],
                &[("lr", "1"), ("betas", "(0.8, 0.99)"), ("eps", "1e-6")],
                "Adam::new(1.0).beta_1(0.8).beta_2(0.99).epsilon(1e-6)",
                true,
            ),
            (
                "SparseCategoricalCrossentropy",
                &["True"],
                &[("label_smoothing", "0.1")],
                "CategoricalCrossentropy { from_logits: true }.label_smoothing(0.1)",
                true,
            ),
        ] {
            let signature = arguments::signature(name).expect("a signature");
            let found = written(signature, operands, named);
            assert_eq!((found.text.as_str(), found.is_whole), (expected, is_whole));
        }
    }
}
