//! The columns of what stands in FROM, as far as the statement and the catalog tell their names.

use datafusion::sql::sqlparser::ast::{
    Cte, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor, TableWithJoins, WildcardAdditionalOptions, With,
};

use super::names::column_name;
use super::set_returning::set_returning;

/// The names of the columns of a table of the catalog.
pub type TableColumns<'a> = &'a dyn Fn(&ObjectName) -> Option<Vec<String>>;

/// An expression of WITH.
struct Named {
    name: String,
    columns: Option<Vec<String>>,
    /// Where its query is, whose own name and those after it do not mean expressions of this WITH.
    query: *const Query,
}

/// The names of one WITH.
struct Frame {
    named: Vec<Named>,
    /// How many of them can be used at this place.
    visible: usize,
    is_recursive: bool,
}

/// What the names of tables mean at a place of a statement.
pub(super) struct Scope<'a> {
    tables: TableColumns<'a>,
    frames: Vec<Frame>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(tables: TableColumns<'a>) -> Self {
        Self { tables, frames: Vec::new() }
    }

    /// Goes into `query`, whose WITH counts from here on.
    pub(super) fn enter(&mut self, query: &Query) {
        let place = std::ptr::from_ref(query);
        if let Some(frame) = self.frames.last_mut()
            && let Some(index) = frame.named.iter().position(|named| named.query == place)
        {
            frame.visible = index + usize::from(frame.is_recursive);
        }
        let is_recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        self.frames.push(Frame { named: Vec::new(), visible: 0, is_recursive });
        for cte in query.with.iter().flat_map(|With { cte_tables, .. }| cte_tables) {
            let columns = self.of_expression(cte);
            let named = Named { name: cte.alias.name.value.clone(), columns, query: std::ptr::from_ref(&*cte.query) };
            if let Some(frame) = self.frames.last_mut() {
                frame.named.push(named);
                frame.visible = frame.named.len();
            }
        }
    }

    /// Goes out of the query that was entered last.
    pub(super) fn leave(&mut self) {
        self.frames.pop();
        if let Some(frame) = self.frames.last_mut() {
            frame.visible = frame.named.len();
        }
    }

    fn of_expression(&mut self, cte: &Cte) -> Option<Vec<String>> {
        let columns = self.of_query(&cte.query);
        renamed(columns, &cte.alias)
    }

    /// The columns of the answer to `query`.
    pub(super) fn of_query(&mut self, query: &Query) -> Option<Vec<String>> {
        self.enter(query);
        let columns = self.of_body(&query.body);
        self.leave();
        columns
    }

    fn of_body(&mut self, mut body: &SetExpr) -> Option<Vec<String>> {
        loop {
            match body {
                SetExpr::SetOperation { left, .. } => body = left,
                SetExpr::Query(query) => return self.of_query(query),
                SetExpr::Select(select) => return self.of_select(select),
                SetExpr::Values(values) => {
                    let row = values.rows.first()?;
                    return Some((1..=row.content.len()).map(|number| format!("column{number}")).collect());
                }
                _ => return None,
            }
        }
    }

    fn of_select(&mut self, select: &Select) -> Option<Vec<String>> {
        let mut columns = Vec::new();
        for item in &select.projection {
            match item {
                SelectItem::UnnamedExpr(expression) => columns.push(column_name(expression)),
                SelectItem::ExprWithAlias { alias, .. } => columns.push(alias.value.clone()),
                SelectItem::Wildcard(options) if *options == WildcardAdditionalOptions::default() => {
                    for from in &select.from {
                        columns.extend(self.of_joins(from)?);
                    }
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                    if *options == WildcardAdditionalOptions::default() =>
                {
                    columns.extend(self.of_table_in(select, name)?);
                }
                _ => return None,
            }
        }
        Some(columns)
    }

    fn of_table_in(&mut self, select: &Select, name: &ObjectName) -> Option<Vec<String>> {
        let [part] = name.0.as_slice() else { return None };
        let wanted = &part.as_ident()?.value;
        let factors = select
            .from
            .iter()
            .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
        let factor = factors.into_iter().find(|factor| name_of(factor).is_some_and(|name| name.value == *wanted))?;
        self.of_factor(factor)
    }

    /// The columns that `*` means of `from`.
    pub(super) fn of_joins(&mut self, from: &TableWithJoins) -> Option<Vec<String>> {
        let mut columns = self.of_factor(&from.relation)?;
        for join in &from.joins {
            let right = self.of_factor(&join.relation)?;
            let mut merged = match constraint(join)? {
                JoinConstraint::Using(names) => {
                    names.iter().map(|name| only_part(name).map(|name| name.value)).collect::<Option<Vec<_>>>()?
                }
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

    /// The columns of `factor`.
    pub(super) fn of_factor(&mut self, factor: &TableFactor) -> Option<Vec<String>> {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let columns = self.of_table(name);
                alias.as_ref().map_or(columns.clone(), |alias| renamed(columns, alias))
            }
            TableFactor::Derived { subquery, alias, .. } => {
                let columns = self.of_query(subquery);
                alias.as_ref().map_or(columns.clone(), |alias| renamed(columns, alias))
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let columns = self.of_joins(table_with_joins);
                alias.as_ref().map_or(columns.clone(), |alias| renamed(columns, alias))
            }
            TableFactor::Table { name, args: Some(_), with_ordinality, alias, .. }
            | TableFactor::Function { name, with_ordinality, alias, .. } => {
                of_function(&name.to_string().to_lowercase(), *with_ordinality, alias.as_ref())
            }
            TableFactor::UNNEST { array_exprs, with_ordinality, alias, .. } if array_exprs.len() == 1 => {
                of_function("unnest", *with_ordinality, alias.as_ref())
            }
            _ => None,
        }
    }

    fn of_table(&self, name: &ObjectName) -> Option<Vec<String>> {
        if let Some(name) = only_part(name) {
            let frames = self.frames.iter().rev();
            let mut visible = frames.flat_map(|frame| frame.named[..frame.visible].iter().rev());
            if let Some(named) = visible.find(|named| named.name == name.value) {
                return named.columns.clone();
            }
        }
        (self.tables)(name)
    }
}

fn of_function(name: &str, with_ordinality: bool, alias: Option<&TableAlias>) -> Option<Vec<String>> {
    let mut columns: Vec<String> = match set_returning(name) {
        Some(function) if !function.columns.is_empty() => {
            function.columns.iter().map(|column| (*column).to_owned()).collect()
        }
        None if name != "unnest" => return None,
        _ => vec![alias.map_or_else(|| name.to_owned(), |alias| alias.name.value.clone())],
    };
    if with_ordinality {
        columns.push("ordinality".to_owned());
    }
    alias.map_or(Some(columns.clone()), |alias| renamed(Some(columns), alias))
}

/// `columns` with the names that `alias` gives to the first of them.
fn renamed(columns: Option<Vec<String>>, alias: &TableAlias) -> Option<Vec<String>> {
    let mut columns = columns?;
    for (column, given) in columns.iter_mut().zip(&alias.columns) {
        column.clone_from(&given.name.value);
    }
    Some(columns)
}

/// How `join` joins; none for joins that PostgreSQL does not have.
pub(super) fn constraint(join: &Join) -> Option<&JoinConstraint> {
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

/// The name, if it has one part.
pub(super) fn only_part(name: &ObjectName) -> Option<Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident().cloned(),
        _ => None,
    }
}

/// The name by which the columns of `factor` are qualified.
pub(super) fn name_of(factor: &TableFactor) -> Option<Ident> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. } => Some(alias.name.clone()),
        TableFactor::Table { name, alias: None, .. } | TableFactor::Function { name, alias: None, .. } => {
            name.0.last()?.as_ident().cloned()
        }
        TableFactor::UNNEST { alias: None, .. } => Some(Ident::new("unnest")),
        _ => None,
    }
}
