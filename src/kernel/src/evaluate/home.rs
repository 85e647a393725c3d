//! The private folder of one evaluator: evcxr's workspace, the socket, the pipes, the wrapper.

use std::collections::BTreeSet;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use super::wrapper::{self, Identity, Settings};
use super::{answers, toolchain};
use crate::facade::Facade;
use crate::outside;
use crate::view::{self, standard_library};

/// evcxr reads its settings in the folder that this variable names.
const EVCXR_VARIABLE: &str = "EVCXR_CONFIG_DIR";

/// Where rust-analyzer looks for the sources of the standard library.
const SOURCES_VARIABLE: &str = "RUST_SRC_PATH";

/// The name of that folder in ours.
const SOURCES: &str = "library";

/// Removed when it is dropped.
pub struct Home {
    path: PathBuf,
}

/// Chooses the folder of this process's evaluator and tells evcxr; puts our tools in front of
/// others. Called once, before there are other threads, since it changes the environment.
pub fn choose() {
    let nanoseconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos());
    let name = format!("stratoscope-{}-{nanoseconds:08x}", std::process::id());
    let path = parent().join(name);
    let before = outside::value("PATH").unwrap_or_default();
    let mut folders = vec![toolchain::folder(&path)];
    folders.extend(std::env::split_paths(&before));
    let ours = std::env::join_paths(folders).unwrap_or_else(|_| before.clone());
    // SAFETY: called where an evaluator is prepared; tests call it before they start one.
    unsafe {
        outside::replace(ours, answers::folder(&path).into());
        std::env::set_var(SOURCES_VARIABLE, path.join(SOURCES));
        std::env::set_var(EVCXR_VARIABLE, path);
    }
}

/// Where private folders are made: among the temporary files. The path of a socket may have 108
/// bytes, so where `TMPDIR` lies deep, as on clusters, the system's own folder is taken.
fn parent() -> PathBuf {
    const LONGEST: usize = 72;
    let chosen = std::env::temp_dir();
    let usual = PathBuf::from("/tmp");
    let is_too_long = chosen.as_os_str().len() > LONGEST;
    if is_too_long && usual.is_dir() {
        usual
    } else {
        chosen
    }
}

/// Keeps from the process that runs the cells, and so from what cells start, what is only for us.
pub fn hide(command: &mut Command) {
    for name in [SOURCES_VARIABLE, EVCXR_VARIABLE] {
        command.env_remove(name);
    }
    outside::of(command);
}

/// Removes the folders of kernels that were killed before they could do it: those of processes that
/// are no more, and that belong to this user.
pub fn sweep() {
    let folders = BTreeSet::from([parent(), std::env::temp_dir()]);
    let entries = folders.iter().filter_map(|it| fs::read_dir(it).ok());
    // SAFETY: a plain system call.
    let user = unsafe { libc::getuid() };
    for entry in entries.flatten().flatten() {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(process_of) else {
            continue;
        };
        let is_gone = !Path::new(&format!("/proc/{process}")).exists();
        let is_ours = entry
            .metadata()
            .is_ok_and(|it| it.is_dir() && it.uid() == user);
        if is_gone && is_ours {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The process in the name of a private folder.
fn process_of(name: &str) -> Option<u32> {
    let (process, nanoseconds) = name.strip_prefix("stratoscope-")?.split_once('-')?;
    let is_ours = nanoseconds.len() == 8 && nanoseconds.bytes().all(|it| it.is_ascii_hexdigit());
    is_ours.then(|| process.parse().ok())?
}

/// The folder that [`choose`] chose, in this process or in the one that started it.
pub fn chosen() -> Option<PathBuf> {
    std::env::var_os(EVCXR_VARIABLE).map(PathBuf::from)
}

impl Home {
    /// Makes the folder, for this user alone. An older one of the same process is replaced.
    pub fn make() -> io::Result<Self> {
        let path = chosen().ok_or_else(|| io::Error::other("the private folder was not chosen"))?;
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // Fails when somebody else made it meanwhile: nothing of theirs is used.
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let home = Self { path };
        for folder in [home.cells(), home.streams()] {
            fs::create_dir(folder)?;
        }
        Ok(home)
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// evcxr's workspace.
    pub fn cells(&self) -> PathBuf {
        self.path.join("cells")
    }

    /// The folder of the pipes.
    pub fn streams(&self) -> PathBuf {
        self.path.join("streams")
    }

    /// The line that ran last, which the facade writes down (`cell::last_line`).
    pub fn last_line(&self) -> Option<usize> {
        let bytes = fs::read(self.streams().join("line")).ok()?;
        let line = u32::from_ne_bytes(bytes.try_into().ok()?);
        (line > 0).then_some(line as usize)
    }

    /// The socket of the wire.
    pub fn socket(&self) -> PathBuf {
        self.path.join("wire")
    }

    /// Writes evcxr's settings and the wrapper's.
    pub fn configure(&self, facade: &Facade, executable: &Path) -> io::Result<()> {
        let settings = Settings {
            library: facade.library.clone(),
            dependencies: facade.dependencies.clone(),
            view: facade.view.clone(),
            sysroot: self.path.join("sysroot"),
            identity: Identity::of(&facade.library)?,
            rustc: facade.sysroot.join("bin/rustc"),
            cargo: Some(facade.sysroot.join("bin/cargo"))
                .filter(|cargo| cargo.is_file())
                .unwrap_or_else(|| PathBuf::from("cargo")),
        };
        wrapper::sysroot(&facade.sysroot, &settings.sysroot)?;
        toolchain::install(&self.path, executable)?;
        answers::install(&self.path, executable)?;
        symlink(
            facade.view.join(standard_library::FOLDER),
            self.path.join(SOURCES),
        )?;
        let wrapper = settings.install(&self.path, executable)?;
        let text = format!(
            "[evcxr]\ntmpdir = {}\nsccache = {}\noffline_mode = false\nopt_level = {}\n",
            quoted(&self.cells().to_string_lossy()),
            quoted(&wrapper.to_string_lossy()),
            quoted(&profile_and_dependency(&facade.view)),
        );
        fs::write(self.path.join("evcxr.toml"), text)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// What stands behind `opt-level = ` in the manifest that evcxr generates for cells.
///
/// evcxr's first evaluation happens inside its constructor, before a dependency can be added, and
/// adding one afterwards makes rust-analyzer load everything a second time. The manifest's text is
/// `opt-level = {}` followed by evcxr's other settings of the profile, so this value brings the
/// whole profile and the facade along, and the rest lands in a table that cargo ignores.
///
/// Cells are not optimised: what takes time, tensors and training, is in the facade, which is. An ML
/// cell compiles in 0.30 s of processor time this way, in 0.48 s at `opt-level = 1` with four units.
fn profile_and_dependency(view: &Path) -> String {
    let facade = view.join(view::ROOT);
    format!(
        "0\n\
         debug = false\n\
         rpath = true\n\
         debug-assertions = false\n\
         overflow-checks = false\n\
         incremental = false\n\
         codegen-units = 1\n\
         \n\
         [dependencies.{}]\n\
         path = {}\n\
         \n\
         [package.metadata.evcxr]",
        view::ROOT,
        quoted(&facade.to_string_lossy()),
    )
}

/// A TOML string; JSON's escapes are valid there.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_folders_are_recognised() {
        for (name, process) in [
            ("stratoscope-12-0a1b2c3d", Some(12)),
            ("stratoscope-12-0a1b2c3", None),
            ("stratoscope-12", None),
            ("stratoscope-x-0a1b2c3d", None),
            ("stratoscope-eng-12345678x", None),
            ("other-12-0a1b2c3d", None),
        ] {
            assert_eq!(process_of(name), process, "{name}");
        }
    }
}
