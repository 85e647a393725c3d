//! The Hugging Face cache: `models--ORG--NAME/snapshots/COMMIT/…`, with the commit of a branch in
//! `refs/main`. Source: huggingface_hub, "Understand caching".

use std::fs;
use std::path::{Path, PathBuf};

use super::{Outcome, Places, lacks};

/// Looks for a complete snapshot of the model.
pub(super) fn look(name: &str, places: &Places) -> Outcome {
    let Some(cache) = &places.hub_cache else {
        return Err(vec![note(
            "Hugging Face cache",
            "neither `HF_HOME` nor `HOME` is set",
        )]);
    };
    let folder = cache.join(format!("models--{}", name.replace('/', "--")));
    let place = format!("Hugging Face cache `{}`", cache.display());
    if !folder.is_dir() {
        return Err(vec![note(&place, "does not have the model")]);
    }
    let snapshots = snapshots(&folder);
    if let Some(complete) = snapshots.iter().find(|snapshot| lacks(snapshot).is_none()) {
        return Ok(complete.clone());
    }
    let outcome = match snapshots.first().and_then(|snapshot| lacks(snapshot)) {
        Some(file) => format!("has the model, but without `{file}`"),
        None => "has the model's folder, but no snapshot".to_owned(),
    };
    Err(vec![note(&place, &outcome)])
}

/// The names of the models that the cache has.
pub(super) fn models(places: &Places) -> Vec<String> {
    const MAX_ENTRIES: usize = 1000;
    let entries = places
        .hub_cache
        .as_ref()
        .and_then(|cache| std::fs::read_dir(cache).ok());
    let entries = entries.into_iter().flatten().flatten().take(MAX_ENTRIES);
    let names = entries.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        Some(name.strip_prefix("models--")?.replace("--", "/"))
    });
    names.collect()
}

/// The snapshots of a model, the one of the branch `main` first, then the others by name.
fn snapshots(folder: &Path) -> Vec<PathBuf> {
    let root = folder.join("snapshots");
    let main = fs::read_to_string(folder.join("refs").join("main")).ok();
    // The text becomes part of a path.
    let main = main
        .map(|commit| commit.trim().to_owned())
        .filter(|commit| {
            !commit.is_empty() && commit.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
    let mut snapshots: Vec<PathBuf> = fs::read_dir(&root)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .collect();
    let main = main.map(|commit| root.join(commit));
    snapshots.sort_by_key(|path| (Some(path) != main.as_ref(), path.clone()));
    snapshots
}

fn note(place: &str, outcome: &str) -> (String, String) {
    (place.to_owned(), outcome.to_owned())
}
