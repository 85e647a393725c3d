//! What each member of a job has done for a run: how many steps and examples, how long it computed, how much it sent.
//! The chief is member 0. Times are measured where the work was done.

use std::time::Duration;

/// What one member did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The steps in which it took part.
    pub steps: u64,
    /// The examples that it computed.
    pub examples: u64,
    /// How long it computed.
    pub busy: Duration,
    /// The bytes of gradients that it sent.
    pub bytes: u64,
}

/// What all members did since the run began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How long steps took, from the first request to the last answer; what is between two steps is not counted.
    pub wall: Duration,
    /// By member, the chief first. The work of one who was lost stays with the seat.
    pub members: Vec<Done>,
    /// The all-reduces among them.
    pub exchanges: Exchanges,
    /// How long the chief made updates; it is a part of its `busy`.
    pub updating: Duration,
    /// How long an empty message takes from one member to the next one. It is measured when a group is formed, and stays
    /// from run to run.
    pub hop: Option<Duration>,
}

/// The all-reduces of a run, as the chief saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchanges {
    /// How many.
    pub count: u64,
    /// From the moment at which the chief had its own values until it had the sums.
    pub wall: Duration,
    /// Processor time of the chief's process meanwhile.
    pub processor: Duration,
    /// The bytes of one member's values.
    pub bytes: u64,
    /// The members of the group in the latest one.
    pub members: usize,
}

/// The time that all threads of this process have computed.
pub fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid for writing one `timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// After so few steps nobody is called slow.
const ENOUGH_STEPS: u64 = 8;
/// The slowest member computes for at least so many times the time of the others.
const SLOWER: f64 = 2.0;
/// And for at least so much longer in a step.
const LONGER: Duration = Duration::from_millis(20);

/// Whom the others wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Straggler {
    /// The member.
    pub member: usize,
    /// How long it computes in a step.
    pub busy: Duration,
    /// How long the slowest of the others does.
    pub others: Duration,
}

impl Tally {
    /// Nothing yet, with what stays from run to run.
    pub fn begun_anew(&self) -> Self {
        Self {
            hop: self.hop,
            ..Self::default()
        }
    }

    /// The member that is counted on; one more is made if need be.
    pub fn of(&mut self, member: usize) -> &mut Done {
        if self.members.len() <= member {
            self.members.resize(member + 1, Done::default());
        }
        &mut self.members[member]
    }

    /// The share of the time of all steps in which a member did not compute: it waited for others or exchanged
    /// gradients. `None` before there was a step.
    pub fn waiting(&self, member: usize) -> Option<f64> {
        let busy = self.members.get(member)?.busy.as_secs_f64();
        let wall = self.wall.as_secs_f64();
        (wall > 0.0).then(|| (1.0 - busy / wall).clamp(0.0, 1.0))
    }

    /// Who is much slower than all others.
    pub fn straggler(&self) -> Option<Straggler> {
        let mut each: Vec<(Duration, usize)> = self
            .members
            .iter()
            .enumerate()
            .filter(|(_, done)| done.steps >= ENOUGH_STEPS)
            .map(|(member, done)| (done.busy.div_f64(done.steps as f64), member))
            .collect();
        each.sort_unstable();
        let [.., (others, _), (busy, member)] = each[..] else {
            return None;
        };
        let is_slow = busy >= others.mul_f64(SLOWER) && busy >= others + LONGER;
        is_slow.then_some(Straggler {
            member,
            busy,
            others,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(milliseconds: &[u64]) -> Tally {
        let mut tally = Tally {
            wall: Duration::from_millis(1000),
            ..Tally::default()
        };
        for (member, each) in milliseconds.iter().enumerate() {
            *tally.of(member) = Done {
                steps: 10,
                examples: 40,
                busy: Duration::from_millis(*each),
                bytes: 0,
            };
        }
        tally
    }

    #[test]
    fn the_slowest_is_named_where_it_is_much_slower() {
        assert_eq!(tally(&[]).straggler(), None);
        assert_eq!(tally(&[900]).straggler(), None);
        assert_eq!(tally(&[500, 900, 400]).straggler(), None);
        let found = tally(&[300, 900, 400]).straggler().expect("one is slow");
        assert_eq!((found.member, found.busy.as_millis()), (1, 90));
        assert_eq!(found.others.as_millis(), 40);
        let mut few = tally(&[300, 900]);
        few.of(1).steps = 3;
        assert_eq!(few.straggler(), None);
    }

    #[test]
    fn who_does_not_compute_waits() {
        let tally = tally(&[250, 1200]);
        assert_eq!(tally.waiting(0), Some(0.75));
        assert_eq!(tally.waiting(1), Some(0.0));
        assert_eq!(tally.waiting(2), None);
        assert_eq!(Tally::default().waiting(0), None);
    }
}
