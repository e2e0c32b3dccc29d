//! SQL dialects: how SQL is parsed, and how identifiers are quoted and folded.

use sqlparser::ast::Ident;
use sqlparser::dialect::{Dialect, PostgreSqlDialect, SQLiteDialect};

/// The SQL dialect of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SqlDialect {
    /// The embedded engine's: PostgreSQL's, with `QUALIFY`, `* EXCLUDE`, array and struct literals of DataFusion's.
    DataFusion,
    /// PostgreSQL's.
    Postgres,
    /// SQLite's.
    Sqlite,
}

impl SqlDialect {
    /// The value of this dialect. A new dialect is a parameter, so that the compiler reports each question that it has to
    /// answer.
    pub(crate) fn choose<T>(self, data_fusion: T, postgres: T, sqlite: T) -> T {
        match self {
            Self::DataFusion => data_fusion,
            Self::Postgres => postgres,
            Self::Sqlite => sqlite,
        }
    }

    /// The dialect of the parser.
    pub fn parser_dialect(self) -> &'static dyn Dialect {
        self.choose::<&'static dyn Dialect>(&PostgreSqlDialect {}, &PostgreSqlDialect {}, &SQLiteDialect {})
    }

    /// The name in texts for callers.
    pub fn name(self) -> &'static str {
        self.choose("PostgreSQL (embedded engine)", "PostgreSQL", "SQLite")
    }

    /// The name for programs: in the configuration and between nodes.
    pub fn key(self) -> &'static str {
        self.choose("datafusion", "postgres", "sqlite")
    }

    /// Whether the embedded engine runs the statement by its AST, and no server reads its text.
    pub fn is_embedded(self) -> bool {
        self.choose(true, false, false)
    }

    /// Whether a server of PostgreSQL reads the text, with all of its syntax.
    pub fn is_postgres(self) -> bool {
        self.choose(false, true, false)
    }

    /// Whether the grammar of the parser is PostgreSQL's.
    pub fn has_postgres_grammar(self) -> bool {
        self.choose(true, true, false)
    }

    /// Whether the AST has all clauses of the text. Of PostgreSQL's SQL, the parser drops some.
    pub fn has_complete_ast(self) -> bool {
        self.choose(true, false, true)
    }

    /// Whether values have the type of their column. In SQLite, each value has its own.
    pub fn has_typed_columns(self) -> bool {
        self.choose(true, true, false)
    }

    /// Whether GLOB distinguishes upper and lower case, and LIKE does not.
    pub fn has_glob(self) -> bool {
        self.choose(false, false, true)
    }

    /// Whether OFFSET stands behind LIMIT only.
    pub fn offset_needs_limit(self) -> bool {
        self.choose(false, false, true)
    }

    /// Whether a column that is not grouped may stand beside aggregates; its value is that of any row.
    pub fn has_bare_columns(self) -> bool {
        self.choose(false, false, true)
    }

    /// Whether `min` and `max` with several arguments are scalar functions.
    pub fn has_scalar_min_max(self) -> bool {
        self.choose(false, false, true)
    }

    /// Whether names that differ in the case of ASCII letters only are the same.
    pub fn ignores_case(self) -> bool {
        self.choose(false, false, true)
    }

    /// Whether the statement of a declared tool may write.
    pub fn can_write(self) -> bool {
        self.choose(false, true, false)
    }

    /// What stands before the number of a placeholder.
    pub fn placeholder_mark(self) -> char {
        self.choose('$', '$', '?')
    }

    /// The quotation mark of identifiers.
    ///
    /// SQLite reads an unknown name between double quotes as a string, so that a misspelled or dropped name would
    /// return its own letters. Backquotes have no such fallback.
    pub fn identifier_quote(self) -> char {
        self.choose('"', '"', '`')
    }

    /// Whether `quote` is a quotation mark of identifiers. SQLite reads both.
    pub fn reads_quote(self, quote: char) -> bool {
        quote == self.identifier_quote() || self.choose(false, false, true)
    }

    /// Quotes `identifier`, whatever it contains.
    pub fn quote_identifier(self, identifier: &str) -> String {
        // Not by printing an `Ident`: sqlparser leaves a quote after a backslash as it is.
        match self.identifier_quote() {
            '`' => format!("`{}`", identifier.replace('`', "``")),
            _ => format!("\"{}\"", identifier.replace('"', "\"\"")),
        }
    }

    /// `name` as a quoted node of the AST.
    pub fn identifier(self, name: &str) -> Ident {
        Ident::with_quote(self.identifier_quote(), name)
    }

    /// Splits the name of a table as a catalog lists it: in PostgreSQL a schema may come first, in SQLite a database
    /// file.
    ///
    /// `archive.orders` is a table of the schema `archive`. A part with a dot or a quotation mark is in double quotes:
    /// `"2013.csv"`, `archive."the.dot"`. In other dialects each name is one part.
    pub fn table_parts(self, name: &str) -> Vec<String> {
        if self.is_embedded() {
            return vec![name.to_owned()];
        }
        let mut parts = Vec::new();
        let mut part = String::new();
        let mut characters = name.chars().peekable();
        let mut is_quoted = false;
        let mut is_at_start = true;
        while let Some(character) = characters.next() {
            let starts = std::mem::replace(&mut is_at_start, false);
            match character {
                '"' if starts => is_quoted = true,
                '"' if is_quoted && characters.next_if_eq(&'"').is_none() => is_quoted = false,
                '.' if !is_quoted => {
                    parts.push(std::mem::take(&mut part));
                    is_at_start = true;
                }
                other => part.push(other),
            }
        }
        parts.push(part);
        parts
    }

    /// Joins the parts of a table name: the inverse of [`SqlDialect::table_parts`].
    pub fn table_name(self, parts: &[&str]) -> String {
        let listed = |part: &&str| {
            let is_plain = self.is_embedded() || !(part.is_empty() || part.contains(['.', '"']));
            if is_plain { (*part).to_owned() } else { format!("\"{}\"", part.replace('"', "\"\"")) }
        };
        parts.iter().map(listed).collect::<Vec<_>>().join(".")
    }

    /// Quotes a table name of a catalog for a statement.
    pub fn quote_table(self, name: &str) -> String {
        self.table_parts(name).iter().map(|part| self.quote_identifier(part)).collect::<Vec<_>>().join(".")
    }

    /// The name that `identifier` refers to. Unquoted identifiers fold to lower case; in PostgreSQL only ASCII letters
    /// fold, and in SQLite quoted ones fold too.
    pub fn fold_identifier(self, identifier: &Ident) -> String {
        match (self, identifier.quote_style) {
            (Self::Sqlite, _) | (Self::Postgres, None) => identifier.value.to_ascii_lowercase(),
            (Self::DataFusion | Self::Postgres, Some(_)) => identifier.value.clone(),
            (Self::DataFusion, None) => identifier.value.to_lowercase(),
        }
    }
}
