//! The file of a notebook (nbformat 4): it is read, its cells change, it is written back. Everything else in the file
//! stays as it was, in the same order.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, anyhow, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use stratoscope_os::text_file;

/// The largest notebook that is read; front ends cannot open larger ones.
const MAX_BYTES: u64 = 1 << 30;

/// A notebook in memory.
#[derive(Debug)]
pub struct Notebook {
    json: Value,
}

impl Notebook {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a notebook of format 4.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = text_file::read(path, MAX_BYTES)
            .map_err(|reason| anyhow!("cannot read the notebook {}: {reason}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} is not a notebook", path.display()))
    }

    /// Reads the text of a file.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let json: Value = serde_json::from_str(text)?;
        let format = json["nbformat"].as_u64().context("it has no `nbformat`")?;
        ensure!(
            format == 4,
            "it has notebook format {format}, but only format 4 is supported; open and save it in JupyterLab to convert it"
        );
        let cells = json["cells"]
            .as_array()
            .context("it has no list of `cells`")?;
        for (index, cell) in cells.iter().enumerate() {
            ensure!(cell.is_object(), "cell {} is not an object", index + 1);
            let source = &cell["source"];
            let is_text = source.is_string()
                || source
                    .as_array()
                    .is_some_and(|lines| lines.iter().all(Value::is_string));
            ensure!(is_text, "cell {} has no `source` text", index + 1);
        }
        Ok(Self { json })
    }

    /// Writes a temporary file and renames it, so that the old file survives a full disk.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        // A link stays one: what it leads to is written.
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = target.parent().filter(|it| !it.as_os_str().is_empty());
        let written = || -> anyhow::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
            file.write_all(self.to_text()?.as_bytes())?;
            if let Ok(metadata) = std::fs::metadata(&target) {
                file.as_file().set_permissions(metadata.permissions())?;
            } else {
                use std::os::unix::fs::PermissionsExt;
                file.as_file()
                    .set_permissions(std::fs::Permissions::from_mode(0o644))?;
            }
            file.persist(&target)?;
            Ok(())
        };
        written().with_context(|| format!("cannot write {}", path.display()))
    }

    /// The text as `nbformat` writes it: indented by one space, with a final line end.
    fn to_text(&self) -> anyhow::Result<String> {
        let mut bytes = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
        self.json
            .serialize(&mut serde_json::Serializer::with_formatter(
                &mut bytes, formatter,
            ))?;
        bytes.push(b'\n');
        Ok(String::from_utf8(bytes)?)
    }

    /// All cells.
    pub fn cells(&self) -> &[Value] {
        self.json["cells"].as_array().map_or(&[], Vec::as_slice)
    }

    /// All cells, to change them.
    pub fn cells_mut(&mut self) -> &mut [Value] {
        self.json["cells"]
            .as_array_mut()
            .map_or(&mut [], Vec::as_mut_slice)
    }

    /// The positions of the cells to execute.
    pub fn code_cells(&self) -> Vec<usize> {
        let is_code = |cell: &Value| cell["cell_type"] == "code";
        (0..self.cells().len())
            .filter(|&index| is_code(&self.cells()[index]))
            .collect()
    }

    /// The text of a cell.
    pub fn source(&self, index: usize) -> String {
        joined(&self.cells()[index]["source"])
    }

    /// Replaces the text of a code cell; its outputs go.
    pub fn replace_source(&mut self, index: usize, text: &str) {
        let cell = &mut self.cells_mut()[index];
        cell["source"] = text.into();
        cell["outputs"] = json!([]);
        cell["execution_count"] = Value::Null;
    }

    /// Puts a code cell with this tag, which is its identifier too, before the cell at `index`.
    pub fn insert_code(&mut self, index: usize, text: &str, tag: &str) {
        let mut cell = json!({"cell_type": "code", "execution_count": null, "metadata": {"tags": [tag]},
            "outputs": [], "source": text});
        // Identifiers came with format 4.5.
        if self.json["nbformat_minor"].as_u64() >= Some(5) {
            cell["id"] = tag.into();
        }
        if let Some(cells) = self.json["cells"].as_array_mut() {
            cells.insert(index, cell);
        }
    }

    /// Makes this product the kernel of the notebook.
    pub fn set_kernel(&mut self) {
        self.json["metadata"]["kernelspec"] = json!({"display_name": "Rust (stratoscope)", "language": "rust", "name": "stratoscope"});
        self.json["metadata"]["language_info"] = json!({"name": "rust", "file_extension": ".rs",
            "mimetype": "text/rust", "pygments_lexer": "rust"});
    }

    /// The tags in a cell's metadata.
    pub fn tags(&self, index: usize) -> Vec<&str> {
        let tags = self.cells()[index]["metadata"]["tags"].as_array();
        tags.into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    /// Removes the outputs and the execution count of a cell.
    pub fn clear(&mut self, index: usize) {
        let cell = &mut self.cells_mut()[index];
        cell["outputs"] = json!([]);
        cell["execution_count"] = Value::Null;
    }

    /// Sets the execution count of a cell.
    pub fn set_execution_count(&mut self, index: usize, number: u64) {
        self.cells_mut()[index]["execution_count"] = json!(number);
    }

    /// Sets the language of the notebook.
    pub fn set_language_info(&mut self, info: Value) {
        if !self.json["metadata"].is_object() {
            self.json["metadata"] = json!({});
        }
        self.json["metadata"]["language_info"] = info;
    }
}

/// nbformat's text: a string, or a list of lines.
fn joined(text: &Value) -> String {
    match text {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

/// Text as nbformat stores it: a list of lines that keep their ends.
pub fn lines(text: &str) -> Value {
    text.split_inclusive('\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "a",
   "metadata": {},
   "source": "# Größe"
  },
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "b",
   "metadata": {
    "zzz": 1,
    "tags": [
     "raises-exception"
    ]
   },
   "outputs": [
    {}
   ],
   "source": [
    "let x = 1;\n",
    "x"
   ]
  }
 ],
 "metadata": {
  "kernelspec": {
   "name": "stratoscope"
  }
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

    #[test]
    fn what_is_not_changed_stays_byte_for_byte() {
        let notebook = Notebook::parse(NOTEBOOK).expect("is a notebook");
        assert_eq!(notebook.to_text().expect("is text"), NOTEBOOK);
    }

    #[test]
    fn a_link_to_a_notebook_stays_a_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (
            folder.path().join("own.ipynb"),
            folder.path().join("link.ipynb"),
        );
        std::fs::write(&file, "{}").expect("room");
        std::os::unix::fs::symlink("own.ipynb", &link).expect("a link");
        let notebook = Notebook::parse(NOTEBOOK).expect("is a notebook");
        notebook.write(&link).expect("room");
        assert!(link.is_symlink());
        assert_eq!(
            std::fs::read_to_string(&file).expect("it is there"),
            NOTEBOOK
        );
    }

    #[test]
    fn cells_are_read() {
        let mut notebook = Notebook::parse(NOTEBOOK).expect("is a notebook");
        assert_eq!(notebook.code_cells(), [1]);
        assert_eq!(notebook.source(0), "# Größe");
        assert_eq!(notebook.source(1), "let x = 1;\nx");
        assert_eq!(notebook.tags(1), ["raises-exception"]);
        assert!(notebook.tags(0).is_empty());
        notebook.clear(1);
        assert_eq!(notebook.cells()[1]["outputs"], json!([]));
        notebook.set_execution_count(1, 3);
        assert_eq!(notebook.cells()[1]["execution_count"], 3);
    }

    #[test]
    fn files_that_are_no_notebooks_are_refused() {
        let check = |text: &str, expected: &str| {
            let error = Notebook::parse(text).expect_err("is refused");
            assert!(format!("{error:#}").contains(expected), "{error:#}");
        };
        check("", "EOF");
        check("[]", "no `nbformat`");
        check(r#"{"nbformat": 3, "worksheets": []}"#, "format 3");
        check(r#"{"nbformat": 4}"#, "no list of `cells`");
        check(
            r#"{"nbformat": 4, "cells": [1]}"#,
            "cell 1 is not an object",
        );
        check(
            r#"{"nbformat": 4, "cells": [{"source": [1]}]}"#,
            "cell 1 has no `source`",
        );
    }

    #[test]
    fn lines_keep_their_ends() {
        assert_eq!(lines("a\nb"), json!(["a\n", "b"]));
        assert_eq!(lines("a\n"), json!(["a\n"]));
        assert_eq!(lines(""), json!([]));
    }
}
