//! Reads the objects of a JSON text one by one, those of an array, or one after the other, over any number of lines;
//! and the types of their columns, from their values. The columns are the keys of the first objects.
//!
//! A column has a type only if it holds all of its values exactly. Scalars of different kinds are text, as they are
//! written. If some values are objects or arrays and others are not, at any depth, the column is JSON. It is also JSON
//! if its values are nested too deeply, or have too many members.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use tidegate_ingest_formats::{JsonCursor, JsonKind, JsonScanner, JsonSyntaxError, NameIndex};
use tidegate_query::{ExtensionType, type_name};

use super::column_type::{BIG_INTEGER, ColumnType};
use super::file_kind::Compression;
use super::probe::{ContentFormat, FileProfile};
use super::table_options::TextTableOptions;
use super::text_reader::{ReadBudget, RecordBuffer, TextDecoding, open_text, read_error_reason};
use super::text_value::{TypeOrigin, cut_value, infer_type, parse_float};
use super::walk::FileLimits;

/// The objects of a text.
pub(crate) struct JsonRecords<R> {
    buffer: RecordBuffer<R>,
    scanner: JsonScanner,
    /// The length of the object that the buffer begins with.
    length: usize,
    place: Place,
    /// The line in which the buffer begins, from 1.
    line: u64,
}

/// What the text before the buffer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    /// The bracket of an array.
    FirstItem,
    /// An array up to a comma.
    Item,
    /// An array up to the end of an item.
    AfterItem,
    /// An array.
    End,
    /// Objects one after the other.
    Sequence,
}

/// An object.
pub(crate) struct JsonRecord<'r> {
    /// Begins and ends with a brace. Whether it is JSON between them is not checked.
    pub(crate) text: &'r str,
    /// The line in which it begins, from 1.
    pub(crate) line: u64,
}

/// Why the text of an object gives no values.
#[derive(Debug)]
pub(crate) enum JsonDefect {
    Syntax(JsonSyntaxError),
    /// A key is there twice in one object.
    KeyTwice(String),
    /// The items of its lists take too much memory.
    TooManyItems,
}

impl From<JsonSyntaxError> for JsonDefect {
    fn from(error: JsonSyntaxError) -> Self {
        Self::Syntax(error)
    }
}

impl JsonRecord<'_> {
    /// The error of this object.
    pub(crate) fn error(&self, defect: JsonDefect) -> JsonError {
        let (line, reason) = match defect {
            JsonDefect::Syntax(error) => return syntax_error(self.text, self.line, error),
            JsonDefect::KeyTwice(key) => (self.line, format!("the key {key:?} is twice in one object")),
            JsonDefect::TooManyItems => (self.line, "the lists of the row take too much memory".to_owned()),
        };
        JsonError::Form { line, reason }
    }
}

fn syntax_error(text: &str, first_line: u64, error: JsonSyntaxError) -> JsonError {
    let before = text.as_bytes().get(..error.position).unwrap_or(text.as_bytes());
    JsonError::Form { line: first_line + count_lines(before), reason: error.reason.to_owned() }
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Why objects cannot be read.
#[derive(Debug)]
pub(crate) enum JsonError {
    /// The bytes cannot be read.
    Read(io::Error),
    /// The text has no valid form.
    Form {
        /// The line, from 1.
        line: u64,
        reason: String,
    },
}

impl JsonError {
    /// The reason, for the operator.
    pub(crate) fn reason(&self, compression: Compression) -> String {
        match self {
            Self::Read(error) => read_error_reason(error, compression),
            Self::Form { line, reason } => format!("line {line}: {reason}"),
        }
    }
}

impl<R: Read> JsonRecords<R> {
    pub(crate) fn new(text: R, budget: ReadBudget) -> Self {
        Self {
            buffer: RecordBuffer::new(text, budget),
            scanner: JsonScanner::default(),
            length: 0,
            place: Place::Start,
            line: 1,
        }
    }

    /// Whether the text that was read so far has anything but blanks.
    pub(crate) fn has_begun(&self) -> bool {
        self.place != Place::Start
    }

    /// The next object. An error is the last result.
    pub(crate) fn next(&mut self) -> Result<Option<JsonRecord<'_>>, JsonError> {
        let Some(length) = self.find_object()? else { return Ok(None) };
        self.length = length;
        let line = self.line;
        let bytes = self.buffer.rest().get(..length).unwrap_or_default();
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(JsonRecord { text, line })),
            Err(error) => {
                let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
                Err(JsonError::Form { line: line + count_lines(before), reason: "it is not UTF-8 text".to_owned() })
            }
        }
    }

    /// Moves the buffer to the next object, and returns its length. Nothing at the end of the text.
    fn find_object(&mut self) -> Result<Option<usize>, JsonError> {
        let length = std::mem::take(&mut self.length);
        self.skip(length);
        loop {
            let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            let blanks = self.buffer.rest().iter().take_while(is_blank).count();
            self.skip(blanks);
            let Some(byte) = self.buffer.rest().first().copied() else {
                if !self.buffer.is_at_end() {
                    self.fill()?;
                    continue;
                }
                return match self.place {
                    Place::Start | Place::Sequence | Place::End => Ok(None),
                    Place::FirstItem | Place::Item | Place::AfterItem => {
                        self.malformed("the array is not closed; the file is cut off")
                    }
                };
            };
            self.place = match (self.place, byte) {
                (Place::Start | Place::Sequence, b'{') => {
                    self.place = Place::Sequence;
                    return self.scan_object().map(Some);
                }
                (Place::FirstItem | Place::Item, b'{') => {
                    self.place = Place::AfterItem;
                    return self.scan_object().map(Some);
                }
                (Place::Start, b'[') => Place::FirstItem,
                (Place::AfterItem, b',') => Place::Item,
                (Place::FirstItem | Place::AfterItem, b']') => Place::End,
                (Place::Start, _) => return self.malformed("an object or an array of objects is expected"),
                (Place::AfterItem, _) => return self.malformed("a comma or the end of the array is expected"),
                (Place::End, _) => return self.malformed("there is text after the array"),
                (Place::FirstItem | Place::Item | Place::Sequence, _) => {
                    return self.malformed("a row is not an object");
                }
            };
            self.skip(1);
        }
    }

    /// The length of the object that the buffer begins with.
    fn scan_object(&mut self) -> Result<usize, JsonError> {
        self.scanner.clear();
        loop {
            if let Some(length) = self.scanner.scan(self.buffer.rest()) {
                return Ok(length);
            }
            if self.buffer.is_at_end() {
                return Err(self.open_object_error());
            }
            self.fill()?;
        }
    }

    /// The error of an object that does not end. An error of its form is the reason, if there is one.
    fn open_object_error(&self) -> JsonError {
        let text = std::str::from_utf8(self.buffer.rest()).unwrap_or_default();
        match JsonCursor::new(text).raw_value() {
            Err(error) if error.position < text.len() => syntax_error(text, self.line, error),
            _ => JsonError::Form { line: self.line, reason: "an object is not closed; the file is cut off".to_owned() },
        }
    }

    fn skip(&mut self, length: usize) {
        self.line += count_lines(self.buffer.rest().get(..length).unwrap_or_default());
        self.buffer.advance(length);
    }

    fn fill(&mut self) -> Result<(), JsonError> {
        self.buffer.fill().map_err(JsonError::Read)
    }

    fn malformed<T>(&self, reason: &str) -> Result<T, JsonError> {
        Err(JsonError::Form { line: self.line, reason: reason.to_owned() })
    }
}

/// The maximum depth of values that are no JSON.
const DEPTH_MAX: usize = 16;
/// The maximum number of members of an object that is no JSON.
const MEMBERS_MAX: usize = 1_000;

/// What is known of a declared column if no object of a file has it.
pub(crate) const ABSENT_NOTE: &str = "declared in the configuration, but no object that was looked at has this key";

/// What the values of a column have in common.
#[derive(Debug, Clone, Default)]
enum JsonType {
    /// There are none but nulls.
    #[default]
    Unknown,
    Boolean,
    /// Integers of 64 bits.
    Integer {
        /// Whether a float is equal to each of them.
        fits_float: bool,
    },
    /// Integers of up to 38 digits.
    BigInteger,
    Float,
    Text,
    List(Box<JsonType>),
    Object(JsonMembers),
    /// Any values, as they are written.
    Document,
}

/// The members of an object.
#[derive(Debug, Clone, Default)]
struct JsonMembers {
    names: NameIndex,
    types: Vec<JsonType>,
}

impl JsonType {
    /// The type of the next value of `cursor`. Nothing if it is a value that only JSON holds.
    fn of_value(cursor: &mut JsonCursor<'_>, depth: usize) -> Result<Option<Self>, JsonDefect> {
        Ok(Some(match cursor.kind()? {
            JsonKind::Null => Self::Unknown,
            JsonKind::Boolean(_) => Self::Boolean,
            JsonKind::Number => Self::of_number(cursor.number()?),
            JsonKind::String => {
                cursor.string()?;
                Self::Text
            }
            JsonKind::Array => return Self::of_items(cursor, depth),
            JsonKind::Object => return Self::of_members(cursor, depth),
        }))
    }

    fn of_number(text: &str) -> Self {
        let fits_float = parse_float(text, TypeOrigin::Inferred).is_some();
        match infer_type(text, None) {
            DataType::Int64 => Self::Integer { fits_float },
            DataType::Decimal128(..) => Self::BigInteger,
            // `12E5` is a code in CSV only.
            _ if fits_float => Self::Float,
            _ => Self::Text,
        }
    }

    fn of_items(cursor: &mut JsonCursor<'_>, depth: usize) -> Result<Option<Self>, JsonDefect> {
        let Some(depth) = depth.checked_sub(1) else { return Ok(None) };
        let (mut item, mut is_first) = (Self::Unknown, true);
        while cursor.next_item(&mut is_first)? {
            let found = Self::of_value(cursor, depth)?;
            let Some(both) = found.and_then(|found| std::mem::take(&mut item).merge(found)) else { return Ok(None) };
            item = both;
        }
        Ok(Some(Self::List(Box::new(item))))
    }

    fn of_members(cursor: &mut JsonCursor<'_>, depth: usize) -> Result<Option<Self>, JsonDefect> {
        let Some(depth) = depth.checked_sub(1) else { return Ok(None) };
        let (mut members, mut is_first) = (JsonMembers::default(), true);
        while let Some(name) = cursor.next_name(&mut is_first)? {
            let name = name.to_owned();
            let Some(found) = Self::of_value(cursor, depth)? else { return Ok(None) };
            if members.names.push(name.clone()).is_err() {
                return Err(JsonDefect::KeyTwice(name));
            }
            members.types.push(found);
            if members.types.len() > MEMBERS_MAX {
                return Ok(None);
            }
        }
        Ok(Some(Self::Object(members)))
    }

    /// The narrowest type that holds the values of both. Nothing if only JSON does.
    fn merge(self, other: Self) -> Option<Self> {
        Some(match (self, other) {
            (Self::Unknown, known) | (known, Self::Unknown) => known,
            (Self::Document, _) | (_, Self::Document) => Self::Document,
            (Self::List(a), Self::List(b)) => Self::List(Box::new(a.merge(*b)?)),
            (Self::Object(a), Self::Object(b)) => Self::Object(a.merge(b)?),
            (Self::List(_) | Self::Object(_), _) | (_, Self::List(_) | Self::Object(_)) => return None,
            (Self::Boolean, Self::Boolean) => Self::Boolean,
            (Self::Integer { fits_float: a }, Self::Integer { fits_float: b }) => Self::Integer { fits_float: a && b },
            (Self::BigInteger | Self::Integer { .. }, Self::BigInteger | Self::Integer { .. }) => Self::BigInteger,
            (Self::Float | Self::Integer { fits_float: true }, Self::Float | Self::Integer { fits_float: true }) => {
                Self::Float
            }
            _ => Self::Text,
        })
    }

    /// The type of the values of a column of a file.
    fn from_field(field: &Field) -> Self {
        match ExtensionType::from_field(field) {
            Some(ExtensionType::Json) => Self::Document,
            _ => Self::from_data_type(field.data_type()),
        }
    }

    fn from_data_type(data_type: &DataType) -> Self {
        match data_type {
            DataType::Null => Self::Unknown,
            DataType::Boolean => Self::Boolean,
            DataType::Int64 => Self::Integer { fits_float: true },
            DataType::Decimal128(..) => Self::BigInteger,
            DataType::Float64 => Self::Float,
            DataType::List(item) => Self::List(Box::new(Self::from_data_type(item.data_type()))),
            DataType::Struct(fields) => {
                let mut members = JsonMembers::default();
                for field in fields {
                    if let Some(member) = members.member(field.name(), members.types.len()) {
                        *member = Self::from_data_type(field.data_type());
                    }
                }
                Self::Object(members)
            }
            _ => Self::Text,
        }
    }

    fn field(&self, name: &str) -> Field {
        let field = Field::new(name, self.data_type(), true);
        if matches!(self, Self::Document) { ExtensionType::Json.annotate(field) } else { field }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Unknown => DataType::Null,
            Self::Boolean => DataType::Boolean,
            Self::Integer { .. } => DataType::Int64,
            Self::BigInteger => DataType::Decimal128(BIG_INTEGER.0, BIG_INTEGER.1),
            Self::Float => DataType::Float64,
            Self::Text | Self::Document => DataType::Utf8,
            Self::List(item) => DataType::List(Arc::new(Field::new_list_field(item.data_type(), true))),
            Self::Object(JsonMembers { names, types }) => {
                let members = types.iter().enumerate();
                DataType::Struct(members.map(|(position, member)| member.field(names.name(position))).collect())
            }
        }
    }
}

impl JsonMembers {
    /// The type of the member with this name, which is added if it is not there. It is probably at the position `expected`.
    fn member(&mut self, name: &str, expected: usize) -> Option<&mut JsonType> {
        let position = match self.names.find(name, expected) {
            Some(position) => position,
            None => {
                self.names.push(name.to_owned()).ok()?;
                self.types.push(JsonType::Unknown);
                self.types.len() - 1
            }
        };
        self.types.get_mut(position)
    }

    fn merge(mut self, other: Self) -> Option<Self> {
        for (position, found) in other.types.into_iter().enumerate() {
            let member = self.member(other.names.name(position), position)?;
            *member = std::mem::take(member).merge(found)?;
        }
        (self.types.len() <= MEMBERS_MAX).then_some(self)
    }
}

/// The columns of `a` and `b`, with the types that hold the values of both.
pub(crate) fn merge_json_fields<'f>(a: &'f Fields, b: impl IntoIterator<Item = &'f FieldRef>) -> Fields {
    let mut fields: Vec<FieldRef> = a.to_vec();
    let mut positions: HashMap<&str, usize> =
        a.iter().enumerate().map(|(position, field)| (field.name().as_str(), position)).collect();
    for field in b {
        match positions.get(field.name().as_str()) {
            None => {
                positions.insert(field.name(), fields.len());
                fields.push(field.clone());
            }
            Some(&position) if fields[position] != *field => {
                let merged = JsonType::from_field(&fields[position]).merge(JsonType::from_field(field));
                fields[position] = Arc::new(merged.unwrap_or(JsonType::Document).field(field.name()));
            }
            Some(_) => {}
        }
    }
    fields.into()
}

/// The columns of objects, in the order in which their names first appear.
pub(crate) struct JsonColumns {
    /// The file, for messages.
    location: String,
    options: Arc<TextTableOptions>,
    names: NameIndex,
    columns: Vec<LearnedColumn>,
    /// The number of objects.
    rows: u64,
}

#[derive(Default)]
struct LearnedColumn {
    values: JsonType,
    /// Why it does not have the type of its first values.
    note: Option<String>,
    /// The number of the last object that has it.
    last_row: u64,
}

impl JsonColumns {
    /// Begins with `fields`.
    pub(crate) fn new(fields: &Fields, options: Arc<TextTableOptions>, location: &str) -> Self {
        let (names, columns) = Default::default();
        let mut begun = Self { location: location.to_owned(), options, names, columns, rows: 0 };
        for field in fields {
            let position = begun.position_of(field.name(), begun.columns.len());
            if let Some(column) = begun.columns.get_mut(position) {
                column.values = JsonType::from_field(field);
            }
        }
        begun
    }

    pub(crate) fn count(&self) -> usize {
        self.columns.len()
    }

    /// Widens the types of the columns to hold the values of an object.
    pub(crate) fn learn(&mut self, record: &JsonRecord<'_>) -> Result<(), JsonError> {
        self.rows += 1;
        self.learn_members(record).map_err(|defect| record.error(defect))
    }

    fn learn_members(&mut self, record: &JsonRecord<'_>) -> Result<(), JsonDefect> {
        let mut cursor = JsonCursor::new(record.text);
        let (mut is_first, mut expected) = (true, 0);
        while let Some(name) = cursor.next_name(&mut is_first)? {
            let position = self.position_of(name, expected);
            expected = position + 1;
            let name = self.names.name(position);
            let Some(column) = self.columns.get_mut(position) else { continue };
            if std::mem::replace(&mut column.last_row, self.rows) == self.rows {
                return Err(JsonDefect::KeyTwice(name.to_owned()));
            }
            let written = cursor.raw_value()?;
            if !self.options.columns.contains_key(name) {
                column.learn(written, record.line, &self.location)?;
            }
        }
        Ok(cursor.expect_end()?)
    }

    /// The position of the column with this name, which is added if it is not there.
    fn position_of(&mut self, name: &str, expected: usize) -> usize {
        if let Some(position) = self.names.find(name, expected) {
            return position;
        }
        if self.names.push(name.to_owned()).is_ok() {
            self.columns.push(LearnedColumn::default());
        }
        self.columns.len().saturating_sub(1)
    }

    /// The columns, with those that are declared.
    pub(crate) fn fields(&self) -> Vec<Field> {
        let declared = &self.options.columns;
        let field = |(position, column): (usize, &LearnedColumn)| {
            let name = self.names.name(position);
            match declared.get(name) {
                Some(declared) => Field::new(name, declared.data_type(), true),
                None => column.values.field(name),
            }
        };
        let absent = self.absent().map(|(name, declared)| Field::new(name, declared.data_type(), true));
        self.columns.iter().enumerate().map(field).chain(absent).collect()
    }

    /// The declared columns that no object has.
    fn absent(&self) -> impl Iterator<Item = (&String, &ColumnType)> {
        self.options.columns.iter().filter(|(name, _)| self.names.find(name, 0).is_none())
    }

    /// Why columns do not have the type of their first values, by name, and which declared ones no object has.
    pub(crate) fn notes(&self) -> BTreeMap<String, String> {
        let columns = self.columns.iter().enumerate();
        let note = |(position, column): (usize, &LearnedColumn)| {
            Some((self.names.name(position).to_owned(), column.note.clone()?))
        };
        let absent = self.absent().map(|(name, _)| (name.clone(), ABSENT_NOTE.to_owned()));
        columns.filter_map(note).chain(absent).collect()
    }

    /// The columns that differ from `before`, with which this began, and their notes.
    pub(crate) fn changes(&self, before: &Fields) -> Vec<(FieldRef, Option<String>)> {
        let change = |(position, column): (usize, &LearnedColumn)| {
            let name = self.names.name(position);
            let field = column.values.field(name);
            let is_same = before.get(position).is_some_and(|before| **before == field);
            let is_change = !is_same && !self.options.columns.contains_key(name);
            is_change.then(|| (Arc::new(field), column.note.clone()))
        };
        self.columns.iter().enumerate().filter_map(change).collect()
    }
}

impl LearnedColumn {
    /// Widens the type to hold a value, as it is written in this line.
    fn learn(&mut self, written: &str, line: u64, location: &str) -> Result<(), JsonDefect> {
        if matches!(self.values, JsonType::Document) {
            return Ok(());
        }
        let found = JsonType::of_value(&mut JsonCursor::new(written), DEPTH_MAX)?;
        let is_inexact_number = matches!(found, Some(JsonType::Text)) && !written.starts_with('"');
        let is_odd = is_inexact_number || !matches!(self.values, JsonType::Unknown);
        let was = std::mem::discriminant(&self.values);
        let merged = found.and_then(|found| std::mem::take(&mut self.values).merge(found));
        self.values = merged.unwrap_or(JsonType::Document);
        let is_new = was != std::mem::discriminant(&self.values);
        let kind = match self.values {
            JsonType::Document => "JSON".to_owned(),
            JsonType::Text | JsonType::BigInteger if is_odd && is_new => type_name(&self.values.data_type()),
            _ => return Ok(()),
        };
        let value = cut_value(written).split_whitespace().collect::<Vec<_>>().join(" ");
        self.note = Some(format!("{kind}, because line {line} of {location} has {value}"));
        Ok(())
    }
}

/// Probes the file at `location`. At most `rows_max` objects decide the columns.
pub(super) fn probe_json(
    file: File,
    location: &str,
    compression: Compression,
    options: Arc<TextTableOptions>,
    rows_max: usize,
    limits: &FileLimits,
) -> Result<FileProfile, String> {
    let budget = ReadBudget::new(limits.row_bytes_max);
    let text = open_text(file, compression, TextDecoding::default(), budget.clone())?;
    let failed = |error: JsonError| error.reason(compression);
    let mut records = JsonRecords::new(text, budget);
    let mut columns = JsonColumns::new(&Fields::empty(), options, location);
    let (mut rows, mut bytes) = (0, 0);
    while rows < rows_max {
        let Some(record) = records.next().map_err(failed)? else { break };
        columns.learn(&record).map_err(failed)?;
        rows += 1;
        bytes += record.text.len() as u64 + 1;
        if columns.count() > limits.columns_max {
            return Err(format!("its objects have more than {} different keys", limits.columns_max));
        }
    }
    let fields = columns.fields();
    if fields.is_empty() {
        let reason = match records.has_begun() {
            true => "it contains no object with a key, so there are no columns",
            false => "the file is empty",
        };
        return Err(reason.to_owned());
    }
    Ok(FileProfile {
        rows: (rows < rows_max).then_some(rows as u64),
        row_bytes: bytes.checked_div(rows as u64),
        type_notes: columns.notes(),
        ..FileProfile::new(ContentFormat::Json, Arc::new(Schema::new(fields)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::text_reader::SingleBytes;
    use super::*;

    fn read(text: &str) -> Result<Vec<(u64, String)>, String> {
        let mut records = JsonRecords::new(SingleBytes(text.as_bytes()), ReadBudget::new(usize::MAX));
        let mut found = Vec::new();
        while let Some(record) = records.next().map_err(|error| error.reason(Compression::UNCOMPRESSED))? {
            found.push((record.line, record.text.to_owned()));
        }
        Ok(found)
    }

    #[test]
    fn objects_are_items_of_an_array_or_follow_one_another() {
        let expected = vec![(2, "{\"a\":\n[\"}\"]}".to_owned()), (4, "{}".to_owned())];
        assert_eq!(read("\n{\"a\":\n[\"}\"]}\n{}\n"), Ok(expected.clone()));
        assert_eq!(read("[\n{\"a\":\n[\"}\"]},\n{}]\n"), Ok(expected));
        assert_eq!(read("{} {}{}").map(|found| found.len()), Ok(3));
        assert_eq!(read("[ ]").map(|found| found.len()), Ok(0));
        assert_eq!(read(" ").map(|found| found.len()), Ok(0));
    }

    #[test]
    fn text_that_is_no_sequence_of_objects_is_an_error_with_its_line() {
        for (text, reason) in [
            ("42", "line 1: an object or an array of objects is expected"),
            ("[{},\n1]", "line 2: a row is not an object"),
            ("[{},\n]", "line 2: a row is not an object"),
            ("{}\n[]", "line 2: a row is not an object"),
            ("[{}\n{}]", "line 2: a comma or the end of the array is expected"),
            ("[{}]\n[]", "line 2: there is text after the array"),
            ("[{},\n", "line 2: the array is not closed; the file is cut off"),
            ("{}\n{\"a\":[1,", "line 2: an object is not closed; the file is cut off"),
            ("{}\n{\"a\":[1\n{}", "line 3: an array needs a comma or its end here"),
        ] {
            assert_eq!(read(text), Err(reason.to_owned()), "{text}");
        }
        let mut records = JsonRecords::new(&b"{}\n{\"\n\xFF\"}"[..], ReadBudget::new(usize::MAX));
        assert!(records.next().is_ok());
        let error = records.next().err().map(|error| error.reason(Compression::UNCOMPRESSED));
        assert_eq!(error.as_deref(), Some("line 3: it is not UTF-8 text"));
    }

    fn learn(objects: &str, before: &Fields) -> JsonColumns {
        let mut records = JsonRecords::new(objects.as_bytes(), ReadBudget::new(usize::MAX));
        let mut columns = JsonColumns::new(before, Arc::default(), "t.json");
        while let Some(record) = records.next().unwrap() {
            columns.learn(&record).unwrap();
        }
        columns
    }

    fn types(objects: &str) -> String {
        let fields = learn(objects, &Fields::empty()).fields();
        let kind = |field: &Field| match ExtensionType::from_field(field) {
            Some(_) => "json".to_owned(),
            None => tidegate_query::type_name(field.data_type()),
        };
        fields.iter().map(kind).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_column_has_a_type_if_it_holds_all_values_exactly() {
        let table: &[(&[&str], &str)] = &[
            (&["1", "-2", "null"], "bigint"),
            (&["1", "1.5"], "double"),
            (&["1", "12E5", "1e-3"], "double"),
            (&["9007199254740993", "0.5"], "text"),
            (&["0.5", "9007199254740993"], "text"),
            (&["1", "18446744073709551615"], "decimal(38,0)"),
            (&["18446744073709551615", "0.5"], "text"),
            (&["5.999999999999999999"], "text"),
            (&["1e400"], "text"),
            (&["true", "false"], "boolean"),
            (&["true", "1"], "text"),
            (&["1", "\"2\""], "text"),
            (&["\"0870\""], "text"),
            (&["null"], "null"),
            (&["[]", "[1]", "[2.5, null]"], "double[]"),
            (&["{}", "{\"x\":1}", "{\"y\":[\"a\"]}"], "struct(x bigint, y text[])"),
            (&["{\"x\":1}", "{\"x\":\"a\"}"], "struct(x text)"),
            (&["1", "{}"], "json"),
            (&["[]", "\"a\""], "json"),
            (&["[]", "{}"], "json"),
            (&["[[1]]", "[1]"], "json"),
            (&["[1, {}]"], "json"),
            (&["{\"x\":{\"y\":1}}", "{\"x\":{\"y\":[]}}"], "json"),
        ];
        for (values, expected) in table {
            let objects: String = values.iter().map(|value| format!("{{\"a\":{value}}}\n")).collect();
            assert_eq!(types(&objects), *expected, "{values:?}");
        }
        let nested = |depth: usize| format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(types(&nested(DEPTH_MAX)), format!("bigint{}", "[]".repeat(DEPTH_MAX)));
        assert_eq!(types(&nested(DEPTH_MAX + 1)), "json");
        let members: String = (0..=MEMBERS_MAX).map(|member| format!(",\"{member}\":1")).collect();
        assert_eq!(types(&format!("{{\"a\":{{{}}}}}", &members[1..])), "json");
    }

    #[test]
    fn notes_have_the_value_that_decided() {
        let columns = learn("{\"a\":1,\"b\":1,\"c\":\"x\"}\n{\"a\":\"y\",\"b\":[2]}", &Fields::empty());
        let notes: Vec<_> = columns.notes().into_iter().collect();
        let note = |name: &str, note: &str| (name.to_owned(), note.to_owned());
        let expected = [
            note("a", "text, because line 2 of t.json has \"y\""),
            note("b", "JSON, because line 2 of t.json has [2]"),
        ];
        assert_eq!(notes, expected);
    }

    #[test]
    fn changes_are_new_columns_and_wider_types() {
        let before = Fields::from(vec![
            Field::new("a", DataType::Int64, true),
            Field::new("b", DataType::Null, true),
            Field::new("c", DataType::Utf8, true),
        ]);
        let columns = learn("{\"a\":0.5,\"b\":{\"x\":1},\"c\":1,\"d\":true}", &before);
        let changes: Vec<FieldRef> = columns.changes(&before).into_iter().map(|(field, _)| field).collect();
        let names: Vec<&str> = changes.iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["a", "b", "d"]);
        let merged = merge_json_fields(&before, &changes);
        let kinds: Vec<String> = merged.iter().map(|field| tidegate_query::type_name(field.data_type())).collect();
        assert_eq!(kinds, ["double", "struct(x bigint)", "text", "boolean"]);
    }

    #[test]
    fn a_key_that_is_twice_in_an_object_is_an_error() {
        for object in ["{\"a\":1,\"b\":2,\"a\":3}", "{\"c\":{\"a\":1,\"a\":1}}"] {
            let mut records = JsonRecords::new(object.as_bytes(), ReadBudget::new(usize::MAX));
            let mut columns = JsonColumns::new(&Fields::empty(), Arc::default(), "t.json");
            let record = records.next().unwrap().unwrap();
            let error = columns.learn(&record).unwrap_err();
            let reason = error.reason(Compression::UNCOMPRESSED);
            assert_eq!(reason, "line 1: the key \"a\" is twice in one object");
        }
    }
}
