//! The tables of a query and their columns, to resolve names.

use std::collections::BTreeSet;

use sqlparser::ast::Expr;

use crate::database::Database;
use crate::spec::QuerySpec;
use tidegate_core::{Error, ErrorKind, Principal, nearest_names};
use tidegate_sql::SqlDialect;

const LISTED_MAX: usize = 60;

pub(super) struct TableScope {
    /// The name of the database, which may come before those of tables.
    database: String,
    tables: Vec<ScopeTable>,
}

struct ScopeTable {
    /// The name that qualifies columns in the query spec.
    reference: String,
    /// The qualifier of columns in the SQL.
    qualifier: Vec<String>,
    columns: Vec<String>,
}

impl ScopeTable {
    /// The column in `table.column`, if the table is this one. For a qualified table the last part is enough.
    fn strip_qualifier<'a>(&self, name: &'a str) -> Option<&'a str> {
        let names = [Some(&self.reference), self.qualifier.last()];
        names.into_iter().flatten().find_map(|table| {
            let prefix = name.get(..table.len()).filter(|prefix| prefix.eq_ignore_ascii_case(table))?;
            name[prefix.len()..].strip_prefix('.')
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ColumnPosition {
    table: usize,
    column: usize,
}

impl TableScope {
    pub(super) async fn load(spec: &QuerySpec, database: &dyn Database, principal: &Principal) -> Result<Self, Error> {
        let dialect = database.dialect();
        let joined = spec.joins.iter().map(|join| (join.reference(), join.table.as_str()));
        let mut tables: Vec<ScopeTable> = Vec::with_capacity(spec.joins.len() + 1);
        for (reference, table) in std::iter::once((spec.table.as_str(), spec.table.as_str())).chain(joined) {
            let is_alias = reference != table;
            let qualifier = if is_alias { vec![reference.to_owned()] } else { dialect.table_parts(table) };
            // In the SQL, a qualified table is known by its last part.
            if tables.iter().any(|table| table.reference == reference || table.qualifier.last() == qualifier.last()) {
                let message = format!("the table {reference:?} is used twice");
                return Err(Error::new(ErrorKind::InvalidArguments, message)
                    .with_hint("Give the joined table an alias: {\"table\": …, \"as\": \"other\", \"on\": …}."));
            }
            let columns = database.columns(table, principal).await?;
            let columns = columns.into_iter().map(|column| column.name).collect();
            tables.push(ScopeTable { reference: reference.to_owned(), qualifier, columns });
        }
        Ok(Self { database: database.name().to_owned(), tables })
    }

    pub(super) fn resolve(&self, name: &str) -> Result<ColumnPosition, String> {
        self.resolve_within(name, 0..self.tables.len())
    }

    /// Like [`TableScope::resolve`], preferring the joined table `index` (from 1).
    pub(super) fn resolve_joined(&self, name: &str, index: usize) -> Result<ColumnPosition, String> {
        self.resolve_within(name, index..index + 1).or_else(|_| self.resolve_within(name, 0..index + 1))
    }

    /// Like [`TableScope::resolve`], preferring the tables before the joined table `index` (from 1).
    pub(super) fn resolve_before(&self, name: &str, index: usize) -> Result<ColumnPosition, String> {
        let joined = |reason: String| self.resolve_within(name, index..index + 1).map_err(|_| reason);
        self.resolve_within(name, 0..index).or_else(joined)
    }

    fn resolve_within(&self, name: &str, tables: std::ops::Range<usize>) -> Result<ColumnPosition, String> {
        match self.find_columns(tables.clone(), name).as_slice() {
            [position] => Ok(*position),
            [] => self.find_qualified(name, tables).ok_or_else(|| self.column_problem(name, &[])),
            several => Err(self.ambiguous_column_message(name, several)),
        }
    }

    /// The columns called `name`, or else those whose names differ only in case.
    fn find_columns(&self, tables: std::ops::Range<usize>, name: &str) -> Vec<ColumnPosition> {
        let find = |is_meant: fn(&str, &str) -> bool| -> Vec<ColumnPosition> {
            let all = tables.clone().flat_map(|table| {
                let columns = self.tables[table].columns.iter().enumerate();
                columns.map(move |(column, own)| (own, ColumnPosition { table, column }))
            });
            all.filter(|(own, _)| is_meant(own, name)).map(|(_, position)| position).collect()
        };
        let exact = find(|own, name| own == name);
        if exact.is_empty() { find(str::eq_ignore_ascii_case) } else { exact }
    }

    fn find_qualified(&self, name: &str, tables: std::ops::Range<usize>) -> Option<ColumnPosition> {
        tables.into_iter().find_map(|table| {
            let unqualified = name.strip_prefix(&*self.database).and_then(|name| name.strip_prefix('.'));
            let names = [Some(name), unqualified].into_iter().flatten();
            let column = names.filter_map(|name| self.tables[table].strip_qualifier(name)).next()?;
            match self.find_columns(table..table + 1, column).as_slice() {
                [position] => Some(*position),
                _ => None,
            }
        })
    }

    /// The expression of a column; qualified if there are several tables.
    pub(super) fn column_expression(&self, position: ColumnPosition, dialect: SqlDialect) -> Expr {
        let table = &self.tables[position.table];
        let column = dialect.identifier(&table.columns[position.column]);
        if self.tables.len() == 1 {
            Expr::Identifier(column)
        } else {
            let qualifier = table.qualifier.iter().map(|part| dialect.identifier(part));
            Expr::CompoundIdentifier(qualifier.chain([column]).collect())
        }
    }

    fn qualified_name(&self, position: ColumnPosition) -> String {
        let table = &self.tables[position.table];
        format!("{}.{}", table.reference, table.columns[position.column])
    }

    fn ambiguous_column_message(&self, name: &str, several: &[ColumnPosition]) -> String {
        let qualified: Vec<String> = several.iter().map(|position| self.qualified_name(*position)).collect();
        format!("{name:?} is a column of several tables; use one of: {}", qualified.join(", "))
    }

    /// The message for `name`, which is neither one column nor one of `others`.
    pub(super) fn column_problem(&self, name: &str, others: &[&str]) -> String {
        let found = self.find_columns(0..self.tables.len(), name);
        if found.len() > 1 {
            return self.ambiguous_column_message(name, &found);
        }
        let unqualified = name.rsplit_once('.').map_or(name, |(_, column)| column);
        let columns = self.tables.iter().flat_map(|table| table.columns.iter().map(String::as_str));
        let names: BTreeSet<&str> = columns.chain(others.iter().copied()).collect();
        let near = nearest_names(unqualified, names).into_iter().flat_map(|name| self.full_names(name));
        let near = near.collect::<Vec<_>>().join(", ");
        let advice = if name.contains('(') {
            "; a function is written {\"function\": \"count\", \"column\": …} or {\"expression\": …, \"as\": …}"
                .to_owned()
        } else if near.is_empty() {
            String::new()
        } else {
            format!("; nearest: {near}")
        };
        format!("there is no column {name:?}{advice}")
    }

    /// The names under which a query can use the columns called `name`; `name` itself if there are none.
    fn full_names(&self, name: String) -> Vec<String> {
        let tables = self.tables.iter().enumerate().filter(|_| self.tables.len() > 1);
        let columns = tables.filter_map(|(table, own)| {
            let column = own.columns.iter().position(|column| *column == name)?;
            Some(self.qualified_name(ColumnPosition { table, column }))
        });
        let qualified: Vec<String> = columns.collect();
        if qualified.is_empty() { vec![name] } else { qualified }
    }

    pub(super) fn list_columns(&self) -> String {
        let of = |table: &ScopeTable| {
            let visible: Vec<&str> = table.columns.iter().take(LISTED_MAX).map(String::as_str).collect();
            let more = table.columns.len().saturating_sub(LISTED_MAX);
            let rest = if more > 0 { format!(" and {more} more (get_schema lists them)") } else { String::new() };
            format!("Columns of {}: {}{rest}", table.reference, visible.join(", "))
        };
        self.tables.iter().map(of).collect::<Vec<_>>().join("\n")
    }
}
