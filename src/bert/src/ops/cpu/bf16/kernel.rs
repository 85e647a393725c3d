//! The innermost loop of a product: up to 8 rows times up to 48 columns, whose sums stay in registers.
//!
//! 8 × 48 sums are 24 registers of 16 numbers. With one for a pair of the left factor and three for the right they are 28
//! of the 32 that AVX-512 has, and each number that is read is used 8 or 48 times. The instruction `vdpbf16ps` multiplies
//! 16 pairs at once; it takes numbers below 2⁻¹²⁶ (the subnormal ones) for 0.

use super::super::vectorized::{Level, level, multiply_add, vectorized};
use super::number::widen;

/// Rows of a block of sums.
pub(super) const HEIGHT: usize = 8;
/// Numbers of a register.
pub(super) const LANES: usize = 16;
/// Columns of a block of sums.
pub(super) const WIDTH: usize = 3 * LANES;

/// One block of a product. Distances are in elements of what is pointed to.
#[derive(Clone, Copy)]
pub(super) struct Block {
    /// The first pair of the first row of the left factor.
    pub left: *const u16,
    /// From one row of it to the next, and from one pair to the next.
    pub left_row: usize,
    pub left_pair: usize,
    /// The first pair of a panel; pairs are `width` apart.
    pub right: *const u32,
    pub width: usize,
    pub pairs: usize,
    /// At most [`HEIGHT`] rows, and at most `width` columns; `width` is at most [`WIDTH`] and a multiple of [`LANES`].
    pub into: Target,
}

/// Where the sums of a block go.
#[derive(Clone, Copy)]
pub(super) struct Target {
    /// The first element of the first row; rows are `stride` apart.
    pub first: *mut f32,
    pub stride: usize,
    pub rows: usize,
    pub columns: usize,
    /// Whether the product is added to what is there.
    pub added: bool,
    pub scale: f32,
}

impl Target {
    /// Writes `scale · sums` to the register `v` of a row, or adds it: those of the 16 that are among the columns.
    ///
    /// # Safety
    /// The processor has the instructions. The row is one of `rows`; its columns can be written, and nothing else uses
    /// them; with `added` they have values.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    #[inline]
    pub(super) unsafe fn put(&self, row: usize, v: usize, sums: std::arch::x86_64::__m512) {
        use std::arch::x86_64::{
            _mm512_add_ps, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps, _mm512_mul_ps,
            _mm512_set1_ps,
        };
        let there = self.columns.saturating_sub(v * LANES).min(LANES);
        let mask = ((1_u32 << there) - 1) as u16;
        let into = self.first.wrapping_add(row * self.stride + v * LANES);
        let mut value = _mm512_mul_ps(sums, _mm512_set1_ps(self.scale));
        // SAFETY: of the 16 elements only those among the `columns` of this row are read or written.
        unsafe {
            if self.added {
                value = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, into), value);
            }
            _mm512_mask_storeu_ps(into, mask, value);
        }
    }
}

/// A block for which the promise of [`multiply`] was given; only `multiply` makes one.
#[derive(Clone, Copy)]
pub(super) struct Promised<'a>(&'a Block);

/// `into = scale · left · right`, or `into += …`.
///
/// # Safety
/// - For each of `rows` rows and `pairs` pairs, two elements of the left factor can be read.
/// - `pairs · width` elements of the right factor can be read, `width` is 16, 32 or 48, and `columns ≤ width`.
/// - All elements of `into` can be written, and nothing else uses them; with `added` they have values.
pub(super) unsafe fn multiply(mut block: Block) {
    while block.into.rows > 0 {
        // The rows that are done are left behind, and the promise holds for the others.
        let done = some_rows(Promised(&block));
        block.left = block.left.wrapping_add(done * block.left_row);
        block.into.rows -= done;
        block.into.first = block.into.first.wrapping_add(done * block.into.stride);
    }
}

/// Computes some of the rows; returns how many.
fn some_rows(block: Promised) -> usize {
    let (rows, vectors) = (block.0.into.rows, block.0.width / LANES);
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx512Bf16 {
        macro_rules! native {
            ($rows:literal) => {
                match vectors {
                    // SAFETY: the level is set only if the processor has these instructions, and there are so many rows.
                    3 => unsafe { native::<$rows, 3>(block) },
                    // SAFETY: as above.
                    2 => unsafe { native::<$rows, 2>(block) },
                    // SAFETY: as above.
                    _ => unsafe { native::<$rows, 1>(block) },
                }
            };
        }
        match rows {
            8.. => native!(8),
            4.. => native!(4),
            2.. => native!(2),
            _ => native!(1),
        }
        // The largest power of two, and at most 8.
        return 1 << rows.ilog2().min(3);
    }
    match (rows, vectors) {
        (2.., 3) => two_by_three(block),
        (2.., 2) => two_by_two(block),
        (2.., _) => two_by_one(block),
        (_, 3) => one_by_three(block),
        (_, 2) => one_by_two(block),
        _ => one_by_one(block),
    }
    rows.min(2)
}

/// `M` rows times `V` registers with `vdpbf16ps`.
///
/// # Safety
/// The processor has the instructions, `M ≤ rows` and `V · 16 = width`.
// Indices of arrays of constant lengths: the sums stay in registers, which iterators do not ensure.
#[allow(clippy::needless_range_loop)]
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx512bf16")]
unsafe fn native<const M: usize, const V: usize>(Promised(block): Promised) {
    use std::arch::x86_64::{
        __m512bh, __m512i, _mm512_dpbf16_ps, _mm512_loadu_si512, _mm512_set1_epi32,
        _mm512_setzero_ps, _mm512_setzero_si512,
    };
    // SAFETY: both are 512 bits in which every pattern is valid.
    let numbers = |bits: __m512i| unsafe { std::mem::transmute::<__m512i, __m512bh>(bits) };
    let mut sums = [[_mm512_setzero_ps(); V]; M];
    let (mut left, mut right) = (block.left, block.right);
    for _ in 0..block.pairs {
        let mut of_right = [_mm512_setzero_si512(); V];
        for v in 0..V {
            // SAFETY: a panel has `V` · 16 elements for each pair.
            of_right[v] = unsafe { _mm512_loadu_si512(right.add(v * LANES).cast()) };
        }
        for m in 0..M {
            // SAFETY: there are two elements of this pair in each of the rows.
            let pair = unsafe { left.add(m * block.left_row).cast::<i32>().read_unaligned() };
            let of_left = numbers(_mm512_set1_epi32(pair));
            for v in 0..V {
                sums[m][v] = _mm512_dpbf16_ps(sums[m][v], of_left, numbers(of_right[v]));
            }
        }
        left = left.wrapping_add(block.left_pair);
        right = right.wrapping_add(V * LANES);
    }
    for m in 0..M {
        for v in 0..V {
            // SAFETY: there are so many rows, and the contract of `multiply` is that of `put`.
            unsafe { block.into.put(m, v, sums[m][v]) };
        }
    }
}

/// The same on any processor, with float32 numbers.
///
/// # Safety
/// `M ≤ rows` and `V · 16 = width`.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
unsafe fn emulated<const FMA: bool, const M: usize, const V: usize>(Promised(block): Promised) {
    let mut sums = [[[0.0_f32; LANES]; V]; M];
    for pair in 0..block.pairs {
        let mut of_right = [[[0.0; LANES]; V]; 2];
        for v in 0..V {
            for lane in 0..LANES {
                let place = pair * V * LANES + v * LANES + lane;
                // SAFETY: a panel has `V` · 16 elements for each pair.
                let bits = unsafe { block.right.add(place).read() };
                of_right[0][v][lane] = f32::from_bits(bits << 16);
                of_right[1][v][lane] = f32::from_bits(bits & 0xffff_0000);
            }
        }
        for (m, sums) in sums.iter_mut().enumerate() {
            let place = m * block.left_row + pair * block.left_pair;
            // SAFETY: there are two elements of this pair in each of the rows.
            let of_left = [0, 1].map(|half| widen(unsafe { block.left.add(place + half).read() }));
            for v in 0..V {
                for lane in 0..LANES {
                    let sum = sums[v][lane];
                    let sum = multiply_add::<FMA>(of_left[0], of_right[0][v][lane], sum);
                    sums[v][lane] = multiply_add::<FMA>(of_left[1], of_right[1][v][lane], sum);
                }
            }
        }
    }
    for (m, sums) in sums.iter().enumerate() {
        for (column, sum) in sums.iter().flatten().take(block.into.columns).enumerate() {
            let value = sum * block.into.scale;
            // SAFETY: the element is among the `columns` of this row, and has a value if the product is added.
            unsafe {
                let into = block.into.first.add(m * block.into.stride + column);
                into.write(if block.into.added {
                    into.read() + value
                } else {
                    value
                });
            }
        }
    }
}

macro_rules! emulated {
    ($($name:ident = $rows:literal $vectors:literal),*) => {$(
        vectorized! {
            /// [`emulated`] of one size.
            fn $name(block: Promised) {
                // SAFETY: `some_rows` picks the size by rows and width.
                unsafe { emulated::<FMA, $rows, $vectors>(block) }
            }
        }
    )*};
}
emulated!(
    one_by_one = 1 1,
    one_by_two = 1 2,
    one_by_three = 1 3,
    two_by_one = 2 1,
    two_by_two = 2 2,
    two_by_three = 2 3
);
