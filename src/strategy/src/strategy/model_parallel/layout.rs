//! Along which axes variables are cut. Keras: `keras.distribution.LayoutMap`.
//!
//! In Keras a key is a regular expression that is searched in the path of a variable, whose kernel has the shape [inputs, outputs].
//! Here a key is a pattern of names as in `model.freeze`, and the weight of a linear layer has the shape [outputs, inputs], as
//! checkpoints store it: `(None, "model")` for a kernel there is `[Some("model"), None]` here.

use std::ops::Range;

use stratoscope_diagnostics::rules::LayoutDoesNotFit;
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_render::pattern::matches;
use stratoscope_render::text;

use crate::strategy::{DeviceMesh, Strategy};
use crate::variable::{VariableKind, VariableRecord};

/// Patterns of the names of variables, with an axis of a mesh, or none, for each of their axes.
#[derive(Clone, Debug)]
pub struct LayoutMap {
    mesh: DeviceMesh,
    rules: Vec<(String, Vec<Option<String>>)>,
}

impl LayoutMap {
    /// A map without patterns.
    pub fn new(mesh: &DeviceMesh) -> Self {
        Self {
            mesh: mesh.clone(),
            rules: Vec::new(),
        }
    }

    /// Cuts the variables whose names match a pattern: `.cut("attention.self.query.weight", [Some("model"), None])?` by rows. In
    /// a pattern `*` stands for any text and `?` for one character; it may match the end of a name behind a dot. Keras:
    /// `layout_map[pattern] = (…)`.
    ///
    /// ```
    /// use stratoscope_strategy::{DeviceMesh, LayoutMap};
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let mesh = DeviceMesh::logical([1, 2], ["batch", "model"])?;
    /// let layout = LayoutMap::new(&mesh)
    ///     .cut("intermediate.dense.weight", [Some("model"), None])?
    ///     .cut("intermediate.dense.bias", [Some("model")])?;
    /// assert_eq!(layout.mesh().devices().len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0626 for the name of an axis that the mesh does not have, or that variables cannot be cut along, and for a layout
    /// with several.
    pub fn cut<'a>(
        mut self,
        pattern: impl Into<String>,
        layout: impl IntoIterator<Item = Option<&'a str>>,
    ) -> Result<Self> {
        let pattern = pattern.into();
        let layout: Vec<Option<String>> =
            layout.into_iter().map(|it| it.map(str::to_owned)).collect();
        let model = self.mesh.model_axis();
        let mut named = layout.iter().flatten();
        let (first, second) = (named.next(), named.next());
        if let Some(axis) = named.chain(first).chain(second).find(|axis| *axis != model) {
            return Err(LayoutDoesNotFit::Axis {
                pattern,
                axis: axis.clone(),
                axes: self
                    .mesh
                    .axes()
                    .iter()
                    .map(|(name, _)| name.clone())
                    .collect(),
            }
            .error());
        }
        if second.is_some() {
            return Err(LayoutDoesNotFit::Twice { pattern }.error());
        }
        self.rules.push((pattern, layout));
        Ok(self)
    }

    /// The mesh that it cuts over.
    pub fn mesh(&self) -> &DeviceMesh {
        &self.mesh
    }

    /// The layouts of a variable, with their patterns.
    fn of(&self, variable: &str) -> impl Iterator<Item = &(String, Vec<Option<String>>)> {
        self.rules
            .iter()
            .filter(move |(pattern, _)| matches(pattern, variable))
    }

    /// The axis along which a variable is cut.
    pub(super) fn axis(&self, variable: &str) -> Option<usize> {
        let (_, layout) = self.of(variable).next()?;
        layout.iter().position(Option::is_some)
    }
}

/// The layout for the layers of BERT and its relatives, by the ends of names. Source: Shoeybi et al. 2019, section 3.
pub(super) fn axis_in_bert(variable: &str) -> Option<usize> {
    const ROWS: [&str; 8] = [
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "intermediate.dense",
        "attention.q_lin",
        "attention.k_lin",
        "attention.v_lin",
        "ffn.lin1",
    ];
    const COLUMNS: [&str; 3] = ["output.dense", "attention.out_lin", "ffn.lin2"];
    let (layer, kind) = variable.rsplit_once('.')?;
    let is_one_of = |names: &[&str]| names.iter().any(|name| ends_with(layer, name));
    match kind {
        "weight" | "bias" if is_one_of(&ROWS) => Some(0),
        "weight" if is_one_of(&COLUMNS) => Some(1),
        _ => None,
    }
}

/// Whether a name is another, or ends with it behind a dot.
fn ends_with(name: &str, end: &str) -> bool {
    let before = name.strip_suffix(end);
    before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Writes into the records of a module's variables where their slices are.
///
/// # Errors
/// SC0626 for a pattern that matches no variable, two patterns that match one, a layout for another number of axes than a
/// variable has, and a variable that cannot be cut in equal slices.
pub(crate) fn assign(strategy: &Strategy, records: &mut [VariableRecord]) -> Result<()> {
    let devices = strategy.model_devices().len();
    if devices == 0 {
        return Ok(());
    }
    let (replicas, each) = (strategy.replicas().len(), strategy.devices_of_a_replica());
    let layout = strategy.layout();
    if let Some(layout) = &layout {
        check(layout, records)?;
    }
    let label = strategy.label();
    for record in records {
        let Some(axis) = strategy.cut_axis(&record.name) else {
            continue;
        };
        let slices = equal(record, axis, each)?;
        let what = if axis == 0 { "rows" } else { "columns" };
        record.kind = VariableKind::Sharded;
        record.homes = (0..devices).collect();
        record.axis = axis;
        let where_to = match replicas {
            1 => format!("each of its {}", text::count(devices, "device")),
            replicas => format!(
                "each of the {each} devices of its {}",
                text::count(replicas, "replica")
            ),
        };
        record.why = format!(
            "made in the scope of `{label}`: {} {what} on {where_to}",
            text::thousands(slices.first().map_or(0, Range::len)),
        );
        record.rows = slices.into_iter().cycle().take(devices).collect();
    }
    Ok(())
}

fn check(layout: &LayoutMap, records: &[VariableRecord]) -> Result<()> {
    for (pattern, axes) in &layout.rules {
        let mut found = records.iter().filter(|it| matches(pattern, &it.name));
        let Some(first) = found.clone().next() else {
            return Err(LayoutDoesNotFit::Nothing {
                pattern: pattern.clone(),
                names: records.iter().map(|it| it.name.clone()).collect(),
            }
            .error());
        };
        let is_other = |it: &&VariableRecord| it.shape.len() != axes.len();
        if let Some(other) = found.find(is_other).or(Some(first).filter(is_other)) {
            return Err(LayoutDoesNotFit::Rank {
                pattern: pattern.clone(),
                axes: axes.len(),
                variable: other.name.clone(),
                shape: other.shape.clone(),
            }
            .error());
        }
    }
    for record in records {
        let mut patterns = layout.of(&record.name).map(|(pattern, _)| pattern.clone());
        if let (Some(first), Some(second)) = (patterns.next(), patterns.next()) {
            return Err(LayoutDoesNotFit::Both {
                variable: record.name.clone(),
                patterns: [first, second],
            }
            .error());
        }
    }
    Ok(())
}

/// The slices of a variable, of equal size.
fn equal(record: &VariableRecord, axis: usize, devices: usize) -> Result<Vec<Range<usize>>> {
    let size = record.shape.get(axis).copied().unwrap_or(0);
    let is_number = record.dtype.starts_with('f') || record.dtype.starts_with("bf");
    if size == 0 || !size.is_multiple_of(devices) || !is_number {
        return Err(LayoutDoesNotFit::Size {
            variable: record.name.clone(),
            shape: record.shape.clone(),
            axis,
            devices,
        }
        .error());
    }
    let each = size / devices;
    Ok((0..devices)
        .map(|device| device * each..(device + 1) * each)
        .collect())
}
