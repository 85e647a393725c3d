//! SC0140 `lora-out-of-order`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A call about the adapters of a model at a time when it has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoraOutOfOrder {
    /// `add_lora` for a model that has adapters.
    AddedTwice,
    /// `add_lora` after `compile!`.
    AddedAfterCompile,
    /// `merge_lora` for a model without adapters.
    NothingToMerge,
}

impl Rule for LoraOutOfOrder {
    const PAGE: RulePage = RulePage {
        code: "SC0140",
        name: "lora-out-of-order",
        severity: Severity::Error,
        stage: Stage::Compile,
        finds: "`add_lora` for a model that is compiled, or that has adapters already; `merge_lora` for a model without \
                adapters.",
        why: "Adapters are variables. `compile!` plans moments for the existing variables of a model, so add \
              adapters before `compile!`. A model has one set of adapters; to start over, merge them or load the \
              checkpoint again.",
        bad: "model.add_lora(Lora::new(8).alpha(16.0))?; // `model` is compiled",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
               model.add_lora(Lora::new(8).alpha(16.0))?;\n\
               compile!(model, optimizer = AdamW::new(2e-4), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::AddedTwice => Self::start("the model has adapters already".to_owned())
                .label(Place::call("add_lora"), "adds a second set")
                .why("a layer has one adapter; a second one would be trained in its place")
                .fix("`model.merge_lora()?` first, which adds what the adapters have learned to the weights")
                .fix("load the checkpoint again, and name all targets in one call: `.targets([\"query\", \"value\"])`"),
            Self::AddedAfterCompile => {
                Self::start("adapters are added before `compile!`".to_owned())
                    .label(Place::call("add_lora"), "the model is compiled")
                    .why("`compile!` has planned moments for all variables; with adapters almost all of them are frozen")
                    .fix("move `add_lora` before `compile!`, after `from_pretrained`")
            }
            Self::NothingToMerge => Self::start("the model has no adapters to merge".to_owned())
                .label(Place::call("merge_lora"), "nothing to add to the weights")
                .why("adapters come from `add_lora`, or from a folder with `adapter_config.json`; merged ones are gone")
                .fix("leave `merge_lora` out: `save_pretrained` writes the whole model as it is"),
        }
    }
}
