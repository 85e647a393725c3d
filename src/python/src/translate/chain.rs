//! Layers that are called: `x = Dense(10)(x)`, `self.hidden(x)`, `tf.nn.relu(x)`. A chain of them is a list of layers.

use super::layer::Layer;
use super::thing::Thing;
use super::{Translator, Why};
use crate::model::{Call, Kind, Value};

/// Layers, one behind the other, and the name of their input.
pub(crate) type Chain = (Vec<Layer>, Option<String>);

impl Translator<'_> {
    /// The layers behind a value that is the output of layers; `None` where it is none.
    pub(crate) fn chained(&mut self, value: &Value) -> Option<Result<Chain, Why>> {
        if let Some(path) = value.path() {
            return match self.things.get(&path.join(".")) {
                Some(Thing::Layers(layers, input)) => Some(Ok((layers.clone(), input.clone()))),
                _ => None,
            };
        }
        let call = value.call()?;
        if let Some(full) = self.names.full(&call.function) {
            return match full
                .strip_prefix("tensorflow.nn.")
                .or(full.strip_prefix("keras.activations."))
            {
                Some(_) => Some(self.applied_activation(call)),
                None if full == "keras.Input" => Some(self.input(call)),
                None => None,
            };
        }
        let layer = match &call.function.kind {
            Kind::Call(made) => {
                let full = self.names.full(&made.function)?;
                let class = full.strip_prefix("keras.layers.")?.to_owned();
                self.layer(&class, made)
            }
            _ => match self.things.get(&call.function.path()?.join(".")) {
                Some(Thing::Layer(layer)) => Ok(layer.clone()),
                _ => return None,
            },
        };
        Some(layer.and_then(|layer| self.applied(layer, call)))
    }

    fn applied(&mut self, layer: Layer, call: &Call) -> Result<(Vec<Layer>, Option<String>), Why> {
        let input = call.argument("inputs", 0).ok_or("the layer gets nothing")?;
        let (mut layers, shape) = match self.chained(input) {
            Some(found) => found?,
            None => {
                if let Some(why) = input.name().and_then(|name| self.missing(name)) {
                    return Err(why);
                }
                return Err(
                    "it is no chain of layers: what a layer gets is not the output of one"
                        .to_owned(),
                );
            }
        };
        layers.push(layer);
        Ok((layers, shape))
    }

    fn applied_activation(&mut self, call: &Call) -> Result<(Vec<Layer>, Option<String>), Why> {
        let name = self.activation(&call.function)?;
        let layer = Layer {
            rust: String::new(),
            activation: Some(name),
            input_shape: None,
            units: None,
            span: call.span,
            is_dense: false,
            is_activation: true,
            is_flatten: false,
        };
        self.applied(layer, call)
    }

    /// `tf.keras.Input(shape=(100,))`.
    fn input(&mut self, call: &Call) -> Result<(Vec<Layer>, Option<String>), Why> {
        for keyword in call.keywords.iter().filter(|it| it.name == "dtype") {
            call.keyword("dtype");
            self.idle(
                keyword.span,
                "an `Embedding` reads whole numbers, other layers float32",
            );
        }
        if let Some(batches) = call.keyword("batch_shape") {
            return Ok((Vec::new(), Some(self.shape_of_batches(&batches.value)?)));
        }
        let shape = call.argument("shape", 0).ok_or("the input has no shape")?;
        Ok((Vec::new(), Some(self.shape(shape)?)))
    }

    /// The elements of `Sequential([…])`.
    pub(crate) fn listed(&mut self, call: &Call) -> Result<(Vec<Layer>, Option<String>), Why> {
        let (mut layers, mut shape) = (Vec::new(), None);
        let Some(list) = call.argument("layers", 0) else {
            return Ok((layers, shape));
        };
        let list = list
            .elements()
            .ok_or("the layers are not written as a list")?;
        for element in list {
            match self.listed_layer(element)? {
                Thing::Layer(layer) => layers.push(layer),
                Thing::Layers(_, input) => shape = input,
                _ => {}
            }
        }
        Ok((layers, shape))
    }

    /// A layer of a list: made there, or before by its name; an input gives its shape.
    pub(crate) fn listed_layer(&mut self, value: &Value) -> Result<Thing, Why> {
        if let Some(path) = value.path()
            && let Some(thing @ (Thing::Layer(_) | Thing::Layers(..))) =
                self.things.get(&path.join("."))
        {
            return Ok(thing.clone());
        }
        let Some((full, call)) = self.names.called(value).zip(value.call()) else {
            return Err("a layer is not written as a call of its class".to_owned());
        };
        match full.strip_prefix("keras.layers.") {
            Some("InputLayer") => {
                let batches = call
                    .keyword("batch_shape")
                    .or(call.keyword("batch_input_shape"));
                let shape = call.argument("input_shape", 0);
                let shape = shape.or(call.argument("shape", 0));
                let shape = match (batches, shape) {
                    (Some(batches), _) => self.shape_of_batches(&batches.value)?,
                    (None, Some(shape)) => self.shape(shape)?,
                    (None, None) => return Err("the input has no shape".to_owned()),
                };
                Ok(Thing::Layers(Vec::new(), Some(shape)))
            }
            Some(class) => Ok(Thing::Layer(self.layer(class, call)?)),
            None if full == "keras.Input" => {
                let (layers, shape) = self.input(call)?;
                Ok(Thing::Layers(layers, shape))
            }
            None => Err(format!("`{full}` is no layer that exists here")),
        }
    }
}
