//! What is known of a program before its statements are translated.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Kind, Statement, StatementKind, each_statement, each_value};

/// How often each name is read.
pub(super) fn uses(statements: &[Statement]) -> BTreeMap<String, usize> {
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    each_statement(statements, &mut |statement| {
        let targets = match &statement.kind {
            StatementKind::Assign(targets, _) => targets.len(),
            _ => 0,
        };
        for value in statement.values().into_iter().skip(targets) {
            value.visit(&mut |value| {
                if let Some(name) = value.name() {
                    *uses.entry(name.to_owned()).or_default() += 1;
                }
            });
        }
    });
    uses
}

/// Names that are changed in place, or assigned again in a block that does not make them.
pub(super) fn changing(statements: &[Statement]) -> BTreeSet<String> {
    let mut changing = BTreeSet::new();
    each_statement(statements, &mut |statement| {
        if let StatementKind::Augment(target, _, _) = &statement.kind {
            changing.extend(target.name().map(str::to_owned));
        }
        let is_loop = matches!(
            statement.kind,
            StatementKind::For(..) | StatementKind::While(..) | StatementKind::If(_)
        );
        if is_loop {
            for block in statement.blocks() {
                each_statement(block, &mut |inner| {
                    if let StatementKind::Assign(targets, _) = &inner.kind {
                        changing
                            .extend(targets.iter().filter_map(|it| it.name().map(str::to_owned)));
                    }
                });
            }
        }
    });
    changing
}

/// What names are given to: `metrics` in `model.compile(metrics=wanted)` for `wanted`.
pub(super) fn roles(statements: &[Statement]) -> BTreeMap<String, String> {
    let mut roles = BTreeMap::new();
    each_value(statements, &mut |value| {
        let is_compile = value.method("compile").is_some();
        let is_fit = value.method("fit").is_some();
        if let (true, Some(call)) = (is_compile || is_fit, value.call()) {
            let given = call.keywords.iter();
            for keyword in given.filter(|it| is_compile || it.name == "callbacks") {
                if let Some(name) = keyword.value.name() {
                    roles.insert(name.to_owned(), keyword.name.clone());
                }
            }
        }
    });
    roles
}

/// Whether a loop by hand gives its batches to the replicas.
pub(super) fn distributes(statements: &[Statement]) -> bool {
    let mut found = false;
    each_value(statements, &mut |value| {
        if let Kind::Attribute(_, name) = &value.kind {
            found |= matches!(
                name.as_str(),
                "run"
                    | "experimental_run_v2"
                    | "experimental_distribute_dataset"
                    | "distribute_datasets_from_function"
            );
        }
    });
    found
}
