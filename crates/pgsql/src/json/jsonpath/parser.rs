//! Reads a SQL/JSON path and its accessors.

use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err, not_impl_err};

use super::super::value::{self, JsonValue};
use super::lexer::{PathToken, invalid, tokens};
use super::path::{Accessor, Arithmetic, ArithmeticOperator, Comparison, JsonPath, Method, Path, PathStart, Predicate};
use crate::pg_regex::{PgRegex, RegexOptions};

/// Bytes of a path.
const BYTES_MAX: usize = 16 << 10;

/// Accessors, operators and predicates of a path.
const PARTS_MAX: usize = 200;

/// Levels of parentheses, filters and signs.
const DEPTH_MAX: usize = 32;

/// Reads the path that `text` is.
pub(super) fn parse(text: &str) -> Result<JsonPath> {
    if text.trim().is_empty() {
        return exec_err!("invalid input syntax for type jsonpath: \"{text}\"");
    }
    if text.len() > BYTES_MAX {
        return exec_err!("a jsonpath may have at most {BYTES_MAX} bytes");
    }
    let mut parser = PathParser { text, tokens: tokens(text)?, at: 0, parts: 0, depth: 0, filters: 0, subscripts: 0 };
    let is_strict = parser.accept_word("strict");
    if !is_strict {
        parser.accept_word("lax");
    }
    let path = parser.part()?.into_path();
    if *parser.peek() != PathToken::End {
        return Err(parser.error("syntax error"));
    }
    Ok(JsonPath { is_lax: !is_strict, path })
}

/// A parenthesized expression or an operand. Only an accessor turns a predicate into an expression.
enum PathPart {
    Path(Path),
    Predicate(Predicate),
}

impl PathPart {
    fn into_path(self) -> Path {
        match self {
            Self::Path(path) => path,
            Self::Predicate(predicate) => Path { start: PathStart::Predicate(Box::new(predicate)), steps: Vec::new() },
        }
    }
}

struct PathParser<'a> {
    text: &'a str,
    tokens: Vec<(PathToken, usize)>,
    at: usize,
    parts: usize,
    depth: usize,
    /// Filters around what is read.
    filters: usize,
    /// Subscripts around what is read.
    subscripts: usize,
}

impl PathParser<'_> {
    fn peek(&self) -> &PathToken {
        &self.tokens[self.at.min(self.tokens.len() - 1)].0
    }

    fn take(&mut self) -> PathToken {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn error(&self, reason: &str) -> DataFusionError {
        invalid(self.text, self.tokens[self.at.min(self.tokens.len() - 1)].1, reason)
    }

    fn syntax_error<T>(&self) -> Result<T> {
        Err(self.error("syntax error"))
    }

    fn accept(&mut self, symbol: &str) -> bool {
        let is_next = matches!(self.peek(), PathToken::Symbol(next) if *next == symbol);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.accept(symbol) { Ok(()) } else { self.syntax_error() }
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let is_next = matches!(self.peek(), PathToken::Name(name) if name.eq_ignore_ascii_case(word));
        self.at += usize::from(is_next);
        is_next
    }

    fn count(&mut self) -> Result<()> {
        self.parts += 1;
        if self.parts > PARTS_MAX {
            return exec_err!("a jsonpath may have at most {PARTS_MAX} parts");
        }
        Ok(())
    }

    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return exec_err!("a jsonpath may have at most {DEPTH_MAX} levels");
        }
        Ok(())
    }

    /// Parses an expression or a predicate.
    fn part(&mut self) -> Result<PathPart> {
        self.enter()?;
        let mut left = self.conjunction()?;
        while self.accept("||") {
            self.count()?;
            let (first, second) = (self.predicate_of(left)?, self.conjunction()?);
            let second = self.predicate_of(second)?;
            left = PathPart::Predicate(Predicate::Or(Box::new(first), Box::new(second)));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<PathPart> {
        let mut left = self.comparison()?;
        while self.accept("&&") {
            self.count()?;
            let (first, second) = (self.predicate_of(left)?, self.comparison()?);
            let second = self.predicate_of(second)?;
            left = PathPart::Predicate(Predicate::And(Box::new(first), Box::new(second)));
        }
        Ok(left)
    }

    fn predicate_of(&self, part: PathPart) -> Result<Predicate> {
        match part {
            PathPart::Predicate(predicate) => Ok(predicate),
            PathPart::Path(_) => self.syntax_error(),
        }
    }

    fn path_of(&self, part: PathPart) -> Result<Path> {
        match part {
            PathPart::Path(path) => Ok(path),
            PathPart::Predicate(_) => self.syntax_error(),
        }
    }

    fn predicate(&mut self) -> Result<Predicate> {
        let part = self.part()?;
        self.predicate_of(part)
    }

    fn path(&mut self) -> Result<Path> {
        self.enter()?;
        let part = self.sum()?;
        self.depth -= 1;
        self.path_of(part)
    }

    fn comparison(&mut self) -> Result<PathPart> {
        self.count()?;
        if self.accept("!") {
            let operand = self.negated()?;
            return Ok(PathPart::Predicate(Predicate::Not(Box::new(operand))));
        }
        let left = self.sum()?;
        let left = match left {
            PathPart::Predicate(predicate) => return Ok(PathPart::Predicate(predicate)),
            PathPart::Path(path) => path,
        };
        if let Some(comparison) = self.comparison_operator() {
            let right = self.sum()?;
            let right = self.path_of(right)?;
            return Ok(PathPart::Predicate(Predicate::Compare { comparison, left, right }));
        }
        if self.accept_word("starts") {
            if !self.accept_word("with") {
                return self.syntax_error();
            }
            let start = match self.take() {
                PathToken::Text(text) => PathStart::Literal(JsonValue::Text(text)),
                PathToken::Variable(name) => PathStart::Variable(name),
                _ => return self.syntax_error(),
            };
            let initial = Path { start, steps: Vec::new() };
            return Ok(PathPart::Predicate(Predicate::StartsWith { whole: left, initial }));
        }
        if self.accept_word("like_regex") {
            return self.like_regex(left);
        }
        Ok(PathPart::Path(left))
    }

    fn comparison_operator(&mut self) -> Option<Comparison> {
        let PathToken::Symbol(symbol) = self.peek() else { return None };
        let comparison = match *symbol {
            "==" => Comparison::Equal,
            "!=" | "<>" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            _ => return None,
        };
        self.at += 1;
        Some(comparison)
    }

    /// Parses the operand of `!`.
    fn negated(&mut self) -> Result<Predicate> {
        if self.accept("(") {
            let predicate = self.predicate()?;
            self.expect(")")?;
            return Ok(predicate);
        }
        if self.accept_word("exists") { self.exists() } else { self.syntax_error() }
    }

    fn exists(&mut self) -> Result<Predicate> {
        self.expect("(")?;
        let path = self.path()?;
        self.expect(")")?;
        Ok(Predicate::Exists(path))
    }

    fn like_regex(&mut self, text: Path) -> Result<PathPart> {
        let PathToken::Text(pattern) = self.take() else { return self.syntax_error() };
        let mut flags = String::new();
        if self.accept_word("flag") {
            let PathToken::Text(text) = self.take() else { return self.syntax_error() };
            flags = text;
        }
        if let Some(character) = flags.chars().find(|character| !matches!(character, 'i' | 's' | 'm' | 'x' | 'q')) {
            return exec_err!("unrecognized flag character \"{character}\" in LIKE_REGEX predicate");
        }
        let has = |character: char| flags.contains(character);
        let mut letters = String::from(match (has('q'), has('s'), has('m')) {
            (true, ..) => "q",
            (false, true, false) => "s",
            (false, false, false) => "p",
            (false, true, true) => "w",
            (false, false, true) => "n",
        });
        if has('x') && !has('q') {
            return exec_err!("XQuery \"x\" flag (expanded regular expressions) is not implemented");
        }
        if has('i') {
            letters.push('i');
        }
        let regex = Box::new(PgRegex::new(&pattern, RegexOptions::parse(&letters)?)?);
        Ok(PathPart::Predicate(Predicate::LikeRegex { text, regex, pattern, flags }))
    }

    fn sum(&mut self) -> Result<PathPart> {
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                PathToken::Symbol("+") => ArithmeticOperator::Add,
                PathToken::Symbol("-") => ArithmeticOperator::Subtract,
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.product()?;
            left = self.arithmetic(operator, left, right)?;
        }
    }

    fn product(&mut self) -> Result<PathPart> {
        let mut left = self.signed()?;
        loop {
            let operator = match self.peek() {
                PathToken::Symbol("*") => ArithmeticOperator::Multiply,
                PathToken::Symbol("/") => ArithmeticOperator::Divide,
                PathToken::Symbol("%") => ArithmeticOperator::Modulo,
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.signed()?;
            left = self.arithmetic(operator, left, right)?;
        }
    }

    fn arithmetic(&mut self, operator: ArithmeticOperator, left: PathPart, right: PathPart) -> Result<PathPart> {
        self.count()?;
        let (left, right) = (self.path_of(left)?, self.path_of(right)?);
        let start = PathStart::Arithmetic(Box::new(Arithmetic { operator, left, right }));
        Ok(PathPart::Path(Path { start, steps: Vec::new() }))
    }

    fn signed(&mut self) -> Result<PathPart> {
        let is_minus = self.accept("-");
        if !is_minus && !self.accept("+") {
            return self.accessors();
        }
        self.count()?;
        self.enter()?;
        let operand = self.signed()?;
        let operand = Box::new(self.path_of(operand)?);
        self.depth -= 1;
        Ok(PathPart::Path(Path { start: PathStart::Sign { is_minus, operand }, steps: Vec::new() }))
    }

    /// Parses the start of a path and its accessors.
    fn accessors(&mut self) -> Result<PathPart> {
        let mut part = self.primary()?;
        while let Some(step) = self.apply_step()? {
            self.count()?;
            let mut path = part.into_path();
            path.steps.push(step);
            part = PathPart::Path(path);
        }
        Ok(part)
    }

    fn primary(&mut self) -> Result<PathPart> {
        if self.accept("(") {
            let inner = self.part()?;
            self.expect(")")?;
            return match inner {
                PathPart::Predicate(predicate) if self.accept_word("is") => {
                    if !self.accept_word("unknown") {
                        return self.syntax_error();
                    }
                    Ok(PathPart::Predicate(Predicate::IsUnknown(Box::new(predicate))))
                }
                inner => Ok(inner),
            };
        }
        if self.accept_word("exists") {
            return self.exists().map(PathPart::Predicate);
        }
        let start = match self.peek() {
            PathToken::Text(text) => PathStart::Literal(JsonValue::Text(text.clone())),
            PathToken::Integer(number) | PathToken::Decimal(number) => {
                PathStart::Literal(JsonValue::Number(numeric(number)?))
            }
            PathToken::Variable(name) => PathStart::Variable(name.clone()),
            PathToken::Symbol("$") => PathStart::Root,
            PathToken::Symbol("@") if self.filters == 0 => {
                return exec_err!("@ is not allowed in root expressions");
            }
            PathToken::Symbol("@") => PathStart::Current,
            PathToken::Name(name) => match name.as_str() {
                "null" => PathStart::Literal(JsonValue::Null),
                "true" => PathStart::Literal(JsonValue::Bool(true)),
                "false" => PathStart::Literal(JsonValue::Bool(false)),
                last if last.eq_ignore_ascii_case("last") && self.subscripts == 0 => {
                    return exec_err!("LAST is allowed only in array subscripts");
                }
                last if last.eq_ignore_ascii_case("last") => PathStart::Last,
                _ => return self.syntax_error(),
            },
            _ => return self.syntax_error(),
        };
        self.at += 1;
        Ok(PathPart::Path(Path { start, steps: Vec::new() }))
    }
}

/// Converts a number of a path, which may begin or end with its point, to a number of JSON.
fn numeric(number: &str) -> Result<String> {
    let zero = if number.starts_with('.') { "0" } else { "" };
    let number = format!("{zero}{number}");
    let (mantissa, exponent) = match number.find(['e', 'E']) {
        Some(position) => number.split_at(position),
        None => (number.as_str(), ""),
    };
    value::canonicalize_number(&format!("{}{exponent}", mantissa.strip_suffix('.').unwrap_or(mantissa)))
}

/// The method that is refused.
const DATETIME: &str = "datetime";

impl PathParser<'_> {
    /// Parses the next accessor, if there is one.
    fn apply_step(&mut self) -> Result<Option<Accessor>> {
        if self.accept("[") {
            return self.subscripts().map(Some);
        }
        if self.accept("?") {
            self.expect("(")?;
            self.filters += 1;
            let predicate = self.predicate()?;
            self.filters -= 1;
            self.expect(")")?;
            return Ok(Some(Accessor::Filter(predicate)));
        }
        if !self.accept(".") {
            return Ok(None);
        }
        if self.accept("*") {
            return Ok(Some(Accessor::AnyKey));
        }
        if self.accept("**") {
            return self.levels().map(Some);
        }
        let name = match self.take() {
            PathToken::Text(key) => return Ok(Some(Accessor::Key(key))),
            PathToken::Name(name) => name,
            _ => {
                self.at -= 1;
                return self.syntax_error();
            }
        };
        if *self.peek() != PathToken::Symbol("(") {
            return Ok(Some(Accessor::Key(name)));
        }
        if name.eq_ignore_ascii_case(DATETIME) {
            return not_impl_err!(
                "the method datetime() of a jsonpath; take the text with ->> or jsonb_path_query, and cast it: \
                 (value ->> 'key')::timestamptz"
            );
        }
        let Some(method) = Method::find_method(&name) else { return self.syntax_error() };
        self.expect("(")?;
        self.expect(")")?;
        Ok(Some(Accessor::Method(method)))
    }

    fn subscripts(&mut self) -> Result<Accessor> {
        if self.accept("*") {
            self.expect("]")?;
            return Ok(Accessor::AnyElement);
        }
        self.subscripts += 1;
        let mut positions = Vec::new();
        loop {
            self.count()?;
            let from = self.path()?;
            let to = if self.accept_word("to") { Some(self.path()?) } else { None };
            positions.push((from, to));
            if !self.accept(",") {
                break;
            }
        }
        self.subscripts -= 1;
        self.expect("]")?;
        Ok(Accessor::Subscripts(positions))
    }

    /// Parses the levels of `.**`.
    fn levels(&mut self) -> Result<Accessor> {
        if !self.accept("{") {
            return Ok(Accessor::AnyLevel { first: 0, last: u32::MAX });
        }
        let first = self.level()?;
        let last = if self.accept_word("to") { self.level()? } else { first };
        self.expect("}")?;
        Ok(Accessor::AnyLevel { first, last })
    }

    fn level(&mut self) -> Result<u32> {
        match self.take() {
            PathToken::Name(name) if name.eq_ignore_ascii_case("last") => Ok(u32::MAX),
            PathToken::Integer(digits) => {
                match digits.parse::<i32>().ok().and_then(|level| u32::try_from(level).ok()) {
                    Some(level) => Ok(level),
                    None => Err(exec_datafusion_err!("value \"{digits}\" is out of range for type integer")),
                }
            }
            _ => {
                self.at -= 1;
                self.syntax_error()
            }
        }
    }
}
