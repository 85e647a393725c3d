//! What a program or a shared library needs of the system it runs on, read from the file itself, and the platform tag
//! that a wheel with such files has.
//!
//! Sources: the ELF-64 object file format; the GNU extension for symbol versions (Linux Standard Base, "Symbol
//! Versioning"); PEP 600, which defines the tags `manylinux_X_Y`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

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

const DYNAMIC: u32 = 6;
const NEEDED_VERSIONS: u32 = 0x6fff_fffe;
const TAG_NEEDED: u64 = 1;
const HEADER_BYTES: usize = 64;

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
        let of_file = read(&bytes).ok_or_else(|| {
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

fn read(bytes: &[u8]) -> Option<Needs> {
    if bytes.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let machine = match number(bytes, 18, 2)? {
        62 => "x86_64",
        183 => "aarch64",
        _ => return None,
    };
    let mut needs = Needs {
        machine: machine.to_owned(),
        ..Needs::default()
    };
    let table = usize::try_from(number(bytes, 40, 8)?).ok()?;
    let count = usize::try_from(number(bytes, 60, 2)?).ok()?;
    let header = |index: usize| {
        let start = table.checked_add(index.checked_mul(HEADER_BYTES)?)?;
        bytes.get(start..start.checked_add(HEADER_BYTES)?)
    };
    let contents = |header: &[u8]| {
        let start = usize::try_from(number(header, 24, 8)?).ok()?;
        let length = usize::try_from(number(header, 32, 8)?).ok()?;
        bytes.get(start..start.checked_add(length)?)
    };
    for index in 0..count {
        let section = header(index)?;
        let kind = u32::try_from(number(section, 4, 4)?).ok()?;
        if ![DYNAMIC, NEEDED_VERSIONS].contains(&kind) {
            continue;
        }
        let names = contents(header(usize::try_from(number(section, 40, 4)?).ok()?)?)?;
        let table = contents(section)?;
        if kind == DYNAMIC {
            for entry in table.chunks_exact(16) {
                if number(entry, 0, 8)? == TAG_NEEDED {
                    needs.libraries.insert(string(names, number(entry, 8, 8)?)?);
                }
            }
        } else {
            needed_versions(table, names, &mut needs.versions)?;
        }
    }
    Some(needs)
}

/// Two linked lists: libraries, and for each the versions of its symbols.
fn needed_versions(table: &[u8], names: &[u8], versions: &mut BTreeSet<String>) -> Option<()> {
    let mut library = 0_usize;
    loop {
        let count = number(table, library.checked_add(2)?, 2)?;
        let mut version =
            library.checked_add(usize::try_from(number(table, library + 8, 4)?).ok()?)?;
        for _ in 0..count {
            versions.insert(string(names, number(table, version.checked_add(8)?, 4)?)?);
            version =
                version.checked_add(usize::try_from(number(table, version + 12, 4)?).ok()?)?;
        }
        match usize::try_from(number(table, library + 12, 4)?).ok()? {
            0 => return Some(()),
            next => library = library.checked_add(next)?,
        }
    }
}

fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut value = [0; 8];
    value[..size].copy_from_slice(bytes.get(at..at.checked_add(size)?)?);
    Some(u64::from_le_bytes(value))
}

fn string(names: &[u8], at: u64) -> Option<String> {
    let text = names.get(usize::try_from(at).ok()?..)?;
    let text = text.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(text).into_owned())
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
