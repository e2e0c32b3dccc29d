//! The grammar of MySQL and MariaDB for the parser: that of the parser's own dialect, but version comments stay comments,
//! so that they can be refused, `@` and `$` begin no names, and the operators DIV and MOD bind as `*` does. GROUP BY may
//! end with WITH ROLLUP.

use std::any::TypeId;

use sqlparser::ast::{BinaryOperator, Expr};
use sqlparser::dialect::{Dialect, MySqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Word};

#[derive(Debug)]
pub(crate) struct MySqlGrammar;

const BASE: MySqlDialect = MySqlDialect {};

/// What the parser's own dialect of MySQL has, of everything that a query may contain.
macro_rules! supported {
    ($($method:ident),+ $(,)?) => {
        $(fn $method(&self) -> bool {
            true
        })+
    };
}

impl Dialect for MySqlGrammar {
    fn dialect(&self) -> TypeId {
        TypeId::of::<MySqlDialect>()
    }

    fn is_identifier_start(&self, character: char) -> bool {
        character.is_alphabetic() || character == '_' || !character.is_ascii()
    }

    fn is_identifier_part(&self, character: char) -> bool {
        self.is_identifier_start(character) || character.is_ascii_digit() || character == '$'
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        character == '`'
    }

    fn identifier_quote_style(&self, _identifier: &str) -> Option<char> {
        Some('`')
    }

    fn is_table_factor_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        BASE.is_table_factor_alias(explicit, keyword, parser)
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, left: &Expr, _precedence: u8) -> Option<Result<Expr, ParserError>> {
        let op = peek_division(parser)?;
        parser.advance_token();
        let right = parser.parse_subexpr(self.prec_value(Precedence::MulDivModOp));
        Some(right.map(|right| Expr::BinaryOp { left: Box::new(left.clone()), op, right: Box::new(right) }))
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        peek_division(parser).map(|_| Ok(self.prec_value(Precedence::MulDivModOp)))
    }

    supported! {
        require_interval_qualifier, requires_single_line_comment_whitespace, supports_bang_not_operator,
        supports_binary_kw_as_cast, supports_bitwise_shift_operators, supports_cross_join_constraint,
        supports_data_type_signed_suffix, supports_dollar_placeholder, supports_double_ampersand_operator,
        supports_group_by_with_modifier, supports_limit_comma, supports_match_against, supports_numeric_prefix,
        supports_select_modifiers, supports_string_literal_backslash_escape, supports_string_literal_concatenation,
        supports_table_hints,
    }
}

/// The operator `DIV` or `MOD` that comes next.
fn peek_division(parser: &Parser<'_>) -> Option<BinaryOperator> {
    match &parser.peek_nth_token_ref(0).token {
        Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case("div") => {
            Some(BinaryOperator::MyIntegerDivide)
        }
        Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case("mod") => {
            Some(BinaryOperator::Modulo)
        }
        _ => None,
    }
}
