//! [`Statistics`]: what is to be known of the elements of a tensor without looking at each.

/// Exponents of a float32 that is not 0, from those of numbers below the normal ones to those of the largest.
const EXPONENTS: usize = 255;

/// Norm, range, zeros and distribution of the elements of a tensor, or of several together.
///
/// n is the number of finite elements. Elements that are not finite are counted in `elements`, `nans` and `infinities`,
/// and left out of every other number.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// The number of all elements, finite or not.
    pub elements: u64,
    /// √Σx²; 0 where no element is finite.
    pub norm: f64,
    /// The root mean square √(Σx² / n); 0 where no element is finite.
    pub rms: f64,
    /// The mean Σx / n; 0 where no element is finite.
    pub mean: f64,
    /// The smallest finite element; NaN where no element is finite.
    pub min: f64,
    /// The largest finite element; NaN where no element is finite.
    pub max: f64,
    /// The number of elements that are 0 or −0.
    pub zeros: u64,
    /// The number of elements that are NaN.
    pub nans: u64,
    /// The number of elements that are ∞ or −∞.
    pub infinities: u64,
    sum: f64,
    squares: f64,
    /// How many elements have each exponent: of negative ones, then of positive ones.
    exponents: [Vec<u64>; 2],
}

/// Elements of about the same size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// The lower end.
    pub low: f64,
    /// The upper end. The end nearer to 0 belongs to the bin, the other one does not.
    pub high: f64,
    /// How many elements.
    pub count: u64,
}

impl Statistics {
    /// Of no element.
    pub fn empty() -> Self {
        Self {
            elements: 0,
            norm: 0.0,
            rms: 0.0,
            mean: 0.0,
            min: f64::NAN,
            max: f64::NAN,
            zeros: 0,
            nans: 0,
            infinities: 0,
            sum: 0.0,
            squares: 0.0,
            exponents: [Vec::new(), Vec::new()],
        }
    }

    /// Of these elements.
    pub fn of(elements: &[f32]) -> Self {
        let mut found = Self::empty();
        // Sign and exponent of a float32 are its first 9 bits.
        let mut counts = vec![0_u64; 2 * (EXPONENTS + 1)];
        for &element in elements {
            counts[(element.to_bits() >> 23) as usize] += 1;
            if element.is_finite() {
                let value = f64::from(element);
                found.sum += value;
                found.squares += value * value;
                found.min = found.min.min(value);
                found.max = found.max.max(value);
                found.zeros += u64::from(element == 0.0);
            } else if element.is_nan() {
                found.nans += 1;
            } else {
                found.infinities += 1;
            }
        }
        found.elements = elements.len() as u64;
        let (positive, negative) = counts.split_at(EXPONENTS + 1);
        found.exponents = [negative, positive].map(|counts| counts[..EXPONENTS].to_vec());
        // 0 and −0 have the exponent of the smallest numbers.
        let signed_zeros = elements
            .iter()
            .filter(|element| element.to_bits() == 1 << 31);
        let negative_zeros = signed_zeros.count() as u64;
        found.exponents[0][0] -= negative_zeros;
        found.exponents[1][0] -= found.zeros - negative_zeros;
        found.settle();
        found
    }

    /// Adds the elements of another tensor.
    pub fn merge(&mut self, other: &Self) {
        self.elements += other.elements;
        self.sum += other.sum;
        self.squares += other.squares;
        // A NaN stands for no element, and `min` and `max` prefer a number.
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.zeros += other.zeros;
        self.nans += other.nans;
        self.infinities += other.infinities;
        for (own, others) in self.exponents.iter_mut().zip(&other.exponents) {
            own.resize(own.len().max(others.len()), 0);
            for (count, other) in own.iter_mut().zip(others) {
                *count += other;
            }
        }
        self.settle();
    }

    /// The numbers that follow from the sums.
    fn settle(&mut self) {
        let finite = (self.elements - self.non_finite()).max(1) as f64;
        self.norm = self.squares.sqrt();
        self.rms = (self.squares / finite).sqrt();
        self.mean = self.sum / finite;
    }

    /// Whether both are of the same elements, as far as the numbers tell. (A NaN here equals a NaN.)
    pub fn is_same(&self, other: &Self) -> bool {
        let bits = |it: &Self| [it.min, it.max, it.sum, it.squares].map(f64::to_bits);
        let counts = |it: &Self| (it.elements, it.nans, it.infinities);
        bits(self) == bits(other)
            && counts(self) == counts(other)
            && self.exponents == other.exponents
    }

    /// The number of elements that are NaN or infinite.
    pub fn non_finite(&self) -> u64 {
        self.nans + self.infinities
    }

    /// The share of all elements, finite or not, that are 0; 0 without elements.
    pub fn zero_share(&self) -> f64 {
        self.zeros as f64 / self.elements.max(1) as f64
    }

    /// √(Σ(x − mean)² / n), computed as √(rms² − mean²).
    pub fn standard_deviation(&self) -> f64 {
        (self.rms * self.rms - self.mean * self.mean)
            .max(0.0)
            .sqrt()
    }

    /// The distribution of the finite elements: a bin for each power of two that occurs, and one from 0 to 0 for the
    /// zeros, in the order of the numbers. Their counts add up to the finite elements.
    pub fn histogram(&self) -> Vec<Bin> {
        let [negative, positive] = &self.exponents;
        let of = |counts: &[u64], sign: f64, index: usize| {
            // Exponent 0 has the numbers below 2⁻¹²⁶.
            let (low, high) = match index {
                0 => (0.0, 2_f64.powi(-126)),
                index => (
                    2_f64.powi(index as i32 - 127),
                    2_f64.powi(index as i32 - 126),
                ),
            };
            let (low, high) = match sign < 0.0 {
                true => (-high, -low),
                false => (low, high),
            };
            Bin {
                low,
                high,
                count: counts[index],
            }
        };
        let below = (0..negative.len()).rev();
        let below = below.map(|index| of(negative, -1.0, index));
        let zeros = std::iter::once(Bin {
            low: 0.0,
            high: 0.0,
            count: self.zeros,
        });
        let above = (0..positive.len()).map(|index| of(positive, 1.0, index));
        let bins = below.chain(zeros).chain(above);
        bins.filter(|bin| bin.count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_hand() {
        let found = Statistics::of(&[3.0, -4.0, 0.0, -0.0, f32::NAN, f32::NEG_INFINITY]);
        assert_eq!((found.elements, found.zeros), (6, 2));
        assert_eq!(
            (found.nans, found.infinities, found.non_finite()),
            (1, 1, 2)
        );
        assert_eq!((found.min, found.max, found.norm), (-4.0, 3.0, 5.0));
        assert_eq!((found.rms, found.mean), (2.5, -0.25));
        let bins: Vec<_> = found.histogram();
        let bins: Vec<_> = bins.iter().map(|it| (it.low, it.high, it.count)).collect();
        assert_eq!(bins, [(-8.0, -4.0, 1), (0.0, 0.0, 2), (2.0, 4.0, 1)]);
        assert!((found.standard_deviation() - (6.25_f64 - 0.0625).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn of_nothing_and_of_nothing_finite() {
        let none = Statistics::of(&[]);
        assert_eq!((none.elements, none.norm, none.zero_share()), (0, 0.0, 0.0));
        assert!(none.min.is_nan() && none.histogram().is_empty());
        let bad = Statistics::of(&[f32::NAN, f32::INFINITY]);
        assert!(bad.max.is_nan() && bad.mean == 0.0 && bad.histogram().is_empty());
        let mut merged = bad;
        merged.merge(&Statistics::of(&[2.0]));
        assert_eq!((merged.min, merged.max, merged.norm), (2.0, 2.0, 2.0));
    }

    proptest! {
        #[test]
        fn parts_together_are_the_whole(
            elements in prop::collection::vec(any::<f32>(), 0..60),
            cut in 0_usize..60,
        ) {
            let cut = cut.min(elements.len());
            let whole = Statistics::of(&elements);
            let mut parts = Statistics::of(&elements[..cut]);
            parts.merge(&Statistics::of(&elements[cut..]));
            prop_assert_eq!(whole.histogram(), parts.histogram());
            prop_assert_eq!((whole.zeros, whole.nans), (parts.zeros, parts.nans));
            // 0 and −0 are equal, and so are here two that are of no finite element.
            for (whole, parts) in [(whole.min, parts.min), (whole.max, parts.max)] {
                prop_assert!(whole == parts || whole.is_nan() && parts.is_nan());
            }
            let near = (whole.norm - parts.norm).abs() <= 1e-9 * whole.norm;
            prop_assert!(near || whole.norm == parts.norm, "{} {}", whole.norm, parts.norm);
            let counted: u64 = whole.histogram().iter().map(|bin| bin.count).sum();
            prop_assert_eq!(counted, whole.elements - whole.non_finite());
            for bin in whole.histogram() {
                let sizes = bin.low.abs().min(bin.high.abs())..bin.low.abs().max(bin.high.abs());
                let belongs = |&&x: &&f32| {
                    let x = f64::from(x);
                    match sizes.end == 0.0 {
                        true => x == 0.0,
                        false => x != 0.0 && (x < 0.0) == (bin.low < 0.0) && sizes.contains(&x.abs()),
                    }
                };
                let count = elements.iter().filter(belongs).count();
                prop_assert_eq!(count as u64, bin.count, "{:?}", bin);
            }
        }
    }
}
