//! A parser dialect with a limit on the work of the parser, and with expressions that the grammars of the parser do not support.
//!
//! sqlparser first tries the special forms of `CASE`, `CAST`, `POSITION` and the like, and parses them again as plain
//! names when that fails. Nested, each failure doubles the work, so that a hundred bytes could take hours. This dialect
//! counts the expressions that are begun and fails beyond a limit.
//!
//! An external database receives the canonical tokens and not the AST, so the nodes of further expressions need only contain
//! their parts, for the statement policy.

use std::any::TypeId;
use std::cell::Cell;

use sqlparser::ast::{BinaryOperator, DataType, Expr, Ident, ObjectName, Statement, TypedString, UnaryOperator};
use sqlparser::dialect::{Dialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::dialect::SqlDialect;

/// The limit of expressions per token; ordinary SQL begins one or two.
const EXPRESSIONS_PER_TOKEN_MAX: usize = 8;
/// The minimum limit of expressions, whatever the number of tokens.
const EXPRESSION_BUDGET_MIN: usize = 10_000;
/// The joins of a statement whose joins may be nested without parentheses.
const NESTED_JOINS_MAX: usize = 32;

#[derive(Debug)]
pub(crate) struct BoundedDialect {
    grammar: &'static dyn Dialect,
    dialect: SqlDialect,
    expressions_left: Cell<usize>,
    /// Whether `a JOIN b JOIN c ON … ON …` is `a JOIN (b JOIN c ON …) ON …`.
    nests_joins: bool,
    /// Whether `x -> y` is a lambda function of `x`, instead of the member `y` of `x`.
    reads_lambdas: bool,
}

impl BoundedDialect {
    pub(crate) fn new(dialect: SqlDialect, tokens: &[TokenWithSpan]) -> Self {
        let left = tokens.len().saturating_mul(EXPRESSIONS_PER_TOKEN_MAX).saturating_add(EXPRESSION_BUDGET_MIN);
        let reads_lambdas = dialect.is_embedded() && tokens.iter().any(is_lambda_function);
        let nests_joins = dialect.has_postgres_grammar() && can_nest_joins(tokens);
        let expressions_left = Cell::new(left);
        Self { grammar: dialect.parser_dialect(), dialect, expressions_left, nests_joins, reads_lambdas }
    }

    /// Whether the limit was reached; then every parser error is caused by it.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.expressions_left.get() == 0
    }
}

/// Whether the parser may nest joins. It does so without a limit, and would read `a NATURAL JOIN b JOIN c ON …` wrongly.
fn can_nest_joins(tokens: &[TokenWithSpan]) -> bool {
    let mut joins = 0;
    for token in tokens {
        match &token.token {
            Token::Word(word) if word.keyword == Keyword::NATURAL => return false,
            Token::Word(word) if word.keyword == Keyword::JOIN => joins += 1,
            _ => {}
        }
    }
    joins <= NESTED_JOINS_MAX
}

fn is_lambda_function(token: &TokenWithSpan) -> bool {
    let Token::Word(word) = &token.token else { return false };
    let name = word.value.to_ascii_lowercase();
    let of_arrays = name.strip_prefix("array_").or_else(|| name.strip_prefix("list_"));
    match of_arrays {
        Some(rest) => matches!(rest, "any_match" | "filter" | "first" | "transform"),
        None => name == "any_match",
    }
}

/// Forwards a property, or another method, of the underlying dialect.
macro_rules! forward_to_grammar {
    ($(fn $method:ident(&self $(, $arg:ident: $type:ty)*) -> $output:ty;)+) => {
        $(fn $method(&self $(, $arg: $type)*) -> $output {
            self.grammar.$method($($arg),*)
        })+
    };
    ($($method:ident),+ $(,)?) => {
        $(fn $method(&self) -> bool {
            self.grammar.$method()
        })+
    };
}

/// A feature that the embedded engine supports beyond the grammar of PostgreSQL; other dialects forward.
macro_rules! also_supported_by_embedded_engine {
    ($($method:ident),+ $(,)?) => {
        $(fn $method(&self) -> bool {
            self.dialect.is_embedded() || self.grammar.$method()
        })+
    };
}

// Only the methods that the dialects of PostgreSQL, SQLite and MySQL implement are forwarded.
impl Dialect for BoundedDialect {
    forward_to_grammar! {
        fn dialect(&self) -> TypeId;
        fn parse_statement(&self, parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>>;
        fn prec_value(&self, precedence: Precedence) -> u8;
        fn identifier_quote_style(&self, identifier: &str) -> Option<char>;
        fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool;
        fn is_custom_operator_part(&self, character: char) -> bool;
        fn is_delimited_identifier_start(&self, character: char) -> bool;
        fn is_identifier_part(&self, character: char) -> bool;
        fn is_identifier_start(&self, character: char) -> bool;
        fn is_table_factor_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser<'_>) -> bool;
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let left = self.expressions_left.get();
        if left == 0 {
            return Some(Err(ParserError::RecursionLimitExceeded));
        }
        self.expressions_left.set(left - 1);
        parse_prefix(self.dialect, self, parser).or_else(|| self.grammar.parse_prefix(parser))
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, expr: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        parse_infix(self.dialect, self, parser, expr).or_else(|| self.grammar.parse_infix(parser, expr, precedence))
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        match next_precedence(self.dialect, parser) {
            Some(precedence) => Some(Ok(self.prec_value(precedence))),
            None => self.grammar.get_next_precedence(parser),
        }
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        !self.dialect.has_postgres_grammar() || self.grammar.supports_bitwise_shift_operators()
    }

    also_supported_by_embedded_engine! {
        supports_dictionary_syntax, supports_from_first_select, supports_group_by_with_modifier, supports_limit_comma,
        supports_named_fn_args_with_assignment_operator, supports_order_by_all, supports_pipe_operator,
        supports_select_wildcard_except, supports_select_wildcard_exclude, supports_struct_literal,
    }

    fn supports_left_associative_joins_without_parens(&self) -> bool {
        !self.nests_joins
    }

    fn supports_lambda_functions(&self) -> bool {
        self.reads_lambdas || self.grammar.supports_lambda_functions()
    }

    /// In the embedded engine the name of an argument is a name: parsing an expression in its place doubles the work
    /// with each nested call.
    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        !self.dialect.is_embedded() && self.grammar.supports_named_fn_args_with_expr_name()
    }

    forward_to_grammar! {
        allow_extract_custom, allow_extract_single_quotes, require_interval_qualifier,
        supports_alter_column_type_using, supports_array_typedef_with_brackets,
        supports_asc_desc_in_column_definition, supports_bang_not_operator, supports_binary_kw_as_cast,
        supports_comma_separated_trim, supports_comment_on, supports_comment_optimizer_hint,
        supports_create_index_with_clause, supports_create_table_like_parenthesized, supports_cross_join_constraint,
        supports_data_type_signed_suffix, supports_dollar_placeholder, supports_double_ampersand_operator,
        supports_empty_projections, supports_explain_with_utility_options, supports_factorial_operator,
        supports_filter_during_aggregation, supports_geometric_types, supports_group_by_expr, supports_in_empty_list,
        supports_insert_table_alias, supports_interval_options, supports_listen_notify, supports_load_extension,
        supports_match_against, supports_named_fn_args_with_colon_operator, supports_nested_comments,
        supports_notnull_operator, supports_numeric_literal_underscores, supports_select_modifiers,
        supports_select_wildcard_with_alias, supports_set_names, supports_start_transaction_modifier,
        supports_string_escape_constant, supports_string_literal_concatenation, supports_table_hints,
        supports_unicode_string_literal, supports_xml_expressions,
    }
}

type ParsedExpr = Option<Result<Expr, ParserError>>;

/// Parses an expression that begins at the next word, if it is an extension.
fn parse_prefix(dialect: SqlDialect, grammar: &dyn Dialect, parser: &mut Parser<'_>) -> ParsedExpr {
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
        SqlDialect::DataFusion | SqlDialect::Sqlite | SqlDialect::MySql => {
            ["jsonpath", "name"].iter().any(|name| is_word(&word, name))
        }
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
fn next_precedence(dialect: SqlDialect, parser: &Parser<'_>) -> Option<Precedence> {
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
fn parse_infix(dialect: SqlDialect, grammar: &dyn Dialect, parser: &mut Parser<'_>, left: &Expr) -> ParsedExpr {
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

#[cfg(test)]
mod tests {
    use sqlparser::ast::Statement;
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn parsed(grammar: &dyn Dialect, plain: &dyn Dialect, sql: &str) -> Option<Vec<Statement>> {
        let tokens = Tokenizer::new(plain, sql).tokenize_with_location().ok()?;
        Parser::new(grammar).with_tokens_with_locations(tokens).parse_statements().ok()
    }

    /// The statements of a corpus, each with its comment.
    fn entries(corpus: &str) -> impl Iterator<Item = &str> {
        corpus.split("\n\n").map(str::trim).filter(|entry| !entry.is_empty())
    }

    #[track_caller]
    fn check(dialect: SqlDialect, corpus: &str, missing: usize) {
        let plain = dialect.parser_dialect();
        let mut only_ours = 0;
        for entry in entries(corpus) {
            let tokens = Tokenizer::new(plain, entry).tokenize_with_location().unwrap_or_default();
            let ours = parsed(&BoundedDialect::new(dialect, &tokens), plain, entry);
            match parsed(plain, plain, entry) {
                // The plain grammar reads `inet '…'` as a column and its alias, too much after `DISTINCT FROM`, and some
                // functions as forms of their own.
                Some(_)
                    if [" ISNULL", "bpchar 'q'", "evil_domain 'x'", "DISTINCT FROM", "substr("]
                        .iter()
                        .any(|form| entry.contains(form)) => {}
                Some(theirs) => assert_eq!(ours.as_ref(), Some(&theirs), "{entry}"),
                None => only_ours += usize::from(ours.is_some()),
            }
        }
        // These need the extensions; an incomplete forwarding would parse less or differently.
        assert!(only_ours >= missing, "{only_ours}");
    }

    /// In PostgreSQL, these operators bind weaker than arithmetic, and as strong as `||`.
    #[test]
    fn operators_of_postgresql_have_its_precedence() {
        for dialect in [SqlDialect::DataFusion, SqlDialect::Postgres] {
            for (sql, expected) in [
                ("~ a + b & c", "(~ (a + b)) & c"),
                ("@ a - b * 2 > c", "(@ (a - (b * 2))) > c"),
                ("a - |/ b + c", "a - (|/ (b + c))"),
                ("||/ a::int + b = c", "(||/ ((a::int) + b)) = c"),
                ("a ~ b || c", "(a ~ b) || c"),
                ("a || b !~* c = d", "((a || b) !~* c) = d"),
            ] {
                assert_eq!(parsed_expression(dialect, sql), parsed_expression(dialect, expected), "{dialect:?}: {sql}");
            }
        }
    }

    /// In PostgreSQL, `IS` binds stronger than `NOT`, `AND` and `OR`, and weaker than comparisons.
    #[test]
    fn distinct_from_ends_before_and() {
        for dialect in [SqlDialect::DataFusion, SqlDialect::Postgres, SqlDialect::Sqlite] {
            for (sql, expected) in [
                ("a IS DISTINCT FROM b AND c", "(a IS DISTINCT FROM b) AND c"),
                ("a IS NOT DISTINCT FROM b OR c", "(a IS NOT DISTINCT FROM b) OR c"),
                ("x AND a IS DISTINCT FROM b OR c", "(x AND (a IS DISTINCT FROM b)) OR c"),
                ("NOT a IS DISTINCT FROM b AND c", "(NOT (a IS DISTINCT FROM b)) AND c"),
                ("a IS DISTINCT FROM b + 1 AND c", "(a IS DISTINCT FROM (b + 1)) AND c"),
                ("a IS DISTINCT FROM b = c", "a IS DISTINCT FROM (b = c)"),
                ("a IS NOT NULL AND b", "(a IS NOT NULL) AND b"),
            ] {
                assert_eq!(parsed_expression(dialect, sql), parsed_expression(dialect, expected), "{dialect:?}: {sql}");
            }
        }
    }

    /// The expression without its parentheses.
    fn parsed_expression(dialect: SqlDialect, sql: &str) -> Expr {
        let tokens = Tokenizer::new(dialect.parser_dialect(), sql).tokenize_with_location().unwrap();
        let grammar = BoundedDialect::new(dialect, &tokens);
        let mut expr = Parser::new(&grammar).with_tokens_with_locations(tokens).parse_expr().unwrap();
        let _ = sqlparser::ast::visit_expressions_mut(&mut expr, |expr| {
            if let Expr::Nested(inner) = expr {
                *expr = (**inner).clone();
            }
            std::ops::ControlFlow::<()>::Continue(())
        });
        expr
    }

    #[test]
    fn parses_everything_the_plain_grammar_parses() {
        check(SqlDialect::Postgres, include_str!("../tests/corpus/postgres/honest.sql"), 3);
        check(SqlDialect::Postgres, include_str!("../tests/corpus/postgres/attempts.sql"), 0);
        check(SqlDialect::Sqlite, include_str!("../tests/corpus/sqlite/honest.sql"), 3);
        check(SqlDialect::Sqlite, include_str!("../tests/corpus/sqlite/attempts.sql"), 0);
        check(SqlDialect::MySql, include_str!("../tests/corpus/mysql/honest.sql"), 0);
        check(SqlDialect::MySql, include_str!("../tests/corpus/mysql/attempts.sql"), 0);
        let generic = "SELECT a, [1], {'b': 1}, x::int FROM t QUALIFY 1 = 1\n\nFROM t SELECT * EXCEPT (a)\n\n\
                       SELECT * FROM t |> WHERE a > 1\n\nSELECT f(a := 1), struct(1 AS a) FROM t LIMIT 1, 2";
        check(SqlDialect::DataFusion, generic, 0);
    }
}
