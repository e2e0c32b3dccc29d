//! A second check of a statement, on its tokens instead of the AST.
//!
//! The statement policy checks the AST. If the parser read tokens differently than the database, the AST would not show
//! it. But harmful statements need certain tokens: a name before a parenthesis, or one of a few reserved words. This
//! check prefers false positives, and runs first so that its messages cover statements that the parser does not
//! support.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Word};
use tidegate_core::Error;

use crate::dialect::SqlDialect;
use crate::function_policy;
use crate::refusal::{self, refusal_error};

/// Refuses harmful tokens wherever they occur. `tokens` contains no whitespace.
///
/// The embedded engine runs the AST itself, so there the statement policy is sufficient.
pub(crate) fn check_tokens<'a>(tokens: impl Iterator<Item = &'a Token>, dialect: SqlDialect) -> Result<(), Error> {
    if dialect.is_embedded() {
        return Ok(());
    }
    let tokens: Vec<&Token> = tokens.collect();
    for (index, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        let before = index.checked_sub(1).map(|before| tokens[before]);
        let after = &tokens[index + 1..];
        if after.first() == Some(&&Token::LParen) {
            check_call(word, preceding_schema(&tokens[..index]), dialect)?;
        }
        let is_only_a_name = word.quote_style.is_some() || before.is_some_and(introduces_name);
        if dialect.is_postgres() && !is_only_a_name {
            check_reserved_word(word, after)?;
        }
    }
    Ok(())
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
