//! What a training run needs of memory, part by part, and how it is shown.

use std::fmt::{self, Write};

use stratoscope_strategy::placement::bytes;

use crate::report::html::escape;

/// One part of what a replica needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// `weights`, `gradients`, `moments`, `activations`.
    pub name: &'static str,
    /// Bytes on each replica.
    pub bytes: u64,
    /// Where the number comes from, in words.
    pub why: String,
    /// Whether the memory is held already.
    pub is_held: bool,
}

/// What a training run needs, by part.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryPlan {
    /// Examples of the global batch.
    pub batch_size: usize,
    /// Tokens of the longest row.
    pub length: usize,
    /// Replicas, each with all parts.
    pub replicas: usize,
    /// Weights, gradients, moments, activations.
    pub parts: Vec<Part>,
    /// Bytes of all other models that are alive.
    pub others: u64,
    /// Bytes that the replicas' devices have in all, where it is known.
    pub capacity: Option<u64>,
    /// Bytes that are free now, where it is known; on the processor what the system calls available.
    pub free: Option<u64>,
}

impl MemoryPlan {
    /// Bytes that all replicas need.
    pub fn total(&self) -> u64 {
        self.parts.iter().map(|part| self.on_all(part)).sum()
    }

    /// Bytes that are still to be asked for.
    pub fn to_come(&self) -> u64 {
        let parts = self.parts.iter().filter(|part| !part.is_held);
        parts.map(|part| self.on_all(part)).sum()
    }

    /// Whether what is to come is free; yes where nobody knows.
    pub fn fits(&self) -> bool {
        self.free.is_none_or(|free| self.to_come() <= free)
    }

    /// The largest global batch for which it would be enough, as a multiple of the replicas; none
    /// if not even that.
    pub fn largest_batch(&self) -> Option<usize> {
        let activations: u64 = self.of("activations");
        let rest = self.to_come() - activations * self.replicas as u64;
        let left = self.free?.checked_sub(rest)?;
        let share = self.batch_size.div_ceil(self.replicas).max(1) as u64;
        let each = (activations / share).max(1) * self.replicas as u64;
        let batch = left / each * self.replicas as u64;
        usize::try_from(batch).ok().filter(|&batch| batch > 0)
    }

    /// Bytes of a part on each replica.
    pub fn of(&self, name: &str) -> u64 {
        let parts = self.parts.iter().filter(|part| part.name == name);
        parts.map(|part| part.bytes).sum()
    }

    pub(crate) fn on_all(&self, part: &Part) -> u64 {
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
        let each = self.parts.iter().map(|part| part.bytes).sum();
        rows.push([
            "sum".to_owned(),
            bytes(each),
            bytes(self.total()),
            format!("{} to come", bytes(self.to_come())),
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
        format!(
            "{word}: {} to come, {} free{most}",
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
             <table style=\"border-collapse:collapse;font-size:13px;margin:4px 0\">",
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
        MemoryPlan {
            batch_size: 32,
            length: 64,
            replicas: 2,
            parts: vec![
                part("weights", 100, true),
                part("gradients", 100, false),
                part("moments", 200, false),
                part("activations", 1600, false),
            ],
            others: 0,
            capacity: Some(10_000),
            free: Some(free),
        }
    }

    #[test]
    fn the_parts_of_all_replicas_add_up() {
        let plan = plan(3799);
        assert_eq!((plan.total(), plan.to_come()), (4000, 3800));
        assert!(!plan.fits());
        // 600 of 3799 are gradients and moments; 3199 hold 15 pairs of 100-byte examples.
        assert_eq!(plan.largest_batch(), Some(30));
        assert_eq!(self::plan(3800).largest_batch(), Some(32));
        assert!(self::plan(3800).fits());
        assert_eq!(self::plan(599).largest_batch(), None);
        let text = plan.to_plain();
        assert!(
            text.contains("activations      1.56 KiB      3.12 KiB  as given"),
            "{text}"
        );
        assert!(text.ends_with("about 30\n"), "{text}");
    }
}
