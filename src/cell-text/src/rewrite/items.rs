//! Items without a name. evcxr replaces an item by a later one of the same name; an `impl` or an
//! `extern` block has none, and belongs to the named item before it in its cell. Where there is none,
//! each run of the cell would add the block once more. So it gets a named item of its own in front of
//! it, named after what it defines: a trait's `impl` by its head, and of other blocks each function by
//! itself, since a type may have several of them.
//!
//! A static gets a symbol: every cell has all items in a library of its own, and the loader then takes
//! the static of the library that was loaded first for that of all.

use std::ops::Range;

use proc_macro2::{Span, TokenStream};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, ForeignItem, ImplItem, Item, ItemStatic, Stmt};

/// How the symbols of statics begin.
pub const SYMBOL: &str = "stratoscope_static_";

/// The symbol of a static. The digits in the middle count how often a type was redefined, because statics of the old
/// type must not be reused; they are replaced when the cell is compiled.
pub fn symbol(cell: u64, index: usize) -> String {
    format!("{SYMBOL}{}_{cell}_{index}", generation(0))
}

/// The attribute that gives a static its symbol.
pub fn exports_as(symbol: &str) -> String {
    format!("#[unsafe(export_name = \"{symbol}\")] ")
}

/// Always of the same length.
pub fn generation(number: u32) -> String {
    format!("{:06}", number % 1_000_000)
}

/// Where the statics of a cell's items begin, also those inside functions.
pub fn statics(statements: &[Stmt]) -> Vec<Span> {
    struct Statics(Vec<Span>);
    impl<'ast> Visit<'ast> for Statics {
        fn visit_item_static(&mut self, item: &'ast ItemStatic) {
            // Another attribute may set its symbol.
            if item
                .attrs
                .iter()
                .all(|it| it.path().is_ident("doc") || it.path().is_ident("allow"))
            {
                self.0.push(item.span());
            }
            visit::visit_item_static(self, item);
        }
    }
    let mut found = Statics(Vec::new());
    for statement in statements {
        if let Stmt::Item(item) = statement {
            found.visit_item(item);
        }
    }
    found.0
}

/// What is to be inserted into the cell, and where.
pub fn named(statements: &[Stmt], code: &str) -> Vec<(usize, String)> {
    let mut inserted = Vec::new();
    for statement in statements {
        let Stmt::Item(item) = statement else {
            continue;
        };
        let (attributes, brace, is_whole, parts): (&[Attribute], _, _, Vec<Part>) = match item {
            Item::Impl(block) => {
                let parts = block.items.iter().map(|part| Part {
                    name: name_of(part),
                    place: part.span().byte_range(),
                });
                let brace = block.brace_token.span.open();
                (&block.attrs, brace, block.trait_.is_some(), parts.collect())
            }
            Item::ForeignMod(block) => {
                let parts = block.items.iter().map(|part| Part {
                    name: foreign_name_of(part),
                    place: part.span().byte_range(),
                });
                let brace = block.brace_token.span.open();
                (&block.attrs, brace, false, parts.collect())
            }
            Item::Use(_) | Item::ExternCrate(_) | Item::Macro(_) => continue,
            // What follows a named item belongs to it.
            _ => break,
        };
        let begin = item.span().byte_range().start;
        let opening = brace.byte_range();
        let head = attributes
            .last()
            .map_or(begin, |it| it.span().byte_range().end);
        let head = normal(code.get(head..opening.start).unwrap_or_default());
        let again = code.get(begin..opening.end).unwrap_or_default();
        cut(&mut inserted, &head, is_whole, parts, begin, again);
    }
    inserted
}

/// What makes the macros among these items known in all of the crate: evcxr keeps items in no order, and a macro is
/// otherwise known only behind its definition.
pub fn exported(statements: &[Stmt]) -> Vec<(usize, String)> {
    let mut inserted = Vec::new();
    for statement in statements {
        if let Stmt::Item(Item::Macro(definition)) = statement
            && definition.ident.is_some()
            && !(definition.attrs.iter()).any(|it| it.path().is_ident("macro_export"))
        {
            let place = definition.mac.path.span().byte_range().start;
            inserted.push((place, "#[macro_export] ".to_owned()));
        }
    }
    inserted
}

/// Without comments and blanks.
fn normal(text: &str) -> String {
    let tokens = text.parse::<TokenStream>();
    tokens.map_or_else(|_| text.to_owned(), |it| it.to_string())
}

/// Something in a block.
struct Part {
    name: Option<String>,
    place: Range<usize>,
}

/// Puts names before a block that begins at `begin` with the text `again`, and before each of its parts.
fn cut(
    inserted: &mut Vec<(usize, String)>,
    head: &str,
    is_whole: bool,
    parts: Vec<Part>,
    begin: usize,
    again: &str,
) {
    let mut parts = parts.into_iter().peekable();
    let first = match is_whole {
        true => None,
        false => parts.next_if(|part| part.name.is_some()),
    };
    let first = first.and_then(|part| part.name).unwrap_or_default();
    inserted.push((begin, marker(head, &first)));
    if is_whole {
        return;
    }
    for part in parts {
        // What is not known stays with what comes before it.
        if let Some(name) = part.name {
            let text = format!("}} {}{again}", marker(head, &name));
            inserted.push((part.place.start, text));
        }
    }
}

fn name_of(part: &ImplItem) -> Option<String> {
    Some(match part {
        ImplItem::Fn(function) => function.sig.ident.to_string(),
        ImplItem::Const(constant) => constant.ident.to_string(),
        ImplItem::Type(alias) => alias.ident.to_string(),
        _ => return None,
    })
}

fn foreign_name_of(part: &ForeignItem) -> Option<String> {
    Some(match part {
        ForeignItem::Fn(function) => function.sig.ident.to_string(),
        ForeignItem::Static(variable) => variable.ident.to_string(),
        ForeignItem::Type(alias) => alias.ident.to_string(),
        _ => return None,
    })
}

/// An item whose name stands for a part of a block with this head.
fn marker(head: &str, part: &str) -> String {
    // FNV-1a: the same in each kernel, so that compiled cells are found again.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in head.bytes().chain([0]).chain(part.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("const __PART_{hash:016X}: () = (); ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cell: &str, expected: &str) {
        let statements = syn::parse::Parser::parse_str(syn::Block::parse_within, cell);
        let statements = statements.expect("parses");
        let mut text = cell.to_owned();
        let inserted = named(&statements, cell);
        for (place, part) in inserted.into_iter().rev() {
            text.insert_str(place, &part);
        }
        let mut shown = String::new();
        for (index, part) in text.split("const __PART_").enumerate() {
            let hidden = match index {
                0 => 0,
                _ => "0123456789ABCDEF: () = (); ".len(),
            };
            shown += if index == 0 { "" } else { "§" };
            shown += &part[hidden..];
        }
        assert_eq!(shown, expected);
    }

    #[test]
    fn blocks_that_stand_alone_are_named() {
        check(
            "impl fmt::Display for P { fn fmt() {} }",
            "§impl fmt::Display for P { fn fmt() {} }",
        );
        check(
            "#[allow(x)] impl<T> P<T> { fn a() {} /// b\n fn b() {} }",
            "§#[allow(x)] impl<T> P<T> { fn a() {} } §#[allow(x)] impl<T> P<T> {/// b\n fn b() {} }",
        );
        check("impl P {}", "§impl P {}");
        check(
            "extern \"C\" { fn a(); fn b(); }",
            "§extern \"C\" { fn a(); } §extern \"C\" {fn b(); }",
        );
    }

    #[test]
    fn a_block_behind_a_named_item_belongs_to_it() {
        for cell in [
            "struct P; impl P { fn a() {} fn b() {} }",
            "fn f() {} impl P {}",
            "let x = 1;",
        ] {
            check(cell, cell);
        }
    }

    #[test]
    fn statics_are_found_where_they_live_on() {
        let count = |cell: &str| {
            let statements = syn::parse::Parser::parse_str(syn::Block::parse_within, cell);
            statics(&statements.expect("parses")).len()
        };
        assert_eq!(
            count("/// all\npub static A: u8 = 1; static mut B: u8 = 2;"),
            2
        );
        assert_eq!(count("fn f() { static A: u8 = 1; }"), 1);
        assert_eq!(count("impl P { fn f() { static A: u8 = 1; } }"), 1);
        assert_eq!(count("{ static A: u8 = 1; }"), 0);
        assert_eq!(count("#[unsafe(no_mangle)] static A: u8 = 1;"), 0);
        assert_eq!(symbol(7, 1).len(), symbol(7, 2).len());
        assert!(symbol(7, 1).ends_with("000000_7_1"));
    }

    #[test]
    fn names_stand_for_what_is_defined() {
        let name = |cell: &str| {
            let statements = syn::parse::Parser::parse_str(syn::Block::parse_within, cell);
            named(&statements.expect("parses"), cell)[0].1.clone()
        };
        assert_eq!(
            name("impl A for P { fn a() { 1 } }"),
            name("impl A for P { fn a() { 2 } }")
        );
        assert_ne!(name("impl A for P {}"), name("impl B for P {}"));
        assert_ne!(name("impl P { fn a() {} }"), name("impl P { fn b() {} }"));
        assert_eq!(
            name("impl P { fn a() {} }"),
            name("impl P { fn a(&self) { 1; } }")
        );
    }
}
