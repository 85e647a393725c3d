//! The facade of an installed wheel: unpacked at the first start, and compiled against by the one compiler that built it.
//! Nothing is built, and no sources of the standard library are needed: its outline is in the package.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use stratoscope_diagnostics::rules::{LibraryLinkFailed, LibraryStale, RustcMissing};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_package::contents::Contents;
use stratoscope_package::installed::{self, Package, Problem};

use crate::compiler::{self, Compiler};
use crate::facade::{self, Facade};

/// The folder, in an unpacked package, of the library and of the metadata of its dependencies.
pub const LIBRARY: &str = "library";
/// The folder of what rust-analyzer sees of it.
pub const VIEW: &str = "view";
/// The folder of the sources that the view points at.
pub const SOURCES: &str = "sources";

/// The package that this executable was installed with, unless [`facade::VARIABLE`] names another library.
#[must_use]
pub fn here() -> Option<&'static Package> {
    static HERE: OnceLock<Option<Package>> = OnceLock::new();
    let package = HERE.get_or_init(|| match std::env::var_os(facade::VARIABLE) {
        Some(_) => None,
        None => Package::here(),
    });
    package.as_ref()
}

/// Finds the compiler of the package and unpacks its library, unless that was done; `progress` hears how many bytes were
/// written so far.
///
/// # Errors
/// That compiler is not installed, or there is no folder for the library; the diagnostic says what to run.
pub fn find(package: &Package, progress: &mut dyn FnMut(u64)) -> Result<Facade> {
    let contents = &package.contents;
    let Some(Compiler { sysroot, .. }) = compiler::of_version(&contents.rustc) else {
        return Err(compiler_missing(package, compiler::any().as_ref()));
    };
    let unpacked = package.unpack(progress).map_err(|it| no_folder(&it))?;
    let kept = package.kept(&unpacked).map_err(|it| no_folder(&it))?;
    let dependencies = unpacked.join(LIBRARY);
    Ok(Facade {
        library: dependencies.join(facade::LIBRARY),
        dependencies,
        kept,
        view: unpacked.join(VIEW),
        rustc: contents.rustc.clone(),
        sysroot,
        _in_use: installed::hold(&unpacked).map(Arc::new),
    })
}

/// What to run where the compiler of the package is missing.
#[must_use]
pub fn remedy(contents: &Contents) -> String {
    format!(
        "run `{}`: the kernel finds that compiler beside yours, and your default stays as it is",
        contents.rustup()
    )
}

/// How to get along with another compiler.
#[must_use]
pub fn from_source() -> String {
    format!(
        "or build stratoscope with your compiler: `cargo build --workspace --locked` in a checkout of {}, {}",
        env!("CARGO_PKG_REPOSITORY"),
        facade::estimate()
    )
}

fn compiler_missing(package: &Package, now: Option<&Compiler>) -> Box<Diagnostic> {
    let contents = &package.contents;
    let (mut diagnostic, first) = match now {
        Some(now) => {
            let stale = LibraryStale {
                library: package.archive().display().to_string(),
                built: contents.rustc.clone(),
                now: now.version.clone(),
                build: String::new(),
            };
            (stale.diagnostic(), remedy(contents))
        }
        None => {
            let first = format!(
                "run `stratoscope install --fetch-rustc`, or install rustup from https://rustup.rs and run `{}`",
                contents.rustup()
            );
            (RustcMissing.diagnostic(), first)
        }
    };
    // Those of the rule build the library anew, for which the sources are needed.
    diagnostic.fixes.clear();
    Box::new(diagnostic.fix(first).fix(from_source()))
}

fn no_folder(problem: &Problem) -> Box<Diagnostic> {
    LibraryLinkFailed {
        folder: problem.folder.display().to_string(),
        reason: problem.reason.clone(),
    }
    .error()
}

/// Where the library lies or will lie.
#[must_use]
pub fn place(package: &Package) -> Option<PathBuf> {
    package.unpacked().or_else(|| package.destination())
}
