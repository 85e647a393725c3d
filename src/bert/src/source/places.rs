//! The environment variables that determine where models are searched, read once per search. Names and defaults are those of
//! `huggingface_hub` v0.36 `constants.py`.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use super::environment;

/// The places to search for a model. Tests set them; other callers use those of the environment.
#[derive(Clone, Debug)]
pub struct Places {
    /// The folder with `models--…` folders.
    pub hub_cache: Option<PathBuf>,
    /// Roots of Python environments, each with where it comes from.
    pub python_prefixes: Vec<(String, PathBuf)>,
    /// The Python interpreter to query after those; `None` for none.
    pub python: Option<PathBuf>,
    /// Whether nothing may be downloaded.
    pub offline: bool,
    /// The hub's address, without a final slash.
    pub endpoint: String,
    /// The access token for private models.
    pub token: Option<String>,
    /// The time without progress after which a download has failed.
    pub stalled_after: Duration,
}

impl Places {
    /// The places of this process's environment.
    pub fn from_environment() -> Self {
        let home = set("HOME").map(PathBuf::from);
        let hf_home = set("HF_HOME").map(PathBuf::from).or_else(|| {
            let cache = set("XDG_CACHE_HOME").map(PathBuf::from);
            let cache = cache.or_else(|| Some(home.clone()?.join(".cache")));
            Some(cache?.join("huggingface"))
        });
        let hub_cache = set("HF_HUB_CACHE")
            .or_else(|| set("HUGGINGFACE_HUB_CACHE"))
            .map(PathBuf::from)
            .or_else(|| Some(hf_home.clone()?.join("hub")));
        let token_file = set("HF_TOKEN_PATH").map(PathBuf::from);
        let token_file = token_file.or_else(|| Some(hf_home?.join("token")));
        let token = set("HF_TOKEN").or_else(|| {
            let token = std::fs::read_to_string(token_file?).ok()?;
            Some(token.trim().to_owned()).filter(|token| !token.is_empty())
        });
        let endpoint = set("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".to_owned());
        Self {
            hub_cache,
            python_prefixes: environment::known(),
            python: Some(PathBuf::from("python3")),
            offline: set("HF_HUB_OFFLINE").is_some_and(|value| is_true(&value)),
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            token,
            stalled_after: Duration::from_secs(30),
        }
    }
}

impl Places {
    /// The Python interpreter into which to install a package so that it is found here.
    pub(super) fn installer(&self) -> Option<PathBuf> {
        let known = self.python_prefixes.iter();
        let found = known
            .filter_map(|(_, prefix)| environment::interpreter(prefix))
            .next();
        found.or_else(|| self.python.clone())
    }
}

/// A variable that is set and not empty.
fn set(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// A boolean variable, as `huggingface_hub` reads it.
fn is_true(value: &str) -> bool {
    ["1", "ON", "YES", "TRUE"].contains(&value.to_ascii_uppercase().as_str())
}
