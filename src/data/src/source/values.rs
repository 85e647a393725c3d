//! From the arrays of Arrow to the [`Value`]s of rows, for Arrow and Parquet files alike.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// Null.
    Nothing,
    /// A text.
    Text(String),
    /// Bytes that may be a text.
    Bytes(Vec<u8>),
    /// A whole number.
    Integer(i64),
    /// Anything else that is shown as it is: a number, yes or no, a date.
    Shown(String),
    /// A list.
    List(Vec<Value>),
    /// Values with names.
    Structure(Vec<(String, Value)>),
}

impl Value {
    /// About what it takes in memory.
    pub(super) fn size(&self) -> u64 {
        const FIXED: u64 = 32;
        FIXED
            + match self {
                Self::Nothing | Self::Integer(_) => 0,
                Self::Text(text) | Self::Shown(text) => text.len() as u64,
                Self::Bytes(bytes) => bytes.len() as u64,
                Self::List(values) => values.iter().map(Self::size).sum(),
                Self::Structure(values) => values.iter().map(|(_, value)| value.size()).sum(),
            }
    }
}

/// Whether the values of a column are lists or structures.
pub(super) fn is_nested(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_nested(values),
        kind => kind.is_nested(),
    }
}

/// What the values of a column are, or parts of them, if they are not read.
pub(super) fn unreadable_kind(kind: &DataType) -> Option<&'static str> {
    match kind {
        DataType::Duration(_) | DataType::Interval(_) => Some("spans of time"),
        DataType::Union(..) => Some("unions"),
        DataType::Map(..) => Some("maps"),
        DataType::RunEndEncoded(..) => Some("runs"),
        DataType::ListView(_) | DataType::LargeListView(_) => Some("views of lists"),
        DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _) => {
            unreadable_kind(of.data_type())
        }
        DataType::Struct(parts) => (parts.iter()).find_map(|it| unreadable_kind(it.data_type())),
        DataType::Dictionary(_, values) => unreadable_kind(values),
        _ => None,
    }
}

/// The value of a row.
pub(super) fn value(array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Nothing;
    }
    match array.data_type() {
        DataType::Boolean => Value::Shown(array.as_boolean().value(row).to_string()),
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => Value::Text(array.as_string::<i64>().value(row).to_owned()),
        DataType::Utf8View => Value::Text(array.as_string_view().value(row).to_owned()),
        DataType::Binary => Value::Bytes(array.as_binary::<i32>().value(row).to_vec()),
        DataType::LargeBinary => Value::Bytes(array.as_binary::<i64>().value(row).to_vec()),
        DataType::BinaryView => Value::Bytes(array.as_binary_view().value(row).to_vec()),
        DataType::FixedSizeBinary(_) => {
            Value::Bytes(array.as_fixed_size_binary().value(row).to_vec())
        }
        DataType::List(_) => list(&array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(&array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => list(&array.as_fixed_size_list().value(row)),
        DataType::Struct(parts) => {
            let arrays = array.as_struct().columns();
            let parts = parts.iter().zip(arrays);
            let parts = parts.map(|(part, array)| (part.name().clone(), value(array, row)));
            Value::Structure(parts.collect())
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let keys = dictionary.keys().slice(row, 1);
            match value(&keys, 0) {
                Value::Integer(key) => value(dictionary.values(), key as usize),
                _ => Value::Nothing,
            }
        }
        kind => number(array, kind, row),
    }
}

fn list(elements: &ArrayRef) -> Value {
    let rows = 0..elements.len();
    Value::List(rows.map(|row| value(elements, row)).collect())
}

/// A number, or what is kept as one.
fn number(array: &ArrayRef, kind: &DataType, row: usize) -> Value {
    match kind {
        DataType::Int8 => integer::<Int8Type>(array, row),
        DataType::Int16 => integer::<Int16Type>(array, row),
        DataType::Int32 => integer::<Int32Type>(array, row),
        DataType::Int64 => integer::<Int64Type>(array, row),
        DataType::UInt8 => integer::<UInt8Type>(array, row),
        DataType::UInt16 => integer::<UInt16Type>(array, row),
        DataType::UInt32 => integer::<UInt32Type>(array, row),
        DataType::UInt64 => {
            let number = array.as_primitive::<UInt64Type>().value(row);
            i64::try_from(number).map_or_else(|_| Value::Shown(number.to_string()), Value::Integer)
        }
        DataType::Float16 => {
            let number = array.as_primitive::<Float16Type>().value(row);
            Value::Shown(written(number.to_f32()))
        }
        DataType::Float32 => Value::Shown(written(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => Value::Shown(written(array.as_primitive::<Float64Type>().value(row))),
        DataType::Decimal32(..) => {
            Value::Shown(array.as_primitive::<Decimal32Type>().value_as_string(row))
        }
        DataType::Decimal64(..) => {
            Value::Shown(array.as_primitive::<Decimal64Type>().value_as_string(row))
        }
        DataType::Decimal128(..) => {
            Value::Shown(array.as_primitive::<Decimal128Type>().value_as_string(row))
        }
        DataType::Decimal256(..) => {
            Value::Shown(array.as_primitive::<Decimal256Type>().value_as_string(row))
        }
        kind => time(array, kind, row),
    }
}

/// A float as JSON and pandas write it, so that a label has one name in all formats: `1.0`.
fn written(number: impl std::fmt::Debug) -> String {
    format!("{number:?}")
}

fn integer<T: ArrowPrimitiveType>(array: &ArrayRef, row: usize) -> Value
where
    i64: From<T::Native>,
{
    Value::Integer(array.as_primitive::<T>().value(row).into())
}

/// A date, a time of the day, or both, as ISO 8601 writes them with a space between; the number if there is no such date.
fn time(array: &ArrayRef, kind: &DataType, row: usize) -> Value {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let shown = match kind {
        DataType::Date32 => dated::<Date32Type, _>(array, row, |it| it.value_as_date(row)),
        DataType::Date64 => dated::<Date64Type, _>(array, row, |it| it.value_as_date(row)),
        DataType::Time32(Second) => {
            dated::<Time32SecondType, _>(array, row, |it| it.value_as_time(row))
        }
        DataType::Time32(_) => {
            dated::<Time32MillisecondType, _>(array, row, |it| it.value_as_time(row))
        }
        DataType::Time64(Microsecond) => {
            dated::<Time64MicrosecondType, _>(array, row, |it| it.value_as_time(row))
        }
        DataType::Time64(_) => {
            dated::<Time64NanosecondType, _>(array, row, |it| it.value_as_time(row))
        }
        DataType::Timestamp(Second, _) => {
            dated::<TimestampSecondType, _>(array, row, |it| it.value_as_datetime(row))
        }
        DataType::Timestamp(Millisecond, _) => {
            dated::<TimestampMillisecondType, _>(array, row, |it| it.value_as_datetime(row))
        }
        DataType::Timestamp(Microsecond, _) => {
            dated::<TimestampMicrosecondType, _>(array, row, |it| it.value_as_datetime(row))
        }
        DataType::Timestamp(Nanosecond, _) => {
            dated::<TimestampNanosecondType, _>(array, row, |it| it.value_as_datetime(row))
        }
        // Null; what is not read is refused before (`unreadable_kind`).
        _ => return Value::Nothing,
    };
    Value::Shown(shown)
}

fn dated<T: ArrowPrimitiveType, D: ToString>(
    array: &ArrayRef,
    row: usize,
    date: impl FnOnce(&PrimitiveArray<T>) -> Option<D>,
) -> String
where
    T::Native: ToString,
{
    let array = array.as_primitive::<T>();
    date(array).map_or_else(|| array.value(row).to_string(), |date| date.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        BinaryViewArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array, Int8Array,
        LargeStringArray, NullArray, StringViewArray, Time64MicrosecondArray,
        TimestampMillisecondArray, UInt64Array,
    };

    use super::*;

    /// All values of an array, and what a text of them would be.
    fn values(array: impl Array + 'static) -> Vec<Value> {
        let array: ArrayRef = Arc::new(array);
        (0..array.len()).map(|row| value(&array, row)).collect()
    }

    fn shown(text: &str) -> Value {
        Value::Shown(text.to_owned())
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn texts_have_many_layouts() {
        let long = "a text that is longer than twelve bytes";
        let views = StringViewArray::from(vec![Some("short"), None, Some(long)]);
        assert_eq!(values(views), [text("short"), Value::Nothing, text(long)]);
        let views = BinaryViewArray::from(vec![Some(&b"ab"[..]), None]);
        assert_eq!(
            values(views),
            [Value::Bytes(b"ab".to_vec()), Value::Nothing]
        );
        let large = LargeStringArray::from(vec!["Ärger"]);
        assert_eq!(values(large), [text("Ärger")]);
        let categories: DictionaryArray<Int8Type> = vec![Some("b"), None, Some("a"), Some("b")]
            .into_iter()
            .collect();
        let expected = [text("b"), Value::Nothing, text("a"), text("b")];
        assert_eq!(values(categories), expected);
    }

    #[test]
    fn numbers_and_dates_are_shown() {
        assert_eq!(values(Int8Array::from(vec![-1])), [Value::Integer(-1)]);
        let large = UInt64Array::from(vec![1, u64::MAX]);
        assert_eq!(
            values(large),
            [Value::Integer(1), shown("18446744073709551615")]
        );
        assert_eq!(
            values(Float64Array::from(vec![0.5, -1.0])),
            [shown("0.5"), shown("-1.0")]
        );
        let price = Decimal128Array::from(vec![105, -5]);
        let price = price.with_precision_and_scale(9, 2).expect("digits");
        assert_eq!(values(price), [shown("1.05"), shown("-0.05")]);
        assert_eq!(
            values(Date32Array::from(vec![19_844, i32::MAX])),
            [shown("2024-05-01"), shown("2147483647")]
        );
        let time = TimestampMillisecondArray::from(vec![1_714_521_600_500]);
        assert_eq!(values(time), [shown("2024-05-01 00:00:00.500")]);
        let time = Time64MicrosecondArray::from(vec![3_600_000_000]);
        assert_eq!(values(time), [shown("01:00:00")]);
        assert_eq!(values(NullArray::new(2)), [Value::Nothing, Value::Nothing]);
    }
}
