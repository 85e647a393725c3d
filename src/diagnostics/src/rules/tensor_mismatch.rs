//! SC0904 `tensor-mismatch`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A tensor that is missing from a checkpoint, or has another shape or element type.
#[derive(Clone, Debug)]
pub struct TensorMismatch {
    /// The tensor's name in the checkpoint.
    pub tensor: String,
    /// The shape the model needs.
    pub expected: Vec<usize>,
    /// The shape that was found; `None` if the tensor is missing.
    pub found: Option<Vec<usize>>,
    /// How many tensors do not fit, this one included.
    pub tensors: usize,
    /// The file.
    pub path: String,
}

impl Rule for TensorMismatch {
    const PAGE: RulePage = RulePage {
        code: "SC0904",
        name: "tensor-mismatch",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A tensor of the encoder that is missing from the checkpoint or has another shape than its \
                `config.json` implies. A new classification head is not an error: the load report lists it as \
                new.",
        why: "One layer with random weights makes the whole model useless.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"./edited-config\", 8)?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;",
        tensorflow: tensorflow::page("SC0904"),
    };

    const GIVEN: &'static [&'static str] = &["model.save_pretrained(\"edited-config\")?;\n\
         let config = std::fs::read_to_string(\"edited-config/config.json\")?;\n\
         let config = config.replace(\"\\\"intermediate_size\\\": \", \"\\\"intermediate_size\\\": 1\");\n\
         std::fs::write(\"edited-config/config.json\", config)?;"];

    fn diagnostic(&self) -> Diagnostic {
        let expected = text::shape(&self.expected);
        let message = match &self.found {
            None => format!(
                "tensor `{}` {expected} is missing from the checkpoint",
                self.tensor
            ),
            Some(found) => format!(
                "tensor `{}` has shape {}, the model needs {expected}",
                self.tensor,
                text::shape(found)
            ),
        };
        let diagnostic = Self::start(message)
            .label(
                Place::file(&self.path, None),
                "does not fit the configuration",
            )
            .why("the weights and their `config.json` do not belong together");
        let diagnostic = if self.tensors > 1 {
            diagnostic.evidence("tensors with a mismatch", text::thousands(self.tensors))
        } else {
            diagnostic
        };
        diagnostic.fix("use the `config.json` that was saved with these weights")
    }
}
