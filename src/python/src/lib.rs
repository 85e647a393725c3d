//! Python cells: read, checked by the rules of `diagnostics`, and translated into a cell of the DSL.
//!
//! A pasted Keras cell is no Rust. [`answer`] reads it (`parse`), lowers it to a small model of statements and values
//! (`model`), finds what our rules know as mistakes, with their places in the Python text (`rules`), and writes the
//! same program as a cell of a notebook, each line with the lines that it stands for (`translate`). What has no
//! counterpart is named with its line and left out; nothing is guessed. `card` shows all of it.
//! Whether a text that parses as Python is meant as Python, [`reading`] tells (`signs`).
//!
//! ```
//! let cell = "model.compile(optimizer='adam', loss='mse')\nmodel.fit(train, epochs=3)";
//! let answer = stratoscope_python::answer(cell, &Default::default()).unwrap();
//! assert!(answer.cell().contains("fit!(model, train, epochs = 3)?;"));
//! ```
//!
//! **Invariant**: the facade does not link this crate, which brings a parser of Python: it is for the kernel alone.
//!
//! Start reading at [`answer`], which calls these modules in order.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

use std::collections::BTreeMap;

use stratoscope_diagnostics::Diagnostic;

mod card;
mod lower;
mod model;
mod names;
mod notebook;
mod parse;
mod rules;
mod signs;
mod trainer_rules;
mod translate;

pub use notebook::{Cells, cells};
pub use signs::{Reading, Sign, reading};

/// What the notebook has.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Its variables and their types.
    pub variables: BTreeMap<String, String>,
}

/// A line of the translated cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Blocks around it.
    pub depth: usize,
    /// It, without the spaces before it.
    pub text: String,
    /// The first and the last line of Python that it stands for, counted from 1.
    pub python: Option<(usize, usize)>,
    /// It is a comment.
    pub is_comment: bool,
}

/// A statement or an argument that is not translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its first and its last line, counted from 1.
    pub lines: (usize, usize),
    /// Its first line.
    pub python: String,
    /// Why.
    pub why: String,
}

/// Something that is different here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The line of Python, counted from 1.
    pub line: usize,
    /// What it is.
    pub text: String,
}

/// An argument or a step that sets nothing here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idle {
    /// The line of Python, counted from 1.
    pub line: usize,
    /// It, as it is written.
    pub text: String,
    /// Why it sets nothing.
    pub why: String,
}

/// A name that the cell uses and does not make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Free {
    /// The name.
    pub name: String,
    /// What is expected; empty where any value may be.
    pub what: String,
    /// The notebook has a variable of this name.
    pub is_given: bool,
}

/// A translated program.
#[derive(Clone, Debug, Default)]
pub struct Translation {
    /// The lines of the cell.
    pub lines: Vec<Line>,
    /// What is not translated.
    pub left: Vec<Left>,
    /// What is different.
    pub notes: Vec<Note>,
    /// What sets nothing here.
    pub idle: Vec<Idle>,
    /// What our rules find in the Python text.
    pub findings: Vec<Diagnostic>,
    /// Names that the cell takes from elsewhere.
    pub free: Vec<Free>,
    /// It uses TensorFlow, Keras or Hugging Face.
    pub is_keras: bool,
}

/// The answer to a Python cell.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The translated program.
    pub translation: Translation,
    /// The card: the first diagnostic tells that this is Python and has the table of both programs; then what the rules find.
    pub diagnostics: Vec<Diagnostic>,
}

impl Answer {
    /// The text of the translated cell.
    pub fn cell(&self) -> String {
        self.translation.cell()
    }

    /// Whether nothing is to be done: imports, and what sets nothing here.
    pub fn is_nothing(&self) -> bool {
        self.translation.is_nothing()
    }

    /// Whether a cell can be put below: it has a statement, not only comments.
    pub fn has_cell(&self) -> bool {
        self.translation.lines.iter().any(|line| !line.is_comment)
    }
}

impl Translation {
    /// Whether nothing is left of the program, and nothing of it is left out.
    pub(crate) fn is_nothing(&self) -> bool {
        self.left.is_empty() && self.lines.iter().all(|line| line.is_comment)
    }

    /// The text of the cell.
    pub fn cell(&self) -> String {
        let lines = self.lines.iter().map(|line| match line.text.is_empty() {
            true => String::new(),
            false => "    ".repeat(line.depth) + &line.text,
        });
        let lines: Vec<String> = lines.collect();
        lines.join("\n")
    }
}

/// The answer to a cell that is no Rust; `None` where it is no Python either, or too long to be looked at.
pub fn answer(text: &str, known: &Known) -> Option<Answer> {
    let program = parse::program(text)?;
    let translation = translate::translate(text, &program, known);
    let diagnostics = card::diagnostics(text, &translation);
    Some(Answer {
        translation,
        diagnostics,
    })
}

impl Answer {
    /// The same for a front end in which the translated cell is put below: the card is a note, nothing has failed.
    pub fn as_note(mut self) -> Self {
        card::as_note(&mut self.diagnostics);
        self
    }
}

/// A line of a program, shortened for a message.
pub fn excerpt(line: &str) -> String {
    stratoscope_render::text::excerpt(line, 60)
}
