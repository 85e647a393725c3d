//! [`Key`]: a number for all that decides the tokens of a data set.

use std::fmt;

use sha2::{Digest, Sha256};
use stratoscope_diagnostics::Result;

use crate::example::Example;
use crate::tokenize::Form;

/// Changes with the format of the files and with what a form means, so that no older file is found.
const VERSION: &[u8] = b"stratoscope tokens 1";
/// Rows between two questions whether to stop: some milliseconds of work.
const ROWS_BETWEEN: usize = 8192;

/// A SHA-256 of tokenizer, settings and texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key(pub(super) [u8; 32]);

impl Key {
    /// Every text comes with its length, so that no two lists of texts are the same bytes.
    ///
    /// # Errors
    /// What `interrupt` ends with.
    pub(super) fn of(
        tokenizer: &[u8; 32],
        examples: &[Example],
        form: &Form,
        mut interrupt: impl FnMut() -> Result<()>,
    ) -> Result<Self> {
        let mut hash = Sha256::new();
        hash.update(VERSION);
        hash.update(tokenizer);
        hash.update((form.max_length as u64).to_le_bytes());
        hash.update([u8::from(form.with_pieces)]);
        hash.update((examples.len() as u64).to_le_bytes());
        let add = |hash: &mut Sha256, text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        };
        for (row, example) in examples.iter().enumerate() {
            if row % ROWS_BETWEEN == ROWS_BETWEEN - 1 {
                interrupt()?;
            }
            add(&mut hash, &example.text);
            match (form.pair)(example) {
                Some(pair) => add(&mut hash, pair),
                // No text is so long.
                None => hash.update(u64::MAX.to_le_bytes()),
            }
        }
        Ok(Self(hash.finalize().into()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
