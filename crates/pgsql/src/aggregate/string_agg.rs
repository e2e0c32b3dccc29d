//! `string_agg` with a delimiter that may differ in each row.
//!
//! DataFusion supports only a literal delimiter. Other delimiters are collected with the values into a list of pairs,
//! which are then joined. `docs/decisions/upstream` has the text to be filed.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, GenericListArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, plan_err};
use datafusion::functions::core::expr_fn::named_struct;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::logical_expr::planner::{RawAggregateExpr, RawWindowExpr};
use datafusion::logical_expr::{Expr, WindowFunctionDefinition, lit};
use datafusion::scalar::ScalarValue;

use super::{to_aggregate_expr, to_window_expr};
use crate::data_type::{is_text_or_null, postgres_type_name};
use crate::function::{ColumnarFunction, FunctionCall, keep_types};

/// Plans the call with a delimiter for each row; `None` for a literal delimiter, which DataFusion supports.
pub(super) fn plan_aggregate(call: &RawAggregateExpr) -> Result<Option<Expr>> {
    let [value, delimiter] = call.args.as_slice() else {
        return plan_err!("string_agg takes a value and a delimiter: string_agg(x, ', ')");
    };
    if matches!(delimiter, Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _)) {
        return Ok(None);
    }
    if call.distinct {
        return plan_err!(
            "string_agg(DISTINCT …) takes a literal as its delimiter: string_agg(DISTINCT x, ', ' ORDER BY x)"
        );
    }
    let (pair, filter) = build_pairs(value, delimiter, call.filter.as_deref());
    let pairs = to_aggregate_expr(&RawAggregateExpr {
        func: array_agg_udaf(),
        args: vec![pair],
        filter: Some(Box::new(filter)),
        null_treatment: None,
        ..call.clone()
    });
    Ok(Some(call_join_pairs(pairs)))
}

/// Plans the call over a moving window, because DataFusion's function cannot retract values.
pub(super) fn plan_window(call: &RawWindowExpr) -> Result<Expr> {
    let [value, delimiter] = call.args.as_slice() else {
        return plan_err!("string_agg takes a value and a delimiter: string_agg(x, ', ')");
    };
    let (pair, filter) = build_pairs(value, delimiter, call.filter.as_deref());
    Ok(call_join_pairs(to_window_expr(&RawWindowExpr {
        func_def: WindowFunctionDefinition::AggregateUDF(array_agg_udaf()),
        args: vec![pair],
        filter: Some(Box::new(filter)),
        null_treatment: None,
        distinct: false,
        ..call.clone()
    })))
}

/// Builds the pair to collect and the condition for rows.
fn build_pairs(value: &Expr, delimiter: &Expr, filter: Option<&Expr>) -> (Expr, Expr) {
    let pair = named_struct(vec![lit("delimiter"), delimiter.clone(), lit("value"), value.clone()]);
    let is_value = value.clone().is_not_null();
    let filter = match filter {
        Some(filter) => is_value.and(filter.clone()),
        None => is_value,
    };
    (pair, filter)
}

/// Joins the values of a list of pairs, each but the first preceded by its delimiter.
fn call_join_pairs(pairs: Expr) -> Expr {
    ColumnarFunction::new("string_agg_join", keep_types, joined_type, join_pairs).call(vec![pairs])
}

fn joined_type(fields: &[FieldRef]) -> Result<DataType> {
    let DataType::List(pair) = fields[0].data_type() else { return plan_err!("string_agg joins a list") };
    let DataType::Struct(fields) = pair.data_type() else { return plan_err!("string_agg joins pairs") };
    let [delimiter, value] = fields.as_ref() else { return plan_err!("string_agg joins pairs") };
    match (delimiter.data_type(), value.data_type()) {
        (delimiter, value) if is_text_or_null(delimiter) && is_text_or_null(value) => Ok(DataType::Utf8),
        (delimiter, value) if value.is_binary() && (delimiter.is_binary() || delimiter.is_null()) => {
            Ok(DataType::Binary)
        }
        (delimiter, value) => {
            let (value, delimiter) = (postgres_type_name(value), postgres_type_name(delimiter));
            plan_err!(
                "function string_agg({value}, {delimiter}) does not exist; cast both to text: \
                 string_agg(x::text, ', ')"
            )
        }
    }
}

fn join_pairs(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let lists = call.array(0)?;
    let lists: &GenericListArray<i32> = lists.as_list();
    let pairs = lists.values().as_struct();
    let bytes = |column: usize| cast(pairs.column(column), &DataType::Binary);
    let (delimiters, values) = (bytes(0)?, bytes(1)?);
    let (delimiters, values) = (delimiters.as_binary::<i32>(), values.as_binary::<i32>());
    let joined: BinaryArray = (0..lists.len()).map(|row| join_row(lists, row, delimiters, values)).collect();
    match call.returns {
        DataType::Utf8 => Ok(Arc::new(StringArray::try_from_binary(joined)?)),
        _ => Ok(Arc::new(joined)),
    }
}

fn join_row(
    lists: &GenericListArray<i32>,
    row: usize,
    delimiters: &BinaryArray,
    values: &BinaryArray,
) -> Option<Vec<u8>> {
    if lists.is_null(row) {
        return None;
    }
    let bound = |index: usize| usize::try_from(lists.value_offsets()[index]).unwrap_or(0);
    let (start, end) = (bound(row), bound(row + 1));
    let mut joined = Vec::new();
    for index in start..end {
        if index > start && delimiters.is_valid(index) {
            joined.extend_from_slice(delimiters.value(index));
        }
        joined.extend_from_slice(values.value(index));
    }
    Some(joined)
}
