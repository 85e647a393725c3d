//! From what a cell writes to what the run holds: layers, heads, tokens, examples, outputs, variables and labels that do not
//! exist are refused, and so are numbers that are not finite.

use stratoscope_bert::taps::{Change, NewValue, is_named};
use stratoscope_data::{Batch, Labels};
use stratoscope_diagnostics::check::suggest::similar;
use stratoscope_diagnostics::rules::{
    ChangeNotByWorkers, ChangeNotFinite, ClassNotInData, NothingToChange,
};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_strategy::Strategy;

use super::Planned;
use super::intervention::{Interventions, WrittenLabel};
use stratoscope_bert::pattern::matches;
use stratoscope_diagnostics::problem;
use stratoscope_inspect::{Inspection, KnownOutput};
use stratoscope_step::changed::NewWeights;
use stratoscope_train::planned::{NewLabel, OneStep, WeightChange};

const CALL: &str = "what_if";

/// What is checked against what is there.
struct Check<'a> {
    look: &'a Inspection<'a>,
    /// None where no activation is changed.
    outputs: Vec<KnownOutput>,
}

impl Planned {
    /// # Errors
    /// SC0730 for what does not exist; SC0721 for a class that does not exist; SC0731 for a number that is not finite;
    /// SC0103 for a dropout rate outside of 0 to 1, a negative weight and no change at all; SC0733 for what worker
    /// processes cannot change.
    pub(super) fn checked(look: &Inspection<'_>, wanted: Interventions) -> Result<Self> {
        if wanted.is_empty() {
            let expects = "a change, such as `|it| it.layer(0).scale(0.0)`";
            return Err(bad("change", "nothing", expects));
        }
        let outputs = match wanted.activations.is_empty() {
            true => Vec::new(),
            false => look.known_outputs(CALL)?,
        };
        let check = Check { look, outputs };
        let activations = wanted.activations.into_iter();
        let gradients = wanted.gradients.into_iter();
        let labels = wanted.labels.into_iter();
        let weights = wanted.example_weights.into_iter();
        let one_step = OneStep {
            activations: activations
                .map(|it| check.activation(it))
                .collect::<Result<_>>()?,
            gradients: gradients
                .map(|(pattern, factor)| {
                    check.variables(&pattern)?;
                    Ok((pattern, finite("factor", factor)?.into()))
                })
                .collect::<Result<_>>()?,
            labels: labels
                .map(|(example, label)| check.label(example, label))
                .collect::<Result<_>>()?,
            weights: weights
                .map(|(example, weight)| {
                    let (batch, row) = check.example(example)?;
                    if finite("weight", weight)? < 0.0 {
                        return Err(bad("example_weight", weight, "a number ≥ 0"));
                    }
                    Ok((batch.rows[row] as u64, weight.into()))
                })
                .collect::<Result<_>>()?,
            dropout: wanted.dropout.map(rate).transpose()?.map(Into::into),
        };
        let weights = wanted.weights.into_iter().map(|(pattern, new)| {
            check.variables(&pattern)?;
            let (is_value, number) = match new {
                NewWeights::Scaled(factor) => (false, finite("factor", factor)?),
                NewWeights::Set(value) => (true, finite("value", value)?),
            };
            Ok(WeightChange {
                pattern,
                is_value,
                number: number.into(),
            })
        });
        let planned = Self {
            weights: weights.collect::<Result<_>>()?,
            one_step,
        };
        planned.by_workers(look)?;
        Ok(planned)
    }

    /// SC0733
    fn by_workers(&self, look: &Inspection<'_>) -> Result<()> {
        let mut changes = self.one_step.not_by_workers();
        changes.extend(self.weights.iter().map(WeightChange::line));
        let team = look.step.replicas.strategy().and_then(Strategy::team);
        let is_remote = team.is_some_and(|team| team.size() > 1);
        match is_remote && !changes.is_empty() {
            true => Err(ChangeNotByWorkers {
                call: CALL.to_owned(),
                changes,
            }
            .error()),
            false => Ok(()),
        }
    }
}

impl Check<'_> {
    fn activation(&self, change: Change) -> Result<Change> {
        let found = (self.outputs.iter()).find(|it| is_named(&it.name, &change.output));
        let Some(found) = found else {
            return Err(self.no_output(&change));
        };
        if let Some(head) = change.head {
            let heads = found.heads.unwrap_or(0);
            if head >= heads {
                return Err(missing("head", head, up_to("a head", heads)));
            }
        }
        let (NewValue::Scale(number) | NewValue::Set(number)) = &change.value else {
            return Ok(change);
        };
        finite("factor or value", f64::from(f32::from(*number)))?;
        let example = change.example.map(|it| self.example(it)).transpose()?;
        if let Some(token) = change.token {
            let length = |batch: &Batch| batch.seq / batch.choices.max(1);
            let longest = match example {
                Some((batch, row)) => tokens(batch, row),
                None => self.look.batches.iter().map(length).max().unwrap_or(0),
            };
            if token >= longest {
                return Err(missing("token", token, up_to("a token", longest)));
            }
        }
        Ok(Change {
            example: example.map(|(batch, row)| batch.rows[row]),
            ..change
        })
    }

    /// SC0730 for a layer or an output.
    fn no_output(&self, change: &Change) -> Box<Diagnostic> {
        let heads = self.outputs.iter().filter(|it| it.heads.is_some()).count();
        let layer = change.output.strip_prefix("layer.");
        let layer = layer.and_then(|rest| rest.split('.').next());
        if let Some(layer) = layer
            && heads > 0
        {
            return missing("layer", layer, up_to("an encoder layer", heads));
        }
        let names: Vec<&str> = self.outputs.iter().map(|it| it.name.as_str()).collect();
        let expects = match names.is_empty() {
            true => "an output that layers hand out, and those of this network are not known: `tap(\"name\", tensor)` in \
                     its `logits` hands out a tensor"
                .to_owned(),
            false => format!(
                "an output of the network, such as {}",
                stratoscope_render::text::names(&names, 4)
            ),
        };
        NothingToChange {
            call: CALL.to_owned(),
            what: "output".to_owned(),
            given: format!("`{}`", change.output),
            expects,
            similar: similar(&change.output, names.iter().copied()),
        }
        .error()
    }

    /// SC0730 for a pattern that no name of a variable matches.
    fn variables(&self, pattern: &str) -> Result<()> {
        let records = self.look.step.replicas.records();
        if records.iter().any(|it| matches(pattern, &it.name)) {
            return Ok(());
        }
        let names: Vec<&str> = records.iter().map(|it| it.name.as_str()).collect();
        // What could have been written: each name, and each of its ends and beginnings.
        let parts = names.iter().flat_map(|name| {
            let dots = name.match_indices('.');
            dots.flat_map(|(at, _)| [&name[..at], &name[at + 1..]])
                .chain([*name])
        });
        let mut parts: Vec<&str> = parts.collect();
        parts.sort_unstable();
        parts.dedup();
        Err(NothingToChange {
            call: CALL.to_owned(),
            what: "variable".to_owned(),
            given: format!("`{pattern}`"),
            expects: format!(
                "a pattern of names, such as `{}`",
                names.last().copied().unwrap_or("*")
            ),
            similar: similar(pattern, parts),
        }
        .error())
    }

    /// The batch of an example, and its place in it.
    fn example(&self, example: usize) -> Result<(&Batch, usize)> {
        let found = self.look.find(example);
        let found = found.map(|(_, batch, row)| (batch, row));
        found.ok_or_else(|| {
            let examples = self.look.examples();
            missing(
                "example",
                example,
                up_to("an example of the batch", examples),
            )
        })
    }

    fn label(&self, example: usize, label: WrittenLabel) -> Result<(u64, NewLabel)> {
        let (batch, row) = self.example(example)?;
        let label = new_label(self.look, &batch.labels, label, CALL)?;
        Ok((batch.rows[row] as u64, label))
    }
}

/// A label as written, for examples with labels of this kind.
///
/// # Errors
/// SC0721 for the name of a class that does not exist, SC0730 for its number; SC0731 for a number that is not finite; SC0103 for
/// a label of another kind.
pub(crate) fn new_label(
    look: &Inspection<'_>,
    labels: &Labels,
    label: WrittenLabel,
    call: &str,
) -> Result<NewLabel> {
    let names = look.head().label_names(look.files);
    let place = |name: &String| names.iter().position(|it| it == name);
    match (labels, label) {
        (Labels::Classes(_), WrittenLabel::Name(name)) => {
            let class = place(&name).ok_or_else(|| unknown_class(&name, &names, call))?;
            let class = class as u64;
            Ok(NewLabel::Class { class, name })
        }
        (Labels::Classes(_), WrittenLabel::Number(number)) => {
            let classes = names.len().max(look.files.classes().unwrap_or(0));
            let is_class = number >= 0.0 && number.fract() == 0.0 && number < classes as f64;
            if !is_class {
                return Err(missing("class", number, up_to("a class", classes)));
            }
            let name = names.get(number as usize).cloned();
            Ok(NewLabel::Class {
                class: number as u64,
                name: name.unwrap_or_else(|| number.to_string()),
            })
        }
        (Labels::Values(_), WrittenLabel::Number(number)) => {
            Ok(NewLabel::Value(finite("label", number)?.into()))
        }
        (Labels::Values(_), WrittenLabel::Name(name)) => match place(&name) {
            Some(class) => Ok(NewLabel::Value((class as f64).into())),
            None => {
                let expects = "a number: the data has numbers as labels";
                Err(bad_label(call, format!("{name:?}"), expects))
            }
        },
        _ => {
            let expects = "data whose examples have one class or one number each";
            Err(bad_label(call, "…".to_owned(), expects))
        }
    }
}

fn bad_label(call: &str, given: String, expects: &str) -> Box<Diagnostic> {
    Box::new(problem::bad_value(call, "label", given, expects))
}

/// The tokens of an example without padding; of choices those of the longest.
fn tokens(batch: &Batch, row: usize) -> usize {
    let length = batch.seq / batch.choices.max(1);
    let own = batch.mask.get(row * batch.seq..(row + 1) * batch.seq);
    let sequences = own.unwrap_or_default().chunks(length.max(1));
    let lengths = sequences.map(|it| it.iter().filter(|&&mask| mask != 0).count());
    lengths.max().unwrap_or(0)
}

fn rate(rate: f64) -> Result<f64> {
    match (0.0..1.0).contains(&rate) {
        true => Ok(rate),
        false => Err(bad("dropout", rate, "a rate from 0 to less than 1")),
    }
}

/// SC0731
fn finite(what: &str, number: f64) -> Result<f64> {
    match number.is_finite() && (number as f32).is_finite() {
        true => Ok(number),
        false => Err(ChangeNotFinite {
            call: CALL.to_owned(),
            what: what.to_owned(),
            value: number,
            changes: Vec::new(),
        }
        .error()),
    }
}

/// SC0730
fn missing(what: &str, given: impl ToString, expects: String) -> Box<Diagnostic> {
    NothingToChange {
        call: CALL.to_owned(),
        what: what.to_owned(),
        given: given.to_string(),
        expects,
        similar: Vec::new(),
    }
    .error()
}

fn up_to(what: &str, count: usize) -> String {
    match count {
        0 => format!("{what}, and there is none"),
        1 => format!("{what}: there is only 0"),
        count => format!("{what}, 0 to {}", count - 1),
    }
}

fn unknown_class(given: &str, known: &[String], call: &str) -> Box<Diagnostic> {
    ClassNotInData {
        call: call.to_owned(),
        given: given.to_owned(),
        known: known.to_vec(),
    }
    .error()
}

fn bad(argument: &str, given: impl ToString, expects: &str) -> Box<Diagnostic> {
    Box::new(problem::bad_value(CALL, argument, given, expects))
}
