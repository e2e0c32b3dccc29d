//! Rewrites syntax of arrays into function calls: literals and casts of them, `ARRAY(SELECT …)` as an aggregate over the
//! subquery, subscripts, and comparisons with ANY and ALL.

use datafusion::common::{Result, not_impl_err, plan_err};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array, ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Distinct, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments, GroupByExpr, Ident, ObjectName,
    OrderBy, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, Subscript, TableFactor, UnaryOperator,
    Value,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::elements::QUANTIFIED;
use super::shape;
use crate::in_list::VALUE_OF_ROW;
use crate::list::written_dimensions;
use crate::set_returning::list_function;
use crate::syntax::{
    argument_values, call, cast, function, is_named, nested, number, sort_distinct, string, take, unnamed,
    without_parentheses,
};
use crate::walk::any_expression;

/// The upper bound of a slice without an upper bound.
const LAST_SUBSCRIPT: &str = "2147483647";

/// Rewrites syntax that DataFusion's planner does not support, or interprets differently, into calls of functions of
/// this module. Inner expressions are already rewritten.
pub(crate) fn rewrite_syntax(expression: &mut Expr) -> Result<()> {
    let rewritten = match expression {
        Expr::AnyOp { left, compare_op, right, .. } => call_quantified(left, compare_op, right, true),
        Expr::AllOp { left, compare_op, right } => call_quantified(left, compare_op, right, false),
        Expr::Cast { expr, data_type: DataType::Text | DataType::Varchar(_), array: false, .. } => {
            check_scales(without_parentheses(expr))?;
            None
        }
        Expr::Array(Array { elem, .. }) => {
            elem.iter_mut().for_each(call_row);
            None
        }
        Expr::CompoundFieldAccess { root, access_chain } => call_subscripts(root, access_chain)?,
        Expr::Function(function) => {
            if is_named(&function.name, "array_agg") {
                sort_distinct(function);
            } else if is_named(&function.name, "unnest") {
                shape::rewrite_unnest(function);
            }
            if is_named(&function.name, "array_fill") {
                Some(plan_array_fill(&argument_values(function).unwrap_or_default())?)
            } else {
                find_array_subquery(function)?
            }
        }
        _ => None,
    };
    if let Some(rewritten) = rewritten {
        *expression = rewritten;
    }
    Ok(())
}

fn call_quantified(left: &Expr, op: &BinaryOperator, right: &Expr, is_any: bool) -> Option<Expr> {
    let right = without_parentheses(right);
    if matches!(right, Expr::Subquery(_)) {
        return None;
    }
    let is_list = match op {
        BinaryOperator::Eq => is_any,
        BinaryOperator::NotEq => !is_any,
        _ => false,
    };
    // A list has the same meaning, and lets files be pruned. But fractions in a list after a `real` are `real`, too.
    if let Expr::Array(Array { elem, .. }) = right
        && is_list
        && !elem.is_empty()
        && elem.iter().all(|element| matches!(element, Expr::Value(value) if !is_fraction(&value.value)))
    {
        let expr = Box::new(left.clone());
        return Some(nested(Expr::InList { expr, list: elem.clone(), negated: !is_any }));
    }
    let symbol = op.to_string();
    let (name, ..) = QUANTIFIED.iter().find(|(_, operator, of_any, _)| *operator == symbol && *of_any == is_any)?;
    let mut value = without_parentheses(left).clone();
    call_row(&mut value);
    Some(call(name, vec![nested(value), right.clone()]))
}

fn is_fraction(value: &Value) -> bool {
    matches!(value, Value::Number(digits, _) if digits.contains(['.', 'e', 'E']))
}

/// Writes `(a, b)` as `ROW(a, b)`, because the planner takes the former with names and literals only.
fn call_row(value: &mut Expr) {
    if let Expr::Tuple(values) = value {
        *value = call("row", std::mem::take(values));
    }
}

/// Plans `root[1][2]` and `root[1:2]`, where `root` may contain field accesses.
fn call_subscripts(root: &Expr, chain: &[AccessExpr]) -> Result<Option<Expr>> {
    let is_name = |access: &AccessExpr| match access {
        AccessExpr::Dot(_) => true,
        AccessExpr::Subscript(Subscript::Index { index: Expr::Value(value) }) => {
            matches!(value.value, Value::SingleQuotedString(_) | Value::DoubleQuotedString(_))
        }
        AccessExpr::Subscript(_) => false,
    };
    let names = chain.iter().rposition(is_name).map_or(0, |position| position + 1);
    let (names, subscripts) = chain.split_at(names);
    if subscripts.is_empty() {
        return Ok(None);
    }
    let root = access_member(root, names);
    if subscripts.len() > 1
        && subscripts.iter().any(|access| matches!(access, AccessExpr::Subscript(Subscript::Slice { .. })))
    {
        return call_slices(root, subscripts).map(Some);
    }
    let mut indexes = Vec::new();
    for access in subscripts {
        match access {
            AccessExpr::Subscript(Subscript::Index { index }) => indexes.push(index.clone()),
            AccessExpr::Subscript(Subscript::Slice { .. }) => {
                let bounds = slice_bounds(access)?;
                return Ok(Some(call("array_slice_between*", [vec![root], bounds].concat())));
            }
            AccessExpr::Dot(_) => {
                return not_impl_err!("access to a field of an array element; unnest the array instead");
            }
        }
    }
    Ok(Some(call("array_subscript*", [vec![root], indexes].concat())))
}

/// Returns the bounds of a slice. A subscript beside slices starts at the first element.
fn slice_bounds(access: &AccessExpr) -> Result<Vec<Expr>> {
    match access {
        AccessExpr::Subscript(Subscript::Index { index }) => Ok(vec![number("1"), index.clone()]),
        AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }) => Ok(vec![
            lower_bound.clone().unwrap_or_else(|| number("1")),
            upper_bound.clone().unwrap_or_else(|| number(LAST_SUBSCRIPT)),
        ]),
        _ => not_impl_err!("slices with a stride; write two bounds: x[1:2]"),
    }
}

/// Plans `root[1:2][2:2]`.
fn call_slices(root: Expr, subscripts: &[AccessExpr]) -> Result<Expr> {
    let mut args = vec![root];
    for access in subscripts {
        args.extend(slice_bounds(access)?);
    }
    Ok(call("array_slices*", args))
}

fn access_member(root: &Expr, names: &[AccessExpr]) -> Expr {
    let identifier = |access: &AccessExpr| match access {
        AccessExpr::Dot(Expr::Identifier(name)) => Some(name.clone()),
        _ => None,
    };
    let first = match root {
        Expr::Identifier(name) => Some(vec![name.clone()]),
        Expr::CompoundIdentifier(names) => Some(names.clone()),
        _ => None,
    };
    if names.is_empty() {
        return root.clone();
    }
    match (first, names.iter().map(identifier).collect::<Option<Vec<Ident>>>()) {
        (Some(first), Some(rest)) => Expr::CompoundIdentifier([first, rest].concat()),
        _ => Expr::CompoundFieldAccess { root: Box::new(root.clone()), access_chain: names.to_vec() },
    }
}

/// Refuses the text of an array of numbers with different scales, because an Arrow array has only one scale.
fn check_scales(expression: &Expr) -> Result<()> {
    let Expr::Array(Array { elem, .. }) = expression else { return Ok(()) };
    let mut scales = elem.iter().filter_map(|element| match element {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => Some(number.split_once('.').map_or(0, |(_, fraction)| fraction.len())),
            _ => None,
        },
        _ => None,
    });
    let first = scales.next();
    if scales.all(|scale| Some(scale) == first) {
        return Ok(());
    }
    plan_err!(
        "{expression} as text is not supported, because its numbers have different scales; write them with the same \
         number of digits after the point"
    )
}

/// Finds `ARRAY(SELECT …)`.
fn find_array_subquery(function: &Function) -> Result<Option<Expr>> {
    let FunctionArguments::Subquery(query) = &function.args else { return Ok(None) };
    if !is_named(&function.name, "array") {
        return Ok(None);
    }
    rewrite_array_subquery(query).map(Some)
}

/// Rewrites casts of array literals, before the parts of the cast are rewritten.
pub(crate) fn rewrite_literals(expression: &mut Expr) -> Result<()> {
    match expression {
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, array: false, .. } => {
            if element_of(data_type).is_some() {
                type_literal(expr, data_type);
            }
            match innermost_of(data_type) {
                DataType::Text | DataType::Varchar(_) | DataType::CharacterVarying(_) => write_numbers(expr),
                element if element_of(data_type).is_some() && !has_only_numbers(expr) => cast_numbers(expr, element),
                _ => {}
            }
        }
        Expr::Array(Array { elem, named: true }) if elem.is_empty() => {
            return plan_err!("cannot determine type of empty array; write a type: ARRAY[]::integer[]");
        }
        _ => {}
    }
    Ok(())
}

fn element_of(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => Some(element),
        _ => None,
    }
}

/// Returns the type of the elements of the innermost arrays, or the type itself.
fn innermost_of(data_type: &DataType) -> &DataType {
    element_of(data_type).map_or(data_type, innermost_of)
}

fn array_of(element: DataType) -> DataType {
    DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(element), None))
}

/// Turns an empty array into text, and gives the type as many dimensions as the text has. PostgreSQL ignores the number
/// of dimensions in a type.
fn type_literal(literal: &mut Expr, data_type: &mut DataType) {
    match literal {
        Expr::Nested(inner) => type_literal(inner, data_type),
        Expr::Array(Array { elem, .. }) if elem.is_empty() => {
            *literal = string("{}");
        }
        Expr::Value(value) => {
            if let Value::SingleQuotedString(text) = &value.value
                && let Some(dimensions) = written_dimensions(text)
            {
                let element = innermost_of(data_type).clone();
                *data_type = (0..dimensions.max(1)).fold(element, |element, _| array_of(element));
            }
        }
        _ => {}
    }
}

/// Replaces numbers of different scales by their text, because an Arrow array has only one scale.
fn write_numbers(array: &mut Expr) {
    match array {
        Expr::Nested(inner) => write_numbers(inner),
        Expr::Array(Array { elem, .. }) => {
            if let Some(texts) = elem.iter().map(number_text).collect::<Option<Vec<_>>>() {
                *elem = texts.into_iter().map(string).collect();
            } else {
                elem.iter_mut().for_each(write_numbers);
            }
        }
        _ => {}
    }
}

/// Casts the number literals among the elements of an array to the type `element`. PostgreSQL casts each element, and not to
/// the common type before: `ARRAY[x, 2.5]::int[]` has a 3 also where x is a double.
fn cast_numbers(value: &mut Expr, element: &DataType) {
    match value {
        Expr::Nested(inner) => cast_numbers(inner, element),
        Expr::Array(Array { elem, .. }) => elem.iter_mut().for_each(|value| cast_numbers(value, element)),
        number if is_number(number) => *number = cast(take(number), element.clone()),
        _ => {}
    }
}

fn has_only_numbers(value: &Expr) -> bool {
    match value {
        Expr::Nested(inner) => has_only_numbers(inner),
        Expr::Array(Array { elem, .. }) => elem.iter().all(has_only_numbers),
        other => is_number(other),
    }
}

fn is_number(expression: &Expr) -> bool {
    match expression {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => is_number(expr),
        Expr::Value(value) => matches!(value.value, Value::Number(..)),
        _ => false,
    }
}

/// Returns the text of a number literal without an exponent.
fn number_text(expression: &Expr) -> Option<String> {
    match expression {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            let text = number_text(expr).filter(|text| !text.starts_with('-'))?;
            let is_zero = text.bytes().all(|digit| matches!(digit, b'0' | b'.'));
            Some(if is_zero { text } else { format!("-{text}") })
        }
        Expr::Value(value) => {
            let Value::Number(number, false) = &value.value else { return None };
            let (whole, fraction) = match number.split_once('.') {
                Some((whole, fraction)) => (whole, Some(fraction)),
                None => (number.as_str(), None),
            };
            if !whole.bytes().chain(fraction.unwrap_or_default().bytes()).all(|digit| digit.is_ascii_digit()) {
                return None;
            }
            let whole = match whole.trim_start_matches('0') {
                "" => "0",
                whole => whole,
            };
            Some(match fraction {
                Some("") | None => whole.to_owned(),
                Some(fraction) => format!("{whole}.{fraction}"),
            })
        }
        _ => None,
    }
}

/// Plans `array_fill(value, ARRAY[rows, columns])` as repeated arrays. The dimensions must be constant, because the type
/// of the array depends on them.
fn plan_array_fill(args: &[Expr]) -> Result<Expr> {
    const ADVICE: &str = "array_fill takes a typed value and constant dimensions, for instance \
                          array_fill(0, ARRAY[2, 3]); for lengths from columns write array_repeat(x, n)";
    let [value, Expr::Array(Array { elem, .. })] = args else { return plan_err!("{ADVICE}") };
    let length = |element: &Expr| match element {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse::<u64>().ok(),
            _ => None,
        },
        _ => None,
    };
    let Some(lengths) = elem.iter().map(length).collect::<Option<Vec<u64>>>() else { return plan_err!("{ADVICE}") };
    let is_untyped =
        matches!(value, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_) | Value::Null));
    if is_untyped || lengths.is_empty() || lengths.len() > 6 {
        return plan_err!("{ADVICE}");
    }
    // An array without elements has no dimensions.
    let lengths = if lengths.contains(&0) { vec![0] } else { lengths };
    let repeated = |value: Expr, length: &u64| call("array_repeat", vec![value, number(length)]);
    Ok(lengths.iter().rev().fold(value.clone(), repeated))
}

/// The name of the subquery's column.
const COLUMN: &str = "array_element_of_subquery";

/// Returns the array of the rows of `query`, or an empty array if there are none.
fn rewrite_array_subquery(query: &Query) -> Result<Expr> {
    let mut query = query.clone();
    let SetExpr::Select(select) = query.body.as_mut() else {
        return not_impl_err!(
            "ARRAY (…) of a query that is not a simple SELECT; write ARRAY(SELECT x FROM (…) AS t(x))"
        );
    };
    let [item] = select.projection.as_slice() else {
        return not_impl_err!("subquery must return only one column");
    };
    let value = match item {
        SelectItem::UnnamedExpr(value) => value.clone(),
        SelectItem::ExprWithAlias { expr, .. } => expr.clone(),
        _ => return not_impl_err!("ARRAY(SELECT *); name the column instead"),
    };
    let alias = match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        _ => None,
    };
    let makes_rows = list_argument(&value).is_some();
    if let (true, true, None, Some(list)) =
        (select.from.is_empty(), select.selection.is_none(), &query.order_by, list_argument(&value))
    {
        return Ok(call("array_of_subquery*", vec![list]));
    }
    let mut order = Vec::new();
    let is_grouped = is_grouped(select);
    if !makes_rows && query.limit_clause.is_none() && query.fetch.is_none() && select.distinct.is_none() && !is_grouped
    {
        if let Some(by) = query.order_by.take() {
            let OrderByKind::Expressions(expressions) = by.kind else {
                return not_impl_err!("ORDER BY ALL, which PostgreSQL does not have; name the columns");
            };
            order = expressions;
            order.iter_mut().filter(|by| is_column(&by.expr, alias.as_deref())).for_each(|by| by.expr = value.clone());
        }
        return Ok(replace_column(query, value, order));
    }
    let is_distinct = matches!(select.distinct, Some(Distinct::Distinct));
    select.projection[0] = SelectItem::ExprWithAlias { expr: value.clone(), alias: Ident::new(COLUMN) };
    // The aggregate repeats the order, because a correlated subquery returns its rows in any order.
    if let Some(OrderBy { kind: OrderByKind::Expressions(expressions), .. }) = &mut query.order_by {
        for (index, by) in expressions.iter_mut().enumerate() {
            let mut name = Ident::new(COLUMN);
            if !(by.expr == value || is_column(&by.expr, alias.as_deref())) {
                if is_distinct {
                    return not_impl_err!("for SELECT DISTINCT, ORDER BY expressions must appear in select list");
                }
                name = Ident::new(format!("{COLUMN}_order_{index}"));
                let key = SelectItem::ExprWithAlias { expr: by.expr.clone(), alias: name.clone() };
                select.projection.push(key);
            }
            by.expr = Expr::Identifier(name);
            order.push(by.clone());
        }
    }
    collect_query(&query, &order)
}

/// Whether `by` refers to the only column, by number or by name.
fn is_column(by: &Expr, alias: Option<&str>) -> bool {
    match by {
        Expr::Value(value) => matches!(&value.value, Value::Number(number, _) if number == "1"),
        Expr::Identifier(name) => alias == Some(name.value.as_str()),
        _ => false,
    }
}

/// Functions of JSON, without their prefix, that return a set in PostgreSQL, which is an array here.
const JSON_SETS: [&str; 7] =
    ["array_elements", "array_elements_text", "each", "each_text", "object_keys", "path_query", "path_query_tz"];

/// Returns the list that a set-returning function expands to rows.
fn list_argument(value: &Expr) -> Option<Expr> {
    let Expr::Function(function) = value else { return None };
    let name = function.name.to_string().to_ascii_lowercase();
    let FunctionArguments::List(list) = &function.args else { return None };
    match (name.as_str(), list.args.as_slice()) {
        ("unnest", [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))]) => Some(array.clone()),
        (name, _) if is_json_set(name) => {
            let mut function = function.clone();
            function.name = ObjectName::from(vec![Ident::new(list_function(name))]);
            Some(Expr::Function(function))
        }
        _ => None,
    }
}

fn is_json_set(name: &str) -> bool {
    let rest = ["json_", "jsonb_"].iter().find_map(|prefix| name.strip_prefix(prefix));
    rest.is_some_and(|rest| JSON_SETS.contains(&rest))
}

/// Collects the rows of `query`, sorted by `order` if it is not empty.
fn collect_query(query: &Query, order: &[OrderByExpr]) -> Result<Expr> {
    let order: Vec<String> = order.iter().map(ToString::to_string).collect();
    let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {}", order.join(", ")) };
    let text = format!("(SELECT array_agg({COLUMN}{order}) FROM (SELECT 1) AS subquery)");
    let mut collected = Parser::new(&PostgreSqlDialect {}).try_with_sql(&text)?.parse_expr()?;
    // The query is inserted as a tree: names of rewritten functions cannot be parsed.
    if let Expr::Subquery(outer) = &mut collected
        && let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|from| &mut from.relation)
    {
        **subquery = query.clone();
    }
    Ok(call("array_of_subquery*", vec![collected]))
}

fn is_grouped(select: &Select) -> bool {
    !matches!(&select.group_by, GroupByExpr::Expressions(groups, _) if groups.is_empty()) || select.having.is_some()
}

fn call_array_agg(value: Expr, clauses: Vec<FunctionArgumentClause>) -> Expr {
    let mut aggregate = function("array_agg", Vec::new());
    aggregate.args = FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment: None,
        args: vec![unnamed(value)],
        clauses,
    });
    Expr::Function(aggregate)
}

/// Replaces the column with the aggregate, which is one of `query` even if the value has only columns of outer queries.
fn replace_column(mut query: Query, mut value: Expr, order: Vec<OrderByExpr>) -> Expr {
    if any_expression(&value, |part| matches!(part, Expr::Identifier(_) | Expr::CompoundIdentifier(_))) {
        value = call(VALUE_OF_ROW, vec![value]);
    }
    let clauses = if order.is_empty() { Vec::new() } else { vec![FunctionArgumentClause::OrderBy(order)] };
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = vec![SelectItem::UnnamedExpr(call_array_agg(value, clauses))];
    }
    call("array_of_subquery*", vec![Expr::Subquery(Box::new(query))])
}
