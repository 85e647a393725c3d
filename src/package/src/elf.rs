//! What a program or a shared library needs of the system it runs on, read from the file itself, and the platform tag
//! that a wheel with such files has.
//!
//! Source of the tags `manylinux_X_Y`: PEP 600.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use object::LittleEndian;
use object::elf::{DT_NEEDED, EM_AARCH64, EM_X86_64, FileHeader64};
use object::read::elf::FileHeader;

/// Libraries that every such system has, with compatible versions (PEP 600, the policies of `auditwheel`).
const EVERYWHERE: [&str; 10] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "librt.so.1",
    "libpthread.so.0",
    "libutil.so.1",
    "libresolv.so.2",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

/// What files need of the system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The processor: `x86_64`; empty as long as no file was read.
    pub machine: String,
    /// Shared libraries, by the names that the loader looks for.
    pub libraries: BTreeSet<String>,
    /// Versions of their symbols: `GLIBC_2.34`.
    pub versions: BTreeSet<String>,
}

impl Needs {
    /// Adds what one file needs.
    ///
    /// # Errors
    /// The file cannot be read, is no 64-bit little-endian ELF file, or is for another processor than the others.
    pub fn add(&mut self, file: &Path) -> io::Result<()> {
        let bytes = fs::read(file)?;
        let of_file = read(&bytes).ok().flatten().ok_or_else(|| {
            let text = format!("{} is no program for 64-bit Linux", file.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })?;
        if !self.machine.is_empty() && self.machine != of_file.machine {
            return Err(io::Error::other("the files are for several processors"));
        }
        self.machine = of_file.machine;
        self.libraries.extend(of_file.libraries);
        self.versions.extend(of_file.versions);
        Ok(())
    }

    /// The oldest version of glibc that has all symbols, as (major, minor).
    #[must_use]
    pub fn glibc(&self) -> Option<(u32, u32)> {
        self.versions
            .iter()
            .filter_map(|version| glibc(version))
            .max()
    }

    /// The platform tag: `manylinux_2_35_x86_64`, or `linux_x86_64` where something is needed that not every system has.
    #[must_use]
    pub fn tag(&self) -> String {
        let is_common = self
            .libraries
            .iter()
            .all(|library| EVERYWHERE.contains(&&**library));
        let is_known = self
            .versions
            .iter()
            .all(|version| glibc(version).is_some() || version.starts_with("GCC_"));
        match self.glibc() {
            Some((major, minor)) if is_common && is_known => {
                format!("manylinux_{major}_{minor}_{}", self.machine)
            }
            _ => format!("linux_{}", self.machine),
        }
    }
}

/// The version of glibc that a symbol version came with.
fn glibc(version: &str) -> Option<(u32, u32)> {
    // Relative relocations in a packed form: glibc 2.36 can read them.
    if version == "GLIBC_ABI_DT_RELR" {
        return Some((2, 36));
    }
    let mut numbers = version
        .strip_prefix("GLIBC_")?
        .split('.')
        .map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// What a file needs; `None` for a processor without a tag here.
fn read(bytes: &[u8]) -> object::Result<Option<Needs>> {
    let header = FileHeader64::<LittleEndian>::parse(bytes)?;
    let endian = header.endian()?;
    let machine = match header.e_machine(endian) {
        EM_X86_64 => "x86_64",
        EM_AARCH64 => "aarch64",
        _ => return Ok(None),
    };
    let mut needs = Needs {
        machine: machine.to_owned(),
        ..Needs::default()
    };
    let sections = header.sections(endian, bytes)?;
    let dynamic = sections.dynamic_table(endian, bytes)?;
    for entry in dynamic.iter().filter(|entry| entry.tag == DT_NEEDED) {
        needs.libraries.insert(text(dynamic.string(entry)?));
    }
    if let Some((mut libraries, names)) = sections.gnu_verneed(endian, bytes)? {
        let names = sections.strings(endian, bytes, names)?;
        while let Some((_, versions)) = libraries.next()? {
            for version in versions {
                needs.versions.insert(text(version?.name(endian, names)?));
            }
        }
    }
    Ok(Some(needs))
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(libraries: &[&str], versions: &[&str]) -> Needs {
        let set = |items: &[&str]| items.iter().map(|&it| it.to_owned()).collect();
        Needs {
            machine: "x86_64".to_owned(),
            libraries: set(libraries),
            versions: set(versions),
        }
    }

    #[test]
    fn the_tag_is_that_of_the_newest_symbol() {
        let common = ["libc.so.6", "libgcc_s.so.1"];
        for (libraries, versions, expected) in [
            (
                &common[..],
                &["GLIBC_2.9", "GLIBC_2.34", "GLIBC_2.2.5", "GCC_3.0"][..],
                "manylinux_2_34_x86_64",
            ),
            (
                &common,
                &["GLIBC_2.17", "GLIBC_ABI_DT_RELR"],
                "manylinux_2_36_x86_64",
            ),
            (&common, &["GLIBC_2.17", "GLIBC_PRIVATE"], "linux_x86_64"),
            (
                &["libc.so.6", "libvulkan.so.1"],
                &["GLIBC_2.17"],
                "linux_x86_64",
            ),
            (
                &["libc.so.6", "libstdc++.so.6"],
                &["GLIBC_2.17", "CXXABI_1.3"],
                "linux_x86_64",
            ),
            (&["libc.musl-x86_64.so.1"], &[], "linux_x86_64"),
        ] {
            assert_eq!(needs(libraries, versions).tag(), expected, "{versions:?}");
        }
    }

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn this_program_needs_a_c_library() {
        let this = std::env::current_exe().expect("has a path");
        let mut found = Needs::default();
        found.add(&this).expect("is a program");
        assert_eq!(found.machine, std::env::consts::ARCH);
        assert!(found.libraries.contains("libc.so.6"), "{found:?}");
        assert!(
            found.glibc().is_some_and(|it| it > (2, 0) && it < (3, 0)),
            "{found:?}"
        );
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let this = std::env::current_exe().expect("has a path");
        let whole = fs::read(this).expect("reads");
        let cut = &whole[..whole.len().min(1000)];
        for (index, bytes) in [b"", b"#!/bin/sh\n" as &[u8], b"\x7fELF\x02\x01", cut]
            .iter()
            .enumerate()
        {
            let path = folder.path().join(index.to_string());
            fs::write(&path, bytes).expect("writes");
            assert!(Needs::default().add(&path).is_err(), "{index}");
        }
    }
}
