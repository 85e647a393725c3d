//! Numeric examples: how wide they are, and two small generators of data that a model can learn.

use std::fmt::Display;

use stratoscope_diagnostics::Result;

use crate::dataset::Dataset;
use crate::problem;
use crate::random::RandomStream;

impl Dataset {
    /// How many numbers an example has; 0 for texts.
    pub fn num_features(&self) -> usize {
        self.examples
            .first()
            .map_or(0, |example| example.features.len())
    }
}

/// Rows of `columns` numbers in [−1, 1), each with a number that is a linear function of them plus a
/// little noise: a regression. The same seed makes the same data.
///
/// # Errors
/// SC0915 for no rows or no columns.
pub fn make_regression(rows: usize, columns: usize, seed: u64) -> Result<Dataset> {
    const CALL: &str = "make_regression";
    at_least_one(CALL, "rows", rows)?;
    at_least_one(CALL, "columns", columns)?;
    let slopes: Vec<f32> = uniform(seed, 0).take(columns).collect();
    let mut numbers = uniform(seed, 1);
    let mut noise = uniform(seed, 2);
    let x: Vec<Vec<f32>> = (0..rows)
        .map(|_| numbers.by_ref().take(columns).collect())
        .collect();
    let y: Vec<f32> = x
        .iter()
        .map(|row| {
            let sum: f32 = row.iter().zip(&slopes).map(|(x, slope)| x * slope).sum();
            sum + 0.05 * noise.next().unwrap_or_default()
        })
        .collect();
    let mut data = Dataset::from_arrays(x, y)?;
    data.source = format!("{CALL}({rows}, {columns}, {seed})");
    Ok(data)
}

/// Rows of `columns` numbers around one center per class; row i belongs to class i modulo the number of classes. The same
/// seed makes the same data.
///
/// # Errors
/// SC0915 for no rows, no columns, or fewer than two classes.
pub fn make_classification(
    rows: usize,
    columns: usize,
    classes: usize,
    seed: u64,
) -> Result<Dataset> {
    const CALL: &str = "make_classification";
    at_least_one(CALL, "rows", rows)?;
    at_least_one(CALL, "columns", columns)?;
    if classes < 2 {
        let place = problem::call(CALL);
        return Err(problem::bad_size(place, "classes", classes, "at least 2"));
    }
    let mut centers = uniform(seed, 0);
    let centers: Vec<Vec<f32>> = (0..classes)
        .map(|_| centers.by_ref().take(columns).collect())
        .collect();
    let mut noise = uniform(seed, 1);
    let x = (0..rows).map(|row| -> Vec<f32> {
        let center = &centers[row % classes];
        let near = |center: &f32| center + 0.4 * noise.next().unwrap_or_default();
        center.iter().map(near).collect()
    });
    let x: Vec<Vec<f32>> = x.collect();
    let mut data = Dataset::from_arrays(x, (0..rows).map(|row| row % classes))?;
    // With fewer rows than classes, the last classes have a name and no rows.
    data.label_names = (0..classes).map(|class| class.to_string()).collect();
    data.source = format!("{CALL}({rows}, {columns}, {classes}, {seed})");
    Ok(data)
}

/// Numbers in [−1, 1), every one of 2²⁴ equally likely.
fn uniform(seed: u64, stream: u64) -> impl Iterator<Item = f32> {
    let mut random = RandomStream::new(seed, stream);
    std::iter::repeat_with(move || {
        let bits = (random.next_u64() >> 40) as f32;
        bits / (1_u32 << 23) as f32 - 1.0
    })
}

fn at_least_one(call: &str, name: &str, given: impl Display + PartialEq<usize>) -> Result<()> {
    match given == 0 {
        true => Err(problem::bad_size(
            problem::call(call),
            name,
            given,
            "at least 1",
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Batch, Labels};
    use crate::example::{Example, Label};
    use crate::tokenize::letters::Letters;

    fn code(result: Result<Dataset>) -> String {
        result.expect_err("it is refused").code
    }

    #[test]
    fn arrays_become_batches_of_numbers() {
        let x = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
        let data = Dataset::from_arrays(x, [0, 2, 1]).unwrap();
        assert_eq!((data.num_features(), data.num_labels()), (2, 3));
        let batches: Vec<Batch> = data
            .tokenize(&Letters, 64)
            .unwrap()
            .batch(2)
            .unwrap()
            .collect();
        assert_eq!(batches[0].features, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(
            (batches[0].width(), batches[0].seq, batches[1].size()),
            (2, 0, 1)
        );
        assert_eq!(batches[0].labels, Labels::Classes(vec![0, 2]));
        let second = batches[0].split(2).remove(1).expect("a part");
        assert_eq!(second.features, [3.0, 4.0]);
        assert_eq!((second.width(), &second.rows), (2, &vec![1]));
    }

    #[test]
    fn integers_are_classes_and_floats_are_numbers() {
        let x = vec![vec![1.0], vec![2.0]];
        let label = |data: Dataset| data.examples[1].label;
        let of = Dataset::from_arrays(&x, [false, true]).unwrap();
        assert_eq!(label(of), Some(Label::Class(1)));
        let of = Dataset::from_arrays(&x, [0.5, 0.25]).unwrap();
        assert_eq!(label(of), Some(Label::Value(0.25)));
        let of = Dataset::from_arrays(&x, [3_u8, 0].iter()).unwrap();
        assert_eq!((of.num_labels(), label(of)), (4, Some(Label::Class(0))));
        assert_eq!(label(Dataset::from_features(x).unwrap()), None);
    }

    #[test]
    fn arrays_that_do_not_fit_are_refused() {
        let two = [[1.0], [2.0]];
        assert_eq!(code(Dataset::from_arrays(two, [1.0])), "SC0704");
        assert_eq!(code(Dataset::from_arrays(two, [0, -1])), "SC0301");
        assert_eq!(code(Dataset::from_arrays(two, [0, i64::MAX])), "SC0915");
        let ragged = vec![vec![1.0, 2.0], vec![3.0]];
        let error = Dataset::from_arrays(ragged, [0, 1]).expect_err("ragged");
        assert_eq!(error.code, "SC0915");
        let message = "`x[1].len()` is 1, but must be 2, the length of `x[0]`";
        assert_eq!(error.message, message);
        assert_eq!(code(Dataset::from_features([[0.0; 3]; 0])), "SC0914");
        assert_eq!(code(Dataset::from_features([[0.0; 0]; 2])), "SC0915");
    }

    #[test]
    fn generated_data_is_fixed_by_its_seed() {
        let data = make_classification(40, 3, 4, 7).unwrap();
        assert!(data == make_classification(40, 3, 4, 7).unwrap());
        assert!(data != make_classification(40, 3, 4, 8).unwrap());
        assert_eq!(data.class_counts(), [10; 4]);
        let data = make_regression(30, 5, 1).unwrap();
        assert_eq!((data.len(), data.num_features()), (30, 5));
        let largest =
            |example: &Example| example.features.iter().fold(0_f32, |a, b| a.max(b.abs()));
        assert!(data.examples.iter().all(|example| largest(example) <= 1.0));
        for refused in [
            make_regression(0, 5, 1),
            make_regression(5, 0, 1),
            make_classification(5, 5, 1, 1),
        ] {
            assert_eq!(code(refused), "SC0915");
        }
    }

    #[test]
    fn rows_of_numbers_are_the_same_row_only_if_all_numbers_are() {
        let row =
            |last: f32| -> Vec<f32> { (0..40).map(|i| if i == 39 { last } else { 0.0 }).collect() };
        let train = Dataset::from_features([row(1.0), row(2.0)]).unwrap();
        let dev = Dataset::from_features([row(2.0), row(3.0)]).unwrap();
        assert_eq!(train.overlap(&dev), [(1, 0)]);
    }
}
