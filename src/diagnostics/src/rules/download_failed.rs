//! SC0916 `download-failed`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A file of a checkpoint that the hub did not give.
#[derive(Clone, Debug)]
pub struct DownloadFailed {
    /// The checkpoint's name.
    pub name: String,
    /// The file.
    pub file: String,
    /// The hub's address.
    pub endpoint: String,
    /// What went wrong.
    pub reason: String,
}

impl Rule for DownloadFailed {
    const PAGE: RulePage = RulePage {
        code: "SC0916",
        name: "download-failed",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A checkpoint on the hub with a file that could not be downloaded.",
        why: "Incomplete files are not used: the next attempt resumes the download.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"bert-base-uncased\", 8)?; // no network",
        good: "let model = BertForSequenceClassification::from_pretrained(\"./bert-base-uncased\", 8)?; // a folder",
        tensorflow: tensorflow::page("SC0916"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a network failure");

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "`{}` of `{}` could not be downloaded: {}",
            self.file, self.name, self.reason
        ))
        .evidence("endpoint", self.endpoint.clone())
        .fix("check the network, `HF_ENDPOINT` and, for a private model, `HF_TOKEN`")
        .fix("put the files into a folder and pass its path")
    }
}
