//! Products against sums in float64, for many shapes, with and without the processor's instruction.

use super::super::at_each_level;
use super::super::product::{Before, MatrixMut};
use super::linear::{self, Weights};
use super::number::{round, widen};
use super::panels::{Left, Panels, Part, Stacked};
use super::product::{product, product_here, product_here_after};
use super::*;

/// Numbers between −2 and 2 with all 24 bits, always the same.
fn numbers(count: usize, salt: u32) -> Vec<f32> {
    (0..count)
        .map(|i| {
            let mut x = (i as u32 ^ salt.wrapping_mul(0x85EB_CA6B)).wrapping_mul(0x9E37_79B1);
            x = (x ^ (x >> 15)).wrapping_mul(0x2C1B_3C6D);
            (x ^ (x >> 13)) as f32 / u32::MAX as f32 * 4.0 - 2.0
        })
        .collect()
}

fn rounded(x: f32) -> f64 {
    f64::from(widen(round(x)))
}

/// Element (m, n) of the product of rounded factors, and the sum of the sizes of its terms.
fn exact(inner: usize, left: impl Fn(usize) -> f32, right: impl Fn(usize) -> f32) -> (f64, f64) {
    let terms = (0..inner).map(|k| rounded(left(k)) * rounded(right(k)));
    terms.fold((0.0, 0.0), |(sum, size), term| {
        (sum + term, size + term.abs())
    })
}

/// The bound: each of K terms is exact, and K additions in float32 are each off by at most 2⁻²⁴ of a partial sum, or
/// 2⁻²³ where the instruction rounds otherwise than to the nearest.
fn allowed(inner: usize, size: f64) -> f64 {
    (inner + 1) as f64 * 2_f64.powi(-23) * size + 1e-37
}

/// [M, K] · [K, N], with the left factor as rows and as panels, and the right one packed from rows and from columns.
fn check([rows, inner, columns]: [usize; 3]) {
    let (a, b) = (numbers(rows * inner, 1), numbers(inner * columns, 2));
    let turned = |data: &[f32], rows: usize, columns: usize| -> Vec<f32> {
        let places = (0..columns).flat_map(|c| (0..rows).map(move |r| r * columns + c));
        places.map(|place| data[place]).collect()
    };
    let (at, bt) = (turned(&a, rows, inner), turned(&b, inner, columns));
    let of_a = Rows::encode(&a, rows, inner);
    let of_at = Rows::encode(&at, inner, rows);
    let of_b = Stacked {
        parts: &[&b],
        rows: inner,
        columns,
        stride: columns,
    };
    let of_bt = Rows::encode(&bt, columns, inner);
    let left_panels = Panels::of(&of_at);
    let lefts = [Left::rows(&of_a), Left::Panels(&left_panels)];
    let rights = [Panels::of(&of_b), Panels::of_transposed(&of_bt)];
    let mut first: Option<Vec<f32>> = None;
    for left in lefts {
        for right in &rights {
            let mut found = vec![7.0; rows * columns];
            product(left, right, MatrixMut::over(&mut found, rows, columns));
            let mut here = vec![7.0; rows * columns];
            product_here(
                1.0,
                left,
                right,
                &mut MatrixMut::over(&mut here, rows, columns),
            );
            assert_eq!(found, here, "{rows} × {inner} × {columns}");
            let first = first.get_or_insert_with(|| found.clone());
            assert_eq!(
                found, *first,
                "packed otherwise, {rows} × {inner} × {columns}"
            );
        }
    }
    let found = first.expect("four products");
    for row in 0..rows {
        for column in 0..columns {
            let left = |k: usize| a[row * inner + k];
            let (sum, size) = exact(inner, left, |k| b[k * columns + column]);
            let off = (f64::from(found[row * columns + column]) - sum).abs();
            assert!(
                off <= allowed(inner, size),
                "({row}, {column}) of {rows} × {inner} × {columns} is off by {off:e}, {:e} is allowed",
                allowed(inner, size)
            );
        }
    }
}

#[test]
fn products_agree_with_float64() {
    at_each_level(|_| {
        for shape in [
            [1, 1, 1],
            [1, 2, 1],
            [2, 3, 5],
            [7, 15, 17],
            [8, 16, 48],
            [9, 33, 49],
            [13, 64, 96],
            [130, 31, 50],
            [5, 2, 400],
            [3, 2051, 4],
            [129, 65, 385],
            [64, 384, 64],
            // Tiles of 16 rows and 32 numbers, and parts of 384: none of them, one, and some with a rest.
            [0, 32, 48],
            [16, 32, 48],
            [48, 64, 33],
            [33, 801, 50],
        ] {
            check(shape);
        }
    });
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(40))]

    #[test]
    fn products_of_any_shape_agree(rows in 0_usize..40, inner in 0_usize..70, columns in 0_usize..110) {
        at_each_level(|_| check([rows, inner, columns]));
    }

    /// A part of a matrix is multiplied as if it were copied out, whatever lies around it.
    #[test]
    fn parts_are_what_they_contain(
        row in 0_usize..5, rows in 1_usize..20, column in 0_usize..5, columns in 1_usize..60,
    ) {
        let all = numbers((row + rows + 2) * (column + columns + 3), 3);
        let wide = column + columns + 3;
        let matrix = Rows::encode(&all, row + rows + 2, wide);
        let part = Part { of: &matrix, row, rows, column, columns };
        let copy: Vec<f32> = (0..rows)
            .flat_map(|r| all[(row + r) * wide + column..][..columns].iter().copied())
            .collect();
        let copy = Rows::encode(&copy, rows, columns);
        let other = Rows::encode(&numbers(9 * rows, 4), 9, rows);
        at_each_level(|_| {
            let results = [Panels::of(&part), Panels::of(&copy)].map(|right| {
                let mut into = vec![0.0; 9 * columns];
                product_here(0.5, Left::rows(&other), &right, &mut MatrixMut::over(&mut into, 9, columns));
                into
            });
            assert_eq!(results[0], results[1]);
        });
    }
}

#[test]
fn a_product_is_added_and_scaled() {
    let (a, b) = (numbers(20 * 31, 1), numbers(31 * 50, 2));
    let left = Rows::encode(&a, 20, 31);
    let right = Panels::of(&Rows::encode(&b, 31, 50));
    at_each_level(|_| {
        let mut plain = vec![0.0; 20 * 50];
        product_here(
            1.0,
            Left::rows(&left),
            &right,
            &mut MatrixMut::over(&mut plain, 20, 50),
        );
        let mut added = vec![3.0; 20 * 50];
        let into = &mut MatrixMut::over(&mut added, 20, 50);
        // SAFETY: `added` has values.
        unsafe { product_here_after(Before::Added, 0.25, Left::rows(&left), &right, into) };
        for (plain, added) in plain.iter().zip(added) {
            assert_eq!(added, 3.0 + 0.25 * plain);
        }
    });
}

/// The processor's instruction and the float32 loop round the same inputs; their sums differ in rounding only.
#[test]
fn native_and_emulated_agree() {
    let (rows, inner, columns) = (33, 1536, 70);
    let (a, b) = (numbers(rows * inner, 1), numbers(inner * columns, 2));
    let left = Rows::encode(&a, rows, inner);
    let right = Panels::of(&Rows::encode(&b, inner, columns));
    let mut results = Vec::new();
    at_each_level(|level| {
        let mut into = vec![0.0; rows * columns];
        product(
            Left::rows(&left),
            &right,
            MatrixMut::over(&mut into, rows, columns),
        );
        results.push((level, into));
    });
    let size: Vec<f64> = (0..rows * columns)
        .map(|i| {
            let (row, column) = (i / columns, i % columns);
            exact(inner, |k| a[row * inner + k], |k| b[k * columns + column]).1
        })
        .collect();
    let (_, first) = &results[0];
    for (level, other) in &results[1..] {
        for ((x, y), size) in first.iter().zip(other).zip(&size) {
            let off = f64::from((x - y).abs());
            assert!(off <= 2.0 * allowed(inner, *size), "{level:?}: {x} and {y}");
        }
    }
}

#[test]
fn infinities_and_nans_reach_the_elements_that_use_them_and_no_other() {
    at_each_level(|level| {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let (rows, inner, columns) = (11, 37, 53);
            let mut a = vec![1.0; rows * inner];
            // The last of an odd inner dimension, beside the padding.
            a[4 * inner + inner - 1] = bad;
            let b = vec![2.0; inner * columns];
            let left = Rows::encode(&a, rows, inner);
            let right = Panels::of(&Rows::encode(&b, inner, columns));
            let mut into = vec![0.0; rows * columns];
            product(
                Left::rows(&left),
                &right,
                MatrixMut::over(&mut into, rows, columns),
            );
            for (place, found) in into.iter().enumerate() {
                let expected = if place / columns == 4 { bad } else { 74.0 };
                assert!(
                    *found == expected || found.is_nan() && expected.is_nan(),
                    "{level:?}: {found} at {place}, not {expected}"
                );
            }
        }
    });
}

#[test]
fn the_bits_do_not_depend_on_the_number_of_threads() {
    let (rows, inputs, outputs) = (203, 70, 410);
    let (x, w) = (numbers(rows * inputs, 1), numbers(outputs * inputs, 2));
    let (g, bias) = (numbers(rows * outputs, 3), numbers(outputs, 4));
    let all = || {
        let (x, g) = (
            Rows::encode(&x, rows, inputs),
            Rows::encode(&g, rows, outputs),
        );
        let weights = Weights {
            parts: &[&w],
            inputs,
            outputs,
        };
        let (y, derivative) = linear::forward_gelu(&x, weights, &bias, true);
        [
            linear::forward(&x, weights, &bias),
            linear::forward_rounded(&x, weights, &bias).decode(),
            y,
            derivative.expect("it is kept").decode(),
            linear::backward_x(&g, weights),
            linear::backward_weight(&g, &x),
            g.sum(),
        ]
    };
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    at_each_level(|level| {
        let one = pool(1).expect("a pool of one").install(all);
        for threads in [2, 3, 5] {
            let many = pool(threads).expect("a pool").install(all);
            assert!(one == many, "{level:?} on {threads} threads");
        }
    });
}

#[test]
fn several_layers_at_once_compute_what_each_does_alone() {
    let (rows, inputs, outputs) = (37, 19, 23);
    let x = Rows::encode(&numbers(rows * inputs, 1), rows, inputs);
    let parts: Vec<Vec<f32>> = (2..5).map(|salt| numbers(outputs * inputs, salt)).collect();
    let parts: Vec<&[f32]> = parts.iter().map(Vec::as_slice).collect();
    let bias = numbers(3 * outputs, 9);
    let weights = |parts| Weights {
        parts,
        inputs,
        outputs,
    };
    let together = linear::forward(&x, weights(&parts), &bias);
    for index in 0..3 {
        let of_part = &bias[index * outputs..(index + 1) * outputs];
        let alone = linear::forward(&x, weights(&parts[index..=index]), of_part);
        for row in 0..rows {
            let found = &together[row * 3 * outputs + index * outputs..][..outputs];
            assert_eq!(found, &alone[row * outputs..(row + 1) * outputs]);
        }
    }
}
