//! The buffers of a batch, compressed or not.

use std::borrow::Cow;
use std::io::Read as _;

use polars_arrow_format::ipc::{CompressionType, RecordBatchRef};

use super::{LARGEST_FILE_BYTES, Read, damaged, lz4, too_large};

/// The body of a batch.
pub(super) struct Body<'a> {
    bytes: &'a [u8],
    codec: Option<CompressionType>,
}

impl<'a> Body<'a> {
    pub(super) fn of(batch: &RecordBatchRef<'_>, bytes: &'a [u8]) -> Read<Self> {
        let codec = match batch.compression() {
            Ok(None) => None,
            Ok(Some(compression)) => Some(compression.codec().or_else(|_| damaged())?),
            Err(_) => return damaged(),
        };
        Ok(Self { bytes, codec })
    }

    /// A buffer, decompressed. A compressed one begins with its length, −1 if it is not.
    pub(super) fn buffer(&self, offset: usize, length: usize) -> Read<Cow<'a, [u8]>> {
        let end = offset.checked_add(length);
        let Some(bytes) = end.and_then(|end| self.bytes.get(offset..end)) else {
            return damaged();
        };
        let Some(codec) = self.codec.filter(|_| length > 0) else {
            return Ok(Cow::Borrowed(bytes));
        };
        let Some((prefix, bytes)) = bytes.split_first_chunk::<8>() else {
            return damaged();
        };
        let length = match i64::from_le_bytes(*prefix) {
            -1 => return Ok(Cow::Borrowed(bytes)),
            length => u64::try_from(length).or_else(|_| damaged())?,
        };
        if length > LARGEST_FILE_BYTES {
            return Err(too_large());
        }
        let whole = match codec {
            CompressionType::Lz4Frame => {
                lz4::frame(bytes, usize::try_from(length).or_else(|_| damaged())?)
            }
            CompressionType::Zstd => zstd_frame(bytes, length),
        };
        whole.map_or_else(damaged, |whole| Ok(Cow::Owned(whole)))
    }
}

/// No more memory than what comes of it, and one byte to see that nothing follows.
fn zstd_frame(bytes: &[u8], length: u64) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    let decoder = zstd::Decoder::new(bytes).ok()?;
    decoder.take(length + 1).read_to_end(&mut whole).ok()?;
    (whole.len() as u64 == length).then_some(whole)
}
