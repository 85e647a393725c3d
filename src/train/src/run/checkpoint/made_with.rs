//! What must be the same for a run to go on: model, strategy, arguments, data. In words, so that a diagnostic can show
//! what differs.

use std::fmt::Debug;

use stratoscope_strategy::Checksum;

use crate::arguments::{FitPlan, Validation};
use crate::network::{Files, Network};
use crate::prepare::Prepared;
use crate::run::progress::checksum;
use crate::run::state::ModelState;
use crate::step::StepSettings;

/// A difference: the name, and its value in the checkpoint and now.
pub(crate) type Difference = (String, String, String);

/// Names and values. Numbers are written to the last bit.
pub(crate) fn made_with<N: Network>(
    state: &ModelState<N>,
    plan: &FitPlan<'_>,
    settings: &StepSettings,
    data: &Prepared,
) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |name: &str, value: String| all.push((name.to_owned(), value));
    add("model", state.files.model_name().to_owned());
    add("variables", variables(state));
    add("strategy", strategy(state));
    add("policy", state.step.policy.to_string());
    let compiled = &settings.compiled;
    let optimizer = &compiled.optimizer;
    add("optimizer", optimizer.to_string());
    add("optimizer's numbers", optimizer.recorded_numbers());
    add("clipping", debug(optimizer.clipping));
    let excluded = optimizer.decay_exclusion.names();
    add("excluded from decay", debug(excluded));
    add("loss", debug(settings.loss));
    add("metrics", debug(&compiled.metrics));
    add("steps_per_execution", debug(compiled.steps_per_execution));
    add(
        "gradient_accumulation_steps",
        debug(compiled.gradient_accumulation_steps),
    );
    add("sync_every", debug(compiled.sync_every));
    add("epochs", debug(plan.epochs));
    add("initial_epoch", debug(plan.initial_epoch));
    add("batch_size", debug(plan.batch_size));
    add("steps_per_epoch", debug(plan.steps_per_epoch));
    add("shuffle", debug(plan.shuffle));
    // Checkpoints that were written before there was this argument are of runs without it.
    if plan.group_by_length {
        add("group_by_length", debug(true));
    }
    add("seed", debug(plan.seed));
    add("max_length", debug(data.train.max_length()));
    add("class_weight", debug(&settings.class_weights));
    add("early_stopping", debug(&plan.stopping));
    if let Some(epochs) = plan.unfreezes_every {
        add("gradual unfreezing", debug(epochs));
    }
    add("training data", examples(&data.train));
    let validation = match (&plan.validation, &data.validation) {
        (Validation::None, _) | (_, None) => "none".to_owned(),
        (_, Some(data)) => examples(data),
    };
    add("validation data", validation);
    add("validation_freq", debug(&plan.validation_freq));
    all
}

fn debug(value: impl Debug) -> String {
    format!("{value:?}")
}

fn examples(data: &stratoscope_data::Split) -> String {
    let sum = checksum(data);
    format!("{} examples (checksum {sum})", data.len())
}

/// Names, shapes, places and which of them are trained.
fn variables<N: Network>(state: &ModelState<N>) -> String {
    let records = state.step.replicas.records();
    let lines = records.iter().map(|record| {
        format!(
            "{} {:?} {} {} {:?} {:?}\n",
            record.name, record.shape, record.dtype, record.trainable, record.homes, record.rows
        )
    });
    let sum = Checksum::of(lines.collect::<String>().as_bytes());
    let frozen = state.frozen().len();
    format!(
        "{} variables, {} numbers, {frozen} frozen (checksum {sum})",
        records.len(),
        state.num_parameters()
    )
}

/// The kind of the strategy, its replicas, servers and their backends.
fn strategy<N: Network>(state: &ModelState<N>) -> String {
    let replicas = &state.step.replicas;
    let backends = replicas.devices().iter().map(|device| device.backend);
    let backends: Vec<_> = backends.collect();
    match replicas.strategy() {
        None => format!("none, on {backends:?}"),
        Some(strategy) => format!(
            "{}, replicas on {backends:?}, {} servers, asynchronous: {}, {:?}, {:?}",
            strategy.name(),
            strategy.servers().len(),
            strategy.is_asynchronous(),
            strategy.cross_device_ops(),
            strategy.variable_partitioner(),
        ),
    }
}

/// What differs: names that only one of them has, and values that are not the same.
pub(crate) fn differences(saved: &[(String, String)], now: &[(String, String)]) -> Vec<Difference> {
    let value = |list: &[(String, String)], name: &str| {
        let found = list.iter().find(|(known, _)| known == name);
        found.map_or_else(|| "nothing".to_owned(), |(_, value)| value.clone())
    };
    let added = now
        .iter()
        .filter(|(name, _)| saved.iter().all(|(known, _)| known != name));
    let names = saved.iter().chain(added).map(|(name, _)| name);
    names
        .map(|name| (name.clone(), value(saved, name), value(now, name)))
        .filter(|(_, saved, now)| saved != now)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_differ_and_names_that_are_new() {
        let list = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        let saved = list(&[("seed", "1"), ("epochs", "3"), ("old", "x")]);
        let now = list(&[("epochs", "4"), ("seed", "1"), ("new", "y")]);
        let found = differences(&saved, &now);
        let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["epochs", "old", "new"]);
        assert_eq!((found[0].1.as_str(), found[0].2.as_str()), ("3", "4"));
        assert_eq!(found[2].1, "nothing");
        assert!(differences(&saved, &saved).is_empty());
    }
}
