//! Splits operators as PostgreSQL does.
//!
//! In PostgreSQL an operator is the longest run of certain characters, except for a trailing sign. The parser splits
//! some runs differently. Both must read the same operators, so the tokens are corrected.

use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use tidegate_core::Error;

use crate::dialect::SqlDialect;
use crate::refusal::ambiguous_token_error;

const OPERATOR_CHARACTERS: &str = "+-*/<>=~!@#%^&|`?";
/// An operator of several characters may end with + or - if it contains one of these.
const CHARACTERS_KEEPING_SIGN: &str = "~!@#^&|`?%";

/// The maximum length of a run; PostgreSQL has no longer operators.
const RUN_BYTES_MAX: usize = 63;

#[derive(Default)]
pub(super) struct OperatorRun {
    text: String,
    first: Option<TokenWithSpan>,
}

impl OperatorRun {
    pub(super) fn add_if_operator(&mut self, token: &TokenWithSpan, source: &str) -> bool {
        let is_operator = !source.is_empty()
            && !matches!(token.token, Token::Whitespace(_))
            && source.chars().all(|character| OPERATOR_CHARACTERS.contains(character));
        if is_operator {
            self.text.push_str(source);
            self.first.get_or_insert_with(|| token.clone());
        }
        is_operator
    }

    pub(super) fn take(&mut self) -> Result<Vec<(TokenWithSpan, String)>, Error> {
        let Some(first) = self.first.take() else { return Ok(Vec::new()) };
        let run = std::mem::take(&mut self.text);
        // Within a run the parser misses comments that PostgreSQL recognizes.
        if run.len() > RUN_BYTES_MAX || run.contains("--") || run.contains("/*") {
            return Err(ambiguous_token_error(&run));
        }
        let operators = split_operators(&run).into_iter().map(|operator| {
            let token =
                parse_single_token(operator).unwrap_or_else(|| Token::CustomBinaryOperator(operator.to_owned()));
            (TokenWithSpan { token, span: first.span }, operator.to_owned())
        });
        Ok(operators.collect())
    }
}

/// Whether `token` is an operator that stays separate beside any token that is not an operator.
///
/// Not `&`: after a U it begins strings and names with escapes.
pub(crate) fn is_operator(token: &Token) -> bool {
    !matches!(token, Token::Ampersand | Token::Word(_))
        && !token.to_string().is_empty()
        && token.to_string().chars().all(|character| OPERATOR_CHARACTERS.contains(character))
}

/// Splits `run` into the operators that PostgreSQL reads.
fn split_operators(run: &str) -> Vec<&str> {
    let mut operators = Vec::new();
    let mut rest = run;
    while !rest.is_empty() {
        let keeps_a_sign = rest[..rest.len() - 1].contains(|character| CHARACTERS_KEEPING_SIGN.contains(character));
        let bare = if keeps_a_sign { rest } else { rest.trim_end_matches(['+', '-']) };
        // In a run of signs, each sign is an operator.
        let length = if bare.is_empty() { 1 } else { bare.len() };
        let (operator, after) = rest.split_at(length);
        operators.push(operator);
        rest = after;
    }
    operators
}

fn parse_single_token(text: &str) -> Option<Token> {
    let mut tokens = Tokenizer::new(SqlDialect::Postgres.parser_dialect(), text).tokenize().ok()?;
    let only = tokens.pop().filter(|_| tokens.is_empty())?;
    (only.to_string() == text || (only == Token::Neq && text == "!=")).then_some(only)
}

#[cfg(test)]
mod tests {
    use super::split_operators;

    #[test]
    fn splits_operators_like_postgresql() {
        assert_eq!(split_operators("<>-"), ["<>", "-"]);
        assert_eq!(split_operators("*-"), ["*", "-"]);
        assert_eq!(split_operators("+-+"), ["+", "-", "+"]);
        assert_eq!(split_operators("@-"), ["@-"]);
        assert_eq!(split_operators("||-"), ["||-"]);
        assert_eq!(split_operators("->>-"), ["->>", "-"]);
        assert_eq!(split_operators("->-"), ["->", "-"]);
        assert_eq!(split_operators("<|"), ["<|"]);
        assert_eq!(split_operators("-"), ["-"]);
    }
}
