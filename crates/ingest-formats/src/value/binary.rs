//! Bytes written as text.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::options::BinaryText;

/// Accepts text with and without padding, as encoders differ there. Bits after the last byte must be zero.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Appends the bytes that `text` stands for. Returns whether it is valid.
pub(crate) fn append_binary(text: &str, encoding: BinaryText, bytes: &mut Vec<u8>) -> bool {
    match encoding {
        BinaryText::Base64 => BASE64.decode_vec(text, bytes).is_ok(),
        BinaryText::Hex => append_hex(text.strip_prefix("\\x").unwrap_or(text), bytes),
    }
}

fn append_hex(digits: &str, bytes: &mut Vec<u8>) -> bool {
    let start = bytes.len();
    bytes.resize(start + digits.len() / 2, 0);
    hex::decode_to_slice(digits, &mut bytes[start..]).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &str, encoding: BinaryText) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        append_binary(text, encoding, &mut bytes).then_some(bytes)
    }

    #[test]
    fn bytes_are_exact_or_refused() {
        assert_eq!(decode("AAH/", BinaryText::Base64), Some(vec![0, 1, 255]));
        assert_eq!(decode("AA==", BinaryText::Base64), Some(vec![0]));
        assert_eq!(decode("AA", BinaryText::Base64), Some(vec![0]));
        assert_eq!(decode("AB==", BinaryText::Base64), None);
        assert_eq!(decode("A A=", BinaryText::Base64), None);
        assert_eq!(decode("_-8=", BinaryText::Base64), None);
        assert_eq!(decode("00fFaB", BinaryText::Hex), Some(vec![0, 255, 171]));
        assert_eq!(decode("\\x00", BinaryText::Hex), Some(vec![0]));
        assert_eq!(decode("0", BinaryText::Hex), None);
        assert_eq!(decode("0g", BinaryText::Hex), None);
    }
}
