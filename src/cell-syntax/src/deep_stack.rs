//! A thread for texts of any nesting: parsers, and what walks and drops what they return, descend once per level.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// Calls `read` on a thread of its own whose stack has so many bytes, and waits for it. The system gives the stack memory
/// only as far as it is used, and everything that is the thread's own goes with it. `None` where `read` returns that or
/// panics, since a panic inside a parser must not end the kernel, and where no thread can be started.
///
/// ```
/// use stratoscope_cell_syntax::on_deep_stack;
///
/// let read = on_deep_stack("reader", 1 << 20, || "7".parse::<u32>().ok());
/// assert_eq!(read, Some(7));
/// ```
pub fn on_deep_stack<R: Send>(
    name: &str,
    bytes: usize,
    read: impl FnOnce() -> Option<R> + Send,
) -> Option<R> {
    thread::scope(|threads| {
        thread::Builder::new()
            .name(name.to_owned())
            .stack_size(bytes)
            .spawn_scoped(threads, || {
                catch_unwind(AssertUnwindSafe(read)).ok().flatten()
            })
            .ok()?
            .join()
            .ok()?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_recursion_and_panics_do_not_end_the_process() {
        fn depth(levels: usize) -> usize {
            match std::hint::black_box(levels) {
                0 => 0,
                levels => 1 + depth(levels - 1),
            }
        }
        let deep = on_deep_stack("deep", 256 << 20, || Some(depth(500_000)));
        assert_eq!(deep, Some(500_000));
        let panics = on_deep_stack("panics", 1 << 20, || -> Option<()> { panic!("a parser") });
        assert_eq!(panics, None);
        assert_eq!(on_deep_stack("nothing", 1 << 20, || None::<u8>), None);
    }
}
