//! What must be the same for a run to go on: model, strategy, arguments, data. In words, so that a diagnostic can show
//! what differs.

use std::fmt::Debug;

use stratoscope_strategy::Checksum;

use crate::progress::checksums;
use crate::state::ModelState;
use stratoscope_arguments::{FitPlan, Validation};
use stratoscope_step::StepSettings;
use stratoscope_step::prepare::Prepared;

/// A difference: the name, and its value in the checkpoint and now.
pub type Difference = (String, String, String);

const TRAINING: [&str; 2] = ["training data", "training targets"];
const VALIDATION: [&str; 2] = ["validation data", "validation targets"];
const MASKING: &str = "masking";
const ADAPTERS: &str = "adapters";
const SHARES: &str = "examples of each worker";
const STRATEGY: &str = "strategy";
const VARIABLES: &str = "variables";

/// What checkpoints of earlier versions do not say: one without it may go on with any.
const SAID_LATER: [&str; 5] = [TRAINING[1], VALIDATION[1], MASKING, ADAPTERS, SHARES];

/// What says where the state of a run is. It may differ where the state can be laid out in another way.
pub(super) const OF_PLACES: [&str; 2] = [STRATEGY, VARIABLES];

/// Names and values. Numbers are written to the last bit.
pub fn made_with(
    state: &ModelState,
    plan: &FitPlan<'_>,
    settings: &StepSettings,
    data: &Prepared,
) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |name: &str, value: String| all.push((name.to_owned(), value));
    add("model", state.files.model_name().to_owned());
    add(VARIABLES, variables(state));
    add(STRATEGY, strategy(state));
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
    let training = examples(&data.train);
    let validation = match (&plan.validation, &data.validation) {
        (Validation::None, _) | (_, None) => ("none".to_owned(), None),
        (_, Some(data)) => examples(data),
    };
    for (names, (inputs, targets)) in [(TRAINING, training), (VALIDATION, validation)] {
        add(names[0], inputs);
        targets.into_iter().for_each(|it| add(names[1], it));
    }
    // Where workers have files or all examples to themselves, the order of the examples follows from their number.
    if let Some(shares) = data.train.shares_of(0..data.train.len()) {
        add(SHARES, debug(shares));
    }
    add("validation_freq", debug(&plan.validation_freq));
    if let Some(masking) = state.files.hidden() {
        add(MASKING, debug(masking));
    }
    if let Some(settings) = state.files.adapter_settings() {
        add(ADAPTERS, settings);
    }
    all
}

fn debug(value: impl Debug) -> String {
    format!("{value:?}")
}

/// The examples by their inputs and labels; and with all targets, where they have others.
fn examples(data: &stratoscope_data::Split) -> (String, Option<String>) {
    let sums = checksums(data);
    let in_words = |sum: Checksum| format!("{} examples (checksum {sum})", data.len());
    let targets = (sums.all != sums.inputs).then(|| in_words(sums.all));
    (in_words(sums.inputs), targets)
}

/// Names, shapes, places and which of them are trained.
fn variables(state: &ModelState) -> String {
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
fn strategy(state: &ModelState) -> String {
    let replicas = &state.step.replicas;
    let backends = replicas.devices().iter().map(|device| device.backend);
    let backends: Vec<_> = backends.collect();
    match replicas.strategy() {
        None => format!("none, on {backends:?}"),
        Some(strategy) => {
            let shard = replicas.shard().map(|shard| format!(", {shard}"));
            let pipeline = strategy.pipeline().map(|it| {
                let stages = it.stages;
                format!(", {stages} stages, {} micro-batches", it.micro_batches)
            });
            let slices = match strategy.model_devices().is_empty() {
                true => String::new(),
                false => format!(", slices on {} devices", strategy.devices_of_a_replica()),
            };
            format!(
                "{}, replicas on {backends:?}, {} servers, asynchronous: {}, {:?}, {:?}{}{}",
                strategy.name(),
                strategy.servers().len(),
                strategy.is_asynchronous(),
                strategy.cross_device_ops(),
                strategy.variable_partitioner(),
                shard.unwrap_or_default(),
                pipeline.unwrap_or_default() + &slices,
            )
        }
    }
}

/// What differs: names that only one of them has, and values that are not the same. What the version that wrote a checkpoint
/// did not say is no difference.
pub fn differences(saved: &[(String, String)], now: &[(String, String)]) -> Vec<Difference> {
    let value = |list: &[(String, String)], name: &str| {
        let found = list.iter().find(|(known, _)| known == name);
        found.map_or_else(|| "nothing".to_owned(), |(_, value)| value.clone())
    };
    let added = now
        .iter()
        .filter(|(name, _)| saved.iter().all(|(known, _)| known != name));
    let is_unsaid = |name: &str| saved.iter().all(|(known, _)| known != name);
    // For a while the checksum of the data was the one with all targets.
    let has_all_targets = |name: &str| {
        let names = [TRAINING, VALIDATION].into_iter();
        let mut unsaid = names.filter(|it| it[0] == name && is_unsaid(it[1]));
        unsaid.any(|it| value(now, it[1]) == value(saved, name))
    };
    let is_of_version = |name: &str| match is_unsaid(name) {
        true => SAID_LATER.contains(&name),
        false => has_all_targets(name),
    };
    let names = saved.iter().chain(added).map(|(name, _)| name);
    names
        .map(|name| (name.clone(), value(saved, name), value(now, name)))
        .filter(|(name, saved, now)| saved != now && !is_of_version(name))
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

    /// Checkpoints of earlier versions say less, or have the targets in the checksum of the data.
    #[test]
    fn what_an_earlier_version_did_not_say_is_no_difference() {
        let list = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        let now = list(&[
            ("training data", "inputs"),
            ("training targets", "inputs and targets"),
            ("masking", "0.15"),
            ("adapters", "alpha 8.0"),
        ]);
        for data in ["inputs", "inputs and targets"] {
            let saved = list(&[("training data", data)]);
            assert!(differences(&saved, &now).is_empty(), "{data}");
        }
        let names = |saved: &[(&str, &str)]| -> Vec<String> {
            let found = differences(&list(saved), &now);
            found.into_iter().map(|(name, ..)| name).collect()
        };
        assert_eq!(names(&[("training data", "other")]), ["training data"]);
        let all = [
            ("training data", "inputs"),
            ("training targets", "others"),
            ("masking", "0.2"),
            ("adapters", "alpha 16.0"),
        ];
        assert_eq!(names(&all), ["training targets", "masking", "adapters"]);
        // Where both are said the checksum of the data is that of its inputs.
        let all = [
            ("training data", "inputs and targets"),
            ("training targets", "inputs and targets"),
        ];
        assert_eq!(names(&all), ["training data"]);
    }
}
