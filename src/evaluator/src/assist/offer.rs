//! Completions at the cursor.

use std::collections::BTreeSet;

use stratoscope_diagnostics::arguments::{self, Accepts, Argument, IdentifierKind};
use stratoscope_diagnostics::{Profile, rules};

use super::members::{self, Recognized};
use super::question::{Asked, Question};
use super::{item, names, rank};
use crate::magic;
use stratoscope_cell_text::cursor::{self as place, Bracket, Place, is_name};
use stratoscope_session::{Completion, Completions, Variable};

/// The completions of a place where only a few things can stand; `None`: Rust decides.
pub fn offer(code: &str, cursor: usize, variables: &[Variable]) -> Option<Completions> {
    if let Some(found) = in_magic(code, cursor) {
        return Some(found);
    }
    let place = place::find(code, cursor);
    if place.comment {
        return Some(at(cursor..cursor, Vec::new()));
    }
    if let Some(start) = place.text {
        return in_text(code, start, cursor, &place);
    }
    let typed = &code[place.word.start..cursor];
    let items = if code[..place.word.start].ends_with('.') {
        methods(code, &place)?
    } else {
        elements(code, &place, variables)?
    };
    let items: Vec<Completion> = items
        .into_iter()
        .filter(|item| item.text.starts_with(typed))
        .collect();
    // A name that only Rust knows, such as a function of the notebook.
    (!items.is_empty()).then(|| at(place.word, items))
}

/// Variables, the prelude's names, keywords and crates that begin as the word at the cursor.
pub fn any_name(code: &str, cursor: usize, variables: &[Variable]) -> Completions {
    let word = place::word(code, cursor);
    let typed = &code[word.start..cursor];
    let before = &code[..word.start];
    let place = place::find(code, cursor);
    // Behind a dot or a path only rust-analyzer knows.
    if before.ends_with(['.', ':']) || place.text.is_some() || place.comment || typed.is_empty() {
        return at(cursor..cursor, Vec::new());
    }
    let known = variables.iter().map(variable);
    let prelude = names::prelude()
        .iter()
        .map(|name| item(name, "instance", ""));
    let keywords = names::KEYWORDS.map(|name| item(name, "keyword", ""));
    let crates = names::CRATES.map(|name| item(name, "module", ""));
    let items = known.chain(prelude).chain(crates).chain(keywords);
    at(
        word,
        items.filter(|item| item.text.starts_with(typed)).collect(),
    )
}

/// What is left of what rust-analyzer offers, in the order in which people want it: no internals, and of a model the
/// calls of the DSL instead of the methods that they are made of.
pub fn refine(code: &str, question: &Question, mut items: Vec<Completion>) -> Completions {
    let of_path = question.asked == Asked::Path;
    let mut start = question.word.start;
    let mut seen = BTreeSet::new();
    // A method of several traits comes once for each.
    items.retain(|item| !is_internal(&item.text) && seen.insert(item.text.clone()));
    if of_path || question.asked == Asked::Member {
        let offered = items.iter().map(|item| &*item.text).collect();
        let Recognized { hidden, is_model } = members::recognize(&offered, of_path);
        items.retain(|item| !hidden.contains(&item.text) && !item.text.starts_with('_'));
        rank::sort(&mut items);
        if let Some(model) = receiver(code, start).filter(|_| is_model) {
            items = with_calls(model, items);
            start -= model.len() + 1;
        }
    }
    let typed = code.get(start..question.typed_to).unwrap_or_default();
    items.retain(|item| item.text.starts_with(typed) || called_on(&item.text, typed));
    at(start..question.word.end, items)
}

/// Names that the kernel or evcxr writes around a cell.
fn is_internal(name: &str) -> bool {
    name.starts_with("__") || name.starts_with("evcxr_") || name.starts_with("Evcxr")
}

/// The variable whose member begins at byte `at`.
fn receiver(code: &str, at: usize) -> Option<&str> {
    let before = code[..at].strip_suffix('.')?;
    let start = place::word(before, before.len()).start;
    let name = &before[start..];
    let is_alone = !before[..start].trim_end().ends_with(['.', ':']);
    (is_alone && name.starts_with(|it: char| it.is_alphabetic() || it == '_')).then_some(name)
}

/// The members of the variable `model`, its name before each, and first the calls that take a model.
fn with_calls(model: &str, items: Vec<Completion>) -> Vec<Completion> {
    let calls = arguments::CALLS.iter();
    let calls = calls.filter(|call| call.operands.first() == Some(&"model"));
    let is_call = |name: &str| calls.clone().any(|call| call.name == name);
    let members = items.into_iter().filter(|item| !is_call(&item.text));
    let members: Vec<Completion> = members
        .map(|member| Completion {
            text: format!("{model}.{}", member.text),
            ..member
        })
        .collect();
    let calls = calls.map(|call| {
        let text = format!("{}!({model}, ", call.name);
        let detail = format!("{}!({}, …)", call.name, call.operands.join(", "));
        item(text, "function", detail)
    });
    calls.chain(members).collect()
}

/// Whether `model.fi` begins to call what is written `fit!(model, `.
fn called_on(call: &str, typed: &str) -> bool {
    let parts = call.split_once("!(").zip(typed.split_once('.'));
    parts.is_some_and(|((name, _), (_, begun))| name.starts_with(begun))
}

fn at(range: std::ops::Range<usize>, items: Vec<Completion>) -> Completions {
    Completions {
        start: range.start,
        end: range.end,
        items,
    }
}

fn variable(variable: &Variable) -> Completion {
    item(&variable.name, "instance", &variable.type_name)
}

/// What can follow `%device`. The process of the cells knows which devices there are; another one is refused there.
const DEVICES: [(&str, &str); 6] = [
    (
        "auto",
        "the best that works: CUDA, a GPU of wgpu, the processor",
    ),
    ("cpu", "the processor"),
    ("wgpu", "the first GPU of wgpu, or its software adapter"),
    ("wgpu:0", "this adapter of wgpu"),
    ("cuda", "the first GPU of CUDA"),
    ("cuda:0", "this GPU of CUDA"),
];

/// In a line that is a magic: its name, a code, a profile, a device.
fn in_magic(code: &str, cursor: usize) -> Option<Completions> {
    let start = code[..cursor].rfind('\n').map_or(0, |at| at + 1);
    let line = &code[start..cursor];
    let typed = line.trim_start();
    if !typed.starts_with('%') {
        return None;
    }
    let begin = cursor - typed.len();
    let Some((name, rest)) = typed.split_once(char::is_whitespace) else {
        let items = magic::names()
            .filter(|(name, _)| name.starts_with(typed))
            .map(|(name, effect)| item(name, "magic", effect));
        return Some(at(begin..cursor, items.collect()));
    };
    let word = rest.trim_start();
    let known: Vec<Completion> = match name {
        "%explain" => rules::CATALOGUE
            .iter()
            .map(|entry| item(entry.page.code, "text", entry.page.name))
            .collect(),
        "%profile" => Profile::ALL
            .map(|profile| item(profile.name(), "text", profile.title()))
            .into(),
        "%device" => DEVICES.map(|(name, what)| item(name, "text", what)).into(),
        // The rest of the line is Rust.
        _ => return None,
    };
    let items = known.into_iter();
    let items = items.filter(|item| item.text.to_lowercase().starts_with(&word.to_lowercase()));
    Some(at(cursor - word.len()..cursor, items.collect()))
}

/// In a text that names a loss, a metric or an optimizer.
fn in_text(code: &str, start: usize, cursor: usize, place: &Place<'_>) -> Option<Completions> {
    let kind = match argument_at(code, place)?.accepts {
        Accepts::Identifier(kind) => kind,
        _ => return None,
    };
    let from = start + 1;
    let typed = code.get(from..cursor)?;
    let items = kind.names().iter();
    let items = items.filter(|name| name.starts_with(typed));
    let items = items.map(|name| item(*name, "text", kind.word())).collect();
    Some(at(from..cursor, items))
}

/// The arguments of an optimizer that are still to be given: each is a method.
fn methods(code: &str, place: &Place<'_>) -> Option<Vec<Completion>> {
    let optimizer = optimizer_before(code, place)?;
    let chain = &code[optimizer.start..place.word.start];
    let not_given = |argument: &&Argument| !chain.contains(&format!(".{}(", argument.name));
    let offered = optimizer.arguments.iter().filter(not_given);
    Some(
        offered
            .map(|it| item(it.name, "function", description(it)))
            .collect(),
    )
}

/// An optimizer whose methods follow.
pub struct Chain {
    /// Where its name begins.
    pub start: usize,
    /// Its methods.
    pub arguments: &'static [Argument],
}

/// The optimizer in front of the method at the cursor.
pub fn optimizer_before(code: &str, place: &Place<'_>) -> Option<Chain> {
    let from = place.open.last().map_or(0, |bracket| bracket.element);
    let before = code.get(from..place.word.start)?;
    let begin = |name: &str| {
        let at = before.rfind(&format!("{name}::new("))?;
        (!before[..at].ends_with(is_name)).then_some(from + at)
    };
    let all = arguments::OPTIMIZERS.iter();
    let found = all.filter_map(|optimizer| Some((begin(optimizer.name)?, optimizer.arguments)));
    let (start, arguments) = found.max_by_key(|(start, _)| *start)?;
    // Another statement has begun since.
    (!code[start..place.word.start].contains(';')).then_some(Chain { start, arguments })
}

/// What can be an element of the innermost call.
fn elements(code: &str, place: &Place<'_>, variables: &[Variable]) -> Option<Vec<Completion>> {
    let bracket = place.open.last()?;
    let element = &code[bracket.element..place.word.start];
    if bracket.called.trim_end() == "scope!" && bracket.index == 0 {
        return Some(strategies(variables));
    }
    if let Some(argument) = argument_at(code, place) {
        return values(argument, variables);
    }
    let call = call_of(bracket)?;
    if bracket.index < call.operands.len() || !element.trim().is_empty() {
        return None;
    }
    let free = |argument: &&Argument| {
        let excluded = argument.conflicts.iter();
        !bracket.given.contains(&argument.name)
            && !excluded
                .into_iter()
                .any(|(other, _)| bracket.given.contains(other))
    };
    let offered = call.arguments.iter().filter(free);
    let offered = offered.map(|it| item(format!("{} = ", it.name), "param", description(it)));
    Some(offered.collect())
}

/// The table of the call that a bracket belongs to.
pub fn call_of(bracket: &Bracket<'_>) -> Option<&'static arguments::CallTable> {
    arguments::call(bracket.called.strip_suffix('!')?.trim_end())
}

/// The argument whose value the cursor is in, also inside the list of its values.
pub fn argument_at(code: &str, place: &Place<'_>) -> Option<&'static Argument> {
    let lists = |bracket: &&Bracket<'_>| bracket.called.is_empty();
    let in_lists = place.open.iter().rev().take_while(lists).count();
    let bracket = place.open.iter().rev().nth(in_lists)?;
    let name = place::name_of(&code[bracket.element..place.word.start])?;
    arguments::find(call_of(bracket)?.arguments, name)
}

fn values(argument: &Argument, variables: &[Variable]) -> Option<Vec<Completion>> {
    let typed = |name: &str| item(name, "instance", argument.expects);
    Some(match argument.accepts {
        Accepts::Identifier(kind) => written(kind).iter().map(|it| typed(it)).collect(),
        Accepts::Flag => ["true", "false"].map(typed).into(),
        _ if argument.name == "strategy" => {
            let mut found = strategies(variables);
            found.push(item("none", "keyword", "none, whatever scope is active"));
            found
        }
        // Any expression.
        _ => return None,
    })
}

/// How a loss, a metric or an optimizer is written, the parts to change included.
fn written(kind: IdentifierKind) -> &'static [&'static str] {
    match kind {
        IdentifierKind::Optimizer => &[
            "AdamW::new(warmup_linear(5e-5, 0.1))",
            "AdamW::new(5e-5)",
            "Adam::new(1e-3)",
            "SGD::new(1e-2)",
            "RMSprop::new(1e-3)",
            "Lion::new(1e-5)",
            "Lamb::new(1e-3)",
            "Adafactor::new(1e-3)",
        ],
        IdentifierKind::Loss => &[
            "SparseCategoricalCrossentropy { from_logits: true }",
            "CategoricalCrossentropy { from_logits: true }",
            "BinaryCrossentropy { from_logits: true }",
            "MeanSquaredError",
            "MeanAbsoluteError",
            "Huber { delta: 1.0 }",
            "LogCosh",
            "KlDivergence { from_logits: true }",
            "Hinge",
            "SquaredHinge",
            "MultipleNegativesRanking { scale: 20.0 }",
            "MultipleNegativesSymmetricRanking { scale: 20.0 }",
            "TripletMargin { margin: 5.0 }",
        ],
        IdentifierKind::Metric => &[
            "accuracy()",
            "f1()",
            "macro_f1()",
            "mcc()",
            "precision()",
            "recall()",
            "auc()",
            "keras_auc()",
            "top_k_accuracy(5)",
            "mae()",
            "mse()",
            "rmse()",
            "pearson()",
            "spearman()",
        ],
    }
}

fn strategies(variables: &[Variable]) -> Vec<Completion> {
    let made = variables.iter();
    let made = made.filter(|variable| variable.type_name.ends_with("Strategy"));
    made.map(variable).collect()
}

/// An argument in a line: its type and its default.
fn description(argument: &Argument) -> String {
    format!("{}, default {}", argument.expects, argument.default)
        .replace("default required", "required")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<Variable> {
        [
            ("mirrored", "MirroredStrategy"),
            ("model", "BertForSequenceClassification"),
        ]
        .map(|(name, kind)| Variable {
            name: name.to_owned(),
            type_name: kind.to_owned(),
            ..Variable::default()
        })
        .into()
    }

    /// The cursor is at `|`; `expected` are some of the texts that are offered, `-` before one that is not.
    fn check(marked: &str, expected: &[&str]) {
        let cursor = marked.find('|').expect("a cursor");
        let code = marked.replacen('|', "", 1);
        let found = offer(&code, cursor, &known());
        let texts: Vec<String> = found
            .into_iter()
            .flat_map(|found| found.items)
            .map(|item| item.text)
            .collect();
        for text in expected {
            let (text, wanted) = match text.strip_prefix('-') {
                Some(text) => (text, false),
                None => (*text, true),
            };
            let offered = texts.iter().any(|it| it == text);
            assert_eq!(offered, wanted, "{marked}: {text} in {texts:?}");
        }
        assert_eq!(texts.is_empty(), expected.is_empty(), "{marked}: {texts:?}");
    }

    #[test]
    fn arguments_are_offered_by_name_and_value() {
        check(
            "fit!(model, train, |)",
            &["epochs = ", "batch_size = ", "-optimizer = "],
        );
        check("fit!(model, train, ep|", &["epochs = ", "-batch_size = "]);
        check(
            "fit!(model, train, epochs = 3, |)",
            &["-epochs = ", "batch_size = "],
        );
        check("fit!(model, tr|", &[]);
        check("compile!(model, optimizer = |", &["AdamW::new(5e-5)"]);
        check(
            "compile!(model, metrics = [accuracy(), ma|",
            &["macro_f1()", "-accuracy()"],
        );
        check(
            "compile!(model, loss = \"sparse|\"",
            &["sparse_categorical_crossentropy"],
        );
        check("compile!(model, metrics = [\"ma|\"]", &["macro_f1"]);
        check("compile!(model, drop_unsupported = t|", &["true"]);
        check(
            "compile!(model, strategy = |)",
            &["mirrored", "none", "-model"],
        );
        check("scope!(|, {", &["mirrored", "-model"]);
        check("evaluate!(model, dev, ba|)", &["batch_size = "]);
        check("largest(model, |)", &[]);
        check("// fit!(model, train, |", &[]);
        check("println!(\"fit!(model, train, |", &[]);
    }

    #[test]
    fn methods_of_an_optimizer_are_its_arguments() {
        check(
            "let o = AdamW::new(5e-5).|",
            &["weight_decay", "global_clipnorm"],
        );
        check(
            "compile!(m, optimizer = AdamW::new(5e-5).weight_decay(0.1).w|",
            &[],
        );
        check(
            "compile!(m, optimizer = AdamW::new(5e-5).glo|",
            &["global_clipnorm"],
        );
        check("SGD::new(0.1).mo|", &["momentum"]);
        check("let o = SGD::new(0.1); o.mo|", &[]);
    }

    #[test]
    fn magics_and_codes_are_offered() {
        check("%va|", &["%vars"]);
        check("%explain SC010|", &["SC0101", "SC0102", "-SC0201"]);
        check("%profile |", &["tf-2.3"]);
        check("%device wg|", &["wgpu", "wgpu:0", "-cpu"]);
        check("a % va|", &[]);
    }

    #[test]
    fn names_are_offered_without_rust_analyzer() {
        let texts = |code: &str| -> Vec<String> {
            let found = any_name(code, code.len(), &known());
            found.items.into_iter().map(|item| item.text).collect()
        };
        assert!(texts("let x = mir").contains(&"mirrored".to_owned()));
        assert!(texts("Mirr").contains(&"MirroredStrategy".to_owned()));
        assert!(texts("model.").is_empty() && texts("model.le").is_empty());
    }
}
