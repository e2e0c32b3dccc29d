//! Parses a condition: converts the AST of the parser, with messages for what is not allowed.

use sqlparser::ast::{BinaryOperator, Expr, Ident, UnaryOperator, Value, ValueWithSpan};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use tidegate_core::{Error, ErrorKind};
use tidegate_sql::{Comparator, SqlDialect, parse_prepared_expression};

use super::condition::{CallerAttribute, ColumnName, ConditionNode, ConditionTerm, RowCondition};

const CONDITION_BYTES_MAX: usize = 8_192;

const ALLOWED_SYNTAX: &str = "a condition may consist of comparisons, IN, BETWEEN, LIKE, IS NULL, AND, OR and NOT over \
     columns, literals, :subject, :tenant and :claims.NAME";

impl RowCondition {
    /// Parses `text`.
    ///
    /// # Errors
    /// `InvalidArguments` with the error and what is allowed instead.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > CONDITION_BYTES_MAX {
            let message = format!("the condition is {} bytes long; the limit is {CONDITION_BYTES_MAX}", text.len());
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        let expression = parse_prepared_expression(text, SqlDialect::DataFusion, join_placeholders)?;
        let tree = convert_node(&expression)
            .map_err(|reason| Error::new(ErrorKind::InvalidArguments, reason.replace(SEPARATOR, ".")))?;
        Ok(Self { text: text.to_owned(), tree })
    }
}

/// Joins a colon and the names after it into one placeholder: `:claims.tenant`, `:claims."odd name"`. Never fails: the
/// parser reports other tokens.
fn join_placeholders(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, Error> {
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
            // Names may contain any character except this separator.
            token.token = Token::Placeholder(format!(":{}", parts.join(SEPARATOR)));
        }
        joined.push(token);
    }
    Ok(joined)
}

const SEPARATOR: &str = "\0";

fn convert_node(expression: &Expr) -> Result<ConditionNode, String> {
    Ok(match expression {
        Expr::Nested(inner) => convert_node(inner)?,
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => ConditionNode::Not(Box::new(convert_node(expr)?)),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            ConditionNode::All(vec![convert_node(left)?, convert_node(right)?])
        }
        Expr::BinaryOp { left, op: BinaryOperator::Or, right } => {
            ConditionNode::Any(vec![convert_node(left)?, convert_node(right)?])
        }
        Expr::BinaryOp { left, op, right } => {
            build_comparison(convert_term(left)?, convert_operator(op)?, convert_term(right)?)?
        }
        Expr::InList { expr, list, negated } => {
            let (term, list) = (convert_term(expr)?, list.iter().map(convert_term).collect::<Result<Vec<_>, _>>()?);
            if list.iter().any(|item| matches!(item, ConditionTerm::Column(_))) {
                return Err(format!("the list of {expression} contains a column; use literals and claims"));
            }
            check_list_terms(&term, &list, expression)?;
            ConditionNode::In { term, list, is_negated: *negated }
        }
        Expr::Between { expr, negated, low, high } => {
            let (term, low, high) = (convert_term(expr)?, convert_term(low)?, convert_term(high)?);
            let from = build_comparison(term.clone(), Comparator::GreaterOrEqual, low)?;
            let both = ConditionNode::All(vec![from, build_comparison(term, Comparator::LessOrEqual, high)?]);
            if *negated { ConditionNode::Not(Box::new(both)) } else { both }
        }
        Expr::IsNull(inner) => ConditionNode::IsNull { column: expect_column(inner)?, is_negated: false },
        Expr::IsNotNull(inner) => ConditionNode::IsNull { column: expect_column(inner)?, is_negated: true },
        Expr::Like { negated, any: false, expr, pattern, escape_char: None } => match convert_term(pattern)? {
            ConditionTerm::Text(pattern) => {
                ConditionNode::Like { column: expect_column(expr)?, pattern, is_negated: *negated }
            }
            // An attribute of the caller could be a pattern that matches everything.
            _ => return Err(format!("the pattern of {expression} is not a text literal")),
        },
        Expr::Identifier(name) => ConditionNode::Column(column_name(name)),
        Expr::Value(ValueWithSpan { value: Value::Boolean(value), .. }) => ConditionNode::Constant(*value),
        other => return Err(format!("{other} is not allowed in a row policy: {ALLOWED_SYNTAX}")),
    })
}

fn build_comparison(
    left: ConditionTerm,
    comparator: Comparator,
    right: ConditionTerm,
) -> Result<ConditionNode, String> {
    match (&left, &right) {
        (ConditionTerm::CallerAttribute(_), ConditionTerm::CallerAttribute(_)) => {
            Err("both sides are attributes of the caller; one must be a column or a literal".to_owned())
        }
        _ => Ok(ConditionNode::Compare { left, comparator, right }),
    }
}

/// The other side determines the type of an attribute of the caller.
fn check_list_terms(term: &ConditionTerm, list: &[ConditionTerm], expression: &Expr) -> Result<(), String> {
    let is_attribute = |term: &ConditionTerm| matches!(term, ConditionTerm::CallerAttribute(_));
    if is_attribute(term) && list.iter().any(is_attribute) {
        return Err(format!(
            "in {expression} both sides are attributes of the caller; one must be a column or a literal"
        ));
    }
    Ok(())
}

fn convert_operator(operator: &BinaryOperator) -> Result<Comparator, String> {
    Comparator::from_operator(operator)
        .ok_or_else(|| format!("the operator {operator} is not allowed in a row policy: {ALLOWED_SYNTAX}"))
}

fn convert_term(expression: &Expr) -> Result<ConditionTerm, String> {
    Ok(match expression {
        Expr::Nested(inner) => convert_term(inner)?,
        Expr::Identifier(name) => ConditionTerm::Column(column_name(name)),
        Expr::CompoundIdentifier(_) => return Err(format!("write {expression} without its qualifier")),
        Expr::Value(ValueWithSpan { value, .. }) => convert_literal(value)?,
        Expr::TypedString(typed) => match &typed.value.value {
            Value::SingleQuotedString(text) => ConditionTerm::Text(text.clone()),
            other => return Err(format!("{other} is not a text literal")),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => parse_number(&format!("-{digits}"))?,
            other => return Err(format!("-{other} is not allowed in a row policy: {ALLOWED_SYNTAX}")),
        },
        other => return Err(format!("{other} is not allowed in a row policy: {ALLOWED_SYNTAX}")),
    })
}

fn convert_literal(value: &Value) -> Result<ConditionTerm, String> {
    Ok(match value {
        Value::Number(digits, _) => parse_number(digits)?,
        Value::SingleQuotedString(text) => ConditionTerm::Text(text.clone()),
        Value::Boolean(value) => ConditionTerm::Boolean(*value),
        Value::Null => return Err("nothing equals NULL; write IS NULL or IS NOT NULL".to_owned()),
        Value::Placeholder(name) => ConditionTerm::CallerAttribute(parse_caller_attribute(name)?),
        other => return Err(format!("the literal {other} is not allowed in a row policy")),
    })
}

fn parse_number(digits: &str) -> Result<ConditionTerm, String> {
    if let Ok(integer) = digits.parse::<i64>() {
        return Ok(ConditionTerm::Integer(integer));
    }
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(ConditionTerm::Number(number)),
        _ => Err(format!("the number {digits} is too large")),
    }
}

fn parse_caller_attribute(placeholder: &str) -> Result<CallerAttribute, String> {
    let names: Vec<&str> = placeholder.trim_start_matches(':').split(SEPARATOR).collect();
    match names.as_slice() {
        ["subject"] => Ok(CallerAttribute::Subject),
        ["tenant"] => Ok(CallerAttribute::Tenant),
        ["claims", path @ ..] if !path.is_empty() => {
            Ok(CallerAttribute::Claim(path.iter().map(|name| (*name).to_owned()).collect()))
        }
        names => {
            let name = names.join(".");
            Err(format!("unknown attribute :{name}; use :subject, :tenant or :claims.NAME"))
        }
    }
}

fn expect_column(expression: &Expr) -> Result<ColumnName, String> {
    match convert_term(expression)? {
        ConditionTerm::Column(name) => Ok(name),
        _ => Err(format!("{expression} is not a column")),
    }
}

fn column_name(name: &Ident) -> ColumnName {
    ColumnName { text: name.value.clone(), is_quoted: name.quote_style.is_some() }
}
