//! What a policy does to a table: filters of rows, with the columns and values that they compare; and masks, which are
//! how the values of a column are presented to restricted principals, with the keyed hashes that one of them shows.

use std::sync::LazyLock;

use chrono::{NaiveDate, NaiveDateTime};
use tidegate_core::HmacSigner;
use tidegate_sql::Comparator;

/// A column that a policy is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyColumn<'a> {
    /// The name, unquoted.
    pub name: &'a str,
    /// The kind of its values.
    pub kind: ValueKind,
    /// The positions of the other columns whose values, or parts of them, can be read from this one. A policy that
    /// masks one of them masks this column too.
    pub reveals: &'a [usize],
}

impl<'a> From<(&'a str, ValueKind)> for PolicyColumn<'a> {
    fn from((name, kind): (&'a str, ValueKind)) -> Self {
        Self { name, kind, reveals: &[] }
    }
}

/// The kind of values of a column, for comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueKind {
    /// Text.
    Text,
    /// Whole numbers.
    Integer,
    /// Other numbers.
    Number,
    /// TRUE and FALSE.
    Boolean,
    /// Dates.
    Date,
    /// Timestamps.
    Timestamp,
    /// Each value has its own type: text and numbers are compared as they are written.
    Any,
    /// Bytes, lists and structures: only tested for NULL.
    Other,
}

/// A literal of the kind of the column that it is compared with.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum RowValue {
    Boolean(bool),
    Integer(i64),
    /// Finite.
    Number(f64),
    Text(String),
    Date(NaiveDate),
    /// In UTC where the column has a time zone.
    Timestamp(NaiveDateTime),
}

/// The filter of visible rows: those for which it is true. A comparison with NULL is unknown, as in SQL. Columns are
/// referenced by position.
#[derive(Debug, Clone, PartialEq)]
pub enum RowFilter {
    /// All of them.
    All(Vec<RowFilter>),
    /// At least one of them.
    Any(Vec<RowFilter>),
    /// The negation.
    Not(Box<RowFilter>),
    /// Compares a column with a literal.
    #[allow(missing_docs, reason = "the names say it")]
    Compare { column: usize, comparator: Comparator, value: RowValue },
    /// Compares two columns of the same kind, or two numeric columns.
    #[allow(missing_docs, reason = "the names say it")]
    CompareColumns { left: usize, comparator: Comparator, right: usize },
    /// Whether the value of a column is in a list, which is not empty.
    #[allow(missing_docs, reason = "the names say it")]
    In { column: usize, values: Vec<RowValue>, is_negated: bool },
    /// Whether a column is NULL.
    #[allow(missing_docs, reason = "the names say it")]
    IsNull { column: usize, is_negated: bool },
    /// Whether text matches a pattern of `%` and `_`, escaped by a backslash. Case-sensitive.
    #[allow(missing_docs, reason = "the names say it")]
    Like { column: usize, pattern: String, is_negated: bool },
    /// A boolean column.
    IsTrue(usize),
    /// All rows or no rows.
    Constant(bool),
}

impl RowFilter {
    /// All of `filters`.
    pub fn all(filters: Vec<Self>) -> Self {
        Self::combine(filters, false, Self::All)
    }

    pub(super) fn any(filters: Vec<Self>) -> Self {
        Self::combine(filters, true, Self::Any)
    }

    /// Combines `filters` by an operator for which one filter that is always `decisive` decides.
    fn combine(mut filters: Vec<Self>, decisive: bool, operator: fn(Vec<Self>) -> Self) -> Self {
        if filters.contains(&Self::Constant(decisive)) {
            return Self::Constant(decisive);
        }
        filters.retain(|filter| *filter != Self::Constant(!decisive));
        match filters.len() {
            0 => Self::Constant(!decisive),
            1 => filters.remove(0),
            _ => operator(filters),
        }
    }
}

impl RowValue {
    /// Whether this value compares with `other`, of the same kind, as `comparator` says.
    pub(super) fn compares(&self, comparator: Comparator, other: &Self) -> bool {
        let order = match (self, other) {
            (Self::Boolean(left), Self::Boolean(right)) => left.partial_cmp(right),
            (Self::Integer(left), Self::Integer(right)) => left.partial_cmp(right),
            (Self::Number(left), Self::Number(right)) => left.partial_cmp(right),
            (Self::Integer(left), Self::Number(right)) => (*left as f64).partial_cmp(right),
            (Self::Number(left), Self::Integer(right)) => left.partial_cmp(&(*right as f64)),
            (Self::Text(left), Self::Text(right)) => left.partial_cmp(right),
            _ => None,
        };
        order.is_some_and(|order| comparator.holds(order))
    }
}

/// How the values of a column are presented. NULL stays NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mask {
    /// The column does not exist.
    Deny,
    /// Every value is NULL, of the column's type.
    Null,
    /// The first 16 hexadecimal digits of the value's keyed hash: equal for equal values. The column is text.
    Hash,
    /// The given number of first characters of the value as text, and a star for each other character; only stars if
    /// the value is not longer.
    KeepFirst(u32),
    /// Like [`Mask::KeepFirst`], with the last characters.
    KeepLast(u32),
}

const KEPT_CHARACTERS_MAX: u32 = 1_000;

impl Mask {
    /// Whether the masked column is text, whatever its original type.
    pub fn makes_text(self) -> bool {
        matches!(self, Self::Hash | Self::KeepFirst(_) | Self::KeepLast(_))
    }

    /// Combines two masks: the stricter one, or NULL where they reveal different things.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Deny, _) | (_, Self::Deny) => Self::Deny,
            (Self::Hash, Self::Hash) => Self::Hash,
            (Self::KeepFirst(one), Self::KeepFirst(two)) => Self::KeepFirst(one.min(two)),
            (Self::KeepLast(one), Self::KeepLast(two)) => Self::KeepLast(one.min(two)),
            _ => Self::Null,
        }
    }

    /// The mask of another column from which values with this mask can be read.
    pub(super) fn for_revealing_column(self) -> Self {
        if self == Self::Deny { Self::Deny } else { Self::Null }
    }

    pub(super) fn check(self, column: &PolicyColumn<'_>) -> Result<(), String> {
        if self.makes_text() && column.kind == ValueKind::Other {
            let name = column.name;
            return Err(format!("the values of {name:?} are not plain; only the masks deny and null apply to it"));
        }
        match self {
            Self::KeepFirst(kept) | Self::KeepLast(kept) if kept > KEPT_CHARACTERS_MAX => {
                Err(format!("at most {KEPT_CHARACTERS_MAX} characters can be kept of {:?}", column.name))
            }
            _ => Ok(()),
        }
    }

    /// Masks `text`: shortened, or hashed with `key`. `None` for masks without text.
    pub fn mask_text(self, text: &str, key: &HashKey) -> Option<String> {
        match self {
            Self::Deny | Self::Null => None,
            Self::Hash => Some(key.hash(text)),
            Self::KeepFirst(kept) | Self::KeepLast(kept) => {
                let (length, kept) = (text.chars().count(), usize::try_from(kept).unwrap_or(usize::MAX));
                let is_kept = |position: usize| match self {
                    // A value that is not longer than that would be completely visible.
                    _ if length <= kept => false,
                    Self::KeepFirst(_) => position < kept,
                    _ => position >= length - kept,
                };
                let visible = |(position, character)| if is_kept(position) { character } else { '*' };
                Some(text.chars().enumerate().map(visible).collect())
            }
        }
    }
}

const HASH_BYTES: usize = 8;

/// The secret key of hashes. Cheap to clone.
#[derive(Clone)]
pub struct HashKey(HmacSigner);

tidegate_core::impl_debug!(HashKey, "***");

impl HashKey {
    /// The key from `secret`: its hashes are the same on every node and after every restart.
    pub fn from_secret(secret: &[u8]) -> Self {
        Self(HmacSigner::new(secret))
    }

    /// The random key of this process, created on first use.
    pub fn process_key() -> Self {
        static OF_PROCESS: LazyLock<HashKey> = LazyLock::new(|| HashKey(HmacSigner::with_random_key()));
        OF_PROCESS.clone()
    }

    /// The hash of `text`: 16 hexadecimal digits.
    pub fn hash(&self, text: &str) -> String {
        let signature = self.0.sign("mask", &[text.as_bytes()]);
        hex::encode(&signature[..HASH_BYTES])
    }
}
