//! Texts as words and as pieces of words.

use stratoscope_data::Example;

/// The text of an example in lower case, its words with one space between them; both texts of a pair.
pub(crate) fn normalized(example: &Example) -> String {
    let both = example.texts();
    let words: Vec<String> = words(&both).collect();
    words.join(" ")
}

/// Runs of letters and digits, in lower case.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}
