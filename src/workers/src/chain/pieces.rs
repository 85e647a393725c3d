//! The pieces of an all-reduce on their way: what comes from the member before, and what goes to the one behind.

use std::sync::mpsc::{Receiver, Sender};

use parking_lot::Mutex;

use super::{Aborter, PIECE, add, decode, write_as};
use crate::fault::{Fault, Outcome};
use crate::frame::Kind;
use crate::hop::{Closer, Hop};
use crate::precision::Precision;

/// The pieces of an all-reduce, which one thread receives and another sends.
pub(super) struct Pieces<'a> {
    pub step: u64,
    pub position: usize,
    pub size: usize,
    /// Of the member's first value; they become the sums.
    pub cells: Vec<Mutex<&'a mut [f32]>>,
    /// The member's other values.
    pub others: &'a [Vec<f32>],
    pub precision: Precision,
    pub aborter: &'a Aborter,
}

impl Pieces<'_> {
    /// The fault of one thread ends the other one.
    pub fn ends(&self, outcome: Outcome<()>) -> Outcome<()> {
        outcome.map_err(|fault| match self.aborter.is_aborted() {
            true => Fault::Aborted,
            false => {
                self.aborter.0.closers.iter().for_each(Closer::close);
                fault
            }
        })
    }

    fn is_first(&self) -> bool {
        self.position == 0
    }

    fn is_last(&self) -> bool {
        self.position + 1 == self.size
    }

    /// Whether sums are sent on: from the last member around to the one before it.
    fn forwards(&self) -> bool {
        (self.position + 1) % self.size != self.size - 1
    }

    /// Adds this member's values to a piece that holds the sum so far, or its own first value.
    fn add_others(&self, index: usize, sum: &mut [f32]) {
        let start = index * PIECE;
        for other in self.others {
            add(sum, &other[start..start + sum.len()]);
            self.precision.round(sum);
        }
    }

    /// What comes from the member before.
    pub fn receive(&self, left: &mut dyn Hop, queue: Sender<(Kind, usize)>) -> Outcome<()> {
        let count = self.cells.len();
        let (mut partials, mut totals) = (
            if self.is_first() { count } else { 0 },
            if self.is_last() { count } else { 0 },
        );
        let mut came = Vec::new();
        while partials < count || totals < count {
            let frame = left.receive()?;
            if frame.step != self.step {
                let (found, own) = (frame.step, self.step);
                return Err(Fault::refused(format!(
                    "a piece of step {found}, not {own}"
                )));
            }
            let (is_total, index) = match frame.kind {
                Kind::Partial if partials < count => (false, partials),
                Kind::Total if totals < count => (true, totals),
                kind => return Err(Fault::refused(format!("{kind:?} in an all-reduce"))),
            };
            let mut cell = self.cells[index].lock();
            came.resize(cell.len(), 0.0);
            decode(&frame.payload, &mut came, self.precision)?;
            if is_total {
                cell.copy_from_slice(&came);
                totals += 1;
                if self.forwards() {
                    let _ = queue.send((Kind::Total, index));
                }
            } else {
                add(&mut cell, &came);
                self.precision.round(&mut cell);
                self.add_others(index, &mut cell);
                partials += 1;
                let kind = match self.is_last() {
                    true => Kind::Total,
                    false => Kind::Partial,
                };
                let _ = queue.send((kind, index));
            }
        }
        Ok(())
    }

    /// What goes to the member behind. The first member begins; the others send what has come.
    pub fn send(&self, right: &mut dyn Hop, queue: &Receiver<(Kind, usize)>) -> Outcome<()> {
        let mut bytes = Vec::new();
        let begins = if self.is_first() { self.cells.len() } else { 0 };
        for index in 0..begins {
            {
                let mut cell = self.cells[index].lock();
                self.precision.round(&mut cell);
                self.add_others(index, &mut cell);
                let kind = (Kind::Partial, self.step);
                write_as(self.precision, right, kind, &cell, &mut bytes)?;
            }
            // Sums are not kept waiting by what is begun.
            while let Ok(item) = queue.try_recv() {
                self.send_one(right, item, &mut bytes)?;
            }
        }
        for item in queue {
            self.send_one(right, item, &mut bytes)?;
        }
        Ok(())
    }

    fn send_one(
        &self,
        right: &mut dyn Hop,
        (kind, index): (Kind, usize),
        bytes: &mut Vec<u8>,
    ) -> Outcome<()> {
        let cell = self.cells[index].lock();
        write_as(self.precision, right, (kind, self.step), &cell, bytes)
    }
}
