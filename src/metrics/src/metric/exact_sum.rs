//! [`ExactSum`]: a sum of numbers that does not depend on their order, so that any number of replicas counts the same.
//! Source: Shewchuk 1997, "Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric Predicates".

/// A sum without rounding: the numbers of `parts` do not overlap, smallest first, and add up to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ExactSum {
    parts: Vec<f64>,
    /// The sum of what is not finite; 0 without any.
    beyond: f64,
}

impl ExactSum {
    /// Of some numbers.
    pub(super) fn of(numbers: &[f64]) -> Self {
        let mut sum = Self::default();
        numbers.iter().for_each(|&number| sum.add(number));
        sum
    }

    pub(super) fn add(&mut self, number: f64) {
        if !number.is_finite() {
            self.beyond += number;
            return;
        }
        let (mut carried, mut kept) = (number, 0);
        for at in 0..self.parts.len() {
            let (large, small) = match carried.abs() < self.parts[at].abs() {
                true => (self.parts[at], carried),
                false => (carried, self.parts[at]),
            };
            let sum = large + small;
            let lost = small - (sum - large);
            if lost != 0.0 {
                self.parts[kept] = lost;
                kept += 1;
            }
            carried = sum;
        }
        self.parts.truncate(kept);
        self.parts.push(carried);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.beyond += other.beyond;
        other.parts.iter().for_each(|&part| self.add(part));
    }

    /// The number that is nearest to the sum: the same for the same numbers in any order.
    pub(super) fn value(&self) -> f64 {
        let mut parts = self.parts.iter().rev().copied();
        let mut sum = parts.next().unwrap_or(0.0);
        while let Some(part) = parts.next() {
            let before = sum;
            sum = before + part;
            let lost = part - (sum - before);
            if lost != 0.0 {
                // Half of the last place is rounded by what comes below it.
                let below = parts.next().unwrap_or(0.0);
                let doubled = 2.0 * lost;
                let rounded = sum + doubled;
                if (lost < 0.0) == (below < 0.0) && below != 0.0 && rounded - sum == doubled {
                    sum = rounded;
                }
                break;
            }
        }
        sum + self.beyond
    }

    /// Numbers that add up to it.
    pub(super) fn parts(&self) -> Vec<f64> {
        let beyond = (self.beyond != 0.0).then_some(self.beyond);
        self.parts.iter().copied().chain(beyond).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_is_lost() {
        let sum = |numbers: &[f64]| ExactSum::of(numbers).value();
        assert_eq!(sum(&[]), 0.0);
        assert_eq!(sum(&[0.1; 10]), 1.0);
        assert_eq!(sum(&[1e100, 1.0, -1e100]), 1.0);
        assert_eq!(sum(&[1e16, 1.0, 1e-16]), 10_000_000_000_000_002.0);
        assert_eq!(sum(&[1e16, 1.0]), 1e16);
        assert!(sum(&[f64::NAN, 1.0]).is_nan());
        assert_eq!(sum(&[f64::INFINITY, 1.0]), f64::INFINITY);
        assert!(sum(&ExactSum::of(&[f64::NAN]).parts()).is_nan());
    }

    proptest! {
        #[test]
        fn the_order_does_not_matter(
            numbers in prop::collection::vec(-1e9_f64..1e9, 0..60),
            cut in 0_usize..60,
        ) {
            let whole = ExactSum::of(&numbers).value();
            let mut reversed = numbers.clone();
            reversed.reverse();
            prop_assert_eq!(ExactSum::of(&reversed).value().to_bits(), whole.to_bits());
            let (first, second) = numbers.split_at(cut.min(numbers.len()));
            let mut merged = ExactSum::of(second);
            merged.merge(&ExactSum::of(first));
            prop_assert_eq!(merged.value().to_bits(), whole.to_bits());
            let again = ExactSum::of(&merged.parts());
            prop_assert_eq!(again.value().to_bits(), whole.to_bits());
        }
    }
}
