//! Extension types in field metadata: the meaning of values that their Arrow type does not express.
//!
//! Engines annotate their fields; formats, output schemas and type names read the annotations. JSON and UUIDs use the
//! canonical [extension types](https://arrow.apache.org/docs/format/CanonicalExtensions.html), which other Arrow
//! writers use too.

use arrow::datatypes::{DataType, Field};

const TYPE_NAME_KEY: &str = "tidegate.type";
const EXTENSION_NAME_KEY: &str = "ARROW:extension:name";
const FOREIGN_TEXT_NAME: &str = "tidegate.foreign_text";

/// The meaning of values beyond their Arrow type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExtensionType {
    /// Text that is a number with all its digits, beyond Arrow's decimals; or `NaN`, `Infinity`, `-Infinity`. In JSON
    /// it is a number; with more than 308 digits before the point it is a string, because readers reject such numbers.
    Number,
    /// Text that is JSON.
    Json,
    /// 16 bytes that are a UUID.
    Uuid,
}

impl ExtensionType {
    const ALL: [Self; 3] = [Self::Number, Self::Json, Self::Uuid];

    /// The extension type of `field`, if its Arrow type supports it.
    pub fn from_field(field: &Field) -> Option<Self> {
        let name = field.metadata().get(EXTENSION_NAME_KEY)?;
        let meaning = Self::ALL.into_iter().find(|meaning| meaning.extension_name() == name)?;
        meaning.supports(field.data_type()).then_some(meaning)
    }

    /// Annotates `field` with this extension type.
    #[must_use]
    pub fn annotate(self, mut field: Field) -> Field {
        field.metadata_mut().insert(EXTENSION_NAME_KEY.to_owned(), self.extension_name().to_owned());
        field
    }

    /// The type name when the database declares none.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::Number => "numeric",
            Self::Json => "json",
            Self::Uuid => "uuid",
        }
    }

    fn extension_name(self) -> &'static str {
        match self {
            Self::Number => "tidegate.number",
            Self::Json => "arrow.json",
            Self::Uuid => "arrow.uuid",
        }
    }

    fn supports(self, data_type: &DataType) -> bool {
        match self {
            Self::Number | Self::Json => data_type.is_string(),
            Self::Uuid => *data_type == DataType::FixedSizeBinary(16),
        }
    }
}

/// Annotates `field` with the type name in the SQL of its database.
#[must_use]
pub fn with_type_name(mut field: Field, name: impl Into<String>) -> Field {
    field.metadata_mut().insert(TYPE_NAME_KEY.to_owned(), name.into());
    field
}

/// `field` without a declared type name.
#[must_use]
pub fn without_type_name(mut field: Field) -> Field {
    field.metadata_mut().remove(TYPE_NAME_KEY);
    field
}

/// Annotates a text that its database compares by the rules of another type. As it is the name of an extension type, a
/// cast to an Arrow type removes it.
#[must_use]
pub fn as_foreign_text(mut field: Field) -> Field {
    field.metadata_mut().insert(EXTENSION_NAME_KEY.to_owned(), FOREIGN_TEXT_NAME.to_owned());
    field
}

/// Whether `field` has the annotation of [`as_foreign_text`].
pub fn is_foreign_text(field: &Field) -> bool {
    field.metadata().get(EXTENSION_NAME_KEY).is_some_and(|name| name == FOREIGN_TEXT_NAME)
}

/// The declared type name of `field`.
pub fn declared_type_name(field: &Field) -> Option<&str> {
    field.metadata().get(TYPE_NAME_KEY).map(String::as_str)
}
