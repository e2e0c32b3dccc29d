//! `information_schema`, and `pg_tables` and `pg_views` of PostgreSQL's `pg_catalog`, over what one caller may see.
//!
//! An engine determines what a statement needs of the catalogs ([`find_catalog_needs`]), before any of their rows are
//! built, and lists the tables and columns that its caller may see ([`VisibleObjects`]). From these, this module builds rows
//! ([`catalog_rows`]) and functions ([`catalog_functions`]). Names of `pg_catalog`, and functions without parentheses, are
//! rewritten to forms that the planner supports. Nothing in this module looks up tables itself.

mod functions;
mod relations;
mod type_name;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, Select, SelectItem, Statement, Value, Visitor, VisitorMut,
};

use crate::column_names::column_name;
use crate::syntax::{call, folded, is_named, last_identifier, quoted, string, take, unnamed};
use crate::walk::{Stop, any_expression, walk, walk_mut};
use functions::is_function;
use relations::{PG_CATALOG, relation_name};
use type_name::sql_name_of;

pub use relations::{PUBLIC_SCHEMA, VisibleObjects, VisibleTable, catalog_rows, relation_name as catalog_name};
pub(crate) use type_name::resolve_type_names;

/// Returns the functions of the session, over no tables, and `pg_typeof`.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let mut all = functions::functions(&Arc::default());
    all.push(type_name::function());
    all
}

/// Returns the functions of the session over `objects`. They replace the functions of the same names, which see no
/// tables.
pub fn catalog_functions(objects: &Arc<VisibleObjects>) -> Vec<ScalarUDF> {
    functions::functions(objects)
}

/// Relations whose rows describe columns.
const COLUMN_RELATIONS: &[&str] =
    &["information_schema.column_privileges", "information_schema.columns", "information_schema.role_column_grants"];

/// The parts of the catalogs that a statement needs.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CatalogNeeds {
    /// The full names of the catalogs that the statement may read.
    pub relations: BTreeSet<&'static str>,
    /// Whether the statement needs columns, and not only tables.
    pub columns: bool,
    functions: bool,
}

/// Returns the parts of the catalogs that `statement` needs; `None` if it needs none.
pub fn find_catalog_needs(statement: &Statement) -> Option<CatalogNeeds> {
    let mut needs = CatalogNeeds::default();
    // The visitor never breaks.
    let _ = walk(statement, &mut needs);
    (needs != CatalogNeeds::default()).then_some(needs)
}

impl Visitor for CatalogNeeds {
    type Break = ();

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
        let found = match parts.as_slice() {
            [name] => relation_name(None, &name.value),
            [.., schema, name] => relation_name(Some(&schema.value), &name.value),
            [] => None,
        };
        if let Some(relation) = found {
            self.relations.insert(relation);
            self.columns |= COLUMN_RELATIONS.contains(&relation);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        self.functions |= match expression {
            Expr::Function(function) => {
                last_identifier(&function.name).is_some_and(|name| is_function(&name.value.to_lowercase()))
            }
            Expr::Identifier(name) => is_keyword_function(name),
            _ => false,
        };
        ControlFlow::Continue(())
    }
}

/// Keywords that are function calls without parentheses.
const KEYWORD_FUNCTIONS: &[&str] = &["current_schema", "current_role"];

/// Whether `name` is a function call without parentheses.
fn is_keyword_function(name: &Ident) -> bool {
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

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field};

    use super::*;

    #[test]
    fn every_catalog_has_rows_that_fit_its_columns() {
        let columns = vec![
            Arc::new(Field::new("id", DataType::Int64, false)),
            Arc::new(Field::new("name", DataType::Utf8, true)),
        ];
        let table = VisibleTable { schema: PUBLIC_SCHEMA.to_owned(), name: "flights".to_owned(), columns };
        let objects = VisibleObjects::new("db", "ann", vec![table]);
        for name in relations::relation_names() {
            catalog_rows(name, &objects).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        assert_eq!(catalog_rows("information_schema.columns", &objects).unwrap().num_rows(), 2);
        assert_eq!(catalog_rows("pg_catalog.pg_tables", &objects).unwrap().num_rows(), 1);
    }
}
