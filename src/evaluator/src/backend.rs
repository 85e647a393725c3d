//! What a session asks of this evaluator before and beside it: a start, and the answers of magics.

use std::sync::Arc;

use stratoscope_diagnostics::Result;
use stratoscope_session::{Assist, Backend, Evaluate, Lint, MagicCell, Variable};
use stratoscope_wire::MimeBundle;

use super::engine::Engine;
use crate::assist::Assistant;
use crate::lint::Linter;
use crate::magic::{self, AskedHelp, Magic};

/// Cells run through evcxr.
#[derive(Default)]
pub struct EvcxrBackend {
    linter: Linter,
    assistant: Assistant,
}

impl EvcxrBackend {
    /// `name?` and `help(name)`, unless the notebook has a function `help`, or a variable that a `?` can be about.
    fn help(&self, code: &str) -> Option<Magic> {
        let AskedHelp { name, is_call } = AskedHelp::of(code)?;
        let is_rust = match is_call {
            true => self.linter.defines("help"),
            false => self.assistant.may_fail(name),
        };
        if is_rust {
            return None;
        }
        Some(match name {
            "" => Magic::Help,
            name => Magic::inspect(name),
        })
    }
}

impl Backend for EvcxrBackend {
    fn start(&self) -> Result<Box<dyn Evaluate>> {
        self.linter.clear();
        self.assistant.set_variables(Vec::new());
        let engine = Engine::start(self.linter.clone(), self.assistant.clone())?;
        Ok(Box::new(engine))
    }

    fn magic(&self, code: &str) -> Option<Box<dyn MagicCell>> {
        let magic = Magic::parse(code).or_else(|| self.help(code))?;
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

#[cfg(test)]
mod tests {
    use stratoscope_diagnostics::check;

    use super::*;

    #[test]
    fn help_is_about_names_and_no_error_of_rust() {
        let backend = EvcxrBackend::default();
        let variable = |name: &str, type_name: &str| Variable {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            ..Variable::default()
        };
        backend.assistant.set_variables(vec![
            variable("result", "Result<i32, String>"),
            variable("option", "core::option::Option<i32>"),
            variable("number", "i32"),
        ]);
        for (code, is_help) in [
            ("AdamW?", true),
            ("number?", true),
            ("unknown?", true),
            ("result?", false),
            ("option?", false),
            ("result.field?", false),
            ("help(AdamW)", true),
            ("help(result)", true),
            ("help()", true),
        ] {
            assert_eq!(backend.magic(code).is_some(), is_help, "{code}");
        }
        backend
            .linter
            .set_defined(check::defined_in("fn help(x: i32) {}"));
        assert!(backend.magic("help(number)").is_none());
    }
}
