//! The distribution of the elements of a tensor by sign and size, as a small picture.

use stratoscope_render::chart;

use super::statistics::{Bin, Statistics};

/// Powers of two on each side of 0; what is smaller is drawn in the column next to 0.
const SIDE: usize = 20;

/// A column for each power of two, negative elements on the left, zeros in the middle. Returns the picture and what it
/// shows in words.
pub(super) fn histogram(name: &str, statistics: &Statistics) -> (String, String) {
    let words = match statistics.min.is_nan() {
        true => format!("{name}: no finite element"),
        false => format!(
            "{name}: histogram by powers of two, from {} to {}, {} zero",
            super::number(statistics.min),
            super::number(statistics.max),
            super::percent(statistics.zeros, statistics.elements)
        ),
    };
    let columns = columns(&statistics.histogram());
    (chart::bars(&columns, SIDE, &words), words)
}

/// The counts of the columns from left to right.
fn columns(bins: &[Bin]) -> Vec<u64> {
    let size = |bin: &Bin| bin.low.abs().max(bin.high.abs());
    let largest = bins.iter().map(size).fold(0.0, f64::max);
    let mut columns = vec![0; 2 * SIDE + 1];
    for bin in bins {
        let place = match size(bin) {
            0.0 => 0,
            own => {
                let below = (largest / own).log2().round() as usize;
                SIDE - below.min(SIDE - 1)
            }
        };
        let index = match bin.low < 0.0 {
            true => SIDE - place,
            false => SIDE + place,
        };
        columns[index] += bin.count;
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_has_zeros_in_the_middle_and_small_numbers_beside() {
        let statistics = Statistics::of(&[0.0, 0.0, 1.0, -1.0, 1e-30, 0.5]);
        let columns = columns(&statistics.histogram());
        let at = |offset: isize| columns[(SIDE as isize + offset) as usize];
        assert_eq!((at(0), at(1), at(19), at(20), at(-20)), (2, 1, 1, 1, 1));
        assert_eq!(columns.iter().sum::<u64>(), 6);
        let (svg, words) = histogram("w<1>", &statistics);
        assert!(
            svg.contains("<title>w&lt;1&gt;: histogram") && !svg.contains("w<1>"),
            "{svg}"
        );
        assert!(words.contains("from -1.000 to 1.000, 33 % zero"), "{words}");
    }

    #[test]
    fn what_is_not_finite_is_not_drawn() {
        let (svg, words) = histogram("w", &Statistics::of(&[f32::NAN, f32::INFINITY]));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(words, "w: no finite element");
    }
}
