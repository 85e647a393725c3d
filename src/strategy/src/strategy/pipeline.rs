//! `PipelineStrategy`: consecutive layers on each of several devices, the stages. A batch is cut in micro-batches, which follow
//! each other through the stages, so that all stages compute at once. PyTorch: `torch.distributed.pipelining`.
//!
//! Each variable is on one stage, with its gradient and its moments. The stages exchange activations and the gradients by them,
//! not weights. While the first micro-batch is on its way to the last stage, and the last one on its way back, stages wait:
//! with p stages and m micro-batches a step has m + p − 1 slots, of which each stage computes in m
//! ([`bubble`]).
//!
//! Pipeline and data parallelism compose in a mesh of two axes: the devices of a row, along the last axis, are the stages of a
//! replica; the rows, along the first axis, divide each micro-batch as mirrored replicas divide a batch. Between them the
//! gradients of each stage are averaged by the same all-reduce, so that a step is that of mirrored replicas that accumulate
//! gradients over batches of the size of a micro-batch.
//!
//! Sources: Huang et al. 2019, "GPipe", section 2; Narayanan et al. 2019, "PipeDream", section 3.2 (1F1B), with a flush after
//! each batch as in Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
//! section 2.2.

mod in_words;
mod schedule;
mod stages;

use std::fmt;

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

pub use self::schedule::{PipelinePass, PipelineSchedule, bubble};
pub use self::stages::{HEAVY, PipelineStages};

/// Micro-batches of a batch where nothing is set, unless there are more stages.
const MICRO_BATCHES: usize = 4;
/// The most micro-batches of a batch.
const MAX_MICRO_BATCHES: usize = 1024;

/// What the methods of a handle set.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    micro_batches: Option<usize>,
    schedule: PipelineSchedule,
    layers: Option<Vec<usize>>,
}

/// How a pipeline runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineSettings {
    /// Replicas, each with all stages.
    pub replicas: usize,
    /// Stages of a replica, each on a device.
    pub stages: usize,
    /// Micro-batches of a batch.
    pub micro_batches: usize,
    /// The order of their passes.
    pub schedule: PipelineSchedule,
    /// Layers of each stage, where they were given.
    pub layers: Option<Vec<usize>>,
}

impl fmt::Display for PipelineSettings {
    /// `a pipeline with 4 micro-batches (1F1B)`; with several replicas `2 replicas, each a pipeline with …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            replicas,
            micro_batches,
            schedule,
            ..
        } = self;
        if *replicas > 1 {
            write!(f, "{replicas} replicas, each ")?;
        }
        let plural = if *micro_batches == 1 { "" } else { "es" };
        write!(
            f,
            "a pipeline with {micro_batches} micro-batch{plural} ({})",
            schedule.name()
        )
    }
}

/// A handle of a strategy with a stage on each device. A clone is another handle of the same one.
///
/// ```
/// use stratoscope_strategy::{PipelineSchedule, PipelineStrategy};
///
/// # fn main() -> stratoscope_diagnostics::Result<()> {
/// let strategy = PipelineStrategy::logical(2)?.micro_batches(8)?.schedule(PipelineSchedule::GPipe);
/// assert!(strategy.to_string().ends_with("2 logical CPU devices, a pipeline with 8 micro-batches (GPipe)"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PipelineStrategy {
    strategy: Strategy,
    _handle: Handle,
}

impl PipelineStrategy {
    /// Splits the default device into `stages` logical devices, 2 to 64.
    ///
    /// # Errors
    /// SC0915 for a count outside the range, SC0712 for a default device that is not there.
    pub fn logical(stages: impl IntoReplicaCount) -> Result<Self> {
        let stages = stages.checked()?;
        Self::of(split(&default_device()?, stages), 1)
    }

    /// [`Self::logical`] for another device: `logical_on(wgpu(0), 2)`.
    ///
    /// # Errors
    /// SC0915 for a count outside 2 to 64, SC0906 and SC0907 for the device.
    pub fn logical_on(
        device: impl Into<DeviceSpec>,
        stages: impl IntoReplicaCount,
    ) -> Result<Self> {
        let stages = stages.checked()?;
        Self::of(split(&device.into().resolve()?, stages), 1)
    }

    /// A stage on each of these devices, the first one with the embeddings: `on([cuda(0), cuda(1)])`. They may be of
    /// different kinds; activations then pass through the host.
    ///
    /// # Errors
    /// SC0915 for fewer than two devices or the same device twice, SC0906 for one that is not there, SC0907 for one that
    /// does not start.
    pub fn on<I>(devices: I) -> Result<Self>
    where
        I: IntoIterator,
        I::Item: Into<DeviceSpec>,
    {
        Self::of(distinct(devices)?, 1)
    }

    /// The devices of a mesh: those of a row, along the last axis, are the stages of a replica; the rows, along the first axis,
    /// are replicas, which divide the batch. With one row it is the pipeline of [`Self::on`].
    ///
    /// ```
    /// use stratoscope_strategy::{DeviceMesh, PipelineStrategy};
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let strategy = PipelineStrategy::over(&DeviceMesh::logical([2, 3], ["batch", "stage"])?)?;
    /// assert_eq!(strategy.replicas().len(), 2);
    /// let words = "6 logical CPU devices, 2 replicas, each a pipeline with 4 micro-batches (1F1B)";
    /// assert!(strategy.to_string().ends_with(words));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0627 for a mesh with one device along its last axis, or with several along more than two axes; SC0915 for a mesh of one
    /// device.
    pub fn over(mesh: &DeviceMesh) -> Result<Self> {
        mesh.check_axes(LastAxis::Stages, "PipelineStrategy::over")?;
        Self::of(mesh.devices().to_vec(), mesh.replicas())
    }

    /// Sets into how many micro-batches a batch is cut. By default 4, or the number of stages where that is larger. The batch
    /// size must be a multiple of it; with several replicas, of it times the replicas.
    ///
    /// # Errors
    /// SC0915 for a number outside 1 to 1024.
    pub fn micro_batches(self, count: impl TryInto<usize> + ToString) -> Result<Self> {
        let count = number(count, "number of micro-batches", MAX_MICRO_BATCHES)?;
        self.strategy.settings().pipeline.micro_batches = Some(count);
        Ok(self)
    }

    /// Sets the order of forward and backward passes. It changes the memory that stages need, and no bit of the result.
    pub fn schedule(self, schedule: PipelineSchedule) -> Self {
        self.strategy.settings().pipeline.schedule = schedule;
        self
    }

    /// Sets how many encoder layers each stage has, for models that are built from now on: `.stages([5, 7])?`. By default
    /// they are divided so that the stage with the most work has as little as possible.
    ///
    /// # Errors
    /// SC0915 unless there is one number, at least 1, for each stage.
    pub fn stages<I>(self, layers: I) -> Result<Self>
    where
        I: IntoIterator,
        I::Item: TryInto<usize> + ToString,
    {
        let each = |count| number(count, "number of layers of a stage", usize::MAX);
        let layers: Vec<usize> = layers.into_iter().map(each).collect::<Result<_>>()?;
        let stages = self.strategy.devices_of_a_replica();
        if layers.len() != stages {
            let expects = format!("{stages}, one for each stage");
            return Err(problem::bad_size(
                "number of stages",
                layers.len(),
                &expects,
            ));
        }
        self.strategy.settings().pipeline.layers = Some(layers);
        Ok(self)
    }

    /// The devices of the stages, in their order; of several replicas one after the other.
    pub fn devices(&self) -> &[LogicalDevice] {
        self.strategy.stages()
    }

    fn of(devices: Vec<LogicalDevice>, replicas: usize) -> Result<Self> {
        if devices.len() < 2 {
            let what = "number of stages of a pipeline";
            return Err(problem::bad_size(what, devices.len(), "at least 2"));
        }
        let (kind, settings) = (StrategyKind::Pipeline, Settings::default());
        let (strategy, _handle) = Strategy::register_in_groups(kind, devices, replicas, settings);
        Ok(Self { strategy, _handle })
    }
}

handle!(PipelineStrategy);
cross_device_ops!(PipelineStrategy);

/// What it says of itself.
pub(super) struct Pipeline;

impl Distribution for Pipeline {
    fn type_name(&self) -> &'static str {
        "PipelineStrategy"
    }

    fn name(&self) -> &'static str {
        "pipeline"
    }

    fn storing(&self) -> Storing {
        Storing::ByLayers
    }

    /// The variables of a module are put on their stages afterwards ([`PipelineStages::assign`]).
    fn created(&self, strategy: &Strategy, _taken: usize, _rows: Option<Rows>) -> Kind {
        let (label, replicas) = (strategy.label(), strategy.replicas());
        let made = format!("made in the scope of `{label}`");
        if let [first] = replicas {
            let why = format!("{made}: one copy on {}, its first stage", first.name);
            return Kind::whole(VariableKind::Local, why, vec![0]);
        }
        let each = text::count(replicas.len(), "replica");
        let why = format!("{made}: a copy on the first stage of each of its {each}");
        let homes = replicas.iter().map(|device| device.id).collect();
        Kind::whole(VariableKind::Mirrored, why, homes)
    }

    fn step(&self, strategy: &Strategy) -> String {
        let settings = strategy.pipeline();
        settings.map_or_else(String::new, |it| {
            in_words::sentence(it, strategy.cross_device_ops())
        })
    }

    fn bytes(&self, strategy: &Strategy) -> Option<Vec<Row>> {
        Some(in_words::bytes(&strategy.pipeline()?))
    }
}

impl Strategy {
    /// The devices of the stages of a pipeline, one replica after the other; empty for other strategies.
    pub fn stages(&self) -> &[LogicalDevice] {
        match self.kind() {
            StrategyKind::Pipeline => &self.0.computing,
            _ => &[],
        }
    }

    /// How its stages work together, where it is a pipeline.
    pub fn pipeline(&self) -> Option<PipelineSettings> {
        if self.stages().is_empty() {
            return None;
        }
        let stages = self.devices_of_a_replica();
        let chosen = self.settings().pipeline.clone();
        Some(PipelineSettings {
            replicas: self.replicas().len(),
            stages,
            micro_batches: chosen.micro_batches.unwrap_or(MICRO_BATCHES.max(stages)),
            schedule: chosen.schedule,
            layers: chosen.layers,
        })
    }
}

/// A number from 1 to `most`.
fn number(count: impl TryInto<usize> + ToString, what: &str, most: usize) -> Result<usize> {
    let given = count.to_string();
    let number = count.try_into().ok();
    number.filter(|it| (1..=most).contains(it)).ok_or_else(|| {
        let expects = match most {
            usize::MAX => "at least 1".to_owned(),
            most => format!("from 1 to {most}"),
        };
        problem::bad_size(what, given, &expects)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AsStrategy;

    #[test]
    fn a_pipeline_is_one_replica_on_several_devices() {
        let strategy = PipelineStrategy::logical(3).expect("three logical devices");
        let passive = strategy.strategy();
        assert_eq!(passive.replicas().len(), 1);
        let names: Vec<&str> = strategy.devices().iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["cpu:0", "cpu:1", "cpu:2"]);
        assert_eq!(passive.devices().len(), 3);
        let settings = passive.pipeline().expect("it is a pipeline");
        assert_eq!((settings.micro_batches, settings.layers), (4, None));
        let many = PipelineStrategy::logical(6).expect("six logical devices");
        let settings = many.strategy().pipeline().expect("it is a pipeline");
        assert_eq!(settings.micro_batches, 6, "one for each stage");
    }

    #[test]
    fn a_row_of_a_mesh_is_a_replica() {
        let mesh = |shape: [usize; 2]| DeviceMesh::logical(shape, ["batch", "stage"]);
        let over = |shape| PipelineStrategy::over(&mesh(shape).expect("devices"));
        let strategy = over([3, 2]).expect("two axes");
        let passive = strategy.strategy();
        let places: Vec<usize> = strategy.replicas().iter().map(|it| it.id).collect();
        assert_eq!(places, [0, 2, 4]);
        assert_eq!((passive.devices().len(), strategy.devices().len()), (6, 6));
        let settings = passive.pipeline().expect("it is a pipeline");
        assert_eq!((settings.replicas, settings.stages), (3, 2));
        assert_eq!(settings.micro_batches, 4);
        assert!(strategy.clone().stages([2, 4]).is_ok());
        let each = strategy.stages([1; 6]).expect_err("two stages");
        assert_eq!(each.code, "SC0915");
        let one_row = over([1, 2]).expect("two stages");
        assert!(
            one_row
                .to_string()
                .ends_with("2 logical CPU devices, a pipeline with 4 micro-batches (1F1B)")
        );
        let codes = [over([4, 1]), over([1, 1])].map(|it| it.expect_err("one stage").code);
        assert_eq!(codes, ["SC0627", "SC0915"]);
        let three = DeviceMesh::logical([2, 2, 2], ["batch", "model", "stage"]);
        let found = PipelineStrategy::over(&three.expect("devices"));
        assert_eq!(found.expect_err("three axes").code, "SC0627");
    }

    #[test]
    fn numbers_are_checked() {
        let pipeline = || PipelineStrategy::logical(2).expect("two logical devices");
        let refused = [
            PipelineStrategy::logical(1),
            pipeline().micro_batches(0),
            pipeline().micro_batches(-2),
            pipeline().stages([1, 1, 1]),
            pipeline().stages([3, 0]),
        ];
        for found in refused {
            let found = found.expect_err("it is outside the range");
            assert_eq!(found.code, "SC0915");
        }
        assert!(pipeline().stages([2_usize, 4]).is_ok());
    }
}
