//! From the marks of the replicas' passes to the seconds of each part of the network.
//!
//! Forward, a part runs from where it begins to where it ends; what its own parts take is theirs. Backward, it runs from where the gradient
//! of its output arrives to where that of the next part arrives: the backward pass is one list of operations, one after the other. On a GPU
//! operations are only started, so that these are the times of the host.

use std::collections::HashMap;
use std::time::Instant;

use stratoscope_bert::taps::Moment;

use stratoscope_step::timed::{STAGES, Stamp, TimedPass};

/// The part to which the loss is counted.
const LOSS: &str = "loss";

/// The seconds of parts, without those of the parts in them, and the seconds of the stages of passes.
#[derive(Debug, Default)]
pub(super) struct PartTimes {
    /// By the order in which they were first seen.
    pub parts: Vec<(String, [f64; 2])>,
    places: HashMap<String, usize>,
    /// Seconds of [`STAGES`].
    pub stages: [f64; STAGES.len()],
    /// The shapes of the outputs, one for each pass.
    pub outputs: Vec<(String, Vec<usize>)>,
}

/// The direction of a part's seconds.
const FORWARD: usize = 0;
const BACKWARD: usize = 1;

impl PartTimes {
    fn add(&mut self, part: &str, direction: usize, seconds: f64) {
        let place = match self.places.get(part) {
            Some(&place) => place,
            None => {
                self.parts.push((part.to_owned(), [0.0; 2]));
                self.places.insert(part.to_owned(), self.parts.len() - 1);
                self.parts.len() - 1
            }
        };
        self.parts[place].1[direction] += seconds;
    }

    /// The part that was seen forward under this name, or under one that ends with it: a layer that is computed again begins
    /// without the parts around it.
    fn resolved(&self, path: &str) -> String {
        if self.places.contains_key(path) {
            return path.to_owned();
        }
        let end = format!(".{path}");
        let known = self.parts.iter().find(|(name, _)| name.ends_with(&end));
        known.map_or_else(|| path.to_owned(), |(name, _)| name.clone())
    }

    /// Adds a pass.
    pub(super) fn pass(&mut self, pass: &TimedPass) {
        let mut walk = Walk {
            times: self,
            stage: 0,
            at: pass.begun,
            inside: Vec::new(),
            last: "",
            backward: String::new(),
        };
        for stamp in &pass.stamps {
            walk.stamp(stamp);
        }
        walk.until(pass.ended);
    }
}

/// Where a walk along the marks of a pass is.
struct Walk<'t> {
    times: &'t mut PartTimes,
    stage: usize,
    at: Instant,
    /// The parts that are running, the innermost last.
    inside: Vec<String>,
    /// The part that the forward passes end with: the loss, if this pass has one.
    last: &'static str,
    /// The part whose backward pass is running.
    backward: String,
}

impl Walk<'_> {
    /// Counts the time up to here.
    fn until(&mut self, now: Instant) {
        let seconds = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        self.times.stages[self.stage] += seconds;
        match STAGES[self.stage] {
            "forward" => {
                let part = self.inside.last().map_or("", String::as_str);
                self.times.add(part, FORWARD, seconds);
            }
            "loss" => self.times.add(LOSS, FORWARD, seconds),
            "backward" => self.times.add(&self.backward, BACKWARD, seconds),
            _ => {}
        }
    }

    fn stamp(&mut self, stamp: &Stamp) {
        self.until(stamp.at);
        let is_forward = self.stage == 0;
        match stamp.moment {
            Moment::Begins if is_forward => self.inside.push(stamp.layer.clone()),
            Moment::Ends if is_forward => {
                self.inside.pop();
            }
            Moment::Output if is_forward => {
                let output = (stamp.layer.clone(), stamp.shape.clone());
                self.times.outputs.push(output);
            }
            Moment::Begins | Moment::Gradient if STAGES[self.stage] == "backward" => {
                self.backward = self.times.resolved(&stamp.layer);
            }
            Moment::Begins | Moment::Ends | Moment::Output | Moment::Gradient => {}
            Moment::Stage => {
                let known = STAGES.iter().position(|name| *name == stamp.layer);
                self.stage = known.unwrap_or(self.stage);
                match STAGES[self.stage] {
                    "loss" => self.last = LOSS,
                    "backward" => self.backward = self.last.to_owned(),
                    _ => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use stratoscope_step::timed::PassSize;

    #[test]
    fn the_seconds_of_a_part_are_without_those_of_its_parts() {
        let begun = Instant::now();
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        let stamp = |seconds: u64, layer: &str, moment: Moment| Stamp {
            at: at(seconds),
            layer: layer.to_owned(),
            moment,
            shape: vec![2, 3],
        };
        let pass = TimedPass {
            replica: 0,
            begun,
            ended: at(40),
            size: PassSize {
                positions: 6,
                micro_batches: 1,
            },
            stamps: vec![
                stamp(1, "a", Moment::Begins),
                stamp(3, "a.layer.0", Moment::Begins),
                stamp(7, "a.layer.0", Moment::Output),
                stamp(7, "a.layer.0", Moment::Ends),
                stamp(8, "a", Moment::Ends),
                stamp(10, "loss", Moment::Stage),
                stamp(11, "backward", Moment::Stage),
                stamp(13, "a.layer.0", Moment::Gradient),
                // Computed again: the parts around it are not known here.
                stamp(20, "layer.0", Moment::Begins),
                stamp(25, "layer.0", Moment::Gradient),
                stamp(30, "accumulate", Moment::Stage),
                stamp(38, "read", Moment::Stage),
            ],
        };
        let mut times = PartTimes::default();
        times.pass(&pass);
        let of = |name: &str| {
            let found = times.parts.iter().find(|it| it.0 == name);
            found.expect("a part").1
        };
        assert_eq!(of(""), [3.0, 0.0], "before and after all parts");
        assert_eq!(of("a"), [3.0, 0.0]);
        assert_eq!(of("a.layer.0"), [4.0, 17.0]);
        assert_eq!(of(LOSS), [1.0, 2.0]);
        assert_eq!(times.stages, [10.0, 1.0, 19.0, 8.0, 2.0, 0.0]);
        let all: f64 = times.parts.iter().map(|it| it.1[0] + it.1[1]).sum();
        assert_eq!(
            all,
            times.stages[..3].iter().sum::<f64>(),
            "nothing is lost"
        );
        assert_eq!(times.outputs, [("a.layer.0".to_owned(), vec![2, 3])]);
    }

    /// Two micro-batches through a stage of a pipeline that is not the last: it waits between its passes, and has no loss.
    #[test]
    fn a_stage_that_waits_computes_nothing_meanwhile() {
        let begun = Instant::now();
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        let mut seconds = 0;
        let mut stamps = Vec::new();
        let mut stamp = |after: u64, layer: &str, moment: Moment| {
            seconds += after;
            stamps.push(Stamp {
                at: at(seconds),
                layer: layer.to_owned(),
                moment,
                shape: Vec::new(),
            });
        };
        for _ in 0..2 {
            stamp(0, "wait", Moment::Stage);
            stamp(1, "forward", Moment::Stage);
            stamp(0, "a", Moment::Begins);
            stamp(2, "a", Moment::Ends);
        }
        for _ in 0..2 {
            stamp(0, "wait", Moment::Stage);
            stamp(4, "backward", Moment::Stage);
            stamp(1, "a", Moment::Gradient);
            stamp(5, "accumulate", Moment::Stage);
        }
        let pass = TimedPass {
            replica: 0,
            begun,
            ended: at(seconds),
            size: PassSize {
                positions: 6,
                micro_batches: 2,
            },
            stamps,
        };
        let mut times = PartTimes::default();
        times.pass(&pass);
        let expected = [("a".to_owned(), [4.0, 10.0]), (String::new(), [0.0, 2.0])];
        let mut parts = times.parts.clone();
        parts.retain(|it| it.1 != [0.0; 2]);
        parts.sort_by(|a, b| b.0.cmp(&a.0));
        assert_eq!(parts, expected);
        assert_eq!(times.stages, [4.0, 0.0, 12.0, 0.0, 0.0, 10.0]);
    }
}
