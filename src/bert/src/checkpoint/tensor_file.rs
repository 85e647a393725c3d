//! A safetensors file. Everything is validated first: the header's length against the file's,
//! each tensor's offsets against the data, each shape against its bytes.
//! Format: huggingface/safetensors, `README.md`, section "Format".

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use burn::tensor::{DType, TensorData};
use safetensors::{Dtype, SafeTensors};
use stratoscope_diagnostics::Result;

use crate::problem;

/// More than any BERT, which has a few gigabytes at most.
const LARGEST_FILE: u64 = 64 << 30;

/// The tensors of one file.
#[derive(Debug)]
pub struct TensorFile {
    path: PathBuf,
    bytes: Vec<u8>,
    tensors: BTreeMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    dtype: Dtype,
    shape: Vec<usize>,
    data: Range<usize>,
}

impl TensorFile {
    /// Opens `model.safetensors` in a folder.
    ///
    /// # Errors
    /// SC0902 if it is absent or damaged.
    pub fn open_in(folder: &Path) -> Result<Self> {
        let path = folder.join("model.safetensors");
        if !path.exists() {
            let has = |name: &str| folder.join(name).exists();
            let fix = if has("model.safetensors.index.json") {
                "the checkpoint is divided into several files, which is not supported: save it with `max_shard_size=\"20GB\"`"
            } else if has("pytorch_model.bin") {
                "the folder has `pytorch_model.bin`, a Python pickle, which can run code: convert it with `model.save_pretrained(folder, safe_serialization=True)`"
            } else {
                "give the folder of a complete checkpoint"
            };
            return Err(problem::absent(&path, fix));
        }
        Self::open(&path)
    }

    /// Opens a file.
    ///
    /// # Errors
    /// SC0902 if it cannot be read or is damaged.
    pub fn open(path: &Path) -> Result<Self> {
        let bytes = super::read_bytes(path, LARGEST_FILE)?;
        let parsed = SafeTensors::deserialize(&bytes)
            .map_err(|error| problem::malformed(path, reason(&bytes, &error.to_string())))?;
        let start = bytes.as_ptr() as usize;
        let tensors = parsed.iter().map(|(name, view)| {
            let data = view.data();
            let offset = data.as_ptr() as usize - start;
            let data = offset..offset + data.len();
            let entry = Entry {
                dtype: view.dtype(),
                shape: view.shape().to_vec(),
                data,
            };
            (name.to_owned(), entry)
        });
        let tensors = tensors.collect();
        Ok(Self {
            path: path.to_owned(),
            bytes,
            tensors,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of its tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The shape of a tensor, if there is such a tensor.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        Some(&self.tensors.get(name)?.shape)
    }

    /// The numbers of a tensor as float32, row-major; `None` if there is no such tensor.
    ///
    /// # Errors
    /// SC0902 if they are not floats or not finite.
    pub fn values(&self, name: &str) -> Result<Option<Vec<f32>>> {
        let Some(entry) = self.tensors.get(name) else {
            return Ok(None);
        };
        let refuse = || problem::wrong_dtype(&self.path, name, &format!("{:?}", entry.dtype));
        let dtype = match entry.dtype {
            Dtype::F32 => DType::F32,
            Dtype::F16 => DType::F16,
            Dtype::BF16 => DType::BF16,
            Dtype::F64 => DType::F64,
            _ => return Err(refuse()),
        };
        let bytes = self.bytes[entry.data.clone()].to_vec();
        let values =
            TensorData::try_from_bytes_vec(bytes, [entry.shape.iter().product::<usize>()], dtype)
                .and_then(|data| data.convert::<f32>().try_into_vec::<f32>())
                .map_err(|_| refuse())?;
        let not_finite = values.iter().filter(|value| !value.is_finite()).count();
        if not_finite > 0 {
            return Err(problem::not_finite(&self.path, name, not_finite));
        }
        Ok(Some(values))
    }
}

/// What is wrong with a damaged file, with sizes if the header's length is known.
fn reason(bytes: &[u8], error: &str) -> String {
    let Some(length) = bytes
        .first_chunk::<8>()
        .map(|length| u64::from_le_bytes(*length))
    else {
        return format!(
            "it has {} bytes, a safetensors file has at least 8",
            bytes.len()
        );
    };
    let room = bytes.len() as u64 - 8;
    match length > room {
        true => format!("its header should have {length} bytes, {room} are there"),
        false => error.to_owned(),
    }
}
