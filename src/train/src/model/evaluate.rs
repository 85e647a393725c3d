//! `evaluate!(model, data, …)`: loss and metrics without dropout, the batches split over the replicas as
//! in training. Also what `fit` validates with.

use std::time::Instant;

use burn::tensor::{Device, Tensor};
use stratoscope_bert::Mode;
use stratoscope_bert::ops::Precision;
use stratoscope_data::{Batch, Dataset, Encoded};
use stratoscope_diagnostics::rules::{BackendFailed, Interrupted, NoLoss, NotCompiled};
use stratoscope_diagnostics::{Diagnostic, Place, Result, Rule};
use stratoscope_render::text;
use stratoscope_strategy::{Origin, ReplicaId, Replicas};

use crate::arguments::EvaluateArgs;
use crate::context::events::{next_run, observer_of_a_run};
use crate::context::interrupt::{self, Listening};
use crate::context::warnings;
use crate::loss::Loss;
use crate::metric::{Metric, Tallies, Tally};
use crate::model::Model;
use crate::network::{Files, Network};
use crate::prepare;
use crate::report::history::{Evaluation, Measured};
use crate::run::watch::new_head;

/// Batches made ahead of the one that is computed.
pub(crate) const PREFETCHED: usize = 2;

impl<N: Network> Model<N> {
    /// Loss and metrics of a data set, without dropout, as means over its examples.
    ///
    /// # Errors
    /// SC0112 for a model that was not compiled, SC0113 without a loss, SC0520 if it is interrupted;
    /// what is wrong with the data.
    #[track_caller]
    pub fn evaluate(&self, data: &Dataset, args: EvaluateArgs) -> Result<Evaluation> {
        (N::calls().evaluate)(self, data, args, Origin::current())
    }

    pub(crate) fn evaluate_from(
        &self,
        data: &Dataset,
        args: EvaluateArgs,
        origin: Origin,
    ) -> Result<Evaluation> {
        warnings::begin_call();
        let plan = args.resolve()?;
        let _listening = Listening::begin();
        let mut state = self.state();
        if state.compiled.is_some() {
            state.ready_for(data, "evaluate", origin)?;
        }
        let Some(compiled) = &state.compiled else {
            return Err(NotCompiled {
                call: "evaluate".to_owned(),
            }
            .error());
        };
        let Some(loss) = compiled.loss else {
            let mut told = NoLoss.diagnostic();
            told.labels
                .iter_mut()
                .for_each(|label| label.place = Place::model("evaluate"));
            return Err(Box::new(told));
        };
        let first;
        let data = match plan.steps {
            Some(batches) => {
                first = data.take(batches.saturating_mul(plan.batch_size));
                &first
            }
            None => data,
        };
        let encoded = prepare::encode(
            &state.files,
            &state.head_written(),
            data,
            plan.max_length,
            "evaluate",
        )?;
        new_head(&state, "evaluate")?;
        let classes = state.files.classes();
        let metrics = &compiled.metrics;
        let observer = observer_of_a_run(plan.verbose);
        let (run, total) = (next_run(), encoded.len());
        let tell = |done: usize| observer.evaluated(run, done, total);
        let asked = Asked {
            loss,
            metrics,
            classes,
            precision: state.policy.precision(),
        };
        let replicas = state.settled()?;
        on_replicas(&replicas, &encoded, plan.batch_size, asked, &tell)
    }
}

/// What a model is measured by.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub loss: Loss,
    pub metrics: &'a [Metric],
    /// The outputs that are classes.
    pub classes: Option<usize>,
    /// What its layers compute in.
    pub precision: Precision,
}

/// Loss and metrics of tokenized data. `tell` hears how many examples are done.
///
/// # Errors
/// SC0520 if it is interrupted, SC0907 if a device fails.
pub(crate) fn on_replicas<N: Network>(
    replicas: &Replicas<N>,
    data: &Encoded,
    batch_size: usize,
    asked: Asked<'_>,
    tell: &dyn Fn(usize),
) -> Result<Evaluation> {
    let Asked {
        loss,
        metrics,
        classes,
        precision,
    } = asked;
    let start = Instant::now();
    let strategy = replicas.strategy();
    let empty = tally(classes, Some(loss), metrics);
    let mut tallies = Tallies::new(empty, strategy, Origin::default());
    let (mut sum, mut examples) = (0.0, 0);
    for batch in data.batch(batch_size)?.prefetch(PREFETCHED) {
        if examples > 0 && interrupt::requested() {
            return Err(interrupted("evaluate", examples, data.len()));
        }
        // Replicas that sit a batch out are the last ones.
        let answers = answers(replicas, &batch, Some(loss), precision)?;
        let Some(answers) = answers.map(Vec::into_iter) else {
            return Err(interrupted("evaluate", examples, data.len()));
        };
        for (replica, (part, answer)) in answers.enumerate() {
            tallies.add(replica, &part.labels, &answer.outputs);
            sum += answer.loss;
            examples += part.size();
        }
        tell(examples);
    }
    let tally = tallies.read();
    Ok(Evaluation {
        loss: sum / examples as f64,
        metrics: measured(metrics, &tally),
        examples,
        predictions: tally.predictions(),
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// What a network answers to a part of a batch.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Before any softmax, row-major [B, C].
    pub outputs: Vec<f32>,
    /// The sum of the losses of its examples; 0 where none was asked for.
    pub loss: f64,
}

/// SC0520: a call that has one whole result was interrupted.
pub(crate) fn interrupted(call: &str, done: usize, total: usize) -> Box<Diagnostic> {
    Interrupted {
        work: format!("`{call}`"),
        reached: format!(
            "{} of {}",
            text::thousands(done),
            text::count(total, "example")
        ),
    }
    .error()
}

/// The answers of the replicas to their parts of a batch, without dropout and without gradients. `None`
/// if it was interrupted on the way.
pub(crate) fn answers<N: Network>(
    replicas: &Replicas<N>,
    batch: &Batch,
    loss: Option<Loss>,
    precision: Precision,
) -> Result<Option<Vec<(Batch, Answer)>>> {
    let devices: Vec<Device> = replicas
        .devices()
        .iter()
        .map(|device| device.burn.clone())
        .collect();
    let stop = interrupt::at_once();
    let given_up = stop.clone();
    let answer = move |ReplicaId(index): ReplicaId, network: &N, part: Option<Batch>| {
        let part = part?;
        let forward = || network.valid().logits(&part, Mode::Eval, &devices[index]);
        let logits = stop.during(|| precision.during(forward));
        if stop.is_given_up() {
            return None;
        }
        let loss = loss.map(|loss| loss.sum(logits.clone(), &part.labels));
        Some(read(loss, logits).map(|answer| (part, answer)))
    };
    let answers = replicas.for_each_replica(parts(batch, replicas.len()), answer)?;
    if given_up.is_given_up() {
        return Ok(None);
    }
    let device = replicas.devices()[0].name.as_str();
    let answers = answers.into_iter().flatten();
    let answers = answers.map(|answer| answer.map_err(|reason| failed(device, &reason)));
    answers.collect::<Result<_>>().map(Some)
}

/// The batch's parts, one per replica; none for replicas that sit it out.
pub(crate) fn parts(batch: &Batch, replicas: usize) -> Vec<Option<Batch>> {
    let mut parts: Vec<Option<Batch>> = batch.split(replicas).into_iter().map(Some).collect();
    parts.resize_with(replicas, || None);
    parts
}

/// Reads loss and outputs from their device, in one transfer.
pub(crate) fn read(
    loss: Option<Tensor<1>>,
    logits: Tensor<2>,
) -> std::result::Result<Answer, String> {
    let count = logits.shape().num_elements();
    let outputs: Tensor<1> = logits.reshape([count]);
    let both = match &loss {
        Some(loss) => Tensor::cat(vec![loss.clone(), outputs], 0),
        None => outputs,
    };
    let data = both.try_into_data().map_err(|error| error.to_string())?;
    let mut values = data.iter::<f32>();
    let loss = match loss {
        Some(_) => values.next().map_or(f64::NAN, f64::from),
        None => 0.0,
    };
    Ok(Answer {
        outputs: values.collect(),
        loss,
    })
}

/// SC0907: a device failed while it computed.
pub(crate) fn failed(device: &str, reason: &str) -> Box<Diagnostic> {
    BackendFailed {
        device: device.to_owned(),
        reason: reason.to_owned(),
    }
    .error()
}

/// An empty tally of what metrics need, for a head under a loss.
pub(crate) fn tally(classes: Option<usize>, loss: Option<Loss>, metrics: &[Metric]) -> Tally {
    let tally = match (classes, loss.and_then(|loss| loss.threshold())) {
        (Some(classes), _) => Tally::of_classes(classes),
        (None, Some(threshold)) => Tally::of_two_classes_by_one_output(threshold),
        (None, None) => Tally::of_numbers(),
    };
    let of_logits = loss.is_none_or(|loss| loss.from_logits() != Some(false));
    tally.measuring(metrics, of_logits)
}

/// The values of metrics.
pub(crate) fn measured(metrics: &[Metric], tally: &Tally) -> Vec<Measured> {
    let measure = |metric: &Metric| Measured {
        name: metric.name(),
        value: metric.value(tally),
    };
    metrics.iter().map(measure).collect()
}
