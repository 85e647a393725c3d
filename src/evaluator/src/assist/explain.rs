//! What hovering shows of an argument, of a call with its arguments, of a variable.

use serde_json::Value;
use stratoscope_diagnostics::arguments::{self, Argument, CallTable, Optimizer};
use stratoscope_diagnostics::{pages, rules};
use stratoscope_render::text;
use stratoscope_wire::MimeBundle;

use super::offer::{argument_at, call_of, optimizer_before};
use stratoscope_cell_text::cursor as place;
use stratoscope_session::Variable;

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
    // `?fit` asks as `?fit!` does.
    let is_macro = code[place.word.end..].starts_with('!') || code.trim() == word;
    if is_macro && let Some(call) = arguments::call(word) {
        return Some(of_call(call, detail));
    }
    if is_macro && word == "scope" {
        return Some(of_scope());
    }
    let is_member = code[..place.word.start].ends_with(['.', ':']);
    if let Some(optimizer) = arguments::optimizer(word).filter(|_| !is_member) {
        return Some(of_optimizer(optimizer, detail));
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
            None if word.is_empty() => Some(of_call(call, detail)),
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
fn of_call(call: &CallTable, detail: u8) -> MimeBundle {
    let title = format!("{}!({}, …)", call.name, call.operands.join(", "));
    let does = match call.name {
        "compile" => {
            "Sets how a model is trained. It changes the model, and returns a receipt that shows it."
        }
        "fit" => "Trains a model and returns its `History`; model and data stay yours.",
        "start" => {
            "Makes a run that trains when `run.step(10)?`, `run.epoch()?` or `run.finish()?` is called. Takes what \
             `fit!` takes."
        }
        "evaluate" => "Loss and metrics of a data set, without dropout.",
        _ => "",
    };
    table(&title, does, call.arguments, detail)
}

/// An optimizer and the table of its methods.
fn of_optimizer(optimizer: &Optimizer, detail: u8) -> MimeBundle {
    let title = format!("{}::new(learning_rate)", optimizer.name);
    let does = "The rate is a number or a schedule, as `warmup_linear(5e-5, 0.1)`. Each setting is a method: \
                `.global_clipnorm(1.0)`.";
    table(&title, does, optimizer.arguments, detail)
}

fn of_scope() -> MimeBundle {
    let title = "scope!(strategy, { … })";
    let does = "Runs its statements under a strategy: the variables of every model that is made inside are placed \
                by it. What the statements bind stays a variable of the notebook; as an expression, it returns the \
                value of the last one.";
    let example = "let strategy = MirroredStrategy::logical(2)?;\n\
                   scope!(strategy, {\n    \
                   let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
                   compile!(model, optimizer = AdamW::new(5e-5))?;\n\
                   });";
    let beside = "`%%scope strategy` as a cell's first line does the same for the whole cell; `strategy.set_default()` for \
                  the cells that follow.";
    bundle(
        format!("{title}\n\n{does}\n\n{example}\n\n{beside}"),
        format!("**`{title}`**\n\n{does}\n\n```rust\n{example}\n```\n\n{beside}"),
    )
}

/// A title, a sentence, and a row for each argument; `detail` 1 adds all that is known of each.
fn table(title: &str, does: &str, arguments: &[Argument], detail: u8) -> MimeBundle {
    let width = arguments.iter().map(|it| it.name.len()).max();
    let width = width.unwrap_or(0);
    let mut plain = format!("{title}\n\n{does}\n");
    let mut markdown = format!(
        "**`{title}`**\n\n{does}\n\n| argument | type | default | |\n| --- | --- | --- | --- |\n"
    );
    for argument in arguments {
        let first = argument.doc.split(". ").next().unwrap_or(argument.doc);
        plain += &format!(
            "\n{:width$}  {} (default: {})",
            argument.name, argument.expects, argument.default
        );
        if detail > 0 {
            for line in text::wrap(argument.doc, 100 - 4) {
                plain += &format!("\n    {line}");
            }
        }
        let first = match detail {
            0 => first,
            _ => argument.doc,
        };
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
        check(
            "fit|!(model, data)",
            "fit!(model, data, …)\n\nTrains a model",
        );
        check("fit|", "fit!(model, data, …)\n\nTrains a model");
        check(
            "sco|pe!(strategy, {})",
            "scope!(strategy, { … })\n\nRuns its",
        );
        check(
            "let a = Adam|W::new(5e-5);",
            "AdamW::new(learning_rate)\n\n",
        );
        check("let fit = 1; fi|t", "");
        check("fit!(model, data, |)", "fit!(model, data, …)");
        check("fit!(mod|el, data)", "");
        check(
            "compile!(m, optimizer = AdamW::new(5e-5).weight_de|cay(0.1))",
            "weight_decay: number ≥ 0",
        );
        check("compile!(m, optimizer = Ada|mW::new(5e-5))", "AdamW::new(");
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
        // `?fit!` says all that Shift-Tab does, and more.
        let of = |code: &str, detail| {
            let found = explain(code, 3, detail).expect("a call");
            found["text/plain"].as_str().unwrap_or_default().to_owned()
        };
        for line in of("fit!(m, d)", 0).lines() {
            assert!(of("fit!", 1).lines().any(|it| it == line), "{line}");
        }
        assert!(of("fit!", 1).len() > 2 * of("fit!", 0).len());
    }
}
