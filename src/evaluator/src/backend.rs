//! What a session asks of this evaluator before and beside it: a start, and the answers of magics.

use stratoscope_diagnostics::Result;
use stratoscope_session::{Backend, Evaluate, MagicCell, Variable};
use stratoscope_wire::MimeBundle;

use super::engine::Engine;
use crate::magic::{self, Magic};

/// Cells run through evcxr.
pub struct EvcxrBackend;

impl Backend for EvcxrBackend {
    fn start(&self) -> Result<Box<dyn Evaluate>> {
        Ok(Box::new(Engine::start()?))
    }

    fn magic(&self, code: &str) -> Option<Box<dyn MagicCell>> {
        let magic = Magic::parse(code)?;
        Some(Box::new(magic))
    }

    fn table(&self, variables: &[Variable]) -> MimeBundle {
        magic::table(variables)
    }
}
