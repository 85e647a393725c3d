//! The receipt of `compile!`: the settings in force, in words.

use stratoscope_bert::NamedParameter;
use stratoscope_diagnostics::rules::PerBatchMetric;
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::device::choice;

use crate::metric::{Metric, names};
use crate::optimizer::{Group, Optimizer};
use crate::report::receipt::CompileReceipt;
use crate::schedule::{IntoSchedule, Schedule, short};
use stratoscope_train::state::ModelState;

pub(crate) fn receipt(state: &mut ModelState) -> Result<CompileReceipt> {
    let mut settings = Vec::new();
    let mut add = |name: &str, value: String| settings.push((name.to_owned(), value));
    if let Some(compiled) = &state.compiled {
        add("optimizer", compiled.optimizer.to_string());
        add("", rates(compiled.optimizer.schedule));
        add("", decay(state, &compiled.optimizer));
        let parameters = state.step.replicas.first().parameters();
        for group in compiled.optimizer.groups(&parameters) {
            add("", of_a_group(&group));
        }
        match compiled.loss {
            Some(loss) => add("loss", loss.to_string()),
            None => add("loss", "none: the model only predicts".to_owned()),
        }
        if !compiled.metrics.is_empty() {
            add("metrics", names(&compiled.metrics).join(", "));
            add("", of_the_split(&compiled.metrics));
        }
        add(
            "steps_per_execution",
            compiled.steps_per_execution.to_string(),
        );
        if compiled.gradient_accumulation_steps > 1 {
            let steps = compiled.gradient_accumulation_steps;
            add("gradient_accumulation_steps", steps.to_string());
        }
        if compiled.sync_every > 1 {
            let every = compiled.sync_every;
            let averaged =
                format!("local SGD: parameters are averaged every {every} optimizer steps");
            add("sync_every", format!("{every} ({averaged})"));
        }
    }
    let (policy, replicas) = (state.step.policy, &state.step.replicas);
    if let Some(policy) = policy.receipt(replicas.first(), replicas.devices()) {
        add("precision", policy);
    }
    if let Some(source) = state.files.source() {
        add("weights", source);
    }
    if let Some(adapters) = state.files.adapters() {
        add("adapters", adapters);
    }
    let frozen = state.frozen().len();
    if frozen > 0 {
        let all = state.step.replicas.records().len();
        add("frozen", format!("{frozen} of {all} variables"));
    }
    add("runs on", runs_on(state));
    let replicas = state.step.replicas.len();
    if replicas > 1 {
        let split = format!("`batch_size` counts all replicas together: each gets 1/{replicas}");
        add("", split);
    }
    add("", state.sent_by_workers().unwrap_or_default());
    // A second line that has nothing to say is none.
    settings.retain(|(_, value)| !value.is_empty());
    Ok(CompileReceipt {
        settings,
        placement: state.placement()?,
    })
}

/// The devices; for a model without a strategy also why it is on that one.
fn runs_on(state: &ModelState) -> String {
    let words = state.devices_in_words();
    let replicas = &state.step.replicas;
    let device = match (replicas.strategy(), replicas.devices()) {
        (None, [device]) => device,
        _ => return words,
    };
    // The default may have changed since the model was made.
    match choice::choice() {
        Ok(choice) if choice.device.name == device.name => match choice.is_plain() {
            true => format!("{words}, the default device"),
            false => format!("{words}, the default device: {}", choice.reason()),
        },
        _ => words,
    }
}

/// Where the rate begins, how high it goes, where it ends, as far as it is known before `fit!`.
fn rates(schedule: Schedule) -> String {
    if schedule.is_constant() {
        return format!("learning rate: constant {}", short(schedule.named_rate()));
    }
    if !schedule.spans_the_run() {
        let named = short(schedule.named_rate());
        return format!(
            "learning rate: {named} at first, then by the number of optimizer steps; `fit!` shows its values"
        );
    }
    // Any long run has these shares.
    let plan = schedule.plan(10_000);
    let [first, tenth, half, last] = [0, 1_000, 5_000, 9_999].map(|step| short(plan.rate(step)));
    let end = if plan.rate(9_999) < 1e-3 * schedule.named_rate() {
        "0".to_owned()
    } else {
        last
    };
    format!(
        "learning rate: {first} at the start, {tenth} at 10 %, {half} at 50 %, {end} at the end of the run"
    )
}

/// What decays, and what does not.
fn decay(state: &ModelState, optimizer: &Optimizer) -> String {
    if optimizer.weight_decay() == 0.0 {
        return String::new();
    }
    let parameters = state.step.replicas.first().parameters();
    let left_alone = |known: &&NamedParameter| optimizer.excludes(known);
    let count = parameters.iter().filter(left_alone).count();
    let recipe = parameters
        .iter()
        .all(|known| optimizer.excludes(known) == known.is_undecayed());
    match (recipe, count) {
        (true, _) => {
            "biases and LayerNorm are not decayed (Keras decays every variable)".to_owned()
        }
        (false, 0) => {
            "weight decay on every variable, biases and LayerNorm included (SC0507)".to_owned()
        }
        (false, _) => format!("{count} of {} variables are not decayed", parameters.len()),
    }
}

/// A line of the table of groups.
fn of_a_group(group: &Group) -> String {
    let Group {
        name,
        factor,
        variables,
        decayed,
    } = group;
    let factor: f64 = format!("{factor:.3e}").parse().unwrap_or(*factor);
    format!("{name}: rate × {factor}, {variables} variables, {decayed} of them decayed")
}

/// Metrics that would be other numbers if batches were averaged.
fn of_the_split(metrics: &[Metric]) -> String {
    let metrics: Vec<String> = metrics
        .iter()
        .filter(|metric| metric.needs_the_split())
        .map(|metric| metric.name().to_owned())
        .collect();
    match metrics.is_empty() {
        true => String::new(),
        false => {
            let message = PerBatchMetric { metrics }.diagnostic().message;
            format!("{} (SC0311)", message.replace('`', ""))
        }
    }
}
