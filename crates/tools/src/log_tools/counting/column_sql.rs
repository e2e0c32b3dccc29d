//! The columns of a source as expressions of SQL that compare as the display forms of their values do.
//!
//! Only types whose values the database distinguishes exactly as their display forms are distinguished have such an
//! expression. Floats have none: zero and negative zero are equal in SQL and have two display forms.

use tidegate_query::{BoundExpression, QueryCondition};
use tidegate_sql::SqlDialect;
use tidegate_telemetry::logs::{MISSING, SelectedValues};

use crate::log_tools::statement::PUSHED_VALUES_MAX;
use crate::source_columns::SourceColumn;

/// An expression without values.
pub(super) fn plain(text: impl Into<String>) -> QueryCondition {
    QueryCondition::Bound(BoundExpression { text: text.into(), values: Vec::new() })
}

/// A condition that is the same for each row.
pub(super) fn constant(is_true: bool) -> QueryCondition {
    plain(if is_true { "1 = 1" } else { "1 = 0" })
}

/// How the values of a column compare in SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnForm {
    /// Text.
    Text,
    /// Integers and truth values: their text in SQL is their display form.
    Castable,
    /// Times. Their text in SQL is another than their display form.
    Moment,
    /// In SQLite, each value has a type of its own.
    Any,
}

/// A column with its expression.
#[derive(Debug, Clone)]
pub(super) struct ColumnSql {
    dialect: SqlDialect,
    /// The quoted name.
    pub(super) name: String,
    pub(super) form: ColumnForm,
}

impl ColumnSql {
    /// `None` if SQL may take different values for the same.
    pub(super) fn new(dialect: SqlDialect, column: &SourceColumn) -> Option<Self> {
        let form = if dialect.has_typed_columns() { typed_form(&column.type_name)? } else { ColumnForm::Any };
        Some(Self { dialect, name: dialect.quote_identifier(&column.name), form })
    }

    /// The column with the comparison of bytes, whatever the collation of the column is.
    pub(super) fn bytes(&self) -> String {
        match (self.dialect, self.form) {
            (SqlDialect::Postgres, ColumnForm::Text) => format!("{} COLLATE \"C\"", self.name),
            (SqlDialect::Sqlite, _) => format!("{} COLLATE BINARY", self.name),
            (SqlDialect::DataFusion | SqlDialect::Postgres, _) => self.name.clone(),
        }
    }

    /// The display form where the value is not null; `None` if SQL cannot write it.
    pub(super) fn display_text(&self) -> Option<String> {
        match self.form {
            ColumnForm::Text => Some(self.bytes()),
            ColumnForm::Castable => Some(format!("CAST({} AS text)", self.name)),
            ColumnForm::Any => Some(format!("CAST({} AS text) COLLATE BINARY", self.name)),
            ColumnForm::Moment => None,
        }
    }

    /// The further keys that distinguish groups of equal values.
    pub(super) fn type_key(&self) -> Option<String> {
        (self.form == ColumnForm::Any).then(|| format!("typeof({})", self.name))
    }

    /// The rows whose value [`Self::display_text`] writes as its display form.
    pub(super) fn has_display_text(&self) -> Option<QueryCondition> {
        (self.form == ColumnForm::Any).then(|| plain(format!("typeof({}) IN ('null', 'integer', 'text')", self.name)))
    }

    /// The rows whose value is in the same group as all rows with the same display form.
    pub(super) fn has_own_group(&self) -> Option<QueryCondition> {
        let name = &self.name;
        (self.form == ColumnForm::Any).then(|| plain(format!("typeof({name}) <> 'real' OR {name} <> 0")))
    }

    /// The rows where the value is missing.
    pub(super) fn is_missing(&self) -> QueryCondition {
        let Self { name, form, .. } = self;
        match form {
            ColumnForm::Text => plain(format!("{name} IS NULL OR {} = '{MISSING}'", self.bytes())),
            ColumnForm::Any => {
                let dash = format!("typeof({name}) = 'text' AND {} = '{MISSING}'", self.bytes());
                plain(format!("{name} IS NULL OR ({dash})"))
            }
            ColumnForm::Castable | ColumnForm::Moment => plain(format!("{name} IS NULL")),
        }
    }

    /// The rows with one of `values`; `None` if SQL cannot compare them.
    pub(super) fn is_selected(&self, values: &SelectedValues) -> Option<QueryCondition> {
        let list = values.to_sorted();
        if list.len() > PUSHED_VALUES_MAX || list.iter().any(|value| !is_exact_text(value)) {
            return None;
        }
        let mut sql = BoundExpression::default();
        let placeholders: Vec<String> = list.into_iter().map(|value| sql.bind(value)).collect();
        let placeholders = placeholders.join(", ");
        let text = self.display_text()?;
        // An index of the column has its own collation, and equal bytes are equal in each of them.
        let indexed = match self.form {
            ColumnForm::Text => format!("{} IN ({placeholders}) AND ", self.name),
            _ => String::new(),
        };
        let missing = match values.selects_missing() {
            true => format!(" OR {} IS NULL", self.name),
            false => String::new(),
        };
        sql.text = format!("({indexed}{text} IN ({placeholders})){missing}");
        Some(QueryCondition::Bound(sql))
    }
}

/// Whether a text arrives in the database as it is. U+FFFD may stand for bytes that are no UTF-8.
pub(super) fn is_exact_text(text: &str) -> bool {
    !text.contains(['\0', '\u{fffd}'])
}

/// The form of a column by the name of its type, which must be exactly known: domains and types of extensions have
/// comparisons of their own.
fn typed_form(type_name: &str) -> Option<ColumnForm> {
    let name = type_name.to_ascii_lowercase();
    let base = name.split('(').next().unwrap_or_default().trim();
    match base {
        "text" | "character varying" | "varchar" => Some(ColumnForm::Text),
        "tinyint" | "smallint" | "integer" | "bigint" | "boolean" => Some(ColumnForm::Castable),
        "tinyint unsigned" | "smallint unsigned" | "integer unsigned" | "bigint unsigned" => Some(ColumnForm::Castable),
        "timestamp" | "date" => Some(ColumnForm::Moment),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_with_comparisons_of_their_own_have_no_form() {
        let form = |name: &str| typed_form(name);
        assert_eq!(form("character varying(20)"), Some(ColumnForm::Text));
        assert_eq!(form("timestamp(3) with time zone"), Some(ColumnForm::Moment));
        assert_eq!(form("BIGINT"), Some(ColumnForm::Castable));
        for name in ["citext", "character(5)", "bpchar", "int4range", "double precision", "numeric(10,2)", "text[]"] {
            assert_eq!(form(name), None, "{name}");
        }
    }
}
