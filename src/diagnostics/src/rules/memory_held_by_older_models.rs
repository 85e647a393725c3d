//! SC0602 `memory-held-by-older-models`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Models of earlier cells that still have their weights and moments.
#[derive(Clone, Debug)]
pub struct MemoryHeldByOlderModels {
    /// What each is and how much it holds, in words.
    pub models: Vec<(String, String)>,
    /// All of it, in words: `3.4 GB`.
    pub held: String,
    /// What the devices have in all, in words.
    pub capacity: String,
}

impl Rule for MemoryHeldByOlderModels {
    const PAGE: RulePage = RulePage {
        code: "SC0602",
        name: "memory-held-by-older-models",
        severity: Severity::Note,
        stage: Stage::Data,
        finds: "Other models that use the same memory when `fit!` begins, if they take a quarter of the memory or if \
                the run does not fit into the rest.",
        why: "A notebook keeps every variable. Assigning a new model to the same name frees the old one; a model \
              under another name, or one that a clone or a history still refers to, keeps its memory.",
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

    const TOLERATES: &'static [&'static str] = &["SC0601", "SC0608"];

    fn diagnostic(&self) -> Diagnostic {
        let hold = if self.models.len() == 1 {
            "holds"
        } else {
            "hold"
        };
        let mut diagnostic = Self::start(format!(
            "{} {hold} {}",
            text::count(self.models.len(), "older model"),
            self.held
        ))
        .label(Place::call("fit"), "must use the rest")
        .why("a model keeps its weights and moments until its last handle is dropped; a model whose name is \
              assigned again is freed when that cell ends")
        .evidence("memory of the devices", self.capacity.clone());
        for (model, bytes) in self.models.iter().take(5) {
            diagnostic = diagnostic.evidence(model.clone(), bytes.clone());
        }
        diagnostic.fix("drop variables that are no longer needed, `drop(name);`: `%vars` lists all variables")
            .tensorflow(Quote::of("SC0602"))
    }
}
