//! SQL/JSON paths: `jsonb_path_query` and its siblings, `@?` and `@@`.
//!
//! # Why not the crate `sql-json-path`
//!
//! Version 0.2 has no bound on its steps, and its parser takes exponential time in the depth of parentheses. It computes and
//! compares in double precision and panics where a result is infinite. `.**` does not enter arrays, `.key` of an array is
//! empty if one element is no object, `keyvalue()` has no `id`, and an error drops the items before it, which `silent` returns. It
//! enables `arbitrary_precision` of serde_json for all crates.

mod budget;
mod decimal;
mod lexer;
mod parser;
mod path;
mod runner;

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, StringArray};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::document::{build_values, check_argument, check_count, format_jsonb, into_array};
use super::elements::build_lists;
use super::reader::parse as parse_document;
use super::value::{JsonValue, write_value};
use crate::data_type::{JsonKind, is_text_or_null};
use crate::function::{ArgumentColumn, BoundedTexts, ColumnarFunction, FunctionCall, check_bytes, text_type};
use budget::{Item, PathBudget, PathError, ResultItems};
use path::JsonPath;
use runner::PathRunner;

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
    let written = path::write(&parser::parse(text)?);
    // PostgreSQL leaves out parentheses around an operator in `exists`, even where an accessor follows.
    if path::write(&parser::parse(&written)?) != written {
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

#[cfg(test)]
mod tests {
    use datafusion::common::DataFusionError;

    use super::super::document::format_jsonb;
    use super::super::reader::parse as parse_document;
    use super::budget::{Item, PathBudget, PathError, ResultItems};
    use super::parser::parse;
    use super::runner::PathRunner;

    /// What `path` leads to in `document`; an error's text in its place.
    fn evaluate_path(path: &str, document: &str) -> Result<String, String> {
        let path = parse(path).map_err(|error| error.to_string())?;
        let document = parse_document(document).unwrap();
        let mut budget = PathBudget::new(0);
        let mut runner = PathRunner::new(&path, &document, None, true, &mut budget).unwrap();
        let mut results = ResultItems::all();
        match runner.evaluate_path(&path.path, &Item::Borrowed(&document), &mut results) {
            Ok(_) => Ok(results.into_items().iter().map(|item| format_jsonb(item)).collect::<Vec<_>>().join(" ")),
            Err(PathError::Suppressible(message)) => Err(message),
            Err(PathError::Error(DataFusionError::ResourcesExhausted(message))) => Err(message),
            Err(PathError::Error(error)) => Err(error.to_string()),
        }
    }

    #[track_caller]
    fn check(path: &str, document: &str, expected: &str) {
        assert_eq!(evaluate_path(path, document).as_deref(), Ok(expected), "{path}");
    }

    #[track_caller]
    fn check_error(path: &str, document: &str, expected: &str) {
        let error = evaluate_path(path, document).unwrap_err();
        assert!(error.contains(expected), "{path}: {error}");
    }

    #[test]
    fn accessors_unwrap_arrays_in_lax_mode_only() {
        check("$.a.b", r#"{"a": [{"b": 1}, {"b": 2}, 3]}"#, "1 2");
        check_error("strict $.a.b", r#"{"a": [{"b": 1}]}"#, "can only be applied to an object");
        check("$[*][*]", "[[1, 2], 3]", "1 2 3");
        check("$[last, 0 to 1]", "[1, 2, 3]", "3 1 2");
        check_error("strict $[3]", "[1, 2, 3]", "out of bounds");
        check("$.**{1 to 2}", r#"{"a": {"b": [1]}}"#, r#"{"b": [1]} [1]"#);
        check("$.**{last}", r#"{"a": {"b": [1, []]}}"#, "1");
    }

    #[test]
    fn predicates_are_unknown_where_values_cannot_be_compared() {
        check("$[*] ? (@ > 1)", r#"[1, "2", 3, null]"#, "3");
        check("$[*] ? ((@ > 1) is unknown)", r#"[1, "2", null]"#, r#""2""#);
        check("$ ? (exists(@.a ? (@ == 1)) && !(@.b == 2))", r#"{"a": 1, "b": 3}"#, r#"{"a": 1, "b": 3}"#);
        check("$[*] ? (@ like_regex \"^a.c\" flag \"i\")", r#"["ABC", "a\nc", "bac"]"#, r#""ABC""#);
        check("$[*] > 2", "[1, 2, 3]", "true");
        check("$ == $", "[]", "false");
    }

    #[test]
    fn arithmetic_is_that_of_numeric() {
        check("$[0] / $[1]", "[1, 3]", "0.33333333333333333333");
        check("$[0] / $[1]", "[10.50, 0.25]", "42.0000000000000000");
        check("-$[*]", "[1, -2.50, 0]", "-1 2.50 0");
        check("($[0] % $[1]).abs()", "[-5.5, 2]", "1.5");
        check("$[*].floor()", "[-0.5, 1.9, 3]", "-1 1 3");
        check("$[*].ceiling()", "[-0.5, 1.1, 3.0]", "0 2 3");
        check("$.double() + .5", "\"1e2\"", "100.5");
        check_error("1 / $", "0", "division by zero");
    }

    #[test]
    fn object_position_is_its_id() {
        check("$.c.d.keyvalue().id", r#"{"a": 12345, "bb": "x", "c": {"d": {"e": null}}}"#, "60");
    }

    #[test]
    fn texts_that_are_no_paths_are_refused() {
        for path in ["", "$.", "$ ? (@", "@", "last", "$.a()", "1a", "$ ? (@.a)", "!$.a", "1 < 2 < 3", "\"a", "$.\\u00"]
        {
            assert!(parse(path).is_err(), "{path}");
        }
        check_error("$.datetime()", "1", "cast it");
    }

    #[test]
    fn paths_and_evaluation_are_bounded() {
        check_error(&format!("${}", ".a".repeat(300)), "1", "at most 200 parts");
        check_error(&format!("{}1{}", "(".repeat(100), ")".repeat(100)), "1", "levels");
        check_error(&format!("{}1", "-".repeat(100)), "1", "levels");
        let depth = 200;
        let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        check(&format!("$.**{{{depth}}}"), &deep, "1");
        check_error("strict $.**.**.**.**.**.**", &deep, "more than");
        check_error("$.keyvalue().value.**.**.**.**", &format!(r#"{{"a": {deep}}}"#), "more than");
        check(&format!("strict ${}", "[0]".repeat(90)), &deep, &deep[90..=2 * depth - 90]);
    }

    #[test]
    fn paths_are_written_as_postgresql_writes_them() {
        for (path, expected) in [
            (
                r#"$.a.b ? (@.c > 1 && @."d e" == "x" || !(@.f < 2))"#,
                r#"$."a"."b"?(@."c" > 1 && @."d e" == "x" || !(@."f" < 2))"#,
            ),
            (
                r#"strict $[0, 1 to last].**{2 to last} ? (exists(@.x ? (@ like_regex "^a" flag "si")))"#,
                r#"strict $[0,1 to last].**{2 to last}?(exists (@."x"?(@ like_regex "^a" flag "is")))"#,
            ),
            (
                "$.a + - 1 * -(-2) - (1).type().size() + (-$.b).abs()",
                r#"((($."a" + -1 * 2) - (1).type().size()) + -$."b".abs())"#,
            ),
            (
                r#"(($.a == 1) is unknown) && !exists($.b) || $x starts with "a""#,
                r#"(($."a" == 1) is unknown && !(exists ($."b")) || $"x" starts with "a")"#,
            ),
            ("($.a == 1).type() == true.type()", r#"(($."a" == 1).type() == true.type())"#),
            ("-(-1.50e1) + -0.0 + .5 + 1. + 1e3", "((((15.0 + 0.0) + 0.5) + 1) + 1000)"),
            (r#"$.**.*[*].**{3}.**{0 to 2}."a\"b\u0041""#, r#"$.**.*[*].**{3}.**{0 to 2}."a\"bA""#),
            (
                r#"$ ? (@ like_regex "a" && (@ > 1 && @ < 2) && @ != null)"#,
                r#"$?((@ like_regex "a" && (@ > 1 && @ < 2)) && @ != null)"#,
            ),
            ("-$.a.b + (+$).c ? ((@ + 1) * 2 > 3 - (4 - 5))", r#"(-$."a"."b" + +$."c"?((@ + 1) * 2 > 3 - (4 - 5)))"#),
            (r#"$"x y"[1 - 1]"#, r#"$"x y"[1 - 1]"#),
            ("($.a + 1)[0]", r#"($."a" + 1)[0]"#),
        ] {
            assert_eq!(super::path::write(&parse(path).unwrap()), expected, "{path}");
        }
    }
}
