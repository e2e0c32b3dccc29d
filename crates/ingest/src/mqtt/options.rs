//! What an owner declares about a broker, with its address, and about its messages.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use arrow::datatypes::DataType;
use tidegate_ingest_formats::BodyFormat;
use tidegate_query::{IngestTable, REJECTS_SUFFIX};

use crate::mqtt::topic::{TEXT_BYTES_MAX, filter_problem};

/// Filters of topics of one receiver.
const TOPICS_MAX: usize = 1_000;

/// How often a message arrives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Delivery {
    /// QoS 0: a message can be lost.
    AtMostOnce,
    /// QoS 1: a message can arrive again.
    #[default]
    AtLeastOnce,
}

impl Delivery {
    /// The delivery of a number of `qos`.
    ///
    /// # Errors
    /// The reason, for the owner.
    pub fn from_qos(qos: u64) -> Result<Self, String> {
        match qos {
            0 => Ok(Self::AtMostOnce),
            1 => Ok(Self::AtLeastOnce),
            2 => {
                Err("QoS 2 is not supported: its exchange of identifiers and the commit of the rows are two steps, so \
                      that a crash between them would double or lose rows all the same; use 1"
                    .to_owned())
            }
            _ => Err("must be 1 (at least once) or 0 (at most once)".to_owned()),
        }
    }

    pub(crate) fn qos(self) -> u8 {
        match self {
            Self::AtMostOnce => 0,
            Self::AtLeastOnce => 1,
        }
    }
}

/// The name and the password for a broker.
#[derive(Clone, PartialEq, Eq)]
pub struct BrokerCredentials {
    /// The name.
    pub username: String,
    /// The password, if there is one.
    pub password: Option<String>,
}

tidegate_core::impl_debug!(BrokerCredentials { username });

/// A column of text whose value comes from the topic of the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicColumn {
    /// The name of the column.
    pub column: String,
    /// The level of the topic, from 0; `None` for the whole topic. A level that a topic does not have is null.
    pub level: Option<usize>,
}

/// A broker, its topics, and the table of their messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MqttOptions {
    /// The broker.
    pub broker: BrokerAddress,
    /// A file with the certificates of authorities, in PEM format, which are trusted instead of those of the system.
    pub authorities: Option<PathBuf>,
    /// The filters of topics.
    pub topics: Vec<String>,
    /// The table.
    pub table: String,
    /// How often a message arrives.
    pub delivery: Delivery,
    /// The name of the session at the broker. No other client has it, and it stays the same when the node starts again.
    pub client_id: String,
    /// The name and the password.
    pub credentials: Option<BrokerCredentials>,
    /// The format of the messages.
    pub format: BodyFormat,
    /// Columns with the topic.
    pub topic_columns: Vec<TopicColumn>,
}

/// A value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionsProblem {
    /// The key, such as `topics[0]`.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl MqttOptions {
    /// What is wrong with the options themselves.
    #[must_use]
    pub fn problems(&self) -> Vec<OptionsProblem> {
        let mut problems = Vec::new();
        let mut add = |field: String, message: String| problems.push(OptionsProblem { field, message });
        if self.topics.is_empty() || self.topics.len() > TOPICS_MAX {
            add("topics".to_owned(), format!("needs 1 to {TOPICS_MAX} filters of topics, such as plant/+/data"));
        }
        for (index, filter) in self.topics.iter().enumerate() {
            if let Some(problem) = filter_problem(filter) {
                add(format!("topics[{index}]"), problem);
            }
        }
        let is_text = |text: &str| !text.is_empty() && text.len() <= TEXT_BYTES_MAX && !text.contains('\0');
        if !is_text(&self.client_id) {
            add("client_id".to_owned(), format!("needs 1 to {TEXT_BYTES_MAX} bytes"));
        }
        let credentials = self.credentials.iter();
        let texts = credentials.flat_map(|own| [Some(&own.username), own.password.as_ref()]).flatten();
        if texts.into_iter().any(|text| text.len() > TEXT_BYTES_MAX) {
            add("username".to_owned(), format!("the name and the password have at most {TEXT_BYTES_MAX} bytes each"));
        }
        if self.format == BodyFormat::Parquet {
            add("format".to_owned(), "Parquet is not a format of messages; use json, ndjson, csv or arrow".to_owned());
        }
        if self.table.ends_with(REJECTS_SUFFIX) {
            add("table".to_owned(), "is a table of rejected rows, which gets rows only with its own table".to_owned());
        }
        for (index, column) in self.topic_columns.iter().enumerate() {
            let before = self.topic_columns.iter().take(index);
            if before.into_iter().any(|other| other.column.eq_ignore_ascii_case(&column.column)) {
                add("topic_columns".to_owned(), format!("{:?} is there twice", column.column));
            }
        }
        problems
    }

    /// What is wrong with the options for this table.
    #[must_use]
    pub fn table_problems(&self, table: &IngestTable) -> Vec<OptionsProblem> {
        let mut problems = Vec::new();
        if let Some(stamp) = table.stamps.first() {
            let message = format!(
                "column {:?} of the table gets the caller's {}, and a message has no caller; use a table without stamps",
                stamp.column, stamp.attribute
            );
            problems.push(OptionsProblem { field: "table".to_owned(), message });
        }
        let Some(schema) = &table.schema else { return problems };
        for column in &self.topic_columns {
            let message = match schema.column_with_name(&column.column) {
                Some((_, field)) if is_text(field.data_type()) => continue,
                Some((_, field)) => {
                    format!("column {:?} has type {}, and a topic is text", column.column, field.data_type())
                }
                None if table.adds_columns => continue,
                None => format!("the table has no column {:?}; declare it as text", column.column),
            };
            problems.push(OptionsProblem { field: "topic_columns".to_owned(), message });
        }
        problems
    }
}

/// Whether a column of this type can have a topic.
fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

const PLAIN_SCHEME: &str = "mqtt";
const TLS_SCHEME: &str = "mqtts";
const PLAIN_PORT: u16 = 1883;
const TLS_PORT: u16 = 8883;

/// The address of a broker: `mqtts://host:8883`, or `mqtt://host:1883` without TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerAddress {
    /// The name or the address of the host; an IPv6 address has no brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether the connection uses TLS.
    pub uses_tls: bool,
}

/// A text that is no address of a broker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; write it as mqtts://host:8883, or mqtt://host:1883 without TLS")]
pub struct BrokerAddressError(String);

impl FromStr for BrokerAddress {
    type Err = BrokerAddressError;

    fn from_str(text: &str) -> Result<Self, BrokerAddressError> {
        // The text is not repeated: by mistake, it may have a password.
        let error = |reason: &str| BrokerAddressError(reason.to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(|| error("the address has no scheme"))?;
        let uses_tls = match scheme {
            PLAIN_SCHEME => false,
            TLS_SCHEME => true,
            _ => return Err(error("the scheme of the address is neither mqtts nor mqtt")),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains('@') {
            return Err(error("the address has credentials, which belong into username and password"));
        }
        if rest.contains(['/', '?', '#']) {
            return Err(error("the address has a path, which a broker does not have"));
        }
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or_else(|| error("the bracket is not closed"))?;
                (host, after.strip_prefix(':').or_else(|| after.is_empty().then_some("")))
            }
            None => match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, Some("")),
            },
        };
        if host.is_empty() {
            return Err(error("the address has no host"));
        }
        let port = match port {
            Some("") => {
                if uses_tls {
                    TLS_PORT
                } else {
                    PLAIN_PORT
                }
            }
            Some(port) => port
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| error("the port is no number from 1 to 65535"))?,
            None => return Err(error("the host is not followed by a port")),
        };
        Ok(Self { host: host.to_owned(), port, uses_tls })
    }
}

impl fmt::Display for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.uses_tls { TLS_SCHEME } else { PLAIN_SCHEME };
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}
