//! Addresses, and what is wrong with options.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use tidegate_ingest::mqtt::{BrokerAddress, BrokerCredentials, Delivery};
use tidegate_ingest_formats::BodyFormat;
use tidegate_query::{ColumnStamp, IngestTable};

use super::fixture::options;

#[test]
fn addresses_have_a_scheme_a_host_and_a_port() {
    for (text, expected) in [
        ("mqtts://host", "mqtts://host:8883"),
        ("mqtt://host", "mqtt://host:1883"),
        ("mqtts://host:1/", "mqtts://host:1"),
        ("mqtts://[::1]", "mqtts://[::1]:8883"),
        ("mqtt://[::1]:7", "mqtt://[::1]:7"),
    ] {
        assert_eq!(text.parse::<BrokerAddress>().unwrap().to_string(), expected);
    }
    for text in [
        "host",
        "http://host",
        "mqtt://",
        "mqtt://user:secret@host",
        "mqtt://host/path",
        "mqtt://host:0",
        "mqtt://host:70000",
        "mqtt://[::1",
        "mqtt://[::1]7",
        "mqtt://:1883",
    ] {
        let error = text.parse::<BrokerAddress>().unwrap_err().to_string();
        assert!(error.contains("mqtts://host:8883") && !error.contains("secret"), "{error}");
    }
}

#[test]
fn wrong_options_are_named() {
    assert_eq!(options(1).problems(), []);
    let mut wrong = options(1);
    wrong.topics = vec!["a/#/b".to_owned()];
    wrong.client_id.clear();
    wrong.format = BodyFormat::Parquet;
    wrong.table = "sensors__rejects".to_owned();
    wrong.topic_columns.push(wrong.topic_columns[0].clone());
    wrong.credentials = Some(BrokerCredentials { username: "u".repeat(70_000), password: None });
    let fields: Vec<String> = wrong.problems().into_iter().map(|problem| problem.field).collect();
    assert_eq!(fields, ["topics[0]", "client_id", "username", "format", "table", "topic_columns"]);
    assert!(Delivery::from_qos(2).unwrap_err().contains("use 1"));
    assert!(Delivery::from_qos(3).is_err());
}

#[test]
fn tables_that_cannot_have_messages_are_problems() {
    let table = |fields: Vec<Field>| IngestTable {
        name: "sensors".to_owned(),
        schema: Some(Arc::new(Schema::new(fields))),
        adds_columns: false,
        stamps: Vec::new(),
    };
    let options = options(1);
    assert_eq!(options.table_problems(&table(vec![Field::new("site", DataType::LargeUtf8, false)])), []);
    assert_eq!(options.table_problems(&table(vec![Field::new("site", DataType::Int64, true)])).len(), 1);
    assert_eq!(options.table_problems(&table(vec![Field::new("other", DataType::Utf8, true)])).len(), 1);
    let mut stamped = table(vec![Field::new("site", DataType::Utf8, true)]);
    stamped.stamps.push(ColumnStamp { column: "tenant".to_owned(), attribute: "tenant".to_owned() });
    assert!(options.table_problems(&stamped)[0].message.contains("no caller"));
}
