//! Data sets that are loaded by their name: `load_dataset(…)`, `load_from_disk(…)`, `tfds.load(…)`.

use super::steps::COLUMNS;
use super::thing::{Pipeline, Splits, Thing};
use super::trainer::data::several_files;
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};

/// Names that `load_dataset` has for files, and for several tasks.
const FORMATS: [&str; 6] = ["csv", "json", "parquet", "arrow", "text", "glue"];

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
    /// `max_length` of what it is a part of.
    pub max_length: Option<String>,
}

impl Translator<'_> {
    /// What becomes of all splits of a data set at once, as of `raw` in `raw.map(tokenize, batched=True)`. `None`: it is something
    /// else.
    pub(crate) fn steps_of_splits(&mut self, value: &Value) -> Option<Result<Splits, Why>> {
        let call = value.call()?;
        let Kind::Attribute(object, step) = &call.function.kind else {
            return None;
        };
        let known = object.name().and_then(|name| self.things.get(name));
        let mut splits = match known {
            Some(Thing::Splits(splits)) => splits.clone(),
            _ => match self.steps_of_splits(object)? {
                Ok(splits) => splits,
                Err(why) => return Some(Err(why)),
            },
        };
        match step.as_str() {
            "map" => {
                let mut data = Pipeline {
                    is_tensorflow: splits.is_tensorflow,
                    max_length: splits.max_length.take(),
                    ..Pipeline::default()
                };
                if let Err(why) = self.mapped(call, &mut data) {
                    return Some(Err(why));
                }
                splits.max_length = data.max_length;
            }
            "rename_column" | "remove_columns" | "set_format" | "with_format" => {
                self.idle_arguments(call, COLUMNS);
            }
            other => {
                return Some(Err(format!(
                    "`{other}` is translated for one split, as of `data[\"train\"]`"
                )));
            }
        }
        Some(Ok(splits))
    }

    /// `load_dataset(…)`, `load_from_disk(…)`, `tfds.load(…)`.
    pub(crate) fn loaded(&mut self, value: &Value) -> Option<Result<Loaded, Why>> {
        if let Some(split) = self.test_split(value) {
            return Some(split);
        }
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
        let place = if is_tensorflow { 1 } else { usize::MAX };
        let split = call.argument("split", place);
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
        let files = call.keyword("data_files").map(|it| &it.value);
        let by_split = match files.map(|it| &it.kind) {
            Some(Kind::Dict(items)) => Some(several_files(&name, items)?),
            _ => None,
        };
        let files = text_of(files);
        let (rust, splits) = match (name.as_str(), files) {
            _ if let Some(loaded) = by_split => loaded,
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
            (other, None) if !is_tensorflow && !FORMATS.contains(&other) => {
                self.saved_by_python(other, &wanted, call)?
            }
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
            max_length: None,
        })
    }
}

impl Translator<'_> {
    /// A data set of the hub, which Python writes to a folder: its splits that the cell names.
    fn saved_by_python(
        &mut self,
        name: &str,
        wanted: &[String],
        call: &Call,
    ) -> Result<(String, Vec<&'static str>), Why> {
        const SPLITS: [&str; 3] = ["train", "validation", "test"];
        let wanted = wanted
            .first()
            .map(|it| it.split('[').next().unwrap_or_default());
        let folder = name.rsplit('/').next().unwrap_or_default();
        let is_named = |split: &str| {
            [format!("[\"{split}\"]"), format!("['{split}']")]
                .iter()
                .any(|it| self.text.contains(it))
        };
        let splits: Vec<&'static str> = match wanted {
            Some(wanted) => SPLITS.into_iter().filter(|it| *it == wanted).collect(),
            None => SPLITS.into_iter().filter(|it| is_named(it)).collect(),
        };
        let splits = match (splits.is_empty(), wanted) {
            (false, _) => splits,
            (true, Some(wanted)) => {
                return Err(format!(
                    "the split `{wanted}` is none of train, validation and test"
                ));
            }
            (true, None) => vec!["train", "test"],
        };
        let path = |split: &str| text::text(&format!("{folder}/{split}"));
        let first = splits[0];
        let rust = match splits.as_slice() {
            [one] => format!("Dataset::arrow({})?", path(one)),
            several => {
                let mut lines = vec![format!(
                    "    let {first} = Dataset::arrow({})?;",
                    path(first)
                )];
                for split in &several[1..] {
                    lines.push(format!(
                        "    let {split} = Dataset::arrow({})?.with_labels_of(&{first})?;",
                        path(split)
                    ));
                }
                format!("{{\n{}\n    ({})\n}}", lines.join("\n"), several.join(", "))
            }
        };
        let given: Vec<&str> = call
            .arguments
            .iter()
            .map(|it| self.source(it.span))
            .collect();
        let saved = match (splits.as_slice(), wanted) {
            ([one], Some(_)) => format!(
                "load_dataset({}, split=\"{one}\").save_to_disk(\"{folder}/{one}\")",
                given.join(", ")
            ),
            _ => format!(
                "load_dataset({}).save_to_disk(\"{folder}\")",
                given.join(", ")
            ),
        };
        let note = format!(
            "nothing is downloaded: the folder `{folder}` is one that Python writes, `from datasets import load_dataset; {saved}`"
        );
        self.note(call.span, note);
        Ok((rust, splits))
    }
}

impl Loaded {
    /// The one split that was asked for, as Rust.
    pub(crate) fn one(&self) -> Result<String, Why> {
        let wanted = match (self.splits.as_slice(), self.wanted.as_slice()) {
            ([_], []) => return Ok(self.rust.clone()),
            (_, [one]) => one,
            _ => return Err("it has several splits".to_owned()),
        };
        let (split, part) = sliced(wanted)?;
        let place = place_of(&self.splits, split)?;
        Ok(match self.splits.as_slice() {
            [_] => format!("{}{part}", self.rust),
            _ => format!("{}.{place}{part}", self.rust),
        })
    }
}

/// A split and what is taken of it: `train[10:30]` is `train` and `.skip(10).take(20)`.
fn sliced(wanted: &str) -> Result<(&str, String), Why> {
    let Some((split, range)) = wanted.split_once('[') else {
        return Ok((wanted, String::new()));
    };
    let bound = |text: &str| match text.trim() {
        "" => Some(None),
        text => text.parse::<usize>().ok().map(Some),
    };
    let bounds = range.strip_suffix(']').and_then(|it| it.split_once(':'));
    let part = match bounds.map(|(start, end)| (bound(start), bound(end))) {
        Some((Some(None), Some(None))) => String::new(),
        Some((Some(Some(start)), Some(None))) => format!(".skip({start})"),
        Some((Some(None), Some(Some(end)))) => format!(".take({end})"),
        Some((Some(Some(start)), Some(Some(end)))) if start < end => {
            format!(".skip({start}).take({})", end - start)
        }
        _ => {
            return Err(format!(
                "`{wanted}` is not translated: a part of a split is one by numbers of examples, `train[:100]`, and \
                 `data.split(0.2)?` cuts off the last fifth"
            ));
        }
    };
    Ok((split, part))
}

/// A folder that `save_to_disk` wrote.
fn saved(call: &Call) -> Result<Loaded, Why> {
    let folder = call.argument("dataset_path", 0).and_then(Value::text);
    let folder = folder.ok_or("the folder is not written as a text")?;
    Ok(Loaded {
        rust: format!("Dataset::arrow({})?", text::text(folder)),
        splits: vec!["train"],
        wanted: vec!["train".to_owned()],
        is_tensorflow: false,
        max_length: None,
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
        .ok_or_else(|| match splits {
            [one] => format!("there is no split `{wanted}` here: a file is `{one}`"),
            several => format!(
                "there is no split `{wanted}` with labels; there are {}",
                several.join(" and ")
            ),
        })
}
