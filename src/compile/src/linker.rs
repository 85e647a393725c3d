//! Links an ordinary cell. rustc links through `cc`, which calls `collect2`, which calls a linker that reads all symbols of
//! the facade: a fifth of the time in which a cell is compiled. A cell that uses nothing but the facade is linked in one
//! step by the linker that comes with rustc, against an empty library with the facade's name; the cell's references to
//! the facade are resolved when it is loaded.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use super::arguments;
use super::evcxr_contract::{CELL_CRATE, EMIT_OF_BUILD, RUNS_THE_CELL};
use super::settings::DriverSettings;

/// What `-m` calls this machine; `None`: cells are linked by rustc.
const MACHINE: Option<&str> = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
    Some("elf_x86_64")
} else if cfg!(all(target_os = "linux", target_arch = "aarch64")) {
    Some("aarch64linux")
} else {
    None
};

/// What is written for the linker: nothing but the function that runs the cell and its statics can be
/// seen from outside.
const VISIBLE: &str = "{ global: run_user_code_*; stratoscope_static_*; local: *; };\n";

/// The folder, among what is kept for later kernels, with what linking needs.
const FOLDER: &str = "link";

/// Links one cell.
pub struct Linker {
    program: PathBuf,
    machine: &'static str,
    /// Where the facade lies, and its file's name.
    library: PathBuf,
    /// What the processor lacks, `u128` division for one.
    builtins: Option<PathBuf>,
    folder: PathBuf,
}

impl Linker {
    /// The linker of the cell with this text; `None`: rustc has to link it.
    pub fn of(settings: &DriverSettings, source: &str) -> Option<Self> {
        if names_other_libraries(source) {
            return None;
        }
        let folder = settings.kept.join(FOLDER);
        let linker = Self {
            program: program(&settings.sysroot)?,
            machine: MACHINE?,
            library: settings.library.clone(),
            builtins: builtins(&settings.sysroot),
            folder,
        };
        linker.prepare().ok()?;
        Some(linker)
    }

    /// Has rustc stop before it links. Returns where it will write the object.
    pub fn take_over(&self, arguments: &mut [OsString]) -> Option<PathBuf> {
        let folder = PathBuf::from(arguments::value_of(arguments, "--out-dir")?);
        let extra = arguments::codegen_option(arguments, "extra-filename").unwrap_or_default();
        let object = folder.join(format!("{}{extra}.o", CELL_CRATE));
        let emit = arguments.iter_mut().find(|word| *word == EMIT_OF_BUILD)?;
        *emit = "--emit=dep-info,obj".into();
        Some(object)
    }

    /// Makes the library, with the debug information of the object or without.
    pub fn link(&self, object: &Path, library: &Path, is_debugged: bool) -> io::Result<()> {
        let mut command = self.command(library);
        if !is_debugged {
            command.arg("--strip-debug");
        }
        command
            .arg(object)
            .arg("--no-as-needed")
            .arg(self.stub())
            .args(&self.builtins)
            .args(["--eh-frame-hdr", "--gc-sections"])
            .args(["-z", "noexecstack", "-z", "relro", "-z", "now"])
            .arg("--version-script")
            .arg(self.visible())
            .args(["--enable-new-dtags", "-rpath"])
            .args(self.library.parent());
        run(command)
    }

    fn command(&self, output: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["-flavor", "gnu", "-shared", "-m", self.machine, "-o"])
            .arg(output);
        command
    }

    fn visible(&self) -> PathBuf {
        self.folder.join("visible-statics")
    }

    /// The library without contents.
    fn stub(&self) -> PathBuf {
        let name = self.library.file_name().unwrap_or_default();
        self.folder.join(name)
    }

    /// Makes what every link needs, once for each library.
    fn prepare(&self) -> io::Result<()> {
        if self.stub().is_file() && self.visible().is_file() {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)?;
        fs::write(self.visible(), VISIBLE)?;
        // Under another name until it is complete: another kernel may be looking.
        let fresh = tempfile::TempDir::new_in(&self.folder)?;
        let path = fresh.path().join("stub");
        let mut command = self.command(&path);
        if let Some(name) = self.library.file_name() {
            command.arg("-soname").arg(name);
        }
        command.arg("--format=binary").arg(self.visible());
        run(command)?;
        fs::rename(path, self.stub())
    }
}

fn run(mut command: Command) -> io::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("the linker: {}", said.trim())))
}

/// Whether the cell names functions or libraries that rustc would have to find.
fn names_other_libraries(source: &str) -> bool {
    source
        .lines()
        .filter(|line| !line.trim_start().starts_with(RUNS_THE_CELL))
        .any(|line| line.contains("extern") || line.contains("link"))
}

/// rustc's own linker.
fn program(sysroot: &Path) -> Option<PathBuf> {
    targets(sysroot)
        .map(|target| target.join("bin/rust-lld"))
        .find(|program| program.is_file())
}

fn builtins(sysroot: &Path) -> Option<PathBuf> {
    let is_meant = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with("libcompiler_builtins-") && name.ends_with(".rlib")
    };
    targets(sysroot)
        .filter_map(|target| fs::read_dir(target.join("lib")).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .find(is_meant)
}

fn targets(sysroot: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(sysroot.join("lib/rustlib"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_names_other_libraries_is_linked_by_rustc() {
        let own = "#[unsafe(no_mangle)]\npub extern \"C\" fn run_user_code_3(\nlet x = 1;\n";
        assert!(!names_other_libraries(own));
        for line in [
            "unsafe extern \"C\" { fn cos(x: f64) -> f64; }",
            "extern crate serde;",
            "#[link(name = \"z\")]",
            "#[unsafe(link_section = \".data\")] static X: u8 = 1;",
        ] {
            assert!(names_other_libraries(&format!("{own}{line}\n")), "{line}");
        }
    }
}
