//! Changes to every parameter of a module.

use std::collections::{HashMap, HashSet};

use burn::module::{ModuleMapper, Param, ParamId};
use burn::tensor::{Bool, Int, Tensor};

/// Marks some parameters as trainable or frozen.
pub(super) struct Trainable<'a> {
    pub(super) params: &'a HashSet<ParamId>,
    pub(super) trainable: bool,
}

impl ModuleMapper for Trainable<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        match self.params.contains(&param.id) {
            true => param.set_require_grad(self.trainable),
            false => param,
        }
    }
}

/// Gives parameters other identities: from the key to the value.
pub(super) struct Renamed(pub(super) HashMap<ParamId, ParamId>);

impl ModuleMapper for Renamed {
    fn map_float<const D: usize>(&mut self, mut param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.id = self.0.get(&param.id).copied().unwrap_or(param.id);
        param
    }

    fn map_int<const D: usize>(
        &mut self,
        mut param: Param<Tensor<D, Int>>,
    ) -> Param<Tensor<D, Int>> {
        param.id = self.0.get(&param.id).copied().unwrap_or(param.id);
        param
    }

    fn map_bool<const D: usize>(
        &mut self,
        mut param: Param<Tensor<D, Bool>>,
    ) -> Param<Tensor<D, Bool>> {
        param.id = self.0.get(&param.id).copied().unwrap_or(param.id);
        param
    }
}
