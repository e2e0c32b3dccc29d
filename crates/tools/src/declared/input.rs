//! Typed parameters of a declared entry, and their binding.

use serde_json::{Map, Value, json};
use tidegate_core::{Error, ErrorKind};
use tidegate_sql::{Parameter, SqlDialect, TemplateValue};

const LIST_VALUES_MAX: usize = 500;
const OMITTED_NOTE: &str = "if omitted, the person is asked";

/// A parameter of a declared entry.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredInput {
    /// The name, as `:name` in SQL and `{{name}}` in templates.
    pub name: String,
    /// The kind of values.
    pub kind: InputKind,
    /// The description for the model.
    pub description: Option<String>,
    /// The default value.
    pub default: Option<Value>,
    /// Whether it must have a value. A missing optional parameter without a default is null.
    pub required: bool,
    /// The question to the person behind a call if it is missing.
    pub ask: Option<String>,
    /// Further JSON Schema constraints (`minimum`, `maxLength`, `pattern`, `enum`, …).
    pub constraints: Map<String, Value>,
}

/// The kind of a parameter's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputKind {
    /// One value.
    Scalar(ScalarType),
    /// A list of values, for `IN (:name)` and `= ANY (:name)`.
    List(ScalarType),
    /// One of these columns or tables.
    Identifier(Vec<String>),
}

/// The type of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarType {
    /// Text.
    String,
    /// A 64-bit integer.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A date: `2013-01-31`.
    Date,
    /// A timestamp: `2013-01-31T12:00:00Z`.
    Timestamp,
}

impl ScalarType {
    fn schema(self) -> Value {
        match self {
            Self::String => json!({"type": "string"}),
            Self::Integer => json!({"type": "integer"}),
            Self::Number => json!({"type": "number"}),
            Self::Boolean => json!({"type": "boolean"}),
            Self::Date => json!({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"}),
            Self::Timestamp => {
                json!({"type": "string", "format": "date-time", "pattern": r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$"})
            }
        }
    }

    /// A cast where the database cannot infer the type of a bound value; a null has no type of its own.
    fn cast(self, may_be_null: bool, dialect: SqlDialect) -> Option<&'static str> {
        match (dialect, self) {
            // SQLite values carry their own types, and a cast to DATE would turn the value into a number. MySQL converts each
            // value to the type that it is compared with.
            (SqlDialect::Sqlite | SqlDialect::MySql, _) => None,
            (_, Self::Date) => Some("DATE"),
            (SqlDialect::DataFusion, Self::Timestamp) => Some("TIMESTAMP"),
            (_, Self::String) if may_be_null => Some("VARCHAR"),
            (_, Self::Integer) if may_be_null => Some("BIGINT"),
            (_, Self::Number) if may_be_null => Some("DOUBLE PRECISION"),
            (_, Self::Boolean) if may_be_null => Some("BOOLEAN"),
            (SqlDialect::Postgres, Self::Timestamp) if may_be_null => Some("TIMESTAMPTZ"),
            _ => None,
        }
    }

    fn sample_value(self) -> Value {
        match self {
            Self::String => json!("a"),
            Self::Integer => json!(1),
            Self::Number => json!(1.5),
            Self::Boolean => json!(true),
            Self::Date => json!("2000-01-01"),
            Self::Timestamp => json!("2000-01-01T00:00:00Z"),
        }
    }
}

impl DeclaredInput {
    /// A required parameter.
    pub fn new(name: impl Into<String>, kind: InputKind) -> Self {
        let (description, default, ask, constraints) = (None, None, None, Map::new());
        Self { name: name.into(), kind, description, default, required: true, ask, constraints }
    }

    /// The JSON Schema.
    pub fn schema(&self) -> Value {
        let mut schema = match &self.kind {
            InputKind::Scalar(scalar) => scalar.schema(),
            InputKind::List(scalar) => {
                json!({"type": "array", "items": scalar.schema(), "minItems": 1, "maxItems": LIST_VALUES_MAX})
            }
            InputKind::Identifier(allowed) => json!({"type": "string", "enum": allowed}),
        };
        if let Some(members) = schema.as_object_mut() {
            members.extend(self.constraints.clone());
            members.extend(self.model_description().map(|text| ("description".to_owned(), text.into())));
            members.extend(self.default.clone().map(|value| ("default".to_owned(), value)));
        }
        schema
    }

    fn model_description(&self) -> Option<String> {
        match (&self.description, &self.ask) {
            (Some(description), Some(_)) => Some(format!("{description}; {OMITTED_NOTE}")),
            (None, Some(_)) => Some(OMITTED_NOTE.to_owned()),
            (description, None) => description.clone(),
        }
    }

    /// Whether a call without it is rejected.
    pub fn must_be_given(&self) -> bool {
        self.is_never_null() && self.ask.is_none()
    }

    /// Whether it always has a value when its tool runs.
    pub(super) fn is_never_null(&self) -> bool {
        self.required && self.default.is_none()
    }

    fn may_be_null(&self) -> bool {
        !self.required && self.default.is_none()
    }

    /// The argument, else the default, else null.
    pub fn value<'a>(&'a self, arguments: &'a Map<String, Value>) -> &'a Value {
        arguments.get(&self.name).or(self.default.as_ref()).unwrap_or(&Value::Null)
    }

    /// The replacement for `:name` in SQL of `dialect`.
    ///
    /// # Errors
    /// `InvalidArguments` for a value that cannot be bound, or an identifier that is not allowed.
    pub fn bind(&self, value: &Value, dialect: SqlDialect) -> Result<TemplateValue, Error> {
        match (&self.kind, value) {
            (InputKind::Identifier(allowed), Value::String(name)) if allowed.contains(name) => {
                Ok(TemplateValue::Identifier(name.clone()))
            }
            (InputKind::Identifier(allowed), _) => {
                let message = format!("{} must be one of the allowed names", self.name);
                Err(Error::new(ErrorKind::InvalidArguments, message).with_choices(allowed.iter().cloned()))
            }
            (InputKind::List(scalar), value) => {
                let values = match value {
                    Value::Null => None,
                    Value::Array(values) => {
                        Some(values.iter().map(Parameter::from_json).collect::<Result<Vec<_>, _>>()?)
                    }
                    single => Some(vec![Parameter::from_json(single)?]),
                };
                Ok(TemplateValue::List { values, cast: scalar.cast(self.may_be_null(), dialect) })
            }
            (InputKind::Scalar(scalar), value) => Ok(TemplateValue::Value {
                value: Parameter::from_json(value)?,
                cast: scalar.cast(self.may_be_null(), dialect),
            }),
        }
    }

    /// Sample values to prepare a statement; all allowed identifiers are included.
    pub(super) fn sample_values(&self) -> Vec<Value> {
        let first_choice = || Some(self.constraints.get("enum")?.as_array()?.first()?.clone());
        let sample =
            |scalar: ScalarType| self.default.clone().or_else(first_choice).unwrap_or_else(|| scalar.sample_value());
        match &self.kind {
            InputKind::Scalar(scalar) => vec![sample(*scalar)],
            InputKind::List(scalar) => vec![self.default.clone().unwrap_or_else(|| json!([scalar.sample_value()]))],
            InputKind::Identifier(allowed) => allowed.iter().map(|name| json!(name)).collect(),
        }
    }
}

/// The object schema with the members `inputs` and `further`.
pub(super) fn object_schema(inputs: &[DeclaredInput], further: Map<String, Value>) -> Value {
    let mut properties: Map<String, Value> = inputs.iter().map(|input| (input.name.clone(), input.schema())).collect();
    properties.extend(further);
    let required: Vec<&str> =
        inputs.iter().filter(|input| input.must_be_given()).map(|input| input.name.as_str()).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = json!(false);
    schema
}
