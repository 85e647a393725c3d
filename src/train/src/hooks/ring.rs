//! A bounded store of snapshots by step.
//!
//! One is added every so many steps. Where they would exceed the memory that they may take, one of them is dropped:
//! never the first, from which every step can be replayed, nor the newest. Of the others it is the one whose absence
//! costs least: the gap that it leaves, as a share of how long ago it is. So snapshots lie close to each other near the
//! present, where one turns back to, and become sparse towards the beginning.

use stratoscope_render::text;
use stratoscope_strategy::placement::bytes;

/// Snapshots of a run, the oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// Optimizer steps from one to the next.
    every: u64,
    /// The memory that all of them may take.
    most_bytes: u64,
    held: Vec<Held<T>>,
    /// The size of the latest that was too large by itself.
    too_large: Option<u64>,
}

#[derive(Clone, Debug)]
struct Held<T> {
    step: u64,
    bytes: u64,
    value: T,
}

impl<T> Ring<T> {
    /// Nothing held yet.
    pub fn new(every: u64, most_bytes: u64) -> Self {
        Self {
            every: every.max(1),
            most_bytes,
            held: Vec::new(),
            too_large: None,
        }
    }

    /// Whether a run that has made so many steps is to be held. A step is held once.
    pub(crate) fn is_due(&self, step: u64) -> bool {
        let newest = self.held.last();
        self.too_large.is_none() && newest.is_none_or(|held| step >= held.step + self.every)
    }

    /// Holds a snapshot after so many steps, which is later than any that is held, and drops others if need be.
    pub fn add(&mut self, step: u64, bytes: u64, value: T) {
        if bytes > self.most_bytes {
            self.too_large = Some(bytes);
            return;
        }
        self.held.push(Held { step, bytes, value });
        while self.bytes() > self.most_bytes {
            self.held.remove(self.dispensable());
        }
    }

    /// The index of the snapshot whose absence costs least.
    fn dispensable(&self) -> usize {
        let Some(newest) = self.held.last() else {
            return 0;
        };
        let cost = |at: &usize| {
            let gap = self.held[at + 1].step - self.held[at - 1].step;
            let age = (newest.step - self.held[*at].step).max(1);
            gap as f64 / age as f64
        };
        let between = 1..self.held.len() - 1;
        let least = between.min_by(|left, right| cost(left).total_cmp(&cost(right)));
        least.unwrap_or(0)
    }

    /// The latest snapshot after at most so many steps that is accepted.
    pub fn nearest(&self, step: u64, accept: impl Fn(&T) -> bool) -> Option<&T> {
        let mut held = self.held.iter().rev();
        let found = held.find(|held| held.step <= step && accept(&held.value));
        found.map(|held| &held.value)
    }

    /// Drops the snapshots after more than so many steps, and those that are not accepted.
    pub fn forget_after(&mut self, step: u64, accept: impl Fn(&T) -> bool) {
        self.held
            .retain(|held| held.step <= step && accept(&held.value));
    }

    /// All that are held, the oldest first.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.held.iter().map(|held| &held.value)
    }

    /// All that are held, to be changed.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.held.iter_mut().map(|held| &mut held.value)
    }

    /// The steps that are held, the oldest first.
    pub fn steps(&self) -> impl Iterator<Item = u64> {
        self.held.iter().map(|held| held.step)
    }

    /// The memory that all of them take, at most: what they share is counted for each.
    pub fn bytes(&self) -> u64 {
        self.held.iter().map(|held| held.bytes).sum()
    }

    /// A line: `snapshots every 10 steps: 4 (after steps 0, 10, 20, 30), 1.1 GB of at most 2.0 GB`.
    pub fn in_words(&self) -> String {
        /// More are not listed.
        const LISTED: usize = 8;
        if let Some(needed) = self.too_large {
            return format!(
                "no snapshots: one takes {}, more than the limit of {}",
                bytes(needed),
                bytes(self.most_bytes)
            );
        }
        let steps: Vec<String> = self.steps().map(|step| step.to_string()).collect();
        let listed = match steps.len() {
            0 => String::new(),
            more if more > LISTED => {
                let last = &steps[more - (LISTED - 1)..];
                format!(" (after steps {}, …, {})", steps[0], last.join(", "))
            }
            _ => format!(" (after steps {})", steps.join(", ")),
        };
        format!(
            "snapshots every {}: {}{listed}, {} of at most {}",
            text::count(usize::try_from(self.every).unwrap_or(usize::MAX), "step"),
            steps.len(),
            bytes(self.bytes()),
            bytes(self.most_bytes)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(most_bytes: u64, steps: u64) -> Ring<u64> {
        let mut ring = Ring::new(10, most_bytes);
        for step in 0..=steps {
            if ring.is_due(step) {
                ring.add(step, 100, step);
            }
        }
        ring
    }

    #[test]
    fn all_are_held_while_there_is_room() {
        let ring = filled(1000, 45);
        assert_eq!(ring.steps().collect::<Vec<_>>(), [0, 10, 20, 30, 40]);
        let nearest = |step: u64| ring.nearest(step, |_| true);
        assert_eq!(nearest(29), Some(&20));
        assert_eq!(nearest(30), Some(&30));
        assert_eq!(nearest(1000), Some(&40));
        assert_eq!(ring.nearest(30, |held| *held != 30), Some(&20));
        let words = "snapshots every 10 steps: 5 (after steps 0, 10, 20, 30, 40), 500 B of at most";
        assert!(ring.in_words().starts_with(words), "{}", ring.in_words());
    }

    #[test]
    fn the_first_and_the_newest_stay_and_the_past_becomes_sparse() {
        let ring = filled(600, 1000);
        let steps: Vec<u64> = ring.steps().collect();
        assert_eq!(steps.len(), 6, "{steps:?}");
        assert_eq!((steps[0], steps[5], steps[4]), (0, 1000, 990), "{steps:?}");
        assert!(ring.bytes() <= 600);
        // Gaps do not get smaller towards the past.
        let gaps: Vec<u64> = steps.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(
            gaps.is_sorted_by(|earlier, later| earlier >= later),
            "{gaps:?}"
        );
    }

    #[test]
    fn what_comes_after_a_step_is_forgotten_and_held_again() {
        let mut ring = filled(1000, 45);
        ring.forget_after(25, |_| true);
        assert_eq!(ring.steps().collect::<Vec<_>>(), [0, 10, 20]);
        assert!(!ring.is_due(25) && ring.is_due(30));
    }

    #[test]
    fn one_that_is_too_large_is_reported_and_not_held() {
        let ring = filled(50, 45);
        assert_eq!(ring.steps().count(), 0);
        assert!(ring.in_words().starts_with("no snapshots: one takes 100 B"));
        let ring = filled(150, 45);
        assert_eq!(
            ring.steps().collect::<Vec<_>>(),
            [40],
            "room for one: the newest"
        );
    }
}
