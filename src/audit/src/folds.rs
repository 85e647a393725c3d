//! Folds of a cross-validation, each with every class in the same proportion.

use stratoscope_data::{Dataset, permutation};
use stratoscope_diagnostics::rules::{AuditWithoutClasses, TooFewRowsForFolds};
use stratoscope_diagnostics::{Result, Rule};

/// Which fold each row is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folds {
    of_row: Vec<usize>,
    count: usize,
}

impl Folds {
    /// Deals the rows of each class, in an order fixed by the seed, to the folds in turn.
    ///
    /// # Errors
    /// SC0723 for fewer than two folds and for a class with fewer rows than folds; a class that no row has does not count.
    pub fn stratified(
        call: &str,
        labels: &[usize],
        label_names: &[String],
        count: usize,
        seed: u64,
    ) -> Result<Self> {
        let classes = labels.iter().max().map_or(0, |largest| largest + 1);
        let mut rows = vec![Vec::new(); classes];
        for row in permutation(labels.len(), seed, 0) {
            rows[labels[row]].push(row);
        }
        let present = (0..classes).filter(|&class| !rows[class].is_empty());
        let smallest = present.min_by_key(|&class| rows[class].len());
        let fewest = smallest.map_or(0, |class| rows[class].len());
        if count < 2 || fewest < count {
            let class = smallest.and_then(|class| label_names.get(class)).cloned();
            let rule = TooFewRowsForFolds {
                call: call.to_owned(),
                folds: count,
                class: class.unwrap_or_default(),
                rows: fewest,
            };
            return Err(rule.error());
        }
        let mut of_row = vec![0; labels.len()];
        // A class begins where the one before it ended, so that folds differ by one row at most.
        for (turn, row) in rows.into_iter().flatten().enumerate() {
            of_row[row] = turn % count;
        }
        Ok(Self { of_row, count })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The rows of a fold, in their order.
    pub fn held_out(&self, fold: usize) -> Vec<usize> {
        (0..self.of_row.len())
            .filter(|&row| self.of_row[row] == fold)
            .collect()
    }

    /// The rows of the other folds, in their order.
    pub fn rest(&self, fold: usize) -> Vec<usize> {
        (0..self.of_row.len())
            .filter(|&row| self.of_row[row] != fold)
            .collect()
    }
}

/// The class of each row.
///
/// # Errors
/// SC0722 for a row without a class and for fewer than two classes among the rows.
pub fn classes_of(call: &str, data: &Dataset) -> Result<Vec<usize>> {
    let wrong = |labels: String| {
        let rule = AuditWithoutClasses {
            call: call.to_owned(),
            source: data.source.clone(),
            labels,
        };
        Err(rule.error())
    };
    let mut classes = Vec::with_capacity(data.len());
    for (row, example) in data.examples.iter().enumerate() {
        match example.class() {
            Some(class) if class < data.num_labels() => classes.push(class),
            _ => return wrong(format!("row {row} has no class")),
        }
    }
    let Some(first) = classes.first() else {
        return wrong("there is no row".to_owned());
    };
    match classes.iter().any(|class| class != first) {
        true => Ok(classes),
        false => wrong(format!(
            "all rows have the class `{}`",
            data.label_names[*first]
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        ["a", "b", "c"].map(str::to_owned).to_vec()
    }

    #[test]
    fn each_fold_has_each_class_and_each_row_is_held_out_once() {
        let labels: Vec<usize> = (0..47).map(|row| [0, 0, 0, 1, 2][row % 5]).collect();
        let folds = Folds::stratified("audit", &labels, &names(), 4, 7).expect("enough rows");
        let mut seen = vec![0; labels.len()];
        for fold in 0..folds.count() {
            let own = folds.held_out(fold);
            assert!((11..=12).contains(&own.len()), "{}", own.len());
            assert_eq!(own.len() + folds.rest(fold).len(), labels.len());
            for class in 0..3 {
                assert!(own.iter().any(|&row| labels[row] == class));
            }
            own.into_iter().for_each(|row| seen[row] += 1);
        }
        assert!(seen.iter().all(|&times| times == 1));
        let again = Folds::stratified("audit", &labels, &names(), 4, 7).expect("enough rows");
        assert_eq!(folds, again);
        assert_ne!(
            folds,
            Folds::stratified("audit", &labels, &names(), 4, 8).expect("enough rows")
        );
    }

    #[test]
    fn what_cannot_be_divided_is_an_error() {
        let labels = [0, 0, 0, 0, 1, 1];
        for (folds, fewest) in [(1, None), (3, Some("`b` has 2 rows"))] {
            let problem =
                Folds::stratified("audit", &labels, &names(), folds, 0).expect_err("too few");
            assert_eq!(problem.code, "SC0723");
            assert!(
                fewest.is_none_or(|it| problem.message.contains(it)),
                "{}",
                problem.message
            );
        }
        // A class that no row has is no reason.
        assert!(Folds::stratified("audit", &[0, 0, 2, 2], &names(), 2, 0).is_ok());
    }

    #[test]
    fn labels_have_to_be_classes() {
        let texts = Dataset::from_texts(["a", "b"]);
        let one = Dataset::from_rows(["a", "b"], ["x", "x"]).expect("rows");
        let empty = one.take(0);
        for data in [&texts, &one, &empty] {
            assert_eq!(
                classes_of("audit", data).expect_err("no classes").code,
                "SC0722"
            );
        }
        let two = Dataset::from_rows(["a", "b"], ["x", "y"]).expect("rows");
        assert_eq!(classes_of("audit", &two).expect("classes"), [0, 1]);
    }
}
