//! A BERT with random weights, and texts for it.

use std::error::Error;
use std::fs;

use burn::tensor::Device;
use stratoscope_bert::{BatchTensors, BertConfig, SequenceClassifier, checkpoint};
use stratoscope_data::Dataset;
use tempfile::TempDir;

pub const LABELS: usize = 8;
/// Tokens that are no words: padding, unknown, begin, end, mask.
const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
/// Of the vocabulary, the words that texts have.
const USED_WORDS: usize = 90;

/// The size of a network; MiniLM's by default.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub layers: usize,
    pub hidden: usize,
    pub heads: usize,
    pub inner: usize,
    pub words: usize,
}

impl Default for Size {
    fn default() -> Self {
        Self {
            layers: 6,
            hidden: 384,
            heads: 12,
            inner: 1536,
            words: 30522,
        }
    }
}

impl Size {
    /// With positions for rows of `seq` tokens.
    pub fn config(&self, seq: usize) -> Result<BertConfig, Box<dyn Error>> {
        let text = format!(
            r#"{{"model_type": "bert", "vocab_size": {}, "hidden_size": {}, "num_hidden_layers": {}, "num_attention_heads": {},
                "intermediate_size": {}, "max_position_embeddings": {}}}"#,
            self.words.max(SPECIAL.len() + USED_WORDS),
            self.hidden,
            self.layers,
            self.heads,
            self.inner,
            seq.max(512),
        );
        let config = BertConfig::from_json(&text, "config.json".as_ref())?;
        Ok(config.with_num_labels(LABELS)?)
    }

    /// The elements of each variable.
    pub fn variables(&self, config: &BertConfig) -> Vec<usize> {
        let (hidden, inner) = (self.hidden, self.inner);
        let mut sizes = vec![
            config.vocab_size * hidden,
            config.max_position_embeddings * hidden,
            2 * hidden,
            hidden,
            hidden,
        ];
        for _ in 0..self.layers {
            sizes.extend([hidden * hidden, hidden].repeat(4));
            sizes.extend([hidden * inner, inner, inner * hidden, hidden]);
            sizes.extend([hidden; 4]);
        }
        sizes.extend([hidden * hidden, hidden, hidden * LABELS, LABELS]);
        sizes
    }
}

/// A checkpoint with random weights, in a folder that is removed with the value.
pub fn checkpoint(size: &Size, seq: usize) -> Result<TempDir, Box<dyn Error>> {
    let folder = TempDir::new()?;
    let config = size.config(seq)?;
    let network = SequenceClassifier::init(&config, 1, &Device::flex())?;
    checkpoint::save_network(folder.path(), &network, &config)?;
    let words = (SPECIAL.len()..config.vocab_size).map(|index| format!("w{index}"));
    let words: Vec<String> = SPECIAL
        .map(str::to_owned)
        .into_iter()
        .chain(words)
        .collect();
    fs::write(folder.path().join("vocab.txt"), words.join("\n") + "\n")?;
    Ok(folder)
}

/// A text of `words` words, each one token.
fn text(row: usize, words: usize) -> String {
    let words = (0..words).map(|word| SPECIAL.len() + (row * 7 + word * 3) % USED_WORDS);
    let words: Vec<String> = words.map(|word| format!("w{word}")).collect();
    words.join(" ")
}

/// Texts with labels, of more words than a row has tokens: truncation makes all rows equally long.
pub fn labelled(rows: usize, seq: usize) -> Dataset {
    let row = |row: usize| (text(row, seq), format!("label {}", row % LABELS));
    Dataset::from_labelled((0..rows).map(row))
}

/// Texts without labels, which fill `seq` tokens together with begin and end.
pub fn unlabelled(rows: usize, seq: usize) -> Dataset {
    let words = seq.saturating_sub(2).max(1);
    Dataset::from_texts((0..rows).map(|row| text(row, words)))
}

/// One batch of token ids on a device, without padding.
pub fn batch(rows: usize, seq: usize, device: &Device) -> BatchTensors {
    let count = rows * seq;
    let id = |at: usize| (SPECIAL.len() + at * 7 % USED_WORDS) as i64;
    let ids = (0..count).map(id).collect();
    BatchTensors::from_values(ids, vec![1.0; count], vec![0; count], [rows, seq], device)
}
