//! [`Model`]: a graph as a file.

use std::io::{self, Write};

use crate::graph::Graph;
use crate::protobuf::Message;

/// The version of the operators: `LayerNormalization` came with 17.
pub const OPSET: i64 = 17;
/// The version of the format that came with this operator set: `IR_VERSION_2021_7_30` of `onnx.proto`.
const IR_VERSION: i64 = 8;
/// The bytes of the largest message that protobuf's libraries read. Source: <https://protobuf.dev/programming-guides/proto-limits/>.
pub const MAX_BYTES: u64 = (1 << 31) - 1;

/// A graph, and what the reader of its file is to know beside it.
#[derive(Clone, Debug)]
pub struct Model {
    /// The operators and the weights.
    pub graph: Graph,
    /// Texts by a name: labels, settings of a tokenizer.
    pub metadata: Vec<(String, String)>,
}

/// The messages of a model, as far as they do not hold values.
struct Parts {
    /// `ModelProto` without its graph.
    model: Message,
    /// `GraphProto` without its tensors.
    graph: Message,
    /// Of each tensor its key and length in the graph, and its beginning.
    tensors: Vec<(Message, Message)>,
    /// The bytes of the whole `GraphProto`.
    graph_bytes: u64,
}

impl Model {
    /// The bytes of the file. More than [`MAX_BYTES`] cannot be read.
    pub fn bytes(&self) -> u64 {
        let parts = self.parts();
        parts.opened().bytes().len() as u64 + parts.graph_bytes
    }

    /// Writes the file. The weights are not copied, but for a portion at a time.
    ///
    /// # Errors
    /// That of `out`.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        let parts = self.parts();
        out.write_all(parts.opened().bytes())?;
        out.write_all(parts.graph.bytes())?;
        for (tensor, (key, head)) in self.graph.tensors().iter().zip(&parts.tensors) {
            out.write_all(key.bytes())?;
            out.write_all(head.bytes())?;
            tensor.write_values(out)?;
        }
        Ok(())
    }

    fn parts(&self) -> Parts {
        let graph = self.graph.encoded();
        let mut graph_bytes = graph.bytes().len() as u64;
        let tensors = self.graph.tensors().iter().map(|tensor| {
            let head = tensor.head();
            let bytes = tensor.bytes(&head);
            let mut key = Message::default();
            // `GraphProto.initializer` = 5
            key.open(5, bytes);
            graph_bytes += key.bytes().len() as u64 + bytes;
            (key, head)
        });
        let tensors = tensors.collect();
        Parts {
            model: self.encoded(),
            graph,
            tensors,
            graph_bytes,
        }
    }

    /// `ModelProto` without its graph: `ir_version` = 1, `producer_name` = 2, `producer_version` = 3, `opset_import` = 8,
    /// `metadata_props` = 14; `OperatorSetIdProto`: `version` = 2; `StringStringEntryProto`: `key` = 1, `value` = 2.
    fn encoded(&self) -> Message {
        let mut operators = Message::default();
        operators.int(2, OPSET);
        let mut message = Message::default();
        message
            .int(1, IR_VERSION)
            .text(2, "stratoscope")
            .text(3, env!("CARGO_PKG_VERSION"))
            .message(8, &operators);
        for (key, value) in &self.metadata {
            let mut entry = Message::default();
            message.message(14, entry.text(1, key).text(2, value));
        }
        message
    }
}

impl Parts {
    /// The beginning of the file, up to the bytes of `ModelProto.graph` = 7.
    fn opened(&self) -> Message {
        let mut message = self.model.clone();
        message.open(7, self.graph_bytes);
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attribute, Dimension, ElementType, Tensor};

    /// A graph with an attribute of each kind, an operator with two outputs and tensors of each type.
    fn example() -> Model {
        let mut graph = Graph::new("g");
        let rows = Dimension::Named("batch_size");
        let x = graph.input("x", ElementType::Float, &[rows, Dimension::Size(4)]);
        let scale = graph.tensor(Tensor::floats("scale", &[2], vec![1.0, -0.5]));
        let split: [_; 2] = graph.nodes("s", "Split", &[&x], &[("axis", Attribute::Int(1))]);
        let normal = ("epsilon", Attribute::Float(1e-5));
        let first = graph.node("n", "LayerNormalization", &[&split[0], &scale], &[normal]);
        let axes = ("axes", Attribute::Ints(&[-1]));
        let mean = graph.node("m", "ReduceMean", &[&split[1]], &[axes]);
        let weight = graph.tensor(Tensor::int8s("w", &[1], vec![-2]));
        let weight = graph.node("c", "Cast", &[&weight], &[("to", Attribute::Int(1))]);
        let shape = graph.tensor(Tensor::integers("shape", &[2], vec![-1, 1]));
        let mean = graph.node("r", "Reshape", &[&mean, &shape], &[]);
        let scaled = graph.node("r", "Mul", &[&mean, &weight], &[]);
        graph.output(
            "first",
            &first,
            ElementType::Float,
            &[rows, Dimension::Size(2)],
        );
        graph.output(
            "mean",
            &scaled,
            ElementType::Float,
            &[rows, Dimension::Size(1)],
        );
        let metadata = vec![("labels".to_owned(), "[\"größe\"]".to_owned())];
        Model { graph, metadata }
    }

    fn field(bytes: &[u8], wanted: u64) -> Vec<&[u8]> {
        let mut at = 0;
        let number = |at: &mut usize| {
            let mut value = 0;
            for shift in (0..).step_by(7) {
                let byte = bytes[*at];
                *at += 1;
                value |= u64::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    break;
                }
            }
            value
        };
        let mut found = Vec::new();
        while at < bytes.len() {
            let key = number(&mut at);
            let begin = at;
            let (begin, end) = match key & 7 {
                0 => {
                    number(&mut at);
                    (begin, at)
                }
                2 => {
                    let length = number(&mut at) as usize;
                    (at, at + length)
                }
                5 => (at, at + 4),
                kind => panic!("no wire type {kind}"),
            };
            at = end;
            if key >> 3 == wanted {
                found.push(&bytes[begin..end]);
            }
        }
        found
    }

    /// `tests/test_onnx.py` reads real files with ONNX's own library; here the lengths that hold one another.
    #[test]
    fn a_file_is_a_message_of_the_computed_length() {
        let model = example();
        let mut file = Vec::new();
        model.write_to(&mut file).expect("memory");
        assert_eq!(file.len() as u64, model.bytes());
        let [graph] = field(&file, 7)[..] else {
            panic!("one graph");
        };
        assert_eq!(field(&file, 1), [&[8]]);
        let [operators] = field(&file, 8)[..] else {
            panic!("one operator set");
        };
        assert_eq!(operators, [0x10, 17]);
        let nodes = field(graph, 1);
        let kinds: Vec<_> = nodes.iter().flat_map(|node| field(node, 4)).collect();
        let expected: [&[u8]; 6] = [
            b"Split",
            b"LayerNormalization",
            b"ReduceMean",
            b"Cast",
            b"Reshape",
            b"Mul",
        ];
        assert_eq!(kinds, expected);
        assert_eq!(field(nodes[0], 2), [&b"s/Split"[..], b"s/Split:1"]);
        let tensors = field(graph, 5);
        let values: Vec<_> = tensors.iter().flat_map(|tensor| field(tensor, 9)).collect();
        let scale = [1.0_f32.to_le_bytes(), (-0.5_f32).to_le_bytes()].concat();
        let shape = [(-1_i64).to_le_bytes(), 1_i64.to_le_bytes()].concat();
        assert_eq!(values, [&scale[..], &[0xfe], &shape]);
        let entry = field(&file, 14)[0];
        assert_eq!(field(entry, 2), ["[\"größe\"]".as_bytes()]);
    }
}
