//! The network of a [`Sequential`](super::Sequential()): its layers with their variables, once they are
//! built.

use std::path::{Path, PathBuf};

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use stratoscope_bert::mode::DropoutSite;
use stratoscope_bert::names::named_values;
use stratoscope_bert::{Mode, NamedParameter, named_parameters, operation, ops, taps};
use stratoscope_data::{Batch, Dataset, RandomStream};
use stratoscope_diagnostics::rules::{InvalidSize, TokenOutOfRange};
use stratoscope_diagnostics::{Place, Result, Rule};

use super::layer::{Kind, Layer};
use super::{room, saved};
use crate::report::summary::LayerRow;
use stratoscope_network::{Activation, Blueprint, Network, Outputs, features};

/// The family of its blueprints.
pub(crate) const FAMILY: &str = "Sequential";

/// A list of layers. Until it is built, it has none with variables.
#[derive(Module, Debug)]
pub struct Layers {
    layers: Vec<Weights>,
    #[module(skip)]
    plan: Vec<Layer>,
    #[module(skip)]
    input: Option<usize>,
}

/// The variables of a layer; both are missing in a layer that only computes.
#[derive(Module, Debug)]
struct Weights {
    /// Of a dense layer [O, I], as checkpoints store it; of an embedding [V, H].
    weight: Option<Param<Tensor<2>>>,
    /// `[O]`.
    bias: Option<Param<Tensor<1>>>,
}

/// What a layer's outputs look like, the number of rows left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Positions of a sequence; none for a row.
    positions: Option<usize>,
    /// The numbers of a row, or of each position.
    pub(super) width: usize,
}

impl Layers {
    /// The layers that a blueprint describes, on a device.
    ///
    /// # Errors
    /// SC0915 for one that describes none.
    pub(crate) fn of_blueprint(blueprint: &Blueprint, device: &Device) -> Result<Self> {
        let described = blueprint.read::<(Vec<(Kind, Activation, u64)>, usize)>();
        let (plan, width) = described.map_err(|reason| {
            let rule = InvalidSize {
                what: "the description of the layers".to_owned(),
                given: reason,
                expects: "one of this version".to_owned(),
                place: None,
            };
            rule.error()
        })?;
        let layers = Self::new(plan.into_iter().map(Layer::read).collect())?;
        layers.fits(width)?;
        Ok(layers.build(width, device))
    }

    /// Layers that wait for the width of their input.
    ///
    /// # Errors
    /// SC0915 for a layer that cannot come at its place or that no memory holds, SC0105 for an unknown
    /// activation.
    pub(super) fn new(plan: Vec<Layer>) -> Result<Self> {
        let mut sequences = false;
        for (index, layer) in plan.iter().enumerate() {
            layer.check(index, sequences)?;
            sequences = match layer.kind {
                Kind::Embedding { .. } => true,
                Kind::GlobalAveragePooling1D | Kind::Flatten => false,
                Kind::Dense { .. } | Kind::Dropout { .. } => sequences,
            };
        }
        let has_outputs = plan.iter().any(|it| matches!(it.kind, Kind::Dense { .. }));
        if !has_outputs || sequences {
            let rule = InvalidSize {
                what: "the last layer with outputs".to_owned(),
                given: plan.last().map_or("missing", Layer::class).to_owned(),
                expects: "a `Dense` whose inputs are rows, one row for each example".to_owned(),
                place: Some(Place::call("Sequential")),
            };
            return Err(rule.error());
        }
        let layers = Self {
            layers: Vec::new(),
            plan,
            input: None,
        };
        room::outputs(layers.outputs())?;
        // However wide the input will be, it is no narrower.
        room::check(&layers.plan, &layers.inputs(1))?;
        Ok(layers)
    }

    /// The outputs of the last layer that has some of its own.
    pub(in crate::model) fn outputs(&self) -> usize {
        let units = self.plan.iter().rev().find_map(|layer| match layer.kind {
            Kind::Dense { units } => Some(units),
            _ => None,
        });
        units.unwrap_or(1)
    }

    /// The shape that the first layer was written with.
    pub(super) fn declared(&self) -> Option<Result<usize>> {
        let shape = self.plan.first()?.input_shape.as_ref()?;
        Some(shape.width("input_shape"))
    }

    /// Keras's names, numbered where a kind occurs more than once: `dense`, `dense_1`.
    pub(in crate::model) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::with_capacity(self.plan.len());
        for (index, layer) in self.plan.iter().enumerate() {
            let name = layer.name();
            let before = self.plan[..index].iter().filter(|it| it.name() == name);
            names.push(match before.count() {
                0 => name.to_owned(),
                number => format!("{name}_{number}"),
            });
        }
        names
    }

    /// The shapes of the outputs of the layers, for an input of this width.
    pub(super) fn shapes(&self, width: usize) -> Vec<Shape> {
        let mut shape = Shape {
            positions: None,
            width,
        };
        let layers = self.plan.iter().map(|layer| {
            shape = match layer.kind {
                Kind::Dense { units } => Shape {
                    width: units,
                    ..shape
                },
                Kind::Dropout { .. } => shape,
                Kind::Embedding { width, .. } => Shape {
                    positions: Some(shape.width),
                    width,
                },
                Kind::GlobalAveragePooling1D => Shape {
                    positions: None,
                    ..shape
                },
                Kind::Flatten => Shape {
                    width: shape.positions.unwrap_or(1).saturating_mul(shape.width),
                    positions: None,
                },
            };
            shape
        });
        layers.collect()
    }

    /// The width of each layer's input, and of the last one's output.
    fn inputs(&self, width: usize) -> Vec<usize> {
        let outputs = self.shapes(width).into_iter().map(|it| it.width);
        std::iter::once(width).chain(outputs).collect()
    }

    fn weights(&self, width: usize, device: &Device) -> Vec<Weights> {
        let layers = self.plan.iter().zip(self.inputs(width)).enumerate();
        let layers = layers.map(|(index, (layer, inputs))| match layer.kind {
            Kind::Dense { units } => {
                // Glorot and Bengio 2010, the uniform form.
                let limit = (6.0 / (inputs + units) as f64).sqrt();
                Weights {
                    weight: Some(uniform([units, inputs], limit, layer.seed, index, device)),
                    bias: Some(Param::from_tensor(Tensor::zeros([units], device))),
                }
            }
            Kind::Embedding { entries, width } => Weights {
                weight: Some(uniform([entries, width], 0.05, layer.seed, index, device)),
                bias: None,
            },
            _ => Weights {
                weight: None,
                bias: None,
            },
        });
        layers.collect()
    }

    /// The values of its variables, read from the device, by the names of [`Network::parameters`].
    pub(in crate::model) fn values(&self) -> Vec<(String, TensorData)> {
        let names = self.names();
        let values = named_values(self).into_iter();
        values
            .map(|(path, data)| (in_words(&names, &path), data))
            .collect()
    }

    /// The layers, and the numbers of a row; `None` until it is built.
    pub(in crate::model) fn described(&self) -> Option<(&[Layer], usize)> {
        Some((&self.plan, self.input?))
    }

    /// The same with these values of its variables, which `value` finds by name and shape.
    ///
    /// # Errors
    /// That of a value which is not found.
    pub(super) fn with_values(
        mut self,
        device: &Device,
        mut value: impl FnMut(&str, &[usize]) -> Result<Vec<f32>>,
    ) -> Result<Self> {
        for (name, weights) in self.names().into_iter().zip(&mut self.layers) {
            if let Some(weight) = &mut weights.weight {
                let shape = weight.dims();
                let values = value(&format!("{name}.weight"), &shape)?;
                *weight = Param::from_data(TensorData::new(values, shape), device);
            }
            if let Some(bias) = &mut weights.bias {
                let shape = bias.dims();
                let values = value(&format!("{name}.bias"), &shape)?;
                *bias = Param::from_data(TensorData::new(values, shape), device);
            }
        }
        Ok(self)
    }

    /// The outputs of one layer.
    ///
    /// # Shapes
    /// [B, S, I] → [B, S, O]; rows have S = 1
    fn layer(&self, index: usize, x: Tensor<3>, mode: Mode) -> Tensor<3> {
        let (layer, weights) = (&self.plan[index], &self.layers[index]);
        let x = match (layer.kind, &weights.weight, &weights.bias) {
            (Kind::Dense { .. }, Some(weight), Some(bias)) => {
                ops::linear(x, weight.val(), bias.val())
            }
            (Kind::Embedding { .. }, Some(weight), _) => {
                let [rows, _, positions] = x.dims();
                let indices: Tensor<2, Int> = x.reshape([rows, positions]).int();
                ops::embedding(weight.val(), indices, None)
            }
            (Kind::Dropout { rate }, ..) => match mode.dropout(rate, DropoutSite::Layer(index)) {
                Some((rate, key)) => ops::dropout(x, rate, key),
                None => x,
            },
            (Kind::GlobalAveragePooling1D, ..) => operation!("mean", [x], x.mean_dim(1)),
            (Kind::Flatten, ..) => {
                let [rows, positions, width] = x.dims();
                x.reshape([rows, 1, positions * width])
            }
            // What has weights was given them when it was built.
            _ => x,
        };
        ops::rounded(layer.activation.forward(x))
    }
}

/// The name of a parameter, `dense.weight`, by the path of its fields, `layers.0.weight`.
fn in_words(layers: &[String], path: &str) -> String {
    let mut parts = path.split('.').skip(1);
    let index: Option<usize> = parts.next().and_then(|index| index.parse().ok());
    let layer = index.and_then(|index| layers.get(index));
    match (layer, parts.next()) {
        (Some(layer), Some(field)) => format!("{layer}.{field}"),
        _ => path.to_owned(),
    }
}

/// A parameter whose values lie in [−limit, limit), fixed by the seed and the layer's place.
fn uniform(
    shape: [usize; 2],
    limit: f64,
    seed: u64,
    layer: usize,
    device: &Device,
) -> Param<Tensor<2>> {
    let mut random = RandomStream::new(seed, layer as u64);
    let values: Vec<f32> = (0..shape[0] * shape[1])
        .map(|_| {
            // 53 random bits as a number in [0, 1).
            let share = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            (limit * (2.0 * share - 1.0)) as f32
        })
        .collect();
    Param::from_data(TensorData::new(values, shape), device)
}

impl Network for Layers {
    type Files = Outputs;

    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2> {
        let x = ops::rounded(features(batch, device));
        let [rows, width] = x.dims();
        let mut x = x.reshape([rows, 1, width]);
        // The names of the layers are needed where somebody looks at their outputs.
        let names = if taps::is_active() {
            self.names()
        } else {
            Vec::new()
        };
        for index in 0..self.layers.len() {
            x = match names.get(index) {
                Some(name) => taps::within(name, || taps::output(self.layer(index, x, mode))),
                None => self.layer(index, x, mode),
            };
        }
        let outputs = x.dims()[2];
        x.reshape([rows, outputs])
    }

    /// `dense.weight`, `dense.bias`, `dense_1.weight`, …
    fn parameters(&self) -> Vec<NamedParameter> {
        let names = self.names();
        let rename = |known: NamedParameter| NamedParameter {
            name: in_words(&names, &known.name),
            ..known
        };
        named_parameters(self).into_iter().map(rename).collect()
    }

    fn is_built(&self) -> bool {
        self.input.is_some()
    }

    fn fits(&self, width: usize) -> Result<()> {
        room::check(&self.plan, &self.inputs(width))
    }

    fn build(mut self, width: usize, device: &Device) -> Self {
        self.layers = self.weights(width, device);
        self.input = Some(width);
        self
    }

    fn input_width(&self) -> Option<usize> {
        self.input
    }

    /// What an embedding is to look up must be whole numbers for which it has a vector.
    fn check(&self, data: &Dataset, call: &str) -> Result<()> {
        let Some(Kind::Embedding { entries, .. }) = self.plan.first().map(|layer| layer.kind)
        else {
            return Ok(());
        };
        for example in &data.examples {
            let odd = |x: &&f32| x.fract() != 0.0 || **x < 0.0 || **x >= entries as f32;
            let Some(&odd) = example.features.iter().find(odd) else {
                continue;
            };
            if odd.fract() == 0.0 && odd >= 0.0 {
                let rule = TokenOutOfRange {
                    id: odd as u32,
                    token: None,
                    vocabulary: entries,
                    row: example.row,
                    call: call.to_owned(),
                };
                return Err(rule.error());
            }
            let rule = InvalidSize {
                what: format!("a number in row {}", example.row),
                given: odd.to_string(),
                expects: format!(
                    "a whole number from 0 to {}, for the `Embedding`",
                    entries - 1
                ),
                place: Some(Place::call(call)),
            };
            return Err(rule.error());
        }
        Ok(())
    }

    fn can_be_saved(&self) -> bool {
        true
    }

    fn save(&self, files: &Outputs, folder: &Path) -> Result<Vec<PathBuf>> {
        saved::save(self, files, folder)
    }

    fn blueprint(&self, _: &Outputs) -> Option<Blueprint> {
        let plan: Vec<_> = self.plan.iter().map(Layer::written).collect();
        Blueprint::of(FAMILY, &(plan, self.input?))
    }

    fn layer_rows(&self) -> Option<Vec<LayerRow>> {
        let shapes = self.input_width().map(|width| self.shapes(width));
        let rows = self.plan.iter().zip(self.names()).enumerate();
        let rows = rows.map(|(index, (layer, name))| LayerRow {
            name,
            class: layer.class(),
            shape: shapes.as_ref().map(|shapes| shapes[index].to_string()),
        });
        Some(rows.collect())
    }

    /// The activation of the last layer with outputs, or of a `Dropout` behind it. Of two that are
    /// applied to each other nothing is said.
    fn output_activation(&self) -> Option<Activation> {
        let dense = |layer: &Layer| matches!(layer.kind, Kind::Dense { .. });
        let head = self.plan.iter().rposition(dense)?;
        let applied = self.plan[head..].iter().map(|layer| layer.activation);
        let mut applied = applied.filter(|&activation| activation != Activation::Linear);
        match (applied.next(), applied.next()) {
            (None, _) => Some(Activation::Linear),
            (only, None) => only,
            (Some(_), Some(_)) => None,
        }
    }

    fn follows_policy() -> bool {
        true
    }
}

impl std::fmt::Display for Shape {
    /// `(None, 5)`, as Keras writes it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.positions {
            Some(positions) => write!(f, "(None, {positions}, {})", self.width),
            None => write!(f, "(None, {})", self.width),
        }
    }
}
