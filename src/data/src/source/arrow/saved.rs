//! Folders that `save_to_disk` of Hugging Face's `datasets` has written: `state.json` names the files of the rows, in their
//! order.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use crate::problem;

/// Lists the files of a data set.
const STATE: &str = "state.json";
/// Lists the data sets of a folder that has several.
const SPLITS: &str = "dataset_dict.json";

/// The files of a folder of `save_to_disk`.
///
/// # Errors
/// SC0911 for a folder that is none, or of several data sets.
pub(in crate::source) fn files_of(call: &str, path: &Path) -> Result<Vec<PathBuf>> {
    let names = names_in(path);
    let names = names
        .map_err(|reason| problem::unreadable(call, &path.display().to_string(), None, reason))?;
    Ok(names.iter().map(|name| path.join(name)).collect())
}

/// The names of the files of a folder, or why it is none that can be read.
fn names_in(folder: &Path) -> std::result::Result<Vec<String>, String> {
    if let Some(splits) = json(&folder.join(SPLITS))? {
        let names = splits.get("splits").and_then(Json::as_array);
        let names = names.into_iter().flatten().filter_map(Json::as_str);
        let names: Vec<&str> = names.collect();
        let first = folder.join(names.first().unwrap_or(&"train"));
        return Err(format!(
            "it has the data sets {}: read one of them, such as `{}`",
            text::names(&names, 8),
            first.display()
        ));
    }
    let Some(state) = json(&folder.join(STATE))? else {
        return Err(format!(
            "it is a folder, not a file, and has no `{STATE}`, which `save_to_disk` writes; `{}` names its files",
            folder.join("*.arrow").display()
        ));
    };
    let list = |key: &str| state.get(key).and_then(Json::as_array);
    if list("_indices_data_files").is_some_and(|files| !files.is_empty()) {
        let reason = "its rows are chosen by a list of indices, as older versions of `datasets` write it: \
                      write it again by a newer one";
        return Err(reason.to_owned());
    }
    let files = list("_data_files").into_iter().flatten();
    let names = files.map(|file| {
        let name = file.get("filename").and_then(Json::as_str);
        // A name leads to no other folder.
        name.filter(|name| Path::new(name).file_name() == Some(OsStr::new(name)))
    });
    let names: Option<Vec<&str>> = names.collect();
    match names.unwrap_or_default() {
        names if names.is_empty() => Err(format!("its `{STATE}` names no files")),
        names => Ok(names.into_iter().map(str::to_owned).collect()),
    }
}

/// A small file of JSON, if it is there.
fn json(path: &Path) -> std::result::Result<Option<Json>, String> {
    /// More is no list of names.
    const MAX_BYTES: u64 = 16 << 20;
    let Ok(metadata) = path.metadata() else {
        return Ok(None);
    };
    let name = path.display();
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return Err(format!("`{name}` is no list of files"));
    }
    let content = std::fs::read(path).map_err(|error| format!("`{name}`: {error}"))?;
    let json = serde_json::from_slice(&content);
    json.map(Some)
        .map_err(|error| format!("`{name}` is no JSON: {error}"))
}
