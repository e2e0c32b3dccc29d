//! From the parser's tree to a condition: what may stand in one, and words for what may not.

use sqlparser::ast::{BinaryOperator, Expr, Ident, UnaryOperator, Value, ValueWithSpan};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use tidegate_core::Error;

use super::Comparator;
use super::condition::{Name, Node, Term};
use super::resolve::Asked;

const WANTED: &str = "a condition may consist of comparisons, IN, BETWEEN, LIKE, IS NULL, AND, OR and NOT over \
     columns, literals, :subject, :tenant and :claims.NAME";

/// `tokens` with a colon and the names after it as one placeholder each: `:claims.tenant`, `:claims."odd name"`.
///
/// # Errors
/// Never: what is none stays as it is, for the parser to complain about.
pub(super) fn with_placeholders(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, Error> {
    let mut joined = Vec::with_capacity(tokens.len());
    let mut tokens = tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).peekable();
    while let Some(mut token) = tokens.next() {
        let is_name = |token: &TokenWithSpan| matches!(token.token, Token::Word(_));
        if token.token == Token::Colon && tokens.peek().is_some_and(is_name) {
            let mut parts = Vec::new();
            while let Some(name) = tokens.next_if(is_name) {
                if let Token::Word(word) = name.token {
                    parts.push(word.value);
                }
                if tokens.next_if(|token| token.token == Token::Period).is_none() {
                    break;
                }
            }
            // Names may hold anything but this sign.
            token.token = Token::Placeholder(format!(":{}", parts.join(SEPARATOR)));
        }
        joined.push(token);
    }
    Ok(joined)
}

const SEPARATOR: &str = "\0";

/// `reason` as people wrote what it shows.
pub(super) fn readable(reason: &str) -> String {
    reason.replace(SEPARATOR, ".")
}

/// The condition that `expression` is.
pub(super) fn node(expression: &Expr) -> Result<Node, String> {
    Ok(match expression {
        Expr::Nested(inner) => node(inner)?,
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => Node::Not(Box::new(node(expr)?)),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => Node::All(vec![node(left)?, node(right)?]),
        Expr::BinaryOp { left, op: BinaryOperator::Or, right } => Node::Any(vec![node(left)?, node(right)?]),
        Expr::BinaryOp { left, op, right } => compared(term(left)?, comparator(op)?, term(right)?)?,
        Expr::InList { expr, list, negated } => {
            let (term, list) = (term(expr)?, list.iter().map(self::term).collect::<Result<Vec<_>, _>>()?);
            if list.iter().any(|item| matches!(item, Term::Column(_))) {
                return Err(format!("a column stands in the list of {expression}; literals and claims may"));
            }
            check_mixed(&term, &list, expression)?;
            Node::In { term, list, is_negated: *negated }
        }
        Expr::Between { expr, negated, low, high } => {
            let (term, low, high) = (term(expr)?, term(low)?, term(high)?);
            let from = compared(term.clone(), Comparator::GreaterOrEqual, low)?;
            let both = Node::All(vec![from, compared(term, Comparator::LessOrEqual, high)?]);
            if *negated { Node::Not(Box::new(both)) } else { both }
        }
        Expr::IsNull(inner) => Node::IsNull { column: column(inner)?, is_negated: false },
        Expr::IsNotNull(inner) => Node::IsNull { column: column(inner)?, is_negated: true },
        Expr::Like { negated, any: false, expr, pattern, escape_char: None } => match term(pattern)? {
            Term::Text(pattern) => Node::Like { column: column(expr)?, pattern, is_negated: *negated },
            // What a caller brings could be a pattern that fits all.
            _ => return Err(format!("the pattern of {expression} is no literal text")),
        },
        Expr::Identifier(name) => Node::Column(named(name)),
        Expr::Value(ValueWithSpan { value: Value::Boolean(value), .. }) => Node::Constant(*value),
        other => return Err(format!("{other} cannot stand in a row policy: {WANTED}")),
    })
}

fn compared(left: Term, comparator: Comparator, right: Term) -> Result<Node, String> {
    match (&left, &right) {
        (Term::Asked(_), Term::Asked(_)) => {
            Err("what a caller brings is compared with itself; compare a column".to_owned())
        }
        _ => Ok(Node::Compare { left, comparator, right }),
    }
}

/// What a caller brings is typed by what it is compared with.
fn check_mixed(term: &Term, list: &[Term], expression: &Expr) -> Result<(), String> {
    let is_asked = |term: &Term| matches!(term, Term::Asked(_));
    if is_asked(term) && list.iter().any(is_asked) {
        return Err(format!("in {expression} what a caller brings is compared with itself; compare a column"));
    }
    Ok(())
}

fn comparator(operator: &BinaryOperator) -> Result<Comparator, String> {
    Ok(match operator {
        BinaryOperator::Eq => Comparator::Equal,
        BinaryOperator::NotEq => Comparator::NotEqual,
        BinaryOperator::Lt => Comparator::Less,
        BinaryOperator::LtEq => Comparator::LessOrEqual,
        BinaryOperator::Gt => Comparator::Greater,
        BinaryOperator::GtEq => Comparator::GreaterOrEqual,
        other => return Err(format!("the operator {other} cannot stand in a row policy: {WANTED}")),
    })
}

fn term(expression: &Expr) -> Result<Term, String> {
    Ok(match expression {
        Expr::Nested(inner) => term(inner)?,
        Expr::Identifier(name) => Term::Column(named(name)),
        Expr::CompoundIdentifier(_) => return Err(format!("write {expression} without what stands before its name")),
        Expr::Value(ValueWithSpan { value, .. }) => of_value(value)?,
        Expr::TypedString(typed) => match &typed.value.value {
            Value::SingleQuotedString(text) => Term::Text(text.clone()),
            other => return Err(format!("{other} is no text")),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => number(&format!("-{digits}"))?,
            other => return Err(format!("-{other} cannot stand in a row policy: {WANTED}")),
        },
        other => return Err(format!("{other} cannot stand in a row policy: {WANTED}")),
    })
}

fn of_value(value: &Value) -> Result<Term, String> {
    Ok(match value {
        Value::Number(digits, _) => number(digits)?,
        Value::SingleQuotedString(text) => Term::Text(text.clone()),
        Value::Boolean(value) => Term::Boolean(*value),
        Value::Null => return Err("nothing equals NULL; write IS NULL or IS NOT NULL".to_owned()),
        Value::Placeholder(name) => Term::Asked(asked(name)?),
        other => return Err(format!("the literal {other} cannot stand in a row policy")),
    })
}

fn number(digits: &str) -> Result<Term, String> {
    if let Ok(integer) = digits.parse::<i64>() {
        return Ok(Term::Integer(integer));
    }
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Term::Number(number)),
        _ => Err(format!("the number {digits} is too large")),
    }
}

fn asked(placeholder: &str) -> Result<Asked, String> {
    let names: Vec<&str> = placeholder.trim_start_matches(':').split(SEPARATOR).collect();
    match names.as_slice() {
        ["subject"] => Ok(Asked::Subject),
        ["tenant"] => Ok(Asked::Tenant),
        ["claims", path @ ..] if !path.is_empty() => {
            Ok(Asked::Claim(path.iter().map(|name| (*name).to_owned()).collect()))
        }
        names => {
            let name = names.join(".");
            Err(format!("a caller does not bring :{name}; it brings :subject, :tenant and :claims.NAME"))
        }
    }
}

fn column(expression: &Expr) -> Result<Name, String> {
    match term(expression)? {
        Term::Column(name) => Ok(name),
        _ => Err(format!("{expression} is no column")),
    }
}

fn named(name: &Ident) -> Name {
    Name { text: name.value.clone(), is_quoted: name.quote_style.is_some() }
}
