//! `config.json`: the sizes and rates of a BERT. Source: transformers v4.57.1
//! `configuration_bert.py`; defaults for absent fields are the ones there.

use std::path::Path;

use serde_json::{Map, Value, json};
use stratoscope_diagnostics::Result;

use crate::problem;

/// A configuration that describes a BERT this crate can compute.
///
/// Fields this crate does not know are kept and written back by [`BertConfig::to_json`].
#[derive(Clone, Debug, PartialEq)]
pub struct BertConfig {
    /// How many tokens there are; every id is below it. At least 1.
    pub vocab_size: usize,
    /// H, a multiple of `num_attention_heads`.
    pub hidden_size: usize,
    /// Encoder layers, at least 1.
    pub num_hidden_layers: usize,
    /// Attention heads per layer, at least 1.
    pub num_attention_heads: usize,
    /// Width of the feed-forward part, at least 1.
    pub intermediate_size: usize,
    /// Dropout of embeddings, attention outputs and feed-forward outputs; 0 up to, not including, 1.
    pub hidden_dropout_prob: f64,
    /// Dropout of the attention probabilities; 0 up to, not including, 1.
    pub attention_probs_dropout_prob: f64,
    /// The longest sequence the model has positions for.
    pub max_position_embeddings: usize,
    /// How many segments can be told apart, at least 1.
    pub type_vocab_size: usize,
    /// Standard deviation of new weights.
    pub initializer_range: f64,
    /// Added to the variance inside LayerNorm's square root.
    pub layer_norm_eps: f64,
    /// The token that fills up short rows; its vector is not trained. Below `vocab_size`.
    pub pad_token_id: Option<usize>,
    /// Dropout before the head; where absent, `hidden_dropout_prob` holds.
    pub classifier_dropout: Option<f64>,
    /// The name of each class, by index; one name for a regression.
    pub labels: Vec<String>,
    /// Where the one output decides between two classes: their names, of no and of yes. In the file
    /// `problem_type` is then `multi_label_classification`, by which transformers computes the same loss, and
    /// the names are a field of ours, `binary_labels`.
    pub binary_labels: Option<[String; 2]>,
    /// The names of the architectures in the file, such as `BertForSequenceClassification`.
    pub architectures: Vec<String>,
    /// The file as it was read.
    file: Map<String, Value>,
}

/// Larger sizes than any BERT has: a damaged file must not make us reserve terabytes.
const LARGEST_SIZE: usize = 1 << 24;
/// Labels have names, and a row of weights each.
const MOST_LABELS: usize = 1 << 20;
/// Layers and heads are far fewer.
const LARGEST_COUNT: usize = 4096;
/// A configuration is a few kilobytes.
const LARGEST_FILE: u64 = 16 << 20;

impl BertConfig {
    /// Reads `config.json` in `folder`.
    ///
    /// # Errors
    /// A diagnostic if there is no such file, it cannot be read, is no JSON, describes another
    /// architecture or an option that is not built, or sizes that make no network.
    pub fn from_folder(folder: &Path) -> Result<Self> {
        let path = folder.join("config.json");
        let text = crate::checkpoint::read_text(&path, LARGEST_FILE)?;
        Self::from_json(&text, &path)
    }

    /// Parses the text of a configuration; `path` is named in diagnostics.
    ///
    /// # Errors
    /// As [`BertConfig::from_folder`].
    pub fn from_json(text: &str, path: &Path) -> Result<Self> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| problem::malformed(path, format!("it is no JSON: {error}")))?;
        let Value::Object(file) = value else {
            return Err(problem::malformed(
                path,
                "it is JSON, but no object".to_owned(),
            ));
        };
        check_architecture(&file, path)?;
        let fields = Fields { file: &file, path };
        let config = Self {
            vocab_size: fields.size("vocab_size", 30_522)?,
            hidden_size: fields.size("hidden_size", 768)?,
            num_hidden_layers: fields.size("num_hidden_layers", 12)?,
            num_attention_heads: fields.size("num_attention_heads", 12)?,
            intermediate_size: fields.size("intermediate_size", 3072)?,
            hidden_dropout_prob: fields.number("hidden_dropout_prob", 0.1)?,
            attention_probs_dropout_prob: fields.number("attention_probs_dropout_prob", 0.1)?,
            max_position_embeddings: fields.size("max_position_embeddings", 512)?,
            type_vocab_size: fields.size("type_vocab_size", 2)?,
            initializer_range: fields.number("initializer_range", 0.02)?,
            layer_norm_eps: fields.number("layer_norm_eps", 1e-12)?,
            pad_token_id: fields.optional_index("pad_token_id", Some(0))?,
            classifier_dropout: fields.optional_number("classifier_dropout")?,
            labels: fields.labels()?,
            binary_labels: binary_labels(&file),
            architectures: strings(file.get("architectures")),
            file,
        };
        config.check_in(path)?;
        Ok(config)
    }

    /// Checks that the values describe a network.
    ///
    /// # Errors
    /// A diagnostic that names the first field out of its range.
    pub fn check(&self) -> Result<()> {
        self.check_in(Path::new("config.json"))
    }

    fn check_in(&self, path: &Path) -> Result<()> {
        let refuse = |field: &str, value: String, expected: &str| {
            Err(problem::invalid_configuration(path, field, value, expected))
        };
        let sizes = [
            ("vocab_size", self.vocab_size, LARGEST_SIZE),
            ("hidden_size", self.hidden_size, LARGEST_SIZE),
            ("num_hidden_layers", self.num_hidden_layers, LARGEST_COUNT),
            (
                "num_attention_heads",
                self.num_attention_heads,
                LARGEST_COUNT,
            ),
            ("intermediate_size", self.intermediate_size, LARGEST_SIZE),
            (
                "max_position_embeddings",
                self.max_position_embeddings,
                LARGEST_SIZE,
            ),
            ("type_vocab_size", self.type_vocab_size, LARGEST_COUNT),
            ("num_labels", self.labels.len(), MOST_LABELS),
        ];
        for (field, value, largest) in sizes {
            if value == 0 || value > largest {
                return refuse(
                    field,
                    value.to_string(),
                    &format!("an integer from 1 to {largest}"),
                );
            }
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            let expected = format!(
                "a multiple of `num_attention_heads`, which is {}",
                self.num_attention_heads
            );
            return refuse("hidden_size", self.hidden_size.to_string(), &expected);
        }
        let rates = [
            ("hidden_dropout_prob", Some(self.hidden_dropout_prob)),
            (
                "attention_probs_dropout_prob",
                Some(self.attention_probs_dropout_prob),
            ),
            ("classifier_dropout", self.classifier_dropout),
        ];
        for (field, rate) in rates {
            if rate.is_some_and(|rate| !(0.0..1.0).contains(&rate)) {
                let rate = rate.unwrap_or_default().to_string();
                return refuse(field, rate, "a rate from 0 up to, not including, 1");
            }
        }
        for (field, value) in [
            ("initializer_range", self.initializer_range),
            ("layer_norm_eps", self.layer_norm_eps),
        ] {
            if !(value.is_finite() && value >= 0.0) {
                return refuse(field, value.to_string(), "a finite number ≥ 0");
            }
        }
        match self.pad_token_id {
            Some(id) if id >= self.vocab_size => {
                let expected = format!("an id below `vocab_size`, which is {}", self.vocab_size);
                refuse("pad_token_id", id.to_string(), &expected)
            }
            _ => Ok(()),
        }
    }

    /// How many outputs the head has; 1 makes it a regression, unless there are `binary_labels`.
    pub fn num_labels(&self) -> usize {
        self.labels.len()
    }

    /// Whether the head predicts one number instead of a class.
    pub fn is_regression(&self) -> bool {
        self.num_labels() == 1
    }

    /// The dropout before the head.
    pub fn classifier_dropout(&self) -> f64 {
        self.classifier_dropout.unwrap_or(self.hidden_dropout_prob)
    }

    /// The same with another number of labels, named as transformers names unnamed ones. Names in
    /// force are kept if their number is right.
    ///
    /// # Errors
    /// SC0915 for 0 labels, or more than any task has.
    pub fn with_num_labels(mut self, num_labels: usize) -> Result<Self> {
        if num_labels == 0 || num_labels > MOST_LABELS {
            return Err(problem::bad_num_labels(num_labels, MOST_LABELS));
        }
        if self.labels.len() != num_labels {
            self.labels = (0..num_labels)
                .map(|index| format!("LABEL_{index}"))
                .collect();
            self.binary_labels = None;
        }
        Ok(self)
    }

    /// The same with these names of the classes.
    pub fn with_labels<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.labels = names.into_iter().map(Into::into).collect();
        self
    }

    /// The same without any dropout, for instance to compare two runs.
    pub fn without_dropout(mut self) -> Self {
        self.hidden_dropout_prob = 0.0;
        self.attention_probs_dropout_prob = 0.0;
        self.classifier_dropout = None;
        self
    }

    /// The text of `config.json` for a model of `architecture`: every field that was read, with the
    /// values now in force.
    pub fn to_json(&self, architecture: &str) -> String {
        let mut file = self.file.clone();
        let mut set = |name: &str, value: Value| {
            file.insert(name.to_owned(), value);
        };
        set("architectures", json!([architecture]));
        set("model_type", json!("bert"));
        set("vocab_size", json!(self.vocab_size));
        set("hidden_size", json!(self.hidden_size));
        set("num_hidden_layers", json!(self.num_hidden_layers));
        set("num_attention_heads", json!(self.num_attention_heads));
        set("intermediate_size", json!(self.intermediate_size));
        set("hidden_act", json!("gelu"));
        set("hidden_dropout_prob", json!(self.hidden_dropout_prob));
        set(
            "attention_probs_dropout_prob",
            json!(self.attention_probs_dropout_prob),
        );
        set(
            "max_position_embeddings",
            json!(self.max_position_embeddings),
        );
        set("type_vocab_size", json!(self.type_vocab_size));
        set("initializer_range", json!(self.initializer_range));
        set("layer_norm_eps", json!(self.layer_norm_eps));
        set("pad_token_id", json!(self.pad_token_id));
        set("classifier_dropout", json!(self.classifier_dropout));
        let by_index = self.labels.iter().enumerate();
        let id2label: Map<String, Value> = by_index
            .clone()
            .map(|(index, name)| (index.to_string(), json!(name)))
            .collect();
        let label2id: Map<String, Value> = by_index
            .map(|(index, name)| (name.clone(), json!(index)))
            .collect();
        set("id2label", Value::Object(id2label));
        set("label2id", Value::Object(label2id));
        // What transformers would otherwise guess from the labels' type at the first batch.
        let binary = self
            .binary_labels
            .as_ref()
            .filter(|_| self.num_labels() == 1);
        let problem_type = match (self.num_labels(), binary) {
            (1, Some(_)) => "multi_label_classification",
            (1, None) => "regression",
            _ => "single_label_classification",
        };
        set("problem_type", json!(problem_type));
        match binary {
            Some(names) => set("binary_labels", json!(names)),
            None => drop(file.remove("binary_labels")),
        }
        // The weights are written as float32, whatever the file said before.
        let dtype = if file.contains_key("torch_dtype") {
            "torch_dtype"
        } else {
            "dtype"
        };
        file.insert(dtype.to_owned(), json!("float32"));
        format!("{:#}\n", Value::Object(file))
    }
}

/// The names of the two classes between which one output decides, if the file says that it does.
fn binary_labels(file: &Map<String, Value>) -> Option<[String; 2]> {
    let is_binary = file.get("problem_type")?.as_str()? == "multi_label_classification";
    let one_output = file.get("id2label")?.as_object()?.len() == 1;
    if !(is_binary && one_output) {
        return None;
    }
    let names = strings(file.get("binary_labels"));
    let names = <[String; 2]>::try_from(names);
    Some(names.unwrap_or_else(|_| ["0".to_owned(), "1".to_owned()]))
}

/// Refuses what is no BERT, and BERTs with options that are not built.
fn check_architecture(file: &Map<String, Value>, path: &Path) -> Result<()> {
    let refuse = |field: &str, found: String, accepted: &[&str]| {
        Err(problem::unsupported(path, field, found, accepted))
    };
    let model_type = file.get("model_type").and_then(Value::as_str);
    if model_type.is_some_and(|model_type| model_type != "bert") {
        return refuse(
            "model_type",
            model_type.unwrap_or_default().to_owned(),
            &["bert"],
        );
    }
    let architectures = strings(file.get("architectures"));
    if let Some(other) = architectures.iter().find(|name| !name.starts_with("Bert")) {
        return refuse(
            "architectures",
            other.clone(),
            &["BertModel", "BertForSequenceClassification", "BertFor…"],
        );
    }
    for (field, supported) in [
        ("hidden_act", "gelu"),
        ("position_embedding_type", "absolute"),
    ] {
        let found = file.get(field).filter(|value| !value.is_null());
        if found.is_some_and(|value| value.as_str() != Some(supported)) {
            let found = found.map_or(String::new(), plain);
            return refuse(field, found, &[supported]);
        }
    }
    for field in ["is_decoder", "add_cross_attention"] {
        if file.get(field).and_then(Value::as_bool) == Some(true) {
            return refuse(field, "true".to_owned(), &["false"]);
        }
    }
    Ok(())
}

/// A JSON value as a person would write it in a sentence.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The strings of a list; anything else is left out.
fn strings(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The fields of the file, with their defaults.
struct Fields<'a> {
    file: &'a Map<String, Value>,
    path: &'a Path,
}

impl Fields<'_> {
    /// The field, unless it is absent or null.
    fn given(&self, name: &str) -> Option<&Value> {
        self.file.get(name).filter(|value| !value.is_null())
    }

    fn invalid<T>(&self, name: &str, value: &Value, expected: &str) -> Result<T> {
        Err(problem::invalid_configuration(
            self.path,
            name,
            plain(value),
            expected,
        ))
    }

    fn size(&self, name: &str, default: usize) -> Result<usize> {
        let Some(value) = self.given(name) else {
            return Ok(default);
        };
        match value.as_u64().and_then(|size| usize::try_from(size).ok()) {
            Some(size) => Ok(size),
            None => self.invalid(name, value, "an integer ≥ 1"),
        }
    }

    /// An index; `default` where the field is absent, `None` where it is null.
    fn optional_index(&self, name: &str, default: Option<usize>) -> Result<Option<usize>> {
        match self.file.get(name) {
            None => Ok(default),
            Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64().and_then(|index| usize::try_from(index).ok()) {
                Some(index) => Ok(Some(index)),
                None => self.invalid(name, value, "an integer ≥ 0"),
            },
        }
    }

    fn number(&self, name: &str, default: f64) -> Result<f64> {
        Ok(self.optional_number(name)?.unwrap_or(default))
    }

    fn optional_number(&self, name: &str) -> Result<Option<f64>> {
        let Some(value) = self.given(name) else {
            return Ok(None);
        };
        match value.as_f64() {
            Some(number) => Ok(Some(number)),
            None => self.invalid(name, value, "a number"),
        }
    }

    /// The names of the classes from `id2label`, else as many as `num_labels` says, else two.
    fn labels(&self) -> Result<Vec<String>> {
        if let Some(value) = self.given("id2label") {
            let expected = "an object of names by index, `{\"0\": …, \"1\": …}`, without a gap";
            let Some(names) = value.as_object() else {
                return self.invalid("id2label", value, expected);
            };
            let in_order = (0..names.len()).map(|index| names.get(&index.to_string()));
            let in_order: Option<Vec<String>> = in_order
                .map(|name| name.and_then(Value::as_str).map(str::to_owned))
                .collect();
            return match in_order {
                Some(labels) => Ok(labels),
                None => self.invalid("id2label", value, expected),
            };
        }
        let count = self.size("num_labels", 2)?.min(MOST_LABELS + 1);
        Ok((0..count).map(|index| format!("LABEL_{index}")).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<BertConfig> {
        BertConfig::from_json(text, Path::new("model/config.json"))
    }

    /// The code of the diagnostic and what its message must contain.
    fn check_refused(text: &str, code: &str, words: &str) {
        let error = parse(text).expect_err(text);
        assert_eq!(error.code, code, "{text}: {error}");
        assert!(error.message.contains(words), "{text}: {error}");
    }

    #[test]
    fn absent_fields_have_the_reference_defaults() {
        let config = parse("{}").unwrap();
        assert_eq!(
            (
                config.hidden_size,
                config.num_hidden_layers,
                config.vocab_size
            ),
            (768, 12, 30522)
        );
        assert_eq!((config.pad_token_id, config.num_labels()), (Some(0), 2));
        assert_eq!(config.classifier_dropout(), 0.1);
        assert_eq!(
            parse(r#"{"pad_token_id": null}"#).unwrap().pad_token_id,
            None
        );
        assert_eq!(
            parse(r#"{"classifier_dropout": 0.3}"#)
                .unwrap()
                .classifier_dropout(),
            0.3
        );
    }

    #[test]
    fn other_architectures_are_named() {
        check_refused(r#"{"model_type": "distilbert"}"#, "SC0903", "distilbert");
        check_refused(r#"{"model_type": "gpt2", "n_embd": 768}"#, "SC0903", "gpt2");
        check_refused(
            r#"{"architectures": ["RobertaModel"]}"#,
            "SC0903",
            "RobertaModel",
        );
        check_refused(r#"{"hidden_act": "gelu_new"}"#, "SC0903", "gelu_new");
        check_refused(
            r#"{"position_embedding_type": "relative_key"}"#,
            "SC0903",
            "relative_key",
        );
        check_refused(r#"{"is_decoder": true}"#, "SC0903", "is_decoder");
    }

    #[test]
    fn impossible_values_are_named_with_what_is_allowed() {
        check_refused("[]", "SC0902", "no object");
        check_refused("{\"vocab_size\": ", "SC0902", "no JSON");
        check_refused(r#"{"hidden_size": 0}"#, "SC0909", "hidden_size");
        check_refused(r#"{"hidden_size": -4}"#, "SC0909", "-4");
        check_refused(r#"{"hidden_size": 770}"#, "SC0909", "num_attention_heads");
        check_refused(r#"{"vocab_size": 1e30}"#, "SC0909", "vocab_size");
        check_refused(
            r#"{"vocab_size": 9007199254740993}"#,
            "SC0909",
            "vocab_size",
        );
        check_refused(
            r#"{"num_hidden_layers": 18446744073709551615}"#,
            "SC0909",
            "num_hidden_layers",
        );
        check_refused(
            r#"{"hidden_dropout_prob": 1.0}"#,
            "SC0909",
            "hidden_dropout_prob",
        );
        check_refused(
            r#"{"attention_probs_dropout_prob": "0.1"}"#,
            "SC0909",
            "attention_probs",
        );
        check_refused(r#"{"pad_token_id": 30522}"#, "SC0909", "pad_token_id");
        check_refused(
            r#"{"id2label": {"0": "a", "2": "b"}}"#,
            "SC0909",
            "id2label",
        );
        check_refused(r#"{"id2label": {}}"#, "SC0909", "num_labels");
        check_refused(
            r#"{"num_labels": 18446744073709551615}"#,
            "SC0909",
            "num_labels",
        );
    }

    #[test]
    fn unknown_fields_survive_and_labels_are_written() {
        let config =
            parse(r#"{"x_custom": {"deep": [1, 2]}, "hidden_dropout_prob": 0.25}"#).unwrap();
        let text = config
            .with_labels(["no", "yes"])
            .to_json("BertForSequenceClassification");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["x_custom"]["deep"][1], 2);
        assert_eq!(value["hidden_dropout_prob"], 0.25);
        assert_eq!(value["id2label"]["1"], "yes");
        assert_eq!(value["label2id"]["no"], 0);
        assert_eq!(value["architectures"][0], "BertForSequenceClassification");
        let again = parse(&text).unwrap();
        assert_eq!(again.labels, ["no", "yes"]);
    }
}
