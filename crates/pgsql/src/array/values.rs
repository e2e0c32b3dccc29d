//! Literals of VALUES, which take the type that their column has in other rows.

use datafusion::sql::sqlparser::ast::{Array, ArrayElemTypeDef, DataType, Expr, Query, SetExpr, Value};

/// Casts the string literals of a column of VALUES to the type that other rows name.
pub(crate) fn type_literals(query: &mut Query) {
    let SetExpr::Values(values) = query.body.as_mut() else { return };
    let columns = values.rows.first().map_or(0, |row| row.content.len());
    for column in 0..columns {
        let mut types = values.rows.iter().filter_map(|row| row.content.get(column).and_then(type_of));
        let Some(data_type) = types.next().filter(|first| types.all(|other| other == *first)) else { continue };
        for row in &mut values.rows {
            if let Some(literal) = row.content.get_mut(column).filter(|value| is_string(value)) {
                let text = std::mem::replace(literal, Expr::Value(Value::Null.into()));
                *literal = cast(text, data_type.clone());
            }
        }
    }
}

fn cast(expression: Expr, data_type: DataType) -> Expr {
    Expr::Cast {
        kind: datafusion::sql::sqlparser::ast::CastKind::DoubleColon,
        expr: Box::new(expression),
        data_type,
        array: false,
        format: None,
    }
}

fn is_string(expression: &Expr) -> bool {
    matches!(expression, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)))
}

/// The type that an expression names.
fn type_of(expression: &Expr) -> Option<DataType> {
    match expression {
        Expr::Cast { data_type, array: false, .. } => Some(data_type.clone()),
        Expr::Array(Array { elem, .. }) if !elem.is_empty() && elem.iter().all(is_string) => {
            Some(DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(DataType::Text), None)))
        }
        _ => None,
    }
}
