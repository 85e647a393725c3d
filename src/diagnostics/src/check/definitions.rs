//! The names that a cell defines itself, or takes from other crates: types and their variants, macros, functions. The
//! checks know ours alone, so that of these they say nothing.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use stratoscope_cell_syntax::CellSyntax;

use super::calls::DEEPEST;

/// The names of items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinedNames {
    /// Types, the variants of enums, macros, modules, and what is imported.
    pub items: BTreeSet<String>,
    /// Functions and methods, and what is imported.
    pub functions: BTreeSet<String>,
}

impl DefinedNames {
    /// Adds the names of another cell.
    pub fn extend(&mut self, other: Self) {
        self.items.extend(other.items);
        self.functions.extend(other.functions);
    }

    /// Adds what the tokens define, in groups of so many levels too.
    pub(super) fn read(&mut self, tokens: TokenStream, levels: usize) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let mut index = 0;
        while index < trees.len() {
            if let Some(item) = item(&trees[index..]) {
                self.items.extend(item.items);
                self.functions.extend(item.functions);
                index += item.length;
                continue;
            }
            if let TokenTree::Group(group) = &trees[index]
                && levels > 0
            {
                self.read(group.stream(), levels - 1);
            }
            index += 1;
        }
    }
}

/// What later cells have of a cell's definitions: the items that stand in no block, and all functions.
pub fn defined_in(cell: impl Into<CellSyntax>) -> DefinedNames {
    const WORDS: [&str; 9] = [
        "enum",
        "fn",
        "macro_rules",
        "mod",
        "struct",
        "trait",
        "type",
        "union",
        "use",
    ];
    // A cheap look: most cells define nothing.
    let cell = cell.into();
    if !WORDS.iter().any(|word| cell.text().contains(word)) {
        return DefinedNames::default();
    }
    let defined = cell.read(|cell| {
        let tokens = cell.tokens()?;
        let mut everywhere = DefinedNames::default();
        everywhere.read(tokens.clone(), DEEPEST);
        let mut at_the_top = DefinedNames::default();
        at_the_top.read(tokens, 0);
        Some(DefinedNames {
            items: at_the_top.items,
            functions: everywhere.functions,
        })
    });
    defined.unwrap_or_default()
}

/// An item, as far as its head shows it.
#[derive(Default)]
pub(super) struct Item {
    /// How many tokens need no further look: the keyword and the name, the whole of an enum or an import.
    pub length: usize,
    items: Vec<String>,
    functions: Vec<String>,
}

/// The item that begins with the first of these tokens.
pub(super) fn item(trees: &[TokenTree]) -> Option<Item> {
    let [TokenTree::Ident(word), rest @ ..] = trees else {
        return None;
    };
    let of_length = |length: usize, items: Vec<String>| {
        Some(Item {
            length,
            items,
            functions: Vec::new(),
        })
    };
    match (word.to_string().as_str(), rest) {
        // What a macro's definition holds is no code yet.
        (
            "macro_rules",
            [
                TokenTree::Punct(bang),
                TokenTree::Ident(name),
                TokenTree::Group(_),
                ..,
            ],
        ) if bang.as_char() == '!' => of_length(4, vec![name.to_string()]),
        ("enum", [TokenTree::Ident(name), rest @ ..]) => {
            let body = rest.iter().position(
                |tree| matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace),
            );
            let mut items = vec![name.to_string()];
            let Some(body) = body else {
                return of_length(2, items);
            };
            if let TokenTree::Group(group) = &rest[body] {
                items.extend(variants(group.stream()));
            }
            of_length(2 + body + 1, items)
        }
        ("struct" | "type" | "trait" | "mod" | "as" | "union", [TokenTree::Ident(name), ..]) => {
            of_length(2, vec![name.to_string()])
        }
        ("fn", [TokenTree::Ident(name), ..]) => Some(Item {
            length: 2,
            items: Vec::new(),
            functions: vec![name.to_string()],
        }),
        // `impl Trait + use<'a>` imports nothing.
        ("use", [first, ..]) if !is_sign(first, '<') => {
            let end = rest.iter().position(|tree| is_sign(tree, ';'));
            let mut names = Vec::new();
            imported(&rest[..end.unwrap_or(rest.len())], true, &mut names);
            Some(Item {
                length: 1 + end.map_or(rest.len(), |end| end + 1),
                items: names.clone(),
                functions: names,
            })
        }
        _ => None,
    }
}

fn is_sign(tree: &TokenTree, sign: char) -> bool {
    matches!(tree, TokenTree::Punct(it) if it.as_char() == sign)
}

/// The variants of an enum, by what stands between its braces.
fn variants(body: TokenStream) -> Vec<String> {
    let trees: Vec<TokenTree> = body.into_iter().collect();
    let of_a_part = |part: &[TokenTree]| {
        part.iter().find_map(|tree| match tree {
            TokenTree::Ident(name) => Some(name.to_string()),
            _ => None,
        })
    };
    let parts = trees.split(|tree| is_sign(tree, ','));
    parts.filter_map(of_a_part).collect()
}

/// The names that `use` brings of items that are not ours: of `a::{B, c as D}` these are `B` and `D`.
fn imported(trees: &[TokenTree], is_first: bool, names: &mut Vec<String>) {
    for part in trees.split(|tree| is_sign(tree, ',')) {
        let is_word =
            |tree: &TokenTree, word: &str| matches!(tree, TokenTree::Ident(it) if it == word);
        let renamed = part.iter().any(|tree| is_word(tree, "as"));
        let first = part.iter().find(|tree| matches!(tree, TokenTree::Ident(_)));
        let is_ours = first.is_some_and(|first| is_module_of_ours(&first.to_string()));
        // Under another name it is another thing, whoever made it.
        if is_first && is_ours && !renamed {
            continue;
        }
        match part.last() {
            Some(TokenTree::Ident(name)) if name != "self" => names.push(name.to_string()),
            Some(TokenTree::Group(group)) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                imported(&inner, is_first && part.len() == 1, names);
            }
            _ => {}
        }
    }
}

/// Whether a path may begin with this segment and lead to an item of ours.
fn is_module_of_ours(segment: &str) -> bool {
    const OURS: [&str; 12] = [
        "bert",
        "data",
        "evaluation",
        "loss",
        "metric",
        "optimizer",
        "prelude",
        "schedule",
        "sequential",
        "strategy",
        "stratoscope",
        "train",
    ];
    OURS.contains(&segment)
}

/// Whether a name behind these segments of a path may be one of ours: `Adam` of `train::Adam`, not that of `mine::Adam`.
pub(super) fn may_be_ours(segments: &[String], defined: &DefinedNames) -> bool {
    let mut segments = segments.iter().map(String::as_str);
    leads_to_ours(segments.find(|segment| !is_relative(segment)), defined)
}

/// [`may_be_ours`] of the name at an index, by the path before it.
pub(super) fn may_be_ours_at(trees: &[TokenTree], index: usize, defined: &DefinedNames) -> bool {
    let mut first = None;
    let mut at = index;
    while at >= 3 && is_sign(&trees[at - 1], ':') && is_sign(&trees[at - 2], ':') {
        let TokenTree::Ident(segment) = &trees[at - 3] else {
            break;
        };
        first = Some(segment.to_string())
            .filter(|segment| !is_relative(segment))
            .or(first);
        at -= 3;
    }
    leads_to_ours(first.as_deref(), defined)
}

fn is_relative(segment: &str) -> bool {
    matches!(segment, "crate" | "self" | "super")
}

fn leads_to_ours(first: Option<&str>, defined: &DefinedNames) -> bool {
    first.is_none_or(|first| is_module_of_ours(first) && !defined.items.contains(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, items: &[&str], functions: &[&str]) {
        let found = defined_in(text);
        assert_eq!(Vec::from_iter(&found.items), items, "{text}");
        assert_eq!(Vec::from_iter(&found.functions), functions, "{text}");
    }

    #[test]
    fn items_have_names_and_enums_those_of_their_variants() {
        check("struct SGD { rate: f64 }", &["SGD"], &[]);
        check(
            "enum Animal<T> where T: Copy { #[allow(unused)] Lion(T), Cat { Adam: u8 }, Ox = 3 }",
            &["Animal", "Cat", "Lion", "Ox"],
            &[],
        );
        check("trait Fits { fn fit(&self); }", &["Fits"], &["fit"]);
        check("impl Line { fn fit(&self, x: u8) {} }", &[], &["fit"]);
        check(
            "macro_rules! fit { () => { struct Inner; } }",
            &["fit"],
            &[],
        );
        check("mod mine { pub struct Adam; }", &["mine"], &[]);
        check("%%time\nstruct P;\nlet a = 1;", &["P"], &[]);
        check("let x = 1; // struct P;", &[], &[]);
        check("let text = \"struct P;\";", &[], &[]);
        check("fn f() { struct Inner; fn g() {} }", &[], &["f", "g"]);
    }

    #[test]
    fn imports_of_other_crates_are_names_of_the_cell() {
        check("use linfa::Lion;", &["Lion"], &["Lion"]);
        check(
            "use a::{b::{Adam, self}, c::*, d as SGD}; use std::thread::scope;",
            &["Adam", "SGD", "scope"],
            &["Adam", "SGD", "scope"],
        );
        check("use Animal::*;", &[], &[]);
        check("use stratoscope::train::{Adam, SGD};", &[], &[]);
        check(
            "use stratoscope::train::AdamW as Adam;",
            &["Adam"],
            &["Adam"],
        );
        check("use ::other::Adam;", &["Adam"], &["Adam"]);
        check("use train::{AdamW, SGD}; use data::Dataset;", &[], &[]);
        check(
            "use {stratoscope::train::SGD, other::Adam};",
            &["Adam"],
            &["Adam"],
        );
    }

    #[test]
    fn paths_lead_to_ours_or_elsewhere() {
        let defined = DefinedNames {
            items: BTreeSet::from(["data".to_owned()]),
            ..DefinedNames::default()
        };
        for (path, expected) in [
            ("", true),
            ("crate", true),
            ("stratoscope::train", true),
            ("train", true),
            ("mine", false),
            ("crate::mine", false),
            ("data", false),
        ] {
            let segments = path.split("::").filter(|it| !it.is_empty());
            let segments: Vec<String> = segments.map(str::to_owned).collect();
            assert_eq!(may_be_ours(&segments, &defined), expected, "{path}");
        }
    }
}
