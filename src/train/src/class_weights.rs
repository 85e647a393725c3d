//! `class_weight` of a run, once its data is known.

use stratoscope_data::{Encoded, Label, Split, Targets};
use stratoscope_diagnostics::Result;

use stratoscope_arguments::FitPlan;
use stratoscope_arguments::class_weight::{ClassWeights, without_classes};
use stratoscope_network::{Files, Task};
use stratoscope_step::prepare::{Prepared, in_memory_only};

/// The weights of the classes, in the order of the outputs; `None` where none were asked for.
///
/// # Errors
/// What is wrong with the argument; SC0103 for a model without classes.
pub fn class_weights(
    plan: &FitPlan<'_>,
    files: &dyn Files,
    data: &Prepared,
) -> Result<Option<ClassWeights>> {
    let Some(written) = &plan.class_weight else {
        return Ok(None);
    };
    if matches!(files.task(), Task::Span | Task::Masked | Task::Set) {
        return Err(without_classes());
    }
    let names = match (files.classes(), files.binary_labels()) {
        (Some(_), _) => files.label_names().to_vec(),
        // One output that decides between two.
        (None, Some(names)) => names.to_vec(),
        (None, None) => return Err(without_classes()),
    };
    let counts = match &data.train {
        Split::Held(encoded) => counts(encoded, names.len()),
        Split::Streamed(stream) => {
            let mut counts = stream.class_counts();
            counts.resize(names.len(), 0);
            if stream.stream().value_range().is_some() {
                let why = "numbers as labels are counted in memory only";
                return Err(in_memory_only("fit", "class_weight", "…", why));
            }
            counts
        }
    };
    Ok(Some(written.resolve(&names, &counts)?))
}

/// How many examples, or tokens, have each class.
fn counts(data: &Encoded, classes: usize) -> Vec<usize> {
    let mut counts = vec![0; classes];
    for example in (0..data.len()).filter_map(|position| data.get(position)) {
        if let Targets::Tokens(classes) = &example.targets {
            let classes = classes
                .iter()
                .filter_map(|&class| usize::try_from(class).ok());
            for class in classes {
                counts
                    .get_mut(class)
                    .into_iter()
                    .for_each(|count| *count += 1);
            }
        }
        let class = match example.label {
            Some(Label::Class(class)) => class,
            Some(Label::Value(value)) => value.round() as usize,
            None => continue,
        };
        if let Some(count) = counts.get_mut(class) {
            *count += 1;
        }
    }
    counts
}
