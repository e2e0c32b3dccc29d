//! Tables as values: `to_json(t)` where `t` is a table means its row.
//!
//! A table whose row is used gets two more columns, before anything joins it: one with a name that no caller can
//! write, for `t.*`, and one that is named like the table, for `t`. So the row has the columns that `t.*` has, is NULL
//! where an outer join fills the table with NULL, and a column with the name of the table comes first.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use datafusion::common::Result;
use datafusion::logical_expr::{Expr as PlannedExpr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
    OrderByExpr, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor,
    TableWithJoins, Visit, VisitMut, Visitor, VisitorMut,
};

use super::aliases::shown;
use crate::json::{ROW_VALUE, whole_row};
use crate::syntax::call;

/// Functions whose arguments may be rows.
const OF_ROWS: [&str; 13] = [
    ROW_VALUE,
    "count",
    "json_agg",
    "json_build_array",
    "json_build_object",
    "json_object_agg",
    "jsonb_agg",
    "jsonb_build_array",
    "jsonb_build_object",
    "jsonb_object_agg",
    "row_to_json",
    "to_json",
    "to_jsonb",
];

/// What marks the alias of a table whose row is used.
const MARK: &str = "row\u{1}";

/// The column with the row of the table `name`.
fn column_of(name: &str) -> String {
    format!("{MARK}{name}")
}

/// Marks the tables of `select` whose rows are used as values, and names those rows. `has_outer_join` says whether
/// rows of a table may be missing.
pub(super) fn name_whole_rows(select: &mut Select, order_by: &mut [OrderByExpr], has_outer_join: bool) {
    let mut uses = Uses { has_outer_join, ..Uses::default() };
    // None of these breaks off.
    let _ = VisitMut::visit(select, &mut RowsOfSubqueries);
    let _ = Visit::visit(&*select, &mut uses);
    for order in order_by.iter().filter(|order| !matches!(order.expr, Expr::Identifier(_))) {
        let _ = Visit::visit(&order.expr, &mut uses);
    }
    let wanted: BTreeSet<String> = uses.rows.into_iter().chain(uses.names.into_iter().filter_map(only_rows)).collect();
    let mut tables = BTreeSet::new();
    for from in &mut select.from {
        mark(from, &|name| wanted.contains(name) && !hides(&select.projection, name), &mut tables);
    }
    if !tables.is_empty() {
        let mut names = Names { tables, depth: 0 };
        let _ = VisitMut::visit(select, &mut names);
        for order in order_by {
            let _ = VisitMut::visit(&mut order.expr, &mut names);
        }
    }
}

/// A name that is used as a row wherever it stands by itself.
fn only_rows((name, (as_row, in_all)): (String, (usize, usize))) -> Option<String> {
    (as_row == in_all && as_row > 0).then_some(name)
}

/// Whether a `*` in `projection` would show the columns that are added to the table `name`.
fn hides(projection: &[SelectItem], name: &str) -> bool {
    projection.iter().any(|item| match item {
        SelectItem::Wildcard(_) => true,
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), _) => {
            only_part(table).is_some_and(|table| table.value == name)
        }
        _ => false,
    })
}

fn only_part(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident(),
        _ => None,
    }
}

fn mark(from: &mut TableWithJoins, is_wanted: &dyn Fn(&str) -> bool, tables: &mut BTreeSet<String>) {
    let factors = std::iter::once(&mut from.relation).chain(from.joins.iter_mut().map(|join| &mut join.relation));
    for factor in factors {
        let (own, alias) = match factor {
            TableFactor::Table { name, args: None, alias, .. } => {
                (name.0.last().and_then(|part| part.as_ident()), alias)
            }
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. } => (None, alias),
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                mark(table_with_joins, is_wanted, tables);
                continue;
            }
            _ => continue,
        };
        let Some(name) = alias.as_ref().map(|alias| &alias.name).or(own).cloned() else { continue };
        if is_wanted(&name.value) {
            tables.insert(name.value.clone());
            let new = || TableAlias { explicit: true, name, columns: Vec::new(), at: None };
            alias.get_or_insert_with(new).at = Some(Ident::new(MARK));
        }
    }
}

/// The arguments of `function` if it may take rows, but for `count(t.*)` of all rows.
fn row_arguments(function: &mut Function, has_outer_join: bool) -> Option<&mut Vec<FunctionArg>> {
    let name = only_part(&function.name)?.value.to_lowercase();
    let FunctionArguments::List(list) = &mut function.args else { return None };
    let is_of_rows = OF_ROWS.contains(&name.as_str());
    let counts_all = name == "count"
        && !has_outer_join
        && list.duplicate_treatment != Some(DuplicateTreatment::Distinct)
        && matches!(list.args.as_slice(), [FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_))]);
    (is_of_rows && !counts_all).then_some(&mut list.args)
}

/// How the names of a query are used. Those by themselves may stand in queries inside of it.
#[derive(Default)]
struct Uses {
    has_outer_join: bool,
    /// Tables with `t.*` as an argument.
    rows: BTreeSet<String>,
    /// How often a name stands by itself as an argument, and how often in all.
    names: BTreeMap<String, (usize, usize)>,
    depth: usize,
}

impl Visitor for Uses {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match expression {
            Expr::Identifier(name) => self.names.entry(name.value.clone()).or_default().1 += 1,
            Expr::Function(function) => {
                for arg in row_arguments(&mut function.clone(), self.has_outer_join).into_iter().flatten() {
                    match arg {
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(name))) => {
                            self.names.entry(name.value.clone()).or_default().0 += 1;
                        }
                        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table)) if self.depth == 0 => {
                            self.rows.extend(only_part(table).map(|name| name.value.clone()));
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Puts the columns with the rows of `tables` in place of `t.*`.
struct Names {
    tables: BTreeSet<String>,
    depth: usize,
}

impl VisitorMut for Names {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Function(function) = expression
        {
            for arg in row_arguments(function, true).into_iter().flatten() {
                if let FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table)) = arg
                    && let Some(name) = only_part(table).filter(|name| self.tables.contains(&name.value)).cloned()
                {
                    let column = Ident::with_quote('"', column_of(&name.value));
                    *arg = FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::CompoundIdentifier(vec![name, column])));
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Makes a call of `(SELECT r FROM (…) AS r)` where it is an argument, so that `r` is used as a row there.
struct RowsOfSubqueries;

impl VisitorMut for RowsOfSubqueries {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expression else { return ControlFlow::Continue(()) };
        for arg in row_arguments(function, true).into_iter().flatten() {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(query))) = arg
                && let SetExpr::Select(select) = query.body.as_mut()
                && let [SelectItem::UnnamedExpr(item @ Expr::Identifier(_))] = select.projection.as_mut_slice()
            {
                *item = call(ROW_VALUE, vec![item.clone()]);
            }
        }
        ControlFlow::Continue(())
    }
}

/// The alias of `relation` if its row is used; the mark is taken away.
pub(super) fn take_mark(relation: &mut TableFactor) -> Option<TableAlias> {
    let alias = match relation {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. } => alias.as_mut()?,
        _ => return None,
    };
    if alias.at.as_ref().is_none_or(|at| at.value != MARK) {
        return None;
    }
    alias.at = None;
    Some(alias.clone())
}

/// The table `plan` with its row. The row of a function that returns plain values is the value.
pub(super) fn with_row(plan: LogicalPlan, name: &str, is_value: bool) -> Result<LogicalPlan> {
    let columns = plan.schema().columns();
    let mut output: Vec<PlannedExpr> = columns.iter().cloned().map(PlannedExpr::Column).collect();
    let row = match output.as_slice() {
        [only] if is_value => only.clone(),
        values => {
            let names = columns.iter().map(|column| shown(&column.name).to_owned()).collect();
            whole_row(names, values.to_vec())
        }
    };
    output.push(row.clone().alias(column_of(name)));
    if columns.iter().all(|column| column.name != name) {
        output.push(row.alias(name));
    }
    LogicalPlanBuilder::from(plan).project(output)?.build()
}
