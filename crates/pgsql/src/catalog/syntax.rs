//! Rewrites names of `pg_catalog`, and functions without parentheses, to forms that the planner supports.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, Select, SelectItem, Statement, Value, VisitorMut,
};

use super::relation::PG_CATALOG;
use super::types::sql_name_of;
use crate::column_names::column_name;
use crate::syntax::{call, folded, is_named, quoted, string, take, unnamed};
use crate::walk::{Stop, any_expression, walk_mut};

/// Keywords that are function calls without parentheses.
const KEYWORD_FUNCTIONS: &[&str] = &["current_schema", "current_role"];

/// Whether `name` is a function call without parentheses.
pub(super) fn is_keyword_function(name: &Ident) -> bool {
    name.quote_style.is_none() && KEYWORD_FUNCTIONS.contains(&name.value.to_lowercase().as_str())
}

/// Rewrites the parts of `statement` that refer to the catalogs.
pub(crate) fn rewrite_statement(statement: &mut Statement) {
    // The visitor never breaks.
    let _ = walk_mut(statement, &mut CatalogRewriter);
}

struct CatalogRewriter;

impl VisitorMut for CatalogRewriter {
    type Break = Stop;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Stop> {
        for item in &mut select.projection {
            // The column name depends on fields that are rewritten below, so it is fixed first.
            if let SelectItem::UnnamedExpr(expr) = item
                && any_expression(&*expr, |inner| matches!(inner, Expr::CompoundFieldAccess { .. }))
            {
                let alias = quoted(column_name(expr));
                *item = SelectItem::ExprWithAlias { expr: take(expr), alias };
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Stop> {
        match expression {
            Expr::Function(function) => {
                strip_schema(&mut function.name);
                name_declared_type(function);
            }
            Expr::Identifier(name) if is_keyword_function(name) => {
                *expression = call(&name.value.to_lowercase(), Vec::new());
            }
            // After a name, the field is a column of a table, which is an identifier.
            Expr::CompoundFieldAccess { root, access_chain }
                if !matches!(root.as_ref(), Expr::Identifier(_) | Expr::CompoundIdentifier(_)) =>
            {
                access_chain.iter_mut().for_each(name_field);
            }
            Expr::BinaryOp { left, right, .. } => {
                name_compared_type(left, right);
                name_compared_type(right, left);
            }
            Expr::InList { expr, list, .. } => list.iter_mut().for_each(|item| name_compared_type(expr, item)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Writes `(row).field` in the form that the planner supports.
fn name_field(access: &mut AccessExpr) {
    if let AccessExpr::Dot(field) = access
        && let Expr::Identifier(name) = field
    {
        *field = string(folded(name));
    }
}

/// Strips the schema `pg_catalog` from the name of a function.
fn strip_schema(name: &mut ObjectName) {
    if let [schema, _] = name.0.as_slice()
        && schema.as_ident().is_some_and(|schema| schema.value.eq_ignore_ascii_case(PG_CATALOG))
    {
        name.0.remove(0);
    }
}

/// Whether `expression` is a call of `pg_typeof`.
fn is_type_name(expression: &Expr) -> bool {
    matches!(expression, Expr::Function(function) if is_named(&function.name, "pg_typeof"))
}

/// Names the type that is compared with the result of `pg_typeof` as that function does: `'int4'` is `integer`.
fn name_compared_type(expression: &Expr, other: &mut Expr) {
    if is_type_name(expression)
        && let Expr::Value(value) = other
        && let Value::SingleQuotedString(text) = &mut value.value
        && let Some(name) = sql_name_of(text)
    {
        *text = name;
    }
}

/// Adds the name of the type to `pg_typeof(x::type)` if planning would lose it.
fn name_declared_type(function: &mut Function) {
    if !is_named(&function.name, "pg_typeof") {
        return;
    }
    let FunctionArguments::List(list) = &mut function.args else { return };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = list.args.as_slice() else { return };
    let name = match argument {
        Expr::Cast { data_type, .. } => lost_type_name(data_type),
        argument if is_type_name(argument) => Some("regtype".to_owned()),
        _ => None,
    };
    list.args.extend(name.map(|name| unnamed(string(name))));
}

/// Returns PostgreSQL's name of a type that planning replaces by text, or of an array of it.
fn lost_type_name(data_type: &DataType) -> Option<String> {
    let name = match data_type {
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => {
            let element = lost_type_name(element)?;
            return Some(format!("{}[]", element.trim_end_matches("[]")));
        }
        DataType::Varchar(_) | DataType::CharacterVarying(_) | DataType::CharVarying(_) => "character varying",
        DataType::Char(_) | DataType::Character(_) => "character",
        DataType::Uuid => "uuid",
        DataType::Custom(name, _) if is_named(name, "name") => "name",
        _ => return None,
    };
    Some(name.to_owned())
}
