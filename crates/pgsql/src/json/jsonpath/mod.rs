//! SQL/JSON paths: `jsonb_path_query` and its siblings, `@?` and `@@`.
//!
//! # Why not the crate `sql-json-path`
//!
//! Version 0.2 has no bound on its steps, and its parser takes exponential time in the depth of parentheses. It computes and
//! compares in double precision and panics where a result is infinite. `.**` does not enter arrays, `.key` of an array is
//! empty if one element is no object, `keyvalue()` has no `id`, and an error drops the items before it, which `silent` returns. It
//! enables `arbitrary_precision` of serde_json for all crates.

mod accessor;
mod budget;
mod canonical;
mod decimal;
mod lexer;
mod method;
mod object_id;
mod parser;
mod predicate;
mod runner;
mod syntax;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, StringArray};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use self::budget::{Item, PathBudget, PathError, ResultItems};
use self::runner::PathRunner;
use self::syntax::JsonPath;
use super::document::{build_values, check_argument, check_count, format_jsonb, into_array};
use super::elements::build_lists;
use super::reader::parse as parse_document;
use super::text::write_value;
use super::value::JsonValue;
use crate::data_type::is_text_or_null;
use crate::function::{ArgumentColumn, BoundedTexts, ColumnarFunction, FunctionCall, check_bytes, text_type};
use crate::json_type::JsonKind;

/// The name of the cast to `jsonpath`. Paths are text here, which the cast checks and writes as PostgreSQL does.
pub(super) const CAST: &str = "jsonpath*";

/// Returns the functions, each also under the name that ends in `_tz`: the two differ for `datetime()` only, which is
/// refused.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let list = |fields: &[FieldRef]| check_arguments(fields, DataType::new_list(JsonKind::Jsonb.data_type(), true));
    let document = |fields: &[FieldRef]| check_arguments(fields, JsonKind::Jsonb.data_type());
    let boolean = |fields: &[FieldRef]| check_arguments(fields, DataType::Boolean);
    vec![
        ColumnarFunction::new(CAST, cast_types, text_type, cast_to_path),
        ColumnarFunction::new("jsonb_path_query*", argument_types, list, query),
        ColumnarFunction::new("jsonb_path_query_tz*", argument_types, list, query),
        ColumnarFunction::new("jsonb_path_query_array", argument_types, document, query_array),
        ColumnarFunction::new("jsonb_path_query_array_tz", argument_types, document, query_array),
        ColumnarFunction::new("jsonb_path_query_first", argument_types, document, query_first),
        ColumnarFunction::new("jsonb_path_query_first_tz", argument_types, document, query_first),
        ColumnarFunction::new("jsonb_path_exists", argument_types, boolean, |call| exists(call, false)),
        ColumnarFunction::new("jsonb_path_exists_tz", argument_types, boolean, |call| exists(call, false)),
        ColumnarFunction::new("jsonb_path_match", argument_types, boolean, |call| matches(call, false)),
        ColumnarFunction::new("jsonb_path_match_tz", argument_types, boolean, |call| matches(call, false)),
    ]
}

/// Returns the function of `@?`.
pub(super) fn exists_operator() -> ScalarUDF {
    let boolean = |fields: &[FieldRef]| check_arguments(fields, DataType::Boolean);
    ColumnarFunction::new("jsonb_path_exists_opr", argument_types, boolean, |call| exists(call, true))
}

/// Returns the function of `@@`.
pub(super) fn match_operator() -> ScalarUDF {
    let boolean = |fields: &[FieldRef]| check_arguments(fields, DataType::Boolean);
    ColumnarFunction::new("jsonb_path_match_opr", argument_types, boolean, |call| matches(call, true))
}

fn cast_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [text] if is_text_or_null(text) => Ok(vec![DataType::Utf8]),
        _ => plan_err!("only text can be cast to jsonpath"),
    }
}

fn cast_to_path(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    build_values(call, None, |row| texts.get(row).map(canonical_path).transpose())
}

fn canonical_path(text: &str) -> Result<String> {
    let written = canonical::write(&parser::parse(text)?);
    // PostgreSQL leaves out parentheses around an operator in `exists`, even where an accessor follows.
    if canonical::write(&parser::parse(&written)?) != written {
        return exec_err!(
            "the jsonpath \"{text}\" cannot be cast, because its text {written} means another path; leave out the cast"
        );
    }
    Ok(written)
}

fn argument_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [document, path, rest @ ..] if is_text_or_null(path) && rest.len() <= 2 => {
            let flag = rest.get(1).map(|_| DataType::Boolean);
            let coerced = [document.clone(), DataType::Utf8].into_iter().chain(rest.first().cloned());
            Ok(coerced.chain(flag).collect())
        }
        _ => {
            plan_err!("jsonpath functions take a jsonb, a path as text, variables as jsonb, and a boolean")
        }
    }
}

fn check_arguments(fields: &[FieldRef], returns: DataType) -> Result<DataType> {
    check_count("jsonb_path_…", fields, 2, 4)?;
    check_argument("jsonb_path_…", JsonKind::Jsonb, &fields[0])?;
    if let Some(variables) = fields.get(2) {
        check_argument("jsonb_path_…", JsonKind::Jsonb, variables)?;
    }
    Ok(returns)
}

/// The arguments of a call. A constant path is parsed once.
struct PathArguments {
    documents: ArgumentColumn<StringArray>,
    paths: ArgumentColumn<StringArray>,
    path: Option<JsonPath>,
    variables: Option<ArgumentColumn<StringArray>>,
    silent: Option<ArgumentColumn<BooleanArray>>,
}

impl PathArguments {
    fn new(call: &FunctionCall<'_>) -> Result<Self> {
        let (documents, paths) = (call.documents(0, JsonKind::Jsonb)?, call.texts(1)?);
        let path = match paths.get(0).filter(|_| paths.is_constant) {
            Some(path) => Some(parser::parse(path)?),
            None => None,
        };
        let variables = if call.args.len() > 2 { Some(call.documents(2, JsonKind::Jsonb)?) } else { None };
        let silent = match call.args.len() {
            4 => Some(call.column(3, |array| Ok(array.as_boolean().clone()))?),
            _ => None,
        };
        Ok(Self { documents, paths, path, variables, silent })
    }

    /// Returns the arguments of `row`; `None` if one of them is NULL.
    fn row_arguments(&self, row: usize) -> Option<(&str, &str, Option<&str>, bool)> {
        let silent = match &self.silent {
            Some(silent) => silent.get(row)?,
            None => false,
        };
        let variables = match &self.variables {
            Some(variables) => Some(variables.get(row)?),
            None => None,
        };
        Some((self.documents.get(row)?, self.paths.get(row)?, variables, silent))
    }
}

/// The items that a path selects, and whether they are complete or an error was suppressed.
struct PathOutcome<'v> {
    items: Vec<Item<'v>>,
    is_complete: bool,
    is_found: bool,
}

/// Evaluates the path of each row, and converts the outcome with `convert`.
fn evaluate<T>(
    call: &FunctionCall<'_>,
    is_existence: bool,
    is_silent: bool,
    mut convert: impl FnMut(PathOutcome<'_>, bool) -> Result<Option<T>>,
) -> Result<Vec<Option<T>>> {
    let arguments = PathArguments::new(call)?;
    let bytes = (0..call.rows).filter_map(|row| arguments.documents.get(row)).map(str::len).sum();
    let mut budget = PathBudget::new(bytes);
    let mut one = |row| {
        let Some((document, path, variables, silent)) = arguments.row_arguments(row) else { return Ok(None) };
        let own = if arguments.path.is_none() { Some(parser::parse(path)?) } else { None };
        let Some(path) = arguments.path.as_ref().or(own.as_ref()) else { return Ok(None) };
        let (document, variables) = (parse_document(document)?, variables.map(parse_document).transpose()?);
        let silent = silent || is_silent;
        let mut runner = PathRunner::new(path, &document, variables.as_ref(), !silent, &mut budget)?;
        let mut results = if is_existence && path.is_lax { ResultItems::first() } else { ResultItems::all() };
        let root = Item::Borrowed(&document);
        let outcome = match runner.evaluate_path(&path.path, &root, &mut results) {
            Ok(is_found) => {
                let is_found = results.0.as_ref().map_or(is_found, |items| !items.is_empty());
                PathOutcome { is_found, is_complete: true, items: results.into_items() }
            }
            Err(PathError::Suppressible(_)) if silent => {
                PathOutcome { is_found: false, is_complete: false, items: results.into_items() }
            }
            Err(PathError::Suppressible(message)) => return Err(exec_datafusion_err!("{message}")),
            Err(PathError::Error(error)) => return Err(error),
        };
        convert(outcome, silent)
    };
    (0..call.rows).map(&mut one).collect::<Result<_, DataFusionError>>()
}

fn query(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let mut texts = BoundedTexts::new(call.rows);
    let lengths = evaluate(call, false, false, |outcome, _| {
        for item in &outcome.items {
            texts.push(Some(format_jsonb(item)))?;
        }
        Ok(Some(outcome.items.len()))
    })?;
    build_lists(call, &lengths, into_array(texts, Some(JsonKind::Jsonb))?)
}

fn query_array(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let mut total_bytes = 0;
    let mut results = evaluate(call, false, false, |outcome, _| {
        let mut out = String::from("[");
        for (position, item) in outcome.items.iter().enumerate() {
            out.push_str(if position > 0 { ", " } else { "" });
            write_value(item, &mut out);
            check_bytes(out.len())?;
        }
        out.push(']');
        total_bytes += out.len();
        check_bytes(total_bytes)?;
        Ok(Some(out))
    })?;
    build_values(call, Some(JsonKind::Jsonb), |row| Ok(results[row].take()))
}

fn query_first(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let mut results =
        evaluate(call, false, false, |outcome, _| Ok(outcome.items.first().map(|item| format_jsonb(item))))?;
    build_values(call, Some(JsonKind::Jsonb), |row| Ok(results[row].take()))
}

fn exists(call: &FunctionCall<'_>, is_silent: bool) -> Result<ArrayRef> {
    let results = evaluate(call, true, is_silent, |outcome, _| Ok(outcome.is_complete.then_some(outcome.is_found)))?;
    Ok(Arc::new(BooleanArray::from(results)))
}

fn matches(call: &FunctionCall<'_>, is_silent: bool) -> Result<ArrayRef> {
    let results = evaluate(call, false, is_silent, |outcome, silent| match outcome.items.as_slice() {
        [one] if matches!(one.as_ref(), JsonValue::Null) => Ok(None),
        [one] if matches!(one.as_ref(), JsonValue::Bool(_)) => Ok(Some(matches!(one.as_ref(), JsonValue::Bool(true)))),
        _ if silent => Ok(None),
        _ => exec_err!("single boolean result is expected"),
    })?;
    Ok(Arc::new(BooleanArray::from(results)))
}
