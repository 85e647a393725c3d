//! Reading `config.json`: the architecture check, the fields with their defaults, the labels.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use stratoscope_diagnostics::{Diagnostic, Result};

use super::{BertConfig, Gelu, LARGEST_COUNT, MOST_LABELS, ModernConfig, Relative};
use crate::family::Family;
use crate::problem;

impl BertConfig {
    /// Parses the text of a configuration; `path` is named in diagnostics.
    ///
    /// # Errors
    /// As [`BertConfig::from_folder`].
    pub fn from_json(text: &str, path: &Path) -> Result<Self> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| problem::malformed(path, format!("it is not valid JSON: {error}")))?;
        let Value::Object(file) = value else {
            return Err(problem::malformed(
                path,
                "it is JSON, but not an object".to_owned(),
            ));
        };
        let family = check_architecture(&file, path)?;
        let fields = Fields {
            file: &file,
            path,
            family,
        };
        let pad_token_id = fields.optional_index("pad_token_id", Some(family.default_pad()))?;
        let first_position = family.first_position(pad_token_id);
        let layers = fields.size("num_hidden_layers")?;
        let modern = match family {
            // More layers are refused by the check below.
            Family::ModernBert => Some(ModernConfig::of(&fields, layers.min(LARGEST_COUNT))?),
            _ => None,
        };
        if family.shares_layers() {
            // Groups of layers that share their weights, and layers of a group.
            for field in ["num_hidden_groups", "inner_group_num"] {
                fields.must_be(field, &Value::from(1))?;
            }
        }
        let dropout = family.default_dropout();
        let mut config = Self {
            vocab_size: fields.size("vocab_size")?,
            embedding_size: fields.embedding_size()?,
            hidden_size: fields.size("hidden_size")?,
            num_hidden_layers: layers,
            num_attention_heads: fields.size("num_attention_heads")?,
            intermediate_size: fields.size("intermediate_size")?,
            gelu: fields.gelu()?,
            hidden_dropout_prob: fields.number("hidden_dropout_prob", dropout)?,
            attention_probs_dropout_prob: fields.number("attention_probs_dropout_prob", dropout)?,
            max_position_embeddings: match fields.given("max_position_embeddings") {
                Some(_) => fields.size("max_position_embeddings")?,
                None => family.default_size("max_position_embeddings") + first_position,
            }
            .saturating_sub(first_position),
            type_vocab_size: fields.size("type_vocab_size")?,
            initializer_range: fields.number("initializer_range", 0.02)?,
            layer_norm_eps: fields.number("layer_norm_eps", family.default_eps())?,
            pad_token_id,
            classifier_dropout: fields
                .optional_number("classifier_dropout")?
                .or(family.default_classifier_dropout()),
            labels: fields.labels()?,
            binary_labels: binary_labels(&file),
            multi_label: is_multi_label(&file) && binary_labels(&file).is_none(),
            trained_length: None,
            architectures: strings(file.get("architectures")),
            family,
            modern,
            relative: Relative::of(&fields, family)?,
            lora: None,
            file,
            unused_positions: Arc::default(),
        };
        config.check_in(path)?;
        config.trained_length = trained_length(&config.file, config.max_position_embeddings);
        Ok(config)
    }
}

/// How many tokens of a text the latest training has read, if the file says it, and it can be true.
fn trained_length(file: &Map<String, Value>, max_positions: usize) -> Option<usize> {
    let length = file.get("trained_length")?.as_u64()?;
    usize::try_from(length)
        .ok()
        .filter(|it| (2..=max_positions).contains(it))
}

/// Whether each output is decided by itself.
fn is_multi_label(file: &Map<String, Value>) -> bool {
    let problem = file.get("problem_type").and_then(Value::as_str);
    problem == Some("multi_label_classification")
}

/// The names of the two classes of a model with one output, if the file describes such a classifier. An empty list says that
/// the output is one label, which a text has or not.
fn binary_labels(file: &Map<String, Value>) -> Option<[String; 2]> {
    let is_binary = is_multi_label(file);
    let one_output = file.get("id2label")?.as_object()?.len() == 1;
    if !(is_binary && one_output) {
        return None;
    }
    let names = file.get("binary_labels");
    if names.and_then(Value::as_array).is_some_and(Vec::is_empty) {
        return None;
    }
    let names = strings(names);
    let names = <[String; 2]>::try_from(names);
    Some(names.unwrap_or_else(|_| ["0".to_owned(), "1".to_owned()]))
}

/// The kind of model. Refuses other architectures, and options that are not implemented.
fn check_architecture(file: &Map<String, Value>, path: &Path) -> Result<Family> {
    let refuse = |field: &str, found: String, accepted: &[&str]| {
        Err(problem::unsupported(path, field, found, accepted))
    };
    let model_type = file.get("model_type").and_then(Value::as_str);
    let known = |name: &str| Family::ALL.into_iter().find(|it| it.model_type() == name);
    let Some(family) = model_type.map_or(Some(Family::Bert), known) else {
        let names = Family::ALL.map(Family::model_type);
        return refuse(
            "model_type",
            model_type.unwrap_or_default().to_owned(),
            &names,
        );
    };
    let architectures = strings(file.get("architectures"));
    let prefix = family.class_prefix();
    if let Some(other) = architectures.iter().find(|name| !name.starts_with(prefix)) {
        let classes = ["Model", "ForSequenceClassification", "For…"];
        let classes = classes.map(|class| format!("{prefix}{class}"));
        return refuse(
            "architectures",
            other.clone(),
            &classes.each_ref().map(String::as_str),
        );
    }
    let (field, supported) = ("position_embedding_type", "absolute");
    let found = file.get(field).filter(|value| !value.is_null());
    if let Some(found) = found.filter(|value| value.as_str() != Some(supported)) {
        return refuse(field, plain(found), &[supported]);
    }
    for field in ["is_decoder", "add_cross_attention"] {
        if file.get(field).and_then(Value::as_bool) == Some(true) {
            return refuse(field, "true".to_owned(), &["false"]);
        }
    }
    Ok(family)
}

/// A JSON value for a message: strings without quotes.
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
pub(super) struct Fields<'a> {
    pub(super) file: &'a Map<String, Value>,
    path: &'a Path,
    family: Family,
}

impl Fields<'_> {
    /// The field by BERT's name, unless it is absent or null.
    fn given(&self, name: &str) -> Option<&Value> {
        self.present(self.family.field(name)?)
    }

    /// The field by its name in the file, unless it is absent or null.
    pub(super) fn present(&self, name: &str) -> Option<&Value> {
        self.file.get(name).filter(|value| !value.is_null())
    }

    /// Refuses another value of an option than the one that is computed; absent, it has that one.
    pub(super) fn must_be(&self, field: &str, computed: &Value) -> Result<()> {
        match self.present(field).filter(|found| *found != computed) {
            Some(found) => Err(self.unsupported(field, found, &[&plain(computed)])),
            None => Ok(()),
        }
    }

    pub(super) fn invalid<T>(&self, name: &str, value: &Value, expected: &str) -> Result<T> {
        Err(problem::invalid_configuration(
            self.path,
            self.family.field(name).unwrap_or(name),
            plain(value),
            expected,
        ))
    }

    /// A size, or what it is in its family where the file does not say.
    fn size(&self, name: &str) -> Result<usize> {
        let Some(value) = self.given(name) else {
            return Ok(self.family.default_size(name));
        };
        match value.as_u64().and_then(|size| usize::try_from(size).ok()) {
            Some(size) => Ok(size),
            None => self.invalid(name, value, "an integer ≥ 1"),
        }
    }

    /// The activation of the feed-forward parts.
    fn gelu(&self) -> Result<Gelu> {
        let known = self.family.activations();
        let Some(found) = self.given("hidden_act") else {
            return Ok(known.first().copied().unwrap_or_default());
        };
        match known.iter().find(|it| found.as_str() == Some(it.name())) {
            Some(gelu) => Ok(*gelu),
            None => {
                let names: Vec<&str> = known.iter().map(|it| it.name()).collect();
                let field = self.family.field("hidden_act").unwrap_or("hidden_act");
                Err(self.unsupported(field, found, &names))
            }
        }
    }

    /// The length of the vectors in the tables, where the family says it beside H and a dense layer follows.
    fn embedding_size(&self) -> Result<Option<usize>> {
        if self.family.field("embedding_size").is_none() {
            return Ok(None);
        }
        let (size, hidden_size) = (self.size("embedding_size")?, self.size("hidden_size")?);
        let is_projected = size != hidden_size || self.family.always_projects();
        Ok(is_projected.then_some(size))
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

    /// A field with a value that is not computed.
    pub(super) fn unsupported(
        &self,
        field: &str,
        found: &Value,
        accepted: &[&str],
    ) -> Box<Diagnostic> {
        problem::unsupported(self.path, field, plain(found), accepted)
    }

    /// An integer from 1 to `largest`.
    pub(super) fn count(&self, name: &str, default: usize, largest: usize) -> Result<usize> {
        let Some(value) = self.given(name) else {
            return Ok(default);
        };
        let count = value.as_u64().and_then(|count| usize::try_from(count).ok());
        match count.filter(|count| (1..=largest).contains(count)) {
            Some(count) => Ok(count),
            None => self.invalid(name, value, &format!("an integer from 1 to {largest}")),
        }
    }

    pub(super) fn number(&self, name: &str, default: f64) -> Result<f64> {
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
        let count = self.size("num_labels")?.min(MOST_LABELS + 1);
        Ok((0..count).map(|index| format!("LABEL_{index}")).collect())
    }
}
