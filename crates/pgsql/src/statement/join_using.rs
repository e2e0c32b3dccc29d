//! Rewrites joins with USING and NATURAL into joins with ON. A merged column is the left one; in a RIGHT JOIN it is the
//! right one, and in a FULL JOIN the one that is not NULL.
//!
//! What resolves names by the joins of FROM is rewritten too: HAVING, whose names refer to columns of FROM, with groups of
//! all rows (HAVING without GROUP BY, `GROUP BY ()`), and `t.*` within a row constructor, as in `ROW(t.*, 1)`.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use datafusion::common::{Result, not_impl_err, plan_err};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Distinct, ExcludeSelectItem, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    Ident, Join, JoinConstraint, JoinOperator, ObjectName, OrderByExpr, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Statement, TableFactor, TableWithJoins, VisitMut, VisitorMut,
    WildcardAdditionalOptions,
};

use super::columns::{NameScope, TableColumns, join_constraint, qualifier_of};
use crate::column_names::column_name;
use crate::syntax::{
    self, binary, body_and_order, boolean, break_on_error, call, factors, factors_mut, folded, into_result, is_named,
    nested, number, quoted, single_identifier, unnamed,
};
use crate::walk::{Stop, any_expression, for_each_expression, walk_mut};

/// Rewrites the joins of `statement`; `tables` returns the columns of the catalog's tables.
/// Fails with `Plan` or `NotImplemented` for columns that cannot be merged, and for tables with unknown columns.
pub(super) fn rewrite_joins(statement: &mut Statement, tables: TableColumns<'_>) -> Result<()> {
    into_result(walk_mut(statement, &mut JoinRewriter { scope: NameScope::new(tables) }))
}

struct JoinRewriter<'a> {
    scope: NameScope<'a>,
}

impl VisitorMut for JoinRewriter<'_> {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.enter(query);
        break_on_error(self.rewrite(query))
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.leave();
        ControlFlow::Continue(())
    }
}

/// A part of the columns that `*` returns.
#[derive(Clone)]
enum WildcardPart {
    /// A merged column and its value.
    Merged(Ident, Box<Expr>),
    /// The columns of a table, if they are known, without some of them.
    ///
    /// `name` is the whole name of the table, with its schema.
    Rest { table: Ident, name: ObjectName, columns: Option<Vec<String>>, without: Vec<Ident> },
}

impl JoinRewriter<'_> {
    fn rewrite(&mut self, query: &mut Query) -> Result<()> {
        let (body, mut order_by) = body_and_order(query);
        // The depth of the tree is the length of the chain, so it is visited without recursion.
        let mut pending = vec![body];
        while let Some(body) = pending.pop() {
            match body {
                SetExpr::SetOperation { left, right, .. } => {
                    order_by = &mut [];
                    pending.extend([right.as_mut(), left.as_mut()]);
                }
                SetExpr::Select(select) => {
                    expand_row_wildcards(select, order_by, &mut self.scope);
                    self.rewrite_select(select, order_by)?;
                    rewrite_having(select, &mut self.scope)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn rewrite_select(&mut self, select: &mut Select, order_by: &mut [OrderByExpr]) -> Result<()> {
        for from in &mut select.from {
            wrap_nested_joins(from)?;
        }
        if !select.from.iter().any(has_merged_columns) {
            return Ok(());
        }
        let mut from = select.from.clone();
        let mut parts = Vec::new();
        for from in &mut from {
            match self.rewrite_from(from)? {
                Some(of_from) => parts.extend(of_from),
                None => return refuse_unknown(select),
            }
        }
        select.from = from;
        expand_wildcards(select, &parts)?;
        let merged = unambiguous_columns(&parts);
        self.replace_merged_columns(select, order_by, &merged);
        Ok(())
    }

    /// Rewrites the joins of `from`, and returns what `*` expands to; `None` if that is unknown.
    fn rewrite_from(&mut self, from: &mut TableWithJoins) -> Result<Option<Vec<WildcardPart>>> {
        let Some(mut parts) = self.wildcard_parts(&mut from.relation)? else { return Ok(None) };
        for join in &mut from.joins {
            let Some(mut right) = self.wildcard_parts(&mut join.relation)? else { return Ok(None) };
            let names = match join_constraint(join) {
                Some(JoinConstraint::Using(names)) => {
                    names.iter().map(|name| single_identifier(name).cloned()).collect::<Option<Vec<_>>>()
                }
                Some(JoinConstraint::Natural) => common_names(&parts, &right),
                Some(JoinConstraint::On(_) | JoinConstraint::None) => {
                    let merged = unambiguous_columns(&parts);
                    if let Some(JoinConstraint::On(condition)) = constraint_of(join) {
                        put_values(condition, &merged, &mut self.scope);
                    }
                    parts.append(&mut right);
                    continue;
                }
                None => return Ok(None),
            };
            let Some(names) = names else { return Ok(None) };
            let mut merged = Vec::new();
            let mut condition: Option<Expr> = None;
            for name in names {
                let (Some(left_value), Some(right_value)) =
                    (take_column(&mut parts, &name, "left")?, take_column(&mut right, &name, "right")?)
                else {
                    return Ok(None);
                };
                let equal = binary(left_value.clone(), BinaryOperator::Eq, right_value.clone());
                condition = Some(match condition {
                    None => equal,
                    Some(before) => binary(before, BinaryOperator::And, equal),
                });
                merged.push(WildcardPart::Merged(name, Box::new(value_of(join, left_value, right_value))));
            }
            if let Some(constraint) = constraint_of(join) {
                *constraint = JoinConstraint::On(condition.unwrap_or_else(|| boolean(true)));
            }
            merged.append(&mut parts);
            merged.append(&mut right);
            parts = merged;
        }
        Ok(Some(parts))
    }

    fn wildcard_parts(&mut self, factor: &mut TableFactor) -> Result<Option<Vec<WildcardPart>>> {
        if let TableFactor::NestedJoin { table_with_joins, alias: None } = factor {
            return self.rewrite_from(table_with_joins);
        }
        let Some(table) = qualifier_of(factor) else { return Ok(None) };
        let columns = self.scope.factor_columns(factor);
        let name = match factor {
            TableFactor::Table { name, alias: None, .. } => name.clone(),
            _ => ObjectName::from(vec![table.clone()]),
        };
        Ok(Some(vec![WildcardPart::Rest { table, name, columns, without: Vec::new() }]))
    }

    /// Replaces names of merged columns with their values.
    fn replace_merged_columns(&mut self, select: &mut Select, order_by: &mut [OrderByExpr], merged: &[MergedColumn]) {
        for item in &mut select.projection {
            let SelectItem::UnnamedExpr(expression) = item else {
                put_values(item, merged, &mut self.scope);
                continue;
            };
            let original = expression.clone();
            put_values(expression, merged, &mut self.scope);
            if *expression != original {
                let alias = quoted(column_name(&original));
                *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias };
            }
        }
        let is_output = |name: &Ident| {
            select.projection.iter().any(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => alias.value == name.value,
                _ => false,
            })
        };
        let is_output = |expression: &Expr| matches!(expression, Expr::Identifier(name) if is_output(name));
        for order in order_by.iter_mut().filter(|order| !is_output(&order.expr)) {
            put_values(&mut order.expr, merged, &mut self.scope);
        }
        if let Some(Distinct::On(expressions)) = &mut select.distinct {
            for expression in expressions.iter_mut().filter(|expression| !is_output(expression)) {
                put_values(expression, merged, &mut self.scope);
            }
        }
        put_values(&mut select.selection, merged, &mut self.scope);
        put_values(&mut select.group_by, merged, &mut self.scope);
        put_values(&mut select.having, merged, &mut self.scope);
        put_values(&mut select.named_window, merged, &mut self.scope);
        put_values(&mut select.qualify, merged, &mut self.scope);
    }
}

/// Replaces a join in parentheses with an alias with a subquery, because its tables have no names outside of it.
fn wrap_nested_joins(from: &mut TableWithJoins) -> Result<()> {
    for factor in factors_mut(from) {
        let TableFactor::NestedJoin { table_with_joins, alias } = factor else { continue };
        if alias.is_none() {
            wrap_nested_joins(table_with_joins)?;
            continue;
        }
        let subquery = Box::new(syntax::select_all(table_with_joins.as_ref().clone())?);
        *factor = TableFactor::Derived { lateral: false, subquery, alias: alias.take(), sample: None };
    }
    Ok(())
}

fn has_merged_columns(from: &TableWithJoins) -> bool {
    let is_nested = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, alias: None } => has_merged_columns(table_with_joins),
        _ => false,
    };
    let join_merges = |join: &Join| {
        matches!(join_constraint(join), Some(JoinConstraint::Using(_) | JoinConstraint::Natural))
            || is_nested(&join.relation)
    };
    is_nested(&from.relation) || from.joins.iter().any(join_merges)
}

/// Refuses joins whose columns are unknown, except those that DataFusion merges correctly.
fn refuse_unknown(select: &Select) -> Result<()> {
    let mut joins = select.from.iter().flat_map(|from| &from.joins);
    let is_plain = joins.clone().count() == 1
        && joins.all(|join| {
            matches!(
                join.join_operator,
                JoinOperator::Join(JoinConstraint::Using(_)) | JoinOperator::Inner(JoinConstraint::Using(_))
            )
        });
    if is_plain {
        return Ok(());
    }
    not_impl_err!(
        "USING or NATURAL in a join whose columns cannot all be determined in advance; write JOIN b ON a.id = b.id, \
         and for the column of a FULL JOIN coalesce(a.id, b.id) AS id"
    )
}

fn is_same(column: &str, name: &Ident) -> bool {
    column == name.value || (name.quote_style.is_none() && column.to_lowercase() == folded(name))
}

/// Returns the columns that both sides have, in the order of the left one.
fn common_names(left: &[WildcardPart], right: &[WildcardPart]) -> Option<Vec<Ident>> {
    let names = |parts: &[WildcardPart]| -> Option<Vec<String>> {
        let mut names = Vec::new();
        for part in parts {
            match part {
                WildcardPart::Merged(name, _) => names.push(name.value.clone()),
                WildcardPart::Rest { columns, without, .. } => {
                    let is_listed = |column: &&String| !without.iter().any(|name| is_same(column, name));
                    names.extend(columns.as_ref()?.iter().filter(is_listed).cloned());
                }
            }
        }
        Some(names)
    };
    let right = names(right)?;
    let common = names(left)?.into_iter().filter(|name| right.contains(name));
    Some(common.map(quoted).collect())
}

/// Removes the column `name` of one side of a join from `parts` and returns its value; `None` if it is unknown.
fn take_column(parts: &mut Vec<WildcardPart>, name: &Ident, side: &str) -> Result<Option<Expr>> {
    let is_merged =
        |part: &WildcardPart| matches!(part, WildcardPart::Merged(merged, _) if is_same(&merged.value, name));
    let has = |part: &WildcardPart| match part {
        WildcardPart::Merged(..) => false,
        WildcardPart::Rest { columns, without, .. } => {
            !without.iter().any(|other| is_same(&other.value, name))
                && columns.as_ref().is_none_or(|columns| columns.iter().any(|column| is_same(column, name)))
        }
    };
    let is_unsure = |part: &WildcardPart| matches!(part, WildcardPart::Rest { columns: None, .. });
    let of_tables = parts.iter().filter(|part| has(part)).count();
    let merged = parts.iter().position(is_merged);
    if of_tables + usize::from(merged.is_some()) != 1 {
        if parts.iter().any(is_unsure) {
            return Ok(None);
        }
        if of_tables == 0 {
            return plan_err!("column \"{}\" specified in USING clause does not exist in {side} table", name.value);
        }
        return plan_err!(
            "common column name \"{}\" appears more than once in {side} table; write ON a.x = b.x instead",
            name.value
        );
    }
    if let Some(index) = merged {
        let WildcardPart::Merged(_, value) = parts.remove(index) else { return Ok(None) };
        return Ok(Some(*value));
    }
    for part in parts.iter_mut().filter(|part| has(part)) {
        let WildcardPart::Rest { table, columns, without, .. } = part else { continue };
        let column = columns.iter().flatten().find(|column| is_same(column, name));
        let column = column.map_or_else(|| name.clone(), |column| quoted(column.as_str()));
        without.push(column.clone());
        return Ok(Some(Expr::CompoundIdentifier(vec![table.clone(), column])));
    }
    Ok(None)
}

fn value_of(join: &Join, left: Expr, right: Expr) -> Expr {
    match join.join_operator {
        JoinOperator::Right(_) | JoinOperator::RightOuter(_) => right,
        JoinOperator::FullOuter(_) => call("coalesce", vec![left, right]),
        _ => left,
    }
}

fn constraint_of(join: &mut Join) -> Option<&mut JoinConstraint> {
    match &mut join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => Some(constraint),
        _ => None,
    }
}

/// Returns the merged columns whose names are not also names of other columns.
fn unambiguous_columns(parts: &[WildcardPart]) -> Vec<MergedColumn> {
    let meanings = |name: &str| {
        let count = |part: &WildcardPart| match part {
            WildcardPart::Merged(other, _) => usize::from(other.value == name),
            WildcardPart::Rest { columns, without, .. } => {
                let is_listed = !without.iter().any(|other| other.value == name);
                usize::from(is_listed && columns.iter().flatten().any(|column| column == name))
            }
        };
        parts.iter().map(count).sum::<usize>()
    };
    let merged = parts.iter().filter_map(|part| match part {
        WildcardPart::Merged(name, value) if meanings(&name.value) == 1 => {
            Some(MergedColumn { name: name.value.clone(), value: Expr::clone(value) })
        }
        _ => None,
    });
    merged.collect()
}

/// Replaces `*` with its columns.
fn expand_wildcards(select: &mut Select, parts: &[WildcardPart]) -> Result<()> {
    let mut expanded = Vec::new();
    for item in std::mem::take(&mut select.projection) {
        let SelectItem::Wildcard(options) = &item else {
            expanded.push(item);
            continue;
        };
        let excluded: Vec<Ident> = match &options.opt_exclude {
            None => Vec::new(),
            Some(ExcludeSelectItem::Single(name)) => single_identifier(name).into_iter().cloned().collect(),
            Some(ExcludeSelectItem::Multiple(names)) => names.iter().filter_map(single_identifier).cloned().collect(),
        };
        let plain = WildcardAdditionalOptions { opt_exclude: options.opt_exclude.clone(), ..Default::default() };
        if *options != plain {
            return plan_err!("* of a join with USING supports only EXCLUDE; name the columns instead");
        }
        expanded.extend(parts.iter().filter_map(|part| select_item(part, &excluded)));
    }
    select.projection = expanded;
    Ok(())
}

fn select_item(part: &WildcardPart, excluded: &[Ident]) -> Option<SelectItem> {
    match part {
        WildcardPart::Merged(name, _) if excluded.iter().any(|other| is_same(&name.value, other)) => None,
        WildcardPart::Merged(name, value) => {
            Some(SelectItem::ExprWithAlias { expr: Expr::clone(value), alias: quoted(name.value.as_str()) })
        }
        WildcardPart::Rest { name, columns, without, .. } => {
            let is_listed = |column: &String| !without.iter().chain(excluded).any(|name| is_same(column, name));
            if columns.as_ref().is_some_and(|columns| !columns.iter().any(is_listed)) {
                return None;
            }
            let has = |name: &&Ident| columns.iter().flatten().any(|column| is_same(column, name));
            let excluded = excluded.iter().filter(|name| columns.is_none() || has(name));
            let names: Vec<ObjectName> =
                without.iter().chain(excluded).map(|name| ObjectName::from(vec![name.clone()])).collect();
            let exclude = (!names.is_empty()).then_some(ExcludeSelectItem::Multiple(names));
            let options = WildcardAdditionalOptions { opt_exclude: exclude, ..Default::default() };
            let kind = SelectItemQualifiedWildcardKind::ObjectName(name.clone());
            Some(SelectItem::QualifiedWildcard(kind, options))
        }
    }
}

/// A merged column.
#[derive(Debug, Clone)]
struct MergedColumn {
    name: String,
    value: Expr,
}

/// Replaces the names in `part` of a query with the values. In subqueries, this excludes names that may refer to columns
/// of the subquery.
fn put_values(part: &mut impl VisitMut, merged: &[MergedColumn], scope: &mut NameScope<'_>) {
    if !merged.is_empty() {
        // The visitor never breaks.
        let _ = walk_mut(part, &mut MergedColumnRewriter { merged, scope, inner: Vec::new() });
    }
}

struct MergedColumnRewriter<'a, 'b> {
    merged: &'a [MergedColumn],
    scope: &'a mut NameScope<'b>,
    /// The names of columns and tables in the enclosing queries; `None` where they are unknown.
    inner: Vec<Option<HashSet<String>>>,
}

impl VisitorMut for MergedColumnRewriter<'_, '_> {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.enter(query);
        let mut names = Some(HashSet::new());
        let mut pending = vec![query.body.as_ref()];
        while let Some(body) = pending.pop() {
            match body {
                SetExpr::SetOperation { left, right, .. } => pending.extend([left.as_ref(), right.as_ref()]),
                SetExpr::Select(select) => add_names(self.scope, select, &mut names),
                _ => {}
            }
        }
        self.inner.push(names);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.leave();
        self.inner.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Self::Break> {
        let Expr::Identifier(name) = &*expression else { return ControlFlow::Continue(()) };
        let Some(merge) = self.merged.iter().find(|merge| merge.name == name.value) else {
            return ControlFlow::Continue(());
        };
        let is_free = |names: &Option<HashSet<String>>| {
            names.as_ref().is_some_and(|names| {
                !names.contains(&merge.name) && !tables_of(&merge.value).iter().any(|table| names.contains(table))
            })
        };
        if self.inner.iter().all(is_free) {
            *expression = merge.value.clone();
        }
        ControlFlow::Continue(())
    }
}

fn add_names(scope: &mut NameScope<'_>, select: &Select, names: &mut Option<HashSet<String>>) {
    for from in &select.from {
        let columns = scope.join_columns(from);
        let (Some(columns), Some(all)) = (columns, names.as_mut()) else {
            *names = None;
            return;
        };
        all.extend(columns);
        all.extend(factors(from).filter_map(qualifier_of).map(|name| name.value));
    }
}

/// Returns the tables that a value refers to.
fn tables_of(value: &Expr) -> Vec<String> {
    let mut tables = Vec::new();
    any_expression(value, |expression| {
        if let Expr::CompoundIdentifier(parts) = expression {
            tables.extend(parts.first().map(|table| table.value.clone()));
        }
        false
    });
    tables
}

/// Rewrites HAVING of `select`, and GROUP BY of no columns.
fn rewrite_having(select: &mut Select, scope: &mut NameScope<'_>) -> Result<()> {
    if select.having.is_some() {
        qualify(select, scope)?;
    }
    let GroupByExpr::Expressions(groups, _) = &mut select.group_by else { return Ok(()) };
    let count = groups.len();
    groups.retain(|group| !is_of_no_columns(group));
    if groups.is_empty() && (count > 0 || select.having.is_some()) {
        // The planner makes a group of all rows only for aggregates.
        let has_group = binary(call("count", vec![number(1)]), BinaryOperator::GtEq, number(0));
        select.having = Some(match select.having.take() {
            Some(condition) => binary(nested(condition), BinaryOperator::And, has_group),
            None => has_group,
        });
    }
    Ok(())
}

/// Whether `group` is `()`, or a list of only that grouping set.
fn is_of_no_columns(group: &Expr) -> bool {
    match group {
        Expr::Tuple(columns) => columns.is_empty(),
        Expr::GroupingSets(sets) => matches!(sets.as_slice(), [set] if set.is_empty()),
        _ => false,
    }
}

/// Qualifies names of columns that are also names of output columns, and refuses names that are only output columns.
fn qualify(select: &mut Select, scope: &mut NameScope<'_>) -> Result<()> {
    let computed = select.projection.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } => match expr {
            Expr::Identifier(name) if name.value == alias.value => None,
            Expr::CompoundIdentifier(parts) if parts.last().is_some_and(|part| part.value == alias.value) => None,
            _ => Some(alias.value.clone()),
        },
        _ => None,
    });
    let computed: HashSet<String> = computed.collect();
    if computed.is_empty() {
        return Ok(());
    }
    let mut tables = Vec::new();
    for from in &select.from {
        for factor in factors(from) {
            let (Some(name), Some(columns)) = (qualifier_of(factor), scope.factor_columns(factor)) else {
                return Ok(());
            };
            tables.push((name, columns));
        }
    }
    let mut unknown = None;
    for_each_expression(&mut select.having, |expression, depth| {
        let Expr::Identifier(name) = &*expression else { return };
        if depth > 0 || !computed.contains(&name.value) {
            return;
        }
        let mut having = tables.iter().filter(|(_, columns)| columns.contains(&name.value));
        match (having.next(), having.next()) {
            (Some((table, _)), None) => *expression = Expr::CompoundIdentifier(vec![table.clone(), name.clone()]),
            (None, _) => unknown = Some(name.value.clone()),
            _ => {}
        }
    });
    match unknown {
        Some(name) => plan_err!(
            "column \"{name}\" does not exist; HAVING takes columns of FROM and aggregates: write the \
             expression of {name} instead"
        ),
        None => Ok(()),
    }
}

/// The columns of each table that a row constructor names, by the name of the table.
type RowColumns = BTreeMap<String, Vec<Expr>>;

/// Expands the wildcards in row constructors of `select` and of its ORDER BY. Tables with unknown columns stay as they are.
fn expand_row_wildcards(select: &mut Select, order_by: &mut [OrderByExpr], scope: &mut NameScope<'_>) {
    let mut tables: Vec<ObjectName> = Vec::new();
    let mut find = |expression: &mut Expr, depth: usize| {
        if depth == 0 {
            tables.extend(wildcard_tables(expression));
        }
    };
    for_each_expression(select, &mut find);
    for order in order_by.iter_mut() {
        for_each_expression(&mut order.expr, &mut find);
    }
    let mut columns = RowColumns::new();
    for name in tables {
        if let Some(table) = single_identifier(&name)
            && let Some(names) = scope.table_columns_in_select(select, &name)
        {
            let column = |name: String| Expr::CompoundIdentifier(vec![table.clone(), quoted(name)]);
            columns.insert(table.value.clone(), names.into_iter().map(column).collect());
        }
    }
    if columns.is_empty() {
        return;
    }
    let replace = |expression: &mut Expr, depth: usize| {
        if depth == 0 {
            expand_row(expression, &columns);
        }
    };
    for_each_expression(select, replace);
    for order in order_by {
        for_each_expression(&mut order.expr, replace);
    }
}

/// Returns the tables whose columns `expression`, a row constructor, contains.
fn wildcard_tables(expression: &Expr) -> Vec<ObjectName> {
    match expression {
        Expr::Function(function) if is_named(&function.name, "row") => {
            let FunctionArguments::List(list) = &function.args else { return Vec::new() };
            list.args.iter().filter_map(wildcard_argument).cloned().collect()
        }
        Expr::Tuple(values) => values.iter().filter_map(wildcard_value).cloned().collect(),
        _ => Vec::new(),
    }
}

fn wildcard_argument(argument: &FunctionArg) -> Option<&ObjectName> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => Some(name),
        _ => None,
    }
}

fn wildcard_value(value: &Expr) -> Option<&ObjectName> {
    if let Expr::QualifiedWildcard(name, _) = value { Some(name) } else { None }
}

fn columns_of<'a>(table: Option<&ObjectName>, columns: &'a RowColumns) -> Option<&'a Vec<Expr>> {
    columns.get(&single_identifier(table?)?.value)
}

fn expand_row(expression: &mut Expr, columns: &RowColumns) {
    match expression {
        Expr::Function(function) if is_named(&function.name, "row") => {
            let FunctionArguments::List(list) = &mut function.args else { return };
            for argument in std::mem::take(&mut list.args) {
                match columns_of(wildcard_argument(&argument), columns) {
                    Some(columns) => list.args.extend(columns.iter().cloned().map(unnamed)),
                    None => list.args.push(argument),
                }
            }
        }
        Expr::Tuple(values) => {
            for value in std::mem::take(values) {
                match columns_of(wildcard_value(&value), columns) {
                    Some(columns) => values.extend(columns.iter().cloned()),
                    None => values.push(value),
                }
            }
        }
        _ => {}
    }
}
