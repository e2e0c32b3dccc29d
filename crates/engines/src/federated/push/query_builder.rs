//! Builds one query of a member.

use std::fmt::Write as _;

use datafusion::arrow::datatypes::FieldRef;

#[derive(Debug, Clone)]
pub(crate) struct SqlColumn {
    pub(crate) sql: String,
    pub(crate) field: FieldRef,
}

/// `SELECT columns FROM from WHERE conditions …`. Each piece is SQL of the member: quoted names, keywords and
/// placeholders, but never a value.
#[derive(Debug, Clone)]
pub(crate) struct MemberQueryBuilder {
    pub(super) from: String,
    pub(super) conditions: Vec<String>,
    /// The grouping expressions of an aggregate. Empty: one group of all rows.
    pub(super) groups: Option<Vec<String>>,
    pub(super) order: Vec<String>,
    pub(super) rows_max: Option<usize>,
    pub(super) columns: Vec<SqlColumn>,
    pub(super) is_joined: bool,
    /// Whether it is more than a scan of one table.
    pub(super) is_worth_pushing: bool,
}

impl MemberQueryBuilder {
    pub(crate) fn column_name(position: usize) -> String {
        format!("c{position}")
    }

    /// The query with each column once, and the position there of each column of this one.
    pub(super) fn without_repeats(&self) -> (Self, Vec<usize>) {
        let mut columns: Vec<SqlColumn> = Vec::with_capacity(self.columns.len());
        let positions = self.columns.iter().map(|column| {
            let field = |column: &SqlColumn| column.field.as_ref().clone().with_name("");
            let is_same = |known: &SqlColumn| known.sql == column.sql && field(known) == field(column);
            columns.iter().position(is_same).unwrap_or_else(|| {
                columns.push(column.clone());
                columns.len() - 1
            })
        });
        let positions = positions.collect();
        (Self { columns, ..self.clone() }, positions)
    }

    /// Whether further clauses require a subquery.
    pub(super) fn is_closed(&self) -> bool {
        self.groups.is_some() || self.rows_max.is_some()
    }

    pub(crate) fn sql(&self) -> String {
        let named = |(position, term): (usize, &SqlColumn)| format!("{} AS {}", term.sql, Self::column_name(position));
        let columns: Vec<String> = self.columns.iter().enumerate().map(named).collect();
        // If a query has no columns, only the number of rows matters.
        let columns = if columns.is_empty() { "1 AS c0".to_owned() } else { columns.join(", ") };
        let mut sql = format!("SELECT {columns} FROM {}", self.from);
        let mut clause = |keyword: &str, items: &[String], separator: &str| {
            if !items.is_empty() {
                // Writing to a string does not fail.
                let _ = write!(sql, " {keyword} {}", items.join(separator));
            }
        };
        clause("WHERE", &self.conditions, " AND ");
        clause("GROUP BY", self.groups.as_deref().unwrap_or_default(), ", ");
        clause("ORDER BY", &self.order, ", ");
        if let Some(rows) = self.rows_max {
            clause("LIMIT", &[rows.to_string()], "");
        }
        sql
    }

    pub(super) fn wrapped(self, alias: &str) -> Self {
        let from = format!("({}) AS {alias}", self.sql());
        let named = |(position, term): (usize, SqlColumn)| SqlColumn {
            sql: format!("{alias}.{}", Self::column_name(position)),
            field: term.field,
        };
        Self {
            from,
            conditions: Vec::new(),
            groups: None,
            order: Vec::new(),
            rows_max: None,
            columns: self.columns.into_iter().enumerate().map(named).collect(),
            is_joined: false,
            is_worth_pushing: self.is_worth_pushing,
        }
    }
}
