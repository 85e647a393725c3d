//! The cells that ran before, for `%history`.

use std::path::PathBuf;

/// The history of a front end.
pub trait PastCells: Send + Sync {
    /// The last `most` cells whose text has the pattern, oldest first. `asking` is the number of the cell that
    /// asks, which is left out.
    fn find(&self, pattern: Option<&str>, most: usize, asking: u64) -> FoundCells;

    /// Changes what is kept.
    ///
    /// # Errors
    /// Why it cannot be changed, and what helps.
    fn change(&self, change: HistoryChange) -> Result<(), String>;
}

/// The answer of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCells {
    /// Oldest first.
    pub cells: Vec<PastCell>,
    /// How many there are, with those that are not shown.
    pub total: usize,
    /// The file that keeps cells; `None`: none does.
    pub kept_in: Option<PathBuf>,
    /// What is wrong with the file.
    pub notice: Option<String>,
}

/// A cell that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastCell {
    /// Counted from 1 over all kernels; 0: nothing is kept.
    pub session: i64,
    /// `In[number]`
    pub number: u64,
    /// Its text.
    pub code: String,
}

/// What `%history` can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryChange {
    /// Cells are kept from now on.
    On,
    /// Cells are not kept from now on.
    Off,
    /// Every cell is forgotten, those of all sessions.
    Clear,
}
