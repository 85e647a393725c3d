//! What is known of a stream, in words.

use std::fmt;

use stratoscope_render::html::escape;
use stratoscope_render::{text, units};

use super::Stream;
use crate::similar_labels::similar_labels;
use crate::weights;

impl Stream {
    /// `300 000 examples, 14.2 MiB in 3 files`.
    pub fn headline(&self) -> String {
        let noun = if self.has_answers() {
            "question"
        } else {
            "example"
        };
        let examples = text::count(self.len(), noun);
        let bytes = units::bytes(self.bytes());
        match self.index.files() {
            1 => format!("{examples}, {bytes}"),
            files => format!("{examples}, {bytes} in {}", text::count(files, "file")),
        }
    }

    /// What the table of a run says of it.
    pub fn in_words(&self) -> String {
        let mut words = format!("streamed from {}: {}", self.source(), self.headline());
        if let Some(skipped) = self.skipped().sentence() {
            words += &format!("; {skipped}");
        }
        words
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{}: {}, streamed", self.source(), self.headline())];
        let widest = self.names.list.iter().map(|name| name.chars().count());
        let widest = widest.max().unwrap_or(0);
        for (name, count) in self.names.list.iter().zip(self.class_counts()) {
            lines.push(format!("  {name:<widest$}  {count:>9}"));
        }
        if let Some((low, high)) = self.value_range() {
            lines.push(format!("  numbers to predict, from {low} to {high}"));
        }
        match (self.has_answers(), self.index.has_unanswerable) {
            (true, false) => lines.push("  questions with answers".to_owned()),
            (true, true) => lines.push("  questions, some of them without an answer".to_owned()),
            (false, _) => {}
        }
        lines.extend(
            self.index
                .weights
                .map(|range| format!("  {}", weights::in_words(range))),
        );
        lines.extend(self.skipped().sentence());
        lines.extend(similar_labels(&self.names.list));
        lines
    }

    /// What is known of it, as plain text.
    pub fn to_plain(&self) -> String {
        text::visible(&self.lines().join("\n"))
    }

    /// What is known of it, as static HTML.
    pub fn to_html(&self) -> String {
        let lines = self.lines();
        format!(
            "<pre style=\"font-size:13px;line-height:1.45\">{}</pre>",
            escape(&lines.join("\n"))
        )
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({}, {})", self.index.call(), self.headline())
    }
}
