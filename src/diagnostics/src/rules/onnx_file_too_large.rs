//! SC0762 `onnx-file-too-large`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// An export of a model whose file no reader could open.
#[derive(Clone, Debug)]
pub struct OnnxFileTooLarge {
    /// The call: `export_onnx`.
    pub call: String,
    /// What the model is called.
    pub model: String,
    /// The size of the file, in words.
    pub bytes: String,
    /// The weights have 32 bits, and could have 8.
    pub in_32_bits: bool,
}

impl Rule for OnnxFileTooLarge {
    const PAGE: RulePage = RulePage {
        code: "SC0762",
        name: "onnx-file-too-large",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "An export to ONNX of a model whose file would have more than 2 GiB.",
        why: "An ONNX file is a message of protobuf, whose libraries read at most 2 GiB. Weights in files of their own, \
              ONNX's external data, are not written here.",
        bad: "let model = BertForMaskedLM::from_pretrained(\"facebook/xlm-roberta-xl\")?; // 3.5 billion parameters\n\
              model.export_onnx(\"model.onnx\")?;",
        good: "let model = BertForMaskedLM::from_pretrained(\"xlm-roberta-large\")?;\n\
               model.export_onnx_int8(\"model.onnx\")?; // 0.6 GB",
        tensorflow: "",
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a checkpoint of several gigabytes");

    fn diagnostic(&self) -> Diagnostic {
        let Self { model, bytes, .. } = self;
        let start = Self::start(format!(
            "the file of `{model}` would have {bytes}, but at most 2 GiB can be read"
        ))
        .label(Place::call(&self.call), "too large for one file")
        .why("libraries of protobuf, in which ONNX files are written, read at most 2 GiB");
        let diagnostic = match self.in_32_bits {
            true => start.fix("write the weights in 8 bits, a quarter of the size: `model.export_onnx_int8(\"model.onnx\")?`"),
            false => start,
        };
        diagnostic.fix("`model.save_pretrained(\"folder\")?`, and export the folder with Hugging Face's optimum, which writes external data")
    }
}
