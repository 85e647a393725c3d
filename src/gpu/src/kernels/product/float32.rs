//! Products of float32 matrices in float32, by tiles.
//!
//! cubek's kernels for units are made for large products: of those of BERT's layers they make so few tiles that most of
//! the GPU is idle (a gradient of 384 × 384 weights, nine on the 132 multiprocessors of an H200). Here tiles are smaller
//! where there are few of them, and a long sum is cut into parts that cubes of their own add up.

use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::finish::{Extras, PlacesLaunch};
use super::tiles::{DEPTH, SQUARE, StepsLaunch, Tiling, product_tiles};
use super::{FEWEST_TERMS, Finish, joined_shape, sum_of_parts};
use crate::kernels::{MOST_CUBES, unwritten};

/// Terms of a part at most: a software device leaves loops after 65,535 turns, and 8 terms take 9.
const MOST_TERMS: usize = 32_768;
/// Parts at least: what two of them save, adding them up costs.
const FEWEST_PARTS: usize = 3;
/// Terms of a sum whose parts may make up for few tiles.
const LONG_SUM: usize = 1024;
/// Where a device does not tell how many multiprocessors it has.
const MULTIPROCESSORS: usize = 64;

/// A product of [m, k] and [k, n], once for each pair of the batch's numbers.
struct Sizes {
    batch: [usize; 2],
    m: usize,
    n: usize,
    k: usize,
}

impl Sizes {
    fn batches(&self) -> usize {
        self.batch.iter().product()
    }

    /// Whether what is added has the sizes by which the kernel reads it.
    fn fits(&self, finish: &Finish) -> bool {
        let elements = self.batches() * self.m * self.n;
        let has = |tensor: &Option<CubeTensor>, count| {
            let tensor = tensor.as_ref();
            tensor.is_none_or(|it| it.meta.num_elements() == count)
        };
        has(&finish.bias, self.n) && has(&finish.added, elements)
    }

    /// The most parts that the sum over k is cut into: those of a batch are products enough.
    fn most_parts(&self) -> usize {
        match self.batches() {
            1 => (self.k / FEWEST_TERMS).max(1),
            _ => 1,
        }
    }

    /// The parts that make enough cubes, and none too long.
    fn parts(&self, tiling: Tiling, cubes: usize) -> usize {
        let tiles = tiling.tiles(self.m, self.n);
        let enough = (cubes / tiles.max(1)).clamp(1, self.most_parts());
        let worthwhile = if enough < FEWEST_PARTS { 1 } else { enough };
        worthwhile.max(self.k.div_ceil(MOST_TERMS))
    }
}

/// The largest of which there are enough, with the parts that a long sum can be cut into.
fn tiling(sizes: &Sizes, cubes: usize) -> Tiling {
    if sizes.n <= Tiling::NARROW.across * SQUARE {
        return Tiling::NARROW;
    }
    let most = match sizes.k >= LONG_SUM {
        true => sizes.most_parts(),
        false => 1,
    };
    let tiles = Tiling::LARGE.tiles(sizes.m, sizes.n) * sizes.batches();
    match tiles * most >= cubes {
        true => Tiling::LARGE,
        false => Tiling::SMALL,
    }
}

/// Steps of a tensor from one to the next of its dimension, counted from the last one.
fn step(tensor: &CubeTensor, from_end: usize) -> usize {
    let strides = tensor.meta.strides();
    let place = strides.len().checked_sub(from_end + 1);
    place.map_or(0, |place| strides[place])
}

/// A product, and the sums of the left factor's rows if they were asked for.
pub struct Made {
    pub product: CubeTensor,
    pub sums: Option<CubeTensor>,
}

/// The product of the last two dimensions of two float32 tensors of the same rank, 2 to 4, finished. `None` where it has no
/// tile or more than a launch has cubes, a batch of sums too long for one part, or what is added has another size.
pub fn product(left: CubeTensor, right: CubeTensor, finish: &Finish) -> Option<Made> {
    let shape = left.meta.shape().clone();
    let rank = shape.num_dims();
    if rank > 4 {
        return None;
    }
    let from_end = |place: usize| match rank > place {
        true => shape[rank - 1 - place],
        false => 1,
    };
    let sizes = Sizes {
        batch: [from_end(3), from_end(2)],
        m: from_end(1),
        n: right.meta.shape()[rank - 1],
        k: from_end(0),
    };
    let client = left.client.clone();
    let hardware = &client.properties().hardware;
    let multiprocessors = hardware.num_streaming_multiprocessors;
    let wanted = 2 * multiprocessors.map_or(MULTIPROCESSORS, |count| count as usize);
    let tiling = tiling(&sizes, wanted);
    let parts = sizes.parts(tiling, wanted);
    // A whole number of steps each, so that no step belongs to two of them.
    let part = sizes.k.div_ceil(parts).max(1).next_multiple_of(DEPTH);
    let parts = sizes.k.div_ceil(part).max(1);
    let (down, across) = (tiling.down * SQUARE, tiling.across * SQUARE);
    let cubes = [
        sizes.n.div_ceil(across),
        sizes.m.div_ceil(down),
        sizes.batches() * parts,
    ];
    let is_long = parts > 1 && sizes.batches() > 1;
    let is_launched = cubes.iter().all(|count| (1..=MOST_CUBES).contains(count));
    if is_long || !is_launched || !sizes.fits(finish) {
        return None;
    }
    let mut shape = shape;
    shape[rank - 1] = sizes.n;
    if finish.joined {
        shape = joined_shape(&shape);
    }
    let summed = if finish.sums { sizes.m } else { 0 };
    let output = match parts {
        1 => unwritten(&left, shape.clone()),
        _ => unwritten(&left, [parts, sizes.m * sizes.n + summed]),
    };
    // In each part behind the product.
    let sums = match parts {
        1 if finish.sums => unwritten(&left, [summed]),
        _ => output.clone(),
    };
    let outputs = [&output, &sums];
    let factors = [dense(left), dense(right)];
    launch(
        &sizes,
        tiling,
        cubes,
        [part, parts],
        factors,
        finish,
        outputs,
    );
    let (product, sums) = match parts {
        1 => (output, sums),
        _ => sum_of_parts(output, parts, shape, summed),
    };
    Some(Made {
        product,
        sums: finish.sums.then_some(sums),
    })
}

/// A tensor whose rows or columns lie without gaps, copied if neither do.
fn dense(tensor: CubeTensor) -> CubeTensor {
    match step(&tensor, 0) == 1 || step(&tensor, 1) == 1 {
        true => tensor,
        false => into_contiguous(tensor),
    }
}

fn launch(
    sizes: &Sizes,
    tiling: Tiling,
    cubes: [usize; 3],
    [part, parts]: [usize; 2],
    [left, right]: [CubeTensor; 2],
    finish: &Finish,
    [output, sums]: [&CubeTensor; 2],
) {
    let [x, y, z] = cubes.map(|count| count as u32);
    let steps = |tensor: &CubeTensor, own: usize, terms: usize| {
        let [outer, inner] = [3, 2].map(|place| step(tensor, place));
        StepsLaunch::new(outer, inner, step(tensor, own), step(tensor, terms))
    };
    let (of_left, of_right) = (steps(&left, 1, 0), steps(&right, 0, 1));
    let (whole, inner_batch) = (sizes.m * sizes.n, sizes.batch[1]);
    let (inner, row) = match finish.joined {
        true => (sizes.n, inner_batch * sizes.n),
        false => (whole, sizes.n),
    };
    // The sums of a product in one part are a tensor of their own.
    let (each, start) = match parts {
        1 => (0, 0),
        _ if finish.sums => (whole + sizes.m, whole),
        _ => (whole, 0),
    };
    let places = PlacesLaunch::new(inner_batch * whole, inner, each, row, start);
    // A factor is read along the dimension that lies without gaps.
    let (left_along, right_along) = (step(&left, 0) == 1, step(&right, 1) == 1);
    let extras = Extras {
        bias: finish.bias.is_some(),
        added: finish.added.is_some(),
        sums: finish.sums,
    };
    // What there is not, the kernel does not read.
    let [bias, added] = [&finish.bias, &finish.added]
        .map(|tensor| tensor.clone().map_or(left.clone(), into_contiguous));
    let client = left.client.clone();
    // SAFETY: the kernel reads and writes no element without comparing its row and column with the sizes of the factors;
    // shared memory and the units' own arrays are as long as the numbers that index them, which are constants.
    unsafe {
        product_tiles::launch_unchecked(
            &client,
            CubeCount::Static(x, y, z),
            CubeDim::new_1d((tiling.down * tiling.across) as u32),
            left.into_tensor_arg(),
            right.into_tensor_arg(),
            bias.into_tensor_arg(),
            added.into_tensor_arg(),
            output.clone().into_tensor_arg(),
            sums.clone().into_tensor_arg(),
            of_left,
            of_right,
            places,
            sizes.m,
            sizes.n,
            sizes.k,
            part,
            parts,
            inner_batch,
            tiling,
            left_along,
            right_along,
            extras,
        );
    }
}

#[cfg(test)]
mod tests {
    use burn::backend::ops::FloatTensorOps;
    use burn::backend::wgpu::CubeBackend;
    use burn::tensor::{Shape, TensorData};
    use burn_cubecl::ops::into_data_sync;

    use super::*;
    use crate::testing;

    fn factor(shape: &[usize], seed: usize) -> (Vec<f32>, Shape) {
        let count = shape.iter().product::<usize>();
        let number = |at: usize| ((at * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0;
        (
            (0..count).map(number).collect(),
            Shape::from(shape.to_vec()),
        )
    }

    /// The largest error, as a part of the sum of its terms' sizes, of a product of [.., m, k] and [.., k, n], each of them stored with its last two dimensions exchanged
    /// where that is asked for.
    fn error(batch: &[usize], [m, n, k]: [usize; 3], stored: [bool; 2]) -> f64 {
        let device = testing::device().expect("was asked before");
        let device = crate::gpu(&device).expect("a GPU");
        let shape = |rows, columns| [batch, &[rows, columns]].concat();
        let shapes = [
            if stored[0] { shape(k, m) } else { shape(m, k) },
            if stored[1] { shape(n, k) } else { shape(k, n) },
        ];
        let values = [factor(&shapes[0], 1), factor(&shapes[1], 2)];
        let [left, right] = [0, 1].map(|side| {
            let (values, shape) = values[side].clone();
            let rank = shape.num_dims();
            let mut tensor = CubeBackend::float_from_data(TensorData::new(values, shape), device);
            if stored[side] {
                tensor.meta.swap(rank - 2, rank - 1);
            }
            tensor
        });
        let made = product(left, right, &Finish::default()).expect("few tiles");
        assert_eq!(made.product.meta.shape(), &Shape::from(shape(m, n)));
        let found = into_data_sync(made.product);
        let found = found.as_slice::<f32>().expect("float32");
        let (left, right) = (&values[0].0, &values[1].0);
        let mut worst = 0.0f64;
        for (at, &found) in found.iter().enumerate() {
            let (number, row, column) = (at / (m * n), at / n % m, at % n);
            let (mut sum, mut size) = (0.0, 0.0);
            for term in 0..k {
                let l = if stored[0] {
                    term * m + row
                } else {
                    row * k + term
                };
                let r = if stored[1] {
                    column * k + term
                } else {
                    term * n + column
                };
                let made =
                    f64::from(left[number * m * k + l]) * f64::from(right[number * k * n + r]);
                sum += made;
                size += made.abs();
            }
            worst = worst.max((sum - f64::from(found)).abs() / size);
        }
        worst
    }

    #[test]
    fn products_of_all_sizes_and_orders_on_gpu() {
        if testing::device().is_none() {
            return;
        }
        let sizes = [
            (vec![], [1, 1, 1]),
            (vec![], [7, 5, 3]),
            (vec![], [65, 130, 33]),
            // In parts.
            (vec![], [40, 50, 1000]),
            // Of few columns.
            (vec![2, 3], [70, 32, 40]),
            // Of large tiles.
            (vec![300], [130, 129, 9]),
        ];
        for (batch, size) in sizes {
            for stored in [[false, false], [false, true], [true, false], [true, true]] {
                let error = error(&batch, size, stored);
                assert!(error < 1e-6, "{batch:?} × {size:?}, {stored:?}: {error}");
            }
        }
    }

    /// What a launch does beside the product, in one part and in several.
    #[test]
    fn extras_of_a_product_on_gpu() {
        let Some(device) = testing::device() else {
            return;
        };
        let device = crate::gpu(&device).expect("a GPU");
        let tensor = |values: &[f32], shape: &[usize]| {
            CubeBackend::float_from_data(TensorData::new(values.to_vec(), shape.to_vec()), device)
        };
        let read = |tensor| {
            into_data_sync(tensor)
                .as_slice::<f32>()
                .map(<[f32]>::to_vec)
        };
        let read = |tensor| read(tensor).expect("float32");
        for [m, n, k] in [[5, 7, 9], [40, 50, 1000]] {
            let [(left, _), (right, _)] = [factor(&[m, k], 1), factor(&[k, n], 2)];
            let [(bias, _), (added, _)] = [factor(&[n], 3), factor(&[m, n], 4)];
            let finish = Finish {
                bias: Some(tensor(&bias, &[n])),
                added: Some(tensor(&added, &[m, n])),
                sums: true,
                joined: false,
            };
            let factors = [tensor(&left, &[m, k]), tensor(&right, &[k, n])];
            let [of_left, of_right] = factors.clone();
            let made = product(of_left, of_right, &finish).expect("few tiles");
            let [of_left, of_right] = factors;
            let plain = product(of_left, of_right, &Finish::default()).expect("few tiles");
            let (found, plain) = (read(made.product), read(plain.product));
            for (at, found) in found.iter().enumerate() {
                let expected = plain[at] + bias[at % n] + added[at];
                assert!((found - expected).abs() < 1e-4, "{at}: {found}, {expected}");
            }
            let sums = read(made.sums.expect("they were asked for"));
            assert_eq!(sums.len(), m);
            for (row, found) in sums.iter().enumerate() {
                let expected: f32 = left[row * k..(row + 1) * k].iter().sum();
                assert!(
                    (found - expected).abs() < 1e-3,
                    "{row}: {found}, {expected}"
                );
            }
        }
        // The heads of a batch beside each other.
        let [left, right] = [factor(&[2, 3, 5, 4], 1).0, factor(&[2, 3, 4, 6], 2).0];
        let factors = [tensor(&left, &[2, 3, 5, 4]), tensor(&right, &[2, 3, 4, 6])];
        let [of_left, of_right] = factors.clone();
        let joined = product(of_left, of_right, &Finish::joined()).expect("few tiles");
        let [of_left, of_right] = factors;
        let apart = product(of_left, of_right, &Finish::default()).expect("few tiles");
        let expected = read(Finish::joined().after(apart.product));
        assert_eq!(joined.product.meta.shape(), &Shape::new([2, 5, 18]));
        assert_eq!(read(joined.product), expected);
    }

    #[test]
    fn tiles_are_small_and_sums_are_cut_where_there_is_little_to_do() {
        let of = |batch, m, n, k| {
            let sizes = Sizes {
                batch: [1, batch],
                m,
                n,
                k,
            };
            let tiling = super::tiling(&sizes, 264);
            (tiling, sizes.parts(tiling, 264))
        };
        assert_eq!(of(1, 4096, 1536, 384), (Tiling::LARGE, 1));
        assert_eq!(of(1, 4096, 384, 384), (Tiling::SMALL, 1));
        assert_eq!(of(1, 384, 384, 4096), (Tiling::LARGE, 29));
        assert_eq!(of(1, 384, 384, 1024), (Tiling::SMALL, 7));
        assert_eq!(of(1, 384, 384, 256), (Tiling::SMALL, 1));
        assert_eq!(of(96, 512, 32, 512), (Tiling::NARROW, 1));
        // The gradient that goes back from a large vocabulary.
        assert_eq!(of(1, 65_536, 384, 250_002), (Tiling::LARGE, 8));
    }
}
