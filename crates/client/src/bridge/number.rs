//! A validator for JSON numbers, character by character.

/// The state of a partial number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberState {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl NumberState {
    /// The state after one more character; `None` if the character cannot follow.
    pub(super) fn next(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Minus, b'0') => Some(Self::Zero),
            (Self::Minus | Self::Whole, b'0'..=b'9') => Some(Self::Whole),
            (Self::Zero | Self::Whole, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Zero | Self::Whole | Self::Fraction, b'e' | b'E') => Some(Self::Exponent),
            (Self::Exponent, b'+' | b'-') => Some(Self::ExponentSign),
            (Self::Exponent | Self::ExponentSign | Self::ExponentDigits, b'0'..=b'9') => Some(Self::ExponentDigits),
            _ => None,
        }
    }

    pub(super) fn may_end(self) -> bool {
        matches!(self, Self::Zero | Self::Whole | Self::Fraction | Self::ExponentDigits)
    }
}
