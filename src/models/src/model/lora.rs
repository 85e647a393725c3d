//! `model.add_lora(Lora::new(8).alpha(16.0))?`: low-rank adapters for the networks with a BERT in them, what they are asked
//! for, and which variables are trained then. The arithmetic is in `stratoscope_bert::lora`.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use burn::module::ParamId;
use stratoscope_bert::lora::{self, Candidate};
use stratoscope_bert::{
    BertNetwork, LoraConfig, MaskedLm, MultipleChoice, QuestionAnswerer, SentenceEncoder,
    SequenceClassifier, TokenClassifier,
};
use stratoscope_diagnostics::check::suggest::similar;
use stratoscope_diagnostics::rules::{BackendFailed, InvalidArgumentValue, LoraOutOfOrder};
use stratoscope_diagnostics::{Diagnostic, Place, Result, Rule};
use stratoscope_render::text;
use stratoscope_strategy::Origin;

use crate::model::ModelOf;
use crate::model::bert::BertFiles;
use stratoscope_arguments::{Count, IntoCount};
use stratoscope_network::{AnyNetwork, Network};
use stratoscope_train::state::ModelState;

const CALL: &str = "add_lora";

/// Low-rank adapters as they are asked for. The names are those of PEFT's `LoraConfig`, and so are the defaults: `alpha`
/// is 8, without dropout, on `query` and `value`.
///
/// # Example
/// ```
/// use stratoscope_models::Lora;
///
/// let lora = Lora::new(8).alpha(16.0).dropout(0.05).targets(["query", "value"]);
/// assert!(format!("{lora:?}").contains("16.0"));
/// ```
#[derive(Clone, Debug)]
pub struct Lora {
    rank: Count,
    alpha: f64,
    dropout: f64,
    targets: Vec<String>,
    seed: u64,
}

impl Lora {
    /// Adapters of this rank: a layer with I inputs and O outputs gets `rank · (I + O)` numbers that are trained.
    pub fn new(rank: impl IntoCount) -> Self {
        Self {
            rank: rank.into_count(),
            alpha: 8.0,
            dropout: 0.0,
            targets: ["query", "value"].map(str::to_owned).to_vec(),
            seed: 0,
        }
    }

    /// What an adapter adds is multiplied by `alpha / rank`.
    #[must_use]
    pub fn alpha(mut self, alpha: impl Into<f64>) -> Self {
        self.alpha = alpha.into();
        self
    }

    /// Dropout of the adapters' inputs in training.
    #[must_use]
    pub fn dropout(mut self, rate: impl Into<f64>) -> Self {
        self.dropout = rate.into();
        self
    }

    /// The dense layers that get an adapter, by their names or the ends of them: `query`, `attention.output.dense`,
    /// `layer.0.attention.self.query`; `all-linear` is every dense layer of the body. In ModernBERT queries, keys and values come
    /// from one layer, `qkv` (`Wqkv` in its files), which `query`, `key` and `value` mean, too.
    #[must_use]
    pub fn targets<T: Into<String>>(mut self, targets: impl IntoIterator<Item = T>) -> Self {
        self.targets = targets.into_iter().map(Into::into).collect();
        self
    }

    /// The seed of the first values of the adapters.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The adapters for these layers.
    fn checked(self, layers: &[Candidate], base: String) -> Result<LoraConfig> {
        let refuse =
            |argument: &str, given: String, expects: &str| Err(bad(argument, given, expects));
        if !(self.alpha.is_finite() && self.alpha > 0.0) {
            return refuse("alpha", self.alpha.to_string(), "a finite number above 0");
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return refuse(
                "dropout",
                self.dropout.to_string(),
                "a rate from 0, below 1",
            );
        }
        if self.targets.is_empty() {
            return refuse(
                "targets",
                "[]".to_owned(),
                "at least one layer: `[\"query\", \"value\"]`",
            );
        }
        let mut modules = BTreeSet::new();
        let mut most = usize::MAX;
        for target in &self.targets {
            let meant: Vec<&Candidate> =
                layers.iter().filter(|it| it.is_meant_by(target)).collect();
            if meant.is_empty() {
                return Err(unknown_target(target, layers));
            }
            most = meant.iter().flat_map(|it| it.shape).fold(most, usize::min);
            modules.extend(meant.into_iter().map(|layer| layer.module.clone()));
        }
        let rank = self
            .rank
            .value()
            .and_then(|rank| usize::try_from(rank).ok());
        let Some(rank) = rank.filter(|rank| (1..=most).contains(rank)) else {
            let expects =
                format!("an integer from 1 to {most}, the smallest side of the layers' weights");
            return refuse("rank", self.rank.to_string(), &expects);
        };
        Ok(LoraConfig {
            rank,
            alpha: self.alpha,
            dropout: self.dropout,
            targets: self.targets,
            modules,
            seed: self.seed,
            base,
            trained: BTreeSet::new(),
        })
    }
}

/// SC0103 for an argument of the adapters.
fn bad(argument: &str, given: String, expects: &str) -> Box<Diagnostic> {
    let rule = InvalidArgumentValue {
        call: CALL.to_owned(),
        argument: argument.to_owned(),
        given,
        expects: expects.to_owned(),
        place: Place::call(CALL),
        replacement: None,
        arguments: Vec::new(),
    };
    rule.error()
}

/// SC0103 for a target that no layer has, with similar ones.
fn unknown_target(target: &str, layers: &[Candidate]) -> Box<Diagnostic> {
    let mut names: Vec<&str> = layers.iter().flat_map(Candidate::short_names).collect();
    names.push(lora::ALL_LINEAR);
    names.sort_unstable();
    names.dedup();
    let last: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| !name.contains('.'))
        .collect();
    let expects = format!("the name of a dense layer: {}", text::names(&last, 6));
    let mut finding = *bad("targets", format!("{target:?}"), &expects);
    for name in similar(target, names).iter().take(3) {
        finding = finding.suggest(name);
    }
    Box::new(finding)
}

/// What `add_lora` has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoraReceipt {
    /// The layers that have an adapter.
    pub layers: Vec<String>,
    /// R.
    pub rank: usize,
    /// The numbers that are trained: those of the adapters, and the head's.
    pub trained: usize,
    /// All numbers of the model, those of the adapters included.
    pub parameters: usize,
}

impl fmt::Display for LoraReceipt {
    /// `adapters of rank 8 in 24 layers; 297 988 of 109 779 980 parameters are trained (0.27 %)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = 100.0 * self.trained as f64 / self.parameters.max(1) as f64;
        write!(
            f,
            "adapters of rank {} in {}; {} of {} parameters are trained ({share:.2} %)",
            self.rank,
            text::count(self.layers.len(), "layer"),
            text::thousands(self.trained),
            text::thousands(self.parameters),
        )
    }
}

/// The methods of a model, for each network in this library, so that they are compiled here and not in every cell.
macro_rules! with_lora {
    ($($network:ty),*) => {$(
        impl ModelOf<$network> {
            /// Gives dense layers low-rank adapters, and freezes all variables but these and the head. Until the first step the
            /// model computes what it computed before, bit for bit. The adapters are placed by the model's strategy.
            ///
            /// # Errors
            /// SC0140 for a model that is compiled or has adapters; SC0103 for a rank, an `alpha` or a rate out of its
            /// range, and for a target that no layer has; SC0121 in a callback of the model's own run; SC0907 if a
            /// device does not take its copy.
            #[track_caller]
            pub fn add_lora(&self, lora: Lora) -> Result<LoraReceipt> {
                add(self, lora, Origin::current())
            }

            /// Adds to each weight what its adapter has learned, `(alpha / rank)·B·A`, and removes the adapters: the model is
            /// then an ordinary one, which `save_pretrained` writes as a whole. All its variables are trained, and it is to
            /// be compiled again.
            ///
            /// # Errors
            /// SC0140 for a model without adapters; SC0121 in a callback of the model's own run; SC0907 if a value cannot be
            /// read from its device.
            #[track_caller]
            pub fn merge_lora(&self) -> Result<()> {
                merge(self, Origin::current())
            }
        }
    )*};
}

with_lora!(
    SequenceClassifier,
    TokenClassifier,
    QuestionAnswerer,
    MaskedLm,
    MultipleChoice,
    SentenceEncoder
);

fn add<N>(model: &ModelOf<N>, lora: Lora, origin: Origin) -> Result<LoraReceipt>
where
    N: BertNetwork + Network<Files = BertFiles>,
{
    let mut state = model.free_state(CALL)?;
    let files = state.files.of::<BertFiles>();
    if files.config.lora.is_some() {
        return Err(LoraOutOfOrder::AddedTwice.error());
    }
    if state.compiled.is_some() {
        return Err(LoraOutOfOrder::AddedAfterCompile.error());
    }
    let network: N = typed(state.step.replicas.first());
    let layers = lora::candidates(&network, &files.config);
    let lora = lora.checked(&layers, files.checkpoint.clone())?;
    let receipt = (lora.rank, lora.modules.iter().cloned().collect());
    let mut config = files.config.clone();
    config.lora = Some(lora);
    let network = lora::with_adapters(&network, &config, HashMap::new());
    state.exchange_network(AnyNetwork::new(network), origin)?;
    state.files.of_mut::<BertFiles>().config = config;
    freeze_all_but_adapters::<N>(&mut state);
    let sizes = state
        .trainable()
        .map(|it| it.shape.iter().product::<usize>());
    let (rank, layers) = receipt;
    Ok(LoraReceipt {
        layers,
        rank,
        trained: sizes.sum(),
        parameters: state.num_parameters(),
    })
}

/// The network with its type.
fn typed<N: Network>(network: &AnyNetwork) -> N {
    let network = network.downcast_ref::<N>();
    network
        .expect("a model keeps the type of its network")
        .clone()
}

/// Only the adapters and the head are trained. The head is what is not the body of the checkpoint's family; what had no
/// values in the checkpoint belongs to it, as random numbers must not stay, and so does what was trained before the adapters
/// were saved.
pub(super) fn freeze_all_but_adapters<N>(state: &mut ModelState)
where
    N: BertNetwork + Network<Files = BertFiles>,
{
    let new = state.files.new_variables();
    let files = state.files.of_mut::<BertFiles>();
    let Some(mut adapters) = files.config.lora.take() else {
        return;
    };
    adapters
        .trained
        .extend(new.into_iter().map(|(name, _)| name));
    let config = &files.config;
    let is_trained = |name: &str| {
        !lora::is_of_body::<N>(name, config)
            || adapters.trained.contains(name)
            || adapters.has(name)
    };
    let records = state.step.replicas.records().iter();
    let frozen = records.filter(|record| !is_trained(&record.name));
    let frozen: HashSet<ParamId> = frozen.map(|record| record.param).collect();
    files.config.lora = Some(adapters);
    state.step.replicas.set_trainable(&frozen, false);
}

fn merge<N>(model: &ModelOf<N>, origin: Origin) -> Result<()>
where
    N: BertNetwork + Network<Files = BertFiles>,
{
    let mut state = model.free_state("merge_lora")?;
    let files = state.files.of::<BertFiles>();
    if files.config.lora.is_none() {
        return Err(LoraOutOfOrder::NothingToMerge.error());
    }
    let network: N = typed(state.settled()?.first());
    let merged = lora::merged(&network, &files.config).map_err(|reason| {
        let device = state.step.replicas.devices()[0].name.clone();
        BackendFailed { device, reason }.error()
    })?;
    state.exchange_network(AnyNetwork::new(merged), origin)?;
    state.files.of_mut::<BertFiles>().config.lora = None;
    let all: HashSet<ParamId> = state
        .step
        .replicas
        .records()
        .iter()
        .map(|it| it.param)
        .collect();
    state.step.replicas.set_trainable(&all, true);
    Ok(())
}
