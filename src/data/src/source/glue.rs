//! The folders of the GLUE benchmark (Wang et al. 2018), as its download script lays them out.

use std::path::{Path, PathBuf};

use stratoscope_diagnostics::Result;

use super::Columns;
use crate::dataset::Dataset;

/// Reads the tasks of the GLUE benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Glue;

/// The classes of MRPC by number, with the names of the benchmark's data card.
const MRPC_LABELS: [&str; 2] = ["not_equivalent", "equivalent"];

impl Glue {
    /// The Microsoft Research Paraphrase Corpus: do two sentences mean the same? Reads `train.tsv`
    /// and `dev.tsv` of the folder or, where these are missing, the corpus's own
    /// `msr_paraphrase_train.txt` and `msr_paraphrase_test.txt`.
    ///
    /// # Errors
    /// As [`Dataset::tsv`]; SC0913 if the second file has a class that the first has not.
    pub fn mrpc(folder: impl AsRef<Path>) -> Result<(Dataset, Dataset)> {
        let folder = folder.as_ref();
        let file = |glue: &str, original: &str| -> PathBuf {
            let (glue, original) = (folder.join(glue), folder.join(original));
            if !glue.exists() && original.exists() {
                original
            } else {
                glue
            }
        };
        let columns = Columns::new()
            .text("#1 String")
            .pair("#2 String")
            .label("Quality");
        let train = Dataset::tsv_with(file("train.tsv", "msr_paraphrase_train.txt"), &columns)?;
        let dev = Dataset::tsv_with(file("dev.tsv", "msr_paraphrase_test.txt"), &columns)?;
        named(train, dev, MRPC_LABELS)
    }
}

/// The two splits of a task with two classes, numbered alike and named.
pub(super) fn named(train: Dataset, dev: Dataset, names: [&str; 2]) -> Result<(Dataset, Dataset)> {
    let dev = dev.with_labels_of(&train)?;
    Ok((train.rename_labels(names)?, dev.rename_labels(names)?))
}
