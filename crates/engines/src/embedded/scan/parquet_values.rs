//! Values of Parquet that are bytes for the Arrow library: UUIDs, intervals, and times of 96 bits.
//!
//! A table has their types (`files/logical_types.rs`). Expressions over a column of a file become expressions over the values
//! of its bytes. UUIDs have PostgreSQL's notation: `a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11`.
//!
//! A time of a coarser unit than that of its table is a value of this kind, too. DataFusion casts the constant beside such a
//! column to its unit, and cuts off its last digits (`docs/decisions/upstream/texts.md`).
//!
//! Times of 96 bits are read as microseconds, as Spark writes them, which have room for all years. At the first time with
//! nanoseconds the column gets nanoseconds, and the statement is planned again. No time is rounded.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray as _, FixedSizeBinaryArray, Int64Array, IntervalMonthDayNanoArray};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Fields, IntervalMonthDayNano, IntervalUnit, Schema, SchemaRef, TimeUnit,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};
use datafusion::physical_plan::PhysicalExpr;

use super::file_sources::check_delta_types;
use super::leaf_values::{convert_leaves, leaf_as_text};
use super::text_rows::ReadFailure;
use crate::embedded::files::{ColumnCorrections, FileTable, UUID_BYTES, WIDE_BYTES, from_location};

/// The Julian day of 1970-01-01.
const EPOCH_JULIAN_DAY: i64 = 2_440_588;
const SECONDS_PER_DAY: i64 = 86_400;
const NANOS_PER_SECOND: i64 = 1_000_000_000;
const NANOS_PER_MILLISECOND: i64 = 1_000_000;

/// Converts columns that are bytes in a file and values in `table`.
#[derive(Debug, Clone)]
pub(super) struct ParquetValues {
    pub(super) table: Arc<FileTable>,
    pub(super) corrections: Arc<ColumnCorrections>,
}

impl PhysicalExprAdapterFactory for ParquetValues {
    fn create(&self, logical: SchemaRef, physical: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let is_raw =
            |table: &DataType, in_file: &DataType| are_bytes(table, in_file) || have_coarser_unit(table, in_file);
        let raw = Arc::new(Schema::new(raw_fields(logical.fields(), physical.fields(), is_raw)));
        if self.table.delta.is_some() {
            // A log declares times without a unit.
            check_delta_types(&Schema::new(raw_fields(logical.fields(), physical.fields(), are_bytes)), &physical)?;
        }
        let fields = raw.fields().iter().zip(logical.fields());
        let converted = fields.filter(|(raw, field)| raw.data_type() != field.data_type());
        let converted = converted.map(|(_, field)| (field.name().clone(), field.data_type().clone())).collect();
        let inner = DefaultPhysicalExprAdapterFactory.create(raw.clone(), physical)?;
        Ok(Arc::new(ValueAdapter { inner, raw, converted, source: self.clone() }))
    }
}

/// Whether the values of a type in the table are those of a type in a file.
type IsRaw = fn(&DataType, &DataType) -> bool;

fn are_bytes(logical: &DataType, physical: &DataType) -> bool {
    use DataType::{FixedSizeBinary, Interval, Timestamp, Utf8, Utf8View};
    matches!(
        (logical, physical),
        (Utf8View | Utf8, FixedSizeBinary(UUID_BYTES))
            | (Interval(IntervalUnit::MonthDayNano) | Timestamp(..), FixedSizeBinary(WIDE_BYTES))
    )
}

fn have_coarser_unit(logical: &DataType, physical: &DataType) -> bool {
    use DataType::Timestamp;
    matches!((logical, physical), (Timestamp(unit, _), Timestamp(in_file, _)) if in_file < unit)
}

/// Columns with the values of the file where `is_raw` says so. `logical` are those of the table.
fn raw_fields(logical: &Fields, physical: &Fields, is_raw: IsRaw) -> Fields {
    let raw = |field: &FieldRef| match physical.find(field.name()) {
        Some((_, in_file)) => raw_field(field, in_file, is_raw),
        None => field.clone(),
    };
    logical.iter().map(raw).collect()
}

fn raw_field(logical: &FieldRef, physical: &FieldRef, is_raw: IsRaw) -> FieldRef {
    let raw = raw_type(logical.data_type(), physical.data_type(), is_raw);
    match raw != *logical.data_type() && raw == *physical.data_type() {
        true => physical.clone(),
        false => Arc::new(logical.as_ref().clone().with_data_type(raw)),
    }
}

fn raw_type(logical: &DataType, physical: &DataType, is_raw: IsRaw) -> DataType {
    use DataType::{FixedSizeList, LargeList, LargeListView, List, ListView, Map, Struct};
    let item = |logical: &FieldRef, in_file: &FieldRef| raw_field(logical, in_file, is_raw);
    match (logical, physical) {
        _ if is_raw(logical, physical) => physical.clone(),
        (Struct(members), Struct(in_file)) => Struct(raw_fields(members, in_file, is_raw)),
        (List(element), List(in_file)) => List(item(element, in_file)),
        (LargeList(element), LargeList(in_file)) => LargeList(item(element, in_file)),
        (ListView(element), ListView(in_file)) => ListView(item(element, in_file)),
        (LargeListView(element), LargeListView(in_file)) => LargeListView(item(element, in_file)),
        (FixedSizeList(element, length), FixedSizeList(in_file, _)) => FixedSizeList(item(element, in_file), *length),
        (Map(entries, is_sorted), Map(in_file, _)) => Map(item(entries, in_file), *is_sorted),
        _ => logical.clone(),
    }
}

#[derive(Debug)]
struct ValueAdapter {
    inner: Arc<dyn PhysicalExprAdapter>,
    /// The columns of the table, with bytes instead of their values.
    raw: SchemaRef,
    /// The types of the values, by the name of the column.
    converted: HashMap<String, DataType>,
    source: ParquetValues,
}

impl PhysicalExprAdapter for ValueAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        if self.converted.is_empty() {
            return self.inner.rewrite(expr);
        }
        let as_value = |node: Arc<dyn PhysicalExpr>| {
            let name = node.downcast_ref::<Column>().map(|column| column.name().to_owned());
            let Some((column, data_type)) = name.and_then(|name| self.converted.get_key_value(&name)) else {
                return Ok(Transformed::no(node));
            };
            let bytes: Arc<dyn PhysicalExpr> = Arc::new(Column::new_with_schema(column, &self.raw)?);
            let function = Arc::new(ScalarUDF::from(ParquetValue::new(column, data_type, &self.source)));
            let value = ScalarFunctionExpr::try_new(function, vec![bytes], &self.raw, Arc::new(ConfigOptions::new()))?;
            Ok(Transformed::yes(Arc::new(value) as Arc<dyn PhysicalExpr>))
        };
        self.inner.rewrite(expr.transform_up(as_value).data()?)
    }
}

/// Converts the bytes of a column to its values.
#[derive(Debug)]
struct ParquetValue {
    signature: Signature,
    column: String,
    data_type: DataType,
    source: ParquetValues,
}

impl ParquetValue {
    fn new(column: &str, data_type: &DataType, source: &ParquetValues) -> Self {
        let signature = Signature::any(1, Volatility::Immutable);
        Self { signature, column: column.to_owned(), data_type: data_type.clone(), source: source.clone() }
    }

    fn read_error(&self, error: ValueError) -> DataFusionError {
        let Self { column, data_type, source: ParquetValues { table, .. }, .. } = self;
        let subject = format!("column {column:?} of the table {:?} has", table.name);
        let failure = match (error, data_type) {
            (ValueError::Arrow(error), _) => return error.into(),
            (ValueError::Nanoseconds, DataType::Timestamp(_, zone)) if self.correct_unit(zone) => {
                ReadFailure::corrected(format!("{subject} times with nanoseconds"))
            }
            (ValueError::Nanoseconds, _) => ReadFailure::new(format!(
                "{subject} times with nanoseconds, but its type has microseconds; select other columns"
            )),
            (ValueError::TimeRange, DataType::Timestamp(TimeUnit::Nanosecond, _)) => ReadFailure::new(format!(
                "{subject} times with nanoseconds, and others outside of the years 1677 to 2262, which have no common \
                 type of 64 bits; select other columns"
            )),
            (ValueError::TimeRange, _) => {
                ReadFailure::new(format!("{subject} a time beyond 64 bits of its unit; select other columns"))
            }
            (ValueError::Interval, _) => ReadFailure::new(format!(
                "{subject} an interval beyond 32 bits of months or days; select other columns"
            )),
        };
        DataFusionError::External(Box::new(failure))
    }

    /// Gives the column nanoseconds, unless the log of a Delta table has its type. Returns whether the table can be built
    /// again.
    fn correct_unit(&self, zone: &Option<Arc<str>>) -> bool {
        let ParquetValues { table, corrections } = &self.source;
        if table.delta.is_some() {
            return false;
        }
        let finer = DataType::Timestamp(TimeUnit::Nanosecond, zone.clone());
        let column = Arc::new(Field::new(&self.column, finer, true));
        for file in table.files.iter() {
            if let Some(version) = file.version {
                corrections.record_column(&from_location(&file.meta.location), version, column.clone(), None);
            }
        }
        table.files.iter().any(|file| file.version.is_some())
    }
}

// The source of a column is that of its table.
tidegate_pgsql::compare_by!(ParquetValue { column, data_type });

impl ScalarUDFImpl for ParquetValue {
    tidegate_pgsql::name_and_signature!("parquet_value");

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.data_type.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let bytes = arrays.first().ok_or_else(|| DataFusionError::Internal("parquet_value takes bytes".to_owned()))?;
        to_values(bytes, &self.data_type).map(ColumnarValue::Array).map_err(|error| self.read_error(error))
    }
}

/// Why bytes do not become values.
enum ValueError {
    /// A time has nanoseconds, and its type has a coarser unit.
    Nanoseconds,
    /// A time is outside of the range of its type.
    TimeRange,
    /// An interval is outside of the range of its type.
    Interval,
    Arrow(ArrowError),
}

impl From<ArrowError> for ValueError {
    fn from(error: ArrowError) -> Self {
        Self::Arrow(error)
    }
}

/// The values of `bytes`, an array of the raw type of `data_type`.
fn to_values(bytes: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ValueError> {
    convert_leaves(bytes, data_type, &|bytes, data_type| {
        Ok(match (bytes.as_fixed_size_binary_opt(), data_type) {
            (Some(bytes), DataType::Interval(_)) => Arc::new(intervals(bytes)?),
            (Some(bytes), DataType::Timestamp(unit, _)) => {
                let times: ArrayRef = Arc::new(times(bytes, *unit)?);
                cast(&times, data_type)?
            }
            (None, DataType::Timestamp(..)) => to_finer_unit(bytes, data_type)?,
            _ => leaf_as_text(bytes, data_type)?,
        })
    })
}

/// Times of a coarser unit as values of `data_type`, whose unit has room for fewer years.
fn to_finer_unit(times: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ValueError> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(times, data_type, &options).map_err(|error| match error {
        ArrowError::ArithmeticOverflow(_) | ArrowError::CastError(_) => ValueError::TimeRange,
        error => ValueError::Arrow(error),
    })
}

/// Intervals: three numbers without sign for months, days and milliseconds.
///
/// [Parquet's type INTERVAL](https://github.com/apache/parquet-format/blob/master/LogicalTypes.md#interval)
fn intervals(bytes: &FixedSizeBinaryArray) -> Result<IntervalMonthDayNanoArray, ValueError> {
    let interval = |value: &[u8]| {
        let [months, days, milliseconds] = [0, 4, 8].map(|start| read_word(value, start).map(u32::from_le_bytes));
        let nanos = i64::from(milliseconds?) * NANOS_PER_MILLISECOND;
        Some(IntervalMonthDayNano::new(i32::try_from(months?).ok()?, i32::try_from(days?).ok()?, nanos))
    };
    let checked = |value: &[u8]| interval(value).ok_or(ValueError::Interval);
    bytes.iter().map(|value| value.map(checked).transpose()).collect()
}

/// Times: nanoseconds of the day in 64 bits, and the Julian day in 32 bits. They become numbers of `unit` since 1970.
fn times(bytes: &FixedSizeBinaryArray, unit: TimeUnit) -> Result<Int64Array, ValueError> {
    let per_second = match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => NANOS_PER_SECOND,
    };
    let nanos_per_unit = NANOS_PER_SECOND / per_second;
    let time = |value: &[u8]| {
        let of_day = value.first_chunk().map_or(0, |nanos| i64::from_le_bytes(*nanos));
        let day = read_word(value, 8).map_or(0, i32::from_le_bytes);
        if of_day % nanos_per_unit != 0 {
            return Err(ValueError::Nanoseconds);
        }
        let days = (i64::from(day) - EPOCH_JULIAN_DAY).checked_mul(SECONDS_PER_DAY * per_second);
        let time = days.and_then(|days| days.checked_add(of_day / nanos_per_unit));
        time.ok_or(ValueError::TimeRange)
    };
    bytes.iter().map(|value| value.map(time).transpose()).collect()
}

fn read_word(bytes: &[u8], start: usize) -> Option<[u8; 4]> {
    bytes.get(start..)?.first_chunk().copied()
}
