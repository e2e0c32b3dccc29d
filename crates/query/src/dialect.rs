//! The SQL of an engine: how it is parsed, how its identifiers are quoted and folded.

use sqlparser::ast::Ident;
use sqlparser::dialect::{Dialect, GenericDialect, PostgreSqlDialect, SQLiteDialect};

/// The SQL that a database is asked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SqlDialect {
    /// DataFusion's: PostgreSQL's manner with `QUALIFY`, `unnest`, array and struct literals.
    DataFusion,
    /// PostgreSQL's.
    Postgres,
    /// SQLite's.
    Sqlite,
}

impl SqlDialect {
    /// The grammar of the parser.
    pub fn parser_dialect(self) -> &'static dyn Dialect {
        static GENERIC: GenericDialect = GenericDialect {};
        static POSTGRES: PostgreSqlDialect = PostgreSqlDialect {};
        static SQLITE: SQLiteDialect = SQLiteDialect {};
        match self {
            Self::DataFusion => &GENERIC,
            Self::Postgres => &POSTGRES,
            Self::Sqlite => &SQLITE,
        }
    }

    /// The name as texts for the caller show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::DataFusion => "DataFusion SQL (close to PostgreSQL)",
            Self::Postgres => "PostgreSQL",
            Self::Sqlite => "SQLite",
        }
    }

    /// `identifier` in quotes, whatever is in it.
    pub fn quote(self, identifier: &str) -> String {
        // Not by printing an `Ident`: sqlparser leaves a quote after a backslash as it is.
        match self {
            Self::DataFusion | Self::Postgres | Self::Sqlite => format!("\"{}\"", identifier.replace('"', "\"\"")),
        }
    }

    /// `name` as a quoted node of the AST.
    pub fn identifier(self, name: &str) -> Ident {
        match self {
            Self::DataFusion | Self::Postgres | Self::Sqlite => Ident::with_quote('"', name),
        }
    }

    /// The name that `identifier` stands for: unquoted ones fold to lower case.
    pub fn fold(self, identifier: &Ident) -> String {
        match identifier.quote_style {
            Some(_) => identifier.value.clone(),
            None => identifier.value.to_lowercase(),
        }
    }
}
