//! A cell, read once.

use std::ops::Range;
use std::sync::Arc;

use stratoscope_cell_syntax::CellSyntax;

use crate::definitions::Definitions;
use crate::header::Header;
use crate::macro_rules::Macros;
use crate::nesting;
use crate::rewrite::{self, Rewritten};
use crate::tokens::{Token, tokens};

/// A cell, its header, its tokens and its syntax. The statements are parsed when somebody first asks for them, after
/// [`ParsedCell::too_deep`] has shown that no parser overflows its stack.
#[derive(Clone, Debug)]
pub struct ParsedCell<'a> {
    /// As typed.
    pub code: &'a str,
    /// The magics and commands above the Rust code.
    pub header: Header,
    /// Those of the header's lines, each line on its own, and those of the Rust code.
    pub tokens: Vec<Token>,
    /// The cell as the checks and the rewriting read it: magics that stand for Rust are blanked, everything else is in its
    /// place.
    pub syntax: CellSyntax,
    /// The macros that earlier cells have defined.
    pub(crate) session_macros: Macros,
    /// Its lines are marked for the debugger.
    pub(crate) is_debugged: bool,
}

/// What becomes of a cell that is executed.
#[derive(Clone, Debug)]
pub struct Rewriting {
    /// What evcxr compiles.
    pub rewritten: Rewritten,
    /// The types and constants that the cell defines.
    pub definitions: Definitions,
    /// The macros that it defines.
    pub macros: Macros,
    /// The items that stand in place of calls of macros, as code.
    pub written_out: Vec<String>,
    /// It defines a function `main`, and nothing of it runs.
    pub is_program: bool,
}

impl<'a> ParsedCell<'a> {
    /// Reads the header and the tokens. The time is linear in the length of the text.
    pub fn of(code: &'a str) -> Self {
        let header = Header::of(code);
        let mut found = Vec::new();
        let mut start = 0;
        // A quote in a line for the shell opens no string of the Rust code.
        for line in code[..header.end].split_inclusive('\n') {
            found.extend(tokens(code, start..start + line.len()));
            start += line.len();
        }
        found.extend(tokens(code, header.end..code.len()));
        let as_typed: Arc<str> = code.into();
        let rust = match header.lines.is_empty() {
            true => as_typed.clone(),
            false => header.without_lines(code).into(),
        };
        let syntax = CellSyntax::with_rust(as_typed, rust, header.end);
        Self {
            code,
            header,
            tokens: found,
            syntax,
            session_macros: Macros::default(),
            is_debugged: false,
        }
    }

    /// With marks for the debugger ([`rewrite::places`]).
    pub fn debugged(mut self, is_debugged: bool) -> Self {
        self.is_debugged = is_debugged;
        self
    }

    /// With the definitions of these macros: calls that stand for items are written out.
    pub fn with_session_macros(mut self, macros: Macros) -> Self {
        self.session_macros = macros;
        self
    }

    /// The bytes of the Rust code.
    pub fn body(&self) -> Range<usize> {
        self.header.end..self.code.len()
    }

    /// The line on which the cell is nested deeper than a parser can take, and why it is refused.
    pub fn too_deep(&self) -> Option<(usize, String)> {
        nesting::too_deep(self.code, &self.tokens)
    }

    /// Rewrites the statements: what evcxr is given for cell `number`, and what the cell defines. A `silent`
    /// cell does not show its last expression.
    pub fn rewrite(&self, number: u64, silent: bool) -> Rewriting {
        rewrite::rewrite_cell(self, number, silent)
    }
}
