//! Words for the statements that are refused: which part, why, and what to use instead.

use sqlparser::ast::Statement;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use tidegate_core::{Error, ErrorKind};

/// Why a kind of statement is refused.
struct Refusal {
    /// The words that it begins with.
    keyword: &'static str,
    reason: &'static str,
    instead: &'static str,
}

const WRITES: &str = "it would change data, and only reading is allowed";
const DEFINES: &str = "it would change what the database consists of, and only reading is allowed";
const FILES: &str = "it reads or writes files, and only the tables of the catalog can be read";
const SESSION: &str = "it would change the session, which no call may";
const ASK: &str = "Only SELECT can be run, with WITH, UNION, VALUES and all else that belongs to it.";
const RESULT: &str = "Select the rows; the answer comes back to you in the format that you name.";

/// Refused statements by the word that they begin with.
const REFUSALS: &[Refusal] = &[
    Refusal { keyword: "INSERT", reason: WRITES, instead: ASK },
    Refusal { keyword: "UPDATE", reason: WRITES, instead: ASK },
    Refusal { keyword: "DELETE", reason: WRITES, instead: ASK },
    Refusal { keyword: "MERGE", reason: WRITES, instead: ASK },
    Refusal { keyword: "REPLACE", reason: WRITES, instead: ASK },
    Refusal { keyword: "TRUNCATE", reason: WRITES, instead: ASK },
    Refusal { keyword: "CREATE", reason: DEFINES, instead: "Use WITH name AS (SELECT …) for intermediate results." },
    Refusal { keyword: "ALTER", reason: DEFINES, instead: ASK },
    Refusal { keyword: "DROP", reason: DEFINES, instead: ASK },
    Refusal { keyword: "RENAME", reason: DEFINES, instead: ASK },
    Refusal { keyword: "COMMENT", reason: DEFINES, instead: ASK },
    Refusal { keyword: "GRANT", reason: DEFINES, instead: ASK },
    Refusal { keyword: "REVOKE", reason: DEFINES, instead: ASK },
    Refusal { keyword: "DENY", reason: DEFINES, instead: ASK },
    Refusal { keyword: "VACUUM", reason: DEFINES, instead: ASK },
    Refusal { keyword: "ANALYZE", reason: DEFINES, instead: ASK },
    Refusal { keyword: "REINDEX", reason: DEFINES, instead: ASK },
    Refusal { keyword: "CLUSTER", reason: DEFINES, instead: ASK },
    Refusal { keyword: "CHECKPOINT", reason: DEFINES, instead: ASK },
    Refusal { keyword: "REFRESH", reason: DEFINES, instead: ASK },
    Refusal { keyword: "REASSIGN", reason: DEFINES, instead: ASK },
    Refusal { keyword: "SECURITY", reason: DEFINES, instead: ASK },
    Refusal { keyword: "IMPORT", reason: DEFINES, instead: ASK },
    Refusal { keyword: "OPTIMIZE", reason: DEFINES, instead: ASK },
    Refusal { keyword: "COPY", reason: FILES, instead: RESULT },
    Refusal { keyword: "UNLOAD", reason: FILES, instead: RESULT },
    Refusal { keyword: "EXPORT", reason: FILES, instead: RESULT },
    Refusal { keyword: "LOAD", reason: FILES, instead: ASK },
    Refusal { keyword: "INSTALL", reason: FILES, instead: ASK },
    Refusal { keyword: "ATTACH", reason: FILES, instead: ASK },
    Refusal { keyword: "DETACH", reason: FILES, instead: ASK },
    Refusal { keyword: "LIST", reason: FILES, instead: ASK },
    Refusal { keyword: "REMOVE", reason: FILES, instead: ASK },
    Refusal { keyword: "SET", reason: SESSION, instead: "Leave it out; each call runs with the server's settings." },
    Refusal { keyword: "RESET", reason: SESSION, instead: "Leave it out; each call runs with the server's settings." },
    Refusal { keyword: "USE", reason: SESSION, instead: "Name the database in the argument \"database\"." },
    Refusal { keyword: "BEGIN", reason: SESSION, instead: "Leave it out; each call is one statement by itself." },
    Refusal { keyword: "START", reason: SESSION, instead: "Leave it out; each call is one statement by itself." },
    Refusal { keyword: "COMMIT", reason: SESSION, instead: "Leave it out; each call is one statement by itself." },
    Refusal { keyword: "ROLLBACK", reason: SESSION, instead: "Leave it out; each call is one statement by itself." },
    Refusal { keyword: "SAVEPOINT", reason: SESSION, instead: "Leave it out; each call is one statement by itself." },
    Refusal { keyword: "END", reason: SESSION, instead: "Leave it out; each call is one statement by itself." },
    Refusal { keyword: "ABORT", reason: SESSION, instead: "Leave it out; each call is one statement by itself." },
    Refusal { keyword: "RELEASE", reason: SESSION, instead: "Leave it out; each call is one statement by itself." },
    Refusal { keyword: "PREPARE", reason: SESSION, instead: "Send the query itself, with its values as parameters." },
    Refusal { keyword: "EXECUTE", reason: SESSION, instead: "Send the query itself, with its values as parameters." },
    Refusal { keyword: "DEALLOCATE", reason: SESSION, instead: ASK },
    Refusal { keyword: "DECLARE", reason: SESSION, instead: "Send the query itself." },
    Refusal { keyword: "FETCH", reason: SESSION, instead: "Send the query itself, with LIMIT and OFFSET." },
    Refusal { keyword: "MOVE", reason: SESSION, instead: "Send the query itself, with LIMIT and OFFSET." },
    Refusal { keyword: "CLOSE", reason: SESSION, instead: ASK },
    Refusal { keyword: "LOCK", reason: SESSION, instead: ASK },
    Refusal { keyword: "LISTEN", reason: SESSION, instead: ASK },
    Refusal { keyword: "UNLISTEN", reason: SESSION, instead: ASK },
    Refusal { keyword: "NOTIFY", reason: SESSION, instead: ASK },
    Refusal { keyword: "DISCARD", reason: SESSION, instead: ASK },
    Refusal { keyword: "KILL", reason: SESSION, instead: "Use the tool cancel_job to end a call of yours." },
    Refusal { keyword: "CALL", reason: "procedures may change data, and only reading is allowed", instead: ASK },
    Refusal { keyword: "DO", reason: "code blocks may change data, and only reading is allowed", instead: ASK },
    Refusal { keyword: "PRAGMA", reason: SESSION, instead: "Use the tool get_schema to see a table's columns." },
    Refusal {
        keyword: "EXPLAIN",
        reason: "plans have a tool of their own",
        instead: "Use the tool explain with the statement that follows.",
    },
    Refusal { keyword: "DESCRIBE", reason: "columns have a tool of their own", instead: "Use the tool get_schema." },
    Refusal { keyword: "DESC", reason: "columns have a tool of their own", instead: "Use the tool get_schema." },
    Refusal {
        keyword: "TABLE",
        reason: "it is not understood by itself",
        instead: "Write SELECT * FROM and the table's name.",
    },
    Refusal {
        keyword: "SHOW",
        reason: "the catalog has tools of its own",
        instead: "Use the tools list_databases, list_tables and get_schema; for a setting of PostgreSQL's SQL, \
                  SELECT current_setting('name').",
    },
];

/// What a statement is called: the word that it begins with, and for definitions what they are of.
pub(crate) fn name_of(tokens: &[TokenWithSpan]) -> String {
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

/// The refusal of the statements of that name, if they are refused by name.
pub(crate) fn of_name(name: &str) -> Option<Error> {
    let word = name.split(' ').next()?;
    let refusal = REFUSALS.iter().find(|refusal| refusal.keyword == word)?;
    Some(refused(name, refusal.reason, refusal.instead))
}

/// The refusal of any statement that is no query.
pub(crate) fn of_no_query(name: &str) -> Error {
    of_name(name).unwrap_or_else(|| refused(name, "it is no query, and only reading is allowed", ASK))
}

/// The refusal of `statement`, which stands within a query.
pub(crate) fn of_statement(statement: &Statement) -> Error {
    // A statement prints as it begins; this names it and decides nothing.
    let text = statement.to_string();
    let word = text.split_whitespace().next().unwrap_or_default().to_uppercase();
    of_no_query(word.trim_end_matches([';', '(']))
}

/// The refusal of SELECT … INTO.
pub(crate) fn of_into() -> Error {
    refused(
        "SELECT … INTO",
        "it would make a table, and only reading is allowed",
        "Leave out INTO; use WITH name AS (SELECT …) for intermediate results.",
    )
}

/// The refusal of a clause that locks rows.
pub(crate) fn of_lock(clause: &str) -> Error {
    refused(clause, "it would lock rows, and only reading is allowed", "Leave it out.")
}

/// A refusal of `part`, with the reason and what to use instead.
pub(crate) fn refused(part: &str, reason: &str, instead: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, format!("{part} is refused: {reason}")).with_hint(instead)
}
