//! Compiling a loop for the widest vectors the processor has, and the functions such loops need.
//!
//! The crate is compiled for the oldest processor of its architecture. `vectorized!` compiles a
//! function's body three times, for AVX-512, for AVX2 with FMA and for the baseline, and picks one
//! when it is called. Loops inside are plain Rust over fixed-size lanes, which rustc vectorizes.

use std::sync::atomic::{AtomicU8, Ordering};

/// What of the processor is used, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(in crate::ops) enum Level {
    /// What every processor of the architecture has.
    Baseline = 1,
    /// x86-64-v3, as far as it is needed: AVX2 and FMA.
    Avx2,
    /// x86-64-v4, likewise: AVX-512 F, VL, BW and DQ.
    Avx512,
    /// x86-64-v4 and AVX512-BF16, for products of bfloat16 numbers; loops are those of [`Self::Avx512`].
    Avx512Bf16,
    /// The same and AMX, for products of bfloat16 numbers.
    Amx,
}

/// The variable that lowers the level, for tests of what other processors compute: `x86-64-v2`,
/// `x86-64-v3` or `x86-64-v4`. It holds for the loops compiled by `vectorized!`, for bfloat16 products, whose instructions
/// none of the three names has, and for optimizers;
/// burn's own operations and matrix products choose for themselves (`tests/other_processor.sh` runs
/// them on an emulated processor).
const LIMIT: &str = "STRATOSCOPE_CPU";

/// The level in use; 0 before it is known. Process-wide, because it is a property of the processor.
static LEVEL: AtomicU8 = AtomicU8::new(0);

impl Level {
    /// All levels of this processor, the lowest first.
    pub fn of_this_processor() -> &'static [Self] {
        const ALL: [Level; 5] = [
            Level::Baseline,
            Level::Avx2,
            Level::Avx512,
            Level::Avx512Bf16,
            Level::Amx,
        ];
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = has!("avx2") && has!("fma");
            if avx2 && has!("avx512f") && has!("avx512vl") && has!("avx512bw") && has!("avx512dq") {
                return match has!("avx512bf16") {
                    true if super::bf16::amx_is_allowed() => &ALL,
                    true => &ALL[..4],
                    false => &ALL[..3],
                };
            }
            if avx2 {
                return &ALL[..2];
            }
        }
        &ALL[..1]
    }

    /// The highest level that a name allows.
    fn of_name(name: &str) -> Option<Self> {
        match name {
            "x86-64-v2" => Some(Self::Baseline),
            "x86-64-v3" => Some(Self::Avx2),
            "x86-64-v4" => Some(Self::Avx512),
            _ => None,
        }
    }

    /// Takes this level from now on, in the whole process; it must be one of this processor's.
    fn take(self) -> Self {
        LEVEL.store(self as u8, Ordering::Relaxed);
        self
    }
}

/// The level taken.
#[inline]
pub(in crate::ops) fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        1 => Level::Baseline,
        2 => Level::Avx2,
        3 => Level::Avx512,
        4 => Level::Avx512Bf16,
        5 => Level::Amx,
        _ => detected(),
    }
}

/// The best level of this processor that [`LIMIT`] allows.
#[cold]
fn detected() -> Level {
    let given = std::env::var(LIMIT).ok();
    let limit = given.as_deref().map(Level::of_name);
    if let (Some(given), Some(None)) = (&given, limit) {
        eprintln!("{LIMIT}={given} limits nothing: it is none of x86-64-v2, x86-64-v3, x86-64-v4");
    }
    let limit = limit.flatten().unwrap_or(Level::Amx);
    let levels = Level::of_this_processor().iter();
    let allowed = levels.copied().rfind(|level| *level <= limit);
    allowed.unwrap_or(Level::Baseline).take()
}

/// Runs `work` at each level of this processor and ends with the best. The level is process-wide, so callers take turns.
#[cfg(test)]
pub(in crate::ops) fn at_each_level(mut work: impl FnMut(Level)) {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    for level in Level::of_this_processor() {
        work(level.take());
    }
}

/// Whether the baseline has a fused multiply-add; where it has none, asking for it calls a function.
pub(super) const BASELINE_FMA: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

/// `fn name(arguments) { body }`, compiled per [`Level`]. Inside the body, `FMA` is a `const bool`
/// for [`multiply_add`] and the functions built on it.
macro_rules! vectorized {
    ($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $output:ty)? $body:block) => {
        $(#[$meta])*
        pub(super) fn $name($($argument: $type),*) $(-> $output)? {
            #[inline(always)]
            #[allow(clippy::extra_unused_type_parameters)]
            fn body<const FMA: bool>($($argument: $type),*) $(-> $output)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
                fn avx512($($argument: $type),*) $(-> $output)? { body::<true>($($argument),*) }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($argument: $type),*) $(-> $output)? { body::<true>($($argument),*) }
                use crate::ops::cpu::vectorized::{Level, level};
                match level() {
                    // SAFETY: `Level::take` sets levels of this processor only, whose features were detected.
                    Level::Avx512 | Level::Avx512Bf16 | Level::Amx => return unsafe { avx512($($argument),*) },
                    // SAFETY: as for AVX-512.
                    Level::Avx2 => return unsafe { avx2($($argument),*) },
                    Level::Baseline => {}
                }
            }
            body::<{ crate::ops::cpu::vectorized::BASELINE_FMA }>($($argument),*)
        }
    };
}
pub(super) use vectorized;

/// Lanes of a running sum. Sixteen fill one AVX-512 register; the order of summation is the same at
/// every level.
pub(super) const LANES: usize = 16;

/// `a · b + c`, rounded once where the processor can.
#[inline(always)]
pub(super) fn multiply_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// eˣ for x ≤ 88, to 1e-7 relative; 0 below −87, NaN of NaN.
///
/// Cody and Waite's reduction to |r| ≤ ln 2 / 2, then a polynomial of degree 6 (Cephes, `expf`).
#[inline(always)]
pub(super) fn exp<const FMA: bool>(x: f32) -> f32 {
    /// 1.5 · 2²³: added and taken away again, it rounds to an integer, whose bits stay at the end.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts, the first short enough for an exact product.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let shifted = multiply_add::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let power = shifted - ROUND;
    let r = multiply_add::<FMA>(power, -LN_2_HIGH, x);
    let r = multiply_add::<FMA>(power, -LN_2_LOW, r);
    let mut p = 1.987_569_1e-4;
    p = multiply_add::<FMA>(p, r, 1.398_2e-3);
    p = multiply_add::<FMA>(p, r, 8.333_452e-3);
    p = multiply_add::<FMA>(p, r, 4.166_579_6e-2);
    p = multiply_add::<FMA>(p, r, 1.666_666_5e-1);
    p = multiply_add::<FMA>(p, r, 0.5);
    p = multiply_add::<FMA>(p, r * r, r) + 1.0;
    let two_to_power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3F80_0000));
    if x < -87.0 { 0.0 } else { p * two_to_power }
}

/// Φ(x) and φ(x), the normal distribution and its density, to 3e-7 and 1e-7 absolute.
///
/// # Source
/// Abramowitz and Stegun 1964, formula 7.1.26 for erf; its exponential is the density's.
#[inline(always)]
pub(super) fn normal<const FMA: bool>(x: f32) -> (f32, f32) {
    /// 1 / √(2π)
    const DENSITY: f32 = 0.398_942_3;
    /// Their p / √2, since erf is taken at x / √2.
    const P: f32 = 0.231_641_9;
    let t = 1.0 / multiply_add::<FMA>(P, x.abs(), 1.0);
    // Half their coefficients: Φ has half of erf.
    let mut tail = 0.530_702_7;
    tail = multiply_add::<FMA>(tail, t, -0.726_576);
    tail = multiply_add::<FMA>(tail, t, 0.710_706_9);
    tail = multiply_add::<FMA>(tail, t, -0.142_248_37);
    tail = multiply_add::<FMA>(tail, t, 0.127_414_8);
    let e = exp::<FMA>(-0.5 * x * x);
    let tail = tail * t * e;
    (if x > 0.0 { 1.0 - tail } else { tail }, DENSITY * e)
}

/// The sum of lanes, by halves.
#[inline(always)]
pub(super) fn total(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// erf to double precision, by its Maclaurin series: good for |x| ≤ 5.
    fn erf(x: f64) -> f64 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    }

    fn everywhere(low: f32, high: f32) -> impl Iterator<Item = f32> {
        let count = 20_001;
        (0..count).map(move |i| low + (high - low) * i as f32 / (count - 1) as f32)
    }

    #[test]
    fn exp_is_exact_to_the_last_bits() {
        for x in everywhere(-86.9, 20.0) {
            let exact = f64::from(x).exp();
            for value in [exp::<true>(x), exp::<false>(x)] {
                let error = (f64::from(value) - exact).abs() / exact;
                assert!(error < 2e-7, "exp({x}) = {value}, off by {error:e}");
            }
        }
        assert_eq!(exp::<true>(0.0), 1.0);
        assert_eq!(exp::<true>(-3e38), 0.0);
        assert_eq!(exp::<false>(f32::NEG_INFINITY), 0.0);
        assert!(exp::<false>(f32::NAN).is_nan() && exp::<true>(f32::NAN).is_nan());
    }

    #[test]
    fn normal_is_close_everywhere() {
        for x in everywhere(-6.0, 6.0) {
            let exact = 0.5 * (1.0 + erf(f64::from(x) / 2f64.sqrt()));
            let density =
                (-0.5 * f64::from(x) * f64::from(x)).exp() / (2.0 * std::f64::consts::PI).sqrt();
            for (cdf, pdf) in [normal::<true>(x), normal::<false>(x)] {
                assert!(
                    (f64::from(cdf) - exact).abs() < 3e-7,
                    "cdf({x}) = {cdf}, not {exact}"
                );
                assert!((f64::from(pdf) - density).abs() < 1e-7, "pdf({x}) = {pdf}");
            }
        }
        assert_eq!(normal::<true>(40.0), (1.0, 0.0));
        assert_eq!(normal::<true>(-40.0), (0.0, 0.0));
        assert!(normal::<true>(f32::NAN).0.is_nan());
    }

    #[test]
    fn names_of_levels() {
        assert_eq!(Level::of_name("x86-64-v2"), Some(Level::Baseline));
        assert_eq!(Level::of_name("x86-64-v4"), Some(Level::Avx512));
        assert_eq!(Level::of_name("avx2"), None);
        assert_eq!(Level::of_this_processor()[0], Level::Baseline);
        assert!(Level::of_this_processor().is_sorted());
    }

    #[test]
    fn total_adds_all_lanes() {
        assert_eq!(total(std::array::from_fn(|lane| lane as f32)), 120.0);
    }
}
