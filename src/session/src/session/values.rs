//! Questions about values, and requests to runs.

use stratoscope_wire::{InspectAnswer, InspectQuestion, RunAnswer, RunRequest};

use super::{Command, Session};

impl Session {
    /// A request to a run of the running cell, as [`Interrupt::request`](crate::Interrupt::request).
    pub async fn request(&self, request: RunRequest) -> Option<RunAnswer> {
        let evaluator = self.shared.interrupt.lock().clone()?;
        // It waits for the process that runs the cells.
        let asked = tokio::task::spawn_blocking(move || evaluator.request(request));
        asked.await.ok().flatten()
    }

    /// As [`Evaluate::inspect_values`](crate::Evaluate::inspect_values); while a cell runs, as [`Interrupt::inspect_values`](crate::Interrupt::inspect_values).
    /// An evaluator that is starting is waited for a while, unless a cell waits for it, too.
    pub async fn inspect_values(&self, question: InspectQuestion) -> InspectAnswer {
        let command = |answer| Command::InspectValues {
            question: question.clone(),
            answer,
        };
        if let Some(found) = self.question(command).await {
            return found;
        }
        let Some(meanwhile) = self.shared.interrupt.lock().clone() else {
            return InspectAnswer::missing("no cell has run");
        };
        // It waits for the process that runs the cells.
        let asked = tokio::task::spawn_blocking(move || meanwhile.inspect_values(question));
        let failed = |_| InspectAnswer::missing("the kernel failed to ask for the value");
        asked.await.unwrap_or_else(failed)
    }
}
