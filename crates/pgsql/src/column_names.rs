//! The names that PostgreSQL gives to columns without an alias (its `FigureColname`).

use datafusion::sql::sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, BinaryOperator, DataType, Expr, Function, Query, SelectItem, SetExpr, TrimWhereField,
};

use crate::syntax::{folded, is_zoned, last_identifier};

/// The name of a column that nothing names.
const UNNAMED: &str = "?column?";

/// A name, and whether an outer cast or CASE keeps it.
struct ColumnNameCandidate {
    name: String,
    is_strong: bool,
}

fn strong_name(name: impl Into<String>) -> Option<ColumnNameCandidate> {
    Some(ColumnNameCandidate { name: name.into(), is_strong: true })
}

fn weak_name(name: impl Into<String>) -> Option<ColumnNameCandidate> {
    Some(ColumnNameCandidate { name: name.into(), is_strong: false })
}

/// Returns the name of the column for `expression`.
pub(crate) fn column_name(expression: &Expr) -> String {
    figure(expression).map_or_else(|| UNNAMED.to_owned(), |figured| figured.name)
}

fn figure(expression: &Expr) -> Option<ColumnNameCandidate> {
    match expression {
        Expr::Identifier(name) => strong_name(&name.value),
        Expr::CompoundIdentifier(parts) => strong_name(&parts.last()?.value),
        Expr::CompoundFieldAccess { root, access_chain } => figure_access(root, access_chain),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => figure(inner),
        Expr::Cast { expr, data_type, .. } => figure_cast(expr, data_type),
        Expr::TypedString(typed) => weak_name(type_name(&typed.data_type)),
        Expr::Interval(_) => weak_name("interval"),
        Expr::Case { else_result, .. } => match else_result.as_deref().and_then(figure) {
            Some(figured) if figured.is_strong => Some(figured),
            _ => weak_name("case"),
        },
        Expr::Function(function) => strong_name(function_name(function)?),
        Expr::Subquery(query) => strong_name(first_name(query)),
        other => strong_name(name_of_syntax(other)?),
    }
}

/// Returns the names of functions that have a syntax of their own.
fn name_of_syntax(expression: &Expr) -> Option<&'static str> {
    Some(match expression {
        Expr::Extract { .. } => "extract",
        Expr::Ceil { .. } => "ceil",
        Expr::Floor { .. } => "floor",
        Expr::Position { .. } => "position",
        Expr::Substring { shorthand: true, .. } => "substr",
        Expr::Substring { .. } => "substring",
        Expr::Trim { trim_where: Some(TrimWhereField::Leading), .. } => "ltrim",
        Expr::Trim { trim_where: Some(TrimWhereField::Trailing), .. } => "rtrim",
        Expr::Trim { .. } => "btrim",
        Expr::Overlay { .. } => "overlay",
        Expr::AtTimeZone { .. } => "timezone",
        Expr::IsNormalized { .. } => "is_normalized",
        Expr::Exists { negated: false, .. } => "exists",
        Expr::Array(_) => "array",
        Expr::Tuple(_) => "row",
        Expr::BinaryOp { op: BinaryOperator::Overlaps, .. } => "overlaps",
        _ => return None,
    })
}

fn figure_access(root: &Expr, chain: &[AccessExpr]) -> Option<ColumnNameCandidate> {
    let field = chain.iter().rev().find_map(|access| match access {
        AccessExpr::Dot(Expr::Identifier(name)) => Some(name.value.clone()),
        AccessExpr::Dot(_) | AccessExpr::Subscript(_) => None,
    });
    match field {
        Some(name) => strong_name(name),
        None => figure(root),
    }
}

fn figure_cast(inner: &Expr, data_type: &DataType) -> Option<ColumnNameCandidate> {
    match figure(inner) {
        Some(figured) if figured.is_strong => Some(figured),
        _ => weak_name(type_name(data_type)),
    }
}

fn function_name(function: &Function) -> Option<String> {
    last_identifier(&function.name).map(folded)
}

/// Returns the name of the first column of `query`.
fn first_name(query: &Query) -> String {
    let mut body = query.body.as_ref();
    loop {
        match body {
            SetExpr::Query(query) => body = query.body.as_ref(),
            SetExpr::SetOperation { left, .. } => body = left.as_ref(),
            SetExpr::Values(_) => return "column1".to_owned(),
            SetExpr::Select(select) => {
                return match select.projection.first() {
                    Some(SelectItem::ExprWithAlias { alias, .. }) => alias.value.clone(),
                    Some(SelectItem::UnnamedExpr(expression)) => column_name(expression),
                    _ => UNNAMED.to_owned(),
                };
            }
            _ => return UNNAMED.to_owned(),
        }
    }
}

/// Returns PostgreSQL's own name of `data_type`. For an array it is the name of the element type.
fn type_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => return type_name(element),
        DataType::SmallInt(_) | DataType::Int2(_) => "int2",
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => "int4",
        DataType::BigInt(_) | DataType::Int8(_) => "int8",
        DataType::Real | DataType::Float4 => "float4",
        DataType::Float(_) | DataType::Double(_) | DataType::DoublePrecision | DataType::Float8 => "float8",
        DataType::Numeric(_) | DataType::Decimal(_) | DataType::Dec(_) => "numeric",
        DataType::Varchar(_) | DataType::CharacterVarying(_) | DataType::CharVarying(_) => "varchar",
        DataType::Char(_) | DataType::Character(_) => "bpchar",
        DataType::Bool | DataType::Boolean => "bool",
        DataType::Bit(_) => "bit",
        DataType::BitVarying(_) | DataType::VarBit(_) => "varbit",
        DataType::Interval { .. } => "interval",
        DataType::Timestamp(_, zone) if is_zoned(zone) => "timestamptz",
        DataType::Timestamp(..) => "timestamp",
        DataType::Time(_, zone) if is_zoned(zone) => "timetz",
        DataType::Time(..) => "time",
        DataType::Custom(name, _) => return last_identifier(name).map(folded).unwrap_or_default(),
        other => return other.to_string().to_lowercase(),
    };
    name.to_owned()
}
