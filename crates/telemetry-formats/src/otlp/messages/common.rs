//! `opentelemetry.proto.common.v1` and `opentelemetry.proto.resource.v1`.

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::declare_messages;
use crate::message_size::{FieldShape, MessageShape};
use crate::otlp::json_fields;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub(crate) value: Option<Value>,
}

impl AnyValue {
    pub(crate) fn shape() -> &'static MessageShape {
        static SHAPE: MessageShape = MessageShape {
            bytes: size_of::<AnyValue>(),
            fields: &[(5, FieldShape::Message(ArrayValue::shape)), (6, FieldShape::Message(KeyValueList::shape))],
        };
        &SHAPE
    }
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

declare_messages! {
    ArrayValue {
        1 values: many AnyValue,
    }
    KeyValueList {
        1 values: many KeyValue,
    }
    KeyValue {
        1 key: text,
        2 value: one AnyValue,
    }
    InstrumentationScope {
        1 name: text,
        2 version: text,
        3 attributes: many KeyValue,
        4 dropped_attributes_count: uint32 u32,
    }
    Resource {
        1 attributes: many KeyValue,
        2 dropped_attributes_count: uint32 u32,
    }
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
