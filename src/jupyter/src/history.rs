//! The executed cells: those of this session in memory, with their results, and those of earlier sessions in a file.
//!
//! `history_request` and `%history` are answered from both. A cell is kept in the file by a thread of its own, after
//! its reply was sent, so that it costs the cell nothing.

mod file;
mod place;
mod private;
mod writer;

use std::time::Duration;

use parking_lot::Mutex;
use stratoscope_session::{FoundCells, HistoryChange, PastCell, PastCells};

use file::{HistoryFile, Limits};
pub use place::Place;
use writer::Writer;

/// One executed cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Counted from 1 over all kernels that share the file; 0 without a file.
    pub session: i64,
    /// `In[line]`, counted from 1.
    pub line: u64,
    /// The cell's text.
    pub input: String,
    /// `text/plain` of its result, if it had one; only of this session.
    pub output: Option<String>,
}

/// The history of a kernel.
pub struct History {
    own: Mutex<Own>,
    writer: Option<Writer>,
}

/// The cells of this session.
#[derive(Default)]
struct Own {
    cells: Vec<Entry>,
    /// How many of them the file has been given.
    given: usize,
}

impl History {
    /// Starts the thread that keeps cells in a file. Returns at once.
    pub fn start(place: Place) -> Self {
        let file = |path| HistoryFile::new(path, Limits::DEFAULT);
        let writer = match place {
            Place::Off => None,
            Place::File(path) => Some(Writer::start(file(path))),
        };
        Self {
            own: Mutex::default(),
            writer,
        }
    }

    /// Adds a cell.
    pub fn push(&self, line: u64, input: String) {
        self.own.lock().cells.push(Entry {
            session: 0,
            line,
            input,
            output: None,
        });
    }

    /// Adds the result of the cell with that number.
    pub fn set_output(&self, line: u64, output: String) {
        let mut own = self.own.lock();
        let cell = own.cells.iter_mut().rev().find(|it| it.line == line);
        if let Some(cell) = cell {
            cell.output = Some(output);
        }
    }

    /// Gives the new cells to the file. Returns at once.
    pub fn keep(&self) {
        let mut own = self.own.lock();
        let given = own.given;
        own.given = own.cells.len();
        let Some(writer) = &self.writer else { return };
        let new = own.cells[given..].iter();
        for cell in new.filter(|cell| private::is_kept(&cell.input)) {
            writer.keep(cell.line, cell.input.clone());
        }
    }

    /// Waits until the file has every cell.
    pub fn flush(&self, limit: Duration) {
        if let Some(writer) = &self.writer {
            writer.flush(limit);
        }
    }

    /// The last `n` cells, oldest first.
    pub fn tail(&self, n: usize) -> Vec<Entry> {
        let mut all = self.all();
        all.split_off(all.len().saturating_sub(n))
    }

    /// The cells numbered `start..stop` of a session; without `stop`, all from `start`. Session 0 is this one, -1 the
    /// one whose number is one less.
    pub fn range(&self, session: i64, start: i64, stop: Option<i64>) -> Vec<Entry> {
        let own = self.session();
        let wanted = match session <= 0 {
            true => own.saturating_add(session),
            false => session,
        };
        let cells: Vec<Entry> = if wanted == own {
            // As IPython: they have the number 0 unless they were asked for by the session's own number.
            let session = session.max(0);
            let cells = self.own.lock().cells.clone();
            let numbered = |cell| Entry { session, ..cell };
            cells.into_iter().map(numbered).collect()
        } else {
            let mut earlier = self.earlier();
            earlier.retain(|cell| cell.session == wanted);
            earlier
        };
        let last = cells.last().map_or(0, |cell| cell.line as i64);
        // Negative numbers count from the end.
        let absolute = |n: i64| {
            if n < 0 {
                last.saturating_add(1).saturating_add(n)
            } else {
                n
            }
        };
        let (start, stop) = (absolute(start), stop.map_or(i64::MAX, absolute));
        let inside = |cell: &Entry| (start..stop).contains(&(cell.line as i64));
        cells.into_iter().filter(inside).collect()
    }

    /// The last `n` cells that match a pattern of `*`, `?` and literal text, oldest first;
    /// `unique`: of equal ones only the last.
    pub fn search(&self, pattern: &str, n: Option<usize>, unique: bool) -> Vec<Entry> {
        let pattern: Vec<char> = pattern.chars().collect();
        let mut seen = std::collections::HashSet::new();
        let mut found = Vec::new();
        for cell in self.all().into_iter().rev() {
            if n.is_some_and(|n| found.len() >= n) {
                break;
            }
            let text: Vec<char> = cell.input.chars().collect();
            if matches(&pattern, &text) && (!unique || seen.insert(cell.input.clone())) {
                found.push(cell);
            }
        }
        found.reverse();
        found
    }

    /// The number of this session.
    fn session(&self) -> i64 {
        self.writer.as_ref().map_or(0, Writer::session)
    }

    /// The cells of other sessions, by session.
    fn earlier(&self) -> Vec<Entry> {
        let Some(writer) = &self.writer else {
            return Vec::new();
        };
        let own = writer.session();
        let mut cells = writer.read();
        cells.retain(|cell| cell.session != own);
        // Kernels that ran at once have written in turns.
        cells.sort_by_key(|cell| cell.session);
        cells
    }

    /// Those of other sessions, then those of this one.
    fn all(&self) -> Vec<Entry> {
        let session = self.session();
        let mut all = self.earlier();
        let own = self.own.lock();
        all.extend(own.cells.iter().map(|cell| Entry {
            session,
            ..cell.clone()
        }));
        all
    }
}

impl PastCells for History {
    fn find(&self, pattern: Option<&str>, most: usize, asking: u64) -> FoundCells {
        let mut cells = self.all();
        let own = self.session();
        cells.retain(|cell| (cell.session, cell.line) != (own, asking));
        if let Some(pattern) = pattern {
            // A `?` alone is Rust's.
            let is_glob = pattern.contains('*');
            let wild: Vec<char> = format!("*{pattern}*").chars().collect();
            cells.retain(|cell| match is_glob {
                true => matches(&wild, &cell.input.chars().collect::<Vec<char>>()),
                false => cell.input.contains(pattern),
            });
        }
        let total = cells.len();
        let shown = cells.split_off(total.saturating_sub(most));
        let past = |cell: Entry| PastCell {
            session: cell.session,
            number: cell.line,
            code: cell.input,
        };
        FoundCells {
            cells: shown.into_iter().map(past).collect(),
            total,
            kept_in: self.writer.as_ref().and_then(Writer::kept_in),
            notice: self.writer.as_ref().and_then(Writer::notice),
        }
    }

    fn change(&self, change: HistoryChange) -> Result<(), String> {
        let writer = self.writer.as_ref();
        match (change, writer) {
            (HistoryChange::On, None) => Err(
                "STRATOSCOPE_HISTORY turns the history off; restart the kernel without that variable"
                    .to_owned(),
            ),
            (HistoryChange::On | HistoryChange::Off, _) => {
                if let Some(writer) = writer {
                    writer.set_on(change == HistoryChange::On);
                }
                Ok(())
            }
            (HistoryChange::Clear, _) => {
                *self.own.lock() = Own::default();
                writer.map_or(Ok(()), Writer::clear)
            }
        }
    }
}

/// Whether all of `text` matches. On a mismatch the last `*` takes one character more, so the
/// time is at most the product of the lengths.
fn matches(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                last_star = Some((p, t));
                p += 1;
            }
            Some(&expected) if expected == '?' || expected == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match last_star {
                Some((star, taken)) => {
                    last_star = Some((star, taken + 1));
                    p = star + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&rest| rest == '*')
}

#[cfg(test)]
mod tests;
