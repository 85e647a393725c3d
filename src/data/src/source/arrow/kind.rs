//! What the columns of a file are: their kinds, which decide how many buffers a batch has for each.

use polars_arrow_format::ipc::{FieldRef, IntRef, Precision, TypeRef, UnionMode};

use super::{Read, damaged, said};

/// More lists within lists are no rows of text.
const DEEPEST: usize = 16;

/// A column, or a part of one.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Those of a list or structure; of a dictionary its values.
    pub(super) children: Vec<Column>,
}

/// What the values of a column are.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Nothing,
    Bool,
    Integer {
        bytes: usize,
        is_signed: bool,
    },
    /// Of 4 or 8 bytes.
    Float {
        bytes: usize,
    },
    /// Bytes of any length, by offsets of 4 or 8 bytes.
    Bytes {
        offsets: usize,
        is_text: bool,
    },
    /// Bytes of any length, where short ones stand in place of their offsets.
    Views {
        is_text: bool,
    },
    FixedBytes(usize),
    /// Lists of any length, by offsets of 4 or 8 bytes.
    List {
        offsets: usize,
    },
    FixedList(usize),
    Structure,
    /// The numbers of values that come apart.
    Dictionary {
        id: i64,
        bytes: usize,
        is_signed: bool,
    },
    /// A kind that is no text, label or list of them: its name, and the buffers of it alone.
    Other {
        name: &'static str,
        buffers: usize,
    },
}

impl Column {
    /// What a file says of a column at a depth of lists.
    pub(super) fn of(field: FieldRef<'_>, depth: usize) -> Read<Self> {
        if depth > DEEPEST {
            return Err("its columns have too many lists within lists".to_owned());
        }
        let name = field.name().ok().flatten().unwrap_or_default().to_owned();
        let children = field.children().ok().flatten();
        let children = children.into_iter().flat_map(|it| it.iter());
        let children = children.map(|child| match child {
            Ok(child) => Self::of(child, depth + 1),
            Err(_) => damaged(),
        });
        let values = Self {
            kind: Kind::of(said(field.type_())?)?,
            children: children.collect::<Read<Vec<_>>>()?,
            name,
        };
        let needed = match values.kind {
            Kind::List { .. } | Kind::FixedList(_) => 1,
            _ => values.children.len(),
        };
        if values.children.len() != needed {
            return damaged();
        }
        let Some(dictionary) = field.dictionary().or_else(|_| damaged())? else {
            return Ok(values);
        };
        let index = dictionary.index_type().or_else(|_| damaged())?;
        let index = index.map_or(Ok((4, true)), integer)?;
        Ok(Self {
            name: values.name.clone(),
            kind: Kind::Dictionary {
                id: dictionary.id().or_else(|_| damaged())?,
                bytes: index.0,
                is_signed: index.1,
            },
            children: vec![values],
        })
    }

    /// Whether its values are lists or structures.
    pub(super) fn is_nested(&self) -> bool {
        match self.kind {
            Kind::List { .. } | Kind::FixedList(_) | Kind::Structure => true,
            Kind::Dictionary { .. } => self.children.iter().any(Self::is_nested),
            _ => false,
        }
    }

    /// The column of the values of a dictionary, if it is here.
    pub(super) fn of_dictionary(&self, wanted: i64) -> Option<&Self> {
        match self.kind {
            Kind::Dictionary { id, .. } if id == wanted => self.children.first(),
            _ => self.children.iter().find_map(|it| it.of_dictionary(wanted)),
        }
    }
}

impl Kind {
    fn of(kind: TypeRef<'_>) -> Read<Self> {
        let other = |name, buffers| Ok(Self::Other { name, buffers });
        match kind {
            TypeRef::Null(_) => Ok(Self::Nothing),
            TypeRef::Bool(_) => Ok(Self::Bool),
            TypeRef::Int(it) => {
                let (bytes, is_signed) = integer(it)?;
                Ok(Self::Integer { bytes, is_signed })
            }
            TypeRef::FloatingPoint(it) => match it.precision() {
                Ok(Precision::Single) => Ok(Self::Float { bytes: 4 }),
                Ok(Precision::Double) => Ok(Self::Float { bytes: 8 }),
                Ok(Precision::Half) => other("half-precision numbers", 2),
                Err(_) => damaged(),
            },
            TypeRef::Utf8(_) => Ok(Self::Bytes {
                offsets: 4,
                is_text: true,
            }),
            TypeRef::LargeUtf8(_) => Ok(Self::Bytes {
                offsets: 8,
                is_text: true,
            }),
            TypeRef::Binary(_) => Ok(Self::Bytes {
                offsets: 4,
                is_text: false,
            }),
            TypeRef::LargeBinary(_) => Ok(Self::Bytes {
                offsets: 8,
                is_text: false,
            }),
            TypeRef::Utf8View(_) => Ok(Self::Views { is_text: true }),
            TypeRef::BinaryView(_) => Ok(Self::Views { is_text: false }),
            TypeRef::FixedSizeBinary(it) => Ok(Self::FixedBytes(size(it.byte_width())?)),
            TypeRef::List(_) => Ok(Self::List { offsets: 4 }),
            TypeRef::LargeList(_) => Ok(Self::List { offsets: 8 }),
            TypeRef::FixedSizeList(it) => Ok(Self::FixedList(size(it.list_size())?)),
            TypeRef::Struct(_) => Ok(Self::Structure),
            TypeRef::Map(_) => other("maps", 2),
            TypeRef::ListView(_) | TypeRef::LargeListView(_) => other("views of lists", 3),
            TypeRef::RunEndEncoded(_) => other("runs", 0),
            TypeRef::Union(it) => match it.mode() {
                Ok(UnionMode::Dense) => other("unions", 2),
                Ok(UnionMode::Sparse) => other("unions", 1),
                Err(_) => damaged(),
            },
            TypeRef::Decimal(_) => other("decimal numbers", 2),
            TypeRef::Date(_) => other("dates", 2),
            TypeRef::Time(_) | TypeRef::Timestamp(_) => other("times", 2),
            TypeRef::Interval(_) | TypeRef::Duration(_) => other("spans of time", 2),
        }
    }

    /// How many buffers a batch has for it, without those of its children and those of views.
    pub(super) fn buffers(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::FixedList(_) | Self::Structure => 1,
            Self::Bytes { .. } => 3,
            Self::Other { buffers, .. } => buffers,
            _ => 2,
        }
    }
}

/// The bytes of an integer, and whether it has a sign.
fn integer(kind: IntRef<'_>) -> Read<(usize, bool)> {
    match (kind.bit_width(), kind.is_signed()) {
        (Ok(bits @ (8 | 16 | 32 | 64)), Ok(is_signed)) => Ok((bits as usize / 8, is_signed)),
        _ => damaged(),
    }
}

/// A size that is not nothing.
fn size<E>(size: Result<i32, E>) -> Read<usize> {
    let size = size.ok().and_then(|size| usize::try_from(size).ok());
    size.filter(|size| *size > 0).map_or_else(damaged, Ok)
}
