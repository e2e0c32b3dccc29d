//! Reads the accessors of a SQL/JSON path.

use datafusion::common::{Result, exec_datafusion_err, not_impl_err};

use super::lexer::PathToken;
use super::parser::PathParser;
use super::syntax::{Accessor, Method};

/// The method that is refused.
const DATETIME: &str = "datetime";

impl PathParser<'_> {
    /// Parses the next accessor, if there is one.
    pub(super) fn apply_step(&mut self) -> Result<Option<Accessor>> {
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
