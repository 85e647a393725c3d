//! The texts of cells that a front end has named for its breakpoints (`dumpCell`). They stay in memory: their paths are names,
//! and `source` returns their texts.

use std::collections::VecDeque;

use crate::murmur::{SEED, murmur2};

/// More cells than this are not remembered; the oldest are forgotten first.
const MOST_CELLS: usize = 1000;
/// Nor is more text.
const MOST_BYTES: usize = 16 << 20;

/// How the path of a cell ends.
pub const SUFFIX: &str = ".rs";

/// See the module.
#[derive(Debug)]
pub struct Sources {
    prefix: String,
    cells: VecDeque<(String, String)>,
    bytes: usize,
}

impl Sources {
    /// No cell is known. Paths begin with `prefix`.
    pub fn new(prefix: String) -> Self {
        Self {
            prefix,
            cells: VecDeque::new(),
            bytes: 0,
        }
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
