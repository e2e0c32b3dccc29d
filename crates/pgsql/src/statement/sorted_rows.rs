//! Sorts the rows of set-returning functions, as in `SELECT generate_series(1, 3) ORDER BY generate_series(1, 3) DESC`.
//!
//! DataFusion expands such functions only in SELECT, and not with DISTINCT ON. So the SELECT becomes a subquery, which also
//! returns what ORDER BY and DISTINCT ON name, and the query around it sorts its rows. `docs/decisions/upstream` has the text
//! to be filed.

use datafusion::common::{Result, not_impl_err};
use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, Query, Select, SelectItem, SetExpr, Value, ValueWithSpan, Visit,
};

use super::aliases;
use crate::column_names::column_name;
use crate::set_returning::find_set_returning;
use crate::syntax::{self, body_and_order, quoted};
use crate::walk::any_expression;

/// The alias of the subquery.
const ALIAS: &str = "expanded rows";

/// Rewrites `query` if it sorts by set-returning functions, or has them beside DISTINCT ON.
pub(super) fn rewrite(query: &mut Query) -> Result<()> {
    let (body, order_by) = body_and_order(query);
    let SetExpr::Select(select) = body else { return Ok(()) };
    let is_sorted = order_by.iter().any(|order| has_rows(&order.expr));
    let is_distinct =
        matches!(&select.distinct, Some(Distinct::On(keys)) if has_rows(keys) || has_rows(&select.projection));
    if !is_sorted && !is_distinct {
        return Ok(());
    }
    let Some(mut columns) = SubqueryColumns::from_projection(select) else {
        return not_impl_err!(
            "* beside a set-returning function in ORDER BY or DISTINCT ON; write the names of the columns instead"
        );
    };
    let has_order = !order_by.is_empty();
    for order in order_by {
        order.expr = columns.reference(&order.expr);
    }
    let mut distinct = select.distinct.take();
    if let Some(Distinct::On(keys)) = &mut distinct {
        for key in keys {
            *key = columns.reference(key);
        }
        if has_order && !columns.are_rows_compared {
            return not_impl_err!(
                "set-returning functions beside DISTINCT ON and ORDER BY that do not name them; write DISTINCT ON and ORDER BY \
                 in a subquery in FROM, and the function in the query around it"
            );
        }
    }
    let projection = columns.output();
    select.projection = columns.items;
    let mut inner = syntax::parse_query(&format!("SELECT 1 FROM (SELECT 1) AS \"{ALIAS}\""))?;
    // Only its SELECT moves into the subquery: ORDER BY, LIMIT and WITH stay.
    std::mem::swap(&mut inner.body, &mut query.body);
    syntax::put_subquery(query, &mut inner);
    syntax::change_select(query, |outer| {
        outer.projection = projection;
        outer.distinct = distinct;
    });
    Ok(())
}

/// Whether `node` calls a function that returns several rows.
fn has_rows(node: &impl Visit) -> bool {
    any_expression(node, |expression| {
        let Expr::Function(function) = expression else { return false };
        let name = function.name.to_string().to_lowercase();
        name == "unnest" || find_set_returning(&name).is_some()
    })
}

/// The columns of the subquery: first those of SELECT, then what only ORDER BY and DISTINCT ON name.
struct SubqueryColumns {
    items: Vec<SelectItem>,
    /// What each column is, and what it is called in SELECT.
    columns: Vec<(Expr, String)>,
    selected: usize,
    /// Whether ORDER BY or DISTINCT ON names a set-returning function. Otherwise PostgreSQL expands them after both.
    are_rows_compared: bool,
}

impl SubqueryColumns {
    /// Returns the columns of `select`; `None` if a wildcard is one of them.
    fn from_projection(select: &Select) -> Option<Self> {
        let selected = select.projection.len();
        let mut columns = Self { items: Vec::new(), columns: Vec::new(), selected, are_rows_compared: false };
        for item in &select.projection {
            match item {
                SelectItem::UnnamedExpr(expression) => columns.push(expression, column_name(expression)),
                SelectItem::ExprWithAlias { expr, alias } => columns.push(expr, alias.value.clone()),
                _ => return None,
            }
        }
        Some(columns)
    }

    /// Adds a column, whose name is unique by its number.
    fn push(&mut self, expression: &Expr, name: String) {
        let alias = quoted(aliases::hidden_name(&name, self.items.len()));
        self.items.push(SelectItem::ExprWithAlias { expr: expression.clone(), alias });
        self.columns.push((expression.clone(), name));
    }

    /// Returns the column that an expression of ORDER BY or DISTINCT ON means: a name or a number is first one of SELECT.
    fn reference(&mut self, key: &Expr) -> Expr {
        let selected = &self.columns[..self.selected];
        let found = match key {
            Expr::Identifier(name) => selected.iter().position(|(_, selected)| *selected == name.value),
            Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => {
                digits.parse().ok().filter(|number| (1..=self.selected).contains(number)).map(|number| number - 1)
            }
            _ => None,
        };
        let found = found.or_else(|| self.columns.iter().position(|(expression, _)| expression == key));
        let index = found.unwrap_or_else(|| {
            self.push(key, "key".to_owned());
            self.items.len() - 1
        });
        self.are_rows_compared |= has_rows(&self.columns[index].0);
        self.column(index)
    }

    fn column(&self, index: usize) -> Expr {
        let name = aliases::hidden_name(&self.columns[index].1, index);
        Expr::CompoundIdentifier(vec![quoted(ALIAS), quoted(name)])
    }

    /// Returns what the query around the subquery selects.
    fn output(&self) -> Vec<SelectItem> {
        let named = self.columns[..self.selected].iter().enumerate();
        named
            .map(|(index, (_, name))| SelectItem::ExprWithAlias {
                expr: self.column(index),
                alias: quoted(name.as_str()),
            })
            .collect()
    }
}
