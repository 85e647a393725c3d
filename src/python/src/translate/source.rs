//! Data sets that are loaded by their name: `load_dataset(…)`, `tfds.load(…)`.

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
    /// `load_dataset(…)`, `tfds.load(…)`.
    pub(crate) fn loaded(&mut self, value: &Value) -> Option<Result<Loaded, Why>> {
        let call = value.call()?;
        let is_tensorflow = match self.names.called(value).as_deref() {
            Some("tensorflow_datasets.load") => true,
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
            ("glue/mrpc", _) => {
                self.note(
                    call.span,
                    "nothing is downloaded: the folder `glue/mrpc` must hold MRPC's `train.tsv` and `dev.tsv`, or its \
                     `msr_paraphrase_train.txt` and `msr_paraphrase_test.txt`",
                );
                (
                    "Glue::mrpc(\"glue/mrpc\")?".to_owned(),
                    vec!["train", "validation"],
                )
            }
            ("csv", Some(file)) => (
                format!("Dataset::csv({})?", text::text(&file)),
                vec!["train"],
            ),
            ("json", Some(file)) => (
                format!("Dataset::jsonl({})?", text::text(&file)),
                vec!["train"],
            ),
            (other, _) => {
                return Err(format!(
                    "the data set `{other}` is not here; saved as a file it is read by `Dataset::csv(\"….csv\")?`, \
                     `tsv` or `jsonl`, and `debian_sections()?` is one to try"
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
