//! SC0526 `damaged-checkpoint`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// Checkpoints that are not what was written, or none at all.
#[derive(Clone, Debug)]
pub struct DamagedCheckpoint {
    /// The folder that was given.
    pub folder: String,
    /// Files that are not used, and why.
    pub unusable: Vec<(String, String)>,
    /// The checkpoint that is used in their place, if there is one.
    pub used: Option<String>,
    /// Whether there is such a folder.
    pub exists: bool,
}

impl Rule for DamagedCheckpoint {
    const PAGE: RulePage = RulePage {
        code: "SC0526",
        name: "damaged-checkpoint",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "`resume_from = \"folder\"` with a folder that has no complete checkpoint: none was written, a file \
                is missing, or its bytes have changed. If an older checkpoint is complete, it is used, and this is a \
                warning.",
        why: "The manifest of a checkpoint lists every file with its size and checksum. A run that continues from \
              damaged numbers would train another model.",
        bad: "fit!(model, train.take(64), resume_from = std::env::temp_dir().join(\"no run\"))?;",
        good: "let folder = std::env::temp_dir().join(\"a run\");\nfit!(model, train.take(64), checkpoint = &folder, every = 1)?;\nfit!(model, train.take(64), resume_from = &folder)?;",
        tensorflow: "",
    };

    const GIVEN: &'static [&'static str] = &[
        "compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;",
    ];

    fn diagnostic(&self) -> Diagnostic {
        let message = match (&self.used, self.unusable.first()) {
            (Some(used), Some((path, _))) => {
                format!("`{path}` is damaged; the run continues from `{used}`")
            }
            (_, None) if !self.exists => format!("the folder `{}` does not exist", self.folder),
            (_, None) => format!("`{}` has no complete checkpoint", self.folder),
            (None, Some((path, _))) => {
                format!("`{path}` is damaged, and no other checkpoint is complete")
            }
        };
        let mut diagnostic = Self::start(message).label(
            Place::argument("fit", "resume_from"),
            "the folder of the checkpoints",
        );
        if self.used.is_some() {
            diagnostic.severity = Severity::Warning;
        }
        for (path, reason) in self.unusable.iter().take(5) {
            diagnostic = diagnostic.evidence(path.clone(), reason.clone());
        }
        match (&self.used, self.unusable.is_empty()) {
            (Some(_), _) => diagnostic.fix("remove the damaged folder; nothing reads it"),
            (None, true) if !self.exists => diagnostic
                .fix("check the path: relative paths start at the folder of the notebook")
                .fix("pass the folder of `checkpoint` in the earlier run")
                .fix("without `resume_from` the run starts from the beginning"),
            (None, true) => diagnostic
                .why("a checkpoint is complete once its `manifest.json` is written")
                .fix("pass the folder of `checkpoint`, or one of its `step-…` folders")
                .fix("without `resume_from` the run starts from the beginning"),
            (None, false) => diagnostic
                .fix("without `resume_from` the run starts from the beginning")
                .fix("`from_pretrained(\"folder/step-…\", …)` may still load the weights alone"),
        }
    }
}
