//! Builds arrays from binary values, also those of arrays and composites.

use std::sync::Arc;

use arrow::array::{
    ArrayBuilder as _, ArrayRef, BooleanBuilder, ListArray, NullBufferBuilder, PrimitiveBuilder, StructArray,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Decimal256Type, DecimalType, FieldRef, Fields,
    Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType, Time64MicrosecondType,
    TimestampMicrosecondType, UInt32Type, UInt64Type,
};

use super::column::{BinaryForm, BytesBuilder, ColumnDecoder, TextRendering};
use super::{ValueError, ValueReader, column, exactly};

/// Builds an array from binary values. Each value takes one `match` and no allocation.
pub(super) enum ArrayBuilder {
    Boolean(BooleanBuilder),
    Int16(PrimitiveBuilder<Int16Type>),
    Int32(PrimitiveBuilder<Int32Type>),
    Int64(PrimitiveBuilder<Int64Type>),
    UInt32(PrimitiveBuilder<UInt32Type>),
    UInt64(PrimitiveBuilder<UInt64Type>),
    Float32(PrimitiveBuilder<Float32Type>),
    Float64(PrimitiveBuilder<Float64Type>),
    Decimal128(i8, PrimitiveBuilder<Decimal128Type>),
    Decimal256(i8, PrimitiveBuilder<Decimal256Type>),
    Text(TextRendering, BytesBuilder),
    Bytes(BytesBuilder),
    Date(PrimitiveBuilder<Date32Type>),
    Time(PrimitiveBuilder<Time64MicrosecondType>),
    Timestamp(PrimitiveBuilder<TimestampMicrosecondType>),
    Interval(PrimitiveBuilder<IntervalMonthDayNanoType>),
    List(Box<ListBuilder>),
    Struct(StructBuilder),
}

/// A `match` with the same expression for all primitive arrays.
macro_rules! match_array {
    ($self:expr, $array:ident => $expression:expr, { $($others:tt)* }) => {
        match $self {
            Self::Int16($array) => $expression,
            Self::Int32($array) => $expression,
            Self::Int64($array) => $expression,
            Self::UInt32($array) => $expression,
            Self::UInt64($array) => $expression,
            Self::Float32($array) => $expression,
            Self::Float64($array) => $expression,
            Self::Decimal128(_, $array) => $expression,
            Self::Decimal256(_, $array) => $expression,
            Self::Date($array) => $expression,
            Self::Time($array) => $expression,
            Self::Timestamp($array) => $expression,
            Self::Interval($array) => $expression,
            $($others)*
        }
    };
}

impl ArrayBuilder {
    pub(super) fn new(column: &ColumnDecoder) -> Self {
        let data_type = column.field.data_type();
        match (&column.form, data_type) {
            (BinaryForm::Text(rendering), _) => Self::Text(*rendering, BytesBuilder::default()),
            (BinaryForm::List(item), _) => Self::List(Box::new(ListBuilder::new(item))),
            (BinaryForm::Struct(members), _) => Self::Struct(StructBuilder::new(members)),
            (BinaryForm::Scalar, DataType::Boolean) => Self::Boolean(BooleanBuilder::new()),
            (BinaryForm::Scalar, DataType::Int16) => Self::Int16(PrimitiveBuilder::new()),
            (BinaryForm::Scalar, DataType::Int32) => Self::Int32(PrimitiveBuilder::new()),
            (BinaryForm::Scalar, DataType::Int64) => Self::Int64(PrimitiveBuilder::new()),
            (BinaryForm::Scalar, DataType::UInt32) => Self::UInt32(PrimitiveBuilder::new()),
            (BinaryForm::Scalar, DataType::UInt64) => Self::UInt64(PrimitiveBuilder::new()),
            (BinaryForm::Scalar, DataType::Float32) => Self::Float32(PrimitiveBuilder::new()),
            (BinaryForm::Scalar, DataType::Float64) => Self::Float64(PrimitiveBuilder::new()),
            (BinaryForm::Scalar, DataType::Decimal128(_, scale)) => Self::Decimal128(*scale, typed_builder(data_type)),
            (BinaryForm::Scalar, DataType::Decimal256(_, scale)) => Self::Decimal256(*scale, typed_builder(data_type)),
            (BinaryForm::Scalar, DataType::Date32) => Self::Date(PrimitiveBuilder::new()),
            (BinaryForm::Scalar, DataType::Time64(_)) => Self::Time(PrimitiveBuilder::new()),
            (BinaryForm::Scalar, DataType::Timestamp(..)) => Self::Timestamp(typed_builder(data_type)),
            (BinaryForm::Scalar, DataType::Interval(_)) => Self::Interval(PrimitiveBuilder::new()),
            (BinaryForm::Scalar, _) => Self::Bytes(BytesBuilder::default()),
        }
    }

    /// Appends a value; `None` is NULL.
    pub(super) fn append(&mut self, value: Option<&[u8]>) -> Result<(), ValueError> {
        let Some(bytes) = value else {
            self.append_null();
            return Ok(());
        };
        match self {
            Self::Boolean(array) => array.append_value(exactly(bytes)? != [0]),
            Self::Int16(array) => array.append_value(i16::from_be_bytes(exactly(bytes)?)),
            Self::Int32(array) => array.append_value(i32::from_be_bytes(exactly(bytes)?)),
            Self::Int64(array) => array.append_value(i64::from_be_bytes(exactly(bytes)?)),
            Self::UInt32(array) => array.append_value(u32::from_be_bytes(exactly(bytes)?)),
            Self::UInt64(array) => array.append_value(u64::from_be_bytes(exactly(bytes)?)),
            Self::Float32(array) => array.append_value(f32::from_be_bytes(exactly(bytes)?)),
            Self::Float64(array) => array.append_value(f64::from_be_bytes(exactly(bytes)?)),
            Self::Decimal128(scale, array) => append_decimal(array, *scale, bytes)?,
            Self::Decimal256(scale, array) => append_decimal(array, *scale, bytes)?,
            Self::Text(text_rendering, array) => array.append(|out| text_rendering.write(bytes, out))?,
            Self::Bytes(array) => array.append(|out| TextRendering::Plain.write(bytes, out))?,
            Self::Date(array) => array.append_value(column::decode_date(bytes)?),
            Self::Time(array) => array.append_value(column::decode_time(bytes)?),
            Self::Timestamp(array) => array.append_value(column::decode_timestamp(bytes)?),
            Self::Interval(array) => array.append_value(column::decode_interval(bytes)?),
            Self::List(array) => array.append(bytes)?,
            Self::Struct(array) => array.append(bytes)?,
        }
        Ok(())
    }

    pub(super) fn append_null(&mut self) {
        match_array!(self, array => array.append_null(), {
            Self::Boolean(array) => array.append_null(),
            Self::Text(_, array) | Self::Bytes(array) => array.append_null(),
            Self::List(array) => array.append_null(),
            Self::Struct(array) => array.append_null(),
        })
    }

    /// The approximate size of the values, in bytes; the null buffer is not counted.
    pub(super) fn bytes(&self) -> usize {
        match_array!(self, array => size_of_val(array.values_slice()), {
            Self::Boolean(array) => array.len() / 8,
            Self::Text(_, array) | Self::Bytes(array) => array.bytes(),
            Self::List(array) => array.bytes(),
            Self::Struct(array) => array.bytes(),
        })
    }

    /// Takes the array and leaves an empty builder.
    pub(super) fn finish(&mut self) -> Result<ArrayRef, ValueError> {
        Ok(match_array!(self, array => Arc::new(array.finish()), {
            Self::Boolean(array) => Arc::new(array.finish()),
            Self::Text(_, array) => Arc::new(array.finish_text()?),
            Self::Bytes(array) => Arc::new(array.finish_bytes()?),
            Self::List(array) => Arc::new(array.finish()?),
            Self::Struct(array) => Arc::new(array.finish()?),
        }))
    }
}

fn typed_builder<T: ArrowPrimitiveType>(data_type: &DataType) -> PrimitiveBuilder<T> {
    PrimitiveBuilder::new().with_data_type(data_type.clone())
}

fn append_decimal<T: DecimalType + ArrowPrimitiveType>(
    array: &mut PrimitiveBuilder<T>,
    scale: i8,
    bytes: &[u8],
) -> Result<(), ValueError> {
    array.append_value(column::decode_decimal::<T>(bytes, scale)?);
    Ok(())
}

/// Builds lists from arrays of one dimension.
pub(super) struct ListBuilder {
    field: FieldRef,
    /// The oid of the item type in each array.
    oid: u32,
    items: ArrayBuilder,
    /// The start of each list, and the end of the last one.
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl ListBuilder {
    pub(super) fn new(item: &ColumnDecoder) -> Self {
        Self {
            field: item.field.clone().into(),
            oid: item.oid,
            items: ArrayBuilder::new(item),
            offsets: vec![0],
            nulls: NullBufferBuilder::new(0),
        }
    }

    /// Appends an array: the number of dimensions, whether it has NULLs, the item type; for each dimension the length and
    /// the first index, which is ignored; the items with their lengths.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), ValueError> {
        let mut reader = ValueReader(bytes);
        let (dimensions, _has_nulls, oid) = (reader.int32()?, reader.int32()?, reader.uint32()?);
        if oid != self.oid {
            return Err(ValueError::Malformed);
        }
        let length = match dimensions {
            0 => 0,
            1 => {
                let (length, _first_index) = (reader.int32()?, reader.int32()?);
                length
            }
            _ => return Err(ValueError::Dimensions(dimensions)),
        };
        for _ in 0..length {
            self.items.append(reader.read_value()?)?;
        }
        reader.expect_end()?;
        self.offsets.push(self.end().checked_add(length.max(0)).ok_or(ValueError::TooLarge)?);
        self.nulls.append_non_null();
        Ok(())
    }

    pub(super) fn append_null(&mut self) {
        self.offsets.push(self.end());
        self.nulls.append_null();
    }

    pub(super) fn bytes(&self) -> usize {
        self.items.bytes() + size_of_val(self.offsets.as_slice())
    }

    pub(super) fn finish(&mut self) -> Result<ListArray, ValueError> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(&mut self.offsets, vec![0])));
        ListArray::try_new(self.field.clone(), offsets, self.items.finish()?, self.nulls.finish())
            .map_err(|_| ValueError::Malformed)
    }

    fn end(&self) -> i32 {
        self.offsets.last().copied().unwrap_or_default()
    }
}

/// Builds structs from composites.
pub(super) struct StructBuilder {
    fields: Fields,
    /// The oid of each member's type, and its values.
    members: Vec<(u32, ArrayBuilder)>,
    nulls: NullBufferBuilder,
}

impl StructBuilder {
    pub(super) fn new(members: &[ColumnDecoder]) -> Self {
        Self {
            fields: members.iter().map(|member| member.field.clone()).collect(),
            members: members.iter().map(|member| (member.oid, ArrayBuilder::new(member))).collect(),
            nulls: NullBufferBuilder::new(0),
        }
    }

    /// Appends a composite: the number of members, then the type and the value with its length for each.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), ValueError> {
        let mut reader = ValueReader(bytes);
        if usize::try_from(reader.int32()?) != Ok(self.members.len()) {
            return Err(ValueError::Malformed);
        }
        for (oid, values) in &mut self.members {
            if reader.uint32()? != *oid {
                return Err(ValueError::Malformed);
            }
            values.append(reader.read_value()?)?;
        }
        reader.expect_end()?;
        self.nulls.append_non_null();
        Ok(())
    }

    pub(super) fn append_null(&mut self) {
        self.members.iter_mut().for_each(|(_, values)| values.append_null());
        self.nulls.append_null();
    }

    pub(super) fn bytes(&self) -> usize {
        self.members.iter().map(|(_, values)| values.bytes()).sum()
    }

    pub(super) fn finish(&mut self) -> Result<StructArray, ValueError> {
        let arrays = self.members.iter_mut().map(|(_, values)| values.finish()).collect::<Result<Vec<_>, _>>()?;
        StructArray::try_new(self.fields.clone(), arrays, self.nulls.finish()).map_err(|_| ValueError::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio_postgres::types::Type;

    use super::*;

    const TYPES: &[Type] = &[
        Type::BOOL,
        Type::INT2,
        Type::INT8,
        Type::FLOAT4,
        Type::NUMERIC,
        Type::TEXT,
        Type::CHAR,
        Type::UUID,
        Type::INET,
        Type::MACADDR,
        Type::VARBIT,
        Type::JSONB,
        Type::BYTEA,
        Type::DATE,
        Type::TIME,
        Type::TIMESTAMPTZ,
        Type::INTERVAL,
        Type::INT4_ARRAY,
        Type::NUMERIC_ARRAY,
    ];

    /// Modifiers of numerics: none, `numeric(10,2)`, `numeric(60,20)`.
    const MODIFIERS: [i32; 3] = [-1, (10 << 16 | 2) + 4, (60 << 16 | 20) + 4];

    proptest! {
        /// Bytes of few different values, so that lengths and signs are valid more often.
        #[test]
        fn arbitrary_bytes_do_not_panic(values in prop::collection::vec(prop::collection::vec(
            prop_oneof![3 => Just(0_u8), 1 => 0..6_u8, 1 => Just(0xff), 1 => any::<u8>()], 0..40), 1..20)) {
            for kind in TYPES {
                for modifier in MODIFIERS {
                    let mut array = ArrayBuilder::new(&ColumnDecoder::for_type("c", kind, modifier).unwrap());
                    for value in &values {
                        let _ = array.append(Some(value));
                        array.append_null();
                    }
                    let _ = array.finish();
                }
            }
        }
    }

    fn array_of(kind: &Type, modifier: i32, values: &[Option<&[u8]>]) -> Result<ArrayRef, ValueError> {
        let mut array = ArrayBuilder::new(&ColumnDecoder::for_type("c", kind, modifier).unwrap());
        for value in values {
            array.append(*value)?;
        }
        array.finish()
    }

    #[test]
    fn arrays_begin_empty_after_each_batch() {
        let mut array = ArrayBuilder::new(&ColumnDecoder::for_type("c", &Type::TEXT_ARRAY, -1).unwrap());
        let list = b"\0\0\0\x01\0\0\0\x01\0\0\0\x19\0\0\0\x02\0\0\0\x05\0\0\0\x01a\xff\xff\xff\xff";
        for _ in 0..2 {
            array.append(Some(list)).unwrap();
            array.append(None).unwrap();
            let batch = array.finish().unwrap();
            assert_eq!((batch.len(), batch.null_count()), (2, 1));
            let items = arrow::util::display::array_value_to_string(&batch, 0).unwrap();
            assert_eq!(items, "[a, ]");
        }
    }

    #[test]
    fn size_counts_decoded_values_not_wire_bytes() {
        let mut array = ArrayBuilder::new(&ColumnDecoder::for_type("c", &Type::NUMERIC_ARRAY, -1).unwrap());
        // One item: 1 with a weight of 30,000, so 120,001 digits.
        let number = [1_u16, 30_000, 0, 0, 1].map(u16::to_be_bytes).concat();
        let head = [1_i32, 0, 1_700, 1, 1, 10].map(i32::to_be_bytes).concat();
        array.append(Some(&[head, number].concat())).unwrap();
        assert!((120_001..120_100).contains(&array.bytes()), "{}", array.bytes());
        array.finish().unwrap();
        assert!(array.bytes() < 100);
    }

    #[test]
    fn malformed_binary_values_are_rejected() {
        let refused = |kind: &Type, bytes: &[u8]| array_of(kind, -1, &[Some(bytes)]).unwrap_err();
        assert_eq!(refused(&Type::INT4, b"\0\0\x01"), ValueError::Malformed);
        assert_eq!(refused(&Type::JSONB, b"\x02{}"), ValueError::Malformed);
        assert_eq!(refused(&Type::TIME, &(-1_i64).to_be_bytes()), ValueError::Malformed);
        // An array of `bigint` instead of the declared `integer`.
        assert_eq!(refused(&Type::INT4_ARRAY, b"\0\0\0\0\0\0\0\0\0\0\0\x14"), ValueError::Malformed);
        assert_eq!(refused(&Type::INT4_ARRAY, b"\0\0\0\x02\0\0\0\0\0\0\0\x17"), ValueError::Dimensions(2));
        assert_eq!(refused(&Type::TEXT, b"caf\xe9"), ValueError::NotUtf8);
        // Valid as a whole, but the boundary of the values divides a character.
        assert_eq!(array_of(&Type::TEXT, -1, &[Some(b"\xc3"), Some(b"\xa9")]).unwrap_err(), ValueError::NotUtf8);
    }
}
