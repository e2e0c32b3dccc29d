//! Arrays as text.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::ScalarUDF;

use crate::function::{BoundedTexts, ColumnarFunction, FunctionCall, text_type};
use crate::json::key_text;
use crate::json_type::{json_kind, texts};
use crate::list::{as_list, item_type, list_type, require_item, write_element};

/// Returns the text of each array.
pub(crate) fn format_arrays(array: &ArrayRef) -> Result<StringArray> {
    let list = as_list(array)?;
    let text = |row: usize| {
        let mut out = String::new();
        write_array(&list, row, &mut out).map(|()| out)
    };
    let texts = BoundedTexts::of_rows(list.len(), |row| list.is_valid(row).then(|| text(row)).transpose())?;
    Ok(texts.finish())
}

fn write_array(list: &ListArray, row: usize, out: &mut String) -> Result<()> {
    let values = list.value(row);
    let inner = item_type(values.data_type()).map(|_| as_list(&values)).transpose()?;
    out.push('{');
    for position in 0..values.len() {
        if position > 0 {
            out.push(',');
        }
        match &inner {
            _ if values.is_null(position) => out.push_str("NULL"),
            Some(inner) => write_array(inner, position, out)?,
            None => write_element(&element_text(&values, position)?, out),
        }
    }
    out.push('}');
    Ok(())
}

/// Returns the unquoted text of an element, as the output function of its type writes it.
pub(crate) fn element_text(values: &ArrayRef, position: usize) -> Result<String> {
    match values.data_type() {
        DataType::Boolean => Ok(if values.as_boolean().value(position) { "t" } else { "f" }.to_owned()),
        other if json_kind(other).is_some() => Ok(texts(values)?.value(position).to_owned()),
        _ => key_text(values, position),
    }
}

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![ColumnarFunction::new("array_to_string", joined_types, text_type, join)]
}

fn joined_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let [array, rest @ ..] = types else { return plan_err!("array_to_string takes 2 or 3 arguments") };
    if rest.is_empty() || rest.len() > 2 {
        return plan_err!("array_to_string takes 2 or 3 arguments");
    }
    let item = require_item("array_to_string", array)?;
    Ok([vec![list_type(item)], rest.iter().map(|_| DataType::Utf8).collect()].concat())
}

fn join(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let list = as_list(&call.array(0)?)?;
    let separators = call.texts(1)?;
    let placeholders = if call.args.len() == 3 { Some(call.texts(2)?) } else { None };
    let texts = BoundedTexts::of_rows(call.rows, |row| {
        let Some(separator) = separators.get(row).filter(|_| list.is_valid(row)) else { return Ok(None) };
        let placeholder = placeholders.as_ref().and_then(|texts| texts.get(row));
        let mut parts = Vec::new();
        collect_texts(&list, row, placeholder, &mut parts)?;
        Ok(Some(parts.join(separator)))
    })?;
    Ok(Arc::new(texts.finish()))
}

fn collect_texts(list: &ListArray, row: usize, placeholder: Option<&str>, parts: &mut Vec<String>) -> Result<()> {
    let values = list.value(row);
    let inner = item_type(values.data_type()).map(|_| as_list(&values)).transpose()?;
    for position in 0..values.len() {
        match &inner {
            Some(inner) => collect_texts(inner, position, placeholder, parts)?,
            None if values.is_null(position) => parts.extend(placeholder.map(str::to_owned)),
            None => parts.push(element_text(&values, position)?),
        }
    }
    Ok(())
}
