//! A run of `start!`: where it stands, and what the coming step will see and do. The batch, the gradients, the updates and
//! the activations are computed when they unfold, and not before.

use std::cell::OnceCell;

use stratoscope_diagnostics::Result;
use stratoscope_models::{
    BatchView, History, ModelOfRun, Run, RunReport, StopReason, TensorStatistics,
};
use stratoscope_render::text;
use stratoscope_wire::{InspectAnswer, MimeBundle, StandingRun};

use super::data::{HistoryView, Json};
use super::models::ModelView;
use super::variables;
use super::{Leaf, View};
use crate::display::{IntoBundle, html_and_plain, plain};

/// A run in a variable.
pub(crate) struct RunView<'a> {
    run: &'a Run,
}

/// The parts of a run, in the order in which they are listed.
const PARTS: [&str; 9] = [
    "position",
    "latest step",
    "batch",
    "gradients",
    "updates",
    "activations",
    "weights",
    "history",
    "model",
];

impl<'a> RunView<'a> {
    pub(crate) fn new(run: &'a Run) -> Self {
        Self { run }
    }

    fn part(&self, name: &str) -> Box<dyn View + 'a> {
        let run = self.run;
        let leaf = |of: Result<String>| Leaf::new(of.unwrap_or_else(|it| it.to_string()));
        match name {
            "position" => Box::new(leaf(run.report().map(|it| it.position.to_string()))),
            "latest step" => Box::new(leaf(run.report().map(|it| latest(&it)))),
            "batch" => Box::new(Coming::new("the examples of the coming step", || {
                run.batch()
            })),
            "gradients" => Box::new(Coming::new("of the coming step", || run.gradients())),
            "updates" => Box::new(Coming::new("of the coming step", || run.updates())),
            "activations" => Box::new(Coming::new("of the coming step", || run.activations("*"))),
            "weights" => Box::new(Coming::new("statistics by variable", || run.weights())),
            "history" => match run.history() {
                Ok(history) => Box::new(HistoryView::<History>(history)),
                Err(problem) => Box::new(Leaf::new(problem.to_string())),
            },
            _ => Box::new(ModelView::of(&run.model())),
        }
    }
}

impl View for RunView<'_> {
    fn line(&self) -> String {
        let shown = self.run.to_string();
        shown.lines().next().unwrap_or_default().to_owned()
    }

    fn named(&self) -> usize {
        PARTS.len()
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        let name = *PARTS.get(position)?;
        Some((name.to_owned(), self.part(name)))
    }

    fn rich(&self) -> MimeBundle {
        match self.run.report() {
            Ok(report) => html_and_plain(report.to_html(), report.to_plain()),
            Err(problem) => plain(problem.to_string()),
        }
    }
}

/// `step 13: loss 0.6931, rate 2e-5`
fn latest(report: &RunReport) -> String {
    let Some(latest) = report.history.steps.last() else {
        return "no step is made".to_owned();
    };
    let mut line = format!("step {}: loss {:.4}", latest.step, latest.loss);
    let record = serde_json::to_value(latest).unwrap_or_default();
    for (field, name) in [
        ("gradient_norm", "gradient norm"),
        ("learning_rate", "rate"),
    ] {
        if let Some(value) = record[field].as_f64() {
            line += &format!(", {name} {value:.3e}");
        }
    }
    line
}

/// What a value of looking into a run consists of.
trait Parts {
    fn named(&self) -> usize {
        0
    }
    fn indexed(&self) -> usize {
        0
    }
    fn part(&self, position: usize) -> Option<(String, Box<dyn View + '_>)>;
}

impl Parts for BatchView {
    fn indexed(&self) -> usize {
        self.len()
    }

    fn part(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        let example = self.examples.get(position)?;
        let pieces: Vec<&str> = example.pieces.iter().map(|it| it.text.as_str()).collect();
        let mut fields = serde_json::json!({
            "row": example.row, "text": example.text, "label": example.label, "predicted": example.predicted,
            "loss": example.loss, "probabilities": example.probabilities, "outputs": example.outputs,
            "micro-batch": example.micro_batch, "replica": example.replica,
        });
        match example.features.is_empty() {
            true => fields["word pieces"] = pieces.into(),
            false => fields["features"] = example.features.clone().into(),
        }
        Some((format!("[{position}]"), Box::new(Json::of(&fields))))
    }
}

impl Parts for TensorStatistics {
    fn named(&self) -> usize {
        self.len()
    }

    fn part(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        let row = self.iter().nth(position)?;
        let of = &row.statistics;
        let mut line = format!(
            "{:?}, norm {:.3e}, mean {:.3e}, min {:.3e}, max {:.3e}",
            row.shape, of.norm, of.mean, of.min, of.max
        );
        if let Some(ratio) = row.ratio() {
            line += &format!(", {ratio:.2e} of the weights");
        }
        let bad = of.nans + of.infinities;
        if bad > 0 {
            line += &format!(", {} not finite", text::thousands(bad as usize));
        }
        Some((row.name.clone(), Box::new(Leaf::new(line))))
    }
}

/// A value that is computed when it is opened.
struct Coming<'a, T> {
    line: &'static str,
    compute: Box<dyn Fn() -> Result<T> + 'a>,
    value: OnceCell<Result<T>>,
}

impl<'a, T> Coming<'a, T> {
    fn new(line: &'static str, compute: impl Fn() -> Result<T> + 'a) -> Self {
        Self {
            line,
            compute: Box::new(compute),
            value: OnceCell::new(),
        }
    }

    fn value(&self) -> &Result<T> {
        self.value.get_or_init(|| (self.compute)())
    }
}

impl<T: Parts + IntoBundle> View for Coming<'_, T> {
    fn line(&self) -> String {
        self.line.to_owned()
    }

    fn named(&self) -> usize {
        match self.value.get() {
            // One, so that it can be opened.
            None | Some(Err(_)) => 1,
            Some(Ok(value)) => value.named(),
        }
    }

    fn indexed(&self) -> usize {
        let value = self.value.get().and_then(|it| it.as_ref().ok());
        value.map_or(0, Parts::indexed)
    }

    fn open(&self) {
        self.value();
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        match self.value() {
            Ok(value) => value.part(position),
            Err(problem) if position == 0 => {
                Some(("error".to_owned(), Box::new(Leaf::new(problem.to_string()))))
            }
            Err(_) => None,
        }
    }

    fn rich(&self) -> MimeBundle {
        match self.value() {
            Ok(value) => value.bundle(),
            Err(problem) => problem.bundle(),
        }
    }
}

/// The runs in the variables that have steps left.
pub(super) fn standing() -> InspectAnswer {
    let mut runs = Vec::new();
    variables::each::<Run>(&mut |name, run| {
        // One that a callback has in its hands is not standing.
        if let Ok(report) = run.report()
            && !report.is_over
        {
            runs.push(stands(name, &report));
        }
    });
    runs.sort_by(|a, b| a.name.cmp(&b.name));
    InspectAnswer::Runs { runs }
}

fn stands(name: &str, report: &RunReport) -> StandingRun {
    let at = &report.position;
    let reason = report.stop.as_ref().map(|stop| &stop.reason);
    let is_interrupted = matches!(reason, Some(StopReason::Interrupted));
    let breakpoint = match reason {
        Some(StopReason::Breakpoint(hit)) => Some(hit.condition.clone()),
        _ => None,
    };
    let run = report.fork.as_ref().map_or("run", |fork| &fork.label);
    let step = match at.step < at.steps {
        true => format!("step {} of {}, not made yet", at.step + 1, at.steps),
        false => format!("the end, after step {}", at.step),
    };
    StandingRun {
        name: name.to_owned(),
        made: at.step,
        frames: vec![
            format!("{run} `{name}` of {}", report.model),
            format!("epoch {} of {}", (at.epoch + 1).min(at.epochs), at.epochs),
            format!("batch {} of {}", (at.batch + 1).min(at.batches), at.batches),
            step,
        ],
        stop: report
            .stop
            .as_ref()
            .map(|it| it.headline())
            .unwrap_or_default(),
        breakpoint,
        is_interrupted,
    }
}
