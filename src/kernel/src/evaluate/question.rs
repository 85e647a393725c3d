//! Asks rustc what is wrong with a cell whose variables have no type that could be worked out. It is
//! rust-analyzer that works them out, before anything is compiled, and what it cannot work out is most
//! often wrong: a function that does not exist has no type. rustc says that much better. So the cell is
//! compiled as a block, in which variables need no type that could be written down, and with a mistake
//! of ours at its end, so that it never runs.

use evcxr::CompilationError;

use crate::rewrite::{Rewritten, is_command};

/// What begins a cell's block, on the cell's first line.
const BEFORE: &str = "{ ";
/// What ends it. The mistake is one that lets rustc find all others of names and types.
const AFTER: &str = "\n; let stratoscope_asks: () = 0_u8; };";
/// By which its line is known.
const OURS: &str = "let stratoscope_asks: ()";

/// rustc wants a type, too: that is what is told anyway.
const WANTS_A_TYPE: [&str; 3] = ["E0282", "E0283", "E0284"];

/// The cell as a block, if it may be one: commands stand alone.
pub fn asked(rewritten: &Rewritten) -> Option<Rewritten> {
    let may_be_one = !rewritten.text.lines().any(is_command);
    may_be_one.then(|| rewritten.between(BEFORE, AFTER))
}

/// rustc's errors about the cell, without that about our mistake. `None`: there are no others.
pub fn answered(errors: Vec<CompilationError>) -> Option<Vec<CompilationError>> {
    let is_ours = |error: &CompilationError| {
        let spans = error.json["spans"].as_array();
        spans.into_iter().flatten().any(|span| {
            let line = span["text"][0]["text"].as_str();
            line.is_some_and(|line| line.contains(OURS))
        })
    };
    let errors: Vec<_> = errors.into_iter().filter(|error| !is_ours(error)).collect();
    let says_something = |error: &CompilationError| {
        let wants_a_type = error.code().is_some_and(|it| WANTS_A_TYPE.contains(&it));
        error.level() == "error" && error.is_from_user_code() && !wants_a_type
    };
    errors.iter().any(says_something).then_some(errors)
}
