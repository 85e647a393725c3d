//! How variables of any rank pass through the table of [`AnyNetwork`](super::AnyNetwork). burn's visitors and mappers have one
//! function a rank; a table cannot have those, so a variable goes through as `dyn Any` and is named by its rank again on the
//! other side.

use std::any::Any;

use burn::module::{Flag, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Bool, Float, Int, Tensor};

/// The largest rank of a variable.
const MAX_RANK: usize = 8;

/// burn's visitor without its ranks: each variable is a `Param`.
pub(super) trait VisitAnyRank {
    fn float(&mut self, param: &dyn Any);
    fn int(&mut self, param: &dyn Any);
    fn bool(&mut self, param: &dyn Any);
    fn flag(&mut self, flag: &Param<Flag>);
    fn enter(&mut self, name: &str, container: &str);
    fn exit(&mut self, name: &str, container: &str);
}

/// burn's mapper without its ranks: each variable is an `Option<Param<…>>`, which is full before and after.
pub(super) trait MapAnyRank {
    fn float(&mut self, param: &mut dyn Any);
    fn int(&mut self, param: &mut dyn Any);
    fn bool(&mut self, param: &mut dyn Any);
    fn flag(&mut self, flag: Param<Flag>) -> Param<Flag>;
    fn enter(&mut self, name: &str, container: &str);
    fn exit(&mut self, name: &str, container: &str);
}

/// A visitor or a mapper behind a table, as the network's own code sees it.
pub(super) struct ThroughTable<'a, T: ?Sized>(pub(super) &'a mut T);

impl ModuleVisitor for ThroughTable<'_, dyn VisitAnyRank + '_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        const { assert!(D <= MAX_RANK, "a variable has at most 8 dimensions") };
        self.0.float(param);
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        const { assert!(D <= MAX_RANK, "a variable has at most 8 dimensions") };
        self.0.int(param);
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        const { assert!(D <= MAX_RANK, "a variable has at most 8 dimensions") };
        self.0.bool(param);
    }

    fn visit_flag(&mut self, flag: &Param<Flag>) {
        self.0.flag(flag);
    }

    fn enter_module(&mut self, name: &str, container: &str) {
        self.0.enter(name, container);
    }

    fn exit_module(&mut self, name: &str, container: &str) {
        self.0.exit(name, container);
    }
}

impl ModuleMapper for ThroughTable<'_, dyn MapAnyRank + '_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        const { assert!(D <= MAX_RANK, "a variable has at most 8 dimensions") };
        let mut param = Some(param);
        self.0.float(&mut param);
        param.expect("a mapper returns each variable")
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        const { assert!(D <= MAX_RANK, "a variable has at most 8 dimensions") };
        let mut param = Some(param);
        self.0.int(&mut param);
        param.expect("a mapper returns each variable")
    }

    fn map_bool<const D: usize>(
        &mut self,
        param: Param<Tensor<D, Bool>>,
    ) -> Param<Tensor<D, Bool>> {
        const { assert!(D <= MAX_RANK, "a variable has at most 8 dimensions") };
        let mut param = Some(param);
        self.0.bool(&mut param);
        param.expect("a mapper returns each variable")
    }

    fn map_flag(&mut self, flag: Param<Flag>) -> Param<Flag> {
        self.0.flag(flag)
    }

    fn enter_module(&mut self, name: &str, container: &str) {
        self.0.enter(name, container);
    }

    fn exit_module(&mut self, name: &str, container: &str) {
        self.0.exit(name, container);
    }
}

/// Calls a visitor with a variable by its rank.
macro_rules! visit_by_rank {
    ($visit:expr, $param:ident, $kind:ident) => {
        visit_by_rank!($visit, $param, $kind, 1 2 3 4 5 6 7 8)
    };
    ($visit:expr, $param:ident, $kind:ident, $($rank:literal)*) => {{
        $(if let Some(param) = $param.downcast_ref::<Param<Tensor<$rank, $kind>>>() {
            return $visit(param);
        })*
        unreachable!("all ranks are listed")
    }};
}

/// Calls a mapper with a variable by its rank.
macro_rules! map_by_rank {
    ($map:expr, $param:ident, $kind:ident) => {
        map_by_rank!($map, $param, $kind, 1 2 3 4 5 6 7 8)
    };
    ($map:expr, $param:ident, $kind:ident, $($rank:literal)*) => {{
        $(if let Some(param) = $param.downcast_mut::<Option<Param<Tensor<$rank, $kind>>>>() {
            *param = param.take().map($map);
            return;
        })*
        unreachable!("all ranks are listed")
    }};
}

impl<V: ModuleVisitor> VisitAnyRank for V {
    fn float(&mut self, param: &dyn Any) {
        visit_by_rank!(|it| self.visit_float(it), param, Float)
    }

    fn int(&mut self, param: &dyn Any) {
        visit_by_rank!(|it| self.visit_int(it), param, Int)
    }

    fn bool(&mut self, param: &dyn Any) {
        visit_by_rank!(|it| self.visit_bool(it), param, Bool)
    }

    fn flag(&mut self, flag: &Param<Flag>) {
        self.visit_flag(flag);
    }

    fn enter(&mut self, name: &str, container: &str) {
        self.enter_module(name, container);
    }

    fn exit(&mut self, name: &str, container: &str) {
        self.exit_module(name, container);
    }
}

impl<M: ModuleMapper> MapAnyRank for M {
    fn float(&mut self, param: &mut dyn Any) {
        map_by_rank!(|it| self.map_float(it), param, Float)
    }

    fn int(&mut self, param: &mut dyn Any) {
        map_by_rank!(|it| self.map_int(it), param, Int)
    }

    fn bool(&mut self, param: &mut dyn Any) {
        map_by_rank!(|it| self.map_bool(it), param, Bool)
    }

    fn flag(&mut self, flag: Param<Flag>) -> Param<Flag> {
        self.map_flag(flag)
    }

    fn enter(&mut self, name: &str, container: &str) {
        self.enter_module(name, container);
    }

    fn exit(&mut self, name: &str, container: &str) {
        self.exit_module(name, container);
    }
}
