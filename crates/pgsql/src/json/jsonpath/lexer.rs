//! The tokens of a SQL/JSON path.

use datafusion::common::{DataFusionError, Result, exec_datafusion_err};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum PathToken {
    /// A name without quotes: a key, a keyword or a method.
    Name(String),
    /// In double quotes.
    Text(String),
    Integer(String),
    Decimal(String),
    /// `$name` and `$"name"`.
    Variable(String),
    Symbol(&'static str),
    End,
}

/// Longer ones first.
const SYMBOLS: [&str; 32] = [
    "&&", "||", "**", "<=", "==", "<>", "!=", ">=", "<", ">", "!", "?", "%", "$", ".", "[", "]", "{", "}", "(", ")",
    "|", "&", "=", "@", "#", ",", "*", ":", "-", "+", "/",
];
/// The characters that end a name.
const NAME_ENDS: &str = "?%$.[]{}()|&!=<>@#,*:-+/\\\" \t\n\r\u{c}";

/// Splits `text` into tokens, each with its position.
pub(super) fn tokens(text: &str) -> Result<Vec<(PathToken, usize)>> {
    let mut lexer = PathLexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        let (token, start) = lexer.token()?;
        let is_end = token == PathToken::End;
        tokens.push((token, start));
        if is_end {
            return Ok(tokens);
        }
    }
}

/// Returns the error for an invalid path, at the byte `at`.
pub(super) fn invalid(text: &str, at: usize, reason: &str) -> DataFusionError {
    match text.get(at..).filter(|rest| !rest.is_empty()) {
        Some(rest) => {
            let near: String = rest.chars().take(20).collect();
            exec_datafusion_err!("{reason} at or near \"{near}\" of jsonpath input")
        }
        None => exec_datafusion_err!("{reason} at end of jsonpath input"),
    }
}

/// Whether a name may contain the character.
fn is_name_character(character: char) -> bool {
    !NAME_ENDS.contains(character)
}

struct PathLexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> PathLexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn error(&self, reason: &str) -> DataFusionError {
        invalid(self.text, self.at, reason)
    }

    fn token(&mut self) -> Result<(PathToken, usize)> {
        self.skip_space()?;
        let start = self.at;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok((PathToken::End, start)) };
        let is_fraction = rest[1.min(rest.len())..].starts_with(|next: char| next.is_ascii_digit()) && first == '.';
        let token = match first {
            '0'..='9' => self.number()?,
            '.' if is_fraction => self.number()?,
            '"' => {
                self.at += 1;
                PathToken::Text(self.quoted()?)
            }
            '$' if rest.starts_with("$\"") => {
                self.at += 2;
                PathToken::Variable(self.quoted()?)
            }
            '$' if rest[1..].starts_with(is_name_character) => {
                self.at += 1;
                PathToken::Variable(self.take_while(is_name_character).to_owned())
            }
            '\\' => PathToken::Name(self.name()?),
            character if is_name_character(character) => PathToken::Name(self.name()?),
            _ => {
                let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
                let symbol = symbol.ok_or_else(|| self.error("syntax error"))?;
                self.at += symbol.len();
                PathToken::Symbol(symbol)
            }
        };
        Ok((token, start))
    }

    fn skip_space(&mut self) -> Result<()> {
        loop {
            self.take_while(|character| matches!(character, ' ' | '\t' | '\n' | '\r' | '\u{c}'));
            if !self.rest().starts_with("/*") {
                return Ok(());
            }
            match self.rest().find("*/") {
                Some(end) => self.at += end + 2,
                None => return Err(self.error("unexpected end of comment")),
            }
        }
    }

    fn take_while(&mut self, is_expected: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|character| !is_expected(character)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn number(&mut self) -> Result<PathToken> {
        let start = self.at;
        let is_digit = |character: char| character.is_ascii_digit();
        let mut is_integer = true;
        if self.peek() == Some('0') {
            self.at += 1;
        } else {
            self.take_while(is_digit);
        }
        if self.peek() == Some('.') {
            self.at += 1;
            self.take_while(is_digit);
            is_integer = false;
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            self.at += 1;
            if matches!(self.peek(), Some('+' | '-')) {
                self.at += 1;
            }
            if self.take_while(is_digit).is_empty() {
                return Err(invalid(self.text, start, "invalid numeric literal"));
            }
            is_integer = false;
        }
        if self.peek().is_some_and(is_name_character) {
            return Err(invalid(self.text, start, "trailing junk after numeric literal"));
        }
        let number = self.text[start..self.at].to_owned();
        Ok(if is_integer { PathToken::Integer(number) } else { PathToken::Decimal(number) })
    }

    fn name(&mut self) -> Result<String> {
        let mut name = String::new();
        loop {
            name.push_str(self.take_while(is_name_character));
            if self.peek() != Some('\\') {
                return Ok(name);
            }
            self.escape(&mut name)?;
        }
    }

    /// Reads the rest of a string, including the closing quote.
    fn quoted(&mut self) -> Result<String> {
        let mut text = String::new();
        loop {
            text.push_str(self.take_while(|character| !matches!(character, '"' | '\\')));
            match self.peek() {
                Some('"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(_) => self.escape(&mut text)?,
                None => return Err(self.error("unterminated quoted string")),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<()> {
        let character = self.rest()[1..].chars().next();
        let plain = match character {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('u') => return self.unicode(out),
            Some('x') => {
                let code =
                    self.hexadecimal(2, 2).ok_or_else(|| self.error("invalid hexadecimal character sequence"))?;
                return self.push_code(code, out);
            }
            Some(other) => other,
            None => return Err(self.error("unexpected end after backslash")),
        };
        self.at += 1 + character.map_or(0, char::len_utf8);
        out.push(plain);
        Ok(())
    }

    /// Skips `skip` characters, then reads `digits` hexadecimal digits.
    fn hexadecimal(&mut self, skip: usize, digits: usize) -> Option<u32> {
        let text = self.rest().get(skip..skip + digits)?;
        let is_valid = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let code = u32::from_str_radix(text, 16).ok().filter(|_| is_valid)?;
        self.at += skip + digits;
        Some(code)
    }

    /// Reads `\u0041` or `\u{41}`. Two of them may encode one character.
    fn unicode(&mut self, out: &mut String) -> Result<()> {
        let first = self.unit()?;
        if !(0xd800..0xdc00).contains(&first) {
            return self.push_code(first, out);
        }
        let second = if self.rest().starts_with("\\u") { self.unit()? } else { 0 };
        if !(0xdc00..0xe000).contains(&second) {
            return Err(self.error("Unicode low surrogate must follow a high surrogate"));
        }
        self.push_code(0x1_0000 + ((first & 0x3ff) << 10) + (second & 0x3ff), out)
    }

    fn unit(&mut self) -> Result<u32> {
        let rest = self.rest();
        let code = match rest.strip_prefix("\\u{") {
            Some(inner) => {
                let digits = inner.find('}').filter(|digits| (1..=6).contains(digits));
                let code = digits.and_then(|digits| self.hexadecimal(3, digits));
                self.at += usize::from(code.is_some());
                code
            }
            None => self.hexadecimal(2, 4),
        };
        code.ok_or_else(|| self.error("invalid Unicode escape sequence"))
    }

    fn push_code(&self, code: u32, out: &mut String) -> Result<()> {
        match char::from_u32(code) {
            Some(character) if character != '\0' => out.push(character),
            _ => return Err(self.error("unsupported Unicode escape sequence")),
        }
        Ok(())
    }
}
