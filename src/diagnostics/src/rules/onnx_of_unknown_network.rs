//! SC0761 `onnx-of-unknown-network`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// An export of a network whose layers the exporter does not know.
#[derive(Clone, Debug)]
pub struct OnnxOfUnknownNetwork {
    /// The call: `export_onnx`.
    pub call: String,
    /// What the model is called: `Two`.
    pub model: String,
}

impl Rule for OnnxOfUnknownNetwork {
    const PAGE: RulePage = RulePage {
        code: "SC0761",
        name: "onnx-of-unknown-network",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "An export to ONNX of a custom module.",
        why: "A file in the ONNX format is a graph of operators. The layers of a BERT and of a `Sequential` are known as such; a custom \
              module is Rust code that computes its outputs, and has no description from which a graph could be made.",
        bad: "let model = Model::of(Two::new(&Device::flex()), Outputs::new(\"Two\", 1))?;\n\
              model.export_onnx(\"two.onnx\")?;",
        good: "let model = Sequential([Dense(10).activation(\"relu\").input_shape(5), Dense(1)])?;\n\
               model.export_onnx(\"two.onnx\")?;",
        tensorflow: "",
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a custom module");

    fn diagnostic(&self) -> Diagnostic {
        let model = &self.model;
        Self::start(format!("`{model}` is a custom module, which has no ONNX form"))
            .label(Place::call(&self.call), "only a BERT or a `Sequential` can be exported")
            .why("what it computes is Rust code, from which no graph of operators can be made")
            .fix("write it as a `Sequential`, if its layers allow it: `Sequential([Dense(10).activation(\"relu\"), Dense(1)])?`")
            .fix("take its values, `model.variables()`, and rebuild the module where it is to run")
    }
}
