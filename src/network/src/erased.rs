//! [`AnyNetwork`]: a network whose type is not known, so that the training loop is compiled once, in this library, and not
//! again for each network of a cell.
//!
//! What is generic over a user's [`Network`] is in this file: what the loop asks of a network, as a table of functions.
//! Variables of any rank pass through it by [`by_rank`](super::by_rank).

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};

use burn::module::{Devices, Module, ModuleMapper, ModuleVisitor};
use burn::tensor::{Device, Tensor};
use stratoscope_bert::{Computed, Mode, NamedParameter, Segment};
use stratoscope_data::{Batch, Dataset};
use stratoscope_diagnostics::Result;

use super::by_rank::{MapAnyRank, ThroughTable, VisitAnyRank};
use super::{Activation, Blueprint, Files, InStages, Network};
use stratoscope_report::summary::LayerRow;

/// A network of any type. It is a module of burn, as its network is.
pub struct AnyNetwork(Box<dyn Erased>);

impl AnyNetwork {
    /// A network whose type is not named any more.
    pub fn new<N: Network>(network: N) -> Self {
        Self(Box::new(network))
    }

    /// The network, where it has this type.
    pub fn downcast_ref<N: Network>(&self) -> Option<&N> {
        (&*self.0 as &dyn Any).downcast_ref()
    }

    /// As [`Network::logits`].
    pub fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2> {
        self.0.logits(batch, mode, device)
    }

    /// As [`Network::parameters`].
    pub fn parameters(&self) -> Vec<NamedParameter> {
        self.0.parameters()
    }

    /// As [`Network::is_built`].
    pub fn is_built(&self) -> bool {
        self.0.is_built()
    }

    /// As [`Network::fits`].
    pub fn fits(&self, width: usize) -> Result<()> {
        self.0.fits(width)
    }

    /// As [`Network::build`].
    #[must_use]
    pub fn build(self, width: usize, device: &Device) -> Self {
        Self(self.0.build(width, device))
    }

    /// As [`Network::input_width`].
    pub fn input_width(&self) -> Option<usize> {
        self.0.input_width()
    }

    /// As [`Network::check`].
    pub fn check(&self, data: &Dataset, call: &str) -> Result<()> {
        self.0.check(data, call)
    }

    /// As [`Network::can_be_saved`].
    pub fn can_be_saved(&self) -> bool {
        self.0.can_be_saved()
    }

    /// As [`Network::save`], with the files that belong to it.
    pub fn save(&self, files: &dyn Files, folder: &Path) -> Result<Vec<PathBuf>> {
        self.0.save(files, folder)
    }

    /// As [`Network::follows_policy`].
    pub fn follows_policy(&self) -> bool {
        self.0.follows_policy()
    }

    /// As [`Network::can_recompute`].
    pub fn can_recompute(&self) -> bool {
        self.0.can_recompute()
    }

    /// As [`Network::in_stages`].
    pub fn in_stages(&self) -> InStages {
        self.0.in_stages()
    }

    /// As [`Network::segment`].
    pub fn segment(
        &self,
        segment: &Segment,
        before: Option<Tensor<3>>,
        batch: &Batch,
        mode: Mode,
        device: &Device,
    ) -> Option<Computed> {
        self.0.segment(segment, before, batch, mode, device)
    }

    /// As [`Network::attention_heads`].
    pub fn attention_heads(&self) -> Option<usize> {
        self.0.attention_heads()
    }

    /// As [`Network::blueprint`], with the files that belong to it.
    pub fn blueprint(&self, files: &dyn Files) -> Option<Blueprint> {
        self.0.blueprint(files)
    }

    /// As [`Network::layer_rows`].
    pub fn layer_rows(&self) -> Option<Vec<LayerRow>> {
        self.0.layer_rows()
    }

    /// Whether it is known to put out probabilities and not logits.
    pub fn puts_out_probabilities(&self) -> bool {
        let activation = self.0.output_activation();
        activation.is_some_and(Activation::makes_probabilities)
    }

    /// As [`Network::output_activation`].
    pub fn output_activation(&self) -> Option<Activation> {
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
    fn in_stages(&self) -> InStages;
    fn segment(
        &self,
        segment: &Segment,
        before: Option<Tensor<3>>,
        batch: &Batch,
        mode: Mode,
        device: &Device,
    ) -> Option<Computed>;
    fn attention_heads(&self) -> Option<usize>;
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

    fn in_stages(&self) -> InStages {
        N::in_stages()
    }

    fn segment(
        &self,
        segment: &Segment,
        before: Option<Tensor<3>>,
        batch: &Batch,
        mode: Mode,
        device: &Device,
    ) -> Option<Computed> {
        Network::segment(self, segment, before, batch, mode, device)
    }

    fn attention_heads(&self) -> Option<usize> {
        Network::attention_heads(self)
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
