//! LZ4 frames: blocks of LZ4, each of which may refer to the 64 KiB before it.
//! Source: lz4/lz4 `doc/lz4_Frame_format.md`. The checksums of a frame are passed over.

use lz4_flex::block::decompress_into_with_dict;

const MAGIC: u32 = 0x184D_2204;
/// What a block may refer to.
const WINDOW: usize = 64 << 10;
/// The bit of a block's length that says that it is not compressed.
const IS_PLAIN: u32 = 1 << 31;

/// What a frame holds, which is to be so many bytes; `None` if it is damaged.
pub(super) fn frame(mut bytes: &[u8], length: usize) -> Option<Vec<u8>> {
    if number(&mut bytes)? != MAGIC {
        return None;
    }
    let [flags, sizes, ..] = *take(&mut bytes, 2)? else {
        return None;
    };
    let has = |bit: u8| flags >> bit & 1 == 1;
    let (has_length, has_sums, has_dictionary) = (has(3), has(4), has(0));
    if flags >> 6 != 1 || has_dictionary {
        return None;
    }
    let largest = match sizes >> 4 & 7 {
        size @ 4..=7 => 1_usize << (8 + 2 * size),
        _ => return None,
    };
    // The length of all, and the checksum of what was read so far.
    take(&mut bytes, if has_length { 9 } else { 1 })?;
    let mut whole: Vec<u8> = Vec::new();
    let mut block = Vec::new();
    loop {
        let size = number(&mut bytes)?;
        if size == 0 {
            return (whole.len() == length).then_some(whole);
        }
        let part = take(&mut bytes, usize::try_from(size & !IS_PLAIN).ok()?)?;
        if size & IS_PLAIN != 0 {
            whole.extend_from_slice(part);
        } else {
            block.resize(largest, 0);
            let window = &whole[whole.len().saturating_sub(WINDOW)..];
            let written = decompress_into_with_dict(part, &mut block, window).ok()?;
            whole.extend_from_slice(block.get(..written)?);
        }
        if whole.len() > length {
            return None;
        }
        if has_sums {
            number(&mut bytes)?;
        }
    }
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    let taken = take(bytes, 4)?.try_into().ok()?;
    Some(u32::from_le_bytes(taken))
}
