//! The cells of a notebook as one program: what a cell makes, the next one knows.

use crate::{Known, Line, Translation, parse, translate};

/// The translated cells of a notebook.
#[derive(Clone, Debug)]
pub struct Cells {
    /// The program that they are together: lines count in it.
    pub text: String,
    /// Their translations in their order; `None` for a cell that is no Python.
    pub cells: Vec<Option<String>>,
    /// What was found, left out and is different.
    pub translation: Translation,
}

/// Translates the cells of a notebook.
pub fn cells(texts: &[String]) -> Cells {
    let mut text = String::new();
    // The first line of each cell, counted from 1.
    let mut starts = Vec::new();
    for cell in texts {
        let is_python = parse::program(cell).is_some();
        starts.push(is_python.then(|| 1 + text.matches('\n').count()));
        if is_python {
            text += cell.trim_end();
            text += "\n\n";
        }
    }
    let translation = match parse::program(&text) {
        Some(program) => translate::translate(&text, &program, &Known::default()),
        None => Translation::default(),
    };
    let mut written: Vec<Option<Vec<Line>>> = starts
        .iter()
        .map(|start| start.map(|_| Vec::new()))
        .collect();
    let mut current = starts.iter().position(Option::is_some).unwrap_or(0);
    for line in &translation.lines {
        if let (Some((first, _)), 0) = (line.python, line.depth) {
            let is_before = |start: &Option<usize>| start.is_some_and(|start| start <= first);
            current = starts.iter().rposition(is_before).unwrap_or(current);
        }
        if let Some(Some(lines)) = written.get_mut(current) {
            lines.push(line.clone());
        }
    }
    let cells = written.into_iter().map(|lines| {
        let mut lines = lines?;
        translate::spelling::allow_names(&mut lines);
        let translation = Translation {
            lines,
            ..Translation::default()
        };
        Some(translation.cell())
    });
    Cells {
        cells: cells.collect(),
        text,
        translation,
    }
}
