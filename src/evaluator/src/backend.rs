//! What a session asks of this evaluator before and beside it: a start, and the answers of magics.

use std::sync::Arc;

use stratoscope_diagnostics::Result;
use stratoscope_session::{Assist, Backend, Evaluate, Lint, MagicCell, Variable};
use stratoscope_wire::MimeBundle;

use super::engine::Engine;
use crate::assist::Assistant;
use crate::lint::Linter;
use crate::magic::{self, Magic};

/// Cells run through evcxr.
#[derive(Default)]
pub struct EvcxrBackend {
    linter: Linter,
    assistant: Assistant,
}

impl Backend for EvcxrBackend {
    fn start(&self) -> Result<Box<dyn Evaluate>> {
        self.linter.clear();
        self.assistant.set_variables(Vec::new());
        let engine = Engine::start(self.linter.clone(), self.assistant.clone())?;
        Ok(Box::new(engine))
    }

    fn magic(&self, code: &str) -> Option<Box<dyn MagicCell>> {
        let magic = Magic::parse(code)?;
        Some(Box::new(magic))
    }

    fn table(&self, variables: &[Variable]) -> MimeBundle {
        magic::table(variables)
    }

    fn assistant(&self) -> Option<Arc<dyn Assist>> {
        Some(Arc::new(self.assistant.clone()))
    }

    fn linter(&self) -> Option<Arc<dyn Lint>> {
        Some(Arc::new(self.linter.clone()))
    }
}
