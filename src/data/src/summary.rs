//! How a data set is displayed at the end of a cell: the number of examples of each class, and the
//! first few examples, as plain text, HTML and JSON.

use std::fmt::{self, Write};

use serde_json::{Value, json};
use stratoscope_render::html::{data_table, escape};
use stratoscope_render::text;

use crate::annotation::Word;
use crate::dataset::Dataset;
use crate::example::{Example, Label};
use crate::similar_labels::similar_labels;
use crate::tags::{Entity, TagScheme};

/// How many examples are shown.
const SHOWN_EXAMPLES: usize = 5;

/// How many characters of a text are shown in plain text, where a line should not break.
const SHOWN_CHARACTERS: usize = 72;

/// Styles of a table's cells.
const CELL: &str = "text-align:left;padding:2px 10px 2px 0;vertical-align:top";
const HEAD: &str = "text-align:left;padding:2px 10px 4px 0;font-weight:600;\
                    border-bottom:1px solid #80808080";
const NUMBER: &str = "text-align:right;padding:2px 10px 2px 0;vertical-align:top";

impl Dataset {
    /// The summary as plain text.
    pub fn to_plain(&self) -> String {
        let mut text = format!("{}: {}", self.source, self.headline());
        let widest = self
            .label_names
            .iter()
            .map(|name| name.chars().count())
            .max();
        for (name, count) in self.label_names.iter().zip(self.class_counts()) {
            let width = widest.unwrap_or(0);
            let share = self.percent(count);
            // Writing to a string cannot fail.
            let _ = write!(text, "\n  {name:<width$}  {count:>6}  {share:>5.1} %");
        }
        text += &self.rows_as_text(SHOWN_EXAMPLES);
        for note in self.notes() {
            text += &format!("\n{note}");
        }
        text::visible(&text)
    }

    /// The summary as static HTML: literal inline styles and no color of text or background but
    /// the bars', so that it reads on light and dark pages and survives sanitizing.
    pub fn to_html(&self) -> String {
        let mut html = format!(
            "<div style=\"font-size:13px;line-height:1.45\">\
             <div style=\"margin-bottom:6px\"><b>{}</b> · {}</div>",
            escape(&self.source),
            escape(&self.headline())
        );
        if !self.label_names.is_empty() {
            let counts = self.class_counts();
            let largest = counts.iter().copied().max().unwrap_or(0).max(1);
            let (class, counted) = match self.is_tagged() {
                true => ("tag", "words"),
                false => ("class", "examples"),
            };
            let _ = write!(
                html,
                "{}<tr><th style=\"{HEAD}\">{class}</th><th style=\"{HEAD}\">name</th>\
                 <th style=\"{HEAD}\">{counted}</th><th style=\"{HEAD}\"></th></tr>",
                data_table("border-collapse:collapse;margin-bottom:8px")
            );
            for (class, (name, count)) in self.label_names.iter().zip(counts).enumerate() {
                let bar = (120 * count).div_ceil(largest);
                let _ = write!(
                    html,
                    "<tr><td style=\"{NUMBER}\">{class}</td><td style=\"{CELL}\">{}</td>\
                     <td style=\"{NUMBER}\">{count}</td><td style=\"{CELL}\">\
                     <div style=\"background-color:#4c8dd6;height:10px;margin-top:5px;width:{bar}px\">\
                     </div></td></tr>",
                    escape(name)
                );
            }
            html.push_str("</table>");
        }
        html.push_str(&self.rows_as_html(SHOWN_EXAMPLES));
        for note in self.notes() {
            let _ = write!(
                html,
                "<div style=\"margin-top:6px\">{}</div>",
                escape(&note)
            );
        }
        html.push_str("</div>");
        html
    }

    /// What is to be known of the rows and labels.
    fn notes(&self) -> impl Iterator<Item = String> {
        let notes = [self.skipped.sentence(), similar_labels(&self.label_names)];
        self.remarks
            .iter()
            .cloned()
            .chain(notes.into_iter().flatten())
    }

    /// The first examples as an HTML table.
    fn rows_as_html(&self, count: usize) -> String {
        let (paired, labelled) = (self.is_paired(), self.is_labelled());
        let heads = [
            ("row", true),
            ("text", true),
            ("second text", paired),
            ("choices", self.has_choices()),
            ("label", labelled),
        ];
        let mut html = data_table("border-collapse:collapse") + "<tr>";
        for (head, _) in heads.iter().filter(|(_, shown)| *shown) {
            let _ = write!(html, "<th style=\"{HEAD}\">{head}</th>");
        }
        html.push_str("</tr>");
        for example in self.examples.iter().take(count) {
            let pair = example.pair.as_deref().unwrap_or_default();
            let _ = write!(
                html,
                "<tr><td style=\"{NUMBER}\">{}</td><td style=\"{CELL}\">{}</td>",
                example.row,
                escape(&example.text)
            );
            if paired {
                let _ = write!(html, "<td style=\"{CELL}\">{}</td>", escape(pair));
            }
            if self.has_choices() {
                let choices = escape(&example.choices().unwrap_or_default().join(" | "));
                let _ = write!(html, "<td style=\"{CELL}\">{choices}</td>");
            }
            if labelled {
                let label = escape(&self.label_text(example));
                let _ = write!(html, "<td style=\"{CELL}\">{label}</td>");
            }
            html.push_str("</tr>");
        }
        html.push_str("</table>");
        html
    }

    /// A line for each of the first examples.
    fn rows_as_text(&self, count: usize) -> String {
        let mut text = String::new();
        for example in self.examples.iter().take(count) {
            let label = self.label_text(example);
            let pair = example
                .pair
                .as_deref()
                .map(|pair| format!(" | {}", shorten(pair)));
            let texts = format!("{}{}", shorten(&example.text), pair.unwrap_or_default());
            // Writing to a string cannot fail.
            let _ = write!(text, "\n  {:>6}  {texts}", example.row);
            if !label.is_empty() {
                let _ = write!(text, "  → {label}");
            }
        }
        text
    }

    /// The summary as JSON.
    pub fn to_json(&self) -> Value {
        let classes = self.label_names.iter().zip(self.class_counts());
        let example = |example: &Example| {
            let label = match example.label {
                Some(Label::Class(_)) => json!(self.label_text(example)),
                Some(Label::Value(value)) => json!(value),
                None => Value::Null,
            };
            json!({ "row": example.row, "text": example.text, "pair": example.pair, "label": label })
        };
        json!({
            "source": self.source,
            "rows": self.len(),
            "classes": classes
                .map(|(name, count)| json!({ "name": name, "rows": count }))
                .collect::<Vec<_>>(),
            "examples": self.examples.iter().take(SHOWN_EXAMPLES).map(example).collect::<Vec<_>>(),
        })
    }

    /// `2000 examples, 8 classes`; `800 sentences of 6968 words, 5 tags`; `1280 questions, 320 of them without an answer`.
    fn headline(&self) -> String {
        let counted = self.counted();
        match self.weights_in_words() {
            Some(weights) => format!("{counted}, {weights}"),
            None => counted,
        }
    }

    fn counted(&self) -> String {
        if self.is_tagged() {
            let words: usize = self.class_counts().iter().sum();
            let sentences = text::count(self.len(), "sentence");
            let (words, tags) = (
                text::count(words, "word"),
                text::count(self.num_labels(), "tag"),
            );
            return format!("{sentences} of {words}, {tags}");
        }
        if self.has_choices() {
            let prompts = text::count(self.len(), "prompt");
            return format!("{prompts} with {} choices each", self.num_labels());
        }
        let answers = self.examples.iter().filter_map(Example::answers);
        let without = answers.clone().filter(|answers| answers.is_empty()).count();
        if answers.count() == self.len() && !self.is_empty() {
            let questions = text::count(self.len(), "question");
            return format!(
                "{questions}, {} of them without an answer",
                text::thousands(without)
            );
        }
        let noun = if self.is_paired() { "pair" } else { "example" };
        let labels = match self.num_labels() {
            0 if self.is_labelled() => "a number each".to_owned(),
            0 => "no labels".to_owned(),
            labels if self.has_label_sets() => {
                format!("any of {}", text::count(labels, "label"))
            }
            1 => "1 class".to_owned(),
            classes => format!("{classes} classes"),
        };
        format!("{}, {labels}", text::count(self.len(), noun))
    }

    fn is_labelled(&self) -> bool {
        let is_labelled =
            |example: &Example| example.label.is_some() || example.annotation.is_some();
        self.examples.iter().any(is_labelled)
    }

    /// Of all examples or, where words are tagged, of all words.
    fn percent(&self, count: usize) -> f64 {
        let all = match self.is_tagged() {
            true => self.class_counts().iter().sum(),
            false => self.len(),
        };
        100.0 * count as f64 / all.max(1) as f64
    }

    /// The name of the class, the number, the entities, the answer, the right choice, or nothing.
    fn label_text(&self, example: &Example) -> String {
        if let Some(words) = example.words() {
            return self.entities_text(&example.text, words);
        }
        if let Some(answers) = example.answers() {
            let context = example.pair.as_deref().unwrap_or_default();
            let first = answers
                .first()
                .and_then(|answer| context.get(answer.range.clone()));
            return first.unwrap_or("no answer").to_owned();
        }
        if example.classes().is_some() {
            let names = example.label_name.as_deref();
            return names
                .filter(|it| !it.is_empty())
                .unwrap_or("none")
                .to_owned();
        }
        if let (Some(choices), Some(right)) = (example.choices(), example.class()) {
            return choices.get(right).cloned().unwrap_or_default();
        }
        match example.label {
            Some(Label::Class(class)) => match self.label_names.get(class) {
                Some(name) => name.clone(),
                None => format!("class {class}"),
            },
            Some(Label::Value(value)) => value.to_string(),
            None => String::new(),
        }
    }
}

impl Dataset {
    /// `hexchat (PACKAGE), net (SECTION)`
    fn entities_text(&self, text: &str, words: &[Word]) -> String {
        let scheme = TagScheme::of(&self.label_names);
        let tags: Vec<usize> = words
            .iter()
            .map(|word| word.tag.unwrap_or(usize::MAX))
            .collect();
        let named = |entity: &Entity| {
            let (first, last) = (&words[entity.words.start], &words[entity.words.end - 1]);
            let part = text
                .get(first.range.start..last.range.end)
                .unwrap_or_default();
            format!("{part} ({})", scheme.types()[entity.of_type])
        };
        scheme
            .entities(&tags)
            .iter()
            .map(named)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

/// The summary instead of thousands of rows: this is what a cell without rich display shows.
impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

/// The first examples of a data set: what `train.head(5)` shows.
#[derive(Clone, PartialEq)]
pub struct Head {
    shown: Dataset,
    /// How many examples the data set has.
    all: usize,
}

impl Head {
    pub(crate) fn of(shown: Dataset, all: usize) -> Self {
        Self { shown, all }
    }

    fn last_line(&self) -> String {
        let shown = self.shown.len();
        format!("{shown} of {}", text::count(self.all, "example"))
    }

    /// A line for each example.
    pub fn to_plain(&self) -> String {
        let rows = self.shown.rows_as_text(self.shown.len());
        let rows = rows.trim_start_matches('\n');
        let end = if rows.is_empty() { "" } else { "\n" };
        format!("{rows}{end}{}", self.last_line())
    }

    /// A table, as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        format!(
            "<div style=\"font-size:13px;line-height:1.45\">{}<div style=\"opacity:0.8\">{}</div></div>",
            self.shown.rows_as_html(self.shown.len()),
            escape(&self.last_line())
        )
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl Example {
    /// Its fields by name: texts or numbers, and the label.
    fn parts(&self) -> Vec<(&'static str, String)> {
        let place = match self.line {
            Some(line) => format!("{}, line {line} of the file", self.row),
            None => self.row.to_string(),
        };
        let text = match self.features.is_empty() {
            true => "text",
            false => "numbers",
        };
        let mut parts = vec![("row", place), (text, self.text.clone())];
        parts.extend(self.pair.clone().map(|pair| ("second text", pair)));
        parts.extend(self.choices().map(|it| ("choices", it.join(" | "))));
        let label = self.label.map(|label| match (label, &self.label_name) {
            (Label::Class(class), Some(name)) if **name != *class.to_string() => {
                format!("{name} (class {class})")
            }
            (Label::Class(class), _) => format!("class {class}"),
            (Label::Value(value), _) => value.to_string(),
        });
        let of_set = self.classes().and(self.label_name.as_deref());
        let of_set = of_set.filter(|names| !names.is_empty()).map(str::to_owned);
        let label = label.or(of_set);
        parts.push(("label", label.unwrap_or_else(|| "none".to_owned())));
        parts
    }

    /// A line for each of its parts, as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let rows = self.parts().into_iter().map(|(name, value)| {
            format!(
                "<tr><td style=\"{CELL};opacity:0.8\">{name}</td><td style=\"{CELL}\">{}</td></tr>",
                escape(&value)
            )
        });
        let rows: String = rows.collect();
        format!("<table style=\"border-collapse:collapse;font-size:13px\">{rows}</table>")
    }
}

impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.parts();
        let width = parts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let lines: Vec<String> = parts
            .into_iter()
            .map(|(name, value)| format!("{name:width$}  {value}"))
            .collect();
        f.write_str(&lines.join("\n"))
    }
}

/// The text shortened so that a line does not break, with a mark where characters were left out.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use stratoscope_diagnostics::Result;

    use super::*;

    #[test]
    fn plain_text_counts_classes_and_shows_rows() {
        let data =
            Dataset::from_labelled([("sans serif", "fonts"), ("chess", "games"), ("go", "games")]);
        let expected = "\
rows in memory: 3 examples, 2 classes
  fonts       1   33.3 %
  games       2   66.7 %
       0  sans serif  → fonts
       1  chess  → games
       2  go  → games";
        assert_eq!(data.to_plain(), expected);
        assert_eq!(format!("{data:?}"), expected);
    }

    #[test]
    fn html_shows_text_as_text() {
        let data = Dataset::from_labelled([("<b>&\"", "<script>")]);
        let html = data.to_html();
        assert!(
            html.contains("&lt;b&gt;&amp;&quot;") && html.contains("&lt;script&gt;"),
            "{html}"
        );
        assert!(
            !html.contains("<script") && !html.contains("<style"),
            "{html}"
        );
    }

    #[test]
    fn json_has_counts_and_rows() {
        let json = Dataset::from_labelled([("chess", "games")]).to_json();
        assert_eq!(json["classes"][0], json!({ "name": "games", "rows": 1 }));
        assert_eq!(json["examples"][0]["label"], "games");
        let unlabelled = Dataset::from_pairs([("a", "b")]);
        assert_eq!(unlabelled.to_json()["examples"][0]["pair"], "b");
        assert!(
            unlabelled
                .to_plain()
                .starts_with("pairs in memory: 1 pair, no labels")
        );
    }

    #[test]
    fn tagged_words_and_answers_are_shown() -> Result<()> {
        let words = Dataset::from_words([
            (
                vec!["Ada", "Lovelace", "lived", "in", "London"],
                vec!["B-PER", "I-PER", "O", "O", "B-LOC"],
            ),
            (vec!["it", "rains"], vec!["O", "O"]),
        ])?;
        let shown = words.to_plain();
        assert!(
            shown.starts_with("words in memory: 2 sentences of 7 words, 4 tags"),
            "{shown}"
        );
        assert!(shown.contains("  O           4   57.1 %"), "{shown}");
        assert!(
            shown.contains("in London  → Ada Lovelace (PER), London (LOC)\n"),
            "{shown}"
        );
        assert!(shown.ends_with("it rains"), "{shown}");
        assert!(words.to_html().contains("London (LOC)"));
        let questions = Dataset::from_questions([
            ("Who?", "Ada wrote it.", "Ada"),
            ("When?", "Ada wrote it.", ""),
        ])?;
        let shown = questions.to_plain();
        assert!(
            shown.contains(": 2 questions, 1 of them without an answer\n"),
            "{shown}"
        );
        assert!(
            shown.contains("Who? | Ada wrote it.  → Ada\n") && shown.ends_with("→ no answer"),
            "{shown}"
        );
        Ok(())
    }

    #[test]
    fn a_head_and_an_example_are_shown() {
        let data = Dataset::from_labelled([("<b>", "fonts"), ("chess", "games")]);
        assert_eq!(
            data.head(1).to_plain(),
            "       0  <b>  → fonts\n1 of 2 examples"
        );
        assert_eq!(
            data.head(9).to_plain().lines().last(),
            Some("2 of 2 examples")
        );
        assert_eq!(
            Dataset::from_texts([""; 0]).head(5).to_plain(),
            "0 of 0 examples"
        );
        assert!(data.head(1).to_html().contains("&lt;b&gt;"));
        assert_eq!(
            data[1].to_string(),
            "row    1\ntext   chess\nlabel  games (class 1)"
        );
        assert!(data[0].to_html().contains("&lt;b&gt;"));
        let pair = &Dataset::from_pairs([("a", "b")])[0];
        assert!(
            pair.to_string()
                .ends_with("second text  b\nlabel        none"),
            "{pair}"
        );
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let data = Dataset::from_texts(["ü".repeat(100)]);
        assert!(
            data.to_plain()
                .contains(&format!("{}…", "ü".repeat(SHOWN_CHARACTERS)))
        );
    }
}
