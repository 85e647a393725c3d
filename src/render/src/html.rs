//! HTML: the one way in which text becomes part of a page.
//!
//! Text of a user, a file or a client is passed through [`escape`] where it becomes the text of an element, and
//! through [`attribute`] where it stands between the quotes of an attribute. Front ends sanitize what they show:
//! style sheets, SVG, scripts and variables are lost, so cards use inline styles with literal values.

use std::fmt::Write;

/// The style of code inside a sentence or a table.
pub const CODE_FONT: &str = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:0.92em";

/// Text as the content of an element. Front ends typeset `$…$`, even where the dollar is written as an entity, so
/// each dollar is put into an element of its own. Tabs and line ends stay; other control characters and those that
/// reorder text become U+FFFD.
pub fn escape(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '$' => html.push_str("<span>$</span>"),
            '\t' | '\n' => html.push(c),
            c => push(&mut html, c),
        }
    }
    html
}

/// Text between the quotes of an attribute. No control character stays.
pub fn attribute(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    text.chars().for_each(|c| push(&mut html, c));
    html
}

/// A sentence. Text between backticks is code; a backtick without a partner is shown as it is.
pub fn prose(text: &str) -> String {
    let mut html = String::new();
    let parts: Vec<&str> = text.split('`').collect();
    for (index, part) in parts.iter().enumerate() {
        let is_closed = index + 1 < parts.len();
        match index % 2 {
            1 if is_closed => html += &code(part),
            1 => html += &format!("`{}", escape(part)),
            _ => html += &escape(part),
        }
    }
    html
}

/// The class of a table of data, one record a row below one row of headings. The extension of JupyterLab sorts such a
/// table and shows it in pages (`kernel-spec/labextension/src/tables.ts`); elsewhere the class means nothing. A class is
/// kept where front ends sanitize.
pub const DATA_TABLE: &str = "stratoscope-rows";

/// The opening tag of a table of data, with an inline style or without one. A table that only aligns things is written
/// without this function.
///
/// ```
/// use stratoscope_render::html::data_table;
///
/// assert_eq!(data_table(""), "<table class=\"stratoscope-rows\">");
/// ```
pub fn data_table(style: &str) -> String {
    match style {
        "" => format!("<table class=\"{DATA_TABLE}\">"),
        style => format!(
            "<table class=\"{DATA_TABLE}\" style=\"{}\">",
            attribute(style)
        ),
    }
}

/// The style of most tables of data.
pub const DATA_TABLE_STYLE: &str = "border-collapse:collapse;font-size:13px;margin:4px 0";

/// The style of a cell of a table with a few columns of words.
pub const TABLE_CELL: &str = "padding:3px 12px;text-align:left;border-bottom:1px solid #80808059";

/// The style of a cell of a table with many columns of numbers.
pub const DENSE_CELL: &str = "padding:3px 7px;text-align:right;white-space:nowrap;\
                              border-bottom:1px solid #8080804d";

/// The style of a title above a table or a picture.
pub const TITLE_STYLE: &str = "font-size:13px;font-weight:600;margin:4px 0";

/// The style of a line above or below a table.
pub const NOTE_STYLE: &str = "font-size:13px;margin:2px 0;opacity:0.85";

/// The style of a row that has a name and a value beside it. On a narrow page the value is below the name.
pub const NAMED_ROW: &str = "display:flex;flex-wrap:wrap";

/// The style of the value in such a row; the name has a width of its own.
pub const NAMED_VALUE: &str = "flex:1 1 220px;min-width:0;overflow-wrap:break-word";

/// The beginning of a long text, in a box that scrolls. Below it, in a sentence, how to see the rest.
pub fn cut_text(beginning: &str, how: &str) -> String {
    format!(
        "<pre style=\"white-space:pre-wrap;overflow-wrap:break-word;max-height:240px;overflow-y:auto;margin:0\">{}…</pre>\
         <div style=\"{NOTE_STYLE}\">{}</div>",
        escape(beginning),
        prose(how)
    )
}

/// Text as code inside a line.
pub fn code(text: &str) -> String {
    format!("<code style=\"{CODE_FONT}\">{}</code>", escape(text))
}

/// A picture as an image that holds it: front ends remove `<svg>` from HTML, but not an image with its data. `alt` is
/// read out where the picture is not seen.
pub fn picture(svg: &str, alt: &str) -> String {
    format!(
        "<img alt=\"{}\" style=\"max-width:100%;vertical-align:middle\" src=\"{}\">",
        attribute(alt),
        address(svg)
    )
}

/// A picture as SVG as the address of an image.
pub fn address(svg: &str) -> String {
    let mut address = String::from("data:image/svg+xml,");
    for byte in svg.bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'-'
            | b'_'
            | b'.'
            | b'/'
            | b':'
            | b'='
            | b',' => address.push(char::from(byte)),
            other => {
                // Writing to a string cannot fail.
                let _ = write!(address, "%{other:02X}");
            }
        }
    }
    address
}

fn push(html: &mut String, c: char) {
    match c {
        '&' => html.push_str("&amp;"),
        '<' => html.push_str("&lt;"),
        '>' => html.push_str("&gt;"),
        '"' => html.push_str("&quot;"),
        '\'' => html.push_str("&#39;"),
        c if crate::is_invisible_command(c) => html.push('\u{fffd}'),
        c => html.push(c),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_character_with_a_meaning_is_replaced() {
        assert_eq!(
            escape("<a href=\"x\" b='y'>&"),
            "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;"
        );
        assert_eq!(
            escape("$x$\t\n\u{1b}\u{202e}"),
            "<span>$</span>x<span>$</span>\t\n\u{fffd}\u{fffd}"
        );
        assert_eq!(attribute("$\"\n\u{2066}"), "$&quot;\u{fffd}\u{fffd}");
    }

    #[test]
    fn code_in_sentences() {
        let expected = format!("a <code style=\"{CODE_FONT}\">b&lt;c</code> d");
        assert_eq!(prose("a `b<c` d"), expected);
        assert_eq!(prose("a ` b"), "a ` b");
    }

    #[test]
    fn a_text_that_was_cut_scrolls_above_what_to_do() {
        let html = cut_text("[<0>, ", "only the beginning; print it with `{:?}`");
        assert!(
            html.contains(">[&lt;0&gt;, …</pre>") && html.contains(">{:?}</code></div>"),
            "{html}"
        );
    }

    #[test]
    fn a_picture_is_an_image_with_its_data() {
        let image = picture("<svg>\"ü#\"</svg>", "a \"curve\"");
        let source = "src=\"data:image/svg+xml,%3Csvg%3E%22%C3%BC%23%22%3C/svg%3E\"";
        assert!(image.contains(source) && image.contains("alt=\"a &quot;curve&quot;\""));
        assert!(!image.contains("<svg"), "{image}");
    }

    /// The text that a browser shows for what this module writes.
    fn shown(html: &str) -> String {
        let mut text = String::new();
        let mut is_tag = false;
        for c in html.chars() {
            match c {
                '<' => is_tag = true,
                '>' => is_tag = false,
                c if !is_tag => text.push(c),
                _ => {}
            }
        }
        for (entity, c) in [
            ("&lt;", "<"),
            ("&gt;", ">"),
            ("&quot;", "\""),
            ("&#39;", "'"),
        ] {
            text = text.replace(entity, c);
        }
        text.replace("&amp;", "&")
    }

    proptest! {
        #[test]
        fn no_text_becomes_markup(text in "[\\PC<>&\"'$`\u{0}-\u{1f}\u{202a}-\u{2069}]{0,40}") {
            let bare = escape(&text).replace("<span>$</span>", "");
            prop_assert!(!bare.contains(['<', '>', '"', '\'', '$']), "{bare}");
            prop_assert!(!attribute(&text).contains(['<', '>', '"', '\'', '\n']));
            let visible = text.replace(
                |c| crate::is_invisible_command(c) && c != '\t' && c != '\n',
                "\u{fffd}",
            );
            prop_assert_eq!(shown(&escape(&text)), visible);
        }
    }
}
