//! The states `busy` and `idle`, so that the last one that was published is always the kernel's.
//!
//! Each request is answered between a `busy` and an `idle` of its own, as the protocol asks. ipykernel answers what
//! arrives on shell after the running cell, so that its last state is right by itself. This kernel answers completions and
//! messages of widgets, such as the buttons of a run, while a cell runs; front ends such as JupyterLab show the last
//! state, whatever request it belongs to. So an `idle` while a cell runs is followed at once by `busy` for that cell.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::message::Status;
use super::socket::iopub::Iopub;

/// Publishes the states of the kernel; clones share the running cell.
#[derive(Clone)]
pub struct Running {
    iopub: Iopub,
    /// The header of the request of the running cell.
    cell: Arc<Mutex<Option<Arc<Value>>>>,
}

impl Running {
    /// No cell runs.
    pub fn new(iopub: Iopub) -> Self {
        Self {
            iopub,
            cell: Arc::default(),
        }
    }

    /// A cell begins; `parent` is the header of its request.
    pub fn begin_cell(&self, parent: &Arc<Value>) {
        let mut cell = self.cell.lock();
        *cell = Some(parent.clone());
        self.iopub.publish(parent, &Status::busy());
    }

    /// The cell ends.
    pub fn end_cell(&self, parent: &Arc<Value>) {
        let mut cell = self.cell.lock();
        *cell = None;
        self.iopub.publish(parent, &Status::idle());
    }

    /// Another request begins.
    pub fn begin(&self, parent: &Arc<Value>) {
        let _cell = self.cell.lock();
        self.iopub.publish(parent, &Status::busy());
    }

    /// Another request ends. The kernel is still busy if a cell runs.
    pub fn end(&self, parent: &Arc<Value>) {
        let cell = self.cell.lock();
        self.iopub.publish(parent, &Status::idle());
        if let Some(cell) = &*cell {
            self.iopub.publish(cell, &Status::busy());
        }
    }
}
