//! Error messages for refused statements: which part, why, and what to use instead.

use sqlparser::ast::Statement;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use tidegate_core::{Error, ErrorKind};

const WRITES_DATA: &str = "it would change data, and only reading is allowed";
const CHANGES_SCHEMA: &str = "it would change the schema, and only reading is allowed";
const ACCESSES_FILES: &str = "it reads or writes files, and only the tables of the catalog can be read";
const CHANGES_SESSION: &str = "it would change the session, which is not allowed";
const ONLY_SELECT_HINT: &str = "Only SELECT statements are allowed, including those with WITH, UNION or VALUES.";
const SELECT_ROWS_HINT: &str = "Select the rows; the argument \"format\" names the format of the answer.";

/// Refused statements: their first keywords, the reason, and what to use instead.
#[rustfmt::skip]
const REFUSED_STATEMENTS: &[(&[&str], &str, &str)] = &[
    (&["INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "TRUNCATE"], WRITES_DATA, ONLY_SELECT_HINT),
    (&["CREATE"], CHANGES_SCHEMA, "Use WITH name AS (SELECT …) for intermediate results."),
    (
        &[
            "ALTER", "DROP", "RENAME", "COMMENT", "GRANT", "REVOKE", "DENY", "VACUUM", "ANALYZE", "REINDEX", "CLUSTER",
            "CHECKPOINT", "REFRESH", "REASSIGN", "SECURITY", "IMPORT", "OPTIMIZE",
        ],
        CHANGES_SCHEMA,
        ONLY_SELECT_HINT,
    ),
    (&["COPY", "UNLOAD", "EXPORT"], ACCESSES_FILES, SELECT_ROWS_HINT),
    (&["LOAD", "INSTALL", "ATTACH", "DETACH", "LIST", "REMOVE"], ACCESSES_FILES, ONLY_SELECT_HINT),
    (&["SET", "RESET"], CHANGES_SESSION, "Leave it out; each call runs with the server's settings."),
    (&["USE"], CHANGES_SESSION, "Name the database in the argument \"database\"."),
    (
        &["BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "END", "ABORT", "RELEASE"],
        CHANGES_SESSION,
        "Leave it out; each call runs one statement.",
    ),
    (&["PREPARE", "EXECUTE"], CHANGES_SESSION, "Send the query itself, with its values as parameters."),
    (&["DEALLOCATE", "CLOSE", "LOCK", "LISTEN", "UNLISTEN", "NOTIFY", "DISCARD"], CHANGES_SESSION, ONLY_SELECT_HINT),
    (&["DECLARE"], CHANGES_SESSION, "Send the query itself."),
    (&["FETCH", "MOVE"], CHANGES_SESSION, "Send the query itself, with LIMIT and OFFSET."),
    (&["KILL"], CHANGES_SESSION, "Use the tool cancel_job to end a call of yours."),
    (&["CALL"], "procedures may change data, and only reading is allowed", ONLY_SELECT_HINT),
    (&["DO"], "code blocks may change data, and only reading is allowed", ONLY_SELECT_HINT),
    (&["PRAGMA"], CHANGES_SESSION, "Use the tool get_schema to see a table's columns."),
    (&["EXPLAIN"], "plans have their own tool", "Use the tool explain with the statement that follows."),
    (&["DESCRIBE", "DESC"], "columns have their own tool", "Use the tool get_schema."),
    (&["TABLE"], "it is not supported on its own", "Write SELECT * FROM and the table's name."),
    (
        &["SHOW"],
        "the catalog has its own tools",
        "Use the tools list_databases, list_tables and get_schema; for a setting of PostgreSQL's SQL, \
         SELECT current_setting('name').",
    ),
];

/// The name of a statement for messages: its first keyword, and for definitions the kind of object.
pub(crate) fn statement_name(tokens: &[TokenWithSpan]) -> String {
    const WORDS_MAX: usize = 4;
    let words = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).map_while(|token| {
        let Token::Word(word) = &token.token else { return None };
        word.quote_style.is_none().then(|| (word.value.to_uppercase(), word.keyword))
    });
    let mut name = String::new();
    for (index, (word, keyword)) in words.take(WORDS_MAX).enumerate() {
        let belongs = match index {
            0 => true,
            _ => keyword != Keyword::NoKeyword && ["CREATE", "ALTER", "DROP"].iter().any(|verb| name.starts_with(verb)),
        };
        if !belongs {
            break;
        }
        if index > 0 {
            name.push(' ');
        }
        name.push_str(&word);
    }
    name
}

/// The refusal of statements with that name, if they are refused by name.
pub(crate) fn refuse_by_name(name: &str) -> Option<Error> {
    let word = name.split(' ').next()?;
    let (_, reason, instead) = REFUSED_STATEMENTS.iter().find(|(keywords, ..)| keywords.contains(&word))?;
    Some(refusal_error(name, reason, instead))
}

pub(crate) fn refuse_non_query(name: &str) -> Error {
    refuse_by_name(name)
        .unwrap_or_else(|| refusal_error(name, "it is not a query, and only reading is allowed", ONLY_SELECT_HINT))
}

pub(crate) fn refuse_statement(statement: &Statement) -> Error {
    // The printed statement begins with its keyword. This only names it and decides nothing.
    let text = statement.to_string();
    let word = text.split_whitespace().next().unwrap_or_default().to_uppercase();
    refuse_non_query(word.trim_end_matches([';', '(']))
}

pub(crate) fn refuse_into() -> Error {
    refusal_error(
        "SELECT … INTO",
        "it would create a table, and only reading is allowed",
        "Leave out INTO; use WITH name AS (SELECT …) for intermediate results.",
    )
}

pub(crate) fn refuse_lock(clause: &str) -> Error {
    refusal_error(clause, "it would lock rows, and only reading is allowed", "Leave it out.")
}

/// The refusal of `ONLY` before a table. Tables of files have no children; those of a database may have some.
pub(crate) fn refuse_only() -> Error {
    refusal_error("ONLY", "a table is read here with the rows of its child tables", "Leave it out.")
}

pub(crate) fn refusal_error(part: &str, reason: &str, instead: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, format!("{part} is refused: {reason}")).with_hint(instead)
}

pub(crate) fn ambiguous_token_error(source: &str) -> Error {
    let visible: String = source.chars().take(40).collect();
    let instead = "Put spaces between operators; pass unusual strings as parameters ($1).";
    refusal_error(&format!("\"{visible}\""), "it is ambiguous", instead)
}
