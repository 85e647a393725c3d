//! `compile!(model, …)`: turns the arguments as written into [`Compiled`], which the training loop uses. All problems are
//! reported together, before any batch. Scope rules: docs/keras-semantics.md §3.

use std::sync::Arc;

use stratoscope_diagnostics::rules::{
    BuiltAt, MissingOptimizer, ModelOutsideScope, OptimizerOfOtherModel, OptimizerOwner,
    StepsPerExecutionWithoutScope, StrategyName,
};
use stratoscope_diagnostics::{Diagnostic, Place, Result, Rule};
use stratoscope_strategy::{LogicalDevice, Origin, PlacementReport, Strategy, origin, scope};

use crate::metric::{Tallies, names};
use crate::model::Model;
use crate::model::agreement;
use crate::model::receipt::receipt;
use crate::optimizer::Optimizer;
use crate::problem;
use crate::report::receipt::CompileReceipt;
use stratoscope_arguments::context::warnings::{begin_call, notice};
use stratoscope_arguments::{CompileArgs, Compiled, Count, StrategyChoice};
use stratoscope_step::evaluation::empty_tally;
use stratoscope_train::state::ModelState;

impl Model {
    /// Gives the model its optimizer, loss and metrics. Moments of an earlier `compile` are dropped;
    /// the weights stay.
    ///
    /// # Errors
    /// All problems together, the first one as the error, the others related to it: SC0201 for a
    /// model outside the live strategy's scope, SC0102 for `steps_per_execution` above 1 without a
    /// scope, SC0103, SC0105, SC0116, SC0118 for the arguments, SC0202 for an optimizer of another
    /// model. SC0121 alone in a callback of the model's own run. The settings of an earlier `compile` then stay; the
    /// diagnostic names them.
    #[track_caller]
    pub fn compile(&self, args: CompileArgs) -> Result<CompileReceipt> {
        let compiled_at = Origin::current();
        begin_call();
        let mut state = self.free_state("compile")?;
        let before = state.compiled.clone();
        let receipt = self.compile_state(&mut state, args, compiled_at);
        receipt.map_err(|problem| match (before, &state.compiled) {
            (Some(before), Some(now)) if Arc::ptr_eq(&before, now) => still_in_force(problem, now),
            _ => problem,
        })
    }

    fn compile_state(
        &self,
        state: &mut ModelState,
        mut args: CompileArgs,
        compiled_at: Origin,
    ) -> Result<CompileReceipt> {
        // A model without variables is placed by this call; the variables of any other have their place.
        let adopts = state.to_be_bound(&args.strategy);
        let outside = match &adopts {
            None => outside_its_scope(state, &args.strategy)?,
            Some(_) => None,
        };
        let is_outside = outside.is_some();
        let mut findings = Findings::default();
        findings.problems.extend(outside);
        findings.problems.append(&mut args.problems);
        findings.check_owner(state, &args, &self.shared().identity, is_outside);
        let counts = findings.counts(state, &args);
        findings.check_agreement(state, &args);
        if let Some(problem) = problem::together(findings.problems) {
            return Err(problem);
        }
        // Without an optimizer there was a problem above.
        let optimizer = args.optimizer.ok_or_else(|| missing_optimizer().error())?;

        findings.warnings.into_iter().try_for_each(notice)?;
        state.settle(adopts, compiled_at.clone())?;
        state.alone = matches!(args.strategy, StrategyChoice::None);
        optimizer
            .identity
            .claim(&self.shared().identity, compiled_at.to_string());
        let tally = empty_tally(
            (state.files.task(), state.files.classes()),
            args.loss,
            &args.metrics,
        );
        let tallies = Tallies::new(tally, state.step.replicas.strategy(), compiled_at);
        state.step.replicas.store_all(counts.sync_every > 1);
        state.step.reset(tallies);
        state.compiled = Some(Arc::new(Compiled {
            optimizer,
            loss: args.loss,
            metrics: args.metrics,
            steps_per_execution: counts.steps_per_execution,
            gradient_accumulation_steps: counts.gradient_accumulation_steps,
            sync_every: counts.sync_every,
            frozen: state.frozen(),
        }));
        state.saved_run = None;
        let mut receipt = receipt(state)?;
        receipt.settings.extend(note_on_scope(state));
        Ok(receipt)
    }
}

/// The error of a `compile!` on a model that was compiled before. As in Keras the earlier settings stay: without them a run
/// that waits could not go on. The card names them, so that a `fit!` after the error is no surprise.
fn still_in_force(problem: Box<Diagnostic>, settings: &Compiled) -> Box<Diagnostic> {
    let mut shown = settings.optimizer.to_string();
    if let Some(loss) = settings.loss {
        shown.push_str(&format!(", loss {loss}"));
    }
    if !settings.metrics.is_empty() {
        let metrics = names(&settings.metrics).join(", ");
        shown.push_str(&format!(", metrics {metrics}"));
    }
    let why = "this `compile!` has changed nothing: `fit!` would train with the settings of the one before";
    Box::new(problem.why(why).evidence("still in force", shown))
}

/// The counts of `compile!`, checked.
struct Counts {
    steps_per_execution: u64,
    gradient_accumulation_steps: u64,
    sync_every: u64,
}

/// What a call of `compile!` is refused for, and what it only warns of.
#[derive(Default)]
struct Findings {
    problems: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

impl Findings {
    /// SC0116 without an optimizer, SC0202 for one of another model or strategy. `is_outside`: the model is
    /// outside of its scope, which is one fault, not two.
    fn check_owner(
        &mut self,
        state: &ModelState,
        args: &CompileArgs,
        identity: &Arc<()>,
        is_outside: bool,
    ) {
        if !args.has_optimizer {
            self.problems.push(missing_optimizer().diagnostic());
        }
        let Some(optimizer) = &args.optimizer else {
            return;
        };
        if let Some(other) = optimizer.identity.other_owner(identity) {
            let rule = OptimizerOfOtherModel {
                optimizer: optimizer.name.to_owned(),
                owner: OptimizerOwner::Model { compiled_at: other },
            };
            self.problems.push(rule.diagnostic());
        }
        if !is_outside {
            let finding = optimizer_of_another_strategy(state, optimizer, &args.strategy);
            self.problems.extend(finding);
        }
    }

    /// SC0103 for a count below 1 or one that the strategy or the optimizer rules out, SC0102 for
    /// `steps_per_execution` without a scope: an error, or a warning and 1.
    fn counts(&mut self, state: &ModelState, args: &CompileArgs) -> Counts {
        let mut counts = Counts {
            steps_per_execution: self.count(args.steps_per_execution, "steps_per_execution"),
            gradient_accumulation_steps: self.count(
                args.gradient_accumulation_steps,
                "gradient_accumulation_steps",
            ),
            sync_every: self.count(args.sync_every, "sync_every"),
        };
        let finding = nothing_to_average(state, counts.sync_every);
        self.problems.extend(finding);
        if let Some(optimizer) = &args.optimizer {
            let finding = two_averages(state, optimizer, counts.sync_every);
            self.problems.extend(finding);
            let finding = cut_variables(state, optimizer, &args.strategy);
            self.problems.extend(finding);
        }
        if counts.steps_per_execution > 1 && !is_in_scope(state, &args.strategy) {
            let finding = needs_a_scope(state, counts.steps_per_execution, args);
            match args.drop_unsupported {
                true => self.warnings.push(finding),
                false => self.problems.push(finding),
            }
            counts.steps_per_execution = 1;
        }
        counts
    }

    /// The count as given, at least 1; 1 without an argument or for a wrong one.
    fn count(&mut self, given: Option<Count>, argument: &str) -> u64 {
        let checked = given.map(|count| count.checked("compile", argument));
        checked.unwrap_or(Ok(1)).unwrap_or_else(|problem| {
            self.problems.push(*problem);
            1
        })
    }

    /// Whether loss, metrics and optimizer agree with the head and with each other.
    fn check_agreement(&mut self, state: &ModelState, args: &CompileArgs) {
        let problems = agreement::errors(state, args.loss, &args.metrics, &args.strategy);
        self.problems.extend(problems);
        if let Some(optimizer) = &args.optimizer {
            let parameters = state.step.replicas.first().parameters();
            self.problems.extend(optimizer.layers_missing(&parameters));
            if state.is_built() {
                let place = Place::argument("compile", "optimizer");
                let findings = optimizer.rates_for_nothing(&parameters, &place);
                self.problems.extend(findings);
            }
            let warnings = agreement::warnings(state, optimizer, args.loss);
            self.warnings.extend(warnings);
        }
    }
}

fn missing_optimizer() -> MissingOptimizer {
    MissingOptimizer {
        place: Place::call("compile"),
        insert: None,
        arguments: Vec::new(),
    }
}

/// A line of the receipt, where a model of a strategy is compiled outside of the scope.
fn note_on_scope(state: &ModelState) -> Option<(String, String)> {
    let bound = state.step.replicas.strategy()?;
    if scope::current().is_some() {
        return None;
    }
    let note = format!(
        "`compile!` is outside of the scope; the model still belongs to `{}` (Keras 3 accepts this call and \
         fails in `fit`)",
        bound.name()
    );
    Some(("scope".to_owned(), note))
}

/// SC0102.
fn needs_a_scope(state: &ModelState, value: u64, args: &CompileArgs) -> Diagnostic {
    let strategy = meant(state, &args.strategy);
    let device = state.step.replicas.devices().first();
    let rule = StepsPerExecutionWithoutScope {
        value: usize::try_from(value).unwrap_or(usize::MAX),
        dropped: args.drop_unsupported,
        none_asked: matches!(args.strategy, StrategyChoice::None),
        built: built_at(state),
        strategy: strategy.as_ref().map(Strategy::named),
        device: device.map_or_else(|| "cpu(0)".to_owned(), LogicalDevice::in_code),
    };
    rule.diagnostic()
        .naming(strategy.and_then(|it| it.unnamed()))
}

/// The strategy that the call names, the scope has, or, for a model without one, the notebook's newest.
fn meant(state: &ModelState, choice: &StrategyChoice) -> Option<Strategy> {
    match (choice, state.step.replicas.strategy()) {
        (StrategyChoice::None, _) => None,
        (StrategyChoice::This(strategy), _) => Some(strategy.clone()),
        (StrategyChoice::OfTheScope, Some(_)) => scope::current(),
        (StrategyChoice::OfTheScope, None) => {
            scope::current().or_else(|| scope::live_strategies().pop())
        }
    }
}

/// Where the model was built. One without variables is placed by the running cell, which compiles it.
fn built_at(state: &ModelState) -> BuiltAt {
    let records = state.step.replicas.records();
    match records.first() {
        Some(record) => record.origin.built_at(),
        None if origin::current_cell().is_some() => BuiltAt::Here(None),
        None => BuiltAt::Program(None),
    }
}

/// SC0103 for `strategy = none` and a model of a strategy.
fn belongs_to_one(bound: &Strategy) -> Diagnostic {
    let StrategyName {
        shown, variable, ..
    } = bound.named();
    let expects = format!("`{shown}`, in whose scope the model was built");
    let mut finding = problem::bad_value("compile", "strategy", "none", expects);
    finding.fixes.clear();
    let place = Place::argument("compile", "strategy");
    let finding = match variable {
        Some(variable) => finding.fix_edit(
            format!("pass the strategy the model was built in: `strategy = {variable}`"),
            place,
            format!("strategy = {variable}"),
        ),
        None => finding.fix_edit(
            "drop `strategy`: the model keeps the one it was built in",
            place,
            "",
        ),
    };
    finding
        .fix("or build the model outside of any scope to train on one device")
        .naming(bound.unnamed())
}

/// SC0201 where the model's variables do not belong to the strategy that the call names or the scope has.
fn outside_its_scope(state: &ModelState, choice: &StrategyChoice) -> Result<Option<Diagnostic>> {
    let bound = state.step.replicas.strategy();
    if let (StrategyChoice::None, Some(bound)) = (choice, bound) {
        return Ok(Some(belongs_to_one(bound)));
    }
    let Some(strategy) = meant(state, choice).filter(|meant| bound != Some(meant)) else {
        return Ok(None);
    };
    let report = PlacementReport::unplaced(&state.step.replicas, &strategy)?;
    let devices = state.step.replicas.devices().iter();
    let devices: Vec<&str> = devices.map(|device| device.name.as_str()).collect();
    let rule = ModelOutsideScope {
        strategy: strategy.named(),
        replicas: strategy.replicas().len(),
        bound: bound.map(Strategy::named),
        variables: state.step.replicas.records().len(),
        device: devices.join(", "),
        compile_inside: scope::current().as_ref() == Some(&strategy),
        is_named: matches!(choice, StrategyChoice::This(_)),
        built: built_at(state),
        // Without variables there is nothing to show.
        figure: state.is_built().then(|| report.figure()),
    };
    let names = strategy.unnamed().into_iter();
    let names = names.chain(bound.and_then(Strategy::unnamed));
    Ok(Some(rule.diagnostic().naming(names)))
}

/// SC0202, where the optimizer was made in the scope of another strategy than the model's.
fn optimizer_of_another_strategy(
    state: &ModelState,
    optimizer: &Optimizer,
    choice: &StrategyChoice,
) -> Option<Diagnostic> {
    let model = match (state.step.replicas.strategy(), choice) {
        (Some(bound), _) => bound,
        // A model without variables is bound by this call.
        (None, StrategyChoice::This(strategy)) if !state.is_built() => strategy,
        _ => return None,
    };
    let made_under = optimizer.identity.other_strategy(model)?;
    let rule = OptimizerOfOtherModel {
        optimizer: optimizer.name.to_owned(),
        owner: OptimizerOwner::Strategy {
            made_under,
            model: model.label(),
        },
    };
    Some(rule.diagnostic())
}

/// SC0103 for `sync_every` above 1 under a strategy with a single copy of each variable.
fn nothing_to_average(state: &ModelState, sync_every: u64) -> Option<Diagnostic> {
    let strategy = state.step.replicas.strategy()?;
    if sync_every < 2 || strategy.has_copies() {
        return None;
    }
    let is_in_parts = strategy.devices_of_a_replica() > 1 && strategy.replicas().len() > 1;
    let label = strategy.label();
    let together = format!("the replicas of `{label}` make one update together");
    let fix = "build the model under a `MirroredStrategy`: its replicas have copies to average";
    let (why, fix) = match strategy.shard() {
        Some(shard) => (
            format!("{together} (`{shard}`)"),
            "make the strategy without `shard`: then each replica can step alone",
        ),
        None if is_in_parts => (together, fix),
        None => {
            let why = format!("`{}` keeps one copy of each variable", strategy.name());
            (why, fix)
        }
    };
    let expects = format!("1, since {why}");
    Some(problem::bad_value("compile", "sync_every", sync_every, expects).fix(fix))
}

/// SC0103 for `sync_every` above 1 together with `use_ema`: between two averages over the replicas, every
/// replica has weights of its own.
fn two_averages(state: &ModelState, optimizer: &Optimizer, sync_every: u64) -> Option<Diagnostic> {
    let replicas = &state.step.replicas;
    let has_copies = replicas.strategy().is_some_and(Strategy::has_copies);
    let is_local = sync_every > 1 && has_copies && replicas.len() > 1;
    if !is_local || optimizer.averaging.is_none() {
        return None;
    }
    let expects = "1, since the optimizer keeps a moving average of the weights (`use_ema`)";
    let finding = problem::bad_value("compile", "sync_every", sync_every, expects)
        .why("between two averages over the replicas, every replica has weights of its own: their moving \
              averages would be of weights that the model never has")
        .fix("drop `use_ema`: averaging over the replicas smooths the weights too");
    Some(finding)
}

/// SC0103 for an optimizer that needs whole variables, where servers or replicas update rows of them.
fn cut_variables(
    state: &ModelState,
    optimizer: &Optimizer,
    choice: &StrategyChoice,
) -> Option<Diagnostic> {
    let bound = state.step.replicas.strategy().cloned();
    let is_sliced = bound
        .as_ref()
        .is_some_and(|it| !it.model_devices().is_empty());
    let (is_cut, shard) = match state.is_built() {
        true => (
            // In a pipeline each variable is whole on its stage.
            state.step.replicas.is_sharded() && state.step.replicas.stages().is_none(),
            state.step.replicas.shard(),
        ),
        // The variables are cut when they are made.
        false => {
            let strategy = bound.or_else(|| state.to_be_bound(choice));
            let shard = strategy.as_ref().and_then(Strategy::shard);
            let is_cut = strategy.is_some_and(|it| it.variable_partitioner().is_some());
            (is_cut || shard.is_some(), shard)
        }
    };
    if !is_cut || !optimizer.needs_whole_variables() {
        return None;
    }
    let (method, who, how) = match shard {
        Some(_) => ("shard", "replica updates rows", "by rows"),
        None if is_sliced => ("ModelParallel", "device has a slice", "by rows and columns"),
        None => ("variable_partitioner", "server has rows", "by rows"),
    };
    let expects = format!(
        "an optimizer that changes each element on its own, since the variables are cut {how} (`{method}`)"
    );
    let finding = problem::bad_value("compile", "optimizer", optimizer, expects)
        .why(format!(
            "a step of `{}` needs sums over whole variables, and each {who} of them",
            optimizer.name
        ))
        .fix(match is_sliced {
            true => "take `AdamW`, or build the model under another strategy".to_owned(),
            false => format!("take `AdamW`, or make the strategy without `{method}`"),
        });
    Some(finding)
}

/// Whether a scope is active for this call: one was entered or set as default, the model is bound to
/// a strategy, or one is named.
fn is_in_scope(state: &ModelState, choice: &StrategyChoice) -> bool {
    let named = matches!(choice, StrategyChoice::This(_));
    named || state.step.replicas.strategy().is_some() || scope::current().is_some()
}
