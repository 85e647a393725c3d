//! The reference values in `tests/parity` at the root of the repository, and comparisons with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::tensor::{Device, TensorData};
use safetensors::{Dtype, SafeTensors};
use stratoscope_bert::BatchTensors;

/// The folder of the reference values, or a folder in it; `STRATOSCOPE_PARITY` names it where the program was copied to another
/// machine (`tests/gpu.sh`).
pub fn parity(path: &str) -> PathBuf {
    let folder = match std::env::var_os("STRATOSCOPE_PARITY") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity"),
    };
    folder.join(path)
}

/// Every tensor of a file as float64, with its shape.
pub struct Case(BTreeMap<String, (Vec<usize>, Vec<f64>)>);

impl Case {
    pub fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).expect("the reference values are in the repository");
        let file = SafeTensors::deserialize(&bytes).expect("they are complete");
        let tensors = file.iter().map(|(name, view)| {
            let data = view.data();
            let values = match view.dtype() {
                Dtype::F32 => numbers(data, |bytes| f64::from(f32::from_le_bytes(bytes))),
                Dtype::F64 => numbers(data, f64::from_le_bytes),
                Dtype::I64 => numbers(data, |bytes| i64::from_le_bytes(bytes) as f64),
                other => panic!("{name} is {other:?}"),
            };
            (name.to_owned(), (view.shape().to_vec(), values))
        });
        Self(tensors.collect())
    }

    pub fn values(&self, name: &str) -> &[f64] {
        &self
            .0
            .get(name)
            .unwrap_or_else(|| panic!("no `{name}` in the case"))
            .1
    }

    pub fn shape(&self, name: &str) -> &[usize] {
        &self
            .0
            .get(name)
            .unwrap_or_else(|| panic!("no `{name}` in the case"))
            .0
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The inputs as a batch.
    pub fn batch(&self, device: &Device) -> BatchTensors {
        let shape = self.shape("input.input_ids");
        let shape = [shape[0], shape[1]];
        let integers = |name: &str| self.values(name).iter().map(|&v| v as i64).collect();
        let mask = self
            .values("input.attention_mask")
            .iter()
            .map(|&v| v as f32)
            .collect();
        BatchTensors::from_values(
            integers("input.input_ids"),
            mask,
            integers("input.token_type_ids"),
            shape,
            device,
        )
    }
}

fn numbers<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    let (chunks, rest) = bytes.as_chunks::<N>();
    assert!(rest.is_empty());
    chunks.iter().map(|&chunk| number(chunk)).collect()
}

/// The numbers of a tensor that was read back.
pub fn as_f64(data: TensorData) -> Vec<f64> {
    data.convert::<f64>()
        .try_into_vec()
        .expect("it was converted")
}

/// The largest difference, and the largest reference value.
pub fn difference(found: &[f64], expected: &[f64]) -> (f64, f64) {
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().all(|value| value.is_finite()));
    let differences = found
        .iter()
        .zip(expected)
        .map(|(found, expected)| (found - expected).abs());
    let peak = expected
        .iter()
        .fold(0.0_f64, |peak, value| peak.max(value.abs()));
    (differences.fold(0.0, f64::max), peak)
}
