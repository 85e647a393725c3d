//! Replaces what evcxr writes around a cell by calls into the facade (`stratoscope::cell`). evcxr's code would report
//! over standard output, which belongs to the cell, and every cell would compile evcxr's runtime again. No line is
//! added or removed, so that the line numbers in rustc's messages stay true.

use std::collections::BTreeMap;
use std::fmt::Write;

use stratoscope_cell_text::rewrite::statement;

use super::evcxr_contract::{
    CHECK, CHECKS, CLOSING, ENTRY, EXECUTOR, FAILURE, NAME, OPENING, PANICKED, PUT, RUNTIME,
    SHOWN_BY_EVCXR, STORE, STORE_TYPE, TAKE, WAITS, WAITS_CLOSING,
};

/// Their place is taken by the facade's.
const OURS: &str = "use ::stratoscope::cell::evcxr::{self as evcxr_internal_runtime, CellError as EvcxrUserCodeError};";

const PANICKED_OURS: &str = "::stratoscope::cell::panicked();";

const SHOWN_BY_US: &str = "\n#[allow(dead_code)] trait EvcxrDisplay { fn evcxr_display(&self); }\n\
    impl<T: std::fmt::Debug + ?Sized> EvcxrDisplay for T { fn evcxr_display(&self) { \
    ::stratoscope::__result!(self) } }\n";

const RESULT_OURS: &str = "::stratoscope::cell::evcxr::finished(evcxr_variable_store)";

/// The source of a cell with our lines in place of evcxr's, and without the variables `masked`, which
/// evcxr takes for variables and which are not there any more.
pub fn adapted(text: &str, masked: &[String]) -> String {
    let mut result = String::with_capacity(text.len() + SHOWN_BY_US.len());
    let is_masked = |line: &str| masked.iter().any(|name| concerns(line, name));
    let has_store = text.contains(STORE_TYPE);
    let mut is_the_cells = false;
    // A cell that is only checked has no entry, and what comes before it is the cell.
    let has_entry = text.lines().any(|line| line == ENTRY);
    let mut is_in_runtime = false;
    for line in text.split_inclusive('\n') {
        match line.trim() {
            RUNTIME | FAILURE if has_entry && !is_in_runtime => {
                is_in_runtime = true;
                result.push_str(OURS);
                result.push('\n');
            }
            ENTRY => {
                is_in_runtime = false;
                result.push_str(line);
            }
            _ if is_in_runtime => result.push('\n'),
            CHECKS if !masked.is_empty() => {
                result.push_str(CHECKS);
                result.push_str(&format!("evcxr_variable_store.forget(&{masked:?});\n"));
            }
            _ if line.trim_start().starts_with(statement::UNCHECKED) => {
                // A comment may follow.
                result.push_str(&line.trim_start()[statement::UNCHECKED.len()..]);
            }
            // Variables that the cell itself binds exist.
            OPENING | WAITS => {
                is_the_cells = true;
                result.push_str(line);
            }
            CLOSING | WAITS_CLOSING => {
                is_the_cells = false;
                result.push_str(line);
            }
            _ if !is_the_cells && is_masked(line) => result.push('\n'),
            STORE if has_entry && has_store => {
                result.push_str(RESULT_OURS);
                result.push('\n');
            }
            PANICKED => {
                result.push_str(PANICKED_OURS);
                result.push('\n');
            }
            _ if line.contains(EXECUTOR) && uses_executor(text) => {
                result.push_str(&line.replace(EXECUTOR, OWN_EXECUTOR));
            }
            _ => result.push_str(line),
        }
    }
    if text.contains(SHOWN_BY_EVCXR) {
        result.push_str(SHOWN_BY_US);
    }
    if has_entry {
        name_types(&mut result, text);
    }
    result
}

/// The same of an executor that the cell makes itself.
const OWN_EXECUTOR: &str = "evcxr_variable_store.own_arc(";

/// Whether anything in the cell may start a task or wait for a future. Such a cell needs an executor of its own: each cell
/// is linked to a copy of tokio.
fn uses_executor(text: &str) -> bool {
    let of_the_cell = |line: &&str| !line.contains(EXECUTOR) && line.trim() != WAITS;
    let mut lines = text.lines().filter(of_the_cell);
    lines.any(|line| {
        ["tokio", "await", "async"]
            .iter()
            .any(|word| line.contains(word))
    })
}

/// Names the types of the variables outside of the function that runs the cell, where the next cell will name them. A type
/// that ends with the cell, as one that a macro makes among the statements, is an error here, and the cell is refused: no
/// later cell would compile.
fn name_types(result: &mut String, text: &str) {
    let kept: BTreeMap<&str, &str> = text.lines().filter_map(|line| typed(line, PUT)).collect();
    for (index, (name, kind)) in kept.iter().enumerate() {
        let _ = writeln!(result, "{NAMES}{index}(_: {kind}) {{}} // {name}");
    }
}

/// How a line begins that only names the type of a variable.
const NAMES: &str = "#[allow(warnings)] fn __type_of_variable_";

/// The variable and the type in a line that only names it.
pub fn named_type(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.trim().strip_prefix(NAMES)?.split_once("(_: ")?;
    let (kind, name) = rest.rsplit_once(") {} // ")?;
    Some((name, kind))
}

/// The variable and the type in a line that keeps or loads a variable.
pub(crate) fn typed<'a>(line: &'a str, by: &str) -> Option<(&'a str, &'a str)> {
    let (_, rest) = line.split_once(by)?;
    let (kind, rest) = rest.split_once(NAME)?;
    Some((rest.split_once(')')?.0, kind))
}

/// The source with a call of `at` in place of each mark, for a cell that runs as a whole.
pub fn with_calls(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match statement::read_mark(line) {
            Some((lines, _)) => {
                let _ = writeln!(result, "::stratoscope::cell::at({lines})?;");
            }
            None => result.push_str(line),
        }
    }
    result
}

/// Whether evcxr compares, loads or puts back the variable in this line.
fn concerns(line: &str, name: &str) -> bool {
    let is_of = |way: &str| {
        let rest = line.split_once(way);
        rest.is_some_and(|(_, rest)| rest.contains(&format!("{NAME}{name})")))
    };
    [CHECK, TAKE, PUT].into_iter().any(is_of)
}

/// The attributes of the whole crate, with which the source begins, and the source with empty lines in
/// their places. `None` when there are others elsewhere.
pub fn attributes_apart(text: &str) -> Option<(String, String)> {
    let is_one = |line: &str| line.trim_start().starts_with("#![");
    let mut attributes = String::new();
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n') {
        if !is_one(line) {
            break;
        }
        attributes.push_str(line);
        attributes.push('\n');
        rest = after;
    }
    if rest.lines().any(is_one) {
        return None;
    }
    let empty = "\n".repeat(attributes.lines().count());
    Some((attributes, empty + rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evcxrs_runtime_gives_way_and_no_line_moves() {
        let text = "fn mine() {}\n            struct EvcxrUserCodeError {}\n  impl X {\n  }\n        \n\
                    mod evcxr_internal_runtime {\npub struct VariableStore {}\n}\n#[unsafe(no_mangle)]\n\
                    pub extern \"C\" fn run_user_code_3(\nlet x = 1;\n";
        let adapted = adapted(text, &[]);
        let expected = format!(
            "fn mine() {{}}\n{OURS}\n\n\n\n\n\n\n#[unsafe(no_mangle)]\n\
             pub extern \"C\" fn run_user_code_3(\nlet x = 1;\n"
        );
        assert_eq!(adapted, expected);
    }

    #[test]
    fn a_cell_that_is_only_checked_stays() {
        let text = "struct EvcxrUserCodeError {}\nfn evcxr_analysis_wrapper() {\nlet x = 1;\n}\n";
        assert_eq!(adapted(text, &[]), text);
    }

    #[test]
    fn only_generated_lines_change() {
        let text = "fn f() {\n    println!(\"EVCXR_PANIC_NOTIFICATION\");\n}\n";
        assert_eq!(
            adapted(text, &[]),
            "fn f() {\n::stratoscope::cell::panicked();\n}\n"
        );
        let cell = "let x = \"ü\"; println!(\"EVCXR_PANIC_NOTIFICATION\"); // mine\n";
        assert_eq!(adapted(cell, &[]), cell);
        let shown = adapted("(x\n).evcxr_display();\n", &[]);
        assert!(shown.starts_with("(x\n).evcxr_display();\n\n"), "{shown}");
    }

    #[test]
    fn what_is_not_there_is_not_loaded() {
        let text = "#[unsafe(no_mangle)]\n  -> *mut evcxr_internal_runtime::VariableStore {\n\
            {let mut vars_ok = true;\n\
            vars_ok &= evcxr_variable_store.check_variable::<P>(stringify!(gone));\n\
            let gone = evcxr_variable_store.take_variable::<P>(stringify!(gone));\n\
            let x = evcxr_variable_store.take_variable::<P>(stringify!(x));\n\
            let _ = (|| -> std::result::Result<(), EvcxrUserCodeError> {\n\
            evcxr_variable_store.put_variable::<Q>(stringify!(gone), gone);\n\
            Ok(())})();\n\
            evcxr_variable_store.put_variable::<P>(stringify!(gone), gone);\n\
            evcxr_variable_store\n";
        let expected = "#[unsafe(no_mangle)]\n  -> *mut evcxr_internal_runtime::VariableStore {\n\
            {let mut vars_ok = true;evcxr_variable_store.forget(&[\"gone\"]);\n\n\n\
            let x = evcxr_variable_store.take_variable::<P>(stringify!(x));\n\
            let _ = (|| -> std::result::Result<(), EvcxrUserCodeError> {\n\
            evcxr_variable_store.put_variable::<Q>(stringify!(gone), gone);\n\
            Ok(())})();\n\n\
            ::stratoscope::cell::evcxr::finished(evcxr_variable_store)\n";
        let adapted = adapted(text, &["gone".to_owned()]);
        assert_eq!(&adapted[..expected.len()], expected);
    }

    #[test]
    fn types_of_variables_are_named_where_the_next_cell_will() {
        let text = "#[unsafe(no_mangle)]\nevcxr_variable_store.put_variable::<Vec<Q>>(stringify!(q), q);\n\
            evcxr_variable_store.put_variable::<(u8, [u8; 2])>(stringify!(a), a);\n";
        let adapted = adapted(text, &[]);
        let (same, added) = adapted.split_at(text.len());
        assert_eq!(same, text);
        let named: Vec<_> = added.lines().filter_map(named_type).collect();
        assert_eq!(named, [("a", "(u8, [u8; 2])"), ("q", "Vec<Q>")]);
        assert_eq!(added.lines().count(), 2);
    }

    #[test]
    fn a_cell_that_may_start_a_task_has_an_executor_of_its_own() {
        let cell = |statement: &str| {
            format!(
                "let mut mutex = evcxr_variable_store.lazy_arc(\"evcxr_tokio_runtime\", || 1);\n\
                 .block_on(async {{\n{statement}\n}});\n"
            )
        };
        for (statement, expected) in [
            ("let x = 1;", "evcxr_variable_store.lazy_arc("),
            ("f().await?;", OWN_EXECUTOR),
            ("tokio::spawn(g());", OWN_EXECUTOR),
        ] {
            let adapted = adapted(&cell(statement), &[]);
            assert!(adapted.contains(expected), "{adapted}");
        }
    }

    #[test]
    fn marks_become_calls() {
        let mark = statement::mark(3, 4, &statement::Facts::default());
        let text = format!("{mark}\nf();\n{}\n", statement::UNCHECKED);
        let expected = "::stratoscope::cell::at(3, 4)?;\nf();\n\n";
        assert_eq!(with_calls(&adapted(&text, &[])), expected);
    }

    #[test]
    fn attributes_leave_their_lines() {
        let apart = attributes_apart("#![allow(x)]\n#![allow(y)]\nfn f() {}\n");
        let expected = ("#![allow(x)]\n#![allow(y)]\n", "\n\nfn f() {}\n");
        assert_eq!(apart, Some((expected.0.into(), expected.1.into())));
        assert_eq!(
            attributes_apart("fn f() {}"),
            Some((String::new(), "fn f() {}".into()))
        );
        assert_eq!(attributes_apart("fn f() {\n    #![allow(z)]\n}"), None);
    }
}
