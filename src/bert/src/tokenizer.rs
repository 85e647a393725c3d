//! Tokenization by the `tokenizers` crate: text ↔ ids. BERT's WordPiece splits a word that is not in the vocabulary into the
//! longest pieces that are (`embeddings` → `em`, `##bed`, `##ding`, `##s`); RoBERTa's byte-level BPE and XLM-RoBERTa's
//! Unigram have pieces of their own. The tokenizer is read from `tokenizer.json`, else from `vocab.txt` with the
//! settings of `tokenizer_config.json`.
//! Source: Devlin et al. 2019, section 3; google-research/bert@eedf571 `tokenization.py`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use stratoscope_data::{Encoding, Piece, TokenCache, Tokenize};
use stratoscope_diagnostics::{Diagnostic, Result};
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::processors::bert::BertProcessing;
use tokenizers::utils::truncation::TruncationDirection;
use tokenizers::{AddedToken, ModelWrapper, Tokenizer};

mod encode;
mod fingerprint;
mod limits;
mod validate;

use limits::{Failure, Normalizers};

use crate::checkpoint::{create_folder, is_there, read_bytes, read_text, write};
use crate::{problem, source};

/// Larger than any vocabulary's file.
const LARGEST_FILE: u64 = 256 << 20;

/// A checkpoint's tokenizer. Cloning it is cheap.
#[derive(Clone, Debug)]
pub struct BertTokenizer {
    inner: Arc<Inner>,
    /// Whether the model has one segment type: all tokens are of type 0.
    has_one_type: bool,
}

#[derive(Debug)]
struct Inner {
    /// Without the file's padding and truncation: both are arguments of a call here.
    tokenizer: Tokenizer,
    /// Those of the tokenizer.
    normalizers: Normalizers,
    /// The side at which a long text is cut.
    direction: TruncationDirection,
    /// The file that it was read from.
    path: PathBuf,
    pad_id: u32,
    unk_id: u32,
    mask_id: Option<u32>,
    vocab_size: usize,
    /// `tokenizer_config.json` as it was read, or equivalent settings.
    config: Value,
    /// Its size in memory, computed when it is first needed.
    bytes: OnceLock<usize>,
    /// A number for how it encodes, computed when it is first needed.
    fingerprint: OnceLock<Option<[u8; 32]>>,
}

/// The names of the special tokens, as `tokenizer_config.json` may change them; else WordPiece's or those of the others.
struct Special {
    cls: String,
    sep: String,
    pad: String,
    unk: String,
    mask: String,
}

impl BertTokenizer {
    /// The tokenizer of a model, which is searched by [`source::find`].
    ///
    /// # Errors
    /// SC0901 if there is no such model, SC0902 or SC0910 if its files cannot be used.
    pub fn from_pretrained(name: &str) -> Result<Self> {
        Self::from_folder(&source::find(name)?.folder)
    }

    /// The tokenizer in a checkpoint's folder.
    ///
    /// # Errors
    /// SC0902 if the files are absent or cannot be read, SC0910 if they do not describe a WordPiece tokenizer.
    pub fn from_folder(folder: &Path) -> Result<Self> {
        let config = read_config(folder)?;
        let json = folder.join("tokenizer.json");
        let (path, tokenizer) = if is_there(&json) {
            let bytes = read_bytes(&json, LARGEST_FILE)?;
            let tokenizer = validate::guarded(|| limits::of_file(&bytes))
                .flatten()
                .and_then(|()| validate::guarded(|| Tokenizer::from_bytes(&bytes)))
                .and_then(|tokenizer| tokenizer.map_err(|error| error.to_string()))
                .map_err(|reason| problem::tokenizer(&json, reason))?;
            (json, tokenizer)
        } else {
            let vocabulary = folder.join("vocab.txt");
            let text = read_text(&vocabulary, LARGEST_FILE)?;
            let special = Special::of(&config, None);
            let tokenizer = validate::guarded(|| from_vocabulary(&text, &config, &special))
                .and_then(|tokenizer| tokenizer.map_err(|error| error.to_string()))
                .map_err(|reason| problem::tokenizer(&vocabulary, reason))?;
            (vocabulary, tokenizer)
        };
        Self::check(tokenizer, config, &path)
    }

    /// For a model of so many segment types.
    pub(crate) fn with_types(self, types: usize) -> Self {
        Self {
            has_one_type: types == 1,
            ..self
        }
    }

    /// Checks that a tokenizer has what the models need, so that encoding cannot fail later.
    fn check(mut tokenizer: Tokenizer, config: Value, path: &Path) -> Result<Self> {
        let refuse = |reason: String| problem::tokenizer(path, reason);
        let special = Special::of(&config, Some(&tokenizer));
        let unk = match tokenizer.get_model() {
            ModelWrapper::WordPiece(model) => model.unk_token.clone(),
            ModelWrapper::BPE(model) => model.unk_token.clone().unwrap_or(special.unk.clone()),
            ModelWrapper::Unigram(_) => special.unk.clone(),
            ModelWrapper::WordLevel(_) => {
                return Err(refuse(
                    "it has whole words only: WordPiece, BPE and Unigram are read".to_owned(),
                ));
            }
        };
        let id = |token: &str| {
            let id = tokenizer.token_to_id(token);
            id.ok_or_else(|| refuse(format!("its vocabulary has no `{token}`")))
        };
        let (unk_id, pad_id) = (id(&unk)?, id(&special.pad)?);
        let (cls, sep) = (id(&special.cls)?, id(&special.sep)?);
        let mask_id = tokenizer.token_to_id(&special.mask);
        let vocab_size = validate::vocab_size(&tokenizer).map_err(refuse)?;
        validate::of_words(&tokenizer).map_err(refuse)?;
        validate::of_templates(&tokenizer, vocab_size).map_err(refuse)?;
        if tokenizer.get_post_processor().is_none() {
            let post_processor =
                BertProcessing::new((special.sep.clone(), sep), (special.cls.clone(), cls));
            tokenizer.with_post_processor(Some(post_processor));
        }
        let direction = direction_of(&config, &tokenizer);
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(None)
            .map_err(|error| refuse(error.to_string()))?;
        let normalizers = Normalizers::of(tokenizer.get_normalizer());
        let inner = Inner {
            tokenizer,
            normalizers,
            direction,
            path: path.to_owned(),
            pad_id,
            unk_id,
            mask_id,
            vocab_size,
            config,
            bytes: OnceLock::new(),
            fingerprint: OnceLock::new(),
        };
        let tokenizer = Self {
            inner: Arc::new(inner),
            has_one_type: false,
        };
        validate::probe(&tokenizer).map_err(|failure| tokenizer.refused(failure))?;
        Ok(tokenizer)
    }

    /// The ids of a text with the special tokens of the model, not truncated: `tokenizer.ids("a mail server")?`.
    ///
    /// # Errors
    /// SC0910 for a text that the tokenizer cannot encode; SC0520 if it is interrupted.
    pub fn ids(&self, text: &str) -> Result<Vec<u32>> {
        Ok(Tokenize::encode(self, text, None, usize::MAX)?.ids)
    }

    /// The pieces of a text with the special tokens of the model: `["[CLS]", "em", "##bed", "[SEP]"]`.
    ///
    /// # Errors
    /// As [`ids`](Self::ids).
    pub fn pieces(&self, text: &str) -> Result<Vec<String>> {
        Ok(Tokenize::tokens(self, &self.ids(text)?))
    }

    /// The text of some ids, special tokens included.
    pub fn decode(&self, ids: &[u32]) -> String {
        Tokenize::decode(self, ids)
    }

    /// Its approximate size in bytes: the vocabulary, by token and by id.
    pub fn bytes(&self) -> usize {
        *self.inner.bytes.get_or_init(|| {
            let vocabulary = self.inner.tokenizer.get_vocab(true);
            let entry = |token: &String| token.len() + size_of::<(String, u32)>();
            2 * vocabulary.keys().map(entry).sum::<usize>()
        })
    }

    /// Writes `tokenizer.json`, `tokenizer_config.json`, `vocab.txt` and `special_tokens_map.json`
    /// for a model of `model_max_length` positions.
    ///
    /// # Errors
    /// SC0908 for the first file that cannot be written.
    pub fn save(&self, folder: &Path, model_max_length: usize) -> Result<Vec<PathBuf>> {
        create_folder(folder)?;
        let is_word_piece = is_word_piece(&self.inner.tokenizer);
        let special = Special::of(&self.inner.config, Some(&self.inner.tokenizer));
        let mut config = self.inner.config.clone();
        if let Some(fields) = config.as_object_mut() {
            // Files of other kinds say what they are, or leave it to `tokenizer.json`.
            if is_word_piece {
                fields.insert("tokenizer_class".to_owned(), json!("BertTokenizer"));
            } else {
                let class = json!("PreTrainedTokenizerFast");
                fields.entry("tokenizer_class").or_insert(class);
            }
            fields
                .entry("model_max_length")
                .or_insert(json!(model_max_length));
            // `tokenizer.json` is written without truncation, which may have been its only place.
            if matches!(self.inner.direction, TruncationDirection::Left) {
                fields.insert("truncation_side".to_owned(), json!("left"));
            }
        }
        let map = json!({
            "cls_token": special.cls,
            "mask_token": special.mask,
            "pad_token": special.pad,
            "sep_token": special.sep,
            "unk_token": special.unk,
        });
        let text = self.inner.tokenizer.to_string(false).map_err(|error| {
            problem::not_saved(&folder.join("tokenizer.json"), error.to_string())
        })?;
        let mut written = vec![
            write(folder, "tokenizer.json", text.as_bytes())?,
            write(
                folder,
                "tokenizer_config.json",
                format!("{config:#}\n").as_bytes(),
            )?,
            write(
                folder,
                "special_tokens_map.json",
                format!("{map:#}\n").as_bytes(),
            )?,
        ];
        if is_word_piece {
            written.push(write(folder, "vocab.txt", self.vocabulary().as_bytes())?);
        }
        Ok(written)
    }

    /// One token per line, in the order of the ids. An id without a token has an empty line.
    fn vocabulary(&self) -> String {
        let mut lines = vec![String::new(); self.inner.vocab_size];
        for (token, id) in self.inner.tokenizer.get_vocab(true) {
            if let Some(line) = lines.get_mut(id as usize) {
                *line = token;
            }
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

impl BertTokenizer {
    /// What encoding gives, also where `tokenizers` panics.
    fn guarded<T>(&self, encode: impl FnOnce() -> Result<T, Failure>) -> Result<T> {
        let encoded = validate::guarded(encode);
        let encoded = encoded.unwrap_or_else(|reason| Err(Failure::Other(reason.into())));
        encoded.map_err(|failure| self.refused(failure))
    }

    /// The diagnostic of a text that has no tokens: SC0910, or SC0520 after an interrupt.
    fn refused(&self, failure: Failure) -> Box<Diagnostic> {
        match failure {
            Failure::Interrupted => problem::tokenizing_interrupted(),
            failure => problem::tokenizer(&self.inner.path, failure.to_string()),
        }
    }
}

impl Tokenize for BertTokenizer {
    fn encode(&self, text: &str, pair: Option<&str>, max_length: usize) -> Result<Encoding> {
        self.guarded(|| self.try_encode(text, pair, max_length))
    }

    fn encode_pieces(
        &self,
        text: &str,
        pair: Option<&str>,
        max_length: usize,
    ) -> Result<Option<(Encoding, Vec<Option<Piece>>)>> {
        self.guarded(|| self.try_encode_pieces(text, pair, max_length))
            .map(Some)
    }

    fn decode(&self, ids: &[u32]) -> String {
        let decoded = self.inner.tokenizer.decode(ids, false);
        decoded.unwrap_or_else(|_| self.tokens(ids).join(" "))
    }

    fn tokens(&self, ids: &[u32]) -> Vec<String> {
        let token = |&id: &u32| self.inner.tokenizer.id_to_token(id);
        ids.iter()
            .map(|id| token(id).unwrap_or_else(|| format!("[no token {id}]")))
            .collect()
    }

    fn has_segments(&self) -> bool {
        !self.has_one_type
    }

    fn pad_id(&self) -> u32 {
        self.inner.pad_id
    }

    fn unk_id(&self) -> u32 {
        self.inner.unk_id
    }

    fn mask_id(&self) -> Option<u32> {
        self.inner.mask_id
    }

    fn vocab_size(&self) -> usize {
        self.inner.vocab_size
    }

    fn cache(&self) -> Option<TokenCache> {
        TokenCache::of_user(self.fingerprint()?)
    }
}

impl Special {
    /// A special token is written as its text or as an object with its text as `content`. Where it is not written, it is
    /// what BERT calls it, with WordPiece, or what RoBERTa does. ALBERT has `<pad>` beside `[CLS]`, so that it is BERT's where
    /// the vocabulary has only that. `tokenizer`: `None` for a WordPiece that is not made yet.
    fn of(config: &Value, tokenizer: Option<&Tokenizer>) -> Self {
        let has = |token: &str| tokenizer.is_some_and(|it| it.token_to_id(token).is_some());
        let name = |key: &str, of_bert: &str, of_roberta: &str| {
            let value = &config[key];
            let text = value.as_str().or_else(|| value["content"].as_str());
            let is_of_bert = tokenizer.is_none_or(is_word_piece);
            let default = if is_of_bert || has(of_bert) && !has(of_roberta) {
                of_bert
            } else {
                of_roberta
            };
            text.unwrap_or(default).to_owned()
        };
        Self {
            cls: name("cls_token", "[CLS]", "<s>"),
            sep: name("sep_token", "[SEP]", "</s>"),
            pad: name("pad_token", "[PAD]", "<pad>"),
            unk: name("unk_token", "[UNK]", "<unk>"),
            mask: name("mask_token", "[MASK]", "<mask>"),
        }
    }
}

fn is_word_piece(tokenizer: &Tokenizer) -> bool {
    matches!(tokenizer.get_model(), ModelWrapper::WordPiece(_))
}

/// The side at which long texts are cut, as transformers reads it: `truncation_side`, else what `tokenizer.json` has.
fn direction_of(config: &Value, tokenizer: &Tokenizer) -> TruncationDirection {
    match config["truncation_side"].as_str() {
        Some("left") => TruncationDirection::Left,
        Some(_) => TruncationDirection::Right,
        None => tokenizer
            .get_truncation()
            .map(|truncation| truncation.direction)
            .unwrap_or_default(),
    }
}

/// `tokenizer_config.json`, or an empty object if there is none.
fn read_config(folder: &Path) -> Result<Value> {
    let path = folder.join("tokenizer_config.json");
    if !is_there(&path) {
        return Ok(json!({}));
    }
    let text = read_text(&path, LARGEST_FILE)?;
    match serde_json::from_str(&text) {
        Ok(config @ Value::Object(_)) => Ok(config),
        Ok(_) => Err(problem::malformed(
            &path,
            "it is JSON, but not an object".to_owned(),
        )),
        Err(error) => Err(problem::malformed(
            &path,
            format!("it is not valid JSON: {error}"),
        )),
    }
}

/// A tokenizer from a file with one token per line, and BERT's rules for splitting text into words.
fn from_vocabulary(text: &str, config: &Value, special: &Special) -> tokenizers::Result<Tokenizer> {
    let vocabulary = WordPiece::read_bytes(text.as_bytes())?;
    let model = WordPiece::builder()
        .vocab(vocabulary)
        .unk_token(special.unk.clone())
        .build()?;
    let flag = |key: &str| config[key].as_bool();
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_normalizer(Some(BertNormalizer::new(
        true,
        flag("tokenize_chinese_chars").unwrap_or(true),
        flag("strip_accents"), // absent: as `do_lower_case` says
        flag("do_lower_case").unwrap_or(true),
    )));
    tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
    tokenizer.with_decoder(Some(tokenizers::decoders::wordpiece::WordPiece::default()));
    let known: Vec<AddedToken> = [
        &special.pad,
        &special.unk,
        &special.cls,
        &special.sep,
        &special.mask,
    ]
    .into_iter()
    .filter(|token| tokenizer.token_to_id(token).is_some())
    .map(|token| AddedToken::from(token.as_str(), true))
    .collect();
    tokenizer.add_special_tokens(&known);
    Ok(tokenizer)
}
