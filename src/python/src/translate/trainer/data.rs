//! Data sets of Hugging Face's `datasets` besides those that are loaded by a name: `Dataset.from_dict`, `DatasetDict`,
//! `train_test_split`, several files.

use super::super::call::Made;
use super::super::source::Loaded;
use super::super::thing::{Pipeline, Splits, Thing};
use super::super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};

/// The splits whose names are known.
const SPLITS: &[(&str, &str)] = &[
    ("train", "train"),
    ("validation", "validation"),
    ("valid", "validation"),
    ("val", "validation"),
    ("dev", "validation"),
    ("test", "test"),
];

fn split_named(name: &str) -> Result<&'static str, Why> {
    let found = SPLITS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, split)| *split);
    found.ok_or_else(|| format!("the split `{name}` is none of train, validation and test"))
}

/// `load_dataset("csv", data_files={"train": "train.csv", "test": "test.csv"})`: a data set for each file.
pub(crate) fn several_files(
    format: &str,
    files: &[(Value, Value)],
) -> Result<(String, Vec<&'static str>), Why> {
    let reader = match format {
        "csv" => "csv",
        "json" => "jsonl",
        other @ ("parquet" | "arrow" | "text") => other,
        other => {
            return Err(format!(
                "files of `{other}` are not read here; csv, jsonl, parquet, arrow and text are"
            ));
        }
    };
    let mut splits = Vec::new();
    let mut written = Vec::new();
    for (name, file) in files {
        let split = split_named(
            name.text()
                .ok_or("the name of a split is not written as a text")?,
        )?;
        let one = [file.clone()];
        let paths: Option<Vec<&str>> = file
            .elements()
            .unwrap_or(&one)
            .iter()
            .map(Value::text)
            .collect();
        let paths = paths.ok_or("the files of a split are not written as texts")?;
        let [path] = paths.as_slice() else {
            return Err(
                "a split of several files is `Dataset::csv(\"a.csv\")?.concatenate(…)?`".to_owned(),
            );
        };
        let labels = match written.is_empty() {
            true => String::new(),
            // The classes of the first split have the numbers.
            false => format!(
                ".with_labels_of(&{})?",
                splits.first().copied().unwrap_or_default()
            ),
        };
        written.push(format!(
            "let {split} = Dataset::{reader}({})?{labels};",
            text::text(path)
        ));
        splits.push(split);
    }
    match written.as_slice() {
        [] => Err("it names no files".to_owned()),
        [_] => {
            let only = written[0]
                .split_once(" = ")
                .map_or("", |(_, it)| it)
                .trim_end_matches(';')
                .to_owned();
            Ok((only, splits))
        }
        _ => Ok((
            format!(
                "{{\n    {}\n    ({})\n}}",
                written.join("\n    "),
                splits.join(", ")
            ),
            splits,
        )),
    }
}

impl Translator<'_> {
    /// `Dataset.from_dict({…})`, `DatasetDict({…})`, `concatenate_datasets([…])`.
    pub(crate) fn dataset_of_hub(&mut self, full: &str, call: &Call) -> Option<Result<Made, Why>> {
        Some(match full {
            "datasets.Dataset.from_dict" => self.columns_given(call),
            "datasets.Dataset.from_csv" => self.file_read("csv", call),
            "datasets.Dataset.from_json" => self.file_read("jsonl", call),
            "datasets.Dataset.from_parquet" => self.file_read("parquet", call),
            "datasets.DatasetDict" => self.dataset_dict(call),
            "datasets.concatenate_datasets" => self.concatenated(call),
            "datasets.Dataset.from_pandas" => match call.argument("df", 0) {
                Some(frame) if self.is_frame(frame) => {
                    for keyword in call.keywords.iter().filter(|it| it.name != "df") {
                        call.keyword(&keyword.name);
                        self.idle(keyword.span, "a data set has the text and the label only");
                    }
                    let data = self.pipeline(frame);
                    data.map(|data| (self.own(&data), Thing::Data(data)))
                }
                Some(frame) if frame.name().is_some_and(|it| self.missing(it).is_some()) => {
                    Err(self.value(frame).err().unwrap_or_default())
                }
                _ => Err(
                    "there is no pandas here; `Dataset::csv(\"….csv\")?` reads a file".to_owned(),
                ),
            },
            _ => return None,
        })
    }

    fn file_read(&mut self, reader: &str, call: &Call) -> Result<Made, Why> {
        let path = call
            .argument("path_or_paths", 0)
            .ok_or("it names no file")?;
        let rust = format!("Dataset::{reader}({})?", self.value(path)?);
        Ok((rust.clone(), Thing::Data(Pipeline::of(rust))))
    }

    fn columns_given(&mut self, call: &Call) -> Result<Made, Why> {
        let columns = call.argument("mapping", 0).ok_or("it gets no columns")?;
        let Kind::Dict(items) = &columns.kind else {
            return Err("its columns are not written out".to_owned());
        };
        let items = items.clone();
        if let Some(pairs) = self.pairs_of_columns(&items) {
            let data = pairs?;
            return Ok((data.rust.clone(), Thing::Data(data)));
        }
        let data = self.slices_of_columns(&items)?;
        Ok((data.rust.clone(), Thing::Data(data)))
    }

    fn concatenated(&mut self, call: &Call) -> Result<Made, Why> {
        let parts = call
            .argument("dsets", 0)
            .and_then(Value::elements)
            .ok_or("its data sets are not written out")?;
        let parts: Result<Vec<Pipeline>, Why> = parts.iter().map(|it| self.pipeline(it)).collect();
        let parts = parts?;
        let (first, others) = parts.split_first().ok_or("it gets no data sets")?;
        let mut data = first.clone();
        for other in others {
            data.rust = format!("{}.concatenate(&{})?", data.rust, other.rust);
        }
        Ok((data.rust.clone(), Thing::Data(data)))
    }

    /// `DatasetDict({"train": a, "test": b})`: the data sets keep their names.
    fn dataset_dict(&mut self, call: &Call) -> Result<Made, Why> {
        let given = call.argument("arg", 0).ok_or("it gets no data sets")?;
        let Kind::Dict(items) = &given.kind else {
            return Err("its data sets are not written out".to_owned());
        };
        let mut splits = Splits {
            names: Vec::new(),
            is_tensorflow: false,
            max_length: None,
        };
        for (name, data) in items {
            let split = split_named(
                name.text()
                    .ok_or("the name of a split is not written as a text")?,
            )?;
            let data = self.pipeline(data)?;
            let data = self.named_data(data, &format!("data_{split}"), call.span);
            splits.max_length = splits.max_length.take().or(data.max_length);
            splits.names.push((split, data.rust));
        }
        Ok((String::new(), Thing::Splits(splits)))
    }

    /// `data.train_test_split(test_size=0.2, seed=42)`: both parts at once. `None`: another value.
    pub(crate) fn test_split(&mut self, value: &Value) -> Option<Result<Loaded, Why>> {
        let (object, call) = value.method("train_test_split")?;
        if self.names.full(object).is_some() {
            return None;
        }
        Some(self.test_split_of(object, call))
    }

    fn test_split_of(&mut self, object: &Value, call: &Call) -> Result<Loaded, Why> {
        call.see_all();
        let data = self.pipeline(object)?;
        let find = |name: &str, place: usize| {
            call.argument(name, place)
                .filter(|it| it.kind != Kind::None)
        };
        let size = find("test_size", 0).cloned();
        let share = match (&size, find("train_size", 1)) {
            (Some(size), _) if matches!(size.kind, Kind::Int(_)) => {
                return Err("a test split by a number of examples is `data.take(n)` and `data.skip(n)` here".to_owned());
            }
            (Some(size), _) => self.float(size)?,
            (None, Some(size)) => format!("1.0 - {}", self.float(size)?),
            // The default of `datasets`.
            (None, None) => "0.25".to_owned(),
        };
        let seed = match find("seed", 9) {
            Some(seed) => self.value(seed)?,
            None => "0".to_owned(),
        };
        let rust = match (
            find("stratify_by_column", usize::MAX),
            find("shuffle", 2).map(|it| &it.kind),
        ) {
            (Some(_), _) => format!("{}.stratified_split({share}, {seed})?", data.rust),
            (None, Some(Kind::Bool(false))) => format!("{}.split({share})?", data.rust),
            _ => format!("{}.shuffled({seed}).split({share})?", data.rust),
        };
        for keyword in &call.keywords {
            let is_known = [
                "test_size",
                "train_size",
                "seed",
                "stratify_by_column",
                "shuffle",
            ]
            .contains(&keyword.name.as_str());
            if !is_known {
                self.idle(keyword.span, "the parts are not stored in files");
            }
        }
        if rust.contains(".shuffled(") || rust.contains("stratified") {
            self.note(
                call.span,
                "the parts are drawn by other random numbers than those of `datasets`",
            );
        }
        Ok(Loaded {
            rust,
            splits: vec!["train", "test"],
            wanted: Vec::new(),
            is_tensorflow: data.is_tensorflow,
            max_length: data.max_length,
        })
    }
}
