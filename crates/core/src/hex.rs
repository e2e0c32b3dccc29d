//! Hexadecimal digits.

/// `bytes` as lower-case hexadecimal digits.
pub fn to_hex(bytes: impl AsRef<[u8]>) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|half| char::from(DIGITS[usize::from(half)]));
    bytes.as_ref().iter().flat_map(digits).collect()
}
