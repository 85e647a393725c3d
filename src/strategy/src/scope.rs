//! The active strategy: the one that places variables that are created now.
//!
//! Scopes nest per thread, as in TensorFlow; all cells of a notebook run on one
//! thread. [`set_default`] sets a default for every thread, from the next cell on. A scope takes precedence over the
//! default.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use burn::tensor::Device;
use stratoscope_diagnostics::rules::MixedStrategies;
use stratoscope_diagnostics::{Result, Rule};

use crate::device::{LogicalDevice, default_device};
use crate::origin;
use crate::strategy::{AsStrategy, Strategy};

thread_local! {
    static STACK: RefCell<Vec<Strategy>> = const { RefCell::new(Vec::new()) };
}

/// The default strategy, which takes effect with the next cell. Process-wide, as [`set_default`] promises.
struct DefaultStrategy {
    /// The default in the cell that set `next`, and in cells before it.
    before: Option<Strategy>,
    /// The default in the cells after `since`; outside of notebooks it takes effect at once.
    next: Option<Strategy>,
    since: Option<u64>,
}

static DEFAULT: Mutex<DefaultStrategy> = Mutex::new(DefaultStrategy {
    before: None,
    next: None,
    since: None,
});

/// A scope. It ends when this guard is dropped, also by a failing `?` or a panic.
#[derive(Debug)]
#[must_use = "the scope ends at once if its guard is not kept"]
pub struct ScopeGuard {
    depth: usize,
    // The scope is on the stack of this thread.
    _here: PhantomData<*const ()>,
}

impl Drop for ScopeGuard {
    fn drop(&mut self) {
        STACK.with_borrow_mut(|stack| stack.truncate(self.depth));
    }
}

/// Enters the strategy's scope.
///
/// # Errors
/// SC0204 inside the scope of a different strategy; entering the same one again is allowed.
pub fn enter(strategy: &impl AsStrategy) -> Result<ScopeGuard> {
    let depth = STACK.with_borrow(Vec::len);
    push(strategy)?;
    Ok(ScopeGuard {
        depth,
        _here: PhantomData,
    })
}

/// Enters the strategy's scope without a guard: for the code that the kernel generates around a cell, which
/// calls [`leave`] at the end of the cell, or [`leave_all`] if the cell failed.
///
/// # Errors
/// SC0204, like [`enter`].
pub fn push(strategy: &impl AsStrategy) -> Result<()> {
    let entered = strategy.strategy();
    STACK.with_borrow_mut(|stack| {
        if let Some(active) = stack.last().filter(|active| **active != entered) {
            let rule = MixedStrategies {
                active: active.shown(),
                entered: entered.shown(),
            };
            let names = active.unnamed().into_iter().chain(entered.unnamed());
            return Err(Box::new(rule.diagnostic().naming(names)));
        }
        stack.push(entered);
        Ok(())
    })
}

/// Leaves the scope that was pushed last. Does nothing if there is none.
pub fn leave() {
    STACK.with_borrow_mut(|stack| stack.pop());
}

/// Leaves every scope of this thread; the default stays.
pub fn leave_all() {
    STACK.with_borrow_mut(Vec::clear);
}

/// How many scopes this thread is in.
pub fn depth() -> usize {
    STACK.with_borrow(Vec::len)
}

/// Makes a strategy active outside of scopes, from the next cell on; in a plain program, at once.
pub fn set_default(strategy: &impl AsStrategy) {
    replace_default(Some(strategy.strategy()));
}

/// Leaves every scope of this thread and forgets the default, at once.
pub fn reset_to_default() {
    leave_all();
    let mut default = DEFAULT.lock().unwrap_or_else(PoisonError::into_inner);
    *default = DefaultStrategy {
        before: None,
        next: None,
        since: None,
    };
}

fn replace_default(next: Option<Strategy>) {
    let cell = origin::current_cell();
    let before = default_strategy();
    let mut default = DEFAULT.lock().unwrap_or_else(PoisonError::into_inner);
    *default = DefaultStrategy {
        before,
        next,
        since: cell,
    };
}

fn default_strategy() -> Option<Strategy> {
    let default = DEFAULT.lock().unwrap_or_else(PoisonError::into_inner);
    let waits = default.since.is_some() && default.since == origin::current_cell();
    if waits {
        default.before.clone()
    } else {
        default.next.clone()
    }
}

/// The strategy that places the variables made now: the innermost scope's, else the default.
pub fn current() -> Option<Strategy> {
    STACK
        .with_borrow(|stack| stack.last().cloned())
        .or_else(default_strategy)
}

/// The strategies that have a handle, oldest first.
pub fn live_strategies() -> Vec<Strategy> {
    crate::strategy::live()
}

/// The devices that variables made now go to: one per replica of the active strategy, else the
/// default device.
///
/// # Errors
/// As [`default_device`].
pub fn replica_devices() -> Result<Vec<LogicalDevice>> {
    match current() {
        Some(strategy) => Ok(strategy.replicas().to_vec()),
        None => Ok(vec![default_device()?]),
    }
}

/// The device on which to create a module before [`crate::Replicas::place`] copies it: the first
/// replica's, with autodiff.
///
/// # Errors
/// As [`replica_devices`].
pub fn device() -> Result<Device> {
    let devices = replica_devices()?;
    Ok(devices
        .first()
        .map_or_else(|| Device::flex().autodiff(), LogicalDevice::training))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu;
    use crate::strategy::{MirroredStrategy, OneDeviceStrategy};

    fn two() -> (MirroredStrategy, OneDeviceStrategy) {
        let mirrored = MirroredStrategy::logical(2).expect("two logical devices");
        (
            mirrored,
            OneDeviceStrategy::new(cpu(0)).expect("a processor"),
        )
    }

    #[test]
    fn scopes_nest_if_they_are_the_same() {
        let _turn = origin::taking_turns();
        let (mirrored, one) = two();
        assert_eq!(current(), None);
        let outer = enter(&mirrored).expect("no scope is active");
        assert_eq!(current(), Some(mirrored.strategy()));
        {
            let _inner = enter(&mirrored.clone()).expect("the same strategy");
            assert_eq!(depth(), 2);
        }
        let error = enter(&one).expect_err("a different strategy");
        assert_eq!(error.code, "SC0204");
        let (active, entered) = (mirrored.strategy().shown(), one.strategy().shown());
        let message = format!("`{entered}`'s scope cannot be entered inside `{active}`'s");
        assert_eq!(error.message, message);
        assert_eq!((depth(), current()), (1, Some(mirrored.strategy())));
        drop(outer);
        assert_eq!((depth(), current()), (0, None));
    }

    #[test]
    fn a_guard_leaves_what_was_pushed_inside_it() {
        let (mirrored, _) = two();
        let guard = enter(&mirrored).expect("no scope is active");
        push(&mirrored).expect("the same strategy");
        push(&mirrored).expect("the same strategy");
        leave();
        drop(guard);
        assert_eq!(depth(), 0);
        leave();
        assert_eq!(depth(), 0, "leaving nothing is nothing");
    }

    #[test]
    fn a_failing_function_leaves_its_scope() {
        let (mirrored, one) = two();
        let work = || -> Result<()> {
            let _scope = enter(&mirrored)?;
            let _never = enter(&one)?;
            Ok(())
        };
        assert!(work().is_err());
        assert_eq!(depth(), 0);
    }

    #[test]
    fn another_thread_is_outside() {
        let (mirrored, _) = two();
        let _scope = enter(&mirrored).expect("no scope is active");
        let depth = std::thread::spawn(depth).join().expect("it does not panic");
        assert_eq!(depth, 0);
    }

    /// What is active where, row by row: (what a cell does, active in this cell, active in the next).
    #[test]
    fn a_default_acts_from_the_next_cell_on() {
        let _turn = origin::taking_turns();
        let (mirrored, one) = two();
        let (m, o) = (Some(mirrored.strategy()), Some(one.strategy()));

        origin::begin_cell(1);
        mirrored.set_default();
        assert_eq!(current(), None, "not in the cell that sets it");
        origin::begin_cell(2);
        assert_eq!(current(), m);
        one.set_default();
        assert_eq!(
            current(),
            m,
            "the earlier default holds to the end of the cell"
        );
        origin::begin_cell(3);
        assert_eq!(current(), o);
        let scope = enter(&mirrored).expect("a scope wins over the default");
        assert_eq!(current(), m);
        drop(scope);
        assert_eq!(current(), o);
        reset_to_default();
        assert_eq!(current(), None, "a reset acts at once");

        origin::clear();
        mirrored.set_default();
        assert_eq!(current(), m, "in a plain program, at once");
        reset_to_default();
    }

    #[test]
    fn a_default_outlives_its_handle_but_is_not_live() {
        let _turn = origin::taking_turns();
        let (mirrored, _) = two();
        mirrored.set_default();
        let id = mirrored.strategy().id();
        drop(mirrored);
        assert_eq!(current().map(|strategy| strategy.id()), Some(id));
        assert!(!live_strategies().iter().any(|strategy| strategy.id() == id));
        reset_to_default();
    }
}
