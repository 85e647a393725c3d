//! Positions in the notebook. rustc compiles a cell as `src/lib.rs`, whose line numbers mean nothing to the cell's
//! author. The calls that the kernel writes before each statement map them to lines of the cell.

use std::panic::Location;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::thread_owner;

/// A statement of the cell that is running or ran last.
#[derive(Clone, Copy)]
struct Statement {
    /// The compiled line before its first one.
    compiled: u32,
    /// Its lines in the cell.
    lines: (u32, u32),
}

#[derive(Default)]
struct Run {
    cell: u64,
    file: &'static str,
    statements: Vec<Statement>,
}

static RUN: Mutex<Option<Run>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<Run>> {
    RUN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cell begins.
pub(super) fn begin(cell: u64) {
    *lock() = Some(Run {
        cell,
        ..Run::default()
    });
}

/// A statement comes next.
pub(super) fn statement(compiled: &'static Location<'static>, lines: (u32, u32)) {
    if let Some(run) = &mut *lock() {
        run.file = compiled.file();
        run.statements.push(Statement {
            compiled: compiled.line(),
            lines,
        });
    }
}

/// `Cell In[3], line 2` for a compiled line; without the line if it is none of the cell's, and `file:line` for another
/// file.
pub fn place(file: &str, line: u32) -> String {
    if thread_owner::earlier_run().is_none()
        && let Some(run) = &*lock()
        && run.file == file
    {
        let found = run.statements.iter().rev().find_map(|it| it.line(line));
        return match found {
            Some(line) => format!("Cell In[{}], line {line}", run.cell),
            None => format!("Cell In[{}]", run.cell),
        };
    }
    format!("{file}:{line}")
}

impl Statement {
    fn line(self, compiled: u32) -> Option<u32> {
        // evcxr adds a line end before the statement.
        let distance = compiled.checked_sub(self.compiled)?.checked_sub(1)?;
        let line = self.lines.0 + distance;
        (line <= self.lines.1).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_that_of_its_statement() {
        begin(3);
        let here = Location::caller();
        statement(here, (2, 4));
        let compiled = here.line();
        for (line, expected) in [
            (compiled + 1, "Cell In[3], line 2"),
            (compiled + 3, "Cell In[3], line 4"),
            (compiled + 4, "Cell In[3]"),
            (1, "Cell In[3]"),
        ] {
            assert_eq!(place(here.file(), line), expected);
        }
        assert_eq!(place("other.rs", 7), "other.rs:7");
    }
}
