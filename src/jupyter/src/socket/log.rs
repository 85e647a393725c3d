//! The log of a socket about its clients, with a limit on the number and the length of its lines.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stratoscope_os::console::warn;

/// Lines per period; the last of them says that more were left out.
const LINES: u32 = 30;

/// The most characters of a line.
const MAX_CHARACTERS: usize = 400;

const PERIOD: Duration = Duration::from_secs(60);

/// The log of one socket; clones share the count.
#[derive(Clone)]
pub struct Log {
    name: &'static str,
    /// When the period began, and the number of lines since.
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

    /// Writes a line, unless the period has had too many. A long line is truncated.
    pub fn warn(&self, text: &str) {
        let text: String = text.chars().take(MAX_CHARACTERS).collect();
        let number = {
            let mut period = self.period.lock();
            if period.0.elapsed() > PERIOD {
                *period = (Instant::now(), 0);
            }
            period.1 = period.1.saturating_add(1);
            period.1
        };
        let name = self.name;
        match number {
            ..LINES => warn(&format!("{name}: {text}")),
            LINES => warn(&format!(
                "{name}: {text}; the next lines of this minute are left out"
            )),
            _ => {}
        }
    }
}
