//! Looking into a run between two of its steps: `run.batch()`, `run.gradients()`, `run.attention(…)` and so on. The
//! run is only read, so that the step that follows has the bits that it has when nobody looked; a run that is over can
//! be looked at too, as far as there is something.

use stratoscope_diagnostics::Result;

use super::Run;
use stratoscope_arguments::context::interrupt::Listening;
use stratoscope_arguments::count::IntoCount;
use stratoscope_inspect::{Inspection, Ranking};

use stratoscope_report::inspection::{
    AttentionMap, BatchView, DataMap, LayerRatios, RankedExamples, TensorStatistics, UpdateRatios,
    Why,
};
use stratoscope_step::head::Head;
use stratoscope_step::prepare::in_memory_only;
use stratoscope_train::run_state::{ComingStep, Phase, RunState};
use stratoscope_train::state::ModelState;

/// Of which tensors statistics are wanted.
enum Tensors {
    Gradients,
    Weights,
    Updates,
    Moments,
    /// What layers put out, by a pattern of names.
    Activations(String),
}

impl Run {
    /// The examples of the coming step: texts, word pieces, mask, segments, labels, and predictions and losses as the
    /// training pass of that step will have them, with its dropout masks.
    ///
    /// # Errors
    /// SC0121 in a callback of this run; SC0520 if it is interrupted, SC0907 if a device fails.
    pub fn batch(&self) -> Result<BatchView> {
        self.look("batch", |look, _| look.batch())
    }

    /// The examples of the micro-batch in which the run stands within its coming step, and of the first one before the step;
    /// see [`batch`](Self::batch).
    ///
    /// # Errors
    /// As [`Self::batch`].
    pub fn micro_batch(&self) -> Result<BatchView> {
        let now = self.in_step().map_or(0, |it| it.micro_batch);
        self.look("micro_batch", |look, _| look.micro_batch(now))
    }

    /// Statistics of the gradients that the coming step will apply, before clipping: `run.gradients()?["layer.0"].norm`.
    ///
    /// # Errors
    /// As [`Self::batch`].
    pub fn gradients(&self) -> Result<TensorStatistics> {
        self.tensors(Tensors::Gradients)
    }

    /// Statistics of the weights.
    ///
    /// # Errors
    /// SC0121 in a callback of this run.
    pub fn weights(&self) -> Result<TensorStatistics> {
        self.tensors(Tensors::Weights)
    }

    /// Statistics of what the coming step will add to the weights, and how large it is beside them.
    ///
    /// # Errors
    /// As [`Self::batch`].
    pub fn updates(&self) -> Result<TensorStatistics> {
        self.tensors(Tensors::Updates)
    }

    /// Statistics of what the optimizer keeps beside each weight, such as Adam's means: `run.moments()?["Adam v of classifier.weight"]`.
    ///
    /// # Errors
    /// SC0121 in a callback of this run.
    pub fn moments(&self) -> Result<TensorStatistics> {
        self.tensors(Tensors::Moments)
    }

    /// The devices of the replicas, and how many examples of the coming step each has.
    ///
    /// # Errors
    /// SC0121 in a callback of this run.
    pub fn shares(&self) -> Result<Vec<(String, usize)>> {
        self.look("shares", |look, _| {
            let devices = look.step.replicas.devices().iter();
            let devices = devices.map(|device| device.name.clone());
            Ok(devices.zip(look.shares()).collect())
        })
    }

    /// Statistics of what layers put out for the examples of the coming step, with its dropout masks. `pattern` is a
    /// name, the end of one, or has `*` for any text: `"encoder.layer.3.*"`, `"*attention.output"`, `"dense_1"`.
    ///
    /// # Errors
    /// SC0105 for a pattern that nothing matches; else as [`Self::batch`].
    pub fn activations(&self, pattern: &str) -> Result<TensorStatistics> {
        self.tensors(Tensors::Activations(pattern.to_owned()))
    }

    /// How one head of one layer attends to the word pieces of an example of [`Self::batch`], all three counted from 0;
    /// without dropout.
    ///
    /// # Errors
    /// SC0103 for a layer, a head or an example that does not exist, and for a network without attention; else as
    /// [`Self::batch`].
    pub fn attention(
        &self,
        layer: impl IntoCount,
        head: impl IntoCount,
        example: impl IntoCount,
    ) -> Result<AttentionMap> {
        let layer = layer.into_count().at_least(0, "attention", "layer")?;
        let head = head.into_count().at_least(0, "attention", "head")?;
        let example = example.into_count().at_least(0, "attention", "example")?;
        let [layer, head, example] = [layer, head, example].map(in_memory);
        self.look("attention", |look, _| look.attention(layer, head, example))
    }

    /// The examples of the training data with the highest loss, without dropout.
    ///
    /// # Errors
    /// As [`Self::batch`].
    pub fn worst(&self, count: impl IntoCount) -> Result<RankedExamples> {
        let count = count.into_count().at_least(1, "worst", "count")?;
        self.ranked(Ranking::Worst, in_memory(count))
    }

    /// The examples of the training data with the lowest loss, without dropout.
    ///
    /// # Errors
    /// As [`Self::batch`].
    pub fn best(&self, count: impl IntoCount) -> Result<RankedExamples> {
        let count = count.into_count().at_least(1, "best", "count")?;
        self.ranked(Ranking::Best, in_memory(count))
    }

    /// How sure the training passes were of each label, and how much that changed over the epochs; with the examples
    /// whose label they contradict.
    ///
    /// # Errors
    /// SC0121 in a callback of this run.
    pub fn data_map(&self) -> Result<DataMap> {
        self.read("data_map", |model, run| {
            let network = model.step.replicas.first();
            let head = Head::of(&*model.files, network, Some(run.settings.loss));
            let log = &run.progress.examples;
            let Some(data) = run.data.train.held() else {
                let why = "what training says of each example takes memory for all of them; `run.worst(10)?` looks at a \
                           sample of a stream";
                return Err(in_memory_only("data_map", "run", "…", why));
            };
            let data = (data, run.row_changes.as_deref());
            Ok(stratoscope_inspect::data_map(log, data, &*model.files, head))
        })
    }

    /// Why the coming step has a value that is not finite: the step is replayed with taps after every operation, forward and
    /// backward, and the first such value is named, with its operation, layer and example, what it was computed from, the
    /// likely cause and what helps. Where all are finite but the loss has grown, the operation is named at which numbers
    /// begin to be larger than with the weights of an earlier snapshot.
    ///
    /// Operations are known in the networks of this library. In one of your own they are those that are written as
    /// [`operation!`](stratoscope_bert::operation), and [`tap`](stratoscope_bert::taps::tap) hands out a value; without either, the outputs and the
    /// gradients of the parameters are looked at.
    ///
    /// # Errors
    /// As [`Self::batch`].
    pub fn why(&self) -> Result<Why> {
        let why = self.look("why", |look, _| look.why())?;
        let is_over = self.read("why", |_, run| Ok(run.phase == Phase::Over))?;
        match why.first.is_some() || is_over {
            true => Ok(why),
            false => self.with_growth(why),
        }
    }

    /// How much each of the latest steps, at most 20, has changed the layers: the norm of the update as a share of that of
    /// the weights. On the CPU it is measured in the update itself, at every step.
    ///
    /// # Errors
    /// SC0121 in a callback of this run.
    pub fn update_ratios(&self) -> Result<UpdateRatios> {
        self.read("update_ratios", |_, run| {
            let steps = run.progress.recent.ratios();
            let mut layers: Vec<LayerRatios> = Vec::new();
            for (at, step) in steps.iter().enumerate() {
                for it in step.layers.iter() {
                    let known = layers.iter().position(|layer| layer.layer == it.layer);
                    let place = known.unwrap_or_else(|| {
                        layers.push(LayerRatios {
                            layer: it.layer.clone(),
                            ratios: vec![f64::NAN; steps.len()],
                        });
                        layers.len() - 1
                    });
                    layers[place].ratios[at] = it.ratio;
                }
            }
            let note = match (steps.is_empty(), run.settings.measures_updates) {
                (false, _) => None,
                (true, false) => Some("not measured: `run.measure_updates(false)?` was called"),
                (true, true) if run.progress.history.steps.is_empty() => {
                    Some("no step is made yet")
                }
                (true, true) => Some(
                    "measured in the update on the CPU only, and not read from a checkpoint; \
                     `run.updates()?` computes the coming one anywhere",
                ),
            };
            Ok(UpdateRatios {
                steps: steps.iter().map(|it| it.step).collect(),
                layers,
                notes: note.map(str::to_owned).into_iter().collect(),
            })
        })
    }

    /// Whether each step from now on measures what [`Self::update_ratios`] shows. It does unless `false` is said, since it
    /// costs less than a hundredth of a step; `tests/bench/bench.py --runs` compares.
    ///
    /// # Errors
    /// SC0521 for a run that is finished; SC0121 in a callback of this run.
    pub fn measure_updates(&self, is_measured: bool) -> Result<()> {
        self.with("measure_updates", |_, run| {
            run.base.measures_updates = is_measured;
            run.settings.measures_updates = is_measured;
            Ok(())
        })
    }

    /// Where numbers have grown since the snapshot with the lowest loss, if they have.
    fn with_growth(&self, why: Why) -> Result<Why> {
        let _listening = Listening::begin();
        self.with("why", |lease, run| {
            let lowest = lowest_loss(run, lease.step.steps);
            let coming = run.coming_step(lease)?;
            let (Some((step, loss)), Some(coming)) = (lowest, coming) else {
                return Ok(why);
            };
            let look = |model: &ModelState| run.inspection(model, &coming).reference();
            let Some(now) = look(lease)? else {
                return Ok(why);
            };
            let found = run.hooks.snapshots.nearest(step, |_| true);
            let Some(snapshot) =
                found.filter(|_| now.loss > stratoscope_inspect::WORTH_A_LOOK * loss)
            else {
                return Ok(why);
            };
            let held = lease.step.saved();
            lease.step.restore(&snapshot.state)?;
            let earlier = look(lease);
            lease.step.restore(&held)?;
            let Some(earlier) = earlier? else {
                return Ok(why);
            };
            let inspection = run.inspection(lease, &coming);
            Ok(inspection.with_growth(why, &now, &earlier))
        })
    }

    fn tensors(&self, tensors: Tensors) -> Result<TensorStatistics> {
        let call = match tensors {
            Tensors::Gradients => "gradients",
            Tensors::Weights => "weights",
            Tensors::Updates => "updates",
            Tensors::Moments => "moments",
            Tensors::Activations(_) => "activations",
        };
        self.look(call, |look, _| match &tensors {
            Tensors::Gradients => look.gradients(),
            Tensors::Weights => Ok(look.weights()),
            Tensors::Updates => look.updates(),
            Tensors::Moments => Ok(look.moments()),
            Tensors::Activations(pattern) => look.activations(pattern),
        })
    }

    fn ranked(&self, ranking: Ranking, count: usize) -> Result<RankedExamples> {
        let call = match ranking {
            Ranking::Worst => "worst",
            Ranking::Best => "best",
        };
        self.look(call, |look, run| {
            let batch_size = run.batch_plan.batch_size();
            let data = (&run.data.train, run.row_changes.as_deref());
            stratoscope_inspect::ranked(look, data, batch_size, (ranking, count))
        })
    }

    /// Looks at the coming step.
    fn look<T>(
        &self,
        call: &str,
        look: impl FnOnce(&Inspection<'_>, &RunState<'static>) -> Result<T>,
    ) -> Result<T> {
        let _listening = Listening::begin();
        self.read(call, |model: &ModelState, run| {
            let coming = run.coming_step(model)?.unwrap_or_else(|| ComingStep {
                number: model.step.batches,
                batches: Vec::new(),
                settings: run.settings.clone(),
            });
            let inspection = run.inspection(model, &coming);
            let replicas = &model.step.replicas;
            replicas.undisturbed(|| look(&inspection, run))
        })
    }
}

/// The earlier snapshot before the step with the lowest loss: how many steps had been made, and the loss.
fn lowest_loss(run: &RunState<'_>, made: u64) -> Option<(u64, f64)> {
    let earlier = run.hooks.snapshots.steps().filter(|step| *step < made);
    let loss = |step: u64| {
        let mut steps = run.progress.history.steps.iter();
        let after = steps.find(|record| record.step == step + 1)?;
        Some((step, after.loss))
    };
    earlier.filter_map(loss).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// A count of things in memory.
fn in_memory(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
