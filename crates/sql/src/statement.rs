//! Parsed SQL: exactly one read-only statement with known tables and functions. With it are the values that are bound to its
//! placeholders, its transaction, for databases that have transactions, and a cache of parsed and checked statements.
//!
//! Fingerprints for the audit log are equal for statements that differ only in their values.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use lru::LruCache;
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlparser::ast;
use sqlparser::tokenizer::{Token, Tokenizer};
use tidegate_core::{AuditedStatement, Error, ErrorKind};

use crate::dialect::SqlDialect;
use crate::statement_policy::ReferencedNames;
use crate::{parse, statement_policy};

/// One statement with its parameters. Cheap to clone.
///
/// A statement of a caller was parsed and is exactly one read-only statement with known tables and functions. A
/// statement of the configuration may be unparsed: the database itself decides whether it can run.
#[derive(Clone)]
pub struct Statement {
    source: Arc<StatementParts>,
    parameters: Arc<[Parameter]>,
    transaction: Arc<Transaction>,
}

/// Who wrote a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Author {
    /// A caller; the statement policy applies.
    Caller,
    /// The administrator who wrote the configuration.
    Owner,
    /// The author of a handler inside the database; details of its errors are hidden from callers.
    Handler,
}

struct StatementParts {
    text: String,
    dialect: SqlDialect,
    author: Author,
    placeholders: usize,
    /// The AST and the referenced names of a parsed statement.
    parsed: Option<(ast::Statement, ReferencedNames)>,
}

impl Statement {
    /// Parses `sql` and checks that it is one read-only statement.
    ///
    /// Placeholders are `$1`, `$2`, … or `?`, which are numbered from left to right.
    ///
    /// # Errors
    /// `InvalidArguments`: a syntax error with its line and column, or the refused part, the reason and the
    /// alternative; `TooLarge` beyond a limit.
    pub fn parse(sql: &str, dialect: SqlDialect) -> Result<Self, Error> {
        let ast = parse::parse_statement(sql, dialect)?;
        Self::from_ast(ast, dialect, |ast| parse::render_canonical_text(ast, sql, dialect))
    }

    /// A statement from a generated AST; the statement policy applies as well.
    ///
    /// # Errors
    /// As [`Statement::parse`], and when the number of `parameters` is wrong.
    pub fn from_query(query: ast::Query, parameters: Vec<Parameter>, dialect: SqlDialect) -> Result<Self, Error> {
        let ast = ast::Statement::Query(Box::new(query));
        Self::from_ast(ast, dialect, |ast| parse::print_checked(ast, dialect))?.with_parameters(parameters)
    }

    pub(crate) fn from_ast(
        mut ast: ast::Statement,
        dialect: SqlDialect,
        render: impl FnOnce(&ast::Statement) -> Result<String, Error>,
    ) -> Result<Self, Error> {
        let names = statement_policy::check(&ast, dialect)?;
        let placeholders = parse::number_placeholders(&mut ast)?;
        let text = render(&ast)?;
        let author = Author::Caller;
        Ok(Self::new(StatementParts { text, dialect, author, placeholders, parsed: Some((ast, names)) }))
    }

    /// A statement of the configuration, with the values of its placeholders `$1`, `$2`, …. Only the database checks
    /// it.
    pub fn from_owner(text: impl Into<String>, parameters: Vec<Parameter>, dialect: SqlDialect) -> Self {
        Self::unparsed(text.into(), parameters, dialect, Author::Owner)
    }

    /// The call of a handler inside the database, with the values of its placeholders.
    pub fn from_handler(text: impl Into<String>, parameters: Vec<Parameter>, dialect: SqlDialect) -> Self {
        Self::unparsed(text.into(), parameters, dialect, Author::Handler)
    }

    fn unparsed(text: String, parameters: Vec<Parameter>, dialect: SqlDialect, author: Author) -> Self {
        let placeholders = parameters.len();
        let statement = Self::new(StatementParts { text, dialect, author, placeholders, parsed: None });
        Self { parameters: parameters.into(), ..statement }
    }

    fn new(source: StatementParts) -> Self {
        Self { source: Arc::new(source), parameters: Arc::new([]), transaction: Transaction::read_only() }
    }

    /// The statement with `parameters` bound to its placeholders.
    ///
    /// # Errors
    /// `InvalidArguments` when there are more or fewer than the statement has placeholders.
    pub fn with_parameters(&self, parameters: Vec<Parameter>) -> Result<Self, Error> {
        let statement = Self { parameters: parameters.into(), ..self.clone() };
        statement.check_parameters()?;
        Ok(statement)
    }

    fn without_parameters(&self) -> Self {
        Self { parameters: Arc::new([]), ..self.clone() }
    }

    /// The statement, to be run in `transaction`.
    #[must_use]
    pub fn in_transaction(self, transaction: Arc<Transaction>) -> Self {
        Self { transaction, ..self }
    }

    /// The same statement with another AST and text.
    pub fn with_ast(&self, ast: ast::Statement, text: String) -> Self {
        let StatementParts { dialect, author, placeholders, .. } = *self.source;
        let names = self.source.parsed.as_ref().map(|(_, names)| names.clone()).unwrap_or_default();
        let source = StatementParts { text, dialect, author, placeholders, parsed: Some((ast, names)) };
        Self { source: Arc::new(source), ..self.clone() }
    }

    /// Checks that each placeholder has its parameter.
    pub fn check_parameters(&self) -> Result<(), Error> {
        let (expected, actual) = (self.source.placeholders, self.parameters.len());
        if expected == actual {
            return Ok(());
        }
        let placeholders = match expected {
            0 => "the statement has no placeholders".to_owned(),
            1 => "the statement has 1 placeholder ($1)".to_owned(),
            _ => format!("the statement has {expected} placeholders ($1 to ${expected})"),
        };
        Err(Error::new(ErrorKind::InvalidArguments, format!("{placeholders}, but parameters has {actual} values"))
            .with_hint("Give exactly one value for each placeholder, in their order."))
    }

    /// The parsed statement, always a query; `None` for an unparsed statement.
    pub fn ast(&self) -> Option<&ast::Statement> {
        self.source.parsed.as_ref().map(|(ast, _)| ast)
    }

    /// The text of the statement. The text of a parsed statement is canonical and parses back to exactly
    /// [`Statement::ast`].
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// The SQL dialect.
    pub fn dialect(&self) -> SqlDialect {
        self.source.dialect
    }

    /// The author of the statement.
    pub fn author(&self) -> Author {
        self.source.author
    }

    /// The transaction that the statement runs in, where its database has transactions.
    pub fn transaction(&self) -> &Arc<Transaction> {
        &self.transaction
    }

    /// The tables that the statement reads, unquoted and unique, in the order of their first mention, without common
    /// table expressions. Empty for an unparsed statement.
    pub fn tables(&self) -> &[String] {
        self.source.parsed.as_ref().map_or(&[], |(_, names)| &names.tables)
    }

    /// The functions that the statement calls, in lower case and unique, in the order of their first mention. Empty for
    /// an unparsed statement.
    pub fn functions(&self) -> &[String] {
        self.source.parsed.as_ref().map_or(&[], |(_, names)| &names.functions)
    }

    /// The values of the placeholders, `$1` first.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The number of placeholders.
    pub fn placeholders(&self) -> usize {
        self.source.placeholders
    }
}

impl fmt::Debug for Statement {
    /// Prints the text, because the AST is a hundred times as long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement").field("text", &self.text()).field("parameters", &self.parameters).finish()
    }
}

/// A value that is bound to a placeholder. It is inserted into the SQL text only for servers that bind no values, as a
/// literal ([`Statement::text_with_values`](crate::Statement::text_with_values)).
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// NULL.
    Null,
    /// TRUE or FALSE.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// Text, including dates and timestamps.
    Text(String),
}

impl Parameter {
    /// Converts a JSON value to a parameter.
    ///
    /// # Errors
    /// `InvalidArguments` for integers beyond 64 bits, arrays and objects.
    pub fn from_json(value: &Value) -> Result<Self, Error> {
        Self::from_json_or_reason(value).map_err(|reason| Error::new(ErrorKind::InvalidArguments, reason))
    }

    /// Like [`Parameter::from_json`], with only the reason, for a list of violations.
    pub fn from_json_or_reason(value: &Value) -> Result<Self, String> {
        match value {
            Value::Null => Ok(Self::Null),
            Value::Bool(value) => Ok(Self::Boolean(*value)),
            Value::String(text) => Ok(Self::Text(text.clone())),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => Ok(Self::Integer(integer)),
                (None, Some(float)) if !number.is_u64() => Ok(Self::Float(float)),
                _ => Err(format!("{number} is beyond 64-bit integers; pass it as a string and cast it in the SQL")),
            },
            Value::Array(_) => {
                Err("an array cannot be a parameter; expected a string, a number, true, false or null".to_owned())
            }
            Value::Object(_) => {
                Err("an object cannot be a parameter; expected a string, a number, true, false or null".to_owned())
            }
        }
    }
}

/// The isolation level of a transaction.
///
/// [PostgreSQL, Transaction Isolation](https://www.postgresql.org/docs/current/transaction-iso.html)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Isolation {
    /// Each statement sees what was committed when it began.
    #[default]
    ReadCommitted,
    /// Everything sees what was committed when the transaction began.
    RepeatableRead,
    /// The transactions behave as if they ran one after the other.
    Serializable,
}

/// Whether a transaction that writes is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommitRule {
    /// It is committed.
    #[default]
    Always,
    /// It is committed if its statement changed this number of rows, else it is rolled back.
    IfRowsChanged(u64),
    /// It is rolled back. The answer of its statement is the number of changed rows.
    Never,
}

impl CommitRule {
    /// The number of changed rows that a commit requires.
    pub fn required_rows(self) -> Option<u64> {
        match self {
            Self::IfRowsChanged(rows) => Some(rows),
            Self::Always | Self::Never => None,
        }
    }
}

/// The transaction options of a statement. The default is read-only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// The isolation level.
    pub isolation: Isolation,
    /// Whether the transaction may write. Only declared tools may.
    pub writes: bool,
    /// Whether it is committed, if it may write.
    pub commit: CommitRule,
    /// Whether it waits until it cannot fail because of other transactions; for read-only serializable transactions.
    pub deferrable: bool,
    /// How often it is retried after a serialization failure or a deadlock, as long as no row was returned.
    pub retries_max: u32,
    /// The timeout of the first row; `None` means the timeout of the call.
    pub first_row_timeout: Option<Duration>,
    /// How long a reader may leave rows unread before it loses the connection.
    pub stall_timeout: Duration,
}

impl Default for Transaction {
    fn default() -> Self {
        Self {
            isolation: Isolation::default(),
            writes: false,
            commit: CommitRule::Always,
            deferrable: false,
            retries_max: 3,
            first_row_timeout: None,
            stall_timeout: Duration::from_secs(30),
        }
    }
}

impl Transaction {
    /// The default, read-only transaction.
    pub fn read_only() -> Arc<Self> {
        static READ_ONLY: LazyLock<Arc<Transaction>> = LazyLock::new(Arc::default);
        READ_ONLY.clone()
    }
}

/// Longer texts are not cached, so that the memory of the cache is bounded.
const CACHED_TEXT_BYTES_MAX: usize = 8 * 1024;
/// The key of a generated statement is its AST, which takes some 20 times the memory of its text.
const GENERATED_TEXT_BYTES_MAX: usize = 1024;
const STATEMENTS_MAX: NonZeroUsize = NonZeroUsize::new(512).unwrap();

/// The statements that were accepted recently, without parameters. Refused statements are not cached.
#[derive(Debug)]
pub struct StatementCache {
    parsed: Mutex<LruCache<(SqlDialect, Box<str>), Statement>>,
    generated: Mutex<LruCache<(SqlDialect, ast::Query), Statement>>,
}

impl Default for StatementCache {
    fn default() -> Self {
        Self::new(STATEMENTS_MAX)
    }
}

impl StatementCache {
    /// A cache of at most `statements_max` parsed and as many generated statements; the least recently used one is evicted
    /// first.
    pub fn new(statements_max: NonZeroUsize) -> Self {
        let (parsed, generated) = (LruCache::new(statements_max), LruCache::new(statements_max));
        Self { parsed: Mutex::new(parsed), generated: Mutex::new(generated) }
    }

    /// The statement of `sql`, without parameters; parsed only if it is not cached.
    ///
    /// # Errors
    /// As [`Statement::parse`].
    pub fn parse(&self, sql: &str, dialect: SqlDialect) -> Result<Statement, Error> {
        if sql.len() > CACHED_TEXT_BYTES_MAX {
            return Statement::parse(sql, dialect);
        }
        let key = (dialect, Box::from(sql));
        if let Some(statement) = self.parsed.lock().get(&key) {
            return Ok(statement.clone());
        }
        let statement = Statement::parse(sql, dialect)?;
        self.parsed.lock().put(key, statement.clone());
        Ok(statement)
    }

    /// The statement of the generated AST `query`; checked only if it is not cached.
    ///
    /// # Errors
    /// As [`Statement::from_query`].
    pub fn generated(
        &self,
        query: ast::Query,
        parameters: Vec<Parameter>,
        dialect: SqlDialect,
    ) -> Result<Statement, Error> {
        let key = (dialect, query);
        if let Some(statement) = self.generated.lock().get(&key) {
            return statement.with_parameters(parameters);
        }
        let statement = Statement::from_query(key.1.clone(), parameters, dialect)?;
        if statement.text().len() <= GENERATED_TEXT_BYTES_MAX {
            self.generated.lock().put(key, statement.without_parameters());
        }
        Ok(statement)
    }

    /// The number of cached statements.
    pub fn len(&self) -> usize {
        self.parsed.lock().len() + self.generated.lock().len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The fingerprint of longer texts is computed at once, so that they do not wait in memory for the audit log.
const DEFERRED_BYTES_MAX: usize = 4 * 1024;

const FINGERPRINT_BYTES: usize = 8;

/// The fingerprint of `sql`: 16 hexadecimal digits. Literals and placeholders count as the same, and lists of them
/// whatever their length; so do spaces, comments, and the case of words outside quotes.
fn fingerprint(sql: &str, dialect: SqlDialect) -> String {
    hex::encode(&Sha256::digest(normalize(sql, dialect))[..FINGERPRINT_BYTES])
}

impl Statement {
    /// The record of the statement for the audit log.
    pub fn to_audited_statement(&self, database: &str) -> AuditedStatement {
        let (text, dialect) = (self.text(), self.dialect());
        let fingerprint: Box<dyn FnOnce() -> String + Send> = if text.len() > DEFERRED_BYTES_MAX {
            let found = fingerprint(text, dialect);
            Box::new(move || found)
        } else {
            let text = text.to_owned();
            Box::new(move || fingerprint(&text, dialect))
        };
        AuditedStatement { database: database.to_owned(), tables: self.tables().to_vec(), fingerprint }
    }
}

fn normalize(sql: &str, dialect: SqlDialect) -> String {
    let Ok(tokens) = Tokenizer::new(dialect.parser_dialect(), sql).tokenize() else { return sql.trim().to_owned() };
    let mut words: Vec<String> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let word = match token {
            Token::Whitespace(_) | Token::SemiColon | Token::EOF => continue,
            Token::Word(word) if word.quote_style.is_none() => word.value.to_lowercase(),
            token if is_value(&token) => "?".to_owned(),
            token => token.to_string(),
        };
        // `?, ?` becomes `?`, because lists of values differ only in length.
        if word == "?" && words.ends_with(&["?".to_owned(), ",".to_owned()]) {
            words.pop();
            continue;
        }
        words.push(word);
    }
    words.join(" ")
}

fn is_value(token: &Token) -> bool {
    matches!(
        token,
        Token::Number(..)
            | Token::Placeholder(_)
            | Token::SingleQuotedString(_)
            | Token::TripleSingleQuotedString(_)
            | Token::TripleDoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::DoubleQuotedByteStringLiteral(_)
            | Token::SingleQuotedRawStringLiteral(_)
            | Token::DoubleQuotedRawStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_values_whitespace_comments_and_case() {
        let same = [
            "SELECT * FROM orders WHERE id IN (1, 2, 3) AND name = 'ann' -- why",
            "select *\n  from Orders where ID in ($1) and NAME = $2;",
            "SELECT * FROM orders WHERE id IN (?, ?) AND name = 'o''hara' /* or else */",
        ];
        for dialect in SqlDialect::ALL {
            let read: Vec<String> = same.iter().map(|sql| normalize(sql, dialect)).collect();
            assert!(read.iter().all(|text| text == "select * from orders where id in ( ? ) and name = ?"), "{read:?}");
        }
        let dollars = normalize("SELECT $x$secret$x$, E'a\\n', 0x1F", SqlDialect::Postgres);
        assert!(!dollars.contains("secret") && dollars.starts_with("select ?"), "{dollars}");
    }

    #[test]
    fn distinguishes_tables_and_columns() {
        let dialect = SqlDialect::DataFusion;
        let all =
            ["SELECT a FROM t", "SELECT a FROM u", "SELECT b FROM t", "SELECT \"A\" FROM t", "SELECT a, a FROM t"];
        let mut seen: Vec<String> = all.iter().map(|sql| fingerprint(sql, dialect)).collect();
        assert!(seen.iter().all(|print| print.len() == 16));
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), all.len());
    }

    #[test]
    fn fingerprints_invalid_sql() {
        assert_ne!(fingerprint("'open", SqlDialect::Postgres), fingerprint("'closed", SqlDialect::Postgres));
    }
}
