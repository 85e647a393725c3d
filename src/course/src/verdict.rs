//! [`Verdict`]: what a check found, as a card.

use std::fmt::Write;

use stratoscope_render::html::{NAMED_ROW, NAMED_VALUE, escape, prose};
use stratoscope_render::text;

use crate::lessons;

/// How far an exercise is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Still to be filled in.
    Open,
    /// Filled in, and not right.
    Wrong,
    /// A prediction that was made and differs from what was measured.
    Noted,
    /// Right; of a prediction: what was measured.
    Right,
}

impl State {
    /// The word on a card and in a report.
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "still to be filled in",
            Self::Wrong => "not yet right",
            Self::Noted => "noted",
            Self::Right => "right",
        }
    }

    /// Whether nothing is left to do. A prediction is done when it is made.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Noted | Self::Right)
    }

    /// The sign before the word in a report.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Open => "○",
            Self::Wrong => "✗",
            Self::Noted => "●",
            Self::Right => "✓",
        }
    }

    /// Translucent, so that it holds on light and on dark ground.
    fn color(self) -> &'static str {
        match self {
            Self::Open => "#808080",
            Self::Wrong => "#d9822b",
            Self::Noted => "#3b82f6",
            Self::Right => "#2e9e5b",
        }
    }
}

/// What a check found: the state of the exercise, and what there is to see.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a verdict is shown where it is the cell's last expression, without `;`, or by `display(&verdict)`"]
pub struct Verdict {
    /// The exercise: `3.2`.
    pub exercise: String,
    /// How far it is.
    pub state: State,
    /// Name and text of each line.
    pub lines: Vec<(&'static str, String)>,
}

impl Verdict {
    /// A verdict, which is entered in the report of its lesson.
    pub fn new(exercise: &str, state: State, lines: Vec<(&'static str, String)>) -> Self {
        lessons::enter(exercise, state);
        Self {
            exercise: exercise.to_owned(),
            state,
            lines,
        }
    }

    /// Whether it is right.
    pub fn is_right(&self) -> bool {
        self.state == State::Right
    }

    /// The text of the card in one line, for tests.
    #[cfg(test)]
    pub(crate) fn words(&self) -> String {
        let plain = self.to_plain();
        plain.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn title(&self) -> String {
        let name = lessons::title(&self.exercise).map_or(String::new(), |it| format!(" ({it})"));
        format!("exercise {}{name}: {}", self.exercise, self.state.word())
    }

    /// The card as text, at most 100 columns wide.
    pub fn to_plain(&self) -> String {
        let mut plain = self.title();
        for (name, value) in &self.lines {
            for (index, line) in text::wrap(value, 84).into_iter().enumerate() {
                let name = if index == 0 { name } else { "" };
                // Writing to a string cannot fail.
                let _ = write!(plain, "\n  {name:<10}  {line}");
            }
        }
        plain
    }

    /// The card as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = format!(
            "<div style=\"border-left:4px solid {};padding:2px 0 2px 12px;margin:4px 0;font-size:13px\">\
             <div style=\"font-weight:600;margin:2px 0\">{}</div>",
            self.state.color(),
            escape(&self.title())
        );
        for (name, value) in &self.lines {
            let _ = write!(
                html,
                "<div style=\"{NAMED_ROW};line-height:1.5\"><div style=\"flex:0 0 96px;opacity:0.75\">{}</div>\
                 <div style=\"{NAMED_VALUE}\">{}</div></div>",
                escape(name),
                prose(value)
            );
        }
        html.push_str("</div>");
        html
    }
}
