//! A progress bar for any iterator: `for batch in track(batches) { … }`.

use std::time::{Duration, Instant, SystemTime};

use stratoscope_wire::MimeBundle;

use super::{IntoBundle, display_as, display_update, plain};
use crate::{cell, connection};

/// The shortest time between two redraws.
const REDRAW: Duration = Duration::from_millis(100);
/// Characters of the bar.
const WIDTH: usize = 30;

/// The same items, with a progress bar below the cell; without a kernel nothing is drawn. An interrupt ends the iterator
/// and so the loop: the cell goes on and keeps its variables.
pub fn track<I: IntoIterator>(items: I) -> Track<I::IntoIter> {
    let items = items.into_iter();
    let total = match items.size_hint() {
        (least, Some(most)) if least == most => Some(most),
        _ => None,
    };
    Track {
        items,
        bar: Bar::new(total),
    }
}

/// See [`track`].
#[derive(Debug)]
pub struct Track<I> {
    items: I,
    bar: Bar,
}

impl<I: Iterator> Iterator for Track<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.bar.begin();
        let item = match cell::interrupted() {
            true => None,
            false => self.items.next(),
        };
        match item {
            Some(_) => self.bar.step(),
            None => self.bar.end(),
        }
        item
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }
}

impl<I> Drop for Track<I> {
    fn drop(&mut self) {
        // The loop was left early, by `break` or a panic.
        self.bar.end();
    }
}

/// Not generic: compiled once, in the facade.
#[derive(Debug)]
struct Bar {
    id: String,
    /// Items that were returned; the last of them may still be in work.
    done: usize,
    total: Option<usize>,
    began: Option<Instant>,
    drawn: Option<Instant>,
    ended: bool,
}

impl Bar {
    fn new(total: Option<usize>) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_nanos());
        Self {
            id: format!("stratoscope-track-{}-{now}", std::process::id()),
            done: 0,
            total,
            began: None,
            drawn: None,
            ended: false,
        }
    }

    fn begin(&mut self) {
        if self.began.is_none() {
            self.began = Some(Instant::now());
            self.draw();
        }
    }

    fn step(&mut self) {
        self.done += 1;
        if self.drawn.is_some_and(|drawn| drawn.elapsed() >= REDRAW) {
            self.draw();
        }
    }

    fn end(&mut self) {
        if !self.ended && self.began.is_some() {
            self.ended = true;
            self.draw();
        }
    }

    fn draw(&mut self) {
        if !connection::is_open() {
            return;
        }
        let first = self.drawn.replace(Instant::now()).is_none();
        let line = Line(self.line(self.began.map_or(Duration::ZERO, |began| began.elapsed())));
        match first {
            true => display_as(&self.id, &line),
            false => display_update(&self.id, &line),
        }
    }

    /// An item counts as done when the next one is requested.
    fn line(&self, elapsed: Duration) -> String {
        let done = self.done.saturating_sub(usize::from(!self.ended));
        let seconds = elapsed.as_secs_f64();
        let rate = match seconds > 0.0 && done > 0 {
            true => format!(", {:.1} a second", done as f64 / seconds),
            false => String::new(),
        };
        let Some(total) = self.total.filter(|total| *total > 0) else {
            return format!("{done} done in {seconds:.1} s{rate}");
        };
        let filled = (done * WIDTH / total).min(WIDTH);
        let bar = format!("{}{}", "█".repeat(filled), "·".repeat(WIDTH - filled));
        let left = match done > 0 && done < total && !self.ended {
            true => format!(
                ", {:.1} s left",
                seconds * (total - done) as f64 / done as f64
            ),
            false => String::new(),
        };
        format!(
            "{:>3} % {bar} {done}/{total} in {seconds:.1} s{rate}{left}",
            done * 100 / total
        )
    }
}

struct Line(String);

impl IntoBundle for Line {
    fn bundle(&self) -> MimeBundle {
        plain(self.0.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_pass_and_are_counted() {
        assert_eq!(track(1..=3).collect::<Vec<_>>(), [1, 2, 3]);
        let mut tracked = track([1, 2, 3, 4]);
        assert_eq!(
            (tracked.next(), tracked.next(), tracked.next()),
            (Some(1), Some(2), Some(3))
        );
        let line = tracked.bar.line(Duration::from_secs(4));
        assert!(line.starts_with(" 50 % ███████████████·"), "{line}");
        assert!(
            line.ends_with("2/4 in 4.0 s, 0.5 a second, 4.0 s left"),
            "{line}"
        );
        assert_eq!(tracked.by_ref().count(), 1);
        let line = tracked.bar.line(Duration::from_secs(4));
        assert!(line.contains("4/4"), "{line}");
    }

    #[test]
    fn an_unknown_number_is_only_counted() {
        let mut tracked = track((0..10).filter(|n| n % 2 == 0));
        tracked.next();
        tracked.next();
        let line = tracked.bar.line(Duration::from_secs(2));
        assert_eq!(line, "1 done in 2.0 s, 0.5 a second");
    }
}
