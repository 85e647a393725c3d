//! [`Tensor`]: constant values of a graph.

use std::io::{self, Write};

use crate::protobuf::Message;

/// The type of a value's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// 32 bits, IEEE 754.
    Float,
    /// 0 to 255.
    Uint8,
    /// −128 to 127.
    Int8,
    /// 32 bits with a sign.
    Int32,
    /// 64 bits with a sign.
    Int64,
}

impl ElementType {
    /// Its number in `TensorProto.DataType`.
    pub(crate) fn number(self) -> i64 {
        match self {
            Self::Float => 1,
            Self::Uint8 => 2,
            Self::Int8 => 3,
            Self::Int32 => 6,
            Self::Int64 => 7,
        }
    }
}

/// Values in row-major order.
#[derive(Clone, Debug, PartialEq)]
enum Values {
    Float(Vec<f32>),
    Int8(Vec<i8>),
    Int64(Vec<i64>),
}

/// Values with a name and a shape: a weight, or a constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub(crate) name: String,
    dims: Vec<usize>,
    values: Values,
}

impl Tensor {
    /// Floats of a shape; no dimension is one number.
    ///
    /// # Panics
    /// If there are more or fewer values than the shape has.
    pub fn floats(name: impl Into<String>, dims: &[usize], values: Vec<f32>) -> Self {
        Self::of(name.into(), dims, values.len(), Values::Float(values))
    }

    /// Integers of 8 bits.
    ///
    /// # Panics
    /// As [`Self::floats`].
    pub fn int8s(name: impl Into<String>, dims: &[usize], values: Vec<i8>) -> Self {
        Self::of(name.into(), dims, values.len(), Values::Int8(values))
    }

    /// Integers of 64 bits, such as shapes and axes.
    ///
    /// # Panics
    /// As [`Self::floats`].
    pub fn integers(name: impl Into<String>, dims: &[usize], values: Vec<i64>) -> Self {
        Self::of(name.into(), dims, values.len(), Values::Int64(values))
    }

    fn of(name: String, dims: &[usize], count: usize, values: Values) -> Self {
        let expected: usize = dims.iter().product();
        assert_eq!(count, expected, "`{name}` has the shape {dims:?}");
        let dims = dims.to_vec();
        Self { name, dims, values }
    }

    /// The type of its elements.
    pub fn element_type(&self) -> ElementType {
        match &self.values {
            Values::Float(_) => ElementType::Float,
            Values::Int8(_) => ElementType::Int8,
            Values::Int64(_) => ElementType::Int64,
        }
    }

    /// Whether another tensor has the same values of the same shape and type.
    pub(crate) fn has_values_of(&self, other: &Self) -> bool {
        self.dims == other.dims && self.values == other.values
    }

    /// The bytes of its values.
    fn value_bytes(&self) -> u64 {
        let bytes = match &self.values {
            Values::Float(values) => size_of_val(values.as_slice()),
            Values::Int8(values) => size_of_val(values.as_slice()),
            Values::Int64(values) => size_of_val(values.as_slice()),
        };
        bytes as u64
    }

    /// `TensorProto` up to the values: `dims` = 1, `data_type` = 2, `name` = 8, `raw_data` = 9, whose bytes follow.
    pub(crate) fn head(&self) -> Message {
        let mut message = Message::default();
        for &size in &self.dims {
            message.int(1, size as i64);
        }
        message.int(2, self.element_type().number());
        message.text(8, &self.name);
        message.open(9, self.value_bytes());
        message
    }

    /// The bytes of the whole `TensorProto`, whose beginning is `head`.
    pub(crate) fn bytes(&self, head: &Message) -> u64 {
        head.bytes().len() as u64 + self.value_bytes()
    }

    /// The values as `raw_data` has them: little-endian, without gaps.
    pub(crate) fn write_values(&self, out: &mut impl Write) -> io::Result<()> {
        match &self.values {
            Values::Float(values) => in_portions(out, values, |it| it.to_le_bytes()),
            Values::Int8(values) => in_portions(out, values, |it| it.to_le_bytes()),
            Values::Int64(values) => in_portions(out, values, |it| it.to_le_bytes()),
        }
    }
}

/// Writes values a portion at a time: a copy of a whole table of embeddings as bytes would double its memory.
fn in_portions<T: Copy, const N: usize>(
    out: &mut impl Write,
    values: &[T],
    to_bytes: impl Fn(T) -> [u8; N],
) -> io::Result<()> {
    const PORTION: usize = 1 << 16;
    let mut bytes = Vec::with_capacity(PORTION.min(values.len()) * N);
    for portion in values.chunks(PORTION) {
        bytes.clear();
        bytes.extend(portion.iter().flat_map(|&value| to_bytes(value)));
        out.write_all(&bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_little_endian() {
        let mut out = Vec::new();
        let tensor = Tensor::integers("shape", &[2], vec![1, -1]);
        tensor.write_values(&mut out).expect("memory");
        assert_eq!(
            out,
            [[1, 0, 0, 0, 0, 0, 0, 0], [0xff; 8]].concat(),
            "64 bits each"
        );
        assert_eq!(
            tensor.head().bytes(),
            [&[0x08, 2, 0x10, 7, 0x42, 5][..], b"shape", &[0x4a, 16],].concat()
        );
        // More than a portion.
        let many = Tensor::int8s("many", &[70_000], vec![-3; 70_000]);
        let mut out = Vec::new();
        many.write_values(&mut out).expect("memory");
        assert_eq!(out, vec![253; 70_000]);
    }

    #[test]
    #[should_panic(expected = "has the shape [2, 2]")]
    fn a_shape_that_does_not_fit_is_refused() {
        Tensor::floats("weight", &[2, 2], vec![1.0; 3]);
    }
}
