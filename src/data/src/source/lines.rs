//! The lines of a file: of plain text, of tab-separated values, of JSON Lines.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader};

use super::raw::{At, Content, Limited, Raw};

/// The lines of a file.
pub(super) struct Lines {
    reader: BufReader<Limited>,
    next: At,
    /// The line that was read last, without its end.
    buffer: Vec<u8>,
    /// Whether an empty line is a row, unless only empty ones follow.
    with_blank: bool,
    /// What was read ahead: empty lines and the row after them.
    waiting: VecDeque<Raw>,
}

impl Lines {
    pub(super) fn of(input: Limited, next: At, with_blank: bool) -> Self {
        Self {
            reader: BufReader::new(input),
            next,
            buffer: Vec::new(),
            with_blank,
            waiting: VecDeque::new(),
        }
    }

    /// The next line that is a row.
    pub(super) fn next(&mut self) -> io::Result<Option<Raw>> {
        if let Some(raw) = self.waiting.pop_front() {
            return Ok(Some(raw));
        }
        while let Some(raw) = self.line()? {
            let is_blank = match &raw.content {
                Content::Line(line) if self.with_blank => line.is_empty(),
                Content::Line(line) => line.trim().is_empty(),
                _ => false,
            };
            match (is_blank, self.with_blank) {
                (true, true) => self.waiting.push_back(raw),
                (true, false) => {}
                (false, _) if self.waiting.is_empty() => return Ok(Some(raw)),
                (false, _) => {
                    self.waiting.push_back(raw);
                    return Ok(self.waiting.pop_front());
                }
            }
        }
        self.waiting.clear();
        Ok(None)
    }

    /// Where the row after the one that was read begins.
    pub(super) fn here(&self) -> At {
        self.waiting.front().map_or(self.next, |raw| raw.at)
    }

    /// Whether a row may have this many bytes.
    pub(super) fn is_row(&self, bytes: u64) -> bool {
        self.reader.get_ref().is_row(bytes)
    }

    fn line(&mut self) -> io::Result<Option<Raw>> {
        let Some(at) = self.advance()? else {
            return Ok(None);
        };
        let content = match self.text() {
            Some(text) => Content::Line(text.to_owned()),
            None => Content::NotText,
        };
        Ok(Some(Raw { at, content }))
    }

    /// Reads the next line, whatever it has; where it begins.
    pub(super) fn advance(&mut self) -> io::Result<Option<At>> {
        self.reader.get_mut().begin_row();
        self.buffer.clear();
        let read = self.reader.read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(None);
        }
        let at = self.next;
        self.next = At::line(at.offset + read as u64, at.line + 1);
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
            if self.buffer.last() == Some(&b'\r') {
                self.buffer.pop();
            }
        }
        Ok(Some(at))
    }

    /// The line that was read last, if it is UTF-8.
    pub(super) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.buffer).ok()
    }
}
