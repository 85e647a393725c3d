//! The stdin socket: the kernel asks, a front end answers.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#messages-on-the-stdin-router-dealer-channel>

use std::sync::{Arc, Mutex, PoisonError, mpsc};

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::super::message::{InputReply, InputRequest};
use super::router::{Replies, Requests};

/// Asks for lines; clones share the socket.
#[derive(Clone)]
pub struct Stdin {
    questions: UnboundedSender<Question>,
    pending: Pending,
}

/// Where the answer of the question that is being asked goes.
type Pending = Arc<Mutex<Option<mpsc::Sender<String>>>>;

struct Question {
    identities: Vec<Vec<u8>>,
    parent: Value,
    content: InputRequest,
}

impl Stdin {
    /// The handle, and the task that owns the socket.
    pub fn new(requests: Requests, replies: Replies) -> (Self, impl Future<Output = ()>) {
        let (questions, inbox) = unbounded_channel();
        let pending = Pending::default();
        let task = run(requests, replies, inbox, pending.clone());
        (Self { questions, pending }, task)
    }

    /// Asks the sender of a cell for a line and waits, on a thread that may block. `None`: it has
    /// gone, or the question was cancelled.
    pub fn ask(
        &self,
        identities: &[Vec<u8>],
        parent: &Value,
        content: InputRequest,
    ) -> Option<String> {
        let (answer, answered) = mpsc::channel();
        *self.lock() = Some(answer);
        let question = Question {
            identities: identities.to_vec(),
            parent: parent.clone(),
            content,
        };
        self.questions.send(question).ok()?;
        // Fails when the sender is taken away: by `cancel`, or with the socket's task.
        answered.recv().ok()
    }

    /// The question that is being asked, if any, is answered with `None`.
    pub fn cancel(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<mpsc::Sender<String>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn run(
    mut requests: Requests,
    mut replies: Replies,
    mut questions: UnboundedReceiver<Question>,
    pending: Pending,
) {
    loop {
        tokio::select! {
            question = questions.recv() => {
                let Some(Question { identities, parent, content }) = question else { return };
                if !replies.send_to(&identities, &parent, &content).await {
                    pending.lock().unwrap_or_else(PoisonError::into_inner).take();
                }
            }
            request = requests.next() => {
                if request.header.msg_type != "input_reply" {
                    stratoscope_os::console::warn(&format!("stdin: {} ignored", request.header.msg_type));
                    continue;
                }
                match InputReply::deserialize(&request.content) {
                    Ok(reply) => {
                        // An answer that nobody waits for any more was cancelled.
                        let waiting = pending.lock().unwrap_or_else(PoisonError::into_inner).take();
                        waiting.map(|waiting| waiting.send(reply.value));
                    }
                    Err(error) => stratoscope_os::console::warn(&format!("stdin: input_reply: {error}")),
                }
            }
        }
    }
}
