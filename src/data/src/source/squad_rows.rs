//! The questions of a file of SQuAD, which is one JSON document: an object whose `data` are articles with `paragraphs`. Only
//! a paragraph is in memory, and from where one begins the rest of the document can be read.

use std::io::{self, BufRead, BufReader};

use serde::de::{DeserializeOwned, IgnoredAny};

use super::raw::{At, Content, Limited, Raw};
use super::squad::{Paragraph, Question};

/// The questions from a place on.
pub(super) struct Questions {
    input: BufReader<Limited>,
    /// The byte that comes next.
    offset: u64,
    /// The line of the question that comes next: its number, from 1.
    line: usize,
    /// The line of the text that was read last, where it was read from its begin, and of the last sign that is no space.
    text_line: usize,
    sign_line: usize,
    is_from_begin: bool,
    level: Level,
    /// Whether no value of the level has been read.
    is_first: bool,
    /// Whether the document has had its articles, and the article its paragraphs.
    has_data: bool,
    has_paragraphs: bool,
    open: Open,
    /// How many of the next paragraph's questions are passed over.
    passed_over: usize,
}

/// A paragraph and those of its questions that were not read.
#[derive(Default)]
struct Open {
    offset: u64,
    context: String,
    questions: std::iter::Enumerate<std::vec::IntoIter<Question>>,
}

/// What the next value is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Document,
    /// The array of articles.
    Articles,
    Article,
    /// The array of paragraphs.
    Paragraphs,
    /// Behind the document.
    End,
}

impl Level {
    /// The sign that ends it.
    fn close(self) -> u8 {
        match self {
            Self::Document | Self::Article => b'}',
            Self::Articles | Self::Paragraphs | Self::End => b']',
        }
    }

    /// What it is a part of.
    fn above(self) -> Self {
        match self {
            Self::Paragraphs => Self::Article,
            Self::Article => Self::Articles,
            Self::Articles => Self::Document,
            Self::Document | Self::End => Self::End,
        }
    }
}

impl Questions {
    /// From a place on: the begin of the document, or a question, which stands in the paragraph that begins there.
    pub(super) fn of(input: Limited, at: At) -> Self {
        // Nothing but a byte order mark is before the document, and more than that before a paragraph.
        let is_begin = at.offset <= 3;
        Self {
            input: BufReader::new(input),
            offset: at.offset,
            line: at.line - at.nth,
            text_line: 1,
            sign_line: 1,
            is_from_begin: is_begin,
            level: match is_begin {
                true => Level::End,
                false => Level::Paragraphs,
            },
            is_first: true,
            has_data: !is_begin,
            has_paragraphs: !is_begin,
            open: Open::default(),
            passed_over: at.nth,
        }
    }

    /// Where the next question stands, or about where.
    pub(super) fn here(&self) -> At {
        At::line(self.offset, self.line)
    }

    /// The line of the text at which the value begins that was read last.
    pub(super) fn line_of_text(&self) -> Option<usize> {
        self.is_from_begin.then_some(self.sign_line)
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Raw>> {
        loop {
            if let Some((nth, asked)) = self.open.questions.next() {
                let at = At {
                    offset: self.open.offset,
                    line: self.line,
                    nth,
                };
                self.line += 1;
                let content = Content::Question(asked, self.open.context.clone());
                return Ok(Some(Raw { at, content }));
            }
            let Some((offset, bytes)) = self.paragraph()? else {
                return Ok(None);
            };
            let Paragraph { context, qas } = parsed(&bytes, offset)?;
            let mut questions = qas.into_iter().enumerate();
            let passed_over = std::mem::take(&mut self.passed_over);
            self.line += questions.by_ref().take(passed_over).count();
            self.open = Open {
                offset,
                context,
                questions,
            };
        }
    }

    /// Where the next paragraph begins, and what stands there; `None` at the end.
    fn paragraph(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        if self.level == Level::End && !self.has_data {
            match self.significant()? {
                Some(b'{') => self.go(Level::Document),
                _ => return Err(unfit("it is not an object")),
            }
        }
        while self.level != Level::End {
            self.input.get_mut().begin_row();
            let mut sign = self.significant()?;
            if sign == Some(b',') && !self.is_first {
                sign = self.significant()?;
            } else if sign == Some(self.level.close()) {
                if self.level == Level::Article && !self.has_paragraphs {
                    return Err(unfit("missing field `paragraphs`"));
                }
                self.level = self.level.above();
                self.is_first = false;
                continue;
            } else if !self.is_first {
                return Err(self.unexpected(sign));
            }
            self.is_first = false;
            match (self.level, sign) {
                (Level::Document | Level::Article, Some(b'"')) => self.member()?,
                (Level::Articles, Some(b'{')) => {
                    self.has_paragraphs = false;
                    self.go(Level::Article);
                }
                (Level::Paragraphs, Some(b'{')) => {
                    let begin = self.offset - 1;
                    let mut bytes = vec![b'{'];
                    self.nested(&mut bytes)?;
                    return Ok(Some((begin, bytes)));
                }
                (_, sign) => return Err(self.unexpected(sign)),
            }
        }
        match self.significant()? {
            None if self.has_data => Ok(None),
            None => Err(unfit("missing field `data`")),
            sign => Err(self.unexpected(sign)),
        }
    }

    fn go(&mut self, level: Level) {
        (self.level, self.is_first) = (level, true);
    }

    /// A name and its value, which is passed over unless questions are in it.
    fn member(&mut self) -> io::Result<()> {
        let (begin, mut name) = (self.offset - 1, vec![b'"']);
        self.text(&mut name)?;
        let name: String = parsed(&name, begin)?;
        match self.significant()? {
            Some(b':') => {}
            sign => return Err(self.unexpected(sign)),
        }
        let (inside, has) = match (self.level, name.as_str()) {
            (Level::Document, "data") => (Level::Articles, &mut self.has_data),
            (Level::Article, "paragraphs") => (Level::Paragraphs, &mut self.has_paragraphs),
            _ => return self.pass_over(),
        };
        if std::mem::replace(has, true) {
            return Err(unfit(&format!("duplicate field `{name}`")));
        }
        match self.significant()? {
            Some(b'[') => {
                self.go(inside);
                Ok(())
            }
            sign => Err(self.unexpected(sign)),
        }
    }

    /// A value that is not read, but is JSON.
    fn pass_over(&mut self) -> io::Result<()> {
        let first = self.significant()?.ok_or_else(|| self.unexpected(None))?;
        let (begin, mut bytes) = (self.offset - 1, vec![first]);
        match first {
            b'"' => self.text(&mut bytes)?,
            b'{' | b'[' => self.nested(&mut bytes)?,
            _ => {
                while let Some(byte) = self.peek()?.filter(|it| !b",}]".contains(it)) {
                    bytes.push(byte);
                    self.byte()?;
                }
            }
        }
        parsed::<IgnoredAny>(&bytes, begin).map(drop)
    }

    /// The rest of a text, with its last quote.
    fn text(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        let mut is_escaped = false;
        loop {
            let byte = self.byte()?.ok_or_else(|| self.unexpected(None))?;
            into.push(byte);
            match byte {
                b'"' if !is_escaped => return Ok(()),
                _ => is_escaped = byte == b'\\' && !is_escaped,
            }
        }
    }

    /// The rest of an object or an array, with its last sign.
    fn nested(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        let (mut depth, mut in_text, mut is_escaped) = (1_usize, false, false);
        while depth > 0 {
            let part = self.input.fill_buf()?;
            if part.is_empty() {
                return Err(self.unexpected(None));
            }
            let end = part.iter().position(|byte| {
                match byte {
                    _ if is_escaped => is_escaped = false,
                    b'\\' if in_text => is_escaped = true,
                    b'"' => in_text = !in_text,
                    b'{' | b'[' if !in_text => depth += 1,
                    b'}' | b']' if !in_text => depth -= 1,
                    _ => {}
                }
                depth == 0
            });
            let read = end.map_or(part.len(), |end| end + 1);
            let ends = part[..read].iter().filter(|&&byte| byte == b'\n');
            self.text_line += ends.count();
            into.extend_from_slice(&part[..read]);
            self.input.consume(read);
            self.offset += read as u64;
        }
        Ok(())
    }

    /// The next byte that is no space.
    fn significant(&mut self) -> io::Result<Option<u8>> {
        loop {
            match self.byte()? {
                Some(b' ' | b'\t' | b'\n' | b'\r') => {}
                other => {
                    self.sign_line = self.text_line;
                    return Ok(other);
                }
            }
        }
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        Ok(self.input.fill_buf()?.first().copied())
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.peek()?;
        if byte.is_some() {
            self.input.consume(1);
            self.offset += 1;
            self.text_line += usize::from(byte == Some(b'\n'));
        }
        Ok(byte)
    }

    fn unexpected(&self, sign: Option<u8>) -> io::Error {
        let at = self.offset;
        match sign {
            Some(sign) => unfit(&format!("`{}` before byte {at}", sign.escape_ascii())),
            None => unfit(&format!("it ends at byte {at}")),
        }
    }
}

/// What some bytes from a place on say.
fn parsed<T: DeserializeOwned>(bytes: &[u8], offset: u64) -> io::Result<T> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| unfit(&format!("no UTF-8 text behind byte {offset}")))?;
    serde_json::from_str(text).map_err(|error| {
        let reason = error.to_string();
        let reason = reason.split(" at line ").next().unwrap_or_default();
        unfit(&format!("{reason}, behind byte {offset}"))
    })
}

fn unfit(reason: &str) -> io::Error {
    io::Error::other(format!("it is no JSON of SQuAD: {reason}"))
}
