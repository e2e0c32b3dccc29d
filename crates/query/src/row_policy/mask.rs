//! Masks: how the values of a column are presented to restricted principals, and the keyed hashes that one of them
//! shows.

use std::sync::LazyLock;

use tidegate_core::HmacSigner;

use super::filter::{PolicyColumn, ValueKind};

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

pub(super) const KEPT_CHARACTERS_MAX: u32 = 1_000;

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
