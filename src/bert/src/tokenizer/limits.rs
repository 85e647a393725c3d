//! How long a text may become while it is tokenized, and where tokenizing checks for an interrupt. A tokenizer comes from the
//! hub: six normalizers that replace `a` by a thousand `a`s would make 10¹⁸ bytes of one letter.

use std::cell::Cell;
use std::fmt;

use serde_json::Value;
use stratoscope_diagnostics::work;
use tokenizers::normalizers::{Precompiled, Replace};
use tokenizers::pattern::Pattern;
use tokenizers::utils::SysRegex;
use tokenizers::{NormalizedString, Normalizer, NormalizerWrapper};

/// What a normalized text may have beside its share by length.
const MAX_BYTES: usize = 1 << 20;
/// The largest growth of a long text. Unicode's compatibility forms make eleven bytes of one at most, of few letters.
const MAX_GROWTH: usize = 16;
/// Bytes between two checks for an interrupt.
const BYTES_BETWEEN: usize = 1 << 10;
/// A token is read by people: no decoder makes it much longer.
const MAX_DECODED_GROWTH: f64 = 1000.0;

/// Why a text has no tokens.
#[derive(Debug)]
pub(super) enum Failure {
    /// It becomes longer than it may.
    TooLong { bytes: usize, most: usize },
    /// Somebody asked to stop.
    Interrupted,
    /// For a reason that `tokenizers` gives.
    Other(tokenizers::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { bytes, most } => write!(
                f,
                "its `normalizer` makes more than {most} bytes of a text of {bytes}"
            ),
            Self::Interrupted => f.write_str("tokenizing was interrupted"),
            Self::Other(error) => error.fmt(f),
        }
    }
}

impl From<tokenizers::Error> for Failure {
    fn from(error: tokenizers::Error) -> Self {
        Self::Other(error)
    }
}

/// The normalizers of a tokenizer, one after the other.
#[derive(Debug, Default)]
pub(super) struct Normalizers(Vec<Step>);

#[derive(Debug)]
struct Step {
    normalizer: NormalizerWrapper,
    growth: Growth,
}

/// What a normalizer adds to a text.
#[derive(Debug)]
enum Growth {
    /// So many bytes for each match of a pattern.
    OfMatches(Matches, usize),
    /// So many bytes.
    OfText(usize),
    /// What its table has for the characters.
    OfTable(Box<Precompiled>),
    /// Little enough to be measured afterwards.
    Bounded,
}

#[derive(Debug)]
enum Matches {
    Of(String),
    OfRegex(Box<SysRegex>),
}

impl Normalizers {
    pub(super) fn of(normalizer: Option<&NormalizerWrapper>) -> Self {
        let mut steps = Vec::new();
        if let Some(normalizer) = normalizer {
            add(normalizer, &mut steps);
        }
        Self(steps)
    }

    /// These normalizers for one text.
    pub(super) fn for_text(&self, text: &str) -> Limited<'_> {
        Limited {
            steps: &self.0,
            bytes: text.len(),
            most: MAX_BYTES.saturating_add(text.len().saturating_mul(MAX_GROWTH)),
            made: Cell::new(0),
            unchecked: Cell::new(0),
            stop: Cell::new(None),
        }
    }
}

fn add(normalizer: &NormalizerWrapper, steps: &mut Vec<Step>) {
    let growth = match normalizer {
        NormalizerWrapper::Sequence(sequence) => {
            let all: &[NormalizerWrapper] = sequence.as_ref();
            return all.iter().for_each(|normalizer| add(normalizer, steps));
        }
        NormalizerWrapper::Replace(replace) => of_replace(replace),
        NormalizerWrapper::Prepend(prepend) => Growth::OfText(prepend.prepend.len()),
        NormalizerWrapper::Precompiled(table) => Growth::OfTable(Box::new(table.clone())),
        _ => Growth::Bounded,
    };
    steps.push(Step {
        normalizer: normalizer.clone(),
        growth,
    });
}

fn of_replace(replace: &Replace) -> Growth {
    // The pattern is private, but written.
    let written = serde_json::to_value(replace).unwrap_or_default();
    let pattern = &written["pattern"];
    let matches = match (pattern["String"].as_str(), pattern["Regex"].as_str()) {
        (Some(text), _) => Some(Matches::Of(text.to_owned())),
        (None, Some(regex)) => SysRegex::new(regex)
            .ok()
            .map(|regex| Matches::OfRegex(Box::new(regex))),
        (None, None) => None,
    };
    match matches {
        Some(matches) => Growth::OfMatches(matches, replace.content.len()),
        None => Growth::Bounded,
    }
}

impl Growth {
    /// Bytes that are added to a text: at least as many as are, and the exact number where that might be more than `room`.
    fn added(&self, text: &str, room: usize) -> usize {
        match self {
            Self::Bounded => 0,
            Self::OfText(bytes) => *bytes,
            Self::OfMatches(matches, bytes) => {
                let most = (text.len() + 1).saturating_mul(*bytes);
                if most <= room {
                    return most;
                }
                matches.count(text).saturating_mul(*bytes)
            }
            Self::OfTable(table) => {
                // A match has less than six bytes, and the first one from a character on is taken.
                let begins = text.char_indices().map(|(at, _)| at);
                let added = begins.map(|at| {
                    let mut ends = (at + 1..=text.len().min(at + 5)).rev();
                    let part = ends.find_map(|end| text.get(at..end));
                    part.and_then(|part| table.transform(part))
                        .map_or(0, str::len)
                });
                added.fold(0, usize::saturating_add)
            }
        }
    }
}

impl Matches {
    fn count(&self, text: &str) -> usize {
        match self {
            Self::Of(pattern) => text.matches(pattern.as_str()).count(),
            Self::OfRegex(regex) => {
                let found = (&**regex).find_matches(text).unwrap_or_default();
                found.iter().filter(|(_, is_match)| *is_match).count()
            }
        }
    }
}

/// The normalizers for one text, which may become so long and no longer. `tokenizers` ignores the error of a normalizer:
/// [`Self::stopped`] has the reason.
pub(super) struct Limited<'n> {
    steps: &'n [Step],
    /// Of the text.
    bytes: usize,
    most: usize,
    /// Bytes of the parts of the text that are normalized.
    made: Cell<usize>,
    /// Bytes since the last check for an interrupt.
    unchecked: Cell<usize>,
    stop: Cell<Option<Stop>>,
}

#[derive(Clone, Copy)]
enum Stop {
    TooLong,
    Interrupted,
}

impl Limited<'_> {
    /// # Errors
    /// The reason to go on no longer.
    pub(super) fn stopped(&self) -> Result<(), Failure> {
        match self.stop.get() {
            None => Ok(()),
            Some(Stop::TooLong) => Err(Failure::TooLong {
                bytes: self.bytes,
                most: self.most,
            }),
            Some(Stop::Interrupted) => Err(Failure::Interrupted),
        }
    }

    /// Of the text, as it was given.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Notes that so many bytes are next, and checks for an interrupt now and then.
    ///
    /// # Errors
    /// As [`Self::stopped`].
    pub(super) fn goes_on(&self, bytes: usize) -> Result<(), Failure> {
        let unchecked = self.unchecked.get().saturating_add(bytes);
        self.unchecked.set(unchecked);
        if unchecked >= BYTES_BETWEEN {
            self.unchecked.set(0);
            if work::requested() {
                self.stop.set(Some(Stop::Interrupted));
            }
        }
        self.stopped()
    }

    fn fits(&self, bytes: usize) -> Result<(), Failure> {
        if self.made.get().saturating_add(bytes) > self.most {
            self.stop.set(Some(Stop::TooLong));
        }
        self.stopped()
    }

    fn all(&self, text: &mut NormalizedString) -> Result<(), Failure> {
        for step in self.steps {
            let bytes = text.get().len();
            self.goes_on(bytes)?;
            let room = self.most.saturating_sub(bytes + self.made.get());
            let added = step.growth.added(text.get(), room);
            self.fits(bytes.saturating_add(added))?;
            step.normalizer.normalize(text)?;
            self.fits(text.get().len())?;
        }
        self.made.set(self.made.get() + text.get().len());
        Ok(())
    }
}

impl Normalizer for Limited<'_> {
    fn normalize(&self, text: &mut NormalizedString) -> tokenizers::Result<()> {
        self.all(text).map_err(|failure| failure.to_string().into())
    }
}

/// Checks the parts of a file whose work does not depend on a text, before `tokenizers` reads it.
///
/// # Errors
/// The reason not to read it.
pub(super) fn of_file(file: &[u8]) -> Result<(), String> {
    #[derive(serde::Deserialize)]
    struct Parts {
        normalizer: Option<NormalizerWrapper>,
        #[serde(default)]
        added_tokens: Vec<Added>,
        #[serde(default)]
        decoder: Value,
    }
    #[derive(serde::Deserialize)]
    struct Added {
        content: String,
        #[serde(default)]
        normalized: bool,
    }
    // `tokenizers` says what is wrong with other files.
    let Ok(parts) = serde_json::from_slice::<Parts>(file) else {
        return Ok(());
    };
    // They are normalized when the file is read.
    let normalizers = Normalizers::of(parts.normalizer.as_ref());
    for token in parts.added_tokens.iter().filter(|token| token.normalized) {
        let limited = normalizers.for_text(&token.content);
        // A normalizer's error is the business of `tokenizers`.
        let _ = limited.normalize(&mut NormalizedString::from(token.content.as_str()));
        limited.stopped().map_err(|failure| failure.to_string())?;
    }
    if growth_of_decoder(&parts.decoder) > MAX_DECODED_GROWTH {
        return Err("its `decoder` makes a token more than a thousand times longer".to_owned());
    }
    Ok(())
}

/// How many times longer a decoder may make a text.
fn growth_of_decoder(decoder: &Value) -> f64 {
    if let Some(decoders) = decoder["decoders"].as_array() {
        return decoders.iter().map(growth_of_decoder).product();
    }
    let content = decoder["content"].as_str().map_or(0, str::len) as f64;
    match (&decoder["type"], decoder["pattern"]["String"].as_str()) {
        (Value::String(kind), Some(pattern)) if kind == "Replace" && !pattern.is_empty() => {
            (content / pattern.len() as f64).max(1.0)
        }
        (Value::String(kind), _) if kind == "Replace" => content + 1.0,
        _ => 1.0,
    }
}
