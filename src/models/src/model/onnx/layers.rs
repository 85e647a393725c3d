//! Layers as operators of ONNX: what the networks of this library have in common.
//! Dimensions: I inputs and O outputs of a layer, V entries of a table, E the length of their vectors.

use std::collections::HashMap;
use std::f32::consts::{FRAC_2_SQRT_PI, SQRT_2};

use burn::tensor::TensorData;
use stratoscope_onnx::quantized::{self, Rows, transposed};
use stratoscope_onnx::{Attribute, ElementType, Graph, Tensor, Value};

use stratoscope_network::Activation;

/// The number of `FLOAT` in `TensorProto.DataType`, which `Cast` takes.
const TO_FLOAT: (&str, Attribute<'static>) = ("to", Attribute::Int(1));

/// How large weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weights {
    /// 32 bits, as they are.
    Float32,
    /// 8 bits and a scale for each output, or for each vector of a table. Inputs of products are rounded to 8 bits, too, by
    /// the range that they have when the graph is run (ONNX's `DynamicQuantizeLinear`).
    Int8,
}

/// A graph while a network is translated.
pub(super) struct Translation {
    pub(super) graph: Graph,
    values: HashMap<String, TensorData>,
    weights: Weights,
    /// The weights in the graph by their names there: a layer that is computed several times has them once.
    stored: HashMap<String, Value>,
    /// Values as integers of 8 bits, with their scale and zero point: several products may take one.
    rounded: HashMap<Value, [Value; 3]>,
}

/// A table of vectors in the graph.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// [V, E], floats or integers.
    entries: Value,
    /// [V, 1], of integers.
    scales: Option<Value>,
}

impl Translation {
    pub(super) fn new(
        graph: Graph,
        values: impl IntoIterator<Item = (String, TensorData)>,
        weights: Weights,
    ) -> Self {
        Self {
            graph,
            values: values.into_iter().collect(),
            weights,
            stored: HashMap::new(),
            rounded: HashMap::new(),
        }
    }

    /// A variable's shape and values, which are taken.
    ///
    /// # Panics
    /// If the network has no such variable: the caller names those of its layers.
    fn take(&mut self, name: &str) -> (Vec<usize>, Vec<f32>) {
        let data = self.values.remove(name);
        let data = data.unwrap_or_else(|| panic!("the network has the variable `{name}`"));
        (data.shape().to_vec(), data.iter::<f32>().collect())
    }

    /// A weight, which is stored at its first use.
    fn stored(&mut self, name: &str, tensor: Tensor) -> Value {
        let value = self.graph.tensor(tensor);
        self.stored.insert(name.to_owned(), value.clone());
        value
    }

    /// A variable as it is.
    pub(super) fn variable(&mut self, name: &str) -> Value {
        if let Some(stored) = self.stored.get(name) {
            return stored.clone();
        }
        let (dims, values) = self.take(name);
        self.stored(name, Tensor::floats(name, &dims, values))
    }

    /// An integer, for operators that take a place or a count as an input.
    pub(super) fn integer(&mut self, value: i64) -> Value {
        let name = format!("integer_{value}");
        self.graph
            .constant(Tensor::integers(name, &[], vec![value]))
    }

    /// Integers, for operators that take axes or a shape as an input.
    pub(super) fn integers(&mut self, values: &[i64]) -> Value {
        let dims = [values.len()];
        (self.graph).constant(Tensor::integers("integers", &dims, values.to_vec()))
    }

    /// A number.
    pub(super) fn float(&mut self, value: f32) -> Value {
        let name = format!("float_{value:e}");
        self.graph.constant(Tensor::floats(name, &[], vec![value]))
    }

    /// A dense layer with the variables `part.weight`, [O, I], and `part.bias`, with weights as they are stored in this file.
    ///
    /// # Shapes
    /// […, I] → […, O]
    pub(super) fn dense(&mut self, part: &str, x: &Value) -> Value {
        if self.weights == Weights::Float32 {
            return self.head(part, x);
        }
        let (weight, scales) = self.integers_of(part);
        let product = self.product_of_integers(part, x, &weight, &scales);
        self.with_bias(part, &product)
    }

    /// The weight of a layer as integers, [I, O], and their scales, `[O]`.
    fn integers_of(&mut self, part: &str) -> (Value, Value) {
        let names = ["int8", "scale"].map(|kind| format!("{part}.weight_{kind}"));
        if let [Some(weight), Some(scales)] = names.each_ref().map(|name| self.stored.get(name)) {
            return (weight.clone(), scales.clone());
        }
        let [of_weight, of_scales] = names;
        let (dims, values) = self.take(&format!("{part}.weight"));
        let [outputs, inputs] = matrix(&dims);
        let rows = Rows::of(&values, inputs, quantized::WEIGHT);
        let integers = transposed(&rows.integers, [outputs, inputs]);
        let weight = Tensor::int8s(&*of_weight, &[inputs, outputs], integers);
        let weight = self.stored(&of_weight, weight);
        let scales = Tensor::floats(&*of_scales, &[outputs], rows.scales);
        let scales = self.stored(&of_scales, scales);
        (weight, scales)
    }

    /// A dense layer with weights in 32 bits: the last of a model is small, and its outputs are what one sees.
    ///
    /// # Shapes
    /// […, I] → […, O]
    pub(super) fn head(&mut self, part: &str, x: &Value) -> Value {
        let name = format!("{part}.weight_transposed");
        let weight = match self.stored.get(&name) {
            Some(stored) => stored.clone(),
            None => {
                let (dims, values) = self.take(&format!("{part}.weight"));
                let [outputs, inputs] = matrix(&dims);
                let values = transposed(&values, [outputs, inputs]);
                self.stored(&name, Tensor::floats(&*name, &[inputs, outputs], values))
            }
        };
        let product = self.graph.node(part, "MatMul", &[x, &weight], &[]);
        self.with_bias(part, &product)
    }

    fn with_bias(&mut self, part: &str, product: &Value) -> Value {
        let bias = self.variable(&format!("{part}.bias"));
        self.graph.node(part, "Add", &[product, &bias], &[])
    }

    /// The product of floats, rounded here, and a matrix of integers, [I, O] with the scales `[O]`. Operators and order are those
    /// that onnxruntime computes as one, `DynamicQuantizeMatMul`.
    fn product_of_integers(
        &mut self,
        part: &str,
        x: &Value,
        weight: &Value,
        scales: &Value,
    ) -> Value {
        let [rounded, scale, zero] = match self.rounded.get(x) {
            Some(known) => known.clone(),
            None => {
                let made = self.graph.nodes(part, "DynamicQuantizeLinear", &[x], &[]);
                self.rounded.insert(x.clone(), made.clone());
                made
            }
        };
        let graph = &mut self.graph;
        let sums = graph.node(part, "MatMulInteger", &[&rounded, weight, &zero], &[]);
        let sums = graph.node(part, "Cast", &[&sums], &[TO_FLOAT]);
        let scale = graph.node(part, "Mul", &[&scale, scales], &[]);
        graph.node(part, "Mul", &[&sums, &scale], &[])
    }

    /// The table `part.weight`, [V, E], with vectors as they are stored in this file. One that `decodes` is the weight of a
    /// product, too ([`Self::against_table`]).
    pub(super) fn table(&mut self, part: &str, decodes: bool) -> Table {
        let name = format!("{part}.weight");
        if self.weights == Weights::Float32 {
            let entries = self.variable(&name);
            return Table {
                entries,
                scales: None,
            };
        }
        let (dims, values) = self.take(&name);
        let [entries, width] = matrix(&dims);
        let largest = match decodes {
            true => quantized::WEIGHT,
            false => quantized::TABLE,
        };
        let rows = Rows::of(&values, width, largest);
        let name = format!("{part}.weight_int8");
        let integers = self.graph.tensor(Tensor::int8s(name, &dims, rows.integers));
        let name = format!("{part}.weight_scale");
        let scales = Tensor::floats(name, &[entries, 1], rows.scales);
        Table {
            entries: integers,
            scales: Some(self.graph.tensor(scales)),
        }
    }

    /// The vectors of indices.
    ///
    /// # Shapes
    /// indices [B, S] → [B, S, E]
    pub(super) fn lookup(&mut self, part: &str, table: &Table, indices: &Value) -> Value {
        let graph = &mut self.graph;
        let found = graph.node(part, "Gather", &[&table.entries, indices], &[]);
        let Some(scales) = &table.scales else {
            return found;
        };
        let found = graph.node(part, "Cast", &[&found], &[TO_FLOAT]);
        let scales = graph.node(part, "Gather", &[scales, indices], &[]);
        graph.node(part, "Mul", &[&found, &scales], &[])
    }

    /// How well vectors go with each entry of a table, and a bias of the name `bias`: a dense layer whose weight is the table,
    /// which is stored once.
    ///
    /// # Shapes
    /// […, E] → […, V]
    pub(super) fn against_table(
        &mut self,
        part: &str,
        x: &Value,
        table: &Table,
        bias: &str,
    ) -> Value {
        let swapped = [("perm", Attribute::Ints(&[1, 0]))];
        let weight = self
            .graph
            .node(part, "Transpose", &[&table.entries], &swapped);
        let product = match &table.scales {
            None => self.graph.node(part, "MatMul", &[x, &weight], &[]),
            Some(scales) => {
                let all = self.integers(&[-1]);
                let scales = self.graph.node(part, "Reshape", &[scales, &all], &[]);
                self.product_of_integers(part, x, &weight, &scales)
            }
        };
        let bias = self.variable(bias);
        self.graph.node(part, "Add", &[&product, &bias], &[])
    }

    /// LayerNorm over the last dimension with the variables `part.weight` and `part.bias`.
    pub(super) fn layer_norm(&mut self, part: &str, x: &Value, eps: f64) -> Value {
        let scale = self.variable(&format!("{part}.weight"));
        let bias = self.variable(&format!("{part}.bias"));
        let attributes = [
            ("axis", Attribute::Int(-1)),
            ("epsilon", Attribute::Float(eps as f32)),
        ];
        (self.graph).node(part, "LayerNormalization", &[x, &scale, &bias], &attributes)
    }

    /// The exact GELU, `x · ½ · (1 + erf(x / √2))`: an operator `Gelu` came with operator set 20 only.
    pub(super) fn gelu(&mut self, part: &str, x: &Value) -> Value {
        let (root, one, half) = (self.float(SQRT_2), self.float(1.0), self.float(0.5));
        let graph = &mut self.graph;
        let scaled = graph.node(part, "Div", &[x, &root], &[]);
        let erf = graph.node(part, "Erf", &[&scaled], &[]);
        let sum = graph.node(part, "Add", &[&erf, &one], &[]);
        let product = graph.node(part, "Mul", &[x, &sum], &[]);
        graph.node(part, "Mul", &[&product, &half], &[])
    }

    /// The approximation of GELU by tanh, `½·x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))`.
    pub(super) fn gelu_tanh(&mut self, part: &str, x: &Value) -> Value {
        let root = self.float(FRAC_2_SQRT_PI / SQRT_2);
        let (of_cube, one, half) = (self.float(0.044_715), self.float(1.0), self.float(0.5));
        let graph = &mut self.graph;
        let square = graph.node(part, "Mul", &[x, x], &[]);
        let cube = graph.node(part, "Mul", &[&square, x], &[]);
        let cube = graph.node(part, "Mul", &[&cube, &of_cube], &[]);
        let inner = graph.node(part, "Add", &[x, &cube], &[]);
        let inner = graph.node(part, "Mul", &[&inner, &root], &[]);
        let tanh = graph.node(part, "Tanh", &[&inner], &[]);
        let sum = graph.node(part, "Add", &[&tanh, &one], &[]);
        let product = graph.node(part, "Mul", &[x, &sum], &[]);
        graph.node(part, "Mul", &[&product, &half], &[])
    }

    /// An activation of a layer over the last dimension.
    pub(super) fn activation(&mut self, part: &str, x: Value, activation: Activation) -> Value {
        let last = [("axis", Attribute::Int(-1))];
        match activation {
            Activation::Linear => x,
            Activation::Relu => self.graph.node(part, "Relu", &[&x], &[]),
            Activation::Sigmoid => self.graph.node(part, "Sigmoid", &[&x], &[]),
            Activation::Softmax => self.graph.node(part, "Softmax", &[&x], &last),
            Activation::Tanh => self.graph.node(part, "Tanh", &[&x], &[]),
            Activation::Gelu => self.gelu(part, &x),
            Activation::Silu => {
                let gate = self.graph.node(part, "Sigmoid", &[&x], &[]);
                self.graph.node(part, "Mul", &[&x, &gate], &[])
            }
            Activation::Elu => self.graph.node(part, "Elu", &[&x], &[]),
            Activation::LeakyRelu => {
                let slope = [("alpha", Attribute::Float(Activation::LEAKY_SLOPE as f32))];
                self.graph.node(part, "LeakyRelu", &[&x], &slope)
            }
            Activation::Softplus => self.graph.node(part, "Softplus", &[&x], &[]),
        }
    }

    /// The dimensions of a value from `start` to, not including, `end`, as integers.
    pub(super) fn shape(&mut self, part: &str, x: &Value, [start, end]: [i64; 2]) -> Value {
        let range = [
            ("start", Attribute::Int(start)),
            ("end", Attribute::Int(end)),
        ];
        self.graph.node(part, "Shape", &[x], &range)
    }

    /// Integers as floats.
    pub(super) fn as_floats(&mut self, part: &str, x: &Value) -> Value {
        self.graph.node(part, "Cast", &[x], &[TO_FLOAT])
    }

    /// The graph.
    ///
    /// # Panics
    /// If a variable of the network is in no layer of it: the file would be another model.
    pub(super) fn finished(self) -> Graph {
        let mut left: Vec<_> = self.values.into_keys().collect();
        left.sort();
        assert!(left.is_empty(), "the translation has no use for {left:?}");
        self.graph
    }

    /// Leaves a variable out: nothing that the file computes depends on it.
    pub(super) fn leave_out(&mut self, name: &str) {
        self.values.remove(name);
    }
}

/// Both sides of a matrix.
fn matrix(dims: &[usize]) -> [usize; 2] {
    dims.try_into().expect("weights and tables are matrices")
}

/// What the values of token ids, masks and numbers of a text are.
pub(super) const IDS: ElementType = ElementType::Int64;
