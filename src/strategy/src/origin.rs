//! Where a variable was created: the cell and line of a notebook, or the file and line of a program.

use std::fmt;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::rules::BuiltAt;

/// A place in the user's program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// The notebook's cell, as in `In[3]`.
    pub cell: Option<u64>,
    /// The line of the cell or file, counted from 1.
    pub line: Option<u32>,
    /// The file, where there is no cell.
    pub file: Option<String>,
}

#[derive(Clone, Copy)]
struct Statement {
    cell: Option<u64>,
    line: Option<u32>,
}

/// The statement that the notebook runs now, for all threads. Process-wide, because constructors such as
/// `MirroredStrategy::new()` record where they are called and take no context; only the facade writes it, before each
/// statement.
static STATEMENT: Mutex<Statement> = Mutex::new(Statement {
    cell: None,
    line: None,
});

impl Origin {
    /// The statement that the notebook runs now; without a notebook, the caller of the function
    /// that is marked `#[track_caller]`.
    #[track_caller]
    pub fn current() -> Self {
        let Statement { cell, line } = statement();
        if cell.is_some() {
            return Self {
                cell,
                line,
                file: None,
            };
        }
        let caller = Location::caller();
        Self {
            cell: None,
            line: Some(caller.line()),
            file: Some(caller.file().to_owned()),
        }
    }

    /// For the rules that name the cell to change.
    pub fn built_at(&self) -> BuiltAt {
        let line = self.line.and_then(|line| usize::try_from(line).ok());
        match self.cell {
            Some(_) if self.cell == current_cell() => BuiltAt::Here(line),
            Some(number) => BuiltAt::Cell { number, line },
            None => BuiltAt::Program(Some(self.to_string())),
        }
    }
}

impl fmt::Display for Origin {
    /// `cell 3, line 7`, `src/main.rs:7`, or `unknown`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.cell, &self.file, self.line) {
            (Some(cell), _, Some(line)) => write!(f, "cell {cell}, line {line}"),
            (Some(cell), _, None) => write!(f, "cell {cell}"),
            (None, Some(file), Some(line)) => write!(f, "{file}:{line}"),
            (None, Some(file), None) => f.write_str(file),
            (None, None, _) => f.write_str("unknown"),
        }
    }
}

fn statement() -> Statement {
    *STATEMENT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn set(statement: Statement) {
    *STATEMENT.lock().unwrap_or_else(PoisonError::into_inner) = statement;
}

/// A cell begins. A default strategy that was set by an earlier cell is active from here on.
pub fn begin_cell(cell: u64) {
    set(Statement {
        cell: Some(cell),
        line: None,
    });
}

/// The statement at this line, counted from 1, is about to run.
pub fn set_statement(cell: u64, line: u32) {
    set(Statement {
        cell: Some(cell),
        line: Some(line),
    });
}

/// No cell runs: places are files again.
pub fn clear() {
    set(Statement {
        cell: None,
        line: None,
    });
}

/// The cell that runs now, if a notebook runs one.
pub fn current_cell() -> Option<u64> {
    statement().cell
}

/// The statement is process-wide, so tests that set it take turns.
#[cfg(test)]
pub(crate) fn taking_turns() -> std::sync::MutexGuard<'static, ()> {
    static TURNS: Mutex<()> = Mutex::new(());
    let turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    clear();
    turn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_wins_over_a_file() {
        let _turn = taking_turns();
        let origin = Origin::current();
        assert_eq!(origin.file.as_deref(), Some(file!()));
        assert!(origin.to_string().starts_with(file!()), "{origin}");
        begin_cell(3);
        assert_eq!(Origin::current().to_string(), "cell 3");
        set_statement(3, 7);
        assert_eq!(Origin::current().to_string(), "cell 3, line 7");
        clear();
        assert_eq!(Origin::default().to_string(), "unknown");
    }
}
