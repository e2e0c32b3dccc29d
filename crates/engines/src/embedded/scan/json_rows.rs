//! The rows of a JSON file as batches. A value is in a column only if the column holds it exactly.

use std::io::Read;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayBuilder, ArrayRef, ListArray, NullBufferBuilder, RecordBatch, StringArray, StringBuilder, StructArray,
};
use datafusion::arrow::buffer::{OffsetBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, SchemaRef};
use datafusion::arrow::error::ArrowError;
use tidegate_ingest_formats::{JsonCursor, JsonKind, JsonSyntaxError, NameIndex};
use tidegate_query::ExtensionType;

use super::text_rows::{BATCH_BYTES_MAX, batch_of, batches_until_error};
use crate::embedded::files::{
    ColumnType, ColumnValues, FileTable, JsonColumns, JsonDefect, JsonError, JsonRecord, JsonRecords, TextReading,
    TextTableOptions, replace_null_type,
};

/// The size of the objects that are searched for further changes of the columns, after one that the table does not hold.
const SEARCHED_BYTES_MAX: usize = 64 << 20;

/// Why the rows of a JSON file cannot be read.
pub(super) enum JsonRowsError {
    Json(JsonError),
    Misfit(JsonMisfit),
    Batch(ArrowError),
}

/// A key that the table does not have, or a value that its column does not hold.
pub(super) struct JsonMisfit {
    /// The name of the column.
    pub(super) column: String,
    /// The value, as it is written.
    pub(super) value: String,
    /// The line in which its object begins, from 1.
    pub(super) line: u64,
    /// The columns that hold the values of this object and of those behind it, where they differ from those of the table, with
    /// their notes.
    pub(super) changes: Vec<(FieldRef, Option<String>)>,
    /// The number of all columns that the table has then.
    pub(super) columns: usize,
}

impl From<JsonError> for JsonRowsError {
    fn from(error: JsonError) -> Self {
        Self::Json(error)
    }
}

/// The batches of a file.
pub(super) struct JsonRows<R> {
    records: JsonRecords<R>,
    reader: ObjectReader,
    /// The columns of the table.
    known_types: Fields,
    options: Arc<TextTableOptions>,
    location: String,
    schema: SchemaRef,
    batch_rows: usize,
}

impl<R: Read> JsonRows<R> {
    /// The rows of `records`, which are those of the file at `location`, with the columns of `table` at `positions`, whose
    /// fields are those of `schema`.
    pub(super) fn new(
        records: JsonRecords<R>,
        table: &FileTable,
        options: Arc<TextTableOptions>,
        positions: &[usize],
        schema: SchemaRef,
        location: &str,
        batch_rows: usize,
    ) -> Self {
        let reader = ObjectReader::new(&table.known_types, &options, positions);
        let width = reader.values.iter().map(JsonColumn::width).sum::<usize>();
        Self {
            records,
            known_types: table.known_types.clone(),
            options,
            location: location.to_owned(),
            schema,
            batch_rows: batch_rows.min(BATCH_BYTES_MAX / width.max(1)).max(1),
            reader,
        }
    }

    /// The batches, until there are no more or one cannot be read.
    pub(super) fn batches(mut self) -> impl Iterator<Item = Result<RecordBatch, JsonRowsError>> {
        batches_until_error(move || self.read_batch())
    }

    fn read_batch(&mut self) -> Result<Option<RecordBatch>, JsonRowsError> {
        let (mut rows, mut text_bytes) = (0_usize, 0_usize);
        while rows < self.batch_rows && text_bytes.max(self.reader.items_bytes()) < BATCH_BYTES_MAX {
            let Some(record) = self.records.next()? else { break };
            let Err(defect) = self.reader.append(record.text) else {
                (rows, text_bytes) = (rows + 1, text_bytes + record.text.len());
                continue;
            };
            let column = match defect {
                RowDefect::Json(defect) => return Err(record.error(defect).into()),
                RowDefect::Misfit(column) => column,
            };
            let (value, line) = (written_value(&record, &column), record.line);
            let mut learned = JsonColumns::new(&self.known_types, self.options.clone(), &self.location);
            learned.learn(&record)?;
            search_changes(&mut self.records, &mut learned);
            let (changes, columns) = (learned.changes(&self.known_types), learned.count());
            return Err(JsonRowsError::Misfit(JsonMisfit { column, value, line, changes, columns }));
        }
        if rows == 0 {
            return Ok(None);
        }
        let columns = self.reader.finish().map_err(JsonRowsError::Batch)?;
        batch_of(&self.schema, columns, rows).map(Some).map_err(JsonRowsError::Batch)
    }
}

/// The value of a member, as it is written.
fn written_value(record: &JsonRecord<'_>, name: &str) -> String {
    let mut cursor = JsonCursor::new(record.text);
    let mut is_first = true;
    while let Ok(Some(found)) = cursor.next_name(&mut is_first) {
        let is_found = found == name;
        match cursor.raw_value() {
            Ok(value) if is_found => return value.to_owned(),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    String::new()
}

/// Adds what further objects change, so that a statement need not begin again for each of them. Their errors are found when
/// they are read as rows.
fn search_changes<R: Read>(records: &mut JsonRecords<R>, learned: &mut JsonColumns) {
    let mut bytes = 0;
    while bytes < SEARCHED_BYTES_MAX
        && let Ok(Some(record)) = records.next()
        && learned.learn(&record).is_ok()
    {
        bytes += record.text.len();
    }
}

/// Why an object is no row.
enum RowDefect {
    Json(JsonDefect),
    /// The value of this key has no column that holds it.
    Misfit(String),
}

impl From<JsonDefect> for RowDefect {
    fn from(defect: JsonDefect) -> Self {
        Self::Json(defect)
    }
}

impl From<JsonSyntaxError> for RowDefect {
    fn from(error: JsonSyntaxError) -> Self {
        Self::Json(error.into())
    }
}

/// Appends objects to columns.
struct ObjectReader {
    /// The names of all columns of the table's files.
    names: NameIndex,
    /// What is known of each of them.
    keys: Vec<Key>,
    /// The columns that are read.
    values: Vec<JsonColumn>,
    /// The number of objects that were begun.
    objects: u64,
    /// The number of rows of the columns.
    rows: usize,
    has_lists: bool,
}

/// A key of objects.
#[derive(Clone, Copy, Default)]
struct Key {
    /// The position among the columns that are read.
    column: Option<usize>,
    /// The number of the last object that has it.
    last_object: u64,
}

impl ObjectReader {
    fn new(known_types: &Fields, options: &TextTableOptions, positions: &[usize]) -> Self {
        let mut keys: Vec<Key> = vec![Key::default(); known_types.len()];
        let mut values = Vec::with_capacity(positions.len());
        for position in positions {
            if let (Some(key), Some(field)) = (keys.get_mut(*position), known_types.get(*position)) {
                key.column = Some(values.len());
                values.push(JsonColumn::new(field, options.columns.get(field.name())));
            }
        }
        Self {
            // The names of columns differ.
            names: NameIndex::new(known_types.iter().map(|field| field.name().clone())).unwrap_or_default(),
            keys,
            has_lists: values.iter().any(JsonColumn::has_lists),
            values,
            objects: 0,
            rows: 0,
        }
    }

    fn append(&mut self, object: &str) -> Result<(), RowDefect> {
        self.objects += 1;
        let mut cursor = JsonCursor::new(object);
        let (mut is_first, mut expected, mut found, mut room) = (true, 0, 0, ITEMS_BYTES_MAX);
        while let Some(name) = cursor.next_name(&mut is_first)? {
            let Some(position) = self.names.find(name, expected) else {
                return Err(RowDefect::Misfit(name.to_owned()));
            };
            expected = position + 1;
            let Some(key) = self.keys.get_mut(position) else { continue };
            if std::mem::replace(&mut key.last_object, self.objects) == self.objects {
                return Err(JsonDefect::KeyTwice(self.names.name(position).to_owned()).into());
            }
            let Some(column) = key.column.and_then(|column| self.values.get_mut(column)) else {
                cursor.raw_value()?;
                continue;
            };
            match column.append(&mut cursor, &mut room) {
                Ok(()) => found += 1,
                Err(CellDefect::Json(defect)) => return Err(defect.into()),
                Err(CellDefect::Misfit) => return Err(RowDefect::Misfit(self.names.name(position).to_owned())),
            }
        }
        cursor.expect_end()?;
        if found < self.values.len() {
            let rows = self.rows;
            self.values.iter_mut().filter(|column| column.len() == rows).for_each(JsonColumn::append_null);
        }
        self.rows += 1;
        Ok(())
    }

    /// The approximate memory of the items of lists without texts.
    fn items_bytes(&self) -> usize {
        if self.has_lists { self.values.iter().map(JsonColumn::items_bytes).sum() } else { 0 }
    }

    /// The values of all rows. The columns are empty then.
    fn finish(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        self.rows = 0;
        self.values.iter_mut().map(JsonColumn::finish).collect()
    }
}

/// The approximate memory of a value without its text.
const VALUE_BYTES: usize = 16;
/// The maximum memory of the items of all lists of a row, without their texts.
const ITEMS_BYTES_MAX: usize = 256 << 20;

/// Why a column takes no value.
enum CellDefect {
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
enum JsonColumn {
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
enum AcceptedKinds {
    Numbers,
    Booleans,
    Scalars,
    /// By their text, because the configuration declares the type.
    Declared,
}

struct ListColumn {
    item_field: FieldRef,
    item: Box<JsonColumn>,
    /// The approximate memory of an item without its text.
    item_bytes: usize,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

struct StructColumn {
    fields: Fields,
    names: NameIndex,
    members: Vec<JsonColumn>,
    nulls: NullBufferBuilder,
}

impl JsonColumn {
    /// An empty column of `field`, whose type is `Null` at any depth where no value is known, or which has a `declared` type.
    fn new(field: &Field, declared: Option<&ColumnType>) -> Self {
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
    fn append(&mut self, cursor: &mut JsonCursor<'_>, room: &mut usize) -> Result<(), CellDefect> {
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

    fn append_null(&mut self) {
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
    fn len(&self) -> usize {
        match self {
            Self::Untyped(count) => *count,
            Self::Scalars(values, ..) => values.len(),
            Self::Documents(documents) => documents.len(),
            Self::List(list) => list.nulls.len(),
            Self::Struct(object) => object.nulls.len(),
        }
    }

    /// The approximate memory of one value without texts and items.
    fn width(&self) -> usize {
        match self {
            Self::Struct(object) => object.members.iter().map(Self::width).sum::<usize>() + 1,
            _ => VALUE_BYTES,
        }
    }

    /// Whether lists are anywhere in the column.
    fn has_lists(&self) -> bool {
        match self {
            Self::List(_) => true,
            Self::Struct(object) => object.members.iter().any(Self::has_lists),
            _ => false,
        }
    }

    /// The approximate memory of the items of lists without texts.
    fn items_bytes(&self) -> usize {
        match self {
            Self::List(list) => list.item.len() * list.item.width() + list.item.items_bytes(),
            Self::Struct(object) => object.members.iter().map(Self::items_bytes).sum(),
            _ => 0,
        }
    }

    /// The values. The column is empty then.
    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
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
