//! What metrics are computed from: answers, counted or kept, over a whole split.

use serde::Serialize;
use stratoscope_data::{Labels, TokenLabels};

use super::auc::Scores;
use super::correct::largest;
use super::entities::{self, OfType};
use super::own::Means;
use super::pieces::Pieces;
use super::sets::Sets;
use super::spans::Answers;
use super::{Metric, top_k};

/// Classes up to which it is kept which was taken for which.
const MOST_CONFUSED: usize = 256;

/// How often each class is a label, and how often it was predicted; empty for numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Predicted {
    /// Labels by class.
    pub labels: Vec<u64>,
    /// Predictions by class.
    pub predictions: Vec<u64>,
    /// How often each class was taken for each: a row for each label, a column for each prediction. Empty for more
    /// than 256 classes.
    pub confusion: Vec<Vec<u64>>,
    /// The names of the classes, where they are known.
    pub label_names: Vec<String>,
}

/// Labels beside predictions. Classes are counted in a confusion matrix, numbers are kept in pairs; what
/// only some metrics need is counted for them alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    pub(super) classes: usize,
    /// Row = label, column = predicted class.
    pub(super) confusion: Vec<u64>,
    /// Label and output.
    pub(super) pairs: Vec<(f64, f64)>,
    /// Where one output decides between two classes: above this it is class 1.
    pub(super) threshold: Option<f64>,
    /// Whether outputs are logits, of which probabilities are made.
    pub(super) of_logits: bool,
    /// Whether outputs are margins, which labels of −1 and 1 are compared with as they are.
    pub(super) of_margins: bool,
    /// Whether pairs are kept beside the classes: labels and probabilities, or margins, for distances and `auc`.
    pub(super) keeps_pairs: bool,
    /// How often each rank was that of the label; empty where nobody asks.
    pub(super) ranks: Vec<u64>,
    /// The probabilities of class 1, where somebody asks.
    pub(super) scores: Option<Box<Scores>>,
    /// Of tagged words: the entities by type, as many as are known so far.
    pub(super) entities: Option<Vec<OfType>>,
    /// Of questions: the best answer of each window.
    pub(super) answers: Option<Box<Answers>>,
    /// Of hidden tokens: a confusion matrix of a vocabulary would be too large.
    pub(super) pieces: Option<Pieces>,
    /// Of labels that are decided one by one.
    pub(super) sets: Option<Sets>,
    /// For metrics of one's own.
    pub(super) own: Vec<Means>,
}

impl Tally {
    /// For labels that are classes.
    pub fn of_classes(classes: usize) -> Self {
        Self {
            classes,
            confusion: vec![0; classes * classes],
            ..Self::default()
        }
    }

    /// For words with tags, which are classes.
    pub fn of_words(tags: usize) -> Self {
        Self {
            entities: Some(Vec::new()),
            ..Self::of_classes(tags)
        }
    }

    /// For answers in texts.
    pub fn of_spans() -> Self {
        Self {
            answers: Some(Box::default()),
            ..Self::default()
        }
    }

    /// For several labels a text, each taken above `threshold`.
    pub fn of_sets(labels: usize, threshold: f64) -> Self {
        Self {
            sets: Some(Sets::counting(labels, threshold)),
            ..Self::default()
        }
    }

    /// For hidden tokens.
    pub fn of_pieces() -> Self {
        Self {
            pieces: Some(Pieces::default()),
            ..Self::default()
        }
    }

    /// For labels of 0 and 1 and one output, which is class 1 above `threshold`.
    pub fn of_two_classes_by_one_output(threshold: f64) -> Self {
        Self {
            threshold: Some(threshold),
            ..Self::of_classes(2)
        }
    }

    /// The same where outputs are margins, as of a hinge loss.
    pub fn of_margins(mut self) -> Self {
        self.of_margins = true;
        self
    }

    /// For labels that are numbers.
    pub fn of_numbers() -> Self {
        Self::default()
    }

    /// The same, with what these metrics need. `of_logits`: whether outputs are logits.
    pub fn measuring(mut self, metrics: &[Metric], of_logits: bool) -> Self {
        self.of_logits = of_logits;
        for metric in metrics {
            metric.ask(|metric| metric.prepare(&mut self));
        }
        self
    }

    /// What several tallies of the same kind have counted together. Pairs come in the order of their values,
    /// so that it does not matter who counted which.
    pub(super) fn sum(tallies: &[Self]) -> Self {
        let mut tallies = tallies.iter();
        let mut sum = tallies.next().cloned().unwrap_or_default();
        for tally in tallies {
            for (count, other) in sum.confusion.iter_mut().zip(&tally.confusion) {
                *count += other;
            }
            for (count, other) in sum.ranks.iter_mut().zip(&tally.ranks) {
                *count += other;
            }
            if let (Some(scores), Some(other)) = (&mut sum.scores, &tally.scores) {
                scores.merge(other);
            }
            sum.pairs.extend_from_slice(&tally.pairs);
            if let (Some(sum), Some(other)) = (&mut sum.answers, &tally.answers) {
                sum.merge(other);
            }
            if let (Some(sum), Some(other)) = (&mut sum.pieces, &tally.pieces) {
                sum.merge(other);
            }
            if let (Some(sum), Some(other)) = (&mut sum.sets, &tally.sets) {
                sum.merge(other);
            }
            for (own, other) in sum.own.iter_mut().zip(&tally.own) {
                own.merge(other);
            }
            if let (Some(sum), Some(other)) = (&mut sum.entities, &tally.entities) {
                entities::merge(sum, other);
            }
        }
        sum.pairs.sort_by(|(label, output), (other_label, other)| {
            let by_label = label.total_cmp(other_label);
            by_label.then(output.total_cmp(other))
        });
        sum
    }

    /// What is kept, variable by variable: name, shape, bytes as they lie in memory.
    pub(super) fn state(&self) -> Vec<(&'static str, Vec<usize>, Vec<u8>)> {
        let counts = |counts: &[u64]| -> Vec<u8> {
            counts
                .iter()
                .flat_map(|count| count.to_le_bytes())
                .collect()
        };
        let mut state = Vec::new();
        if self.classes > 0 {
            let shape = vec![self.classes, self.classes];
            state.push(("metrics.confusion_matrix", shape, counts(&self.confusion)));
        }
        if self.is_of_numbers() || self.keeps_pairs {
            let pairs = self
                .pairs
                .iter()
                .flat_map(|(label, output)| [label, output]);
            let bytes = pairs.flat_map(|number| number.to_le_bytes()).collect();
            // A label and an output an example.
            state.push(("metrics.pairs", vec![self.pairs.len(), 2], bytes));
        }
        if !self.ranks.is_empty() {
            state.push(("metrics.ranks", vec![self.ranks.len()], counts(&self.ranks)));
        }
        if let Some(answers) = &self.answers {
            let (shape, bytes) = answers.state();
            state.push(("metrics.answer_scores", shape, bytes));
        }
        if let Some(sets) = &self.sets {
            let kept = sets.state();
            state.push(("metrics.labels", vec![kept.len()], counts(&kept)));
        }
        if let Some(pieces) = &self.pieces {
            state.push(("metrics.tokens", vec![5], counts(&pieces.state())));
        }
        if !self.own.is_empty() {
            let numbers: Vec<f64> = self.own.iter().flat_map(Means::state).collect();
            let shape = vec![numbers.len()];
            let bytes = numbers.into_iter().flat_map(f64::to_le_bytes).collect();
            state.push(("metrics.own", shape, bytes));
        }
        if let Some(entities) = &self.entities {
            let shape = vec![entities.len(), 3];
            state.push(("metrics.entities", shape, counts(entities.as_flattened())));
        }
        if let Some(scores) = &self.scores {
            let scores: Vec<u64> = scores.all().collect();
            state.push(("metrics.scores", vec![2, scores.len() / 2], counts(&scores)));
        }
        state
    }

    /// Whether labels and outputs are numbers, which are kept.
    pub(super) fn is_of_numbers(&self) -> bool {
        let counts = self.answers.is_some() || self.pieces.is_some() || self.sets.is_some();
        self.classes == 0 && !counts
    }

    /// Adds a batch: `outputs` has the rows of the batch, [B, C], row-major.
    pub fn add(&mut self, labels: &Labels, outputs: &[f32]) {
        for own in &mut self.own {
            own.add(labels, outputs);
        }
        let labels: Vec<f64> = match labels {
            Labels::Classes(labels) => labels.iter().map(|&label| f64::from(label)).collect(),
            Labels::Values(labels) => labels.iter().map(|&label| f64::from(label)).collect(),
            Labels::Tokens(tokens) => {
                self.add_tokens(tokens, outputs);
                return;
            }
            Labels::Spans(spans) => {
                if let Some(answers) = &mut self.answers {
                    answers.add(spans, outputs);
                }
                return;
            }
            Labels::Sets(labels) => {
                if let Some(sets) = &mut self.sets {
                    sets.add(labels, outputs);
                }
                return;
            }
            Labels::Absent | Labels::Apart { .. } => return,
        };
        // A label that is no class has no output, and counts nothing.
        let class = |label: f64| match label >= 0.0 && label.fract() == 0.0 {
            true => label as usize,
            false => usize::MAX,
        };
        if let Some(threshold) = self.threshold {
            for (label, &output) in labels.into_iter().zip(outputs) {
                let (is_one, output) = (label > 0.5, f64::from(output));
                self.add_class(is_one.into(), (output > threshold).into());
                let probability = self.probability(output);
                self.add_score(is_one, probability);
                if self.keeps_pairs {
                    let is_margin = self.of_margins;
                    self.add_number(label, if is_margin { output } else { probability });
                }
            }
        } else if self.classes > 0 {
            for (label, row) in labels.into_iter().zip(outputs.chunks_exact(self.classes)) {
                let label = class(label);
                self.add_class(label, largest(row));
                if let Some(count) = top_k::rank(label, row).and_then(|it| self.ranks.get_mut(it)) {
                    *count += 1;
                }
                if let (&[zero, one], true) = (row, label < 2) {
                    // Of two outputs the difference is the logit; of two probabilities the second is it.
                    let output = match self.of_logits {
                        true => f64::from(one) - f64::from(zero),
                        false => f64::from(one),
                    };
                    let probability = self.probability(output);
                    self.add_score(label == 1, probability);
                    if self.keeps_pairs {
                        self.add_number(label as f64, probability);
                    }
                }
            }
        } else {
            for (label, &output) in labels.into_iter().zip(outputs) {
                self.add_number(label, f64::from(output));
            }
        }
    }

    /// Adds the tokens that have a class: `outputs` are [B, S·C].
    fn add_tokens(&mut self, tokens: &TokenLabels, outputs: &[f32]) {
        if let Some(pieces) = &mut self.pieces {
            pieces.add(tokens, outputs);
        }
        if self.classes == 0 {
            return;
        }
        for (&class, row) in tokens
            .classes
            .iter()
            .zip(outputs.chunks_exact(self.classes))
        {
            let Ok(label) = usize::try_from(class) else {
                continue;
            };
            self.add_class(label, largest(row));
            if let Some(count) = top_k::rank(label, row).and_then(|it| self.ranks.get_mut(it)) {
                *count += 1;
            }
        }
        if let Some(entities) = &mut self.entities {
            entities::add(entities, tokens, self.classes, outputs);
        }
    }

    /// What an output says of class 1.
    fn probability(&self, output: f64) -> f64 {
        match self.of_logits {
            true => 1.0 / (1.0 + (-output).exp()),
            false => output,
        }
    }

    fn add_score(&mut self, is_one: bool, probability: f64) {
        if let Some(scores) = &mut self.scores {
            scores.add(is_one, probability);
        }
    }

    /// Adds one classified example. A label outside the classes is not counted.
    pub fn add_class(&mut self, label: usize, predicted: usize) {
        if label < self.classes && predicted < self.classes {
            self.confusion[label * self.classes + predicted] += 1;
        }
    }

    /// Adds one predicted number.
    pub fn add_number(&mut self, label: f64, output: f64) {
        self.pairs.push((label, output));
    }

    /// How many classes there are; 0 for numbers.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Examples of class `label` that were taken for `predicted`.
    pub fn count(&self, label: usize, predicted: usize) -> u64 {
        self.confusion
            .get(label * self.classes + predicted)
            .copied()
            .unwrap_or(0)
    }

    /// Examples of a class.
    pub fn labelled(&self, class: usize) -> u64 {
        (0..self.classes)
            .map(|predicted| self.count(class, predicted))
            .sum()
    }

    /// Examples that were taken for a class.
    pub fn predicted(&self, class: usize) -> u64 {
        (0..self.classes)
            .map(|label| self.count(label, class))
            .sum()
    }

    /// How often each class is a label, and how often it was predicted.
    pub fn predictions(&self) -> Predicted {
        let count = |of: fn(&Self, usize) -> u64| {
            let classes = 0..self.classes;
            classes.map(|class| of(self, class)).collect()
        };
        Predicted {
            labels: count(Self::labelled),
            predictions: count(Self::predicted),
            confusion: match self.classes {
                0 => Vec::new(),
                // A history has one for each epoch.
                classes if classes > MOST_CONFUSED => Vec::new(),
                classes => self
                    .confusion
                    .chunks(classes)
                    .map(<[u64]>::to_vec)
                    .collect(),
            },
            label_names: Vec::new(),
        }
    }

    /// Examples in all.
    pub fn examples(&self) -> u64 {
        if let Some(answers) = &self.answers {
            return answers.windows() as u64;
        }
        if let Some(pieces) = &self.pieces {
            return pieces.tokens();
        }
        if let Some(sets) = &self.sets {
            return sets.examples();
        }
        match self.classes {
            0 => self.pairs.len() as u64,
            _ => self.confusion.iter().sum(),
        }
    }

    /// How often each rank was that of the label: how many outputs were larger than its own.
    pub(super) fn ranks(&self) -> &[u64] {
        &self.ranks
    }

    /// The probabilities of class 1.
    pub(super) fn scores(&self) -> Option<&Scores> {
        self.scores.as_deref()
    }

    /// Labels and outputs that are numbers.
    pub fn pairs(&self) -> &[(f64, f64)] {
        &self.pairs
    }
}
