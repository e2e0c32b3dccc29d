//! Messages of MQTT brokers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::quantities::SecretText;

/// Messages of a broker that become rows of a table.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MqttConfig {
    /// Address of the broker: mqtts://host:8883, or mqtt://host:1883 without TLS. Required.
    pub(crate) broker: String,
    /// File with the certificates of trusted authorities in PEM format, relative to this file. Default: those of the
    /// system.
    pub(crate) authorities: Option<String>,
    /// Filters of topics: plant/+/data. Required.
    pub(crate) topics: Vec<String>,
    /// The table with its database: plant.sensors. Required.
    pub(crate) table: String,
    /// 1: each message at least once. 0: at most once. Default: 1.
    pub(crate) qos: Option<u64>,
    /// Name of the session at the broker. No other client has it, and it stays the same. Required.
    pub(crate) client_id: String,
    /// Name for the broker. Default: none.
    pub(crate) username: Option<String>,
    /// Password for the broker. Write it as ${VARIABLE}. Default: none.
    pub(crate) password: Option<SecretText>,
    /// Format of the messages. Default: json.
    #[serde(default)]
    pub(crate) format: MqttFormat,
    /// Columns that get a level of the topic, counted from 0: {site: 1}. Default: none.
    #[serde(default)]
    pub(crate) topic_columns: BTreeMap<String, usize>,
    /// Column that gets the whole topic. Default: none.
    pub(crate) topic: Option<String>,
}

/// The format of messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MqttFormat {
    /// One JSON document: an object, or an array of objects.
    #[default]
    Json,
    /// One JSON object per line.
    Ndjson,
    /// Comma-separated values with a head in each message.
    Csv,
    /// A stream of Arrow IPC.
    Arrow,
}
