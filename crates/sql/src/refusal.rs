//! Error messages for refused statements: which part, why, and what to use instead.

use sqlparser::ast::Statement;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use tidegate_core::{Error, ErrorKind};

/// A kind of statement that is refused.
struct RefusedStatement {
    /// The first keyword of the statement.
    keyword: &'static str,
    reason: &'static str,
    instead: &'static str,
}

const WRITES_DATA: &str = "it would change data, and only reading is allowed";
const CHANGES_SCHEMA: &str = "it would change the schema, and only reading is allowed";
const ACCESSES_FILES: &str = "it reads or writes files, and only the tables of the catalog can be read";
const CHANGES_SESSION: &str = "it would change the session, which is not allowed";
const ONLY_SELECT_HINT: &str = "Only SELECT statements are allowed, including those with WITH, UNION or VALUES.";
const SELECT_ROWS_HINT: &str = "Select the rows; the argument \"format\" names the format of the answer.";

/// Refused statements by their first keyword.
const REFUSED_STATEMENTS: &[RefusedStatement] = &[
    RefusedStatement { keyword: "INSERT", reason: WRITES_DATA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "UPDATE", reason: WRITES_DATA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "DELETE", reason: WRITES_DATA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "MERGE", reason: WRITES_DATA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "REPLACE", reason: WRITES_DATA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "TRUNCATE", reason: WRITES_DATA, instead: ONLY_SELECT_HINT },
    RefusedStatement {
        keyword: "CREATE",
        reason: CHANGES_SCHEMA,
        instead: "Use WITH name AS (SELECT …) for intermediate results.",
    },
    RefusedStatement { keyword: "ALTER", reason: CHANGES_SCHEMA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "DROP", reason: CHANGES_SCHEMA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "RENAME", reason: CHANGES_SCHEMA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "COMMENT", reason: CHANGES_SCHEMA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "GRANT", reason: CHANGES_SCHEMA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "REVOKE", reason: CHANGES_SCHEMA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "DENY", reason: CHANGES_SCHEMA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "VACUUM", reason: CHANGES_SCHEMA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "ANALYZE", reason: CHANGES_SCHEMA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "REINDEX", reason: CHANGES_SCHEMA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "CLUSTER", reason: CHANGES_SCHEMA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "CHECKPOINT", reason: CHANGES_SCHEMA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "REFRESH", reason: CHANGES_SCHEMA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "REASSIGN", reason: CHANGES_SCHEMA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "SECURITY", reason: CHANGES_SCHEMA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "IMPORT", reason: CHANGES_SCHEMA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "OPTIMIZE", reason: CHANGES_SCHEMA, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "COPY", reason: ACCESSES_FILES, instead: SELECT_ROWS_HINT },
    RefusedStatement { keyword: "UNLOAD", reason: ACCESSES_FILES, instead: SELECT_ROWS_HINT },
    RefusedStatement { keyword: "EXPORT", reason: ACCESSES_FILES, instead: SELECT_ROWS_HINT },
    RefusedStatement { keyword: "LOAD", reason: ACCESSES_FILES, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "INSTALL", reason: ACCESSES_FILES, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "ATTACH", reason: ACCESSES_FILES, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "DETACH", reason: ACCESSES_FILES, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "LIST", reason: ACCESSES_FILES, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "REMOVE", reason: ACCESSES_FILES, instead: ONLY_SELECT_HINT },
    RefusedStatement {
        keyword: "SET",
        reason: CHANGES_SESSION,
        instead: "Leave it out; each call runs with the server's settings.",
    },
    RefusedStatement {
        keyword: "RESET",
        reason: CHANGES_SESSION,
        instead: "Leave it out; each call runs with the server's settings.",
    },
    RefusedStatement {
        keyword: "USE",
        reason: CHANGES_SESSION,
        instead: "Name the database in the argument \"database\".",
    },
    RefusedStatement {
        keyword: "BEGIN",
        reason: CHANGES_SESSION,
        instead: "Leave it out; each call runs one statement.",
    },
    RefusedStatement {
        keyword: "START",
        reason: CHANGES_SESSION,
        instead: "Leave it out; each call runs one statement.",
    },
    RefusedStatement {
        keyword: "COMMIT",
        reason: CHANGES_SESSION,
        instead: "Leave it out; each call runs one statement.",
    },
    RefusedStatement {
        keyword: "ROLLBACK",
        reason: CHANGES_SESSION,
        instead: "Leave it out; each call runs one statement.",
    },
    RefusedStatement {
        keyword: "SAVEPOINT",
        reason: CHANGES_SESSION,
        instead: "Leave it out; each call runs one statement.",
    },
    RefusedStatement {
        keyword: "END",
        reason: CHANGES_SESSION,
        instead: "Leave it out; each call runs one statement.",
    },
    RefusedStatement {
        keyword: "ABORT",
        reason: CHANGES_SESSION,
        instead: "Leave it out; each call runs one statement.",
    },
    RefusedStatement {
        keyword: "RELEASE",
        reason: CHANGES_SESSION,
        instead: "Leave it out; each call runs one statement.",
    },
    RefusedStatement {
        keyword: "PREPARE",
        reason: CHANGES_SESSION,
        instead: "Send the query itself, with its values as parameters.",
    },
    RefusedStatement {
        keyword: "EXECUTE",
        reason: CHANGES_SESSION,
        instead: "Send the query itself, with its values as parameters.",
    },
    RefusedStatement { keyword: "DEALLOCATE", reason: CHANGES_SESSION, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "DECLARE", reason: CHANGES_SESSION, instead: "Send the query itself." },
    RefusedStatement {
        keyword: "FETCH",
        reason: CHANGES_SESSION,
        instead: "Send the query itself, with LIMIT and OFFSET.",
    },
    RefusedStatement {
        keyword: "MOVE",
        reason: CHANGES_SESSION,
        instead: "Send the query itself, with LIMIT and OFFSET.",
    },
    RefusedStatement { keyword: "CLOSE", reason: CHANGES_SESSION, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "LOCK", reason: CHANGES_SESSION, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "LISTEN", reason: CHANGES_SESSION, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "UNLISTEN", reason: CHANGES_SESSION, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "NOTIFY", reason: CHANGES_SESSION, instead: ONLY_SELECT_HINT },
    RefusedStatement { keyword: "DISCARD", reason: CHANGES_SESSION, instead: ONLY_SELECT_HINT },
    RefusedStatement {
        keyword: "KILL",
        reason: CHANGES_SESSION,
        instead: "Use the tool cancel_job to end a call of yours.",
    },
    RefusedStatement {
        keyword: "CALL",
        reason: "procedures may change data, and only reading is allowed",
        instead: ONLY_SELECT_HINT,
    },
    RefusedStatement {
        keyword: "DO",
        reason: "code blocks may change data, and only reading is allowed",
        instead: ONLY_SELECT_HINT,
    },
    RefusedStatement {
        keyword: "PRAGMA",
        reason: CHANGES_SESSION,
        instead: "Use the tool get_schema to see a table's columns.",
    },
    RefusedStatement {
        keyword: "EXPLAIN",
        reason: "plans have their own tool",
        instead: "Use the tool explain with the statement that follows.",
    },
    RefusedStatement {
        keyword: "DESCRIBE",
        reason: "columns have their own tool",
        instead: "Use the tool get_schema.",
    },
    RefusedStatement { keyword: "DESC", reason: "columns have their own tool", instead: "Use the tool get_schema." },
    RefusedStatement {
        keyword: "TABLE",
        reason: "it is not supported on its own",
        instead: "Write SELECT * FROM and the table's name.",
    },
    RefusedStatement {
        keyword: "SHOW",
        reason: "the catalog has its own tools",
        instead: "Use the tools list_databases, list_tables and get_schema; for a setting of PostgreSQL's SQL, \
                  SELECT current_setting('name').",
    },
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
    let refusal = REFUSED_STATEMENTS.iter().find(|refusal| refusal.keyword == word)?;
    Some(refusal_error(name, refusal.reason, refusal.instead))
}

/// The refusal of any statement that is not a query.
pub(crate) fn refuse_non_query(name: &str) -> Error {
    refuse_by_name(name)
        .unwrap_or_else(|| refusal_error(name, "it is not a query, and only reading is allowed", ONLY_SELECT_HINT))
}

/// The refusal of `statement` within a query.
pub(crate) fn refuse_statement(statement: &Statement) -> Error {
    // The printed statement begins with its keyword. This only names it and decides nothing.
    let text = statement.to_string();
    let word = text.split_whitespace().next().unwrap_or_default().to_uppercase();
    refuse_non_query(word.trim_end_matches([';', '(']))
}

/// The refusal of SELECT … INTO.
pub(crate) fn refuse_into() -> Error {
    refusal_error(
        "SELECT … INTO",
        "it would create a table, and only reading is allowed",
        "Leave out INTO; use WITH name AS (SELECT …) for intermediate results.",
    )
}

/// The refusal of a clause that locks rows.
pub(crate) fn refuse_lock(clause: &str) -> Error {
    refusal_error(clause, "it would lock rows, and only reading is allowed", "Leave it out.")
}

/// A refusal of `part`, with the reason and what to use instead.
pub(crate) fn refusal_error(part: &str, reason: &str, instead: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, format!("{part} is refused: {reason}")).with_hint(instead)
}
