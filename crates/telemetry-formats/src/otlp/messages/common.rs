//! `opentelemetry.proto.common.v1` and `opentelemetry.proto.resource.v1`.

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use crate::message_size::{FieldShape, MessageShape};
use crate::otlp::json_fields;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub(crate) value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Boolean(bool),
    #[prost(int64, tag = "3")]
    Integer(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    Array(ArrayValue),
    #[prost(message, tag = "6")]
    Members(KeyValueList),
    #[prost(bytes = "vec", tag = "7")]
    Bytes(Vec<u8>),
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(crate) struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) values: Vec<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(crate) struct KeyValueList {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) values: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(crate) struct KeyValue {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) key: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct InstrumentationScope {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json_fields::text")]
    pub(crate) version: String,
    #[prost(message, repeated, tag = "3")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "4")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) dropped_attributes_count: u32,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Resource {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json_fields::list")]
    pub(crate) attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "2")]
    #[serde(deserialize_with = "json_fields::integer")]
    pub(crate) dropped_attributes_count: u32,
}

/// The fields of a value in JSON, of which at most one is set.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ValueFields {
    string_value: Option<String>,
    bool_value: Option<bool>,
    #[serde(deserialize_with = "json_fields::optional_integer")]
    int_value: Option<i64>,
    #[serde(deserialize_with = "json_fields::optional_double")]
    double_value: Option<f64>,
    array_value: Option<ArrayValue>,
    kvlist_value: Option<KeyValueList>,
    #[serde(deserialize_with = "json_fields::optional_bytes")]
    bytes_value: Option<Vec<u8>>,
}

impl<'de> Deserialize<'de> for AnyValue {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let fields = ValueFields::deserialize(input)?;
        let mut values = [
            fields.string_value.map(Value::Text),
            fields.bool_value.map(Value::Boolean),
            fields.int_value.map(Value::Integer),
            fields.double_value.map(Value::Double),
            fields.array_value.map(Value::Array),
            fields.kvlist_value.map(Value::Members),
            fields.bytes_value.map(Value::Bytes),
        ]
        .into_iter()
        .flatten();
        let value = values.next();
        if values.next().is_some() {
            return Err(D::Error::custom("a value has more than one type"));
        }
        Ok(Self { value })
    }
}

pub(crate) static ANY_VALUE: MessageShape = MessageShape {
    bytes: size_of::<AnyValue>(),
    fields: &[(5, FieldShape::Message(&ARRAY_VALUE)), (6, FieldShape::Message(&KEY_VALUE_LIST))],
};
static ARRAY_VALUE: MessageShape = MessageShape { bytes: 0, fields: &[(1, FieldShape::Message(&ANY_VALUE))] };
static KEY_VALUE_LIST: MessageShape = MessageShape { bytes: 0, fields: &[(1, FieldShape::Message(&KEY_VALUE))] };
pub(crate) static KEY_VALUE: MessageShape =
    MessageShape { bytes: size_of::<KeyValue>(), fields: &[(2, FieldShape::Message(&ANY_VALUE))] };
pub(crate) static RESOURCE: MessageShape =
    MessageShape { bytes: size_of::<Resource>(), fields: &[(1, FieldShape::Message(&KEY_VALUE))] };
pub(crate) static SCOPE: MessageShape =
    MessageShape { bytes: size_of::<InstrumentationScope>(), fields: &[(3, FieldShape::Message(&KEY_VALUE))] };
