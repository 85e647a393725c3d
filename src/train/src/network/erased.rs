//! [`AnyNetwork`]: a network whose type is not known, so that the training loop is compiled once, in this library, and not
//! again for each network of a cell.
//!
//! What is generic over a user's [`Network`] is in this file: what the loop asks of a network, as a table of functions, and
//! how variables of any rank pass through it. burn's visitors and mappers have one function a rank; a table cannot have
//! those, so a variable goes through as `dyn Any` and is named by its rank again on the other side.

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};

use burn::module::{Devices, Flag, Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Bool, Device, Float, Int, Tensor};
use stratoscope_bert::{Mode, NamedParameter};
use stratoscope_data::{Batch, Dataset};
use stratoscope_diagnostics::Result;

use super::{Activation, Blueprint, Files, Network};
use crate::report::summary::LayerRow;

/// The largest rank of a variable.
const MAX_RANK: usize = 8;

/// A network of any type. It is a module of burn, as its network is.
pub(crate) struct AnyNetwork(Box<dyn Erased>);

impl AnyNetwork {
    pub(crate) fn new<N: Network>(network: N) -> Self {
        Self(Box::new(network))
    }

    /// The network, where it has this type.
    pub(crate) fn downcast_ref<N: Network>(&self) -> Option<&N> {
        (&*self.0 as &dyn Any).downcast_ref()
    }

    /// As [`Network::logits`].
    pub(crate) fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2> {
        self.0.logits(batch, mode, device)
    }

    /// As [`Network::parameters`].
    pub(crate) fn parameters(&self) -> Vec<NamedParameter> {
        self.0.parameters()
    }

    /// As [`Network::is_built`].
    pub(crate) fn is_built(&self) -> bool {
        self.0.is_built()
    }

    /// As [`Network::fits`].
    pub(crate) fn fits(&self, width: usize) -> Result<()> {
        self.0.fits(width)
    }

    /// As [`Network::build`].
    #[must_use]
    pub(crate) fn build(self, width: usize, device: &Device) -> Self {
        Self(self.0.build(width, device))
    }

    /// As [`Network::input_width`].
    pub(crate) fn input_width(&self) -> Option<usize> {
        self.0.input_width()
    }

    /// As [`Network::check`].
    pub(crate) fn check(&self, data: &Dataset, call: &str) -> Result<()> {
        self.0.check(data, call)
    }

    /// As [`Network::can_be_saved`].
    pub(crate) fn can_be_saved(&self) -> bool {
        self.0.can_be_saved()
    }

    /// As [`Network::save`], with the files that belong to it.
    pub(crate) fn save(&self, files: &dyn Files, folder: &Path) -> Result<Vec<PathBuf>> {
        self.0.save(files, folder)
    }

    /// As [`Network::follows_policy`].
    pub(crate) fn follows_policy(&self) -> bool {
        self.0.follows_policy()
    }

    /// As [`Network::can_recompute`].
    pub(crate) fn can_recompute(&self) -> bool {
        self.0.can_recompute()
    }

    /// As [`Network::blueprint`], with the files that belong to it.
    pub(crate) fn blueprint(&self, files: &dyn Files) -> Option<Blueprint> {
        self.0.blueprint(files)
    }

    /// As [`Network::layer_rows`].
    pub(crate) fn layer_rows(&self) -> Option<Vec<LayerRow>> {
        self.0.layer_rows()
    }

    /// Whether it is known to put out probabilities and not logits.
    pub(crate) fn puts_out_probabilities(&self) -> bool {
        let activation = self.0.output_activation();
        activation.is_some_and(Activation::makes_probabilities)
    }

    /// As [`Network::output_activation`].
    pub(crate) fn output_activation(&self) -> Option<Activation> {
        self.0.output_activation()
    }
}

impl Clone for AnyNetwork {
    fn clone(&self) -> Self {
        Self(self.0.cloned())
    }
}

impl fmt::Debug for AnyNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Module for AnyNetwork {
    fn collect_devices(&self, devices: Devices) -> Devices {
        self.0.collected_devices(devices)
    }

    fn fork(self, device: &Device) -> Self {
        Self(self.0.forked(device))
    }

    fn to_device(self, device: &Device) -> Self {
        Self(self.0.on_device(device))
    }

    fn train(self) -> Self {
        Self(self.0.training())
    }

    fn valid(&self) -> Self {
        Self(self.0.validating())
    }

    fn materialize(self) -> Self {
        Self(self.0.materialized())
    }

    fn visit<Visitor: ModuleVisitor>(&self, visitor: &mut Visitor) {
        self.0.visited(visitor);
    }

    fn map<Mapper: ModuleMapper>(self, mapper: &mut Mapper) -> Self {
        Self(self.0.mapped(mapper))
    }
}

/// [`Network`] and burn's `Module` as one table of functions.
trait Erased: Any + Send + fmt::Debug {
    fn cloned(&self) -> Box<dyn Erased>;
    fn collected_devices(&self, devices: Devices) -> Devices;
    fn forked(self: Box<Self>, device: &Device) -> Box<dyn Erased>;
    fn on_device(self: Box<Self>, device: &Device) -> Box<dyn Erased>;
    fn training(self: Box<Self>) -> Box<dyn Erased>;
    fn validating(&self) -> Box<dyn Erased>;
    fn materialized(self: Box<Self>) -> Box<dyn Erased>;
    fn visited(&self, visitor: &mut dyn VisitAnyRank);
    fn mapped(self: Box<Self>, mapper: &mut dyn MapAnyRank) -> Box<dyn Erased>;

    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2>;
    fn parameters(&self) -> Vec<NamedParameter>;
    fn is_built(&self) -> bool;
    fn fits(&self, width: usize) -> Result<()>;
    fn build(self: Box<Self>, width: usize, device: &Device) -> Box<dyn Erased>;
    fn input_width(&self) -> Option<usize>;
    fn check(&self, data: &Dataset, call: &str) -> Result<()>;
    fn can_be_saved(&self) -> bool;
    fn save(&self, files: &dyn Files, folder: &Path) -> Result<Vec<PathBuf>>;
    fn follows_policy(&self) -> bool;
    fn can_recompute(&self) -> bool;
    fn blueprint(&self, files: &dyn Files) -> Option<Blueprint>;
    fn layer_rows(&self) -> Option<Vec<LayerRow>>;
    fn output_activation(&self) -> Option<Activation>;
}

impl<N: Network> Erased for N {
    fn cloned(&self) -> Box<dyn Erased> {
        Box::new(self.clone())
    }

    fn collected_devices(&self, devices: Devices) -> Devices {
        self.collect_devices(devices)
    }

    fn forked(self: Box<Self>, device: &Device) -> Box<dyn Erased> {
        Box::new(self.fork(device))
    }

    fn on_device(self: Box<Self>, device: &Device) -> Box<dyn Erased> {
        Box::new(self.to_device(device))
    }

    fn training(self: Box<Self>) -> Box<dyn Erased> {
        Box::new(self.train())
    }

    fn validating(&self) -> Box<dyn Erased> {
        Box::new(self.valid())
    }

    fn materialized(self: Box<Self>) -> Box<dyn Erased> {
        Box::new(self.materialize())
    }

    fn visited(&self, visitor: &mut dyn VisitAnyRank) {
        self.visit(&mut ThroughTable(visitor));
    }

    fn mapped(self: Box<Self>, mapper: &mut dyn MapAnyRank) -> Box<dyn Erased> {
        Box::new(self.map(&mut ThroughTable(mapper)))
    }

    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2> {
        Network::logits(self, batch, mode, device)
    }

    fn parameters(&self) -> Vec<NamedParameter> {
        Network::parameters(self)
    }

    fn is_built(&self) -> bool {
        Network::is_built(self)
    }

    fn fits(&self, width: usize) -> Result<()> {
        Network::fits(self, width)
    }

    fn build(self: Box<Self>, width: usize, device: &Device) -> Box<dyn Erased> {
        Box::new(Network::build(*self, width, device))
    }

    fn input_width(&self) -> Option<usize> {
        Network::input_width(self)
    }

    fn check(&self, data: &Dataset, call: &str) -> Result<()> {
        Network::check(self, data, call)
    }

    fn can_be_saved(&self) -> bool {
        Network::can_be_saved(self)
    }

    fn save(&self, files: &dyn Files, folder: &Path) -> Result<Vec<PathBuf>> {
        Network::save(self, files.of(), folder)
    }

    fn follows_policy(&self) -> bool {
        N::follows_policy()
    }

    fn can_recompute(&self) -> bool {
        N::can_recompute()
    }

    fn blueprint(&self, files: &dyn Files) -> Option<Blueprint> {
        Network::blueprint(self, files.of())
    }

    fn layer_rows(&self) -> Option<Vec<LayerRow>> {
        Network::layer_rows(self)
    }

    fn output_activation(&self) -> Option<Activation> {
        Network::output_activation(self)
    }
}

/// burn's visitor without its ranks: each variable is a `Param`.
trait VisitAnyRank {
    fn float(&mut self, param: &dyn Any);
    fn int(&mut self, param: &dyn Any);
    fn bool(&mut self, param: &dyn Any);
    fn flag(&mut self, flag: &Param<Flag>);
    fn enter(&mut self, name: &str, container: &str);
    fn exit(&mut self, name: &str, container: &str);
}

/// burn's mapper without its ranks: each variable is an `Option<Param<…>>`, which is full before and after.
trait MapAnyRank {
    fn float(&mut self, param: &mut dyn Any);
    fn int(&mut self, param: &mut dyn Any);
    fn bool(&mut self, param: &mut dyn Any);
    fn flag(&mut self, flag: Param<Flag>) -> Param<Flag>;
    fn enter(&mut self, name: &str, container: &str);
    fn exit(&mut self, name: &str, container: &str);
}

/// A visitor or a mapper behind a table, as the network's own code sees it.
struct ThroughTable<'a, T: ?Sized>(&'a mut T);

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
