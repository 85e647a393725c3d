//! The folders of the GLUE benchmark (Wang et al. 2018), as its download script lays them out: nine tasks, each with
//! columns of its own. The classes have the numbers and names of the benchmark's data card at Hugging Face.

use std::path::{Path, PathBuf};

use stratoscope_diagnostics::Result;

use super::{Columns, readers};
use crate::dataset::Dataset;

/// Reads the tasks of the GLUE benchmark: `Glue::sst2("glue/SST-2")?` is its training and its validation split.
#[derive(Clone, Copy, Debug)]
pub struct Glue;

/// How the files of a task are written.
struct Task {
    text: &'static str,
    pair: Option<&'static str>,
    label: &'static str,
    /// What stands in the files for each class, in the order of their numbers; nothing for a number to predict.
    classes: &'static [&'static str],
    /// The names of the classes.
    names: &'static [&'static str],
    /// Whether its published files have rows that cannot be read, which the benchmark's own scripts leave out.
    has_bad_rows: bool,
}

const NAMED: [&str; 2] = ["0", "1"];
const ENTAILED: [&str; 2] = ["entailment", "not_entailment"];
const INFERRED: [&str; 3] = ["entailment", "neutral", "contradiction"];
/// CoLA's files have no header.
const COLA_HEADER: &str = "source\tlabel\tmark\tsentence";

impl Task {
    const fn of_texts(
        text: &'static str,
        pair: Option<&'static str>,
        label: &'static str,
        classes: &'static [&'static str],
        names: &'static [&'static str],
    ) -> Self {
        Self {
            text,
            pair,
            label,
            classes,
            names,
            has_bad_rows: false,
        }
    }

    fn columns(&self) -> Columns {
        let columns = Columns::new().text(self.text);
        let columns = match self.pair {
            Some(pair) => columns.pair(pair),
            None => columns,
        };
        let columns = match self.has_bad_rows {
            true => columns.skip_bad_rows(),
            false => columns,
        };
        match self.classes {
            [] => columns.value(self.label),
            _ => columns.label(self.label),
        }
    }

    /// The classes numbered and named.
    fn named(&self, data: Dataset) -> Result<Dataset> {
        if self.classes.is_empty() {
            return Ok(data);
        }
        let classes = self.classes.iter().map(|&class| class.to_owned());
        data.with_label_names(&classes.collect::<Vec<_>>())?
            .rename_labels(self.names.iter().copied())
    }

    fn file(&self, path: PathBuf) -> Result<Dataset> {
        self.named(Dataset::tsv_with(path, &self.columns())?)
    }

    fn splits(&self, folder: impl AsRef<Path>) -> Result<(Dataset, Dataset)> {
        let folder = folder.as_ref();
        let train = self.file(folder.join("train.tsv"))?;
        Ok((train, self.file(folder.join("dev.tsv"))?))
    }
}

impl Glue {
    /// The Corpus of Linguistic Acceptability: is a sentence grammatical? Its metric is `mcc()`.
    ///
    /// # Errors
    /// As [`Dataset::tsv`]; SC0913 for a class that the task does not have.
    pub fn cola(folder: impl AsRef<Path>) -> Result<(Dataset, Dataset)> {
        const NAMES: [&str; 2] = ["unacceptable", "acceptable"];
        let task = Task::of_texts("sentence", None, "label", &NAMED, &NAMES);
        let read = |name: &str| {
            let path = folder.as_ref().join(name);
            task.named(readers::tsv_without_header(
                &path,
                COLA_HEADER,
                &task.columns(),
            )?)
        };
        Ok((read("train.tsv")?, read("dev.tsv")?))
    }

    /// The Stanford Sentiment Treebank, two classes: is a phrase of a review positive?
    ///
    /// # Errors
    /// As [`Self::cola`].
    pub fn sst2(folder: impl AsRef<Path>) -> Result<(Dataset, Dataset)> {
        const NAMES: [&str; 2] = ["negative", "positive"];
        Task::of_texts("sentence", None, "label", &NAMED, &NAMES).splits(folder)
    }

    /// The Microsoft Research Paraphrase Corpus: do two sentences mean the same? Reads `train.tsv`
    /// and `dev.tsv` of the folder or, where these are missing, the corpus's own
    /// `msr_paraphrase_train.txt` and `msr_paraphrase_test.txt`.
    ///
    /// # Errors
    /// As [`Self::cola`].
    pub fn mrpc(folder: impl AsRef<Path>) -> Result<(Dataset, Dataset)> {
        const NAMES: [&str; 2] = ["not_equivalent", "equivalent"];
        let task = Task::of_texts("#1 String", Some("#2 String"), "Quality", &NAMED, &NAMES);
        let folder = folder.as_ref();
        let file = |glue: &str, original: &str| {
            let (glue, original) = (folder.join(glue), folder.join(original));
            match !glue.exists() && original.exists() {
                true => task.file(original),
                false => task.file(glue),
            }
        };
        let train = file("train.tsv", "msr_paraphrase_train.txt")?;
        Ok((train, file("dev.tsv", "msr_paraphrase_test.txt")?))
    }

    /// Quora Question Pairs: do two questions ask the same? Its files have a few rows with too few or too many fields; they
    /// are skipped, as the benchmark's own scripts do, and counted.
    ///
    /// # Errors
    /// As [`Self::cola`].
    pub fn qqp(folder: impl AsRef<Path>) -> Result<(Dataset, Dataset)> {
        const NAMES: [&str; 2] = ["not_duplicate", "duplicate"];
        let pair = Some("question2");
        let task = Task::of_texts("question1", pair, "is_duplicate", &NAMED, &NAMES);
        let task = Task {
            has_bad_rows: true,
            ..task
        };
        task.splits(folder)
    }

    /// The Semantic Textual Similarity Benchmark: how alike are two sentences, from 0 to 5? A regression, with
    /// `pearson()` and `spearman()`.
    ///
    /// # Errors
    /// As [`Dataset::tsv`].
    pub fn stsb(folder: impl AsRef<Path>) -> Result<(Dataset, Dataset)> {
        Task::of_texts("sentence1", Some("sentence2"), "score", &[], &[]).splits(folder)
    }

    /// Multi-Genre Natural Language Inference: does the first sentence entail or contradict the second, or neither? The
    /// training split, and the validation splits of the same genres (`dev_matched.tsv`) and of others
    /// (`dev_mismatched.tsv`).
    ///
    /// # Errors
    /// As [`Self::cola`].
    pub fn mnli(folder: impl AsRef<Path>) -> Result<(Dataset, Dataset, Dataset)> {
        let pair = Some("sentence2");
        let task = Task::of_texts("sentence1", pair, "gold_label", &INFERRED, &INFERRED);
        let read = |name: &str| task.file(folder.as_ref().join(name));
        Ok((
            read("train.tsv")?,
            read("dev_matched.tsv")?,
            read("dev_mismatched.tsv")?,
        ))
    }

    /// Question-answering inference, from SQuAD: does a sentence hold the answer of a question?
    ///
    /// # Errors
    /// As [`Self::cola`].
    pub fn qnli(folder: impl AsRef<Path>) -> Result<(Dataset, Dataset)> {
        let pair = Some("sentence");
        Task::of_texts("question", pair, "label", &ENTAILED, &ENTAILED).splits(folder)
    }

    /// Recognizing Textual Entailment: does the first sentence entail the second?
    ///
    /// # Errors
    /// As [`Self::cola`].
    pub fn rte(folder: impl AsRef<Path>) -> Result<(Dataset, Dataset)> {
        let pair = Some("sentence2");
        Task::of_texts("sentence1", pair, "label", &ENTAILED, &ENTAILED).splits(folder)
    }

    /// Winograd Natural Language Inference: does a sentence follow in which a pronoun is replaced?
    ///
    /// # Errors
    /// As [`Self::cola`].
    pub fn wnli(folder: impl AsRef<Path>) -> Result<(Dataset, Dataset)> {
        const NAMES: [&str; 2] = ["not_entailment", "entailment"];
        let pair = Some("sentence2");
        Task::of_texts("sentence1", pair, "label", &NAMED, &NAMES).splits(folder)
    }
}
