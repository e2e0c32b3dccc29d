use datafusion::common::DataFusionError;

use super::super::document::format_jsonb;
use super::super::reader::parse as parse_document;
use super::budget::{Item, PathBudget, PathError, ResultItems};
use super::parser::parse;
use super::runner::PathRunner;

/// What `path` leads to in `document`; an error's text in its place.
fn evaluate_path(path: &str, document: &str) -> Result<String, String> {
    let path = parse(path).map_err(|error| error.to_string())?;
    let document = parse_document(document).unwrap();
    let mut budget = PathBudget::new(0);
    let mut runner = PathRunner::new(&path, &document, None, true, &mut budget).unwrap();
    let mut results = ResultItems::all();
    match runner.evaluate_path(&path.path, &Item::Borrowed(&document), &mut results) {
        Ok(_) => Ok(results.into_items().iter().map(|item| format_jsonb(item)).collect::<Vec<_>>().join(" ")),
        Err(PathError::Suppressible(message)) => Err(message),
        Err(PathError::Error(DataFusionError::ResourcesExhausted(message))) => Err(message),
        Err(PathError::Error(error)) => Err(error.to_string()),
    }
}

#[track_caller]
fn check(path: &str, document: &str, expected: &str) {
    assert_eq!(evaluate_path(path, document).as_deref(), Ok(expected), "{path}");
}

#[track_caller]
fn check_error(path: &str, document: &str, expected: &str) {
    let error = evaluate_path(path, document).unwrap_err();
    assert!(error.contains(expected), "{path}: {error}");
}

#[test]
fn accessors_unwrap_arrays_in_lax_mode_only() {
    check("$.a.b", r#"{"a": [{"b": 1}, {"b": 2}, 3]}"#, "1 2");
    check_error("strict $.a.b", r#"{"a": [{"b": 1}]}"#, "can only be applied to an object");
    check("$[*][*]", "[[1, 2], 3]", "1 2 3");
    check("$[last, 0 to 1]", "[1, 2, 3]", "3 1 2");
    check_error("strict $[3]", "[1, 2, 3]", "out of bounds");
    check("$.**{1 to 2}", r#"{"a": {"b": [1]}}"#, r#"{"b": [1]} [1]"#);
    check("$.**{last}", r#"{"a": {"b": [1, []]}}"#, "1");
}

#[test]
fn predicates_are_unknown_where_values_cannot_be_compared() {
    check("$[*] ? (@ > 1)", r#"[1, "2", 3, null]"#, "3");
    check("$[*] ? ((@ > 1) is unknown)", r#"[1, "2", null]"#, r#""2""#);
    check("$ ? (exists(@.a ? (@ == 1)) && !(@.b == 2))", r#"{"a": 1, "b": 3}"#, r#"{"a": 1, "b": 3}"#);
    check("$[*] ? (@ like_regex \"^a.c\" flag \"i\")", r#"["ABC", "a\nc", "bac"]"#, r#""ABC""#);
    check("$[*] > 2", "[1, 2, 3]", "true");
    check("$ == $", "[]", "false");
}

#[test]
fn arithmetic_is_that_of_numeric() {
    check("$[0] / $[1]", "[1, 3]", "0.33333333333333333333");
    check("$[0] / $[1]", "[10.50, 0.25]", "42.0000000000000000");
    check("-$[*]", "[1, -2.50, 0]", "-1 2.50 0");
    check("($[0] % $[1]).abs()", "[-5.5, 2]", "1.5");
    check("$[*].floor()", "[-0.5, 1.9, 3]", "-1 1 3");
    check("$[*].ceiling()", "[-0.5, 1.1, 3.0]", "0 2 3");
    check("$.double() + .5", "\"1e2\"", "100.5");
    check_error("1 / $", "0", "division by zero");
}

#[test]
fn object_position_is_its_id() {
    check("$.c.d.keyvalue().id", r#"{"a": 12345, "bb": "x", "c": {"d": {"e": null}}}"#, "60");
}

#[test]
fn texts_that_are_no_paths_are_refused() {
    for path in ["", "$.", "$ ? (@", "@", "last", "$.a()", "1a", "$ ? (@.a)", "!$.a", "1 < 2 < 3", "\"a", "$.\\u00"] {
        assert!(parse(path).is_err(), "{path}");
    }
    check_error("$.datetime()", "1", "cast it");
}

#[test]
fn paths_and_evaluation_are_bounded() {
    check_error(&format!("${}", ".a".repeat(300)), "1", "at most 200 parts");
    check_error(&format!("{}1{}", "(".repeat(100), ")".repeat(100)), "1", "levels");
    check_error(&format!("{}1", "-".repeat(100)), "1", "levels");
    let depth = 200;
    let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    check(&format!("$.**{{{depth}}}"), &deep, "1");
    check_error("strict $.**.**.**.**.**.**", &deep, "more than");
    check_error("$.keyvalue().value.**.**.**.**", &format!(r#"{{"a": {deep}}}"#), "more than");
    check(&format!("strict ${}", "[0]".repeat(90)), &deep, &deep[90..=2 * depth - 90]);
}

#[test]
fn paths_are_written_as_postgresql_writes_them() {
    for (path, expected) in [
        (
            r#"$.a.b ? (@.c > 1 && @."d e" == "x" || !(@.f < 2))"#,
            r#"$."a"."b"?(@."c" > 1 && @."d e" == "x" || !(@."f" < 2))"#,
        ),
        (
            r#"strict $[0, 1 to last].**{2 to last} ? (exists(@.x ? (@ like_regex "^a" flag "si")))"#,
            r#"strict $[0,1 to last].**{2 to last}?(exists (@."x"?(@ like_regex "^a" flag "is")))"#,
        ),
        (
            "$.a + - 1 * -(-2) - (1).type().size() + (-$.b).abs()",
            r#"((($."a" + -1 * 2) - (1).type().size()) + -$."b".abs())"#,
        ),
        (
            r#"(($.a == 1) is unknown) && !exists($.b) || $x starts with "a""#,
            r#"(($."a" == 1) is unknown && !(exists ($."b")) || $"x" starts with "a")"#,
        ),
        ("($.a == 1).type() == true.type()", r#"(($."a" == 1).type() == true.type())"#),
        ("-(-1.50e1) + -0.0 + .5 + 1. + 1e3", "((((15.0 + 0.0) + 0.5) + 1) + 1000)"),
        (r#"$.**.*[*].**{3}.**{0 to 2}."a\"b\u0041""#, r#"$.**.*[*].**{3}.**{0 to 2}."a\"bA""#),
        (
            r#"$ ? (@ like_regex "a" && (@ > 1 && @ < 2) && @ != null)"#,
            r#"$?((@ like_regex "a" && (@ > 1 && @ < 2)) && @ != null)"#,
        ),
        ("-$.a.b + (+$).c ? ((@ + 1) * 2 > 3 - (4 - 5))", r#"(-$."a"."b" + +$."c"?((@ + 1) * 2 > 3 - (4 - 5)))"#),
        (r#"$"x y"[1 - 1]"#, r#"$"x y"[1 - 1]"#),
        ("($.a + 1)[0]", r#"($."a" + 1)[0]"#),
    ] {
        assert_eq!(super::canonical::write(&parse(path).unwrap()), expected, "{path}");
    }
}
