//! `ModelParallel`: slices of each layer's weights on several devices, which compute the layer together. Keras:
//! `keras.distribution.ModelParallel`; elsewhere it is called tensor parallelism.
//!
//! A [`LayoutMap`] says along which axis a variable is cut, by patterns over its name. Without one, the layers of BERT are cut as
//! Megatron does it: query, key, value and the first product of the feed-forward part by rows of their weights [O, I], so that
//! each device has whole heads, and the second product of either half by columns. A device keeps the slice with its moments,
//! and its part of an optimizer step. Variables that no pattern matches are on the first device, which computes what is not
//! cut.
//!
//! Keras (keras-team/keras@015139f, `keras/src/distribution/distribution_lib.py`) has two axes: the batch is divided along the first
//! one of the mesh, and an unmatched variable is replicated on all devices. Each process of a cluster runs the same program, so
//! that a copy costs no transfer. Here one process has all devices, and a copy on each would be computed with several times.
//!
//! Sources: Shoeybi et al. 2019, "Megatron-LM", section 3.

mod in_words;
mod layout;
mod mesh;

use stratoscope_diagnostics::Result;

use super::distribution::{Distribution, Storing};
use super::explain::Row;
use super::mirrored::distinct;
use super::{Handle, IntoReplicaCount, Settings, Strategy, StrategyKind, handle, split};
use crate::device::{DeviceSpec, LogicalDevice, default_device};
use crate::problem;
use crate::variable::VariableKind;
use crate::variable::kind::{Kind, Rows};

pub use self::layout::LayoutMap;
pub(crate) use self::layout::assign;
pub use self::mesh::DeviceMesh;

/// A handle of a strategy with slices of each layer on several devices. A clone is another handle of the same one.
///
/// ```
/// use stratoscope_strategy::ModelParallel;
///
/// # fn main() -> stratoscope_diagnostics::Result<()> {
/// let strategy = ModelParallel::logical(2)?;
/// assert!(strategy.to_string().ends_with("2 logical CPU devices, slices of each layer on all of them"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ModelParallel {
    strategy: Strategy,
    _handle: Handle,
}

impl ModelParallel {
    /// Cuts variables as a map of layouts says, over the devices of its mesh.
    ///
    /// # Errors
    /// SC0627 for a mesh that divides the batch too, or that has one device.
    pub fn new(layout: LayoutMap) -> Result<Self> {
        layout.mesh().check_for_model()?;
        let devices = layout.mesh().devices().to_vec();
        Self::with(devices, Some(layout))
    }

    /// Splits the default device into `devices` logical devices, 2 to 64, with the layout for BERT.
    ///
    /// # Errors
    /// SC0915 for a count outside the range, SC0712 for a default device that is not there.
    pub fn logical(devices: impl IntoReplicaCount) -> Result<Self> {
        let devices = devices.checked()?;
        Self::with(split(&default_device()?, devices), None)
    }

    /// [`Self::logical`] for another device: `logical_on(wgpu(0), 2)`.
    ///
    /// # Errors
    /// SC0915 for a count outside 2 to 64, SC0906 and SC0907 for the device.
    pub fn logical_on(
        device: impl Into<DeviceSpec>,
        devices: impl IntoReplicaCount,
    ) -> Result<Self> {
        let devices = devices.checked()?;
        Self::with(split(&device.into().resolve()?, devices), None)
    }

    /// A slice on each of these devices, with the layout for BERT: `on([cuda(0), cuda(1)])`. They may be of different kinds;
    /// activations then pass through the host.
    ///
    /// # Errors
    /// SC0915 for fewer than two devices or the same device twice, SC0906 for one that is not there, SC0907 for one that
    /// does not start.
    pub fn on<I>(devices: I) -> Result<Self>
    where
        I: IntoIterator,
        I::Item: Into<DeviceSpec>,
    {
        Self::with(distinct(devices)?, None)
    }

    /// The devices that have slices, in their order.
    pub fn devices(&self) -> &[LogicalDevice] {
        self.strategy.model_devices()
    }

    fn with(devices: Vec<LogicalDevice>, layout: Option<LayoutMap>) -> Result<Self> {
        if devices.len() < 2 {
            let what = "number of devices with slices of the layers";
            return Err(problem::bad_size(what, devices.len(), "at least 2"));
        }
        let settings = Settings {
            layout,
            ..Settings::default()
        };
        let kind = StrategyKind::ModelParallel;
        let (strategy, _handle) = Strategy::register_with(kind, devices, Vec::new(), settings);
        Ok(Self { strategy, _handle })
    }
}

handle!(ModelParallel);

/// What it says of itself.
pub(super) struct Slices;

impl Distribution for Slices {
    fn type_name(&self) -> &'static str {
        "ModelParallel"
    }

    fn name(&self) -> &'static str {
        "model_parallel"
    }

    fn storing(&self) -> Storing {
        Storing::ByLayers
    }

    /// Those that are cut are cut afterwards ([`assign`]).
    fn created(&self, strategy: &Strategy, _taken: usize, _rows: Option<Rows>) -> Kind {
        let (label, first) = (strategy.label(), strategy.replicas().first());
        let home = first.map_or("", |device| device.name.as_str());
        let why = format!("made in the scope of `{label}`: not cut, on {home}, its first device");
        Kind::whole(VariableKind::Local, why, vec![0])
    }

    fn step(&self, strategy: &Strategy) -> String {
        in_words::sentence(strategy.model_devices().len())
    }

    fn bytes(&self, strategy: &Strategy) -> Option<Vec<Row>> {
        Some(in_words::bytes(strategy.model_devices().len()))
    }
}

impl Strategy {
    /// The devices that have slices of the layers; empty under other strategies.
    pub fn model_devices(&self) -> &[LogicalDevice] {
        match self.kind() {
            StrategyKind::ModelParallel => &self.0.replicas,
            _ => &[],
        }
    }

    /// Along which axis a variable of this name is cut; `None` where it is whole. Of two patterns that match, the first one's.
    pub fn cut_axis(&self, variable: &str) -> Option<usize> {
        if self.model_devices().is_empty() {
            return None;
        }
        match &self.settings().layout {
            Some(layout) => layout.axis(variable),
            None => layout::axis_in_bert(variable),
        }
    }

    /// The map of layouts that was given.
    pub(crate) fn layout(&self) -> Option<LayoutMap> {
        self.settings().layout.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AsStrategy;

    #[test]
    fn slices_are_of_one_replica_on_several_devices() {
        let strategy = ModelParallel::logical(3).expect("three logical devices");
        let passive = strategy.strategy();
        assert_eq!(passive.replicas().len(), 1);
        assert_eq!((passive.devices().len(), strategy.devices().len()), (3, 3));
        for (name, axis) in [
            ("bert.encoder.layer.0.attention.self.query.weight", Some(0)),
            ("encoder.layer.11.attention.self.value.bias", Some(0)),
            ("encoder.layer.11.attention.output.dense.weight", Some(1)),
            ("encoder.layer.11.attention.output.dense.bias", None),
            ("roberta.encoder.layer.3.intermediate.dense.bias", Some(0)),
            ("roberta.encoder.layer.3.output.dense.weight", Some(1)),
            ("distilbert.transformer.layer.3.ffn.lin1.weight", Some(0)),
            ("distilbert.transformer.layer.3.ffn.lin2.weight", Some(1)),
            (
                "distilbert.transformer.layer.3.attention.out_lin.weight",
                Some(1),
            ),
            ("bert.embeddings.word_embeddings.weight", None),
            ("bert.pooler.dense.weight", None),
            ("bert.encoder.layer.0.output.LayerNorm.weight", None),
        ] {
            assert_eq!(passive.cut_axis(name), axis, "{name}");
        }
    }

    #[test]
    fn one_device_has_no_slices() {
        let found = ModelParallel::logical(1).expect_err("one device");
        assert_eq!(found.code, "SC0915");
    }
}
