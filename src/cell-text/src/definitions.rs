//! The types that cells have defined. A redefined type is another type, and the variables of the old one must be
//! dropped before a cell with the new one is loaded: at run time Rust distinguishes two types of one name by the
//! names of their fields, and not by the types of the fields.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::{Item, Stmt};

/// What was defined, by name: types, and the constants that may be part of them.
#[derive(Clone, Debug, Default)]
pub struct Definitions(BTreeMap<String, Definition>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Definition {
    /// Without comments and blanks.
    text: String,
    /// Every name in it.
    names: BTreeSet<String>,
}

impl Definitions {
    /// Those among the statements at the top of `code`.
    pub(crate) fn among(statements: &[Stmt], code: &str) -> Self {
        let mut found = Self::default();
        for statement in statements {
            let Stmt::Item(item) = statement else {
                continue;
            };
            let name = match item {
                Item::Struct(item) => &item.ident,
                Item::Enum(item) => &item.ident,
                Item::Union(item) => &item.ident,
                Item::Type(item) => &item.ident,
                Item::Const(item) => &item.ident,
                _ => continue,
            };
            let text = code.get(item.span().byte_range()).unwrap_or_default();
            if let Ok(tokens) = text.parse::<TokenStream>() {
                let text = tokens.to_string();
                let mut names = BTreeSet::new();
                collect(tokens, &mut names);
                found.0.insert(name.to_string(), Definition { text, names });
            }
        }
        found
    }

    /// The names that mean something else with these definitions, also because of what they are made of.
    pub fn changed_by(&self, new: &Self) -> BTreeSet<String> {
        let is_changed = |(name, new): &(&String, &Definition)| {
            self.0.get(*name).is_some_and(|old| old.text != new.text)
        };
        let changed = new.0.iter().filter(is_changed);
        let mut changed: BTreeSet<String> = changed.map(|(name, _)| name.clone()).collect();
        loop {
            let is_made_of_one = |(name, old): &(&String, &Definition)| {
                !changed.contains(*name) && !old.names.is_disjoint(&changed)
            };
            let more = self.0.iter().filter(is_made_of_one);
            let more: Vec<String> = more.map(|(name, _)| name.clone()).collect();
            if more.is_empty() {
                return changed;
            }
            changed.extend(more);
        }
    }

    /// Adds definitions; a later one replaces an earlier one of the same name.
    pub fn extend(&mut self, new: Self) {
        self.0.extend(new.0);
    }

    /// Forgets all definitions.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Whether a type, as it is written, names one of these.
pub fn names_one(type_name: &str, of: &BTreeSet<String>) -> bool {
    let separates = |character: char| !(character.is_alphanumeric() || character == '_');
    type_name.split(separates).any(|word| of.contains(word))
}

fn collect(tokens: TokenStream, names: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                names.insert(name.to_string());
            }
            TokenTree::Group(group) => collect(group.stream(), names),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParsedCell;

    fn definitions(code: &str) -> Definitions {
        ParsedCell::of(code).rewrite(1, false).definitions
    }

    fn check(before: &str, after: &str, expected: &[&str]) {
        let mut known = definitions("struct Other { p: P }\nenum Far { A(Other) }\nstruct Alone;");
        known.extend(definitions(before));
        let changed = known.changed_by(&definitions(after));
        assert_eq!(Vec::from_iter(changed), expected, "{before} → {after}");
    }

    #[test]
    fn what_is_defined_anew_is_known_with_what_is_made_of_it() {
        check("struct P(u8);", "struct P(u8); let x = 1;", &[]);
        check("struct P(u8);", "struct P( // one\n  u8 );", &[]);
        check("struct P(u8);", "struct P(String);", &["Far", "Other", "P"]);
        check("struct P(u8);", "struct Q(String);", &[]);
        check("struct P(u8);", "struct P(", &[]);
        check(
            "const N: usize = 1;\nstruct P([u8; N]);",
            "const N: usize = 2;",
            &["Far", "N", "Other", "P"],
        );
    }

    #[test]
    fn a_type_is_found_by_whole_words() {
        let of = BTreeSet::from(["P".to_owned()]);
        assert!(names_one("Vec<(u8, P)>", &of) && names_one("&P", &of));
        assert!(!names_one("Point", &of) && !names_one("Vec<u8>", &of));
    }
}
