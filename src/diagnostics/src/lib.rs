//! One model of an error or warning, its renderers, the table of arguments, and the catalogue of
//! rules.
//!
//! A rule is a file in [`rules`]: a struct that holds the facts, its documentation, and a
//! [`rule::Rule`] implementation that turns the facts into a [`Diagnostic`]. Whoever finds the
//! problem fills in the facts; this crate does no I/O and decides nothing at run time. [`work`] is what
//! the crates above share beside it: how long work says how far it is, and hears an interrupt.
//!
//! [`arguments`] is the table of what `compile!`, `fit!`, `evaluate!` and the optimizers accept.
//! [`check`] reads the text of a cell against that table before anything is compiled, and finds
//! the text that a diagnostic raised at run time talks about. [`render`] draws the result.
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

pub mod arguments;
pub mod check;
pub mod diagnostic;
pub mod pages;
pub mod policy;
pub mod profile;
mod raise;
pub mod render;
pub mod rule;
pub mod rules;
pub mod tensorflow;
pub mod work;

pub use diagnostic::{
    Answer, ArgumentRow, ArgumentState, CellSpan, Diagnostic, Edit, Evidence, Figure, Fix, Label,
    Place, Result, Severity,
};
pub use profile::Profile;
pub use raise::{raise, take_raised};
pub use rule::{Entry, Rule, RulePage, Stage};
