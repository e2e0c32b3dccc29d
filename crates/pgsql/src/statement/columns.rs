//! The columns of relations in FROM, as far as the statement and the catalog define their names.

use datafusion::sql::sqlparser::ast::{
    Cte, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor, TableWithJoins, WildcardAdditionalOptions, With,
};

use crate::column_names::column_name;
use crate::set_returning::find_set_returning;
use crate::syntax::{factors, last_identifier, single_identifier};

/// Returns the column names of a table of the catalog.
pub type TableColumns<'a> = &'a dyn Fn(&ObjectName) -> Option<Vec<String>>;

/// An expression of a WITH clause.
struct CteColumns {
    name: String,
    columns: Option<Vec<String>>,
    /// The query of the WITH clause. In it, its own name and later names do not refer to expressions of this WITH.
    query: *const Query,
}

/// The names of one WITH clause.
struct WithFrame {
    named: Vec<CteColumns>,
    /// The number of names that are visible at this point.
    visible: usize,
    is_recursive: bool,
}

/// Resolves table names at one point of a statement.
pub(super) struct NameScope<'a> {
    tables: TableColumns<'a>,
    frames: Vec<WithFrame>,
}

impl<'a> NameScope<'a> {
    pub(super) fn new(tables: TableColumns<'a>) -> Self {
        Self { tables, frames: Vec::new() }
    }

    /// Enters `query`, so that the names of its WITH clause are visible.
    pub(super) fn enter(&mut self, query: &Query) {
        let address = std::ptr::from_ref(query);
        if let Some(frame) = self.frames.last_mut()
            && let Some(index) = frame.named.iter().position(|named| named.query == address)
        {
            frame.visible = index + usize::from(frame.is_recursive);
        }
        let is_recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        self.frames.push(WithFrame { named: Vec::new(), visible: 0, is_recursive });
        for cte in query.with.iter().flat_map(|With { cte_tables, .. }| cte_tables) {
            let columns = self.cte_columns(cte);
            let named =
                CteColumns { name: cte.alias.name.value.clone(), columns, query: std::ptr::from_ref(&*cte.query) };
            if let Some(frame) = self.frames.last_mut() {
                frame.named.push(named);
                frame.visible = frame.named.len();
            }
        }
    }

    /// Leaves the query that was entered last.
    pub(super) fn leave(&mut self) {
        self.frames.pop();
        if let Some(frame) = self.frames.last_mut() {
            frame.visible = frame.named.len();
        }
    }

    fn cte_columns(&mut self, cte: &Cte) -> Option<Vec<String>> {
        rename_columns(self.query_columns(&cte.query)?, Some(&cte.alias))
    }

    /// Returns the output columns of `query`.
    pub(super) fn query_columns(&mut self, query: &Query) -> Option<Vec<String>> {
        self.enter(query);
        let columns = self.body_columns(&query.body);
        self.leave();
        columns
    }

    fn body_columns(&mut self, mut body: &SetExpr) -> Option<Vec<String>> {
        loop {
            match body {
                SetExpr::SetOperation { left, .. } => body = left,
                SetExpr::Query(query) => return self.query_columns(query),
                SetExpr::Select(select) => return self.select_columns(select),
                SetExpr::Values(values) => {
                    let row = values.rows.first()?;
                    return Some((1..=row.content.len()).map(|number| format!("column{number}")).collect());
                }
                _ => return None,
            }
        }
    }

    fn select_columns(&mut self, select: &Select) -> Option<Vec<String>> {
        let mut columns = Vec::new();
        for item in &select.projection {
            match item {
                SelectItem::UnnamedExpr(expression) => columns.push(column_name(expression)),
                SelectItem::ExprWithAlias { alias, .. } => columns.push(alias.value.clone()),
                SelectItem::Wildcard(options) if *options == WildcardAdditionalOptions::default() => {
                    for from in &select.from {
                        columns.extend(self.join_columns(from)?);
                    }
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                    if *options == WildcardAdditionalOptions::default() =>
                {
                    columns.extend(self.table_columns_in_select(select, name)?);
                }
                _ => return None,
            }
        }
        Some(columns)
    }

    /// Returns the columns of the table `name` in FROM of `select`.
    pub(super) fn table_columns_in_select(&mut self, select: &Select, name: &ObjectName) -> Option<Vec<String>> {
        let expected = &single_identifier(name)?.value;
        let mut tables = select.from.iter().flat_map(factors);
        let table = tables.find(|table| qualifier_of(table).is_some_and(|name| name.value == *expected))?;
        self.factor_columns(table)
    }

    /// Returns the columns that `*` expands to for `from`.
    pub(super) fn join_columns(&mut self, from: &TableWithJoins) -> Option<Vec<String>> {
        let mut columns = self.factor_columns(&from.relation)?;
        for join in &from.joins {
            let right = self.factor_columns(&join.relation)?;
            let mut merged = match join_constraint(join)? {
                JoinConstraint::Using(names) => names
                    .iter()
                    .map(|name| single_identifier(name).map(|name| name.value.clone()))
                    .collect::<Option<Vec<_>>>()?,
                JoinConstraint::Natural => columns.iter().filter(|column| right.contains(column)).cloned().collect(),
                JoinConstraint::On(_) | JoinConstraint::None => Vec::new(),
            };
            let is_new = |column: &String| !merged.contains(column);
            let rest: Vec<String> = columns.into_iter().chain(right).filter(is_new).collect();
            merged.extend(rest);
            columns = merged;
        }
        Some(columns)
    }

    /// Returns the columns of `factor`.
    pub(super) fn factor_columns(&mut self, factor: &TableFactor) -> Option<Vec<String>> {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                rename_columns(self.table_columns(name)?, alias.as_ref())
            }
            TableFactor::Derived { subquery, alias, .. } => {
                rename_columns(self.query_columns(subquery)?, alias.as_ref())
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                rename_columns(self.join_columns(table_with_joins)?, alias.as_ref())
            }
            TableFactor::Table { name, args: Some(_), with_ordinality, alias, .. }
            | TableFactor::Function { name, with_ordinality, alias, .. } => {
                function_columns(&name.to_string().to_lowercase(), *with_ordinality, alias.as_ref())
            }
            TableFactor::UNNEST { array_exprs, with_ordinality, alias, .. } if array_exprs.len() == 1 => {
                function_columns("unnest", *with_ordinality, alias.as_ref())
            }
            _ => None,
        }
    }

    fn table_columns(&self, name: &ObjectName) -> Option<Vec<String>> {
        if let Some(name) = single_identifier(name) {
            let frames = self.frames.iter().rev();
            let mut visible = frames.flat_map(|frame| frame.named[..frame.visible].iter().rev());
            if let Some(named) = visible.find(|named| named.name == name.value) {
                return named.columns.clone();
            }
        }
        (self.tables)(name)
    }
}

fn function_columns(name: &str, with_ordinality: bool, alias: Option<&TableAlias>) -> Option<Vec<String>> {
    let mut columns: Vec<String> = match find_set_returning(name) {
        Some(function) if !function.columns.is_empty() => {
            function.columns.iter().map(|column| (*column).to_owned()).collect()
        }
        None if name != "unnest" => return None,
        _ => vec![alias.map_or_else(|| name.to_owned(), |alias| alias.name.value.clone())],
    };
    if with_ordinality {
        columns.push("ordinality".to_owned());
    }
    rename_columns(columns, alias)
}

/// Gives the first of `columns` the column names of `alias`.
fn rename_columns(mut columns: Vec<String>, alias: Option<&TableAlias>) -> Option<Vec<String>> {
    for (column, renamed) in columns.iter_mut().zip(alias.into_iter().flat_map(|alias| &alias.columns)) {
        column.clone_from(&renamed.name.value);
    }
    Some(columns)
}

/// Returns the join constraint; `None` for joins that PostgreSQL does not have.
pub(super) fn join_constraint(join: &Join) -> Option<&JoinConstraint> {
    match &join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::CrossJoin(constraint) => Some(constraint),
        _ => None,
    }
}

/// Returns the name that qualifies the columns of `factor`.
pub(super) fn qualifier_of(factor: &TableFactor) -> Option<Ident> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. } => Some(alias.name.clone()),
        TableFactor::Table { name, alias: None, .. } | TableFactor::Function { name, alias: None, .. } => {
            last_identifier(name).cloned()
        }
        TableFactor::UNNEST { alias: None, .. } => Some(Ident::new("unnest")),
        _ => None,
    }
}
