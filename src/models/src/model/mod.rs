//! [`Model`]: a network under a strategy, with what belongs to it. It is a handle: a clone is the same
//! model, and every method takes `&self`, since a notebook binds models without `mut`.

pub(crate) mod agreement;
mod average;
pub mod bert;
pub mod build;
pub mod by_hand;
pub(crate) mod compile;
pub(crate) mod evaluate;
mod freeze;
pub mod held;
pub mod look;
pub mod lora;
mod of;
pub mod onnx;
pub mod predict;
mod rate_finder;
mod receipt;
mod save;
pub mod sequential;
pub mod worker;

pub use average::Average;
pub use of::ModelOf;
pub use rate_finder::RateRange;

use std::fmt;
use std::sync::{Arc, MutexGuard};

use burn::tensor::TensorData;
use stratoscope_bert::names::named_values;
use stratoscope_data::IntoData;
use stratoscope_diagnostics::rules::StrategyNotUsed;
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_render::text;
use stratoscope_strategy::{Origin, PlacementReport, Replicas, Strategy, scope};

use crate::problem;
use crate::report::held::Held;
use crate::report::history::History;
use crate::report::memory_plan::MemoryPlan;
use crate::report::pipeline::PipelineReport;
use crate::report::summary::Summary;
use stratoscope_arguments::FitArgs;
use stratoscope_arguments::context::RunContext;
use stratoscope_arguments::context::ledger::Ledger;
use stratoscope_arguments::context::mixed_precision::Policy;
use stratoscope_arguments::context::warnings::notice;
use stratoscope_network::{AnyNetwork, Files, Network, Task, check_slices, check_stages};
use stratoscope_run::handle::Run;
use stratoscope_step::StepState;
use stratoscope_step::gradients::ByHand;
use stratoscope_train::state::{ModelState, SharedModel};

/// A network with a copy on every replica, its tokenizer and labels, and how it is trained. Where the type of the network is
/// known, it is a [`ModelOf`] it.
pub struct Model {
    shared: Arc<SharedModel>,
}

impl Model {
    /// Places a network on every replica of the active scope; outside of any, on the default device.
    ///
    /// # Errors
    /// SC0907 if a device does not take its copy, SC0714 if it has no numbers of the policy's.
    pub fn with_files<N: Network>(
        network: N,
        files: N::Files,
        origin: Origin,
    ) -> Result<ModelOf<N>> {
        let model = Self::placed(AnyNetwork::new(network), Box::new(files), origin)?;
        Ok(ModelOf::of_model(model))
    }

    fn placed(network: AnyNetwork, files: Box<dyn Files>, origin: Origin) -> Result<Self> {
        let names: Vec<_> = network
            .parameters()
            .into_iter()
            .map(|known| (known.name, known.id))
            .collect();
        let entry = format!("{}, {origin}", files.model_name());
        let context = RunContext::current();
        let (made, policy) = (origin.clone(), Policy::of(&network));
        let strategy = scope::current();
        check_stages(strategy.as_ref(), &network, &*files)?;
        check_slices(strategy.as_ref(), &network, &*files)?;
        let replicas = Replicas::place(network, &names, origin)?;
        Policy::check_devices(policy, replicas.computing())?;
        let state = ModelState {
            made,
            step: StepState::new(replicas, policy),
            trained_length: files.trained_length(),
            files,
            compiled: None,
            saved_run: None,
            alone: false,
            has_learned: false,
            unfrozen: Vec::new(),
            by_hand: ByHand::default(),
            ledger: Ledger::open(entry, context.alive()),
        };
        state.enter_in_ledger();
        Ok(Self {
            shared: Arc::new(SharedModel::new(state)),
        })
    }

    /// Where every variable is, what training keeps beside it, whether the copies are equal.
    /// Gradients and moments are planned until the first optimizer step, then measured.
    ///
    /// # Errors
    /// SC0907 if a value cannot be read from its device.
    pub fn placement(&self) -> Result<PlacementReport> {
        self.state().placement()
    }

    /// The stages of a model that was built under a `PipelineStrategy`: their layers, and of the last step when each computed
    /// and waited, how many micro-batches it kept, and what it sent.
    ///
    /// # Errors
    /// SC0103 for a model under another strategy, or under none.
    pub fn pipeline(&self) -> Result<PipelineReport> {
        let state = self.state();
        stratoscope_train::pipeline::report(&state).ok_or_else(|| {
            let given = match state.step.replicas.strategy() {
                Some(strategy) => format!("a model under `{}`", strategy.label()),
                None => "a model without a strategy".to_owned(),
            };
            let expects = "a model that was built in the scope of a `PipelineStrategy`";
            Box::new(problem::bad_value("pipeline", "model", given, expects))
        })
    }

    /// The strategy it was built under.
    pub fn strategy(&self) -> Option<Strategy> {
        self.state().step.replicas.strategy().cloned()
    }

    /// The names of its labels, in the order of its outputs.
    pub fn label_names(&self) -> Vec<String> {
        self.state().files.label_names().to_vec()
    }

    /// How many numbers it has learned, or is to learn.
    pub fn num_parameters(&self) -> usize {
        self.state().num_parameters()
    }

    /// The names of replica 0's variables, in the order of its fields, with their values.
    pub fn variables(&self) -> Vec<(String, TensorData)> {
        named_values(&self.lent_network())
    }

    /// This model with the type of its network; `None` where it is another one.
    pub fn typed<N: Network>(&self) -> Option<ModelOf<N>> {
        ModelOf::typed(self.clone())
    }

    /// Replica 0's network, as handles of its variables. Everything may be asked of the model meanwhile.
    fn lent_network(&self) -> AnyNetwork {
        let mut state = self.state();
        let replicas = state.step.replicas.len();
        // Callbacks of a run look at the network between its steps.
        if self.shared().occupied.is_free() && state.by_hand.lends(replicas) {
            let rule = StrategyNotUsed {
                replicas,
                device: state.step.replicas.devices()[0].name.clone(),
            };
            // Shown also where it is denied: this call has no error to return.
            if let Err(denied) = notice(rule.diagnostic()) {
                RunContext::current().observer().notice(*denied);
            }
        }
        state.step.replicas.first().clone()
    }

    /// What it holds in memory, and where; `None` while a call has it.
    pub(crate) fn held(&self) -> Option<Held> {
        Some(held::of_state(&*self.shared.try_state()?))
    }

    pub(crate) fn shared(&self) -> &SharedModel {
        &self.shared
    }

    /// The state, to be read.
    pub(crate) fn state(&self) -> MutexGuard<'_, ModelState> {
        self.shared().state()
    }

    /// The state, to be changed.
    ///
    /// # Errors
    /// SC0121 in a callback of this model's own run.
    pub(crate) fn free_state(&self, call: &str) -> Result<MutexGuard<'_, ModelState>> {
        self.shared().free_state(call)
    }

    /// Trains the model on a data set, or on a stream of rows that stay in their files.
    ///
    /// An interrupt ends it after the current batch, or within one that takes longer than a second, with
    /// what was measured so far; `resume` goes on from there, and ends on the very weights that a run
    /// without an interrupt ends on. One that comes before the first batch leaves the model as it was.
    ///
    /// # Errors
    /// SC0112 for a model that was not compiled, SC0113 without a loss, SC0121 in a callback of the
    /// model's own run, or while a run of `start!` has the model; what is wrong with arguments or data, before the first step; SC0505 at the first
    /// loss or gradient that is not finite, before the update, and at the first such weight after it;
    /// SC0907 if a device fails.
    #[track_caller]
    pub fn fit<'d>(&self, data: impl IntoData<'d>, args: FitArgs<'_>) -> Result<History> {
        stratoscope_train::fit::fit(&self.shared, data.into_data(), args, Origin::current())
    }

    /// A run that stands before its first step: it takes what [`Self::fit`] takes, and trains when
    /// [`step`](Run::step), [`epoch`](Run::epoch), [`until`](Run::until) or [`finish`](Run::finish) is called. Until it
    /// is finished or dropped the model belongs to it: whatever would change the model is SC0121.
    ///
    /// # Errors
    /// What [`Self::fit`] says before its first step; SC0520 if it is interrupted.
    #[track_caller]
    pub fn start<'d>(&self, data: impl IntoData<'d>, args: FitArgs<'static>) -> Result<Run> {
        let (shared, origin) = (Arc::clone(&self.shared), Origin::current());
        Run::start(shared, data.into_data(), args, origin)
    }

    /// The layers or variables with their shapes, parameters, types, and whether training changes them. A
    /// model that is not built has no variables yet, and says so. `model.summary();` prints it.
    pub fn summary(&self) -> Summary {
        let state = self.state();
        let replicas = &state.step.replicas;
        let layers = replicas.first().layer_rows();
        Summary::of(
            state.files.model_name(),
            state.is_built(),
            layers,
            replicas.records(),
        )
    }
}

/// What a run with batches of this many examples, each of this many tokens, needs of memory.
///
/// The moments are those of the optimizer of `compile!`; of Adam, where nothing was compiled yet.
/// Replicas of one processor share its memory, so their parts add up.
pub fn memory_plan(model: &Model, batch_size: usize, length: usize) -> MemoryPlan {
    stratoscope_train::memory::plan(&model.state(), batch_size, length)
}

/// The model of a run.
pub trait ModelOfRun {
    /// The model that it trains: of a fork its own one. It can be read while the run goes on, and is free when the run is
    /// finished or dropped.
    fn model(&self) -> Model;
}

impl ModelOfRun for Run {
    fn model(&self) -> Model {
        Model {
            shared: self.shared_model(),
        }
    }
}

impl Clone for Model {
    /// Another handle of the same model.
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl fmt::Debug for Model {
    /// `BertForSequenceClassification: 22 713 216 parameters, 8 labels, on mirrored, 2 logical CPU
    /// devices; compiled with AdamW::new(5e-5)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(state) = self.shared().try_state() else {
            return f.write_str("a model that is in use");
        };
        let parameters = match state.is_built() {
            true => text::count(state.num_parameters(), "parameter"),
            false => "not built".to_owned(),
        };
        let labels = match (state.files.classes(), state.files.binary_labels()) {
            (Some(tokens), _) if state.files.task() == Task::Masked => text::count(tokens, "token"),
            (Some(choices), _) if state.files.task() == Task::Choice => {
                text::count(choices, "choice")
            }
            _ if state.files.task() == Task::Embedding => "a vector as output".to_owned(),
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
