//! Sizes, durations, bounds and secrets as a configuration writes them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use tidegate_auth::Secret;

use super::types::ColumnConfig;
use crate::quantity::{self, LimitValue};

/// A YAML scalar: `4096` and `40KB` are both sizes.
#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(i64),
    Text(String),
}

impl NumberOrText {
    fn text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text,
        }
    }
}

macro_rules! quantity {
    ($name:ident, $inner:ty, $read:path, $about:literal, $examples:expr) => {
        #[doc = $about]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) struct $name(pub(crate) $inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $read(&NumberOrText::deserialize(deserializer)?.text()).map(Self).map_err(D::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": ["string", "integer"], "description": $about, "examples": $examples})
            }
        }
    };
}

quantity!(Time, Duration, quantity::duration, "A duration with its unit.", ["500ms", "60s", "5m", "1h"]);
quantity!(Leeway, Duration, quantity::duration_or_none, "A duration with its unit, or 0s.", ["0s", "30s", "1m"]);
quantity!(Size, u64, quantity::size, "A size in bytes.", ["4096", "40KB", "1MiB"]);
quantity!(SizeBound, LimitValue<usize>, quantity::size_bound, "A size in bytes, or unlimited.", ["40KB", "unlimited"]);
quantity!(RowBound, LimitValue<u64>, quantity::row_bound, "A number of rows, or unlimited.", ["1000", "unlimited"]);

/// A text that is never printed.
#[derive(Clone)]
pub(crate) struct SecretText(pub(crate) Secret);

impl PartialEq for SecretText {
    fn eq(&self, other: &Self) -> bool {
        self.0.expose() == other.0.expose()
    }
}

tidegate_core::impl_debug!(SecretText, "***");

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(Secret::new(text)))
    }
}

impl JsonSchema for SecretText {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "description": "A secret; write it as ${VARIABLE} or ${file:PATH}."})
    }
}

/// One value, or a list of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(crate) fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(one) => vec![one],
            Self::Many(many) => many,
        }
    }
}

/// The types of columns by name, in the order of the file. Columns that are only described are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ColumnTypes(pub(crate) Vec<(String, String)>);

impl<'de> Deserialize<'de> for ColumnTypes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ColumnTypesVisitor)
    }
}

struct ColumnTypesVisitor;

impl<'de> Visitor<'de> for ColumnTypesVisitor {
    type Value = ColumnTypes;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("names of columns with their types")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<ColumnTypes, A::Error> {
        let mut columns = Vec::new();
        while let Some((name, column)) = entries.next_entry::<String, ColumnConfig>()? {
            let kind = match column {
                ColumnConfig::Type(kind) => Some(kind),
                ColumnConfig::Described(described) => described.kind,
            };
            columns.extend(kind.map(|kind| (name, kind)));
        }
        Ok(ColumnTypes(columns))
    }
}

impl JsonSchema for ColumnTypes {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ColumnTypes".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, ColumnConfig>::json_schema(generator)
    }
}
