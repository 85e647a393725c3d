//! Habits on tokenizers.

use super::Habit;

pub(super) const TOKENIZER: &[Habit] = &[
    Habit(
        "(_, max_length = _) | encode(_, max_length = _) | encode_plus(_, max_length = _)",
        "{ let mut ids = {it}.ids({0})?; ids.truncate({max_length}); ids }",
        "`ids` returns the ids of the whole text, and `truncate` cuts them; `fit!` and `predict` cut and pad texts themselves, with \
           `max_length` of `fit!`",
    ),
    Habit(
        "(_) | encode(\"\") | encode(_) | encode(..)",
        "{it}.ids({0})?",
        "`ids` returns the ids of a text, special tokens included; `fit!` and `predict` take texts and encode them",
    ),
    Habit(
        "tokenize(_) | tokenize(..)",
        "{it}.pieces({0})?",
        "`pieces` returns the pieces of a text, special tokens included",
    ),
    Habit(
        "decode(_, _) | decode(..)",
        "{it}.decode({0})",
        "`decode` takes the ids: `decode(&ids)`",
    ),
    Habit(
        "vocab_size | vocab | get_vocab() | model_max_length | pad_token | pad_token_id",
        "~{it}.pieces(\"a text\")?",
        "the vocabulary and the settings are in `tokenizer.json` of the checkpoint; `ids` and `pieces` show what becomes of a text",
    ),
    Habit(
        "batch_encode_plus(..) | encode_plus(..) | pad(..) | batch_decode(..) | __call__(..)",
        "~texts.iter().map(|text| {it}.ids(text)).collect::<Result<Vec<_>, _>>()?",
        "`ids` encodes one text; `fit!`, `evaluate!` and `predict` take texts, encode, truncate and pad them",
    ),
];
