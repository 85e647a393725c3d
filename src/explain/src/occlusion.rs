//! What a logit loses if a word is hidden. Source: Zeiler and Fergus 2014, "Visualizing and understanding convolutional
//! networks"; for words Li, Monroe and Jurafsky 2016, "Understanding neural networks through representation erasure".

use stratoscope_data::Encoding;

use crate::text::Word;
use crate::view::View;

/// For each word the logit of `target` minus the one with the word's tokens hidden; 0 for a word that was cut off.
pub(crate) fn occlude(
    view: &View,
    row: &Encoding,
    words: &[Word],
    logit: f64,
    target: usize,
) -> Vec<f64> {
    let hidden = |word: &Word| {
        let mut row = row.clone();
        word.tokens
            .iter()
            .for_each(|&at| row.ids[at] = view.hidden_id());
        row
    };
    let rows: Vec<Encoding> = words.iter().map(hidden).collect();
    let logits = view.logits(&rows).into_iter();
    let with = logits.zip(words).map(|(logits, word)| {
        if word.tokens.is_empty() {
            0.0
        } else {
            logit - logits[target]
        }
    });
    with.collect()
}
