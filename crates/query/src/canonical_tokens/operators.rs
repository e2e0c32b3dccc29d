//! PostgreSQL's operators, cut as PostgreSQL cuts them.
//!
//! There an operator is the longest run of certain characters, but for a sign at its end; the
//! parser cuts some runs in other places. As both must see the same, the parser is told.

use sqlparser::tokenizer::{Token, TokenWithSpan};
use tidegate_core::Error;

use super::{ambiguous_token_error, parse_single_token};
use crate::dialect::SqlDialect;

/// The characters of operators.
const OPERATOR_CHARACTERS: &str = "+-*/<>=~!@#%^&|`?";
/// An operator of several characters may end with + or - if it has one of these.
const CHARACTERS_KEEPING_SIGN: &str = "~!@#^&|`?%";

/// Characters of operators side by side; PostgreSQL takes no longer operator.
const RUN_BYTES_MAX: usize = 63;

/// Characters of operators without anything between them.
#[derive(Default)]
pub(super) struct OperatorRun {
    text: String,
    first: Option<TokenWithSpan>,
}

impl OperatorRun {
    /// Adds a token, if it is one of operator characters.
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

    /// The operators of the run, which is empty afterwards.
    pub(super) fn take(&mut self) -> Result<Vec<(TokenWithSpan, String)>, Error> {
        let Some(first) = self.first.take() else { return Ok(Vec::new()) };
        let run = std::mem::take(&mut self.text);
        // In the middle of a run the parser sees no comment where PostgreSQL does.
        if run.len() > RUN_BYTES_MAX || run.contains("--") || run.contains("/*") {
            return Err(ambiguous_token_error(&run));
        }
        let operators = split_operators(&run).into_iter().map(|operator| {
            let token = parse_single_token(operator, SqlDialect::Postgres)
                .unwrap_or_else(|| Token::CustomBinaryOperator(operator.to_owned()));
            (TokenWithSpan { token, span: first.span }, operator.to_owned())
        });
        Ok(operators.collect())
    }
}

/// Whether `token` is an operator that stays one whatever is right beside it, if that is none.
///
/// Not `&`: after a U it begins strings and names with escapes.
pub(super) fn is_operator(token: &Token) -> bool {
    !matches!(token, Token::Ampersand | Token::Word(_))
        && !token.to_string().is_empty()
        && token.to_string().chars().all(|character| OPERATOR_CHARACTERS.contains(character))
}

/// The operators that PostgreSQL reads in `run`.
fn split_operators(run: &str) -> Vec<&str> {
    let mut operators = Vec::new();
    let mut rest = run;
    while !rest.is_empty() {
        let keeps_a_sign = rest[..rest.len() - 1].contains(|character| CHARACTERS_KEEPING_SIGN.contains(character));
        let bare = if keeps_a_sign { rest } else { rest.trim_end_matches(['+', '-']) };
        // Of signs alone each is one.
        let length = if bare.is_empty() { 1 } else { bare.len() };
        let (operator, after) = rest.split_at(length);
        operators.push(operator);
        rest = after;
    }
    operators
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
