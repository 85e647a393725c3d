//! What the kernel and the processes that compile its cells tell each other: one typed file in the private
//! folder. Each process reads it as a whole and replaces it as a whole, under a lock, so that a process that is
//! killed leaves the old state and never half of a new one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The file.
const FILE: &str = "state.json";
/// The file that is locked while [`FILE`] is replaced.
const LOCK: &str = "state.lock";

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// From the kernel: variables that evcxr knows and that do not exist any more. The next cells are compiled
    /// without them.
    pub masked: Vec<String>,
    /// From the kernel: how often a type was redefined. Statics of the next cells belong to this generation.
    pub generation: u32,
    /// From the kernel: the next cells get debug information.
    pub debug: bool,
    /// From one compile to the next: what is known of the cell.
    pub attempts: Attempts,
    /// From one compile to the next: rustc has refused the cell, and evcxr's retry would get the same errors.
    pub retry_is_useless: bool,
    /// To the kernel: rustc's warnings about the cell, one JSON value a line.
    pub warnings: String,
    /// To the kernel: the crates of a `:dep`, in the order in which their compilation began.
    pub crates: Vec<String>,
}

/// What was learned of a cell while it was compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempts {
    /// A hash of the cell's statements.
    pub cell: u64,
    /// The form that was tried last.
    pub form: Form,
    /// What rustc's errors have shown.
    pub known: Known,
    /// How often a variable that cannot be kept was left out.
    pub corrections: usize,
}

/// How far the source that rustc is given is from evcxr's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// Each statement is a closure.
    #[default]
    Closures,
    /// The cell can only stop between two statements.
    Stops,
    /// As evcxr has written it.
    Whole,
}

/// What earlier attempts have shown of a cell's variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Each statement is a closure; otherwise a cell only stops between two of them.
    pub has_closures: bool,
    /// From which statement on a variable cannot be kept where the cell ends.
    pub moved: BTreeMap<String, usize>,
    /// Types of variables that evcxr does not keep, because a statement moves them.
    pub types: BTreeMap<String, String>,
}

impl Known {
    /// From this statement on the variable cannot be kept where the cell ends.
    pub fn note_moved(&mut self, name: &str, statement: usize) {
        let from = self.moved.entry(name.to_owned()).or_insert(statement);
        *from = statement.min(*from);
    }
}

impl State {
    /// The state in the private folder `home`. Without a file that can be read it is empty: nothing in it is
    /// needed to compile a cell, it only saves work.
    pub fn read(home: &Path) -> Self {
        let bytes = fs::read(home.join(FILE)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Changes the state while no other process does, and returns what `change` returns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn update<T>(home: &Path, change: impl FnOnce(&mut Self) -> T) -> io::Result<T> {
        let lock = File::options()
            .create(true)
            .append(true)
            .open(home.join(LOCK))?;
        lock.lock()?;
        let before = Self::read(home);
        let mut state = before.clone();
        let result = change(&mut state);
        if state != before {
            let mut fresh = tempfile::NamedTempFile::new_in(home)?;
            fresh.write_all(&serde_json::to_vec(&state)?)?;
            fresh.persist(home.join(FILE))?;
        }
        Ok(result)
    }

    /// The warnings about the cell that was compiled last; the next cell does not get them.
    pub fn take_warnings(home: &Path) -> String {
        if Self::read(home).warnings.is_empty() {
            return String::new();
        }
        Self::update(home, |state| std::mem::take(&mut state.warnings)).unwrap_or_default()
    }

    /// Leaves the warnings about the cell that was compiled last. Without them there are none to show.
    pub fn leave_warnings(home: &Path, warnings: &str) {
        let _ = Self::update(home, |state| warnings.clone_into(&mut state.warnings));
    }

    /// Notes that the compilation of a crate begins that is neither a cell nor part of the view.
    pub fn note_crate(home: &Path, name: &str) {
        if !name.starts_with("build_script") {
            let _ = Self::update(home, |state| state.crates.push(name.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_by_the_next_reader_and_a_broken_file_is_empty() {
        let home = tempfile::tempdir().expect("a folder");
        assert_eq!(State::read(home.path()), State::default());
        State::update(home.path(), |state| state.generation = 3).expect("writes");
        State::leave_warnings(home.path(), "{}");
        assert_eq!(State::take_warnings(home.path()), "{}");
        assert_eq!(State::take_warnings(home.path()), "");
        assert_eq!(State::read(home.path()).generation, 3);
        fs::write(home.path().join(FILE), "{\"masked\": [").expect("writes");
        assert_eq!(State::read(home.path()), State::default());
    }

    #[test]
    fn several_processes_lose_no_crate() {
        let home = tempfile::tempdir().expect("a folder");
        std::thread::scope(|threads| {
            for thread in 0..4 {
                let home = home.path();
                threads.spawn(move || {
                    for number in 0..20 {
                        State::note_crate(home, &format!("crate{thread}_{number}"));
                    }
                });
            }
        });
        State::note_crate(home.path(), "build_script_build");
        assert_eq!(State::read(home.path()).crates.len(), 80);
    }
}
