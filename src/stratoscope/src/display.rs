//! Displays below a running cell: text, HTML, Markdown, pictures, and every value of the project that has a card.
//! Without a kernel the plain text goes to standard output.

use serde_json::Value;
use stratoscope_data::summary::Head;
use stratoscope_data::{Dataset, Example, Stream};
use stratoscope_diagnostics::{Diagnostic, render};
use stratoscope_render::html::address;
use stratoscope_render::text;
use stratoscope_strategy::PlacementReport;
use stratoscope_wire::{MimeBundle, ToKernel};

use crate::connection;

mod devices;
mod forms;
mod nested;
mod records;
pub(crate) mod tensor;
mod track;

pub use forms::{Json, Latex, Png, Table};
pub use track::{Track, track};

/// The MIME type of a placement report as data. It is not `application/json`, because front ends prefer that type to HTML
/// and would show a tree of keys instead of the card.
pub const PLACEMENT: &str = "application/vnd.stratoscope.placement+json";

/// The MIME type of a data set's summary as data.
pub const DATA_SET: &str = "application/vnd.stratoscope.dataset+json";

/// A value with representations by MIME type. `text/plain` is always one of them, unless the bundle is empty.
pub trait IntoBundle {
    /// All representations.
    fn bundle(&self) -> MimeBundle;

    /// All representations of several values: one below the other, or one table of all.
    fn bundle_of_list(items: &[Self]) -> MimeBundle
    where
        Self: Sized,
    {
        nested::one_by_one(items)
    }
}

/// Implements [`IntoBundle`] for types that have their own HTML and plain text.
macro_rules! cards {
    ($($kind:ty),+ $(,)?) => {
        $(impl $crate::display::IntoBundle for $kind {
            fn bundle(&self) -> ::stratoscope_wire::MimeBundle {
                $crate::display::html_and_plain(self.to_html(), self.to_plain())
            }
        })+
    };
}
pub(crate) use cards;

cards!(Head, Stream);

/// Shows `value` below the running cell.
///
/// # Example
/// ```no_run
/// # use stratoscope::display::{Html, display};
/// display(&Html("<b>done</b>"));
/// ```
pub fn display<T: IntoBundle + ?Sized>(value: &T) {
    show(value.bundle(), None, false);
}

/// As [`display`], with an ID for [`display_update`].
pub fn display_as<T: IntoBundle + ?Sized>(display_id: &str, value: &T) {
    show(value.bundle(), Some(display_id), false);
}

/// Replaces every display with this ID.
pub fn display_update<T: IntoBundle + ?Sized>(display_id: &str, value: &T) {
    show(value.bundle(), Some(display_id), true);
}

/// Shows HTML. JupyterLab sanitizes it: styles must be literal `style` attributes.
pub fn display_html(html: &str) {
    display(&Html(html));
}

/// Removes the outputs of the cell; with `wait`, only when it shows something new.
pub fn clear_output(wait: bool) {
    connection::send(&ToKernel::ClearOutput { wait });
}

/// Asks the user for a line. `None` without a front end that can ask, or if an interrupt cancelled the question.
pub fn input(prompt: &str) -> Option<String> {
    connection::ask(prompt, false)
}

/// As [`input`], without showing what is typed.
pub fn input_password(prompt: &str) -> Option<String> {
    connection::ask(prompt, true)
}

/// Shows a warning or a note; the cell goes on.
pub fn warn(diagnostic: Diagnostic) {
    let message = ToKernel::Diagnostic {
        diagnostic: Box::new(diagnostic),
        line: crate::cell::statement_line(),
    };
    if !connection::send(&message)
        && let ToKernel::Diagnostic { diagnostic, .. } = message
    {
        eprintln!("{diagnostic}");
    }
}

/// Sends a bundle to the kernel, or prints its text when there is none.
pub(crate) fn show(data: MimeBundle, display_id: Option<&str>, update: bool) {
    if data.is_empty() {
        return;
    }
    if !connection::is_open() {
        // A display that is redrawn many times would flood a terminal: only its first form is printed.
        if !update && let Some(Value::String(text)) = data.get("text/plain") {
            println!("{text}");
        }
        return;
    }
    connection::send(&ToKernel::Display {
        data,
        metadata: MimeBundle::new(),
        display_id: display_id.map(str::to_owned),
        update,
    });
}

/// A bundle with a plain text only.
pub fn plain(text: impl Into<String>) -> MimeBundle {
    with("text/plain", text.into())
}

/// A bundle of HTML and plain text. Control characters of the plain text are made visible, because labels, texts and names
/// come from files, and a terminal would obey them.
pub fn html_and_plain(html: impl Into<String>, text: impl Into<String>) -> MimeBundle {
    let mut bundle = with("text/html", html.into());
    bundle.extend(with("text/plain", text::visible(&text.into())));
    bundle
}

/// A picture as SVG, and as HTML that contains it as an image. In a notebook that is not trusted, JupyterLab shows no SVG
/// and removes `<svg>` from HTML, but not an image with its data.
pub(crate) fn svg(picture: &str, alt: &str) -> MimeBundle {
    let source = address(picture);
    let image =
        format!("<img alt=\"{alt}\" style=\"max-width:100%;vertical-align:top\" src=\"{source}\">");
    svg_and_html(picture.to_owned(), image)
}

/// A picture as SVG, and as HTML that shows the same.
pub(crate) fn svg_and_html(picture: String, html: String) -> MimeBundle {
    let mut bundle = with("image/svg+xml", picture);
    bundle.extend(with("text/html", html));
    bundle
}

/// Not generic, and not inlined: what is generic above is compiled in every cell that uses it.
#[inline(never)]
fn with(mime: &str, text: String) -> MimeBundle {
    MimeBundle::from_iter([(mime.to_owned(), Value::String(text))])
}

/// HTML source.
#[derive(Clone, Debug)]
pub struct Html<T: AsRef<str>>(pub T);

/// Markdown source.
#[derive(Clone, Debug)]
pub struct Markdown<T: AsRef<str>>(pub T);

/// A picture as SVG.
#[derive(Clone, Debug)]
pub struct Svg<T: AsRef<str>>(pub T);

impl<T: AsRef<str>> IntoBundle for Html<T> {
    fn bundle(&self) -> MimeBundle {
        html_and_plain(self.0.as_ref(), without_tags(self.0.as_ref()))
    }
}

impl<T: AsRef<str>> IntoBundle for Markdown<T> {
    fn bundle(&self) -> MimeBundle {
        let mut bundle = with("text/markdown", self.0.as_ref().to_owned());
        bundle.extend(plain(self.0.as_ref()));
        bundle
    }
}

impl<T: AsRef<str>> IntoBundle for Svg<T> {
    fn bundle(&self) -> MimeBundle {
        let mut bundle = svg(self.0.as_ref(), "a picture");
        bundle.extend(plain("a picture (SVG)"));
        bundle
    }
}

impl IntoBundle for PlacementReport {
    fn bundle(&self) -> MimeBundle {
        let mut bundle = html_and_plain(self.to_html(), self.to_plain());
        bundle.insert(PLACEMENT.to_owned(), self.to_json());
        bundle
    }
}

impl IntoBundle for Dataset {
    fn bundle(&self) -> MimeBundle {
        let mut bundle = html_and_plain(self.to_html(), self.to_plain());
        bundle.insert(DATA_SET.to_owned(), self.to_json());
        bundle
    }
}

impl IntoBundle for Example {
    fn bundle(&self) -> MimeBundle {
        html_and_plain(self.to_html(), self.to_string())
    }
}

impl IntoBundle for Diagnostic {
    fn bundle(&self) -> MimeBundle {
        let source = render::Source {
            text: "",
            name: "here",
        };
        html_and_plain(render::html(self, &source), render::plain(self, &source))
    }
}

/// Nothing: a cell that ends in `()` shows nothing.
impl IntoBundle for () {
    fn bundle(&self) -> MimeBundle {
        MimeBundle::new()
    }
}

/// The text of HTML without its tags.
fn without_tags(html: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for character in html.chars() {
        match character {
            '<' => inside = true,
            '>' if inside => inside = false,
            _ if !inside => text.push(character),
            _ => {}
        }
    }
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_representation_has_a_text() {
        let check = |bundle: MimeBundle, mime: &str, text: &str| {
            assert!(bundle.contains_key(mime), "{bundle:?}");
            assert_eq!(bundle["text/plain"], text);
        };
        check(Html("<b>1</b> &lt; 2").bundle(), "text/html", "1 &lt; 2");
        check(Markdown("# t").bundle(), "text/markdown", "# t");
        check(Svg("<svg/>").bundle(), "image/svg+xml", "a picture (SVG)");
        check(Svg("<svg/>").bundle(), "text/html", "a picture (SVG)");
        let html = &Svg("<svg>\"ü#\"</svg>").bundle()["text/html"];
        let source = "src=\"data:image/svg+xml,%3Csvg%3E%22%C3%BC%23%22%3C/svg%3E\"";
        assert!(
            html.to_string().contains(&source.replace('"', "\\\"")),
            "{html}"
        );
        assert!(().bundle().is_empty());
    }

    #[test]
    fn without_a_kernel_nobody_can_be_asked() {
        assert_eq!((input("name? "), input_password("token? ")), (None, None));
    }
}
