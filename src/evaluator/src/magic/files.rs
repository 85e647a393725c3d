//! `%load FILE` puts a file's text into the cell; `%save FILE 1-3 5` writes the texts of cells.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;

use stratoscope_os::{environment, text_file};

/// A cell with more text than this is no help to anybody.
const MOST_BYTES: u64 = 4 << 20;

/// The text of a file.
///
/// # Errors
/// It cannot be read: what to say then.
pub fn load(path: &str) -> Result<String, String> {
    if path.is_empty() {
        return Err("which file? `%load FILE`".to_owned());
    }
    text_file::read(&environment::resolve(path), MOST_BYTES)
        .map_err(|reason| format!("`{path}` cannot be read: {reason}"))
}

/// Writes the cells with these numbers, or all of them; returns what to say. `now` is the number of this cell. An existing
/// file is replaced only with `-f`.
///
/// # Errors
/// The message if there is no such cell, or the file exists or cannot be written.
pub fn save(asked: &str, cells: &BTreeMap<u64, String>, now: u64) -> Result<String, String> {
    let mut words = asked.split_whitespace().peekable();
    let replace = words.next_if_eq(&"-f").is_some();
    let path = words
        .next()
        .ok_or("which file? `%save FILE`, `%save FILE 1-3 5`, `%save -f FILE`")?;
    let mut chosen = Vec::new();
    let mut left_out = Vec::new();
    for word in words {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let (Ok(first), Ok(last)) = (first.parse::<u64>(), last.parse::<u64>()) else {
            return Err(format!("`{word}` is no cell: write `3` or `1-3`"));
        };
        let before = chosen.len();
        let range = first.min(last)..=last.max(first);
        let asked = *range.start()..=(*range.end()).min(now.saturating_sub(1));
        left_out.extend(asked.filter(|number| !cells.contains_key(number)));
        chosen.extend(cells.range(range).map(|(_, text)| text.as_str()));
        if chosen.len() == before {
            return Err(format!("there is no cell {word} that ran"));
        }
    }
    if asked.split_whitespace().count() == 1 + usize::from(replace) {
        chosen = cells.values().map(String::as_str).collect();
    }
    let mut text = chosen.join("\n\n");
    text.push('\n');
    let mut options = fs::OpenOptions::new();
    options.write(true).truncate(true).create(true);
    if !replace {
        options.create_new(true);
    }
    // Nor does a pipe without a reader make the kernel wait.
    let written = options
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(environment::resolve(path))
        .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    match written {
        Ok(()) => {
            let cells = if chosen.len() == 1 { "cell" } else { "cells" };
            Ok(format!(
                "{} {cells} written to `{path}`{}",
                chosen.len(),
                without(&left_out)
            ))
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(format!(
            "`{path}` is there already; `%save -f {path}` replaces it"
        )),
        Err(error) => Err(format!("`{path}` cannot be written: {error}")),
    }
}

/// Which cells of those that were asked for are not in the file.
fn without(numbers: &[u64]) -> String {
    /// More are only counted.
    const MAX_NAMED: usize = 10;
    let named: Vec<String> = numbers.iter().take(MAX_NAMED).map(u64::to_string).collect();
    match numbers.len() {
        0 => String::new(),
        1 => format!(", without cell {}, which failed or was a magic", named[0]),
        count if count > MAX_NAMED => {
            format!(", without {count} cells, which failed or were magics")
        }
        _ => format!(
            ", without the cells {}, which failed or were magics",
            named.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_saved_by_number_and_loaded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cells.rs");
        let path = path.to_str().expect("is text");
        let cells = BTreeMap::from([(1, "let a = 1;".into()), (3, "a".into()), (4, "b".into())]);
        let said = save(&format!("{path} 1-3"), &cells, 5).expect("is written");
        assert!(
            said.ends_with(", without cell 2, which failed or was a magic"),
            "{said}"
        );
        assert_eq!(load(path).expect("is read"), "let a = 1;\n\na\n");
        let refused = save(path, &cells, 5).expect_err("is there already");
        assert!(refused.contains("-f"), "{refused}");
        let said = save(&format!("-f {path}"), &cells, 5).expect("is replaced");
        assert!(said.ends_with('`'), "{said}");
        assert_eq!(load(path).expect("is read"), "let a = 1;\n\na\n\nb\n");
        for asked in ["", "-f", "x.rs 2", "x.rs y"] {
            save(asked, &cells, 5).expect_err(asked);
        }
        load("/no/such/file").expect_err("is not there");
    }

    #[test]
    fn pipes_are_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe").display().to_string();
        let pipe = std::ffi::CString::new(path.as_str()).expect("no zeros");
        // SAFETY: a plain system call with a text that ends.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        let problem = load(&path).expect_err("nobody writes");
        assert!(
            problem.ends_with("a device or a pipe, not a file"),
            "{problem}"
        );
        let cells = BTreeMap::from([(1, "a".into())]);
        save(&format!("-f {path}"), &cells, 5).expect_err("nobody reads");
    }
}
