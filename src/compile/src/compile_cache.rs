//! Cells that were compiled before, stored beside the library that they were compiled against: libraries of cells that
//! compile, rustc's messages about cells that do not. Executing a notebook again finds all of its cells here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use sha2::{Digest, Sha256};

use super::layout::HOME;
use super::settings::DriverSettings;

/// How many compiled cells are kept for each library.
const KEPT: usize = 500;

/// What became of a cell that was compiled before: a library, or rustc's messages.
pub struct CachedCell {
    folder: PathBuf,
    name: String,
}

/// What is known of a cell.
pub enum CachedOutcome {
    Library { warnings: String },
    Messages(String),
}

impl CachedCell {
    /// What was kept, or will be, of the cell `source` when it is compiled with these arguments.
    pub fn of(
        settings: &DriverSettings,
        arguments: &[OsString],
        home: &Path,
        source: &str,
    ) -> io::Result<Self> {
        let folder = home.to_string_lossy();
        let mut hash = Sha256::new();
        for word in arguments {
            hash.update(word.to_string_lossy().replace(&*folder, HOME));
            hash.update([0]);
        }
        hash.update(serde_json::to_vec(&settings.identity)?);
        hash.update(source);
        Ok(Self {
            folder: settings.kept.join("cells"),
            name: name(hash),
        })
    }

    fn library(&self) -> PathBuf {
        self.folder.join(format!("{}.so", self.name))
    }

    fn messages(&self) -> PathBuf {
        self.folder.join(format!("{}.json", self.name))
    }

    /// What was made of this cell then, if it is known; a library is put where rustc would put it.
    pub fn find(&self, library: &Path) -> io::Result<Option<CachedOutcome>> {
        if fs::copy(self.library(), library).is_ok() {
            let warnings = fs::read_to_string(self.warnings()).unwrap_or_default();
            return Ok(Some(CachedOutcome::Library { warnings }));
        }
        match fs::read_to_string(self.messages()) {
            Ok(messages) => Ok(Some(CachedOutcome::Messages(messages))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn warnings(&self) -> PathBuf {
        self.folder.join(format!("{}.warnings", self.name))
    }

    /// Keeps the library and what rustc warned of. Nothing when only errors were wanted.
    pub fn keep_library(&self, library: &Path, warnings: &str) -> io::Result<()> {
        if !warnings.is_empty() {
            put(&mut warnings.as_bytes(), &self.warnings())?;
        }
        match fs::File::open(library) {
            Ok(mut file) => put(&mut file, &self.library())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
        forget_the_oldest(&self.folder, KEPT)
    }

    /// Keeps rustc's messages, one JSON value a line.
    pub fn keep_messages(&self, messages: &str) -> io::Result<()> {
        put(&mut messages.as_bytes(), &self.messages())?;
        forget_the_oldest(&self.folder, KEPT)
    }
}

/// Puts `content` into `file`, under another name until it is complete: another kernel may be looking.
pub fn put(content: &mut dyn io::Read, file: &Path) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
    io::copy(content, &mut fresh)?;
    fresh.persist(file)?;
    Ok(())
}

/// The name of what depends on all that was hashed.
pub fn name(hash: Sha256) -> String {
    let hash = hash.finalize();
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Leaves at most `kept` files; when there are more, the older half goes.
fn forget_the_oldest(folder: &Path, kept: usize) -> io::Result<()> {
    let mut files: Vec<_> = fs::read_dir(folder)?
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    if files.len() > kept {
        files.sort();
        for (_, file) in &files[..files.len() / 2] {
            fs::remove_file(file)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_cells_make_room() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..5 {
            fs::write(folder.path().join(number.to_string()), "").expect("writes");
        }
        let count = || fs::read_dir(folder.path()).expect("reads").count();
        forget_the_oldest(folder.path(), 5).expect("nothing to do");
        assert_eq!(count(), 5);
        forget_the_oldest(folder.path(), 4).expect("removes");
        assert_eq!(count(), 3);
    }
}
