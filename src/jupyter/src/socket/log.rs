//! What a socket logs about its clients: not more than somebody can read, whatever they do.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines in a period, the last of which says that there may have been more.
const LINES: u32 = 30;

/// Characters of a line.
const LONGEST: usize = 400;

const PERIOD: Duration = Duration::from_secs(60);

/// The log of one socket; clones share the count.
#[derive(Clone)]
pub struct Log {
    name: &'static str,
    /// When the period began, and the lines since.
    period: Arc<Mutex<(Instant, u32)>>,
}

impl Log {
    /// `name` begins every line.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            period: Arc::new(Mutex::new((Instant::now(), 0))),
        }
    }

    /// Writes a line, if there were not too many. What a client sent may make it long.
    pub fn warn(&self, text: &str) {
        let text: String = text.chars().take(LONGEST).collect();
        let number = {
            let mut period = self.period.lock().unwrap_or_else(PoisonError::into_inner);
            if period.0.elapsed() > PERIOD {
                *period = (Instant::now(), 0);
            }
            period.1 = period.1.saturating_add(1);
            period.1
        };
        let name = self.name;
        match number {
            ..LINES => stratoscope_os::console::warn(&format!("{name}: {text}")),
            LINES => stratoscope_os::console::warn(&format!(
                "{name}: {text}; the next lines of this minute are left out"
            )),
            _ => {}
        }
    }
}
