//! Which files of the target folder rustc needs to compile a cell. The folder holds the metadata of every crate of the
//! workspace, of the kernel's and the tests' too, and of earlier builds; a package contains only what rustc reads.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use stratoscope_os::environment;

use crate::{compiler, wrapper};

/// Names everything that the facade exports, so that all of its dependencies and macros are read.
const PROBE: &str = "pub use stratoscope::*;\npub use stratoscope::prelude::*;\n";

/// The names of the files beside `library` that rustc reads for a crate that uses the whole library, the library's own
/// among them. It is rustc's own list (`-Z binary-dep-depinfo`), which a stable rustc gives when it is asked like one of
/// its own builds.
///
/// # Errors
/// rustc does not compile the probe.
pub fn files(library: &Path, sysroot: &Path) -> io::Result<BTreeSet<String>> {
    let folder = tempfile::tempdir()?;
    let mut rustc = probe(library, sysroot, folder.path())?;
    rustc
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["-Z", "binary-dep-depinfo"]);
    run(rustc.arg("--emit=dep-info,metadata"))?;
    let list = fs::read_to_string(folder.path().join("probe.d"))?;
    let beside = library.parent().unwrap_or(Path::new("/"));
    let names = list
        .lines()
        .filter_map(|line| Path::new(line.strip_suffix(':')?).file_name()?.to_str());
    let mut files: BTreeSet<String> = names
        .filter(|name| is_read_by_rustc(name) && beside.join(name).is_file())
        .map(str::to_owned)
        .collect();
    files.extend(
        library
            .file_name()
            .and_then(OsStr::to_str)
            .map(str::to_owned),
    );
    Ok(files)
}

fn is_read_by_rustc(name: &str) -> bool {
    [".rmeta", ".rlib", ".so"]
        .iter()
        .any(|end| name.ends_with(end))
}

/// Compiles the probe to machine code against a library and the metadata beside it, with nothing else in reach.
///
/// # Errors
/// A file is missing.
pub fn check(library: &Path, sysroot: &Path) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut rustc = probe(library, sysroot, folder.path())?;
    run(rustc.arg("--emit=obj"))
}

fn probe(library: &Path, sysroot: &Path, folder: &Path) -> io::Result<Command> {
    let source = folder.join("probe.rs");
    fs::write(&source, PROBE)?;
    let target = folder.join("sysroot");
    wrapper::sysroot(sysroot, &target)?;
    let with = |name: &str, path: &Path| {
        let mut argument = std::ffi::OsString::from(name);
        argument.push(path);
        argument
    };
    let mut rustc = Command::new(compiler::rustc_of(sysroot));
    environment::clean_env(&mut rustc)
        .current_dir(folder)
        .args(["--crate-name=probe", "--crate-type=lib", "--edition=2024"])
        .arg("-Aambiguous_glob_reexports")
        .arg("--out-dir")
        .arg(folder)
        .arg("--sysroot")
        .arg(target)
        .arg("--extern")
        .arg(with("stratoscope=", library))
        .arg("-L")
        .arg(with(
            "dependency=",
            library.parent().unwrap_or(Path::new("/")),
        ))
        .arg(source);
    Ok(rustc)
}

fn run(rustc: &mut Command) -> io::Result<()> {
    let output = rustc.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("rustc: {}", said.trim())))
}

/// The folder of rustc's own tools in a compiler's folder, `rust-objcopy` among them.
#[must_use]
pub fn tools(sysroot: &Path) -> Vec<PathBuf> {
    let targets = fs::read_dir(sysroot.join("lib/rustlib"));
    let targets = targets.into_iter().flatten().flatten();
    targets
        .map(|target| target.path().join("bin"))
        .filter(|it| it.is_dir())
        .collect()
}
