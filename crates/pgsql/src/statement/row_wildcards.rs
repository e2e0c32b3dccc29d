//! Expands `t.*` within a row constructor, as in `ROW(t.*, 1)`, into the columns of the table.

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, OrderByExpr, Select,
};

use super::columns::NameScope;
use crate::syntax::{is_named, quoted, single_identifier, unnamed};
use crate::walk::for_each_expression;

/// The columns of each table that a row constructor names, by the name of the table.
type RowColumns = BTreeMap<String, Vec<Expr>>;

/// Expands the wildcards in row constructors of `select` and of its ORDER BY. Tables with unknown columns stay as they are.
pub(super) fn expand(select: &mut Select, order_by: &mut [OrderByExpr], scope: &mut NameScope<'_>) {
    let mut tables: Vec<ObjectName> = Vec::new();
    let mut find = |expression: &mut Expr, depth: usize| {
        if depth == 0 {
            tables.extend(wildcard_tables(expression));
        }
    };
    for_each_expression(select, &mut find);
    for order in order_by.iter_mut() {
        for_each_expression(&mut order.expr, &mut find);
    }
    let mut columns = RowColumns::new();
    for name in tables {
        if let Some(table) = single_identifier(&name)
            && let Some(names) = scope.table_columns_in_select(select, &name)
        {
            let column = |name: String| Expr::CompoundIdentifier(vec![table.clone(), quoted(name)]);
            columns.insert(table.value.clone(), names.into_iter().map(column).collect());
        }
    }
    if columns.is_empty() {
        return;
    }
    let replace = |expression: &mut Expr, depth: usize| {
        if depth == 0 {
            expand_row(expression, &columns);
        }
    };
    for_each_expression(select, replace);
    for order in order_by {
        for_each_expression(&mut order.expr, replace);
    }
}

/// Returns the tables whose columns `expression`, a row constructor, contains.
fn wildcard_tables(expression: &Expr) -> Vec<ObjectName> {
    match expression {
        Expr::Function(function) if is_named(&function.name, "row") => {
            let FunctionArguments::List(list) = &function.args else { return Vec::new() };
            list.args.iter().filter_map(wildcard_argument).cloned().collect()
        }
        Expr::Tuple(values) => values.iter().filter_map(wildcard_value).cloned().collect(),
        _ => Vec::new(),
    }
}

fn wildcard_argument(argument: &FunctionArg) -> Option<&ObjectName> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => Some(name),
        _ => None,
    }
}

fn wildcard_value(value: &Expr) -> Option<&ObjectName> {
    if let Expr::QualifiedWildcard(name, _) = value { Some(name) } else { None }
}

fn columns_of<'a>(table: Option<&ObjectName>, columns: &'a RowColumns) -> Option<&'a Vec<Expr>> {
    columns.get(&single_identifier(table?)?.value)
}

fn expand_row(expression: &mut Expr, columns: &RowColumns) {
    match expression {
        Expr::Function(function) if is_named(&function.name, "row") => {
            let FunctionArguments::List(list) = &mut function.args else { return };
            for argument in std::mem::take(&mut list.args) {
                match columns_of(wildcard_argument(&argument), columns) {
                    Some(columns) => list.args.extend(columns.iter().cloned().map(unnamed)),
                    None => list.args.push(argument),
                }
            }
        }
        Expr::Tuple(values) => {
            for value in std::mem::take(values) {
                match columns_of(wildcard_value(&value), columns) {
                    Some(columns) => values.extend(columns.iter().cloned()),
                    None => values.push(value),
                }
            }
        }
        _ => {}
    }
}
