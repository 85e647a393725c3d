//! SC0760 `onnx-of-unbuilt-model`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// An export of a model that has no variables yet.
#[derive(Clone, Debug)]
pub struct OnnxOfUnbuiltModel {
    /// The call: `export_onnx`.
    pub call: String,
}

impl Rule for OnnxOfUnbuiltModel {
    const PAGE: RulePage = RulePage {
        code: "SC0760",
        name: "onnx-of-unbuilt-model",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "An export to ONNX of a `Sequential` that waits for the width of its input.",
        why: "The file contains the weights, and a model that is not built has none. Their shapes depend on the width \
              of a row.",
        bad: "let model = Sequential([Dense(10).activation(\"relu\"), Dense(1)])?;\n\
              model.export_onnx(std::env::temp_dir().join(\"model.onnx\"))?;",
        good: "let model = Sequential([Dense(10).activation(\"relu\"), Dense(1)])?;\n\
               model.build((None, 5))?;\n\
               model.export_onnx(std::env::temp_dir().join(\"model.onnx\"))?;",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start("the model is not built, so it has no weights to export".to_owned())
            .label(Place::call(&self.call), "a model without variables")
            .why("the shapes of its weights depend on the width of a row")
            .fix("build it first: `model.build((None, 5))?`, with the width of a row")
            .fix("train it first: `fit!` builds it for the width of its data")
    }
}
