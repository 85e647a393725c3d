//! What a training run needs of memory, part by part, and how it is shown.

use std::fmt::{self, Write};

use stratoscope_render::html::DATA_TABLE_STYLE;
use stratoscope_strategy::placement::bytes;

use crate::html::escape;

/// One part of what a replica needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// `weights`, `moments`, `average`, `gradients`, `activations`.
    pub name: &'static str,
    /// Bytes on each replica.
    pub bytes: u64,
    /// Where the number comes from, in words.
    pub why: String,
    /// Whether the memory is held already.
    pub is_held: bool,
}

/// What is needed at one time of a training step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepMemory {
    /// In words: `when the backward pass begins`.
    pub when: &'static str,
    /// Bytes that grow with the examples: what layers keep, and what an operation needs for the moment.
    pub activations: u64,
    /// Bytes that do not: gradients of weights, copies of weights.
    pub gradients: u64,
}

/// What a training run needs, by part.
///
/// Weights and moments stay; gradients and activations come and go within a step. While the backward pass makes
/// gradients it frees activations, so that less is needed at one time than their sum: [`step`](Self::step).
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryPlan {
    /// Examples of the global batch.
    pub batch_size: usize,
    /// Tokens of the longest row.
    pub length: usize,
    /// Replicas, each with all parts.
    pub replicas: usize,
    /// Weights, moments, gradients, activations.
    pub parts: Vec<Part>,
    /// The times of a step that may need the most, on each replica.
    pub steps: Vec<StepMemory>,
    /// The same with `recompute = true`, where the network can.
    pub recomputed: Option<Vec<StepMemory>>,
    /// Bytes of all other models that are alive.
    pub others: u64,
    /// Bytes that the replicas' devices have in all, where it is known.
    pub capacity: Option<u64>,
    /// Bytes that are free now, where it is known; on the processor what the system calls available.
    pub free: Option<u64>,
}

/// The parts that come and go within a step.
const OF_A_STEP: [&str; 2] = ["gradients", "activations"];

impl MemoryPlan {
    /// Bytes that all replicas need, at the time when it is the most.
    pub fn total(&self) -> u64 {
        self.sum(|_| true)
    }

    /// Bytes that are still to be asked for.
    pub fn to_come(&self) -> u64 {
        self.sum(|part| !part.is_held)
    }

    /// Bytes that a step needs on each replica beside what stays, at the time when it is the most.
    pub fn step(&self) -> u64 {
        self.most()
            .map_or(0, |step| step.gradients.saturating_add(step.activations))
    }

    /// The same run with `recompute = true`; none where the network cannot.
    pub fn recomputed(&self) -> Option<Self> {
        let steps = self.recomputed.clone()?;
        let activations = steps.iter().map(|step| step.activations).max().unwrap_or(0);
        let mut plan = Self {
            steps,
            recomputed: None,
            ..self.clone()
        };
        for part in &mut plan.parts {
            if part.name == "activations" {
                part.bytes = activations;
                part.why = "the input of each layer, and one layer at a time".to_owned();
            }
        }
        Some(plan)
    }

    /// The same while this many bytes of gradients of earlier micro-batches are there.
    pub fn beside_gradients(mut self, bytes: u64) -> Self {
        let of_passes = self.steps.iter_mut().filter(|step| step.activations > 0);
        of_passes.for_each(|step| step.gradients += bytes);
        self
    }

    /// Whether what is to come is free; yes where nobody knows.
    pub fn fits(&self) -> bool {
        self.free.is_none_or(|free| self.to_come() <= free)
    }

    /// The largest global batch for which it would be enough, as a multiple of the replicas; none
    /// if not even that.
    pub fn largest_batch(&self) -> Option<usize> {
        let replicas = self.replicas as u64;
        let stays = self.to_come() - self.step().saturating_mul(replicas);
        let left = self.free?.checked_sub(stays)? / replicas;
        let share = self.batch_size.div_ceil(self.replicas).max(1) as u64;
        let mut most = u64::MAX;
        for step in &self.steps {
            let left = left.checked_sub(step.gradients)?;
            most = most.min(left / (step.activations / share).max(1));
        }
        let batch = most.saturating_mul(replicas);
        usize::try_from(batch).ok().filter(|&batch| batch > 0)
    }

    /// The time of a step that needs the most.
    fn most(&self) -> Option<&StepMemory> {
        let needs = |step: &&StepMemory| step.gradients.saturating_add(step.activations);
        self.steps.iter().max_by_key(needs)
    }

    /// Parts that stay, and the most of a step.
    fn sum(&self, takes: impl Fn(&Part) -> bool) -> u64 {
        let stays = self
            .parts
            .iter()
            .filter(|part| !OF_A_STEP.contains(&part.name));
        let stays: u64 = stays
            .filter(|part| takes(part))
            .map(|part| self.on_all(part))
            .sum();
        stays.saturating_add(self.step().saturating_mul(self.replicas as u64))
    }

    /// Bytes of a part on each replica.
    pub fn of(&self, name: &str) -> u64 {
        let parts = self.parts.iter().filter(|part| part.name == name);
        parts.map(|part| part.bytes).sum()
    }

    /// Bytes of a part on all replicas together.
    pub fn on_all(&self, part: &Part) -> u64 {
        part.bytes.saturating_mul(self.replicas as u64)
    }

    /// Name, bytes per replica, bytes in all, where from: a row a part.
    fn rows(&self) -> Vec<[String; 4]> {
        let mut rows: Vec<[String; 4]> = self
            .parts
            .iter()
            .map(|part| {
                let why = match part.is_held {
                    true => format!("{}; held already", part.why),
                    false => part.why.clone(),
                };
                [
                    part.name.to_owned(),
                    bytes(part.bytes),
                    bytes(self.on_all(part)),
                    why,
                ]
            })
            .collect();
        let when = self.most().map_or("in a step", |step| step.when);
        rows.push([
            "at most".to_owned(),
            bytes(self.total() / self.replicas as u64),
            bytes(self.total()),
            format!("{when}; {} to come", bytes(self.to_come())),
        ]);
        if self.others > 0 {
            rows.push([
                "other models".to_owned(),
                match self.replicas {
                    1 => bytes(self.others),
                    _ => String::new(),
                },
                bytes(self.others),
                "alive in earlier cells".to_owned(),
            ]);
        }
        rows
    }

    fn head(&self) -> String {
        let replicas = match self.replicas {
            1 => String::new(),
            count => format!(" on {count} replicas"),
        };
        format!(
            "batch {} × {} tokens{replicas}",
            self.batch_size, self.length
        )
    }

    fn verdict(&self) -> String {
        let Some(free) = self.free else {
            return "how much is free is not known for this device".to_owned();
        };
        let most = match self.largest_batch() {
            Some(batch) => format!("; the largest batch that fits is about {batch}"),
            None => String::new(),
        };
        let word = if self.fits() { "fits" } else { "does not fit" };
        let cheaper = match self.recomputed() {
            Some(plan) if plan.to_come() < self.to_come() => {
                format!(
                    "; with `recompute = true` {} to come",
                    bytes(plan.to_come())
                )
            }
            _ => String::new(),
        };
        format!(
            "{word}: {} to come, {} free{most}{cheaper}",
            bytes(self.to_come()),
            bytes(free)
        )
    }

    /// The table as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        const CELL: &str = "padding:2px 10px 2px 0;text-align:right;white-space:nowrap";
        const WORDS: &str = "padding:2px 10px 2px 0;text-align:left;opacity:0.75";
        let most = self.parts.iter().map(|part| part.bytes).max().unwrap_or(0);
        let mut html = format!(
            "<div style=\"font-size:13px\"><div style=\"font-weight:600\">{}</div>\
             <table style=\"{DATA_TABLE_STYLE}\">",
            escape(&self.head())
        );
        // One replica is all replicas.
        let of_all = |all: &str| match self.replicas {
            1 => String::new(),
            _ => format!("<td style=\"{CELL}\">{all}</td>"),
        };
        if self.replicas > 1 {
            let all = of_all("all replicas");
            let _ = write!(
                html,
                "<tr style=\"opacity:0.75\"><td></td><td style=\"{CELL}\">each replica</td>{all}</tr>"
            );
        }
        for (index, [name, each, all, why]) in self.rows().into_iter().enumerate() {
            let share = match self.parts.get(index) {
                Some(part) => 100.0 * part.bytes as f64 / most.max(1) as f64,
                None => 0.0,
            };
            // Writing to a string cannot fail.
            let _ = write!(
                html,
                "<tr><td style=\"{CELL};text-align:left\">{name}</td><td style=\"{CELL}\">{each}</td>\
                 {}<td style=\"padding-right:10px\">\
                 <div style=\"width:{share:.0}px;height:9px;background-color:#4a90d9;\
                 border-radius:3px\"></div></td><td style=\"{WORDS}\">{}</td></tr>",
                of_all(&all),
                escape(&why)
            );
        }
        let color = if self.fits() { "#2e8b57" } else { "#c62828" };
        let _ = write!(
            html,
            "</table><div style=\"border-left:3px solid {color};padding-left:6px\">{}</div></div>",
            escape(&self.verdict())
        );
        html
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        let mut rows = match self.replicas {
            1 => Vec::new(),
            _ => vec![["", "each replica", "all replicas", ""].map(str::to_owned)],
        };
        rows.extend(self.rows());
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths = [width(0), width(1), width(2)];
        let mut text = format!("{}\n", self.head());
        for [name, each, all, why] in &rows {
            let [first, second, third] = widths;
            let line = match self.replicas {
                1 => format!("{name:first$}  {each:>second$}  {why}"),
                _ => format!("{name:first$}  {each:>second$}  {all:>third$}  {why}"),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text + &self.verdict() + "\n"
    }
}

impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(free: u64) -> MemoryPlan {
        let part = |name, bytes, is_held| Part {
            name,
            bytes,
            why: "as given".to_owned(),
            is_held,
        };
        let step = |activations, gradients| StepMemory {
            when: "some time",
            activations,
            gradients,
        };
        MemoryPlan {
            batch_size: 32,
            length: 64,
            replicas: 2,
            parts: vec![
                part("weights", 100, true),
                part("moments", 200, false),
                part("gradients", 100, false),
                part("activations", 1600, false),
            ],
            steps: vec![step(1600, 20), step(160, 100)],
            recomputed: Some(vec![step(800, 20), step(160, 100)]),
            others: 0,
            capacity: Some(10_000),
            free: Some(free),
        }
    }

    #[test]
    fn the_most_of_a_step_and_what_stays_add_up() {
        let plan = plan(3639);
        assert_eq!(plan.step(), 1620);
        assert_eq!((plan.total(), plan.to_come()), (3840, 3640));
        assert!(!plan.fits());
        // On each replica 1819 are free, 200 of them for moments and 20 for gradients: 1599 hold 15 of 100 bytes.
        assert_eq!(plan.largest_batch(), Some(30));
        assert_eq!(self::plan(3640).largest_batch(), Some(32));
        assert!(self::plan(3640).fits());
        // The gradients at the end of the backward pass need 100, also if the batch is small.
        assert_eq!(self::plan(599).largest_batch(), None);
        assert_eq!(self::plan(820).largest_batch(), Some(2));
        let text = plan.to_plain();
        assert!(
            text.contains("activations      1.56 KiB      3.12 KiB  as given"),
            "{text}"
        );
        assert!(
            text.contains("the largest batch that fits is about 30; with `recompute = true`"),
            "{text}"
        );
        let cheaper = plan.recomputed().expect("it can");
        assert_eq!((cheaper.of("activations"), cheaper.step()), (800, 820));
        assert!(cheaper.fits() && cheaper.recomputed().is_none());
        assert!(text.ends_with(" to come\n"), "{text}");
    }
}
