//! The order of completions after a dot: frequently called methods first, methods that every type has last, private members
//! after them. rust-analyzer offers the private members of our crates too, because it takes their sources for the
//! notebook's own.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use stratoscope_compile::facade;
use stratoscope_session::Completion;

/// What people call of a model, a history, a data set, in this order.
const FIRST: &[&str] = &[
    "fit",
    "step",
    "epoch",
    "until",
    "finish",
    "predict",
    "evaluate",
    "compile",
    "summary",
    "save_pretrained",
    "placement",
    "plot",
    "get",
    "names",
    "head",
    "len",
    "split",
    "shuffled",
    "label_names",
    "num_parameters",
    "strategy",
    "freeze",
    "unfreeze",
    "add_lora",
    "merge_lora",
    "tokenizer",
];

/// What nearly every value has.
const LAST: &[&str] = &[
    "as_any",
    "borrow",
    "borrow_mut",
    "bundle",
    "clone",
    "clone_from",
    "clone_into",
    "cmp",
    "eq",
    "fmt",
    "ge",
    "gt",
    "hash",
    "into",
    "le",
    "lt",
    "ne",
    "partial_cmp",
    "to_owned",
    "to_string",
    "try_into",
    "type_id",
];

/// Puts members in order; those of equal rank stay in theirs.
pub fn sort(items: &mut [Completion]) {
    sort_with(items, private());
}

fn sort_with(items: &mut [Completion], private: &BTreeSet<String>) {
    let place = |names: &[&str], text: &str| names.iter().position(|name| *name == text);
    items.sort_by_key(|item| {
        let text = item.text.as_str();
        match place(FIRST, text) {
            Some(at) => (0, at),
            None if private.contains(text) => (3, 0),
            None if place(LAST, text).is_some() => (2, 0),
            None => (1, 0),
        }
    });
}

/// The names of fields and methods that are private wherever our crates have them, read from their sources
/// when they are first needed.
fn private() -> &'static BTreeSet<String> {
    static PRIVATE: OnceLock<BTreeSet<String>> = OnceLock::new();
    PRIVATE.get_or_init(|| {
        let mut found = Members::default();
        for name in [
            "stratoscope",
            "train",
            "bert",
            "data",
            "strategy",
            "diagnostics",
            "render",
        ] {
            found.read_folder(&facade::sources().join("src").join(name).join("src"));
        }
        found.private.retain(|name| !found.public.contains(name));
        found.private
    })
}

#[derive(Default)]
struct Members {
    private: BTreeSet<String>,
    public: BTreeSet<String>,
}

/// What the lines that are indented by one step are members of.
#[derive(Clone, Copy, PartialEq)]
enum Inside {
    /// Of a type: each says itself whether it is public.
    Type,
    /// Of a trait: as public as the trait.
    Trait,
    Other,
}

impl Members {
    fn read_folder(&mut self, folder: &Path) {
        // Sources that are not there any more leave everything in rust-analyzer's order.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                self.read_folder(&path);
            } else if path.extension().is_some_and(|it| it == "rs")
                && let Ok(text) = fs::read_to_string(&path)
            {
                self.read(&text);
            }
        }
    }

    /// Reads formatted source: items begin in the first column, members in the fifth.
    fn read(&mut self, text: &str) {
        let mut inside = Inside::Other;
        // A head may go on over several lines.
        let mut in_head = false;
        for line in text.lines() {
            let member = line
                .strip_prefix("    ")
                .filter(|rest| !rest.starts_with(' '));
            if line.starts_with('{') || line.starts_with("where") {
                in_head &= !line.contains('{');
            } else if !line.starts_with([' ', '}', ')', '\t']) && !line.is_empty() {
                inside = of_item(line);
                in_head = inside != Inside::Other && !line.contains('{');
            } else if in_head {
                if inside == Inside::Type && line.contains(" for ") {
                    inside = Inside::Trait;
                }
                in_head = !line.contains('{');
            } else if let Some(member) = member {
                self.read_member(member, inside);
            }
        }
    }

    fn read_member(&mut self, member: &str, inside: Inside) {
        let is_public = member.starts_with("pub ") || inside == Inside::Trait;
        let rest = match member.strip_prefix("pub(") {
            Some(rest) => rest.split_once(") ").map_or("", |(_, rest)| rest),
            None => member.strip_prefix("pub ").unwrap_or(member),
        };
        let rest = ["const ", "async ", "unsafe "]
            .iter()
            .fold(rest, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
        let (function, rest) = match rest.strip_prefix("fn ") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let is_name = |it: char| it.is_alphanumeric() || it == '_';
        let end = rest.find(|it| !is_name(it)).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let is_field = !function && behind.starts_with(": ");
        if name.is_empty() || inside == Inside::Other || !(function || is_field) {
            return;
        }
        match is_public {
            true => self.public.insert(name.to_owned()),
            false => self.private.insert(name.to_owned()),
        };
    }
}

fn of_item(line: &str) -> Inside {
    let bare = line.strip_prefix("pub ").unwrap_or(line);
    let bare = match bare.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ").map_or("", |(_, rest)| rest),
        None => bare,
    };
    let bare = bare.strip_prefix("unsafe ").unwrap_or(bare);
    let begins = |word: &str| {
        let rest = bare.strip_prefix(word);
        rest.is_some_and(|rest| !rest.starts_with(|it: char| it.is_alphanumeric() || it == '_'))
    };
    if begins("trait") || (begins("impl") && bare.contains(" for ")) {
        Inside::Trait
    } else if begins("impl") || begins("struct") {
        Inside::Type
    } else {
        Inside::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assist::item;

    const SOURCE: &str = "\
pub struct Model<N: Network> {
    inner: Arc<N>,
    pub source: String,
}

impl<N: Network> Model<N> {
    pub fn summary(&self) -> Summary {
        let local: u8 = 1;
    }

    pub(crate) fn state(&self) {}

    fn secret(&self) {}
}

impl<N> Clone
    for Model<N>
{
    fn clone(&self) -> Self {}
}

pub trait Plot {
    fn plot(&self);
}

fn free(
    argument: u8,
) {
}
";

    #[test]
    fn private_members_are_found() {
        let mut found = Members::default();
        found.read(SOURCE);
        let names = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found.private), ["inner", "secret", "state"]);
        assert_eq!(names(&found.public), ["clone", "plot", "source", "summary"]);
    }

    #[test]
    fn what_people_call_comes_first() {
        let offered = [
            "inner", "try_into", "build", "summary", "state", "fit", "clone", "apply",
        ];
        let mut items = offered.map(|name| item(name, "function", ""));
        let private = BTreeSet::from(["inner", "state"].map(str::to_owned));
        sort_with(&mut items, &private);
        let found = items.map(|item| item.text);
        let expected = [
            "fit", "summary", "build", "apply", "try_into", "clone", "inner", "state",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn our_own_sources_are_read() {
        for name in ["inner", "fit_from", "placement_here"] {
            assert!(private().contains(name), "{name}");
        }
        for name in ["summary", "fit", "plot", "examples", "label_names"] {
            assert!(!private().contains(name), "{name}");
        }
    }
}
