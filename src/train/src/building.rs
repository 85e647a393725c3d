//! Making the variables of a model that was made without them: when `build` gives the width of its input, when
//! `compile!` is called in a scope, or when the first data comes. Scope rules: docs/keras-semantics.md §3.
//!
//! A model without variables has replicas without variables. Building makes the variables on the devices of the
//! strategy that the model is bound to by then: that of the scope it was written in, else that of the scope
//! of `compile!`.

use stratoscope_data::Data;
use stratoscope_diagnostics::rules::{Examples, FitInAnotherScope, InputShapeMismatch};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::{Origin, Replicas, Strategy, default_device, scope};

use crate::state::ModelState;
use stratoscope_arguments::StrategyChoice;
use stratoscope_arguments::context::mixed_precision::Policy;
use stratoscope_network::{AnyNetwork, Input, check_slices, check_stages};
use stratoscope_step::gradients::ByHand;
use stratoscope_step::{StepState, gathered_in_parts};

impl ModelState {
    /// Whether its variables exist.
    pub fn is_built(&self) -> bool {
        self.step.replicas.first().is_built()
    }

    /// The strategy that `compile!` binds the model to: that of its scope, if nothing else has
    /// placed the variables before.
    pub fn to_be_bound(&self, choice: &StrategyChoice) -> Option<Strategy> {
        if self.is_built() || self.step.replicas.strategy().is_some() {
            return None;
        }
        match choice {
            StrategyChoice::None => None,
            StrategyChoice::This(strategy) => Some(strategy.clone()),
            StrategyChoice::OfTheScope => scope::current(),
        }
    }

    /// What `compile!` does with a model that waits: it binds the model to `strategy`, if there is one,
    /// and makes its variables if the network knows how wide its input is.
    pub fn settle(&mut self, strategy: Option<Strategy>, origin: Origin) -> Result<()> {
        if self.is_built() {
            return Ok(());
        }
        let bound = self.step.replicas.strategy();
        let strategy = strategy.or_else(|| bound.cloned());
        match self.step.replicas.first().input_width() {
            Some(width) => self.make_variables(width, strategy, origin),
            None if bound == strategy.as_ref() => Ok(()),
            None => {
                let network = self.step.replicas.first().clone();
                self.place(network, strategy, origin)
            }
        }
    }

    /// The strategy that variables made now belong to: the model's; one that neither a scope nor
    /// `compile!` has bound yet takes the active one.
    pub fn strategy_now(&self) -> Option<Strategy> {
        match self.step.replicas.strategy() {
            Some(bound) => Some(bound.clone()),
            None if self.compiled.is_none() => scope::current(),
            None => None,
        }
    }

    /// Makes the variables of a network that waits for the width of its input.
    pub fn make_variables(
        &mut self,
        width: usize,
        strategy: Option<Strategy>,
        origin: Origin,
    ) -> Result<()> {
        let device = match strategy.as_ref().and_then(|it| it.replicas().first()) {
            Some(device) => device.training(),
            None => default_device()?.training(),
        };
        self.step.replicas.first().fits(width)?;
        let network = self.step.replicas.first().clone().build(width, &device);
        if let Some(made) = &mut self.step.made_by {
            made.width = Some(width);
        }
        self.place(network, strategy, origin)
    }

    /// Gives a built model another network, whose variables its strategy places; those that it had before keep their
    /// origins. Whatever training has left beside the weights is dropped, since it belongs to the old variables.
    pub fn exchange_network(&mut self, network: AnyNetwork, origin: Origin) -> Result<()> {
        let strategy = self.step.replicas.strategy().cloned();
        check_stages(strategy.as_ref(), &network, &*self.files)?;
        check_slices(strategy.as_ref(), &network, &*self.files)?;
        let mut replicas = placed(network, strategy, origin)?;
        replicas.keep_origins(self.step.replicas.records());
        self.step = StepState::new(replicas, self.step.policy);
        self.compiled = None;
        self.saved_run = None;
        self.by_hand = ByHand::default();
        self.enter_in_ledger();
        Ok(())
    }

    fn place(
        &mut self,
        network: AnyNetwork,
        strategy: Option<Strategy>,
        origin: Origin,
    ) -> Result<()> {
        check_stages(strategy.as_ref(), &network, &*self.files)?;
        check_slices(strategy.as_ref(), &network, &*self.files)?;
        let replicas = placed(network, strategy, origin)?;
        Policy::check_devices(self.step.policy, replicas.computing())?;
        self.step.replicas = gathered_in_parts(replicas);
        let compiled = self.compiled.as_ref();
        let is_local = compiled.is_some_and(|compiled| compiled.sync_every > 1);
        self.step.replicas.store_all(is_local);
        self.enter_in_ledger();
        Ok(())
    }

    /// Before any data is looked at more closely: `fit!` must not stand in a foreign scope, the rows
    /// must be what the model takes, and a model that waited for them has its variables made.
    ///
    /// # Errors
    /// SC0205, SC0411, and what the network itself finds.
    pub fn ready_for(&mut self, data: Data<'_>, call: &str, origin: Origin) -> Result<()> {
        self.ready_for_part(data, call, origin, false)
    }

    /// The same for the validation data of a call.
    pub(crate) fn ready_for_validation(
        &mut self,
        data: Data<'_>,
        call: &str,
        origin: Origin,
    ) -> Result<()> {
        self.ready_for_part(data, call, origin, true)
    }

    fn ready_for_part(
        &mut self,
        data: Data<'_>,
        call: &str,
        origin: Origin,
        is_validation: bool,
    ) -> Result<()> {
        if call == "fit" {
            self.stands_where_it_belongs()?;
        }
        // That there are no examples at all is said later, in the words of the call.
        if data.is_empty() {
            return Ok(());
        }
        let width = match data {
            Data::Held(data) => data.num_features(),
            Data::Streamed(_) => 0,
        };
        let given = match width {
            0 => Examples::Texts,
            width => Examples::Numbers(Some(width)),
        };
        let fits = match (self.files.takes(), given) {
            (Input::Texts, Examples::Texts) => true,
            (Input::Features, Examples::Numbers(_)) => {
                let known = self.step.replicas.first().input_width();
                known.is_none_or(|known| known == width)
            }
            _ => false,
        };
        if !fits {
            let source = (data.source(), is_validation);
            return Err(does_not_fit(self, given, source, call));
        }
        if let Data::Held(data) = data {
            self.step.replicas.first().check(data, call)?;
        }
        if !self.is_built() {
            self.make_variables(width, self.strategy_now(), origin)?;
        }
        Ok(())
    }

    /// SC0205.
    fn stands_where_it_belongs(&self) -> Result<()> {
        let bound = self.step.replicas.strategy();
        let Some(active) = scope::current().filter(|active| bound != Some(active)) else {
            return Ok(());
        };
        if bound.is_none() && (self.alone || (!self.is_built() && self.compiled.is_none())) {
            return Ok(());
        }
        let devices = self.step.replicas.devices().iter();
        let devices: Vec<&str> = devices.map(|device| device.name.as_str()).collect();
        let rule = FitInAnotherScope {
            active: active.shown(),
            bound: bound.map(Strategy::shown),
            device: devices.join(", "),
        };
        let names = active.unnamed().into_iter();
        let names = names.chain(bound.and_then(Strategy::unnamed));
        Err(Box::new(rule.diagnostic().naming(names)))
    }
}

/// The variables of a network under a strategy, with their names.
fn placed(
    network: AnyNetwork,
    strategy: Option<Strategy>,
    origin: Origin,
) -> Result<Replicas<AnyNetwork>> {
    let parameters = network.parameters().into_iter();
    let names: Vec<_> = parameters.map(|known| (known.name, known.id)).collect();
    Replicas::place_under(strategy, network, &names, origin)
}

/// SC0411.
pub fn does_not_fit(
    state: &ModelState,
    given: Examples,
    (source, is_validation): (&str, bool),
    call: &str,
) -> Box<stratoscope_diagnostics::Diagnostic> {
    let rule = InputShapeMismatch {
        model: state.files.model_name().to_owned(),
        wants: match state.files.takes() {
            Input::Texts => Examples::Texts,
            Input::Features => Examples::Numbers(state.step.replicas.first().input_width()),
        },
        given,
        source: source.to_owned(),
        call: call.to_owned(),
        is_validation,
    };
    rule.error()
}
