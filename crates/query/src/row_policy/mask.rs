//! How a column's values are shown to those who may not see them.

use super::{PolicyColumn, ValueKind};

/// How a column's values are shown. NULL stays NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mask {
    /// The column does not exist.
    Deny,
    /// Every value is NULL, of the column's type.
    Null,
    /// The first 16 hexadecimal digits of the value's keyed hash: equal for equal values. The column is text.
    Hash,
    /// So many of the first characters of the value as text, and a star for each of the others; only stars where the
    /// value has no more characters than that.
    KeepFirst(u32),
    /// As [`Mask::KeepFirst`], of the last characters.
    KeepLast(u32),
}

/// Characters that a mask may keep.
pub(super) const KEPT_CHARACTERS_MAX: u32 = 1_000;

impl Mask {
    /// Whether the column is text, whatever it is below.
    pub fn makes_text(self) -> bool {
        matches!(self, Self::Hash | Self::KeepFirst(_) | Self::KeepLast(_))
    }

    /// What tells less than either: of two masks the stricter, or NULL where they show different things.
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

    /// Whether it can be put on `column`.
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

    /// `text` as the masks of text show it: shortened, or its hash by `key`. None of what shows no text.
    pub fn mask_text(self, text: &str, key: &super::HashKey) -> Option<String> {
        match self {
            Self::Deny | Self::Null => None,
            Self::Hash => Some(key.hash(text)),
            Self::KeepFirst(kept) | Self::KeepLast(kept) => {
                let (length, kept) = (text.chars().count(), usize::try_from(kept).unwrap_or(usize::MAX));
                let is_kept = |position: usize| match self {
                    // What is no longer than that would be shown whole.
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
