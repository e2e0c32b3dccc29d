//! Parses SQL text into exactly one statement, within limits, and renders it back to text.
//!
//! The parser limits its own recursion, but builds chains (`a + b + c`, `x::int::text`, `… UNION …`) in loops. Such a
//! chain is a tree as deep as it is long, and dropping, cloning or comparing it overflows the stack. Therefore the depth of the
//! AST is limited before it is parsed.

use std::ops::ControlFlow;

use sqlparser::ast::{self, Visit, Visitor};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Word};
use tidegate_core::{Error, ErrorKind};

use crate::bounded_dialect::BoundedDialect;
use crate::dialect::SqlDialect;
use crate::{canonical_tokens, refusal, statement_policy};

const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// The recursion limit of the parser. The nesting check comes first, with a better message.
const RECURSION_MAX: usize = 300;
/// The longest expression that an error names as the cause.
const PART_BYTES_MAX: usize = 200;

pub(crate) fn parse_statement(sql: &str, dialect: SqlDialect) -> Result<ast::Statement, Error> {
    if sql.len() > TEXT_BYTES_MAX {
        let message = format!("the SQL is {} bytes long; the limit is {TEXT_BYTES_MAX}", sql.len());
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    let tokens = tokenize_for_parser(sql, dialect)?;
    check_nesting(&tokens)?;
    let name = refusal::statement_name(&tokens);
    if let Err(error) = statement_policy::check_tokens(tokens.iter().map(|token| &token.token), dialect) {
        return Err(refusal::refuse_by_name(&name).unwrap_or(error));
    }
    match parse_tokens(tokens, parse_single_statement, sql, dialect) {
        Ok(Some(mut statement @ ast::Statement::Query(_))) => {
            if dialect.is_embedded() {
                parenthesize_signed_operands(&mut statement);
            }
            Ok(statement)
        }
        Ok(Some(_)) => Err(refusal::refuse_non_query(&name)),
        Ok(None) => Err(Error::new(ErrorKind::InvalidArguments, "there is no SQL statement in the text")
            .with_hint("Send one SELECT statement.")),
        // The parser does not support every refused statement.
        Err(error) => {
            let refusal = refusal::refuse_by_name(&name).or_else(|| clause_refusal(sql, dialect));
            Err(refusal.unwrap_or(error))
        }
    }
}

/// Returns the refusal of a clause of PostgreSQL that the embedded engine does not support, if `sql` has one.
fn clause_refusal(sql: &str, dialect: SqlDialect) -> Option<Error> {
    if !dialect.is_embedded() {
        return None;
    }
    canonical_tokens::clause_refusal(&tokenize(sql, dialect, EscapeHandling::Resolved).ok()?)
}

/// Parenthesizes an operand with a sign behind another sign, because both are printed side by side: `@ -5`, and `- -5`,
/// which would become a comment.
fn parenthesize_signed_operands(node: &mut impl ast::VisitMut) {
    struct SignParenthesizer;
    impl ast::VisitorMut for SignParenthesizer {
        type Break = ();

        fn post_visit_expr(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
            use ast::UnaryOperator::{BitwiseNot, Minus, PGAbs, PGCubeRoot, PGSquareRoot, Plus};
            if let ast::Expr::UnaryOp { op, expr } = expression
                && matches!(op, Minus | Plus | BitwiseNot | PGAbs | PGCubeRoot | PGSquareRoot)
                && matches!(**expr, ast::Expr::UnaryOp { .. })
            {
                let inner = std::mem::replace(expr, Box::new(ast::Expr::Value(ast::Value::Null.into())));
                **expr = ast::Expr::Nested(inner);
            }
            ControlFlow::Continue(())
        }
    }
    // The visitor never breaks.
    let _ = node.visit(&mut SignParenthesizer);
}

/// Parses `text` as one expression and nothing else.
pub fn parse_expression(text: &str, dialect: SqlDialect) -> Result<ast::Expr, Error> {
    parse_prepared_expression(text, dialect, Ok)
}

/// Like [`parse_expression`], with the tokens of `text` changed by `prepare`.
pub fn parse_prepared_expression(
    text: &str,
    dialect: SqlDialect,
    prepare: impl FnOnce(Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, Error>,
) -> Result<ast::Expr, Error> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("the expression is {} bytes long; the limit is {TEXT_BYTES_MAX}", text.len());
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    let tokens = prepare(tokenize_for_parser(text, dialect)?)?;
    check_nesting(&tokens)?;
    statement_policy::check_tokens(tokens.iter().map(|token| &token.token), dialect)?;
    check_complete_ast(text, dialect)?;
    let only_expression = |parser: &mut Parser<'_>| {
        let expression = parser.parse_expr()?;
        expect_end(parser, "the end of the expression")?;
        Ok(expression)
    };
    let mut expression = parse_tokens(tokens, only_expression, text, dialect)?;
    // Expressions become parts of generated statements, which are printed for each dialect.
    parenthesize_signed_operands(&mut expression);
    Ok(expression)
}

fn parse_single_statement(parser: &mut Parser<'_>) -> Result<Option<ast::Statement>, ParserError> {
    while parser.consume_token(&Token::SemiColon) {}
    if parser.peek_token_ref().token == Token::EOF {
        return Ok(None);
    }
    let statement = parser.parse_statement()?;
    if parser.consume_token(&Token::SemiColon) {
        while parser.consume_token(&Token::SemiColon) {}
        expect_end(parser, "nothing more, as a call runs exactly one statement")?;
    }
    expect_end(parser, "the end of the statement")?;
    Ok(Some(statement))
}

/// The parser itself treats the word END as the end of the text.
fn expect_end(parser: &Parser<'_>, expected: &str) -> Result<(), ParserError> {
    let next = parser.peek_token_ref();
    if next.token == Token::EOF {
        return Ok(());
    }
    let (line, column) = (next.span.start.line, next.span.start.column);
    Err(ParserError::ParserError(format!("expected {expected}, found: {next} at Line: {line}, Column: {column}")))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EscapeHandling {
    Resolved,
    Verbatim,
}

fn tokenize_for_parser(sql: &str, dialect: SqlDialect) -> Result<Vec<TokenWithSpan>, Error> {
    let tokens = tokenize(sql, dialect, EscapeHandling::Resolved)?;
    match dialect {
        SqlDialect::DataFusion => {
            // Some rewrites search each parenthesis, which is slow for unlimited nesting.
            check_nesting(&tokens)?;
            let tokens = canonical_tokens::rewrite_text_forms(canonical_tokens::expand_table_commands(tokens));
            Ok(canonical_tokens::mark_placeholders(canonical_tokens::rewrite_clauses(tokens)))
        }
        SqlDialect::Postgres | SqlDialect::Sqlite | SqlDialect::MySql => {
            let pieces = canonical_tokens::canonicalize(sql, tokens, dialect)?;
            let tokens: Vec<TokenWithSpan> = pieces.into_iter().map(|piece| piece.token).collect();
            if !dialect.has_postgres_grammar() {
                return Ok(tokens);
            }
            // Some rewrites search each parenthesis, which is slow for unlimited nesting.
            check_nesting(&tokens)?;
            Ok(without_unsupported_clauses(tokens))
        }
    }
}

/// `tokens`, without whitespace, as the parser supports them.
fn without_unsupported_clauses(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut tokens = canonical_tokens::rewrite_clauses(canonical_tokens::omit_clauses(tokens));
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    tokens
}

/// Checks that the AST of `sql` has all of its clauses, so that it may be printed.
///
/// # Errors
/// `InvalidArguments` if the parser did not receive a clause.
pub(crate) fn check_complete_ast(sql: &str, dialect: SqlDialect) -> Result<(), Error> {
    if dialect.has_complete_ast() {
        return Ok(());
    }
    let tokens = tokenize(sql, dialect, EscapeHandling::Resolved)?;
    let tokens = canonical_tokens::canonicalize(sql, tokens, dialect)?.into_iter().map(|piece| piece.token);
    let tokens: Vec<_> = tokens.filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
    let is_complete = without_unsupported_clauses(tokens.clone()) == tokens;
    if is_complete {
        return Ok(());
    }
    let message = "USING with an operator, EXCLUDE, SEARCH, CYCLE, ROWS FROM, ONLY, .* after an expression and names of \
                   XML elements are not supported here";
    Err(Error::new(ErrorKind::InvalidArguments, message).with_hint(
        "Write them in a statement of the tool sql, with the argument database instead of the database's name before tables.",
    ))
}

pub(crate) fn tokenize(sql: &str, dialect: SqlDialect, escapes: EscapeHandling) -> Result<Vec<TokenWithSpan>, Error> {
    Tokenizer::new(dialect.parser_dialect(), sql)
        .with_unescape(escapes == EscapeHandling::Resolved)
        .tokenize_with_location()
        .map_err(|error| syntax_error(error.into(), sql))
}

fn parse_tokens<T>(
    tokens: Vec<TokenWithSpan>,
    parse: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
    sql: &str,
    dialect: SqlDialect,
) -> Result<T, Error> {
    let grammar = BoundedDialect::new(dialect, &tokens);
    let mut parser = Parser::new(&grammar).with_recursion_limit(RECURSION_MAX).with_tokens_with_locations(tokens);
    let result = parse(&mut parser);
    if grammar.is_exhausted() {
        return Err(too_deep_error());
    }
    result.map_err(|error| syntax_error(error, sql))
}

/// The text of `ast`, which was parsed from `sql`.
///
/// For a database with its own engine, the text is rendered from the tokens of `sql`. The embedded engine runs the AST,
/// so there the AST is printed. sqlparser prints a quotation mark after a backslash, and doubled quotation marks,
/// unchanged, so the printed text may mean something else; then the text comes from a parse that keeps the escapes.
pub(crate) fn render_canonical_text(ast: &ast::Statement, sql: &str, dialect: SqlDialect) -> Result<String, Error> {
    match dialect {
        SqlDialect::DataFusion => {
            let verbatim = || print_verbatim(sql, dialect).filter(|text| parses_back_to(text, ast, dialect));
            print_ast(ast, dialect).or_else(verbatim).ok_or_else(|| unprintable_error(ast, dialect))
        }
        SqlDialect::Postgres | SqlDialect::Sqlite | SqlDialect::MySql => canonicalize_tokens(ast, sql, dialect),
    }
}

pub(crate) fn print_checked(ast: &ast::Statement, dialect: SqlDialect) -> Result<String, Error> {
    match dialect {
        SqlDialect::DataFusion => print_ast(ast, dialect).ok_or_else(|| unprintable_error(ast, dialect)),
        SqlDialect::Postgres | SqlDialect::Sqlite | SqlDialect::MySql => {
            canonicalize_tokens(ast, &ast.to_string(), dialect)
        }
    }
}

/// The text of `ast`, if it parses back to it.
fn print_ast(ast: &ast::Statement, dialect: SqlDialect) -> Option<String> {
    Some(ast.to_string()).filter(|text| parses_back_to(text, ast, dialect))
}

/// Renders the canonical tokens of `sql`, if they parse back to `ast`.
fn canonicalize_tokens(ast: &ast::Statement, sql: &str, dialect: SqlDialect) -> Result<String, Error> {
    let tokens = tokenize(sql, dialect, EscapeHandling::Resolved)?;
    let text = canonical_tokens::join_tokens(&canonical_tokens::canonicalize(sql, tokens, dialect)?);
    if parses_back_to(&text, ast, dialect) { Ok(text) } else { Err(unprintable_error(ast, dialect)) }
}

fn print_verbatim(sql: &str, dialect: SqlDialect) -> Option<String> {
    let tokens = tokenize(sql, dialect, EscapeHandling::Verbatim).ok()?;
    let mut ast = parse_tokens(tokens, parse_single_statement, sql, dialect).ok()??;
    number_placeholders(&mut ast).ok()?;
    parenthesize_signed_operands(&mut ast);
    Some(ast.to_string())
}

fn parses_back_to(text: &str, ast: &ast::Statement, dialect: SqlDialect) -> bool {
    tokenize_for_parser(text, dialect)
        .and_then(|tokens| parse_tokens(tokens, parse_single_statement, text, dialect))
        .is_ok_and(|parsed| parsed.as_ref() == Some(ast))
}

/// The error for `ast`, whose printed text does not parse back to it.
fn unprintable_error(ast: &ast::Statement, dialect: SqlDialect) -> Error {
    let mut parts = UnprintableParts { dialect };
    let message = match ast.visit(&mut parts) {
        ControlFlow::Break(part) => format!("{part} is not supported in this statement"),
        ControlFlow::Continue(()) => "a form of this statement is not supported".to_owned(),
    };
    Error::new(ErrorKind::InvalidArguments, message).with_hint(
        "Pass strings with quotes and backslashes side by side as parameters ($1); write other forms in another way.",
    )
}

/// Finds the innermost expression whose printed text does not parse back to it.
struct UnprintableParts {
    dialect: SqlDialect,
}

impl Visitor for UnprintableParts {
    type Break = String;

    fn post_visit_expr(&mut self, expression: &ast::Expr) -> ControlFlow<String> {
        let text = expression.to_string();
        // A longer text would name no part, and take long to parse. Placeholders have numbers of the whole statement.
        if text.len() > PART_BYTES_MAX || text.contains(['$', '?']) {
            return ControlFlow::Continue(());
        }
        let parsed = tokenize_for_parser(&text, self.dialect)
            .and_then(|tokens| parse_tokens(tokens, |parser| parser.parse_expr(), &text, self.dialect));
        if parsed.is_ok_and(|parsed| parsed == *expression) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(text)
        }
    }
}

fn syntax_error(error: ParserError, sql: &str) -> Error {
    let text = match error {
        ParserError::RecursionLimitExceeded => return too_deep_error(),
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text,
    };
    let (subject, position) = match text.rsplit_once(" at Line: ") {
        Some((subject, position)) => (subject, position.split_once(", Column: ")),
        None => (text.as_str(), None),
    };
    let position =
        position.and_then(|(line, column)| Some((line.parse::<usize>().ok()?, column.parse::<usize>().ok()?)));
    let subject = lowercase_first(subject.trim_end_matches(','))
        .replace("expected: ", "expected ")
        .replace(", found: ", ", found ")
        .replace("found EOF", "found the end of the text");
    match position {
        Some((line, column)) if line > 0 => {
            let message = format!("SQL syntax error at line {line}, column {column}: {subject}");
            let near = excerpt(sql, line, column).map(|excerpt| format!("Near: {excerpt}"));
            near.into_iter().fold(Error::new(ErrorKind::InvalidArguments, message), Error::with_hint)
        }
        _ => Error::new(ErrorKind::InvalidArguments, format!("SQL syntax error: {subject}")),
    }
}

fn lowercase_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_lowercase().chain(characters).collect()).unwrap_or_default()
}

/// The text around a position (both count from 1).
fn excerpt(sql: &str, line: usize, column: usize) -> Option<String> {
    const BEFORE: usize = 20;
    const LENGTH: usize = 60;
    let line = sql.lines().nth(line - 1)?;
    let start = column.saturating_sub(BEFORE + 1);
    let excerpt: String = line.chars().skip(start).take(LENGTH).collect();
    (!excerpt.trim().is_empty()).then(|| excerpt.trim().to_owned())
}

const PLACEHOLDERS_MAX: usize = 1_000;

pub(crate) fn number_placeholders(ast: &mut ast::Statement) -> Result<usize, Error> {
    let mut numbering = PlaceholderNumbering::default();
    match ast::VisitMut::visit(ast, &mut numbering) {
        ControlFlow::Break(reason) => Err(Error::new(ErrorKind::InvalidArguments, *reason)
            .with_hint("Write placeholders as $1, $2, … or as ?; not both in one statement.")),
        ControlFlow::Continue(()) => Ok(numbering.anonymous.max(numbering.highest)),
    }
}

#[derive(Default)]
struct PlaceholderNumbering {
    anonymous: usize,
    highest: usize,
}

impl ast::VisitorMut for PlaceholderNumbering {
    type Break = Box<String>;

    fn pre_visit_value(&mut self, value: &mut ast::ValueWithSpan) -> ControlFlow<Self::Break> {
        let ast::Value::Placeholder(name) = &mut value.value else { return ControlFlow::Continue(()) };
        if name == "?" {
            self.anonymous += 1;
            *name = format!("${}", self.anonymous);
        } else {
            let number = name.strip_prefix('$').and_then(|digits| digits.parse().ok()).filter(|number| *number > 0);
            let Some(number) = number else {
                return ControlFlow::Break(Box::new(format!("unsupported placeholder {name}")));
            };
            self.highest = self.highest.max(number);
        }
        if self.anonymous > 0 && self.highest > 0 {
            return ControlFlow::Break(Box::new("the statement mixes ? and $1".to_owned()));
        }
        if self.anonymous.max(self.highest) > PLACEHOLDERS_MAX {
            let reason = format!("the statement has more than {PLACEHOLDERS_MAX} placeholders");
            return ControlFlow::Break(Box::new(reason));
        }
        ControlFlow::Continue(())
    }
}

/// Maximum operators in a chain without a comma; parentheses count as one. Measured: in a debug build a chain of 400
/// can still be cloned on a stack of 2 MiB, and a release build allows more.
const CHAIN_MAX: usize = 300;
const SET_OPERATION_WEIGHT: usize = 5;
const DEPTH_MAX: usize = 60;

struct NestingGroup {
    is_case: bool,
    /// The operators since the last comma.
    chain: usize,
}

/// Refuses token lists whose tree may be too deep, or whose brackets do not match.
fn check_nesting(tokens: &[TokenWithSpan]) -> Result<(), Error> {
    let mut open = vec![NestingGroup { is_case: false, chain: 0 }];
    let mut sum = 0;
    for token in tokens {
        let step = classify_token(&token.token);
        let Some(innermost) = open.last_mut() else { return Ok(()) };
        match step {
            NestingStep::Open { is_case } => {
                innermost.chain += 1;
                sum += 1;
                open.push(NestingGroup { is_case, chain: 0 });
            }
            // The parser rejects an END without CASE.
            NestingStep::Close { is_case: true } if !innermost.is_case => {}
            NestingStep::Close { .. } => sum -= close_group(&mut open),
            NestingStep::Separate => sum -= std::mem::take(&mut innermost.chain),
            NestingStep::SeparateBranch if innermost.is_case => sum -= std::mem::take(&mut innermost.chain),
            NestingStep::Lengthen(levels) => {
                innermost.chain += levels;
                sum += levels;
            }
            NestingStep::SeparateBranch | NestingStep::Stay => {}
        }
        if sum > CHAIN_MAX || open.len() > DEPTH_MAX {
            return Err(too_deep_error());
        }
    }
    Ok(())
}

/// Closes the innermost group, and CASEs without END around it. A stray closing parenthesis closes nothing.
fn close_group(open: &mut Vec<NestingGroup>) -> usize {
    let mut left = 0;
    while open.len() > 1 {
        let Some(group) = open.pop() else { break };
        left += group.chain;
        if !group.is_case {
            break;
        }
    }
    left
}

enum NestingStep {
    Open { is_case: bool },
    Close { is_case: bool },
    Separate,
    SeparateBranch,
    Lengthen(usize),
    Stay,
}

fn classify_token(token: &Token) -> NestingStep {
    match token {
        Token::LParen | Token::LBracket | Token::LBrace => NestingStep::Open { is_case: false },
        Token::RParen | Token::RBracket | Token::RBrace => NestingStep::Close { is_case: false },
        Token::Word(Word { keyword: Keyword::CASE, .. }) => NestingStep::Open { is_case: true },
        Token::Word(Word { keyword: Keyword::END, .. }) => NestingStep::Close { is_case: true },
        Token::Comma | Token::SemiColon => NestingStep::Separate,
        // Operators of single dialects for which the parser has no keyword.
        Token::Word(Word { value, quote_style: None, .. })
            if ["GLOB", "ISNULL"].iter().any(|operator| value.eq_ignore_ascii_case(operator)) =>
        {
            NestingStep::Lengthen(1)
        }
        Token::Word(Word { keyword, .. }) => classify_keyword(*keyword),
        Token::EOF
        | Token::Whitespace(_)
        | Token::Period
        | Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::Placeholder(_) => NestingStep::Stay,
        // Operators, and all else to be safe.
        _ => NestingStep::Lengthen(1),
    }
}

fn classify_keyword(keyword: Keyword) -> NestingStep {
    use Keyword::{
        AS, ELSE, EXCEPT, FALSE, FROM, INTERSECT, MINUS, NULL, NoKeyword, SELECT, THEN, TRUE, UNION, WHEN, WHERE,
    };
    match keyword {
        WHEN | THEN | ELSE => NestingStep::SeparateBranch,
        UNION | EXCEPT | INTERSECT | MINUS => NestingStep::Lengthen(SET_OPERATION_WEIGHT),
        NoKeyword | SELECT | FROM | WHERE | AS | NULL | TRUE | FALSE => NestingStep::Stay,
        // Operators that are words, and all else to be safe.
        _ => NestingStep::Lengthen(1),
    }
}

fn too_deep_error() -> Error {
    Error::new(ErrorKind::TooLarge, "the SQL is nested too deeply or chains too many operators").with_hint(
        "Use IN (…) instead of many ORs, joins or WITH instead of nested subqueries, several calls instead of \
         many UNIONs.",
    )
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::GenericDialect;
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn passes(sql: &str) -> bool {
        check_nesting(&Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location().unwrap()).is_ok()
    }

    #[test]
    fn accepts_long_lists_and_rejects_long_chains() {
        assert!(passes(&format!("SELECT 1 WHERE 1 IN ({})", vec!["1"; 100_000].join(", "))));
        assert!(passes(&format!("VALUES {}", vec!["(1, -1 + 2)"; 10_000].join(", "))));
        assert!(passes(&format!("SELECT {}", vec!["a + b AS c"; 10_000].join(", "))));
        assert!(passes(&format!("SELECT CASE {} END", vec!["WHEN a = 1 THEN b + 1"; 10_000].join(" "))));
        assert!(passes(&format!("SELECT 1 WHERE {}", vec!["a = 1"; 150].join(" OR "))));
        assert!(passes(&vec!["SELECT 1"; 50].join(" UNION ALL ")));
        assert!(!passes(&format!("SELECT {}", vec!["CASE WHEN a THEN b END"; 10_000].join(" + "))));
        assert!(!passes(&format!("SELECT {}", vec!["1"; 10_000].join("+"))));
        assert!(!passes(&format!("SELECT 1{}", "::int".repeat(10_000))));
        assert!(!passes(&format!("SELECT 1::int{}", "[]".repeat(10_000))));
        assert!(!passes(&format!("SELECT {}1{}", "(".repeat(10_000), ")".repeat(10_000))));
        assert!(!passes(&vec!["SELECT 1"; 10_000].join(" UNION ")));
        assert!(!passes(&format!("SELECT {}1{}", "CASE WHEN a THEN ".repeat(100), " END".repeat(100))));
        assert!(passes(&format!("SELECT {}", vec!["CASE WHEN a THEN b END"; 10_000].join(", "))));
        assert!(passes(&")".repeat(10_000)));
        assert!(passes(&" END".repeat(10_000)));
    }
}
