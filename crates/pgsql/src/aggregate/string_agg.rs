//! `string_agg` with a delimiter that may differ in each row.
//!
//! DataFusion supports only a literal delimiter. Other delimiters are collected with the values into a list of pairs,
//! which are then joined.

use std::sync::Arc;

use crate::data_type::postgres_type_name;
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, GenericListArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::functions::core::expr_fn::named_struct;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, WindowFunction, WindowFunctionParams,
};
use datafusion::logical_expr::planner::{RawAggregateExpr, RawWindowExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, WindowFunctionDefinition,
    lit,
};
use datafusion::scalar::ScalarValue;

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
    let params = AggregateFunctionParams {
        args: vec![pair],
        distinct: false,
        filter: Some(Box::new(filter)),
        order_by: call.order_by.clone(),
        null_treatment: None,
    };
    let pairs = Expr::AggregateFunction(AggregateFunction { func: array_agg_udaf(), params });
    Ok(Some(call_join_pairs(pairs)))
}

/// Plans the call over a moving window, because DataFusion's function cannot retract values.
pub(super) fn plan_window(call: &RawWindowExpr) -> Result<Expr> {
    let [value, delimiter] = call.args.as_slice() else {
        return plan_err!("string_agg takes a value and a delimiter: string_agg(x, ', ')");
    };
    let (pair, filter) = build_pairs(value, delimiter, call.filter.as_deref());
    let params = WindowFunctionParams {
        args: vec![pair],
        partition_by: call.partition_by.clone(),
        order_by: call.order_by.clone(),
        window_frame: call.window_frame.clone(),
        filter: Some(Box::new(filter)),
        null_treatment: None,
        distinct: false,
    };
    let fun = WindowFunctionDefinition::AggregateUDF(array_agg_udaf());
    Ok(call_join_pairs(Expr::WindowFunction(Box::new(WindowFunction { fun, params }))))
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

fn call_join_pairs(pairs: Expr) -> Expr {
    let join = ConcatDelimited { signature: Signature::any(1, Volatility::Immutable) };
    ScalarUDF::new_from_impl(join).call(vec![pairs])
}

/// Joins the values of a list, each but the first preceded by its delimiter.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ConcatDelimited {
    signature: Signature,
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

impl ScalarUDFImpl for ConcatDelimited {
    fn name(&self) -> &str {
        "string_agg_join"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [DataType::List(pair)] = types else { return plan_err!("string_agg joins a list") };
        let DataType::Struct(fields) = pair.data_type() else { return plan_err!("string_agg joins pairs") };
        let [delimiter, value] = fields.as_ref() else { return plan_err!("string_agg joins pairs") };
        let is_text = |data_type: &DataType| data_type.is_string() || data_type.is_null();
        match (delimiter.data_type(), value.data_type()) {
            (delimiter, value) if is_text(delimiter) && is_text(value) => Ok(DataType::Utf8),
            (delimiter, value) if is_bytes(value) && (is_bytes(delimiter) || delimiter.is_null()) => {
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

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [lists] = args.args.as_slice() else { return exec_err!("string_agg joins a list") };
        let lists = lists.to_array(args.number_rows)?;
        let lists: &GenericListArray<i32> = lists.as_list();
        let pairs = lists.values().as_struct();
        let bytes = |column: usize| cast(pairs.column(column), &DataType::Binary);
        let (delimiters, values) = (bytes(0)?, bytes(1)?);
        let (delimiters, values) = (delimiters.as_binary::<i32>(), values.as_binary::<i32>());
        let joined = (0..lists.len()).map(|row| join_row(lists, row, delimiters, values));
        let joined: BinaryArray = joined.collect();
        let joined: ArrayRef = match args.return_field.data_type() {
            DataType::Utf8 => Arc::new(StringArray::try_from_binary(joined)?),
            _ => Arc::new(joined),
        };
        Ok(ColumnarValue::Array(joined))
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
