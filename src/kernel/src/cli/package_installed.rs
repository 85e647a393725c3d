//! The commands `install`, `uninstall` and `doctor` for a kernel that was installed from a wheel: its library is unpacked
//! instead of built, and removed with the kernel.

use std::time::Instant;

use stratoscope_compile::compiler::Compiler;
use stratoscope_compile::facade::Facade;
use stratoscope_compile::packaged;
use stratoscope_os::console::say;
use stratoscope_package::installed::Package;

use super::doctor::Finding;

/// Unpacks the library, unless that was done, and says where.
///
/// # Errors
/// The compiler of the package is not installed, or there is no room.
pub fn unpack(package: &Package) -> stratoscope_diagnostics::Result<Facade> {
    let begun = Instant::now();
    let is_new = package.unpacked().is_none();
    let place = packaged::place(package).filter(|_| is_new);
    let found = packaged::find(package, &mut |_| ())?;
    if let Some(place) = place {
        say(&format!(
            "unpacked the library that cells link to in {:.1} s: {} MiB in {}",
            begun.elapsed().as_secs_f64(),
            package.contents.bytes >> 20,
            place.display()
        ));
    }
    Ok(found)
}

/// Removes what was unpacked and says so.
pub fn remove(package: &Package) {
    for folder in package.remove() {
        say(&format!("removed {}", folder.display()));
    }
    say("`pip uninstall stratoscope` removes the rest");
}

/// Whether the compiler of the package is there.
pub fn toolchain(package: &Package, found: Option<&Compiler>) -> Finding {
    let wanted = &package.contents.rustc;
    match found {
        Some(found) if found.version == *wanted => Finding::Ok(format!(
            "{wanted}, which built the library of this package, in {}",
            found.sysroot.display()
        )),
        Some(found) => Finding::Missing {
            what: format!(
                "the library of this package can be used by {wanted} only, and there is {}",
                found.version
            ),
            remedy: format!(
                "{}; {}",
                packaged::remedy(&package.contents),
                packaged::from_source()
            ),
        },
        None => Finding::Missing {
            what: format!("{wanted}, which built the library of this package, is not installed"),
            remedy: format!(
                "run `stratoscope install --fetch-rustc`, or install rustup from https://rustup.rs and run `{}`",
                package.contents.rustup()
            ),
        },
    }
}

/// Where the library is, or will be.
pub fn library(package: &Package) -> Finding {
    let (archive, size) = (package.archive(), package.contents.bytes >> 20);
    match (package.unpacked(), package.destination()) {
        (Some(folder), _) => Finding::Ok(format!(
            "{}, unpacked from {}",
            folder.display(),
            archive.display()
        )),
        (None, Some(place)) => Finding::Ok(format!(
            "in {}; the first start of the kernel, or `stratoscope install`, unpacks {size} MiB into {}",
            archive.display(),
            place.display()
        )),
        (None, None) => Finding::Missing {
            what: format!(
                "there is no folder that {} can be unpacked into",
                archive.display()
            ),
            remedy: "set HOME or XDG_CACHE_HOME to a folder that you can write to".to_owned(),
        },
    }
}
