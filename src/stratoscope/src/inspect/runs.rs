//! A run of `start!`: where it stands, and what the coming step will see and do. The batch, the gradients, the updates and
//! the activations are computed when they unfold, and not before.

use std::cell::OnceCell;

use stratoscope_diagnostics::Result;
use stratoscope_models::{
    BatchView, History, InStep, ModelOfRun, Place, Run, RunReport, Statistics, StopReason,
    TensorStatistics,
};
use stratoscope_render::text;
use stratoscope_wire::{InspectAnswer, MimeBundle, RunFrame, StandingRun};

use super::data::{HistoryView, Json};
use super::layers::{ComputedView, LayerView};
use super::models::ModelView;
use super::variables;
use super::{Leaf, View};
use crate::display::{IntoBundle, html_and_plain, plain};

/// A run in a variable.
pub(crate) struct RunView<'a> {
    run: &'a Run,
}

/// The parts of a run, in the order in which they are listed.
const PARTS: [&str; 14] = [
    "position",
    "latest step",
    "batch",
    "gradients",
    "updates",
    "activations",
    "weights",
    "optimizer",
    "replicas",
    "history",
    "model",
    // Those of a run that stands at a layer of its coming step.
    MICRO_BATCH,
    LAYER,
    COMPUTED,
];
const MICRO_BATCH: &str = "micro-batch";
const LAYER: &str = "layer";
const COMPUTED: &str = "computed";
/// The parts that every run has.
const ALWAYS: usize = 11;

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
            "optimizer" => {
                let line = "what it keeps for each weight";
                Box::new(Coming::new(line, || run.moments()))
            }
            "replicas" => match run.shares() {
                Ok(shares) => Box::new(Replicas(shares)),
                Err(problem) => Box::new(Leaf::new(problem.to_string())),
            },
            "history" => match run.history() {
                Ok(history) => Box::new(HistoryView::<History>(history)),
                Err(problem) => Box::new(Leaf::new(problem.to_string())),
            },
            MICRO_BATCH => Box::new(Coming::new("the examples of this micro-batch", || {
                run.micro_batch()
            })),
            LAYER | COMPUTED => match run.in_step() {
                Some(place) if name == LAYER => Box::new(LayerView(place)),
                Some(place) => Box::new(ComputedView(place)),
                None => Box::new(Leaf::new("the run stands before its coming step")),
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
        match self.run.in_step() {
            Some(_) => PARTS.len(),
            None => ALWAYS,
        }
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

/// The replicas of a run: device, and examples of the coming step.
struct Replicas(Vec<(String, usize)>);

impl View for Replicas {
    fn line(&self) -> String {
        text::count(self.0.len(), "device")
    }

    fn indexed(&self) -> usize {
        self.0.len()
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        let (device, examples) = self.0.get(position)?;
        let examples = text::count(*examples, "example");
        let line = format!("{device}, {examples} of the coming step");
        Some((format!("[{position}]"), Box::new(Leaf::new(line))))
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
pub(super) trait Parts {
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
        let mut line = numbers(&row.shape, &row.statistics);
        if let Some(ratio) = row.ratio() {
            line += &format!(", {ratio:.2e} of the weights");
        }
        Some((row.name.clone(), Box::new(Leaf::new(line))))
    }
}

/// `[8, 384], norm 1.234e0, mean 1.2e-3, min -1.000e0, max 2.000e0`
pub(super) fn numbers(shape: &[usize], of: &Statistics) -> String {
    let mut line = format!(
        "{shape:?}, norm {:.3e}, mean {:.3e}, min {:.3e}, max {:.3e}",
        of.norm, of.mean, of.min, of.max
    );
    let bad = of.nans + of.infinities;
    if bad > 0 {
        line += &format!(", {} not finite", text::thousands(bad as usize));
    }
    line
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
            runs.push(stands(name, &report, run.in_step().as_ref()));
        }
    });
    runs.sort_by(|a, b| a.name.cmp(&b.name));
    InspectAnswer::Runs { runs }
}

/// What is under way: frames, and the text in which they have their lines. It is the same at every step, so that a front end
/// may keep it.
#[derive(Default)]
struct Stack {
    frames: Vec<RunFrame>,
    listing: Vec<String>,
}

impl Stack {
    /// A frame within those before, on a line of its own.
    fn enter(&mut self, name: String, line: &str) {
        self.list(line);
        self.stand(name, None, self.listing.len());
    }

    /// A line within the frames.
    fn list(&mut self, text: &str) {
        let indent = "    ".repeat(self.frames.len());
        self.listing.push(format!("{indent}{text}"));
    }

    /// A frame on a line. `part`: the part of the run that it shows.
    fn stand(&mut self, name: String, part: Option<&str>, line: usize) {
        let position = |part: &str| PARTS.iter().position(|it| *it == part);
        let part = part.and_then(|part| Some((part.to_owned(), position(part)?)));
        self.frames.push(RunFrame { name, line, part });
    }

    /// The micro-batch, its layers, and the one at which the run stands.
    fn enter_step(&mut self, inside: &InStep) {
        self.list("each micro-batch");
        let micro_batch = self.listing.len();
        self.stand(
            inside.micro_batch_in_words(),
            Some(MICRO_BATCH),
            micro_batch,
        );
        for pass in inside.passes.iter() {
            self.list(&pass.to_string());
        }
        let steps = self.frames.len() - 1;
        self.listing
            .push("    ".repeat(steps) + "the update of the weights");
        let line = match &inside.place {
            Place::After(at) => micro_batch + 1 + at,
            _ => self.listing.len(),
        };
        self.stand(inside.place_in_words(), Some(LAYER), line);
    }
}

fn stands(name: &str, report: &RunReport, inside: Option<&InStep>) -> StandingRun {
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
    let mut stack = Stack::default();
    stack.enter(format!("{run} `{name}` of {}", report.model), "run");
    let epoch = format!("epoch {} of {}", (at.epoch + 1).min(at.epochs), at.epochs);
    stack.enter(epoch, "each epoch");
    let batch = format!("batch {} of {}", (at.batch + 1).min(at.batches), at.batches);
    stack.enter(batch, "each batch");
    stack.enter(step, "each step");
    match inside {
        Some(inside) => stack.enter_step(inside),
        // Which layers there are is known within a step only.
        None => stack.listing.clear(),
    }
    StandingRun {
        name: name.to_owned(),
        made: at.step,
        frames: stack.frames,
        is_in_step: inside.is_some(),
        listing: stack.listing,
        stop: report
            .stop
            .as_ref()
            .map(|it| it.headline())
            .unwrap_or_default(),
        breakpoint,
        is_interrupted,
    }
}
