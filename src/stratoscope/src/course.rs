//! The checks of the course in `notebooks/course/`, as its cells call them: `course::check_ring(ring)`.
//!
//! Checks of functions over numbers are those of the crate `stratoscope-course`; here are those of functions over models and
//! strategies, and how verdicts are shown. A check calls the student's function, also one that panics, and never shows the true
//! result. `course::report(3)?` lists the exercises of a lesson and is an error while one is open.

use stratoscope_course::{Fault, all_reduce, attempt, judged};
use stratoscope_data::{Dataset, make_regression};
use stratoscope_models::{Dense, Gradients, MeanSquaredError, Run, SGD, Sequential};
use stratoscope_strategy::{Collective, CrossDeviceOps, MirroredStrategy, collective};

use crate::display::cards;

pub use stratoscope_course::all_reduce::run;
pub use stratoscope_course::batches::{check_batch_gradient, check_combine};
pub use stratoscope_course::counters::{check_counters, check_shares};
pub use stratoscope_course::lessons::{Report, Unfinished, report};
pub use stratoscope_course::local_sgd::check_local_sgd;
pub use stratoscope_course::matrix::{
    Matrix, added, attention, columns_of, difference, linear, product, random_matrix, relu,
    relu_backward, transposed,
};
pub use stratoscope_course::mesh::{
    CANDIDATES, check_choices, check_state_bytes, check_step_bytes, seconds,
};
pub use stratoscope_course::monitor::{check_broken_row, check_stops_at, sensor_readings};
pub use stratoscope_course::one_step::{check_gradient, check_step};
pub use stratoscope_course::pipeline::{
    check_balanced, check_bubble, check_one_f_one_b, stored, timeline,
};
pub use stratoscope_course::prediction::predicted;
pub use stratoscope_course::sixteen_bits::{check_bfloat16, check_training_bytes};
pub use stratoscope_course::staleness::{check_delayed_descent, check_staleness};
pub use stratoscope_course::tensor_parallel::{
    check_combined, check_device_gradients, check_slices,
};
pub use stratoscope_course::zero::{check_reduce_scatter, check_replica_bytes};
pub use stratoscope_course::{Cluster, Event, Hop, Pass, Sizes, State, Verdict, Way};
pub use stratoscope_diagnostics::Result;

cards!(Report, Verdict);

/// What an all-reduce of `bytes` bytes on some devices sends, hop by hop: the project's own program, without tensors.
pub fn plan(ops: CrossDeviceOps, devices: usize, bytes: usize) -> Collective {
    collective::plan(ops, devices, bytes, 1)
}

/// The project's own program on tensors of `parts` numbers.
fn own(ops: CrossDeviceOps, devices: usize, parts: usize) -> Vec<Hop> {
    let transfers = plan(ops, devices, parts).transfers;
    let hop = |it: collective::Transfer| Hop {
        hop: it.hop,
        from: it.from,
        to: it.to,
        parts: it.bytes as usize,
    };
    transfers.into_iter().map(hop).collect()
}

/// Checks an all-reduce on a ring. Each device's tensor is cut into as many parts as there are devices.
pub fn check_ring(ring: impl Fn(&mut Cluster)) -> Verdict {
    let own = |devices| own(CrossDeviceOps::Ring, devices, devices);
    all_reduce::check_ring(&ring, &own)
}

/// Checks an all-reduce on a tree. Tensors are sent in one piece, part 0.
pub fn check_tree(tree: impl Fn(&mut Cluster)) -> Verdict {
    let own = |devices| own(CrossDeviceOps::Tree, devices, 1);
    all_reduce::check_tree(&tree, &own)
}

/// Checks a function that computes the gradient of a batch as two mirrored replicas do: each its share, then the mean over all
/// examples.
pub fn check_mirrored(gradient: impl Fn(&Sequential, &Dataset) -> Result<Gradients>) -> Verdict {
    judged("4.2", "mirrored_gradient", || mirrored(&gradient))
}

fn mirrored(gradient: &dyn Fn(&Sequential, &Dataset) -> Result<Gradients>) -> Checked {
    for rows in [8, 13] {
        let call = format!("mirrored_gradient(&model, &batch) with {rows} examples");
        let model = small_model().map_err(|error| failed(&call, &error))?;
        let data = rows_of(&call, rows)?;
        let got = returned(&call, || gradient(&model, &data))?;
        let of = |part: &Dataset| model.gradients(part).map_err(|error| failed(&call, &error));
        let whole = of(&data)?;
        let half = rows.div_ceil(2);
        let (first, second) = (of(&data.take(half))?, of(&data.skip(half))?);
        let sum = first.clone() + second.clone();
        let (violated, look_at) = if got.batches() == 1 && are_equal(&got, &whole) {
            (
                "each replica computes the gradient of its own share; here one computes all of it",
                "`batch.take(n)` and `batch.skip(n)`",
            )
        } else if are_equal(&got, &whole) {
            continue;
        } else if are_equal(&got, &sum) {
            (
                "two replicas with the same examples have the same gradient as one; yours would be twice as large",
                "the division",
            )
        } else if are_equal(&got, &first) || are_equal(&got, &second) {
            (
                "every example of the batch has an influence on the step; here those of one replica have none",
                "what becomes of the other replica's gradient",
            )
        } else if are_equal(&got, &(sum / 2.0)) {
            (
                "every example has the same influence, also where the shares have different sizes",
                "`combine` of lesson 2",
            )
        } else {
            (
                "the result is the gradient of the mean loss over all examples of the batch",
                "the shares: is any example in both, or in none?",
            )
        };
        return Err(Fault::wrong(call, got, violated, look_at));
    }
    Ok("batches of 8 and 13 examples on two replicas".to_owned())
}

/// Checks a function that accumulates the gradients of micro-batches into that of one large batch.
pub fn check_accumulated(
    accumulate: impl Fn(&Sequential, &[Dataset]) -> Result<Gradients>,
) -> Verdict {
    judged("6.2", "accumulated", || accumulated(&accumulate))
}

fn accumulated(accumulate: &dyn Fn(&Sequential, &[Dataset]) -> Result<Gradients>) -> Checked {
    for sizes in [[8, 8, 8, 8], [8, 8, 8, 3]] {
        let call = format!("accumulated(&model, &micro) with micro-batches of {sizes:?} examples");
        let model = small_model().map_err(|error| failed(&call, &error))?;
        let data = rows_of(&call, sizes.iter().sum())?;
        let micro: Vec<Dataset> = (sizes.iter().enumerate())
            .map(|(index, &size)| data.skip(8 * index).take(size))
            .collect();
        let got = returned(&call, || accumulate(&model, &micro))?;
        let of = |part: &Dataset| model.gradients(part).map_err(|error| failed(&call, &error));
        let whole = of(&data)?;
        if are_equal(&got, &whole) {
            continue;
        }
        let last = of(&micro[3])?;
        let mut sum = Gradients::zeros();
        for part in &micro {
            sum += of(part)?;
        }
        let (violated, look_at) = if got.batches() == 0 {
            (
                "the gradients of all micro-batches are in the result; here there are none",
                "what the function returns",
            )
        } else if are_equal(&got, &last) || are_equal(&got, &(last / 4.0)) {
            (
                "every micro-batch has an influence on the step; here only the last one has",
                "where the sum begins: before the loop, or in it?",
            )
        } else if are_equal(&got, &sum) {
            (
                "four equal micro-batches have the gradient of one of them; yours would be four times as large, as would be the step",
                "the division",
            )
        } else if are_equal(&got, &(sum / 4.0)) {
            (
                "every example has the same influence, also those of a short last micro-batch",
                "`combine` of lesson 2; `batch.len()` is the number of examples",
            )
        } else {
            (
                "the result is the gradient of the mean loss over the examples of all micro-batches",
                "the factor of each micro-batch",
            )
        };
        return Err(Fault::wrong(call, got, violated, look_at));
    }
    Ok("four micro-batches of 8 examples, and a last one of 3".to_owned())
}

/// Checks a function that builds and compiles a model in the scope of a strategy, with `steps_per_execution = 4`.
pub fn check_in_scope(build: impl Fn(&MirroredStrategy) -> Result<Sequential>) -> Verdict {
    judged("5.2", "in_scope", || in_scope(&build))
}

fn in_scope(build: &dyn Fn(&MirroredStrategy) -> Result<Sequential>) -> Checked {
    let call = "in_scope(&strategy)";
    let problem = |error| failed(call, &error);
    let strategy = MirroredStrategy::logical(2).map_err(problem)?;
    let model = returned(call, || build(&strategy))?;
    let data = make_regression(256, 5, 0).map_err(problem)?;
    let history = crate::fit!(model, data, batch_size = 32, verbose = false).map_err(problem)?;
    let report = model.placement().map_err(problem)?;
    let copies = |row: &stratoscope_strategy::placement::VariableRow| row.copies.len();
    let alone = report
        .variables
        .iter()
        .filter(|row| copies(row) < 2)
        .count();
    if alone > 0 {
        let got = format!(
            "{alone} of {} variables have one copy",
            report.variables.len()
        );
        let violated = "every replica of the strategy has a copy of every variable";
        let look_at = "where the model is built: `scope!(strategy, { … })` decides it";
        return Err(Fault::wrong(call, got, violated, look_at));
    }
    if history.counters.executions != 2 {
        let got = history.counters.to_string();
        let violated = "with `steps_per_execution = 4` the 8 batches of an epoch are 2 executions";
        return Err(Fault::wrong(
            call,
            got,
            violated,
            "the arguments of `compile!`",
        ));
    }
    Ok(format!("{}: {}", report.verdict(), history.counters))
}

/// Checks a run that was stopped: it was changed, went on to its end, and every loss of the steps that were made is finite.
pub fn check_repaired(run: &Run) -> Verdict {
    if run.history().is_ok_and(|history| history.edits.is_empty()) {
        let what = "The run was not changed yet. Write the repair in the cell above, execute it, then this one again.";
        return Verdict::new("10.4", State::Open, vec![("to do", what.to_owned())]);
    }
    judged("10.4", "the repair", || {
        let call = "run.history()";
        let history = run.history().map_err(|error| failed(call, &error))?;
        let made = history.counters.optimizer_steps;
        let paused = history.paused.as_deref();
        if paused.is_some() || history.epochs.is_empty() {
            let why = paused.unwrap_or("it was not continued");
            let got = format!("the run stands after {made} optimizer steps: {why}");
            let violated = "the run goes on to its end";
            return Err(Fault::wrong(
                call,
                got,
                violated,
                "`run.finish()?`, and whether the broken reading is still in the data",
            ));
        }
        if let Some(step) = history.steps.iter().find(|step| !step.loss.is_finite()) {
            let got = format!("the loss of step {} is {}", step.step, step.loss);
            let violated = "every loss of the repaired run is finite";
            return Err(Fault::wrong(
                call,
                got,
                violated,
                "whether the run was turned back to before that step",
            ));
        }
        let last = history.epochs.last().map_or(f64::NAN, |epoch| epoch.loss);
        Ok(format!(
            "{made} optimizer steps, all finite; the loss of the last epoch is {last:.4}"
        ))
    })
}

/// What was tried, or what is wrong.
type Checked = std::result::Result<String, Fault>;

/// The student's function, with its panic and its error as faults.
fn returned<T>(call: &str, code: impl FnOnce() -> Result<T>) -> std::result::Result<T, Fault> {
    attempt::attempt(call, code)?.map_err(|error| failed(call, &error))
}

fn failed(call: &str, error: &dyn std::fmt::Display) -> Fault {
    let message = error.to_string();
    Fault::Failed {
        call: call.to_owned(),
        message: message.lines().next().unwrap_or_default().to_owned(),
    }
}

fn rows_of(call: &str, rows: usize) -> std::result::Result<Dataset, Fault> {
    make_regression(rows, 3, 5).map_err(|error| failed(call, &error))
}

/// A compiled model on one device, also where a strategy is alive.
fn small_model() -> Result<Sequential> {
    let model = Sequential([Dense(4).activation("tanh").input_shape((3,)), Dense(1)])?;
    let _receipt = crate::compile!(
        model,
        optimizer = SGD::new(0.1),
        loss = MeanSquaredError,
        strategy = none
    )?;
    Ok(model)
}

/// Up to rounding.
fn are_equal(one: &Gradients, other: &Gradients) -> bool {
    let difference = one.clone() + other.clone() * -1.0;
    difference.norm() <= 1e-4 * other.norm()
}

#[cfg(test)]
mod tests {
    use stratoscope_strategy::{PipelinePass, PipelineSchedule};

    use super::*;

    fn words(verdict: &Verdict) -> String {
        let plain = verdict.to_plain();
        plain.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn typical_mirrored_gradients_get_their_hint() {
        let halves =
            |model: &Sequential, batch: &Dataset| -> Result<(Gradients, Gradients, f64, f64)> {
                let first = batch.take(batch.len().div_ceil(2));
                let second = batch.skip(first.len());
                let sizes = (first.len() as f64, second.len() as f64);
                Ok((
                    model.gradients(&first)?,
                    model.gradients(&second)?,
                    sizes.0,
                    sizes.1,
                ))
            };
        let right = check_mirrored(|model, batch| {
            let (one, other, n, m) = halves(model, batch)?;
            Ok((one * n + other * m) / (n + m))
        });
        assert!(right.is_right(), "{right:?}");
        let sum = check_mirrored(|model, batch| halves(model, batch).map(|it| it.0 + it.1));
        assert!(words(&sum).contains("twice as large"));
        let plain =
            check_mirrored(|model, batch| halves(model, batch).map(|it| (it.0 + it.1) / 2.0));
        assert!(words(&plain).contains("13 examples") && words(&plain).contains("different sizes"));
        let whole = check_mirrored(|model, batch| model.gradients(batch));
        assert!(words(&whole).contains("here one computes all"));
        let one = check_mirrored(|model, batch| halves(model, batch).map(|it| it.1));
        assert!(words(&one).contains("have none"));
        assert_eq!(check_mirrored(|_, _| todo!()).state, State::Open);
        let wrong = check_mirrored(|_, _| make_regression(0, 1, 0).map(|_| Gradients::zeros()));
        assert!(words(&wrong).contains("error"), "{wrong:?}");
    }

    #[test]
    fn typical_accumulations_get_their_hint() {
        let right = check_accumulated(|model, micro| {
            let (mut sum, mut examples) = (Gradients::zeros(), 0);
            for batch in micro {
                sum += model.gradients(batch)? * batch.len() as f64;
                examples += batch.len();
            }
            Ok(sum / examples as f64)
        });
        assert!(right.is_right(), "{right:?}");
        let divided_by = |divisor: f64| {
            check_accumulated(move |model, micro| {
                let mut sum = Gradients::zeros();
                for batch in micro {
                    sum += model.gradients(batch)?;
                }
                Ok(sum / divisor)
            })
        };
        assert!(words(&divided_by(1.0)).contains("four times as large"));
        assert!(words(&divided_by(4.0)).contains("short last micro-batch"));
        let lost = check_accumulated(|model, micro| Ok(model.gradients(&micro[3])? / 4.0));
        assert!(words(&lost).contains("before the loop, or in it"));
        assert!(
            words(&check_accumulated(|_, _| Ok(Gradients::zeros()))).contains("there are none")
        );
    }

    #[test]
    fn a_model_is_looked_for_on_every_replica() {
        let build = |steps: usize| {
            move |strategy: &MirroredStrategy| {
                let guard = stratoscope_strategy::scope::enter(strategy)?;
                let model = Sequential([Dense(4).input_shape((5,)), Dense(1)])?;
                let _receipt = crate::compile!(
                    model,
                    optimizer = SGD::new(0.1),
                    loss = MeanSquaredError,
                    steps_per_execution = steps
                )?;
                drop(guard);
                Ok(model)
            }
        };
        let right = check_in_scope(build(4));
        assert!(right.is_right(), "{right:?}");
        assert!(words(&check_in_scope(build(2))).contains("2 executions"));
        assert!(words(&check_in_scope(|_| small_model_of_five())).contains("one copy"));
        let outside = check_in_scope(|_| {
            let model = Sequential([Dense(1).input_shape((5,))])?;
            let _receipt =
                crate::compile!(model, optimizer = SGD::new(0.1), loss = MeanSquaredError)?;
            Ok(model)
        });
        assert!(words(&outside).contains("outside"), "{outside:?}");
        assert_eq!(check_in_scope(|_| todo!()).state, State::Open);
    }

    fn small_model_of_five() -> Result<Sequential> {
        let model = Sequential([Dense(1).input_shape((5,))])?;
        let _receipt = crate::compile!(
            model,
            optimizer = SGD::new(0.1),
            loss = MeanSquaredError,
            strategy = none
        )?;
        Ok(model)
    }

    #[test]
    fn a_repaired_run_was_changed_and_has_ended() {
        let (rows, targets) = sensor_readings();
        let data = Dataset::from_arrays(rows, targets).expect("three features a row");
        let model = Sequential([Dense(1).input_shape((3,))]).expect("a layer");
        let compiled = crate::compile!(
            model,
            optimizer = SGD::new(0.1),
            loss = MeanSquaredError,
            strategy = none
        );
        assert!(compiled.is_ok(), "{compiled:?}");
        let run = crate::start!(
            model,
            data,
            batch_size = 8,
            shuffle = false,
            verbose = false
        )
        .expect("a run");
        assert_eq!(check_repaired(&run).state, State::Open);
        let dropped = run.drop_examples([43]);
        assert!(dropped.is_ok(), "{dropped:?}");
        assert!(
            words(&check_repaired(&run)).contains("to its end"),
            "{:?}",
            check_repaired(&run)
        );
        let history = run.finish();
        assert!(history.is_ok(), "{history:?}");
        assert!(
            check_repaired(&run).is_right(),
            "{:?}",
            check_repaired(&run)
        );
    }

    #[test]
    fn the_plan_is_that_of_the_project() {
        assert_eq!(
            plan(CrossDeviceOps::Ring, 8, 840).busiest_bytes(),
            4 * 840 * 7 / 8
        );
        assert_eq!(own(CrossDeviceOps::Tree, 8, 1).len(), 14);
        let ring = check_ring(|cluster| {
            let n = cluster.devices();
            for hop in 0..2 * (n - 1) {
                for device in 0..n {
                    let (to, part) = ((device + 1) % n, (device + 2 * n - hop) % n);
                    match hop < n - 1 {
                        true => cluster.send_and_add(device, to, part),
                        false => cluster.send_and_store(device, to, part),
                    }
                }
                cluster.next_hop();
            }
        });
        assert!(ring.is_right(), "{ring:?}");
    }

    #[test]
    fn the_schedule_is_that_of_the_project() {
        let own = |stage: usize, stages: usize, micro_batches: usize| -> Vec<Pass> {
            let schedule = PipelineSchedule::OneForwardOneBackward;
            let passes = schedule.passes(stage, stages, micro_batches).into_iter();
            let pass = |it| match it {
                PipelinePass::Forward(index) => Pass::Forward(index),
                PipelinePass::Backward(index) => Pass::Backward(index),
            };
            passes.map(pass).collect()
        };
        assert!(check_one_f_one_b(own).is_right());
        assert!(check_bubble(stratoscope_strategy::strategy::bubble).is_right());
        assert_eq!(stored(&own(1, 4, 8)), 3);
    }
}
