//! Diagnostics: the model of an error or warning, its renderers, the table of arguments, the checker and the catalogue
//! of rules. It does no I/O.
//!
//! Start reading at [`rules`]. A rule is a file there: a struct with the facts, its documentation page, and a
//! [`Rule`] implementation that turns the facts into a [`Diagnostic`]. The caller provides the facts.
//!
//! [`arguments`] is the table of what `compile!`, `fit!`, `evaluate!` and the optimizers accept. [`check`] compares the
//! text of a cell with that table before the cell is compiled, and finds the place in the text that a diagnostic raised
//! at run time is about. [`mod@render`] writes a diagnostic as HTML, text or JSON. [`work`] is used by the crates above
//! for long operations: it reports progress and checks for an interrupt.
//!
//! ```
//! use stratoscope_diagnostics::check::{CellContext, check_cell};
//! use stratoscope_diagnostics::render::{Source, plain};
//!
//! let cell = "compile!(model, optimiser = AdamW::new(5e-5))?;";
//! let found = check_cell(cell, &CellContext::default());
//! assert_eq!(found[0].code, "SC0101");
//! assert!(plain(&found[0], &Source { text: cell, name: "Cell In[3]" }).contains("`optimizer`"));
//! ```

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod arguments;
pub mod check;
pub mod count;
pub mod diagnostic;
mod fix;
pub mod pages;
pub mod panics;
pub mod policy;
pub mod problem;
pub mod profile;
mod raise;
pub mod render;
pub mod rule;
pub mod rules;
pub mod tensorflow;
pub mod unhandled;
pub mod work;

pub use diagnostic::{
    Answer, ArgumentRow, ArgumentState, CellSpan, Diagnostic, Evidence, Figure, Label, Place,
    Result, Severity, UnnamedStrategy,
};
pub use fix::{Edit, Fix, FixKind};
pub use profile::Profile;
pub use raise::{raise, take_raised};
pub use rule::{Entry, Rule, RulePage, Stage};
pub use stratoscope_cell_syntax::on_deep_stack;
pub use unhandled::watched;
