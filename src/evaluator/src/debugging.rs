//! Whether the debugger is on: then cells are compiled with debug information, and their lines are marked.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use stratoscope_cell_text::rewrite::places;
use stratoscope_compile::home;
use stratoscope_compile::state::State;
use stratoscope_session::CellLine;

/// Where the compiler's formatters for debuggers lie in its folder.
const FORMATTERS: &str = "lib/rustlib/etc";

/// Shared by the evaluator and by whoever asks while it runs a cell.
#[derive(Debug)]
pub struct Debugging {
    /// The private folder.
    home: PathBuf,
    /// See [`stratoscope_session::Debuggee::formatters`].
    pub formatters: PathBuf,
    /// The process of the debugger; 0 while it is off.
    adapter: AtomicU32,
    /// Cells get debug information.
    has_information: AtomicBool,
    /// What is executed is an expression that a client asks for, with the number of another cell.
    is_asked: AtomicBool,
}

impl Debugging {
    /// It is off. `sysroot`: the folder of the compiler.
    pub fn new(home: &Path, sysroot: &Path) -> Self {
        Self {
            home: home.to_owned(),
            formatters: sysroot.join(FORMATTERS),
            adapter: AtomicU32::new(0),
            has_information: AtomicBool::new(false),
            is_asked: AtomicBool::new(false),
        }
    }

    /// The process of the debugger, if it is on.
    pub fn adapter(&self) -> Option<u32> {
        Some(self.adapter.load(Ordering::SeqCst)).filter(|it| *it > 0)
    }

    /// Whether the lines of a cell are marked.
    pub fn marks_lines(&self) -> bool {
        self.adapter().is_some() && !self.is_asked.load(Ordering::SeqCst)
    }

    /// What is executed next is a cell of the notebook, or is none.
    pub fn executes_a_cell(&self, is_cell: bool) {
        self.is_asked.store(!is_cell, Ordering::SeqCst);
    }

    /// Turns it on or off.
    pub fn set(&self, adapter: Option<u32>, has_information: bool) {
        self.adapter.store(adapter.unwrap_or(0), Ordering::SeqCst);
        let has_information = has_information && adapter.is_some();
        if self.has_information.swap(has_information, Ordering::SeqCst) != has_information {
            // Without the file, cells have no debug information, and their breakpoints do not stop.
            let _ = State::update(&self.home, |state| state.debug = has_information);
        }
    }

    /// What the lines stand for of the cell that was compiled last.
    pub fn compiled_lines(&self) -> BTreeMap<u32, CellLine> {
        let text = fs::read_to_string(home::source(&self.home)).unwrap_or_default();
        let of_cell = |it: places::Place| CellLine {
            cell: it.cell,
            line: it.line,
            begins: it.begins,
        };
        let places = places::read(&text).into_iter();
        places.map(|(line, it)| (line, of_cell(it))).collect()
    }
}
