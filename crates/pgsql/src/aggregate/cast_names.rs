//! Groups and aggregates that differ only in casts, such as `sum(x)` and `sum(x::bigint)`. DataFusion gives both the same
//! name, and refuses two columns with one name. In ORDER BY, it takes an output name for a group that is a cast of the
//! column of that name.
//!
//! DataFusion's issues 18975 and 13558; `docs/decisions/upstream` says when the module can go.

use std::collections::{HashMap, HashSet};

use datafusion::common::plan_err;
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, OrderByExpr, Select,
    SelectItem, Value, ValueWithSpan,
};

use super::is_aggregate;
use crate::column_names::column_name;
use crate::function::{ColumnarFunction, first_type, keep_types};
use crate::syntax::{call, quoted, string, take};
use crate::walk::{for_each_expression, for_each_expression_inner_first};

/// The name of the function. The `*` keeps callers from writing it.
const NAME: &str = "named_cast_function*";

/// Returns its first argument. The second one makes the name of the call unique.
pub(crate) fn named_cast_function() -> ScalarUDF {
    ColumnarFunction::new(
        NAME,
        |types| if types.len() == 2 { keep_types(types) } else { plan_err!("a cast has an operand and a type") },
        first_type,
        |call| call.array(0),
    )
}

/// Names the casts in groups, aggregates and window functions of `select` and `order_by` that would otherwise have the
/// name of another one.
pub(crate) fn disambiguate_casts(select: &mut Select, order_by: &mut [OrderByExpr]) {
    let mut texts: HashMap<String, HashSet<String>> = HashMap::new();
    let mut add = |expression: &Expr| {
        let (without_casts, text) = (text_of(expression, true), text_of(expression, false));
        texts.entry(without_casts).or_default().insert(text);
    };
    groups(select).iter().for_each(&mut add);
    if let Some(Distinct::On(expressions)) = &select.distinct {
        expressions.iter().for_each(&mut add);
    }
    let add_calls = |expression: &mut Expr, depth: usize| {
        if depth == 0 && is_named_call(expression) {
            add(expression);
        }
    };
    let mut expressions = (select.projection.clone(), select.having.clone(), select.qualify.clone());
    let mut order = order_by.iter().map(|order| order.expr.clone()).collect::<Vec<_>>();
    let mut visit = add_calls;
    for_each_expression(&mut expressions.0, &mut visit);
    for_each_expression(&mut expressions.1, &mut visit);
    for_each_expression(&mut expressions.2, &mut visit);
    for_each_expression(&mut order, &mut visit);
    let mut ambiguous: HashSet<String> = texts.into_values().filter(|texts| texts.len() > 1).flatten().collect();
    ambiguous.extend(casts_of_output_names(select));
    if ambiguous.is_empty() {
        return;
    }
    let name = |expression: &mut Expr, depth: usize| {
        if depth == 0 && ambiguous.contains(&text_of(expression, false)) {
            name_casts(expression);
        }
    };
    for order in order_by {
        for_each_expression_inner_first(&mut order.expr, name);
    }
    for item in &mut select.projection {
        let before = item.clone();
        for_each_expression_inner_first(item, name);
        if let (SelectItem::UnnamedExpr(unnamed), SelectItem::UnnamedExpr(named)) = (&before, &mut *item)
            && unnamed != named
        {
            *item = SelectItem::ExprWithAlias { expr: take(named), alias: quoted(column_name(unnamed)) };
        }
    }
    if let Some(Distinct::On(expressions)) = &mut select.distinct {
        for_each_expression_inner_first(expressions, name);
    }
    for_each_expression_inner_first(&mut select.group_by, name);
    for_each_expression_inner_first(&mut select.having, name);
    for_each_expression_inner_first(&mut select.qualify, name);
}

/// The expressions of GROUP BY. A number or an output name stands for its expression of SELECT.
fn groups(select: &Select) -> Vec<Expr> {
    let GroupByExpr::Expressions(groups, _) = &select.group_by else { return Vec::new() };
    let output = |group: &Expr| match group {
        Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) => {
            let item = select.projection.get(number.parse::<usize>().ok()?.checked_sub(1)?)?;
            match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr.clone()),
                _ => None,
            }
        }
        Expr::Identifier(name) => select.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if alias.value == name.value => Some(expr.clone()),
            _ => None,
        }),
        _ => None,
    };
    groups.iter().map(|group| output(group).unwrap_or_else(|| group.clone())).collect()
}

/// The texts of casts in GROUP BY whose operand is a column with the name of an output column.
fn casts_of_output_names(select: &Select) -> Vec<String> {
    let outputs: HashSet<String> = select.projection.iter().filter_map(output_name).collect();
    let mut casts = Vec::new();
    for mut group in groups(select) {
        for_each_expression(&mut group, |part, _| {
            if matches!(part, Expr::Cast { .. }) && operand_column(part).is_some_and(|name| outputs.contains(name)) {
                casts.push(text_of(part, false));
            }
        });
    }
    casts
}

fn output_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        SelectItem::UnnamedExpr(expression) => Some(column_name(expression)),
        _ => None,
    }
}

/// The name of the column that `expression` casts.
fn operand_column(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Cast { expr: inner, .. } | Expr::Nested(inner) => operand_column(inner),
        Expr::Identifier(name) => Some(&name.value),
        Expr::CompoundIdentifier(parts) => parts.last().map(|part| part.value.as_str()),
        _ => None,
    }
}

fn is_named_call(expression: &Expr) -> bool {
    let Expr::Function(function) = expression else { return false };
    function.over.is_some() || is_aggregate(&function.name.to_string().to_lowercase())
}

/// The text of `expression` without parentheses, and without casts if so requested.
fn text_of(expression: &Expr, without_casts: bool) -> String {
    let mut expression = expression.clone();
    for_each_expression(&mut expression, |part, _| {
        while let Expr::Nested(inner) = part {
            *part = take(inner);
        }
        while without_casts && let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = part {
            *part = take(inner);
        }
    });
    expression.to_string()
}

/// Names the casts in `expression`, whose text is ambiguous.
fn name_casts(expression: &mut Expr) {
    let unnamed = expression.clone();
    for_each_expression_inner_first(expression, |part, _| {
        // Some arguments must be literals.
        if matches!(part, Expr::Cast { expr, .. } if !matches!(**expr, Expr::Value(_))) {
            name_cast(part);
        }
    });
    if *expression == unnamed {
        name_literal_arguments(expression);
    }
}

/// Names casts of literals, which are arguments of aggregates such as `sum(1::bigint)`.
fn name_literal_arguments(expression: &mut Expr) {
    let Expr::Function(Function { args: FunctionArguments::List(list), within_group, .. }) = expression else { return };
    for arg in list.args.iter_mut().filter(|_| within_group.is_empty()) {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value @ Expr::Cast { .. })) = arg {
            name_cast(value);
        }
    }
}

fn name_cast(cast: &mut Expr) {
    let text = string(cast.to_string());
    *cast = call(NAME, vec![take(cast), text]);
}
