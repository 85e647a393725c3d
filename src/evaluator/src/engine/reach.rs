//! Whether the process of the cells answers over the wire.

use std::time::Duration;

use stratoscope_session::Stream;

use super::{Engine, PATIENCE};

/// How long an answer is waited for if there was none before.
const PATIENCE_AGAIN: Duration = Duration::from_millis(200);

/// Why results may be missing.
const NO_ANSWER: &str = "the process that runs the cells does not answer: a cell has closed its connection to the kernel, or blocks its \
                         threads. Results and output may be missing; `%reset` starts a new process, without variables\n";

impl Engine {
    /// Waits until everything that the process has sent is handled. Says once that it does not answer.
    pub(super) fn sync(&mut self) {
        let patience = if self.is_unreachable {
            PATIENCE_AGAIN
        } else {
            PATIENCE
        };
        let answers = self.link.sync(patience);
        if !answers
            && !self.is_unreachable
            && let Some(current) = self.relay.current()
        {
            current.outputs.stream(Stream::Stderr, NO_ANSWER);
        }
        self.is_unreachable = !answers;
    }
}
