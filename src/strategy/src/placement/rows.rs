//! The rows that all three renderings draw: what is said, in which order, what is marked. A
//! rendering decides how it looks; it neither adds nor leaves out a fact, so the three cannot
//! tell different stories.

use std::collections::HashMap;
use std::ops::Range;

use stratoscope_render::text;

use super::PlacementReport;
use super::fold::{Group, groups};
use super::parts::{DeviceColumn, SlotState, VariableCopy, VariableRow};
use super::timeline::Timeline;
use crate::checksum::Checksum;
use crate::device::DeviceKind;
use crate::variable::VariableKind;
use stratoscope_render::units::count;

/// A report, ready to be drawn.
pub(super) struct Sheet<'a> {
    pub title: &'a str,
    /// The report in one sentence.
    pub verdict: String,
    /// Whether that sentence tells of something wrong.
    pub is_wrong: bool,
    /// The strategy and the number of parameters.
    pub strategy: String,
    /// What there really is of the devices: physical, logical or simulated.
    pub reality: Vec<String>,
    /// What devices hold: weights first, then slots, then activations.
    pub parts: Vec<Part<'a>>,
    pub devices: Vec<DeviceLine<'a>>,
    pub layers: Vec<Layer>,
    /// Who made variables, in the order of their first variable.
    pub origins: Vec<String>,
    /// The kinds that occur.
    pub kinds: Vec<KindLine>,
    pub timelines: &'a [Timeline],
    /// All collectives since the model was made.
    pub so_far: Option<String>,
    /// How activations were counted, where they are shown.
    pub activations: Option<&'a str>,
}

/// One of the things that devices hold.
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
    /// Variables that should have a copy here have none.
    pub lacks: bool,
}

/// What is wrong with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Right,
    /// The strategy has not placed it.
    Outside,
    /// Its copies must be equal and are not.
    Unequal,
}

impl Mark {
    /// What stands before the row's name in text.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Right => "",
            Self::Outside => "✗ ",
            Self::Unequal => "≠ ",
        }
    }
}

/// What stands where a row and a device meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// Nothing, and it should be something.
    Missing,
    /// Nothing, as the kind of the variable has it.
    Elsewhere,
    /// A copy.
    Copy {
        checksum: Checksum,
        /// Bytes of each part.
        parts: Vec<u64>,
        /// One of several copies that are equal, as they must be.
        proved: bool,
        /// Not what most copies are, and it must be.
        odd: bool,
        /// Of a variable that is cut, the rows that are here.
        rows: Option<Range<usize>>,
    },
    /// A layer's copies.
    Copies {
        variables: usize,
        parts: Vec<u64>,
        proved: bool,
        /// How many copies are not what most are.
        odd: usize,
        /// Some of them are rows of a variable, not all of it.
        piece: bool,
    },
}

impl Cell {
    /// The cell as text: the first digits of a checksum, `rows 0–95`, `✓ 16`, `no copy`.
    pub fn words(&self) -> String {
        match self {
            Self::Missing => "no copy".to_owned(),
            Self::Elsewhere => "–".to_owned(),
            // Shards have nothing to be equal to: which they are says more than their digits.
            Self::Copy {
                rows: Some(rows), ..
            } => in_words(rows),
            Self::Copy { checksum, odd, .. } => match odd {
                true => format!("≠{}", checksum.short()),
                false => checksum.short(),
            },
            Self::Copies { odd, .. } if *odd > 0 => format!("{odd} ≠"),
            Self::Copies {
                variables, proved, ..
            } => match proved {
                true => format!("✓ {variables}"),
                false => variables.to_string(),
            },
        }
    }

    /// Whether it holds something that is not what most replicas have.
    pub fn is_odd(&self) -> bool {
        match self {
            Self::Copy { odd, .. } => *odd,
            Self::Copies { odd, .. } => *odd > 0,
            Self::Missing | Self::Elsewhere => false,
        }
    }

    /// The cell in full, for who points at it.
    pub fn title(&self) -> String {
        match self {
            Self::Missing => "this device has no copy".to_owned(),
            Self::Elsewhere => "not kept here".to_owned(),
            Self::Copy {
                checksum,
                odd,
                rows,
                ..
            } => {
                let what = match rows {
                    Some(rows) => format!("{}, checksum", in_words(rows)),
                    None => "checksum".to_owned(),
                };
                let differs = if *odd {
                    ", unlike that of most copies"
                } else {
                    ""
                };
                format!("{what} {checksum}{differs}")
            }
            Self::Copies {
                variables,
                odd,
                piece,
                ..
            } => match (odd, piece) {
                (0, true) => format!("rows of {}", text::count(*variables, "variable")),
                (0, false) => text::count(*variables, "variable"),
                (odd, _) => {
                    format!("{odd} of {variables} copies differ from those of most replicas")
                }
            },
        }
    }
}

/// `rows 0–95`, counted from 0, the last one included; `row 4`.
fn in_words(rows: &Range<usize>) -> String {
    match rows.len() {
        1 => format!("row {}", rows.start),
        _ => format!("rows {}–{}", rows.start, rows.end.saturating_sub(1)),
    }
}

/// A variable, or a layer's sum.
pub(super) struct Line {
    /// As it is shown: inside a layer without the layer's name.
    pub name: String,
    pub full_name: String,
    /// `Mirrored`, `outside`, `several`.
    pub kind: &'static str,
    pub why: String,
    /// Training leaves it as it is.
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

    /// What very many devices have of a line, in words: `12 of 12 equal`, `cpu:5 differs`, `on ps:0`.
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

    /// Where a line was made.
    pub fn origin(&self, line: &Line) -> &str {
        match line.origin.and_then(|index| self.origins.get(index)) {
            Some(origin) => origin,
            None => "several places",
        }
    }

    /// How equal copies are told, and other signs of the grid. `most` devices have a column each; where
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

    /// Whether something is only planned.
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

fn origins(report: &PlacementReport) -> Vec<String> {
    let mut origins: Vec<String> = Vec::new();
    for row in &report.variables {
        let origin = row.origin.to_string();
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    }
    origins
}

fn devices(report: &PlacementReport) -> Vec<DeviceLine<'_>> {
    let mut lines = Vec::new();
    for (index, column) in report.devices.iter().enumerate() {
        let totals = report.device_totals(index);
        let mut parts = vec![totals.weights];
        parts.extend(&totals.slots);
        parts.extend(report.shown_activations().map(|_| totals.activations));
        lines.push(DeviceLine {
            column,
            role: match (column.replica, column.server) {
                (Some(replica), _) => format!("replica {replica}"),
                (None, Some(server)) => format!("server {server}"),
                (None, None) if report.strategy.is_some() => "not in the strategy".to_owned(),
                (None, None) => String::new(),
            },
            lacks: (report.variables.iter())
                .any(|row| row.on(index).is_none() && is_wanted(report, row, index)),
            what: match column.shared_by {
                0 | 1 => column.description.clone(),
                shares => format!("one of {shares} shares of {}", column.description),
            },
            sum: totals.sum(),
            parts,
        });
    }
    lines
}

/// A sentence for each reality that occurs.
fn reality(devices: &[DeviceColumn]) -> Vec<String> {
    let of = |kind: DeviceKind| devices.iter().filter(|device| device.kind == kind).count();
    let mut told = Vec::new();
    if let count @ 1.. = of(DeviceKind::Physical) {
        let each = if count == 1 {
            "a device of its own"
        } else {
            "each a device of its own"
        };
        told.push(format!("{}: {each}", text::count(count, "physical device")));
    }
    if let count @ 1.. = of(DeviceKind::Logical) {
        let shares = if count == 1 { "a share" } else { "shares" };
        told.push(format!(
            "{}: {shares} of a physical one; copies and transfers are real, memory and time are shared",
            text::count(count, "logical device")
        ));
    }
    if let count @ 1.. = of(DeviceKind::Simulated) {
        told.push(format!(
            "{}: the values are computed for real, the hardware is simulated; its times are not measured",
            text::count(count, "simulated device")
        ));
    }
    told
}

fn kinds(report: &PlacementReport) -> Vec<KindLine> {
    let mut kinds: Vec<KindLine> = Vec::new();
    for row in &report.variables {
        let title = kind(row);
        let known = kinds.iter().position(|kind| kind.title == title);
        let known = known.unwrap_or_else(|| {
            kinds.push(KindLine {
                title,
                variables: 0,
                meaning: if row.outside {
                    OUTSIDE
                } else {
                    meaning(row.kind)
                },
                why: Vec::new(),
            });
            kinds.len() - 1
        });
        let kind = &mut kinds[known];
        kind.variables += 1;
        if !kind.why.contains(&row.why) {
            kind.why.push(row.why.clone());
        }
    }
    kinds
}

const OUTSIDE: &str = "not made under the strategy, so its other replicas have no copy";

/// What a kind means, in one sentence.
fn meaning(kind: VariableKind) -> &'static str {
    match kind {
        VariableKind::Mirrored => {
            "a copy on every replica; every update is made to all of them, so they stay equal"
        }
        VariableKind::Local => "one copy, on one device",
        VariableKind::OnRead => {
            "each replica writes its own copy; the copies are combined when the variable is read"
        }
        VariableKind::Central => {
            "one copy for all replicas, which fetch it and send their gradients to its device"
        }
        VariableKind::Sharded => {
            "cut by rows, a shard on each of several servers; workers fetch all shards and send each server the gradients of its rows"
        }
    }
}

fn so_far(report: &PlacementReport) -> Option<String> {
    let totals = &report.totals;
    let counts = [
        (totals.all_reduces, "all-reduce"),
        (totals.parameter_averages, "parameter average"),
        (totals.pushes, "push"),
    ];
    let told: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| match what {
            // The one word here whose plural is not an `s` more.
            "push" if count > 1 => format!("{} pushes", text::thousands(number(count))),
            what => text::count(number(count), what),
        })
        .collect();
    (!told.is_empty()).then(|| {
        format!(
            "{}, {} between devices",
            told.join(", "),
            super::bytes(totals.moved_bytes)
        )
    })
}

fn number(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn mark(row: &VariableRow) -> Mark {
    match (row.outside, row.is_unequal()) {
        (true, _) => Mark::Outside,
        (_, true) => Mark::Unequal,
        _ => Mark::Right,
    }
}

fn kind(row: &VariableRow) -> &'static str {
    if row.outside {
        "outside"
    } else {
        row.kind.title()
    }
}

fn line(report: &PlacementReport, row: &VariableRow, name: &str, origins: &[String]) -> Line {
    let usual = usual(row);
    let cell = |device: usize| match row.on(device) {
        None if is_wanted(report, row, device) => Cell::Missing,
        None => Cell::Elsewhere,
        Some(copy) => Cell::Copy {
            checksum: copy.checksum,
            parts: parts(row, device, copy),
            proved: row.copies.len() > 1 && row.must_be_equal() && !row.is_unequal(),
            odd: row.is_unequal() && usual != Some(copy.checksum),
            rows: copy.rows.clone(),
        },
    };
    let made = row.origin.to_string();
    Line {
        name: name.to_owned(),
        full_name: row.name.clone(),
        kind: kind(row),
        why: row.why.clone(),
        frozen: !row.trainable && !row.beside,
        shape: format!(
            "{} {}",
            row.dtype,
            stratoscope_render::units::shape(&row.shape)
        ),
        bytes: row.bytes,
        origin: origins.iter().position(|origin| *origin == made),
        mark: mark(row),
        cells: (0..report.devices.len()).map(cell).collect(),
    }
}

/// The line of a folded layer.
fn sum(report: &PlacementReport, group: &Group<'_>, origins: &[String]) -> Line {
    let lines: Vec<Line> = group
        .rows
        .iter()
        .map(|row| line(report, row, "", origins))
        .collect();
    let first = &lines[0];
    let cell = |device: usize| {
        let (mut variables, mut odd, mut sums) = (0, 0, Vec::new());
        let (mut proved, mut piece, mut missing) = (true, false, 0);
        for line in &lines {
            match &line.cells[device] {
                Cell::Copy {
                    parts,
                    proved: p,
                    odd: o,
                    rows,
                    ..
                } => {
                    variables += 1;
                    odd += usize::from(*o);
                    proved &= *p;
                    piece |= rows.is_some();
                    add(&mut sums, parts);
                }
                Cell::Missing => missing += 1,
                Cell::Elsewhere | Cell::Copies { .. } => {}
            }
        }
        match (variables, missing) {
            (0, 0) => Cell::Elsewhere,
            (0, _) => Cell::Missing,
            _ => Cell::Copies {
                variables,
                parts: sums,
                proved,
                odd,
                piece,
            },
        }
    };
    let same = |of: &dyn Fn(&Line) -> &'static str| {
        let first = of(first);
        if lines.iter().all(|line| of(line) == first) {
            first
        } else {
            "several"
        }
    };
    let is_there = |mark: &Mark| lines.iter().any(|line| line.mark == *mark);
    let worst = [Mark::Outside, Mark::Unequal].into_iter().find(is_there);
    let origin = first
        .origin
        .filter(|_| lines.iter().all(|line| line.origin == first.origin));
    Line {
        name: group.name.clone(),
        full_name: group.name.clone(),
        kind: same(&|line| line.kind),
        why: first.why.clone(),
        frozen: lines.iter().all(|line| line.frozen),
        shape: text::count(lines.len(), "variable"),
        bytes: lines.iter().map(|line| line.bytes).sum(),
        origin,
        mark: worst.unwrap_or(Mark::Right),
        cells: (0..report.devices.len()).map(cell).collect(),
    }
}

/// Whether a variable lacks something where it has no copy: a kind that is mirrored should be on every
/// replica, and one that is outside on every replica of the strategy that it should have been made under.
fn is_wanted(report: &PlacementReport, row: &VariableRow, device: usize) -> bool {
    let replica = report
        .devices
        .get(device)
        .is_some_and(|column| column.replica.is_some());
    replica && (row.outside || row.must_be_equal())
}

/// Weights and slots of a copy; the state of metrics is neither.
fn parts(row: &VariableRow, device: usize, copy: &VariableCopy) -> Vec<u64> {
    if row.beside {
        return Vec::new();
    }
    std::iter::once(copy.bytes)
        .chain(row.slots_on(device))
        .collect()
}

fn add(sums: &mut Vec<u64>, parts: &[u64]) {
    sums.resize(sums.len().max(parts.len()), 0);
    for (sum, part) in sums.iter_mut().zip(parts) {
        *sum += part;
    }
}

/// The checksum of more than half of the copies, if there is one.
fn usual(row: &VariableRow) -> Option<Checksum> {
    let mut votes: HashMap<Checksum, usize> = HashMap::new();
    for copy in &row.copies {
        *votes.entry(copy.checksum).or_default() += 1;
    }
    let most = votes.into_iter().max_by_key(|(_, votes)| *votes);
    most.filter(|(_, votes)| votes * 2 > row.copies.len())
        .map(|(checksum, _)| checksum)
}
