//! What an example counts in the training loss, by its class. Keras's `class_weight`; `"balanced"` is
//! scikit-learn's.

use std::collections::{BTreeMap, HashMap};

use stratoscope_diagnostics::check::suggest::similar;
use stratoscope_diagnostics::{Diagnostic, Result};
use stratoscope_render::text;

use crate::{Count, IntoCount};
use stratoscope_diagnostics::problem;

pub use stratoscope_metrics::loss::{ClassWeights, weighted_sum};

/// Weights of classes as written.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassWeight {
    /// One for each class, in the order of their numbers.
    InOrder(Vec<f64>),
    /// Each with its class.
    OfClasses(Vec<(ClassKey, f64)>),
    /// A text that names a way to compute them.
    Named(String),
}

/// How a class is written.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassKey {
    /// By its number.
    Number(Count),
    /// By its name.
    Name(String),
}

/// What stands for a class: its number or its name.
#[diagnostic::on_unimplemented(
    message = "expected a class, got `{Self}`",
    label = "its name, `\"games\"`, or its number, `2`"
)]
pub trait IntoClassKey {
    /// The class.
    fn into_class_key(self) -> ClassKey;
}

impl<T: IntoCount> IntoClassKey for T {
    fn into_class_key(self) -> ClassKey {
        ClassKey::Number(self.into_count())
    }
}

impl IntoClassKey for &str {
    fn into_class_key(self) -> ClassKey {
        ClassKey::Name(self.to_owned())
    }
}

impl IntoClassKey for String {
    fn into_class_key(self) -> ClassKey {
        ClassKey::Name(self)
    }
}

/// What `class_weight` takes.
#[diagnostic::on_unimplemented(
    message = "expected a weight for each class, got `{Self}`",
    label = "`{{\"games\": 3.0, \"net\": 1.0}}`, `{{0: 1.0, 1: 3.0}}`, `[1.0, 3.0]`, `[(0, 1.0), (1, 3.0)]` or `\"balanced\"`"
)]
pub trait IntoClassWeight {
    /// The weights as written.
    fn into_class_weight(self) -> ClassWeight;
}

/// A weight: a number of any type.
#[diagnostic::on_unimplemented(
    message = "expected a weight, got `{Self}`",
    label = "weights are numbers, such as `3.0`"
)]
pub trait IntoWeight {
    /// The number.
    fn into_weight(self) -> f64;
}

macro_rules! weights {
    ($($number:ty),*) => { $(
        impl IntoWeight for $number {
            fn into_weight(self) -> f64 {
                self as f64
            }
        }
    )* };
}

weights!(f32, f64, i32, i64, u32, u64, usize);

fn in_their_order<W: IntoWeight>(weights: impl IntoIterator<Item = W>) -> ClassWeight {
    ClassWeight::InOrder(weights.into_iter().map(IntoWeight::into_weight).collect())
}

impl<W: IntoWeight, const N: usize> IntoClassWeight for [W; N] {
    fn into_class_weight(self) -> ClassWeight {
        in_their_order(self)
    }
}

impl<W: IntoWeight> IntoClassWeight for Vec<W> {
    fn into_class_weight(self) -> ClassWeight {
        in_their_order(self)
    }
}

impl<K: IntoClassKey, W: IntoWeight, const N: usize> IntoClassWeight for [(K, W); N] {
    fn into_class_weight(self) -> ClassWeight {
        of_classes(self)
    }
}

impl<K: IntoClassKey, W: IntoWeight> IntoClassWeight for Vec<(K, W)> {
    fn into_class_weight(self) -> ClassWeight {
        of_classes(self)
    }
}

impl<K: IntoClassKey, W: IntoWeight> IntoClassWeight for HashMap<K, W> {
    fn into_class_weight(self) -> ClassWeight {
        of_classes(self)
    }
}

impl<K: IntoClassKey, W: IntoWeight> IntoClassWeight for BTreeMap<K, W> {
    fn into_class_weight(self) -> ClassWeight {
        of_classes(self)
    }
}

impl IntoClassWeight for &str {
    fn into_class_weight(self) -> ClassWeight {
        ClassWeight::Named(self.to_owned())
    }
}

impl IntoClassWeight for String {
    fn into_class_weight(self) -> ClassWeight {
        ClassWeight::Named(self)
    }
}

fn of_classes<K: IntoClassKey, W: IntoWeight>(
    weights: impl IntoIterator<Item = (K, W)>,
) -> ClassWeight {
    let weights = weights.into_iter();
    let weights = weights.map(|(class, weight)| (class.into_class_key(), weight.into_weight()));
    ClassWeight::OfClasses(weights.collect())
}

impl ClassWeight {
    /// The weight of each class. `counts`: how many training examples each class has.
    ///
    /// # Errors
    /// SC0103 for a class without a weight, one that does not exist or is there twice, and for a
    /// weight that is negative or not finite.
    pub fn resolve(&self, names: &[String], counts: &[usize]) -> Result<ClassWeights> {
        let weights = match self {
            Self::Named(name) if name == "balanced" => balanced(counts),
            Self::Named(name) => {
                let finding = bad(
                    format!("{name:?}"),
                    "`\"balanced\"`, or a weight for each class",
                );
                return Err(Box::new(finding));
            }
            Self::InOrder(weights) if weights.len() == names.len() => weights.clone(),
            Self::InOrder(weights) => {
                let given = format!("[{}]", text::count(weights.len(), "weight"));
                let finding = bad(given, one_for_each(names));
                return Err(Box::new(match names.get(weights.len()..) {
                    Some(missing) => finding.evidence("without a weight", text::names(missing, 8)),
                    None => finding,
                }));
            }
            Self::OfClasses(weights) => in_order(weights, names)?,
        };
        if let Some(class) = weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
            let given = format!("{} for `{}`", weights[class], names[class]);
            return Err(Box::new(bad(given, "weights that are finite and ≥ 0")));
        }
        if weights.iter().all(|&weight| weight == 0.0) {
            return Err(Box::new(bad("0 for all", "at least one weight above 0")));
        }
        let weights = weights.into_iter().map(|weight| weight as f32);
        Ok(ClassWeights::new(weights.collect()))
    }
}

/// Examples / (classes × examples of the class): each class counts the same in the end.
fn balanced(counts: &[usize]) -> Vec<f64> {
    let total: usize = counts.iter().sum();
    let seen = counts.iter().filter(|&&count| count > 0).count();
    let weight = |&count: &usize| match count {
        // A class without an example has nothing to weigh.
        0 => 1.0,
        _ => total as f64 / (seen as f64 * count as f64),
    };
    counts.iter().map(weight).collect()
}

fn in_order(weights: &[(ClassKey, f64)], names: &[String]) -> Result<Vec<f64>> {
    let mut found: Vec<Option<f64>> = vec![None; names.len()];
    for (key, weight) in weights {
        let (class, shown) = match key {
            ClassKey::Number(number) => {
                let class = number.value().and_then(|class| usize::try_from(class).ok());
                (class, number.to_string())
            }
            ClassKey::Name(name) => {
                let class = names.iter().position(|known| known == name);
                (class, format!("{name:?}"))
            }
        };
        let given = format!("({shown}, {weight})");
        let Some(slot) = class.and_then(|class| found.get_mut(class)) else {
            let finding = bad(given, one_for_each(names));
            let near = match key {
                ClassKey::Name(name) => similar(name, names.iter().map(String::as_str)),
                ClassKey::Number(_) => Vec::new(),
            };
            return Err(Box::new(match near.first() {
                Some(near) => finding.suggest(near),
                None => finding.why("the model has no such class"),
            }));
        };
        if slot.replace(*weight).is_some() {
            return Err(Box::new(bad(given, "each class once")));
        }
    }
    let without = found
        .iter()
        .zip(names)
        .filter(|(weight, _)| weight.is_none());
    let missing: Vec<&String> = without.map(|(_, name)| name).collect();
    if missing.is_empty() {
        return Ok(found.into_iter().flatten().collect());
    }
    let given = format!("[{}]", text::count(weights.len(), "weight"));
    let finding = bad(given, one_for_each(names));
    Err(Box::new(
        finding.evidence("without a weight", text::names(&missing, 8)).tensorflow(
            "Keras 2 fails at a batch with such a label, `indices[0] = 1 is not in [0, 1)`; Keras 3 says nothing",
        ),
    ))
}

fn one_for_each(names: &[String]) -> String {
    let names = text::names(names, 8);
    format!("a weight for each class: {names}")
}

fn bad(given: impl ToString, expects: impl Into<String>) -> Diagnostic {
    problem::bad_value("fit", "class_weight", given, expects)
}

/// SC0103: weights of classes for a model that has none.
pub fn without_classes() -> Box<Diagnostic> {
    let finding = bad("…", "a model of classes");
    Box::new(finding.why("the model predicts a number, and its examples have no class"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        ["admin", "fonts", "games"].map(str::to_owned).to_vec()
    }

    fn resolved(weights: impl IntoClassWeight) -> Result<Vec<f32>> {
        let weights = weights.into_class_weight().resolve(&names(), &[6, 3, 0]);
        Ok(weights?.each().to_vec())
    }

    #[test]
    fn as_a_list_as_pairs_and_balanced() {
        assert_eq!(resolved([1.0, 2.0, 0.0]), Ok(vec![1.0, 2.0, 0.0]));
        let named = [("games", 3.0), ("admin", 1.0), ("fonts", 2.0)];
        assert_eq!(resolved(named), Ok(vec![1.0, 2.0, 3.0]));
        let numbered = vec![(2, 3.0), (1, 2.0), (0, 1.0)];
        assert_eq!(resolved(numbered.clone()), Ok(vec![1.0, 2.0, 3.0]));
        let map: HashMap<i32, f64> = numbered.into_iter().collect();
        assert_eq!(resolved(map), Ok(vec![1.0, 2.0, 3.0]));
        // 9 examples of 2 classes: 9 / (2 · 6) and 9 / (2 · 3).
        assert_eq!(resolved("balanced"), Ok(vec![0.75, 1.5, 1.0]));
    }

    #[test]
    fn every_class_needs_a_weight() {
        let check = |weights: ClassWeight, words: &str| {
            let finding = resolved(weights).expect_err(words);
            assert_eq!(finding.code, "SC0103");
            assert!(format!("{finding:?}").contains(words), "{finding:?}");
        };
        check([1.0, 2.0].into_class_weight(), "`games`");
        check([1.0; 4].into_class_weight(), "`admin`, `fonts` and `games`");
        check(
            [("admin", 1.0), ("games", 1.0)].into_class_weight(),
            "`fonts`",
        );
        let slip = [("admin", 1.0), ("gmaes", 1.0), ("fonts", 1.0)];
        check(slip.into_class_weight(), "did you mean `games`?");
        check([(3, 1.0)].into_class_weight(), "no such class");
        check([(-1, 1.0)].into_class_weight(), "no such class");
        check([(0, 1.0), (0, 2.0)].into_class_weight(), "each class once");
        check([1.0, -1.0, 1.0].into_class_weight(), "-1 for `fonts`");
        check([1.0, f64::NAN, 1.0].into_class_weight(), "finite");
        check([0.0; 3].into_class_weight(), "above 0");
        check("equal".into_class_weight(), "balanced");
    }

    impl IntoClassWeight for ClassWeight {
        fn into_class_weight(self) -> ClassWeight {
            self
        }
    }
}
