//! The precision of a pass: float32, or 16-bit numbers as under Keras's mixed-precision policies.
//!
//! **bfloat16 on the CPU** is computed by our own products (`cpu::bf16`): what a product multiplies is rounded to 16 bits,
//! sums are float32, and what is kept for the backward pass is held in 16 bits. What operations put out is float32, and
//! normalizations, softmax and activations compute in it.
//! [`bfloat16_on_cpu`] tells what does the multiplication. Where somebody looks at single operations, they are emulated.
//!
//! **float16 and bfloat16 on GPUs**: what products multiply and put out has 16 bits, and so has what they keep for the
//! backward pass; they add in float32. What lies between products is float32.
//!
//! **float16 on the CPU** is emulated: an operation computes in float32, and its output is rounded to
//! the nearest 16-bit number; so are the weights it reads. In the backward pass the gradient is rounded at the same
//! places, so it underflows and overflows as in float16. Inside an operation sums are accumulated in float32, as on
//! tensor cores. The emulation saves neither memory nor time.

use std::cell::Cell;

use burn::tensor::{FloatDType, Tensor};

use super::{cpu, fused, gpu};
use crate::operation;

/// The format of 16 bits, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Nothing is rounded.
    #[default]
    Float32,
    /// 11 significant bits, from 6e-8 to 65 504.
    Float16,
    /// 8 significant bits, the range of float32.
    Bfloat16,
}

thread_local! {
    static CURRENT: Cell<Precision> = const { Cell::new(Precision::Float32) };
}

impl Precision {
    /// Runs `work` with this precision on this thread. Thread-local instead of an argument, because every operation of
    /// a forward pass needs it and replicas run on threads of their own.
    pub fn during<T>(self, work: impl FnOnce() -> T) -> T {
        struct Back(Precision);
        impl Drop for Back {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _back = Back(CURRENT.replace(self));
        work()
    }

    /// The type of 16 bits, if it is one.
    pub fn half(self) -> Option<FloatDType> {
        match self {
            Self::Float32 => None,
            Self::Float16 => Some(FloatDType::F16),
            Self::Bfloat16 => Some(FloatDType::BF16),
        }
    }
}

/// What products of the pass of this thread multiply on a GPU, if not float32.
pub(super) fn half() -> Option<FloatDType> {
    CURRENT.get().half()
}

/// Whether the pass of this thread computes in bfloat16.
pub(super) fn in_bf16() -> bool {
    CURRENT.get() == Precision::Bfloat16
}

/// What multiplies bfloat16 numbers on this machine's CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bfloat16 {
    /// AMX: the processor multiplies tiles of bfloat16 numbers.
    Amx,
    /// AVX512-BF16: it multiplies pairs of them.
    Avx512Bf16,
    /// Float32 arithmetic on numbers that were rounded to 16 bits: the processor has no such instructions, or the
    /// variable `STRATOSCOPE_CPU` excludes them.
    Emulated,
}

/// What multiplies bfloat16 numbers on this machine's CPU.
pub fn bfloat16_on_cpu() -> Bfloat16 {
    match cpu::level() {
        cpu::Level::Amx => Bfloat16::Amx,
        cpu::Level::Avx512Bf16 => Bfloat16::Avx512Bf16,
        _ => Bfloat16::Emulated,
    }
}

/// The tensor rounded to the current precision, as float32. Its gradient is rounded likewise. A float32 tensor on a GPU, and
/// under bfloat16 one on the CPU, stays as it is, because there products round what they multiply.
pub fn rounded<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    match CURRENT.get().half() {
        None => tensor,
        Some(_) if gpu::takes(&tensor) => tensor,
        Some(FloatDType::BF16) if fused::takes(&tensor) => tensor,
        Some(half) => operation!("round to 16 bits", [tensor], {
            tensor.cast(half).cast(FloatDType::F32)
        }),
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::ops;

    fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    /// 1 + 2⁻¹² is between two float16 numbers, 1 + 2⁻⁹ between two of bfloat16, and 2⁻²⁶ and 10⁵ are beyond
    /// the ends of float16.
    #[test]
    fn numbers_are_those_that_16_bits_can_hold() {
        let numbers = [
            1.0 + 2_f32.powi(-12),
            1.0 + 2_f32.powi(-9),
            2_f32.powi(-26),
            1e5,
        ];
        let round = |precision: Precision| {
            let tensor = Tensor::<1>::from_floats(numbers, &Device::flex());
            precision.during(|| values(rounded(tensor)))
        };
        assert_eq!(round(Precision::Float32), numbers);
        let half = round(Precision::Float16);
        assert_eq!(half, [1.0, numbers[1], 0.0, f32::INFINITY]);
        // On the CPU products round what they multiply, and nothing else is rounded.
        assert_eq!(round(Precision::Bfloat16), numbers);
    }

    /// y = w · x, and what comes back from above is 2⁻²⁶, which float16 loses, or 2⁻²⁰, which it keeps.
    #[test]
    fn gradients_are_rounded_on_their_way_back() {
        let device = Device::flex().autodiff();
        let gradient = |precision: Precision, above: f32| {
            let weight = Tensor::<2>::from_floats([[0.5]], &device).require_grad();
            let x = Tensor::<3>::from_floats([[[1.0]]], &device);
            let y =
                precision.during(|| ops::linear(x, weight.clone(), Tensor::zeros([1], &device)));
            let gradients = (y * above).sum().backward();
            values(weight.grad(&gradients).expect("it has one"))[0]
        };
        assert_eq!(
            gradient(Precision::Float32, 2_f32.powi(-26)),
            2_f32.powi(-26)
        );
        assert_eq!(gradient(Precision::Float16, 2_f32.powi(-26)), 0.0);
        assert_eq!(
            gradient(Precision::Float16, 2_f32.powi(-20)),
            2_f32.powi(-20)
        );
        assert_eq!(gradient(Precision::Float16, 1e6), f32::INFINITY);
        assert_eq!(
            gradient(Precision::Bfloat16, 2_f32.powi(-26)),
            2_f32.powi(-26)
        );
    }

    #[test]
    fn the_precision_ends_with_the_work_also_by_a_panic() {
        let panicked = std::panic::catch_unwind(|| {
            Precision::Float16.during(|| std::panic::panic_any("on purpose"))
        });
        assert!(panicked.is_err());
        assert_eq!(CURRENT.get(), Precision::Float32);
    }
}
