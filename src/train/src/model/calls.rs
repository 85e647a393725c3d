//! The calls of a [`Model`], compiled where its network is known.
//!
//! Generic code is compiled by the crate that uses it: every cell with a `fit!` would compile the whole
//! training loop, for seconds and without optimization. So the methods of a model go through a table
//! of functions, and a network of this project has its table in the library
//! ([`Network::calls`]).

use std::marker::PhantomData;
use std::ops::Bound;

use stratoscope_data::{Data, Dataset};
use stratoscope_diagnostics::Result;
use stratoscope_strategy::{Origin, PlacementReport};

use crate::arguments::{CompileArgs, EvaluateArgs, FitArgs};
use crate::count::Count;
use crate::inspect::Ranking;
use crate::model::Model;
use crate::model::by_hand::{Applied, Gradients};
use crate::model::predict::Predictions;
use crate::network::Network;
use crate::report::comparison::Comparison;
use crate::report::history::{Edit, Evaluation, History};
use crate::report::inspection::{
    AttentionMap, BatchView, DataMap, Hindsight, RankedExamples, TensorStatistics, UpdateRatios,
    Why,
};
use crate::report::receipt::CompileReceipt;
use crate::report::run_report::RunReport;
use crate::report::stop::Stop;
use crate::report::summary::Summary;
use crate::run::batch_plan::BatchChange;
use crate::run::compare::compare_here;
use crate::run::edits::Change;
use crate::run::epochs::Goal;
use crate::run::handle::Run;
use crate::run::handle::look::Tensors;
use crate::run::hindsight::Each;
use crate::run::rewind::Rewound;

type Start<N> = fn(&Model<N>, Data<'_>, FitArgs<'static>, Origin) -> Result<Run<N>>;
type Hindsee<N> = for<'e> fn(&Run<N>, (Bound<u64>, Bound<u64>), &mut Each<'e>) -> Result<Hindsight>;
type Fit<N> = for<'d, 'a> fn(&Model<N>, Data<'d>, FitArgs<'a>, Origin) -> Result<History>;

/// The calls that take long to compile.
pub struct Calls<N: Network> {
    pub(crate) compile: fn(&Model<N>, CompileArgs, Origin) -> Result<CompileReceipt>,
    pub(crate) fit: Fit<N>,
    pub(crate) start: Start<N>,
    pub(crate) advance: fn(&Run<N>, Goal) -> Result<Stop>,
    pub(crate) finish: fn(&Run<N>) -> Result<History>,
    pub(crate) report: fn(&Run<N>) -> Result<RunReport>,
    pub(crate) rewind: fn(&Run<N>, u64) -> Result<Rewound>,
    pub(crate) edit: fn(&Run<N>, Change) -> Result<Edit>,
    pub(crate) compare: for<'r> fn([&'r Run<N>; 2]) -> Result<Comparison>,
    pub(crate) skip_batch: fn(&Run<N>) -> Result<Edit>,
    pub(crate) fork: fn(&Run<N>, Origin) -> Result<Run<N>>,
    pub(crate) change_batches: fn(&Run<N>, BatchChange) -> Result<Edit>,
    pub(crate) drop_examples: fn(&Run<N>, Vec<Count>) -> Result<Edit>,
    pub(crate) keep_snapshots: fn(&Run<N>, u64, u64) -> Result<()>,
    pub(crate) batch: fn(&Run<N>) -> Result<BatchView>,
    pub(crate) tensors: fn(&Run<N>, Tensors) -> Result<TensorStatistics>,
    pub(crate) attention: fn(&Run<N>, [usize; 3]) -> Result<AttentionMap>,
    pub(crate) ranked: fn(&Run<N>, Ranking, usize) -> Result<RankedExamples>,
    pub(crate) update_ratios: fn(&Run<N>) -> Result<UpdateRatios>,
    pub(crate) measure_updates: fn(&Run<N>, bool) -> Result<()>,
    pub(crate) data_map: fn(&Run<N>) -> Result<DataMap>,
    pub(crate) why: fn(&Run<N>) -> Result<Why>,
    pub(crate) hindsight: Hindsee<N>,
    pub(crate) evaluate: fn(&Model<N>, Data<'_>, EvaluateArgs, Origin) -> Result<Evaluation>,
    pub(crate) predict: fn(&Model<N>, Dataset, Origin) -> Result<Predictions>,
    pub(crate) gradients: fn(&Model<N>, &Dataset, bool) -> Result<Gradients>,
    pub(crate) apply: fn(&Model<N>, Gradients) -> Result<Applied>,
    pub(crate) placement: fn(&Model<N>) -> Result<PlacementReport>,
    pub(crate) summary: fn(&Model<N>) -> Summary,
    // A model holds its calls, which alone would be a use of N in its own definition.
    network: PhantomData<fn() -> N>,
}

impl<N: Network> Calls<N> {
    /// The table, compiled by the crate that calls this.
    pub fn compiled_here() -> Self {
        Self {
            compile: Model::compile_from,
            fit: Model::fit_from,
            start: Model::start_from,
            advance: Run::advance_here,
            finish: Run::finish_here,
            report: Run::report_here,
            rewind: Run::rewind_here,
            edit: Run::edit_here,
            compare: compare_here,
            skip_batch: Run::skip_batch_here,
            fork: Run::fork_here,
            change_batches: Run::change_batches_here,
            drop_examples: Run::drop_examples_here,
            keep_snapshots: Run::keep_snapshots_here,
            batch: Run::batch_here,
            tensors: Run::tensors_here,
            attention: Run::attention_here,
            ranked: Run::ranked_here,
            update_ratios: Run::update_ratios_here,
            measure_updates: Run::measure_updates_here,
            data_map: Run::data_map_here,
            why: Run::why_here,
            hindsight: Run::hindsight_here,
            evaluate: Model::evaluate_from,
            predict: Model::predict_from,
            gradients: Model::gradients_in,
            apply: Model::apply_here,
            placement: Model::placement_here,
            summary: Model::summary_here,
            network: PhantomData,
        }
    }
}
