//! Data sets that are loaded by their name: `load_dataset(…)`, `load_from_disk(…)`, `tfds.load(…)`.

use super::{Translator, Why, text};
use crate::model::{Call, Value};

/// A data set that was loaded: its splits, each as Rust, and what they are made by.
pub(crate) struct Loaded {
    /// What makes all splits at once.
    pub rust: String,
    /// The splits in its order.
    pub splits: Vec<&'static str>,
    /// The splits that were asked for.
    pub wanted: Vec<String>,
    /// It is one of `tf.data`.
    pub is_tensorflow: bool,
}

impl Translator<'_> {
    /// `load_dataset(…)`, `load_from_disk(…)`, `tfds.load(…)`.
    pub(crate) fn loaded(&mut self, value: &Value) -> Option<Result<Loaded, Why>> {
        let call = value.call()?;
        let is_tensorflow = match self.names.called(value).as_deref() {
            Some("tensorflow_datasets.load") => true,
            Some("datasets.load_from_disk") => return Some(saved(call)),
            Some("datasets.load_dataset") => false,
            _ => return None,
        };
        Some(self.load(call, is_tensorflow))
    }

    fn load(&mut self, call: &Call, is_tensorflow: bool) -> Result<Loaded, Why> {
        let text_of = |value: Option<&Value>| value.and_then(Value::text).map(str::to_owned);
        let name = text_of(call.argument(if is_tensorflow { "name" } else { "path" }, 0));
        let mut name = name.ok_or("the data set is not written as a text")?;
        if let (false, Some(part)) = (is_tensorflow, text_of(call.argument("name", 1))) {
            name = format!("{name}/{part}");
        }
        let split = call.keyword("split").map(|it| &it.value);
        let split = split.or(call.arguments.get(1).filter(|_| is_tensorflow));
        let wanted = match split {
            Some(value) => {
                let one = [value.clone()];
                let values = value.elements().unwrap_or(&one);
                let texts: Option<Vec<String>> = values
                    .iter()
                    .map(|it| it.text().map(str::to_owned))
                    .collect();
                texts.ok_or("the split is not written as a text")?
            }
            None => Vec::new(),
        };
        let files = text_of(call.keyword("data_files").map(|it| &it.value));
        let (rust, splits) = match (name.as_str(), files) {
            (glue, _) if task_of(glue).is_some() => {
                let task = task_of(glue).unwrap_or_default();
                self.note(
                    call.span,
                    format!("nothing is downloaded: {}", files_of(task)),
                );
                let splits = match task {
                    "mnli" => vec!["train", "validation_matched", "validation_mismatched"],
                    _ => vec!["train", "validation"],
                };
                (format!("Glue::{task}(\"glue/{task}\")?"), splits)
            }
            ("csv", Some(file)) => (
                format!("Dataset::csv({})?", text::text(&file)),
                vec!["train"],
            ),
            ("json", Some(file)) => (
                format!("Dataset::jsonl({})?", text::text(&file)),
                vec!["train"],
            ),
            ("parquet", Some(file)) => (
                format!("Dataset::parquet({})?", text::text(&file)),
                vec!["train"],
            ),
            ("arrow", Some(file)) => (
                format!("Dataset::arrow({})?", text::text(&file)),
                vec!["train"],
            ),
            ("text", Some(file)) => (
                format!("Dataset::text({})?", text::text(&file)),
                vec!["train"],
            ),
            (other, _) => {
                return Err(format!(
                    "the data set `{other}` is not here; saved as a file it is read by `Dataset::csv(\"….csv\")?`, \
                     `tsv`, `jsonl`, `parquet` or `arrow`, and `debian_sections()?` is one to try"
                ));
            }
        };
        Ok(Loaded {
            rust,
            splits,
            wanted,
            is_tensorflow,
        })
    }
}

/// A split that `save_to_disk` wrote: a folder of Arrow files.
fn saved(call: &Call) -> Result<Loaded, Why> {
    let folder = call.argument("dataset_path", 0).and_then(Value::text);
    let folder = folder.ok_or("the folder is not written as a text")?;
    let files = format!("{}/*.arrow", folder.trim_end_matches('/'));
    Ok(Loaded {
        rust: format!("Dataset::arrow({})?", text::text(&files)),
        splits: vec!["train"],
        wanted: vec!["train".to_owned()],
        is_tensorflow: false,
    })
}

/// The task of GLUE that a name stands for.
fn task_of(name: &str) -> Option<&str> {
    const TASKS: [&str; 9] = [
        "cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "qnli", "rte", "wnli",
    ];
    let task = name.strip_prefix("glue/")?;
    TASKS.contains(&task).then_some(task)
}

/// The files that the folder of a task must hold.
fn files_of(task: &str) -> String {
    let files = match task {
        "mrpc" => {
            "MRPC's `train.tsv` and `dev.tsv`, or its `msr_paraphrase_train.txt` and `msr_paraphrase_test.txt`"
        }
        "mnli" => "`train.tsv`, `dev_matched.tsv` and `dev_mismatched.tsv` of GLUE's MNLI",
        _ => "the `train.tsv` and `dev.tsv` of GLUE",
    };
    format!("the folder `glue/{task}` must hold {files}")
}

/// The place of a split by any of its names.
pub(crate) fn place_of(splits: &[&str], wanted: &str) -> Result<usize, Why> {
    let wanted = match wanted {
        "dev" | "valid" => "validation",
        wanted => wanted,
    };
    splits
        .iter()
        .position(|split| *split == wanted)
        .ok_or_else(|| {
            format!(
                "there is no split `{wanted}` with labels; there are {}",
                splits.join(" and ")
            )
        })
}
