//! What rust-analyzer takes for the sources of the standard library: the outlines of the three
//! crates whose types cells use. Half of what is missing are the processors' own instructions
//! (`stdarch`); with everything, a kernel needs three seconds and 200 MB more.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::outline;

/// The folder in the view.
pub const FOLDER: &str = "library";

const CRATES: [&str; 3] = ["core", "alloc", "std"];

/// How the standard library names the crate that its hash maps are made of, which is not among its
/// sources, and how its outline names what stands in for it.
const HASHBROWN: [(&str, &str); 2] = [
    ("use hashbrown::", "use crate::hashbrown::"),
    ("err: hashbrown::", "err: crate::hashbrown::"),
];

/// Where that crate is named.
const HASH_TABLES: &str = "std/src/collections/hash";

/// What stands in for it: as much as says which parameters its types have. Without them the
/// references that a `HashMap` gives out have no type.
const HASHBROWN_OUTLINE: &str = "
mod hashbrown {
    pub struct TryReserveError;
    pub mod hash_map {
        pub struct HashMap<K, V, S, A>(K, V, S, A);
        pub struct Iter<'a, K, V>(&'a K, &'a V);
        pub struct IterMut<'a, K, V>(&'a mut K, &'a mut V);
        pub struct IntoIter<K, V, A>(K, V, A);
        pub struct Drain<'a, K, V, A>(&'a K, V, A);
        pub struct ExtractIf<'a, K, V, F, A>(&'a K, V, F, A);
        pub struct RustcOccupiedEntry<'a, K, V, A>(&'a mut (K, V, A));
        pub struct RustcVacantEntry<'a, K, V, A>(&'a mut (K, V, A));
    }
    pub mod hash_set {
        pub struct HashSet<K, S, A>(K, S, A);
        pub struct Iter<'a, K>(&'a K);
        pub struct IntoIter<K, A>(K, A);
        pub struct Drain<'a, K, A>(&'a K, A);
        pub struct ExtractIf<'a, K, F, A>(&'a K, F, A);
        pub struct Entry<'a, K, S, A>(&'a K, S, A);
        pub struct OccupiedEntry<'a, K, S, A>(&'a K, S, A);
        pub struct VacantEntry<'a, K, S, A>(&'a K, S, A);
    }
}
";

/// Where the sources of the standard library are, if rustup's component `rust-src` is installed.
pub fn sources(sysroot: &Path) -> PathBuf {
    sysroot.join("lib/rustlib/src/rust/library")
}

/// Writes the outlines of the standard library of the rustc at `sysroot` into `folder`.
pub fn generate(sysroot: &Path, folder: &Path) -> io::Result<()> {
    let library = sources(sysroot);
    for name in CRATES {
        let (from, to) = (library.join(name), folder.join(name));
        fs::create_dir_all(&to)?;
        fs::copy(from.join("Cargo.toml"), to.join("Cargo.toml"))?;
        outline::folder(&from.join("src"), &to.join("src"))?;
    }
    let root = folder.join("std/src/lib.rs");
    let text = fs::read_to_string(&root)?;
    fs::write(root, text + HASHBROWN_OUTLINE)?;
    for entry in fs::read_dir(folder.join(HASH_TABLES))? {
        let path = entry?.path();
        if path.is_file() {
            let mut text = fs::read_to_string(&path)?;
            for (theirs, ours) in HASHBROWN {
                text = text.replace(theirs, ours);
            }
            fs::write(path, text)?;
        }
    }
    Ok(())
}
