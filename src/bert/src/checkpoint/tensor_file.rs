//! The tensors of a model: one safetensors file, or several with an index; else the same of PyTorch's own format. Everything
//! is validated first: the header's length against the file's, each tensor's offsets against the data, each shape against
//! its bytes, each name of the index against the file it stands in.
//! Formats: huggingface/safetensors, `README.md`, section "Format"; `model.safetensors.index.json` as transformers'
//! `save_pretrained(max_shard_size=…)` writes it; PyTorch's in `pytorch.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use burn::tensor::{DType, TensorData};
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use stratoscope_diagnostics::Result;

use super::files::{is_there, read_bytes, read_text};
use super::pytorch;
use crate::problem;

/// More than any BERT, which has a few gigabytes at most.
const LARGEST_FILE: u64 = 64 << 30;
const LARGEST_INDEX: u64 = 64 << 20;
/// A model is divided into a few files.
const MOST_FILES: usize = 1024;
/// The names of the weights, the first that is there is read: one file, and the index of several.
pub(crate) const WEIGHTS: [(&str, &str); 2] = [
    ("model.safetensors", "model.safetensors.index.json"),
    ("pytorch_model.bin", "pytorch_model.bin.index.json"),
];

/// The tensors of a model.
#[derive(Debug)]
pub struct TensorFile {
    path: PathBuf,
    files: Vec<Vec<u8>>,
    tensors: BTreeMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    /// Which of the files it is in.
    file: usize,
    dtype: Dtype,
    shape: Vec<usize>,
    data: Range<usize>,
}

/// `model.safetensors.index.json`, or `pytorch_model.bin.index.json`.
#[derive(Deserialize)]
struct Index {
    /// The name of the file of each tensor.
    weight_map: BTreeMap<String, String>,
}

impl TensorFile {
    /// Opens `model.safetensors` in a folder, or the files that its index names; where neither is there,
    /// `pytorch_model.bin` likewise.
    ///
    /// # Errors
    /// SC0902 if it is absent or damaged.
    pub fn open_in(folder: &Path) -> Result<Self> {
        for (whole, index) in WEIGHTS {
            let (whole, index) = (folder.join(whole), folder.join(index));
            if is_there(&whole) {
                return Self::open(&whole);
            }
            if is_there(&index) {
                return Self::open_indexed(&index, folder);
            }
        }
        let path = folder.join(WEIGHTS[0].0);
        Err(problem::absent(
            &path,
            "give the folder of a complete checkpoint",
        ))
    }

    /// Opens a file.
    ///
    /// # Errors
    /// SC0902 if it cannot be read or is damaged.
    pub fn open(path: &Path) -> Result<Self> {
        let mut file = Self {
            path: path.to_owned(),
            files: Vec::new(),
            tensors: BTreeMap::new(),
        };
        file.add(path)?;
        Ok(file)
    }

    fn open_indexed(path: &Path, folder: &Path) -> Result<Self> {
        let weight_map = weight_map(path)?;
        let mut whole = Self {
            path: path.to_owned(),
            files: Vec::new(),
            tensors: BTreeMap::new(),
        };
        let names: BTreeSet<&String> = weight_map.values().collect();
        let names: Vec<&String> = names.into_iter().collect();
        for &name in &names {
            whole.add(&folder.join(name))?;
        }
        let is_elsewhere = |tensor: &String, name: &String| {
            let entry = whole.tensors.get(tensor);
            entry.and_then(|entry| names.get(entry.file)) != Some(&name)
        };
        match weight_map
            .iter()
            .find(|(tensor, name)| is_elsewhere(tensor, name))
        {
            Some((tensor, name)) => Err(problem::malformed(
                path,
                format!("`{tensor}` is not in `{name}`"),
            )),
            None => Ok(whole),
        }
    }

    /// Adds the tensors of a file.
    fn add(&mut self, path: &Path) -> Result<()> {
        let held: u64 = self.files.iter().map(|it| it.len() as u64).sum();
        let most = LARGEST_FILE.saturating_sub(held);
        match path.extension().is_some_and(|it| it == "bin") {
            true => self.add_pytorch(path, most),
            false => self.add_safetensors(path, most),
        }
    }

    fn add_pytorch(&mut self, path: &Path, most: u64) -> Result<()> {
        let mut bytes = Vec::new();
        for tensor in pytorch::read(path, most)? {
            let start = bytes.len();
            bytes.extend_from_slice(&tensor.bytes);
            let entry = Entry {
                file: self.files.len(),
                dtype: tensor.dtype,
                shape: tensor.shape,
                data: start..bytes.len(),
            };
            self.insert(path, tensor.name, entry)?;
        }
        self.files.push(bytes);
        Ok(())
    }

    fn add_safetensors(&mut self, path: &Path, most: u64) -> Result<()> {
        let bytes = read_bytes(path, most)?;
        let parsed = SafeTensors::deserialize(&bytes)
            .map_err(|error| problem::malformed(path, reason(&bytes, &error.to_string())))?;
        let start = bytes.as_ptr() as usize;
        for (name, view) in parsed.iter() {
            let data = view.data();
            let offset = data.as_ptr() as usize - start;
            let entry = Entry {
                file: self.files.len(),
                dtype: view.dtype(),
                shape: view.shape().to_vec(),
                data: offset..offset + data.len(),
            };
            self.insert(path, name.to_owned(), entry)?;
        }
        self.files.push(bytes);
        Ok(())
    }

    fn insert(&mut self, path: &Path, name: String, entry: Entry) -> Result<()> {
        if self.tensors.contains_key(&name) {
            let reason = format!("`{name}` is in another file, too");
            return Err(problem::malformed(path, reason));
        }
        self.tensors.insert(name, entry);
        Ok(())
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
        let bytes = self.files[entry.file][entry.data.clone()].to_vec();
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

/// Of each tensor the name of its file, as an index gives it. A file is in the folder of the index: one that was
/// downloaded must not name others.
///
/// # Errors
/// SC0902 if it cannot be read or is no index.
pub(crate) fn weight_map(path: &Path) -> Result<BTreeMap<String, String>> {
    let text = read_text(path, LARGEST_INDEX)?;
    let malformed = |reason: String| problem::malformed(path, reason);
    let Index { weight_map } = serde_json::from_str(&text)
        .map_err(|error| malformed(format!("it is no index of tensors: {error}")))?;
    let names: BTreeSet<&String> = weight_map.values().collect();
    if names.is_empty() || names.len() > MOST_FILES {
        let reason = format!(
            "it names {} files, 1 to {MOST_FILES} are expected",
            names.len()
        );
        return Err(malformed(reason));
    }
    let bad = names
        .into_iter()
        .find(|name| Path::new(name).file_name() != Some(name.as_ref()));
    match bad {
        Some(name) => Err(malformed(format!("`{name}` is no name of a file"))),
        None => Ok(weight_map),
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
