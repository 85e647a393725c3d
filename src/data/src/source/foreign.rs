//! What a file is that was given as text and is something else: its first bytes tell.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes of a file that are read to tell what it is.
const MAX_READ_BYTES: u64 = 256;

/// What a file begins with, what that is, and what to do; `{path}` stands for the path.
const KINDS: [(&[u8], &str, &str); 8] = [
    // Data sets unpack such files; a stream reads from any place on.
    (
        b"\x1f\x8b",
        "it is compressed with gzip, and a stream reads its files from any place on",
        "unpack it first: `!gunzip -k \"{path}\"`, then read the file without `.gz`; a data set in memory reads it as it is",
    ),
    (
        b"\x28\xb5\x2f\xfd",
        "it is compressed with zstd",
        "unpack it first: `!zstd -d \"{path}\"`, then read the file without `.zst`",
    ),
    (
        b"PK\x03\x04",
        "it is a zip archive or an Excel workbook",
        "unpack it, or save the sheet as CSV: in pandas `pd.read_excel(\"{path}\").to_csv(\"data.csv\", index=False)`",
    ),
    (
        b"PAR1",
        "it is a Parquet file",
        "read it by `Dataset::parquet(\"{path}\")?`",
    ),
    (
        b"ARROW1",
        "it is an Arrow file",
        "read it by `Dataset::arrow(\"{path}\")?`",
    ),
    (
        b"version https://git-lfs.github.com/spec/",
        "it is a Git LFS pointer, not the data",
        "fetch the data: `!git lfs pull` in the folder of the repository",
    ),
    (
        b"%PDF-",
        "it is a PDF document",
        "save its text or its table as a text file",
    ),
    (
        b"SQLite format 3",
        "it is a SQLite database",
        "write a table as CSV: `!sqlite3 -header -csv \"{path}\" \"select * from …\" > data.csv`",
    ),
];
const PAGE: (&str, &str) = (
    "it is an HTML page, not the data",
    "download the file itself: on the hub and on GitHub its address has `resolve` or `raw` in place of `blob`",
);

/// The same of a file, whose first bytes are read.
pub(super) fn foreign_file(
    path: &Path,
    name: &str,
    has_columns: bool,
) -> io::Result<Option<(&'static str, String)>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_READ_BYTES)
        .read_to_end(&mut bytes)?;
    Ok(foreign(&bytes, name, has_columns))
}

/// What the file is, and what to do. A page is text that may be meant, unless the file is to have columns.
pub(super) fn foreign(
    bytes: &[u8],
    path: &str,
    has_columns: bool,
) -> Option<(&'static str, String)> {
    if let Some((_, kind, way)) = KINDS.iter().find(|(begin, ..)| bytes.starts_with(begin)) {
        return Some((kind, way.replace("{path}", path)));
    }
    let begin = bytes[..bytes.len().min(256)].to_ascii_lowercase();
    let begin = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&begin);
    let is_page = [&b"<!doctype html"[..], b"<html"]
        .iter()
        .any(|tag| begin.trim_ascii_start().starts_with(tag));
    (is_page && has_columns).then(|| (PAGE.0, PAGE.1.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_kinds_are_named() {
        for (begin, expected) in [
            (&b"\x1f\x8b\x08\x00"[..], Some("gunzip -k \"a.csv\"")),
            (b"PK\x03\x04\x14", Some("read_excel(\"a.csv\")")),
            (b"PAR1\x15", Some("Dataset::parquet(\"a.csv\")")),
            (
                b"version https://git-lfs.github.com/spec/v1\n",
                Some("git lfs pull"),
            ),
            (b" \n<!DOCTYPE html>", Some("the file itself")),
            (b"text,label\n<html>,x\n", None),
            (b"", None),
        ] {
            let way = foreign(begin, "a.csv", true).map(|(_, way)| way);
            match expected {
                Some(words) => assert!(way.is_some_and(|way| way.contains(words)), "{words}"),
                None => assert_eq!(way, None),
            }
        }
        assert_eq!(foreign(b"<html>", "a.txt", false), None);
    }
}
