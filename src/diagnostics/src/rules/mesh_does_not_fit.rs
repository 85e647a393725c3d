//! SC0627 `mesh-does-not-fit`.

use stratoscope_render::text;

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// What a strategy divides along the last axis of a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastAxis {
    /// The weights of each layer.
    Slices,
    /// The layers of a network.
    Stages,
}

impl LastAxis {
    /// What is along the axis, behind `along "model", the last one,`.
    fn has(self) -> &'static str {
        match self {
            Self::Slices => "layers are cut",
            Self::Stages => "are the stages",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Slices => "cuts along the last axis",
            Self::Stages => "has its stages along the last axis",
        }
    }

    /// Why one device there is not enough.
    fn why(self) -> &'static str {
        match self {
            Self::Slices => {
                "layers are cut along the last axis; with one device there nothing is cut, and each replica has the whole model"
            }
            Self::Stages => {
                "the stages are along the last axis; with one device there is one stage, and each replica has the whole model"
            }
        }
    }
}

/// A mesh of devices that does not fit its devices, or the strategy that is made with it.
#[derive(Clone, Debug)]
pub enum MeshDoesNotFit {
    /// Another number of devices than the shape has places.
    Devices {
        /// The shape.
        shape: Vec<usize>,
        /// Devices that were given.
        devices: usize,
    },
    /// Another number of names than the shape has axes, or the same name twice.
    Names {
        /// The shape.
        shape: Vec<usize>,
        /// The names.
        names: Vec<String>,
    },
    /// A size that is no number of devices.
    Size {
        /// As it was given.
        given: String,
    },
    /// An axis between the first and the last one has several devices.
    Axes {
        /// Its name.
        axis: String,
        /// The shape.
        shape: Vec<usize>,
        /// The names of the axes.
        names: Vec<String>,
        /// What is along the last one.
        last: LastAxis,
        /// The call that makes the strategy.
        call: &'static str,
    },
    /// The last axis has one device, so that nothing is divided.
    Whole {
        /// Its name.
        axis: String,
        /// The first axis with its size.
        batch: (String, usize),
        /// The shape.
        shape: Vec<usize>,
        /// What is along the last axis.
        last: LastAxis,
        /// The call that makes the strategy.
        call: &'static str,
    },
}

impl Rule for MeshDoesNotFit {
    const PAGE: RulePage = RulePage {
        code: "SC0627",
        name: "mesh-does-not-fit",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A `DeviceMesh` with another number of devices than its shape has places, with other names than it has axes, or, for \
                `ModelParallel` and `PipelineStrategy`, with several devices along an axis between the first and the last one, or one \
                along the last.",
        why: "A mesh has a device at each place. Along the last axis `ModelParallel` cuts the weights, and `PipelineStrategy` has its \
              stages; both divide the batch along the first one. Devices along another axis would compute the same once more.",
        bad: "let mesh = DeviceMesh::logical([2, 2, 2], [\"batch\", \"text\", \"model\"])?;\n\
              let parallel = ModelParallel::over(&mesh)?;",
        good: "let mesh = DeviceMesh::logical([2, 4], [\"batch\", \"model\"])?;\n\
               let parallel = ModelParallel::over(&mesh)?;",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::Devices { shape, devices } => {
                let places: usize = shape.iter().product();
                Self::start(format!(
                    "a mesh of the shape {shape:?} has {}, and {} given",
                    text::count(places, "place"),
                    match devices {
                        1 => "1 device was".to_owned(),
                        count => format!("{count} devices were"),
                    }
                ))
                .label(Place::call("DeviceMesh::new"), text::count(*devices, "device"))
                .why("a mesh has a device at each place")
                .fix(format!("give {}", text::count(places, "device")))
                .fix("`DeviceMesh::logical(…)` makes as many logical devices as the shape has places")
            }
            Self::Names { shape, names } => Self::start(format!(
                "a mesh of the shape {shape:?} has {} for its axes",
                match names.len() {
                    count if count == shape.len() => "the same name twice".to_owned(),
                    count => text::count(count, "name"),
                }
            ))
            .label(Place::call("DeviceMesh::logical"), names.join(", "))
            .why("layouts name the axes of a mesh")
            .fix(match shape.len() {
                1 => "write `[\"model\"]`",
                _ => "write `[\"batch\", \"model\"]`",
            }),
            Self::Size { given } => Self::start(format!("a mesh cannot have the shape {given}"))
                .label(Place::call("DeviceMesh::logical"), "its shape")
                .why("each axis has at least one device, and a mesh has at most 64")
                .fix("write `[1, 2]` for two devices that compute each layer together"),
            Self::Axes {
                axis,
                shape,
                names,
                last,
                call,
            } => {
                let end = shape.len().saturating_sub(1);
                let name = |at: usize| format!("\"{}\"", names.get(at).map_or("", String::as_str));
                let all: usize = shape.iter().take(end).product();
                let model = shape.last().copied().unwrap_or(1);
                let (batch, cut) = (name(0), name(end));
                Self::start(format!("the axis `{axis}` of the mesh has several devices, shape {shape:?}"))
                    .label(Place::call(*call), "two axes are used")
                    .why(format!(
                        "{batch}, the first axis, divides the batch, and along {cut}, the last one, {}; devices along \
                         another axis would compute the same once more",
                        last.has()
                    ))
                    .fix(format!(
                        "put its devices on the first axis: `DeviceMesh::logical([{all}, {model}], [{batch}, {cut}])?`"
                    ))
            }
            Self::Whole {
                axis,
                batch: (batch, replicas),
                shape,
                last,
                call,
            } => Self::start(format!(
                "the last axis of the mesh, `{axis}`, has 1 device, shape {shape:?}"
            ))
            .label(Place::call(*call), last.label())
            .why(last.why())
            .fix(format!(
                "`MirroredStrategy::logical({replicas})?` divides the batch among {replicas} copies of the whole model"
            ))
            .fix(format!(
                "put the devices on the last axis: `DeviceMesh::logical([1, {replicas}], [\"{batch}\", \"{axis}\"])?`"
            )),
        }
    }
}
