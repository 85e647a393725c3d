//! What the two splits of a run tell about each other, and how much of the data its epochs come to.
//! SC0701, SC0702, SC0707.

use std::collections::BTreeMap;

use stratoscope_data::{Data, Dataset, Example, Split};
use stratoscope_diagnostics::rules::{SplitsOverlap, UnseenExamples, ValidationClassMismatch};
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

use stratoscope_arguments::FitPlan;

/// Validation examples below which one class among them is chance.
const A_FEW: usize = 5;

/// SC0701. `is_tail`: both are parts of one data set.
pub(super) fn overlap(train: &Dataset, validation: &Dataset, is_tail: bool) -> Option<Diagnostic> {
    // Each validation example counts once, however often it is trained on.
    let shared = validation.overlap(train);
    let name = |data: &Dataset, example: &Example| {
        let class = example
            .class()
            .and_then(|class| data.label_names.get(class));
        class.cloned()
    };
    let first = shared.iter().take(5).map(|&(ours, theirs)| {
        let (ours, theirs) = (&validation.examples[ours], &train.examples[theirs]);
        (theirs.row, ours.row, ours.texts())
    });
    let has_other_label = |&&(ours, theirs): &&(usize, usize)| {
        let (ours, theirs) = (&validation.examples[ours], &train.examples[theirs]);
        name(validation, ours) != name(train, theirs)
    };
    let rule = SplitsOverlap {
        shared: shared.len(),
        validation: validation.len(),
        first: first.collect(),
        other_label: shared.iter().filter(has_other_label).count(),
        one_data_set: is_tail,
    };
    (rule.shared > 0).then(|| rule.diagnostic())
}

/// SC0702: one class in the validation data, or mostly such that training never shows.
pub(super) fn other_classes(
    train: Data<'_>,
    validation: Data<'_>,
    is_tail: bool,
) -> Option<Diagnostic> {
    // By name, since each split may have numbers of its own.
    let (of_train, of_validation) = (examples_by_class(train), examples_by_class(validation));
    let examples: usize = of_validation.values().sum();
    let is_unseen = |name: &&String| !of_train.contains_key(*name);
    let unseen: Vec<String> = of_validation.keys().filter(is_unseen).cloned().collect();
    let never_shown: usize = unseen.iter().map(|name| of_validation[name]).sum();
    let one_class = of_validation.len() == 1 && of_train.len() > 1;
    if examples < A_FEW || !(one_class || 2 * never_shown > examples) {
        return None;
    }
    let rule = ValidationClassMismatch {
        validation: of_validation.into_keys().collect(),
        unseen,
        training: of_train.len(),
        examples,
        is_tail,
    };
    Some(rule.diagnostic())
}

/// How many examples have each class that occurs.
fn examples_by_class(data: Data<'_>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    match data {
        Data::Held(data) => {
            let classes = data.examples.iter().filter_map(Example::class);
            for name in classes.filter_map(|class| data.label_names.get(class)) {
                *counts.entry(name.clone()).or_default() += 1;
            }
        }
        // As in memory, tags of words are no classes of examples.
        Data::Streamed(stream) if stream.is_tagged() => {}
        Data::Streamed(stream) => {
            let names = stream.label_names().iter().zip(stream.class_counts());
            counts.extend(names.filter(|it| it.1 > 0).map(|it| (it.0.clone(), it.1)));
        }
    }
    counts
}

/// SC0707: by the very orders of the run.
///
/// # Errors
/// SC0520 if it is interrupted.
pub(super) fn never_seen(train: &Split, plan: &FitPlan<'_>) -> Result<Option<Diagnostic>> {
    let examples = train.len();
    let Some(steps_per_epoch) = plan.steps_per_epoch else {
        return Ok(None);
    };
    let batches = examples.div_ceil(plan.batch_size) as u64;
    let steps = usize::try_from(steps_per_epoch).unwrap_or(usize::MAX);
    let of_epoch = steps.saturating_mul(plan.batch_size).min(examples);
    let order = match plan.group_by_length {
        true => &train.by_length(plan.batch_size),
        false => train,
    };
    let mut is_seen = vec![false; examples];
    let epochs = plan.epochs as usize;
    let mut work = Work::begin(("ordering", "ordered"), epochs, Unit::Things("epoch"));
    for epoch in plan.initial_epoch..plan.epochs {
        if epoch > plan.initial_epoch {
            work.reached(epoch as usize)?;
        }
        if is_seen.iter().all(|&seen| seen) {
            break;
        }
        match plan.shuffle {
            true => match order.shuffle(plan.seed, epoch) {
                Split::Held(order) => {
                    (order.order()[..of_epoch].iter()).for_each(|&index| is_seen[index] = true)
                }
                Split::Streamed(order) => {
                    (order.part(0, of_epoch).indices()).for_each(|index| is_seen[index] = true)
                }
            },
            false => {
                is_seen[..of_epoch].fill(true);
                break;
            }
        }
    }
    let rule = UnseenExamples {
        never: is_seen.iter().filter(|&&seen| !seen).count(),
        examples,
        steps_per_epoch,
        batches,
        batch_size: plan.batch_size,
        epochs: plan.epochs - plan.initial_epoch,
        shuffle: plan.shuffle,
    };
    work.finished();
    let is_reported = rule.never > 0 || steps_per_epoch > batches;
    Ok(is_reported.then(|| rule.diagnostic()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stratoscope_arguments::FitArgs;
    use stratoscope_network::NoTokenizer;

    #[test]
    fn leaked_examples_are_whole_ones() {
        let train = Dataset::from_labelled([("a", "x"), ("b", "y"), ("a", "x"), ("c", "x")]);
        let dev = Dataset::from_labelled([("a", "x"), ("d", "y"), ("c", "y")]);
        let finding = format!(
            "{:?}",
            overlap(&train, &dev, false).expect("two are shared")
        );
        for words in [
            "2 validation examples are in the training data",
            "2 of 3, 66.7 %",
            "row 0, in training row 0",
            "row 2, in training row 3",
            "with another label",
            "dev.without(&train)",
        ] {
            assert!(finding.contains(words), "{words}: {finding}");
        }
        let fixed = dev.without(&train);
        assert!(overlap(&train, &fixed, false).is_none());
        let train = Dataset::from_pairs([("a", "b")]);
        let dev = Dataset::from_pairs([("a", "c"), ("b", "a"), ("x", "b")]);
        assert!(
            overlap(&train, &dev, false).is_none(),
            "half a pair is none"
        );
    }

    #[test]
    fn a_sorted_tail_is_reported() {
        let sorted = |sizes: &[usize]| {
            let rows = sizes.iter().enumerate();
            let rows =
                rows.flat_map(|(class, &size)| vec![("text", format!("class {class}")); size]);
            Dataset::from_labelled(rows)
        };
        let check = |data: &Dataset, share: f64, expected: Option<&str>| {
            let (train, validation) = data.split(share).expect("two parts");
            let finding = other_classes(Data::Held(&train), Data::Held(&validation), true)
                .map(|finding| finding.message);
            assert_eq!(finding.as_deref(), expected);
        };
        let only = "the validation data has only one class: `class 1`";
        check(&sorted(&[50, 50]), 0.2, Some(only));
        check(&sorted(&[80, 20]), 0.2, Some(only));
        let unseen = "the validation data has only classes that do not occur in training";
        check(&sorted(&[60, 20, 20]), 0.4, Some(unseen));
        let mostly = "the validation data is mostly of classes that do not occur in training";
        check(&sorted(&[60, 20, 20]), 0.3, Some(mostly));
        check(&sorted(&[60, 20, 20]).shuffled(1), 0.3, None);
        check(&sorted(&[100]), 0.3, None);
        check(&sorted(&[10, 10]), 0.1, None);
        let (train, dev) = sorted(&[50, 50])
            .stratified_split(0.2, 0)
            .expect("two parts");
        assert!(other_classes(Data::Held(&train), Data::Held(&dev), false).is_none());
        // Numbered differently, the same classes are the same.
        let train = Dataset::from_labelled([("t", "a"), ("t", "b"), ("t", "c")]);
        let dev = Dataset::from_labelled([("t", "c"), ("t", "b")].repeat(3));
        assert!(other_classes(Data::Held(&train), Data::Held(&dev), false).is_none());
    }

    #[test]
    fn examples_are_counted_by_the_orders_of_the_run() {
        let data = Dataset::from_features([[0.5]; 52]).expect("52 rows");
        let train = Split::Held(data.tokenize(&NoTokenizer, 1).expect("numbers"));
        let check = |args: FitArgs<'_>, expected: Option<&str>| {
            let plan = args.batch_size(8).resolve().expect("valid arguments");
            let finding = never_seen(&train, &plan)
                .expect("nobody interrupts")
                .map(|finding| finding.message);
            assert_eq!(finding.as_deref(), expected);
        };
        let args = FitArgs::new;
        check(args(), None);
        check(args().steps_per_epoch(7), None);
        let message = "20 of 52 examples are never seen";
        check(args().steps_per_epoch(4), Some(message));
        check(
            args().steps_per_epoch(4).shuffle(false).epochs(9),
            Some(message),
        );
        // Of many epochs in an order each, one comes to every example.
        check(args().steps_per_epoch(4).epochs(40), None);
        check(
            args().steps_per_epoch(4).epochs(40).initial_epoch(39),
            Some(message),
        );
        let message = "`steps_per_epoch = 9`, but the data has 7 batches: the epoch ends with them";
        check(args().steps_per_epoch(9), Some(message));
    }
}
