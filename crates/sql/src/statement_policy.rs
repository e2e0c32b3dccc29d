//! The statement policy: checks every node of the AST, by name and never by text, and before that the tokens.
//!
//! If the parser read tokens differently than the database, the AST would not show it. But harmful statements need certain
//! tokens: a name before a parenthesis, or one of a few reserved words. The check of the tokens prefers false positives, and
//! runs first so that its messages cover statements that the parser does not support.

use std::ops::ControlFlow;

use sqlparser::ast::{
    AccessExpr, Cte, Expr, ForClause, Function, Ident, LockType, ObjectName, ObjectNamePart, PipeOperator, Query,
    Select, SetExpr, Statement, TableFactor, Visit, Visitor,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Word};
use tidegate_core::{Error, ErrorKind};

use crate::dialect::SqlDialect;
use crate::refusal::refusal_error;
use crate::{function_policy, refusal};

#[derive(Debug, Default, Clone)]
pub(crate) struct ReferencedNames {
    pub(crate) tables: Vec<String>,
    pub(crate) functions: Vec<String>,
}

/// Checks that `statement` and all its parts only read.
pub(crate) fn check(statement: &Statement, dialect: SqlDialect) -> Result<ReferencedNames, Error> {
    let Statement::Query(query) = statement else { return Err(refusal::refuse_statement(statement)) };
    check_node(query.as_ref(), dialect, true)
}

/// Checks a standalone expression, which must not contain a query.
pub fn check_expression(expression: &Expr, dialect: SqlDialect) -> Result<(), Error> {
    check_node(expression, dialect, false).map(drop)
}

fn check_node(node: &impl Visit, dialect: SqlDialect, allows_queries: bool) -> Result<ReferencedNames, Error> {
    let names = ReferencedNames::default();
    let mut visitor = PolicyVisitor { dialect, allows_queries, names, scopes: Vec::new(), visited_function: None };
    match node.visit(&mut visitor) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(visitor.names),
    }
}

const CATALOG_HINT: &str = "Use the tool list_tables to see what can be read.";
const TABLES_ONLY_REASON: &str = "only the tables of the catalog can be read";

struct PolicyVisitor {
    dialect: SqlDialect,
    allows_queries: bool,
    names: ReferencedNames,
    scopes: Vec<CteScope>,
    /// The name of the table function that is being visited, which is not a table.
    visited_function: Option<*const ObjectName>,
}

/// The common table expressions of one query, and how many of them are visible here.
struct CteScope {
    names: Vec<String>,
    bodies: Vec<*const Query>,
    recursive: bool,
    visible: usize,
    query: *const Query,
}

impl Visitor for PolicyVisitor {
    type Break = Error;

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<Error> {
        ControlFlow::Break(refusal::refuse_statement(statement))
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        if !self.allows_queries {
            return refuse("a subquery in an expression", "it would read other tables", "Use joins, or the tool sql.");
        }
        check_clauses(query)?;
        self.enter_query(query);
        // The visitor has no hook for `TABLE name`.
        self.check_table_commands(&query.body)?;
        for operator in &query.pipe_operators {
            if let PipeOperator::Call { function, .. } = operator {
                self.check_table_function(&function.name)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        let left = self.scopes.pop();
        debug_assert!(left.is_some_and(|scope| std::ptr::eq(scope.query, query)));
        if let Some(outer) = self.scopes.last_mut() {
            outer.visible = outer.names.len();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        if select.into.is_some() {
            return ControlFlow::Break(refusal::refuse_into());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        self.visited_function = None;
        match factor {
            // The parser reads `ONLY t` as the table `only` with an alias.
            TableFactor::Table { name, alias, args, .. }
                if self.dialect.is_embedded()
                    && is_only_keyword(name)
                    && (args.is_some() || alias.as_ref().is_some_and(|alias| !alias.explicit)) =>
            {
                ControlFlow::Break(refusal::refuse_only())
            }
            TableFactor::Table { name, args: Some(_), .. } => {
                self.visited_function = Some(std::ptr::from_ref(name));
                self.check_table_function(name)
            }
            TableFactor::Function { name, .. } => self.check_table_function(name),
            TableFactor::TableFunction { expr: Expr::Function(Function { name, .. }), .. }
                if !self.dialect.is_postgres() =>
            {
                self.check_table_function(name)
            }
            TableFactor::TableFunction { .. } => self.refuse_table_function("table"),
            // Table functions of PostgreSQL and MySQL that read only their arguments.
            TableFactor::JsonTable { .. } if self.dialect.is_postgres() || self.dialect.is_mysql() => {
                self.record_function("json_table")
            }
            TableFactor::XmlTable { .. } if self.dialect.is_postgres() => self.record_function("xmltable"),
            TableFactor::JsonTable { .. } => self.refuse_table_function("json_table"),
            TableFactor::OpenJsonTable { .. } => self.refuse_table_function("openjson"),
            TableFactor::XmlTable { .. } => self.refuse_table_function("xmltable"),
            TableFactor::SemanticView { .. } => self.refuse_table_function("semantic_view"),
            TableFactor::UNNEST { .. } => self.record_function("unnest"),
            TableFactor::Table { .. }
            | TableFactor::Derived { .. }
            | TableFactor::NestedJoin { .. }
            | TableFactor::Pivot { .. }
            | TableFactor::Unpivot { .. }
            | TableFactor::MatchRecognize { .. } => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<Error> {
        if self.visited_function.is_some_and(|called| std::ptr::eq(called, name)) {
            return ControlFlow::Continue(());
        }
        let parts = name_identifiers(name)?;
        self.check_table(&parts)
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        match expr {
            Expr::Function(Function { name, .. }) => self.check_function(name),
            // With FROM or FOR, PostgreSQL calls its own function.
            Expr::Substring { special, substring_from, substring_for, .. }
                if self.dialect.is_postgres() && (*special || substring_from.is_none() && substring_for.is_none()) =>
            {
                self.record_function("substring")
            }
            Expr::CompoundIdentifier(parts) => {
                parts.last().map_or(ControlFlow::Continue(()), |last| self.check_field(last))
            }
            Expr::CompoundFieldAccess { access_chain, .. } => access_chain.iter().try_for_each(|access| match access {
                AccessExpr::Dot(Expr::Identifier(name)) => self.check_field(name),
                _ => ControlFlow::Continue(()),
            }),
            _ => ControlFlow::Continue(()),
        }
    }
}

impl PolicyVisitor {
    fn enter_query(&mut self, query: &Query) {
        // Inside the body of a common table expression only those before it are visible.
        if let Some(outer) = self.scopes.last_mut() {
            let body = outer.bodies.iter().position(|body| std::ptr::eq(*body, query));
            outer.visible = match body {
                Some(index) if !outer.recursive => index,
                _ => outer.names.len(),
            };
        }
        let ctes: &[Cte] = query.with.as_ref().map_or(&[], |with| &with.cte_tables);
        self.scopes.push(CteScope {
            names: ctes.iter().map(|cte| self.dialect.fold_identifier(&cte.alias.name)).collect(),
            bodies: ctes.iter().map(|cte| std::ptr::from_ref(cte.query.as_ref())).collect(),
            recursive: query.with.as_ref().is_some_and(|with| with.recursive),
            visible: ctes.len(),
            query: std::ptr::from_ref(query),
        });
    }

    fn check_table_commands(&mut self, body: &SetExpr) -> ControlFlow<Error> {
        // A chain of set operations is as deep as it is long, so it is walked without recursion.
        let mut left_to_see = vec![body];
        while let Some(body) = left_to_see.pop() {
            match body {
                SetExpr::SetOperation { left, right, .. } => left_to_see.extend([right.as_ref(), left.as_ref()]),
                SetExpr::Table(table) => {
                    // The parser returns the names as bare text, without their quotation marks.
                    let parts: Vec<Ident> =
                        [&table.schema_name, &table.table_name].into_iter().flatten().map(Ident::new).collect();
                    self.check_table(&parts.iter().collect::<Vec<_>>())?;
                }
                SetExpr::Select(_)
                | SetExpr::Query(_)
                | SetExpr::Values(_)
                | SetExpr::Insert(_)
                | SetExpr::Update(_)
                | SetExpr::Delete(_)
                | SetExpr::Merge(_) => {}
            }
        }
        ControlFlow::Continue(())
    }

    fn check_table(&mut self, parts: &[&Ident]) -> ControlFlow<Error> {
        let names: Vec<String> = parts.iter().map(|part| self.dialect.fold_identifier(part)).collect();
        self.check_table_name(parts)?;
        let is_common_table_expression = names.len() == 1
            && self.scopes.iter().any(|scope| scope.names.iter().take(scope.visible).any(|cte| *cte == names[0]));
        if is_common_table_expression {
            return ControlFlow::Continue(());
        }
        let schema = names.len().checked_sub(2).map(|schema| names[schema].as_str());
        let refusal = |name: &String| function_policy::table_refusal(schema, name, self.dialect);
        if let Some(reason) = names.last().and_then(refusal) {
            return refuse(&format!("reading {}", names.join(".")), reason, CATALOG_HINT);
        }
        record_name(&mut self.names.tables, names.join("."))
    }

    /// In place of a name, some systems write a file in single quotes.
    fn check_table_name(&self, parts: &[&Ident]) -> ControlFlow<Error> {
        let is_file = |part: &&&Ident| self.dialect.is_embedded() && looks_like_file_name(part);
        if let Some(file) = parts.iter().find(is_file) {
            return refuse(&format!("reading the file {file}"), TABLES_ONLY_REASON, CATALOG_HINT);
        }
        if let Some(text) = parts.iter().find(|part| part.quote_style == Some('\'')) {
            let hint = match self.dialect.reads_quote('"') {
                true => "Write the name bare or in double quotes.",
                false => "Write the name bare or in backquotes.",
            };
            let part = format!("reading the table {text}");
            return refuse(&part, "single quotes are for text", hint);
        }
        ControlFlow::Continue(())
    }

    fn record_function(&mut self, name: &str) -> ControlFlow<Error> {
        record_name(&mut self.names.functions, name.to_owned())
    }

    fn check_function(&mut self, name: &ObjectName) -> ControlFlow<Error> {
        let parts: Vec<String> = name_identifiers(name)?.iter().map(|part| part.value.to_lowercase()).collect();
        let Some((last, schemas)) = parts.split_last() else { return ControlFlow::Continue(()) };
        if let Some(reason) = function_policy::function_refusal(schemas.last().map(String::as_str), last, self.dialect)
        {
            return refuse(&format!("the function {name}"), reason, "Leave it out.");
        }
        // Internal functions of the embedded engine have such names.
        if self.dialect.is_embedded() && last.ends_with('*') {
            return refuse(&format!("the function {name}"), "no function has such a name", "Leave the * out.");
        }
        self.record_function(last)
    }

    /// PostgreSQL reads `x.name` as `name(x)` where there is no such column or field.
    fn check_field(&self, name: &Ident) -> ControlFlow<Error> {
        match function_policy::field_refusal(&name.value.to_lowercase(), self.dialect) {
            Some(reason) => refuse(&format!("the function {name}"), reason, "Leave it out."),
            None => ControlFlow::Continue(()),
        }
    }

    fn check_table_function(&mut self, name: &ObjectName) -> ControlFlow<Error> {
        self.check_function(name)?;
        let parts: Vec<String> =
            name_identifiers(name)?.iter().map(|part| self.dialect.fold_identifier(part)).collect();
        if function_policy::is_known_table_function(&parts, self.dialect) {
            return ControlFlow::Continue(());
        }
        self.refuse_table_function(&name.to_string())
    }

    fn refuse_table_function(&self, name: &str) -> ControlFlow<Error> {
        if self.dialect.is_postgres() {
            let part = format!("{} in FROM", name.to_uppercase());
            return refuse(&part, "PostgreSQL has no such syntax", "Write the function itself: FROM name(…).");
        }
        let functions = function_policy::table_functions(self.dialect).iter().map(|&name| name.to_owned());
        let (part, reason) = (
            format!("the table function {name}"),
            "FROM accepts the tables of the catalog and the functions listed below",
        );
        ControlFlow::Break(refusal_error(&part, reason, CATALOG_HINT).with_choices(functions))
    }
}

fn check_clauses(query: &Query) -> ControlFlow<Error> {
    if let Some(lock) = query.locks.first() {
        let part = match lock.lock_type {
            LockType::Share => "FOR SHARE",
            LockType::Update => "FOR UPDATE",
        };
        return ControlFlow::Break(refusal::refuse_lock(part));
    }
    if query.settings.is_some() {
        return refuse("SETTINGS", "it would change the session, which is not allowed", "Leave it out.");
    }
    let part = match (&query.for_clause, &query.format_clause) {
        (Some(ForClause::Browse), _) => "FOR BROWSE",
        (Some(ForClause::Json { .. }), _) => "FOR JSON",
        (Some(ForClause::Xml { .. }), _) => "FOR XML",
        (None, Some(_)) => "FORMAT",
        (None, None) => return ControlFlow::Continue(()),
    };
    refuse(part, "the format of the answer is not part of the SQL", "Name it in the argument \"format\".")
}

fn refuse(part: &str, reason: &str, instead: &str) -> ControlFlow<Error> {
    ControlFlow::Break(refusal_error(part, reason, instead))
}

fn is_only_keyword(name: &ObjectName) -> bool {
    let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return false };
    name.quote_style.is_none() && name.value.eq_ignore_ascii_case("only")
}

/// The parts of `name`, none of which may be computed.
fn name_identifiers(name: &ObjectName) -> ControlFlow<Error, Vec<&Ident>> {
    let mut parts = Vec::with_capacity(name.0.len());
    for part in &name.0 {
        match part {
            ObjectNamePart::Identifier(identifier) => parts.push(identifier),
            ObjectNamePart::Function(_) => {
                let (part, reason) =
                    (format!("the computed name {name}"), "names must be written literally in the SQL");
                return ControlFlow::Break(refusal_error(&part, reason, CATALOG_HINT));
            }
        }
    }
    ControlFlow::Continue(parts)
}

const NAMES_MAX: usize = 200;

/// Extensions of file names. No table name ends so, because the catalog strips them.
const FILE_EXTENSIONS: &[&str] = &[
    "csv", "tsv", "txt", "json", "jsonl", "ndjson", "parquet", "arrow", "arrows", "feather", "ipc", "avro", "orc",
    "gz", "zst", "bz2", "xz",
];

fn looks_like_file_name(name: &Ident) -> bool {
    let value = &name.value;
    // In place of a name, some systems write a file in single quotes.
    name.quote_style == Some('\'')
        || value.contains(['/', '\\', ':', '\0'])
        || value
            .rsplit_once('.')
            .is_some_and(|(_, extension)| FILE_EXTENSIONS.contains(&extension.to_lowercase().as_str()))
}

/// Adds `name` once. The list has a maximum length, because each name is searched in it.
fn record_name(list: &mut Vec<String>, name: String) -> ControlFlow<Error> {
    if list.contains(&name) {
        return ControlFlow::Continue(());
    }
    if list.len() >= NAMES_MAX {
        let message = format!("the statement names more than {NAMES_MAX} tables or functions");
        return ControlFlow::Break(Error::new(ErrorKind::TooLarge, message));
    }
    list.push(name);
    ControlFlow::Continue(())
}

/// Refuses harmful tokens wherever they occur. `tokens` contains no whitespace.
///
/// The embedded engine runs the AST itself, so there the statement policy is sufficient.
pub(crate) fn check_tokens<'a>(tokens: impl Iterator<Item = &'a Token>, dialect: SqlDialect) -> Result<(), Error> {
    if dialect.is_embedded() {
        return Ok(());
    }
    let tokens: Vec<&Token> = tokens.collect();
    for (index, token) in tokens.iter().enumerate() {
        if dialect.is_mysql() && is_variable_mark(token) {
            return Err(variable_error());
        }
        let Token::Word(word) = token else { continue };
        let before = index.checked_sub(1).map(|before| tokens[before]);
        let after = &tokens[index + 1..];
        if after.first() == Some(&&Token::LParen) {
            check_call(word, preceding_schema(&tokens[..index]), dialect)?;
        }
        if word.quote_style.is_some() {
            continue;
        }
        if dialect.is_postgres() && !before.is_some_and(introduces_name) {
            check_reserved_word(word, after)?;
        }
        if dialect.is_mysql() && before != Some(&Token::Period) {
            check_reserved_word_of_mysql(word, after)?;
        }
    }
    Ok(())
}

/// Whether `token` is part of a variable of MySQL, `@x` or `@@x`, or of an assignment to one.
fn is_variable_mark(token: &Token) -> bool {
    matches!(
        token,
        Token::AtSign
            | Token::AtAt
            | Token::AtArrow
            | Token::AtQuestion
            | Token::ArrowAt
            | Token::CaretAt
            | Token::Assignment
    )
}

fn variable_error() -> Error {
    let reason = "variables belong to the session or the server, and only the tables of the catalog can be read";
    refusal_error("a variable", reason, "Pass values as parameters; write version() instead of @@version.")
}

fn check_reserved_word_of_mysql(word: &Word, after: &[&Token]) -> Result<(), Error> {
    let text = |token: Option<&&Token>| match token {
        Some(Token::Word(Word { value, quote_style: None, .. })) => value.to_ascii_uppercase(),
        _ => String::new(),
    };
    let (next, second) = (text(after.first()), text(after.get(1)));
    match (word.value.to_ascii_uppercase().as_str(), next.as_str(), second.as_str()) {
        ("INTO", ..) => Err(refusal_error(
            "INTO",
            "it would write a file or a variable, and only reading is allowed",
            "Leave it out; the argument \"format\" names the format of the answer.",
        )),
        ("FOR", "UPDATE", _) => Err(refusal::refuse_lock("FOR UPDATE")),
        ("FOR", "SHARE", _) => Err(refusal::refuse_lock("FOR SHARE")),
        ("LOCK", "IN", "SHARE") => Err(refusal::refuse_lock("LOCK IN SHARE MODE")),
        ("NEXT" | "PREVIOUS", "VALUE", "FOR") => Err(refusal_error(
            "a sequence",
            "it would change the sequence or the session, and only reading is allowed",
            "Leave it out.",
        )),
        ("PROCEDURE", ..) => {
            Err(refusal_error("PROCEDURE", "procedures may change data, and only reading is allowed", "Leave it out."))
        }
        _ => Ok(()),
    }
}

fn check_call(word: &Word, schema: Option<String>, dialect: SqlDialect) -> Result<(), Error> {
    let name = word.value.to_lowercase();
    // Before a parenthesis an unusual name may be a common table expression; the statement policy checks that.
    if !name.chars().all(|character| character.is_alphanumeric() || character == '_') {
        return Ok(());
    }
    let Some(reason) = function_policy::function_refusal(schema.as_deref(), &name, dialect) else { return Ok(()) };
    Err(refusal_error(&format!("the function {}", word.value), reason, "Leave it out."))
}

fn preceding_schema(before: &[&Token]) -> Option<String> {
    match before {
        [.., Token::Word(schema), Token::Period] => Some(schema.value.to_lowercase()),
        _ => None,
    }
}

/// After AS and after a dot a reserved word is a name. INSERT, MERGE and REPLACE have their own refusals.
fn introduces_name(token: &Token) -> bool {
    match token {
        Token::Period => true,
        Token::Word(Word { keyword, quote_style: None, .. }) => {
            matches!(keyword, Keyword::AS | Keyword::INSERT | Keyword::MERGE | Keyword::REPLACE)
        }
        _ => false,
    }
}

fn check_reserved_word(word: &Word, after: &[&Token]) -> Result<(), Error> {
    let next = |index: usize| match after.get(index) {
        Some(Token::Word(Word { keyword, quote_style: None, .. })) => *keyword,
        _ => Keyword::NoKeyword,
    };
    match (word.keyword, next(0), next(1)) {
        (Keyword::INTO, ..) => Err(refusal::refuse_into()),
        (Keyword::FOR, Keyword::UPDATE, _) => Err(refusal::refuse_lock("FOR UPDATE")),
        (Keyword::FOR, Keyword::SHARE, _) => Err(refusal::refuse_lock("FOR SHARE")),
        (Keyword::FOR, Keyword::NO, Keyword::KEY) => Err(refusal::refuse_lock("FOR NO KEY UPDATE")),
        (Keyword::FOR, Keyword::KEY, Keyword::SHARE) => Err(refusal::refuse_lock("FOR KEY SHARE")),
        _ => Ok(()),
    }
}
