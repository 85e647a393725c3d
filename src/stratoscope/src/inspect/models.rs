//! Models by layer and variable. A model is read through another handle of it, so that one that a running cell has is
//! readable, too. While a run trains it, the loop lends it between two optimizer steps ([`lender`]).

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use burn::tensor::TensorData;
use stratoscope_models::{Model, ModelLook, WeakModel, model_in};
use stratoscope_render::text;
use stratoscope_strategy::VariableRecord;
use stratoscope_wire::MimeBundle;

use super::data::HistoryView;
use super::numbers::Numbers;
use super::{Leaf, View};
use crate::display::{IntoBundle, plain};

/// How long the end of an optimizer step is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked whether the model is free.
const PERIOD: Duration = Duration::from_millis(1);
/// How long a run waits for those that read its model.
const LENT_FOR: Duration = Duration::from_secs(10);

/// Lets a debugger read the model of a run between two optimizer steps.
pub(crate) mod lender {
    use super::{Condvar, Instant, LENT_FOR, Mutex, PoisonError};

    /// How many threads want to read.
    static WAITING: Mutex<usize> = Mutex::new(0);
    static CHANGED: Condvar = Condvar::new();

    /// Whether somebody waits for a model.
    pub(crate) fn is_wanted() -> bool {
        *super::lock(&WAITING) > 0
    }

    /// Waits until nobody reads; called by the run, which has given its model away.
    pub(crate) fn lend() {
        let end = Instant::now() + LENT_FOR;
        let mut waiting = super::lock(&WAITING);
        while *waiting > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = CHANGED.wait_timeout(waiting, left);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A thread that waits for a model and reads it, until it is dropped.
    pub(super) struct Borrowing;

    impl Borrowing {
        pub(super) fn begin() -> Self {
            *super::lock(&WAITING) += 1;
            Self
        }
    }

    impl Drop for Borrowing {
        fn drop(&mut self) {
            *super::lock(&WAITING) -= 1;
            CHANGED.notify_all();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The model when it is free: at once, or between two optimizer steps of the run that trains it.
fn wait_for(model: &Model) -> Option<ModelLook> {
    if let Some(look) = model.look() {
        return Some(look);
    }
    let _borrowing = lender::Borrowing::begin();
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(look) = model.look() {
            return Some(look);
        }
        std::thread::sleep(PERIOD);
    }
    None
}

/// A model of a variable, and its variables as they were when the variable was stored.
struct Noted {
    model: WeakModel,
    line: String,
    records: Vec<VariableRecord>,
}

/// The models by the names of the notebook's variables, also of those that a running cell has.
static NOTED: Mutex<BTreeMap<String, Noted>> = Mutex::new(BTreeMap::new());

/// Notes the value of a variable, which may be a model.
pub(super) fn note(name: &str, value: &dyn std::any::Any) {
    let model = model_in(value);
    let mut noted = lock(&NOTED);
    match model {
        Some(model) => {
            // Once for each cell that has the model: its values are not touched.
            let (line, records) = model.outline().unwrap_or_default();
            let model = model.downgrade();
            let new = Noted {
                model,
                line,
                records,
            };
            noted.insert(name.to_owned(), new);
        }
        None => {
            noted.remove(name);
        }
    }
}

/// The names of the variables that hold models.
pub(super) fn names() -> Vec<String> {
    let noted = lock(&NOTED);
    let alive = noted
        .iter()
        .filter(|(_, noted)| noted.model.upgrade().is_some());
    alive.map(|(name, _)| name.clone()).collect()
}

/// The model in a variable.
pub(super) fn view(name: &str) -> Option<ModelView> {
    let noted = lock(&NOTED);
    let noted = noted.get(name)?;
    let model = noted.model.upgrade()?;
    Some(match model.outline() {
        Some(outline) => ModelView::seen(model, outline),
        None => {
            let line = format!("{} (in training)", noted.line);
            ModelView::seen(model, (line, noted.records.clone()))
        }
    })
}

/// A model, or the variables whose names begin with a prefix.
pub(crate) struct ModelView {
    model: Model,
    line: String,
    records: Vec<VariableRecord>,
    /// With the dot behind it; empty for the whole model.
    prefix: String,
    /// Whether a call trains it: then it has a history behind its layers.
    is_in_training: bool,
}

impl ModelView {
    pub(super) fn of(model: &Model) -> Self {
        let outline = model.outline();
        let outline = outline.unwrap_or_else(|| (format!("{model:?}"), Vec::new()));
        Self::seen(model.clone(), outline)
    }

    fn seen(model: Model, (line, records): (String, Vec<VariableRecord>)) -> Self {
        Self {
            is_in_training: model.is_in_training(),
            model,
            line,
            records,
            prefix: String::new(),
        }
    }

    /// The first parts of the names behind the prefix, in the order of the fields.
    fn parts(&self) -> Vec<&str> {
        let mut parts: Vec<&str> = Vec::new();
        for record in &self.records {
            let rest = record
                .name
                .strip_prefix(&self.prefix)
                .unwrap_or(&record.name);
            let part = rest.split('.').next().unwrap_or(rest);
            // Variables of one layer are beside one another.
            if parts.last() != Some(&part) && !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts
    }

    /// What a call that trains the model has measured so far.
    fn history(&self) -> Box<dyn View> {
        match wait_for(&self.model).and_then(|look| look.history) {
            Some(history) => Box::new(HistoryView(history)),
            None => Box::new(Leaf::new("(known between two optimizer steps)")),
        }
    }

    fn values(&self, record: &VariableRecord) -> Option<TensorData> {
        wait_for(&self.model)?.values(record)
    }
}

impl View for ModelView {
    fn line(&self) -> String {
        if self.prefix.is_empty() {
            return self.line.clone();
        }
        let numbers: usize = self
            .records
            .iter()
            .map(|it| it.shape.iter().product::<usize>())
            .sum();
        let variables = text::count(self.records.len(), "variable");
        format!("{variables}, {}", text::count(numbers, "parameter"))
    }

    fn named(&self) -> usize {
        self.parts().len() + usize::from(self.is_in_training)
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        let parts = self.parts();
        if self.is_in_training && position == parts.len() {
            return Some(("history".to_owned(), self.history()));
        }
        let part = *parts.get(position)?;
        let whole = format!("{}{part}", self.prefix);
        if let Some(record) = self.records.iter().find(|it| it.name == whole) {
            let numbers = Numbers::new(of_variable(record), record.shape.clone(), move || {
                self.values(record)
            });
            return Some((part.to_owned(), Box::new(numbers)));
        }
        let prefix = whole + ".";
        let of_part = self
            .records
            .iter()
            .filter(|it| it.name.starts_with(&prefix));
        let view = Self {
            model: self.model.clone(),
            line: String::new(),
            records: of_part.cloned().collect(),
            prefix,
            is_in_training: false,
        };
        Some((part.to_owned(), Box::new(view)))
    }

    fn rich(&self) -> MimeBundle {
        if !self.prefix.is_empty() {
            return plain(self.line());
        }
        if wait_for(&self.model).is_none() {
            return plain(self.line());
        }
        match self.model.placement() {
            Ok(report) => report.bundle(),
            Err(problem) => problem.bundle(),
        }
    }
}

/// `[384, 384] f32, Mirrored on 2 devices, frozen`
fn of_variable(record: &VariableRecord) -> String {
    let mut line = format!(
        "{:?} {}, {}",
        record.shape,
        record.dtype,
        record.kind.title()
    );
    if record.homes.len() > 1 {
        line += &format!(" on {}", text::count(record.homes.len(), "device"));
    }
    if !record.trainable {
        line += ", frozen";
    }
    line
}
