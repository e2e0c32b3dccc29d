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
