//! Validates a tokenizer file, so that the tokenizer never fails later: the crate `tokenizers` accepts inconsistent files
//! and panics when the tokenizer is used.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;
use stratoscope_data::Tokenize;
use stratoscope_render::text;
use tokenizers::{ModelWrapper, Tokenizer};

use super::BertTokenizer;
use super::limits::Failure;

/// Ids may have gaps, but there must not be far more ids than tokens: the vocabulary file and
/// the model's table have an entry for each id.
const GAPS: usize = 1 << 20;

/// Splitting a word takes the square of its length with WordPiece, and the product with that of the longest token with
/// Unigram: longer ones are refused, and no published file has them.
const MAX_WORD_CHARS: usize = 1000;
const MAX_TOKEN_BYTES: usize = 1000;

/// Special tokens and texts in a template: BERT's has five for a pair.
const MAX_TEMPLATE_PIECES: usize = 64;

/// Texts that are encoded once to test a tokenizer: nothing, words, a word of many pieces, punctuation, a pair.
const PROBES: [(&str, Option<&str>); 4] = [
    ("", None),
    (
        "A text with unheardofwordparts, 1999 – and signs: ñ 漢 [SEP]",
        None,
    ),
    ("", Some("")),
    ("first", Some("second one")),
];

/// Runs `work` and turns a panic into an error, for cases that the checks below do not cover.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = text_of(panic.as_ref()).unwrap_or("for a reason that it does not say");
        format!(
            "the crate `tokenizers` panics: {}",
            text::excerpt(text, 200)
        )
    })
}

fn text_of(panic: &(dyn Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
}

/// One more than the largest id.
pub(super) fn vocab_size(tokenizer: &Tokenizer) -> Result<usize, String> {
    let vocabulary = tokenizer.get_vocab(true);
    let tokens = vocabulary.len();
    let Some((token, id)) = vocabulary.into_iter().max_by_key(|(_, id)| *id) else {
        return Err("its vocabulary is empty".to_owned());
    };
    let size = id as usize + 1;
    match size > tokens.saturating_add(GAPS) {
        true => Err(format!(
            "the id of `{}` is {}, and there are {} tokens",
            text::excerpt(&token, 40),
            text::thousands(id as usize),
            text::thousands(tokens)
        )),
        false => Ok(size),
    }
}

/// Checks what the time for a word depends on.
pub(super) fn of_words(tokenizer: &Tokenizer) -> Result<(), String> {
    if let ModelWrapper::WordPiece(model) = tokenizer.get_model()
        && model.max_input_chars_per_word > MAX_WORD_CHARS
    {
        return Err(format!(
            "its `max_input_chars_per_word` is {}, at most {MAX_WORD_CHARS} are read",
            model.max_input_chars_per_word
        ));
    }
    let tokens = tokenizer.get_vocab(false);
    match tokens.keys().find(|token| token.len() > MAX_TOKEN_BYTES) {
        Some(token) => Err(format!(
            "its vocabulary has a token of {} bytes, `{}`",
            text::thousands(token.len()),
            text::excerpt(token, 40)
        )),
        None => Ok(()),
    }
}

/// Checks the templates of the file's `post_processor`: each special token in them must be listed, with ids
/// that there are.
pub(super) fn of_templates(tokenizer: &Tokenizer, vocab_size: usize) -> Result<(), String> {
    let processor = serde_json::to_value(tokenizer.get_post_processor());
    of_processor(&processor.unwrap_or_default(), vocab_size, 0)
}

fn of_processor(processor: &Value, vocab_size: usize, depth: usize) -> Result<(), String> {
    const DEEPEST: usize = 16;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    if depth < DEEPEST {
        for inner in list(&processor["processors"]) {
            of_processor(&inner, vocab_size, depth + 1)?;
        }
    }
    // `[CLS]` and `[SEP]` of the other processors, each with its id.
    for name in ["cls", "sep"] {
        if let Some(id) = processor[name][1].as_u64() {
            known(id, &processor[name][0], vocab_size)?;
        }
    }
    if processor["type"] != "TemplateProcessing" {
        return Ok(());
    }
    let special = &processor["special_tokens"];
    for (name, most) in [("single", 1), ("pair", 2)] {
        let pieces = list(&processor[name]);
        if pieces.len() > MAX_TEMPLATE_PIECES {
            return Err(format!(
                "its template `{name}` has {} pieces, at most {MAX_TEMPLATE_PIECES} are read",
                pieces.len()
            ));
        }
        for piece in pieces {
            let token = &piece["SpecialToken"]["id"];
            if let Some(key) = token.as_str() {
                let ids = list(&special[key]["ids"]);
                if ids.is_empty() {
                    return Err(format!(
                        "its template `{name}` has `{}`, which `special_tokens` does not",
                        text::excerpt(key, 40)
                    ));
                }
                for id in ids {
                    known(id.as_u64().unwrap_or(u64::MAX), token, vocab_size)?;
                }
            }
            if piece["Sequence"]["id"] == "B" && most < 2 {
                return Err(format!(
                    "its template `{name}` asks for a second text, which there is none of"
                ));
            }
        }
    }
    Ok(())
}

fn known(id: u64, token: &Value, vocab_size: usize) -> Result<(), String> {
    match usize::try_from(id).is_ok_and(|id| id < vocab_size) {
        true => Ok(()),
        false => Err(format!(
            "`{}` has the id {id} in its `post_processor`, and the vocabulary ends at {}",
            text::excerpt(token.as_str().unwrap_or("a special token"), 40),
            vocab_size - 1
        )),
    }
}

/// Uses the tokenizer once.
pub(super) fn probe(tokenizer: &BertTokenizer) -> Result<(), Failure> {
    const LENGTH: usize = 64;
    let panicked = |reason: String| Failure::Other(reason.into());
    for (text, pair) in PROBES {
        let encoding = guarded(|| tokenizer.try_encode(text, pair, LENGTH)).map_err(panicked)??;
        let is_unknown = |id: &&u32| **id as usize >= tokenizer.vocab_size();
        if let Some(id) = encoding.ids.iter().find(is_unknown) {
            let reason = format!("it encodes to the id {id}, which has no token");
            return Err(Failure::Other(reason.into()));
        }
        guarded(|| tokenizer.decode(&encoding.ids)).map_err(panicked)?;
    }
    Ok(())
}
