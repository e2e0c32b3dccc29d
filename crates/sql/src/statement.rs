//! Parsed SQL: exactly one read-only statement with known tables and functions.

use std::fmt;
use std::sync::Arc;

use sqlparser::ast;
use tidegate_core::{Error, ErrorKind};

use crate::dialect::SqlDialect;
use crate::parameter::Parameter;
use crate::parse;
use crate::statement_policy::{self, ReferencedNames};
use crate::transaction::Transaction;

/// One statement with its parameters. Cheap to clone.
///
/// A statement of a caller was parsed and is exactly one read-only statement with known tables and functions. A
/// statement of the configuration may be unparsed: the database itself decides whether it can run.
#[derive(Clone)]
pub struct Statement {
    source: Arc<StatementSource>,
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

struct StatementSource {
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
        Ok(Self::new(StatementSource { text, dialect, author, placeholders, parsed: Some((ast, names)) }))
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
        let statement = Self::new(StatementSource { text, dialect, author, placeholders, parsed: None });
        Self { parameters: parameters.into(), ..statement }
    }

    fn new(source: StatementSource) -> Self {
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

    pub(crate) fn without_parameters(&self) -> Self {
        Self { parameters: Arc::new([]), ..self.clone() }
    }

    /// The statement, to be run in `transaction`.
    #[must_use]
    pub fn in_transaction(self, transaction: Arc<Transaction>) -> Self {
        Self { transaction, ..self }
    }

    /// The same statement with another AST and text.
    pub fn with_ast(&self, ast: ast::Statement, text: String) -> Self {
        let StatementSource { dialect, author, placeholders, .. } = *self.source;
        let names = self.source.parsed.as_ref().map(|(_, names)| names.clone()).unwrap_or_default();
        let source = StatementSource { text, dialect, author, placeholders, parsed: Some((ast, names)) };
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
