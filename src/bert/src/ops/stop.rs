//! Stopping a forward or backward pass on the way. A pass of a large batch takes seconds, an interrupt
//! should not wait for its end.
//!
//! Whoever computes runs the pass inside [`Stop::during`]. Operations ask between two layers, and those of
//! the CPU between two blocks of a product. Once one was answered yes, all that follow only fill their outputs with
//! zeros: the pass ends soon, and what it puts out means nothing. So the caller must ask
//! [`Stop::commit`] before anything is done with the results. Several replicas share one [`Stop`]: from the
//! first commit on, the pass of none is given up.

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

/// Whether the passes of one batch are given up. A clone is the same one.
#[derive(Clone)]
pub struct Stop(Arc<Inner>);

struct Inner {
    state: AtomicU8,
    ask: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Stop {
    /// Given up when `ask` first says so. It is asked often, from several threads.
    pub fn when(ask: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            state: AtomicU8::new(GOING_ON),
            ask: Box::new(ask),
        }))
    }

    /// Runs a pass that may be given up. Operations outside of this are never given up.
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

    /// Whether the results of a pass count; if so, no other pass of the batch is given up any more.
    pub fn commit(&self) -> bool {
        self.change(COMMITTED) == COMMITTED
    }

    /// Whether the passes of this batch were given up.
    pub fn is_given_up(&self) -> bool {
        self.0.state.load(Ordering::SeqCst) == GIVEN_UP
    }

    /// Asks, if nothing is decided yet; whether to give up.
    fn asked(&self) -> bool {
        match self.0.state.load(Ordering::Relaxed) {
            GOING_ON => (self.0.ask)() && self.change(GIVEN_UP) == GIVEN_UP,
            state => state == GIVEN_UP,
        }
    }

    /// Decides, if nothing was decided yet; what was decided.
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

/// The pass that this thread computes, for blocks that other threads compute for it.
#[derive(Clone, Debug)]
pub(super) struct Asker(Option<Stop>);

impl Asker {
    pub fn of_this_thread() -> Self {
        Self(CURRENT.with_borrow(Option::clone))
    }

    /// Whether to give up.
    pub fn stops(&self) -> bool {
        self.0.as_ref().is_some_and(Stop::asked)
    }
}

/// Whether the pass that this thread computes is to be given up.
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
