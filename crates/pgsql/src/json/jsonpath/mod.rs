//! SQL/JSON paths: `jsonb_path_query` and its siblings, `@?` and `@@`.

mod accessor;
mod budget;
mod decimal;
mod layout;
mod lexer;
mod method;
mod parser;
mod predicate;
mod run;
mod syntax;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use self::budget::{Budget, Found};
use self::run::{Failure, Item, Runner};
use self::syntax::JsonPath;
use super::document::{check, check_count, finish, is_text, printed, values};
use super::elements::lists;
use super::function::{Call, Column, Function, Texts, check_bytes};
use super::kind::Kind;
use super::reader::parse as parse_document;
use super::text::write_value;
use super::value::Value;

/// The functions, each also under the name that ends in `_tz`: the two differ for `datetime()` only, which is refused.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let list = |fields: &[FieldRef]| checked(fields, DataType::new_list(Kind::Jsonb.data_type(), true));
    let document = |fields: &[FieldRef]| checked(fields, Kind::Jsonb.data_type());
    let boolean = |fields: &[FieldRef]| checked(fields, DataType::Boolean);
    vec![
        Function::new("jsonb_path_query*", argument_types, list, query),
        Function::new("jsonb_path_query_tz*", argument_types, list, query),
        Function::new("jsonb_path_query_array", argument_types, document, query_array),
        Function::new("jsonb_path_query_array_tz", argument_types, document, query_array),
        Function::new("jsonb_path_query_first", argument_types, document, query_first),
        Function::new("jsonb_path_query_first_tz", argument_types, document, query_first),
        Function::new("jsonb_path_exists", argument_types, boolean, |call| exists(call, false)),
        Function::new("jsonb_path_exists_tz", argument_types, boolean, |call| exists(call, false)),
        Function::new("jsonb_path_match", argument_types, boolean, |call| matches(call, false)),
        Function::new("jsonb_path_match_tz", argument_types, boolean, |call| matches(call, false)),
    ]
}

/// What `@?` is.
pub(super) fn exists_operator() -> ScalarUDF {
    let boolean = |fields: &[FieldRef]| checked(fields, DataType::Boolean);
    Function::new("jsonb_path_exists_opr", argument_types, boolean, |call| exists(call, true))
}

/// What `@@` is.
pub(super) fn match_operator() -> ScalarUDF {
    let boolean = |fields: &[FieldRef]| checked(fields, DataType::Boolean);
    Function::new("jsonb_path_match_opr", argument_types, boolean, |call| matches(call, true))
}

/// The arguments of the functions, of which the last two may be left out.
pub(super) const PARAMETERS: [&str; 4] = ["target", "path", "vars", "silent"];

fn argument_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [document, path, rest @ ..] if is_text(path) && rest.len() <= 2 => {
            let flag = rest.get(1).map(|_| DataType::Boolean);
            let given = [document.clone(), DataType::Utf8].into_iter().chain(rest.first().cloned());
            Ok(given.chain(flag).collect())
        }
        _ => {
            plan_err!("functions of jsonpath have as arguments a jsonb, a path as text, variables as jsonb, a boolean")
        }
    }
}

fn checked(fields: &[FieldRef], returns: DataType) -> Result<DataType> {
    check_count("jsonb_path_…", fields, 2, 4)?;
    check("jsonb_path_…", Kind::Jsonb, &fields[0])?;
    if let Some(variables) = fields.get(2) {
        check("jsonb_path_…", Kind::Jsonb, variables)?;
    }
    Ok(returns)
}

/// The arguments of a call. A path that is constant is read once.
struct Arguments {
    documents: Column<StringArray>,
    paths: Column<StringArray>,
    path: Option<JsonPath>,
    variables: Option<Column<StringArray>>,
    silent: Option<Column<BooleanArray>>,
}

impl Arguments {
    fn new(call: &Call<'_>) -> Result<Self> {
        let (documents, paths) = (call.documents(0, Kind::Jsonb)?, call.texts(1)?);
        let path = match paths.get(0).filter(|_| paths.is_constant) {
            Some(path) => Some(parser::parse(path)?),
            None => None,
        };
        let variables = if call.args.len() > 2 { Some(call.documents(2, Kind::Jsonb)?) } else { None };
        let silent = match call.args.len() {
            4 => Some(call.column(3, |array| Ok(array.as_boolean().clone()))?),
            _ => None,
        };
        Ok(Self { documents, paths, path, variables, silent })
    }

    /// What the arguments of `row` are; none if one is NULL.
    fn of_row(&self, row: usize) -> Option<(&str, &str, Option<&str>, bool)> {
        let silent = match &self.silent {
            Some(silent) if silent.values.is_null(silent.place(row)) => return None,
            Some(silent) => silent.values.value(silent.place(row)),
            None => false,
        };
        let variables = match &self.variables {
            Some(variables) => Some(variables.get(row)?),
            None => None,
        };
        Some((self.documents.get(row)?, self.paths.get(row)?, variables, silent))
    }
}

/// What a path leads to, and whether that is all, or an error was suppressed.
struct Outcome<'v> {
    items: Vec<Item<'v>>,
    is_complete: bool,
    is_found: bool,
}

/// Evaluates the path of each row, and gives `take` what it leads to.
fn evaluate<T>(
    call: &Call<'_>,
    is_existence: bool,
    is_silent: bool,
    mut take: impl FnMut(Outcome<'_>, bool) -> Result<Option<T>>,
) -> Result<Vec<Option<T>>> {
    let arguments = Arguments::new(call)?;
    let bytes = (0..call.rows).filter_map(|row| arguments.documents.get(row)).map(str::len).sum();
    let mut budget = Budget::new(bytes);
    let mut one = |row| {
        let Some((document, path, variables, silent)) = arguments.of_row(row) else { return Ok(None) };
        let own = if arguments.path.is_none() { Some(parser::parse(path)?) } else { None };
        let Some(path) = arguments.path.as_ref().or(own.as_ref()) else { return Ok(None) };
        let (document, variables) = (parse_document(document)?, variables.map(parse_document).transpose()?);
        let silent = silent || is_silent;
        let mut runner = Runner::new(path, &document, variables.as_ref(), !silent, &mut budget)?;
        let mut found = if is_existence && path.is_lax { Found::first() } else { Found::all() };
        let root = Item::Borrowed(&document);
        let outcome = match runner.follow(&path.path, &root, &mut found) {
            Ok(is_found) => {
                let is_found = found.0.as_ref().map_or(is_found, |items| !items.is_empty());
                Outcome { is_found, is_complete: true, items: found.into_items() }
            }
            Err(Failure::Suppressible(_)) if silent => {
                Outcome { is_found: false, is_complete: false, items: found.into_items() }
            }
            Err(Failure::Suppressible(message)) => return Err(exec_datafusion_err!("{message}")),
            Err(Failure::Error(error)) => return Err(error),
        };
        take(outcome, silent)
    };
    (0..call.rows).map(&mut one).collect::<Result<_, DataFusionError>>()
}

fn query(call: &Call<'_>) -> Result<ArrayRef> {
    let mut texts = Texts::new(call.rows);
    let lengths = evaluate(call, false, false, |outcome, _| {
        for item in &outcome.items {
            texts.push(Some(printed(item)))?;
        }
        Ok(Some(outcome.items.len()))
    })?;
    lists(call, &lengths, finish(texts, Some(Kind::Jsonb))?)
}

fn query_array(call: &Call<'_>) -> Result<ArrayRef> {
    let mut made = 0;
    let mut found = evaluate(call, false, false, |outcome, _| {
        let mut out = String::from("[");
        for (place, item) in outcome.items.iter().enumerate() {
            out.push_str(if place > 0 { ", " } else { "" });
            write_value(item, &mut out);
            check_bytes(out.len())?;
        }
        out.push(']');
        made += out.len();
        check_bytes(made)?;
        Ok(Some(out))
    })?;
    values(call, Some(Kind::Jsonb), |row| Ok(found[row].take()))
}

fn query_first(call: &Call<'_>) -> Result<ArrayRef> {
    let mut found = evaluate(call, false, false, |outcome, _| Ok(outcome.items.first().map(|item| printed(item))))?;
    values(call, Some(Kind::Jsonb), |row| Ok(found[row].take()))
}

fn exists(call: &Call<'_>, is_silent: bool) -> Result<ArrayRef> {
    let found = evaluate(call, true, is_silent, |outcome, _| Ok(outcome.is_complete.then_some(outcome.is_found)))?;
    Ok(Arc::new(BooleanArray::from(found)))
}

fn matches(call: &Call<'_>, is_silent: bool) -> Result<ArrayRef> {
    let found = evaluate(call, false, is_silent, |outcome, silent| match outcome.items.as_slice() {
        [one] if matches!(one.as_ref(), Value::Null) => Ok(None),
        [one] if matches!(one.as_ref(), Value::Bool(_)) => Ok(Some(matches!(one.as_ref(), Value::Bool(true)))),
        _ if silent => Ok(None),
        _ => exec_err!("single boolean result is expected"),
    })?;
    Ok(Arc::new(BooleanArray::from(found)))
}
