//! Tables as values: `to_json(t)` where `t` is a table means its row.
//!
//! A table whose row is used gets two more columns before it is joined: one for `t.*`, with a name that callers cannot
//! write, and one for `t`, with the name of the table. So the row has the columns of `t.*`, is NULL where an outer join
//! fills the table with NULL, and a column with the name of the table takes precedence.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::common::Result;
use datafusion::logical_expr::{Expr as PlannedExpr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, ExcludeSelectItem, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, OrderByExpr, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor,
    TableWithJoins, WildcardAdditionalOptions,
};

use super::aliases::visible_name;
use crate::json::{ROW_VALUE, whole_row};
use crate::syntax::{call, factors_mut, last_identifier, quoted, single_identifier, unnamed};
use crate::walk::for_each_expression;

/// Functions whose arguments may be rows.
const ROW_FUNCTIONS: [&str; 13] = [
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

/// Prefixes the alias of a table whose row is used.
const ROW_MARK: &str = "row\u{1}";
/// Prefixes the alias if `*` also returns the table's columns: then callers can write neither of the two names.
const ROW_BESIDE_WILDCARD_MARK: &str = "value\u{1}";

/// Returns the name of the column with the row of the table `name`.
fn row_column(name: &str) -> String {
    format!("{ROW_MARK}{name}")
}

/// Returns the name of the column that replaces the unqualified `name` where the column cannot have that name.
fn value_column(name: &str) -> String {
    format!("{ROW_BESIDE_WILDCARD_MARK}{name}")
}

/// Marks the tables of `select` whose rows are used as values, and names those rows. `has_outer_join` says whether
/// rows of a table may be missing.
pub(super) fn name_whole_rows(select: &mut Select, order_by: &mut [OrderByExpr], has_outer_join: bool) {
    let mut name_uses = NameUses { has_outer_join, ..NameUses::default() };
    for_each_expression(select, |expression, _| {
        if let Expr::Function(function) = expression {
            mark_subquery_rows(function);
        }
    });
    for_each_expression(select, |expression, depth| name_uses.add(expression, depth));
    for order in order_by.iter_mut().filter(|order| !matches!(order.expr, Expr::Identifier(_))) {
        for_each_expression(&mut order.expr, |expression, depth| name_uses.add(expression, depth));
    }
    let expected: BTreeSet<String> =
        name_uses.rows.into_iter().chain(name_uses.names.into_iter().filter_map(row_only_name)).collect();
    let is_alone = matches!(select.from.as_slice(), [from] if from.joins.is_empty());
    let mut tables = BTreeMap::new();
    for from in &mut select.from {
        let projection = &select.projection;
        let mark_of = |name: &str| match wildcards_of(projection, name) {
            _ if !expected.contains(name) => None,
            WildcardUse::None => Some(ROW_MARK),
            WildcardUse::Plain if is_alone => Some(ROW_BESIDE_WILDCARD_MARK),
            _ => None,
        };
        mark_tables(from, &mark_of, &mut tables);
    }
    if !tables.is_empty() {
        for (table, _) in tables.iter().filter(|(_, is_beside)| **is_beside) {
            select.projection.iter_mut().for_each(|item| exclude_row_columns(item, table));
        }
        let rewrite = |expression: &mut Expr, depth: usize| match expression {
            Expr::Function(function) if depth == 0 => use_row_columns(function, &tables),
            _ => {}
        };
        for_each_expression(select, rewrite);
        for order in order_by {
            for_each_expression(&mut order.expr, rewrite);
        }
    }
}

/// Returns the name if each of its uses is one as a row.
fn row_only_name((name, (as_row, in_all)): (String, (usize, usize))) -> Option<String> {
    (as_row == in_all && as_row > 0).then_some(name)
}

/// Whether `*` returns the columns of a table.
enum WildcardUse {
    None,
    /// Without any options.
    Plain,
    Other,
}

fn wildcards_of(projection: &[SelectItem], name: &str) -> WildcardUse {
    let options = projection.iter().filter_map(|item| match item {
        SelectItem::Wildcard(options) => Some(options),
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), options) => {
            single_identifier(table).is_none_or(|table| table.value == name).then_some(options)
        }
        _ => None,
    });
    options.fold(WildcardUse::None, |before, options| match before {
        WildcardUse::None | WildcardUse::Plain if *options == WildcardAdditionalOptions::default() => {
            WildcardUse::Plain
        }
        _ => WildcardUse::Other,
    })
}

/// Excludes the columns added to `table` from `*`.
fn exclude_row_columns(item: &mut SelectItem, table: &str) {
    if let SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) = item {
        let column = |name: String| ObjectName::from(vec![quoted(name)]);
        let added = vec![column(row_column(table)), column(value_column(table))];
        options.opt_exclude = Some(ExcludeSelectItem::Multiple(added));
    }
}

/// Marks the tables of `from` for which `mark_of` returns a mark. Adds them to `tables`, with whether `*` returns their
/// columns.
fn mark_tables(
    from: &mut TableWithJoins,
    mark_of: &dyn Fn(&str) -> Option<&'static str>,
    tables: &mut BTreeMap<String, bool>,
) {
    for factor in factors_mut(from) {
        let (own, alias) = match factor {
            TableFactor::Table { name, args: None, alias, .. } => (last_identifier(name), alias),
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. } => (None, alias),
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                mark_tables(table_with_joins, mark_of, tables);
                continue;
            }
            _ => continue,
        };
        let Some(name) = alias.as_ref().map(|alias| &alias.name).or(own).cloned() else { continue };
        if let Some(mark) = mark_of(&name.value) {
            tables.insert(name.value.clone(), mark == ROW_BESIDE_WILDCARD_MARK);
            let new = || TableAlias { explicit: true, name, columns: Vec::new(), at: None };
            alias.get_or_insert_with(new).at = Some(Ident::new(mark));
        }
    }
}

/// Returns the arguments of `function` if they may be rows. `count(t.*)` of all rows is excluded.
fn row_arguments(function: &mut Function, has_outer_join: bool) -> Option<&mut Vec<FunctionArg>> {
    let name = single_identifier(&function.name)?.value.to_lowercase();
    let FunctionArguments::List(list) = &mut function.args else { return None };
    let is_of_rows = ROW_FUNCTIONS.contains(&name.as_str());
    let counts_all = name == "count"
        && !has_outer_join
        && list.duplicate_treatment != Some(DuplicateTreatment::Distinct)
        && matches!(list.args.as_slice(), [FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_))]);
    (is_of_rows && !counts_all).then_some(&mut list.args)
}

/// How the names of a query are used.
#[derive(Default)]
struct NameUses {
    has_outer_join: bool,
    /// Tables with `t.*` as an argument.
    rows: BTreeSet<String>,
    /// How often a name is an argument, and how often it occurs at all, also in subqueries.
    names: BTreeMap<String, (usize, usize)>,
}

impl NameUses {
    fn add(&mut self, expression: &mut Expr, depth: usize) {
        match expression {
            Expr::Identifier(name) => self.names.entry(name.value.clone()).or_default().1 += 1,
            Expr::Function(function) => {
                for arg in row_arguments(function, self.has_outer_join).into_iter().flatten() {
                    match arg {
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(name))) => {
                            self.names.entry(name.value.clone()).or_default().0 += 1;
                        }
                        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table)) if depth == 0 => {
                            self.rows.extend(single_identifier(table).map(|name| name.value.clone()));
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

/// Replaces `t.*` with the column that holds the row of `t`, and also `t` if `*` returns the columns of `t`.
fn use_row_columns(function: &mut Function, tables: &BTreeMap<String, bool>) {
    for arg in row_arguments(function, true).into_iter().flatten() {
        let (name, column) = match arg {
            FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table)) => match single_identifier(table) {
                Some(name) if tables.contains_key(&name.value) => (name.clone(), row_column(&name.value)),
                _ => continue,
            },
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(name)))
                if tables.get(&name.value) == Some(&true) =>
            {
                (name.clone(), value_column(&name.value))
            }
            _ => continue,
        };
        *arg = unnamed(Expr::CompoundIdentifier(vec![name, quoted(column)]));
    }
}

/// Adds a call around `r` in the argument `(SELECT r FROM (…) AS r)`, so that `r` is used as a row there.
fn mark_subquery_rows(function: &mut Function) {
    for arg in row_arguments(function, true).into_iter().flatten() {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(query))) = arg
            && let SetExpr::Select(select) = query.body.as_mut()
            && let [SelectItem::UnnamedExpr(item @ Expr::Identifier(_))] = select.projection.as_mut_slice()
        {
            *item = call(ROW_VALUE, vec![item.clone()]);
        }
    }
}

/// Returns the alias of `relation` if its row is used, and whether `*` returns its columns. Removes the mark.
pub(super) fn take_mark(relation: &mut TableFactor) -> Option<(TableAlias, bool)> {
    let alias = match relation {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. } => alias.as_mut()?,
        _ => return None,
    };
    let is_mark = |at: &&mut Ident| at.value == ROW_MARK || at.value == ROW_BESIDE_WILDCARD_MARK;
    let is_beside_wildcard = alias.at.as_mut().filter(is_mark)?.value == ROW_BESIDE_WILDCARD_MARK;
    alias.at = None;
    Some((alias.clone(), is_beside_wildcard))
}

/// Adds the row of the table to `plan`. The row of a function that returns plain values is the value. The fields of the row
/// have the names of the columns, or `names`.
pub(super) fn with_row(
    plan: LogicalPlan,
    names: Option<Vec<String>>,
    name: &str,
    is_value: bool,
    is_beside_wildcard: bool,
) -> Result<LogicalPlan> {
    let columns = plan.schema().columns();
    let mut output: Vec<PlannedExpr> = columns.iter().cloned().map(PlannedExpr::Column).collect();
    let row = match output.as_slice() {
        [only] if is_value => only.clone(),
        values => {
            let own = || columns.iter().map(|column| visible_name(&column.name).to_owned()).collect();
            whole_row(names.unwrap_or_else(own), values.to_vec())
        }
    };
    output.push(row.clone().alias(row_column(name)));
    let own = columns.into_iter().find(|column| column.name == name);
    match own {
        _ if is_beside_wildcard => output.push(own.map_or(row, PlannedExpr::Column).alias(value_column(name))),
        None => output.push(row.alias(name)),
        Some(_) => {}
    }
    LogicalPlanBuilder::from(plan).project(output)?.build()
}
