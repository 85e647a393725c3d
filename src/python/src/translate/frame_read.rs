//! The readers of pandas: `pd.read_csv(…)` and others like it.

use super::frame::OTHER_COLUMNS;
use super::thing::Pipeline;
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};

/// A file that is read.
struct Reading {
    reader: &'static str,
    path: String,
    /// Methods of `Columns`.
    columns: String,
    rows: Option<String>,
}

/// What becomes of an argument of a reader.
enum Unread {
    /// It is in the cell.
    Written,
    /// It sets nothing, and why.
    Idle(&'static str),
    /// It is not known.
    Other,
}

impl Translator<'_> {
    /// The data set of a file that pandas reads.
    pub(crate) fn read_frame(&mut self, value: &Value) -> Result<Pipeline, Why> {
        let full = self.names.called(value).unwrap_or_default();
        let call = value.call().ok_or("it is no call")?;
        let reader = reader_of(full.trim_start_matches("pandas.read_"), call)?;
        let path = call
            .arguments
            .first()
            .or_else(|| {
                ["filepath_or_buffer", "path", "path_or_buf"]
                    .iter()
                    .find_map(|it| call.argument(it, usize::MAX))
            })
            .ok_or("it names no file")?;
        let is_download = path.text().is_some_and(|it| it.contains("://"));
        if is_download {
            return Err("nothing is downloaded: `!wget …` in a cell fetches the file, and `Dataset::csv(\"data.csv\")?` reads it".to_owned());
        }
        let path = self.value(path)?;
        call.argument("", 0);
        let mut of = Reading {
            reader,
            path,
            columns: self.columns.in_rust(),
            rows: None,
        };
        for keyword in &call.keywords {
            let found = self.argument_of_reader(&keyword.name, &keyword.value, &mut of)?;
            if !matches!(found, Unread::Other) {
                call.keyword(&keyword.name);
            }
            if let Unread::Idle(why) = found {
                self.idle(keyword.span, why);
            }
        }
        let Reading {
            reader,
            path,
            columns,
            rows,
        } = of;
        let rust = match columns.is_empty() {
            true => format!("Dataset::{reader}({path})?"),
            false => format!("Dataset::{reader}_with({path}, &Columns::new(){columns})?"),
        };
        self.note(value.span, OTHER_COLUMNS);
        Ok(Pipeline::of(match rows {
            Some(rows) => format!("{rust}.take({rows})"),
            None => rust,
        }))
    }

    fn argument_of_reader(
        &mut self,
        name: &str,
        value: &Value,
        of: &mut Reading,
    ) -> Result<Unread, Why> {
        Ok(match name {
            "filepath_or_buffer" | "path" | "path_or_buf" | "lines" | "orient" => Unread::Written,
            "sep" | "delimiter" => match value.text() {
                Some("," | ";" | "\t") => Unread::Idle("the separator is found from the header"),
                _ => return Err(other_separator(&of.path, self.source(value.span))),
            },
            "encoding" => {
                let given = value.text().unwrap_or_default().to_lowercase();
                match given.as_str() {
                    "utf-8" | "utf8" | "utf-8-sig" => Unread::Idle("files are UTF-8"),
                    "latin-1" | "latin1" | "iso-8859-1" | "cp1252" | "windows-1252" | "ansi" => {
                        of.columns += ".encoding(\"latin-1\")";
                        Unread::Written
                    }
                    "utf-16" | "utf-16le" | "utf-16be" => {
                        of.columns += &format!(".encoding({})", text::text(&given));
                        Unread::Written
                    }
                    _ => {
                        return Err(format!(
                            "the encoding `{given}` is not read; in pandas `df.to_csv(\"data.csv\", index=False)` writes UTF-8"
                        ));
                    }
                }
            }
            "nrows" => {
                of.rows = Some(self.value(value)?);
                Unread::Written
            }
            "usecols" | "index_col" | "dtype" | "parse_dates" => Unread::Idle(OTHER_COLUMNS),
            "on_bad_lines" if value.text() == Some("skip") => {
                of.columns += ".skip_bad_rows()";
                Unread::Written
            }
            "error_bad_lines" if value.kind == Kind::Bool(false) => {
                of.columns += ".skip_bad_rows()";
                Unread::Written
            }
            "header" if value.integer() == Some(0) => Unread::Idle("the first line is the header"),
            "header" | "names" | "skiprows" => {
                return Err(format!(
                    "a file has a header in its first line here: `!sed -i '1i text,label' {}` adds one",
                    of.path.trim_matches('"')
                ));
            }
            "chunksize" | "iterator" => {
                return Err(format!(
                    "`Stream::{}({})?` reads a file in parts",
                    of.reader, of.path
                ));
            }
            "engine" | "low_memory" | "quotechar" | "quoting" | "compression" | "na_filter"
            | "skipinitialspace" | "warn_bad_lines" => Unread::Idle(
                "the file is read by one reader, quoted or not, compressed by gzip or not",
            ),
            _ => Unread::Other,
        })
    }
}

/// The reader of a format.
fn reader_of(format: &str, call: &Call) -> Result<&'static str, Why> {
    Ok(match format {
        "csv" | "table" => "csv",
        "json" => {
            let orient = call.argument("orient", 1).and_then(Value::text);
            let lines = call.keyword("lines").map(|it| &it.value.kind);
            if orient != Some("records") && lines != Some(&Kind::Bool(true)) {
                return Err(
                        "`Dataset::jsonl(\"data.jsonl\")?` reads one object a line, or a list of objects: in pandas \
                         `df.to_json(\"data.jsonl\", orient=\"records\", lines=True)` writes it"
                            .to_owned(),
                    );
            }
            "jsonl"
        }
        "parquet" => "parquet",
        "feather" => "arrow",
        "excel" => {
            return Err(
                "files of Excel are not read; saved as CSV it is `Dataset::csv(\"data.csv\")?`"
                    .to_owned(),
            );
        }
        other => {
            return Err(format!(
                "files of `{other}` are not read; `Dataset::csv`, `jsonl`, `parquet` and `arrow` read others"
            ));
        }
    })
}

/// Why a file with this separator is not read, and what writes another one.
fn other_separator(path: &str, separator: &str) -> Why {
    format!(
        "fields are separated by commas, `;` or tabs here: in Python `pd.read_csv({path}, sep={separator}).to_csv(\"data.csv\", index=False)` writes \
         such a file, which `Dataset::csv(\"data.csv\")?` reads"
    )
}
