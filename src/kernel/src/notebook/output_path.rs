//! Where `stratoscope run` writes the executed notebook.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::Context;

use super::RunArguments;

/// The absolute path of the executed notebook. Its folder is made, so that an hour of training does not end in a
/// notebook that cannot be written.
///
/// # Errors
/// The current folder does not exist, or the folder of the output cannot be made.
pub fn of(arguments: &RunArguments) -> anyhow::Result<PathBuf> {
    let notebook = std::path::absolute(&arguments.notebook)?;
    if arguments.inplace {
        return Ok(notebook);
    }
    let output = match &arguments.output {
        Some(output) => std::path::absolute(output)?,
        None => default_output(
            &notebook,
            env::var_os("CARGO_TARGET_DIR").map(PathBuf::from),
        ),
    };
    if let Some(folder) = output.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    Ok(output)
}

/// `target/notebooks/NAME.ipynb` in a Cargo workspace, otherwise `NAME.executed.ipynb` beside the notebook.
fn default_output(notebook: &Path, target: Option<PathBuf>) -> PathBuf {
    let name = notebook.file_name().unwrap_or_default();
    match workspace_of(notebook) {
        Some(workspace) => {
            let target = target.unwrap_or_else(|| "target".into());
            let output = workspace.join(target).join("notebooks").join(name);
            // A notebook that lies there already is not overwritten.
            match output == notebook {
                true => notebook.with_extension("executed.ipynb"),
                false => output,
            }
        }
        None => notebook.with_extension("executed.ipynb"),
    }
}

/// The closest folder above the notebook that holds the manifest of a workspace.
fn workspace_of(notebook: &Path) -> Option<&Path> {
    notebook.ancestors().skip(1).find(|folder| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        manifest
            .lines()
            .any(|line| line.trim_end() == "[workspace]")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_has_its_target_folder_and_other_folders_a_second_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let notebook = root.join("notebooks/a.ipynb");
        fs::create_dir(root.join("notebooks")).expect("makes");
        let beside = root.join("notebooks/a.executed.ipynb");
        assert_eq!(default_output(&notebook, None), beside);
        fs::write(root.join("Cargo.toml"), "[workspace]\nmembers = []\n").expect("writes");
        let output = default_output(&notebook, None);
        assert_eq!(output, root.join("target/notebooks/a.ipynb"));
        assert_eq!(
            default_output(&output, None),
            root.join("target/notebooks/a.executed.ipynb")
        );
        let elsewhere = default_output(&notebook, Some("/t".into()));
        assert_eq!(elsewhere, Path::new("/t/notebooks/a.ipynb"));
    }

    #[test]
    fn the_notebook_changes_only_when_asked() {
        let notebook = PathBuf::from("/n/a.ipynb");
        let arguments = |output: Option<&str>, inplace| RunArguments {
            notebook: notebook.clone(),
            output: output.map(PathBuf::from),
            inplace,
            ..RunArguments::default()
        };
        assert_eq!(of(&arguments(None, true)).expect("a path"), notebook);
        let folder = tempfile::tempdir().expect("a folder");
        let asked = folder.path().join("new/b.ipynb");
        let output = of(&arguments(asked.to_str(), false)).expect("a path");
        assert_eq!(output, asked);
        assert!(
            folder.path().join("new").is_dir(),
            "made before a cell runs"
        );
        assert_ne!(default_output(&notebook, None), notebook);
    }
}
