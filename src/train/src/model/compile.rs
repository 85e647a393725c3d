//! `compile!(model, …)`: arguments as written → [`Compiled`], what the loop sees. All that is wrong is
//! reported together, before any batch. Scope rules: docs/keras-semantics.md §3.

use std::sync::Arc;

use stratoscope_diagnostics::rules::{
    MissingOptimizer, ModelOutsideScope, OptimizerOfOtherModel, OptimizerOwner,
    StepsPerExecutionWithoutScope,
};
use stratoscope_diagnostics::{Diagnostic, Place, Result, Rule};
use stratoscope_strategy::{Origin, PlacementReport, Strategy, origin, scope};

use crate::arguments::{CompileArgs, Compiled, Count, StrategyChoice};
use crate::context::warnings::{begin_call, notice};
use crate::metric::Tallies;
use crate::model::Model;
use crate::model::agreement;
use crate::model::receipt::receipt;
use crate::network::{Files, Network};
use crate::optimizer::Optimizer;
use crate::problem;
use crate::report::receipt::CompileReceipt;
use crate::run::state::ModelState;
use crate::step::evaluation::empty_tally;

impl<N: Network> Model<N> {
    /// Gives the model its optimizer, loss and metrics. Moments of an earlier `compile` are dropped;
    /// the weights stay.
    ///
    /// # Errors
    /// All problems together, the first one as the error, the others related to it: SC0201 for a
    /// model outside the live strategy's scope, SC0102 for `steps_per_execution` above 1 without a
    /// scope, SC0103, SC0105, SC0116, SC0118 for the arguments, SC0202 for an optimizer of another
    /// model. SC0121 alone in a callback of the model's own run.
    #[track_caller]
    pub fn compile(&self, args: CompileArgs) -> Result<CompileReceipt> {
        (N::calls().compile)(self, args, Origin::current())
    }

    pub(crate) fn compile_from(
        &self,
        args: CompileArgs,
        compiled_at: Origin,
    ) -> Result<CompileReceipt> {
        begin_call();
        let mut state = self.free_state("compile")?;
        let mut problems = Vec::new();
        let mut warnings = Vec::new();

        // A model without variables can still be bound; any other is where it is.
        let adopts = state.to_be_bound(&args.strategy);
        if adopts.is_none() {
            problems.extend(outside_its_scope(&state, &args.strategy)?);
        }
        let is_outside = !problems.is_empty();
        problems.extend(args.problems);
        if !args.has_optimizer {
            let place = Place::call("compile");
            let rule = MissingOptimizer {
                place,
                insert: None,
                arguments: Vec::new(),
            };
            problems.push(rule.diagnostic());
        }
        if let Some(optimizer) = &args.optimizer
            && let Some(other) = optimizer.identity.other_owner(&self.shared().identity)
        {
            let rule = OptimizerOfOtherModel {
                optimizer: optimizer.name.to_owned(),
                owner: OptimizerOwner::Model { compiled_at: other },
            };
            problems.push(rule.diagnostic());
        }
        // A model outside the scope is one fault, not two.
        if let Some(optimizer) = args.optimizer.as_ref().filter(|_| !is_outside) {
            let rule = optimizer_of_another_strategy(&state, optimizer, &args.strategy);
            problems.extend(rule);
        }
        let mut count = |given: Option<Count>, argument| match given {
            None => 1,
            Some(count) => count
                .at_least(1, "compile", argument)
                .unwrap_or_else(|problem| {
                    problems.push(*problem);
                    1
                }),
        };
        let mut steps_per_execution = count(args.steps_per_execution, "steps_per_execution");
        let gradient_accumulation_steps = count(
            args.gradient_accumulation_steps,
            "gradient_accumulation_steps",
        );
        let sync_every = count(args.sync_every, "sync_every");
        problems.extend(nothing_to_average(&state, sync_every));
        if let Some(optimizer) = &args.optimizer {
            problems.extend(two_averages(&state, optimizer, sync_every));
        }
        if steps_per_execution > 1 && !is_in_scope(&state, &args.strategy) {
            let rule = StepsPerExecutionWithoutScope {
                value: usize::try_from(steps_per_execution).unwrap_or(usize::MAX),
                dropped: args.drop_unsupported,
            };
            match args.drop_unsupported {
                true => warnings.push(rule.diagnostic()),
                false => problems.push(rule.diagnostic()),
            }
            steps_per_execution = 1;
        }
        problems.extend(agreement::errors(&state, args.loss, &args.metrics));
        if let Some(optimizer) = &args.optimizer {
            warnings.extend(agreement::warnings(&state, optimizer, args.loss));
        }
        if let Some(problem) = problem::together(problems) {
            return Err(problem);
        }
        // Without an optimizer there was a problem above.
        let Some(optimizer) = args.optimizer else {
            let place = Place::call("compile");
            return Err(MissingOptimizer {
                place,
                insert: None,
                arguments: Vec::new(),
            }
            .error());
        };

        warnings.into_iter().try_for_each(notice)?;
        state.settle(adopts, compiled_at.clone())?;
        state.alone = matches!(args.strategy, StrategyChoice::None);
        optimizer
            .identity
            .claim(&self.shared().identity, compiled_at.to_string());
        let tally = empty_tally(state.files.classes(), args.loss, &args.metrics);
        let tallies = Tallies::new(tally, state.step.replicas.strategy(), compiled_at);
        state.step.reset(tallies);
        state.compiled = Some(Arc::new(Compiled {
            optimizer,
            loss: args.loss,
            metrics: args.metrics,
            steps_per_execution,
            gradient_accumulation_steps,
            sync_every,
            frozen: state.frozen(),
        }));
        state.saved_run = None;
        let mut receipt = receipt(&state)?;
        if let Some(bound) = state.step.replicas.strategy()
            && scope::current().is_none()
        {
            let note = format!(
                "`compile!` stands outside; the model belongs to `{}` all the same (Keras 3 compiles \
                 this and fails in `fit`)",
                bound.name()
            );
            receipt.settings.push(("scope".to_owned(), note));
        }
        Ok(receipt)
    }
}

/// SC0201, where a strategy is meant and the model's variables are not the strategy's.
fn outside_its_scope<N: Network>(
    state: &ModelState<N>,
    choice: &StrategyChoice,
) -> Result<Option<Diagnostic>> {
    let bound = state.step.replicas.strategy();
    let meant: Option<Strategy> = match (choice, bound) {
        (StrategyChoice::None, Some(bound)) => {
            let expects = format!("`{}`, under which the model was built", bound.name());
            let finding = problem::bad_value("compile", "strategy", "none", expects);
            return Ok(Some(finding.fix(
                "build the model outside of any scope to train on one device",
            )));
        }
        (StrategyChoice::None, None) => None,
        (StrategyChoice::This(strategy), _) => Some(strategy.clone()),
        (StrategyChoice::OfTheScope, Some(_)) => scope::current(),
        (StrategyChoice::OfTheScope, None) => {
            scope::current().or_else(|| scope::live_strategies().pop())
        }
    };
    let Some(strategy) = meant.filter(|meant| bound != Some(meant)) else {
        return Ok(None);
    };
    let report = PlacementReport::unplaced(&state.step.replicas, &strategy)?;
    let made = state
        .step
        .replicas
        .records()
        .first()
        .map(|record| record.origin.clone());
    let here = made
        .as_ref()
        .filter(|made| made.cell.is_some() && made.cell == origin::current_cell());
    let devices: Vec<&str> = state
        .step
        .replicas
        .devices()
        .iter()
        .map(|device| device.name.as_str())
        .collect();
    let rule = ModelOutsideScope {
        strategy: strategy.name().to_owned(),
        replicas: strategy.replicas().len(),
        variables: state.step.replicas.records().len(),
        device: devices.join(", "),
        compile_inside: scope::current().as_ref() == Some(&strategy),
        line: here.and_then(|made| made.line).map(|line| line as usize),
        origin: made.map(|made| made.to_string()),
        // Without variables there is nothing to show.
        figure: state.is_built().then(|| report.figure()),
    };
    Ok(Some(rule.diagnostic()))
}

/// SC0202, where the optimizer was made in the scope of another strategy than the model's.
fn optimizer_of_another_strategy<N: Network>(
    state: &ModelState<N>,
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

/// SC0103, where replicas are to step alone but there is one copy of the variables.
fn nothing_to_average<N: Network>(state: &ModelState<N>, sync_every: u64) -> Option<Diagnostic> {
    let strategy = state.step.replicas.strategy()?;
    if sync_every < 2 || strategy.has_copies() {
        return None;
    }
    let expects = format!(
        "1, since `{}` keeps one copy of each variable",
        strategy.name()
    );
    let finding = problem::bad_value("compile", "sync_every", sync_every, expects)
        .fix("build the model under a `MirroredStrategy`: its replicas have copies to average");
    Some(finding)
}

/// SC0103, where replicas are to step alone and the optimizer is to keep an average of the weights:
/// between two averages over the replicas there are no weights that all have.
fn two_averages<N: Network>(
    state: &ModelState<N>,
    optimizer: &Optimizer,
    sync_every: u64,
) -> Option<Diagnostic> {
    let is_apart = sync_every > 1 && state.step.replicas.copies() > 1;
    if !is_apart || optimizer.averaging.is_none() {
        return None;
    }
    let expects = "1, since the optimizer keeps a moving average of the weights (`use_ema`)";
    let finding = problem::bad_value("compile", "sync_every", sync_every, expects)
        .why("replicas that step alone have different weights between two averages over the replicas: a \
              moving average of each would be of weights that the model never has")
        .fix("drop `use_ema`: averaging over the replicas smooths the weights too");
    Some(finding)
}

/// Whether a scope is active for this call: one was entered or set as default, the model is bound to
/// a strategy, or one is named.
fn is_in_scope<N: Network>(state: &ModelState<N>, choice: &StrategyChoice) -> bool {
    let named = matches!(choice, StrategyChoice::This(_));
    named || state.step.replicas.strategy().is_some() || scope::current().is_some()
}
