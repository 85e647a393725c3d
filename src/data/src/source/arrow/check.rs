//! What a batch says of its buffers and lengths is checked before `arrow-ipc` decodes it: the decoder reserves memory for the
//! lengths that are stated, and its slices panic.

use arrow_ipc::{CompressionType, RecordBatch};

use super::damaged;
use crate::source::LARGEST_FILE_BYTES;
use crate::source::columnar::{Read, too_large};

/// More values that take no bytes in the file are not believed.
const MAX_EMPTY_VALUES: u64 = 1 << 24;
/// No value that takes bytes takes less than a bit.
const VALUES_PER_BYTE: u64 = 8;
/// What is stated before a compressed buffer: its length, or that it is not compressed.
const LENGTH_BYTES: usize = 8;
const NOT_COMPRESSED: i64 = -1;

/// How many bytes a batch takes in memory, whose buffers stand in a body; or why it is damaged.
pub(super) fn checked(batch: &RecordBatch<'_>, body: &[u8]) -> Read<u64> {
    let codec = batch.compression().map(|it| it.codec());
    let mut bytes = 0_u64;
    for buffer in batch.buffers().into_iter().flatten() {
        let place = (
            usize::try_from(buffer.offset()),
            usize::try_from(buffer.length()),
        );
        let (Ok(offset), Ok(length)) = place else {
            return damaged();
        };
        let end = offset.checked_add(length);
        let Some(part) = end.and_then(|end| body.get(offset..end)) else {
            return damaged();
        };
        let length = match codec {
            Some(codec) if !part.is_empty() => decompressed(part, codec)?,
            _ => part.len() as u64,
        };
        bytes = bytes.saturating_add(length);
        if bytes > LARGEST_FILE_BYTES {
            return Err(too_large());
        }
    }
    let most = MAX_EMPTY_VALUES.max(bytes * VALUES_PER_BYTE);
    let is_possible = |length: i64| u64::try_from(length).is_ok_and(|it| it <= most);
    let mut nodes = batch.nodes().into_iter().flatten();
    let are_possible = nodes
        .all(|node| is_possible(node.length()) && (0..=node.length()).contains(&node.null_count()));
    if are_possible && is_possible(batch.length()) {
        Ok(bytes)
    } else {
        damaged()
    }
}

/// The length of a compressed buffer, if so many bytes can come of so few.
fn decompressed(part: &[u8], codec: CompressionType) -> Read<u64> {
    // A byte of LZ4 adds up to 255 to the length of a match; four bytes of zstd are a block of 128 KiB.
    let largest_ratio = match codec {
        CompressionType::LZ4_FRAME => 255,
        CompressionType::ZSTD => 32 << 10,
        _ => return damaged(),
    };
    let Some((length, part)) = part.split_first_chunk::<LENGTH_BYTES>() else {
        return damaged();
    };
    let length = match i64::from_le_bytes(*length) {
        NOT_COMPRESSED => return Ok(part.len() as u64),
        length => u64::try_from(length).or_else(|_| damaged())?,
    };
    if length > LARGEST_FILE_BYTES {
        return Err(too_large());
    }
    if length > (part.len() as u64).saturating_mul(largest_ratio) {
        return damaged();
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_cannot_be_is_not_believed() {
        let buffer = |length: i64, bytes: usize| -> Vec<u8> {
            let length = length.to_le_bytes().into_iter();
            length.chain(std::iter::repeat_n(0, bytes)).collect()
        };
        let of = |length, bytes, codec| decompressed(&buffer(length, bytes), codec);
        let (lz4, zstd) = (CompressionType::LZ4_FRAME, CompressionType::ZSTD);
        assert_eq!(of(-1, 7, lz4), Ok(7));
        assert_eq!(of(2550, 10, lz4), Ok(2550));
        assert_eq!(of(2551, 10, lz4), damaged());
        assert_eq!(of(1 << 20, 32, zstd), Ok(1 << 20));
        assert_eq!(of(1 << 30, 32, zstd), damaged());
        assert_eq!(of(i64::MAX, 32, zstd), Err(too_large()));
        assert_eq!(of(-2, 32, zstd), damaged());
        assert_eq!(decompressed(&[0; 7], zstd), damaged());
    }
}
