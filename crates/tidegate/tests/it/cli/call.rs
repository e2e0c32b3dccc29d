//! `tidegate call`.

use super::{Shop, run, run_in};

#[test]
fn any_tool_can_be_called() {
    let shop = Shop::new();
    let ran = run(&["call", "list_tables", "pattern=ord*", "format=csv", "--path", &shop.argument()]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(ran.stdout, @"
    database,name,rows,comment
    shop,orders,3,CSV file
    ");
}

#[test]
fn arguments_may_follow_a_path() {
    let shop = Shop::new();
    let ran = run(&["call", "list_tables", "--path", &shop.argument(), "pattern=ord*", "format=csv"]);
    assert_eq!(ran.lines(), ["database,name,rows,comment", "shop,orders,3,CSV file"], "{ran:?}");
}

#[test]
fn parses_json_argument_values() {
    let folder = Shop::new();
    let arguments = ["call", "query", "table=orders", r#"select=["id"]"#, "limit=1", "extract=id"];
    assert_eq!(run_in(&folder.path(), &arguments).stdout, "[1]\n");
}

#[test]
fn keeps_text_for_string_parameters() {
    let folder = Shop::new();
    assert_eq!(run_in(&folder.path(), &["call", "query", "table=2024", "format=csv"]).lines(), ["name", "Ann"]);
}

#[test]
fn null_counts_as_absent() {
    let folder = Shop::new();
    let call = |arguments: &[&str]| run_in(&folder.path(), &[&["call", "query", "table=orders"], arguments].concat());
    let plain = call(&["format=csv"]);
    assert_eq!(plain.code, Some(0), "{plain:?}");
    let nulls =
        ["where=null", "having=null", "limit=null", "select=null", "order_by=null", "joins=null", "limit=\"null\""];
    for null in nulls {
        assert_eq!(call(&["format=csv", null]), plain, "{null}");
    }
    assert_eq!(call(&["format=null"]), call(&[]));
}

#[test]
fn reports_all_invalid_arguments_with_exit_code_1() {
    let ran = run_in(&Shop::new().path(), &["call", "sql", "max_rows=many", "formt=csv"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    insta::assert_snapshot!(ran.stderr, @r#"
    error: the arguments of tool "sql" are wrong:
    - max_rows: "many" is not of type "integer"
    - formt: is unknown; did you mean "format"?
    - sql: is required
    "#);
}

#[test]
fn unknown_tool_suggests_the_nearest() {
    let ran = run_in(&Shop::new().path(), &["call", "list_table"]);
    assert_eq!(ran.code, Some(1));
    insta::assert_snapshot!(ran.stderr, @r#"
    error: there is no tool "list_table"
    Valid choices: list_tables, list_databases, list_jobs
    "#);
}
