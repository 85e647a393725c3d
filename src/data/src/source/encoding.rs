//! From the bytes of a file to text: UTF-8, UTF-16 where its mark or the reader of the data says so, and Latin-1 on request.

/// What Windows writes for the bytes 0x80 to 0x9F where ISO 8859-1 has control characters. Source: the WHATWG encoding
/// standard, `windows-1252`, which is also what `latin1` means there.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];
/// Bytes of a file that are looked at to tell its encoding.
const LOOKED_AT: usize = 512;

/// How the letters of a file are written as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Latin1,
    Utf16 { is_big_endian: bool },
}

/// Why bytes are no text.
pub(super) struct Undecoded {
    /// The line, counted from 1, where one is at fault.
    pub(super) line: Option<usize>,
    pub(super) reason: String,
    /// What the first word that is not UTF-8 is in Latin-1.
    pub(super) word: Option<String>,
    /// The name of the encoding that it probably has.
    pub(super) probably: Option<&'static str>,
}

/// The text of a file, without a byte order mark. `wanted`: the name of its encoding, as `Columns::encoding` has it. The line
/// ends of old Macs become those of today.
pub(super) fn decoded(bytes: Vec<u8>, wanted: Option<&str>) -> Result<String, Undecoded> {
    let marked = marked(&bytes);
    let named = wanted.map(named).transpose()?;
    let text = match (named, marked) {
        // A mark says which of the two orders of bytes it is.
        (Some(Encoding::Utf16 { .. }) | None, Some(marked)) => from(bytes, marked),
        (Some(named), _) => from(bytes, named),
        (None, None) => match looks_like_utf16(&bytes) {
            Some(name) => Err(Undecoded {
                line: None,
                reason: "it is not UTF-8 text: every second byte is 0, as in UTF-16".to_owned(),
                word: None,
                probably: Some(name),
            }),
            None => from(bytes, Encoding::Utf8),
        },
    }?;
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    Ok(match text.contains('\r') && !text.contains('\n') {
        true => text.replace('\r', "\n"),
        false => text,
    })
}

/// The encoding that the first bytes name.
fn marked(bytes: &[u8]) -> Option<Encoding> {
    match bytes {
        [0xff, 0xfe, ..] => Some(Encoding::Utf16 {
            is_big_endian: false,
        }),
        [0xfe, 0xff, ..] => Some(Encoding::Utf16 {
            is_big_endian: true,
        }),
        _ => None,
    }
}

/// The encoding of a name.
fn named(name: &str) -> Result<Encoding, Undecoded> {
    let letters = name.to_ascii_lowercase();
    let letters: String = letters
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    match letters.as_str() {
        "utf8" | "ascii" | "utf8sig" => Ok(Encoding::Utf8),
        "latin1" | "iso88591" | "iso885915" | "cp1252" | "windows1252" | "ansi" => {
            Ok(Encoding::Latin1)
        }
        "utf16" | "utf16le" | "unicode" => Ok(Encoding::Utf16 {
            is_big_endian: false,
        }),
        "utf16be" => Ok(Encoding::Utf16 {
            is_big_endian: true,
        }),
        _ => Err(Undecoded {
            line: None,
            reason: format!(
                "`{name}` is no encoding that is read: `utf-8`, `latin-1`, `utf-16`, `utf-16le` and `utf-16be` are"
            ),
            word: None,
            probably: Some("latin-1"),
        }),
    }
}

/// The name of UTF-16 without a mark: text of Latin letters has a 0 in every second byte.
fn looks_like_utf16(bytes: &[u8]) -> Option<&'static str> {
    let begin = &bytes[..bytes.len().min(LOOKED_AT) & !1];
    let zeros = |odd: usize| {
        let bytes = begin.iter().skip(odd).step_by(2);
        bytes.filter(|&&byte| byte == 0).count()
    };
    let (even, odd) = (zeros(0), zeros(1));
    let most = begin.len() * 2 / 5;
    match begin.len() >= 4 {
        true if odd >= most && even == 0 => Some("utf-16le"),
        true if even >= most && odd == 0 => Some("utf-16be"),
        _ => None,
    }
}

fn from(bytes: Vec<u8>, encoding: Encoding) -> Result<String, Undecoded> {
    match encoding {
        Encoding::Utf8 => String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            not_utf8(error.as_bytes(), valid)
        }),
        Encoding::Latin1 => Ok(latin1(&bytes)),
        Encoding::Utf16 { is_big_endian } => {
            let pairs = bytes.chunks_exact(2);
            let units = pairs.map(|pair| match is_big_endian {
                true => u16::from_be_bytes([pair[0], pair[1]]),
                false => u16::from_le_bytes([pair[0], pair[1]]),
            });
            let text: Result<String, _> = char::decode_utf16(units).collect();
            text.map_err(|_| Undecoded {
                line: None,
                reason: "it is not UTF-16 text".to_owned(),
                word: None,
                probably: None,
            })
        }
    }
}

fn latin1(bytes: &[u8]) -> String {
    let letters = bytes.iter().map(|&byte| match byte {
        0x80..=0x9f => WINDOWS_1252[usize::from(byte) - 0x80],
        byte => char::from(byte),
    });
    letters.collect()
}

/// What the word of the first byte that is not UTF-8 would be in Latin-1.
fn not_utf8(bytes: &[u8], valid: usize) -> Undecoded {
    let line = 1 + bytes[..valid].iter().filter(|&&byte| byte == b'\n').count();
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b';' | b'"');
    let begin = bytes[..valid]
        .iter()
        .rposition(is_end)
        .map_or(0, |at| at + 1);
    let end = bytes[valid..].iter().position(is_end);
    let end = end.map_or(bytes.len(), |at| valid + at);
    let word: String = latin1(&bytes[begin..end]).chars().take(30).collect();
    Undecoded {
        line: Some(line),
        reason: "it is not UTF-8 text".to_owned(),
        word: Some(word).filter(|_| bytes[valid] >= 0xa0),
        probably: Some("latin-1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, is_big_endian: bool) -> Vec<u8> {
        let units = text.encode_utf16();
        units
            .flat_map(|unit| match is_big_endian {
                true => unit.to_be_bytes(),
                false => unit.to_le_bytes(),
            })
            .collect()
    }

    #[test]
    fn text_is_read_in_its_encoding() {
        let text = "text,label\ncafé,x\n";
        let latin1: Vec<u8> = text.chars().map(|letter| letter as u32 as u8).collect();
        for (bytes, wanted) in [
            (text.as_bytes().to_vec(), None),
            (format!("\u{feff}{text}").into_bytes(), None),
            (utf16(&format!("\u{feff}{text}"), false), None),
            (utf16(&format!("\u{feff}{text}"), true), None),
            (utf16(&format!("\u{feff}{text}"), true), Some("UTF-16")),
            (utf16(text, false), Some("utf-16le")),
            (latin1.clone(), Some("latin-1")),
            (latin1.clone(), Some("ISO-8859-1")),
            (text.replace('\n', "\r").into_bytes(), None),
        ] {
            let read = decoded(bytes, wanted);
            assert_eq!(read.ok().as_deref(), Some(text), "{wanted:?}");
        }
        assert_eq!(
            decoded(vec![0x80, b'5'], Some("cp1252")).ok().as_deref(),
            Some("€5")
        );
        let refused = |bytes: Vec<u8>, wanted| decoded(bytes, wanted).expect_err("refused");
        let other = refused(latin1, None);
        assert_eq!((other.line, other.probably), (Some(2), Some("latin-1")));
        assert_eq!(other.word.as_deref(), Some("café"));
        assert_eq!(refused(utf16(text, false), None).probably, Some("utf-16le"));
        assert!(
            refused(Vec::new(), Some("klingon"))
                .reason
                .contains("`utf-16be`")
        );
    }
}
