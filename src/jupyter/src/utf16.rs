//! Places of a text in UTF-16 code units, in which editors in a browser count.

/// After so many characters there is a mark.
const BETWEEN_MARKS: usize = 64;

/// A text and marks in it, so that a place is found without reading the text from its beginning.
pub struct Utf16<'a> {
    text: &'a str,
    /// Bytes and code units up to each mark.
    marks: Vec<(usize, usize)>,
}

impl<'a> Utf16<'a> {
    /// Reads a text once.
    pub fn of(text: &'a str) -> Self {
        let mut units = 0;
        let mut marks = Vec::new();
        for (number, (at, character)) in text.char_indices().enumerate() {
            if number % BETWEEN_MARKS == 0 {
                marks.push((at, units));
            }
            units += character.len_utf16();
        }
        Self { text, marks }
    }

    /// The code units before a byte; `None` where no character begins, or beyond the end.
    pub fn offset(&self, byte: usize) -> Option<usize> {
        if !self.text.is_char_boundary(byte) {
            return None;
        }
        let after = self.marks.partition_point(|&(at, _)| at <= byte);
        let (at, units) = after.checked_sub(1).map_or((0, 0), |it| self.marks[it]);
        let rest = self.text[at..byte].chars().map(char::len_utf16);
        Some(units + rest.sum::<usize>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_as_the_standard_library_counts() {
        let long = "aö𝄞👩‍👩‍👧\n".repeat(100);
        for text in ["", "plain", "ä", "😀", "x😀y", &long] {
            let utf16 = Utf16::of(text);
            for byte in 0..=text.len() {
                let expected = text.get(..byte).map(|before| before.encode_utf16().count());
                assert_eq!(utf16.offset(byte), expected, "byte {byte}");
            }
            assert_eq!(utf16.offset(text.len() + 1), None);
        }
    }
}
