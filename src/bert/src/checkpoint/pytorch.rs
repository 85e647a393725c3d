//! The tensors of a `pytorch_model.bin`: a pickle, which Python would run. Here it is only parsed, by `pytorch-reader`, and
//! what it would make beside tensors is refused.

use std::path::Path;

use pytorch_reader::{DType, PickleValue, PytorchReader, Tensor};
use safetensors::Dtype;
use stratoscope_diagnostics::Result;

use super::files;
use crate::problem;

/// Tensors may share their numbers, as a decoder and the embeddings that it is tied to; so a file of n bytes has tensors of
/// more. More than this many times as much is made to fill the memory.
const MOST_SHARED: u64 = 4;
/// More values than any BERT has tensors.
const MOST_TENSORS: usize = 100_000;

/// A tensor that was read.
pub(super) struct Read {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    /// Row-major, of the machine's byte order.
    pub bytes: Vec<u8>,
}

/// All tensors of a file, sorted by their names.
///
/// # Errors
/// SC0902 if it is absent or damaged, holds anything but tensors, or needs more than `most` bytes.
pub(super) fn read(path: &Path, most: u64) -> Result<Vec<Read>> {
    let refuse = |reason: String| problem::malformed(path, reason);
    let size = files::checked(path)?;
    let reader = PytorchReader::new(path).map_err(|error| refuse(error.to_string()))?;
    let values = PytorchReader::read_pickle_data(path, None);
    let values = values.map_err(|error| refuse(error.to_string()))?;
    if let Some(object) = object(&values, "", &reader) {
        let reason =
            format!("{object}: only tensors are read, and nothing that a file asks for is run");
        return Err(refuse(reason));
    }
    let mut tensors: Vec<Tensor> = reader.into_tensors().into_values().collect();
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    let needed = (tensors.iter()).try_fold(0_u64, |sum, it| sum.checked_add(it.byte_len() as u64));
    let limit = most.min(size.saturating_mul(MOST_SHARED));
    if tensors.len() > MOST_TENSORS || needed.is_none_or(|needed| needed > limit) {
        let reason = format!(
            "its {} tensors need {} bytes, {limit} at most are expected of a file of {size} bytes",
            tensors.len(),
            needed.map_or_else(|| "too many".to_owned(), |needed| needed.to_string())
        );
        return Err(refuse(reason));
    }
    let read = |tensor: Tensor| {
        Ok(Read {
            dtype: dtype(tensor.dtype()),
            shape: tensor.shape().to_vec(),
            bytes: tensor.read().map_err(|error| refuse(error.to_string()))?,
            name: tensor.name,
        })
    };
    tensors.into_iter().map(read).collect()
}

/// Something in the pickle that is neither a tensor nor a plain value, in words.
fn object(value: &PickleValue, name: &str, reader: &PytorchReader) -> Option<String> {
    match value {
        PickleValue::Unsupported(_) if reader.get(name).is_some() => None,
        PickleValue::Unsupported(kind) if name.is_empty() => Some(format!("it is a `{kind}`")),
        PickleValue::Unsupported(kind) => Some(format!("`{name}` is a `{kind}`")),
        PickleValue::Dict(entries) => {
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_by(|a, b| a.0.cmp(b.0));
            let mut objects = entries.into_iter().map(|(key, value)| {
                let name = match name {
                    "" => key.clone(),
                    name => format!("{name}.{key}"),
                };
                object(value, &name, reader)
            });
            objects.find_map(|found| found)
        }
        PickleValue::List(values) => {
            let mut objects = values
                .iter()
                .enumerate()
                .map(|(index, value)| object(value, &format!("{name}.{index}"), reader));
            objects.find_map(|found| found)
        }
        _ => None,
    }
}

fn dtype(dtype: DType) -> Dtype {
    match dtype {
        DType::F64 => Dtype::F64,
        DType::F32 => Dtype::F32,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::I64 => Dtype::I64,
        DType::I32 => Dtype::I32,
        DType::I16 => Dtype::I16,
        DType::I8 => Dtype::I8,
        DType::U64 => Dtype::U64,
        DType::U32 => Dtype::U32,
        DType::U16 => Dtype::U16,
        DType::U8 => Dtype::U8,
        DType::Bool => Dtype::BOOL,
    }
}
