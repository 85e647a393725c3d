//! Keeps burn from fusing a matrix product that has one column with the operations after it.
//!
//! burn-cubecl-fusion 0.22 tunes such a product (a matrix times a vector) among kernels that are made for the reverse (a
//! vector times a matrix). One of them accepts it and computes only a part of the rows, so that a layer with one output is
//! trained wrong (burn's issue 5122). The same product by itself is right: its own tuning transposes or refuses. So the
//! fusion of products is replaced by one that leaves such products alone, and they run by themselves.

use std::sync::OnceLock;

use burn::backend::fusion::{FuserProperties, FuserStatus, OperationFuser};
use burn::backend::ir::{FloatOperationIr, OperationIr};
use burn_cubecl::CubeDevice;
use burn_cubecl::fusion::{CubeFuser, CubeOptimization, OptimizationProvider, register, remove};
use burn_cubecl_fusion::optim::matmul::{MatmulFuser, MatmulOptimization, NAME};

/// Installs the guard, in the whole process; returns false where burn's fusion has started before.
pub fn guard_products() -> bool {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    *INSTALLED.get_or_init(|| remove(NAME).is_ok() && register(Provider).is_ok())
}

struct Provider;

impl OptimizationProvider for Provider {
    type Operation = MatmulOptimization;

    fn fuser(&self, device: &CubeDevice) -> CubeFuser {
        CubeFuser::new(Guarded {
            products: MatmulFuser::new(device.clone()),
            state: State::Empty,
        })
    }
}

/// What a fuser has seen.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Nothing.
    Empty,
    /// An operation that the products' fuser decides on.
    Begun,
    /// A product that must not be fused.
    Refused,
}

/// burn's fuser of products, for products with more than one column.
struct Guarded {
    products: MatmulFuser,
    state: State,
}

/// Fusers see dimensions as numbers that are equal where dimensions are; dimension 1 always has this one.
const ONE: usize = 0;

/// Whether the operation is a matrix product with one column.
fn is_one_column(operation: &OperationIr) -> bool {
    match operation {
        OperationIr::Float(_, FloatOperationIr::Matmul(product)) => {
            product.out.shape.last() == Some(&ONE)
        }
        _ => false,
    }
}

impl OperationFuser<CubeOptimization> for Guarded {
    fn fuse(&mut self, operation: &OperationIr) {
        if self.state == State::Empty {
            self.state = match is_one_column(operation) {
                true => State::Refused,
                false => State::Begun,
            };
        }
        if self.state == State::Begun {
            self.products.fuse(operation);
        }
    }

    fn finish(&mut self) -> CubeOptimization {
        self.products.finish()
    }

    fn reset(&mut self) {
        self.state = State::Empty;
        self.products.reset();
    }

    fn status(&self) -> FuserStatus {
        match self.state {
            State::Refused => FuserStatus::Closed,
            _ => self.products.status(),
        }
    }

    fn properties(&self) -> FuserProperties {
        match self.state {
            State::Refused => FuserProperties::default(),
            _ => self.products.properties(),
        }
    }

    fn len(&self) -> usize {
        self.products.len()
    }

    fn clone_dyn(&self) -> Box<dyn OperationFuser<CubeOptimization>> {
        Box::new(Self {
            products: self.products.clone(),
            state: self.state,
        })
    }
}
