//! What 16-bit numbers would lose of the gradients of a real batch: why mixed precision needs a scaled loss or
//! bfloat16 (SC0511). `mixed_precision` has the policies that train so.

use std::fmt;

use stratoscope_diagnostics::rules::HalfPrecisionUnderflow;
use stratoscope_diagnostics::{Result, Rule};

use crate::gradients::Gradients;
use stratoscope_arguments::context::warnings::notice;

/// Half of float16's smallest number, 2⁻²⁴: what is not above it is rounded to 0.
const ZERO_IN_F16: f32 = 1.0 / (1_u32 << 25) as f32;
/// The smallest number that float16 rounds to infinity.
const INFINITE_IN_F16: f32 = 65_520.0;
/// Half of bfloat16's smallest number, 2⁻¹³³: bits of an f32 that lies below the normal ones.
const ZERO_IN_BF16: f32 = f32::from_bits(1 << 15);

/// How many elements of a gradient a 16-bit format would make 0, or infinite.
#[derive(Clone, Debug, PartialEq)]
pub struct HalfPrecision {
    /// Elements other than 0.
    pub elements: usize,
    /// Of these, 0 in float16.
    pub zero_in_f16: usize,
    /// Infinite in float16.
    pub infinite_in_f16: usize,
    /// 0 in bfloat16.
    pub zero_in_bf16: usize,
    /// The largest power of two, at most 65 536, by which nothing comes near float16's end.
    pub scale: f64,
    /// 0 in float16 after multiplication with `scale`.
    pub zero_when_scaled: usize,
}

/// What 16-bit formats would lose of these gradients: `half_precision(&model.gradients(&batch)?)?`.
///
/// # Errors
/// SC0511, where it is denied.
pub fn half_precision(gradients: &Gradients) -> Result<HalfPrecision> {
    let found = HalfPrecision::of(gradients.elements().collect::<Vec<_>>().as_slice());
    let rule = HalfPrecisionUnderflow {
        zero_in_f16: found.share(found.zero_in_f16),
        zero_in_bf16: found.share(found.zero_in_bf16),
        zero_when_scaled: found.share(found.zero_when_scaled),
        scale: found.scale,
    };
    if let Some(diagnostic) = rule.check() {
        notice(diagnostic)?;
    }
    Ok(found)
}

impl HalfPrecision {
    fn of(elements: &[f32]) -> Self {
        let sizes = || elements.iter().map(|x| x.abs()).filter(|&x| x > 0.0);
        let largest = sizes().fold(0.0, f32::max);
        let mut scale = 65_536.0_f32;
        while scale > 1.0 && largest * scale >= INFINITE_IN_F16 / 2.0 {
            scale /= 2.0;
        }
        Self {
            elements: sizes().count(),
            zero_in_f16: sizes().filter(|&x| x <= ZERO_IN_F16).count(),
            infinite_in_f16: sizes().filter(|&x| x >= INFINITE_IN_F16).count(),
            zero_in_bf16: sizes().filter(|&x| x <= ZERO_IN_BF16).count(),
            zero_when_scaled: sizes().filter(|&x| x * scale <= ZERO_IN_F16).count(),
            scale: f64::from(scale),
        }
    }

    /// A count as a share of the elements.
    pub fn share(&self, count: usize) -> f64 {
        count as f64 / self.elements.max(1) as f64
    }

    fn rows(&self) -> [(String, usize); 4] {
        [
            ("0 in float16".to_owned(), self.zero_in_f16),
            (
                format!("0 in float16, loss × {}", self.scale),
                self.zero_when_scaled,
            ),
            ("infinite in float16".to_owned(), self.infinite_in_f16),
            ("0 in bfloat16".to_owned(), self.zero_in_bf16),
        ]
    }
}

impl fmt::Display for HalfPrecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elements = stratoscope_render::text::thousands(self.elements);
        writeln!(f, "of {elements} gradient elements other than 0:")?;
        for (what, count) in self.rows() {
            let percent = 100.0 * self.share(count);
            writeln!(f, "  {what:32} {percent:6.2} %")?;
        }
        f.write_str(
            "training computes in float32 unless `set_global_policy(\"mixed_float16\")` was called, and then the \
             loss is scaled",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_float16() {
        // 2⁻²⁵ is a tie and goes to the even one, 0; anything above becomes 2⁻²⁴.
        let smallest = 2_f32.powi(-24);
        let found = HalfPrecision::of(&[
            0.0,
            smallest,
            smallest / 2.0,
            -smallest / 4.0,
            0.51 * smallest,
        ]);
        assert_eq!((found.elements, found.zero_in_f16), (4, 2));
        assert_eq!((found.zero_in_bf16, found.zero_when_scaled), (0, 0));
        assert_eq!(found.scale, 65_536.0);
        let large = HalfPrecision::of(&[70_000.0, 1.0]);
        assert_eq!((large.infinite_in_f16, large.scale), (1, 1.0));
        assert_eq!(HalfPrecision::of(&[8.0]).scale, 2048.0);
    }

    #[test]
    fn bfloat16_reaches_as_far_as_float32() {
        let found = HalfPrecision::of(&[f32::MIN_POSITIVE, f32::from_bits(1)]);
        assert_eq!((found.zero_in_bf16, found.zero_in_f16), (1, 2));
    }
}
