//! The types of the columns of JSON files, from their values.
//!
//! A column has a type only if it holds all of its values exactly. Scalars of different kinds are text, as they are written. If
//! some values are objects or arrays and others are not, at any depth, the column is JSON. It is also JSON if its values are
//! nested too deeply, or have too many members.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use tidegate_ingest_formats::{JsonCursor, JsonKind, NameIndex};
use tidegate_query::{ExtensionType, type_name};

use super::column_type::ColumnType;
use super::json_records::{JsonDefect, JsonError, JsonRecord};
use super::table_options::TextTableOptions;
use super::text_value::{TypeOrigin, cut_value, infer_type, parse_float};
use super::type_widening::BIG_INTEGER;

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

#[cfg(test)]
mod tests {
    use super::super::file_kind::Compression;
    use super::super::json_records::JsonRecords;
    use super::super::text_reader::ReadBudget;
    use super::*;

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
