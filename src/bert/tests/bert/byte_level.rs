//! Byte-level tokenizers, as RoBERTa is published with one: ids, places and words of raw texts beside those of transformers
//! (`tests/parity/byte-level/make.py`), in all settings of blanks that files have.

use std::fs;

use serde_json::{Value, json};
use stratoscope_bert::BertTokenizer;
use stratoscope_data::{Alignment, Dataset, Example, Piece, Targets, Tokenize, debian_entities};
use tempfile::TempDir;

use crate::fixtures::parity;

fn read(name: &str) -> Value {
    let text = fs::read_to_string(parity("byte-level").join(name)).expect("the file");
    serde_json::from_str(&text).expect("it is JSON")
}

/// The tokenizer of the file with other settings, in a folder of its own.
fn with_settings(settings: &Value, config: &Value) -> (TempDir, BertTokenizer) {
    let mut file = read("tokenizer.json");
    for (field, value) in settings.as_object().expect("an object") {
        file[field] = value.clone();
    }
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, value: &Value| {
        fs::write(folder.path().join(name), value.to_string()).expect("room");
    };
    write("tokenizer.json", &file);
    write("tokenizer_config.json", config);
    let tokenizer = BertTokenizer::from_folder(folder.path()).expect("it is sound");
    (folder, tokenizer)
}

/// The settings of a form, in words, with its tokenizer and its cases.
fn forms() -> Vec<(String, BertTokenizer, Value)> {
    let cases = read("cases.json");
    let forms = cases["forms"].as_array().expect("forms").iter();
    forms
        .map(|form| {
            let (_folder, tokenizer) = with_settings(&form["settings"], &json!({}));
            let name = form["settings"]["post_processor"].to_string();
            (name, tokenizer, form.clone())
        })
        .collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn number(value: &Value) -> usize {
    value.as_u64().expect("a number") as usize
}

fn ids(value: &Value) -> Vec<u32> {
    list(value).iter().map(|id| number(id) as u32).collect()
}

fn pieces(value: &Value) -> Vec<Option<Piece>> {
    let piece = |value: &Value| {
        let [start, end, word, sequence] = list(value) else {
            return None;
        };
        Some(Piece {
            range: number(start)..number(end),
            in_pair: number(sequence) == 1,
            word: number(word) as u32,
        })
    };
    let each = list(value).iter();
    each.map(|value| (!value.is_null()).then(|| piece(value)).flatten())
        .collect()
}

#[test]
fn places_and_words_are_those_of_transformers() {
    for (name, tokenizer, form) in forms() {
        for case in list(&form["cases"]) {
            let text = case["text"].as_str().expect("a text");
            let pair = case["pair"].as_str();
            let (encoding, found) = tokenizer
                .encode_pieces(text, pair, 512)
                .expect("it has tokens")
                .expect("it has places");
            assert_eq!(encoding.ids, ids(&case["ids"]), "{text:?} {pair:?}, {name}");
            assert_eq!(found, pieces(&case["pieces"]), "{text:?} {pair:?}, {name}");
            let plain = tokenizer.encode(text, pair, 512);
            assert_eq!(Ok(encoding), plain, "{text:?} {pair:?}, {name}");
        }
    }
}

/// Long texts are cut at the side that the tokenizer's files name, and a saved tokenizer names it again.
#[test]
fn texts_are_cut_at_the_side_of_the_tokenizer() {
    let cases = read("cases.json");
    let truncation =
        json!({ "direction": "Left", "max_length": 64, "strategy": "LongestFirst", "stride": 0 });
    let of_file = json!({ "truncation": truncation });
    let none = json!({});
    for (side, settings, config) in [
        ("right", &none, json!({})),
        ("left", &none, json!({ "truncation_side": "left" })),
        ("left", &of_file, json!({})),
        ("right", &of_file, json!({ "truncation_side": "right" })),
    ] {
        let (folder, tokenizer) = with_settings(settings, &config);
        let copy = folder.path().join("copy");
        tokenizer.save(&copy, 64).expect("it is saved");
        let again = BertTokenizer::from_folder(&copy).expect("the copy is sound");
        let saved = fs::read_to_string(copy.join("tokenizer_config.json")).expect("the file");
        let saved: Value = serde_json::from_str(&saved).expect("it is JSON");
        let names_left = saved["truncation_side"] == "left";
        assert_eq!(names_left, side == "left", "{saved}");
        for case in list(&cases["cut"][side]) {
            let text = case["text"].as_str().expect("a text");
            let (pair, length) = (case["pair"].as_str(), number(&case["max_length"]));
            for tokenizer in [&tokenizer, &again] {
                let (encoding, found) = tokenizer
                    .encode_pieces(text, pair, length)
                    .expect("it has tokens")
                    .expect("it has places");
                assert_eq!(
                    encoding.ids,
                    ids(&case["ids"]),
                    "{text:?} {pair:?} {length} {side}"
                );
                assert_eq!(
                    found,
                    pieces(&case["pieces"]),
                    "{text:?} {pair:?} {length} {side}"
                );
            }
        }
        // Fewer than the special tokens.
        for length in 0..5 {
            let encoding = tokenizer.encode("a b c", Some("d e"), length);
            let encoding = encoding.expect("it has tokens");
            assert_eq!(
                (encoding.ids.len(), encoding.truncated),
                (length, 6),
                "{side}"
            );
        }
    }
}

/// The windows are those of transformers, and an answer is found again by its tokens.
#[test]
fn an_answer_is_found_again_in_windows_of_raw_text() {
    for (name, tokenizer, form) in forms() {
        for case in list(&form["questions"]) {
            let [question, context, answer] = ["question", "context", "answer"]
                .map(|field| case[field].as_str().expect("a text"));
            let data = Dataset::from_questions([(question, context, answer)]).expect("it is there");
            let [length, stride] = ["max_length", "stride"].map(|field| number(&case[field]));
            let encoded = data
                .tokenize_questions(&tokenizer, length, stride)
                .expect("it has places");
            let windows = list(&case["windows"]);
            assert_eq!(encoded.len(), windows.len(), "{question}, {name}");
            let mut answered = 0;
            for (at, expected) in windows.iter().enumerate() {
                let found = encoded.get(at).expect("a window");
                assert_eq!(found.ids, ids(&expected["ids"]), "{question}, {name}");
                let window = found.window.as_ref().expect("a window");
                // With a prefix space, transformers takes the blank before a window for the prefix and leaves it there.
                let of_context = pieces(&expected["pieces"]).into_iter().flatten();
                let of_context = of_context.filter(|piece| piece.in_pair);
                let expected: Vec<_> = of_context.map(|piece| piece.trimmed(context)).collect();
                let positions = window.positions();
                let ranges: Vec<_> = positions.filter_map(|at| window.bytes(at, at)).collect();
                assert_eq!(ranges, expected, "{question}, {name}");
                let Targets::Span([start, end]) = found.targets else {
                    panic!("{:?}", found.targets);
                };
                if let Some(bytes) = window.bytes(start as usize, end as usize) {
                    assert_eq!(&context[bytes], answer, "{question}, {name}");
                    answered += 1;
                }
            }
            assert!(answered > 0, "no window has the answer: {question}, {name}");
        }
    }
}

/// Whether a model is given words or the text that they make: the same tokens begin the same words.
#[test]
fn words_of_raw_text_begin_with_the_tokens_of_given_words() {
    let cases = read("cases.json");
    let sentence = |words: &Value| {
        let words = list(words).iter();
        let words: Vec<String> = words
            .map(|word| word.as_str().expect("a word").to_owned())
            .collect();
        let tags = vec!["O"; words.len()];
        (words, tags)
    };
    let sentences = list(&cases["words"]).iter().map(sentence);
    let data = Dataset::from_words(sentences).expect("a tag for each word");
    let (train, dev) = debian_entities().expect("they are in the crate");
    let known = BertTokenizer::from_folder(&parity("families/distilbert")).expect("it is sound");
    let aligned = |tokenizer: &BertTokenizer, example: &Example| {
        let (_, pieces) = tokenizer
            .encode_pieces(&example.text, None, 512)
            .expect("it has tokens")
            .expect("it has places");
        let raw = Example::new(&example.text);
        [example, &raw].map(|example| Alignment::of(example, &pieces))
    };
    for (name, tokenizer, _) in forms() {
        for example in &data.examples {
            let [given, raw] = aligned(&tokenizer, example);
            assert_eq!(given, raw, "{}, {name}", example.text);
        }
        let (mut words, mut by_bytes, mut by_word_pieces) = (0, 0, 0);
        for example in train.examples.iter().chain(&dev.examples).step_by(5) {
            words += example.words().map_or(0, <[_]>::len);
            let common = |tokenizer: &BertTokenizer| {
                let [given, raw] = aligned(tokenizer, example);
                let raw: Vec<_> = raw.words.iter().zip(raw.first_tokens).collect();
                let given = given.words.iter().zip(given.first_tokens);
                given.filter(|word| raw.contains(word)).count()
            };
            by_bytes += common(&tokenizer);
            by_word_pieces += common(&known);
        }
        assert!(by_bytes >= by_word_pieces, "{by_bytes} of {words}, {name}");
    }
}
