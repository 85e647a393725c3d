//! A number for how a tokenizer encodes: two with the same number make the same tokens of every text.

use sha2::{Digest, Sha256};
use tokenizers::{ModelWrapper, Tokenizer};

use super::BertTokenizer;

/// The version of `tokenizers`, whose rules are a part of what a tokenizer does.
const VERSION: &str = "0.22.2";
/// The version of our own rules (`encode.rs`). A change of ids, segments or places needs a new one: cached tokens of the old
/// rules are then not read.
const RULES: u32 = 1;

impl BertTokenizer {
    /// A SHA-256 of its `tokenizer.json`, as it would be saved, of the segments and of the side at which texts are cut. `None` for a tokenizer that encodes a
    /// text in another way each time.
    pub(super) fn fingerprint(&self) -> Option<[u8; 32]> {
        let inner = &self.inner;
        let of_file = (*inner.fingerprint.get_or_init(|| of_file(&inner.tokenizer)))?;
        let mut hash = Sha256::new();
        hash.update(VERSION);
        hash.update(RULES.to_le_bytes());
        hash.update(of_file);
        hash.update(inner.unk_id.to_le_bytes());
        hash.update([u8::from(self.has_one_type)]);
        hash.update(inner.direction.as_ref());
        Some(hash.finalize().into())
    }
}

fn of_file(tokenizer: &Tokenizer) -> Option<[u8; 32]> {
    let is_random = match tokenizer.get_model() {
        ModelWrapper::BPE(model) => model.dropout.is_some_and(|share| share > 0.0),
        _ => false,
    };
    let text = (!is_random).then(|| tokenizer.to_string(false).ok())??;
    Some(Sha256::digest(text).into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use stratoscope_data::Tokenize;

    const WORDS: [&str; 7] = [
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "chess", "mail",
    ];

    fn read(folder: &Path) -> BertTokenizer {
        BertTokenizer::from_folder(folder).expect("it is whole")
    }

    #[test]
    fn the_version_is_that_of_the_crate() {
        let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
        let lock = fs::read_to_string(lock).expect("the lock file");
        let line = format!("name = \"tokenizers\"\nversion = \"{VERSION}\"\n");
        assert!(
            lock.contains(&line),
            "`VERSION` is to be that of Cargo.lock"
        );
    }

    #[test]
    fn whatever_changes_the_tokens_changes_the_number() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let write =
            |words: &[&str]| fs::write(path.join("vocab.txt"), words.join("\n")).expect("writes");
        write(&WORDS);
        let first = read(path);
        assert_eq!(first.fingerprint(), read(path).fingerprint());
        assert_ne!(
            first.fingerprint(),
            first.clone().with_types(1).fingerprint()
        );
        // Saved and read again it is the same.
        let saved = tempfile::tempdir().expect("a folder");
        first.save(saved.path(), 64).expect("it is saved");
        assert_eq!(first.fingerprint(), read(saved.path()).fingerprint());
        fs::write(
            path.join("tokenizer_config.json"),
            "{\"do_lower_case\": false}",
        )
        .expect("writes");
        assert_ne!(first.fingerprint(), read(path).fingerprint());
        let mut more = WORDS.to_vec();
        more.swap(5, 6);
        write(&more);
        fs::remove_file(path.join("tokenizer_config.json")).expect("it is there");
        assert_ne!(first.fingerprint(), read(path).fingerprint());
    }

    #[test]
    fn a_random_tokenizer_has_no_number() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |dropout: Value| {
            let words = ["<pad>", "<unk>", "<s>", "</s>", "<mask>", "a", "b", "ab"];
            let vocab = words
                .iter()
                .enumerate()
                .map(|(id, word)| ((*word).to_owned(), json!(id)));
            let vocab: serde_json::Map<String, Value> = vocab.collect();
            let file = json!({
                "version": "1.0", "added_tokens": [],
                "model": {"type": "BPE", "vocab": vocab, "merges": [["a", "b"]], "dropout": dropout, "unk_token": "<unk>"},
            });
            fs::write(folder.path().join("tokenizer.json"), file.to_string()).expect("writes");
            read(folder.path())
        };
        assert!(write(json!(null)).fingerprint().is_some());
        assert!(write(json!(0.1)).fingerprint().is_none());
        assert!(write(json!(0.1)).cache().is_none());
    }
}
