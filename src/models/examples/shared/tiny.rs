//! A small BERT for measurements.

use std::fs;
use std::path::Path;

use burn::tensor::Device;
use stratoscope_bert::{BertConfig, SequenceClassifier, checkpoint};
use tempfile::TempDir;

/// A checkpoint of random weights, of the sizes of the tests' one, with so many words: `w5`, `w6`, …
pub fn bert(words: usize) -> Result<TempDir, Box<dyn std::error::Error>> {
    let folder = TempDir::new()?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/parity/tiny-bert/sequence-classification/config.json");
    let text = fs::read_to_string(&source)?;
    let text = text.replace("\"vocab_size\": 128", &format!("\"vocab_size\": {words}"));
    let config = BertConfig::from_json(&text, &source)?;
    let network = SequenceClassifier::init(&config, 1, &Device::flex())?;
    checkpoint::save_network(folder.path(), &network, &config)?;
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned);
    let words = (special.len()..words).map(|index| format!("w{index}"));
    let words: Vec<String> = special.into_iter().chain(words).collect();
    fs::write(folder.path().join("vocab.txt"), words.join("\n") + "\n")?;
    Ok(folder)
}
