//! Calls of macros that stand for items are replaced by these items ([`crate::macro_rules`]).

use syn::parse::Parser;
use syn::{Block, Expr, Macro, Stmt};

use super::items;
use crate::definitions::Definitions;
use crate::macro_rules::Macros;

/// The numbers of statics that the cell itself has are below.
const FIRST_STATIC: usize = 1000;

/// Writes items out, and collects what a cell defines.
pub(super) struct WrittenOut {
    cell: u64,
    /// The macros that are known.
    known: Macros,
    /// Those of them that the cell defines.
    pub(super) defined: Macros,
    /// The items, as code.
    pub(super) texts: Vec<String>,
    /// What the cell defines.
    pub(super) definitions: Definitions,
    statics: usize,
}

impl WrittenOut {
    /// For cell `cell` with these statements; `session`: the macros of earlier cells.
    pub(super) fn of(session: &Macros, statements: &[Stmt], cell: u64) -> Self {
        let mut known = session.clone();
        known.extend(Macros::among(statements));
        Self {
            cell,
            known,
            defined: Macros::default(),
            texts: Vec::new(),
            definitions: Definitions::default(),
            statics: 0,
        }
    }

    /// The items in place of a statement. `None`: it is something else than the call of such a macro.
    pub(super) fn items_of(&mut self, statement: &Stmt) -> Option<String> {
        let text = self.known.items_of(call(statement)?)?;
        let written = Block::parse_within.parse_str(&text).ok()?;
        let mut inserted = items::named(&written, &text);
        inserted.extend(items::exported(&written));
        for span in items::statics(&written) {
            let symbol = items::symbol(self.cell, FIRST_STATIC + self.statics);
            inserted.push((span.byte_range().start, items::exports_as(&symbol)));
            self.statics += 1;
        }
        // Stable: what is inserted at one place keeps its order.
        inserted.sort_by_key(|(place, _)| *place);
        let mut prepared = text.clone();
        for (place, insertion) in inserted.iter().rev() {
            prepared.insert_str(*place, insertion);
        }
        self.known.extend(Macros::among(&written));
        self.add(&written, &text);
        self.texts.push(text);
        Some(prepared)
    }

    /// Whether a statement is the call of a macro that makes items, and more.
    pub(super) fn makes_items(&self, statement: &Stmt) -> bool {
        let makes =
            |called: &Macro| called.path.is_ident("thread_local") || self.known.makes_items(called);
        call(statement).is_some_and(makes)
    }

    /// Adds what these statements of a text define.
    pub(super) fn add(&mut self, statements: &[Stmt], text: &str) {
        self.definitions
            .extend(Definitions::among(statements, text));
        self.defined.extend(Macros::among(statements));
    }
}

/// The macro that a statement calls, and nothing else.
fn call(statement: &Stmt) -> Option<&Macro> {
    match statement {
        Stmt::Macro(statement) if statement.attrs.is_empty() => Some(&statement.mac),
        Stmt::Expr(Expr::Macro(expression), _) if expression.attrs.is_empty() => {
            Some(&expression.mac)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::ParsedCell;
    use crate::macro_rules::Macros;

    const MAKE: &str =
        "macro_rules! make { ($n:ident) => { #[derive(Debug)] struct $n { x: i32 } }; }";

    fn written(session: &Macros, code: &str) -> crate::Rewriting {
        let parsed = ParsedCell::of(code).with_session_macros(session.clone());
        parsed.rewrite(7, false)
    }

    #[test]
    fn items_of_a_macro_are_those_of_the_cell() {
        let defined = written(&Macros::default(), MAKE);
        assert!(
            defined
                .rewritten
                .text
                .contains("#[macro_export] macro_rules!")
        );
        let called = written(&defined.macros, "make!(Q); let q = Q { x: 2 };");
        let text = &called.rewritten.text;
        assert!(text.contains("struct Q"), "{text}");
        assert!(!text.contains("make!"), "{text}");
        assert_eq!(called.written_out.len(), 1);
        let changed = called.definitions.changed_by(&{
            let other = "macro_rules! other { ($n:ident) => { struct $n { y: u8 } } } other!(Q);";
            written(&Macros::default(), other).definitions
        });
        assert!(changed.contains("Q"));
    }

    #[test]
    fn what_has_no_name_gets_one_and_statics_a_symbol() {
        let code = "macro_rules! more { ($t:ident) => { impl $t { fn f(&self) {} } static S: u8 = 1; } }\nmore!(Q)";
        let text = written(&Macros::default(), code).rewritten.text;
        let (_, items) = text.rsplit_once("const __PART_").expect("a name");
        assert!(items.contains("impl Q"), "{text}");
        assert!(items.contains("stratoscope_static_000000_7_1000"), "{text}");
    }

    #[test]
    fn other_calls_stay() {
        let code = "macro_rules! mixed { () => { struct P; let _ = 1; } }\nmixed!();";
        let text = written(&Macros::default(), code).rewritten.text;
        assert!(text.ends_with(":#*/;mixed!();"), "{text}");
        let code = "macro_rules! say { () => { println!() } }\nsay!();";
        let text = written(&Macros::default(), code).rewritten.text;
        assert!(text.ends_with("say!();"), "{text}");
        let text = written(&Macros::default(), "fit!(model, data)?;")
            .rewritten
            .text;
        assert!(text.contains("fit!(model, data)?;"), "{text}");
    }
}
