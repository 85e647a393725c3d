//! The iopub socket: outputs and states, to every front end.
//!
//! It is an `XPUB` socket, so that a subscriber can be welcomed (JEP 65), and its `send` writes through to the
//! operating system, so that an empty queue means that everything was sent. Subscriptions take effect only when
//! the task receives from the socket, which it does after every message. A subscriber that reads slowly makes
//! `send` wait; [`super::proxy`] disconnects one that does not read at all, so it never waits for long.
//!
//! Threads put messages into one queue, whose order is the order of sending. Text of the same stream and cell is
//! joined in the queue, so that a cell may print a million lines. When the queue is full, the printing thread
//! waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;
use zeromq::{SocketRecv, SocketSend, XPubSocket, ZmqMessage};

use super::super::envelope::{Sealable, Sealer};
use super::super::message::{Content, IopubWelcome, Status, StreamText};
use super::router::to_zeromq;
use stratoscope_session::Stream;

/// Text that arrives within this time after text was sent is joined.
const JOIN_TEXT_WITHIN: Duration = Duration::from_millis(20);

/// Pieces of text are joined up to this size.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// When the queue holds more than this, threads of cells wait.
const MAX_QUEUE_BYTES: usize = 32 << 20;

/// Publishes; clones share the socket.
#[derive(Clone)]
pub struct Iopub {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    /// Notified when something was queued, or the queue was closed.
    filled: Notify,
    /// Notified when the queue has become shorter.
    space: Condvar,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    bytes: usize,
    closed: bool,
}

enum Item {
    Text {
        parent: Arc<Value>,
        stream: Stream,
        text: String,
    },
    Message {
        parent: Arc<Value>,
        message: Sealable,
    },
}

impl Item {
    fn bytes(&self) -> usize {
        match self {
            Item::Text { text, .. } => text.len(),
            Item::Message { message, .. } => message.content.len(),
        }
    }
}

impl Iopub {
    /// The handle, and the task that owns the socket. The task ends when the queue was closed and
    /// all of it has been sent.
    pub fn new(socket: XPubSocket, sealer: Sealer) -> (Self, impl Future<Output = ()>) {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            filled: Notify::new(),
            space: Condvar::new(),
        });
        let publisher = Publisher {
            socket,
            sealer,
            shared: shared.clone(),
            greeted: false,
            last_text: None,
        };
        (Self { shared }, publisher.run())
    }

    /// Publishes a message; `parent` is the header of the request. Never waits.
    pub fn publish<C: Content>(&self, parent: &Arc<Value>, content: &C) {
        let message = Sealable::new(content);
        self.push(
            self.lock(),
            Item::Message {
                parent: parent.clone(),
                message,
            },
        );
    }

    /// As [`Iopub::publish`], but waits while the queue is full: for threads of a cell, never for async tasks.
    pub fn publish_blocking<C: Content>(&self, parent: &Arc<Value>, content: &C) {
        let message = Sealable::new(content);
        self.push(
            self.space(),
            Item::Message {
                parent: parent.clone(),
                message,
            },
        );
    }

    /// Publishes text of a cell; waits as [`Iopub::publish_blocking`] does.
    pub fn publish_text(&self, parent: &Arc<Value>, stream: Stream, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut queue = self.space();
        if let Some(Item::Text {
            parent: before,
            stream: same,
            text: waiting,
        }) = queue.items.back_mut()
            && *same == stream
            && Arc::ptr_eq(before, parent)
            && waiting.len() + text.len() <= MAX_TEXT_BYTES
        {
            waiting.push_str(text);
            queue.bytes += text.len();
            return;
        }
        self.push(
            queue,
            Item::Text {
                parent: parent.clone(),
                stream,
                text: text.to_owned(),
            },
        );
    }

    /// Publishes nothing more; the task sends what waits and ends.
    pub fn close(&self) {
        self.lock().closed = true;
        self.shared.space.notify_all();
        self.shared.filled.notify_one();
    }

    fn push(&self, mut queue: MutexGuard<'_, Queue>, item: Item) {
        if queue.closed {
            return;
        }
        queue.bytes += item.bytes();
        queue.items.push_back(item);
        drop(queue);
        self.shared.filled.notify_one();
    }

    /// The queue, once it has space. It is never full for long while subscribers read.
    fn space(&self) -> MutexGuard<'_, Queue> {
        let mut queue = self.lock();
        while queue.bytes > MAX_QUEUE_BYTES && !queue.closed {
            self.shared.space.wait(&mut queue);
        }
        queue
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.shared.queue.lock()
    }
}

/// Owns the socket.
struct Publisher {
    socket: XPubSocket,
    sealer: Sealer,
    shared: Arc<Shared>,
    /// Whether `starting` has been sent to a subscriber.
    greeted: bool,
    /// When text was last sent.
    last_text: Option<Instant>,
}

/// The state of the queue, for the publisher.
enum Next {
    Item(Item),
    /// Text that waits until this moment for more text.
    Later(Instant),
    Nothing,
    Closed,
}

impl Publisher {
    async fn run(mut self) {
        let shared = self.shared.clone();
        loop {
            // `Notify` stores a notification that arrives between this check of the queue and the wait.
            // Subscriptions are handled after each item, so that a new subscriber gets everything that is
            // published after its welcome.
            let subscription = match self.next() {
                Next::Item(item) => {
                    self.send_item(item).await;
                    tokio::select! {
                        biased;
                        received = self.socket.recv() => Some(received),
                        () = std::future::ready(()) => None,
                    }
                }
                Next::Later(at) => tokio::select! {
                    received = self.socket.recv() => Some(received),
                    () = shared.filled.notified() => None,
                    () = tokio::time::sleep_until(at) => None,
                },
                Next::Nothing => tokio::select! {
                    received = self.socket.recv() => Some(received),
                    () = shared.filled.notified() => None,
                },
                Next::Closed => return,
            };
            match subscription {
                Some(Ok(message)) => self.subscription(&message).await,
                // A subscriber has disconnected; the library has removed it already.
                Some(Err(_)) => tokio::task::yield_now().await,
                None => {}
            }
        }
    }

    fn next(&mut self) -> Next {
        let mut queue = self.shared.queue.lock();
        if let (Some(last), 1, false, Some(Item::Text { text, .. })) = (
            self.last_text,
            queue.items.len(),
            queue.closed,
            queue.items.front(),
        ) && last.elapsed() < JOIN_TEXT_WITHIN
            && text.len() < MAX_TEXT_BYTES / 2
        {
            return Next::Later(last + JOIN_TEXT_WITHIN);
        }
        match queue.items.pop_front() {
            Some(item) => {
                queue.bytes -= item.bytes();
                self.shared.space.notify_all();
                Next::Item(item)
            }
            None if queue.closed => Next::Closed,
            None => Next::Nothing,
        }
    }

    async fn send_item(&mut self, item: Item) {
        match item {
            Item::Text {
                parent,
                stream,
                text,
            } => {
                let content = StreamText {
                    name: stream.name(),
                    text: &text,
                };
                self.send(&parent, &Sealable::new(&content)).await;
                self.last_text = Some(Instant::now());
            }
            Item::Message { parent, message } => {
                self.send(&parent, &message).await;
                self.last_text = None;
            }
        }
    }

    async fn send(&mut self, parent: &Value, message: &Sealable) {
        let topic = format!("kernel.{}.{}", self.sealer.session(), message.msg_type);
        self.send_to_topic(topic.into_bytes(), parent, message)
            .await;
    }

    async fn send_to_topic(&mut self, topic: Vec<u8>, parent: &Value, message: &Sealable) {
        let Some(frames) = to_zeromq(self.sealer.seal(&[topic], parent, message)) else {
            return;
        };
        if let Err(error) = self.socket.send(frames).await {
            stratoscope_os::console::warn(&format!(
                "iopub: {} not sent: {error}",
                message.msg_type
            ));
        }
    }

    /// Welcomes a subscriber. The subscription is in effect already.
    async fn subscription(&mut self, message: &ZmqMessage) {
        let Some((1, topic)) = message.get(0).and_then(|frame| frame.split_first()) else {
            return;
        };
        let subscription = String::from_utf8_lossy(topic).into_owned();
        let welcome = Sealable::new(&IopubWelcome { subscription });
        self.send_to_topic(topic.to_vec(), &json!({}), &welcome)
            .await;
        if !self.greeted {
            self.greeted = true;
            self.send(&json!({}), &Sealable::new(&Status::starting()))
                .await;
        }
    }
}
