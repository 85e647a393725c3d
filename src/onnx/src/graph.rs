//! [`Graph`]: operators and how values pass between them.

use std::collections::HashMap;

use crate::protobuf::Message;
use crate::tensor::{ElementType, Tensor};

/// A value of a graph, by its name: an input, a constant or what an operator computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Value(String);

/// A dimension of an input or an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Known when the file is written.
    Size(usize),
    /// Known when the graph is run. Dimensions of one name have one size.
    Named(&'static str),
}

/// A setting of an operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Attribute<'a> {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f32),
    /// Integers.
    Ints(&'a [i64]),
}

/// An operator with the names of its values, as a `NodeProto`.
#[derive(Clone, Debug)]
struct Node {
    name: String,
    operator: &'static str,
    inputs: Vec<String>,
    outputs: Vec<String>,
    attributes: Message,
}

/// An input or an output, as a `ValueInfoProto`.
#[derive(Clone, Debug)]
struct Info {
    name: String,
    element: ElementType,
    dims: Vec<Dimension>,
}

/// Operators in the order in which they are computed, with the constants that they use.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    name: String,
    nodes: Vec<Node>,
    tensors: Vec<Tensor>,
    inputs: Vec<Info>,
    outputs: Vec<Info>,
    /// How often each name was asked for.
    names: HashMap<String, usize>,
}

impl Graph {
    /// A graph without operators.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// A value that whoever runs the graph gives.
    pub fn input(&mut self, name: &str, element: ElementType, dims: &[Dimension]) -> Value {
        let name = self.unique(name.to_owned());
        self.inputs.push(Info {
            name: name.clone(),
            element,
            dims: dims.to_vec(),
        });
        Value(name)
    }

    /// A few constant numbers, such as axes. Where the graph has them already, under whatever name, they are not stored twice.
    pub fn constant(&mut self, tensor: Tensor) -> Value {
        match self.tensors.iter().find(|it| it.has_values_of(&tensor)) {
            Some(stored) => Value(stored.name.clone()),
            None => self.tensor(tensor),
        }
    }

    /// A weight.
    pub fn tensor(&mut self, mut tensor: Tensor) -> Value {
        tensor.name = self.unique(tensor.name);
        let value = Value(tensor.name.clone());
        self.tensors.push(tensor);
        value
    }

    /// An operator with one output. `part` is the part of the model that it belongs to, and its name begins with it.
    pub fn node(
        &mut self,
        part: &str,
        operator: &'static str,
        inputs: &[&Value],
        attributes: &[(&str, Attribute<'_>)],
    ) -> Value {
        let [value] = self.nodes(part, operator, inputs, attributes);
        value
    }

    /// An operator with several outputs.
    pub fn nodes<const N: usize>(
        &mut self,
        part: &str,
        operator: &'static str,
        inputs: &[&Value],
        attributes: &[(&str, Attribute<'_>)],
    ) -> [Value; N] {
        let name = self.unique(format!("{part}/{operator}"));
        let outputs = std::array::from_fn(|index| match index {
            0 => Value(name.clone()),
            _ => Value(format!("{name}:{index}")),
        });
        let mut encoded = Message::default();
        for (name, attribute) in attributes {
            // `NodeProto.attribute` = 5
            encoded.message(5, &attribute.encoded(name));
        }
        self.nodes.push(Node {
            name,
            operator,
            inputs: inputs.iter().map(|value| value.0.clone()).collect(),
            outputs: outputs.iter().map(|value| value.0.clone()).collect(),
            attributes: encoded,
        });
        outputs
    }

    /// A value is an output of the graph, and has this name from now on.
    ///
    /// # Panics
    /// If no operator computes the value: an input or a constant is no output here.
    pub fn output(
        &mut self,
        name: &str,
        value: &Value,
        element: ElementType,
        dims: &[Dimension],
    ) -> Value {
        let name = self.unique(name.to_owned());
        let computed = self
            .nodes
            .iter()
            .any(|node| node.outputs.contains(&value.0));
        assert!(computed, "no operator computes `{}`", value.0);
        let names = self
            .nodes
            .iter_mut()
            .flat_map(|node| node.inputs.iter_mut().chain(&mut node.outputs));
        for other in names.filter(|other| **other == value.0) {
            other.clone_from(&name);
        }
        self.outputs.push(Info {
            name: name.clone(),
            element,
            dims: dims.to_vec(),
        });
        Value(name)
    }

    /// The names of the inputs, in their order.
    pub fn input_names(&self) -> Vec<&str> {
        self.inputs.iter().map(|it| it.name.as_str()).collect()
    }

    /// The names of the outputs, in their order.
    pub fn output_names(&self) -> Vec<&str> {
        self.outputs.iter().map(|it| it.name.as_str()).collect()
    }

    /// The number of operators.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether it has no operator.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(crate) fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// `GraphProto` without its tensors: `node` = 1, `name` = 2, `input` = 11, `output` = 12.
    pub(crate) fn encoded(&self) -> Message {
        let mut message = Message::default();
        for node in &self.nodes {
            message.message(1, &node.encoded());
        }
        message.text(2, &self.name);
        for input in &self.inputs {
            message.message(11, &input.encoded());
        }
        for output in &self.outputs {
            message.message(12, &output.encoded());
        }
        message
    }

    /// The name, with a number where it is taken.
    fn unique(&mut self, name: String) -> String {
        let count = self.names.entry(name.clone()).or_default();
        *count += 1;
        match *count {
            1 => name,
            number => self.unique(format!("{name}_{}", number - 1)),
        }
    }
}

impl Attribute<'_> {
    /// `AttributeProto`: `name` = 1, `f` = 2, `i` = 3, `ints` = 8, `type` = 20 (FLOAT = 1, INT = 2, INTS = 7).
    fn encoded(&self, name: &str) -> Message {
        let mut message = Message::default();
        message.text(1, name);
        match *self {
            Self::Float(value) => message.float(2, value).int(20, 1),
            Self::Int(value) => message.int(3, value).int(20, 2),
            Self::Ints(values) => {
                for &value in values {
                    message.int(8, value);
                }
                message.int(20, 7)
            }
        };
        message
    }
}

impl Node {
    /// `NodeProto`: `input` = 1, `output` = 2, `name` = 3, `op_type` = 4, `attribute` = 5.
    fn encoded(&self) -> Message {
        let mut message = self.attributes.clone();
        for input in &self.inputs {
            message.text(1, input);
        }
        for output in &self.outputs {
            message.text(2, output);
        }
        message.text(3, &self.name).text(4, self.operator);
        message
    }
}

impl Info {
    /// `ValueInfoProto`: `name` = 1, `type` = 2; `TypeProto`: `tensor_type` = 1; `TypeProto.Tensor`: `elem_type` = 1,
    /// `shape` = 2; `TensorShapeProto`: `dim` = 1; `Dimension`: `dim_value` = 1, `dim_param` = 2.
    fn encoded(&self) -> Message {
        let mut shape = Message::default();
        for dimension in &self.dims {
            let mut one = Message::default();
            match *dimension {
                Dimension::Size(size) => one.int(1, size as i64),
                Dimension::Named(name) => one.text(2, name),
            };
            shape.message(1, &one);
        }
        let mut tensor = Message::default();
        tensor.int(1, self.element.number()).message(2, &shape);
        let mut kind = Message::default();
        kind.message(1, &tensor);
        let mut info = Message::default();
        info.text(1, &self.name).message(2, &kind);
        info
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_outputs_are_renamed_everywhere() {
        let mut graph = Graph::new("g");
        let x = graph.input("x", ElementType::Float, &[]);
        let first = graph.node("a", "Relu", &[&x], &[]);
        let second = graph.node("a", "Relu", &[&first], &[]);
        assert_eq!(
            (first.0.as_str(), second.0.as_str()),
            ("a/Relu", "a/Relu_1")
        );
        graph.output("inner", &first, ElementType::Float, &[]);
        graph.output("y", &second, ElementType::Float, &[]);
        let [before, after] = &graph.nodes[..] else {
            panic!("two operators");
        };
        assert_eq!(
            (&before.outputs[0], &after.inputs[0]),
            (&"inner".to_owned(), &"inner".to_owned())
        );
        assert_eq!(after.outputs, ["y"]);
        assert_eq!(
            (graph.input_names(), graph.output_names()),
            (vec!["x"], vec!["inner", "y"])
        );
        assert_eq!((graph.len(), graph.is_empty()), (2, false));
    }

    #[test]
    fn equal_constants_are_stored_once() {
        let mut graph = Graph::new("g");
        let mut one = |name, value| graph.constant(Tensor::integers(name, &[1], vec![value])).0;
        let names = [
            one("axes", 1),
            one("axes", 2),
            one("other", 1),
            one("axes", 2),
        ];
        assert_eq!(names, ["axes", "axes_1", "axes", "axes_1"]);
        let scalar = graph.constant(Tensor::integers("axes", &[], vec![1])).0;
        assert_eq!((scalar.as_str(), graph.tensors().len()), ("axes_2", 3));
    }

    #[test]
    #[should_panic(expected = "no operator computes `x`")]
    fn an_input_is_no_output() {
        let mut graph = Graph::new("g");
        let x = graph.input("x", ElementType::Float, &[]);
        graph.output("y", &x, ElementType::Float, &[]);
    }
}
