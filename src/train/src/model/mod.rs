//! [`Model`]: a network under a strategy, with what belongs to it. It is a handle: a clone is the same
//! model, and every method takes `&self`, since a notebook binds models without `mut`.

pub(crate) mod agreement;
pub mod bert;
pub mod build;
pub mod by_hand;
pub mod calls;
pub(crate) mod compile;
pub(crate) mod evaluate;
pub mod fit;
mod freeze;
pub mod held;
pub mod predict;
pub mod sequential;

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::module::ParamId;
use stratoscope_diagnostics::rules::StrategyNotUsed;
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_render::text;
use stratoscope_strategy::{Origin, PlacementReport, Replicas, Strategy, VariableRecord};

use crate::context::events::observer;
use crate::context::warnings::notice;
use crate::model::by_hand::ByHand;
use crate::model::compile::Compiled;
use crate::model::held::Held;
use crate::network::{Files, Network};
use crate::run::lease::Occupied;
use crate::run::memory::Ledger;
use crate::run::progress::SavedRun;
use crate::step::mixed_precision::Policy;

/// A network with a copy on every replica, its tokenizer and labels, and how it is trained.
pub struct Model<N: Network> {
    /// An [`Inner`] of the network. Its type is not named, so that a cell that only holds a model need
    /// not compile how one is dropped.
    inner: Arc<dyn Any + Send + Sync>,
    network: PhantomData<fn() -> N>,
}

struct Inner<N: Network> {
    /// By which an optimizer knows whose it is.
    identity: Arc<()>,
    state: Mutex<State<N>>,
    /// The run that has or lends the state.
    occupied: Occupied,
}

/// Everything that changes. One call at a time has it.
pub(crate) struct State<N: Network> {
    pub replicas: Replicas<N>,
    pub files: N::Files,
    /// Set by `compile!`.
    pub compiled: Option<Compiled>,
    /// A run that was interrupted, for `resume = true`.
    pub saved_run: Option<SavedRun<N>>,
    /// The bytes of each gradient at the last optimizer step, per replica.
    pub gradient_bytes: HashMap<ParamId, u64>,
    /// What its layers compute in: the global policy when it was made.
    pub policy: Policy,
    /// Whether `compile!` was told to train it on one device on purpose.
    pub alone: bool,
    /// Whether a step was ever made: new variables are random until then.
    pub has_learnt: bool,
    /// What a loop by hand has computed since its last step.
    pub by_hand: ByHand,
    /// Its line in the list of models that hold memory.
    pub ledger: Arc<Ledger>,
    /// The statement that made the model; its variables may be younger.
    pub made: Origin,
}

impl<N: Network> Model<N> {
    /// Places a network on every replica of the active scope; outside of any, on the processor.
    ///
    /// # Errors
    /// SC0907 if a device does not take its copy.
    pub fn new(network: N, files: N::Files, origin: Origin) -> Result<Self> {
        let names: Vec<_> = network
            .parameters()
            .into_iter()
            .map(|known| (known.name, known.id))
            .collect();
        let entry = format!("{}, {origin}", files.model_name());
        let state = State {
            made: origin.clone(),
            replicas: Replicas::place(network, &names, origin)?,
            files,
            compiled: None,
            saved_run: None,
            gradient_bytes: HashMap::new(),
            policy: Policy::of::<N>(),
            alone: false,
            has_learnt: false,
            by_hand: ByHand::default(),
            ledger: Ledger::open(entry),
        };
        state.enter_in_ledger();
        held::register::<N>();
        let inner = Inner {
            identity: Arc::new(()),
            state: Mutex::new(state),
            occupied: Occupied::default(),
        };
        Ok(Self {
            inner: Arc::new(inner),
            network: PhantomData,
        })
    }

    /// Where every variable is, what training keeps beside it, whether the copies are equal.
    /// Gradients and moments are planned until the first optimizer step, then measured.
    ///
    /// # Errors
    /// SC0907 if a value cannot be read from its device.
    pub fn placement(&self) -> Result<PlacementReport> {
        (N::calls().placement)(self)
    }

    pub(crate) fn placement_here(&self) -> Result<PlacementReport> {
        self.state().placement()
    }

    /// The strategy it was built under.
    pub fn strategy(&self) -> Option<Strategy> {
        self.state().replicas.strategy().cloned()
    }

    /// The names of its labels, in the order of its outputs.
    pub fn label_names(&self) -> Vec<String> {
        self.state().files.label_names().to_vec()
    }

    /// How many numbers it has learnt, or is to learn.
    pub fn num_parameters(&self) -> usize {
        self.state().num_parameters()
    }

    /// Calls `look` with replica 0's network. Everything may be asked of the model meanwhile. A loop of
    /// such calls on a model with several replicas shows SC0203: the others do nothing.
    pub fn with_network<T>(&self, look: impl FnOnce(&N) -> T) -> T {
        // A copy of the handles, so that the state is free again.
        let network = self.lent_network();
        look(&network)
    }

    fn lent_network(&self) -> N {
        let mut state = self.state();
        let replicas = state.replicas.len();
        // Callbacks of a run look at the network between its steps.
        if self.occupied().is_free() && state.by_hand.lends(replicas) {
            let rule = StrategyNotUsed {
                replicas,
                device: state.replicas.devices()[0].name.clone(),
            };
            // Shown also where it is denied: this call has no error to return.
            if let Err(denied) = notice(rule.diagnostic()) {
                observer().notice(*denied);
            }
        }
        state.replicas.first().clone()
    }

    /// What it holds in memory, and where; `None` while a call has it.
    pub(crate) fn held(&self) -> Option<Held> {
        let state = self.inner().state.try_lock().ok()?;
        Some(held::of_state(&state))
    }

    fn inner(&self) -> &Inner<N> {
        let inner = self.inner.downcast_ref();
        inner.expect("a model holds what it was made with")
    }

    /// The state, to be read: a run lends it to its callbacks.
    pub(crate) fn state(&self) -> MutexGuard<'_, State<N>> {
        // A panic inside a call leaves the state whole: what it was about to change is replaced last.
        self.inner()
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn occupied(&self) -> &Occupied {
        &self.inner().occupied
    }

    pub(crate) fn identity(&self) -> &Arc<()> {
        &self.inner().identity
    }
}

impl<N: Network> State<N> {
    /// The replicas as they would be if a run that is going on ended now: replicas that step alone are
    /// averaged.
    ///
    /// # Errors
    /// SC0907 if a copy cannot be made.
    pub(crate) fn settled(&self) -> Result<Settled<'_, N>> {
        let apart = self.compiled.as_ref().map(|compiled| &compiled.apart);
        match apart.filter(|apart| apart.steps > 0) {
            None => Ok(Settled::AsTheyAre(&self.replicas)),
            Some(apart) => Ok(Settled::Averaged(self.replicas.averaged(&apart.examples)?)),
        }
    }

    pub(crate) fn placement(&self) -> Result<PlacementReport> {
        let report = PlacementReport::of(&self.replicas)?.titled(self.files.model_name());
        let Some(compiled) = &self.compiled else {
            return Ok(report);
        };
        let report = compiled.tallies.shown(report, &compiled.metrics);
        let slots = compiled.optimizer.slots();
        let stepped = compiled.states.first().filter(|state| state.steps() > 0);
        let Some(state) = stepped.filter(|_| !self.gradient_bytes.is_empty()) else {
            let report = report.planned("gradients");
            let slots = slots.iter();
            return Ok(slots.fold(report, |report, slot| report.planned(slot.name())));
        };
        let mut report = report.measured("gradients", |id| self.gradient_bytes.get(&id).copied());
        for slot in slots {
            report = report.measured(slot.name(), |id| {
                // What servers keep beside their rows is together of the variable's size.
                let states = match self.replicas.is_sharded() {
                    true => compiled.states.as_slice(),
                    false => std::slice::from_ref(state),
                };
                let bytes = states.iter().map(|state| state.bytes(id, slot)).sum();
                Some(bytes).filter(|&bytes| bytes > 0)
            });
        }
        Ok(self.with_activations(report, &compiled.last_batch))
    }

    /// Adds what the layers computed for the last batch, estimated by the network, where it can.
    fn with_activations(
        &self,
        report: PlacementReport,
        batch: &[(usize, usize)],
    ) -> PlacementReport {
        let Some(&first) = batch.first() else {
            return report;
        };
        let bytes = batch
            .iter()
            .map(|&(examples, length)| self.files.activation_bytes(examples, length));
        let Some(bytes) = bytes.collect::<Option<Vec<u64>>>() else {
            return report;
        };
        let part = |(examples, length): (usize, usize)| format!("{examples} × {length} tokens");
        let parts = match batch.iter().all(|&other| other == first) {
            true if batch.len() > 1 => format!("{} on each replica", part(first)),
            true => part(first),
            false => {
                let parts: Vec<String> = batch.iter().map(|&other| part(other)).collect();
                format!("{}, by replica", parts.join(", "))
            }
        };
        let note = format!("estimated from the sizes of the layers, for the last batch: {parts}");
        report.estimated_activations(note, &bytes)
    }

    /// The variables that training changes.
    pub(crate) fn trainable(&self) -> impl Iterator<Item = &VariableRecord> {
        self.replicas
            .records()
            .iter()
            .filter(|record| record.trainable)
    }

    /// What weights and an optimizer's slots hold in memory, on all replicas.
    pub(crate) fn bytes(&self) -> u64 {
        let weights: u64 = self
            .replicas
            .records()
            .iter()
            .map(|record| record.bytes)
            .sum();
        let trained: u64 = self.trainable().map(|record| record.bytes).sum();
        let slots = self.compiled.as_ref().map_or(0, |compiled| {
            let stepped = compiled.states.first().is_some_and(|it| it.steps() > 0);
            if stepped {
                compiled.optimizer.slots().len()
            } else {
                0
            }
        });
        (weights + trained * slots as u64) * self.replicas.len() as u64
    }

    /// Tells the list of models what this one holds now.
    pub(crate) fn enter_in_ledger(&self) {
        self.ledger.set(self.bytes(), self.replicas.devices());
    }

    pub(crate) fn num_parameters(&self) -> usize {
        let elements = |shape: &Vec<usize>| shape.iter().product::<usize>();
        self.replicas
            .records()
            .iter()
            .map(|record| elements(&record.shape))
            .sum()
    }

    /// The parameters that weight decay leaves alone.
    pub(crate) fn undecayed(&self) -> HashSet<ParamId> {
        let parameters = self.replicas.first().parameters().into_iter();
        let optimizer = self.compiled.as_ref().map(|compiled| &compiled.optimizer);
        parameters
            .filter(|known| optimizer.is_some_and(|optimizer| optimizer.excludes(known)))
            .map(|known| known.id)
            .collect()
    }

    /// Replicas and devices in words.
    pub(crate) fn devices_in_words(&self) -> String {
        match self.replicas.strategy() {
            Some(strategy) => format!("{}, {}", strategy.name(), strategy.devices_in_words()),
            None => match self.replicas.devices().first() {
                Some(device) => format!("{} ({})", device.name, device.description),
                None => String::new(),
            },
        }
    }
}

/// Replicas that agree.
pub(crate) enum Settled<'s, N> {
    AsTheyAre(&'s Replicas<N>),
    Averaged(Replicas<N>),
}

impl<N> Deref for Settled<'_, N> {
    type Target = Replicas<N>;

    fn deref(&self) -> &Replicas<N> {
        match self {
            Self::AsTheyAre(replicas) => replicas,
            Self::Averaged(replicas) => replicas,
        }
    }
}

impl<N: Network> Clone for Model<N> {
    /// Another handle of the same model.
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            network: PhantomData,
        }
    }
}

impl<N: Network> fmt::Debug for Model<N> {
    /// `BertForSequenceClassification: 22 713 216 parameters, 8 labels, on mirrored, 2 logical CPU
    /// devices; compiled with AdamW::new(5e-5)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(state) = self.inner().state.try_lock() else {
            return f.write_str("a model that is in use");
        };
        let parameters = match state.is_built() {
            true => text::count(state.num_parameters(), "parameter"),
            false => "not built".to_owned(),
        };
        let labels = match (state.files.classes(), state.files.binary_labels()) {
            (Some(classes), _) => text::count(classes, "label"),
            (None, Some([no, yes])) => {
                format!("one output that decides between `{no}` and `{yes}`")
            }
            (None, None) => "a number as output".to_owned(),
        };
        let name = state.files.model_name();
        write!(
            f,
            "{name}: {parameters}, {labels}, on {}",
            state.devices_in_words()
        )?;
        match &state.compiled {
            Some(compiled) => write!(f, "; compiled with {}", compiled.optimizer),
            None => f.write_str("; not compiled"),
        }
    }
}
