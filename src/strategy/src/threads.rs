//! One long-lived thread per replica number. GPU runtimes keep a stream and a memory pool per thread
//! and never free them, so replica i of every model works on thread i.
//!
//! The threads are named `replica-0`, `replica-1`, … ([`NAME`]). The kernel's `cells/threads.rs` recognizes them by this
//! name as threads that outlive a cell, so that their output is shown in the cell that runs. It cannot use the constant,
//! because the kernel does not link this crate; change both together.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

/// What the names of the threads begin with.
pub(crate) const NAME: &str = "replica-";

/// The stack of a thread: the default of 2 MiB is not enough for the backward pass of a deep network.
const STACK_BYTES: usize = 16 << 20;

/// The threads. Process-wide, because GPU runtimes keep memory per thread of the process.
static WORKERS: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Calls `work(i, input i)` for every input, each on its replica's thread, and returns the results in order. A single
/// input is processed on the caller's thread, and so are all inputs if the caller is a replica's thread itself.
/// A panic is passed on to the caller when all have ended.
pub(crate) fn for_each<I, T, F>(inputs: Vec<I>, work: F) -> Vec<T>
where
    I: Send + 'static,
    T: Send + 'static,
    F: Fn(usize, I) -> T + Send + Sync + 'static,
{
    if inputs.len() < 2 || IS_WORKER.get() {
        return inputs
            .into_iter()
            .enumerate()
            .map(|(i, input)| work(i, input))
            .collect();
    }
    spread(inputs, work)
}

/// [`for_each`] for parts of a work that wait for each other: all run at the same time, whoever calls.
pub(crate) fn together<I, T, F>(inputs: Vec<I>, work: F) -> Vec<T>
where
    I: Send + 'static,
    T: Send + 'static,
    F: Fn(usize, I) -> T + Send + Sync + 'static,
{
    if !IS_WORKER.get() && can_start(inputs.len()) {
        return spread(inputs, work);
    }
    // The thread of a replica would wait for itself.
    thread::scope(|scope| {
        let (work, mut threads) = (&work, Vec::with_capacity(inputs.len()));
        for (index, input) in inputs.into_iter().enumerate() {
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            let body = move || work(index, input);
            let thread = builder.spawn_scoped(scope, body);
            threads.push(thread.unwrap_or_else(|error| panic!("a stage has no thread: {error}")));
        }
        let joined = threads.into_iter().map(|thread| thread.join());
        let joined: Vec<thread::Result<T>> = joined.collect();
        let value = |done: thread::Result<T>| done.unwrap_or_else(|it| panic::resume_unwind(it));
        joined.into_iter().map(value).collect()
    })
}

/// Whether so many threads are there, or could be started.
fn can_start(threads: usize) -> bool {
    let mut workers = WORKERS.lock().unwrap_or_else(PoisonError::into_inner);
    start_to(&mut workers, threads)
}

/// Calls `work` on the threads of the replicas.
fn spread<I, T, F>(inputs: Vec<I>, work: F) -> Vec<T>
where
    I: Send + 'static,
    T: Send + 'static,
    F: Fn(usize, I) -> T + Send + Sync + 'static,
{
    let work = Arc::new(work);
    let mut answers = Vec::with_capacity(inputs.len());
    for (index, input) in inputs.into_iter().enumerate() {
        let (sender, receiver) = mpsc::channel();
        let work = Arc::clone(&work);
        let job = Box::new(move || {
            let done = panic::catch_unwind(AssertUnwindSafe(|| work(index, input)));
            // The caller waits for every answer, so the receiver exists unless the process ends.
            let _ = sender.send(done);
        });
        dispatch(index, job);
        answers.push(receiver);
    }
    let mut results = Vec::with_capacity(answers.len());
    let mut panicked: Option<Box<dyn Any + Send>> = None;
    for answer in answers {
        match answer.recv() {
            Ok(Ok(result)) => results.push(result),
            Ok(Err(panic)) => panicked = panicked.or(Some(panic)),
            Err(gone) => panicked = panicked.or(Some(Box::new(gone.to_string()))),
        }
    }
    match panicked {
        Some(panic) => panic::resume_unwind(panic),
        None => results,
    }
}

/// Sends the job to thread `index`, which is started if necessary. If no thread can be started, the job runs on the
/// caller's thread.
fn dispatch(index: usize, job: Job) {
    let mut workers = WORKERS.lock().unwrap_or_else(PoisonError::into_inner);
    if !start_to(&mut workers, index + 1) {
        drop(workers);
        return job();
    }
    let worker = workers[index].clone();
    drop(workers);
    if let Err(returned) = worker.send(job) {
        (returned.0)();
    }
}

/// Starts the threads that are missing to so many; whether they are all there.
fn start_to(workers: &mut Vec<Sender<Job>>, count: usize) -> bool {
    while workers.len() < count {
        let (sender, receiver) = mpsc::channel::<Job>();
        let body = move || {
            IS_WORKER.set(true);
            receiver.into_iter().for_each(|job| job());
        };
        let name = format!("{NAME}{}", workers.len());
        let thread = thread::Builder::new().name(name).stack_size(STACK_BYTES);
        if thread.spawn(body).is_err() {
            return false;
        }
        workers.push(sender);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_threads_stay() {
        let here = || {
            (
                thread::current().name().map(str::to_owned),
                thread::current().id(),
            )
        };
        let first = for_each(vec![10, 20, 30], move |i, x| (i, x, here()));
        let second = for_each(vec![1, 2, 3], move |i, x| (i, x, here()));
        for i in 0..3 {
            assert_eq!((first[i].0, first[i].1), (i, 10 * (i + 1)));
            assert_eq!(first[i].2, second[i].2, "replica {i} has its own thread");
            assert_eq!(
                first[i].2.0.as_deref(),
                Some(format!("replica-{i}").as_str())
            );
        }
        assert_eq!(
            for_each(vec![7], move |_, x| (x, here().1)),
            [(7, thread::current().id())]
        );
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_thread_works_on() {
        let run = || {
            for_each(
                vec![0, 1],
                |_, x| if x == 1 { panic!("replica 1") } else { x },
            )
        };
        let panic = panic::catch_unwind(run).expect_err("replica 1 panics");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"replica 1"));
        assert_eq!(for_each(vec![3, 4], |_, x| x), [3, 4]);
    }

    /// Each waits for what the one after it sends.
    #[test]
    fn parts_that_wait_for_each_other_run_together() {
        let chain = |last: i32| {
            let (mut inputs, mut before) = (Vec::new(), None);
            for _ in 0..3 {
                let (sender, receiver) = mpsc::channel::<i32>();
                inputs.push((before.replace(sender), receiver));
            }
            let first = before.expect("three were made");
            first.send(last).expect("its receiver is there");
            together(inputs, move |_, (sender, receiver)| {
                let got: i32 = receiver.recv().expect("it is sent");
                if let Some(sender) = sender {
                    sender.send(got + 1).expect("its receiver is there");
                }
                got
            })
        };
        assert_eq!(chain(5), [7, 6, 5]);
        let nested = for_each(vec![1, 2], move |_, x| chain(x));
        assert_eq!(nested, [vec![3, 2, 1], vec![4, 3, 2]]);
    }

    #[test]
    fn nested_calls_do_not_wait_for_themselves() {
        let found = for_each(vec![1, 2], |_, x| for_each(vec![x, x], |_, y| y * 10));
        assert_eq!(found, [vec![10, 10], vec![20, 20]]);
    }
}
