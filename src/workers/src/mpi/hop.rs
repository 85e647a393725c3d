//! The way to a neighbor over MPI: the frames of [`frame`](crate::frame), each a message.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::frame::{Expected, Header, Kind};
use crate::hop::{Closer, Hop};
use crate::key::JobId;
use crate::link::Frame;

/// How often who waits looks whether it still should.
const LOOK: Duration = Duration::from_millis(50);

/// Messages that are under way to a neighbor at a time.
const DEPTH: usize = 4;

/// The tags that every MPI has: up to 32767.
const TAGS: u64 = 32_767;

/// The way to one neighbor, for one membership.
pub struct MpiHop {
    orders: Sender<Order>,
    other: usize,
    tag: i32,
    generation: u64,
    job: JobId,
    patience: Duration,
    is_open: Arc<AtomicBool>,
    sent: u64,
    received: u64,
    bytes: u64,
    sending: VecDeque<Receiver<Moved>>,
    /// Buffers that MPI has given back.
    spare: Vec<Vec<u8>>,
    receiving: Vec<u8>,
}

impl MpiHop {
    pub(super) fn new(
        orders: Sender<Order>,
        other: usize,
        generation: u64,
        job: JobId,
        patience: Duration,
    ) -> Self {
        Self {
            orders,
            other,
            tag: (generation % TAGS) as i32,
            generation,
            job,
            patience,
            is_open: Arc::new(AtomicBool::new(true)),
            sent: 0,
            received: 0,
            bytes: 0,
            sending: VecDeque::new(),
            spare: Vec::new(),
            receiving: Vec::new(),
        }
    }

    fn order(&self, bytes: Vec<u8>, is_receive: bool) -> Outcome<Receiver<Moved>> {
        let (done, waiting) = mpsc::channel();
        let transfer = Transfer {
            other: self.other,
            tag: self.tag,
            bytes,
            is_receive,
            is_wanted: Arc::clone(&self.is_open),
            done,
        };
        let sent = self.orders.send(Order::Move(transfer));
        sent.map_err(|_| Fault::Closed)?;
        Ok(waiting)
    }

    /// Waits for a transfer, for the patience of the job.
    fn wait(&self, transfer: &Receiver<Moved>) -> Moved {
        let since = Instant::now();
        loop {
            match transfer.recv_timeout(LOOK) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Disconnected) => return Err(Fault::Closed),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !self.is_open.load(Ordering::SeqCst) {
                return Err(Fault::Closed);
            }
            if since.elapsed() >= self.patience {
                self.is_open.store(false, Ordering::SeqCst);
                return Err(Fault::Silent(since.elapsed()));
            }
        }
    }
}

impl Hop for MpiHop {
    fn send(&mut self, kind: Kind, step: u64, payload: &[u8]) -> Outcome<()> {
        if payload.len() > MOST_BYTES {
            return Err(Fault::refused("to send so large a frame"));
        }
        while self.sending.len() >= DEPTH {
            if let Some(oldest) = self.sending.pop_front() {
                let (bytes, _) = self.wait(&oldest)?;
                self.spare.push(bytes);
            }
        }
        let header = Header {
            kind,
            more: false,
            job: self.job,
            generation: self.generation,
            step,
            sequence: self.sent,
            length: payload.len(),
        };
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(&header.encoded());
        bytes.extend_from_slice(payload);
        let under_way = self.order(bytes, false)?;
        self.sending.push_back(under_way);
        self.sent += 1;
        self.bytes += payload.len() as u64;
        Ok(())
    }

    fn receive(&mut self) -> Outcome<Frame> {
        let mut bytes = std::mem::take(&mut self.receiving);
        bytes.resize(HEADER + MOST_BYTES, 0);
        let under_way = self.order(bytes, true)?;
        let (bytes, count) = self.wait(&under_way)?;
        let frame = self.read(bytes.get(..count).unwrap_or_default());
        self.receiving = bytes;
        frame
    }

    fn closer(&self) -> Outcome<Closer> {
        let is_open = Arc::clone(&self.is_open);
        Ok(Closer::new(move || is_open.store(false, Ordering::SeqCst)))
    }

    fn bytes_sent(&self) -> u64 {
        self.bytes
    }
}

impl MpiHop {
    /// The frame of a message, which must be of this job and this membership, and the next one.
    fn read(&mut self, message: &[u8]) -> Outcome<Frame> {
        let (header, payload) = message
            .split_first_chunk::<HEADER>()
            .ok_or_else(|| Fault::refused("a message without a header"))?;
        let header = Header::decoded(header)?;
        let expected = Expected {
            job: self.job,
            generation: self.generation,
            sequence: self.received,
        };
        expected.check(&header)?;
        if header.length != payload.len() || header.more {
            return Err(Fault::refused("a message of another length than it says"));
        }
        self.received += 1;
        Ok(Frame {
            kind: header.kind,
            more: header.more,
            step: header.step,
            payload: payload.to_vec(),
        })
    }
}

impl Drop for MpiHop {
    fn drop(&mut self) {
        // What is still being sent goes on; what is being received is given up.
        self.is_open.store(false, Ordering::SeqCst);
    }
}
