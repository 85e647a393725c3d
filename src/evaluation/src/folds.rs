//! [`over_folds`]: k-fold cross-validation. The examples are divided into k parts with the shares of the classes of the whole; each
//! part is measured on once, by a model that has learned from the others. Source: Kohavi 1995, "A Study of Cross-Validation and Bootstrap
//! for Accuracy Estimation and Model Selection", section 3 (stratified).

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use stratoscope_data::{Dataset, permutation};
use stratoscope_diagnostics::Result;

use crate::bad_value;
use crate::scores::{IntoScores, Scores};
use crate::seeds::gathered;
use crate::spread::Spread;

/// Results of the same training on the folds of a data set.
#[derive(Clone, PartialEq, Serialize)]
pub struct FoldRuns {
    /// Each fold, counted from 0, with its results.
    pub runs: Vec<(u64, Scores)>,
    /// Folds whose run ended with an error, and its message.
    pub failed: Vec<(u64, String)>,
    /// Folds that were not run: the cell was interrupted.
    pub left_out: usize,
}

/// Divides `data` into this many folds and calls `run` for each with the examples of the other folds, to train on, and with those of
/// the fold, to measure on. Each class has the same share in all folds, to one example; without classes the folds are random. `seed`
/// fixes which example is in which fold.
///
/// ```no_run
/// # use stratoscope_data::make_classification;
/// # use stratoscope_evaluation::over_folds;
/// # fn main() -> stratoscope_diagnostics::Result<()> {
/// let data = make_classification(100, 4, 2, 7)?;
/// let runs = over_folds(&data, 5, 0, |train, dev| Ok((train.len() - dev.len()) as f64))?;
/// assert_eq!(runs.mean("score"), Some(60.0));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// SC0103 for fewer than two folds, and for more than there are examples; what `run` ends with for the first fold. Where a later one ends
/// with an error, or is interrupted, those that have ended are the result.
pub fn over_folds<S: IntoScores>(
    data: &Dataset,
    folds: usize,
    seed: u64,
    mut run: impl FnMut(Dataset, Dataset) -> Result<S>,
) -> Result<FoldRuns> {
    if !(2..=data.len()).contains(&folds) {
        let expects = format!("from 2 to {} folds, the number of examples", data.len());
        return Err(bad_value("over_folds", "folds", folds.to_string(), expects));
    }
    let fold_of = divided(data, folds, seed);
    let order = permutation(data.len(), seed, 0);
    let part = |is_in: &dyn Fn(usize) -> bool| {
        let chosen = order.iter().filter(|&&row| is_in(fold_of[row]));
        let mut part = data.clone();
        part.examples = chosen.map(|&row| data.examples[row].clone()).collect();
        part
    };
    let numbers: Vec<u64> = (0..folds as u64).collect();
    let (runs, failed) = gathered("fold", &numbers, &mut |fold| {
        let fold = fold as usize;
        run(part(&|own| own != fold), part(&|own| own == fold))
    })?;
    let left_out = folds - runs.len() - failed.len();
    Ok(FoldRuns {
        runs,
        failed,
        left_out,
    })
}

/// The fold of each example.
fn divided(data: &Dataset, folds: usize, seed: u64) -> Vec<usize> {
    let mut rows: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for row in permutation(data.len(), seed, 0) {
        let class = data.examples[row].class();
        rows.entry(class).or_default().push(row);
    }
    // One to each fold in turn, class after class, so that the folds are of one size, too.
    let mut fold_of = vec![0; data.len()];
    for (at, row) in rows.into_values().flatten().enumerate() {
        fold_of[row] = at % folds;
    }
    fold_of
}

impl FoldRuns {
    fn spread(&self) -> Spread<'_> {
        Spread {
            noun: "fold",
            runs: &self.runs,
        }
    }

    /// The mean over the folds; `None` where no run has this result.
    pub fn mean(&self, name: &str) -> Option<f64> {
        self.spread().mean(name)
    }

    /// The standard deviation over the folds, with n − 1; `None` for fewer than two.
    pub fn deviation(&self, name: &str) -> Option<f64> {
        self.spread().deviation(name)
    }

    fn notes(&self) -> Vec<String> {
        self.spread().notes(&self.failed, self.left_out)
    }

    /// A row for each fold, mean and deviation, as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        self.spread().to_html(&self.notes())
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        self.spread().to_plain(&self.notes())
    }
}

impl fmt::Debug for FoldRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn data(counts: &[usize]) -> Dataset {
        let rows = counts.iter().enumerate();
        let rows = rows.flat_map(|(class, &count)| {
            (0..count).map(move |row| (format!("text {class} {row}"), format!("class {class}")))
        });
        Dataset::from_labelled(rows)
    }

    #[test]
    fn every_example_is_measured_once_and_classes_keep_their_shares() {
        let data = data(&[23, 10, 4]);
        let mut measured = Vec::new();
        let found = over_folds(&data, 5, 3, |train, dev| {
            assert_eq!(train.len() + dev.len(), 37);
            assert_eq!(train.label_names, data.label_names);
            for (class, count) in [23, 10, 4].into_iter().enumerate() {
                let own = dev.class_counts()[class];
                assert!(own == count / 5 || own == count / 5 + 1, "{own} of {count}");
                assert_eq!(own + train.class_counts()[class], count);
            }
            assert!(dev.len() == 7 || dev.len() == 8);
            measured.extend(dev.examples.iter().map(|example| example.text.clone()));
            Ok([("accuracy", dev.len() as f64)])
        });
        let found = found.expect("five folds");
        assert_eq!(measured.len(), 37);
        assert_eq!(measured.iter().collect::<BTreeSet<_>>().len(), 37);
        assert!((found.mean("accuracy").expect("measured") - 37.0 / 5.0).abs() < 1e-12);
        // Sizes of 8, 8, 7, 7, 7: √(1.2 / 4).
        let deviation = found.deviation("accuracy").expect("five");
        assert!((deviation - 0.3_f64.sqrt()).abs() < 1e-12);
        assert!(
            found
                .to_plain()
                .starts_with("5 folds: accuracy 7.4000 ± 0.5477")
        );
        assert!(found.to_html().contains("<table"));
    }

    #[test]
    fn the_seed_fixes_the_folds() {
        let data = data(&[12, 12]);
        let folds = |seed: u64| {
            let mut rows = Vec::new();
            over_folds(&data, 3, seed, |_, dev| {
                rows.push(dev.examples.iter().map(|it| it.row).collect::<Vec<_>>());
                Ok(0.0)
            })
            .expect("three folds");
            rows
        };
        assert_eq!(folds(1), folds(1));
        assert_ne!(folds(1), folds(2));
    }

    #[test]
    fn numbers_of_folds_that_are_refused_and_a_fold_that_fails() {
        let data = data(&[3, 3]);
        for folds in [0, 1, 7] {
            let problem = over_folds(&data, folds, 0, |_, _| Ok(0.0)).expect_err("refused");
            assert_eq!(problem.code, "SC0103");
        }
        let mut fold = 0;
        let found = over_folds(&data, 3, 0, |_, _| {
            fold += 1;
            match fold {
                2 => Err(bad_value("fit", "epochs", "0".to_owned(), "1".to_owned())),
                _ => Ok(1.0),
            }
        });
        let plain = found.expect("two folds").to_plain();
        assert!(
            plain.contains("fold 1 ended with an error: SC0103"),
            "{plain}"
        );
    }
}
