//! [`Assessment`]: what the answers of a classifier say about it, beyond one number.

mod show;

use std::fmt;

use stratoscope_diagnostics::Result;

use crate::answer::{Answer, check};
use crate::bootstrap::{Counts, Interval, Statistic, intervals};
use crate::calibration::Calibration;
use crate::threshold::Threshold;

/// One class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassScore {
    /// Its name.
    pub label: String,
    /// Examples that have it.
    pub examples: u64,
    /// The share of examples taken for it that have it; `None` where none was.
    pub precision: Option<f64>,
    /// The share of its examples that are taken for it; `None` where there is none.
    pub recall: Option<f64>,
    /// The harmonic mean of the two; `None` where the class is neither there nor predicted.
    pub f1: Option<f64>,
}

/// Answers that are wrong, those with the highest probability first.
#[derive(Clone, PartialEq)]
pub struct WrongAnswers {
    /// The answers.
    pub rows: Vec<Answer>,
    /// The names of the classes.
    pub label_names: Vec<String>,
    /// Wrong answers of the whole data set.
    pub of: usize,
}

/// What the answers of a classifier say about it: accuracy and macro F1 with intervals, every class, calibration, errors.
#[derive(Clone, PartialEq)]
pub struct Assessment {
    label_names: Vec<String>,
    answers: Vec<Answer>,
    accuracy: Interval,
    macro_f1: Interval,
    counts: Counts,
    calibration: Option<Calibration>,
}

impl PartialEq for Counts {
    fn eq(&self, other: &Self) -> bool {
        self.of_classes() == other.of_classes()
    }
}

/// Accuracy and macro F1 of answers.
struct Scored<'a> {
    answers: &'a [Answer],
    classes: usize,
}

impl Statistic<2> for Scored<'_> {
    type Gathered = Counts;

    fn add(&self, gathered: &mut Counts, example: usize) {
        let answer = &self.answers[example];
        gathered.add(self.classes, answer.label, answer.predicted);
    }

    fn end(&self, gathered: &Counts) -> [f64; 2] {
        [gathered.accuracy(), gathered.macro_f1()]
    }
}

impl Assessment {
    /// From answers about one data set. The intervals take 1000 resamples of it.
    ///
    /// # Errors
    /// SC0103 for no answer and for a class without a name; SC0520 if it is interrupted.
    pub fn of(answers: Vec<Answer>, label_names: &[String]) -> Result<Self> {
        check("assess", &answers, label_names.len())?;
        let scored = Scored {
            answers: &answers,
            classes: label_names.len(),
        };
        let [accuracy, macro_f1] = intervals(&scored, answers.len())?;
        let mut counts = Counts::default();
        (0..answers.len()).for_each(|example| scored.add(&mut counts, example));
        Ok(Self {
            label_names: label_names.to_vec(),
            accuracy,
            macro_f1,
            counts,
            calibration: Calibration::of(&answers),
            answers,
        })
    }

    /// The share of right answers, and where 95 of 100 resamples of these examples have it.
    pub fn accuracy(&self) -> Interval {
        self.accuracy
    }

    /// The mean of F1 over all classes, likewise.
    pub fn macro_f1(&self) -> Interval {
        self.macro_f1
    }

    /// Examples.
    pub fn examples(&self) -> usize {
        self.answers.len()
    }

    /// Precision, recall and F1 of each class, in the order of the labels.
    pub fn classes(&self) -> Vec<ClassScore> {
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let counts = self.counts.of_classes().iter().zip(&self.label_names);
        let class = |(&[right, labels, predicted], label): (&[u64; 3], &String)| ClassScore {
            label: label.clone(),
            examples: labels,
            precision: share(right, predicted),
            recall: share(right, labels),
            f1: share(2 * right, labels + predicted),
        };
        counts.map(class).collect()
    }

    /// Whether probabilities agree with how often the answers are right; `None` where there are none.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.calibration.as_ref()
    }

    /// The wrong answers that the model is surest of, at most `most`.
    pub fn errors(&self, most: usize) -> WrongAnswers {
        let mut wrong: Vec<&Answer> = self.answers.iter().filter(|it| !it.is_right()).collect();
        let of = wrong.len();
        wrong.sort_by(|a, b| b.confidence().total_cmp(&a.confidence()));
        WrongAnswers {
            rows: wrong.into_iter().take(most).cloned().collect(),
            label_names: self.label_names.clone(),
            of,
        }
    }

    /// Of two classes: from which probability of the second on an example is to be taken for it, for the best F1 on these
    /// examples.
    ///
    /// # Errors
    /// SC0103 for another number of classes, and where no example has the second.
    pub fn best_threshold(&self) -> Result<Threshold> {
        Threshold::of(&self.answers, &self.label_names)
    }
}

impl fmt::Debug for Assessment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl fmt::Debug for WrongAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn answers(rows: &[(usize, usize, f64)]) -> Vec<Answer> {
        let of = |(row, &(label, predicted, confidence)): (usize, &(usize, usize, f64))| {
            let mut probabilities = vec![(1.0 - confidence) / 2.0; 3];
            probabilities[predicted] = confidence;
            Answer {
                row,
                text: format!("text {row} <b>"),
                pair: None,
                label,
                predicted,
                probabilities,
            }
        };
        rows.iter().enumerate().map(of).collect()
    }

    pub(super) fn names() -> Vec<String> {
        ["games", "mail", "net"].map(str::to_owned).to_vec()
    }

    #[test]
    fn classes_errors_and_intervals() {
        let rows = [
            (0, 0, 0.9),
            (0, 1, 0.8),
            (1, 1, 0.7),
            (1, 0, 0.95),
            (1, 1, 0.6),
        ];
        let found = Assessment::of(answers(&rows), &names()).unwrap();
        assert_eq!((found.accuracy().value, found.examples()), (0.6, 5));
        assert!(found.accuracy().low < 0.6 && found.accuracy().high > 0.6);
        let classes = found.classes();
        assert_eq!(
            (classes[0].precision, classes[0].recall),
            (Some(0.5), Some(0.5))
        );
        assert_eq!((classes[2].examples, classes[2].f1), (0, None));
        let errors = found.errors(1);
        assert_eq!((errors.rows[0].row, errors.of), (3, 2));
        assert_eq!(found.best_threshold().unwrap_err().code, "SC0103");
    }

    #[test]
    fn the_page_escapes_texts_and_says_what_the_text_says() {
        let rows = [(0, 0, 0.9), (0, 1, 0.8), (1, 1, 0.7)];
        let found = Assessment::of(answers(&rows), &names()).unwrap();
        let (html, plain) = (found.to_html(), found.to_plain());
        assert!(
            !html.contains("<b>") && html.contains("text 1 &lt;b&gt;"),
            "{html}"
        );
        for words in [
            "accuracy",
            "0.6667",
            "95 %",
            "calibration error",
            "text 1",
            "games",
            "mail",
        ] {
            assert!(plain.contains(words), "{words} in\n{plain}");
            assert!(html.contains(words), "{words} in\n{html}");
        }
    }

    #[test]
    fn no_answer_and_a_class_without_a_name_are_errors() {
        for given in [answers(&[]), answers(&[(0, 0, 0.9)])] {
            let problem = Assessment::of(given, &[]).unwrap_err();
            assert_eq!(problem.code, "SC0103");
        }
    }
}
