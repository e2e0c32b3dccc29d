//! Each type, as the server has its values.

use arrow::datatypes::DataType;
use tidegate_core::Principal;
use tidegate_query::{Database, ExtensionType, field_type_name};
use tidegate_sql::{Parameter, SqlDialect, Statement};

use crate::test_database::{TestDatabase, owner_statement};

const TABLE: &str = "CREATE TABLE t (
    id INT PRIMARY KEY, big BIGINT UNSIGNED, small TINYINT, medium MEDIUMINT UNSIGNED, amount DECIMAL(65,10),
    price DECIMAL(10,2), bits BIT(9), y YEAR, e ENUM('a','b'), s SET('x','y'), dt DATETIME(3), ts TIMESTAMP(6) NULL,
    d DATE, ti TIME(2), doc JSON, place GEOMETRY, name VARCHAR(20), data VARBINARY(9), f FLOAT, f2 DOUBLE)";

const ROW: &str = "INSERT INTO t VALUES (1, 18446744073709551615, -128, 16777215,
    -1234567890123456789012345678901234567890.0123456789, 12.50, b'100000001', 2024, 'b', 'x,y',
    '2024-02-29 03:04:05.678', '2024-02-29 03:04:05.678901', '0001-01-01', '-838:59:59.99', '{\"a\": [1, null]}',
    ST_GeomFromText('POINT(1 -2.5)'), 'Grüße \\\\ ''', x'00ff', 1.5, 2.5e300), (2, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)";

#[tokio::test]
async fn values_are_exact() {
    let test = TestDatabase::new(&["SET time_zone = '+00:00'", TABLE, ROW]).await;
    let text = test.run_to_text("SELECT * FROM t ORDER BY id").await;
    let expected = "1|18446744073709551615|-128|16777215|-1234567890123456789012345678901234567890.0123456789|12.50|257|2024|\
                    b|x,y|2024-02-29T03:04:05.678|2024-02-29T03:04:05.678901Z|0001-01-01|-838:59:59.99|{\"a\": [1, null]}|\
                    POINT(1 -2.5)|Grüße \\ '|00ff|1.5|2.5e300";
    assert_eq!(text.lines().next(), Some(expected));
    assert_eq!(text.lines().nth(1), Some(&*format!("2{}", "|null".repeat(19))));
}

#[tokio::test]
async fn columns_have_the_types_of_mysql() {
    let test = TestDatabase::new(&[TABLE]).await;
    // The catalog knows which texts are JSON.
    test.database.catalog(&Principal::process_user()).await.unwrap();
    let statement = Statement::parse("SELECT * FROM t", SqlDialect::MySql).unwrap();
    let schema = test.database.describe(&statement, &Principal::process_user()).await.unwrap();
    let types: Vec<String> = schema.fields().iter().map(|field| field_type_name(field)).collect();
    let expected = "int, bigint unsigned, tinyint, mediumint unsigned, decimal(65,10), decimal(10,2), bit(9), year, enum, set, \
                    datetime, timestamp, date, time, json, geometry, varchar, varbinary, float, double";
    assert_eq!(types.join(", "), expected);
    assert_eq!(*schema.field(4).data_type(), DataType::Decimal256(65, 10));
    assert_eq!(ExtensionType::from_field(schema.field(14)), Some(ExtensionType::Json));
}

#[tokio::test]
async fn a_date_that_does_not_exist_is_an_error_and_its_text_is_not() {
    let sql = ["SET sql_mode = ''", "CREATE TABLE t (d DATE)", "INSERT INTO t VALUES ('0000-00-00')"];
    let test = TestDatabase::new(&sql).await;
    let text = test.run_to_text("SELECT d FROM t").await;
    assert!(text.contains("column \"d\" holds 0000-00-00") && text.contains("CAST(column AS CHAR)"), "{text}");
    assert_eq!(test.run_to_text("SELECT CAST(d AS CHAR) FROM t").await, "0000-00-00");
    assert_eq!(test.run_to_text("SELECT NULLIF(d, 0) FROM t").await, "null");
}

#[tokio::test]
async fn times_are_in_utc_whatever_the_zone_of_the_server_is() {
    let sql = [
        "SET time_zone = '+05:00'",
        "CREATE TABLE t (ts TIMESTAMP NULL)",
        "INSERT INTO t VALUES ('2024-01-01 05:00:00')",
    ];
    let test = TestDatabase::new(&sql).await;
    assert_eq!(test.run_to_text("SELECT ts FROM t").await, "2024-01-01T00:00:00Z");
}

#[tokio::test]
async fn parameters_are_bound() {
    let test = TestDatabase::new(&[]).await;
    let parameters = vec![
        Parameter::Text("it's \\ \"x\" 日本".to_owned()),
        Parameter::Integer(i64::MIN),
        Parameter::Float(0.1),
        Parameter::Boolean(true),
        Parameter::Null,
    ];
    let statement = owner_statement("SELECT $2, $1, $3, $4, $5, $1", parameters);
    let text = test.lines(&statement).await.unwrap();
    assert_eq!(text, "-9223372036854775808|it's \\ \"x\" 日本|0.1|1|null|it's \\ \"x\" 日本");
    let caller = Statement::parse("SELECT ? + ?", SqlDialect::MySql).unwrap();
    let caller = caller.with_parameters(vec![Parameter::Integer(1), Parameter::Integer(2)]).unwrap();
    assert_eq!(test.lines(&caller).await.unwrap(), "3");
}
