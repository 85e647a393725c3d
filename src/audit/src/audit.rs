//! [`Audit`]: what is wrong with a data set, in one value.

use std::fmt;

use stratoscope_data::Dataset;
use stratoscope_diagnostics::{Result, problem};
use stratoscope_evaluation::{Answer, Assessment};

use crate::confident::ConfidentLearning;
use crate::folds::{Folds, classes_of};
use crate::map::EmbeddingMap;
use crate::near_duplicates::{self, NearDuplicates};
use crate::options::AuditOptions;
use crate::outliers::{Outlier, by_distance};
use crate::probe::Probe;
use crate::slices::Slices;

/// A row with what a classifier says that has not seen it.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditedRow {
    /// Its row in the data set, counted from 0, as `data.relabel`, `data.drop_examples` and `run.drop_examples` count.
    pub row: usize,
    /// Its text; of a pair both.
    pub text: String,
    /// The name of its label.
    pub label: String,
    /// The name of the most probable class.
    pub predicted: String,
    /// The probability of its label.
    pub of_label: f64,
    /// The probability of the most probable class.
    pub of_predicted: f64,
}

/// Rows that an audit points at, the most suspicious one first. Shown, the first ones are a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// The rows.
    pub rows: Vec<AuditedRow>,
    /// For outliers, how far its distance is above the median, in robust standard deviations; empty for labels.
    pub z_scores: Vec<f64>,
    pub(crate) of: usize,
}

impl Findings {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Those whose suggestion has at least this probability: `audit.wrong_labels().surer_than(0.6)`.
    #[must_use]
    pub fn surer_than(&self, probability: f64) -> Self {
        let kept = |at: &usize| self.rows[*at].of_predicted >= probability;
        let kept: Vec<usize> = (0..self.rows.len()).filter(kept).collect();
        Self {
            rows: kept.iter().map(|&at| self.rows[at].clone()).collect(),
            z_scores: kept
                .iter()
                .filter_map(|&at| self.z_scores.get(at).copied())
                .collect(),
            of: self.of,
        }
    }

    /// Their numbers, for `data.drop_examples(…)` and `run.drop_examples(…)`.
    pub fn row_numbers(&self) -> Vec<usize> {
        self.rows.iter().map(|row| row.row).collect()
    }

    /// Each row with the class that is most probable for it, for `data.relabel(…)`. Read the texts first: a classifier may be
    /// wrong where a label is right.
    pub fn suggestions(&self) -> Vec<(usize, String)> {
        self.rows
            .iter()
            .map(|row| (row.row, row.predicted.clone()))
            .collect()
    }
}

/// What is wrong with a data set. Shown, it is a page; each method is a part of it.
#[derive(Clone, PartialEq)]
pub struct Audit {
    rows: Vec<AuditedRow>,
    answers: Vec<Answer>,
    label_names: Vec<String>,
    confident: ConfidentLearning,
    /// All rows, the farthest first.
    distances: Vec<Outlier>,
    duplicates: NearDuplicates,
    slices: Slices,
    map: EmbeddingMap,
    /// What the probabilities are from, in words.
    pub(crate) origin: String,
}

impl Audit {
    /// Audits data whose rows have these vectors, such as those of a sentence encoder. Probabilities are out of sample: those
    /// of a softmax regression on the vectors of the other folds, unless the options have others.
    ///
    /// # Errors
    /// SC0722 for data without a class for each row, or with one class; SC0723 for a class with fewer rows than folds; SC0103
    /// for a similarity that is none, for vectors or probabilities of other rows or classes, and for splits with the same name;
    /// SC0520 if it is interrupted.
    pub fn of(data: &Dataset, vectors: &[Vec<f32>], options: &AuditOptions) -> Result<Self> {
        let labels = classes_of("audit", data)?;
        let classes = data.num_labels();
        check(data, vectors, options)?;
        let (probabilities, origin) = match &options.probabilities {
            Some(own) => (own.clone(), "the probabilities that were given".to_owned()),
            None => {
                let folds = options.folds;
                let folds =
                    Folds::stratified("audit", &labels, &data.label_names, folds, options.seed)?;
                let found = Probe::out_of_fold(vectors, &labels, classes, &folds)?;
                let origin = format!(
                    "a softmax regression on the vectors, {}-fold cross-validation",
                    folds.count()
                );
                (found, origin)
            }
        };
        let confident = ConfidentLearning::of(&labels, &probabilities);
        let rows = rows(data, &labels, &probabilities, &confident);
        let answers = answers(data, &labels, &probabilities, &confident);
        let is_wrong: Vec<bool> = answers.iter().map(|answer| !answer.is_right()).collect();
        let mut splits = vec![("data", data)];
        splits.extend(
            options
                .splits
                .iter()
                .map(|(name, data)| (name.as_str(), data)),
        );
        let duplicates = near_duplicates::above("audit", &splits, options.similarity)?;
        let distances = by_distance(vectors);
        let far = distances.iter().filter(|it| it.is_outlier());
        let marks = vec![
            ("suspicious labels".to_owned(), confident.wrong_labels()),
            ("outliers".to_owned(), far.map(|it| it.row).collect()),
        ];
        let map = EmbeddingMap::of(vectors, (labels, data.label_names.clone()), marks);
        Ok(Self {
            rows,
            answers,
            label_names: data.label_names.clone(),
            confident,
            distances,
            duplicates,
            slices: Slices::of(data, &is_wrong, &options.slices),
            map,
            origin,
        })
    }

    /// Rows whose label is probably wrong, the least probable label first: [`ConfidentLearning::wrong_labels`].
    pub fn wrong_labels(&self) -> Findings {
        let rows = self.confident.wrong_labels();
        Findings {
            rows: rows.iter().map(|&row| self.rows[row].clone()).collect(),
            z_scores: Vec::new(),
            of: self.rows.len(),
        }
    }

    /// Rows that are like no other, the farthest first.
    pub fn outliers(&self) -> Findings {
        let count = self
            .distances
            .iter()
            .take_while(|it| it.is_outlier())
            .count();
        self.farthest(count)
    }

    /// The `count` rows that are farthest from the others, whether they are outliers or not.
    pub fn farthest(&self, count: usize) -> Findings {
        let far = || self.distances.iter().take(count);
        Findings {
            rows: far().map(|it| self.rows[it.row].clone()).collect(),
            z_scores: far().map(|it| it.z_score).collect(),
            of: self.rows.len(),
        }
    }

    /// Rows that are nearly the same, within the data (its split has the name `data`) and between it and the splits of the
    /// options.
    pub fn duplicates(&self) -> &NearDuplicates {
        &self.duplicates
    }

    /// The parts of the data whose error was compared with that of the rest.
    pub fn slices(&self) -> &Slices {
        &self.slices
    }

    /// The rows as points.
    pub fn map(&self) -> &EmbeddingMap {
        &self.map
    }

    /// The joint estimate of labels and classes, the thresholds and the quality of each label.
    pub fn confident_learning(&self) -> &ConfidentLearning {
        &self.confident
    }

    /// All rows in their order.
    pub fn rows(&self) -> &[AuditedRow] {
        &self.rows
    }

    /// Accuracy and macro F1 of the out-of-sample answers, with intervals.
    ///
    /// # Errors
    /// SC0520 if it is interrupted.
    pub fn assess(&self) -> Result<Assessment> {
        Assessment::of(self.answers.clone(), &self.label_names)
    }

    /// The share of out-of-sample answers that agree with their labels.
    pub fn accuracy(&self) -> f64 {
        let right = self
            .answers
            .iter()
            .filter(|answer| answer.is_right())
            .count();
        right as f64 / self.answers.len().max(1) as f64
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

/// SC0103 for values that do not fit the data.
fn check(data: &Dataset, vectors: &[Vec<f32>], options: &AuditOptions) -> Result<()> {
    let (rows, classes) = (data.len(), data.num_labels());
    let similarity = options.similarity;
    // This form of the condition also refuses NaN.
    if !(similarity > 0.0 && similarity <= 1.0) {
        let expects = "above 0 and at most 1".to_owned();
        return Err(Box::new(problem::bad_value(
            "audit",
            "similarity",
            similarity.to_string(),
            expects,
        )));
    }
    let width = vectors.first().map_or(0, Vec::len);
    if vectors.len() != rows
        || vectors
            .iter()
            .any(|it| it.len() != width || it.iter().any(|x| !x.is_finite()))
    {
        let given = format!("{} vectors", vectors.len());
        let expects = format!("{rows}, one for each row, of equal lengths and with finite numbers");
        return Err(Box::new(problem::bad_value(
            "audit", "vectors", given, expects,
        )));
    }
    let Some(probabilities) = &options.probabilities else {
        return Ok(());
    };
    let is_probability = |p: &f64| (-1e-6..=1.0 + 1e-6).contains(p);
    let wrong = probabilities
        .iter()
        .position(|own| own.len() != classes || !own.iter().all(is_probability));
    if probabilities.len() != rows || wrong.is_some() {
        let given = match wrong {
            Some(row) => format!("{:?} for row {row}", probabilities[row]),
            None => format!("{} rows", probabilities.len()),
        };
        let expects = format!("{rows} rows of {classes} numbers from 0 to 1, one for each class");
        return Err(Box::new(problem::bad_value(
            "audit",
            "probabilities",
            given,
            expects,
        )));
    }
    Ok(())
}

fn rows(
    data: &Dataset,
    labels: &[usize],
    probabilities: &[Vec<f64>],
    confident: &ConfidentLearning,
) -> Vec<AuditedRow> {
    let name = |class: usize| data.label_names[class].clone();
    let row = |(row, example): (usize, &stratoscope_data::Example)| {
        let predicted = confident.predicted(row);
        AuditedRow {
            row,
            text: example.texts(),
            label: name(labels[row]),
            predicted: name(predicted),
            of_label: probabilities[row][labels[row]],
            of_predicted: probabilities[row][predicted],
        }
    };
    data.examples.iter().enumerate().map(row).collect()
}

fn answers(
    data: &Dataset,
    labels: &[usize],
    probabilities: &[Vec<f64>],
    confident: &ConfidentLearning,
) -> Vec<Answer> {
    let answer = |(row, example): (usize, &stratoscope_data::Example)| Answer {
        row,
        text: example.text.clone(),
        pair: example.pair.clone(),
        label: labels[row],
        predicted: confident.predicted(row),
        probabilities: probabilities[row].clone(),
    };
    data.examples.iter().enumerate().map(answer).collect()
}

#[cfg(test)]
mod tests {
    use stratoscope_data::random;

    use super::*;

    fn noise(seed: usize) -> f32 {
        (random::mix(seed as u64 + 1) >> 40) as f32 / (1 << 24) as f32 - 0.5
    }

    /// Two clouds with two wrong labels, a copy and a row that is like no other.
    fn planted() -> (Dataset, Vec<Vec<f32>>) {
        // Sixteen letters by chance, so that no two texts are similar.
        let letters = |row: usize| {
            let letter = |at: usize| b'a' + (random::mix((row * 16 + at + 1) as u64) % 26) as u8;
            (0..16).map(|at| char::from(letter(at))).collect::<String>()
        };
        let mut texts: Vec<String> = (0..100)
            .map(|row| format!("{} {}", ["cats", "dogs"][row % 2], letters(row)))
            .collect();
        texts[60] = texts[8].to_uppercase();
        let labels =
            (0..100).map(|row| ["cat", "dog"][(row + usize::from([5, 30].contains(&row))) % 2]);
        let data = Dataset::from_rows(texts, labels).expect("rows");
        let vectors = (0..100).map(|row| {
            let center = if row == 77 {
                [-3.0, -3.0, 0.2]
            } else {
                [[2.0, 0.0, 0.1], [0.0, 2.0, 0.1]][row % 2]
            };
            (0..3)
                .map(|at| center[at] + 0.4 * noise(3 * row + at))
                .collect()
        });
        (data, vectors.collect())
    }

    #[test]
    fn planted_faults_are_found() {
        let (data, vectors) = planted();
        let options = AuditOptions::new().split("dev", &data.rows([3]).expect("a row"));
        let audit = Audit::of(&data, &vectors, &options).expect("classes");
        let mut wrong = audit.wrong_labels().row_numbers();
        wrong.sort_unstable();
        assert_eq!(wrong, [5, 30]);
        assert_eq!(audit.outliers().row_numbers()[0], 77);
        assert!(
            audit.outliers().len() < 6,
            "{}",
            audit.outliers().to_plain()
        );
        assert_eq!(audit.duplicates().surplus("data"), [60]);
        assert_eq!(audit.duplicates().surplus("dev"), [0]);
        let corrected = data
            .relabel(audit.wrong_labels().suggestions())
            .expect("its own rows");
        let again = Audit::of(&corrected, &vectors, &AuditOptions::new()).expect("classes");
        assert!(again.wrong_labels().is_empty() && again.accuracy() > audit.accuracy());
        assert_eq!(audit.assess().expect("no interrupt").examples(), 100);
        let (page, plain) = (audit.to_html(), audit.to_plain());
        for part in ["suspicious", "outlier", "near-duplicate", "map of 100 rows"] {
            assert!(plain.contains(part), "{part}: {plain}");
        }
        assert!(page.contains("<img") && !page.contains("<svg") && !page.contains("<script"));
    }

    #[test]
    fn probabilities_of_a_model_of_your_own_are_taken() {
        let (data, vectors) = planted();
        let sure = |row: usize| {
            if row.is_multiple_of(2) {
                vec![0.9, 0.1]
            } else {
                vec![0.1, 0.9]
            }
        };
        let own: Vec<Vec<f64>> = (0..100).map(sure).collect();
        let audit = Audit::of(
            &data,
            &vectors,
            &AuditOptions::new().probabilities(own.clone()),
        )
        .expect("classes");
        assert_eq!(audit.accuracy(), 0.98);
        for bad in [
            own[..9].to_vec(),
            vec![vec![0.5]; 100],
            vec![vec![2.0, -1.0]; 100],
            vec![vec![f64::NAN, 0.5]; 100],
        ] {
            let problem = Audit::of(&data, &vectors, &AuditOptions::new().probabilities(bad))
                .expect_err("no probabilities");
            assert_eq!(problem.code, "SC0103");
        }
    }

    #[test]
    fn what_cannot_be_audited() {
        let (data, vectors) = planted();
        let code = |data: &Dataset, vectors: &[Vec<f32>], options: AuditOptions| {
            Audit::of(data, vectors, &options)
                .expect_err("bad input")
                .code
        };
        let new = AuditOptions::new;
        assert_eq!(
            code(&Dataset::from_texts(["a"]), &vectors[..1], new()),
            "SC0722"
        );
        assert_eq!(code(&data, &vectors, new().folds(60)), "SC0723");
        assert_eq!(code(&data, &vectors, new().folds(1)), "SC0723");
        assert_eq!(code(&data, &vectors[..9], new()), "SC0103");
        assert_eq!(code(&data, &vectors, new().similarity(f64::NAN)), "SC0103");
        assert_eq!(code(&data, &vectors, new().split("data", &data)), "SC0103");
        assert_eq!(code(&data, &vec![vec![f32::NAN]; 100], new()), "SC0103");
    }
}
