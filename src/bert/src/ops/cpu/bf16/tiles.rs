//! Products on the matrix unit of newer processors (AMX), which multiplies tiles: 16 rows of 16 pairs of bfloat16 numbers
//! by 16 pairs of 16 columns, with 256 float32 sums. Of the eight tile registers six hold the sums of 32 rows times 48
//! columns; the other two hold one tile of each factor.
//!
//! A panel of the right factor has the order that the unit wants, and rows of the left one are read where they are. Where
//! they do not fill the tiles, or are the columns of panels, they are copied into tiles once for all panels, with zeros
//! behind them. The inner dimension is summed in parts of [`PAIRS`], so that the part of a panel stays in the
//! first-level cache; the parts are added in order. So an element is summed in the same order however the product is
//! divided. As `vdpbf16ps`, the unit takes subnormal numbers for 0.
//!
//! Source of instructions and of the layout of the configuration: Intel 64 and IA-32 Architectures Software Developer's
//! Manual, volume 1, chapter 18; of the permission: Linux, Documentation/arch/x86/xstate.rst.

use std::arch::asm;
use std::arch::x86_64::{__cpuid_count, _mm512_loadu_ps};
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::OnceLock;

use super::kernel::{LANES, Target, WIDTH};
use super::panels::{Left, Panels};

/// Rows of a tile.
const ROWS: usize = 16;
/// Rows of a group: two tiles.
const GROUP: usize = 2 * ROWS;
/// Pairs of a tile, in each of its rows of the left factor: 64 bytes.
const TILE_PAIRS: usize = 16;
/// Elements of two tiles of the left factor, one below the other.
const STEP: usize = GROUP * TILE_PAIRS;
/// Pairs of the inner dimension that are summed at a time: a panel of them is 36 KiB.
const PAIRS: usize = 192;

/// Whether the processor has the unit, and the system lets this process use it.
pub(in crate::ops::cpu) fn are_allowed() -> bool {
    static ALLOWED: OnceLock<bool> = OnceLock::new();
    *ALLOWED.get_or_init(|| {
        const BF16: u32 = 1 << 22;
        const TILE: u32 = 1 << 24;
        let features = __cpuid_count(7, 0).edx;
        features & BF16 != 0 && features & TILE != 0 && are_permitted()
    })
}

/// Asks the system for the registers' room in this process. Older systems do not know the request.
fn are_permitted() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: the call takes two numbers; it changes what this process may use and nothing else.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_arch_prctl,
            ARCH_REQ_XCOMP_PERM,
            XFEATURE_XTILEDATA,
        )
    };
    outcome == 0
}

/// The shape of the tile registers: the bytes of a row and the rows of each.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

static CONFIGURATION: Configuration = {
    let (mut row_bytes, mut rows) = ([0; 16], [0; 16]);
    let mut tile = 0;
    while tile < 8 {
        row_bytes[tile] = 4 * TILE_PAIRS as u16;
        rows[tile] = ROWS as u8;
        tile += 1;
    }
    Configuration {
        palette: 1,
        start_row: 0,
        reserved: [0; 14],
        row_bytes,
        rows,
    }
};

/// The tile registers of this thread while a product uses them. Without them in use a change of threads costs less.
struct Registers;

impl Registers {
    /// # Safety
    /// [`are_allowed`].
    unsafe fn take() -> Self {
        // SAFETY: the processor has the instruction, and the configuration is 64 bytes that it accepts.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const CONFIGURATION, options(nostack, readonly));
        }
        Self
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        // SAFETY: `take` has found the instruction, and nobody else uses the registers.
        unsafe { asm!("tilerelease", options(nostack, nomem)) }
    }
}

thread_local! {
    /// The left factor in tiles; kept, so that it is not allocated for every block.
    static TILES: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// `into = scale · left · right`, or `into += …`: the rows of the left factor from `row` on, as many as `into` has, and the
/// columns of the right one from `column` on, a multiple of 48.
///
/// # Safety
/// [`are_allowed`]. Those rows and columns are there, and both factors have equally many pairs, at least one. All elements
/// of `into` can be written, and nothing else uses them; with `added` they have values.
pub(super) unsafe fn multiply(
    left: Left,
    row: usize,
    (right, column): (&Panels, usize),
    into: Target,
) {
    // SAFETY: by this function's contract.
    let _registers = unsafe { Registers::take() };
    TILES.with_borrow_mut(|tiles| {
        for start in (0..left.pairs()).step_by(PAIRS) {
            let pairs = start..left.pairs().min(start + PAIRS);
            let rows = row..row + into.rows;
            let left = Tiles::in_place(left, &rows, &pairs)
                .unwrap_or_else(|| Tiles::copied(tiles, left, rows, &pairs));
            let into = Target {
                added: into.added || start > 0,
                ..into
            };
            for first in (0..into.columns).step_by(WIDTH) {
                let (panel, width) = right.panel(column + first);
                let panel = &panel[pairs.start * width..pairs.end * width];
                let into = Target {
                    first: into.first.wrapping_add(first),
                    columns: WIDTH.min(into.columns - first),
                    ..into
                };
                // SAFETY: `left` has the tiles of as many rows and pairs, and the contract holds for the part.
                unsafe { through_panel(left, panel, width, into) };
            }
        }
    });
}

/// The tiles of a part of the left factor. Distances are in elements, of 32 bits.
#[derive(Clone, Copy)]
struct Tiles {
    first: *const u32,
    /// From one row of a tile to the next.
    row: usize,
    /// To the tile of the next 16 rows.
    lower: usize,
    /// To the tile of the next 16 pairs.
    step: usize,
    /// To the next group of rows.
    group: usize,
}

impl Tiles {
    /// Rows as they are, if they fill all tiles.
    fn in_place(left: Left, rows: &Range<usize>, pairs: &Range<usize>) -> Option<Self> {
        let Left::Rows { data, stride, .. } = left else {
            return None;
        };
        if !rows.len().is_multiple_of(ROWS) || !pairs.len().is_multiple_of(TILE_PAIRS) {
            return None;
        }
        let between = stride / 2;
        let first = rows.start * stride + 2 * pairs.start;
        let last = (rows.end - 1) * stride + 2 * pairs.end;
        Some(Self {
            first: data[first..last].as_ptr().cast(),
            row: between,
            lower: ROWS * between,
            step: TILE_PAIRS,
            group: GROUP * between,
        })
    }

    /// Rows that are copied to `tiles`.
    fn copied(tiles: &mut Vec<u32>, left: Left, rows: Range<usize>, pairs: &Range<usize>) -> Self {
        fill(tiles, left, rows, pairs);
        Self {
            first: tiles.as_ptr(),
            row: TILE_PAIRS,
            lower: ROWS * TILE_PAIRS,
            step: STEP,
            group: pairs.len().div_ceil(TILE_PAIRS) * STEP,
        }
    }
}

/// Copies a part of the left factor: for every 32 rows, and every 16 pairs of them, two tiles. What is beyond the last row or
/// pair is 0.
fn fill(tiles: &mut Vec<u32>, left: Left, rows: Range<usize>, pairs: &Range<usize>) {
    let steps = pairs.len().div_ceil(TILE_PAIRS);
    let groups = rows.len().div_ceil(GROUP);
    if !rows.len().is_multiple_of(GROUP) || !pairs.len().is_multiple_of(TILE_PAIRS) {
        tiles.clear();
    }
    tiles.resize(groups * steps * STEP, 0);
    for (group, tiles) in tiles.chunks_exact_mut(steps * STEP).enumerate() {
        let first = rows.start + group * GROUP;
        let rows = first..rows.end.min(first + GROUP);
        match left {
            Left::Rows { data, stride, .. } => {
                for (index, row) in rows.enumerate() {
                    let line = &data[row * stride + 2 * pairs.start..][..2 * pairs.len()];
                    for (tile, line) in tiles
                        .chunks_exact_mut(STEP)
                        .zip(line.chunks(2 * TILE_PAIRS))
                    {
                        let into = &mut tile[index * TILE_PAIRS..][..TILE_PAIRS];
                        for (into, pair) in into.iter_mut().zip(line.chunks_exact(2)) {
                            *into = u32::from(pair[0]) | u32::from(pair[1]) << 16;
                        }
                    }
                }
            }
            Left::Panels(panels) => {
                // Step by step, so that what is read for a row is still in the cache for the next.
                for (step, tile) in tiles.chunks_exact_mut(STEP).enumerate() {
                    let start = pairs.start + step * TILE_PAIRS;
                    let length = TILE_PAIRS.min(pairs.end - start);
                    for (row, into) in rows.clone().zip(tile.chunks_exact_mut(TILE_PAIRS)) {
                        let (panel, width) = panels.panel(row / WIDTH * WIDTH);
                        let column = panel[start * width + row % WIDTH..].iter().step_by(width);
                        for (into, pair) in into[..length].iter_mut().zip(column) {
                            *into = *pair;
                        }
                    }
                }
            }
        }
    }
}

/// All groups of rows times one part of a panel.
///
/// # Safety
/// As [`multiply`]; `left` has the tiles of `into.rows` rows and of the panel's pairs.
unsafe fn through_panel(left: Tiles, panel: &[u32], width: usize, into: Target) {
    let pairs = panel.len() / width;
    let (whole, rest) = (pairs / TILE_PAIRS, pairs % TILE_PAIRS);
    let last = (rest > 0).then(|| {
        let mut last = [0_u32; TILE_PAIRS * WIDTH];
        last[..rest * width].copy_from_slice(&panel[whole * TILE_PAIRS * width..]);
        last
    });
    let right = Right {
        panel: panel.as_ptr(),
        whole,
        last: last.as_ref().map_or(std::ptr::null(), |it| it.as_ptr()),
        row_bytes: 4 * width,
    };
    let mut sums = Sums([const { MaybeUninit::uninit() }; GROUP * WIDTH]);
    for row in (0..into.rows).step_by(GROUP) {
        let left = Tiles {
            first: left.first.wrapping_add(row / GROUP * left.group),
            ..left
        };
        let rows = GROUP.min(into.rows - row);
        // SAFETY: the registers are taken; the left factor has a tile for each 16 pairs of the panel, the last ones too.
        unsafe {
            match (rows > ROWS, width / LANES) {
                (true, 3) => two_by_three(left, &right, &mut sums),
                (true, 2) => two_by_two(left, &right, &mut sums),
                (true, _) => two_by_one(left, &right, &mut sums),
                (false, 3) => one_by_three(left, &right, &mut sums),
                (false, 2) => one_by_two(left, &right, &mut sums),
                (false, _) => one_by_one(left, &right, &mut sums),
            }
        }
        let into = Target {
            first: into.first.wrapping_add(row * into.stride),
            rows,
            ..into
        };
        // SAFETY: a processor with the unit has AVX-512. The sums of these rows and of the panel's columns were written.
        unsafe { put(&sums, width / LANES, into) };
    }
}

/// Writes the sums of a group.
///
/// # Safety
/// The processor has the instructions; the sums of `into.rows` rows and so many vectors have values; and the contract of
/// [`Target::put`].
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
unsafe fn put(sums: &Sums, vectors: usize, into: Target) {
    for (row, sums) in sums.0.chunks_exact(WIDTH).take(into.rows).enumerate() {
        for (v, sums) in sums.chunks_exact(LANES).take(vectors).enumerate() {
            // SAFETY: the 16 sums have values, and `put` writes what may be written.
            unsafe { into.put(row, v, _mm512_loadu_ps(sums.as_ptr().cast())) };
        }
    }
}

/// 32 rows of 48 sums.
#[repr(align(64))]
struct Sums([MaybeUninit<f32>; GROUP * WIDTH]);

/// A part of a panel.
struct Right {
    panel: *const u32,
    /// The number of times that it has 16 pairs.
    whole: usize,
    /// The pairs after those, filled up to 16 with zeros; null if there are none.
    last: *const u32,
    /// From one pair to the next, in bytes.
    row_bytes: usize,
}

/// `fn name`: the sums of one or two tiles of rows times one to three of columns. `multiply` is what is done for 16 pairs: it
/// has the tiles of the left factor at `{left}` and `{lower}`, rows `{row}` bytes apart; those of the right one at
/// `{right}`, `+ 64` and `+ 128`, rows `{between}` bytes apart. Registers 0 to 2 have the sums of the first rows, 3 to 5 of
/// the others.
macro_rules! sums_of_tiles {
    ($($name:ident = [$($multiply:literal)*] [$($sum:literal at $place:literal)*];)*) => {$(
        /// # Safety
        /// The registers are taken. There are tiles of the left factor for each 16 pairs of the right one.
        unsafe fn $name(left: Tiles, right: &Right, sums: &mut Sums) {
            // SAFETY: by this function's contract; the sums have 32 rows of 192 bytes.
            unsafe {
                asm!(
                    $(concat!("tilezero tmm", $sum),)*
                    "test {steps}, {steps}",
                    "jz 3f",
                    "2:",
                    $($multiply,)*
                    "add {left}, {left_step}",
                    "add {lower}, {left_step}",
                    "add {right}, {step}",
                    "dec {steps}",
                    "jnz 2b",
                    "3:",
                    "test {last}, {last}",
                    "jz 4f",
                    "mov {right}, {last}",
                    "xor {last}, {last}",
                    "mov {steps}, 1",
                    "jmp 2b",
                    "4:",
                    $(concat!("tilestored [{sums} + {sums_between} + ", $place, "], tmm", $sum),)*
                    left = inout(reg) left.first => _,
                    lower = inout(reg) left.first.wrapping_add(left.lower) => _,
                    left_step = in(reg) 4 * left.step,
                    row = in(reg) 4 * left.row,
                    right = inout(reg) right.panel => _,
                    steps = inout(reg) right.whole => _,
                    last = inout(reg) right.last => _,
                    between = in(reg) right.row_bytes,
                    step = in(reg) TILE_PAIRS * right.row_bytes,
                    sums = in(reg) &raw mut sums.0,
                    sums_between = in(reg) 4 * WIDTH,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }
    )*};
}

// A tile that was read is used twice before the next is read into its register.
sums_of_tiles! {
    two_by_three = [
        "tileloadd tmm7, [{right} + {between}]"
        "tileloadd tmm6, [{left} + {row}]"
        "tdpbf16ps tmm0, tmm6, tmm7"
        "tileloadd tmm6, [{lower} + {row}]"
        "tdpbf16ps tmm3, tmm6, tmm7"
        "tileloadd tmm7, [{right} + {between} + 64]"
        "tdpbf16ps tmm4, tmm6, tmm7"
        "tileloadd tmm6, [{left} + {row}]"
        "tdpbf16ps tmm1, tmm6, tmm7"
        "tileloadd tmm7, [{right} + {between} + 128]"
        "tdpbf16ps tmm2, tmm6, tmm7"
        "tileloadd tmm6, [{lower} + {row}]"
        "tdpbf16ps tmm5, tmm6, tmm7"
    ] ["0" at "0" "1" at "64" "2" at "128" "3" at "3072" "4" at "3136" "5" at "3200"];
    two_by_two = [
        "tileloadd tmm7, [{right} + {between}]"
        "tileloadd tmm6, [{left} + {row}]"
        "tdpbf16ps tmm0, tmm6, tmm7"
        "tileloadd tmm5, [{lower} + {row}]"
        "tdpbf16ps tmm3, tmm5, tmm7"
        "tileloadd tmm7, [{right} + {between} + 64]"
        "tdpbf16ps tmm1, tmm6, tmm7"
        "tdpbf16ps tmm4, tmm5, tmm7"
    ] ["0" at "0" "1" at "64" "3" at "3072" "4" at "3136"];
    two_by_one = [
        "tileloadd tmm7, [{right} + {between}]"
        "tileloadd tmm6, [{left} + {row}]"
        "tdpbf16ps tmm0, tmm6, tmm7"
        "tileloadd tmm5, [{lower} + {row}]"
        "tdpbf16ps tmm3, tmm5, tmm7"
    ] ["0" at "0" "3" at "3072"];
    one_by_three = [
        "tileloadd tmm6, [{left} + {row}]"
        "tileloadd tmm7, [{right} + {between}]"
        "tdpbf16ps tmm0, tmm6, tmm7"
        "tileloadd tmm5, [{right} + {between} + 64]"
        "tdpbf16ps tmm1, tmm6, tmm5"
        "tileloadd tmm4, [{right} + {between} + 128]"
        "tdpbf16ps tmm2, tmm6, tmm4"
    ] ["0" at "0" "1" at "64" "2" at "128"];
    one_by_two = [
        "tileloadd tmm6, [{left} + {row}]"
        "tileloadd tmm7, [{right} + {between}]"
        "tdpbf16ps tmm0, tmm6, tmm7"
        "tileloadd tmm5, [{right} + {between} + 64]"
        "tdpbf16ps tmm1, tmm6, tmm5"
    ] ["0" at "0" "1" at "64"];
    one_by_one = [
        "tileloadd tmm6, [{left} + {row}]"
        "tileloadd tmm7, [{right} + {between}]"
        "tdpbf16ps tmm0, tmm6, tmm7"
    ] ["0" at "0"];
}
