//! The output of training: one table per `fit!`, updated in place, and warnings as cards. In a terminal, one line per
//! epoch.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use stratoscope_diagnostics::{Diagnostic, work as long_work};
use stratoscope_models::events::{self, Advanced, EpochEnded, FitStarted, Observer, RunCommand};
use stratoscope_models::html::escape;
use stratoscope_models::requests::Answer;
use stratoscope_models::{Alert, AlertKind, History, Model, interrupt};
use stratoscope_strategy::device::{choice, kernels};
use stratoscope_wire::{MimeBundle, RunState};

use crate::display::{IntoBundle, display, display_as, display_update, html_and_plain, warn};
use crate::inspect::lender;
use crate::{cell, connection};

mod controls;
mod rows;
mod table;
mod work;

pub(crate) use controls::{begin_cell, pressed, requested};
use table::{End, Fit, evaluation_bundle};

/// At most ten redraws a second: more would not be visible and would keep front ends busy.
const REDRAW: Duration = Duration::from_millis(100);
/// A piece of a run that takes no longer has no table.
const WORTH_SHOWING: Duration = Duration::from_millis(500);
/// How often the table is drawn again during the first step.
const TICK: Duration = Duration::from_secs(1);
/// The most runs whose tables are kept: a callback may train another model. A run that ended by a panic has no last event.
const MOST_RUNS: usize = 8;

/// Connects training to this display and to interrupt requests. Every macro calls it; only the first call has an effect.
pub fn ready() {
    static READY: Once = Once::new();
    READY.call_once(|| {
        events::install(Arc::new(Drawing::default()));
        interrupt::listen_to(cell::interrupted);
        long_work::watch_by(work::draw);
        choice::tell_by(warn);
        choice::foresee();
    });
}

/// Shows where the variables of a model are: `placement(&model);`.
///
/// A problem with a device is shown as its card instead.
pub fn placement(model: &Model) {
    match model.placement() {
        Ok(report) => display(&report),
        Err(problem) => warn(*problem),
    }
}

/// Draws the curves of a run: `history.plot();`.
pub trait Plot {
    /// Shows loss, metrics and learning rate over the optimizer steps.
    fn plot(&self);
}

/// A finished bundle.
struct Shown(MimeBundle);

impl IntoBundle for Shown {
    fn bundle(&self) -> MimeBundle {
        self.0.clone()
    }
}

/// The observer that draws.
#[derive(Clone, Default)]
struct Drawing {
    fits: Arc<Mutex<Vec<Fit>>>,
    evaluation: Arc<Mutex<Option<(u64, String, Instant)>>>,
    /// Whether the thread of [`Self::tick`] runs.
    is_ticking: Arc<AtomicBool>,
}

impl Drawing {
    fn fits(&self) -> MutexGuard<'_, Vec<Fit>> {
        self.fits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_fit(&self, run: u64, always: bool, change: impl FnOnce(&mut Fit)) {
        let mut fits = self.fits();
        let Some(fit) = fits.iter_mut().find(|fit| fit.started.run == run) else {
            return;
        };
        change(fit);
        if always || fit.drawn.elapsed() >= REDRAW {
            draw(fit);
        }
        fits.retain(|fit| fit.end.is_none());
    }

    /// Draws the tables once a second until the ends of their first steps, which send no events. One thread does so
    /// for all runs: a loop of `run.step(1)` would start one for each call.
    fn tick(&self) {
        if self.is_ticking.swap(true, Ordering::SeqCst) {
            return;
        }
        let this = self.clone();
        let tick = move || {
            loop {
                std::thread::sleep(TICK);
                let mut fits = this.fits();
                let mut waiting = fits.iter_mut().filter(|fit| fit.latest.is_none());
                let Some(first) = waiting.next() else {
                    // Under the lock, so that a run that begins now finds that nobody ticks.
                    this.is_ticking.store(false, Ordering::SeqCst);
                    return;
                };
                draw(first);
                waiting.for_each(draw);
            }
        };
        let thread = std::thread::Builder::new().name("first-step".to_owned());
        if thread.spawn(tick).is_err() {
            // Without the thread, the table does not change during the first step.
            self.is_ticking.store(false, Ordering::SeqCst);
        }
    }
}

/// Shows the table, or shows it anew.
fn draw(fit: &mut Fit) {
    let is_over = fit.end.is_some();
    match fit.is_shown {
        true => display_update(&fit.display_id, &Shown(fit.bundle())),
        false if is_over || !connection::is_open() || fit.begun.elapsed() < WORTH_SHOWING => return,
        false => show(fit),
    }
    fit.is_shown = true;
    fit.drawn = Instant::now();
}

/// Shows the table for the first time, and the buttons below it.
fn show(fit: &Fit) {
    display_as(&fit.display_id, &Shown(fit.bundle()));
    controls::open(fit.started.run);
}

impl Observer for Drawing {
    fn fit_started(&self, event: &FitStarted) {
        controls::begin(event);
        if event.is_quiet {
            return;
        }
        let fit = Fit {
            started: event.clone(),
            display_id: unique("fit", event.run),
            begun: Instant::now(),
            drawn: Instant::now(),
            compiled_before: match event.compiles_for.is_empty() {
                true => 0,
                false => kernels::compiled().unwrap_or(0),
            },
            is_shown: !event.is_piece,
            epochs: Vec::new(),
            best: None,
            latest: None,
            validated: None,
            is_paused: false,
            end: None,
        };
        match connection::is_open() {
            true if fit.is_shown => show(&fit),
            false if fit.is_shown => println!("{}", fit.headline()),
            _ => {}
        }
        {
            let mut fits = self.fits();
            if fits.len() == MOST_RUNS {
                fits.remove(0);
            }
            fits.push(fit);
        }
        if connection::is_open() {
            self.tick();
        }
    }

    fn replanned(&self, event: &FitStarted) {
        controls::replanned(event);
        self.with_fit(event.run, false, |fit| fit.started = event.clone());
    }

    fn advanced(&self, event: &Advanced) {
        controls::advanced(event);
        self.with_fit(event.run, false, |fit| {
            fit.latest = Some(event.clone());
            fit.validated = None;
        });
    }

    fn validated(&self, run: u64, done: usize, total: usize) {
        self.with_fit(run, false, |fit| fit.validated = Some((done, total)));
    }

    fn epoch_ended(&self, event: &EpochEnded) {
        self.with_fit(event.run, true, |fit| {
            fit.validated = None;
            fit.epochs.push((event.record.clone(), event.batches));
            if event.best {
                fit.best = Some(event.record.epoch);
            }
            if !connection::is_open() {
                println!("{}", fit.epoch_line(&event.record));
            }
        });
    }

    fn fit_ended(&self, run: u64, history: &History) {
        let (notes, stands) = (history.notes().split_off(1), history.paused.clone());
        self.with_fit(run, true, |fit| {
            fit.started.counters = history.counters;
            fit.end = Some(match stands {
                Some(stands) => {
                    // The line of the bar has it already.
                    let notes = notes.into_iter().filter(|note| *note != stands);
                    let notes = notes.collect();
                    End::Stands(stands, notes)
                }
                None => End::Finished(notes),
            });
        });
        controls::close(run);
    }

    fn fit_failed(&self, run: u64) {
        self.with_fit(run, true, |fit| fit.end = Some(End::Failed));
        controls::close(run);
    }

    fn wants_to_look(&self) -> bool {
        lender::is_wanted()
    }

    fn look(&self) {
        lender::lend();
    }

    fn command(&self, run: u64) -> Option<RunCommand> {
        controls::next(run)
    }

    fn answered(&self, request: u64, answer: &Answer) {
        controls::answered(request, answer.to_json());
    }

    fn alert(&self, alert: &Alert) {
        match connection::is_open() {
            true => display(&Shown(alert_bundle(alert))),
            false => println!("{alert}"),
        }
    }

    fn paused(&self, run: u64, is_paused: bool) {
        self.with_fit(run, true, |fit| fit.is_paused = is_paused);
        let state = match is_paused {
            true => RunState::Paused,
            false => RunState::Running,
        };
        controls::set(run, state);
    }

    fn evaluated(&self, run: u64, done: usize, total: usize) {
        if !connection::is_open() {
            return;
        }
        let mut shown = self
            .evaluation
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let bundle = Shown(evaluation_bundle(done, total));
        match shown.as_mut().filter(|(of, ..)| *of == run) {
            None if done < total => {
                let display_id = unique("evaluate", run);
                display_as(&display_id, &bundle);
                *shown = Some((run, display_id, Instant::now()));
            }
            // It ended with its first event: nothing is shown.
            None => {}
            Some((_, display_id, drawn)) if done == total || drawn.elapsed() >= REDRAW => {
                *drawn = Instant::now();
                display_update(display_id, &bundle);
            }
            Some(_) => {}
        }
    }

    fn notice(&self, diagnostic: Diagnostic) {
        warn(diagnostic);
    }

    /// In a notebook the kernel counts repeated notices, because the user may ask it to show them again.
    fn counts_notices(&self) -> bool {
        connection::is_open()
    }
}

/// An alert as a line with a colored edge.
fn alert_bundle(alert: &Alert) -> MimeBundle {
    let color = match alert.kind {
        AlertKind::Failed => "#c62828",
        AlertKind::Warning | AlertKind::Breakpoint => "#b26a00",
        AlertKind::Finished => "#2e7d32",
    };
    let line = alert.to_string();
    let html = format!(
        "<div style=\"border-left:4px solid {color};padding:2px 8px;margin:4px 0;font-size:13px\">{}</div>",
        escape(&line)
    );
    html_and_plain(html, line)
}

/// A display ID that no other run of this notebook has, those of earlier processes included.
fn unique(what: &str, run: u64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_nanos());
    format!("stratoscope-{what}-{}-{run}-{now}", std::process::id())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_macros_borrow_what_is_used_again() {
        use crate::prelude::*;
        let data = Dataset::from_texts(["a"]);
        let args = crate::__fit_arguments!((FitArgs::new()) epochs = 3, validation_data = data,);
        let _ = args;
        let strategy = MirroredStrategy::logical(2).expect("two logical devices");
        let args = crate::__compile_arguments!(
            (CompileArgs::new()) optimizer = AdamW::new(5e-5), strategy = strategy, metrics = ["f1"]
        );
        let _ = args;
        let args = crate::__compile_arguments!((CompileArgs::new()) strategy = none);
        let _ = args;
        assert_eq!((data.len(), strategy.replicas().len()), (1, 2));
    }
}
