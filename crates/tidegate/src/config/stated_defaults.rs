//! The defaults that comments of keys state, from which the reference is written, and those of `--help` are the ones of the
//! code.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{Args as _, Command};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tidegate_auth::{TokenKey, TokenOptions};
use tidegate_mysql::MySqlOptions;
use tidegate_postgres::PostgresOptions;
use tidegate_runtime::CacheHint;
use tidegate_runtime::audit::AuditOptions;
use tidegate_sql::Transaction;
use tidegate_sqlite::SqliteOptions;
use tidegate_transport::http::HttpOptions;

use super::LoadedConfig;
use super::document::parse_plain_scalar;
use super::limits::{engine_options, resolve_limits, store_limits};
use super::types::{Config, LimitsConfig, ResultsConfig};
use crate::options::LimitOptions;
use crate::quantity;

/// Keys whose default is no value of the code that tests can read.
const UNREADABLE: [&str; 3] = ["HttpRequestConfig.max_bytes", "MqttConfig.qos", "FileTableConfig.skip"];

/// Milliseconds of a duration, or bytes of a size, or a number.
fn number(text: &str) -> Option<u64> {
    quantity::duration(text).map(millis).or_else(|_| quantity::size(text)).ok()
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap()
}

/// The numbers that are stated as defaults of the keys of each type.
fn stated_defaults() -> BTreeMap<String, BTreeMap<String, String>> {
    let schema = super::schema();
    let types = schema["$defs"].as_object().unwrap().iter();
    let of_type = |keys: &Map<String, Value>| -> BTreeMap<String, String> {
        let stated = keys.iter().filter_map(|(key, schema)| {
            let comment = schema["description"].as_str()?.replace('\n', " ");
            let (_, default) = comment.split_once("Default: ")?;
            let default = default.split_once(". ").map_or(default, |(default, _)| default).trim_end_matches('.');
            number(default).map(|_| (key.clone(), default.to_owned()))
        });
        stated.collect()
    };
    types.filter_map(|(name, schema)| Some((name.clone(), of_type(schema["properties"].as_object()?)))).collect()
}

fn stated_entry<T: DeserializeOwned>(type_name: &str) -> T {
    let stated = stated_defaults()[type_name].clone().into_iter();
    let values: Map<String, Value> = stated.map(|(key, default)| (key, parse_plain_scalar(&default))).collect();
    assert!(!values.is_empty(), "{type_name} states no default");
    serde_json::from_value(Value::Object(values)).unwrap()
}

#[test]
fn comments_state_the_limits() {
    let loaded =
        |limits: LimitsConfig| LoadedConfig { config: Config { limits, ..Config::default() }, ..LoadedConfig::empty() };
    let (stated, default) = (loaded(stated_entry("LimitsConfig")), loaded(LimitsConfig::default()));
    let options = LimitOptions::default();
    let limits = |loaded: &LoadedConfig| resolve_limits(&loaded.config.limits, &options, true);
    assert_eq!(limits(&stated), limits(&default));
    assert_eq!(engine_options(&stated, &options), engine_options(&default, &options));
    assert_eq!(store_limits(&stated_entry("ResultsConfig")), store_limits(&ResultsConfig::default()));
}

#[test]
fn comments_state_the_other_defaults() {
    let is_other = |name: &str| name != "LimitsConfig" && name != "ResultsConfig";
    let types = stated_defaults().into_iter().filter(|(name, _)| is_other(name));
    let keys = types.flat_map(|(name, keys)| {
        keys.into_iter().map(move |(key, default)| (format!("{name}.{key}"), number(&default).unwrap()))
    });
    let stated: BTreeMap<String, u64> = keys.filter(|(key, _)| !UNREADABLE.contains(&key.as_str())).collect();
    let (audit, postgres, transaction) = (AuditOptions::new(""), PostgresOptions::default(), Transaction::default());
    let mysql = MySqlOptions::default();
    let tokens = TokenOptions::new(TokenKey::Discovery, "", Vec::new(), Vec::new());
    let flight_sql = tidegate_network::FlightSqlOptions::new(Vec::new());
    let code = [
        ("AuditConfig.keep_files", audit.kept_files as u64),
        ("AuditConfig.max_size", audit.bytes_max),
        ("CallLimitsConfig.stall_timeout", millis(transaction.stall_timeout)),
        ("FlightSqlConfig.timeout", millis(flight_sql.timeout)),
        ("ListCacheConfig.ttl", millis(CacheHint::LISTS.time_to_live)),
        ("MySqlConfig.connection_timeout", millis(mysql.acquire_timeout)),
        ("MySqlConfig.connections", mysql.connections_max as u64),
        ("MySqlConfig.lock_timeout", millis(mysql.lock_timeout)),
        ("MySqlConfig.max_message_bytes", mysql.message_bytes_max as u64),
        ("NetworkConfig.timeout", millis(flight_sql.timeout)),
        ("PostgresConfig.connection_timeout", millis(postgres.acquire_timeout)),
        ("PostgresConfig.connections", postgres.connections_max as u64),
        ("PostgresConfig.lock_timeout", millis(postgres.lock_timeout)),
        ("PostgresConfig.max_message_bytes", postgres.message_bytes_max as u64),
        ("ServerConfig.max_body", HttpOptions::default().body_bytes_max as u64),
        ("ServerConfig.max_event", HttpOptions::default().event_bytes_max as u64),
        ("SqliteConfig.connections", SqliteOptions::default().connections_max as u64),
        ("TokensConfig.leeway", u64::from(tokens.leeway_seconds) * 1_000),
        ("ToolLimitsConfig.stall_timeout", millis(transaction.stall_timeout)),
        ("TransactionConfig.retries", u64::from(transaction.retries_max)),
    ];
    assert_eq!(stated, BTreeMap::from(code.map(|(key, number)| (key.to_owned(), number))));
}

#[test]
fn help_states_the_defaults_of_the_keys() {
    let stated = stated_defaults();
    let command = LimitOptions::augment_args(Command::new("tidegate"));
    let compared = command.get_arguments().filter_map(|argument| {
        let default = stated["LimitsConfig"].get(argument.get_id().as_str())?;
        let help = argument.get_help().unwrap().to_string();
        assert!(help.contains(&format!("[default: {default}")), "{help}: the default is {default}");
        Some(argument.get_id().as_str())
    });
    assert_eq!(compared.collect::<Vec<_>>(), ["timeout", "spill", "inline_bytes"]);
}
