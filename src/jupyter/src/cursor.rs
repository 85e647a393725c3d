//! Cursor positions: the protocol counts code points, an evaluator bytes.

/// The byte offset of a position in code points; beyond the end: the end.
pub fn byte_offset(code: &str, code_points: usize) -> usize {
    code.char_indices()
        .nth(code_points)
        .map_or(code.len(), |(at, _)| at)
}

/// The number of code points before a byte offset; beyond the end: all of them.
pub fn code_points(code: &str, byte_offset: usize) -> usize {
    code.char_indices()
        .take_while(|(at, _)| *at < byte_offset)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_code_points() {
        let code = "let größe𝄞 = 1;";
        for (at, (byte, _)) in code.char_indices().enumerate() {
            assert_eq!(byte_offset(code, at), byte);
            assert_eq!(code_points(code, byte), at);
        }
        assert_eq!(byte_offset(code, 1000), code.len());
        assert_eq!(code_points(code, 1000), code.chars().count());
        assert_eq!(byte_offset("", 0), 0);
    }
}
