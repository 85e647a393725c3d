//! Writes a checkpoint like transformers' `save_pretrained`: the same files, names, shapes and
//! element types.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use burn::tensor::TensorData;
use safetensors::tensor::{Dtype, TensorView};
use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::work::{Unit, Work};

use super::adapter;
use crate::config::BertConfig;
use crate::heads::BertNetwork;
use crate::layout::Layout;
use crate::names::named_values;
use crate::problem;
use crate::tokenizer::BertTokenizer;

/// Writes the whole model: configuration, weights and tokenizer. The folder is created if necessary.
/// Existing files are replaced, each one only when the new file is complete. Of a network with adapters these and the head
/// are written, in the layout of PEFT.
///
/// # Errors
/// SC0908 for the first file that cannot be written.
pub fn save<N: BertNetwork>(
    folder: &Path,
    network: &N,
    config: &BertConfig,
    tokenizer: &BertTokenizer,
) -> Result<Vec<PathBuf>> {
    if let Some(lora) = &config.lora {
        return adapter::save(folder, network, (config, lora), tokenizer);
    }
    let mut written = save_network(folder, network, config)?;
    // A folder holds a whole model or adapters.
    adapter::remove(folder)?;
    written.extend(tokenizer.save(folder, config.max_position_embeddings)?);
    Ok(written)
}

/// Writes configuration and weights.
///
/// # Errors
/// SC0908 for the first file that cannot be written.
pub fn save_network<N: BertNetwork>(
    folder: &Path,
    network: &N,
    config: &BertConfig,
) -> Result<Vec<PathBuf>> {
    let layout = Layout::of::<N>(config);
    let values = named_values(network).into_iter();
    let values: Vec<_> = values
        .filter_map(|(name, data)| Some((layout.name(&name)?, layout.as_in_file(&name, data))))
        .collect();
    save_values(folder, &config.to_json(N::ARCHITECTURE), &values)
}

/// Writes a configuration as `config.json` and tensors of float32 as `model.safetensors`. The folder is created if
/// necessary.
///
/// # Errors
/// SC0908 for the first file that cannot be written.
pub fn save_values(
    folder: &Path,
    configuration: &str,
    values: &[(String, TensorData)],
) -> Result<Vec<PathBuf>> {
    create_folder(folder)?;
    let bytes = serialized(values, &folder.join("model.safetensors"))?;
    let weights = write(folder, "model.safetensors", &bytes)?;
    Ok(vec![
        write(folder, "config.json", configuration.as_bytes())?,
        weights,
    ])
}

/// A file of tensors of float32, which is to be written to `path`.
pub(super) fn serialized(values: &[(String, TensorData)], path: &Path) -> Result<Vec<u8>> {
    let failed = |reason: String| problem::not_saved(path, reason);
    let views = values.iter().map(|(name, data)| {
        let view = TensorView::new(Dtype::F32, data.shape().to_vec(), data.as_bytes());
        view.map(|view| (name.as_str(), view))
    });
    let views: Vec<_> = views
        .collect::<Result<_, _>>()
        .map_err(|error| failed(error.to_string()))?;
    // transformers refuses a file without the name of the framework.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    safetensors::serialize(views, Some(metadata)).map_err(|error| failed(error.to_string()))
}

/// Creates a folder and its parents.
pub(crate) fn create_folder(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| problem::not_saved(folder, error.to_string()))
}

/// Writes a temporary file in the same folder and renames it, so that the old file survives an interruption or a full
/// disk.
pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf> {
    let path = folder.join(name);
    let unfinished = folder.join(format!(".{name}.{}", std::process::id()));
    let outcome =
        in_portions(&unfinished, bytes).and_then(|()| std::fs::rename(&unfinished, &path));
    outcome.map_err(|error| {
        // If this fails too, nothing can be done; the first error is reported.
        let _ = std::fs::remove_file(&unfinished);
        problem::not_saved(&path, error.to_string())
    })?;
    Ok(path)
}

/// Writes a file and shows progress. It ignores interrupts, because a checkpoint with some new and some old files would be
/// worse than either; the next operation sees them.
fn in_portions(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    const PORTION: usize = 16 << 20;
    let mut file = std::fs::File::create(path)?;
    let mut work = Work::begin(("saving", "saved"), bytes.len(), Unit::Bytes);
    for (index, portion) in bytes.chunks(PORTION).enumerate() {
        work.shows(index * PORTION);
        file.write_all(portion)?;
    }
    work.finished();
    Ok(())
}
