//! The tokenizer of models that take numbers.

use stratoscope_data::{Encoding, Tokenize};
use stratoscope_diagnostics::Result;

/// For models of numbers, which refuse texts before any is tokenized.
pub struct NoTokenizer;

impl Tokenize for NoTokenizer {
    fn encode(&self, _: &str, _: Option<&str>, _: usize) -> Result<Encoding> {
        Ok(Encoding::default())
    }

    fn decode(&self, _: &[u32]) -> String {
        String::new()
    }

    fn tokens(&self, ids: &[u32]) -> Vec<String> {
        ids.iter().map(u32::to_string).collect()
    }

    fn pad_id(&self) -> u32 {
        0
    }

    fn unk_id(&self) -> u32 {
        0
    }

    fn vocab_size(&self) -> usize {
        0
    }
}
