//! What a package says about its library, in a file beside it.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The layout of an unpacked library that this version reads and writes.
const FORMAT: u32 = 1;

/// The library of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    format: u32,
    /// The version of stratoscope.
    pub version: String,
    /// The compiler that built it, the only one that can use it: `rustc 1.95.0 (59807616e 2026-04-14)`.
    pub rustc: String,
    /// The SHA-256 of the compressed library, in hexadecimal digits.
    pub sha256: String,
    /// The number of files.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

impl Contents {
    /// What is said about a new package.
    #[must_use]
    pub fn new(version: &str, rustc: &str, sha256: &str, packed: crate::archive::Packed) -> Self {
        Self {
            format: FORMAT,
            version: version.to_owned(),
            rustc: rustc.to_owned(),
            sha256: sha256.to_owned(),
            files: packed.files,
            bytes: packed.bytes,
        }
    }

    /// The release of the compiler, as rustup names it: `1.95.0`; for others the channel.
    #[must_use]
    pub fn release(&self) -> String {
        release(&self.rustc)
    }

    /// The build tag of the wheel: `1095_rustc1.95.0`. pip takes the wheel with the highest number, so that of the newest compiler.
    /// The version of stratoscope stays without the compiler: PyPI takes no version with a label such as `+rustc1.95.0`.
    #[must_use]
    pub fn build_tag(&self) -> String {
        build_tag(&self.rustc)
    }

    /// The command that installs the compiler.
    #[must_use]
    pub fn rustup(&self) -> String {
        format!(
            "rustup toolchain install {} --profile minimal",
            self.release()
        )
    }

    /// The name of the folder that the library is unpacked into.
    #[must_use]
    pub fn folder(&self) -> String {
        let digits = self.sha256.get(..12).unwrap_or(&self.sha256);
        format!("library-{}-{digits}", self.version)
    }

    /// The text of the file.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads the file.
    ///
    /// # Errors
    /// There is none, or it is of another version of this program.
    pub fn read(file: &Path) -> io::Result<Self> {
        let contents: Self = serde_json::from_slice(&fs::read(file)?)?;
        let is_digits = contents.sha256.bytes().all(|it| it.is_ascii_hexdigit());
        if contents.format != FORMAT || !is_digits || contents.version.contains('/') {
            return Err(io::Error::other(
                "the package is of another version of stratoscope",
            ));
        }
        Ok(contents)
    }
}

/// `1.95.0`, or `nightly`, which rustup replaces every day.
fn release(rustc: &str) -> String {
    let mut words = rustc
        .split([' ', '(', ')'])
        .filter(|word| !word.is_empty())
        .skip(1);
    let version = words.next().unwrap_or_default();
    match version.split_once('-') {
        None => version.to_owned(),
        Some((_, channel)) => channel.split('.').next().unwrap_or(channel).to_owned(),
    }
}

fn build_tag(rustc: &str) -> String {
    let version = rustc.split(' ').nth(1).unwrap_or_default();
    let mut numbers = version
        .split(['.', '-'])
        .map_while(|number| number.parse::<u64>().ok());
    let (major, minor) = (numbers.next(), numbers.next());
    let order = major.unwrap_or_default() * 1000 + minor.unwrap_or_default();
    format!("{order}_rustc{}", version.replace('-', "."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::Packed;

    #[test]
    fn a_compiler_is_named_as_rustup_names_it() {
        for (rustc, expected) in [
            ("rustc 1.95.0 (59807616e 2026-04-14)", "1.95.0"),
            ("rustc 1.96.0-beta.3 (1a2b3c4d5 2026-05-01)", "beta"),
            ("rustc 1.97.0-nightly (1a2b3c4d5 2026-05-01)", "nightly"),
            ("rustc 1.95.0", "1.95.0"),
        ] {
            assert_eq!(release(rustc), expected, "{rustc}");
        }
    }

    #[test]
    fn the_build_tag_orders_compilers_and_names_them() {
        for (rustc, expected) in [
            ("rustc 1.95.0 (59807616e 2026-04-14)", "1095_rustc1.95.0"),
            ("rustc 1.100.1", "1100_rustc1.100.1"),
            (
                "rustc 1.97.0-nightly (1a2b3c4d5 2026-05-01)",
                "1097_rustc1.97.0.nightly",
            ),
        ] {
            assert_eq!(build_tag(rustc), expected, "{rustc}");
        }
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("library.json");
        let contents = Contents::new(
            "0.1.0",
            "rustc 1.95.0 (x y)",
            "0123456789abcdef",
            Packed::default(),
        );
        fs::write(&file, contents.to_json()).expect("writes");
        assert_eq!(Contents::read(&file).expect("reads"), contents);
        assert_eq!(contents.folder(), "library-0.1.0-0123456789ab");
        assert_eq!(
            contents.rustup(),
            "rustup toolchain install 1.95.0 --profile minimal"
        );
        for other in [
            "{}",
            "",
            &contents.to_json().replace("\"format\": 1", "\"format\": 2"),
            &contents.to_json().replace("012345", "../../"),
        ] {
            fs::write(&file, other).expect("writes");
            Contents::read(&file).expect_err(other);
        }
    }
}
