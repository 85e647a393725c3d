//! SC0761 `onnx-of-unknown-network`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// An export of a network whose layers the exporter does not know.
#[derive(Clone, Debug)]
pub struct OnnxOfUnknownNetwork {
    /// The call: `export_onnx`.
    pub call: String,
    /// What the model is called: `Two`; of a ModernBERT, whose layers are not translated, `ModernBERT`.
    pub model: String,
}

impl Rule for OnnxOfUnknownNetwork {
    const PAGE: RulePage = RulePage {
        code: "SC0761",
        name: "onnx-of-unknown-network",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "An export to ONNX of a custom module, or of a ModernBERT.",
        why: "A file in the ONNX format is a graph of operators. The layers of a BERT and of a `Sequential` are known as such; a custom \
              module is Rust code that computes its outputs, and has no description from which a graph could be made. The layers of \
              ModernBERT are not translated into operators.",
        bad: "let model = Model::of(Two::new(&Device::flex()), Outputs::new(\"Two\", 1))?;\n\
              model.export_onnx(\"two.onnx\")?;",
        good: "let model = Sequential([Dense(10).activation(\"relu\").input_shape(5), Dense(1)])?;\n\
               model.export_onnx(\"two.onnx\")?;",
        tensorflow: "",
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a custom module");

    fn diagnostic(&self) -> Diagnostic {
        let model = &self.model;
        if model == "ModernBERT" {
            return Self::start("the layers of a ModernBERT are not exported to ONNX")
                .label(Place::call(&self.call), "a BERT of another family or a `Sequential` can be exported")
                .why("an ONNX file is a graph of operators, and these layers are not translated into operators")
                .fix("save it with `save_pretrained`, and export the folder with Hugging Face's optimum");
        }
        Self::start(format!("`{model}` is a custom module, which has no ONNX form"))
            .label(Place::call(&self.call), "only a BERT or a `Sequential` can be exported")
            .why("what it computes is Rust code, from which no graph of operators can be made")
            .fix("write it as a `Sequential`, if its layers allow it: `Sequential([Dense(10).activation(\"relu\"), Dense(1)])?`")
            .fix("take its values, `model.variables()`, and rebuild the module where it is to run")
    }
}
