//! The all-reduce over TCP or MPI: a chain that is closed to a ring, in pieces that follow each other.
//!
//! A textbook ring adds each part of a buffer in another order, so that its sums depend on how many take part. Here every
//! piece goes the same way: member 0 sends it to member 1, which adds its own and sends it on; the last member has the
//! sum, and sends it around to all. The additions are those of one process that adds replica after replica, to the bit,
//! whatever the number of members. Each member sends a piece at most twice, as in a ring (2 · P bytes against
//! 2 · P · (n − 1) / n), and since pieces follow each other all members work at the same time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

use parking_lot::Mutex;

use crate::collective::Collective;
use crate::fault::{Fault, Outcome};
use crate::frame::Kind;
use crate::hop::{Closer, Hop};
use crate::nccl::Nccl;
use crate::precision::Precision;

mod gather;
mod pieces;

use pieces::Pieces;

/// Elements of a piece.
pub const PIECE: usize = 1 << 16;

/// This process in a group whose neighbors are connected.
pub struct Chain {
    position: usize,
    size: usize,
    /// None in a group of one.
    hops: Option<Hops>,
    /// Does the all-reduces in place of the hops, where the job asks for it.
    nccl: Option<Nccl>,
    aborter: Aborter,
}

/// The ways to the neighbors of a member.
struct Hops {
    /// From the member before.
    left: Box<dyn Hop>,
    /// To the one behind.
    right: Box<dyn Hop>,
}

impl Hops {
    fn both(&mut self) -> (&mut dyn Hop, &mut dyn Hop) {
        (self.left.as_mut(), self.right.as_mut())
    }
}

/// Ends what a [`Chain`] does, from any thread.
#[derive(Clone, Debug)]
pub struct Aborter(Arc<Aborted>);

#[derive(Debug)]
struct Aborted {
    is_aborted: AtomicBool,
    closers: Vec<Closer>,
    /// Bytes of gradients and values that were sent.
    bytes: AtomicU64,
}

impl Aborter {
    /// Whoever waits in the collective gets [`Fault::Aborted`].
    pub fn abort(&self) {
        self.0.is_aborted.store(true, Ordering::SeqCst);
        self.0.closers.iter().for_each(Closer::close);
    }

    /// Whether it was.
    pub fn is_aborted(&self) -> bool {
        self.0.is_aborted.load(Ordering::SeqCst)
    }

    /// The bytes that this member has sent in the group.
    pub fn bytes_sent(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain({} of {})", self.position, self.size)
    }
}

impl Chain {
    /// A group of one.
    pub fn alone() -> Self {
        Self {
            position: 0,
            size: 1,
            hops: None,
            nccl: None,
            aborter: Aborter::of(Vec::new()),
        }
    }

    /// Member `position` of `size`, at least 2, with the hops from the member before it and to the one behind it.
    ///
    /// # Errors
    /// The process has no more file descriptors.
    pub fn new(
        position: usize,
        size: usize,
        left: impl Hop + 'static,
        right: impl Hop + 'static,
    ) -> Outcome<Self> {
        let closers = vec![left.closer()?, right.closer()?];
        Ok(Self {
            position,
            size,
            hops: Some(Hops {
                left: Box::new(left),
                right: Box::new(right),
            }),
            nccl: None,
            aborter: Aborter::of(closers),
        })
    }

    /// The same group, whose all-reduces NCCL does: sums are added in its order. Before anybody has its
    /// [`aborter`](Self::aborter).
    ///
    /// # Errors
    /// The process has no more file descriptors.
    pub fn with(mut self, nccl: Nccl) -> Outcome<Self> {
        let mut closers = vec![nccl.closer()];
        if let Some(hops) = &self.hops {
            closers.extend([hops.left.closer()?, hops.right.closer()?]);
        }
        self.nccl = Some(nccl);
        self.aborter = Aborter::of(closers);
        Ok(self)
    }

    /// What ends it from another thread.
    pub fn aborter(&self) -> Aborter {
        self.aborter.clone()
    }

    /// What became of an operation: after a fault the chain can do nothing more, and its neighbors notice.
    fn ended<T>(&self, outcome: Outcome<T>) -> Outcome<T> {
        outcome.map_err(|fault| {
            let was_aborted = self.aborter.is_aborted();
            self.aborter.abort();
            match was_aborted {
                true => Fault::Aborted,
                false => fault,
            }
        })
    }

    fn count(&self) {
        let over_hops = self.hops.as_ref().map_or(0, |hops| hops.right.bytes_sent());
        let sent = over_hops + self.nccl.as_ref().map_or(0, Nccl::bytes_sent);
        self.aborter.0.bytes.store(sent, Ordering::Relaxed);
    }
}

impl Aborter {
    fn of(closers: Vec<Closer>) -> Self {
        Self(Arc::new(Aborted {
            is_aborted: AtomicBool::new(false),
            closers,
            bytes: AtomicU64::new(0),
        }))
    }
}

impl Collective for Chain {
    fn position(&self) -> usize {
        self.position
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_reduce(
        &mut self,
        step: u64,
        values: &mut [Vec<f32>],
        precision: Precision,
    ) -> Outcome<()> {
        let Some((first, others)) = values.split_first_mut() else {
            return Err(Fault::refused("an all-reduce of no values"));
        };
        if others.iter().any(|other| other.len() != first.len()) {
            return Err(Fault::refused("values of different lengths"));
        }
        if self.aborter.is_aborted() {
            return Err(Fault::Aborted);
        }
        if let Some(nccl) = &self.nccl {
            add_all(first, others, precision);
            let outcome = nccl.all_reduce(first, precision);
            self.count();
            return self.ended(outcome);
        }
        let Some((left, right)) = self.hops.as_mut().map(Hops::both) else {
            add_all(first, others, precision);
            return Ok(());
        };
        let cells: Vec<Mutex<&mut [f32]>> = first.chunks_mut(PIECE).map(Mutex::new).collect();
        let pieces = Pieces {
            step,
            position: self.position,
            size: self.size,
            cells,
            others,
            precision,
            aborter: &self.aborter,
        };
        let (queue, waiting) = mpsc::channel();
        let pieces = &pieces;
        let outcome = std::thread::scope(|scope| {
            let sending = scope.spawn(move || pieces.ends(pieces.send(right, &waiting)));
            let received = pieces.ends(pieces.receive(left, queue));
            let sent = sending.join();
            let sent = sent.unwrap_or_else(|_| Err(Fault::Failed("sending panicked".to_owned())));
            // The end of one thread ends the other: what was said first is what happened.
            match (received, sent) {
                (Err(Fault::Aborted), Err(fault)) => Err(fault),
                (received, sent) => received.and(sent),
            }
        });
        self.count();
        self.ended(outcome)
    }

    fn broadcast(&mut self, step: u64, values: &mut [f32]) -> Outcome<()> {
        if self.aborter.is_aborted() {
            return Err(Fault::Aborted);
        }
        let (is_first, is_last) = (self.position == 0, self.position + 1 == self.size);
        let Some((left, right)) = self.hops.as_mut().map(Hops::both) else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        let mut pass = || -> Outcome<()> {
            for piece in values.chunks_mut(PIECE) {
                if !is_first {
                    read(left, (Kind::Values, step), piece)?;
                }
                if !is_last {
                    write(right, (Kind::Values, step), piece, &mut bytes)?;
                }
            }
            Ok(())
        };
        let outcome = pass();
        self.count();
        self.ended(outcome)
    }

    fn gather(&mut self, step: u64, own: &[f32]) -> Outcome<Vec<Vec<f32>>> {
        if self.aborter.is_aborted() {
            return Err(Fault::Aborted);
        }
        let Some((left, right)) = self.hops.as_mut().map(Hops::both) else {
            return Ok(Vec::new());
        };
        // Everything goes on to the right, and so around to the first member, which sends nothing.
        let outcome = match self.position.checked_sub(1) {
            None => gather::take(left, step, self.size - 1),
            Some(before) => gather::pass((left, right), step, before, own).map(|()| Vec::new()),
        };
        self.count();
        self.ended(outcome)
    }

    fn barrier(&mut self, step: u64) -> Outcome<()> {
        self.all_reduce(step, &mut [vec![0.0]], Precision::Float32)
    }

    fn bytes_sent(&self) -> u64 {
        self.aborter.bytes_sent()
    }

    fn abort(&self) {
        self.aborter.abort();
    }
}

/// The values of one member, one after the other.
fn add_all(first: &mut [f32], others: &[Vec<f32>], precision: Precision) {
    precision.round(first);
    for other in others {
        add(first, other);
        precision.round(first);
    }
}

fn add(sum: &mut [f32], other: &[f32]) {
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum += *other;
    }
}

fn write(
    link: &mut dyn Hop,
    kind: (Kind, u64),
    values: &[f32],
    bytes: &mut Vec<u8>,
) -> Outcome<()> {
    write_as(Precision::Float32, link, kind, values, bytes)
}

fn write_as(
    precision: Precision,
    link: &mut dyn Hop,
    (kind, step): (Kind, u64),
    values: &[f32],
    bytes: &mut Vec<u8>,
) -> Outcome<()> {
    precision.encode(values, bytes);
    link.send(kind, step, bytes)
}

/// The values of a payload, which must be as many as expected.
fn decode(payload: &[u8], values: &mut [f32], precision: Precision) -> Outcome<()> {
    match precision.decode(payload, values) {
        true => Ok(()),
        false => Err(Fault::refused(format!(
            "{} bytes for {} numbers",
            payload.len(),
            values.len()
        ))),
    }
}

/// Receives a frame of this kind and step into `values`.
fn read(link: &mut dyn Hop, (kind, step): (Kind, u64), values: &mut [f32]) -> Outcome<()> {
    let frame = link.receive()?;
    if (frame.kind, frame.step) != (kind, step) {
        let found = frame.kind;
        return Err(Fault::refused(format!("{found:?} of step {}", frame.step)));
    }
    decode(&frame.payload, values, Precision::Float32)
}

#[cfg(test)]
mod tests;
