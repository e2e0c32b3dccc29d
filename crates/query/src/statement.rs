//! SQL that was parsed, is exactly one read-only statement, and whose tables and functions are known.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use sqlparser::ast::{self, Value, ValueWithSpan, VisitMut, VisitorMut};
use tidegate_core::{Error, ErrorKind};

pub use crate::dialect::SqlDialect;
pub use crate::parameter::Parameter;
use crate::parse;
use crate::policy::{self, Findings};

/// SQL that was parsed, is exactly one read-only statement, and whose tables and functions are
/// known. Cheap to clone.
#[derive(Clone)]
pub struct Statement {
    checked: Arc<Checked>,
    parameters: Arc<[Parameter]>,
}

/// What does not depend on the parameters' values.
struct Checked {
    ast: ast::Statement,
    text: String,
    dialect: SqlDialect,
    findings: Findings,
    placeholders: usize,
}

impl Statement {
    /// Parses `sql` and checks that it is one statement that only reads.
    ///
    /// Placeholders are `$1`, `$2`, … or `?`, which are numbered from left to right.
    ///
    /// # Errors
    /// `InvalidArguments`: a syntax error with its line and column, or the part that is refused,
    /// why, and what to use instead; `TooLarge` beyond a bound.
    pub fn parse(sql: &str, dialect: SqlDialect) -> Result<Self, Error> {
        let mut ast = parse::statement(sql, dialect)?;
        let findings = policy::check(&ast, dialect)?;
        let placeholders = number_placeholders(&mut ast)?;
        let text = parse::faithful_text(&ast, sql, dialect)?;
        Ok(Self::of(Checked { ast, text, dialect, findings, placeholders }))
    }

    /// A statement from an AST that we made ourselves; the policy binds it all the same.
    ///
    /// # Errors
    /// As [`Statement::parse`], and when the number of `parameters` is wrong.
    pub fn from_query(query: ast::Query, parameters: Vec<Parameter>, dialect: SqlDialect) -> Result<Self, Error> {
        let mut ast = ast::Statement::Query(Box::new(query));
        let findings = policy::check(&ast, dialect)?;
        let placeholders = number_placeholders(&mut ast)?;
        let text = parse::printed(&ast, dialect)?;
        Self::of(Checked { ast, text, dialect, findings, placeholders }).with_parameters(parameters)
    }

    fn of(checked: Checked) -> Self {
        Self { checked: Arc::new(checked), parameters: Arc::new([]) }
    }

    /// The statement with `parameters` bound to its placeholders.
    ///
    /// # Errors
    /// `InvalidArguments` when there are more or fewer than the statement has placeholders.
    pub fn with_parameters(&self, parameters: Vec<Parameter>) -> Result<Self, Error> {
        let statement = Self { checked: self.checked.clone(), parameters: parameters.into() };
        statement.check_parameters()?;
        Ok(statement)
    }

    /// Whether each placeholder has its parameter.
    pub(crate) fn check_parameters(&self) -> Result<(), Error> {
        let (wanted, came) = (self.checked.placeholders, self.parameters.len());
        if wanted == came {
            return Ok(());
        }
        let placeholders = match wanted {
            0 => "the statement has no placeholders".to_owned(),
            1 => "the statement has 1 placeholder ($1)".to_owned(),
            _ => format!("the statement has {wanted} placeholders ($1 to ${wanted})"),
        };
        Err(Error::new(ErrorKind::InvalidArguments, format!("{placeholders}, but parameters has {came} values"))
            .with_hint("Give exactly one value for each placeholder, in their order."))
    }

    /// The parsed statement; always a query.
    pub fn ast(&self) -> &ast::Statement {
        &self.checked.ast
    }

    /// Its text, normalised: it parses back to exactly [`Statement::ast`].
    pub fn text(&self) -> &str {
        &self.checked.text
    }

    /// The SQL it is written in.
    pub fn dialect(&self) -> SqlDialect {
        self.checked.dialect
    }

    /// The tables that it reads, unquoted, each once, in the order of their first mention; names
    /// of common table expressions are not among them.
    pub fn tables(&self) -> &[String] {
        &self.checked.findings.tables
    }

    /// The functions that it calls, in lower case, each once, in the order of their first mention.
    pub fn functions(&self) -> &[String] {
        &self.checked.findings.functions
    }

    /// The values of its placeholders, `$1` first.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// How many placeholders it has.
    pub fn placeholders(&self) -> usize {
        self.checked.placeholders
    }
}

impl fmt::Debug for Statement {
    /// The text, not the tree, which is a hundred times as long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement").field("text", &self.text()).field("parameters", &self.parameters).finish()
    }
}

/// Placeholders that a statement may have at most.
const PLACEHOLDERS_MAX: usize = 1_000;

/// Turns each `?` into the next `$n` and counts the placeholders.
pub(crate) fn number_placeholders(ast: &mut ast::Statement) -> Result<usize, Error> {
    let mut numbering = Numbering::default();
    match ast.visit(&mut numbering) {
        ControlFlow::Break(reason) => Err(Error::new(ErrorKind::InvalidArguments, *reason)
            .with_hint("Write placeholders as $1, $2, … or as ?; not both in one statement.")),
        ControlFlow::Continue(()) => Ok(numbering.anonymous.max(numbering.highest)),
    }
}

#[derive(Default)]
struct Numbering {
    anonymous: usize,
    highest: usize,
}

impl VisitorMut for Numbering {
    type Break = Box<String>;

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Self::Break> {
        let Value::Placeholder(name) = &mut value.value else { return ControlFlow::Continue(()) };
        if name == "?" {
            self.anonymous += 1;
            *name = format!("${}", self.anonymous);
        } else {
            let number = name.strip_prefix('$').and_then(|digits| digits.parse().ok()).filter(|number| *number > 0);
            let Some(number) = number else {
                return ControlFlow::Break(Box::new(format!("{name} is no placeholder that is understood here")));
            };
            self.highest = self.highest.max(number);
        }
        if self.anonymous > 0 && self.highest > 0 {
            return ControlFlow::Break(Box::new("the statement mixes ? and $1".to_owned()));
        }
        if self.anonymous.max(self.highest) > PLACEHOLDERS_MAX {
            return ControlFlow::Break(Box::new(format!(
                "the statement has more than {PLACEHOLDERS_MAX} placeholders"
            )));
        }
        ControlFlow::Continue(())
    }
}
