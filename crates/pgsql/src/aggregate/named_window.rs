//! `WINDOW w AS (…)`: windows that refine other windows, offsets of frames, and column numbers in ROLLUP.
//!
//! DataFusion's planner supports `OVER w`, but ignores the name in `OVER (w ORDER BY x)`: `docs/decisions/upstream` has the
//! text to be filed.

use std::ops::ControlFlow;

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, NamedWindowDefinition, NamedWindowExpr, Query, Select, SelectItem, Statement, Value,
    VisitorMut, WindowSpec, WindowType,
};

use super::frame_offset;
use crate::syntax::{break_on_error, folded, into_result};
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
            frame_offset::write_offsets(&mut spec)?;
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
