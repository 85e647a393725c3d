//! How a run is stopped from outside: Ctrl-C interrupts the running cell, as the notebook's button does;
//! a request to end (`SIGTERM`, or a terminal that is closed) does the same and lets the run write what
//! there is.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};

use super::TERMINATED;
use stratoscope_session::CellOutcome;
use stratoscope_session::Session;

/// How long an interrupted cell is waited for once the process is to end. What does not listen is ended
/// by the interrupt after half of it.
const PATIENCE: Duration = Duration::from_secs(6);

/// Whether the run is to end.
pub struct Stop {
    requested: watch::Receiver<bool>,
    /// Waits for cells.
    runtime: Runtime,
}

impl Stop {
    /// Listens to the signals of this process.
    pub fn on_signals(session: Arc<Session>) -> anyhow::Result<Self> {
        let (request, stop) = Self::new()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listen = move || {
            runtime.block_on(async {
                // Without signals the run is stopped as any process is.
                let _ = listen(&session, &request).await;
            });
        };
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(listen)?;
        Ok(stop)
    }

    /// One that is asked for by hand.
    pub fn new() -> anyhow::Result<(watch::Sender<bool>, Self)> {
        let (request, requested) = watch::channel(false);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok((request, Self { requested, runtime }))
    }

    /// Whether the run is to end.
    pub fn is_requested(&self) -> bool {
        *self.requested.borrow()
    }

    /// Waits for a cell, which was interrupted when the run is to end; not for ever then.
    pub fn wait_for(
        &self,
        mut answer: oneshot::Receiver<CellOutcome>,
    ) -> Result<CellOutcome, oneshot::error::RecvError> {
        let mut requested = self.requested.clone();
        self.runtime.block_on(async {
            let asked = async {
                if requested.wait_for(|it| *it).await.is_err() {
                    // Nobody can ask any more.
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

/// How a cell ends that does not.
fn not_ended() -> CellOutcome {
    let lost = "it had not ended when the run was ended from outside".to_owned();
    CellOutcome::Interrupted { lost: Some(lost) }
}

/// `nohup` has a program ignore the end of its terminal.
fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a plain system call, which writes what there is to where there is room for it; zeros are a
    // value of that type, too.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// The next of these signals; never, where they are not listened to.
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
            // The second time is meant.
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
        // Nothing here waits for a resized window.
        let set = |action| {
            // SAFETY: a plain system call with one of the two standard actions.
            unsafe { libc::signal(libc::SIGWINCH, action) };
            is_ignored(libc::SIGWINCH)
        };
        assert!(set(libc::SIG_IGN));
        assert!(!set(libc::SIG_DFL));
    }
}
