//! Splits an SQL script into statements, in the same way as `psql`.
//!
//! It parses only what determines the end of a statement: quotes, comments, parentheses and bodies `BEGIN ATOMIC …
//! END`. Strings are parsed as with `standard_conforming_strings = on`.

/// The maximum number of words of a statement that are kept; the first ones determine its kind.
const WORDS_MAX: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script<'a> {
    pub(crate) statements: Vec<ScriptStatement<'a>>,
    /// The text after the last statement: blanks and comments.
    pub(crate) rest: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptStatement<'a> {
    /// The statement with its semicolon, and with the blanks and comments before it.
    pub(crate) source: &'a str,
    /// The line of its first word, from 1.
    pub(crate) line: usize,
    /// The length of the blanks and comments before it, in bytes.
    leading: usize,
    /// The first words outside of quotes and parentheses.
    words: Vec<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ScriptError {
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl ScriptError {
    fn unterminated(line: usize, subject: &str) -> Self {
        Self { line, message: format!("{subject} that begins here is not terminated") }
    }
}

impl<'a> Script<'a> {
    pub(crate) fn split(text: &'a str) -> Result<Self, ScriptError> {
        let mut scanner = ScriptScanner::new(text);
        let mut statements = Vec::new();
        let mut open = StatementBuilder::default();
        let mut start = 0;
        while let Some(token) = scanner.next_token()? {
            if open.push_token(token) {
                let source = &text[start..scanner.position()];
                statements.extend(std::mem::take(&mut open).finish(source, start));
                start = scanner.position();
            }
        }
        open.check_closed()?;
        let source = &text[start..];
        let rest = match open.finish(source, start) {
            Some(statement) => {
                statements.push(statement);
                ""
            }
            None => source,
        };
        Ok(Self { statements, rest })
    }
}

impl<'a> ScriptStatement<'a> {
    pub(crate) fn sql(&self) -> &'a str {
        &self.source[self.leading..]
    }

    /// Whether the word at `index` is `word`; ignores the case.
    pub(crate) fn has_word_at(&self, index: usize, word: &str) -> bool {
        self.words.get(index).is_some_and(|other| other.eq_ignore_ascii_case(word))
    }

    pub(crate) fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|other| other.eq_ignore_ascii_case(word))
    }
}

#[derive(Default)]
struct StatementBuilder<'a> {
    /// Offset and line of its first token.
    first: Option<(usize, usize)>,
    words: Vec<&'a str>,
    /// The lines of the open parentheses.
    parentheses: Vec<usize>,
    /// The nesting depth of `BEGIN ATOMIC` and `CASE`, and the line of the outermost one.
    blocks: usize,
    block_line: usize,
    /// The token just before, if it is a word.
    previous_word: Option<&'a str>,
    /// Whether the next word is a name in any case, as after a dot or `AS`.
    is_name_next: bool,
}

impl<'a> StatementBuilder<'a> {
    /// Adds the next token; returns true if it ends the statement.
    fn push_token(&mut self, token: ScriptToken<'a>) -> bool {
        let ScriptToken { kind, text, offset, line } = token;
        if kind == TokenKind::Blank {
            return false;
        }
        self.first.get_or_insert((offset, line));
        let before = self.previous_word.take();
        let is_name = std::mem::take(&mut self.is_name_next);
        match kind {
            TokenKind::Word => {
                self.push_word(text, line, before.filter(|_| !is_name), is_name);
                self.previous_word = Some(text);
                self.is_name_next = text.eq_ignore_ascii_case("as");
            }
            TokenKind::Semicolon => return self.parentheses.is_empty() && self.blocks == 0,
            TokenKind::Open => self.parentheses.push(line),
            TokenKind::Close => drop(self.parentheses.pop()),
            TokenKind::Dot => self.is_name_next = true,
            TokenKind::Quoted | TokenKind::Other | TokenKind::Blank => {}
        }
        false
    }

    fn push_word(&mut self, word: &'a str, line: usize, before: Option<&str>, is_name: bool) {
        let is = |other: &str| word.eq_ignore_ascii_case(other);
        if self.blocks > 0 && !is_name {
            if is("case") {
                self.blocks += 1;
            } else if is("end") {
                self.blocks -= 1;
            }
        } else if is("atomic")
            && before.is_some_and(|before| before.eq_ignore_ascii_case("begin"))
            && self.is_create_statement()
        {
            self.blocks = 1;
            self.block_line = line;
        }
        if self.parentheses.is_empty() && self.blocks == 0 && self.words.len() < WORDS_MAX {
            self.words.push(word);
        }
    }

    fn is_create_statement(&self) -> bool {
        self.words.first().is_some_and(|first| first.eq_ignore_ascii_case("create"))
    }

    fn check_closed(&self) -> Result<(), ScriptError> {
        match self.parentheses.first() {
            _ if self.blocks > 0 => Err(ScriptError::unterminated(self.block_line, "the body BEGIN ATOMIC")),
            Some(line) => Err(ScriptError::unterminated(*line, "the parenthesis")),
            None => Ok(()),
        }
    }

    /// The statement, if `source`, which begins at `start`, contains one.
    fn finish(self, source: &'a str, start: usize) -> Option<ScriptStatement<'a>> {
        let (offset, line) = self.first?;
        Some(ScriptStatement { source, line, leading: offset - start, words: self.words })
    }
}

/// The maximum length of a `psql` meta-command in an error, in characters.
const COMMAND_CHARACTERS_MAX: usize = 20;

/// A part of a script that is never split.
struct ScriptToken<'a> {
    kind: TokenKind,
    text: &'a str,
    /// The offset of its beginning, in bytes.
    offset: usize,
    /// The line of its beginning, from 1.
    line: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Blank,
    /// A keyword or an unquoted name.
    Word,
    /// A string or a quoted name.
    Quoted,
    Semicolon,
    Open,
    Close,
    Dot,
    Other,
}

/// Splits a script into tokens.
struct ScriptScanner<'a> {
    text: &'a str,
    position: usize,
    line: usize,
}

impl<'a> ScriptScanner<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, position: 0, line: 1 }
    }

    /// The current offset, in bytes.
    fn position(&self) -> usize {
        self.position
    }

    fn next_token(&mut self) -> Result<Option<ScriptToken<'a>>, ScriptError> {
        let (offset, line) = (self.position, self.line);
        let Some(first) = self.rest().chars().next() else { return Ok(None) };
        let (kind, length) = self.classify(first)?;
        let text = &self.text[offset..offset + length];
        self.position += length;
        self.line += text.matches('\n').count();
        Ok(Some(ScriptToken { kind, text, offset, line }))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    /// What the token that begins with `first` is, and how many bytes it has.
    fn classify(&self, first: char) -> Result<(TokenKind, usize), ScriptError> {
        let rest = self.rest();
        let one = first.len_utf8();
        Ok(match first {
            // Some editors begin a file with a mark of its byte order.
            '\u{feff}' if self.position == 0 => (TokenKind::Blank, one),
            _ if is_blank(first) => (TokenKind::Blank, rest.find(|other| !is_blank(other)).unwrap_or(rest.len())),
            '-' if rest.starts_with("--") => (TokenKind::Blank, line_comment_length(rest)),
            '/' if rest.starts_with("/*") => {
                (TokenKind::Blank, self.require_end(block_comment_length(rest), "the comment")?)
            }
            '\'' => (TokenKind::Quoted, self.require_end(quoted_length(rest, b'\''), "the string")?),
            '"' => (TokenKind::Quoted, self.require_end(quoted_length(rest, b'"'), "the quoted name")?),
            '$' => match dollar_tag(rest) {
                Some(tag) => {
                    (TokenKind::Quoted, self.require_end(dollar_quoted_length(rest, tag), "the dollar-quoted string")?)
                }
                None => (TokenKind::Other, one),
            },
            'e' | 'E' if rest[1..].starts_with('\'') => {
                (TokenKind::Quoted, self.require_end(escape_string_length(rest), "the string")?)
            }
            '\\' => {
                let command = psql_command(rest);
                let message =
                    format!("{command} is a psql meta-command, which is not supported; use SQL statements only");
                return Err(ScriptError { line: self.line, message });
            }
            '0'..='9' => (TokenKind::Other, rest.find(|other| !is_number_character(other)).unwrap_or(rest.len())),
            _ if is_word_character(first) => {
                (TokenKind::Word, rest.find(|other| !is_word_character(other)).unwrap_or(rest.len()))
            }
            ';' => (TokenKind::Semicolon, one),
            '(' => (TokenKind::Open, one),
            ')' => (TokenKind::Close, one),
            '.' => (TokenKind::Dot, one),
            _ => (TokenKind::Other, one),
        })
    }

    fn require_end(&self, length: Option<usize>, subject: &'static str) -> Result<usize, ScriptError> {
        length.ok_or_else(|| ScriptError::unterminated(self.line, subject))
    }
}

/// The server's blanks; others of Unicode are letters to it.
fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// No digit and no dollar begins a word, but both may follow.
fn is_word_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '$') || !character.is_ascii()
}

/// A dollar after a number begins a string.
fn is_number_character(character: char) -> bool {
    is_word_character(character) && character != '$'
}

fn line_comment_length(rest: &str) -> usize {
    rest.find(['\n', '\r']).unwrap_or(rest.len())
}

/// Comments nest.
fn block_comment_length(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        match bytes.get(at..at + 2)? {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" if depth == 1 => return Some(at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
}

/// The length of a text in `quote`s; a doubled quote stands for one.
fn quoted_length(rest: &str, quote: u8) -> Option<usize> {
    let bytes = rest.as_bytes();
    let mut at = 1;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == quote)?;
        if bytes.get(at + 1) != Some(&quote) {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// The length of `E'…'`, where a backslash escapes the next character. It may continue after a line break.
fn escape_string_length(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let mut at = 2;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            b'\'' => match continuation_length(&rest[at + 1..]) {
                Some(length) => at += 1 + length,
                None => return Some(at + 1),
            },
            _ => at += 1,
        }
    }
}

/// The length of the text between two parts of a string: blanks with a line break, line comments, and the quote.
fn continuation_length(rest: &str) -> Option<usize> {
    let mut at = 0;
    let mut has_break = false;
    loop {
        let after = &rest[at..];
        match after.chars().next()? {
            '\'' if has_break => return Some(at + 1),
            '-' if after.starts_with("--") => at += line_comment_length(after),
            blank if is_blank(blank) => {
                has_break |= matches!(blank, '\n' | '\r');
                at += 1;
            }
            _ => return None,
        }
    }
}

/// `$$` or `$tag$`, if `rest` begins with one.
fn dollar_tag(rest: &str) -> Option<&str> {
    let name = &rest[1..];
    let length = name.find(|other: char| !is_number_character(other)).unwrap_or(name.len());
    let begins_well = !name.starts_with(|first: char| first.is_ascii_digit());
    (begins_well && name[length..].starts_with('$')).then(|| &rest[..length + 2])
}

fn dollar_quoted_length(rest: &str, tag: &str) -> Option<usize> {
    let length = rest[tag.len()..].find(tag)?;
    Some(length + 2 * tag.len())
}

fn psql_command(rest: &str) -> String {
    let word = rest.split(|other: char| other.is_whitespace() || other == ';').next().unwrap_or_default();
    word.chars().take(COMMAND_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The statements of `text`, each with its line.
    fn split(text: &str) -> Vec<String> {
        match Script::split(text) {
            Ok(script) => script.statements.iter().map(|one| format!("{}: {}", one.line, one.sql())).collect(),
            Err(error) => vec![format!("error in line {}: {error}", error.line)],
        }
    }

    fn assert_one_statement(text: &str) {
        let script = Script::split(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let sql: Vec<&str> = script.statements.iter().map(ScriptStatement::sql).collect();
        assert_eq!(sql, [text]);
    }

    #[test]
    fn statements_have_the_line_of_their_first_word() {
        let script = "-- a comment; with a semicolon\n\nSELECT 1;SELECT\n2; /* x\n;\n*/ SELECT 3\n;\n-- the end;\n";
        insta::assert_snapshot!(split(script).join("\n"), @r"
    3: SELECT 1;
    3: SELECT
    2;
    6: SELECT 3
    ;
    ");
    }

    #[test]
    fn the_last_statement_needs_no_semicolon() {
        assert_eq!(split("SELECT 1; SELECT 2 -- why\n"), ["1: SELECT 1;", "1: SELECT 2 -- why\n"]);
        assert_eq!(Script::split(" -- nothing\n").unwrap().rest, " -- nothing\n");
        assert_eq!(Script::split("").unwrap(), Script { statements: Vec::new(), rest: "" });
        assert_eq!(split("\u{feff}SELECT 1;"), ["1: SELECT 1;"]);
    }

    #[test]
    fn quoted_semicolons_do_not_split() {
        for text in [
            "SELECT ';';",
            "SELECT 'it''s; so';",
            r"SELECT 'a\'; ",
            r"SELECT E'a\';', e'\\';",
            "SELECT E'a'\n  -- and;\n '\\';b';",
            "SELECT U&'\\0041;', U&\"a;\";",
            r#"SELECT "a;""b;";"#,
            "SELECT $$;'\"$;$$;",
            "SELECT $a$ $b$; $$; $b$ $a$;",
            "SELECT $ä_1$;$ä_1$;",
            "SELECT 1$$;$$;",
            "SELECT /* ; /* ; */ ; */ 1;",
            "SELECT 1 -- ;\r, 2;",
            "CREATE RULE r AS ON INSERT TO t DO ALSO (INSERT INTO u VALUES (1); INSERT INTO u VALUES (2));",
        ] {
            assert_one_statement(text.trim_end());
        }
    }

    #[test]
    fn unquoted_lookalikes_split() {
        assert_eq!(split(r"SELECT 'a\'; SELECT 'b';"), [r"1: SELECT 'a\';", "1: SELECT 'b';"]);
        assert_eq!(
            split("SELECT a$b$; SELECT $1; SELECT $b$;$b$;"),
            ["1: SELECT a$b$;", "1: SELECT $1;", "1: SELECT $b$;$b$;"]
        );
        assert_eq!(split("SELECT name'\\'; SELECT 2;"), ["1: SELECT name'\\';", "1: SELECT 2;"]);
        assert_eq!(split("SELECT E'a' 'b\\';"), ["1: SELECT E'a' 'b\\';"]);
        assert_eq!(split("SELECT 1 - -1; SELECT 6 / 2 * 3;"), ["1: SELECT 1 - -1;", "1: SELECT 6 / 2 * 3;"]);
    }

    #[test]
    fn begin_atomic_body_stays_with_its_function() {
        for text in [
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT 2; END;",
            "CREATE OR REPLACE PROCEDURE f() begin atomic SELECT CASE WHEN true THEN CASE 1 WHEN 1 THEN 2 END END; SELECT (2); END;",
            "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1 AS end; SELECT t.case FROM t; SELECT 2; END;",
            "CREATE FUNCTION f() RETURNS int BEGIN /* ; */ ATOMIC SELECT 1; END;",
        ] {
            assert_one_statement(text);
        }
        // Nothing of it in what is no function.
        assert_eq!(split("BEGIN; SELECT begin, atomic; COMMIT;").len(), 3);
        assert_eq!(split("CREATE TABLE begin (atomic int); SELECT 1;").len(), 2);
    }

    #[test]
    fn unterminated_token_reports_its_line() {
        let problems: Vec<String> =
            ["'", "E'\\'", "\"", "$x$ $y$", "/* /* */", "(;", "CREATE FUNCTION f() BEGIN ATOMIC SELECT 1;"]
                .into_iter()
                .flat_map(|text| split(&format!("SELECT 1;\n{text}\n;")))
                .collect();
        insta::assert_snapshot!(problems.join("\n"), @r#"
    error in line 2: the string that begins here is not terminated
    error in line 2: the string that begins here is not terminated
    error in line 2: the quoted name that begins here is not terminated
    error in line 2: the dollar-quoted string that begins here is not terminated
    error in line 2: the comment that begins here is not terminated
    error in line 2: the parenthesis that begins here is not terminated
    error in line 2: the body BEGIN ATOMIC that begins here is not terminated
    "#);
    }

    #[test]
    fn psql_commands_are_rejected() {
        assert_eq!(
            split("SELECT 1;\n\\ir other.sql\n"),
            [r"error in line 2: \ir is a psql meta-command, which is not supported; use SQL statements only"]
        );
        assert_eq!(
            split("SELECT 1 \\gset\n"),
            [r"error in line 1: \gset is a psql meta-command, which is not supported; use SQL statements only"]
        );
        assert_eq!(split("SELECT '\n\\ir';").len(), 1);
    }

    #[test]
    fn words_are_those_outside_of_quotes_and_parentheses() {
        let script = Script::split("COPY \"to\" (stdin) /* x */ FROM stdin;").unwrap();
        let statement = &script.statements[0];
        assert_eq!(statement.words, ["COPY", "FROM", "stdin"]);
        assert!(statement.has_word_at(0, "copy") && statement.has_word("STDIN") && !statement.has_word("to"));
    }

    /// Something that a semicolon in it does not end.
    fn terminated_fragment() -> impl Strategy<Value = String> {
        let inside = "[a-z;$'\" \n/*-]{0,12}";
        prop_oneof![
            inside.prop_map(|text| format!("'{}'", text.replace('\'', "''"))),
            inside.prop_map(|text| format!("E'{}'", text.replace('\'', "\\'"))),
            inside.prop_map(|text| format!("\"{}\"", text.replace('"', "\"\""))),
            inside.prop_map(|text| format!("$q1${text}$q1$")),
            inside.prop_map(|text| format!("-- {}\n", text.replace('\n', " "))),
            inside.prop_map(|text| format!("/* {} */", text.replace(['/', '*'], "/* ; */"))),
            "[a-z,; \n]{0,12}".prop_map(|text| format!("({text})")),
            Just("1".to_owned()),
            Just("ä".to_owned()),
        ]
    }

    proptest! {
        #[test]
        fn pieces_concatenate_to_the_text(text in prop_oneof![
            "[a-zE'\"$;()\n/* -]{0,60}",
            "(BEGIN|ATOMIC|CREATE|END|CASE|\\$a\\$|[ ;'.()]|--|\n|/\\*|\\*/|ä){0,30}",
            any::<String>(),
        ]) {
            if let Ok(script) = Script::split(&text) {
                let sources: String = script.statements.iter().map(|statement| statement.source).collect();
                prop_assert_eq!(sources + script.rest, text.as_str());
                for statement in &script.statements {
                    let before = &text[..statement.sql().as_ptr() as usize - text.as_ptr() as usize];
                    prop_assert_eq!(statement.line, before.matches('\n').count() + 1);
                }
            }
        }

        #[test]
        fn quoting_is_never_split(statements in proptest::collection::vec(proptest::collection::vec(terminated_fragment(), 1..6), 1..6)) {
            let statements: Vec<String> = statements.iter().map(|parts| format!("SELECT {};", parts.join(" "))).collect();
            let text = statements.join("\n");
            let script = Script::split(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let sqls: Vec<&str> = script.statements.iter().map(ScriptStatement::sql).collect();
            prop_assert_eq!(sqls, statements);
        }
    }
}
