//! The cross-entropy in one launch against burn's `log_softmax` on the CPU: sum and gradient. Needs an adapter; Mesa's
//! software one is enough.

use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Tensor, TensorData};
use stratoscope_gpu::{Targets, count_launches, cross_entropy};

fn adapter() -> Option<Device> {
    stratoscope_gpu::testing::device().map(|device| device.autodiff())
}

/// Numbers between −4 and 4 that look random and are always the same.
fn logits([rows, classes]: [usize; 2]) -> Vec<f32> {
    let number = |at: usize| (at as u32).wrapping_mul(0x9E37_79B1) >> 8;
    let numbers = (0..rows * classes).map(|at| number(at) as f32 / (1 << 24) as f32 * 8.0 - 4.0);
    numbers.collect()
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

type Rows = Vec<(Option<usize>, f32)>;

/// `−Σ wanted · log_softmax` with the wanted shares of every class, as a row weighs.
fn by_definition(logits: Tensor<2>, rows: &Rows, smoothing: f64) -> Tensor<1> {
    let [_, classes] = logits.dims();
    let mut wanted = Vec::new();
    for &(class, weight) in rows {
        let (own, each) = match class {
            Some(_) => (1.0 - smoothing, smoothing / classes as f64),
            None => (0.0, 0.0),
        };
        let share = |at: usize| each + if class == Some(at) { own } else { 0.0 };
        wanted.extend((0..classes).map(|at| share(at) as f32 * weight));
    }
    let wanted = TensorData::new(wanted, [rows.len(), classes]);
    let wanted = Tensor::<2>::from_data(wanted, &logits.device());
    (log_softmax(logits, 1) * wanted).sum().neg()
}

/// The sum, and the gradient by the logits of 3 times the sum.
fn run(
    device: &Device,
    numbers_of: &[f32],
    shape: [usize; 2],
    sum: impl Fn(Tensor<2>) -> Tensor<1>,
) -> (f32, Vec<f32>) {
    let data = TensorData::new(numbers_of.to_vec(), shape);
    let logits = Tensor::<2>::from_data(data, device).require_grad();
    let sum = sum(logits.clone());
    let gradients = sum.clone().mul_scalar(3.0).backward();
    let gradient = logits.grad(&gradients).expect("it is tracked");
    (sum.into_scalar::<f32>(), numbers(gradient))
}

fn check(device: &Device, shape: [usize; 2], rows: &Rows, smoothing: f64) {
    let given = logits(shape);
    let ours = |x| cross_entropy(x, Targets::new(rows.clone()), smoothing);
    let (found, gradient) = run(device, &given, shape, ours);
    let cpu = Device::flex().autodiff();
    let (expected, by_burn) = run(&cpu, &given, shape, |x| by_definition(x, rows, smoothing));
    let what = format!("{shape:?}, smoothing {smoothing}");
    let allowed = 1e-5 * expected.abs().max(1.0);
    assert!(
        (found - expected).abs() < allowed,
        "{what}: {found}, not {expected}"
    );
    let largest = by_burn.iter().fold(1e-3_f32, |most, it| most.max(it.abs()));
    for (at, (found, expected)) in gradient.iter().zip(&by_burn).enumerate() {
        let near = (found - expected).abs() <= 1e-5 * largest;
        assert!(near, "{what}, gradient {at}: {found}, not {expected}");
    }
}

/// Few logits, which one launch adds up; many rows; rows as wide as a vocabulary; each with and without smoothing.
#[test]
fn cross_entropy_on_gpu_agrees() {
    let Some(device) = adapter() else { return };
    for shape in [
        [1, 1],
        [3, 2],
        [8, 3],
        [130, 31],
        [700, 9],
        [5, 1500],
        [6, 30_522],
    ] {
        let [rows, classes] = shape;
        let row = |at: usize| {
            let class = (at % 4 != 3).then_some(at * 7919 % classes);
            (class, 0.25 + (at % 3) as f32)
        };
        let targets: Rows = (0..rows).map(row).collect();
        for smoothing in [0.0, 0.1] {
            check(&device, shape, &targets, smoothing);
        }
    }
}

/// What a row without a class contains is not looked at.
#[test]
fn a_row_without_a_class_has_no_part_on_gpu() {
    let Some(device) = adapter() else { return };
    for classes in [2, 2000] {
        let mut given = logits([3, classes]);
        given[classes..2 * classes].fill(f32::NAN);
        let rows = vec![(Some(1), 1.0), (None, 1.0), (Some(0), 2.0)];
        let ours = |x| cross_entropy(x, Targets::new(rows.clone()), 0.0);
        let (sum, gradient) = run(&device, &given, [3, classes], ours);
        assert!(sum.is_finite() && gradient.iter().all(|it| it.is_finite()));
        assert!(gradient[classes..2 * classes].iter().all(|&it| it == 0.0));
    }
}

/// Logits whose exponentials are beyond float32, and a loss that only their differences give.
#[test]
fn large_logits_stay_finite_on_gpu() {
    let Some(device) = adapter() else { return };
    let given = [1000.0, 0.0, -1000.0, 300.0, 300.0, -1e6];
    let rows = vec![(Some(1), 1.0), (Some(0), 1.0)];
    let ours = |x| cross_entropy(x, Targets::new(rows.clone()), 0.0);
    let (sum, gradient) = run(&device, &given, [2, 3], ours);
    assert!((sum - (1000.0 + 2_f32.ln())).abs() < 1e-3, "{sum}");
    assert_eq!(gradient[..3], [3.0, -3.0, 0.0]);
}

/// The head of a classifier: one launch forward, one back, and what writes the gradient of the sum.
#[test]
fn launches_of_a_cross_entropy_on_gpu() {
    let Some(device) = adapter() else { return };
    let data = TensorData::new(logits([8, 3]), [8, 3]);
    let logits = Tensor::<2>::from_data(data, &device).require_grad();
    let rows: Rows = (0..8).map(|row| (Some(row % 3), 1.0)).collect();
    let ((), launches) = count_launches(|| {
        let gradients = cross_entropy(logits.clone(), Targets::new(rows), 0.1).backward();
        numbers(logits.grad(&gradients).expect("it is tracked"));
    });
    let of = |name: &str| {
        let named = launches
            .by_kernel
            .iter()
            .filter(|(kernel, _)| kernel.contains(name));
        named.map(|(_, count)| count).sum::<usize>()
    };
    assert_eq!(of("cross_entropy_rows"), 1, "{launches:?}");
    assert_eq!(of("cross_entropy_backward"), 1, "{launches:?}");
    assert!(launches.total() <= 4, "{launches:?}");
}
