//! Where things lie in the private folder of a kernel, and texts that mention the folder made independent of it.

use std::fs;
use std::path::{Path, PathBuf};

use super::evcxr_contract;

/// Stands for the private folder, which every kernel has another of.
pub const HOME: &str = "{home}";

/// The source of the cell that is being compiled, as evcxr has written it.
pub fn source(home: &Path) -> PathBuf {
    cells(home).join(evcxr_contract::SOURCE)
}

/// evcxr's package for cells.
pub fn cells(home: &Path) -> PathBuf {
    home.join("cells")
}

/// The folder that `home::choose` has chosen, in this process or in the one that started it.
pub fn chosen() -> Option<PathBuf> {
    std::env::var_os(evcxr_contract::CONFIG_VARIABLE).map(PathBuf::from)
}

/// The text with the private folder in place of [`HOME`].
pub fn in_folder(text: &str, home: &Path) -> String {
    text.replace(HOME, &home.to_string_lossy())
}

/// The texts that make cargo call rustc as it does.
pub fn manifest(home: &Path) -> Option<String> {
    let cells = cells(home);
    let mut text = fs::read_to_string(cells.join("Cargo.toml")).ok()?;
    text += &fs::read_to_string(cells.join(".cargo/config.toml")).ok()?;
    Some(text.replace(home.to_str()?, HOME))
}

/// What the environment adds to rustc's arguments.
pub fn flags() -> String {
    let flags = std::env::var_os("RUSTFLAGS").unwrap_or_default();
    flags.to_string_lossy().into_owned()
}
