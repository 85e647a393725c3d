//! `run.influence(text, label, rows)`: because of which training rows the model answers a text as it does.
//!
//! For a handful of rows the answer is exact: the steps are made once more with the weight 0 for the row, from the nearest snapshot before
//! the row was first used, and loss and probability of the text are compared with those of the run. All batches, masks and rates stay what
//! they were. Which rows are worth that, `tracin` estimates for all of them.
//!
//! What a run is put aside and replayed with is [`hindsight`](super::hindsight)'s.

mod tracin;

use std::collections::{BTreeSet, HashMap};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use stratoscope_data::{Batch, Dataset, Encoded, IntoInput, Label};
use stratoscope_diagnostics::rules::{NoReplayFromSnapshot, RowsNotInRun};
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_evaluation::{Interval, interval_of};
use stratoscope_render::text;

use crate::count::{Count, IntoCount};
use crate::handle::Run;
use crate::hindsight::{Aside, advance, begin_at, put_aside};
use stratoscope_arguments::context::interrupt::Listening;
use stratoscope_diagnostics::problem;
use stratoscope_inspect::shown_text;
use stratoscope_metrics::metric::rank_correlation;
use stratoscope_network::Task;
use stratoscope_report::influence::{Influence, InfluentialRow};
use stratoscope_step::changed::StepChange;
use stratoscope_step::forward::{forward, interrupted};
use stratoscope_step::head::Head;
use stratoscope_step::prepare::in_memory_only;
use stratoscope_train::batch_plan::BatchPosition;
use stratoscope_train::lease::Lease;
use stratoscope_train::run_state::RunState;
use stratoscope_train::snapshot::Snapshot;
use stratoscope_train::state::ModelState;

/// The most rows that are left out, one after the other.
const MAX_REPLAYS: usize = 64;

/// Which rows are left out.
#[derive(Clone, Debug)]
pub enum Candidates {
    /// This number of rows, those with the largest absolute score.
    Best(Count),
    /// These rows.
    Rows(Vec<Count>),
}

/// What `run.influence` takes as rows: how many it should choose, or their indices.
#[diagnostic::on_unimplemented(
    message = "expected rows of the training data, got `{Self}`",
    label = "how many are chosen, such as 5, or their numbers, such as `[3, 14]`"
)]
pub trait IntoCandidates {
    /// The rows.
    fn into_candidates(self) -> Candidates;
}

impl<C: IntoCount> IntoCandidates for C {
    fn into_candidates(self) -> Candidates {
        Candidates::Best(self.into_count())
    }
}

impl<C: IntoCount, const N: usize> IntoCandidates for [C; N] {
    fn into_candidates(self) -> Candidates {
        Candidates::Rows(self.into_iter().map(IntoCount::into_count).collect())
    }
}

impl<C: IntoCount> IntoCandidates for Vec<C> {
    fn into_candidates(self) -> Candidates {
        Candidates::Rows(self.into_iter().map(IntoCount::into_count).collect())
    }
}

/// The text that is asked about, as a batch of one.
struct Question {
    text: String,
    label: String,
    class: usize,
    batch: Batch,
    /// The training data.
    trained: Encoded,
}

/// What the model makes of the question.
#[derive(Clone, Copy, Debug)]
struct Answer {
    loss: f64,
    probability: f64,
}

impl Run {
    /// What training rows have changed for a text: the loss and the probability of `label`, without dropout, by this run and by a run
    /// without the row. `rows` is a list of rows, or their number: then those with the largest score by TracIn are taken. For each row
    /// the steps since a snapshot are made once more with the weight 0 for the row. The run stands afterwards where it stood, and on the
    /// CPU the numbers are exact.
    ///
    /// # Errors
    /// SC0741 for rows that the run does not train on; SC0742 for a run without steps or without a snapshot; SC0103 for
    /// a label that the model does not have, for more than 64 rows, for a stream, and for a model that does not answer one class; SC0520 if
    /// it is interrupted; SC0521 for a run that is finished; SC0121 in a callback of this run; SC0907 if a device fails.
    pub fn influence(
        &self,
        text: impl IntoInput,
        label: impl AsRef<str>,
        rows: impl IntoCandidates,
    ) -> Result<Influence> {
        let candidates = rows.into_candidates();
        let _listening = Listening::begin();
        self.with("influence", |lease, run| {
            let question = question(lease, run, text, label.as_ref())?;
            let rows = known_rows(run, &candidates)?;
            if lease.step.steps == 0 || run.hooks.snapshots.steps().next().is_none() {
                let snapshots = run.hooks.snapshots.in_words();
                let rule = NoReplayFromSnapshot {
                    call: "influence".to_owned(),
                    made: lease.step.steps,
                    snapshots: snapshots.unwrap_or_else(|| "none".to_owned()),
                };
                return Err(rule.error());
            }
            influence(lease, run, &question, rows)
        })
    }
}

/// The text with its label, as the model reads it.
fn question(
    state: &ModelState,
    run: &RunState<'static>,
    text: impl IntoInput,
    label: &str,
) -> Result<Question> {
    let network = state.step.replicas.first();
    let head = Head::of(&*state.files, network, Some(run.settings.loss));
    let bad = |argument: &str, given: String, expects: &str| -> Box<Diagnostic> {
        Box::new(problem::bad_value("influence", argument, given, expects))
    };
    let Some(trained) = run.data.train.held() else {
        let why = "TracIn reads all rows at several snapshots";
        return Err(in_memory_only("influence", "run", "…", why));
    };
    if !matches!(head, Head::Classes { .. }) || state.files.task() != Task::Example {
        let name = state.files.model_name().to_owned();
        return Err(bad(
            "run",
            name,
            "the run of a model that answers one class for each text",
        ));
    }
    let mut data = Dataset::of_inputs([text], "influence")?;
    let names = head.label_names(&*state.files);
    let Some(class) = names.iter().position(|name| name == label) else {
        let expects = format!("a label of the model: {}", text::names(&names, 8));
        return Err(bad("label", format!("\"{label}\""), &expects));
    };
    data.examples[0].label = Some(Label::Class(class));
    data.label_names.clone_from(&names);
    let encoded = data.tokenize(state.files.tokenizer(), trained.max_length())?;
    let batch = encoded.batch(1)?.next().ok_or_else(|| {
        bad(
            "text",
            "no token".to_owned(),
            "a text that the model can read",
        )
    })?;
    Ok(Question {
        text: data.examples[0].texts(),
        label: label.to_owned(),
        class,
        batch,
        trained: trained.clone(),
    })
}

/// The rows to be chosen from, and how many.
struct Rows {
    /// `None`: all that the run trains on.
    given: Option<Vec<usize>>,
    count: usize,
}

fn known_rows(run: &RunState<'static>, candidates: &Candidates) -> Result<Rows> {
    let known = run.data.train.len();
    let dropped = run.batch_plan.dropped();
    let too_many = |count: u64| {
        let expects = format!("at most {MAX_REPLAYS}: the steps are made once more for each");
        Box::new(problem::bad_value("influence", "rows", count, expects))
    };
    let rows = match candidates {
        Candidates::Best(count) => {
            let count = count.at_least(1, "influence", "rows")?;
            if count > MAX_REPLAYS as u64 {
                return Err(too_many(count));
            }
            return Ok(Rows {
                given: None,
                count: usize::try_from(count).unwrap_or(MAX_REPLAYS),
            });
        }
        Candidates::Rows(rows) => rows,
    };
    let row = |count: &Count| {
        let row = count.value().and_then(|row| usize::try_from(row).ok());
        row.filter(|row| *row < known && !dropped.contains(row))
    };
    let unknown = rows.iter().filter(|count| row(count).is_none());
    let unknown: Vec<String> = unknown.map(Count::to_string).collect();
    if !unknown.is_empty() || rows.is_empty() {
        return Err(RowsNotInRun {
            unknown,
            rows: known,
        }
        .error());
    }
    let given: BTreeSet<usize> = rows.iter().filter_map(row).collect();
    if given.len() > MAX_REPLAYS {
        return Err(too_many(given.len() as u64));
    }
    Ok(Rows {
        count: given.len(),
        given: Some(given.into_iter().collect()),
    })
}

fn influence(
    lease: &mut Lease<'_>,
    run: &mut RunState<'static>,
    question: &Question,
    Rows { given, count }: Rows,
) -> Result<Influence> {
    let answer = answered(lease, run, question)?;
    let snapshots: Vec<Snapshot> = run.hooks.snapshots.all().cloned().collect();
    let data = &question.trained;
    let left_out: BTreeSet<usize> = match &given {
        Some(rows) => (0..data.len()).filter(|row| !rows.contains(row)).collect(),
        None => run.batch_plan.dropped().clone(),
    };
    put_aside(lease, run, |lease, run, aside| {
        let scores = tracin::scores(lease, run, &snapshots, aside, question, (data, &left_out))?;
        let chosen: Vec<(usize, f64)> = scores.rows.iter().take(count).copied().collect();
        let first = first_uses(run, aside, &chosen)?;
        let mut work = Work::begin(
            ("replaying without a row", "replayed"),
            chosen.len(),
            Unit::Things("row"),
        );
        let (mut rows, mut late) = (Vec::new(), Vec::new());
        for (done, &(row, score)) in chosen.iter().enumerate() {
            work.reached(done)?;
            let used = first.get(&row).copied();
            let begin = used.map(|used| begin_for(&snapshots, used));
            let without = match begin {
                Some((snapshot, is_late)) => {
                    late.extend(is_late.then_some(row));
                    replayed(lease, run, aside, (snapshot, row))?;
                    answered(lease, run, question)?
                }
                None => answer,
            };
            let (text, label) = shown(lease, run, data, row);
            rows.push(InfluentialRow {
                row,
                text,
                label,
                score,
                loss_change: without.loss - answer.loss,
                probability_change: without.probability - answer.probability,
                from: begin.map(|(snapshot, _)| snapshot.state.steps),
            });
        }
        work.finished();
        Ok(Influence {
            text: question.text.clone(),
            label: question.label.clone(),
            loss: answer.loss,
            probability: answer.probability,
            step: aside.at.state.steps,
            agreement: agreement(&rows)?,
            notes: notes(&scores, &rows, &late),
            rows,
            snapshots: scores.snapshots,
            scored: scores.rows.len(),
        })
    })
}

/// Loss and probability of the question by the weights that the model has now.
fn answered(state: &ModelState, run: &RunState<'static>, question: &Question) -> Result<Answer> {
    let replicas = state.settled()?;
    let precision = state.step.policy.precision();
    let loss = Some(run.settings.loss);
    let Some(parts) = forward(&replicas, &question.batch, loss, precision)? else {
        return Err(interrupted("influence", 0, 1));
    };
    let head = Head::of(&*state.files, replicas.first(), loss);
    let own = parts.first().map(|(_, own)| own);
    let probabilities = own.map(|own| head.probabilities(&own.outputs));
    let probability = probabilities.and_then(|it| it.get(question.class).copied());
    Ok(Answer {
        loss: own.map_or(f64::NAN, |own| own.loss),
        probability: probability.unwrap_or(f64::NAN),
    })
}

/// The first batch of each row before the place where the run stands; none for a row that no step has used.
fn first_uses(
    run: &RunState<'static>,
    aside: &Aside,
    chosen: &[(usize, f64)],
) -> Result<HashMap<usize, BatchPosition>> {
    let here = BatchPosition {
        epoch: aside.at.progress.epoch,
        batch: aside.at.progress.batch,
    };
    let mut first = HashMap::new();
    'epochs: for epoch in 0..=here.epoch {
        for (batch, examples) in (0..).zip(run.batch_plan.batches_from(epoch, 0)?) {
            let position = BatchPosition { epoch, batch };
            if position >= here || first.len() == chosen.len() {
                break 'epochs;
            }
            for row in examples?.rows {
                if chosen.iter().any(|it| it.0 == row) {
                    first.entry(row).or_insert(position);
                }
            }
        }
    }
    Ok(first)
}

/// The latest snapshot before a batch, and whether there is none: then the first snapshot, so that earlier uses stay.
fn begin_for(snapshots: &[Snapshot], used: BatchPosition) -> (&Snapshot, bool) {
    let before = |it: &&Snapshot| {
        let at = BatchPosition {
            epoch: it.progress.epoch,
            batch: it.progress.batch,
        };
        at <= used
    };
    match snapshots.iter().rev().find(before) {
        Some(snapshot) => (snapshot, false),
        None => (&snapshots[0], true),
    }
}

/// Makes the steps from a snapshot to where the run stood, with the weight 0 for a row.
fn replayed(
    lease: &mut Lease<'_>,
    run: &mut RunState<'static>,
    aside: &Aside,
    (snapshot, row): (&Snapshot, usize),
) -> Result<()> {
    run.without_row = Some(Arc::new(StepChange {
        weights: vec![(row, 0.0)],
        ..StepChange::default()
    }));
    let done = panic::catch_unwind(AssertUnwindSafe(|| {
        let mut made = begin_at(lease, run, snapshot, aside)?;
        while let Some(dated) = aside.edits.get(made) {
            advance(lease, run, dated.step, "influence")?;
            run.make(lease, &dated.change)?;
            made += 1;
        }
        advance(lease, run, aside.at.state.steps, "influence")
    }));
    run.without_row = None;
    done.unwrap_or_else(|panic| panic::resume_unwind(panic))
}

/// The rank correlation of scores and changes of the loss.
fn agreement(rows: &[InfluentialRow]) -> Result<Option<Interval>> {
    /// Of two rows it is 1 or −1.
    const MIN_ROWS: usize = 3;
    if rows.len() < MIN_ROWS {
        return Ok(None);
    }
    interval_of(rows.len(), |own| {
        let pairs = own.iter().map(|&at| (rows[at].score, rows[at].loss_change));
        let pairs: Vec<(f64, f64)> = pairs.collect();
        rank_correlation(&pairs).unwrap_or(f64::NAN)
    })
}

/// The text of a row, and the label that it has in the run now.
fn shown(
    state: &ModelState,
    run: &RunState<'static>,
    data: &Encoded,
    row: usize,
) -> (String, String) {
    let found = (0..data.len()).find_map(|at| data.get(at).filter(|it| it.index == row));
    let Some(example) = found else {
        return (String::new(), String::new());
    };
    let names = state.files.label_names();
    let changed = run.row_changes.as_ref().and_then(|it| it.label(row));
    let label = match changed.as_ref().or(example.label.as_ref()) {
        Some(Label::Class(class)) => names.get(*class).cloned(),
        _ => None,
    };
    (
        shown_text(&*state.files, example),
        label.unwrap_or_default(),
    )
}

fn notes(scores: &tracin::Scores, rows: &[InfluentialRow], late: &[usize]) -> Vec<String> {
    let mut notes = Vec::new();
    if scores.sampled < scores.total {
        notes.push(format!(
            "a random sample of {} of {} has scores",
            text::thousands(scores.sampled),
            text::count(scores.total, "row")
        ));
    }
    let list = |rows: &[usize]| {
        let rows: Vec<String> = rows.iter().map(usize::to_string).collect();
        text::names(&rows, 8)
    };
    let unused: Vec<usize> = rows
        .iter()
        .filter(|it| it.from.is_none())
        .map(|it| it.row)
        .collect();
    if !unused.is_empty() {
        notes.push(format!("no step has used {}", list(&unused)));
    }
    if !late.is_empty() {
        notes.push(format!(
            "the first snapshot is after the first use of {}: what they changed before it stays",
            list(late)
        ));
    }
    notes
}
