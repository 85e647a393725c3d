//! The Hugging Face hub, by `hf-hub`: downloads a model's files into the cache, where
//! transformers finds them too.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use hf_hub::Cache;
use hf_hub::api::sync::{ApiBuilder, ApiError, ApiRepo};
use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::work::{Unit, Work};

use super::{Outcome, Places};
use crate::problem;

/// The files of a model, and whether each is optional.
const FILES: [(&str, bool); 6] = [
    ("config.json", true),
    ("tokenizer_config.json", false),
    ("special_tokens_map.json", false),
    ("vocab.txt", false),
    ("tokenizer.json", false),
    ("model.safetensors", true),
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
    let mut file = FILES[0].0.to_owned();
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
        if file == FILES[0].0 {
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

/// Downloads every file; returns their paths. It does not matter if the receiver is gone.
fn download(repo: &ApiRepo, sender: &Sender<Event>) {
    let mut folder = None;
    for (file, needed) in FILES {
        let reporter = Reporter {
            file: file.to_owned(),
            done: 0,
            total: 0,
            sender: sender.clone(),
        };
        match repo.download_with_progress(file, reporter) {
            Ok(path) => folder = path.parent().map(PathBuf::from).or(folder),
            Err(error) if !needed && status(&error) == Some(404) => (),
            Err(error) => {
                let reason = reason(&error);
                let _ = sender.send(Event::Failed {
                    file: file.to_owned(),
                    reason,
                });
                return;
            }
        }
    }
    if let Some(folder) = folder {
        let _ = sender.send(Event::Done(folder));
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
        Some(404) => "the hub has no such file".to_owned(),
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
