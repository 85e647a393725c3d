//! `class_weight` of a run, once its data is known.

use stratoscope_data::{Encoded, Label, Targets};
use stratoscope_diagnostics::Result;

use crate::arguments::FitPlan;
use crate::arguments::class_weight::{ClassWeights, without_classes};
use crate::network::{Files, Task};

/// The weights of the classes, in the order of the outputs; `None` where none were asked for.
///
/// # Errors
/// What is wrong with the argument; SC0103 for a model without classes.
pub(super) fn class_weights(
    plan: &FitPlan<'_>,
    files: &impl Files,
    data: &Encoded,
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
    let mut counts = vec![0; names.len()];
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
    Ok(Some(written.resolve(&names, &counts)?))
}
