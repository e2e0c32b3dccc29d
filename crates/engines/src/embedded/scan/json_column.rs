//! A column of a JSON file while its objects are read. It takes a value only if it holds it exactly.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayBuilder, ArrayRef, ListArray, NullBufferBuilder, StringArray, StringBuilder, StructArray,
};
use datafusion::arrow::buffer::{OffsetBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::arrow::error::ArrowError;
use tidegate_ingest_formats::{JsonCursor, JsonKind, JsonSyntaxError, NameIndex};
use tidegate_query::ExtensionType;

use crate::embedded::files::{ColumnType, ColumnValues, JsonDefect, TextReading, replace_null_type};

/// The approximate memory of a value without its text.
const VALUE_BYTES: usize = 16;
/// The maximum memory of the items of all lists of a row, without their texts.
pub(super) const ITEMS_BYTES_MAX: usize = 256 << 20;

/// Why a column takes no value.
pub(super) enum CellDefect {
    Json(JsonDefect),
    /// It does not hold the value.
    Misfit,
}

impl From<JsonDefect> for CellDefect {
    fn from(defect: JsonDefect) -> Self {
        Self::Json(defect)
    }
}

impl From<JsonSyntaxError> for CellDefect {
    fn from(error: JsonSyntaxError) -> Self {
        Self::Json(error.into())
    }
}

/// The values of a column, or of a part of it.
pub(super) enum JsonColumn {
    /// So many nulls. The type is not known.
    Untyped(usize),
    Scalars(ColumnValues, AcceptedKinds, TextReading),
    /// Any values, as they are written.
    Documents(StringBuilder),
    List(ListColumn),
    Struct(StructColumn),
}

/// The kinds of values that become scalars of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcceptedKinds {
    Numbers,
    Booleans,
    Scalars,
    /// By their text, because the configuration declares the type.
    Declared,
}

pub(super) struct ListColumn {
    item_field: FieldRef,
    item: Box<JsonColumn>,
    /// The approximate memory of an item without its text.
    item_bytes: usize,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

pub(super) struct StructColumn {
    fields: Fields,
    names: NameIndex,
    members: Vec<JsonColumn>,
    nulls: NullBufferBuilder,
}

impl JsonColumn {
    /// An empty column of `field`, whose type is `Null` at any depth where no value is known, or which has a `declared` type.
    pub(super) fn new(field: &Field, declared: Option<&ColumnType>) -> Self {
        if ExtensionType::from_field(field) == Some(ExtensionType::Json) {
            return Self::Documents(StringBuilder::new());
        }
        match field.data_type() {
            DataType::Null => Self::Untyped(0),
            DataType::List(item) => Self::List(ListColumn::new(item)),
            DataType::Struct(members) => Self::Struct(StructColumn::new(members)),
            scalar => {
                let kinds = match scalar {
                    _ if declared.is_some() => AcceptedKinds::Declared,
                    DataType::Boolean => AcceptedKinds::Booleans,
                    DataType::Utf8 => AcceptedKinds::Scalars,
                    _ => AcceptedKinds::Numbers,
                };
                Self::Scalars(ColumnValues::new(scalar), kinds, TextReading::new(declared, scalar, None))
            }
        }
    }

    /// Appends the next value of `cursor`. Its lists may have items of `room` bytes, which are taken from it. After an error, the
    /// column is not complete.
    #[inline]
    pub(super) fn append(&mut self, cursor: &mut JsonCursor<'_>, room: &mut usize) -> Result<(), CellDefect> {
        match self {
            Self::Scalars(values, kinds, reading) => return append_scalar(values, *kinds, reading, cursor),
            Self::Documents(documents) => {
                match cursor.raw_value()? {
                    "null" => documents.append_null(),
                    document => documents.append_value(document),
                }
                return Ok(());
            }
            Self::Untyped(_) | Self::List(_) | Self::Struct(_) => {}
        }
        let kind = cursor.kind()?;
        if kind == JsonKind::Null {
            self.append_null();
            return Ok(());
        }
        match (self, kind) {
            (Self::List(list), JsonKind::Array) => list.append_items(cursor, room),
            (Self::Struct(object), JsonKind::Object) => object.append_members(cursor, room),
            _ => Err(CellDefect::Misfit),
        }
    }

    pub(super) fn append_null(&mut self) {
        match self {
            Self::Untyped(count) => *count += 1,
            Self::Scalars(values, ..) => values.append_null(),
            Self::Documents(documents) => documents.append_null(),
            Self::List(list) => {
                list.offsets.push(list.offsets.last().copied().unwrap_or_default());
                list.nulls.append_null();
            }
            Self::Struct(object) => {
                object.members.iter_mut().for_each(Self::append_null);
                object.nulls.append_null();
            }
        }
    }

    /// The number of values.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Untyped(count) => *count,
            Self::Scalars(values, ..) => values.len(),
            Self::Documents(documents) => documents.len(),
            Self::List(list) => list.nulls.len(),
            Self::Struct(object) => object.nulls.len(),
        }
    }

    /// The approximate memory of one value without texts and items.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::Struct(object) => object.members.iter().map(Self::width).sum::<usize>() + 1,
            _ => VALUE_BYTES,
        }
    }

    /// Whether lists are anywhere in the column.
    pub(super) fn has_lists(&self) -> bool {
        match self {
            Self::List(_) => true,
            Self::Struct(object) => object.members.iter().any(Self::has_lists),
            _ => false,
        }
    }

    /// The approximate memory of the items of lists without texts.
    pub(super) fn items_bytes(&self) -> usize {
        match self {
            Self::List(list) => list.item.len() * list.item.width() + list.item.items_bytes(),
            Self::Struct(object) => object.members.iter().map(Self::items_bytes).sum(),
            _ => 0,
        }
    }

    /// The values. The column is empty then.
    pub(super) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let values: ArrayRef = match self {
            Self::Untyped(count) => Arc::new(StringArray::new_null(std::mem::take(count))),
            Self::Scalars(values, ..) => values.finish(),
            Self::Documents(documents) => Arc::new(documents.finish()),
            Self::List(list) => Arc::new(list.finish()?),
            Self::Struct(object) => Arc::new(object.finish()?),
        };
        Ok(values)
    }
}

#[inline]
fn append_scalar(
    values: &mut ColumnValues,
    kinds: AcceptedKinds,
    reading: &TextReading,
    cursor: &mut JsonCursor<'_>,
) -> Result<(), CellDefect> {
    use AcceptedKinds::{Booleans, Declared, Numbers, Scalars};
    let is_declared = kinds == Declared;
    let appended = match cursor.kind()? {
        JsonKind::Null => {
            values.append_null();
            return Ok(());
        }
        JsonKind::Number if kinds != Booleans => values.append_plain(cursor.number()?, reading),
        JsonKind::Boolean(value) if kinds != Numbers => values.append(if value { "true" } else { "false" }, reading),
        JsonKind::String if matches!(kinds, Scalars | Declared) => values.append(cursor.string()?, reading),
        JsonKind::Array | JsonKind::Object if is_declared => values.append(cursor.raw_value()?, reading),
        _ => None,
    };
    appended.ok_or(CellDefect::Misfit)
}

impl ListColumn {
    fn new(item: &FieldRef) -> Self {
        let column = JsonColumn::new(item, None);
        Self {
            item_field: Arc::new(item.as_ref().clone().with_data_type(replace_null_type(item.data_type()))),
            item_bytes: column.width(),
            item: Box::new(column),
            offsets: vec![0],
            nulls: NullBufferBuilder::new(0),
        }
    }

    fn append_items(&mut self, cursor: &mut JsonCursor<'_>, room: &mut usize) -> Result<(), CellDefect> {
        let mut is_first = true;
        while cursor.next_item(&mut is_first)? {
            *room = room.checked_sub(self.item_bytes).ok_or(JsonDefect::TooManyItems)?;
            self.item.append(cursor, room)?;
        }
        let end = i32::try_from(self.item.len()).map_err(|_| JsonDefect::TooManyItems)?;
        self.offsets.push(end);
        self.nulls.append_non_null();
        Ok(())
    }

    fn finish(&mut self) -> Result<ListArray, ArrowError> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(&mut self.offsets, vec![0])));
        ListArray::try_new(self.item_field.clone(), offsets, self.item.finish()?, self.nulls.finish())
    }
}

impl StructColumn {
    fn new(fields: &Fields) -> Self {
        let typed = |field: &FieldRef| field.as_ref().clone().with_data_type(replace_null_type(field.data_type()));
        Self {
            fields: fields.iter().map(typed).collect(),
            // The names of members differ.
            names: NameIndex::new(fields.iter().map(|field| field.name().clone())).unwrap_or_default(),
            members: fields.iter().map(|field| JsonColumn::new(field, None)).collect(),
            nulls: NullBufferBuilder::new(0),
        }
    }

    fn append_members(&mut self, cursor: &mut JsonCursor<'_>, room: &mut usize) -> Result<(), CellDefect> {
        let len = self.nulls.len();
        let (mut is_first, mut expected) = (true, 0);
        while let Some(name) = cursor.next_name(&mut is_first)? {
            let position = self.names.find(name, expected).ok_or(CellDefect::Misfit)?;
            expected = position + 1;
            let member = self.members.get_mut(position).ok_or(CellDefect::Misfit)?;
            if member.len() > len {
                return Err(JsonDefect::KeyTwice(self.names.name(position).to_owned()).into());
            }
            member.append(cursor, room)?;
        }
        self.members.iter_mut().filter(|member| member.len() == len).for_each(JsonColumn::append_null);
        self.nulls.append_non_null();
        Ok(())
    }

    fn finish(&mut self) -> Result<StructArray, ArrowError> {
        let len = self.nulls.len();
        let members = self.members.iter_mut().map(JsonColumn::finish).collect::<Result<Vec<_>, _>>()?;
        StructArray::try_new_with_length(self.fields.clone(), members, self.nulls.finish(), len)
    }
}
