//! Rewrites forms of catalog queries that the planner does not support.
//!
//! An oid is a number here. PostgreSQL's `regclass` and similar types are oids that print as names. So a cast to one of
//! them becomes a call that returns the oid, or the name where the value is printed: as a column of a SELECT, and in a
//! cast to text.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, ObjectName, Select, SelectItem, Statement, TableFactor, Value, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::column_names::column_name;
use crate::syntax::{call, cast, folded, is_named, number, quoted, string, take, unnamed};
use crate::walk::{Stop, walk, walk_mut};

/// The types that are oids with a name. The suffix `*` names the function that returns the oid, `_name*` the one that
/// returns the name.
const REFERENCE_TYPES: &[&str] = &["regclass", "regtype", "regnamespace", "regrole"];
/// Functions that return an oid of such a type.
const REFERENCE_FUNCTIONS: &[&str] = &["to_regclass", "to_regtype"];
/// Keywords that are function calls without parentheses.
const KEYWORD_FUNCTIONS: &[&str] = &["current_schema", "current_role"];

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
            match item {
                SelectItem::ExprWithAlias { expr, .. } => replace_oid_with_name(expr),
                // The column name depends on types that are rewritten below, so it is fixed first.
                SelectItem::UnnamedExpr(expr) if walk(expr, &mut TypeNameFinder).is_break() => {
                    let alias = quoted(column_name(expr));
                    let mut expr = take(expr);
                    replace_oid_with_name(&mut expr);
                    *item = SelectItem::ExprWithAlias { expr, alias };
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Stop> {
        if let TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } = factor {
            strip_schema(name);
        }
        if let TableFactor::Table { name, args: Some(args), alias, with_ordinality, .. } = factor
            && is_named(name, "unnest")
        {
            // Without a schema, the parser produces this node.
            let (args, alias, with_ordinality) = (args.args.clone(), alias.clone(), *with_ordinality);
            *factor = TableFactor::Function { lateral: false, name: name.clone(), args, with_ordinality, alias };
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Stop> {
        match expression {
            Expr::Function(function) => {
                strip_schema(&mut function.name);
                name_declared_type(function);
            }
            Expr::Identifier(name) => {
                let word = name.value.to_lowercase();
                if name.quote_style.is_none() && KEYWORD_FUNCTIONS.contains(&word.as_str()) {
                    *expression = call(&word, Vec::new());
                }
            }
            // After a name, the field is a column of a table, which is an identifier.
            Expr::CompoundFieldAccess { root, access_chain }
                if !matches!(root.as_ref(), Expr::Identifier(_) | Expr::CompoundIdentifier(_)) =>
            {
                access_chain.iter_mut().for_each(name_field);
            }
            Expr::Collate { expr, collation } if is_default(collation) => *expression = take(expr),
            Expr::AnyOp { compare_op, .. } | Expr::AllOp { compare_op, .. } => plain_operator(compare_op),
            Expr::BinaryOp { left, op, right } => {
                plain_operator(op);
                compare_by_name(left, right);
                compare_by_name(right, left);
            }
            Expr::InList { expr, list, .. } => list.iter_mut().for_each(|item| compare_by_name(expr, item)),
            Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, .. } => {
                plain_type(data_type);
                if let Some(replaced) = rewrite_cast(expr, data_type) {
                    *expression = replaced;
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Finds a type or a field of a row, whose column name would be lost when it is rewritten.
struct TypeNameFinder;

impl Visitor for TypeNameFinder {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match expression {
            Expr::Cast { data_type: DataType::Custom(..) | DataType::Regclass, .. }
            | Expr::CompoundFieldAccess { .. } => ControlFlow::Break(()),
            expression if name_function_for(expression).is_some() => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
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

/// Returns the last part of a name in `pg_catalog`, in lower case.
fn own_name(name: &ObjectName) -> Option<String> {
    let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
    match parts.as_slice() {
        [only] => Some(only.value.to_lowercase()),
        [schema, last] if schema.value.eq_ignore_ascii_case(PG_CATALOG) => Some(last.value.to_lowercase()),
        _ => None,
    }
}

fn strip_schema(name: &mut ObjectName) {
    if let [schema, last] = name.0.as_slice()
        && let (Some(schema), Some(last)) = (schema.as_ident(), last.as_ident())
        && (schema.value.eq_ignore_ascii_case(PG_CATALOG)
            || schema.value.eq_ignore_ascii_case(INFORMATION_SCHEMA) && last.value == "_pg_expandarray")
    {
        name.0.remove(0);
    }
}

/// Returns the reference type that `data_type` is.
fn reference_type(data_type: &DataType) -> Option<&'static str> {
    let name = match data_type {
        DataType::Regclass => "regclass".to_owned(),
        DataType::Custom(name, _) => own_name(name)?,
        _ => return None,
    };
    REFERENCE_TYPES.iter().find(|data_type| **data_type == name).copied()
}

/// Returns the function that prints the name of `expression`, if it is of a reference type.
fn name_function_for(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Nested(inner) => name_function_for(inner),
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, data_type, .. } => {
            reference_type(data_type).map(|of| format!("{of}_name*"))
        }
        Expr::Function(function) => {
            let name = own_name(&function.name)?;
            REFERENCE_FUNCTIONS.contains(&name.as_str()).then(|| format!("{name}_name*"))
        }
        _ => None,
    }
}

/// Replaces an oid of a reference type with the name.
fn replace_oid_with_name(expression: &mut Expr) {
    let Some(of_name) = name_function_for(expression) else { return };
    match expression {
        Expr::Nested(inner) => replace_oid_with_name(inner),
        Expr::Cast { expr, .. } => *expression = call(&of_name, vec![take(expr)]),
        Expr::Function(function) => function.name = vec![Ident::new(of_name)].into(),
        _ => {}
    }
}

/// Returns the function that prints a name in place of the oid that the call `expression` returns.
fn name_function(expression: &Expr) -> Option<(&Function, String)> {
    let Expr::Function(function) = expression else { return None };
    let name = own_name(&function.name)?;
    let plain = name.strip_suffix('*').unwrap_or(&name);
    let is_reference =
        name.ends_with('*') && REFERENCE_TYPES.contains(&plain) || REFERENCE_FUNCTIONS.contains(&name.as_str());
    is_reference.then(|| (function, format!("{plain}_name*")))
}

/// Returns the replacement for the cast of `operand` to a type that the planner does not support.
fn rewrite_cast(operand: &mut Expr, data_type: &mut DataType) -> Option<Expr> {
    if let Some(of) = reference_type(data_type) {
        return Some(call(&format!("{of}*"), vec![take(operand)]));
    }
    let is_text = matches!(data_type, DataType::Text | DataType::Varchar(_) | DataType::CharacterVarying(_));
    if is_text && let Some((function, of_name)) = name_function(operand) {
        let mut function = function.clone();
        function.name = vec![Ident::new(of_name)].into();
        *operand = Expr::Function(function);
        return None;
    }
    let DataType::Custom(name, _) = data_type else { return None };
    let is_quoted =
        matches!(name.0.as_slice(), [part] if part.as_ident().is_some_and(|ident| ident.quote_style.is_some()));
    match own_name(name)?.as_str() {
        "oid" | "xid" | "cid" => *data_type = DataType::BigInt(None),
        "char" if is_quoted => return Some(first_byte(take(operand))),
        "regproc" | "regprocedure" => {
            if let Expr::Value(value) = operand
                && let Value::SingleQuotedString(text) = &mut value.value
                && let Some(bare) = text.strip_prefix("pg_catalog.")
            {
                *text = bare.to_owned();
            }
            *data_type = DataType::Text;
        }
        _ => {}
    }
    None
}

/// Builds a `"char"`: the first byte of a text, or the character with a number.
fn first_byte(operand: Expr) -> Expr {
    if matches!(&operand, Expr::Value(value) if matches!(value.value, Value::Number(..))) {
        return call("chr", vec![operand]);
    }
    call("left", vec![cast(operand, DataType::Text), number(1)])
}

/// Strips the schema `pg_catalog` from `data_type`.
fn plain_type(data_type: &mut DataType) {
    match data_type {
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => plain_type(element),
        DataType::Custom(name, modifiers) => {
            let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
            let [schema, own] = parts.as_slice() else { return };
            if schema.value.eq_ignore_ascii_case(INFORMATION_SCHEMA) {
                *data_type = match own.value.to_lowercase().as_str() {
                    "cardinal_number" => DataType::Integer(None),
                    _ => DataType::Text,
                };
            } else if schema.value.eq_ignore_ascii_case(PG_CATALOG) {
                let text = match modifiers.as_slice() {
                    [] => own.to_string(),
                    modifiers => format!("{own}({})", modifiers.join(", ")),
                };
                let parsed = Parser::new(&PostgreSqlDialect {}).try_with_sql(&text);
                match parsed.and_then(|mut parser| parser.parse_data_type()) {
                    Ok(parsed) => *data_type = parsed,
                    Err(_) => strip_schema(name),
                }
            }
        }
        _ => {}
    }
}

/// Replaces `OPERATOR(pg_catalog.~)` with `~`.
fn plain_operator(op: &mut BinaryOperator) {
    let BinaryOperator::PGCustomBinaryOperator(parts) = op else { return };
    let symbol = match parts.as_slice() {
        [symbol] => symbol,
        [schema, symbol] if schema.eq_ignore_ascii_case(PG_CATALOG) => symbol,
        _ => return,
    };
    // Parses the symbol as an operator between two operands.
    let parsed = Parser::new(&PostgreSqlDialect {}).try_with_sql(&format!("a {symbol} b"));
    if let Ok(Expr::BinaryOp { op: plain, .. }) = parsed.and_then(|mut parser| parser.parse_expr()) {
        *op = plain;
    }
}

fn is_default(collation: &ObjectName) -> bool {
    own_name(collation).is_some_and(|name| name == "default")
}

/// Compares by name if the other side is the name of a type.
fn compare_by_name(name: &Expr, other: &mut Expr) {
    let is_name = |expression: &Expr| {
        matches!(expression, Expr::Function(function)
            if is_named(&function.name, "pg_typeof") || is_named(&function.name, "regtype_name*"))
    };
    if !is_name(name) {
        return;
    }
    match other {
        Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)) => {
            *other = call("regtype_name*", vec![take(other)]);
        }
        Expr::Function(function) if is_named(&function.name, "regtype*") => {
            function.name = vec![Ident::new("regtype_name*")].into();
        }
        _ => {}
    }
}

/// Adds the name of the type to `pg_typeof(x::type)` if planning would lose it.
fn name_declared_type(function: &mut Function) {
    if !is_named(&function.name, "pg_typeof") {
        return;
    }
    let FunctionArguments::List(list) = &mut function.args else { return };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Cast { data_type, .. }))] = list.args.as_slice() else {
        return;
    };
    let name = match data_type {
        DataType::Varchar(_) | DataType::CharacterVarying(_) | DataType::CharVarying(_) => "character varying",
        DataType::Char(_) | DataType::Character(_) => "character",
        DataType::Uuid => "uuid",
        DataType::Custom(name, _) if is_named(name, "name") => "name",
        _ => return,
    };
    list.args.push(unnamed(string(name)));
}
