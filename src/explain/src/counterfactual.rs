//! [`Counterfactual`]: the smallest set of words without which the text belongs to another class. Sources: Martens and Provost
//! 2014, "Explaining data-driven document classifications"; for neural networks Feng et al. 2018, "Pathologies of neural models
//! make interpretations difficult", who take words away one after the other.

use std::fmt;

use stratoscope_data::{Encoding, Tokenize};
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_diagnostics::{Result, problem};

use crate::explanation::name_of;
use crate::text::{ExplainedText, Tokens, Word};
use crate::view::{ROWS, View, largest, probabilities};

/// Texts that are tried before the search stops being exhaustive.
const MAX_TRIED: usize = 1500;

/// The smallest set of words whose removal changes the class. Shown, they are struck out in the text.
#[derive(Clone, PartialEq)]
pub struct Counterfactual {
    /// The words of the text in their order, and whether each is removed.
    pub words: Vec<(String, bool)>,
    /// The text without the removed words, with the second one of a pair; `None` if no removal changes the class.
    pub text: Option<(String, Option<String>)>,
    /// The predicted class of the whole text, and its probability.
    pub before: (String, f64),
    /// The predicted class of the rest, and its probability; that of the whole text if no removal changes the class.
    pub after: (String, f64),
    /// Whether all smaller sets, and all sets of this size up to this one, were tried. Otherwise words were taken away one
    /// after the other, the most effective one first, and none of those that are missing can be put back.
    pub is_smallest: bool,
    /// Texts that were tried.
    pub tried: usize,
}

impl Counterfactual {
    /// The removed words in the order of the text.
    pub fn removed(&self) -> Vec<String> {
        let removed = self.words.iter().filter(|(_, is_removed)| *is_removed);
        removed.map(|(word, _)| word.clone()).collect()
    }
}

/// The probabilities of texts with some words removed.
struct Trials<'a> {
    view: &'a View,
    text: &'a ExplainedText,
    words: &'a [Word],
    class: usize,
    tried: usize,
    work: Work,
}

/// A set of removed words that changes the class, with the probabilities of the rest.
type Flip = (Vec<usize>, Vec<f64>);

impl Trials<'_> {
    /// The probabilities without each of these sets.
    fn without(&mut self, sets: &[Vec<usize>]) -> Result<Vec<Vec<f64>>> {
        let mut all = Vec::with_capacity(sets.len());
        for some in sets.chunks(ROWS) {
            self.work.reached(self.tried.min(MAX_TRIED))?;
            let rows = some.iter().map(|removed| {
                let rest = self.text.without(self.words, removed);
                self.view
                    .tokenizer
                    .encode(&rest.text, rest.pair.as_deref(), self.view.max_length)
            });
            let rows = rows.collect::<Result<Vec<Encoding>>>()?;
            self.tried += rows.len();
            all.extend(
                self.view
                    .logits(&rows)
                    .iter()
                    .map(|logits| probabilities(logits)),
            );
        }
        Ok(all)
    }

    /// Of these sets the one that changes the class and leaves it the smallest probability.
    fn best_flip(&mut self, sets: Vec<Vec<usize>>) -> Result<Option<Flip>> {
        let found = self.without(&sets)?;
        let class = self.class;
        let flips = sets
            .into_iter()
            .zip(found)
            .filter(|(_, own)| largest(own) != class);
        Ok(flips.min_by(|a, b| a.1[class].total_cmp(&b.1[class])))
    }

    /// All sets of one word, of two words and so on, while there is room for all sets of a size. `None` if there is none.
    fn exhaustive(&mut self) -> Result<(Option<Flip>, usize)> {
        let words = self.words.len();
        for size in 1..words {
            let fits = count(words, size).is_some_and(|sets| self.tried + sets <= MAX_TRIED);
            if !fits {
                return Ok((None, size));
            }
            let found = self.best_flip(sets_of(words, size))?;
            if found.is_some() {
                return Ok((found, size));
            }
        }
        Ok((None, words))
    }

    /// Words taken away one after the other, each time the one without which the class is least probable, until the class
    /// changes; then those put back that are not needed.
    fn greedy(&mut self) -> Result<Option<Flip>> {
        let class = self.class;
        let mut removed: Vec<usize> = Vec::new();
        let mut found = None;
        while found.is_none() && removed.len() + 1 < self.words.len() {
            let rest = (0..self.words.len()).filter(|at| !removed.contains(at));
            let sets: Vec<Vec<usize>> = rest
                .map(|at| [removed.as_slice(), &[at]].concat())
                .collect();
            let all = self.without(&sets)?;
            let best = sets
                .into_iter()
                .zip(all)
                .min_by(|a, b| a.1[class].total_cmp(&b.1[class]));
            let Some((set, own)) = best else { break };
            removed.clone_from(&set);
            if largest(&own) != class {
                found = Some((set, own));
            }
        }
        let Some((mut set, mut own)) = found else {
            return Ok(None);
        };
        for word in removed {
            let fewer: Vec<usize> = set.iter().copied().filter(|&at| at != word).collect();
            if fewer.is_empty() {
                continue;
            }
            let mut without = self.without(std::slice::from_ref(&fewer))?;
            if largest(&without[0]) != class {
                (set, own) = (fewer, without.remove(0));
            }
        }
        Ok(Some((set, own)))
    }
}

/// Searches it.
pub(crate) fn search(view: &View, text: &ExplainedText) -> Result<Counterfactual> {
    let Tokens { encoding, words } =
        text.tokenized("counterfactual", &view.tokenizer, view.max_length)?;
    let whole = view.logits(std::slice::from_ref(&encoding)).remove(0);
    if whole.len() < 2 {
        let expects =
            "a model with at least two classes: the answer of this one is a number".to_owned();
        return Err(Box::new(problem::bad_value(
            "counterfactual",
            "model",
            "one output".to_owned(),
            expects,
        )));
    }
    let before = probabilities(&whole);
    let class = largest(&before);
    let mut trials = Trials {
        view,
        text,
        words: &words,
        class,
        tried: 0,
        work: Work::begin(("trying", "tried"), MAX_TRIED, Unit::Things("text")),
    };
    let (mut found, size) = trials.exhaustive()?;
    let is_smallest = found.is_some() || size >= words.len();
    if !is_smallest {
        found = trials.greedy()?;
    }
    let Trials { tried, work, .. } = trials;
    work.finished();
    let removed = found
        .as_ref()
        .map(|(removed, _)| removed.clone())
        .unwrap_or_default();
    let shown = words.iter().enumerate().map(|(at, word)| {
        let own = &text.side(word.in_pair)[word.range.clone()];
        (own.to_owned(), removed.contains(&at))
    });
    let named = |own: &[f64]| (name_of(view, largest(own)), own[largest(own)]);
    Ok(Counterfactual {
        words: shown.collect(),
        text: found.as_ref().map(|(removed, _)| {
            let rest = text.without(&words, removed);
            (rest.text, rest.pair)
        }),
        before: named(&before),
        after: named(found.as_ref().map_or(&before, |(_, own)| own)),
        is_smallest,
        tried,
    })
}

/// How many sets of this size there are.
fn count(words: usize, size: usize) -> Option<usize> {
    (0..size).try_fold(1_usize, |sets, at| {
        Some(sets.checked_mul(words - at)? / (at + 1))
    })
}

/// All sets of `size` of the numbers 0 to `words` − 1, in order.
fn sets_of(words: usize, size: usize) -> Vec<Vec<usize>> {
    let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..size {
        let grown = sets.iter().flat_map(|set| {
            let first = set.last().map_or(0, |last| last + 1);
            (first..words).map(move |at| [set.as_slice(), &[at]].concat())
        });
        sets = grown.collect();
    }
    sets
}

impl fmt::Debug for Counterfactual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl fmt::Display for Counterfactual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sets_of_a_size_once() {
        assert_eq!(
            sets_of(4, 2),
            [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
        );
        for (words, size) in [(5, 1), (6, 3), (7, 7)] {
            let sets = sets_of(words, size);
            assert_eq!(Some(sets.len()), count(words, size));
            assert!(sets.windows(2).all(|pair| pair[0] < pair[1]));
        }
        assert_eq!(count(500, 200), None, "more than a number holds");
    }
}
