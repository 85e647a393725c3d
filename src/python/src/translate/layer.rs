//! Layers, and models that are lists of them.

use stratoscope_diagnostics::CellSpan;

use super::arguments::{is_float, is_int, without_effect};
use super::thing::{ModelFacts, Thing};
use super::{Translator, Why, text};
use crate::model::{Call, Keyword, Kind, Value};

/// A layer as it is written.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    /// `Dense(10)`.
    pub rust: String,
    /// Its activation; `None`: it has none to set.
    pub activation: Option<String>,
    /// The shape of its input.
    pub input_shape: Option<String>,
    /// Its outputs, where they are written.
    pub units: Option<i64>,
    /// Where it stands.
    pub span: CellSpan,
    /// Whether an activation can be set.
    pub is_dense: bool,
    /// It only changes the layer before it: an activation.
    pub is_activation: bool,
    /// A `Flatten` of rows, which are flat here.
    pub is_flatten: bool,
}

/// Activations that exist here.
const ACTIVATIONS: &[&str] = &[
    "linear",
    "relu",
    "sigmoid",
    "softmax",
    "tanh",
    "gelu",
    "silu",
    "swish",
    "elu",
    "leaky_relu",
    "softplus",
];

/// The arguments that the layers of Keras have by their places; `None` for a layer that is not here.
fn order(class: &str) -> Option<&'static [&'static str]> {
    Some(match class {
        "Dense" => &["units", "activation", "use_bias"],
        "Dropout" => &["rate", "noise_shape", "seed"],
        "Embedding" => &["input_dim", "output_dim"],
        "Activation" => &["activation"],
        "GlobalAveragePooling1D" | "Flatten" | "Softmax" | "ReLU" => &[],
        _ => return None,
    })
}

/// Why an argument sets nothing here: a name, a type that numbers have anyway, or Keras's own default.
fn says_nothing(keyword: &Keyword) -> Option<&'static str> {
    let (text, value) = (keyword.value.text(), &keyword.value);
    let is_default = match keyword.name.as_str() {
        // A layer that is not trained is refused before.
        "trainable" => true,
        "kernel_initializer" => matches!(text, Some("glorot_uniform")),
        "embeddings_initializer" => matches!(text, Some("uniform")),
        "bias_initializer" => matches!(text, Some("zeros")),
        "use_bias" => value.kind == Kind::Bool(true),
        "axis" => value.integer() == Some(-1),
        "dtype" if is_float(value) => {
            return Some(
                "a layer has no type of its own: without a policy numbers are float32; under a 16-bit policy products have 16 bits, and a softmax is \
                 computed in float32 (under `mixed_float16` on the CPU its output is rounded)",
            );
        }
        "dtype" if is_int(value) => return Some("an `Embedding` reads whole numbers anyway"),
        _ => return without_effect(&keyword.name, value),
    };
    is_default.then_some("it is the default")
}

impl Layer {
    /// It as Rust.
    pub fn rust(&self) -> String {
        let mut written = self.rust.clone();
        if let Some(activation) = self.activation.as_deref()
            && activation != "linear"
        {
            written += &format!(".activation({})", text::text(activation));
        }
        if let Some(shape) = &self.input_shape {
            written += &format!(".input_shape({shape})");
        }
        written
    }
}

impl Translator<'_> {
    /// A layer of Keras.
    pub(crate) fn layer(&mut self, class: &str, call: &Call) -> Result<Layer, Why> {
        call.see_all();
        let named = order(class).map_or(Some(call.clone()), |names| call.named(names));
        let call = &named.ok_or("its arguments are not all named")?;
        let mut layer = Layer {
            rust: String::new(),
            activation: None,
            input_shape: None,
            units: None,
            span: call.span,
            is_dense: false,
            is_activation: false,
            is_flatten: false,
        };
        let known: &[&str] = match class {
            "Dense" => {
                let units = call
                    .argument("units", 0)
                    .ok_or("`Dense` has no number of units")?;
                layer.units = self.integer(units);
                layer.rust = format!("Dense({})", self.value(units)?);
                layer.is_dense = true;
                layer.activation = Some(match call.argument("activation", 1) {
                    Some(value) => self.activation(value)?,
                    None => "linear".to_owned(),
                });
                &["units", "activation"]
            }
            "Dropout" => {
                let rate = call.argument("rate", 0).ok_or("`Dropout` has no rate")?;
                layer.rust = format!("Dropout({})", self.float(rate)?);
                &["rate"]
            }
            "Embedding" => {
                self.embedding(call, &mut layer)?;
                &["input_dim", "output_dim", "input_length"]
            }
            "GlobalAveragePooling1D" => {
                layer.rust = "GlobalAveragePooling1D()".to_owned();
                &[]
            }
            "Flatten" => {
                layer.rust = "Flatten()".to_owned();
                layer.is_flatten = true;
                &[]
            }
            "Activation" | "Softmax" | "ReLU" => {
                let name = match class {
                    "Activation" => {
                        let value = call
                            .argument("activation", 0)
                            .ok_or("no activation is named")?;
                        self.activation(value)?
                    }
                    other => other.to_lowercase(),
                };
                layer.activation = Some(name);
                layer.is_activation = true;
                &["activation"]
            }
            other => {
                return Err(format!(
                    "there is no layer `{other}` here; there are `Dense`, `Dropout`, `Embedding`, \
                     `GlobalAveragePooling1D` and `Flatten`, and a custom `Network` can have any of burn's"
                ));
            }
        };
        self.layer_keywords(class, call, known, &mut layer)?;
        Ok(layer)
    }

    fn embedding(&mut self, call: &Call, layer: &mut Layer) -> Result<(), Why> {
        let entries = call
            .argument("input_dim", 0)
            .ok_or("`Embedding` has no `input_dim`")?;
        let width = call
            .argument("output_dim", 1)
            .ok_or("`Embedding` has no `output_dim`")?;
        layer.rust = format!(
            "Embedding({}, {})",
            self.value(entries)?,
            self.value(width)?
        );
        if let Some(length) = call.keyword("input_length") {
            layer.input_shape = Some(format!("({},)", self.value(&length.value)?));
        }
        Ok(())
    }

    /// The arguments that a layer may have beside its own.
    fn layer_keywords(
        &mut self,
        class: &str,
        call: &Call,
        known: &[&str],
        layer: &mut Layer,
    ) -> Result<(), Why> {
        for keyword in &call.keywords {
            match keyword.name.as_str() {
                "input_shape" | "shape" => {
                    layer.input_shape = Some(self.shape(&keyword.value)?);
                }
                "batch_input_shape" | "batch_shape" => {
                    layer.input_shape = Some(self.shape_of_batches(&keyword.value)?);
                }
                "trainable" if keyword.value.kind != Kind::Bool(true) => {
                    return Err("the layers of a `Sequential` are all trained here".to_owned());
                }
                "input_dim" if class != "Embedding" => {
                    layer.input_shape = Some(format!("({},)", self.value(&keyword.value)?));
                }
                name if known.contains(&name) => {}
                _ if let Some(why) = says_nothing(keyword) => self.idle(keyword.span, why),
                "seed" if class == "Dropout" => self.leave(
                    keyword.span,
                    "`seed` of `fit!` decides all random numbers of a run",
                ),
                name => {
                    let why =
                        format!("`{class}` has no `{name}` here: the layer is made without it");
                    self.leave_argument(keyword, why);
                }
            }
        }
        Ok(())
    }

    /// The name of an activation.
    pub(crate) fn activation(&mut self, value: &Value) -> Result<String, Why> {
        let name = match (&value.kind, self.names.full(value)) {
            (Kind::None, _) => "linear".to_owned(),
            (Kind::Text(text), _) => text.clone(),
            (_, Some(full))
                if full.starts_with("keras.activations.") || full.starts_with("tensorflow.nn.") =>
            {
                full.rsplit('.').next().unwrap_or_default().to_owned()
            }
            _ => return Err("the activation is not written as a text".to_owned()),
        };
        match ACTIVATIONS.contains(&name.as_str()) {
            true => Ok(name),
            false => Err(format!(
                "there is no activation `{name}` here; there are {}",
                stratoscope_render::text::names(ACTIVATIONS, 12)
            )),
        }
    }

    /// A whole number that is written, or was written for a name.
    pub(crate) fn integer(&self, value: &Value) -> Option<i64> {
        match value.name().and_then(|name| self.things.get(name)) {
            Some(Thing::Int(number)) => *number,
            _ => value.integer(),
        }
    }

    /// A number as a float.
    pub(crate) fn float(&mut self, value: &Value) -> Result<String, Why> {
        let typed = self.typed(value)?;
        let is_literal = value.integer().is_some();
        Ok(match (typed.kind, is_literal) {
            (super::number::Type::Int, true) => format!("{}.0", typed.rust),
            (super::number::Type::Int, false) => format!("{} as f64", typed.operand()),
            (super::number::Type::Text | super::number::Type::Bool, _) => {
                return Err("a number is expected here".to_owned());
            }
            _ => typed.rust,
        })
    }

    /// The shape of an input: the rows, `None`, are left out.
    pub(crate) fn shape(&mut self, value: &Value) -> Result<String, Why> {
        let sizes = match &value.kind {
            Kind::Tuple(sizes) | Kind::List(sizes) => sizes.clone(),
            Kind::Int(_) => vec![value.clone()],
            _ => return Err("the shape of the input is not written out".to_owned()),
        };
        let sizes: Vec<&Value> = sizes.iter().filter(|it| it.kind != Kind::None).collect();
        match sizes.as_slice() {
            [one] => Ok(format!("({},)", self.value(one)?)),
            [] => Err("the shape of the input has no number".to_owned()),
            many => {
                let numbers: Option<Vec<i64>> = many.iter().map(|it| self.integer(it)).collect();
                let numbers = numbers.ok_or("the shape of the input has several dimensions")?;
                // A row is a list of numbers here: images are rows of their pixels.
                let product = numbers
                    .iter()
                    .try_fold(1_i64, |all, it| all.checked_mul(*it));
                let product = product.ok_or("the shape of the input is too large")?;
                self.note(
                    value.span,
                    format!(
                        "an input is a row of numbers here: {} are {product}",
                        numbers
                            .iter()
                            .map(ToString::to_string)
                            .collect::<Vec<_>>()
                            .join(" × ")
                    ),
                );
                Ok(format!("({product},)"))
            }
        }
    }

    /// The shape of an input by that of its batches: their size, the first number, is left out.
    pub(crate) fn shape_of_batches(&mut self, value: &Value) -> Result<String, Why> {
        let sizes = value
            .elements()
            .ok_or("the shape of the input is not written out")?;
        let sizes = sizes.iter().skip(1).cloned().collect();
        self.shape(&Value {
            span: value.span,
            kind: Kind::Tuple(sizes),
        })
    }

    /// Layers in order as the list of a `Sequential`: activations join the layer before them, a `Flatten` of rows goes.
    pub(crate) fn joined(
        &mut self,
        layers: Vec<Layer>,
        input: Option<String>,
    ) -> Result<Vec<Layer>, Why> {
        let mut joined: Vec<Layer> = Vec::new();
        let mut shape = input;
        for mut layer in layers {
            let is_first = joined.is_empty();
            if is_first {
                shape = layer.input_shape.take().or(shape);
            }
            if layer.is_flatten && !joined.iter().any(|it| it.rust.starts_with("Embedding")) {
                self.note(
                    layer.span,
                    "inputs are rows already, so `Flatten` is left out",
                );
                continue;
            }
            if layer.is_activation {
                match joined.last_mut() {
                    Some(before)
                        if before.is_dense && before.activation.as_deref() == Some("linear") =>
                    {
                        before.activation = layer.activation;
                        continue;
                    }
                    _ => {
                        return Err(
                            "an activation stands behind a layer without one only".to_owned()
                        );
                    }
                }
            }
            joined.push(layer);
        }
        let Some(first) = joined.first_mut() else {
            return Err("the model has no layers".to_owned());
        };
        first.input_shape = shape;
        Ok(joined)
    }

    /// `Sequential([…])?`, and what is known of the model.
    pub(crate) fn sequential(
        &mut self,
        layers: Vec<Layer>,
        input: Option<String>,
        span: CellSpan,
    ) -> Result<(String, ModelFacts), Why> {
        let layers = self.joined(layers, input)?;
        let written: Vec<String> = layers.iter().map(Layer::rust).collect();
        let dense = layers.iter().rev().find(|layer| layer.is_dense);
        let is_built = layers
            .first()
            .is_some_and(|layer| layer.input_shape.is_some());
        let facts = ModelFacts {
            span,
            is_bert: false,
            activation: dense.and_then(|layer| layer.activation.clone()),
            outputs: dense.and_then(|layer| layer.units),
            is_built,
            scope: self.scope_of_models(),
            compiled: None,
        };
        let one = format!("Sequential([{}])?", written.join(", "));
        let rust = match one.len() <= 90 {
            true => one,
            false => {
                let lines: Vec<String> = written
                    .iter()
                    .map(|layer| format!("    {layer},"))
                    .collect();
                format!("Sequential([\n{}\n])?", lines.join("\n"))
            }
        };
        Ok((rust, facts))
    }
}
