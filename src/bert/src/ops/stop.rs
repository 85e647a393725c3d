//! Canceling a forward or backward pass. A pass of a large batch takes seconds, and an interrupt
//! should not wait for its end.
//!
//! The caller runs the pass inside [`Stop::during`]. Operations check between two layers, and those of
//! the CPU between two blocks of a product. Once the pass is canceled, the remaining operations only fill their outputs with
//! zeros: the pass ends soon, and its results are meaningless. So the caller must call
//! [`Stop::commit`] before it uses the results. Several replicas share one [`Stop`]: after the
//! first commit, no pass is canceled.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const GOING_ON: u8 = 0;
const GIVEN_UP: u8 = 1;
const COMMITTED: u8 = 2;

thread_local! {
    static CURRENT: RefCell<Option<Stop>> = const { RefCell::new(None) };
}

/// Whether the passes of one batch are canceled. A clone refers to the same state.
#[derive(Clone)]
pub struct Stop(Arc<Inner>);

struct Inner {
    state: AtomicU8,
    ask: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Stop {
    /// Cancels when `ask` first returns true. It is called often, from several threads.
    pub fn when(ask: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            state: AtomicU8::new(GOING_ON),
            ask: Box::new(ask),
        }))
    }

    /// Runs a pass that can be canceled. Operations outside of this call are never canceled.
    pub fn during<T>(&self, pass: impl FnOnce() -> T) -> T {
        struct Restored(Option<Stop>);
        impl Drop for Restored {
            fn drop(&mut self) {
                CURRENT.replace(self.0.take());
            }
        }
        let _restored = Restored(CURRENT.replace(Some(self.clone())));
        pass()
    }

    /// Whether the results of a pass are valid; if so, no other pass of the batch is canceled from now on.
    pub fn commit(&self) -> bool {
        self.change(COMMITTED) == COMMITTED
    }

    /// Whether the passes of this batch were canceled.
    pub fn is_given_up(&self) -> bool {
        self.0.state.load(Ordering::SeqCst) == GIVEN_UP
    }

    /// Whether the pass is canceled; calls `ask` unless that is decided.
    fn asked(&self) -> bool {
        match self.0.state.load(Ordering::Relaxed) {
            GOING_ON => (self.0.ask)() && self.change(GIVEN_UP) == GIVEN_UP,
            state => state == GIVEN_UP,
        }
    }

    /// Sets the state, if it is undecided; returns the state.
    fn change(&self, to: u8) -> u8 {
        let state = &self.0.state;
        match state.compare_exchange(GOING_ON, to, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => to,
            Err(before) => before,
        }
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.state.load(Ordering::SeqCst) {
            GOING_ON => "Stop(going on)",
            GIVEN_UP => "Stop(given up)",
            _ => "Stop(committed)",
        })
    }
}

/// The pass of this thread, for blocks that other threads compute for it.
#[derive(Clone, Debug)]
pub(super) struct Asker(Option<Stop>);

impl Asker {
    pub fn of_this_thread() -> Self {
        Self(CURRENT.with_borrow(Option::clone))
    }

    /// Whether the pass is canceled.
    pub fn stops(&self) -> bool {
        self.0.as_ref().is_some_and(Stop::asked)
    }
}

/// Whether the pass of this thread is canceled.
pub(super) fn asked() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(Stop::asked))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn a_pass_is_given_up_by_all_or_by_none() {
        let button = Arc::new(AtomicBool::new(false));
        let pressed = Arc::clone(&button);
        let stop = || {
            let pressed = Arc::clone(&pressed);
            Stop::when(move || pressed.load(Ordering::SeqCst))
        };
        let (first, second) = (stop(), stop());
        assert!(!first.during(asked));
        assert!(first.commit());
        button.store(true, Ordering::SeqCst);
        assert!(!first.during(asked), "a replica has committed");
        assert!(first.commit() && !first.is_given_up());

        let elsewhere = second.during(Asker::of_this_thread);
        assert!(
            std::thread::spawn(move || elsewhere.stops())
                .join()
                .expect("no panic")
        );
        assert!(second.is_given_up() && !second.commit());
        button.store(false, Ordering::SeqCst);
        assert!(second.during(asked), "what was given up stays so");
        assert!(!asked(), "outside of a pass nothing is given up");
    }
}
