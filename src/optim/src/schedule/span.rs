//! [`Span`]: how far a schedule over a whole run is at a step, where the number of steps changes on the way.
//!
//! A schedule such as `warmup_linear` is written as a share of the run. When a larger batch leaves a run fewer steps, what
//! is left of the schedule is passed in the steps that are left: the rate does not jump, a place of the data has the rate
//! that it would have had, and the last step is the last one of the schedule.

/// The steps of a run, and where its schedule is at each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The steps that the schedule is written for: those of the run at its begin.
    planned: u64,
    /// The steps of the run, as far as is known now.
    steps: u64,
    /// The step from which this holds, and where the schedule is there.
    from: (u64, u64),
}

impl Span {
    /// Of a run of so many steps.
    pub fn new(steps: u64) -> Self {
        Self {
            planned: steps,
            steps,
            from: (0, 0),
        }
    }

    /// The steps of the run.
    pub fn steps(self) -> u64 {
        self.steps
    }

    /// The steps that the schedule is written for.
    pub fn planned(self) -> u64 {
        self.planned
    }

    /// The same run, which after `made` steps has `left` more.
    #[must_use]
    pub fn turned(self, made: u64, left: u64) -> Self {
        Self {
            planned: self.planned,
            steps: made.saturating_add(left),
            from: (made, self.position(made)),
        }
    }

    /// Where the schedule is after so many steps: a step of those that it is written for, rounded down.
    pub fn position(self, step: u64) -> u64 {
        if self.planned == self.steps && self.from == (0, 0) {
            return step;
        }
        let (made, at) = self.from;
        let left = u128::from(self.steps.saturating_sub(made)).max(1);
        let passed = u128::from(step.saturating_sub(made));
        let of_schedule = u128::from(self.planned.saturating_sub(at));
        at.saturating_add(u64::try_from(passed * of_schedule / left).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_schedule_is_passed_in_the_steps_that_are_left() {
        let whole = Span::new(100);
        assert_eq!([0, 1, 99].map(|step| whole.position(step)), [0, 1, 99]);
        // Batches of twice the size from step 40 on.
        let half = whole.turned(40, 30);
        assert_eq!((half.steps(), half.planned()), (70, 100));
        let found = [40, 41, 55, 69, 70].map(|step| half.position(step));
        assert_eq!(found, [40, 42, 70, 98, 100]);
        // And of a quarter of that from step 55 on: each position for four steps.
        let slow = half.turned(55, 120);
        let found = [55, 58, 59, 174].map(|step| slow.position(step));
        assert_eq!(found, [70, 70, 71, 99]);
        assert_eq!(whole.turned(0, 50).position(25), 50);
        assert_eq!(whole.turned(100, 0).position(100), 100);
    }
}
