//! The text of a `Debug` as a tree: `Point { x: 1, tags: ["a"] }` has the fields `x` and `tags`. A `Debug` that
//! is derived has this form, and so have lists and maps of the standard library. Text of any other form is a value without
//! children.

use std::fmt::{self, Debug, Write};
use std::ops::Range;

use super::View;

/// Of a longer text only the beginning is read: about 1,000 fields.
const MOST_BYTES: usize = 64 << 10;
/// What is nested deeper is a text.
const DEEPEST: usize = 32;

/// The `Debug` of a value, cut at `most` bytes. What is behind is not even formatted. A `Debug` that panics is reported as
/// such.
pub(super) fn debug(value: &dyn Debug, most: usize) -> String {
    let mut cut = Cut {
        text: String::new(),
        most,
        is_full: false,
    };
    let written = super::register::guarded(|| write!(cut, "{value:?}"));
    match written {
        Ok(Ok(())) => cut.text,
        Ok(Err(_)) if cut.is_full => cut.text + "…",
        Ok(Err(_)) => cut.text + " (its `Debug` failed)",
        Err(message) => cut.text + &format!(" (its `Debug` panicked: {message})"),
    }
}

/// A text that ends at a number of bytes.
struct Cut {
    text: String,
    most: usize,
    is_full: bool,
}

impl Write for Cut {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = self.most.saturating_sub(self.text.len());
        self.is_full |= more.len() > room;
        self.text.push_str(&more[..more.floor_char_boundary(room)]);
        match self.is_full {
            true => Err(fmt::Error),
            false => Ok(()),
        }
    }
}

/// A text that was read, and its tree.
pub(super) struct Parsed {
    text: String,
    root: Node,
}

/// A part of the text.
#[derive(Debug)]
struct Node {
    text: Range<usize>,
    /// What stands before the first bracket: `Point`.
    head: Range<usize>,
    /// Whether the children are elements without names.
    is_list: bool,
    children: Vec<(String, Node)>,
}

impl Parsed {
    /// Of the `Debug` of a value.
    pub(super) fn of(value: &dyn Debug) -> Self {
        Self::read(debug(value, MOST_BYTES))
    }

    fn read(text: String) -> Self {
        let mut reader = Reader { text: &text, at: 0 };
        let mut root = reader.value(0);
        if reader.at < text.len() {
            // It is not of the form.
            root.children.clear();
        }
        root.text = 0..text.len();
        Self { text, root }
    }

    fn part<'a>(&'a self, node: &'a Node) -> Part<'a> {
        Part {
            text: &self.text,
            node,
        }
    }
}

impl View for Parsed {
    fn line(&self) -> String {
        self.part(&self.root).line()
    }

    fn named(&self) -> usize {
        self.part(&self.root).named()
    }

    fn indexed(&self) -> usize {
        self.part(&self.root).indexed()
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        let (name, node) = self.root.children.get(position)?;
        Some((name.clone(), Box::new(self.part(node))))
    }
}

/// A node with its text.
struct Part<'a> {
    text: &'a str,
    node: &'a Node,
}

impl View for Part<'_> {
    fn line(&self) -> String {
        self.text[self.node.text.clone()].trim().to_owned()
    }

    fn type_name(&self) -> String {
        let head = self.text[self.node.head.clone()].trim();
        let is_name = head
            .chars()
            .all(|it| it.is_alphanumeric() || it == '_' || it == ':');
        match is_name && !self.node.children.is_empty() {
            true => head.to_owned(),
            false => String::new(),
        }
    }

    fn named(&self) -> usize {
        match self.node.is_list {
            true => 0,
            false => self.node.children.len(),
        }
    }

    fn indexed(&self) -> usize {
        self.node.children.len() - self.named()
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        let (name, node) = self.node.children.get(position)?;
        let text = self.text;
        Some((name.clone(), Box::new(Part { text, node })))
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|it| it.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// A value ends before a comma, a closing bracket, or the colon behind a name.
    fn value(&mut self, depth: usize) -> Node {
        let start = self.at;
        let mut node = Node {
            text: start..start,
            head: start..start,
            is_list: false,
            children: Vec::new(),
        };
        let mut has_group = false;
        while let Some(byte) = self.peek() {
            match byte {
                b',' | b')' | b']' | b'}' => break,
                b':' if self.text.as_bytes().get(self.at + 1) == Some(&b' ') => break,
                b'"' => self.quoted(),
                b'\'' => self.character(),
                b'(' | b'[' | b'{' if depth < DEEPEST => {
                    let head = start..self.at;
                    let (children, is_list) = self.group(depth, byte);
                    if !has_group {
                        (node.head, node.children, node.is_list) = (head, children, is_list);
                    }
                    has_group = true;
                }
                b'(' | b'[' | b'{' => self.skip_group(),
                _ => self.at += 1,
            }
        }
        node.text = start..self.at;
        node
    }

    /// The parts in brackets, and whether they have no names.
    fn group(&mut self, depth: usize, open: u8) -> (Vec<(String, Node)>, bool) {
        self.at += 1;
        let mut children = Vec::new();
        let mut has_names = false;
        loop {
            self.space();
            match self.peek() {
                None => break,
                Some(b')' | b']' | b'}') => {
                    self.at += 1;
                    break;
                }
                Some(b',') => {
                    self.at += 1;
                    continue;
                }
                Some(_) => {}
            }
            let before = self.at;
            let mut node = self.value(depth + 1);
            let mut name = match open {
                b'(' => children.len().to_string(),
                _ => format!("[{}]", children.len()),
            };
            if self.peek() == Some(b':') {
                name = self.text[node.text.clone()].trim().to_owned();
                has_names = true;
                self.at += 1;
                self.space();
                node = self.value(depth + 1);
            }
            // `..` stands for what a `Debug` leaves out, and `…` for what was cut.
            if !matches!(self.text[node.text.clone()].trim(), ".." | "…" | "") {
                children.push((name, node));
            }
            if self.at == before {
                // A colon without a name.
                self.at += 1;
            }
        }
        (children, !has_names && open != b'(')
    }

    /// Brackets that are too deep, without their parts.
    fn skip_group(&mut self) {
        let mut open = 0;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.quoted();
                    continue;
                }
                b'(' | b'[' | b'{' => open += 1,
                b')' | b']' | b'}' => open -= 1,
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return;
            }
        }
    }

    fn quoted(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
        self.at = self.text.len();
    }

    /// `'a'` or `'\n'`; an apostrophe alone is a character of a word.
    fn character(&mut self) {
        let rest = &self.text[self.at + 1..];
        let length = match rest.strip_prefix('\\') {
            Some(escaped) => escaped.find('\'').map(|end| end + 1),
            None => rest.chars().next().map(char::len_utf8),
        };
        let closed = length
            .filter(|&length| length <= 12 && rest[length.min(rest.len())..].starts_with('\''));
        self.at += closed.map_or(1, |length| length + 2);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The tree in one line: `head(name=value, …)`.
    fn tree(view: &dyn View) -> String {
        let children = view.named() + view.indexed();
        if children == 0 {
            return view.line();
        }
        let parts = (0..children).filter_map(|position| {
            let (name, child) = view.child(position)?;
            Some(format!("{name}={}", tree(child.as_ref())))
        });
        let parts: Vec<String> = parts.collect();
        format!("{}<{}>", view.type_name(), parts.join(", "))
    }

    #[derive(Debug)]
    #[expect(dead_code, reason = "read by `Debug`")]
    enum Shape {
        Point { x: i32, label: Option<&'static str> },
        Pair(f64, char),
        Nothing,
    }

    #[test]
    fn derived_forms_are_read() {
        let point = Shape::Point {
            x: -1,
            label: Some("a, \"b\": {c}"),
        };
        let all = vec![
            point,
            Shape::Pair(0.5, ','),
            Shape::Pair(1.0, '\''),
            Shape::Nothing,
        ];
        let parsed = Parsed::of(&all);
        assert_eq!((parsed.named(), parsed.indexed()), (0, 4));
        assert_eq!(
            tree(&parsed),
            r#"<[0]=Point<x=-1, label=Some<0="a, \"b\": {c}">>, [1]=Pair<0=0.5, 1=','>, [2]=Pair<0=1.0, 1='\''>, [3]=Nothing>"#
        );
        let map = BTreeMap::from([("a: b", vec![1, 2]), ("c", vec![])]);
        let parsed = Parsed::of(&map);
        assert_eq!(parsed.named(), 2);
        assert_eq!(tree(&parsed), r#"<"a: b"=<[0]=1, [1]=2>, "c"=[]>"#);
    }

    #[test]
    fn text_of_any_other_form_is_one_value() {
        for text in [
            "",
            "a model: 3 layers, 2 heads",
            "}",
            "((",
            "[",
            "{:",
            "{a: ",
            "x'y, z",
            "…",
            "\"open",
            "'\\",
            "a) b",
            "[1, 2] and more",
            "Cell { value: <borrowed> }",
            ":: :",
            "{: 1, : 2}",
            "ä'ö",
            "'\\u{1F600}'",
        ] {
            let parsed = Parsed::read(text.to_owned());
            let _ = tree(&parsed);
            assert_eq!(parsed.line(), text.trim());
        }
        assert_eq!(Parsed::read("3 layers, 2 heads".to_owned()).named(), 0);
    }

    #[test]
    fn deep_and_long_texts_are_bounded() {
        let deep = Parsed::read("Some(".repeat(20_000));
        assert!(tree(&deep).len() < 1_000_000);
        let closed = "[".repeat(1000) + &"]".repeat(1000);
        assert_eq!(Parsed::read(closed).indexed(), 1);
        let long = debug(&vec![0_u8; 10_000_000], MOST_BYTES);
        assert!(long.len() <= MOST_BYTES + '…'.len_utf8() && long.ends_with('…'));
        let parsed = Parsed::read(long);
        assert!(parsed.indexed() > 1000, "{}", parsed.indexed());
    }

    #[test]
    fn a_debug_that_panics_or_fails_is_reported() {
        struct Bad(bool);
        impl Debug for Bad {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("Bad")?;
                assert!(!self.0, "no");
                Err(fmt::Error)
            }
        }
        assert_eq!(debug(&Bad(true), 100), "Bad (its `Debug` panicked: no)");
        assert_eq!(debug(&Bad(false), 100), "Bad (its `Debug` failed)");
    }
}
