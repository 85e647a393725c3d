//! What is checked of `checkpoint` before a run begins.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use stratoscope_diagnostics::Result;

use super::folder::private_folder;
use crate::state::ModelState;
use stratoscope_arguments::FitPlan;
use stratoscope_diagnostics::problem;

/// Whether the run can write what `checkpoint` asks for, before its first step: a run of hours is not to find out after them
/// that nothing was kept.
///
/// # Errors
/// SC0103 for a network without files and without `every`, and for a path that can never be written.
pub(crate) fn check_checkpoint(state: &ModelState, plan: &FitPlan<'_>) -> Result<()> {
    let Some(folder) = &plan.checkpoint else {
        return Ok(());
    };
    if plan.every.is_none() && !state.step.replicas.first().can_be_saved() {
        let name = state.files.model_name();
        let finding = problem::bad_value("fit", "checkpoint", "…", "`every` beside it");
        let finding = finding.fix("add `every = 50`: a checkpoint after every 50 steps");
        let finding = finding.why(format!(
            "the weights of `{name}`, a network of your own, are saved in complete checkpoints only"
        ));
        return Err(Box::new(finding));
    }
    match can_be_written(folder) {
        Err(error) if !is_for_now(&error) => {
            let given = format!("{folder:?}");
            let expects = "the path of a folder that can be written, such as `\"runs/model\"`";
            let finding = problem::bad_value("fit", "checkpoint", given, expects);
            Err(Box::new(finding.why(error.to_string())))
        }
        _ => Ok(()),
    }
}

/// A disk may have room again when a checkpoint is due.
fn is_for_now(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, QuotaExceeded, StorageFull};
    matches!(error.kind(), Interrupted | QuotaExceeded | StorageFull)
}

/// Makes the folder, and a file in it that is removed again.
fn can_be_written(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() {
        return Err(io::Error::other("the path is empty"));
    }
    private_folder(folder, true)?;
    let probe = folder.join(format!(".probe-{}", std::process::id()));
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&probe)?;
    fs::remove_file(probe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_can_never_be_written_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("writes");
        let long = folder.path().join("x".repeat(300));
        for path in [
            Path::new(""),
            Path::new("/dev/null"),
            Path::new("/proc/checkpoints"),
            Path::new("a\0b"),
            &file,
            &file.join("below"),
            &long,
        ] {
            can_be_written(path).expect_err("cannot be written");
        }
        let good = folder.path().join("runs/today");
        can_be_written(&good).expect("is made");
        can_be_written(&good).expect("is there");
        assert_eq!(fs::read_dir(good).expect("reads").count(), 0);
    }
}
