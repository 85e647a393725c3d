//! The extension for JupyterLab that underlines what the checks find in a cell while it is typed. It is a part of this
//! executable; its sources and the built files are in `kernel-spec/labextension/`.
//!
//! <https://jupyterlab.readthedocs.io/en/stable/extension/extension_dev.html#prebuilt-extensions>

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use super::kernelspec;

/// The name of the extension, and of its folder.
pub const NAME: &str = "stratoscope-lint";

macro_rules! built {
    ($($file:literal),* $(,)?) => {
        [$((
            $file,
            include_bytes!(concat!("../../../../kernel-spec/labextension/built/", $file)) as &[u8],
        )),*]
    };
}

/// The files of the extension. The last one makes the folder an extension.
pub const FILES: [(&str, &[u8]); 5] = built![
    "static/lib_index_js.js",
    "static/remoteEntry.js",
    "static/style_index_js.js",
    "static/third-party-licenses.json",
    "package.json",
];

/// The extension's folder, given Jupyter's data folder.
pub fn folder(data: &Path) -> PathBuf {
    data.join("labextensions").join(NAME)
}

/// Writes the extension; one of an earlier version goes.
///
/// # Errors
/// A file cannot be written, or the folder is another extension's.
pub fn install(data: &Path) -> anyhow::Result<PathBuf> {
    let folder = folder(data);
    anyhow::ensure!(
        !folder.exists() || is_ours(&folder),
        "{} belongs to another extension",
        folder.display()
    );
    remove(&folder)?;
    for (name, bytes) in FILES {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(&folder);
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(folder)
}

/// Removes the extension if there is one and no kernel of ours is left beside it; returns the folder that was removed.
///
/// # Errors
/// The folder cannot be removed.
pub fn uninstall(data: &Path, kernels: &Path) -> anyhow::Result<Option<PathBuf>> {
    let folder = folder(data);
    let left = fs::read_dir(kernels).into_iter().flatten().flatten();
    if !is_ours(&folder) || left.map(|it| it.path()).any(|it| kernelspec::is_ours(&it)) {
        return Ok(None);
    }
    remove(&folder)?;
    Ok(Some(folder))
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// Whether the extension in a folder is ours, of any version.
fn is_ours(folder: &Path) -> bool {
    let text = fs::read_to_string(folder.join("package.json"));
    let package = text.map(|text| serde_json::from_str::<Value>(&text));
    matches!(package, Ok(Ok(package)) if package["stratoscope"].is_object())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_is_installed_whole_replaced_and_removed() {
        let data = tempfile::tempdir().expect("a folder");
        let kernels = data.path().join("kernels");
        let folder = install(data.path()).expect("installs");
        for (name, bytes) in FILES {
            assert_eq!(fs::read(folder.join(name)).expect("is there"), bytes);
        }
        fs::write(folder.join("static/old.js"), "").expect("writes");
        install(data.path()).expect("installs again");
        assert!(!folder.join("static/old.js").exists());
        let removed = uninstall(data.path(), &kernels).expect("removes");
        assert_eq!(removed.as_deref(), Some(folder.as_path()));
        assert!(!folder.exists());
        assert!(uninstall(data.path(), &kernels).expect("nothing").is_none());
    }

    #[test]
    fn it_stays_as_long_as_a_kernel_of_ours_is_there() {
        let data = tempfile::tempdir().expect("a folder");
        let kernels = data.path().join("kernels");
        fs::create_dir_all(kernels.join("other")).expect("makes");
        let spec = r#"{"argv": ["/opt/bin/stratoscope", "kernel"]}"#;
        fs::write(kernels.join("other/kernel.json"), spec).expect("writes");
        let folder = install(data.path()).expect("installs");
        assert!(uninstall(data.path(), &kernels).expect("looks").is_none());
        assert!(folder.exists());
    }

    #[test]
    fn another_extension_is_not_touched() {
        let data = tempfile::tempdir().expect("a folder");
        let other = folder(data.path());
        fs::create_dir_all(&other).expect("makes");
        fs::write(other.join("package.json"), "{}").expect("writes");
        install(data.path()).expect_err("is another's");
        assert!(
            uninstall(data.path(), data.path())
                .expect("looks")
                .is_none()
        );
        assert!(other.exists());
    }

    #[test]
    fn every_built_file_is_a_part_of_the_executable() {
        let built =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel-spec/labextension/built");
        let list = |folder: &Path| -> Vec<PathBuf> {
            let entries = fs::read_dir(folder).expect("is there").flatten();
            entries
                .map(|it| it.path())
                .filter(|it| it.is_file())
                .collect()
        };
        let files = [list(&built), list(&built.join("static"))].concat();
        assert_eq!(files.len(), FILES.len());
        for file in files {
            let name = file
                .strip_prefix(&built)
                .expect("is below")
                .display()
                .to_string();
            assert!(FILES.iter().any(|(known, _)| *known == name), "{name}");
        }
    }
}
