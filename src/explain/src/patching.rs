//! Which heads and layers make the difference of two texts: by patching the activations of one into the other, and to first
//! order by gradients.
//!
//! The corrupted text is run with the clean activation of one place; the score is how much of the difference of the two texts
//! this brings back. Attribution patching estimates it by `(a_clean − a_corrupted) · ∂score/∂a` at the corrupted text. Source:
//! Nanda 2023, "Attribution patching: activation patching at industrial scale"; Syed, Rager and Conmy 2023, "Attribution patching
//! outperforms automated circuit discovery". Dimensions: S tokens, H = hidden_size, N heads.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::Tensor;
use stratoscope_bert::taps::{
    Activations, Change, Changes, NewValue, Taps, is_named, of_heads, of_layer,
};
use stratoscope_data::Encoding;
use stratoscope_diagnostics::rules::TextsNotAligned;
use stratoscope_diagnostics::{Result, Rule};

use crate::explanation::name_of;
use crate::intervention::activations;
use crate::text::ExplainedText;
use crate::view::{ROWS, View, largest};

/// How much each head and layer of the clean text changes the score of the corrupted one.
#[derive(Clone, PartialEq)]
pub struct PatchMap {
    /// Whether it is the estimate by gradients, or patching itself.
    pub is_estimate: bool,
    /// By layer and head.
    pub heads: Vec<Vec<f64>>,
    /// By layer: its whole output.
    pub layers: Vec<f64>,
    /// What is measured, in words: `logit of games − logit of net`.
    pub score: String,
    /// The score of the clean text.
    pub clean: f64,
    /// The score of the corrupted text.
    pub corrupted: f64,
    /// The clean and the corrupted text.
    pub texts: (String, String),
}

/// What is measured of the logits: one of them, or one less another.
#[derive(Clone, Copy)]
struct Score {
    of: usize,
    less: Option<usize>,
}

impl Score {
    /// The class that is predicted for the clean text, less that for the corrupted one.
    fn between(clean: &[f64], corrupted: &[f64]) -> Self {
        let (of, less) = (largest(clean), largest(corrupted));
        Self {
            of,
            less: Some(less).filter(|&it| it != of),
        }
    }

    fn value(self, logits: &[f64]) -> f64 {
        logits[self.of] - self.less.map_or(0.0, |less| logits[less])
    }

    fn words(self, view: &View) -> String {
        let of = name_of(view, self.of);
        match self.less {
            Some(less) => format!("logit of {of} − logit of {}", name_of(view, less)),
            None => format!("logit of {of}"),
        }
    }
}

/// Two texts as rows of the same length.
struct Pair {
    clean: Encoding,
    corrupted: Encoding,
    score: Score,
    scores: (f64, f64),
}

impl Pair {
    fn of(
        view: &View,
        call: &str,
        (clean, corrupted): (&ExplainedText, &ExplainedText),
    ) -> Result<Self> {
        let row = |text: &ExplainedText| -> Result<Encoding> {
            let tokens = text.tokenized(call, &view.tokenizer, view.max_length)?;
            Ok(tokens.encoding)
        };
        let rows = [row(clean)?, row(corrupted)?];
        let tokens = (rows[0].ids.len(), rows[1].ids.len());
        if tokens.0 != tokens.1 {
            let rule = TextsNotAligned {
                call: call.to_owned(),
                tokens,
                texts: (clean.to_string(), corrupted.to_string()),
            };
            return Err(rule.error());
        }
        let logits = view.logits(&rows);
        let score = Score::between(&logits[0], &logits[1]);
        let [clean, corrupted] = rows;
        Ok(Self {
            clean,
            corrupted,
            score,
            scores: (score.value(&logits[0]), score.value(&logits[1])),
        })
    }

    fn map(
        self,
        view: &View,
        texts: (&ExplainedText, &ExplainedText),
        is_estimate: bool,
        found: Found,
    ) -> PatchMap {
        PatchMap {
            is_estimate,
            heads: found.heads,
            layers: found.layers,
            score: self.score.words(view),
            clean: self.scores.0,
            corrupted: self.scores.1,
            texts: (texts.0.to_string(), texts.1.to_string()),
        }
    }
}

/// A number for each head and each layer.
struct Found {
    heads: Vec<Vec<f64>>,
    layers: Vec<f64>,
}

/// The outputs of the heads and of the layers: first those of all heads, then those of all layers.
fn places(view: &View) -> Vec<String> {
    let layers = 0..view.layers();
    layers
        .clone()
        .map(of_heads)
        .chain(layers.map(of_layer))
        .collect()
}

/// The estimate by gradients.
pub(crate) fn attributed(
    view: &View,
    clean: &ExplainedText,
    corrupted: &ExplainedText,
) -> Result<PatchMap> {
    let pair = Pair::of(view, "attribution_patching", (clean, corrupted))?;
    let places = places(view);
    let of_clean = activations(view, &pair.clean, &places);
    let of_corrupted = activations(view, &pair.corrupted, &places);
    let slopes = slopes(view, &pair, &places);
    let (layers, heads) = (view.layers(), view.heads());
    // Σ over positions and some columns of (a_clean − a_corrupted) · slope.
    let sum = |at: usize, part: usize, parts: usize| -> f64 {
        let (clean, corrupted): (&Activations, &Activations) = (&of_clean[at], &of_corrupted[at]);
        let width = clean.width;
        let own = part * width / parts..(part + 1) * width / parts;
        let numbers = clean
            .elements
            .iter()
            .zip(&corrupted.elements)
            .zip(&slopes[at]);
        let own = numbers
            .enumerate()
            .filter(|(place, _)| own.contains(&(place % width)));
        own.map(|(_, ((clean, corrupted), slope))| {
            (f64::from(*clean) - f64::from(*corrupted)) * f64::from(*slope)
        })
        .sum()
    };
    let found = Found {
        heads: (0..layers)
            .map(|layer| (0..heads).map(|head| sum(layer, head, heads)).collect())
            .collect(),
        layers: (0..layers).map(|layer| sum(layers + layer, 0, 1)).collect(),
    };
    Ok(pair.map(view, (clean, corrupted), true, found))
}

/// The gradients of the score of the corrupted text by these outputs, in their order.
fn slopes(view: &View, pair: &Pair, places: &[String]) -> Vec<Vec<f32>> {
    let found: Arc<Mutex<Vec<Vec<f32>>>> = Arc::new(Mutex::new(vec![Vec::new(); places.len()]));
    let (sink, wanted) = (Arc::clone(&found), places.to_vec());
    let taps = Taps::of_layers(move |seen| {
        let place = wanted.iter().position(|it| is_named(seen.layer, it));
        if let Some(at) = place.filter(|_| seen.is_gradient && seen.operation.is_none()) {
            let mut found = sink.lock().unwrap_or_else(PoisonError::into_inner);
            found[at] = seen.elements.to_vec();
        }
    });
    let batch = view.batch(std::slice::from_ref(&pair.corrupted));
    let embedded = view.embedded(&batch).inner();
    let leaf = Tensor::<3>::from_inner(embedded).require_grad();
    let mask = Tensor::<2>::from_inner(batch.attention_mask.inner());
    taps.during(|| {
        let logits = view.logits_of(leaf, mask); // [1, C]
        let of = logits.clone().narrow(1, pair.score.of, 1);
        let score = match pair.score.less {
            Some(less) => of - logits.narrow(1, less, 1),
            None => of,
        };
        // What is seen of the gradients is all that is wanted of them.
        drop(score.sum().backward());
    });
    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut *found)
}

/// Patching itself: many places at a time, each in a row of its own.
pub(crate) fn patched(
    view: &View,
    clean: &ExplainedText,
    corrupted: &ExplainedText,
) -> Result<PatchMap> {
    let pair = Pair::of(view, "activation_patching", (clean, corrupted))?;
    let places = places(view);
    let of_clean = activations(view, &pair.clean, &places);
    let of_clean: Vec<Arc<Activations>> = of_clean.into_iter().map(Arc::new).collect();
    let (layers, heads) = (view.layers(), view.heads());
    let of_heads = (0..layers).flat_map(|layer| (0..heads).map(move |head| (layer, Some(head))));
    let of_layers = (layers..2 * layers).map(|at| (at, None));
    let all: Vec<(usize, Option<usize>)> = of_heads.chain(of_layers).collect();
    let mut differences = Vec::with_capacity(all.len());
    for some in all.chunks(ROWS) {
        let change = |(row, &(at, head)): (usize, &(usize, Option<usize>))| Change {
            output: places[at].clone(),
            head,
            token: None,
            example: Some(row),
            value: NewValue::Copy(Arc::clone(&of_clean[at])),
        };
        let list: Vec<Change> = some.iter().enumerate().map(change).collect();
        let rows = vec![pair.corrupted.clone(); some.len()];
        let numbers: Vec<usize> = (0..some.len()).collect();
        let logits = Changes::new(list, &numbers).during(|| view.logits(&rows));
        differences.extend(logits.iter().map(|it| pair.score.value(it) - pair.scores.1));
    }
    let whole = differences.split_off(layers * heads);
    let found = Found {
        heads: differences
            .chunks(heads.max(1))
            .map(<[f64]>::to_vec)
            .collect(),
        layers: whole,
    };
    Ok(pair.map(view, (clean, corrupted), false, found))
}

impl fmt::Debug for PatchMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl fmt::Display for PatchMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}
