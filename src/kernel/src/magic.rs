//! Cells that are a question to the kernel and not Rust: one line that begins with `%` or `?`.
//!
//! They are answered beside the evaluator, so that they work when the toolchain does not. Cells
//! that begin with `%%` are Rust with an instruction for the rewriter, and none of this file's.

use serde_json::Value;
use stratoscope_diagnostics::{Entry, pages, rules};
use stratoscope_wire::MimeBundle;

use crate::evaluator::{CellError, CellOutcome, Evaluate, Outputs, Variable};

mod profile;
mod warnings;

/// What the magics are called, with what they do.
const MAGICS: [(&str, &str); 6] = [
    (
        "%explain CODE",
        "the page of a diagnostic, such as `%explain SC0102`",
    ),
    (
        "%profile NAME",
        "a version of TensorFlow whose words the cards add, such as `tf-2.3`; `off`",
    ),
    (
        "%warnings",
        "what was told; `silence`, `deny` or `default` with codes; `again`",
    ),
    ("%vars", "the variables that live between cells"),
    ("%help", "this list"),
    ("?name", "what is known of a name"),
];

/// A magic that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Magic {
    /// `%explain CODE`; without a code, all of them.
    Explain(String),
    /// `%profile`, `%profile NAME`, `%profile off`
    Profile(String),
    /// `%warnings`, alone or with what is to be done
    Warnings(String),
    /// `%vars`
    Variables,
    /// `%help`
    Help,
    /// `?name`
    Inspect(String),
    /// Begins like a magic and is none.
    Unknown(String),
}

impl Magic {
    /// The magic that a cell is; `None`: it is Rust.
    pub fn parse(code: &str) -> Option<Self> {
        let code = code.trim();
        if code.contains('\n') || code.starts_with("%%") {
            return None;
        }
        if let Some(name) = code.strip_prefix('?') {
            return Some(Magic::Inspect(name.trim().to_owned()));
        }
        let (name, rest) = match code.strip_prefix('%')?.split_once(char::is_whitespace) {
            Some((name, rest)) => (name, rest.trim()),
            None => (code.strip_prefix('%')?, ""),
        };
        Some(match name {
            "explain" => Magic::Explain(rest.to_owned()),
            "profile" => Magic::Profile(rest.to_owned()),
            "warnings" => Magic::Warnings(rest.to_owned()),
            "vars" => Magic::Variables,
            "help" => Magic::Help,
            other => Magic::Unknown(other.to_owned()),
        })
    }

    /// Whether an answer needs the evaluator.
    pub fn needs_evaluator(&self) -> bool {
        matches!(
            self,
            Magic::Variables | Magic::Inspect(_) | Magic::Profile(_) | Magic::Warnings(_)
        )
    }

    /// Answers without the evaluator.
    pub fn answer(&self, number: u64, outputs: &dyn Outputs) -> CellOutcome {
        match self {
            Magic::Explain(code) if code.is_empty() => show(outputs, list_of_codes()),
            Magic::Explain(code) => match rules::explain(code) {
                Some(entry) => show_page(outputs, entry),
                None => {
                    let evalue = format!("there is no `{code}`; `%explain` lists all codes");
                    return fail(number, "UnknownCode", evalue);
                }
            },
            Magic::Help => show(outputs, help()),
            Magic::Unknown(name) => {
                let evalue = format!("there is no magic `%{name}`; `%help` lists all");
                return fail(number, "UnknownMagic", evalue);
            }
            Magic::Variables | Magic::Inspect(_) | Magic::Profile(_) | Magic::Warnings(_) => {
                return fail(
                    number,
                    "NoEvaluator",
                    "this magic needs the evaluator".to_owned(),
                );
            }
        }
        CellOutcome::Ok
    }

    /// Answers with the evaluator.
    pub fn answer_with(
        &self,
        number: u64,
        outputs: &dyn Outputs,
        evaluator: &mut dyn Evaluate,
    ) -> CellOutcome {
        match self {
            Magic::Variables => {
                outputs.result(variables(&evaluator.variables()));
                CellOutcome::Ok
            }
            Magic::Profile(asked) => {
                let mut told = Err(String::new());
                evaluator.settings(&mut |settings| told = profile::answer(asked, settings));
                match told {
                    Ok(text) => show(outputs, text),
                    Err(evalue) => return fail(number, "UnknownProfile", evalue),
                }
                CellOutcome::Ok
            }
            Magic::Warnings(asked) => {
                let mut told = Err(String::new());
                evaluator.settings(&mut |settings| told = warnings::answer(asked, settings));
                match told {
                    Ok(data) => outputs.display(data, MimeBundle::new(), None, false),
                    Err(evalue) => return fail(number, "UnknownWarning", evalue),
                }
                CellOutcome::Ok
            }
            Magic::Inspect(name) => match evaluator.inspect(name, name.len(), 1) {
                Some(data) => {
                    outputs.page(data);
                    CellOutcome::Ok
                }
                None => fail(
                    number,
                    "UnknownName",
                    format!("nothing is known of `{name}`"),
                ),
            },
            _ => self.answer(number, outputs),
        }
    }
}

fn show(outputs: &dyn Outputs, text: String) {
    let data = MimeBundle::from_iter([("text/plain".to_owned(), Value::from(text))]);
    outputs.display(data, MimeBundle::new(), None, false);
}

fn fail(number: u64, ename: &str, evalue: String) -> CellOutcome {
    CellOutcome::Error(CellError {
        ename: ename.to_owned(),
        traceback: vec![
            format!("Cell In[{number}], line 1"),
            format!("{ename}: {evalue}"),
        ],
        evalue,
    })
}

/// The page of a rule: front ends draw the Markdown, a terminal has the text.
fn show_page(outputs: &dyn Outputs, entry: &Entry) {
    let data = MimeBundle::from_iter([
        (
            "text/markdown".to_owned(),
            Value::from(pages::markdown(entry)),
        ),
        (
            "text/plain".to_owned(),
            Value::from(pages::plain(entry).trim_end()),
        ),
    ]);
    outputs.display(data, MimeBundle::new(), None, false);
}

fn list_of_codes() -> String {
    rules::CATALOGUE
        .iter()
        .map(|entry| format!("{}  {}\n", entry.page.code, entry.page.name))
        .collect::<String>()
        .trim_end()
        .to_owned()
}

fn help() -> String {
    let line = |(name, effect): &(&str, &str)| format!("{name:<14} {effect}\n");
    MAGICS
        .iter()
        .map(line)
        .collect::<String>()
        .trim_end()
        .to_owned()
}

/// A table of variables, as text and as HTML.
fn variables(variables: &[Variable]) -> MimeBundle {
    let cell = |it: &Variable| {
        it.cell
            .map_or(String::new(), |number| format!("In[{number}]"))
    };
    let width = variables
        .iter()
        .map(|it| it.name.chars().count())
        .max()
        .unwrap_or(0);
    let mut plain = String::new();
    let mut html = String::from(
        "<table><thead><tr><th>name</th><th>type</th><th>made in</th></tr></thead><tbody>",
    );
    for it in variables {
        plain.push_str(&format!(
            "{:<width$}  {}  {}\n",
            it.name,
            it.type_name,
            cell(it)
        ));
        let [name, kind, cell] = [&it.name, &it.type_name, &cell(it)].map(|text| escaped(text));
        html.push_str(&format!(
            "<tr><td style=\"text-align:left\">{name}</td>\
             <td style=\"text-align:left\"><code>{kind}</code></td><td>{cell}</td></tr>"
        ));
    }
    html.push_str("</tbody></table>");
    if variables.is_empty() {
        plain = "no variables yet".to_owned();
        html = "<em>no variables yet</em>".to_owned();
    }
    MimeBundle::from_iter([
        ("text/html".to_owned(), Value::from(html)),
        ("text/plain".to_owned(), Value::from(plain.trim_end())),
    ])
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: &str, expected: Option<Magic>) {
        assert_eq!(Magic::parse(code), expected, "{code}");
    }

    #[test]
    fn magics_are_told_from_rust() {
        check("%explain SC0102", Some(Magic::Explain("SC0102".into())));
        check("  %explain\n", Some(Magic::Explain(String::new())));
        check("%vars", Some(Magic::Variables));
        check("%profile", Some(Magic::Profile(String::new())));
        check("%profile tf-2.3", Some(Magic::Profile("tf-2.3".into())));
        check(
            "%warnings deny SC0701",
            Some(Magic::Warnings("deny SC0701".into())),
        );
        check("?Vec", Some(Magic::Inspect("Vec".into())));
        check("%magic 1", Some(Magic::Unknown("magic".into())));
        check("%%scope strategy\nlet x = 1;", None);
        check("%%scope strategy", None);
        check("1 % 2", None);
        check("let x = f()?;", None);
        check("%vars\nlet x = 1;", None);
        check("", None);
    }

    #[test]
    fn types_are_escaped_in_the_table() {
        let variable = Variable {
            name: "v".into(),
            type_name: "Vec<u8>".into(),
            cell: Some(2),
        };
        let table = variables(&[variable]);
        assert_eq!(table["text/plain"], "v  Vec<u8>  In[2]");
        let html = table["text/html"].as_str().expect("is text");
        assert!(html.contains("<code>Vec&lt;u8&gt;</code>"), "{html}");
    }
}
