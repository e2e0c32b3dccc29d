//! Limits the depth of the AST of a statement before it is parsed.
//!
//! The parser limits its own recursion, but builds chains (`a + b + c`, `x::int::text`, `… UNION …`) in loops. Such a
//! chain is a tree as deep as it is long, and dropping, cloning or comparing it overflows the stack.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use tidegate_core::{Error, ErrorKind};

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
pub(crate) fn check(tokens: &[TokenWithSpan]) -> Result<(), Error> {
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

pub(crate) fn too_deep_error() -> Error {
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
        check(&Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location().unwrap()).is_ok()
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
