//! The Hugging Face hub, by `hf-hub`: downloads a model's files into the cache, where
//! transformers finds them too.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use hf_hub::Cache;
use hf_hub::api::sync::{ApiBuilder, ApiError, ApiRepo};
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_diagnostics::{Diagnostic, Result};

use super::{Outcome, Places};
use crate::checkpoint::{WEIGHTS, weight_map};
use crate::problem;

/// The files of a model beside its weights. It has the first one; each of the others may be missing.
const FILES: [&str; 5] = [
    "config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "tokenizer.json",
];

/// The progress of a download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The file's name.
    pub file: String,
    /// Bytes downloaded so far.
    pub done: u64,
    /// The size of the file in bytes.
    pub total: u64,
}

/// Downloads the model. If the hub does not have it, that is a result; a download that fails is an error.
pub(super) fn look(name: &str, places: &Places, progress: &dyn Fn(&Progress)) -> Result<Outcome> {
    let place = format!("hub `{}`", places.endpoint);
    let refused = |outcome: &str| Ok(Err(vec![(place.clone(), outcome.to_owned())]));
    if places.offline {
        return refused("not asked: `HF_HUB_OFFLINE` is set");
    }
    let Some(cache) = places.hub_cache.clone() else {
        return refused("not used: there is no cache to download to");
    };
    let repo = ApiBuilder::from_cache(Cache::new(cache))
        .with_progress(false)
        .with_retries(1)
        .with_endpoint(places.endpoint.clone())
        .with_token(places.token.clone())
        .with_user_agent("stratoscope", env!("CARGO_PKG_VERSION"))
        .build()
        .map(|api| api.model(name.to_owned()));
    let repo = match repo {
        Ok(repo) => repo,
        Err(error) => return refused(&error.to_string()),
    };
    let (sender, events) = mpsc::channel();
    // On a thread of its own: the client has no time limit for reading, and a thread that panics or
    // hangs is only waited for as long as there is progress.
    std::thread::spawn(move || download(&repo, &sender));
    let mut file = FILES[0].to_owned();
    let mut work = Download::default();
    let mut last = Instant::now();
    loop {
        let failure = match events.recv_timeout(PERIOD.min(places.stalled_after)) {
            Ok(Event::Progress(step)) => {
                progress(&step);
                // An error drops the receiver, which ends the download.
                work.at(&step)?;
                last = Instant::now();
                file = step.file;
                continue;
            }
            Err(RecvTimeoutError::Timeout) if last.elapsed() < places.stalled_after => {
                work.waits()?;
                continue;
            }
            Ok(Event::Done(folder)) => return Ok(Ok(folder)),
            Ok(Event::Failed {
                file: failed,
                reason,
            }) => {
                file = failed;
                reason
            }
            Err(RecvTimeoutError::Timeout) => {
                format!("nothing came for {} s", places.stalled_after.as_secs_f32())
            }
            Err(RecvTimeoutError::Disconnected) => "the download ended unexpectedly".to_owned(),
        };
        // If the first file does not exist, neither does the model.
        if file == FILES[0] {
            return refused(&failure);
        }
        return Err(problem::download(name, &places.endpoint, &file, failure));
    }
}

/// How often the download checks for an interrupt.
const PERIOD: Duration = Duration::from_millis(100);

/// The file that is being downloaded, as work that shows progress and can be interrupted.
#[derive(Default)]
struct Download(Option<(String, Work, usize)>);

impl Download {
    fn at(&mut self, step: &Progress) -> Result<()> {
        let (done, total) = (step.done as usize, step.total as usize);
        match &mut self.0 {
            Some((file, ..)) if *file == step.file => {}
            // Another file begins, so the previous one is complete.
            present => {
                if let Some((_, work, _)) = present.take() {
                    work.finished();
                }
                let work = Work::begin(("downloading", "downloaded"), total, Unit::Bytes);
                *present = Some((step.file.clone(), work, done));
            }
        }
        if let Some((_, _, reached)) = &mut self.0 {
            *reached = done;
        }
        self.waits()
    }

    fn waits(&mut self) -> Result<()> {
        match &mut self.0 {
            Some((_, work, reached)) => work.reached(*reached),
            // Nothing has come yet.
            None => Work::begin(("downloading", "downloaded"), 0, Unit::Bytes).reached(0),
        }
    }
}

/// A message from the downloading thread to the waiting one.
enum Event {
    Progress(Progress),
    Done(PathBuf),
    Failed { file: String, reason: String },
}

/// Downloads every file. It does not matter if the receiver is gone.
fn download(repo: &ApiRepo, sender: &Sender<Event>) {
    let downloaded = FILES
        .iter()
        .try_fold(None, |folder, file| {
            let found = one(repo, sender, file)?;
            match found {
                None if *file == FILES[0] => Err(missing(file)),
                found => Ok(found
                    .and_then(|path| path.parent().map(PathBuf::from))
                    .or(folder)),
            }
        })
        .and_then(|folder| weights(repo, sender).map(|()| folder));
    let _ = match downloaded {
        Ok(Some(folder)) => sender.send(Event::Done(folder)),
        Ok(None) => sender.send(missing(FILES[0])),
        Err(failed) => sender.send(failed),
    };
}

/// The first form of the weights that the hub has: one file, or an index and the files that it names.
fn weights(repo: &ApiRepo, sender: &Sender<Event>) -> std::result::Result<(), Event> {
    for (whole, index) in WEIGHTS {
        if one(repo, sender, whole)?.is_some() {
            return Ok(());
        }
        let Some(path) = one(repo, sender, index)? else {
            continue;
        };
        let failed = |problem: Box<Diagnostic>| Event::Failed {
            file: index.to_owned(),
            reason: problem.message,
        };
        let names: BTreeSet<String> = weight_map(&path).map_err(failed)?.into_values().collect();
        for name in &names {
            one(repo, sender, name)?.ok_or_else(|| missing(name))?;
        }
        return Ok(());
    }
    Err(missing(WEIGHTS[0].0))
}

/// Where a file is after its download; `None` if the hub does not have it.
fn one(
    repo: &ApiRepo,
    sender: &Sender<Event>,
    file: &str,
) -> std::result::Result<Option<PathBuf>, Event> {
    let reporter = Reporter {
        file: file.to_owned(),
        done: 0,
        total: 0,
        sender: sender.clone(),
    };
    match repo.download_with_progress(file, reporter) {
        Ok(path) => Ok(Some(path)),
        Err(error) if status(&error) == Some(404) => Ok(None),
        Err(error) => Err(Event::Failed {
            file: file.to_owned(),
            reason: reason(&error),
        }),
    }
}

fn missing(file: &str) -> Event {
    Event::Failed {
        file: file.to_owned(),
        reason: "the hub has no such file".to_owned(),
    }
}

/// The HTTP status of an error, if it has one. `hf-hub` does not re-export its client's types, so
/// the number is taken from the message: `request error: URL: status code 404`.
fn status(error: &ApiError) -> Option<u16> {
    let text = error.to_string();
    let digits = text.rsplit_once("status code ")?.1;
    digits.get(..3)?.parse().ok()
}

fn reason(error: &ApiError) -> String {
    match status(error) {
        Some(401 | 403) => "the hub has no such model, or it is private: set `HF_TOKEN`".to_owned(),
        Some(status) => format!("the hub answers with status {status}"),
        None => error.to_string(),
    }
}

/// Passes a file's progress on.
struct Reporter {
    file: String,
    done: u64,
    total: u64,
    sender: Sender<Event>,
}

impl Reporter {
    fn send(&self) {
        let (done, total) = (self.done, self.total);
        let sent = self.sender.send(Event::Progress(Progress {
            file: self.file.clone(),
            done,
            total,
        }));
        if sent.is_err() {
            // The caller has stopped waiting. The client cannot be canceled; its thread ends here, without a word on
            // standard error, and closes its connection.
            std::panic::resume_unwind(Box::new("the download was interrupted"));
        }
    }
}

impl hf_hub::api::Progress for Reporter {
    fn init(&mut self, size: usize, _filename: &str) {
        self.total = size as u64;
        self.done = 0;
        self.send();
    }

    fn update(&mut self, size: usize) {
        self.done += size as u64;
        self.send();
    }

    fn finish(&mut self) {
        self.send();
    }
}
