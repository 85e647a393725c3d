//! From the buffers of a batch to values. Every offset and length of a file is checked before it is used, and no length asks
//! for more memory than the file has bytes, but for values that take none.

use std::borrow::Cow;
use std::collections::HashMap;

use polars_arrow_format::ipc::{DictionaryBatchRef, RecordBatchRef};

use super::body::Body;
use super::kind::{Column, Kind};
use super::{LARGEST_FILE_BYTES, Read, count, damaged, said, too_large};
use crate::source::records::Value;

/// More values that take no bytes in the file are not believed.
const MOST_EMPTY: usize = 1 << 24;

/// The values of the dictionaries, by their numbers.
#[derive(Default)]
pub(super) struct Dictionaries(HashMap<i64, Vec<Value>>);

impl Dictionaries {
    /// Reads values that columns name by numbers; those of columns that nobody wants are left where they are. Their bytes
    /// are counted. Whether they replace values that rows before them have named.
    pub(super) fn read(
        &mut self,
        (batch, body): (DictionaryBatchRef<'_>, &[u8]),
        (columns, wanted): (&[Column], &[usize]),
        bytes: &mut u64,
    ) -> Read<bool> {
        let Ok(id) = batch.id() else {
            return damaged();
        };
        let mut wanted = wanted.iter().filter_map(|&at| columns.get(at));
        let Some(column) = wanted.find_map(|it| it.of_dictionary(id)) else {
            return Ok(false);
        };
        let data = said(batch.data())?;
        let values = Cursor::of(&data, body, self)?.values(column)?;
        count(bytes, &values)?;
        Ok(match batch.is_delta().unwrap_or(false) {
            true => {
                self.0.entry(id).or_default().extend(values);
                false
            }
            false => self.0.insert(id, values).is_some(),
        })
    }
}

/// Goes through the columns of a batch: their lengths and buffers stand in the order of the columns, each before its
/// children.
pub(super) struct Cursor<'a> {
    body: Body<'a>,
    dictionaries: &'a Dictionaries,
    /// Lengths, and whether some are missing.
    nodes: std::vec::IntoIter<(usize, bool)>,
    /// Offsets and lengths.
    buffers: std::vec::IntoIter<(usize, usize)>,
    /// How many buffers each column of views has.
    of_views: std::vec::IntoIter<usize>,
    /// Bytes of values that stand for more than they take in the file.
    copied: u64,
}

impl<'a> Cursor<'a> {
    pub(super) fn of(
        batch: &RecordBatchRef<'_>,
        body: &'a [u8],
        dictionaries: &'a Dictionaries,
    ) -> Read<Self> {
        let nodes = batch.nodes().or_else(|_| damaged())?;
        let nodes = nodes.into_iter().flat_map(|it| it.iter());
        let nodes = nodes.map(|node| Ok((whole(node.length())?, node.null_count() != 0)));
        let buffers = batch.buffers().or_else(|_| damaged())?;
        let buffers = buffers.into_iter().flat_map(|it| it.iter());
        let buffers = buffers.map(|it| Ok((whole(it.offset())?, whole(it.length())?)));
        let of_views = batch.variadic_buffer_counts().or_else(|_| damaged())?;
        let of_views = of_views.into_iter().flat_map(|it| it.iter()).map(whole);
        Ok(Self {
            body: Body::of(batch, body)?,
            dictionaries,
            nodes: nodes.collect::<Read<Vec<_>>>()?.into_iter(),
            buffers: buffers.collect::<Read<Vec<_>>>()?.into_iter(),
            of_views: of_views.collect::<Read<Vec<_>>>()?.into_iter(),
            copied: 0,
        })
    }

    /// Goes past a column.
    pub(super) fn skip(&mut self, column: &Column) -> Read<()> {
        self.node()?;
        let mut buffers = column.kind.buffers();
        if matches!(column.kind, Kind::Views { .. }) {
            buffers = buffers.saturating_add(self.of_views.next().map_or_else(damaged, Ok)?);
        }
        for _ in 0..buffers {
            self.place()?;
        }
        match column.kind {
            Kind::Dictionary { .. } => Ok(()),
            _ => column.children.iter().try_for_each(|it| self.skip(it)),
        }
    }

    /// The values of a column.
    pub(super) fn values(&mut self, column: &Column) -> Read<Vec<Value>> {
        let (length, has_nulls) = self.node()?;
        match column.kind {
            Kind::Nothing if length > MOST_EMPTY => return damaged(),
            Kind::Nothing => return Ok(vec![Value::Nothing; length]),
            Kind::Other { name, .. } => return Err(format!("{name} are not read")),
            _ => {}
        }
        let present = self.buffer()?;
        let is_marked = has_nulls && !present.is_empty();
        if is_marked && present.len() < length.div_ceil(8) {
            return damaged();
        }
        let mut values = self.present_values(column, length)?;
        if is_marked {
            for (at, value) in values.iter_mut().enumerate() {
                if !bit(&present, at) {
                    *value = Value::Nothing;
                }
            }
        }
        Ok(values)
    }

    /// The values of a column as if none were missing.
    fn present_values(&mut self, column: &Column, length: usize) -> Read<Vec<Value>> {
        Ok(match column.kind {
            Kind::Nothing | Kind::Other { .. } => return damaged(),
            Kind::Bool => {
                let bits = self.buffer()?;
                if bits.len() < length.div_ceil(8) {
                    return damaged();
                }
                let shown = |at| Value::Shown(bit(&bits, at).to_string());
                (0..length).map(shown).collect()
            }
            Kind::Integer { bytes, is_signed } => {
                let data = self.fixed(length, bytes)?;
                let numbers = data.chunks_exact(bytes).take(length);
                numbers.map(|it| integer(it, is_signed)).collect()
            }
            Kind::Float { bytes } => {
                let data = self.fixed(length, bytes)?;
                data.chunks_exact(bytes).take(length).map(float).collect()
            }
            Kind::FixedBytes(bytes) => {
                let data = self.fixed(length, bytes)?;
                let parts = data.chunks_exact(bytes).take(length);
                parts.map(|it| Value::Bytes(it.to_vec())).collect()
            }
            Kind::Bytes { offsets, is_text } => {
                let ends = self.offsets(length, offsets)?;
                let data = self.buffer()?;
                let parts = ends.windows(2).map(|it| data.get(it[0]..it[1]));
                let values = parts.map(|part| Some(text(part?, is_text)));
                values.collect::<Option<_>>().map_or_else(damaged, Ok)?
            }
            Kind::Views { is_text } => self.views(length, is_text)?,
            Kind::List { offsets } => {
                let ends = self.offsets(length, offsets)?;
                let elements = self.children(column)?.pop().unwrap_or_default();
                let parts = ends.windows(2).map(|it| elements.get(it[0]..it[1]));
                let values = parts.map(|part| Some(Value::List(part?.to_vec())));
                values.collect::<Option<_>>().map_or_else(damaged, Ok)?
            }
            Kind::FixedList(size) => {
                let elements = self.children(column)?.pop().unwrap_or_default();
                let lists = elements.chunks_exact(size).take(length);
                lists.map(|it| Value::List(it.to_vec())).collect()
            }
            Kind::Structure => self.structures(column, length)?,
            Kind::Dictionary {
                id,
                bytes,
                is_signed,
            } => {
                let data = self.fixed(length, bytes)?;
                let known = self.dictionaries.0.get(&id).map_or_else(damaged, Ok)?;
                let mut values = Vec::new();
                for index in data.chunks_exact(bytes).take(length) {
                    let Value::Integer(index) = integer(index, is_signed) else {
                        return damaged();
                    };
                    let value = usize::try_from(index).ok().and_then(|at| known.get(at));
                    // A missing value may have any number.
                    let value = value.unwrap_or(&Value::Nothing);
                    spend(&mut self.copied, value.size())?;
                    values.push(value.clone());
                }
                values
            }
        })
    }

    /// Values of 16 bytes: the length, and up to 12 bytes themselves, or where the bytes stand.
    fn views(&mut self, length: usize, is_text: bool) -> Read<Vec<Value>> {
        const VIEW: usize = 16;
        const INLINE: usize = 12;
        let views = self.fixed(length, VIEW)?;
        let count = self.of_views.next().map_or_else(damaged, Ok)?;
        let mut buffers = Vec::new();
        for _ in 0..count {
            buffers.push(self.buffer()?);
        }
        let mut values = Vec::new();
        for view in views.chunks_exact(VIEW).take(length) {
            let part = |at: usize| number(&view[at..at + 4], true);
            let size = usize::try_from(part(0)).or_else(|_| damaged())?;
            let bytes = match size {
                0..=INLINE => view.get(4..4 + size),
                _ => {
                    let (buffer, start) = (usize::try_from(part(8)), usize::try_from(part(12)));
                    let (Ok(buffer), Ok(start)) = (buffer, start) else {
                        return damaged();
                    };
                    let buffer = buffers.get(buffer);
                    buffer.and_then(|it| it.get(start..start.checked_add(size)?))
                }
            };
            spend(&mut self.copied, size as u64)?;
            values.push(text(bytes.map_or_else(damaged, Ok)?, is_text));
        }
        Ok(values)
    }

    fn structures(&mut self, column: &Column, length: usize) -> Read<Vec<Value>> {
        let mut parts = self.children(column)?;
        let is_short = parts.iter().any(|values| values.len() < length);
        if is_short || parts.is_empty() && length > MOST_EMPTY {
            return damaged();
        }
        let structure = |row: usize| {
            let values = column.children.iter().zip(&mut parts);
            let values = values.map(|(part, values)| {
                (
                    part.name.clone(),
                    std::mem::replace(&mut values[row], Value::Nothing),
                )
            });
            Value::Structure(values.collect())
        };
        Ok((0..length).map(structure).collect())
    }

    /// The values of all children.
    fn children(&mut self, column: &Column) -> Read<Vec<Vec<Value>>> {
        let children = column.children.iter();
        children.map(|child| self.values(child)).collect()
    }

    /// Where values begin and end, in their order: one more than values.
    fn offsets(&mut self, length: usize, bytes: usize) -> Read<Vec<usize>> {
        let data = self.buffer()?;
        // No offset at all says that there are no values.
        if length == 0 && data.is_empty() {
            return Ok(vec![0]);
        }
        let many = length.checked_add(1).and_then(|it| it.checked_mul(bytes));
        if many.is_none_or(|many| data.len() < many) {
            return damaged();
        }
        let offsets = data.chunks_exact(bytes).take(length + 1);
        let offsets = offsets.map(|it| whole(number(it, true)));
        let offsets = offsets.collect::<Read<Vec<usize>>>()?;
        match offsets.is_sorted() {
            true => Ok(offsets),
            false => damaged(),
        }
    }

    /// A buffer with so many values of so many bytes.
    fn fixed(&mut self, length: usize, bytes: usize) -> Read<Cow<'a, [u8]>> {
        let data = self.buffer()?;
        match length.checked_mul(bytes) {
            Some(many) if many <= data.len() => Ok(data),
            _ => damaged(),
        }
    }

    fn node(&mut self) -> Read<(usize, bool)> {
        self.nodes.next().map_or_else(damaged, Ok)
    }

    fn place(&mut self) -> Read<(usize, usize)> {
        self.buffers.next().map_or_else(damaged, Ok)
    }

    fn buffer(&mut self) -> Read<Cow<'a, [u8]>> {
        let (offset, length) = self.place()?;
        self.body.buffer(offset, length)
    }
}

/// Counts bytes that are copied, since a file may say that the same ones stand at many places.
fn spend(copied: &mut u64, bytes: u64) -> Read<()> {
    *copied = copied.saturating_add(bytes);
    match *copied > LARGEST_FILE_BYTES {
        true => Err(too_large()),
        false => Ok(()),
    }
}

/// A number that is not below 0.
fn whole(number: i64) -> Read<usize> {
    usize::try_from(number).or_else(|_| damaged())
}

fn bit(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8)
        .is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

/// A little-endian number of 1 to 8 bytes; without a sign, one of 8 bytes is taken modulo 2⁶⁴.
fn number(bytes: &[u8], is_signed: bool) -> i64 {
    let is_negative = is_signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut all = [if is_negative { 0xff } else { 0 }; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(all)
}

fn integer(bytes: &[u8], is_signed: bool) -> Value {
    match number(bytes, is_signed) {
        number if number < 0 && !is_signed => Value::Shown((number as u64).to_string()),
        number => Value::Integer(number),
    }
}

fn float(bytes: &[u8]) -> Value {
    let shown = match (<[u8; 4]>::try_from(bytes), <[u8; 8]>::try_from(bytes)) {
        (Ok(bytes), _) => f32::from_le_bytes(bytes).to_string(),
        (_, Ok(bytes)) => f64::from_le_bytes(bytes).to_string(),
        _ => String::new(),
    };
    Value::Shown(shown)
}

/// Bytes that are said to be a text, or not.
fn text(bytes: &[u8], is_text: bool) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) if is_text => Value::Text(text.to_owned()),
        _ => Value::Bytes(bytes.to_vec()),
    }
}
