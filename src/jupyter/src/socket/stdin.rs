//! The stdin socket: the kernel asks, a front end answers.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#messages-on-the-stdin-router-dealer-channel>

use std::sync::{Arc, mpsc};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::super::message::{InputReply, InputRequest, MessageType};
use super::router::{Replies, Requests};
use stratoscope_os::console::warn;

/// Asks for lines; clones share the socket.
#[derive(Clone)]
pub struct Stdin {
    questions: UnboundedSender<Question>,
    pending: Pending,
}

/// Where the answer to the current question goes.
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

    /// Asks the sender of a cell for a line and blocks until it answers. `None`: it has disconnected, or the
    /// question was cancelled.
    pub fn ask(
        &self,
        identities: &[Vec<u8>],
        parent: &Value,
        content: InputRequest,
    ) -> Option<String> {
        let (answer, answered) = mpsc::channel();
        *self.pending.lock() = Some(answer);
        let question = Question {
            identities: identities.to_vec(),
            parent: parent.clone(),
            content,
        };
        self.questions.send(question).ok()?;
        // Fails when the sender is dropped: by `cancel`, or with the socket's task.
        answered.recv().ok()
    }

    /// Answers the current question, if there is one, with `None`.
    pub fn cancel(&self) {
        *self.pending.lock() = None;
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
                    pending.lock().take();
                }
            }
            request = requests.next() => {
                if request.header.msg_type != MessageType::InputReply {
                    warn(&format!("stdin: {} ignored", request.header.msg_type));
                    continue;
                }
                match InputReply::deserialize(&request.content) {
                    Ok(reply) => {
                        // Without a waiting question it was cancelled, and the answer is dropped.
                        let waiting = pending.lock().take();
                        waiting.map(|waiting| waiting.send(reply.value));
                    }
                    Err(error) => warn(&format!("stdin: input_reply: {error}")),
                }
            }
        }
    }
}
