//! Parsing on a thread with a deep stack.

/// Longer cells are not rewritten: syn recurses once per operator.
pub const MAX_PARSED_BYTES: usize = 32 << 10;
/// Room for the deepest nesting of that many bytes.
const STACK_BYTES: usize = 128 << 20;

/// Reads a cell with syn on a thread with a deep stack: syn recurses at every bracket and operator. `None` for a cell that
/// is too long.
pub fn parse_deep<T: Send>(code: &str, read: impl FnOnce(&str) -> T + Send) -> Option<T> {
    (code.len() <= MAX_PARSED_BYTES).then(|| on_deep_stack(|| read(code)))?
}

/// The result of `work` on such a thread; `None` if it panics.
pub fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|threads| {
        std::thread::Builder::new()
            .name("rewrite".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(threads, work)
            .ok()
            .and_then(|thread| thread.join().ok())
    })
}
