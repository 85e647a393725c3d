//! How explanations are shown: words colored in the text, a table, and text.

use std::fmt::Write;

use stratoscope_evaluation::page::{heads, sentence, table, table_text, title};
use stratoscope_render::html::escape;
use stratoscope_render::text::{count, visible};

use crate::counterfactual::Counterfactual;
use crate::explanation::{ExplainedWord, Explanation};

/// The colors of what speaks for a class and against it, as red, green and blue; seen on a light and on a dark ground.
const FOR: &str = "42,127,192";
const AGAINST: &str = "208,90,40";
/// How much of the color the largest number has.
const STRONGEST: f64 = 0.75;
/// Words of the table.
const MAX_WORDS: usize = 40;

/// A method: its name, what its numbers are, and the number of a word.
type Method = (&'static str, fn(&ExplainedWord) -> f64);

const METHODS: [Method; 4] = [
    ("integrated gradients", |word| word.integrated_gradients),
    ("gradient × input", |word| word.gradient_input),
    ("occlusion", |word| word.occlusion),
    ("attention rollout", |word| word.rollout),
];

impl Explanation {
    fn title(&self) -> String {
        let what = if self.is_predicted {
            "why"
        } else {
            "what speaks for"
        };
        let (label, probability) = (&self.label, self.probability);
        format!("{what} {label}, probability {probability:.3}")
    }

    fn sentences(&self) -> Vec<String> {
        let explained = self.logit - self.reference;
        let sum = explained + self.delta;
        let mut sentences = vec![format!(
            "logit {:+.4}; with all words hidden {:+.4}. The integrated gradients add up to {sum:+.4} of this difference of \
             {explained:+.4} ({}): {}",
            self.logit,
            self.reference,
            count(self.steps, "step"),
            if self.is_complete() {
                "complete"
            } else {
                "not complete, more steps are needed: `ExplainOptions::new().steps(…)`"
            }
        )];
        if self.truncated > 0 {
            sentences.push(format!(
                "{} were cut off: the model does not read them",
                count(self.truncated, "token")
            ));
        }
        sentences
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let mut order: Vec<&ExplainedWord> = self.words.iter().collect();
        order.sort_by(|a, b| {
            b.integrated_gradients
                .abs()
                .total_cmp(&a.integrated_gradients.abs())
        });
        let row = |word: &ExplainedWord| {
            let numbers = METHODS.iter().map(|(name, of)| match *name {
                "attention rollout" => format!("{:.3}", of(word)),
                _ => format!("{:+.4}", of(word)),
            });
            std::iter::once(word.text.clone()).chain(numbers).collect()
        };
        order.into_iter().take(MAX_WORDS).map(row).collect()
    }

    fn head() -> Vec<(String, stratoscope_evaluation::page::Align)> {
        let names: Vec<&str> = std::iter::once("word")
            .chain(METHODS.iter().map(|(name, _)| *name))
            .collect();
        heads(1, &names)
    }

    /// The words colored by each method, and their numbers, as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = title(&self.title());
        html.extend(self.sentences().iter().map(|it| sentence(it)));
        for (name, of) in METHODS {
            // Writing to a string cannot fail.
            let _ = write!(
                html,
                "<div style=\"font-size:13px;line-height:2;margin:2px 0\"><span style=\"display:inline-block;width:150px;opacity:0.85\">{name}</span>{}</div>",
                colored(&self.words, of)
            );
        }
        html += &format!(
            "<div style=\"font-size:13px\">{} speaks for {label}, {} against it; of attention, how much of the word the first token sees</div>",
            mark("blue", FOR, STRONGEST),
            mark("orange", AGAINST, STRONGEST),
            label = escape(&self.label)
        );
        html + &table(&Self::head(), &self.rows(), None)
    }

    /// The numbers as text, the words with the largest integrated gradients first.
    pub fn to_plain(&self) -> String {
        let mut plain = format!("{}\n", self.title());
        self.sentences()
            .iter()
            .for_each(|it| plain += &format!("  {it}\n"));
        visible(&(plain + &table_text(&Self::head(), &self.rows())))
    }
}

/// The words in their order, each on a ground whose strength is its share of the largest number.
fn colored(words: &[ExplainedWord], of: fn(&ExplainedWord) -> f64) -> String {
    let largest = words
        .iter()
        .map(|word| of(word).abs())
        .fold(0.0, f64::max)
        .max(1e-30);
    let mut html = String::new();
    let mut in_pair = false;
    for word in words {
        if word.in_pair && !in_pair {
            html += " ⏐ ";
            in_pair = true;
        }
        let number = of(word);
        let color = if number < 0.0 { AGAINST } else { FOR };
        html += &mark(&word.text, color, STRONGEST * number.abs() / largest);
        html.push(' ');
    }
    html
}

fn mark(text: &str, color: &str, strength: f64) -> String {
    format!(
        "<span style=\"background-color:rgba({color},{strength:.2});border-radius:3px;padding:2px 4px\">{}</span>",
        escape(text)
    )
}

impl Counterfactual {
    fn title(&self) -> String {
        let (before, share) = (&self.before.0, self.before.1);
        match (self.text.is_some(), self.is_smallest) {
            (true, _) => {
                let words = count(self.removed().len(), "word");
                format!(
                    "without {words}: {} ({:.3}) instead of {before} ({share:.3})",
                    self.after.0, self.after.1
                )
            }
            (false, true) => format!("no removal of words changes {before} ({share:.3})"),
            (false, false) => {
                format!("no set of words was found whose removal changes {before} ({share:.3})")
            }
        }
    }

    fn sentence(&self) -> String {
        let tried = count(self.tried, "text");
        match (self.text.is_some(), self.is_smallest) {
            (true, true) => format!("the smallest set: all smaller ones were tried ({tried})"),
            (true, false) => format!(
                "a small set, perhaps not the smallest: words were removed one after the other ({tried} tried)"
            ),
            (false, true) => format!("all sets but that of all words were tried ({tried})"),
            (false, false) => {
                format!("words were removed one after the other until one was left ({tried} tried)")
            }
        }
    }

    /// The text with the removed words struck out, as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let words = self.words.iter().map(|(word, is_removed)| match is_removed {
            true => format!(
                "<span style=\"background-color:rgba({AGAINST},0.35);border-radius:3px;padding:2px 4px;text-decoration:line-through\">{}</span>",
                escape(word)
            ),
            false => escape(word),
        });
        let text = words.collect::<Vec<_>>().join(" ");
        title(&self.title())
            + &format!("<div style=\"font-size:13px;line-height:2\">{text}</div>")
            + &sentence(&self.sentence())
    }

    /// The same as text, with removed words in brackets.
    pub fn to_plain(&self) -> String {
        let words = self.words.iter().map(|(word, is_removed)| {
            if *is_removed {
                format!("[{word}]")
            } else {
                word.clone()
            }
        });
        let text = words.collect::<Vec<_>>().join(" ");
        visible(&format!(
            "{}\n  {text}\n  {}\n",
            self.title(),
            self.sentence()
        ))
    }
}
