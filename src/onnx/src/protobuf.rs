//! The encoding of protobuf, as far as the messages of ONNX need it: integers, floats, texts and messages in messages.
//! Source: <https://protobuf.dev/programming-guides/encoding/>.

/// What follows a key: a varint, a length and as many bytes, or four bytes.
const VARINT: u32 = 0;
const LENGTH: u32 = 2;
const FOUR_BYTES: u32 = 5;

/// A message while it is written: fields in the order of the calls.
#[derive(Clone, Debug, Default)]
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// The fields.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// An integer, or the number of an enumeration's value.
    pub fn int(&mut self, field: u32, value: i64) -> &mut Self {
        self.key(field, VARINT);
        // A negative number is its two's complement in 64 bits.
        varint(&mut self.bytes, value as u64);
        self
    }

    /// A `float`.
    pub fn float(&mut self, field: u32, value: f32) -> &mut Self {
        self.key(field, FOUR_BYTES);
        self.bytes.extend(value.to_le_bytes());
        self
    }

    /// A `string`.
    pub fn text(&mut self, field: u32, value: &str) -> &mut Self {
        self.chunk(field, value.as_bytes())
    }

    /// A message in this one.
    pub fn message(&mut self, field: u32, value: &Self) -> &mut Self {
        self.chunk(field, &value.bytes)
    }

    /// The key and the length of a field whose bytes the caller writes behind this message.
    pub fn open(&mut self, field: u32, length: u64) -> &mut Self {
        self.key(field, LENGTH);
        varint(&mut self.bytes, length);
        self
    }

    fn chunk(&mut self, field: u32, bytes: &[u8]) -> &mut Self {
        self.open(field, bytes.len() as u64);
        self.bytes.extend(bytes);
        self
    }

    fn key(&mut self, field: u32, kind: u32) {
        varint(&mut self.bytes, u64::from(field << 3 | kind));
    }
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(write: impl FnOnce(&mut Message) -> &mut Message, expected: &[u8]) {
        let mut message = Message::default();
        write(&mut message);
        assert_eq!(message.bytes(), expected);
    }

    /// The examples of the specification, and the ends of the ranges.
    #[test]
    fn fields_are_those_of_the_specification() {
        check(|it| it.int(1, 150), &[0x08, 0x96, 0x01]);
        check(
            |it| it.text(2, "testing"),
            &[0x12, 7, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67],
        );
        let mut inner = Message::default();
        inner.int(1, 150);
        check(|it| it.message(3, &inner), &[0x1a, 0x03, 0x08, 0x96, 0x01]);
        check(
            |it| it.int(1, -2),
            &[
                0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
            ],
        );
        check(|it| it.int(1, 0).int(1, 127), &[0x08, 0, 0x08, 127]);
        // Two bytes of key from field 16 on.
        check(|it| it.int(20, 1), &[0xa0, 0x01, 1]);
        check(|it| it.float(2, 1.0), &[0x15, 0, 0, 0x80, 0x3f]);
        check(|it| it.open(9, 300), &[0x4a, 0xac, 0x02]);
    }
}
