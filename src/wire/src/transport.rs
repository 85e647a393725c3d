//! Framing: one message a line, over any stream.

use std::io::{BufRead, BufReader, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{MAX_MESSAGE_BYTES, WireError};

/// Writes messages, a line each.
#[derive(Debug)]
pub struct Writer<W> {
    stream: W,
}

impl<W: Write> Writer<W> {
    /// Writes to `stream`.
    pub fn new(stream: W) -> Self {
        Self { stream }
    }

    /// Writes one message and flushes it. A message that is too long is an error before anything
    /// is written, so that the next one still gets through.
    pub fn send<M: Serialize>(&mut self, message: &M) -> Result<(), WireError> {
        // JSON escapes every line break inside strings, so the line is one line.
        let mut line = serde_json::to_vec(message).map_err(WireError::Unwritable)?;
        if line.len() > MAX_MESSAGE_BYTES {
            return Err(WireError::TooLong {
                limit: MAX_MESSAGE_BYTES,
            });
        }
        line.push(b'\n');
        self.stream.write_all(&line)?;
        self.stream.flush()?;
        Ok(())
    }

    /// The stream, to shut it down.
    pub fn get_ref(&self) -> &W {
        &self.stream
    }
}

/// Reads messages, a line each.
#[derive(Debug)]
pub struct Reader<R> {
    stream: BufReader<R>,
    limit: usize,
    line: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// Reads from `stream` lines of at most [`MAX_MESSAGE_BYTES`].
    pub fn new(stream: R) -> Self {
        Self::with_limit(stream, MAX_MESSAGE_BYTES)
    }

    /// Reads from `stream` lines of at most `limit` bytes.
    pub fn with_limit(stream: R, limit: usize) -> Self {
        Self {
            stream: BufReader::new(stream),
            limit,
            line: Vec::new(),
        }
    }

    /// Waits for the next message. After [`WireError::Malformed`] the next line can be read; after
    /// any other error the connection is of no more use.
    pub fn receive<M: DeserializeOwned>(&mut self) -> Result<M, WireError> {
        self.read_line()?;
        serde_json::from_slice(&self.line).map_err(WireError::Malformed)
    }

    /// Fills `self.line` with the next line, without its end. Memory grows with what has arrived,
    /// never with what was announced.
    fn read_line(&mut self) -> Result<(), WireError> {
        self.line.clear();
        loop {
            let available = match self.stream.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            if available.is_empty() {
                return Err(match self.line.len() {
                    0 => WireError::Closed,
                    received => WireError::Truncated { received },
                });
            }
            let end = available.iter().position(|&byte| byte == b'\n');
            let taken = end.unwrap_or(available.len());
            if self.line.len() + taken > self.limit {
                return Err(WireError::TooLong { limit: self.limit });
            }
            self.line.extend_from_slice(&available[..taken]);
            self.stream.consume(taken + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{MimeBundle, ToKernel};

    /// Gives one byte a read, as a slow socket might.
    struct Dripping<'a>(&'a [u8]);

    impl Read for Dripping<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(&mut buffer[..1])
        }
    }

    #[test]
    fn messages_come_back_in_order_whatever_the_pieces() {
        let data = MimeBundle::from_iter([("text/plain".to_owned(), json!("a\nb\r\u{2028}\0\"é"))]);
        let sent = [
            ToKernel::Result { data },
            ToKernel::Interrupted,
            ToKernel::Synced { id: u64::MAX },
        ];
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        for message in &sent {
            writer.send(message).expect("writes");
        }
        assert_eq!(
            bytes.iter().filter(|&&byte| byte == b'\n').count(),
            sent.len()
        );
        let mut reader = Reader::new(Dripping(&bytes));
        for message in &sent {
            assert_eq!(reader.receive::<ToKernel>().expect("reads"), *message);
        }
        assert!(matches!(
            reader.receive::<ToKernel>(),
            Err(WireError::Closed)
        ));
    }

    #[test]
    fn a_line_beyond_the_limit_is_refused_while_reading() {
        // The endless reader would fill the memory if the limit were checked at the line's end.
        let mut reader = Reader::with_limit(std::io::repeat(b'x'), 1000);
        assert!(matches!(
            reader.receive::<ToKernel>(),
            Err(WireError::TooLong { limit: 1000 })
        ));
        let exact = br#"{"kind":"interrupted"}"#;
        let line = [&exact[..], b"\n"].concat();
        assert!(
            Reader::with_limit(&line[..], exact.len())
                .receive::<ToKernel>()
                .is_ok()
        );
        assert!(
            Reader::with_limit(&line[..], exact.len() - 1)
                .receive::<ToKernel>()
                .is_err()
        );
    }

    #[test]
    fn after_a_malformed_line_the_next_one_is_read() {
        let bytes = b"not json\n\xff\xfe\n\n{\"kind\":\"synced\",\"id\":2}\n";
        let mut reader = Reader::new(&bytes[..]);
        for _ in 0..3 {
            assert!(matches!(
                reader.receive::<ToKernel>(),
                Err(WireError::Malformed(_))
            ));
        }
        assert_eq!(
            reader.receive::<ToKernel>().expect("reads"),
            ToKernel::Synced { id: 2 }
        );
    }

    #[test]
    fn an_unfinished_line_is_known_from_an_orderly_end() {
        let mut reader = Reader::new(&b"{\"kind\""[..]);
        assert!(matches!(
            reader.receive::<ToKernel>(),
            Err(WireError::Truncated { received: 7 })
        ));
    }
}
