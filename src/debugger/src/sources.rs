//! The texts of cells that a front end has named for its breakpoints (`dumpCell`). They stay in memory: their paths are names,
//! and `source` returns their texts.

use std::collections::{BTreeMap, VecDeque};

use crate::murmur::{SEED, murmur2};

/// More cells than this are not remembered; the oldest are forgotten first.
const MOST_CELLS: usize = 1000;
/// Nor is more text.
const MOST_BYTES: usize = 16 << 20;

/// The numbers of older cells are forgotten.
const MAX_EXECUTED: usize = 10_000;

/// How the path of a cell ends.
pub const SUFFIX: &str = ".rs";

/// See the module.
#[derive(Debug)]
pub struct Sources {
    prefix: String,
    cells: VecDeque<(String, String)>,
    bytes: usize,
    /// The paths of the cells that have run, by their numbers.
    executed: BTreeMap<u64, String>,
}

impl Sources {
    /// No cell is known. Paths begin with `prefix`.
    pub fn new(prefix: String) -> Self {
        Self {
            prefix,
            cells: VecDeque::new(),
            bytes: 0,
            executed: BTreeMap::new(),
        }
    }

    /// Remembers a cell that runs with this number.
    pub fn execute(&mut self, number: u64, code: &str) {
        let path = self.add(code);
        self.executed.insert(number, path);
        while self.executed.len() > MAX_EXECUTED {
            self.executed.pop_first();
        }
    }

    /// The path of the cell that has run with this number.
    pub fn executed(&self, number: u64) -> Option<&str> {
        self.executed.get(&number).map(String::as_str)
    }

    /// How paths begin.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Remembers a cell and returns its path, which a front end computes in the same way.
    pub fn add(&mut self, code: &str) -> String {
        let hash = murmur2(code.as_bytes(), SEED);
        let path = format!("{}{hash}{SUFFIX}", self.prefix);
        self.cells.retain(|(known, text)| {
            let stays = *known != path;
            if !stays {
                self.bytes -= text.len();
            }
            stays
        });
        if code.len() > MOST_BYTES {
            return path;
        }
        self.bytes += code.len();
        self.cells.push_back((path.clone(), code.to_owned()));
        while self.cells.len() > MOST_CELLS || self.bytes > MOST_BYTES {
            let Some((_, oldest)) = self.cells.pop_front() else {
                break;
            };
            self.bytes -= oldest.len();
        }
        path
    }

    /// The text of the cell with this path.
    pub fn text(&self, path: &str) -> Option<&str> {
        let mut cells = self.cells.iter();
        let (_, text) = cells.find(|(known, _)| known == path)?;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_found_by_its_path() {
        let mut sources = Sources::new("/tmp/cells_".to_owned());
        let path = sources.add("let x = 1;");
        assert!(path.starts_with("/tmp/cells_") && path.ends_with(".rs"));
        assert_eq!(sources.add("let x = 1;"), path);
        assert_eq!(sources.text(&path), Some("let x = 1;"));
        assert_eq!(sources.text("/etc/passwd"), None);
        assert_eq!(sources.bytes, 10);
    }

    #[test]
    fn a_cell_that_has_run_is_known_by_its_number() {
        let mut sources = Sources::new(String::new());
        sources.execute(3, "f();");
        let path = sources.executed(3).map(str::to_owned);
        assert_eq!(path, Some(sources.add("f();")));
        assert_eq!(sources.executed(2), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut sources = Sources::new(String::new());
        let first = sources.add("first");
        let long = "x".repeat(MOST_BYTES + 1);
        let path = sources.add(&long);
        assert!(sources.text(&path).is_none() && sources.text(&first).is_some());
        for number in 0..2 * MOST_CELLS {
            sources.add(&number.to_string());
        }
        assert_eq!(sources.cells.len(), MOST_CELLS);
        assert!(sources.text(&first).is_none());
        let bytes: usize = sources.cells.iter().map(|(_, text)| text.len()).sum();
        assert_eq!(sources.bytes, bytes);
    }
}
