//! What the server makes of bound parameters, whatever type it inferred for them.

use tidegate_postgres::values::BoundParameter;
use tidegate_sql::Parameter;

use crate::shared_server::connect;

async fn echo_parameter(expression: &str, parameter: Parameter) -> Option<String> {
    let client = connect().await;
    let parameters = [parameter];
    let bound = BoundParameter::bind_all(&parameters).unwrap();
    let row = client.query_one(&format!("SELECT ({expression})::text"), &[&bound[0]]).await.unwrap();
    row.get(0)
}

#[tokio::test]
async fn parameters_take_the_inferred_type() {
    let text = |text: &str| Parameter::Text(text.to_owned());
    let cases = [
        ("$1::int4 + 1", Parameter::Integer(41), Some("42")),
        ("$1::int8", Parameter::Integer(i64::MIN), Some("-9223372036854775808")),
        ("$1::int4", Parameter::Float(3.0), Some("3")),
        ("$1::int4", text("7"), Some("7")),
        ("$1::numeric", Parameter::Float(0.1), Some("0.1")),
        ("$1::numeric", text("123456789012345678901234567890.5"), Some("123456789012345678901234567890.5")),
        ("$1::text", Parameter::Integer(5), Some("5")),
        ("$1 || ''", text("a'b\\c\"\u{1F30A}"), Some("a'b\\c\"\u{1F30A}")),
        ("$1::bool", Parameter::Boolean(false), Some("false")),
        ("$1::date - 1", text("2024-03-01"), Some("2024-02-29")),
        ("$1::timestamptz", text("2024-03-01T12:00:00+02:00"), Some("2024-03-01 10:00:00+00")),
        ("$1::uuid", text("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"), Some("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
        ("$1::jsonb -> 'a'", text("{\"a\": [1]}"), Some("[1]")),
        ("$1::int4[]", text("{1,NULL}"), Some("{1,NULL}")),
        ("$1::bytea", text("\\xff00"), Some("\\xff00")),
        ("$1::int4", Parameter::Null, None),
    ];
    for (expression, parameter, expected) in cases {
        let case = format!("{expression} with {parameter:?}");
        assert_eq!(echo_parameter(expression, parameter).await.as_deref(), expected, "{case}");
    }
}

#[tokio::test]
async fn floats_arrive_with_all_their_bits() {
    let client = connect().await;
    for float in [0.1, -0.0, 5e-324, f64::MAX, f64::MIN_POSITIVE, 1e23, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let parameters = [Parameter::Float(float)];
        let bound = BoundParameter::bind_all(&parameters).unwrap();
        let back: f64 = client.query_one("SELECT $1::float8", &[&bound[0]]).await.unwrap().get(0);
        assert!(back.to_bits() == float.to_bits() || back.is_nan() && float.is_nan(), "{float:?} became {back:?}");
    }
}

#[tokio::test]
async fn invalid_parameter_is_rejected_by_the_server() {
    let client = connect().await;
    let parameters = [Parameter::Text("seven".to_owned())];
    let bound = BoundParameter::bind_all(&parameters).unwrap();
    let error = client.query("SELECT $1::int4", &[&bound[0]]).await.unwrap_err();
    assert_eq!(error.as_db_error().unwrap().message(), "invalid input syntax for type integer: \"seven\"");
}
