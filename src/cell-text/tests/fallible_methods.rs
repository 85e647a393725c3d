//! The lists of methods that may return a result of ours are complete: they are compared with the sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use stratoscope_cell_text::rewrite::unhandled::calls::{METHODS, SEARCHES};

/// The crates whose types a cell can name.
const CRATES: [&str; 11] = [
    "models",
    "run",
    "arguments",
    "data",
    "evaluation",
    "audit",
    "explain",
    "strategy",
    "bert",
    "stratoscope",
    "course",
];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|it| it == "rs") {
            into.push(path);
        }
    }
}

/// The public methods that return the `Result` of `stratoscope_diagnostics`, which has one type.
fn fallible(source: &str) -> impl Iterator<Item = &str> {
    after(source, " pub fn ")
}

/// Those of the traits by which models have methods of `explain`.
fn of_traits(source: &str) -> impl Iterator<Item = &str> {
    let traits = source.split("\npub trait ").skip(1);
    traits.flat_map(|rest| after(rest.split("\n}\n").next().unwrap_or_default(), " fn "))
}

/// The fallible methods behind each `word`.
fn after<'a>(source: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    source.split(word).skip(1).filter_map(|rest| {
        let end = rest.find([';', '{'])?;
        let signature = rest[..end].split("where").next()?;
        let (operands, returned) = signature.rsplit_once("->")?;
        let name = rest[..end].split(['(', '<']).next()?;
        let operands: String = operands.split_whitespace().collect();
        let receivers = ["(&self", "(&mutself", "(self", "(mutself"];
        let is_method = receivers.iter().any(|it| operands.contains(it));
        let (path, _) = returned.trim().split_once('<')?;
        let is_ours = ["Result", "stratoscope_diagnostics::Result"].contains(&path);
        (is_method && is_ours).then_some(name)
    })
}

#[test]
fn every_fallible_method_is_listed() {
    assert!(METHODS.is_sorted() && SEARCHES.is_sorted());
    let mut files = Vec::new();
    for name in CRATES {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(name)
            .join("src");
        sources(&folder, &mut files);
    }
    let is_explain = |path: &Path| path.components().any(|it| it.as_os_str() == "explain");
    let texts = files.iter().flat_map(|path| {
        let text = fs::read_to_string(path)?;
        Ok::<_, std::io::Error>((is_explain(path), text))
    });
    let texts: Vec<(bool, String)> = texts.collect();
    let mut found: BTreeSet<&str> = texts.iter().flat_map(|(_, text)| fallible(text)).collect();
    let explain = texts.iter().filter(|(is_explain, _)| *is_explain);
    found.extend(explain.flat_map(|(_, text)| of_traits(text)));
    let listed: BTreeSet<&str> = METHODS.iter().copied().chain(SEARCHES).collect();
    let missing: Vec<&&str> = found.difference(&listed).collect();
    assert!(missing.is_empty(), "not in the lists: {missing:?}");
    let gone: Vec<&&str> = listed.difference(&found).collect();
    assert!(gone.is_empty(), "no such method any more: {gone:?}");
}
