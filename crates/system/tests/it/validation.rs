//! All violations of a request at once.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tidegate_system::{
    FunctionRequest, LIMIT_MAX, RequestViolations, RowSelector, SystemColumn, SystemColumnType, SystemParameter,
    SystemTable, SystemTableDescription, SystemValue,
};

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn validate(table: &SystemTableDescription, request: Value) -> Result<FunctionRequest, RequestViolations> {
    FunctionRequest::validate(table, &object(request), false)
}

fn violations(request: Value) -> String {
    validate(SystemTable::Processes.description(), request).unwrap_err().to_string()
}

/// A table of another kind, as those of databases.
fn table_with_parameters() -> SystemTableDescription {
    SystemTableDescription {
        name: "activity".into(),
        description: "Sessions of a database.".into(),
        columns: vec![
            SystemColumn::new("pid", SystemColumnType::Integer, "The process id."),
            SystemColumn::new("started_at", SystemColumnType::Timestamp, "The start."),
        ],
        parameters: vec![
            SystemParameter::new("database", SystemColumnType::Text, "The database.")
                .with_options(["shop", "stock"])
                .required(),
            SystemParameter::new("min_seconds", SystemColumnType::Duration, "The minimum duration."),
        ],
    }
}

#[test]
fn all_violations_are_reported_at_once() {
    let request = json!({
        "columns": ["pid", "cpu", 7],
        "sort": [{"column": "memory", "direction": "down"}, {"direction": "asc", "by": "pid"}, 3],
        "limit": 0,
        "conditions": [
            ["memroy_bytes", ">", 1000],
            ["pid", "match", "1*"],
            ["name", "like", "post%"],
            ["name", "=", 5],
            ["cpu_percent", ">=", "90"],
            ["start_time", "<", "yesterday"],
            ["name", "match", "|"],
            ["is_kernel_thread", "<", "no"],
            ["pid", "="],
            "pid = 5"
        ],
        "parameters": {"usr": "root", "user": 0},
        "filter": []
    });
    insta::assert_snapshot!(violations(request), @r#"
    filter: unknown key "filter"; valid are "columns", "sort", "limit", "conditions" or "parameters"
    columns[1]: unknown column "cpu" in table "processes"; did you mean "cpu_percent", "cpu_time_seconds" or "cpu_period_seconds"?
    columns[2]: must be the name of a column, not 7
    sort[0].direction: must be "asc" or "desc", not the text "down"
    sort[0].column: unknown column "memory" in table "processes"; did you mean "memory_bytes", "memory_percent" or "memory_swap_bytes"?
    sort[1].by: unknown key "by"; valid are "column" or "direction"
    sort[1].column: is required
    sort[2]: must be an object such as {"column": "name"}, not 3
    limit: must be a whole number from 1 to 5000, not 0
    conditions[0][0]: unknown column "memroy_bytes" in table "processes"; did you mean "memory_bytes"?
    conditions[1][1]: operator "match" does not fit column "pid" of type integer; valid are "=", "!=", "<", "<=", ">" or ">="
    conditions[2][1]: unknown operator "like"; valid are "=", "!=", "match" or "not match"
    conditions[3][2]: must be text, as column "name" has the type text, not 5
    conditions[4][2]: must be a number, as column "cpu_percent" has the type float, not the text "90"
    conditions[5][2]: must be a time such as "2026-01-31T08:00:00Z", as column "start_time" has the type timestamp, not the text "yesterday"
    conditions[6][2]: must be a pattern such as "post*|*sql", not the text "|"
    conditions[7][1]: operator "<" does not fit column "is_kernel_thread" of type boolean; valid are "=" or "!="
    conditions[7][2]: must be true or false, as column "is_kernel_thread" has the type boolean, not the text "no"
    conditions[8]: must be a list of three: [column, operator, value]
    conditions[9]: must be a list of three: [column, operator, value]
    parameters.usr: unknown parameter "usr"; did you mean "user"?
    parameters.user: must be text, not 0
    "#);
}

#[test]
fn parts_of_the_wrong_form() {
    let request =
        json!({"columns": "pid", "sort": {"column": "pid"}, "limit": "ten", "conditions": {}, "parameters": []});
    insta::assert_snapshot!(violations(request), @r#"
    columns: must be a list such as ["name"], not the text "pid"
    sort: must be a list such as [{"column": "name", "direction": "desc"}], not an object
    limit: must be a whole number from 1 to 5000, not the text "ten"
    conditions: must be a list such as [["name", "=", "value"]], not an object
    parameters: must be an object, not a list
    "#);
    insta::assert_snapshot!(violations(json!({"columns": vec!["pid"; 257], "limit": 1_000_000})), @r"
    columns: has 257 items; at most 256 are allowed
    limit: must be a whole number from 1 to 5000, not 1000000
    ");
}

#[test]
fn required_parameter_has_its_options() {
    let table = table_with_parameters();
    let violations = validate(&table, json!({"parameters": {"min_seconds": "5"}})).unwrap_err();
    insta::assert_snapshot!(violations, @r#"
    parameters.database: is required: one of "shop" or "stock". The database.
    parameters.min_seconds: must be a number of seconds, not the text "5"
    "#);
    assert_eq!(violations.violations[0].choices, ["shop", "stock"]);
    insta::assert_snapshot!(
        validate(&table, json!({"parameters": {"database": "shops"}})).unwrap_err(),
        @r#"parameters.database: must be one of "shop" or "stock", not the text "shops""#
    );
    let request = validate(&table, json!({"parameters": {"database": "shop", "min_seconds": 5}})).unwrap();
    assert_eq!(request.parameters["database"], SystemValue::from("shop"));
    assert_eq!(request.parameters["min_seconds"], SystemValue::Float(5.0));
    insta::assert_snapshot!(
        validate(SystemTable::Memory.description(), json!({"parameters": {"database": "shop"}})).unwrap_err(),
        @r#"parameters.database: table "memory" has no parameters"#
    );
}

#[test]
fn nearest_names_are_choices() {
    let error = validate(SystemTable::Processes.description(), json!({"columns": ["cpu_percnt"]})).unwrap_err();
    assert_eq!(error.violations[0].choices, ["cpu_percent"]);
    assert_eq!(error.violations[0].path, "columns[0]");
}

#[test]
fn number_of_violations_is_bounded() {
    let request = json!({"columns": (0..100).map(|number| format!("no_{number}")).collect::<Vec<_>>()});
    let error = validate(SystemTable::Processes.description(), request).unwrap_err();
    assert_eq!((error.violations.len(), error.omitted), (50, 50));
    assert!(error.to_string().ends_with("\nand 50 more problems"));
}

#[test]
fn masked_columns_can_only_be_selected() {
    let request = json!({
        "columns": ["command_line"],
        "sort": ["environment"],
        "conditions": [["command_line", "match", "*--password=a*"]]
    });
    insta::assert_snapshot!(violations(request.clone()), @r#"
    sort[0]: column "environment" is masked for you, so that it can only be selected
    conditions[0][0]: column "command_line" is masked for you, so that it can only be selected
    "#);
    let table = SystemTable::Processes.description();
    assert!(FunctionRequest::validate(table, &object(request), true).is_ok());
    // Without a list, masked columns are left out.
    let names = |grants| {
        let request = FunctionRequest::validate(table, &Map::new(), grants).unwrap();
        request.column_names(table).any(|name| name == "command_line")
    };
    assert_eq!((names(false), names(true)), (false, true));
}

#[test]
fn valid_request_reads_what_it_needs() {
    let table = SystemTable::Processes.description();
    let request = validate(
        table,
        json!({
            "columns": ["name", "pid", "name"],
            "sort": [{"column": "cpu_percent", "direction": "DESC"}, "pid", "pid"],
            "limit": null,
            "conditions": [["state", "==", "running"], ["uid", "<>", null], ["start_time", ">=", "2024-02-29"]],
            "parameters": {"user": "root"}
        }),
    )
    .unwrap();
    assert_eq!(request.column_names(table).collect::<Vec<_>>(), ["name", "pid"]);
    assert_eq!((request.limit, request.sort.len(), request.conditions.len()), (100, 2, 3));
    assert!(request.sort[0].is_descending && !request.sort[1].is_descending);
    let options = request.read_options(table, false);
    let columns = ["pid", "name", "state", "uid", "cpu_percent", "start_time"].map(str::to_owned);
    assert_eq!(options.columns.as_deref(), Some(&columns[..]));
    assert_eq!(options.parameters["user"], SystemValue::from("root"));
    let day = |microseconds| request.conditions[2].is_met_by(&SystemValue::Timestamp(microseconds));
    assert_eq!((day(1_709_164_800_000_000), day(1_709_164_799_999_999)), (true, false));
}

/// JSON with the keys of requests and names that exist, so that most of it gets past the first checks.
fn arbitrary_json() -> impl Strategy<Value = Value> {
    let names = ["pid", "name", "cpu_percent", "start_time", "command_line", "asc", "desc", "=", "<", "match", "é|*"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(names.to_vec()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let keys = ["columns", "sort", "limit", "conditions", "parameters", "column", "direction", "user", "other"];
    leaf.prop_recursive(4, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map(prop::sample::select(keys.to_vec()), inner, 0..6).prop_map(|members| {
                let members = members.into_iter().map(|(key, value)| (key.to_owned(), value));
                Value::Object(members.collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_a_request_or_has_violations(
        columns in arbitrary_json(),
        sort in arbitrary_json(),
        limit in arbitrary_json(),
        conditions in arbitrary_json(),
        parameters in arbitrary_json(),
    ) {
        let table = SystemTable::Processes.description();
        let request = json!({
            "columns": columns, "sort": sort, "limit": limit, "conditions": conditions, "parameters": parameters
        });
        match validate(table, request) {
            Ok(request) => {
                let row = vec![SystemValue::Null; table.columns.len()];
                RowSelector::new(&request).push(&row);
                prop_assert!(request.columns.iter().all(|position| *position < table.columns.len()));
                prop_assert!((1..=LIMIT_MAX).contains(&request.limit));
            }
            Err(error) => {
                prop_assert!((1..=50).contains(&error.violations.len()));
                let keys = ["columns", "sort", "limit", "conditions", "parameters"];
                let has_key = |path: &str| keys.iter().any(|key| path.starts_with(key));
                prop_assert!(error.violations.iter().all(|violation| has_key(&violation.path)), "{}", error);
            }
        }
    }
}

#[test]
fn operators_have_their_meaning() {
    let table = SystemTable::Processes.description();
    let is_met = |column: &str, operator: &str, operand: Value, value: SystemValue| {
        let request = validate(table, json!({"conditions": [[column, operator, operand]]})).unwrap();
        request.conditions[0].is_met_by(&value)
    };
    let pid = |operator: &str, operand: Value| is_met("pid", operator, operand, SystemValue::Integer(7));
    assert!(pid("=", json!(7)) && pid("==", json!(7.0)) && !pid("=", json!(7.5)) && pid("<>", json!(8)));
    assert!(
        pid("<", json!(7.5))
            && pid("<=", json!(7))
            && !pid("<", json!(7))
            && pid(">", json!(-1))
            && pid(">=", json!(7))
    );
    let name = |operator: &str, operand: &str| is_met("name", operator, json!(operand), "postgres".into());
    assert!(
        name("match", "post*") && !name("not match", "post*") && name("NOT  MATCH", "my*|maria*") && name("!=", "x")
    );
    // Null meets no condition but that for null.
    for operator in ["=", "!=", "match", "not match"] {
        assert!(!is_met("name", operator, json!("x"), SystemValue::Null), "{operator}");
    }
    assert!(
        is_met("name", "=", Value::Null, SystemValue::Null) && !is_met("name", "!=", Value::Null, SystemValue::Null)
    );
    assert!(is_met("name", "!=", Value::Null, "x".into()));
}
