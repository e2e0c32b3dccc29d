//! A JSON document in memory.

use std::cmp::Ordering;

use super::number;

/// A value of `jsonb`.
#[derive(Debug, Clone)]
pub(super) enum JsonValue {
    Null,
    Bool(bool),
    /// Canonical, as [`number::canonicalize`] makes them.
    Number(String),
    Text(String),
    Array(Vec<JsonValue>),
    /// In the order of [`key_order`], each key once.
    Object(Vec<(String, JsonValue)>),
}

/// Compares keys in the order of `jsonb`: by length, then by bytes.
pub(super) fn key_order(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

impl JsonValue {
    /// Builds an object. The last pair of each key remains.
    pub(super) fn object(mut pairs: Vec<(String, Self)>) -> Self {
        pairs.sort_by(|a, b| key_order(&a.0, &b.0));
        pairs.reverse();
        pairs.dedup_by(|next, before| next.0 == before.0);
        // Reversed, the last of equal keys comes last among them, since the sort is stable; it must come first.
        pairs.reverse();
        Self::Object(pairs)
    }

    pub(super) fn is_scalar(&self) -> bool {
        !matches!(self, Self::Array(_) | Self::Object(_))
    }

    /// Returns the value of a key of an object.
    pub(super) fn member(&self, key: &str) -> Option<&Self> {
        let Self::Object(pairs) = self else { return None };
        let index = pairs.binary_search_by(|(name, _)| key_order(name, key)).ok()?;
        Some(&pairs[index].1)
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Text(_) => 1,
            Self::Number(_) => 2,
            Self::Bool(_) => 3,
            Self::Array(_) => 4,
            Self::Object(_) => 5,
        }
    }

    /// Returns the order of `jsonb`. Documents differ from what is within them in that a scalar is like an array of
    /// itself.
    pub(super) fn compare_documents(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Array(items), scalar) if scalar.is_scalar() => items.len().cmp(&1).then(Ordering::Greater),
            (scalar, Self::Array(items)) if scalar.is_scalar() => 1.cmp(&items.len()).then(Ordering::Less),
            _ => self.compare(other),
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Number(a), Self::Number(b)) => number::compare(a, b),
            (Self::Text(a), Self::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Self::Array(a), Self::Array(b)) => {
                let items = || a.iter().zip(b).map(|(a, b)| a.compare(b)).find(|order| order.is_ne());
                a.len().cmp(&b.len()).then_with(|| items().unwrap_or(Ordering::Equal))
            }
            (Self::Object(a), Self::Object(b)) => {
                let pair = |((a_key, a), (b_key, b)): (&(String, Self), &(String, Self))| {
                    a_key.as_bytes().cmp(b_key.as_bytes()).then_with(|| a.compare(b))
                };
                let pairs = || a.iter().zip(b).map(pair).find(|order| order.is_ne());
                a.len().cmp(&b.len()).then_with(|| pairs().unwrap_or(Ordering::Equal))
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }

    pub(super) fn equals(&self, other: &Self) -> bool {
        self.compare(other).is_eq()
    }

    /// Computes `self @> other`.
    pub(super) fn contains_document(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array(items), scalar) if scalar.is_scalar() => items.iter().any(|item| item.equals(scalar)),
            _ => self.contains(other),
        }
    }

    fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Object(_), Self::Object(pairs)) => {
                pairs.iter().all(|(key, value)| self.member(key).is_some_and(|own| own.contains(value)))
            }
            (Self::Array(items), Self::Array(others)) => {
                others.iter().all(|other| items.iter().any(|item| item.contains(other)))
            }
            (a, b) if a.is_scalar() && b.is_scalar() => a.equals(b),
            _ => false,
        }
    }

    /// Computes `self ? key`.
    pub(super) fn has_key(&self, key: &str) -> bool {
        match self {
            Self::Object(_) => self.member(key).is_some(),
            Self::Array(items) => items.iter().any(|item| matches!(item, Self::Text(text) if text == key)),
            Self::Text(text) => text == key,
            _ => false,
        }
    }

    /// Removes the members that are null.
    pub(super) fn strip_nulls(self) -> Self {
        match self {
            Self::Array(items) => Self::Array(items.into_iter().map(Self::strip_nulls).collect()),
            Self::Object(pairs) => {
                let pairs = pairs.into_iter().filter(|(_, value)| !matches!(value, Self::Null));
                Self::Object(pairs.map(|(key, value)| (key, value.strip_nulls())).collect())
            }
            scalar => scalar,
        }
    }
}
