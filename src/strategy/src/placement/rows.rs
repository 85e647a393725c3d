//! The placement report as rows, which all three renderings (HTML, text, table) draw. A rendering decides how a fact
//! looks; it neither adds nor omits one, so all three renderings show the same facts.

use super::PlacementReport;
use super::fold::{Group, groups};
use super::parts::{DeviceColumn, SlotState, VariableRow};
use super::timeline::Timeline;
use stratoscope_render::units::count;

mod cell;
mod facts;
mod lines;

pub(super) use self::cell::{Cell, Mark};
use self::facts::{devices, kinds, origins, reality, so_far};
use self::lines::{line, sum};

/// A report, ready to be drawn.
pub(super) struct Sheet<'a> {
    pub title: &'a str,
    /// The report in one sentence.
    pub verdict: String,
    /// Whether that sentence reports a problem.
    pub is_wrong: bool,
    /// The strategy and the number of parameters.
    pub strategy: String,
    /// Whether the devices are physical, logical or simulated, in sentences.
    pub reality: Vec<String>,
    /// The parts of a device's memory: weights first, then optimizer slots, then activations.
    pub parts: Vec<Part<'a>>,
    pub devices: Vec<DeviceLine<'a>>,
    pub layers: Vec<Layer>,
    /// Where variables were created, in the order of their first variable.
    pub origins: Vec<String>,
    /// The kinds that occur.
    pub kinds: Vec<KindLine>,
    pub timelines: &'a [Timeline],
    /// All collectives since the model was made.
    pub so_far: Option<String>,
    /// How activations were counted, where they are shown.
    pub activations: Option<&'a str>,
}

/// A part of a device's memory.
pub(super) struct Part<'a> {
    pub name: &'a str,
    pub state: SlotState,
}

/// A device: what it is and what it holds.
pub(super) struct DeviceLine<'a> {
    pub column: &'a DeviceColumn,
    /// `replica 0`, `not in the strategy`.
    pub role: String,
    /// `one of 2 shares of 2 cores`.
    pub what: String,
    /// Bytes of each part.
    pub parts: Vec<u64>,
    pub sum: u64,
    /// Whether a variable that should have a copy here has none.
    pub lacks: bool,
}

/// A variable, or a layer's sum.
pub(super) struct Line {
    /// As it is shown: inside a layer without the layer's name.
    pub name: String,
    pub full_name: String,
    /// `Mirrored`, `outside`, `several`.
    pub kind: &'static str,
    pub why: String,
    /// Whether it is not trained.
    pub frozen: bool,
    /// `f32 384 × 1536`, `16 variables`.
    pub shape: String,
    /// The size of one copy.
    pub bytes: u64,
    /// Its place in [`Sheet::origins`]; `None` for several.
    pub origin: Option<usize>,
    pub mark: Mark,
    pub cells: Vec<Cell>,
}

/// Variables of a layer.
pub(super) struct Layer {
    /// The layer in one line, where it is folded.
    pub sum: Option<Line>,
    pub lines: Vec<Line>,
    /// Bytes of its activations per device, where they are shown.
    pub activations: Option<Vec<u64>>,
}

/// A kind of variable that occurs.
pub(super) struct KindLine {
    pub title: &'static str,
    pub variables: usize,
    /// What the kind means.
    pub meaning: &'static str,
    /// Why these variables are of that kind.
    pub why: Vec<String>,
}

/// Fewer variables than this are not folded.
const FOLDED_FROM: usize = 13;

impl Line {
    /// `Mirrored`, `Mirrored*` for what is frozen.
    pub fn kind_marked(&self) -> String {
        let star = if self.frozen && self.mark != Mark::Outside {
            "*"
        } else {
            ""
        };
        format!("{}{star}", self.kind)
    }
}

impl<'a> Sheet<'a> {
    pub fn of(report: &'a PlacementReport) -> Self {
        let module = report.variables.iter().filter(|row| !row.beside);
        let elements: usize = module.map(VariableRow::elements).sum();
        let strategy = match &report.strategy {
            Some(strategy) => strategy.description.as_str(),
            None => "no strategy: made outside any scope",
        };
        let origins = origins(report);
        let activations = report.shown_activations();
        let fold = report.variables.len() >= FOLDED_FROM;
        let layer = |group: Group<'_>| {
            let folded = fold && group.rows.len() > 1;
            let found =
                activations.and_then(|all| all.layers.iter().find(|l| l.layer == group.name));
            Layer {
                lines: group
                    .rows
                    .iter()
                    .map(|row| {
                        line(
                            report,
                            row,
                            if folded { group.rest(row) } else { &row.name },
                            &origins,
                        )
                    })
                    .collect(),
                sum: folded.then(|| sum(report, &group, &origins)),
                activations: found.map(|layer| layer.bytes.clone()),
            }
        };
        let mut parts = vec![Part {
            name: "weights",
            state: SlotState::Measured,
        }];
        parts.extend(report.slots.iter().map(|slot| Part {
            name: &slot.name,
            state: slot.state,
        }));
        parts.extend(activations.map(|activations| Part {
            name: "activations",
            state: activations.state,
        }));
        Self {
            title: report.title.as_deref().unwrap_or("Placement"),
            verdict: report.verdict(),
            is_wrong: report.variables_outside() > 0 || !report.copies_are_equal(),
            strategy: format!("{strategy} · {} parameters", count(elements)),
            reality: reality(&report.devices),
            parts,
            devices: devices(report),
            layers: groups(report).into_iter().map(layer).collect(),
            origins,
            kinds: kinds(report),
            timelines: &report.collectives,
            so_far: so_far(report),
            activations: activations.map(|activations| activations.note.as_str()),
        }
    }

    /// A line of a report with many devices, in words: `12 of 12 equal`, `cpu:5 differs`, `on ps:0`.
    pub fn on_many(&self, line: &Line) -> String {
        let names = |is: &dyn Fn(&Cell) -> bool| -> Vec<&str> {
            let cells = line.cells.iter().zip(&self.devices);
            let found = cells.filter(|(cell, _)| is(cell));
            found
                .map(|(_, device)| device.column.name.as_str())
                .collect()
        };
        let held = names(&|cell| !matches!(cell, Cell::Missing | Cell::Elsewhere));
        let all = line.cells.len();
        let proved = line.cells.iter().all(|cell| {
            matches!(
                cell,
                Cell::Copy { proved: true, .. } | Cell::Copies { proved: true, .. }
            )
        });
        match names(&Cell::is_odd).as_slice() {
            [] if proved => format!("{all} of {all} equal"),
            [] if held.len() <= 2 => format!("on {}", held.join(", ")),
            [] => format!("{} of {all}", held.len()),
            [one] => format!("{one} differs"),
            odd => format!("{} of {all} differ", odd.len()),
        }
    }

    /// Where the variable of a line was created.
    pub fn origin(&self, line: &Line) -> &str {
        match line.origin.and_then(|index| self.origins.get(index)) {
            Some(origin) => origin,
            None => "several places",
        }
    }

    /// How the grid shows equal copies, and what its other signs mean. `most` devices have a column each; where
    /// layers cannot be `opened`, their variables stand below only if they differ.
    pub fn signs(&self, most: usize, opened: bool) -> Vec<&'static str> {
        let lines = || {
            self.layers.iter().flat_map(move |layer| {
                let seen =
                    move |line: &&Line| opened || layer.sum.is_none() || line.mark == Mark::Unequal;
                layer.lines.iter().filter(seen).chain(&layer.sum)
            })
        };
        let cells = || lines().flat_map(|line| &line.cells);
        let proved = |cell: &Cell| matches!(cell, Cell::Copies { proved: true, .. });
        let mut signs = Vec::new();
        let whole = |cell: &Cell| matches!(cell, Cell::Copy { rows: None, .. });
        if self.devices.len() <= most && cells().any(whole) {
            signs.push("the digits are the beginning of each copy's checksum: copies with the same digits are equal");
        }
        if self.devices.len() <= most && cells().any(proved) {
            signs.push("✓ 16: sixteen variables, each with the same checksum on every replica");
        }
        if self.devices.len() > most && !self.layers.is_empty() {
            signs.push("a dot per device: green is proved equal by checksum, red differs, a ring has no copy");
        }
        if lines().any(|line| line.frozen) {
            signs.push("a kind with * is frozen: training leaves the variable as it is");
        }
        signs
    }

    /// Whether some part is in this state, such as planned.
    pub fn has(&self, state: SlotState) -> bool {
        self.parts.iter().any(|part| part.state == state)
    }

    /// The names of the devices.
    pub fn device_names(&self) -> Vec<String> {
        self.devices
            .iter()
            .map(|line| line.column.name.clone())
            .collect()
    }

    /// Whether every device holds the same of every part.
    pub fn is_even(&self) -> bool {
        self.devices
            .windows(2)
            .all(|pair| pair[0].parts == pair[1].parts)
    }
}
