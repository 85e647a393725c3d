//! The thread that reads values. A value's own `Debug` runs on it, and may never end: then another thread takes its place
//! and begins the question anew, without that value.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A question, with where its answer goes. It may be asked twice, and is answered once.
type Question = Arc<dyn Fn() + Send + Sync>;

/// How long the code of a value may run.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked how long it has run.
const PERIOD: Duration = Duration::from_millis(100);
/// The stack of the thread: a `Debug` of nested values recurses. It is not memory before it is used.
const STACK: usize = 64 << 20;

/// Answers this question, after those that were asked before.
pub(super) fn ask(question: impl Fn() + Send + Sync + 'static) {
    static QUESTIONS: Mutex<Option<Sender<Question>>> = Mutex::new(None);
    let mut questions = QUESTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let sender = questions.get_or_insert_with(|| {
        let (sender, inbox) = channel();
        // If it does not start, the kernel waits in vain, and says so.
        let _ = thread("stratoscope-inspect", || answer_all(inbox));
        sender
    });
    let _ = sender.send(Arc::new(question));
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> bool {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.stack_size(STACK).spawn(work).is_ok()
}

fn answer_all(inbox: Receiver<Question>) {
    let mut reader = None;
    for question in inbox {
        while !reader
            .get_or_insert_with(Reader::start)
            .answers(Arc::clone(&question))
        {
            reader = None;
        }
    }
}

/// What a thread that reads is doing.
#[derive(Default)]
struct Doing {
    /// Since when the code of a value has been running.
    since: Mutex<Option<Instant>>,
    /// Nobody waits for it any more.
    is_given_up: AtomicBool,
}

thread_local! {
    static DOING: RefCell<Option<Arc<Doing>>> = const { RefCell::new(None) };
}

impl Doing {
    fn since(&self, new: Option<Instant>) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = new;
    }

    fn takes_too_long(&self) -> bool {
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.is_some_and(|since| since.elapsed() > PATIENCE)
    }
}

/// Calls the code of a value.
pub(super) fn during<T>(code: impl FnOnce() -> T) -> T {
    let doing = DOING.with_borrow(Clone::clone);
    if let Some(doing) = &doing {
        doing.since(Some(Instant::now()));
    }
    let result = code();
    if let Some(doing) = &doing {
        doing.since(None);
    }
    result
}

/// Leaves the question if another thread has answered it meanwhile. What was borrowed for it must have been given back.
pub(super) fn leave_if_given_up() {
    let is_given_up = |it: &Arc<Doing>| it.is_given_up.load(Ordering::SeqCst);
    if DOING.with_borrow(|doing| doing.as_ref().is_some_and(is_given_up)) {
        resume_unwind(Box::new(()));
    }
}

/// A thread that reads, and how to reach it.
struct Reader {
    questions: Sender<Question>,
    answered: Receiver<()>,
    doing: Arc<Doing>,
}

impl Reader {
    fn start() -> Self {
        let (questions, inbox) = channel::<Question>();
        let (done, answered) = channel();
        let doing = Arc::new(Doing::default());
        let own = Arc::clone(&doing);
        let read = move || {
            DOING.set(Some(own));
            for question in inbox {
                // A panic has been reported.
                let _ = catch_unwind(AssertUnwindSafe(|| question()));
                if done.send(()).is_err() {
                    return;
                }
            }
        };
        // If it does not start, its channels are closed.
        let _ = thread("stratoscope-read", read);
        Self {
            questions,
            answered,
            doing,
        }
    }

    /// Whether the question is answered, or cannot be. Otherwise the thread is lost to the code of a value.
    fn answers(&self, question: Question) -> bool {
        if self.questions.send(question).is_err() {
            return true;
        }
        loop {
            match self.answered.recv_timeout(PERIOD) {
                Err(RecvTimeoutError::Timeout) if !self.doing.takes_too_long() => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.doing.is_given_up.store(true, Ordering::SeqCst);
                    return false;
                }
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_does_not_end_is_left_behind_and_the_question_asked_again() {
        let (heard, times) = channel();
        let (release, released) = channel::<()>();
        let (heard, released) = (Mutex::new(heard), Mutex::new(Some(released)));
        ask(move || {
            let blocks = released.lock().expect("no panic").take();
            heard
                .lock()
                .expect("no panic")
                .send("asked")
                .expect("heard");
            if let Some(released) = blocks {
                during(|| released.recv()).expect("it is released");
                leave_if_given_up();
            }
            heard
                .lock()
                .expect("no panic")
                .send("answered")
                .expect("heard");
        });
        let next = || times.recv_timeout(Duration::from_secs(60));
        assert_eq!(
            [next(), next(), next()],
            [Ok("asked"), Ok("asked"), Ok("answered")]
        );
        // The first thread goes away without a second answer.
        release.send(()).expect("it waits");
        ask(|| panic!("a view that panics ends no later question"));
        let (later, is_later) = channel();
        let later = Mutex::new(later);
        ask(move || later.lock().expect("no panic").send(()).expect("heard"));
        assert_eq!(is_later.recv_timeout(Duration::from_secs(60)), Ok(()));
        assert!(times.recv_timeout(PERIOD).is_err());
    }
}
