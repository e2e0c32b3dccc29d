//! Grouping keys, and the check that selected expressions belong to their group.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Function, FunctionArguments, Visit, Visitor};
use tidegate_sql::SqlDialect;

use super::condition::AliasBindings;
use super::{OutputColumn, QueryRenderer};
use crate::spec::{GroupKey, NamedExpression, QuerySpec, Selection};

/// Aggregate functions, that the check recognizes; the database has more.
const AGGREGATES: [&str; 25] = [
    "array_agg",
    "avg",
    "bool_and",
    "bool_or",
    "count",
    "every",
    "group_concat",
    "json_agg",
    "json_group_array",
    "json_group_object",
    "jsonb_agg",
    "jsonb_group_array",
    "jsonb_group_object",
    "max",
    "median",
    "min",
    "percentile",
    "percentile_cont",
    "percentile_disc",
    "stddev",
    "string_agg",
    "sum",
    "total",
    "var_samp",
    "variance",
];

/// An expression of `group_by`, by its alias.
pub(super) struct NamedGroup {
    pub(super) name: String,
    pub(super) expr: Expr,
}

impl QueryRenderer {
    /// The expressions of `group_by`, at the positions of their keys.
    pub(super) fn render_group_expressions(&mut self, spec: &QuerySpec) -> Vec<Option<Expr>> {
        let keys = spec.group_by.iter().enumerate();
        let mut render = |(index, key): (usize, &GroupKey)| match key {
            GroupKey::Column(_) => None,
            GroupKey::Expression(expression) => {
                self.render_expression(&format!("group_by[{index}]"), &expression.text, &AliasBindings::empty())
            }
        };
        keys.map(&mut render).collect()
    }

    /// The keys in order. A name that is no column may be the alias of an expression of `select`.
    pub(super) fn render_group_by(
        &mut self,
        spec: &QuerySpec,
        expressions: Vec<Option<Expr>>,
        outputs: &[OutputColumn],
    ) -> Vec<Expr> {
        let keys = spec.group_by.iter().zip(expressions).enumerate();
        let mut render = |(index, (key, expression)): (usize, (&GroupKey, Option<Expr>))| match key {
            GroupKey::Expression(NamedExpression { alias, .. }) => {
                let is_name =
                    |key: &GroupKey| matches!((key, alias), (GroupKey::Column(name), Some(alias)) if name == alias);
                if spec.group_by.iter().any(is_name) {
                    let message = "has the name of another key; choose another name";
                    self.add_violation(&format!("group_by[{index}].as"), message);
                }
                expression
            }
            GroupKey::Column(name) => {
                let aliased = || {
                    let output = outputs.iter().find(|output| output.name.as_deref() == Some(name.as_str()))?;
                    output.expr.clone().filter(|_| !output.is_aggregate)
                };
                match self.scope.resolve(name).is_err().then(aliased).flatten() {
                    Some(expr) => Some(expr),
                    None => self.resolve_column(&format!("group_by[{index}]"), name),
                }
            }
        };
        keys.filter_map(&mut render).collect()
    }

    /// Columns beside aggregates must be grouped; the database checks this too, with other messages. SQLite would return
    /// the value of an arbitrary row.
    pub(super) fn check_groups(&mut self, spec: &QuerySpec, outputs: &[OutputColumn], group_by: &[Expr]) {
        let groups = !spec.group_by.is_empty() || outputs.iter().any(|output| output.is_aggregate);
        if !groups || group_by.len() != spec.group_by.len() || spec.select.is_empty() {
            return;
        }
        for output in outputs {
            let path = format!("select[{}]", output.index);
            match (&spec.select[output.index], &output.expr) {
                (Selection::All, _) => {
                    self.add_violation(&path, "\"*\" cannot be combined with groups; name the columns");
                }
                (Selection::Column { column, .. }, Some(expr)) if !group_by.contains(expr) => {
                    let message = format!(
                        "the plain column {column:?} is neither grouped nor aggregated; add it to group_by or give it a function"
                    );
                    self.add_violation(&path, message);
                }
                (Selection::Expression(_), Some(expr)) if self.dialect.has_bare_columns() => {
                    if let Some(column) = ExpressionGroups::inspect(expr, group_by, self.dialect).ungrouped {
                        let message = format!(
                            "the column {column} is neither grouped nor aggregated; add it to group_by or aggregate it"
                        );
                        self.add_violation(&path, message);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Whether `expr` calls an aggregate function.
pub(super) fn has_aggregate(expr: &Expr, dialect: SqlDialect) -> bool {
    ExpressionGroups::inspect(expr, &[], dialect).has_aggregate
}

/// Finds aggregates, and the first column outside of aggregates and groups.
struct ExpressionGroups<'a> {
    group_by: &'a [Expr],
    dialect: SqlDialect,
    has_aggregate: bool,
    ungrouped: Option<String>,
    /// The number of enclosing aggregates and groups.
    depth: usize,
}

impl<'a> ExpressionGroups<'a> {
    fn inspect(expr: &Expr, group_by: &'a [Expr], dialect: SqlDialect) -> Self {
        let mut found = Self { group_by, dialect, has_aggregate: false, ungrouped: None, depth: 0 };
        // The visitor never breaks.
        let _ = expr.visit(&mut found);
        found
    }

    fn is_aggregate(&self, expr: &Expr) -> bool {
        let Expr::Function(Function { name, args, over: None, .. }) = expr else { return false };
        let name = name.to_string().to_lowercase();
        let arguments = if let FunctionArguments::List(list) = args { list.args.len() } else { 0 };
        let is_scalar = self.dialect.has_scalar_min_max() && arguments != 1 && matches!(&*name, "min" | "max");
        AGGREGATES.contains(&&*name) && !is_scalar
    }
}

impl Visitor for ExpressionGroups<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let is_aggregate = self.is_aggregate(expr);
        self.has_aggregate |= is_aggregate;
        if is_aggregate || self.group_by.contains(expr) {
            self.depth += 1;
        } else if self.depth == 0 && matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
            self.ungrouped.get_or_insert_with(|| expr.to_string());
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.is_aggregate(expr) || self.group_by.contains(expr) {
            self.depth -= 1;
        }
        ControlFlow::Continue(())
    }
}
