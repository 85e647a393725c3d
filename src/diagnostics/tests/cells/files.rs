//! Cells in files: `tests/cells/*.md`, which tests with the kernel read too (`tests/cell_files.py`), the pages of the book and
//! the notebooks.

use std::path::{Path, PathBuf};

/// A cell, what is expected of it, and further blocks, such as the corrected cell.
#[derive(Default)]
pub struct Case {
    pub name: String,
    pub expected: String,
    pub words: Vec<String>,
    pub blocks: Vec<String>,
}

/// Cases that follow the same cell, or cells without a name.
#[derive(Default)]
pub struct Section {
    pub before: Vec<String>,
    pub cases: Vec<Case>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text_of(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files of a folder with this extension, sorted.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == extension));
    paths.sort();
    paths
}

/// The sections of a file of `tests/cells/`. `tests/cell_files.py` explains what they are made of.
pub fn sections(name: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut block: Option<Vec<&str>> = None;
    let text = text_of(&root().join("tests/cells").join(name));
    for line in text.lines() {
        if let Some(lines) = &mut block {
            if line != "```" {
                lines.push(line);
                continue;
            }
            let code = lines.join("\n");
            let section = sections.last_mut().expect("a block is in a section");
            match section.cases.last_mut() {
                Some(case) => case.blocks.push(code),
                None => section.before.push(code),
            }
            block = None;
        } else if line.starts_with("```") {
            block = Some(Vec::new());
        } else if line.starts_with("# ") {
            sections.push(Section::default());
        } else if let Some(section) = sections.last_mut() {
            if let Some(name) = line.strip_prefix("## ") {
                section.cases.push(Case {
                    name: name.to_owned(),
                    ..Case::default()
                });
            } else if let Some(case) = section.cases.last_mut() {
                match line.strip_prefix("- ") {
                    Some(words) => case.words.push(words.to_owned()),
                    None => case.expected += line,
                }
            }
        }
    }
    sections
}

/// The cells of a document in their order. An error is allowed in those that show one.
pub struct Document {
    pub name: String,
    pub cells: Vec<(String, bool)>,
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The pages of the book. `tests/test_book.py` explains how their cells are marked.
pub fn pages() -> Vec<Document> {
    let page = |path: PathBuf| {
        let mut cells = Vec::new();
        let mut block: Option<(Vec<&str>, &str, bool)> = None;
        let text = text_of(&path);
        for line in text.lines() {
            if let Some((lines, end, may_fail)) = &mut block {
                if line == *end {
                    cells.push((lines.join("\n"), *may_fail));
                    block = None;
                } else {
                    lines.push(line);
                }
            } else if line == "<!-- cell" {
                block = Some((Vec::new(), "-->", false));
            } else if let Some(info) = line.strip_prefix("```rust") {
                block = Some((Vec::new(), "```", info.contains("SC")));
            }
        }
        Document {
            name: name_of(&path),
            cells,
        }
    };
    files("docs", "md").into_iter().map(page).collect()
}

/// The notebooks, those of the course too. A cell that is marked as one that raises may have an error.
pub fn notebooks() -> Vec<Document> {
    let notebook = |path: PathBuf| {
        let notebook: serde_json::Value =
            serde_json::from_str(&text_of(&path)).expect("a notebook is JSON");
        let all = notebook["cells"].as_array().expect("with cells");
        let code = all.iter().filter(|cell| cell["cell_type"] == "code");
        let cells = code.map(|cell| {
            let source = match &cell["source"] {
                serde_json::Value::String(text) => text.clone(),
                lines => {
                    let lines = lines.as_array().into_iter().flatten();
                    lines.filter_map(|line| line.as_str()).collect()
                }
            };
            let mut tags = cell["metadata"]["tags"].as_array().into_iter().flatten();
            (source, tags.any(|tag| tag == "raises-exception"))
        });
        Document {
            cells: cells.collect(),
            name: name_of(&path),
        }
    };
    let folders = [
        "notebooks",
        "notebooks/course",
        "notebooks/course/solutions",
    ];
    let paths = folders.iter().flat_map(|folder| files(folder, "ipynb"));
    paths.map(notebook).collect()
}
