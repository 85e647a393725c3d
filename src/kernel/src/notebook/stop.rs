//! Signals to a run: Ctrl-C interrupts the running cell, as a notebook's stop button does; `SIGTERM` and a closed terminal
//! (`SIGHUP`) do the same and end the run, which then writes the outputs so far.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};

use super::TERMINATED;
use stratoscope_session::{CellOutcome, Session};

/// How long the run waits for an interrupted cell when it is to end. The interrupt kills a cell that does not react after
/// half of this time.
const PATIENCE: Duration = Duration::from_secs(6);

/// Whether the run is to end.
pub struct Stop {
    requested: watch::Receiver<bool>,
    /// Waits for cells.
    runtime: Runtime,
}

impl Stop {
    /// Handles the signals of this process.
    pub fn on_signals(session: Arc<Session>) -> anyhow::Result<Self> {
        let (request, stop) = Self::new()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listen = move || {
            runtime.block_on(async {
                // Without a handler the signals end the process.
                let _ = listen(&session, &request).await;
            });
        };
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(listen)?;
        Ok(stop)
    }

    /// A stop without signals, requested through the sender.
    pub fn new() -> anyhow::Result<(watch::Sender<bool>, Self)> {
        let (request, requested) = watch::channel(false);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok((request, Self { requested, runtime }))
    }

    /// Whether the run is to end.
    pub fn is_requested(&self) -> bool {
        *self.requested.borrow()
    }

    /// Waits for a cell; once the run is to end, at most [`PATIENCE`].
    pub fn wait_for(
        &self,
        mut answer: oneshot::Receiver<CellOutcome>,
    ) -> Result<CellOutcome, oneshot::error::RecvError> {
        let mut requested = self.requested.clone();
        self.runtime.block_on(async {
            let asked = async {
                if requested.wait_for(|it| *it).await.is_err() {
                    // The sender is dropped: no request can come.
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                biased;
                outcome = &mut answer => outcome,
                () = asked => tokio::time::timeout(PATIENCE, answer)
                    .await
                    .unwrap_or_else(|_| Ok(not_ended())),
            }
        })
    }
}

/// The outcome of a cell that did not react to the interrupt.
fn not_ended() -> CellOutcome {
    let lost = "it had not ended when the run was terminated".to_owned();
    CellOutcome::Interrupted { lost: Some(lost) }
}

/// Whether a signal is ignored, as `nohup` does with `SIGHUP`.
fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: `sigaction` writes a whole `sigaction` to the pointer, which is valid for it; the value is read only after
    // the call succeeded, and all zeros would be valid, too.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// The next of these signals; never, if there is no handler.
async fn heard(signals: &mut Option<Signal>) {
    match signals {
        Some(signals) => {
            signals.recv().await;
        }
        None => std::future::pending().await,
    }
}

async fn listen(session: &Session, request: &watch::Sender<bool>) -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = match is_ignored(libc::SIGHUP) {
        true => None,
        false => Some(signal(SignalKind::hangup())?),
    };
    loop {
        let is_end = tokio::select! {
            _ = interrupt.recv() => false,
            _ = terminate.recv() => true,
            () = heard(&mut hangup) => true,
        };
        if is_end && request.send_replace(true) {
            // The second signal ends the process at once.
            std::process::exit(TERMINATED.into());
        }
        session.interrupt();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_were_ignored_from_the_start_are_known() {
        // No test handles the signal of a resized window.
        let set = |action| {
            // SAFETY: `action` is one of the two standard actions, not a function.
            unsafe { libc::signal(libc::SIGWINCH, action) };
            is_ignored(libc::SIGWINCH)
        };
        assert!(set(libc::SIG_IGN));
        assert!(!set(libc::SIG_DFL));
    }
}
