//! [`Inspection`]: a look at where a run stands.

use stratoscope_bert::taps::Taps;
use stratoscope_data::Batch;
use stratoscope_diagnostics::Result;

use stratoscope_arguments::context::interrupt;
use stratoscope_network::Files;

use stratoscope_step::forward::{BatchOutputs, interrupted};
use stratoscope_step::head::Head;
use stratoscope_step::{NumberedBatch, StepSettings, StepState};

/// A run before an optimizer step: all that the step reads. Nothing is changed.
pub struct Inspection<'a> {
    /// The state of the model.
    pub step: &'a StepState,
    /// The settings of the coming step.
    pub settings: &'a StepSettings,
    /// Tokenizer and labels.
    pub files: &'a dyn Files,
    /// The number of the step's first batch in the run: that of its dropout masks.
    pub first_batch: u64,
    /// The micro-batches of the step; none where the run is over.
    pub batches: &'a [Batch],
}

impl Inspection<'_> {
    /// The number of the step, counted from 1 as in the history.
    pub fn number(&self) -> u64 {
        self.step.steps + 1
    }

    /// The examples of the step.
    pub fn examples(&self) -> usize {
        self.batches.iter().map(Batch::size).sum()
    }

    /// How many examples each replica sees in the step.
    pub fn shares(&self) -> Vec<usize> {
        let replicas = self.step.replicas.len();
        let mut shares = vec![0; replicas];
        for batch in self.batches {
            for (share, own) in shares.iter_mut().zip(batch.shares(replicas)) {
                *share += own;
            }
        }
        shares
    }

    /// What the outputs mean.
    pub fn head(&self) -> Head {
        let network = self.step.replicas.first();
        Head::of(self.files, network, Some(self.settings.loss))
    }

    /// The batch with this index, with its number in the run.
    fn numbered<'b>(&self, index: usize, batch: &'b Batch) -> NumberedBatch<'b> {
        NumberedBatch {
            number: self.first_batch + index as u64,
            batch,
        }
    }

    /// The outputs of the batch with this index, with the masks of the step, or as in evaluation.
    ///
    /// # Errors
    /// SC0520 if it is interrupted, SC0907 if a device fails.
    pub fn outputs(
        &self,
        index: usize,
        batch: &Batch,
        training: bool,
        taps: &[Taps],
        call: &str,
    ) -> Result<BatchOutputs> {
        let stop = interrupt::at_once();
        let batch = self.numbered(index, batch);
        let outputs = (self.step).coming_outputs(self.settings, batch, training, taps, &stop)?;
        outputs.ok_or_else(|| interrupted(call, 0, self.examples()))
    }

    /// The batch with this index forward and backward, with the masks of the step: the taps, one for each replica, see what
    /// is computed.
    ///
    /// # Errors
    /// SC0520 if it is interrupted, SC0907 if a device fails.
    pub(crate) fn watched(
        &self,
        index: usize,
        batch: &Batch,
        taps: &[Taps],
        call: &str,
    ) -> Result<BatchOutputs> {
        let stop = interrupt::at_once();
        let batch = self.numbered(index, batch);
        let (settings, shares) = (self.settings, self.shares());
        let outputs = (self.step).coming_traced(settings, batch, &shares, taps, &stop)?;
        outputs.ok_or_else(|| interrupted(call, 0, self.examples()))
    }

    /// The names of the replicas' devices, where there are several.
    pub fn replica_names(&self) -> Vec<String> {
        let devices = self.step.replicas.devices();
        match devices.len() {
            1 => Vec::new(),
            _ => devices.iter().map(|device| device.name.clone()).collect(),
        }
    }

    /// The title of something of the coming step.
    pub fn title(&self, what: &str) -> String {
        match self.batches.is_empty() {
            true => format!("no {what}: no batch is left, the run is over"),
            false => format!("{what} of the coming step {}", self.number()),
        }
    }
}
