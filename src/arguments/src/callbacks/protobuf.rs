//! Messages of Protocol Buffers, and the checksums of records in which files hold them.

/// A message of Protocol Buffers, as it is built.
#[derive(Default)]
pub(super) struct Message(pub Vec<u8>);

impl Message {
    fn key(&mut self, field: u64, kind: u64) {
        self.varint(field << 3 | kind);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub fn integer(&mut self, field: u64, value: u64) {
        self.key(field, 0);
        self.varint(value);
    }

    pub fn double(&mut self, field: u64, value: f64) {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
    }

    pub fn float(&mut self, field: u64, value: f32) {
        self.key(field, 5);
        self.0.extend(value.to_le_bytes());
    }

    /// A text, bytes, or a message within this one.
    pub fn bytes(&mut self, field: u64, value: &[u8]) {
        self.key(field, 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }
}

/// A cyclic redundancy check of 32 bits by its polynomial, the lowest bit first. It is computed bit by bit: records are short.
pub(super) struct Crc(u32);

impl Crc {
    /// CRC-32C (Castagnoli; RFC 3720, appendix B.4).
    pub const CASTAGNOLI: Self = Self(0x82f6_3b78);
    /// CRC-32 (ISO 3309; RFC 1952, section 8), that of zlib.
    pub const ZLIB: Self = Self(0xedb8_8320);

    /// The checksum of these parts, one after the other.
    pub fn of(&self, parts: &[&[u8]]) -> u32 {
        let bytes = parts.iter().flat_map(|part| part.iter());
        !bytes.fold(u32::MAX, |crc, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc, _| {
                crc >> 1 ^ if crc & 1 == 1 { self.0 } else { 0 }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 3720, B.4, and the usual check value of CRC-32.
    #[test]
    fn checksums_are_those_of_their_standards() {
        let castagnoli = |data: &[u8]| Crc::CASTAGNOLI.of(&[data]);
        assert_eq!(castagnoli(&[0; 32]), 0x8a91_36aa);
        assert_eq!(castagnoli(&[0xff; 32]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(castagnoli(&rising), 0x46dd_794e);
        assert_eq!(Crc::ZLIB.of(&[b"1234", b"56789"]), 0xcbf4_3926);
    }

    #[test]
    fn messages_have_the_bytes_of_protocol_buffers() {
        let mut message = Message::default();
        message.integer(2, 300);
        message.bytes(3, b"ab");
        message.float(2, 1.0);
        let expected = [
            0x10, 0xac, 0x02, 0x1a, 2, b'a', b'b', 0x15, 0, 0, 0x80, 0x3f,
        ];
        assert_eq!(message.0, expected);
    }
}
