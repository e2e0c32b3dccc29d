//! The functions of the session: the version, the database, the caller, the schemas, and the settings that clients read.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::new_empty_array;
use arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::relations::{PG_CATALOG, PUBLIC_SCHEMA, VisibleObjects};

/// What a function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionValue {
    Version,
    Schema,
    /// The schemas in which names are looked up.
    Schemas,
    Database,
    User,
    Setting,
}

const FUNCTIONS: &[(&str, SessionValue)] = &[
    ("version", SessionValue::Version),
    ("current_schema", SessionValue::Schema),
    ("current_schemas", SessionValue::Schemas),
    ("current_catalog", SessionValue::Database),
    ("current_database", SessionValue::Database),
    ("current_role", SessionValue::User),
    ("current_user", SessionValue::User),
    ("session_user", SessionValue::User),
    ("user", SessionValue::User),
    ("current_setting", SessionValue::Setting),
];

/// Returns the functions over `objects`.
pub(super) fn functions(objects: &Arc<VisibleObjects>) -> Vec<ScalarUDF> {
    let bind = |(name, value): &(&'static str, SessionValue)| {
        let (name, value, objects) = (*name, *value, objects.clone());
        ScalarUDF::new_from_impl(SessionFunction { name, value, objects, signature: value.signature() })
    };
    FUNCTIONS.iter().map(bind).collect()
}

/// Whether `name`, in lower case, is a function of the session.
pub(super) fn is_function(name: &str) -> bool {
    FUNCTIONS.iter().any(|(other, _)| *other == name)
}

impl SessionValue {
    fn signature(self) -> Signature {
        let by_name = TypeSignature::Exact(vec![DataType::Utf8]);
        let or_null = TypeSignature::Exact(vec![DataType::Utf8, DataType::Boolean]);
        match self {
            Self::Schemas => Signature::exact(vec![DataType::Boolean], Volatility::Stable),
            Self::Setting => Signature::one_of(vec![by_name, or_null], Volatility::Stable),
            Self::Version | Self::Schema | Self::Database | Self::User => Signature::nullary(Volatility::Stable),
        }
    }
}

/// A function over the objects of one caller.
#[derive(Debug)]
struct SessionFunction {
    name: &'static str,
    value: SessionValue,
    objects: Arc<VisibleObjects>,
    signature: Signature,
}

impl SessionFunction {
    /// Computes the result of one row.
    fn value(&self, args: &[ScalarValue]) -> Result<ScalarValue> {
        if args.iter().any(ScalarValue::is_null) {
            return ScalarValue::try_from(self.return_type(&[])?);
        }
        Ok(match self.value {
            SessionValue::Version => format!("PostgreSQL {} (Tidegate {})", VERSION, env!("CARGO_PKG_VERSION")).into(),
            SessionValue::Schema => PUBLIC_SCHEMA.into(),
            SessionValue::Schemas => {
                let implied = matches!(args, [ScalarValue::Boolean(Some(true))]).then_some(PG_CATALOG);
                let schemas = implied.into_iter().chain([PUBLIC_SCHEMA]).map(ScalarValue::from);
                let schemas: Vec<ScalarValue> = schemas.collect();
                ScalarValue::List(ScalarValue::new_list_nullable(&schemas, &DataType::Utf8))
            }
            SessionValue::Database => self.objects.database.as_str().into(),
            SessionValue::User => self.objects.user.as_str().into(),
            SessionValue::Setting => {
                let name = args.first().and_then(|name| name.try_as_str().flatten()).unwrap_or_default();
                match setting_value(name) {
                    None if !matches!(args.get(1), Some(ScalarValue::Boolean(Some(true)))) => {
                        let names = setting_names().join(", ");
                        return exec_err!("unrecognized configuration parameter \"{name}\"; there are {names}");
                    }
                    value => ScalarValue::from(value),
                }
            }
        })
    }
}

impl PartialEq for SessionFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.objects, &other.objects)
    }
}

impl Eq for SessionFunction {}

impl Hash for SessionFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for SessionFunction {
    crate::name_and_signature!(.name);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.value {
            SessionValue::Schemas => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
            _ => DataType::Utf8,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let value = |row: usize| {
            let values = arrays.iter().map(|array| ScalarValue::try_from_array(array, row));
            self.value(&values.collect::<Result<Vec<_>>>()?)
        };
        if is_constant {
            return Ok(ColumnarValue::Scalar(value(0)?));
        }
        if rows == 0 {
            return Ok(ColumnarValue::Array(new_empty_array(args.return_field.data_type())));
        }
        let values = (0..rows).map(value).collect::<Result<Vec<_>>>()?;
        Ok(ColumnarValue::Array(ScalarValue::iter_to_array(values)?))
    }
}

/// The version of PostgreSQL whose SQL dialect is used.
const VERSION: &str = "15.0";

/// All settings and their values, sorted as PostgreSQL sorts them.
const SETTINGS: &[(&str, &str)] = &[
    ("application_name", ""),
    ("block_size", "8192"),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("default_transaction_isolation", "repeatable read"),
    ("default_transaction_read_only", "on"),
    ("extra_float_digits", "1"),
    ("integer_datetimes", "on"),
    ("IntervalStyle", "postgres"),
    ("is_superuser", "off"),
    ("lc_collate", "C"),
    ("lc_ctype", "C"),
    ("max_identifier_length", "63"),
    ("search_path", "\"$user\", public"),
    ("server_encoding", "UTF8"),
    ("server_version", VERSION),
    ("server_version_num", "150000"),
    ("standard_conforming_strings", "on"),
    ("TimeZone", "UTC"),
    ("transaction_isolation", "repeatable read"),
    ("transaction_read_only", "on"),
];

/// Returns the value of the setting `name`, ignoring case.
fn setting_value(name: &str) -> Option<&'static str> {
    SETTINGS.iter().find(|(setting, _)| setting.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
}

/// Returns the names of all settings.
fn setting_names() -> Vec<&'static str> {
    SETTINGS.iter().map(|(name, _)| *name).collect()
}
