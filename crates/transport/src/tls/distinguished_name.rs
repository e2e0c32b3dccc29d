//! Distinguished names as text: `CN=ann,O=Example`.
//!
//! [RFC 4514](https://www.rfc-editor.org/rfc/rfc4514)

use std::fmt::Write as _;

use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// Attribute types with short names, by object identifier: those of the RFC, and two that common tools write too.
const TYPES: [(&str, &str); 11] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.6", "C"),
    ("2.5.4.9", "STREET"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("2.5.4.5", "serialNumber"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

/// `name` as text: its parts from the last to the first, as the RFC specifies.
pub(super) fn format_name(name: &X509Name<'_>) -> String {
    let mut parts: Vec<String> =
        name.iter_rdn().map(|part| part.iter().map(format_attribute).collect::<Vec<_>>().join("+")).collect();
    parts.reverse();
    parts.join(",")
}

fn format_attribute(attribute: &AttributeTypeAndValue<'_>) -> String {
    let identifier = attribute.attr_type().to_id_string();
    let short_name = TYPES.iter().find(|(known, _)| *known == identifier).map(|(_, name)| *name);
    let name = short_name.unwrap_or(&identifier);
    match attribute.as_str() {
        Ok(value) if short_name.is_some() => format!("{name}={}", escape_value(value)),
        // A value without a short name, or one that is not text, is written as its bytes.
        _ => format!("{name}=#{}", encode_hex(attribute)),
    }
}

/// `value` with a backslash before characters that would end it or have another meaning.
fn escape_value(value: &str) -> String {
    let last = value.chars().count().saturating_sub(1);
    let mut text = String::with_capacity(value.len());
    for (position, character) in value.chars().enumerate() {
        let is_edge = (position == 0 && " #".contains(character)) || (position == last && character == ' ');
        if character.is_control() {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                let _ = write!(text, "\\{byte:02X}");
            }
            continue;
        }
        if is_edge || "\"+,;<>\\".contains(character) {
            text.push('\\');
        }
        text.push(character);
    }
    text
}

fn encode_hex(attribute: &AttributeTypeAndValue<'_>) -> String {
    let value = attribute.attr_value();
    let content = value.data;
    let mut bytes = vec![u8::try_from(value.tag().0).unwrap_or_default() | (u8::from(value.header.constructed()) << 5)];
    let length = content.len().to_be_bytes();
    let length: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    match content.len() {
        0..=127 => bytes.push(content.len() as u8),
        // The length has at most eight bytes.
        _ => {
            bytes.push(0x80 | length.len() as u8);
            bytes.extend(length);
        }
    }
    bytes.extend_from_slice(content);
    hex::encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_special_characters() {
        let values = ["Example, Inc.", " a ", "#1", "a+b=c;<d>\"\\", "Grüße", "a\nb\0", " ", ""];
        let escaped = values.map(escape_value).join("|");
        insta::assert_snapshot!(escaped, @r#"Example\, Inc.|\ a\ |\#1|a\+b=c\;\<d\>\"\\|Grüße|a\0Ab\00|\ |"#);
    }
}
