//! `keras.distribution`: meshes, maps of layouts, and the distributions that are made of them.
//!
//! `DataParallel` is `MirroredStrategy`, `ModelParallel` has its name here too. The keys of a `LayoutMap` are regular expressions
//! over paths such as `dense/kernel` (`translate/layout.rs`). What is not here is named: a mesh with several devices along a third
//! axis, processes, layouts of activations.
//! Source: keras-team/keras@3422977, `keras/src/distribution/distribution_lib.py`.

use stratoscope_diagnostics::CellSpan;

use super::layout;
use super::strategy::are_several_processors;
use super::thing::Thing;
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};

/// What a `DeviceMesh` of the cell is.
#[derive(Clone, Debug)]
pub(crate) struct Mesh {
    /// The names of the axes with their sizes; `None` for a size that is not written out.
    axes: Vec<(String, Option<i64>)>,
    /// The devices, where they are named.
    devices: Option<Vec<String>>,
}

/// Where devices are not named.
const SHARES: &str = "the devices are shares of the default device; `DeviceMesh::new([1, 2], [\"batch\", \"model\"], [cuda(0), cuda(1)])?` \
                      names real ones";

impl Translator<'_> {
    /// What a call of `keras.distribution` makes, by its last name. The Rust is empty for what becomes a part of something else.
    pub(crate) fn of_distribution(
        &mut self,
        name: &str,
        call: &Call,
    ) -> Result<(String, Thing), Why> {
        match name {
            "list_devices" => {
                call.see_all();
                self.idle(
                    call.span,
                    "a strategy takes its devices by itself: `devices()` lists them",
                );
                Ok((String::new(), Thing::Folded))
            }
            "DeviceMesh" => {
                let (mesh, rust) = self.mesh(call)?;
                Ok((rust, Thing::Mesh(mesh)))
            }
            "TensorLayout" => Ok((String::new(), Thing::Axes(self.axes_of(call)?))),
            "LayoutMap" => {
                let given = call.argument("device_mesh", 0).ok_or("it gets no mesh")?;
                let mesh = self.mesh_of(given)?;
                let rust = match given.name() {
                    Some(name) => format!("LayoutMap::new(&{})", text::name(name)),
                    None => format!("LayoutMap::new(&{})", self.mesh(given.call().ok_or("the mesh is no name")?)?.1),
                };
                Ok((rust, Thing::Layout(mesh)))
            }
            "ModelParallel" => Ok((self.model_parallel(call)?, Thing::Strategy)),
            "DataParallel" => Ok((self.data_parallel(call)?, Thing::Strategy)),
            "initialize" => Err("several processes train by `MultiWorkerMirroredStrategy::new()?`, which reads `TF_CONFIG`, each with a whole \
                                 model; slices of layers are on the devices of one process"
                .to_owned()),
            "distribution" => Err("`strategy.set_default()` sets the default strategy; there is no call that reads it".to_owned()),
            "distribute_tensor" | "relayout" => {
                Err("activations have no layouts here: each layer sends what the next one needs".to_owned())
            }
            _ => Err(format!("`keras.distribution.{name}` has no counterpart here")),
        }
    }

    /// `DeviceMesh(shape, axis_names, devices)`. Of the axes, the first and the last one may have several devices here.
    fn mesh(&mut self, call: &Call) -> Result<(Mesh, String), Why> {
        let shape = call.argument("shape", 0).ok_or("it has no shape")?;
        let names = call
            .argument("axis_names", 1)
            .ok_or("its axes have no names")?;
        let of_names = names
            .elements()
            .ok_or("the names of its axes are not written out")?;
        let of_names = of_names.iter().map(|it| it.text().map(str::to_owned));
        let of_names: Option<Vec<String>> = of_names.collect();
        let of_names = of_names.ok_or("the names of its axes are not written out")?;
        let sizes = shape.elements().ok_or("its shape is not written out")?;
        if sizes.len() != of_names.len() || sizes.is_empty() {
            return Err(
                "Keras refuses it: a mesh has a name for each axis of its shape".to_owned(),
            );
        }
        let sizes: Vec<Option<i64>> = sizes.iter().map(|it| self.integer(it)).collect();
        let devices = match call.argument("devices", 2) {
            Some(given) => self.named_devices(given)?,
            None => None,
        };
        if self.names.calls("DataParallel") && !self.names.calls("LayoutMap") {
            let axes = call.written("axis_names", 1);
            let given = call.written("devices", 2).filter(|_| devices.is_none());
            for (span, why) in [
                (
                    axes,
                    "the one axis of a `MirroredStrategy` divides the batch and has no name",
                ),
                (given, "the devices are shares of the default device"),
            ] {
                if let Some(span) = span {
                    self.idle(span, why);
                }
            }
        }
        let mut axes: Vec<(String, Option<i64>)> = of_names.into_iter().zip(sizes).collect();
        let written = self.mesh_in_rust(&mut axes, devices.as_deref(), shape)?;
        Ok((Mesh { axes, devices }, written))
    }

    fn mesh_in_rust(
        &mut self,
        axes: &mut [(String, Option<i64>)],
        devices: Option<&[String]>,
        shape: &Value,
    ) -> Result<String, Why> {
        if self.names.calls("DataParallel") && !self.names.calls("LayoutMap") {
            // `DataParallel` takes its devices from it.
            self.idle(
                shape.span,
                "the first number is how many devices `DataParallel` has, and it stands in the strategy",
            );
            return Ok(String::new());
        }
        // The processor is one device, so that several of it are logical ones.
        let devices = devices.filter(|it| !are_several_processors(it));
        let mut devices = devices.map(<[String]>::to_vec);
        let count = |size: Option<i64>| size.and_then(|it| usize::try_from(it).ok());
        let sizes: Option<Vec<usize>> = axes.iter().map(|(_, size)| count(*size)).collect();
        let sizes = sizes.ok_or(
            "its shape is not written out: a number of devices is written as a number, `DeviceMesh::logical([1, 2], [\"batch\", \"model\"])?`",
        )?;
        let last = axes.len().saturating_sub(1);
        for (at, (name, size)) in axes.iter_mut().enumerate() {
            if at == 0 || at == last || *size == Some(1) {
                continue;
            }
            self.leave(
                shape.span,
                format!(
                    "the axis `{name}` has {} devices, and here only the first axis of a mesh, which divides the batch, and the last one, \
                     along which layers are cut, have several (SC0627), so it is 1; the steps are the same up to rounding",
                    sizes[at]
                ),
            );
            *size = Some(1);
        }
        if let (Some(devices), [_, between @ .., model]) = (&mut devices, sizes.as_slice()) {
            // Those at the first place of each axis between the two.
            let between: usize = between.iter().product();
            let row = (between * model).max(1);
            let rows = devices.chunks(row).flat_map(|row| row.iter().take(*model));
            *devices = rows.cloned().collect();
        }
        let sizes: Vec<String> = axes
            .iter()
            .map(|(_, size)| size.unwrap_or(1).to_string())
            .collect();
        let names: Vec<String> = axes.iter().map(|(name, _)| text::text(name)).collect();
        let (sizes, names) = (sizes.join(", "), names.join(", "));
        Ok(match devices {
            Some(devices) => format!(
                "DeviceMesh::new([{sizes}], [{names}], [{}])?",
                devices.join(", ")
            ),
            None => {
                self.note(shape.span, SHARES);
                format!("DeviceMesh::logical([{sizes}], [{names}])?")
            }
        })
    }

    /// The devices of a list of names; `None` where all devices are taken.
    fn named_devices(&mut self, given: &Value) -> Result<Option<Vec<String>>, Why> {
        let whole = match &given.kind {
            Kind::Index(object, _) => object,
            _ => given,
        };
        let called = self.names.called(whole).unwrap_or_default();
        let is_all = matches!(
            called.as_str(),
            "keras.distribution.list_devices" | "jax.devices" | "jax.local_devices"
        );
        let is_folded = whole
            .name()
            .is_some_and(|name| matches!(self.things.get(name), Some(Thing::Folded)));
        match &given.kind {
            Kind::None => Ok(None),
            _ if is_all || is_folded => {
                super::arguments::see_whole(given);
                Ok(None)
            }
            _ if given.elements().is_some() => self.devices(given).map(Some),
            _ => Err("its devices are not written out".to_owned()),
        }
    }

    /// The mesh of a name or a call.
    fn mesh_of(&mut self, value: &Value) -> Result<Mesh, Why> {
        if let (Some(call), Some("keras.distribution.DeviceMesh")) =
            (value.call(), self.names.called(value).as_deref())
        {
            return Ok(self.mesh(call)?.0);
        }
        let name = value.name().ok_or("the mesh is no name")?;
        match self.things.get(name) {
            Some(Thing::Mesh(mesh)) => Ok(mesh.clone()),
            Some(other) => Err(format!("`{name}` is {}, no mesh", other.word())),
            None => {
                self.free(
                    name,
                    "a mesh, such as `DeviceMesh::logical([1, 2], [\"batch\", \"model\"])?`",
                )?;
                Ok(Mesh {
                    axes: Vec::new(),
                    devices: None,
                })
            }
        }
    }

    /// The axes of `TensorLayout((None, "model"), mesh)`.
    fn axes_of(&self, call: &Call) -> Result<Vec<Option<String>>, Why> {
        // The mesh is that of the map.
        call.argument("device_mesh", 1);
        layout::axes(call.argument("axes", 0).ok_or("it names no axes")?)
    }

    /// `layout_map["dense.*kernel"] = (None, "model")`; `None` where the object is no map of layouts.
    pub(crate) fn set_layout(
        &mut self,
        object: &Value,
        key: &Value,
        value: &Value,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        let name = object.name()?.to_owned();
        let known = self.known.variables.get(&name).map(String::as_str);
        let is_given =
            !self.things.contains_key(&name) && known.is_some_and(|it| it.ends_with("LayoutMap"));
        let mesh = match self.things.get(&name) {
            Some(Thing::Layout(mesh)) => mesh.clone(),
            Some(Thing::Missing(_)) => return Some(Err(self.missing(&name).unwrap_or_default())),
            _ if is_given => Mesh {
                axes: Vec::new(),
                devices: None,
            },
            _ => return None,
        };
        Some(self.cut(&name, &mesh, key, value, span))
    }

    fn cut(
        &mut self,
        name: &str,
        mesh: &Mesh,
        key: &Value,
        value: &Value,
        span: CellSpan,
    ) -> Result<(), Why> {
        self.keeps_outside(name)?;
        let key_text = key.text().ok_or("its key is not written out")?;
        let axes = match (value.name(), value.call()) {
            (Some(other), _) => match self.things.get(other) {
                Some(Thing::Axes(axes)) => axes.clone(),
                _ => return Err("its layout is not written out".to_owned()),
            },
            (None, Some(call))
                if self.names.called(value).as_deref()
                    == Some("keras.distribution.TensorLayout") =>
            {
                self.axes_of(call)?
            }
            _ => layout::axes(value)?,
        };
        let rust = text::name(name);
        if axes.iter().all(Option::is_none) {
            self.push(
                format!("// `{key_text}`: what no pattern cuts is whole."),
                span,
            );
            self.idle(
                span,
                "what no pattern cuts is whole, on the first device of each replica",
            );
            return Ok(());
        }
        if let (Some((model, _)), Some(axis)) = (mesh.axes.last(), axes.iter().flatten().next())
            && axis != model
        {
            return Err(format!(
                "it cuts along `{axis}`, the axis of the batch, which is FSDP: `MirroredStrategy::logical(4)?.shard(Shard::Parameters)?` divides all \
                 variables among the replicas. Here layers are cut along the last axis of a mesh, whatever `batch_dim_name` says"
            ));
        }
        let cuts = layout::cuts(key_text, &axes)?;
        self.note(
            key.span,
            "a key is a pattern of the names here, in which `*` is any text: `bert.encoder.layer.0.intermediate.dense.weight`, and a weight is \
             [outputs, inputs], so that its axes are the other way round. A pattern that matches nothing is an error (SC0626)",
        );
        for note in cuts.notes {
            self.note(key.span, note);
        }
        let last = cuts.axes.join(", ");
        for pattern in cuts.patterns {
            self.push(
                format!(
                    "let {rust} = {rust}.cut({}, [{last}])?;",
                    text::text(&pattern)
                ),
                span,
            );
        }
        self.things
            .insert(name.to_owned(), Thing::Layout(mesh.clone()));
        Ok(())
    }

    /// `ModelParallel(layout_map=…, batch_dim_name=…)`.
    fn model_parallel(&mut self, call: &Call) -> Result<String, Why> {
        // Keras 3.0 had the mesh first.
        let place = usize::from(call.arguments.len() > 1);
        let given = call
            .argument("layout_map", place)
            .ok_or("Keras refuses it: it gets no `layout_map`")?;
        let name = given.name().ok_or("the map of layouts is no name")?;
        let mesh = match self.things.get(name) {
            Some(Thing::Layout(mesh)) => mesh.axes.clone(),
            Some(other) => return Err(format!("`{name}` is {}, no map of layouts", other.word())),
            None => {
                self.free(name, "a map of layouts, such as `LayoutMap::new(&mesh)`")?;
                Vec::new()
            }
        };
        for (argument, at) in [
            ("device_mesh", usize::MAX),
            ("auto_shard_dataset", usize::MAX),
        ] {
            if let Some(span) = call.written(argument, at) {
                self.idle(
                    span,
                    match argument {
                        "device_mesh" => "it is the mesh of the map",
                        _ => "one process has all the data",
                    },
                );
            }
        }
        if place == 1 && call.argument("device_mesh", 0).is_some() {
            self.idle(call.arguments[0].span, "it is the mesh of the map");
        }
        let batch = call
            .argument("batch_dim_name", 2)
            .map(|it| (it.span, it.text().map(str::to_owned)));
        if let Some((model, size)) = mesh.last()
            && *size != Some(1)
        {
            let is_model = batch
                .as_ref()
                .map_or(mesh.len() == 1, |(_, it)| it.as_ref() == Some(model));
            if is_model {
                return Err(format!(
                    "it divides the batch along `{model}` too, which is FSDP: `MirroredStrategy::logical({})?.shard(Shard::Parameters)?` divides \
                     all variables and the batch among the replicas",
                    size.unwrap_or(2)
                ));
            }
        }
        let named = batch.as_ref().and_then(|(_, name)| name.as_deref());
        layout::check_axes(&mesh, named)?;
        if let Some((span, _)) = batch {
            self.idle(
                span,
                "the first axis of the mesh divides the batch: a row of the mesh is a replica, whose devices compute each layer together",
            );
        }
        let rust = text::name(name);
        let rust = if self.is_moved_again(name) {
            format!("{rust}.clone()")
        } else {
            rust
        };
        self.note(
            call.span,
            "only the layers of BERT are computed in slices: a `Sequential` is refused (SC0628). What no pattern matches is on the first device of \
             each replica, not on each device",
        );
        Ok(format!("ModelParallel::new({rust})?"))
    }

    /// `DataParallel(device_mesh=…, devices=…)`: copies on all devices, which divide the batch.
    fn data_parallel(&mut self, call: &Call) -> Result<String, Why> {
        if let Some(span) = call.written("auto_shard_dataset", 2) {
            self.idle(span, "one process has all the data");
        }
        let mesh = call
            .argument("device_mesh", 0)
            .filter(|it| it.kind != Kind::None);
        if let Some(given) = mesh {
            let mesh = self.mesh_of(given)?;
            let first = mesh.axes.first().and_then(|(_, size)| *size);
            if mesh.axes.len() > 1 {
                self.note(
                    given.span,
                    "as in Keras, the first axis of the mesh divides the batch",
                );
            }
            return Ok(match (mesh.devices, first) {
                (Some(devices), count) => {
                    let count = count
                        .and_then(|it| usize::try_from(it).ok())
                        .unwrap_or(devices.len());
                    let devices: Vec<String> = devices.into_iter().take(count).collect();
                    self.on_devices("MirroredStrategy", devices, call.span)?
                }
                (None, Some(count)) => {
                    self.note(
                        call.span,
                        "the devices are shares of the default device; `MirroredStrategy::new()?` takes all devices of its kind",
                    );
                    format!("MirroredStrategy::logical({count})?")
                }
                (None, None) => "MirroredStrategy::new()?".to_owned(),
            });
        }
        let devices = match call.argument("devices", 1) {
            Some(given) => self.named_devices(given)?,
            None => None,
        };
        Ok(match devices {
            Some(devices) => self.on_devices("MirroredStrategy", devices, call.span)?,
            None => "MirroredStrategy::new()?".to_owned(),
        })
    }
}
