//! The private folder of one evaluator: evcxr's workspace, the socket, the pipes, the wrapper.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{fs, io};

use super::evcxr_contract::{CONFIG_FILE, CONFIG_VARIABLE};
use super::layout;
use super::settings::{DriverSettings, LibraryIdentity};
use super::wrapper;
use super::{cargo_cache, toolchain};
use crate::compiler;
use crate::facade::Facade;
use crate::view::{self, standard_library};
use stratoscope_os::private_folder::{self, PrivateFolder};
use stratoscope_os::{environment, temporary_folder};

/// Where rust-analyzer looks for the sources of the standard library.
const SOURCES_VARIABLE: &str = "RUST_SRC_PATH";

/// The name of that folder in ours.
const SOURCES: &str = "library";

/// The folder for sockets of displays and drivers, where the user has none.
const RUNTIME: &str = "runtime";
const RUNTIME_VARIABLE: &str = "XDG_RUNTIME_DIR";

/// What is to be said about the folder for temporary files.
static NOTE: OnceLock<String> = OnceLock::new();

/// Removed when it is dropped.
pub struct Home {
    folder: PrivateFolder,
}

/// Chooses the folder of this process's evaluator and tells evcxr; puts our tools in front of
/// others. Called once, before there are other threads, since it changes the environment.
pub fn choose() {
    let temporary =
        temporary_folder::find().unwrap_or_else(|problem| temporary_folder::Temporary {
            // What cannot be made there is reported when it is made.
            folder: std::env::temp_dir(),
            instead: None,
            note: Some(format!(
                "no folder for temporary files can be used: {problem}"
            )),
        });
    if let Some(note) = temporary.note {
        let _ = NOTE.set(note);
    }
    let path = temporary.folder.join(private_folder::fresh_name());
    let before = environment::original("PATH").unwrap_or_default();
    let mut folders = vec![toolchain::folder(&path)];
    folders.extend(std::env::split_paths(&before));
    let ours = std::env::join_paths(folders).unwrap_or_else(|_| before.clone());
    environment::remember_folder();
    // SAFETY: called where an evaluator is prepared; tests call it before they start one.
    unsafe {
        environment::replace(ours, cargo_cache::folder(&path).into());
        if let Some(folder) = temporary.instead {
            // rustc, too, puts files there, and so may the cells.
            std::env::set_var("TMPDIR", folder);
        }
        std::env::set_var(SOURCES_VARIABLE, path.join(SOURCES));
        std::env::set_var(CONFIG_VARIABLE, path);
    }
}

/// A message for the user about the folder for temporary files, if the usual one cannot be used.
pub fn note() -> Option<&'static str> {
    NOTE.get().map(String::as_str)
}

/// Keeps from the process that runs the cells, and so from what cells start, what is only for us.
pub fn hide(command: &mut Command) {
    for name in [SOURCES_VARIABLE, CONFIG_VARIABLE] {
        command.env_remove(name);
    }
    environment::clean_env(command);
    environment::give_tools_back(command);
}

pub use crate::layout::source;

impl Home {
    /// Makes the folder, for this user alone. An older one of the same process is replaced.
    pub fn make() -> io::Result<Self> {
        let path = layout::chosen()
            .ok_or_else(|| io::Error::other("the private folder was not chosen"))?;
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let home = Self {
            folder: PrivateFolder::make(path)?,
        };
        for folder in [home.cells(), home.streams()] {
            fs::create_dir(folder)?;
        }
        fs::DirBuilder::new()
            .mode(0o700)
            .create(home.path().join(RUNTIME))?;
        Ok(home)
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// evcxr's workspace.
    pub fn cells(&self) -> PathBuf {
        layout::cells(self.path())
    }

    /// The folder of the pipes.
    pub fn streams(&self) -> PathBuf {
        self.path().join("streams")
    }

    /// The line that ran last, which the facade writes down (`cell::last_line`).
    pub fn last_line(&self) -> Option<usize> {
        let bytes = fs::read(self.streams().join("line")).ok()?;
        let line = u32::from_ne_bytes(bytes.try_into().ok()?);
        (line > 0).then_some(line as usize)
    }

    /// The socket of the wire.
    pub fn socket(&self) -> PathBuf {
        self.path().join("wire")
    }

    /// Gives the process that runs the cells a private folder for the sockets of displays where it has
    /// none: drivers complain of that each time a device is opened.
    pub fn lend_runtime_folder(&self, command: &mut Command) {
        let named = std::env::var_os(RUNTIME_VARIABLE).map(PathBuf::from);
        if !named.is_some_and(|it| is_private(&it)) {
            command.env(RUNTIME_VARIABLE, self.path().join(RUNTIME));
        }
    }

    /// Writes evcxr's settings and the wrapper's.
    pub fn configure(&self, facade: &Facade, executable: &Path) -> io::Result<()> {
        let settings = DriverSettings {
            library: facade.library.clone(),
            dependencies: facade.dependencies.clone(),
            kept: facade.kept.clone(),
            view: facade.view.clone(),
            sysroot: self.path().join("sysroot"),
            identity: LibraryIdentity::of(&facade.library)?,
            rustc: compiler::rustc_of(&facade.sysroot),
            toolchain: facade.sysroot.clone(),
        };
        wrapper::sysroot(&facade.sysroot, &settings.sysroot)?;
        toolchain::install(self.path(), executable, &settings.rustc)?;
        cargo_cache::install(self.path(), executable)?;
        symlink(
            facade.view.join(standard_library::FOLDER),
            self.path().join(SOURCES),
        )?;
        let wrapper = settings.install(self.path(), executable)?;
        let text = format!(
            "[evcxr]\ntmpdir = {}\nsccache = {}\noffline_mode = false\nopt_level = {}\n",
            quoted(&self.cells().to_string_lossy()),
            quoted(&wrapper.to_string_lossy()),
            quoted(&profile_and_dependency(&facade.view)),
        );
        fs::write(self.path().join(CONFIG_FILE), text)
    }
}

/// Whether a folder belongs to this user and is not accessible to others, as a runtime folder has to be.
fn is_private(folder: &Path) -> bool {
    // SAFETY: a plain system call.
    let user = unsafe { libc::getuid() };
    let metadata = folder.is_absolute().then(|| fs::metadata(folder).ok());
    let metadata = metadata.flatten();
    metadata.is_some_and(|it| it.is_dir() && it.uid() == user && it.mode() & 0o077 == 0)
}

/// What stands behind `opt-level = ` in the manifest that evcxr generates for cells.
///
/// evcxr's first evaluation happens inside its constructor, before a dependency can be added, and
/// adding one afterwards makes rust-analyzer load everything a second time. The manifest's text is
/// `opt-level = {}` followed by evcxr's other settings of the profile, so this value brings the
/// whole profile and the facade along, and the rest lands in a table that cargo ignores. It also ends
/// cargo's search for a workspace, which goes through all the folders above.
///
/// Cells are not optimized: tensors and training, which take the time, are in the facade, which is. An ML
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
         # A package of its own, whatever lies in the folders above.\n\
         [workspace]\n\
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
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_runtime_folder_is_private() {
        let folder = tempfile::tempdir().expect("a folder");
        for (mode, expected) in [(0o700, true), (0o755, false), (0o777, false)] {
            let permissions = fs::Permissions::from_mode(mode);
            fs::set_permissions(folder.path(), permissions).expect("is ours");
            assert_eq!(is_private(folder.path()), expected, "{mode:o}");
        }
        for odd in ["/tmp", "/no/such/folder", "", "relative"] {
            assert!(!is_private(Path::new(odd)), "{odd}");
        }
    }
}
