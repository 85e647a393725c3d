//! Tokens on disk: a large data set that was tokenized before, by the same tokenizer and with the same settings, is read from
//! a file instead. The file is named by a SHA-256 of all that decides the tokens: the tokenizer, the settings and every text. What
//! is read is what the tokenizer would make, bit by bit, and is checked before it is believed; a file that is damaged is
//! written anew. Nothing that goes wrong here stops a run.

mod file;
mod folder;
mod key;

use std::fmt;
use std::path::PathBuf;

use stratoscope_diagnostics::Result;
use stratoscope_os::cache_folder;
use stratoscope_render::{text, units};

use crate::example::Example;
use crate::tokenize::{Form, Tokenize};

pub(crate) use file::{Reader, Writer};
use key::Key;

/// Where the tokens of large data sets are kept, and which tokenizer makes them.
///
/// The folder is private to the user. When a file is added, those that were not used for the longest time are removed
/// until all together are small enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenCache {
    folder: PathBuf,
    tokenizer: [u8; 32],
    from_bytes: usize,
    most_bytes: u64,
}

impl TokenCache {
    /// Turns the cache off, or names another folder for it.
    const VARIABLE: &str = "STRATOSCOPE_TOKEN_CACHE";
    /// Bytes of texts from which on a file pays: fewer are tokenized in about a second.
    const FROM_BYTES: usize = 1 << 20;
    /// All files together.
    const MOST_BYTES: u64 = 2 << 30;

    /// The cache of this user for a tokenizer, which is given as a number that is the same only for tokenizers that encode
    /// every text in the same way. `None` where the user has no folder for caches, or does not want one:
    /// `STRATOSCOPE_TOKEN_CACHE=off`. The variable may also name a folder.
    pub fn of_user(tokenizer: [u8; 32]) -> Option<Self> {
        let folder = match std::env::var_os(Self::VARIABLE) {
            Some(wanted) if wanted == "off" => return None,
            Some(wanted) if !wanted.is_empty() => PathBuf::from(wanted),
            _ => cache_folder::of_user()?.join("tokens"),
        };
        Some(Self::in_folder(folder, tokenizer))
    }

    /// The cache in a folder, which is made when it is needed.
    pub fn in_folder(folder: impl Into<PathBuf>, tokenizer: [u8; 32]) -> Self {
        Self {
            folder: folder.into(),
            tokenizer,
            from_bytes: Self::FROM_BYTES,
            most_bytes: Self::MOST_BYTES,
        }
    }

    /// Keeps the tokens of data sets with at least so many bytes of text. Default: 1 MiB.
    #[must_use]
    pub fn from_bytes(self, from_bytes: usize) -> Self {
        Self { from_bytes, ..self }
    }

    /// Limits all files together to so many bytes. Default: 2 GiB.
    #[must_use]
    pub fn most_bytes(self, most_bytes: u64) -> Self {
        Self { most_bytes, ..self }
    }

    /// The place for the tokens of some examples, if there are enough of them; `interrupt` is asked now and then.
    ///
    /// # Errors
    /// What `interrupt` ends with.
    pub(crate) fn entry(
        self,
        examples: &[Example],
        form: &Form,
        interrupt: impl FnMut() -> Result<()>,
    ) -> Result<Option<Entry>> {
        let bytes_of = |example: &Example| {
            let pair = (form.pair)(example).map_or(0, str::len);
            example.text.len() + pair
        };
        let bytes: usize = examples.iter().map(bytes_of).sum();
        let has_numbers = examples.iter().any(|example| !example.features.is_empty());
        if has_numbers || bytes < self.from_bytes {
            return Ok(None);
        }
        let key = Key::of(&self.tokenizer, examples, form, interrupt)?;
        Ok(Some(Entry { cache: self, key }))
    }
}

/// The place for the tokens of one data set.
pub(crate) struct Entry {
    cache: TokenCache,
    key: Key,
}

impl Entry {
    /// The file, if it is there and whole; `interrupt` is asked now and then.
    ///
    /// # Errors
    /// What `interrupt` ends with.
    pub(crate) fn reader(
        &self,
        tokenizer: &dyn Tokenize,
        rows: usize,
        interrupt: impl FnMut() -> Result<()>,
    ) -> Result<Option<Reader>> {
        if !cache_folder::is_private(&self.cache.folder) {
            return Ok(None);
        }
        Reader::open(&self.path(), &self.key, rows, tokenizer, interrupt)
    }

    /// A new file. One that cannot be written says so at its end.
    pub(crate) fn writer(&self, rows: usize) -> Writer {
        let made = cache_folder::make_private(&self.cache.folder);
        let most = self.cache.most_bytes;
        Writer::new(made, &self.path(), &self.key, rows, most)
    }

    /// Makes the new file the one that is found, and removes what is too much beside it.
    pub(crate) fn keep(&self, writer: Writer, rows: usize) -> Kept {
        let kept = writer.finish().and_then(|new| {
            folder::make_room(&self.cache.folder, new.bytes(), self.cache.most_bytes);
            new.put_in_place()
        });
        match kept {
            Ok(bytes) => Kept::Written { rows, bytes },
            Err(error) => Kept::NotWritten {
                folder: self.cache.folder.display().to_string(),
                reason: error.to_string(),
            },
        }
    }

    fn path(&self) -> PathBuf {
        let name = format!("{}.{}", self.key, folder::EXTENSION);
        self.cache.folder.join(name)
    }
}

/// What the cache did for the tokens of a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// They were kept before, and read.
    Read {
        /// Examples.
        rows: usize,
    },
    /// They were made, and are kept for the next time.
    Written {
        /// Examples.
        rows: usize,
        /// The size of the file.
        bytes: u64,
    },
    /// They were made, and could not be kept.
    NotWritten {
        /// Where they should have been kept.
        folder: String,
        /// What the system said.
        reason: String,
    },
}

impl fmt::Display for Kept {
    /// One line: `tokens of 40 000 texts read from the cache`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { rows } => write!(
                f,
                "tokens of {} read from the cache",
                text::count(*rows, "text")
            ),
            Self::Written { rows, bytes } => write!(
                f,
                "tokens of {} kept for the next time ({})",
                text::count(*rows, "text"),
                units::bytes(*bytes)
            ),
            Self::NotWritten { folder, reason } => write!(
                f,
                "tokens are not kept in `{folder}`: {reason}; the run is not affected (STRATOSCOPE_TOKEN_CACHE=off turns the \
                 cache off)"
            ),
        }
    }
}
