//! Compares the columns of a member's answer with those of its statement, and converts them to the types of the plan.
//!
//! Columns are read by position. A member that sends other columns than its statement selects would have values read as
//! those of other columns, so its answer is refused before the first row.
//!
//! In SQLite each value has its own type. Here a column has one type, by the
//! [affinity](https://sqlite.org/datatype3.html) of its declared type. A value of another type is an error; it is never
//! converted silently.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    UnionArray,
};
use datafusion::arrow::compute::CastOptions;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema, SchemaRef};
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{ExtensionType, declared_type_name, type_name};

use super::member::Member;
use super::push::MemberQueryBuilder;
use crate::column_cast::cast_column;

/// Characters of a description of a difference: names and types of another server may be of any length.
const DIFFERENCE_CHARS_MAX: usize = 500;

pub(super) fn type_from_declaration(field: &Field) -> DataType {
    let declared = declared_type_name(field).unwrap_or_default().to_ascii_uppercase();
    let names = |parts: &[&str]| parts.iter().any(|part| declared.contains(part));
    // In the order of SQLite's rules.
    match () {
        () if names(&["INT", "BOOL"]) => DataType::Int64,
        () if names(&["CHAR", "CLOB", "TEXT"]) => DataType::Utf8,
        () if names(&["BLOB"]) => DataType::Binary,
        () if names(&["REAL", "FLOA", "DOUB", "NUM", "DEC"]) => DataType::Float64,
        () => DataType::Utf8,
    }
}

/// Checks that an answer of `member` has the columns of `expected`, in their order. Its statement calls them `c0`, `c1`
/// and so on.
///
/// # Errors
/// `Unavailable` with the names of the member and of the column.
pub(super) fn check_columns(member: &Member, received: &Schema, expected: &Schema) -> Result<(), Error> {
    let Some(difference) = find_difference(received, expected) else { return Ok(()) };
    let difference: String = difference.chars().take(DIFFERENCE_CHARS_MAX).collect();
    let kind = if matches!(member, Member::Node(_)) { "node" } else { "database" };
    let name = member.name();
    let message = format!("the answer of {kind} {name:?} has other columns than its statement: {difference}");
    let hint = "If the table has changed, repeat the statement in a minute; otherwise its owner checks the server.";
    Err(Error::new(ErrorKind::Unavailable, message).with_hint(hint))
}

/// The first difference between the columns; `None` if there is none.
fn find_difference(received: &Schema, expected: &Schema) -> Option<String> {
    // If only the number of rows matters, the statement selects a column that is not read.
    let count = expected.fields().len().max(1);
    for position in 0..count.max(received.fields().len()) {
        let name = MemberQueryBuilder::column_name(position);
        let field = expected.fields().get(position);
        let label = match field {
            Some(field) if *field.name() != name => format!("{:?} ({name})", field.name()),
            _ => name.clone(),
        };
        let Some(column) = received.fields().get(position) else {
            return Some(format!("the column {label} is missing"));
        };
        if position >= count {
            return Some(format!("it has one more column, {:?}", column.name()));
        }
        // Some servers write names in capitals.
        if !column.name().eq_ignore_ascii_case(&name) {
            return Some(format!("in place of the column {label} there is {:?}", column.name()));
        }
        if let Some(field) = field.filter(|field| !is_readable_as(column, field.data_type())) {
            let (own, other) = (field.data_type(), column.data_type());
            return Some(format!("the column {label} is of type {other}, and not of type {own}"));
        }
    }
    None
}

/// Whether the values of `received` are of the same kind as those of the type `expected`: only size, unit and encoding
/// may differ. A value that the type cannot have fails the conversion.
fn is_readable_as(received: &Field, expected: &DataType) -> bool {
    use DataType as Type;
    let (from, to) = (without_encoding(received.data_type()), without_encoding(expected));
    if let (Some(from), Some(to)) = (item_of(from), item_of(to)) {
        return is_readable_as(from, to.data_type());
    }
    let is_exact = |number: &DataType| number.is_integer() || number.is_decimal();
    match (from, to) {
        _ if from == to => true,
        // Each value has a type of its own, which the conversion checks.
        (Type::Union(..), _) => true,
        (Type::Struct(from), Type::Struct(to)) => {
            let is_same = |from: &Field, to: &Field| from.name() == to.name() && is_readable_as(from, to.data_type());
            from.len() == to.len() && from.iter().zip(to.iter()).all(|(from, to)| is_same(from, to))
        }
        (Type::Map(from, _), Type::Map(to, _)) => is_readable_as(from, to.data_type()),
        (Type::Timestamp(_, from), Type::Timestamp(_, to)) => from.is_some() == to.is_some(),
        (Type::Date32 | Type::Date64, Type::Date32 | Type::Date64) => true,
        (Type::Time32(_) | Type::Time64(_), Type::Time32(_) | Type::Time64(_)) => true,
        (Type::Duration(_), Type::Duration(_)) => true,
        // PostgreSQL's numerics without a declared number of digits.
        _ if ExtensionType::from_field(received) == Some(ExtensionType::Number) => to.is_string() || is_exact(to),
        _ => {
            from.is_string() && to.is_string()
                || from.is_binary() && to.is_binary()
                || is_exact(from) && is_exact(to)
                || from.is_floating() && to.is_floating()
        }
    }
}

fn without_encoding(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => without_encoding(values),
        DataType::RunEndEncoded(_, values) => without_encoding(values.data_type()),
        other => other,
    }
}

fn item_of(data_type: &DataType) -> Option<&Field> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(item),
        _ => None,
    }
}

/// Converts `batch` to the columns of `expected`, after [`check_columns`].
pub(super) fn convert_batch(batch: &RecordBatch, expected: &SchemaRef) -> Result<RecordBatch, Error> {
    let columns = expected.fields().iter().zip(batch.columns());
    let columns = columns.map(|(field, column)| convert_column(column, field)).collect::<Result<Vec<_>, Error>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(expected.clone(), columns, &options)
        .map_err(|error| Error::internal(error.to_string()))
}

fn convert_column(column: &ArrayRef, field: &Field) -> Result<ArrayRef, Error> {
    if column.data_type() == field.data_type() {
        return Ok(column.clone());
    }
    let unfit = |reason: String| {
        let expected = type_name(field.data_type());
        let message = format!("column {:?} has a value that is not of type {expected}: {reason}", field.name());
        Error::new(ErrorKind::InvalidArguments, message)
            .with_hint("Query that database directly, where each value keeps its type, or leave the column out.")
    };
    let cast = |column: &ArrayRef, to: &DataType| {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        cast_column(column, to, &options).map_err(|error| unfit(error.to_string()))
    };
    if let Some(union) = column.as_any().downcast_ref::<UnionArray>() {
        let target = field.data_type();
        // Other types belong to computed columns, and are cast from the type of the computation.
        let stored = match target {
            DataType::Int64 | DataType::Float64 | DataType::Utf8 | DataType::Binary => target.clone(),
            other if other.is_integer() => DataType::Int64,
            other if other.is_floating() => DataType::Float64,
            _ => DataType::Utf8,
        };
        return cast(&convert_union(union, &stored).map_err(unfit)?, target);
    }
    let converted = cast(column, field.data_type())?;
    let own = without_encoding(column.data_type());
    // A cast rounds silently; texts and bytes have no digits to lose.
    if !own.is_string() && !own.is_binary() && &cast(&converted, column.data_type())? != column {
        return Err(unfit("it would be rounded".to_owned()));
    }
    Ok(converted)
}

#[derive(Clone, Copy)]
enum SqliteValue<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a str),
    Blob(&'a [u8]),
}

impl<'a> SqliteValue<'a> {
    fn from_row(union: &'a UnionArray, row: usize) -> Self {
        let member = union.child(union.type_id(row));
        let offset = union.value_offset(row);
        if member.is_null(offset) {
            return Self::Null;
        }
        match member.data_type() {
            DataType::Int64 => Self::Integer(member.as_primitive::<Int64Type>().value(offset)),
            DataType::Float64 => Self::Real(member.as_primitive::<Float64Type>().value(offset)),
            DataType::Utf8 => Self::Text(member.as_string::<i32>().value(offset)),
            _ => Self::Blob(member.as_binary::<i32>().value(offset)),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Integer(value) => value.to_string(),
            Self::Real(value) => value.to_string(),
            Self::Text(_) => "a text".to_owned(),
            Self::Blob(_) => "bytes".to_owned(),
        }
    }
}

/// The integers up to this size are floats without a loss of digits.
const EXACT_INTEGER_MAX: u64 = 1 << f64::MANTISSA_DIGITS;

/// The types of the values of a column whose values have types of their own.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ValueTypes {
    integers: bool,
    /// Integers that a float cannot have.
    large_integers: bool,
    reals: bool,
    texts: bool,
    blobs: bool,
    /// The column comes from another server, and has other types than those of SQLite.
    others: bool,
}

impl ValueTypes {
    pub(super) fn add(&mut self, union: &UnionArray) {
        let DataType::Union(members, _) = union.data_type() else { return };
        let is_known = |data_type: &DataType| {
            matches!(data_type, DataType::Int64 | DataType::Float64 | DataType::Utf8 | DataType::Binary)
        };
        if !members.iter().all(|(_, member)| is_known(member.data_type())) {
            self.others = true;
            return;
        }
        for row in 0..union.len() {
            match SqliteValue::from_row(union, row) {
                SqliteValue::Null => {}
                SqliteValue::Integer(value) => {
                    self.integers = true;
                    self.large_integers |= value.unsigned_abs() > EXACT_INTEGER_MAX;
                }
                SqliteValue::Real(_) => self.reals = true,
                SqliteValue::Text(_) => self.texts = true,
                SqliteValue::Blob(_) => self.blobs = true,
            }
        }
    }

    /// The type that has all of the values.
    ///
    /// # Errors
    /// Why there is none, as the end of a sentence about the column.
    pub(super) fn single_type(self) -> Result<DataType, String> {
        let Self { integers, large_integers, reals, texts, blobs, others } = self;
        match (integers || reals, texts, blobs, others) {
            (_, _, _, true) => Err("has a type that is not a type of tables here".to_owned()),
            (true, false, false, _) if !reals => Ok(DataType::Int64),
            (true, false, false, _) if !(integers && large_integers) => Ok(DataType::Float64),
            (true, false, false, _) => Err("has fractions and integers that are too large for a float".to_owned()),
            (false, _, false, _) => Ok(DataType::Utf8),
            (false, false, true, _) => Ok(DataType::Binary),
            _ => {
                let found = [(integers, "integers"), (reals, "fractions"), (texts, "texts"), (blobs, "bytes")];
                let found: Vec<&str> = found.into_iter().filter(|(is_found, _)| *is_found).map(|it| it.1).collect();
                Err(format!("has values of several types: {}", found.join(", ")))
            }
        }
    }
}

fn convert_union(union: &UnionArray, target: &DataType) -> Result<ArrayRef, String> {
    let values = (0..union.len()).map(|row| SqliteValue::from_row(union, row));
    Ok(match target {
        DataType::Int64 => Arc::new(collect_values::<_, Int64Array>(values, |value| match value {
            SqliteValue::Integer(value) => Some(value),
            _ => None,
        })?),
        DataType::Float64 => Arc::new(collect_values::<_, Float64Array>(values, |value| match value {
            SqliteValue::Integer(value) => Some(value as f64),
            SqliteValue::Real(value) => Some(value),
            _ => None,
        })?),
        DataType::Binary => Arc::new(collect_values::<_, BinaryArray>(values, |value| match value {
            SqliteValue::Blob(value) => Some(value),
            SqliteValue::Text(value) => Some(value.as_bytes()),
            _ => None,
        })?),
        _ => Arc::new(collect_values::<_, StringArray>(values, |value| match value {
            SqliteValue::Integer(value) => Some(Cow::Owned(value.to_string())),
            SqliteValue::Real(value) => Some(Cow::Owned(format!("{value:?}"))),
            SqliteValue::Text(value) => Some(Cow::Borrowed(value)),
            _ => None,
        })?),
    })
}

/// Collects `values`, each converted by `convert`. Fails with the description of the first that cannot be converted.
fn collect_values<'a, T, A: FromIterator<Option<T>>>(
    values: impl Iterator<Item = SqliteValue<'a>>,
    convert: impl Fn(SqliteValue<'a>) -> Option<T>,
) -> Result<A, String> {
    let converted = values.map(|value| match value {
        SqliteValue::Null => Ok(None),
        value => convert(value).map(Some).ok_or_else(|| value.describe()),
    });
    converted.collect()
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Decimal128Array, Int32Array};
    use datafusion::arrow::datatypes::TimeUnit;

    use super::*;

    fn number(name: &str, data_type: DataType) -> Field {
        ExtensionType::Number.annotate(Field::new(name, data_type, true))
    }

    #[test]
    fn columns_of_the_same_kind_are_readable() {
        let utc = |unit, zone: &str| DataType::Timestamp(unit, Some(zone.into()));
        let list = |item| DataType::new_list(item, true);
        let encoded = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        for (received, expected, is_readable) in [
            (DataType::Int32, DataType::Int64, true),
            (DataType::Int64, DataType::Decimal128(38, 0), true),
            (DataType::Int64, DataType::Float64, false),
            (DataType::Int64, DataType::Utf8, false),
            (DataType::Utf8, DataType::Int64, false),
            (DataType::Null, DataType::Int64, false),
            (DataType::Float64, DataType::Decimal128(38, 0), false),
            (encoded, DataType::Utf8View, true),
            (DataType::LargeUtf8, DataType::Utf8, true),
            (DataType::Utf8, DataType::Binary, false),
            (DataType::Date32, DataType::Timestamp(TimeUnit::Second, None), false),
            (utc(TimeUnit::Second, "UTC"), utc(TimeUnit::Nanosecond, "+00:00"), true),
            (utc(TimeUnit::Second, "UTC"), DataType::Timestamp(TimeUnit::Second, None), false),
            (list(DataType::Utf8), list(DataType::Utf8View), true),
            (list(DataType::Utf8), list(DataType::Int64), false),
        ] {
            let column = Field::new("c0", received.clone(), true);
            assert_eq!(is_readable_as(&column, &expected), is_readable, "{received} as {expected}");
        }
        assert!(is_readable_as(&number("c0", DataType::Utf8), &DataType::Decimal128(38, 0)));
        assert!(!is_readable_as(&number("c0", DataType::Utf8), &DataType::Float64));
    }

    #[test]
    fn the_first_difference_is_described() {
        let schema = |names: &[&str]| {
            Schema::new(names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect::<Vec<_>>())
        };
        let expected = schema(&["site", "c1"]);
        let cases: [(&[&str], Option<&str>); 4] = [
            (&["C0", "c1"], None),
            (&["c1", "c0"], Some("in place of the column \"site\" (c0) there is \"c1\"")),
            (&["c0"], Some("the column c1 is missing")),
            (&["c0", "c1", "c2"], Some("it has one more column, \"c2\"")),
        ];
        for (names, difference) in cases {
            assert_eq!(find_difference(&schema(names), &expected).as_deref(), difference);
        }
        assert_eq!(find_difference(&schema(&["c0"]), &schema(&[])), None);
        assert!(find_difference(&schema(&[]), &schema(&[])).is_some());
    }

    #[test]
    fn values_are_converted_whole_or_not_at_all() {
        let decimals = |hundredths: i128| -> ArrayRef {
            let numbers = Decimal128Array::from(vec![Some(hundredths), None]);
            Arc::new(numbers.with_precision_and_scale(10, 2).unwrap())
        };
        let whole = Field::new("n", DataType::Int32, true);
        let twelve: ArrayRef = Arc::new(Int32Array::from(vec![Some(12), None]));
        assert_eq!(&convert_column(&decimals(1200), &whole).unwrap(), &twelve);
        let doubles: ArrayRef = Arc::new(Float64Array::from(vec![0.1]));
        for (column, field) in [(decimals(1250), whole), (doubles, Field::new("x", DataType::Float32, true))] {
            let error = convert_column(&column, &field).unwrap_err();
            assert!(error.message().contains("it would be rounded"), "{error}");
        }
    }
}
