//! Messages of MQTT brokers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::quantities::SecretText;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MqttConfig {
    /// mqtts://host:8883, or mqtt://host:1883 without TLS.
    pub(crate) broker: String,
    /// File of trusted authorities (PEM). Default: those of the system.
    pub(crate) authorities: Option<String>,
    /// Topic filters: plant/+/data.
    pub(crate) topics: Vec<String>,
    /// database.table: plant.sensors.
    pub(crate) table: String,
    /// 1: at least once. 0: at most once. Default: 1.
    pub(crate) qos: Option<u64>,
    /// Name of the session, unique at the broker and constant.
    pub(crate) client_id: String,
    /// User name. Default: none.
    pub(crate) username: Option<String>,
    /// Password. Default: none.
    pub(crate) password: Option<SecretText>,
    /// Format of messages. Default: json.
    #[serde(default)]
    pub(crate) format: MqttFormat,
    /// Columns with a topic level, from 0: {site: 1}. Default: none.
    #[serde(default)]
    pub(crate) topic_columns: BTreeMap<String, usize>,
    /// Column with the whole topic. Default: none.
    pub(crate) topic: Option<String>,
}

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
