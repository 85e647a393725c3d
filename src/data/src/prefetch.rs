//! [`Prefetch`]: an iterator that computes items ahead on a thread of its own, so that the next batch is
//! ready when a step ends.

use std::fmt;
use std::panic;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// The items of another iterator, in the same order, with a fixed number of them computed ahead.
///
/// A panic of the other iterator is raised again here, at the item where it happened. Dropping this
/// stops the thread and waits until it has ended.
pub struct Prefetch<T> {
    items: Items<T>,
    thread: Option<JoinHandle<()>>,
}

/// The source of the items.
enum Items<T> {
    /// The thread. Dropping the receiver stops it: its next send then fails.
    Ahead(Receiver<T>),
    /// The source itself, because the system could not start a thread.
    Direct(Box<dyn Iterator<Item = T> + Send>),
    /// None: it has ended.
    Ended,
}

impl<T: Send + 'static> Prefetch<T> {
    /// Runs `source` ahead, with at most `depth` finished items waiting. With a depth of 0 items are
    /// passed directly: the thread computes the next one while the current one is used.
    pub fn new(source: impl Iterator<Item = T> + Send + 'static, depth: usize) -> Self {
        // The channel allocates its memory at once; a larger depth is never useful.
        const DEEPEST: usize = 1024;
        let (sender, items) = sync_channel(depth.min(DEEPEST));
        // Shared, so that it can be taken back if no thread can be started.
        let source = Arc::new(Mutex::new(Some(source)));
        let taken = Arc::clone(&source);
        let work = move || {
            let source = taken.lock().unwrap_or_else(PoisonError::into_inner).take();
            for item in source.into_iter().flatten() {
                if sender.send(item).is_err() {
                    return; // nobody listens any more
                }
            }
        };
        match thread::Builder::new()
            .name("prefetch".to_owned())
            .spawn(work)
        {
            Ok(thread) => Self {
                items: Items::Ahead(items),
                thread: Some(thread),
            },
            Err(_) => {
                let source = source.lock().unwrap_or_else(PoisonError::into_inner).take();
                Self {
                    items: Items::Direct(Box::new(source.into_iter().flatten())),
                    thread: None,
                }
            }
        }
    }
}

impl<T> Iterator for Prefetch<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let item = match &mut self.items {
            Items::Ahead(items) => items.recv().ok(),
            Items::Direct(items) => items.next(),
            Items::Ended => None,
        };
        if item.is_none() {
            self.items = Items::Ended;
            if let Some(thread) = self.thread.take()
                && let Err(panic) = thread.join()
            {
                panic::resume_unwind(panic);
            }
        }
        item
    }
}

impl<T> fmt::Debug for Prefetch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.items {
            Items::Ahead(_) => "Prefetch(ahead)",
            Items::Direct(_) => "Prefetch(direct)",
            Items::Ended => "Prefetch(ended)",
        })
    }
}

impl<T> Drop for Prefetch<T> {
    fn drop(&mut self) {
        self.items = Items::Ended;
        if let Some(thread) = self.thread.take() {
            // A panic in an item that was not requested is dropped with the item.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn order_and_length_are_those_of_the_source() {
        for depth in [0, 1, 3, 100] {
            let items: Vec<u32> = Prefetch::new(0..50, depth).collect();
            assert_eq!(items, (0..50).collect::<Vec<_>>(), "depth {depth}");
        }
    }

    #[test]
    fn dropping_it_ends_the_thread() {
        let made = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&made);
        let endless = (0_u64..).inspect(move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        let mut ahead = Prefetch::new(endless, 2);
        assert_eq!(ahead.next(), Some(0));
        drop(ahead); // returns only because the thread notices
        let after = made.load(Ordering::SeqCst);
        assert!(
            after <= 5,
            "it worked {after} items ahead with a depth of 2"
        );
        assert_eq!(Arc::strong_count(&made), 1, "the thread still lives");
    }

    #[test]
    fn a_panic_travels_to_the_reader() {
        let source = (0..5).map(|number| if number == 2 { panic!("row 2") } else { number });
        let mut ahead = Prefetch::new(source, 1);
        assert_eq!((ahead.next(), ahead.next()), (Some(0), Some(1)));
        let panic = panic::catch_unwind(panic::AssertUnwindSafe(|| ahead.next()));
        let message = panic.expect_err("it panics");
        assert_eq!(message.downcast_ref::<&str>(), Some(&"row 2"));
        assert_eq!(ahead.next(), None);
    }
}
