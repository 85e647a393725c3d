//! Tensor methods that are compiled ahead of cells. burn's methods are generic over the rank, so every cell that multiplies
//! two matrices would compile the product and its checks of shapes again. Methods called here are compiled into the
//! library, and rustc shares them with cells. It does so only for crates with `opt-level` 0 or 1, which is why the facade is
//! built with `opt-level = 1`; code that takes time to run is in the crates below. An ML cell compiles half as many
//! functions.
//!
//! The list has what notebooks usually call; other methods are compiled in the cell. None of these functions runs.

use burn::tensor::activation::{gelu, log_softmax, relu, sigmoid, softmax, tanh};
use burn::tensor::{
    AsIndex, Bool, Device, Distribution, ElementConversion, Int, ReshapeArgs, Shape, Tensor,
    TensorData, kind,
};

use crate::display::IntoBundle;

#[used]
static RANKS: [fn(); 4] = [rank::<1>, rank::<2>, rank::<3>, rank::<4>];

#[used]
static BETWEEN_RANKS: [fn(); 3] = [between::<1, 2>, between::<2, 3>, between::<3, 4>];

/// Values to call methods on; none is ever made.
struct Given<const D: usize> {
    x: Tensor<D>,
    ints: Tensor<D, Int>,
    bools: Tensor<D, Bool>,
    device: Device,
    data: TensorData,
}

fn given<const D: usize>() -> Given<D> {
    unreachable!("functions that are compiled ahead do not run")
}

macro_rules! compiled {
    ($($call:expr),*) => { $(let _ = $call;)* };
}

fn rank<const D: usize>() {
    let given = given::<D>();
    float(&given);
    integer(&given);
    truth(&given);
    made(&given, [0_i32; D]);
    made(&given, [0_usize; D]);
    // The types of literals, counts and measurements.
    along(&given, 0_i32);
    along(&given, 0_usize);
    with_number(&given, 0_i32);
    with_number(&given, 0_f32);
    with_number(&given, 0_f64);
}

fn float<const D: usize>(given: &Given<D>) {
    let x = || given.x.clone();
    compiled!(x() + x(), x() - x(), x() * x(), x() / x());
    compiled!(x().add(x()), x().sub(x()), x().mul(x()), x().div(x()));
    compiled!(-x(), x().neg(), x().powf(x()));
    compiled!(x().matmul(x()), x().transpose(), x().t());
    compiled!(x().sum(), x().mean(), x().max(), x().min(), x().prod());
    compiled!(x().exp(), x().log(), x().log1p(), x().sqrt());
    compiled!(x().abs(), x().square(), x().tanh(), x().erf(), x().recip());
    compiled!(x().sin(), x().cos(), x().round(), x().floor());
    compiled!(relu(x()), sigmoid(x()), gelu(x()), tanh(x()));
    compiled!(softmax(x(), 0), log_softmax(x(), 0));
    compiled!(x().equal(x()), x().greater(x()), x().lower(x()));
    compiled!(x().all_close(x(), None, None), x().max_pair(x()));
    compiled!(x().int(), x().detach(), x().require_grad());
    let gradients = x().backward();
    compiled!(x().grad(&gradients), x().is_require_grad());
    compiled!(x().zeros_like(), x().ones_like());
    compiled!(x().random_like(Distribution::Default));
    compiled!(x().mask_where(given.bools.clone(), x()));
    compiled!(x().mask_fill(given.bools.clone(), 0.0_f64));
    read(&given.x);
    compiled!(x().into_scalar::<f32>(), x().into_scalar::<f64>());
}

fn integer<const D: usize>(given: &Given<D>) {
    let n = || given.ints.clone();
    compiled!(n() + n(), n() - n(), n() * n());
    compiled!(n().sum(), n().max(), n().min());
    compiled!(n().float(), n().equal(n()));
    compiled!(n().into_scalar::<i32>(), n().into_scalar::<i64>());
    read(&given.ints);
}

fn truth<const D: usize>(given: &Given<D>) {
    let b = || given.bools.clone();
    compiled!(b().int(), b().float(), b().bool_not(), b().all());
    read(&given.bools);
}

/// Methods of tensors of every kind.
fn read<const D: usize, K: kind::Basic>(tensor: &Tensor<D, K>)
where
    Tensor<D, K>: Clone + std::fmt::Display,
{
    compiled!(tensor.dims(), tensor.shape(), tensor.device());
    compiled!(tensor.to_data(), tensor.clone().into_data());
    compiled!(tensor.to_string(), tensor.bundle());
}

fn along<const D: usize, I: AsIndex>(given: &Given<D>, dim: I) {
    let x = || given.x.clone();
    compiled!(x().sum_dim(dim), x().mean_dim(dim), x().max_dim(dim));
    compiled!(x().argmax(dim), x().swap_dims(dim, dim), x().var(dim));
    compiled!(Tensor::cat(vec![x(), x()], dim));
}

fn with_number<const D: usize, E: ElementConversion + Copy>(given: &Given<D>, number: E) {
    let (x, n) = (|| given.x.clone(), || given.ints.clone());
    compiled!(x() + number, x() - number);
    compiled!(x() * number, x() / number);
    compiled!(x().add_scalar(number), x().sub_scalar(number));
    compiled!(x().mul_scalar(number), x().div_scalar(number));
    compiled!(x().powf_scalar(number), x().clamp(number, number));
    compiled!(n() + number, n() * number);
}

fn made<const D: usize, S>(given: &Given<D>, shape: S)
where
    S: Copy + Into<Shape> + ReshapeArgs<D>,
{
    let device = &given.device;
    compiled!(
        Tensor::<D>::zeros(shape, device),
        Tensor::<D>::ones(shape, device)
    );
    compiled!(Tensor::<D>::random(shape, Distribution::Default, device));
    compiled!(
        Tensor::<D>::full(shape, 0.0_f64, device),
        given.x.clone().reshape(shape)
    );
    compiled!(
        Tensor::<D, Int>::zeros(shape, device),
        Tensor::<D, Int>::ones(shape, device)
    );
    compiled!(Tensor::<D>::from_data(given.data.clone(), device));
    compiled!(Tensor::<D, Int>::from_data(given.data.clone(), device));
}

fn between<const D: usize, const MORE: usize>() {
    let (less, more) = (given::<D>(), given::<MORE>());
    let (x, y) = (|| less.x.clone(), || more.x.clone());
    compiled!(x().unsqueeze::<MORE>(), x().unsqueeze_dim::<MORE>(0));
    compiled!(y().squeeze::<D>(), y().squeeze_dim::<D>(0));
    compiled!(
        y().flatten::<D>(0, 1),
        Tensor::stack::<MORE>(vec![x(), x()], 0)
    );
    compiled!(
        x().reshape::<MORE, _>([0_i32; MORE]),
        y().reshape::<D, _>([0_i32; D])
    );
}
