//! Where the time of a step goes, as a picture like a flame graph (Gregg 2016, "The flame graph"): a box is as wide as its share of the
//! step, and below it are the boxes of its parts. The whole step is at the top.

use std::fmt::Write;

use stratoscope_render::chart::Boxes;

use super::numbers::{duration, percent};
use super::{Profile, StepPhase};

/// Width of the picture.
const WIDTH: f64 = 900.0;
/// Rows below that of the step.
const MAX_DEPTH: usize = 7;
/// The smallest share of the step that a line of the text form shows.
const SHOWN_SHARE: f64 = 0.01;

/// A box and those below it.
#[derive(Debug, Default)]
struct Node {
    name: String,
    /// With its parts.
    seconds: f64,
    parts: Vec<Node>,
}

impl Node {
    fn part(&mut self, name: &str) -> &mut Self {
        let at = self.parts.iter().position(|it| it.name == name);
        let at = at.unwrap_or_else(|| {
            self.parts.push(Self {
                name: name.to_owned(),
                ..Self::default()
            });
            self.parts.len() - 1
        });
        &mut self.parts[at]
    }

    /// Adds the seconds of a part.
    fn add(&mut self, path: &[&str], seconds: f64) {
        self.seconds += seconds;
        if let Some((first, rest)) = path.split_first() {
            self.part(first).add(rest, seconds);
        }
    }

    /// A part alone in a part is one box: `encoder.layer`.
    fn joined(&mut self) {
        let is_alone =
            |node: &Self| node.parts.len() == 1 && node.parts[0].seconds >= 0.999 * node.seconds;
        while is_alone(self) {
            let only = self.parts.remove(0);
            self.name = format!("{}.{}", self.name, only.name);
            self.parts = only.parts;
        }
        self.parts.iter_mut().for_each(Self::joined);
    }
}

/// The step with its phases, and those with their parts. The parts are means over the replicas, the phases of the slowest: they are scaled
/// to the phase that they are in.
fn tree(profile: &Profile) -> Node {
    let mut step = Node {
        name: "step".to_owned(),
        seconds: profile.seconds,
        parts: Vec::new(),
    };
    for phase in &profile.phases {
        let own = profile.frames.iter().filter(|it| it.phase == phase.phase);
        let known: f64 = own.clone().map(|it| it.seconds).sum();
        let scale = match known > phase.seconds && known > 0.0 {
            true => phase.seconds / known,
            false => 1.0,
        };
        let mut node = Node {
            name: phase.phase.words().to_owned(),
            seconds: phase.seconds,
            parts: Vec::new(),
        };
        for frame in own {
            let path: Vec<&str> = frame.path.split('.').filter(|it| !it.is_empty()).collect();
            if let Some((first, rest)) = path.split_first() {
                node.part(first).add(rest, frame.seconds * scale);
            }
        }
        node.parts.iter_mut().for_each(Node::joined);
        step.parts.push(node);
    }
    step
}

/// The number of a phase's color.
fn color(phase: &str) -> usize {
    let at = StepPhase::ALL.iter().position(|it| it.words() == phase);
    at.unwrap_or(0)
}

/// The picture as SVG.
pub(super) fn svg(profile: &Profile) -> String {
    let step = tree(profile);
    let mut boxes = Boxes::new(WIDTH, "where the time of a step goes");
    let whole = step.seconds.max(f64::MIN_POSITIVE);
    place(&mut boxes, &step, (0.0, 0), None, whole);
    boxes.svg()
}

fn place(
    boxes: &mut Boxes,
    node: &Node,
    (begin, depth): (f64, usize),
    hue: Option<usize>,
    whole: f64,
) {
    let share = node.seconds / whole;
    let words = format!(
        "{}: {}, {}",
        node.name,
        duration(node.seconds),
        percent(share)
    );
    boxes.add((begin / whole, share, depth), hue, &node.name, &words);
    if depth == MAX_DEPTH {
        return;
    }
    let mut at = begin;
    for part in &node.parts {
        let hue = hue.unwrap_or_else(|| color(&part.name));
        place(boxes, part, (at, depth + 1), Some(hue), whole);
        at += part.seconds;
    }
}

/// The same as lines: a bar, the share and the name of each box.
pub(super) fn plain(profile: &Profile) -> String {
    let step = tree(profile);
    let mut lines = String::new();
    let whole = step.seconds.max(f64::MIN_POSITIVE);
    for phase in &step.parts {
        line(&mut lines, phase, 0, whole);
    }
    lines
}

fn line(lines: &mut String, node: &Node, depth: usize, whole: f64) {
    const BAR: f64 = 30.0;
    const MAX_LINES_DEPTH: usize = 3;
    let share = node.seconds / whole;
    if share < SHOWN_SHARE || depth > MAX_LINES_DEPTH {
        return;
    }
    let bar = "█".repeat(((share * BAR).round() as usize).max(1));
    // Writing to a string cannot fail.
    let _ = writeln!(
        lines,
        "  {bar:<30} {:>6}  {}{}",
        percent(share),
        "  ".repeat(depth),
        node.name
    );
    for part in &node.parts {
        line(lines, part, depth + 1, whole);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::profile;
    use super::*;

    #[test]
    fn a_box_is_as_wide_as_its_share_and_parts_lie_below_it() {
        let step = tree(&profile());
        assert_eq!(step.parts.len(), 5);
        let forward = &step.parts[1];
        let names: Vec<&str> = forward.parts.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["bert.embeddings", "a<b>"]);
        let layer = &forward.parts[1];
        assert!((layer.seconds - 0.008).abs() < 1e-12);
        assert_eq!(layer.parts[0].name, "dense");
        let sum: f64 = step.parts.iter().map(|it| it.seconds).sum();
        assert!((sum - step.seconds).abs() < 1e-9);
        let svg = svg(&profile());
        assert!(
            svg.contains("data: 60.0 ms, 60 %") && svg.contains("a&lt;b&gt;"),
            "{svg}"
        );
        let plain = plain(&profile());
        assert!(
            plain.contains("60 %  data") && plain.contains("8.0 %    a<b>"),
            "{plain}"
        );
    }
}
