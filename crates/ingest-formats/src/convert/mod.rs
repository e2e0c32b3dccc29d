//! From batches of the sender's types to batches of the table's types, without changing a value.
//!
//! Which columns and types fit is decided once, from the schemas. Then each row is checked, rows that do not fit are
//! removed, and the others are converted.

mod check;
mod size;

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, FixedSizeListArray, LargeListArray, ListArray, MapArray, RecordBatch,
    StructArray, UInt32Array, make_array, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{CastOptions, can_cast_types, cast_with_options, filter_record_batch, take};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchOptions;

use crate::column::{NameIndex, describe_type, is_json_field};
use crate::error::{BodyError, CellError, RejectedRow, RowPosition};
use crate::options::{BodyLimits, BodyOptions, UnknownColumns};
use crate::rows::RowCollector;
use check::{RowFailures, unpack};

/// Bodies whose values have fewer bytes may have any number of them for a byte of the body.
const UNCHECKED_BYTES: u64 = 16 << 20;
/// How many columns that do not fit a message has.
const PROBLEMS_MAX: usize = 20;
/// How deeply types may be nested.
const TYPE_DEPTH_MAX: usize = 32;

/// How the batches of one body become those of a table.
#[derive(Debug)]
pub(crate) struct BatchConverter {
    schema: SchemaRef,
    /// How many columns the table has; the others were added.
    declared: usize,
    columns: Vec<MemberConversion>,
    limits: BodyLimits,
    /// The rows of the current batch that are not converted yet.
    pending: Option<RecordBatch>,
    /// The number of the next row.
    next_index: u64,
    /// The bytes of all rows so far, with each value written out.
    written_bytes: u64,
}

/// Where a column or member comes from.
#[derive(Debug)]
struct MemberConversion {
    name: String,
    /// The position in the source. Without it, all values are null.
    source: Option<usize>,
    value: ValueConversion,
}

/// How the values of a column or of a part of it are converted.
#[derive(Debug)]
struct ValueConversion {
    target: DataType,
    is_nullable: bool,
    is_json: bool,
    kind: ConversionKind,
}

#[derive(Debug)]
enum ConversionKind {
    /// The types are equal.
    Same,
    /// The values are single and have another type.
    Cast,
    Struct(Vec<MemberConversion>),
    List(Box<ValueConversion>),
    Map {
        key: Box<ValueConversion>,
        value: Box<ValueConversion>,
    },
}

impl BatchConverter {
    /// Fails with [`BodyError::Columns`] if the columns of `source` do not fit those of `table`, or if it has none.
    pub(crate) fn new(source: &Schema, table: &Schema, options: &BodyOptions) -> Result<Self, BodyError> {
        if source.fields().is_empty() {
            return Err(BodyError::Columns("the body has no columns, so that its rows have no values".to_owned()));
        }
        let limits = options.limits.clone();
        let names = NameIndex::new(source.fields().iter().map(|field| field.name().clone()));
        let names = names.map_err(|reason| BodyError::Columns(format!("columns of the body: {reason}")))?;
        let fields = table_fields(source, table, options.unknown_columns)?;
        if fields.len() > limits.columns_max {
            return Err(BodyError::TooLarge(format!(
                "the table would have {} columns; at most {} are allowed",
                fields.len(),
                limits.columns_max
            )));
        }
        let columns = all_members(source.fields(), &names, &fields.clone().into())?;
        let schema = Arc::new(Schema::new_with_metadata(fields, table.metadata().clone()));
        Ok(Self {
            schema,
            declared: table.fields().len(),
            columns,
            limits,
            pending: None,
            next_index: 0,
            written_bytes: 0,
        })
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    pub(crate) fn added(&self) -> Vec<FieldRef> {
        self.schema.fields().iter().skip(self.declared).cloned().collect()
    }

    /// Whether a batch was taken, whose memory is held.
    pub(crate) fn has_batch(&self) -> bool {
        self.pending.is_some()
    }

    /// Takes a batch, whose rows [`Self::convert_next`] converts. All of the batch before were converted.
    pub(crate) fn start(&mut self, batch: RecordBatch) {
        self.pending = Some(batch);
    }

    /// Converts the next rows, as many as a batch of the table may have. Returns false if there are none. `body_bytes` is how
    /// many bytes of the body were received so far.
    pub(crate) fn convert_next(&mut self, body_bytes: u64, rows: &mut RowCollector) -> Result<bool, BodyError> {
        let Some(batch) = self.pending.take().filter(|batch| batch.num_rows() > 0) else { return Ok(false) };
        let mut part = batch.slice(0, batch.num_rows().min(self.limits.batch_rows_max.max(1)));
        let mut bytes = size::batch_bytes(&part, &self.columns);
        while bytes.total() > self.limits.batch_bytes as u64 && part.num_rows() > 1 {
            part = part.slice(0, part.num_rows() / 2);
            bytes = size::batch_bytes(&part, &self.columns);
        }
        // Rows without values take time, too.
        self.written_bytes = self.written_bytes.saturating_add(bytes.written.max(part.num_rows() as u64));
        check_expansion(self.written_bytes, body_bytes, &self.limits)?;
        self.pending = Some(batch.slice(part.num_rows(), batch.num_rows() - part.num_rows()));
        let part_bytes = usize::try_from(bytes.total()).unwrap_or(usize::MAX);
        let failures = match part.num_rows() == 1 && part_bytes > self.limits.row_bytes_max {
            true => {
                let max = self.limits.row_bytes_max;
                let error = CellError::new(format!("the row has {part_bytes} bytes; at most {max} are allowed"));
                Ok(RowFailures::from([(0, error)]))
            }
            false => {
                // A value may be converted in two steps.
                rows.reserve(part_bytes.saturating_mul(2))?;
                check::check_rows(&part, &self.columns)
            }
        };
        let converted = failures.and_then(|failures| self.convert_part((&part, part_bytes), failures, rows));
        converted.map_err(|error| BodyError::Malformed(error.to_string()))?;
        Ok(true)
    }

    /// Converts the rows of `batch` but those with failures. Their values have about `bytes`.
    fn convert_part(
        &mut self,
        (batch, bytes): (&RecordBatch, usize),
        failures: RowFailures,
        rows: &mut RowCollector,
    ) -> Result<(), ArrowError> {
        let first = self.next_index;
        self.next_index = first.saturating_add(batch.num_rows() as u64);
        let position = |row: usize| RowPosition::Index(first.saturating_add(row as u64));
        let mut positions: Vec<RowPosition> = (0..batch.num_rows()).map(position).collect();
        let mut fitting = batch.clone();
        if !failures.is_empty() {
            let is_fitting: Vec<bool> = (0..batch.num_rows()).map(|row| !failures.contains_key(&row)).collect();
            positions = positions.into_iter().zip(&is_fitting).filter(|(_, fits)| **fits).map(|(row, _)| row).collect();
            fitting = filter_record_batch(batch, &BooleanArray::from(is_fitting))?;
        }
        for (row, error) in failures {
            rows.keep_rejected(RejectedRow::new(position(row), *error, b""));
        }
        if rows.is_refused() {
            return Ok(());
        }
        let arrays = convert_members(fitting.columns(), fitting.num_rows(), &self.columns)?;
        let options = RecordBatchOptions::new().with_row_count(Some(fitting.num_rows()));
        let converted = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?;
        rows.push_batch(converted, positions, bytes);
        Ok(())
    }
}

/// Refuses a body whose values, written out, are far larger than the body: a dictionary has a value once for all rows.
pub(crate) fn check_expansion(written_bytes: u64, body_bytes: u64, limits: &BodyLimits) -> Result<(), BodyError> {
    if written_bytes > limits.decompressed_bytes_max {
        let max = limits.decompressed_bytes_max;
        return Err(BodyError::TooLarge(format!("the values of the body have more than {max} bytes")));
    }
    let max = limits.expansion_max.max(1);
    if written_bytes > body_bytes.saturating_mul(max).max(UNCHECKED_BYTES) {
        return Err(BodyError::TooLarge(format!(
            "the values of the body have more than {max} times as many bytes as the body; send them with less compression"
        )));
    }
    Ok(())
}

/// The columns of the table, and those that the body adds.
fn table_fields(source: &Schema, table: &Schema, unknown: UnknownColumns) -> Result<Vec<FieldRef>, BodyError> {
    let declared = NameIndex::new(table.fields().iter().map(|field| field.name().clone()));
    let declared = declared.map_err(BodyError::Options)?;
    let mut fields: Vec<FieldRef> = table.fields().iter().cloned().collect();
    let added: Vec<&FieldRef> =
        source.fields().iter().filter(|field| declared.find(field.name(), 0).is_none()).collect();
    if unknown == UnknownColumns::Refuse
        && let Some(reason) = declared.unknown_columns(added.iter().map(|field| field.name().as_str()))
    {
        return Err(BodyError::Columns(reason));
    }
    for field in added {
        declared.check_new(field.name()).map_err(BodyError::Columns)?;
        let data_type = plain_type(field.data_type());
        fields.push(Arc::new(field.as_ref().clone().with_data_type(data_type).with_nullable(true)));
    }
    Ok(fields)
}

/// The columns of a table. The error has each that does not fit.
fn all_members(source: &Fields, names: &NameIndex, targets: &Fields) -> Result<Vec<MemberConversion>, BodyError> {
    let mut columns = Vec::with_capacity(targets.len());
    let mut problems = Vec::new();
    for (position, target) in targets.iter().enumerate() {
        match member(source, names, (position, target), TYPE_DEPTH_MAX) {
            Ok(column) => columns.push(column),
            Err(error) => problems.push(format!("column \"{}\": {}", error.path, error.reason)),
        }
    }
    let uncounted = problems.len().saturating_sub(PROBLEMS_MAX);
    problems.truncate(PROBLEMS_MAX);
    if uncounted > 0 {
        problems.push(format!("{uncounted} others do not fit"));
    }
    if problems.is_empty() { Ok(columns) } else { Err(BodyError::Columns(problems.join("; "))) }
}

fn members(
    source: &Fields,
    names: &NameIndex,
    targets: &Fields,
    depth: usize,
) -> Result<Vec<MemberConversion>, Box<CellError>> {
    targets.iter().enumerate().map(|target| member(source, names, target, depth)).collect()
}

fn member(
    source: &Fields,
    names: &NameIndex,
    (position, target): (usize, &FieldRef),
    depth: usize,
) -> Result<MemberConversion, Box<CellError>> {
    let name = target.name();
    let found = names.find(name, position).and_then(|position| Some((position, source.get(position)?)));
    let Some((position, field)) = found else {
        if !target.is_nullable() {
            return Err(CellError::new("it is missing, and the column takes no nulls").in_member(name));
        }
        let value = ValueConversion::with_kind(target, ConversionKind::Same);
        return Ok(MemberConversion { name: name.clone(), source: None, value });
    };
    let value = ValueConversion::new(field, target, depth).map_err(|error| error.in_member(name))?;
    Ok(MemberConversion { name: name.clone(), source: Some(position), value })
}

impl ValueConversion {
    fn with_kind(target: &Field, kind: ConversionKind) -> Self {
        Self {
            target: target.data_type().clone(),
            is_nullable: target.is_nullable(),
            is_json: is_json_field(target),
            kind,
        }
    }

    fn new(source: &Field, target: &Field, depth: usize) -> Result<Self, Box<CellError>> {
        let Some(depth) = depth.checked_sub(1) else { return Err(CellError::new("the type is nested too deeply")) };
        let part = |source: &Field, target: &Field| Self::new(source, target, depth).map(Box::new);
        let kind = match (value_type(source.data_type()), value_type(target.data_type())) {
            (DataType::Struct(source), DataType::Struct(target)) => struct_kind(source, target, depth)?,
            (
                DataType::List(source) | DataType::LargeList(source) | DataType::FixedSizeList(source, _),
                DataType::List(target) | DataType::LargeList(target),
            ) => ConversionKind::List(part(source, target).map_err(|error| error.in_member("[]"))?),
            (DataType::FixedSizeList(source, source_size), DataType::FixedSizeList(target, size))
                if source_size == size =>
            {
                ConversionKind::List(part(source, target).map_err(|error| error.in_member("[]"))?)
            }
            (DataType::Map(source, _), DataType::Map(target, _)) => map_kind(source, target, depth)?,
            (a, b) if a == b && a.primitive_width().is_some() => ConversionKind::Same,
            (a, b) if a == b && !a.is_nested() => ConversionKind::Same,
            (a, b) if is_exact_cast(a, b) && can_cast_types(a, b) => ConversionKind::Cast,
            _ => {
                let (source, target) = (describe_type(source.data_type()), describe_type(target.data_type()));
                return Err(CellError::new(format!("it is {source} in the body, and {target} in the table")));
            }
        };
        Ok(Self::with_kind(target, kind))
    }
}

fn struct_kind(source: &Fields, target: &Fields, depth: usize) -> Result<ConversionKind, Box<CellError>> {
    let targets = NameIndex::new(target.iter().map(|field| field.name().clone())).map_err(CellError::new)?;
    let names = NameIndex::new(source.iter().map(|field| field.name().clone())).map_err(CellError::new)?;
    if let Some(field) = source.iter().find(|field| targets.find(field.name(), 0).is_none()) {
        return Err(CellError::new(targets.unknown("member", field.name())));
    }
    Ok(ConversionKind::Struct(members(source, &names, target, depth)?))
}

fn map_kind(source: &Field, target: &Field, depth: usize) -> Result<ConversionKind, Box<CellError>> {
    let (DataType::Struct(source), DataType::Struct(target)) = (source.data_type(), target.data_type()) else {
        return Err(CellError::new("the type is a map without entries"));
    };
    let ([source_key, source_value], [key, value]) = (source.as_ref(), target.as_ref()) else {
        return Err(CellError::new("the type is a map without key and value"));
    };
    Ok(ConversionKind::Map {
        key: Box::new(ValueConversion::new(source_key, key, depth).map_err(|error| error.in_member("key"))?),
        value: Box::new(ValueConversion::new(source_value, value, depth).map_err(|error| error.in_member("value"))?),
    })
}

/// The type of the values: that of the dictionary where the column has one.
fn value_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        _ => data_type,
    }
}

/// Whether single values of one type may become values of the other where they fit. Text never becomes a number, and a
/// time without zone never gets one.
fn is_exact_cast(source: &DataType, target: &DataType) -> bool {
    use DataType::{
        Binary, BinaryView, Date32, Date64, FixedSizeBinary, Float32, Float64, LargeBinary, LargeUtf8, Null, Time32,
        Time64, Timestamp, Utf8, Utf8View,
    };
    let is_text = |data_type: &DataType| matches!(data_type, Utf8 | LargeUtf8 | Utf8View);
    let is_binary = |data_type: &DataType| matches!(data_type, Binary | LargeBinary | BinaryView);
    let is_integer = DataType::is_integer;
    let is_float = |data_type: &DataType| matches!(data_type, Float32 | Float64);
    let is_decimal = DataType::is_decimal;
    match (source, target) {
        (Null, _) => true,
        (Timestamp(_, source), Timestamp(_, target)) => source.is_some() == target.is_some(),
        (Date32 | Date64, Date32 | Date64) | (Time32(_) | Time64(_), Time32(_) | Time64(_)) => true,
        (FixedSizeBinary(_), target) => is_binary(target),
        _ => {
            (is_text(source) && is_text(target))
                || (is_binary(source) && is_binary(target))
                || (is_integer(source) && (is_integer(target) || is_float(target) || is_decimal(target)))
                || (is_float(source) && (is_integer(target) || is_float(target)))
                || (is_decimal(source) && (is_decimal(target) || is_integer(target)))
        }
    }
}

/// The arrays of the columns or members, each with `len` values.
fn convert_members(arrays: &[ArrayRef], len: usize, members: &[MemberConversion]) -> Result<Vec<ArrayRef>, ArrowError> {
    let convert = |member: &MemberConversion| match member.source.and_then(|position| arrays.get(position)) {
        Some(array) => convert_values(array, &member.value),
        None => Ok(new_null_array(&member.value.target, len)),
    };
    members.iter().map(convert).collect()
}

fn convert_values(array: &ArrayRef, conversion: &ValueConversion) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == &conversion.target {
        return Ok(array.clone());
    }
    let array = unpack(array)?;
    let target = value_type(&conversion.target);
    let converted = match (&conversion.kind, target) {
        (ConversionKind::Same, _) => array,
        (ConversionKind::Cast, _) => exact_cast(&array, target)?,
        (ConversionKind::Struct(members), DataType::Struct(fields)) => {
            let nulls = array.nulls().cloned();
            let columns = array.as_struct().columns().iter();
            let columns = columns.map(|column| masked(column, nulls.as_ref())).collect::<Result<Vec<_>, _>>()?;
            let arrays = convert_members(&columns, array.len(), members)?;
            Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, nulls, array.len())?)
        }
        (ConversionKind::List(item), _) => convert_list(&without_hidden_items(&array)?, item, target)?,
        (ConversionKind::Map { key, value }, DataType::Map(entries, is_sorted)) => {
            let array = without_hidden_items(&array)?;
            let map = array.as_map();
            let DataType::Struct(fields) = entries.data_type() else { return Err(unexpected(target)) };
            let arrays = vec![convert_values(map.keys(), key)?, convert_values(map.values(), value)?];
            let converted = StructArray::try_new(fields.clone(), arrays, None)?;
            let nulls = map.nulls().cloned();
            Arc::new(MapArray::try_new(entries.clone(), map.offsets().clone(), converted, nulls, *is_sorted)?)
        }
        _ => return Err(unexpected(target)),
    };
    exact_cast(&converted, &conversion.target)
}

fn exact_cast(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == target {
        return Ok(array.clone());
    }
    cast_with_options(array, target, &CastOptions { safe: false, ..CastOptions::default() })
}

/// A copy that has no items but those of its lists: items of a list that is null were not checked.
fn without_hidden_items(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let rows = UInt32Array::from_iter_values(0..u32::try_from(array.len()).unwrap_or(u32::MAX));
    take(array, &rows, None)
}

/// The same values, null where `nulls` is: what is within a null was not checked.
fn masked(array: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<ArrayRef, ArrowError> {
    if nulls.is_none() || array.data_type() == &DataType::Null {
        return Ok(array.clone());
    }
    let nulls = NullBuffer::union(array.nulls(), nulls);
    Ok(make_array(array.to_data().into_builder().nulls(nulls).build()?))
}

/// The items of lists of a fixed size, where also a list that is null has items.
fn fixed_items(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let list = array.as_fixed_size_list();
    let size = usize::try_from(list.value_length()).unwrap_or(0);
    masked(list.values(), list.nulls().map(|nulls| nulls.expand(size)).as_ref())
}

fn convert_list(array: &ArrayRef, item: &ValueConversion, target: &DataType) -> Result<ArrayRef, ArrowError> {
    let nulls = array.nulls().cloned();
    if let (DataType::FixedSizeList(..), DataType::FixedSizeList(field, size)) = (array.data_type(), target) {
        let items = convert_values(&fixed_items(array)?, item)?;
        return Ok(Arc::new(FixedSizeListArray::try_new_with_length(field.clone(), *size, items, nulls, array.len())?));
    }
    let field = match target {
        DataType::List(field) | DataType::LargeList(field) => field,
        _ => return Err(unexpected(target)),
    };
    let large = match array.data_type() {
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            LargeListArray::try_new(field.clone(), list.offsets().clone(), convert_values(list.values(), item)?, nulls)?
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let items = convert_values(list.values(), item)?;
            let offsets = list.offsets().clone();
            return finish_list(Arc::new(ListArray::try_new(field.clone(), offsets, items, nulls)?), target);
        }
        _ => return fixed_to_list(array, item, field, target),
    };
    finish_list(Arc::new(large), target)
}

fn fixed_to_list(
    array: &ArrayRef,
    item: &ValueConversion,
    field: &FieldRef,
    target: &DataType,
) -> Result<ArrayRef, ArrowError> {
    let list = array.as_fixed_size_list();
    let size = usize::try_from(list.value_length()).unwrap_or(0);
    let offsets = OffsetBuffer::<i64>::from_lengths(std::iter::repeat_n(size, list.len()));
    let items = convert_values(&fixed_items(array)?, item)?;
    let converted = LargeListArray::try_new(field.clone(), offsets, items, list.nulls().cloned())?;
    finish_list(Arc::new(converted), target)
}

fn finish_list(array: ArrayRef, target: &DataType) -> Result<ArrayRef, ArrowError> {
    exact_cast(&array, target)
}

fn unexpected(data_type: &DataType) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("a column of type {data_type} has other values"))
}

/// The type without dictionaries and views: which values repeat in a body is no property of a column.
fn plain_type(data_type: &DataType) -> DataType {
    with_leaves(data_type, |leaf| match leaf {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        other => other.clone(),
    })
}

/// The type with views of text and bytes.
pub(crate) fn view_type(data_type: &DataType) -> DataType {
    with_leaves(data_type, |leaf| match leaf {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        other => other.clone(),
    })
}

/// The type with other types of single values. A dictionary becomes its values.
fn with_leaves(data_type: &DataType, leaf: fn(&DataType) -> DataType) -> DataType {
    let part = |field: &FieldRef| {
        let data_type = with_leaves(field.data_type(), leaf);
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    };
    match data_type {
        DataType::Dictionary(_, values) => with_leaves(values, leaf),
        DataType::List(item) => DataType::List(part(item)),
        DataType::LargeList(item) => DataType::LargeList(part(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(part(item), *size),
        DataType::Struct(members) => DataType::Struct(members.iter().map(part).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(part(entries), *is_sorted),
        single => leaf(single),
    }
}
