//! `WINDOW w AS (…)`: windows that refine other windows, offsets of frames, and column numbers in ROLLUP.
//!
//! DataFusion's planner supports `OVER w`, but ignores the name in `OVER (w ORDER BY x)`: `docs/decisions/upstream` has the
//! text to be filed. As offsets of frames it takes plain literals only: its issue 15714.

use std::ops::ControlFlow;

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, GroupByExpr, Ident, Interval, NamedWindowDefinition, NamedWindowExpr,
    Query, Select, SelectItem, Statement, Value, ValueWithSpan, VisitorMut, WindowFrameBound, WindowSpec, WindowType,
};

use crate::syntax::{break_on_error, folded, into_result, number, without_parentheses};
use crate::walk::{Stop, walk_mut};

/// Replaces names of windows with their definitions.
pub(super) fn resolve_windows(statement: &mut Statement) -> Result<()> {
    into_result(walk_mut(statement, &mut WindowScopes { scopes: Vec::new() }))
}

/// The windows defined by the enclosing queries, innermost last.
struct WindowScopes {
    scopes: Vec<Vec<(Ident, WindowSpec)>>,
}

impl WindowScopes {
    fn open(&mut self, select: Option<&Select>) -> Result<()> {
        let mut scope = Vec::new();
        for NamedWindowDefinition(name, definition) in select.map(|select| &select.named_window).into_iter().flatten() {
            let spec = match definition {
                NamedWindowExpr::NamedWindow(other) => find(&scope, other)?.clone(),
                NamedWindowExpr::WindowSpec(spec) => refine_window(&scope, spec)?,
            };
            scope.push((name.clone(), spec));
        }
        self.scopes.push(scope);
        Ok(())
    }
}

fn find<'a>(scope: &'a [(Ident, WindowSpec)], name: &Ident) -> Result<&'a WindowSpec> {
    match scope.iter().find(|(other, _)| folded(other) == folded(name)) {
        Some((_, spec)) => Ok(spec),
        None => plan_err!("window \"{name}\" does not exist; define it: WINDOW {name} AS (ORDER BY …)"),
    }
}

/// Merges the window that `spec` names into `spec`.
fn refine_window(scope: &[(Ident, WindowSpec)], spec: &WindowSpec) -> Result<WindowSpec> {
    let Some(name) = &spec.window_name else { return Ok(spec.clone()) };
    let base = find(scope, name)?;
    // PARTITION BY may contain the mark of an exclusion, which is not a partition key.
    let is_divided = spec.partition_by.iter().any(|part| !part.to_string().starts_with("('exclude\u{1}"));
    if is_divided {
        return plan_err!("cannot override PARTITION BY clause of window \"{name}\"; write the whole window instead");
    }
    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
        return plan_err!("cannot override ORDER BY clause of window \"{name}\"; write the whole window instead");
    }
    if base.window_frame.is_some() {
        return plan_err!(
            "cannot copy window \"{name}\" because it has a frame clause; write the whole window instead"
        );
    }
    Ok(WindowSpec {
        window_name: None,
        partition_by: base.partition_by.iter().chain(&spec.partition_by).cloned().collect(),
        order_by: if base.order_by.is_empty() { spec.order_by.clone() } else { base.order_by.clone() },
        window_frame: spec.window_frame.clone(),
    })
}

impl VisitorMut for WindowScopes {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        // The ORDER BY after a SELECT can name its windows.
        break_on_error(self.open(query.body.as_select()))
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        resolve_column_numbers(select);
        break_on_error(self.open(Some(select)))
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        self.scopes.pop();
        select.named_window.clear();
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Self::Break> {
        let Expr::Function(function) = expression else { return ControlFlow::Continue(()) };
        let scope = self.scopes.last().map(Vec::as_slice).unwrap_or_default();
        let spec = match &function.over {
            Some(WindowType::NamedWindow(name)) => find(scope, name).cloned(),
            Some(WindowType::WindowSpec(spec)) if spec.window_name.is_some() => refine_window(scope, spec),
            Some(WindowType::WindowSpec(spec)) => Ok(spec.clone()),
            None => return ControlFlow::Continue(()),
        };
        break_on_error(spec.and_then(|mut spec| {
            write_offsets(&mut spec)?;
            function.over = Some(WindowType::WindowSpec(spec));
            Ok(())
        }))
    }
}

/// Replaces column numbers in ROLLUP, CUBE and GROUPING SETS with the columns.
fn resolve_column_numbers(select: &mut Select) {
    let Select { group_by: GroupByExpr::Expressions(groups, _), projection, .. } = select else { return };
    for group in groups {
        let (Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets)) = group else { continue };
        for column in sets.iter_mut().flatten() {
            let Expr::Value(value) = &*column else { continue };
            let Value::Number(digits, _) = &value.value else { continue };
            let position = digits.to_string().parse::<usize>().ok().and_then(|position| position.checked_sub(1));
            let item = position.and_then(|position| projection.get(position));
            if let Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item {
                *column = expr.clone();
            }
        }
    }
}

/// Replaces the offsets of the frame of `window` with literals of the same value.
fn write_offsets(window: &mut WindowSpec) -> Result<()> {
    let Some(frame) = &mut window.window_frame else { return Ok(()) };
    for bound in std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound) {
        if let WindowFrameBound::Preceding(Some(offset)) | WindowFrameBound::Following(Some(offset)) = bound {
            let Some(literal) = literal(without_parentheses(offset)) else {
                return plan_err!(
                    "the offset {offset} of a window frame is not supported; write a literal, such as 2 or \
                     interval '1 day'"
                );
            };
            **offset = literal;
        }
    }
    Ok(())
}

fn literal(offset: &Expr) -> Option<Expr> {
    match offset {
        Expr::Value(_) | Expr::Interval(_) => Some(offset.clone()),
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, .. } => {
            let Expr::Value(ValueWithSpan { value, .. }) = without_parentheses(expr) else { return None };
            match (value, data_type) {
                (Value::SingleQuotedString(_), DataType::Interval { fields: None, precision: None }) => {
                    Some(Expr::Interval(Interval {
                        value: expr.clone(),
                        leading_field: None,
                        leading_precision: None,
                        last_field: None,
                        fractional_seconds_precision: None,
                    }))
                }
                (Value::Number(digits, _) | Value::SingleQuotedString(digits), data_type) => {
                    is_exact(digits, data_type).then(|| number(digits))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether the number `digits` keeps its value in `data_type`.
fn is_exact(digits: &str, data_type: &DataType) -> bool {
    use DataType::{BigInt, DoublePrecision, Float8, Int, Int2, Int4, Int8, Integer, Numeric, SmallInt};
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match data_type {
        SmallInt(_) | Int2(_) => digits.parse::<i16>().is_ok_and(|value| value >= 0),
        Int(_) | Integer(_) | Int4(_) => digits.parse::<i32>().is_ok_and(|value| value >= 0),
        BigInt(_) | Int8(_) => digits.parse::<i64>().is_ok_and(|value| value >= 0),
        DoublePrecision | Float8 | Numeric(ExactNumberInfo::None) => is_number && digits.parse::<f64>().is_ok(),
        _ => false,
    }
}
