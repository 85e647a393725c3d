//! SC0627 `mesh-does-not-fit`.

use stratoscope_render::text;

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

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
    /// An axis besides that of the model has several devices.
    Batch {
        /// Its name.
        axis: String,
        /// The shape.
        shape: Vec<usize>,
        /// The names of the axes.
        names: Vec<String>,
        /// The size of the last axis.
        model: usize,
    },
}

impl Rule for MeshDoesNotFit {
    const PAGE: RulePage = RulePage {
        code: "SC0627",
        name: "mesh-does-not-fit",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A `DeviceMesh` with another number of devices than its shape has places, with other names than it has axes, or, for \
                `ModelParallel`, with more than one device along an axis that divides the batch.",
        why: "A mesh has a device at each place. `ModelParallel` cuts the weights along the last axis; copies of all slices that \
              divide the batch among them are not there yet.",
        bad: "let mesh = DeviceMesh::logical([2, 2], [\"batch\", \"model\"])?;\n\
              let parallel = ModelParallel::new(LayoutMap::new(&mesh))?;",
        good: "let mesh = DeviceMesh::logical([1, 4], [\"batch\", \"model\"])?;\n\
               let parallel = ModelParallel::new(LayoutMap::new(&mesh))?;",
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
            Self::Batch {
                axis,
                shape,
                names,
                model,
            } => {
                let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
                let all: usize = shape.iter().product();
                let last = shape.len().saturating_sub(1);
                let with = |model: usize| {
                    let sizes = (0..shape.len()).map(|at| if at == last { model } else { 1 });
                    let sizes: Vec<String> = sizes.map(|size| size.to_string()).collect();
                    let (sizes, names) = (sizes.join(", "), names.join(", "));
                    format!("`DeviceMesh::logical([{sizes}], [{names}])?`")
                };
                Self::start(format!("the axis `{axis}` of the mesh has several devices, shape {shape:?}"))
                    .label(Place::call("ModelParallel::new"), "cuts along the last axis only")
                    .why("copies of the slices that divide the batch among them are not there yet: what works is one copy of the \
                          model in slices")
                    .fix(match model {
                        1 => format!("put the devices on the last axis: {}", with(all)),
                        model => format!("make the other axes 1: {}", with(*model)),
                    })
                    .fix("`MirroredStrategy` divides the batch among copies of the whole model")
            }
        }
    }
}
