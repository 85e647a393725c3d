//! What hovering shows of an argument, of a call with its arguments, of a variable.

use serde_json::Value;
use stratoscope_diagnostics::arguments::{self, Argument, CallTable};
use stratoscope_diagnostics::{pages, rules};
use stratoscope_wire::MimeBundle;

use super::offer::{argument_at, call_of, optimizer_before};
use super::place;
use crate::evaluator::Variable;

/// What is known of the name at the cursor, or of the call it stands in, by the tables of arguments.
/// `None`: Rust knows better.
pub fn explain(code: &str, cursor: usize, detail: u8) -> Option<MimeBundle> {
    let place = place::find(code, cursor);
    if place.text.is_some() || place.comment {
        return None;
    }
    let word = &code[place.word.clone()];
    if let Some(entry) = rules::explain(word).filter(|_| word.starts_with("SC")) {
        let text = pages::plain(entry).trim_end().to_owned();
        return Some(bundle(text, pages::markdown(entry)));
    }
    if code[place.word.end..].starts_with('!')
        && let Some(call) = arguments::call(word)
    {
        return Some(of_call(call));
    }
    if code[..place.word.start].ends_with('.') {
        let chain = optimizer_before(code, &place)?;
        return arguments::find(chain.arguments, word).map(|it| of_argument(it, detail));
    }
    if let Some(bracket) = place.open.last()
        && let Some(call) = call_of(bracket)
        && code[bracket.element..place.word.start].trim().is_empty()
        && bracket.index >= call.operands.len()
    {
        return match arguments::find(call.arguments, word) {
            Some(argument) => Some(of_argument(argument, detail)),
            None if word.is_empty() => Some(of_call(call)),
            None => None,
        };
    }
    // On a literal: the argument that it is the value of. A name has a meaning of its own.
    let is_literal = word.is_empty() || word.starts_with(|it: char| it.is_ascii_digit());
    let argument = argument_at(code, &place).filter(|_| is_literal);
    argument.map(|argument| of_argument(argument, detail))
}

/// A variable of the notebook.
pub fn variable(variable: &Variable) -> MimeBundle {
    let Variable {
        name, type_name, ..
    } = variable;
    let mut plain = format!("let {name}: {type_name}");
    if let Some(cell) = variable.cell {
        plain += &format!("\n\nmade in In[{cell}]");
    }
    let markdown = plain.replacen(
        &format!("let {name}: {type_name}"),
        &format!("```rust\nlet {name}: {type_name}\n```"),
        1,
    );
    bundle(plain, markdown)
}

/// An argument: what it is in a line, what it does; `detail` 1 adds what excludes it and where its
/// default comes from.
fn of_argument(argument: &Argument, detail: u8) -> MimeBundle {
    let head = format!(
        "{}: {} (default: {})",
        argument.name, argument.expects, argument.default
    );
    let mut rest = format!("\n\n{}", argument.doc);
    if detail > 0 {
        rest += &format!("\n\nThe default is from: {}.", argument.origin);
        for (other, why) in argument.conflicts {
            rest += &format!("\n\nNot beside `{other}`: {why}.");
        }
    }
    bundle(
        format!("{head}{rest}"),
        format!(
            "**`{}`** {}{rest}",
            argument.name,
            &head[argument.name.len()..]
        ),
    )
}

/// A call and the table of its arguments.
fn of_call(call: &CallTable) -> MimeBundle {
    let title = format!("{}!({}, …)", call.name, call.operands.join(", "));
    let width = call.arguments.iter().map(|it| it.name.len()).max();
    let width = width.unwrap_or(0);
    let mut plain = format!("{title}\n");
    let mut markdown =
        format!("**`{title}`**\n\n| argument | type | default | |\n| --- | --- | --- | --- |\n");
    for argument in call.arguments {
        let first = argument.doc.split(". ").next().unwrap_or(argument.doc);
        plain += &format!(
            "\n{:width$}  {} (default: {})",
            argument.name, argument.expects, argument.default
        );
        markdown += &format!(
            "| `{}` | {} | {} | {} |\n",
            argument.name,
            argument.expects,
            argument.default,
            first.trim_end_matches('.')
        );
    }
    bundle(plain, markdown)
}

fn bundle(plain: String, markdown: String) -> MimeBundle {
    MimeBundle::from_iter([
        ("text/plain".to_owned(), Value::from(plain)),
        ("text/markdown".to_owned(), Value::from(markdown)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cursor is at `|`; `expected` begins the text; empty: nothing is known.
    fn check(marked: &str, expected: &str) {
        let cursor = marked.find('|').expect("a cursor");
        let code = marked.replacen('|', "", 1);
        let found = explain(&code, cursor, 0);
        let text = found
            .as_ref()
            .and_then(|found| found["text/plain"].as_str());
        let text = text.unwrap_or_default();
        assert!(text.starts_with(expected), "{marked}: {text}");
        assert_eq!(text.is_empty(), expected.is_empty(), "{marked}: {text}");
    }

    #[test]
    fn hovering_shows_the_argument_or_the_call() {
        check(
            "compile!(model, steps_per_exe|cution = 16)",
            "steps_per_execution: integer ≥ 1 (default: 1)",
        );
        check(
            "compile!(model, steps_per_execution = 1|6)",
            "steps_per_execution: ",
        );
        check("fit|!(model, data)", "fit!(model, data, …)\n\nepochs");
        check("fit!(model, data, |)", "fit!(model, data, …)");
        check("fit!(mod|el, data)", "");
        check(
            "compile!(m, optimizer = AdamW::new(5e-5).weight_de|cay(0.1))",
            "weight_decay: number ≥ 0",
        );
        check("compile!(m, optimizer = Ada|mW::new(5e-5))", "");
        check("%explain SC01|02", "SC0102");
        check("let x = ve|c![1];", "");
        check("x.weight_decay|(1)", "");
    }

    #[test]
    fn more_detail_says_more() {
        let code = "compile!(m, loss = 1)";
        let text =
            |detail| explain(code, 14, detail).map(|found| found["text/plain"].to_string().len());
        assert!(text(1) > text(0));
    }
}
