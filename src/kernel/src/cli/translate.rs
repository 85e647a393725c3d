//! `stratoscope translate FILE`: a Python file or notebook as cells of the DSL.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::json;
use stratoscope_diagnostics::render::{self, Source};
use stratoscope_os::console::{say, warn};
use stratoscope_os::text_file;
use stratoscope_python::{Cells, cells};

use crate::notebook::Notebook;

/// The largest file that is read.
const MAX_BYTES: u64 = 64 << 20;

/// Arguments of `stratoscope translate`.
#[derive(Debug, clap::Args)]
pub struct TranslateArguments {
    /// A Python file, or a notebook with Python cells
    #[arg(value_name = "FILE.py|FILE.ipynb")]
    file: PathBuf,
    /// Where the cells are written: a notebook (.ipynb), or a text; without it they are printed
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Translates the file; what is not translated, differs or is a mistake goes to standard error.
///
/// # Errors
/// The file cannot be read or written, or holds no Python.
pub fn run(arguments: &TranslateArguments) -> anyhow::Result<ExitCode> {
    let file = &arguments.file;
    let is_notebook = is_notebook(file);
    let mut notebook = match is_notebook {
        true => Notebook::read(file)?,
        false => of_text(file)?,
    };
    let code = notebook.code_cells();
    let texts: Vec<String> = code.iter().map(|&index| notebook.source(index)).collect();
    let translated = cells(&texts);
    if translated.cells.iter().all(Option::is_none) {
        bail!("{} holds no Python that can be read", file.display());
    }
    tell(&translated, &file.display().to_string());
    for (&index, cell) in code.iter().zip(&translated.cells) {
        let text = cell
            .clone()
            .unwrap_or_else(|| commented(&notebook.source(index)));
        notebook.replace_source(index, &text);
    }
    match &arguments.output {
        Some(output) if self::is_notebook(output) => {
            notebook.set_kernel();
            notebook.write(output)?;
            say(&format!("written to {}", output.display()));
        }
        Some(output) => {
            std::fs::write(output, printed(&notebook, &code) + "\n")
                .with_context(|| format!("cannot write {}", output.display()))?;
            say(&format!("written to {}", output.display()));
        }
        None => say(&printed(&notebook, &code)),
    }
    Ok(ExitCode::SUCCESS)
}

fn is_notebook(file: &Path) -> bool {
    file.extension().is_some_and(|it| it == "ipynb")
}

/// A Python file as a notebook with one cell.
fn of_text(file: &Path) -> anyhow::Result<Notebook> {
    let text = text_file::read(file, MAX_BYTES)
        .map_err(|reason| anyhow::anyhow!("cannot read {}: {reason}", file.display()))?;
    let cell = json!({"cell_type": "code", "execution_count": null, "id": "translated", "metadata": {},
                      "outputs": [], "source": text});
    let notebook = json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    Notebook::parse(&notebook.to_string())
}

/// What is no Python stays, as a comment.
fn commented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("// {line}")).collect();
    lines.join("\n")
}

/// The cells as one text, an empty line between them.
fn printed(notebook: &Notebook, code: &[usize]) -> String {
    let cells: Vec<String> = code
        .iter()
        .map(|&index| notebook.source(index))
        .filter(|text| !text.trim().is_empty())
        .collect();
    cells.join("\n\n")
}

/// The mistakes that our rules know, then what is left out or different.
fn tell(translated: &Cells, name: &str) {
    let source = Source {
        text: &translated.text,
        name,
    };
    for found in &translated.translation.findings {
        warn(&render::plain(found, &source));
    }
    for left in &translated.translation.left {
        let python = stratoscope_python::excerpt(&left.python);
        warn(&format!(
            "{name}, line {}: not translated, `{python}`: {}",
            left.lines.0, left.why
        ));
    }
    for note in &translated.translation.notes {
        warn(&format!("{name}, line {}: {}", note.line, note.text));
    }
    for idle in &translated.translation.idle {
        let python = stratoscope_python::excerpt(&idle.text);
        warn(&format!(
            "{name}, line {}: `{python}` sets nothing here: {}",
            idle.line, idle.why
        ));
    }
    for free in &translated.translation.free {
        let what = if free.what.is_empty() {
            "a value"
        } else {
            &free.what
        };
        warn(&format!("{name}: `{}` is to be given: {what}", free.name));
    }
}
