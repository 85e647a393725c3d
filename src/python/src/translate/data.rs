//! Data sets: files, arrays, splits, and what pipelines begin with.

use stratoscope_diagnostics::CellSpan;

use super::frame::is_columns;
use super::source::place_of;
use super::thing::{Encodings, Pipeline, Thing};
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};

/// What a free name for data is said to be.
const DATA: &str = "a data set, such as `Dataset::csv(\"train.csv\")?`";

impl Translator<'_> {
    /// A data set: a name, a split, or steps of a pipeline.
    pub(crate) fn pipeline(&mut self, value: &Value) -> Result<Pipeline, Why> {
        if let Some(name) = value.name() {
            return match self.things.get(name).cloned() {
                Some(Thing::Data(known)) => Ok(Pipeline {
                    rust: text::name(name),
                    ..known
                }),
                None => {
                    self.name(name)?;
                    self.free(name, DATA)?;
                    Ok(Pipeline::of(text::name(name)))
                }
                Some(Thing::List | Thing::Texts | Thing::Value | Thing::Missing(_)) => {
                    Ok(Pipeline::of(self.value(value)?))
                }
                Some(Thing::Splits(_)) => {
                    Err(format!("`{name}` has splits: `{name}[\"train\"]` is one"))
                }
                Some(other) => Err(format!("`{name}` is {}, no data set", other.word())),
            };
        }
        if self.reads_frame(value) {
            return self.read_frame(value);
        }
        if let Kind::Index(object, index) = &value.kind
            && is_columns(index)
        {
            self.idle(
                index.span,
                "a data set keeps the text and the label of each row",
            );
            return self.pipeline(object);
        }
        if let Kind::Index(object, index) = &value.kind {
            return self.split_of(object, index);
        }
        let Some(call) = value.call() else {
            return Err("the data is not written as a name or a data set".to_owned());
        };
        if let Some(loaded) = self.loaded(value) {
            let loaded = loaded?;
            return Ok(Pipeline {
                is_tensorflow: loaded.is_tensorflow,
                ..Pipeline::of(loaded.one()?)
            });
        }
        if self.names.called(value).as_deref() == Some("tensorflow.data.Dataset.from_tensor_slices")
        {
            return self.slices(call);
        }
        match &call.function.kind {
            Kind::Attribute(object, step) => self.step(object, step, call),
            _ => Err("it is no data set that is known from the cell".to_owned()),
        }
    }

    /// Whether a value is a data set, as far as that can be seen without writing it.
    pub(crate) fn is_data(&self, value: &Value) -> bool {
        const STEPS: &[&str] = &[
            "map",
            "batch",
            "shuffle",
            "prefetch",
            "cache",
            "take",
            "skip",
            "repeat",
            "shard",
            "padded_batch",
            "with_options",
            "to_tf_dataset",
            "select",
            "filter",
            "experimental_distribute_dataset",
            "prepare_tf_dataset",
            "train_test_split",
            "rename_column",
            "remove_columns",
            "with_format",
        ];
        if self.names.called(value).as_deref() == Some("tensorflow.data.Dataset.from_tensor_slices")
        {
            return true;
        }
        if self.reads_frame(value) || (value.name().is_none() && self.is_frame(value)) {
            return true;
        }
        match &value.kind {
            Kind::Index(object, _) => {
                let named = object.name().and_then(|name| self.things.get(name));
                matches!(named, Some(Thing::Splits(..))) || self.loaded_name(object)
            }
            Kind::Call(call) => match &call.function.kind {
                Kind::Attribute(object, step) => {
                    let is_library = self.names.full(object).is_some();
                    STEPS.contains(&step.as_str()) && !is_library
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// `dataset["train"]`.
    fn split_of(&mut self, object: &Value, index: &Value) -> Result<Pipeline, Why> {
        let split = index.text().ok_or("the split is not written as a text")?;
        if let Some(loaded) = self.loaded(object) {
            let loaded = loaded?;
            let place = place_of(&loaded.splits, split)?;
            let rust = match loaded.splits.as_slice() {
                [_] => loaded.rust,
                _ => format!("{}.{place}", loaded.rust),
            };
            return Ok(Pipeline {
                is_tensorflow: loaded.is_tensorflow,
                max_length: loaded.max_length,
                ..Pipeline::of(rust)
            });
        }
        let Some(Thing::Splits(splits)) = object.name().and_then(|it| self.things.get(it)) else {
            return match object.name().and_then(|name| self.things.get(name)) {
                Some(Thing::Missing(_)) => Err(self.value(object).err().unwrap_or_default()),
                _ => Err("it is no data set with splits that is made in this cell".to_owned()),
            };
        };
        let names: Vec<&str> = splits.names.iter().map(|(name, _)| *name).collect();
        let place = place_of(&names, split)?;
        Ok(Pipeline {
            is_tensorflow: splits.is_tensorflow,
            max_length: splits.max_length.clone(),
            ..Pipeline::of(splits.names[place].1.clone())
        })
    }

    /// `tokenizer(example["text"], max_length=128, …)`: the length, and where it stands.
    pub(crate) fn tokenizes(
        &mut self,
        value: &Value,
    ) -> Result<Option<(Option<String>, CellSpan)>, Why> {
        let Some(call) = value.call() else {
            return Ok(None);
        };
        let name = match &call.function.kind {
            Kind::Name(name) => name,
            Kind::Attribute(_, name) if name == "encode_plus" || name == "batch_encode_plus" => {
                "tokenizer"
            }
            _ => return Ok(None),
        };
        let is_tokenizer = match self.things.get(name) {
            Some(Thing::Tokenizer) => true,
            Some(_) => false,
            None => name.to_lowercase().contains("token"),
        };
        if !is_tokenizer {
            return Ok(None);
        }
        let length = self.length_of(call)?;
        // What it reads are the columns of the data set.
        call.argument("text", 0);
        call.argument("text_pair", 1);
        self.account_value(value);
        Ok(Some((Some(length), call.span)))
    }

    /// `tf.data.Dataset.from_tensor_slices(…)`.
    fn slices(&mut self, call: &Call) -> Result<Pipeline, Why> {
        let given = call.argument("tensors", 0).ok_or("it gets no data")?;
        let mut data = match &given.kind {
            Kind::Tuple(values) => match values.as_slice() {
                [x, y] => self.data_of(x, Some(y))?,
                _ => return Err("it gets more than data and labels".to_owned()),
            },
            Kind::Dict(items) => self.slices_of_columns(items)?,
            _ => {
                let rust = self.value(given)?;
                Pipeline::of(format!("Dataset::from_features(&{rust})?"))
            }
        };
        data.is_tensorflow = true;
        data.shuffle = Some(false);
        Ok(data)
    }

    /// `{"text": texts, "labels": labels}`.
    pub(crate) fn slices_of_columns(&mut self, items: &[(Value, Value)]) -> Result<Pipeline, Why> {
        let is_label = |key: &Value| {
            matches!(
                key.text(),
                Some("label" | "labels" | "target" | "targets" | "y")
            )
        };
        let is_text = |key: &Value| {
            let words = [
                "text",
                "sentence",
                "review",
                "question",
                "premise",
                "hypothesis",
                "content",
            ];
            key.text()
                .is_some_and(|key| words.iter().any(|word| key.starts_with(word)))
        };
        let labels = items
            .iter()
            .find(|(key, _)| is_label(key))
            .map(|(_, value)| value);
        let texts: Vec<&Value> = items
            .iter()
            .filter(|(key, _)| is_text(key))
            .map(|(_, it)| it)
            .collect();
        match (texts.as_slice(), labels, items.len()) {
            ([one], Some(labels), 2) => {
                let texts = self.list_of_texts(one)?;
                self.of_texts(&texts, None, labels)
            }
            ([a, b], Some(labels), 3) => {
                let (a, b) = (self.list_of_texts(a)?, self.list_of_texts(b)?);
                self.of_texts(&a, Some(&b), labels)
            }
            _ => Err("a data set has texts and labels, or rows of numbers and labels".to_owned()),
        }
    }

    /// Encodings by their name, `dict(encodings)` or the call of the tokenizer.
    pub(crate) fn encodings_of(&mut self, value: &Value) -> Option<Thing> {
        let inner = match value.call() {
            Some(call) if call.function.name() == Some("dict") => call.argument("mapping", 0)?,
            _ => value,
        };
        let inner = match &inner.kind {
            Kind::Attribute(object, name) if name == "data" => object,
            _ => inner,
        };
        match inner.name().and_then(|name| self.things.get(name)) {
            Some(thing @ Thing::Encodings(_)) => Some(thing.clone()),
            _ => None,
        }
    }

    /// The data set of tokenized texts: the texts.
    pub(crate) fn of_encodings(&mut self, given: &Encodings, y: &Value) -> Result<Pipeline, Why> {
        let mut data = self.of_texts(&given.texts, given.pair.as_deref(), y)?;
        data.max_length.clone_from(&given.max_length);
        Ok(data)
    }

    /// A data set of texts, or pairs of texts, and labels.
    pub(crate) fn of_texts(
        &mut self,
        texts: &str,
        pair: Option<&str>,
        y: &Value,
    ) -> Result<Pipeline, Why> {
        let labels = self.value(y)?;
        if let Some(name) = y.name()
            && !self.things.contains_key(name)
        {
            self.free(
                name,
                "a list of labels, such as `vec![\"games\", \"fonts\"]` or `vec![0, 1]`",
            )?;
        }
        let owned = |name: &str| format!("{name}.iter().map(|it| it.to_string())");
        let labels = owned(&labels);
        Ok(Pipeline::of(match pair {
            None => format!("Dataset::from_rows({}, {labels})?", owned(texts)),
            Some(pair) => {
                format!(
                    "Dataset::from_pair_rows({}.zip({}), {labels})?",
                    owned(texts),
                    owned(pair)
                )
            }
        }))
    }
}
