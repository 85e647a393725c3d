//! The page of a code, for `%explain CODE` and `stratoscope explain CODE`: a rule of this project, or an error of
//! rustc.

use stratoscope_diagnostics::check::suggest;
use stratoscope_diagnostics::{Entry, pages, rules};

use stratoscope_compile::compiler;

/// The page that explains a code.
#[derive(Debug)]
pub enum Page {
    /// A rule of this project.
    Project(&'static Entry),
    /// A code of rustc, and its page in Markdown.
    Rustc {
        /// `E0308`
        code: String,
        /// In Markdown.
        page: String,
    },
}

impl Page {
    /// The page of a code, in any letter case. `None`: there is no such code.
    pub fn of(code: &str) -> Option<Self> {
        if let Some(entry) = rules::explain(code) {
            return Some(Self::Project(entry));
        }
        let code = code.trim().to_uppercase();
        is_of_rustc(&code).then(|| {
            let page = rustc_page(&code).unwrap_or_else(|| {
                format!(
                    "{code} is an error of rustc: https://doc.rust-lang.org/error_codes/{code}.html"
                )
            });
            Self::Rustc { code, page }
        })
    }

    /// For a terminal.
    pub fn plain(&self) -> String {
        match self {
            Self::Project(entry) => pages::plain(entry).trim_end().to_owned(),
            Self::Rustc { page, .. } => page.trim_end().to_owned(),
        }
    }

    /// For a front end.
    pub fn markdown(&self) -> String {
        match self {
            Self::Project(entry) => pages::markdown(entry),
            Self::Rustc { code, page } => format!("## {code}\n{page}"),
        }
    }
}

/// The message for an unknown code; `list` is the command that lists all codes.
pub fn unknown(code: &str, list: &str) -> String {
    let near = match nearest(code) {
        Some(near) => format!("did you mean `{near}`? "),
        None => String::new(),
    };
    format!("there is no `{code}`; {near}`{list}` lists all codes")
}

/// The code that was probably meant.
fn nearest(code: &str) -> Option<String> {
    let code = code.trim().to_uppercase();
    let known = || rules::CATALOGUE.iter().map(|entry| entry.page.code);
    // Most often a zero is missing.
    let digits = code.strip_prefix("SC").unwrap_or(&code);
    let padded = format!("SC{digits:0>4}");
    if known().any(|known| known == padded) {
        return Some(padded);
    }
    suggest::similar(&code, known()).into_iter().next()
}

/// `E0308` and the like.
fn is_of_rustc(code: &str) -> bool {
    let digits = code.strip_prefix('E').unwrap_or_default();
    digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// rustc's own page, if rustc is installed.
fn rustc_page(code: &str) -> Option<String> {
    compiler::says(&["--explain", code])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_however_they_are_written() {
        for (code, begins) in [
            ("SC0102", "SC0102"),
            (" sc0102 ", "SC0102"),
            ("E0308", "Expected type did not match"),
            ("e0308", "Expected type did not match"),
        ] {
            let page = Page::of(code).expect(code).plain();
            assert!(page.starts_with(begins), "{code}: {page}");
        }
        for code in ["SC201", "E308", "E03080", "", "x"] {
            assert!(Page::of(code).is_none(), "{code}");
        }
    }

    #[test]
    fn an_unknown_code_has_a_similar_one_named() {
        for (code, expected) in [
            ("SC201", Some("SC0201")),
            ("201", Some("SC0201")),
            ("sc02O1", Some("SC0201")),
            ("SC0210", None),
            ("optimizer", None),
        ] {
            let message = unknown(code, "%explain");
            match expected {
                Some(near) => assert!(
                    message.contains(&format!("did you mean `{near}`?")),
                    "{message}"
                ),
                None => assert!(message.ends_with("`%explain` lists all codes"), "{message}"),
            }
            assert!(
                message.starts_with(&format!("there is no `{code}`")),
                "{message}"
            );
        }
    }
}
