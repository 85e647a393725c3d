//! The names that a cell can write without an import: the prelude's, read from its source.

use std::sync::OnceLock;

use syn::{File, Item, UseTree, Visibility};

/// What stands at the start of an expression or a statement.
pub const KEYWORDS: [&str; 24] = [
    "async", "break", "const", "continue", "else", "enum", "extern", "false", "fn", "for", "if",
    "impl", "let", "loop", "match", "mod", "move", "pub", "return", "struct", "trait", "true",
    "use", "while",
];

/// Crates that every cell can name.
pub const CRATES: [&str; 4] = ["alloc", "core", "std", "stratoscope"];

/// The names that the prelude exports, sorted; macros without their `!`.
pub fn prelude() -> &'static [String] {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let source = include_str!("../../../stratoscope/src/prelude.rs");
        let file: Option<File> = syn::parse_str(source).ok();
        let mut names = Vec::new();
        for item in file.into_iter().flat_map(|file| file.items) {
            if let Item::Use(item) = item
                && matches!(item.vis, Visibility::Public(_))
            {
                collect(&item.tree, &mut names);
            }
        }
        names.sort();
        names.dedup();
        names
    })
}

fn collect(tree: &UseTree, names: &mut Vec<String>) {
    match tree {
        UseTree::Path(path) => collect(&path.tree, names),
        UseTree::Group(group) => group.items.iter().for_each(|tree| collect(tree, names)),
        UseTree::Name(name) => names.push(name.ident.to_string()),
        UseTree::Rename(rename) => names.push(rename.rename.to_string()),
        UseTree::Glob(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prelude_is_read() {
        for name in [
            "fit",
            "scope",
            "AdamW",
            "MirroredStrategy",
            "display",
            "Tensor",
        ] {
            assert!(prelude().iter().any(|it| it == name), "{name}");
        }
        assert!(prelude().len() > 40);
    }
}
