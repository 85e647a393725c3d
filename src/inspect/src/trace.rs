//! All that is seen of a watched pass in its order, and where the first value that is not finite comes from.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use stratoscope_bert::taps::{Sighting, Taps};

use stratoscope_report::inspection::{Statistics, TensorRow};

/// A value of a pass, or a gradient, and its first element that is not finite: one that is NaN or ∞ before one that is −∞.
#[derive(Clone)]
pub(super) struct Tapped {
    /// Its name is that of the part of the network, of the operation or of its input.
    pub row: TensorRow,
    pub bad: Option<(usize, f32)>,
    /// The element of the largest size among those that are finite.
    pub peak: usize,
    /// The part of the network that it is of.
    pub part: String,
    pub operation: Option<String>,
    /// Whether it is an input of the operation, and not its output.
    pub is_input: bool,
    /// What has the same number is of the same operation.
    pub call: u64,
    pub is_gradient: bool,
}

impl Tapped {
    pub(super) fn of(sighting: &Sighting<'_>) -> Self {
        let elements = sighting.elements;
        let first = |harmful: &dyn Fn(f32) -> bool| {
            let mut all = elements.iter().copied().enumerate();
            all.find(|(_, element)| harmful(*element))
        };
        let is_fine = elements.iter().all(|element| element.is_finite());
        let harmful = match is_fine {
            true => None,
            false => first(&|element| element.is_nan() || element == f32::INFINITY)
                .or_else(|| first(&|element| element == f32::NEG_INFINITY)),
        };
        let finite = elements.iter().enumerate().filter(|it| it.1.is_finite());
        let peak = finite.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        let name = sighting
            .input
            .or(sighting.operation)
            .unwrap_or(sighting.layer);
        Self {
            row: TensorRow {
                name: name.to_owned(),
                shape: sighting.shape.to_vec(),
                statistics: Statistics::of(elements),
                by_replica: Vec::new(),
                compared_norm: None,
            },
            bad: harmful,
            peak: peak.map_or(0, |(at, _)| at),
            part: sighting.layer.to_owned(),
            operation: sighting.operation.map(str::to_owned),
            is_input: sighting.input.is_some(),
            call: sighting.call,
            is_gradient: sighting.is_gradient,
        }
    }

    /// Whether it has a value that is wrong by itself. One of −∞ may be a mask.
    pub(super) fn is_harmful(&self) -> bool {
        self.bad
            .is_some_and(|(_, value)| value != f32::NEG_INFINITY)
    }

    /// Whether it is what a part of the network puts out, and not of a single operation.
    fn is_of_a_part(&self) -> bool {
        self.operation.is_none() && !self.is_gradient
    }
}

/// What the taps of a replica have seen, in the order of computing.
pub(super) type Trace = Arc<Mutex<Vec<Tapped>>>;

/// Taps that see every operation, forward and backward.
pub(super) fn of_operations(trace: &Trace) -> Taps {
    let trace = Arc::clone(trace);
    Taps::of_operations(move |sighting| {
        let tapped = Tapped::of(sighting);
        let mut trace = trace.lock().unwrap_or_else(PoisonError::into_inner);
        trace.push(tapped);
    })
}

/// Taps that see what layers put out, computed by the operations of the run itself.
pub(super) fn of_layers(trace: &Trace) -> Taps {
    let trace = Arc::clone(trace);
    Taps::of_layers(move |sighting| {
        let tapped = Tapped::of(sighting);
        let mut trace = trace.lock().unwrap_or_else(PoisonError::into_inner);
        trace.push(tapped);
    })
}

/// What was seen so far.
pub(super) fn seen(trace: &Trace) -> Vec<Tapped> {
    trace.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Where the values that are not finite begin that reach the end: the first of the last outputs that all have one. An
/// output before that, such as scores with a mask of −∞, has led to finite numbers and is none; nor is one of −∞ the
/// culprit where NaN follows.
fn culprit(outputs: &[&Tapped]) -> Option<usize> {
    let begins = |fine: &dyn Fn(&Tapped) -> bool| {
        let last_fine = outputs.iter().rposition(|it| fine(it));
        let first = last_fine.map_or(0, |at| at + 1);
        (first < outputs.len()).then_some(first)
    };
    begins(&|tapped| !tapped.is_harmful()).or_else(|| begins(&|tapped| tapped.bad.is_none()))
}

/// The first value of the forward pass that is not finite and reaches the end: the output of the operation that made it of
/// inputs that are finite (a mask of −∞ is allowed), or of the part of the network where operations are not known.
pub(super) fn origin(trace: &[Tapped]) -> Option<usize> {
    let outputs: Vec<usize> = (0..trace.len())
        .filter(|&at| trace[at].is_of_a_part())
        .collect();
    let each: Vec<&Tapped> = outputs.iter().map(|&at| &trace[at]).collect();
    let found = culprit(&each)?;
    let begin = match found {
        0 => 0,
        later => outputs[later - 1] + 1,
    };
    let end = outputs[found];
    let made_by = |bad: &dyn Fn(&Tapped) -> bool| {
        (begin..end).find(|&at| {
            let own = &trace[at];
            let is_result = own.operation.is_some() && !own.is_input && !own.is_gradient;
            is_result && bad(own) && !inputs(trace, at).any(bad)
        })
    };
    let harmful = made_by(&Tapped::is_harmful);
    // A mask is no culprit where something worse follows.
    let infinite = || made_by(&|tapped| tapped.bad.is_some());
    let of_operation = match trace[end].is_harmful() {
        true => harmful.or_else(infinite),
        false => infinite(),
    };
    let found = of_operation.unwrap_or(end);
    // What became of −∞ that is no mask: the operation that put that out.
    let is_softmax = |at: usize| {
        let name = trace[at].operation.as_deref().unwrap_or_default();
        name.to_lowercase().contains("softmax")
    };
    let takes_infinity = inputs(trace, found).any(|it| it.bad.is_some());
    let before = |at: usize| {
        let own = &trace[at];
        let is_result = !own.is_input && !own.is_gradient && own.bad.is_some();
        let is_mask = |name: &String| name.to_lowercase().contains("mask");
        is_result
            && own.operation.as_ref().is_some_and(|name| !is_mask(name))
            && !inputs(trace, at).any(|it| it.bad.is_some())
    };
    match takes_infinity && !is_softmax(found) {
        true => (0..found).rev().find(|&at| before(at)).or(Some(found)),
        false => Some(found),
    }
}

/// The first result of an operation that is NaN or ∞ while all that it took is finite, whether it reaches the end or not.
pub(super) fn overflow(trace: &[Tapped]) -> Option<usize> {
    (0..trace.len()).find(|&at| {
        let own = &trace[at];
        let is_result = own.operation.is_some() && !own.is_input && !own.is_gradient;
        is_result && own.is_harmful() && !inputs(trace, at).any(|it| it.bad.is_some())
    })
}

/// What the operation of an output took.
pub(super) fn inputs(trace: &[Tapped], at: usize) -> impl Iterator<Item = &Tapped> {
    let call = trace[at].call;
    let own = trace.iter().filter(move |it| it.call == call);
    own.filter(|it| it.is_input && !it.is_gradient)
}

/// Where the first gradient that is not finite was made.
#[derive(Debug, PartialEq)]
pub(super) struct Backwards {
    /// The gradient.
    pub gradient: usize,
    /// The output, in the forward pass, of the operation whose backward pass made it; of the part of the network that was
    /// computed from it, where operations are not known.
    pub by: Option<usize>,
    /// The gradients that were added up are finite, and their sum is not.
    pub by_adding: bool,
}

/// The first gradient, in the order of the backward pass, that is not finite.
pub(super) fn first_gradient(trace: &[Tapped]) -> Option<Backwards> {
    let gradients = || (0..trace.len()).filter(|&at| trace[at].is_gradient);
    let gradient = gradients().find(|&at| trace[at].bad.is_some())?;
    let output_of = |call: u64| {
        let is_output = |it: &&Tapped| it.call == call && !it.is_gradient && !it.is_input;
        trace.iter().position(|it| is_output(&it))
    };
    let found = &trace[gradient];
    if found.is_input {
        let by = output_of(found.call);
        return Some(Backwards {
            gradient,
            by,
            by_adding: false,
        });
    }
    // The operation that was looked at last before it: it has used the value.
    let before = gradients().take_while(|&at| at < gradient).last();
    let by = before.and_then(|at| output_of(trace[at].call));
    let is_known = before.is_some_and(|at| trace[at].is_input);
    Some(Backwards {
        gradient,
        by,
        by_adding: is_known && found.operation.is_some(),
    })
}

/// The spread of each output in the order of computing, as root mean squares, by part and operation.
pub(super) fn spreads(trace: &[Tapped]) -> HashMap<(String, Option<String>, usize), f64> {
    let mut found = HashMap::new();
    let mut times: HashMap<(&str, Option<&str>), usize> = HashMap::new();
    for tapped in trace {
        if tapped.is_gradient || tapped.is_input {
            continue;
        }
        let key = (tapped.part.as_str(), tapped.operation.as_deref());
        let time = times.entry(key).or_default();
        let key = (tapped.part.clone(), tapped.operation.clone(), *time);
        *time += 1;
        found.insert(key, tapped.row.statistics.rms);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASK: f32 = f32::NEG_INFINITY;

    fn seen(
        (layer, operation, input): (&str, Option<&str>, Option<&str>),
        (call, is_gradient): (u64, bool),
        value: f32,
    ) -> Tapped {
        Tapped::of(&Sighting {
            layer,
            operation,
            input,
            call,
            is_gradient,
            shape: &[2],
            elements: &[1.0, value],
        })
    }

    fn output(value: f32) -> Tapped {
        seen(("a", None, None), (0, false), value)
    }

    #[test]
    fn what_led_to_finite_numbers_is_no_culprit() {
        let check = |values: &[f32], expected: Option<usize>| {
            let trace: Vec<Tapped> = values.iter().map(|&value| output(value)).collect();
            assert_eq!(origin(&trace), expected, "{values:?}");
        };
        check(&[1.0, 1.0], None);
        check(&[1.0, f32::NAN, f32::INFINITY], Some(1));
        check(&[f32::NAN, f32::NAN], Some(0));
        // A mask before a softmax, of some of a line and of all of it.
        check(&[MASK, 1.0, 1.0], None);
        check(&[1.0, MASK, f32::NAN, f32::NAN], Some(2));
        check(&[MASK, 1.0, f32::NAN], Some(2));
        check(&[1.0, MASK, MASK], Some(1));
        check(&[], None);
    }

    #[test]
    fn the_operation_that_made_it_of_finite_inputs_is_found() {
        let operation = |name, input, call, value| {
            let place = ("layer", Some(name), input);
            seen(place, (call, false), value)
        };
        let trace = [
            output(1.0),
            operation("mask", None, 1, MASK),
            operation("softmax", Some("scores"), 2, MASK),
            operation("softmax", None, 2, f32::NAN),
            operation("other branch", Some("x"), 3, 1.0),
            operation("other branch", None, 3, 1.0),
            operation("product", Some("x"), 4, f32::NAN),
            operation("product", None, 4, f32::NAN),
            output(f32::NAN),
        ];
        assert_eq!(origin(&trace), Some(3));
        assert_eq!(inputs(&trace, 3).count(), 1);
        // −∞ that is no mask, such as an overflow, is followed to where it began.
        let overflow = [
            operation("round", None, 1, MASK),
            output(MASK),
            operation("mean", Some("x"), 2, MASK),
            operation("mean", None, 2, MASK),
            operation("center", Some("mean"), 3, MASK),
            operation("center", None, 3, f32::NAN),
            output(f32::NAN),
        ];
        assert_eq!(origin(&overflow), Some(0));
        // The same numbers, and the part puts out finite ones.
        let mut fine = trace.to_vec();
        fine[8] = output(1.0);
        assert_eq!(origin(&fine), None);
    }

    #[test]
    fn gradients_are_followed_backwards() {
        let trace = [
            seen(("l", Some("root"), Some("x")), (1, false), 0.0),
            seen(("l", Some("root"), None), (1, false), 0.0),
            seen(("l", Some("root"), None), (1, true), 1.0),
            seen(("l", Some("root"), Some("x")), (1, true), f32::INFINITY),
            seen(("l.weight", None, None), (2, true), f32::NAN),
        ];
        let found = first_gradient(&trace).expect("there is one");
        assert_eq!((found.gradient, found.by), (3, Some(1)));
        // Without the operation: what was looked at before it.
        let known = [trace[1].clone(), trace[2].clone(), trace[4].clone()];
        let found = first_gradient(&known).expect("there is one");
        assert_eq!(
            (found.gradient, found.by, found.by_adding),
            (2, Some(0), false)
        );
        assert_eq!(first_gradient(&trace[..3]), None);
    }
}
