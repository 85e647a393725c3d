//! `ModelParallel`: slices of each layer's weights on several devices, which compute the layer together. Keras:
//! `keras.distribution.ModelParallel`; elsewhere it is called tensor parallelism.
//!
//! A [`LayoutMap`] says along which axis a variable is cut, by patterns over its name. Without one, the layers of BERT are cut as
//! Megatron does it: query, key, value and the first product of the feed-forward part by rows of their weights [O, I], so that
//! each device has whole heads, and the second product of either half by columns. A device keeps the slice with its moments,
//! and its part of an optimizer step. Variables that no pattern matches are on the first device, which computes what is not
//! cut.
//!
//! Tensor and data parallelism compose in a mesh of two axes: the devices of a row, along the last axis, compute the layers
//! together, and are a replica; the rows, along the first axis, divide the batch as mirrored replicas do. Between them the
//! gradients are averaged by the same all-reduce, so that a step is that of mirrored replicas whose layers are in slices.
//!
//! Keras (keras-team/keras@015139f, `keras/src/distribution/distribution_lib.py`) divides the batch along the first axis too, unless
//! `batch_dim_name` names another, and replicates an unmatched variable on all devices. Each process of a cluster runs the same
//! program, so that a copy costs no transfer. Here one process has all devices, and a copy on each of a row would be computed
//! with several times.
//!
//! Sources: Shoeybi et al. 2019, "Megatron-LM", section 3.

mod in_words;
mod layout;

use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::rules::LastAxis;
use stratoscope_render::text;

use super::distribution::{Distribution, Storing};
use super::explain::Row;
use super::mirrored::distinct;
use super::{
    DeviceMesh, Handle, IntoReplicaCount, Settings, Strategy, StrategyKind, cross_device_ops,
    handle, split,
};
use crate::device::{DeviceSpec, LogicalDevice, default_device};
use crate::problem;
use crate::variable::VariableKind;
use crate::variable::kind::{Kind, Rows};

pub use self::layout::LayoutMap;
pub(crate) use self::layout::assign;

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
    /// Cuts variables as a map of layouts says, over the devices along the last axis of its mesh. Those along the first axis
    /// are replicas, which divide the batch.
    ///
    /// ```
    /// use stratoscope_strategy::{AsStrategy, DeviceMesh, LayoutMap, ModelParallel};
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let mesh = DeviceMesh::logical([2, 3], ["batch", "model"])?;
    /// let layout = LayoutMap::new(&mesh).cut("intermediate.dense.weight", [Some("model"), None])?;
    /// let strategy = ModelParallel::new(layout)?;
    /// assert_eq!(strategy.replicas().len(), 2);
    /// assert_eq!(strategy.strategy().devices_of_a_replica(), 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0627 for a mesh with one device along its last axis, or with several along more than two axes.
    pub fn new(layout: LayoutMap) -> Result<Self> {
        (layout.mesh()).check_axes(LastAxis::Slices, "ModelParallel::new")?;
        let devices = layout.mesh().devices().to_vec();
        Self::with(devices, Some(layout))
    }

    /// Cuts the layers of BERT over a mesh, as [`Self::logical`] does: the last axis has the slices, the first one the replicas.
    ///
    /// ```
    /// use stratoscope_strategy::{DeviceMesh, ModelParallel};
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let strategy = ModelParallel::over(&DeviceMesh::logical([2, 2], ["batch", "model"])?)?;
    /// let words = "4 logical CPU devices, 2 replicas in slices of each layer on 2 devices";
    /// assert!(strategy.to_string().ends_with(words));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0627 as for [`Self::new`].
    pub fn over(mesh: &DeviceMesh) -> Result<Self> {
        mesh.check_axes(LastAxis::Slices, "ModelParallel::over")?;
        Self::of(mesh.devices().to_vec(), mesh.replicas(), None)
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
        let replicas = layout.as_ref().map_or(1, |it| it.mesh().replicas());
        Self::of(devices, replicas, layout)
    }

    fn of(devices: Vec<LogicalDevice>, replicas: usize, layout: Option<LayoutMap>) -> Result<Self> {
        if devices.len() < 2 {
            let what = "number of devices with slices of the layers";
            return Err(problem::bad_size(what, devices.len(), "at least 2"));
        }
        let settings = Settings {
            layout,
            ..Settings::default()
        };
        let kind = StrategyKind::ModelParallel;
        let (strategy, _handle) = Strategy::register_in_groups(kind, devices, replicas, settings);
        Ok(Self { strategy, _handle })
    }
}

handle!(ModelParallel);
cross_device_ops!(ModelParallel);

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
        let (label, replicas) = (strategy.label(), strategy.replicas());
        let made = format!("made in the scope of `{label}`: not cut");
        if let [first] = replicas {
            let why = format!("{made}, on {}, its first device", first.name);
            return Kind::whole(VariableKind::Local, why, vec![0]);
        }
        let each = text::count(replicas.len(), "replica");
        let why = format!("{made}, a copy on the first device of each of its {each}");
        let homes = replicas.iter().map(|device| device.id).collect();
        Kind::whole(VariableKind::Mirrored, why, homes)
    }

    fn step(&self, strategy: &Strategy) -> String {
        in_words::sentence(strategy)
    }

    fn bytes(&self, strategy: &Strategy) -> Option<Vec<Row>> {
        Some(in_words::bytes(
            strategy.devices_of_a_replica(),
            strategy.replicas().len(),
        ))
    }
}

impl Strategy {
    /// The devices that have slices of the layers, one replica after the other; empty under other strategies.
    pub fn model_devices(&self) -> &[LogicalDevice] {
        match self.kind() {
            StrategyKind::ModelParallel => &self.0.computing,
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
    fn a_row_of_a_mesh_is_a_replica() {
        let mesh = DeviceMesh::logical([3, 2], ["batch", "model"]).expect("six devices");
        let strategy = ModelParallel::over(&mesh).expect("two axes");
        let passive = strategy.strategy();
        let places: Vec<usize> = strategy.replicas().iter().map(|it| it.id).collect();
        assert_eq!(places, [0, 2, 4]);
        assert_eq!((passive.devices().len(), strategy.devices().len()), (6, 6));
        assert_eq!(passive.devices_of_a_replica(), 2);
        let layout = ModelParallel::new(LayoutMap::new(&mesh)).expect("two axes");
        assert_eq!(layout.replicas().len(), 3);
    }

    #[test]
    fn one_device_has_no_slices() {
        let found = ModelParallel::logical(1).expect_err("one device");
        assert_eq!(found.code, "SC0915");
    }
}
