//! SC0602 `older-models-hold-memory`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage, words};

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
        finds: "Other models that are alive when `fit!` begins, if they hold a quarter of the memory or if the run \
                does not fit beside them.",
        why: "A notebook keeps every variable. A model that is bound anew frees its memory; one that is bound to \
              another name, or that a clone or a history still holds, does not.",
        bad: "let second = BertForSequenceClassification::from_pretrained(\"bert-large-uncased\", 8)?;\n\
              fit!(second, train)?; // `first` is still there",
        good: "drop(first);\n\
               let second = BertForSequenceClassification::from_pretrained(\"bert-large-uncased\", 8)?;\n\
               fit!(second, train)?;",
        tensorflow: "Nothing is said until memory runs out.",
    };

    const NOT_RUN: Option<&'static str> =
        Some("they need models that fill a quarter of the memory");

    fn diagnostic(&self) -> Diagnostic {
        let hold = if self.models.len() == 1 {
            "holds"
        } else {
            "hold"
        };
        let mut told = Self::start(format!(
            "{} {hold} {}",
            words::count(self.models.len(), "older model"),
            self.held
        ))
        .label(Place::call("fit"), "has to do with the rest")
        .why("a model keeps its weights and moments until its last handle is dropped")
        .evidence("memory of the devices", self.capacity.clone());
        for (model, bytes) in self.models.iter().take(5) {
            told = told.evidence(model.clone(), bytes.clone());
        }
        told.fix("drop what is not needed any more: `drop(first);`")
            .tensorflow("says nothing until memory runs out")
    }
}
