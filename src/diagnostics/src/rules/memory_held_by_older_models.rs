//! SC0602 `older-models-hold-memory`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Models of earlier cells that still have their weights and moments.
#[derive(Clone, Debug)]
pub struct OlderModelsHoldMemory {
    /// What each is and how much it holds, in words.
    pub models: Vec<(String, String)>,
    /// All of it, in words: `3.4 GB`.
    pub held: String,
    /// What the devices have in all, in words.
    pub capacity: String,
}

impl Rule for OlderModelsHoldMemory {
    const PAGE: RulePage = RulePage {
        code: "SC0602",
        name: "older-models-hold-memory",
        severity: Severity::Note,
        stage: Stage::Data,
        finds: "Other models that are alive on the same memory when `fit!` begins, if they hold a quarter of the memory or if the run \
                does not fit beside them.",
        why: "A notebook keeps every variable. A model that is bound anew frees its memory; one that is bound to \
              another name, or that a clone or a history still holds, does not.",
        bad: "scope!(small, {\n    \
                  let second = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
                  compile!(second, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              });\n\
              fit!(second, train)?; // `first` is still there",
        good: "drop(first);\n\
               scope!(small, {\n    \
                   let second = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
                   compile!(second, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               });\n\
               fit!(second, train)?;",
        tensorflow: tensorflow::page("SC0602"),
    };

    const GIVEN: &'static [&'static str] = &[
        "let small = OneDeviceStrategy::new(cpu(0).memory_limit(900))?; // megabytes",
        "scope!(small, {\n    \
             let first = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
             compile!(first, optimizer = AdamW::new(5e-5), \
         loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
         });\n\
         fit!(first, train)?;",
    ];

    const TOLERATES: &'static [&'static str] = &["SC0601"];

    fn diagnostic(&self) -> Diagnostic {
        let hold = if self.models.len() == 1 {
            "holds"
        } else {
            "hold"
        };
        let mut told = Self::start(format!(
            "{} {hold} {}",
            text::count(self.models.len(), "older model"),
            self.held
        ))
        .label(Place::call("fit"), "has to do with the rest")
        .why("a model keeps its weights and moments until its last handle is dropped; one that is bound anew \
              lives on until the cell ends that does so")
        .evidence("memory of the devices", self.capacity.clone());
        for (model, bytes) in self.models.iter().take(5) {
            told = told.evidence(model.clone(), bytes.clone());
        }
        told.fix("drop the variable that is not needed any more, `drop(name);`: `%vars` lists what there is")
            .tensorflow(Quote::of("SC0602"))
    }
}
