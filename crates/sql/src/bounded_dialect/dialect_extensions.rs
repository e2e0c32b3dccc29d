//! Expressions that the grammars of the parser do not support.
//!
//! An external database receives the canonical tokens and not the AST, so these nodes need only contain the parts of
//! the expression, for the statement policy.

use sqlparser::ast::{BinaryOperator, DataType, Expr, Ident, ObjectName, TypedString, UnaryOperator};
use sqlparser::dialect::{Dialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Word};

use crate::dialect::SqlDialect;

type ParsedExpr = Option<Result<Expr, ParserError>>;

/// Parses an expression that begins at the next word, if it is an extension.
pub(super) fn parse_prefix(dialect: SqlDialect, grammar: &dyn Dialect, parser: &mut Parser<'_>) -> ParsedExpr {
    if !dialect.has_postgres_grammar() {
        return None;
    }
    if let Some(op) = peek_prefix_operator(parser) {
        parser.advance_token();
        let operand = parser.parse_subexpr(grammar.prec_value(Precedence::PgOther));
        return Some(operand.map(|operand| Expr::UnaryOp { op, expr: Box::new(operand) }));
    }
    let word = peek_unquoted_word(parser, 0)?.clone();
    let after = &parser.peek_nth_token_ref(1).token;
    // The grammars have forms of their own for these functions, which PostgreSQL finds by name. The second argument of
    // `convert` would be a type.
    if dialect.is_postgres() && is_plain_function(word.keyword) && *after == Token::LParen {
        parser.advance_token();
        return Some(parser.parse_function(ObjectName::from(vec![Ident::new(word.value)])));
    }
    // `inet '10.0.0.1'`: a string of any type. The embedded engine has these types only, beside those of the grammar.
    let is_type = match dialect {
        SqlDialect::Postgres => word.keyword == Keyword::NoKeyword,
        SqlDialect::DataFusion | SqlDialect::Sqlite => ["jsonpath", "name"].iter().any(|name| is_word(&word, name)),
    };
    if is_type && matches!(after, Token::SingleQuotedString(_)) {
        parser.advance_token();
        return Some(parser.parse_value().map(|value| {
            let data_type = DataType::Custom(ObjectName::from(vec![Ident::new(word.value)]), Vec::new());
            Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: false })
        }));
    }
    // `f(VARIADIC array)` and `BETWEEN SYMMETRIC a AND b`.
    let begins = matches!(after, Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_) | Token::LParen)
        || matches!(after, Token::Placeholder(_) | Token::Plus | Token::Minus | Token::Tilde | Token::AtSign)
        || matches!(after, Token::PGSquareRoot | Token::PGCubeRoot);
    if begins && ["VARIADIC", "SYMMETRIC"].iter().any(|prefix| is_word(&word, prefix)) {
        parser.advance_token();
        let value = parser.parse_subexpr(grammar.prec_value(Precedence::Between));
        return Some(value.map(|value| Expr::Prefixed { prefix: Ident::new(word.value), value: Box::new(value) }));
    }
    None
}

fn is_plain_function(keyword: Keyword) -> bool {
    matches!(keyword, Keyword::CEIL | Keyword::CONVERT | Keyword::FLOOR | Keyword::SUBSTR | Keyword::TRY_CONVERT)
}

/// An operator that binds weaker than `+`: `~ 1 + 2` is `~ (1 + 2)`. The grammars read `(~ 1) + 2`.
fn peek_prefix_operator(parser: &Parser<'_>) -> Option<UnaryOperator> {
    match parser.peek_nth_token_ref(0).token {
        Token::Tilde => Some(UnaryOperator::BitwiseNot),
        Token::AtSign => Some(UnaryOperator::PGAbs),
        Token::PGSquareRoot => Some(UnaryOperator::PGSquareRoot),
        Token::PGCubeRoot => Some(UnaryOperator::PGCubeRoot),
        _ => None,
    }
}

/// The precedence of the next operator, if it is an extension.
pub(super) fn next_precedence(dialect: SqlDialect, parser: &Parser<'_>) -> Option<Precedence> {
    // PostgreSQL reads operators of patterns as it reads `||`, unlike LIKE.
    if dialect.has_postgres_grammar() && is_pattern_operator(&parser.peek_nth_token_ref(0).token) {
        return Some(Precedence::PgOther);
    }
    let word = peek_unquoted_word(parser, 0)?;
    if is_word(word, "ISNULL") {
        return Some(Precedence::Is);
    }
    if dialect.is_embedded() {
        return None;
    }
    let negated = usize::from(word.keyword == Keyword::NOT);
    let is_glob = dialect.has_glob() && is_word(peek_unquoted_word(parser, negated)?, "GLOB");
    is_glob.then_some(Precedence::Like)
}

fn is_pattern_operator(token: &Token) -> bool {
    matches!(
        token,
        Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk
    )
}

/// Parses an operator and its right side after `left`, if it is an extension.
pub(super) fn parse_infix(
    dialect: SqlDialect,
    grammar: &dyn Dialect,
    parser: &mut Parser<'_>,
    left: &Expr,
) -> ParsedExpr {
    let word = peek_unquoted_word(parser, 0)?;
    if is_word(word, "ISNULL") {
        parser.advance_token();
        return Some(Ok(Expr::IsNull(Box::new(left.clone()))));
    }
    match (word.keyword, dialect) {
        (Keyword::IS, SqlDialect::Sqlite) => {
            parse_is_distinct(grammar, parser, left).or_else(|| parse_is(grammar, parser, left))
        }
        (Keyword::IS, _) => parse_is_distinct(grammar, parser, left),
        (_, SqlDialect::Sqlite) => parse_glob(grammar, parser, left),
        _ => None,
    }
}

/// `a IS DISTINCT FROM b` and `a IS NOT DISTINCT FROM b`. The grammars read all that follows as `b`, also beyond `AND`.
fn parse_is_distinct(grammar: &dyn Dialect, parser: &mut Parser<'_>, left: &Expr) -> ParsedExpr {
    let negated = peek_unquoted_word(parser, 1)?.keyword == Keyword::NOT;
    let words = 1 + usize::from(negated);
    let is_distinct = peek_unquoted_word(parser, words)?.keyword == Keyword::DISTINCT
        && peek_unquoted_word(parser, words + 1)?.keyword == Keyword::FROM;
    if !is_distinct {
        return None;
    }
    for _ in 0..words + 2 {
        parser.advance_token();
    }
    let left = Box::new(left.clone());
    let right = parser.parse_subexpr(grammar.prec_value(Precedence::Is)).map(Box::new);
    Some(right.map(|right| match negated {
        true => Expr::IsNotDistinctFrom(left, right),
        false => Expr::IsDistinctFrom(left, right),
    }))
}

/// `a GLOB b`, which SQLite has beside LIKE.
fn parse_glob(grammar: &dyn Dialect, parser: &mut Parser<'_>, left: &Expr) -> ParsedExpr {
    let negated = peek_unquoted_word(parser, 0)?.keyword == Keyword::NOT;
    if !is_word(peek_unquoted_word(parser, usize::from(negated))?, "GLOB") {
        return None;
    }
    if negated {
        parser.advance_token();
    }
    parser.advance_token();
    let op = BinaryOperator::Custom(if negated { "NOT GLOB" } else { "GLOB" }.to_owned());
    let right = parser.parse_subexpr(grammar.prec_value(Precedence::Like));
    Some(right.map(|right| Expr::BinaryOp { left: Box::new(left.clone()), op, right: Box::new(right) }))
}

/// `a IS b` and `a IS NOT b` of any two values, which SQLite has.
fn parse_is(grammar: &dyn Dialect, parser: &mut Parser<'_>, left: &Expr) -> ParsedExpr {
    let negated = peek_unquoted_word(parser, 1).is_some_and(|word| word.keyword == Keyword::NOT);
    let of_the_grammar = [Keyword::NULL, Keyword::TRUE, Keyword::FALSE, Keyword::UNKNOWN, Keyword::DISTINCT];
    let next = peek_unquoted_word(parser, 1 + usize::from(negated));
    if next.is_some_and(|word| of_the_grammar.contains(&word.keyword)) {
        return None;
    }
    for _ in 0..=usize::from(negated) {
        parser.advance_token();
    }
    let op = BinaryOperator::Custom(if negated { "IS NOT" } else { "IS" }.to_owned());
    let right = parser.parse_subexpr(grammar.prec_value(Precedence::Is));
    Some(right.map(|right| Expr::BinaryOp { left: Box::new(left.clone()), op, right: Box::new(right) }))
}

fn peek_unquoted_word<'a>(parser: &'a Parser<'_>, ahead: usize) -> Option<&'a Word> {
    match &parser.peek_nth_token_ref(ahead).token {
        Token::Word(word) if word.quote_style.is_none() => Some(word),
        _ => None,
    }
}

fn is_word(word: &Word, text: &str) -> bool {
    word.value.eq_ignore_ascii_case(text)
}
