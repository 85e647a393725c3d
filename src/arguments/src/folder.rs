//! A folder as an argument: `checkpoint`, `resume_from`.

use std::path::{Path, PathBuf};

/// What `checkpoint` takes: the path of a folder.
#[diagnostic::on_unimplemented(
    message = "expected a folder, got `{Self}`",
    label = "its path, such as `\"runs/debian\"`; it is made if need be"
)]
pub trait IntoFolder {
    /// The path.
    fn into_folder(self) -> PathBuf;
}

impl IntoFolder for &str {
    fn into_folder(self) -> PathBuf {
        self.into()
    }
}

impl IntoFolder for String {
    fn into_folder(self) -> PathBuf {
        self.into()
    }
}

impl IntoFolder for &String {
    fn into_folder(self) -> PathBuf {
        self.into()
    }
}

impl IntoFolder for PathBuf {
    fn into_folder(self) -> PathBuf {
        self
    }
}

impl IntoFolder for &PathBuf {
    fn into_folder(self) -> PathBuf {
        self.clone()
    }
}

impl IntoFolder for &Path {
    fn into_folder(self) -> PathBuf {
        self.to_owned()
    }
}
