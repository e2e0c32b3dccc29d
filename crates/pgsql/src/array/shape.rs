//! The size of arrays: `array_length`, `cardinality`, `array_upper`, `array_lower`, `array_ndims`, `array_dims`,
//! `generate_subscripts`, `num_nulls` and `num_nonnulls`; the elements of a multidimensional array, as `unnest` returns them;
//! and `ARRAY[a, b]` of arrays, which must have equal lengths.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayBuilder, ArrayRef, AsArray, BooleanArray, Int32Array, Int32Builder, Int64Array, ListArray, ListBuilder,
};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, exec_err, plan_err};
use datafusion::functions_nested::make_array::make_array;
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF};
use datafusion::sql::sqlparser::ast;

use crate::function::{
    BoundedTexts, ColumnarFunction, FunctionCall, call, check_bytes, first_type, int4_type, text_type,
};
use crate::list::{
    as_list, assemble_lists, dimensions, innermost_type, item_type, list_type, lists, range, require_item,
};
use crate::syntax;

pub(super) fn functions() -> Vec<ScalarUDF> {
    let bound = |name, invoke| ColumnarFunction::new(name, array_and_dimension_types, int4_type, invoke);
    vec![
        bound("array_length", |call| length_of(call, |length| length)),
        bound("array_upper", |call| length_of(call, |length| length)),
        bound("array_lower", |call| length_of(call, |_| 1)),
        ColumnarFunction::new("cardinality", single_array_types, int4_type, |call| {
            measure_each(call, 0, |list, row| Some(count(list, row)))
        }),
        ColumnarFunction::new("array_ndims", single_array_types, int4_type, |call| {
            measure_each(call, 0, |list, row| {
                if list.value_length(row) == 0 { None } else { i32::try_from(dimensions(list.data_type())).ok() }
            })
        }),
        ColumnarFunction::new("array_dims", single_array_types, text_type, dims),
        ColumnarFunction::new("generate_subscripts*", subscript_types, |_| Ok(list_type(DataType::Int32)), subscripts),
    ]
}

fn single_array_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [array] => Ok(vec![list_type(require_item("of an array", array)?)]),
        _ => plan_err!("the function takes one array"),
    }
}

fn array_and_dimension_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [array, dimension] if dimension.is_integer() || dimension.is_null() => {
            Ok(vec![list_type(require_item("array_length", array)?), DataType::Int64])
        }
        [_] => plan_err!("array_length, array_upper and array_lower need a dimension: array_length(array, 1)"),
        _ => plan_err!("array_length, array_upper and array_lower take an array and a dimension"),
    }
}

fn subscript_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [array, dimension] => array_and_dimension_types(&[array.clone(), dimension.clone()]),
        [array, dimension, DataType::Boolean] => {
            Ok([array_and_dimension_types(&[array.clone(), dimension.clone()])?, vec![DataType::Boolean]].concat())
        }
        _ => plan_err!("generate_subscripts takes an array, a dimension, and a boolean that reverses the order"),
    }
}

fn measure_each(
    call: &FunctionCall<'_>,
    index: usize,
    measure: impl Fn(&ListArray, usize) -> Option<i32>,
) -> Result<ArrayRef> {
    let list = lists(call, index)?;
    let values = (0..call.rows).map(|row| if list.is_valid(row) { measure(&list, row) } else { None });
    Ok(Arc::new(values.collect::<Int32Array>()))
}

/// Returns the number of elements in all dimensions.
fn count(list: &ListArray, row: usize) -> i32 {
    if item_type(&list.value_type()).is_none() {
        return list.value_length(row);
    }
    match as_list(list.values()) {
        Ok(inner) => {
            range(list, row).map(|position| if inner.is_valid(position) { count(&inner, position) } else { 0 }).sum()
        }
        Err(_) => 0,
    }
}

/// Returns the length of a dimension; `None` if the dimension does not exist or is empty.
fn length(list: &ListArray, row: usize, dimension: i64) -> Option<i32> {
    let own = list.value_length(row);
    if dimension < 1 || own == 0 {
        return None;
    }
    if dimension == 1 {
        return Some(own);
    }
    item_type(&list.value_type())?;
    let inner = as_list(list.values()).ok()?;
    let first = range(list, row).start;
    if inner.is_valid(first) { length(&inner, first, dimension - 1) } else { None }
}

fn length_of(call: &FunctionCall<'_>, bound: fn(i32) -> i32) -> Result<ArrayRef> {
    let dimension = integers(call, 1)?;
    measure_each(call, 0, |list, row| {
        length(list, row, dimension.is_valid(row).then(|| dimension.value(row))?).map(bound)
    })
}

fn integers(call: &FunctionCall<'_>, index: usize) -> Result<Int64Array> {
    Ok(cast(&call.array(index)?, &DataType::Int64)?.as_primitive().clone())
}

fn dims(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let list = lists(call, 0)?;
    let texts = BoundedTexts::of_rows(call.rows, |row| {
        let mut text = String::new();
        let mut dimension = 1;
        while let Some(length) = (list.is_valid(row)).then(|| length(&list, row, dimension)).flatten() {
            text.push_str(&format!("[1:{length}]"));
            dimension += 1;
        }
        Ok((!text.is_empty()).then_some(text))
    })?;
    Ok(Arc::new(texts.finish()))
}

fn subscripts(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (list, dimension) = (lists(call, 0)?, integers(call, 1)?);
    let reversed: Option<BooleanArray> = match call.args.len() {
        3 => Some(call.array(2)?.as_boolean().clone()),
        _ => None,
    };
    let mut builder = ListBuilder::new(Int32Builder::new());
    for row in 0..call.rows {
        let is_valid = list.is_valid(row) && dimension.is_valid(row);
        let length = is_valid.then(|| length(&list, row, dimension.value(row))).flatten().unwrap_or(0);
        check_bytes(ArrayBuilder::len(builder.values()) * 4 + length as usize * 4)?;
        match reversed.as_ref().is_some_and(|reversed| reversed.is_valid(row) && reversed.value(row)) {
            true => builder.values().extend((1..=length).rev().map(Some)),
            false => builder.values().extend((1..=length).map(Some)),
        }
        builder.append(true);
    }
    Ok(Arc::new(builder.finish()))
}

/// The name of the function. The `*` keeps callers from writing it.
const NAME: &str = "array_elements*";

/// Flattens an array to one dimension; other values stay unchanged.
pub(super) fn flatten_function() -> ScalarUDF {
    ColumnarFunction::new(
        NAME,
        |types| if types.len() == 1 { Ok(types.to_vec()) } else { plan_err!("unnest takes one array") },
        |fields| Ok(flattened_type(fields[0].data_type())),
        flatten_arrays,
    )
}

/// Flattens `array` for `unnest`, which expands only one dimension.
pub(crate) fn with_one_dimension(array: Expr) -> Expr {
    call(flatten_function(), vec![array])
}

/// Flattens the argument of `unnest(array)`.
pub(super) fn rewrite_unnest(function: &mut ast::Function) {
    let ast::FunctionArguments::List(list) = &mut function.args else { return };
    if let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(array))] = list.args.as_mut_slice()
        && !is_list_function(array)
    {
        *array = syntax::call(NAME, vec![syntax::take(array)]);
    }
}

/// Whether `value` is a call of a list function, whose elements are rows.
fn is_list_function(value: &ast::Expr) -> bool {
    matches!(value, ast::Expr::Function(function) if function.name.to_string().ends_with(['*', '"']))
}

fn flattened_type(data_type: &DataType) -> DataType {
    match item_type(data_type) {
        Some(item) if dimensions(item) > 0 => list_type(innermost_type(item).clone()),
        _ => data_type.clone(),
    }
}

fn flatten_arrays(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let mut array = call.array(0)?;
    while dimensions(array.data_type()) > 1 {
        array = remove_dimension(&array)?;
    }
    Ok(array)
}

fn remove_dimension(array: &ArrayRef) -> Result<ArrayRef> {
    let outer = as_list(array)?;
    let inner = as_list(outer.values())?;
    assemble_lists(outer.len(), &[Arc::clone(inner.values())], |row| {
        let arrays = range(&outer, row).filter(|position| inner.is_valid(*position));
        let elements = arrays.flat_map(|position| range(&inner, position)).map(|position| (0, position));
        Ok(outer.is_valid(row).then_some(elements))
    })
}

pub(super) fn null_functions() -> Vec<ScalarUDF> {
    vec![
        ColumnarFunction::new("num_nulls", values_types, int4_type, |call| count_values(call, true)),
        ColumnarFunction::new("num_nonnulls", values_types, int4_type, |call| count_values(call, false)),
        ColumnarFunction::new("num_nulls*", array_types, int4_type, |call| count_elements(call, true)),
        ColumnarFunction::new("num_nonnulls*", array_types, int4_type, |call| count_elements(call, false)),
    ]
}

fn values_types(types: &[DataType]) -> Result<Vec<DataType>> {
    if types.is_empty() {
        return plan_err!("num_nulls and num_nonnulls take at least one argument");
    }
    Ok(types.to_vec())
}

fn array_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [array] if item_type(array).is_some() => Ok(types.to_vec()),
        _ => plan_err!("VARIADIC takes an array; write the arguments one by one, or cast NULL: NULL::text[]"),
    }
}

fn count_values(call: &FunctionCall<'_>, counts_nulls: bool) -> Result<ArrayRef> {
    let columns: Vec<Option<NullBuffer>> = call.arrays()?.iter().map(|column| column.logical_nulls()).collect();
    let count = |row| {
        let is_null = columns.iter().map(|nulls| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)));
        size(is_null.filter(|is_null| *is_null == counts_nulls).count())
    };
    Ok(Arc::new(Int32Array::from_iter_values((0..call.rows).map(count))))
}

/// Counts in arrays of one dimension.
fn count_elements(call: &FunctionCall<'_>, counts_nulls: bool) -> Result<ArrayRef> {
    let list = lists(call, 0)?;
    let nulls = list.values().logical_nulls();
    let is_null = |position: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(position));
    let count = |row| {
        let elements = range(&list, row).filter(|position| is_null(*position) == counts_nulls);
        list.is_valid(row).then(|| size(elements.count()))
    };
    Ok(Arc::new((0..call.rows).map(count).collect::<Int32Array>()))
}

fn size(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Builds an array of arrays whose lengths are unknown at planning time.
pub(crate) fn plan_nested_array(elements: &[Expr], schema: &DFSchema) -> Option<Expr> {
    let is_written_out = |element: &Expr| {
        matches!(element, Expr::Literal(..))
            || matches!(element, Expr::ScalarFunction(call) if call.func.name() == "make_array")
    };
    let is_array =
        |element: &Expr| element.get_type(schema).is_ok_and(|data_type: DataType| item_type(&data_type).is_some());
    let has_unknown = elements.iter().any(|element| !is_written_out(element) && is_array(element));
    (has_unknown && elements.len() > 1).then(|| call(equal_lengths_function(), vec![make_array(elements.to_vec())]))
}

/// Returns its argument, an array of arrays, after it has checked that their lengths are equal.
pub(super) fn equal_lengths_function() -> ScalarUDF {
    ColumnarFunction::new(
        "array_matching*",
        |types| if types.len() == 1 { Ok(types.to_vec()) } else { plan_err!("the check takes one array") },
        first_type,
        check_lengths,
    )
}

fn check_lengths(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let array = call.array(0)?;
    let outer = as_list(&array)?;
    let inner = as_list(outer.values())?;
    let length = |position: usize| if inner.is_valid(position) { inner.value_length(position) } else { 0 };
    for row in (0..outer.len()).filter(|row| outer.is_valid(*row)) {
        let mut lengths = range(&outer, row).map(length);
        let first = lengths.next();
        if lengths.any(|other| Some(other) != first) {
            return exec_err!("multidimensional arrays must have array expressions with matching dimensions");
        }
    }
    Ok(array)
}
