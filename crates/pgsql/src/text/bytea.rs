//! `bytea`: its literals, functions of bytes, and bytes as text, `encode` and `decode`.

use datafusion::common::{Result, exec_datafusion_err, exec_err};
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::row_function::{RowArguments, TextFunction, TextOutput, TextType};
use crate::byte_format::{from_escaped, from_hex};

pub(super) fn functions() -> Vec<TextFunction> {
    let hash = |name, run| TextFunction::single(name, &[TextType::ByteLiteral], TextType::Bytes, run);
    let byte = TextFunction::single;
    vec![
        hash("sha224", |row, output| output.bytes(&Sha224::digest(row.bytes(0)?))),
        hash("sha256", |row, output| output.bytes(&Sha256::digest(row.bytes(0)?))),
        hash("sha384", |row, output| output.bytes(&Sha384::digest(row.bytes(0)?))),
        hash("sha512", |row, output| output.bytes(&Sha512::digest(row.bytes(0)?))),
        byte("get_byte", &[TextType::ByteLiteral, TextType::Int], TextType::Int, get_byte),
        byte("set_byte", &[TextType::ByteLiteral, TextType::Int, TextType::Int], TextType::Bytes, set_byte),
        byte("get_bit", &[TextType::ByteLiteral, TextType::BigInt], TextType::Int, get_bit),
        byte("set_bit", &[TextType::ByteLiteral, TextType::BigInt, TextType::Int], TextType::Bytes, set_bit),
        byte("bit_count", &[TextType::Bytes], TextType::BigInt, |row, output| {
            output.integer(row.bytes(0)?.iter().map(|byte| i64::from(byte.count_ones())).sum())
        }),
        byte("convert_from", &[TextType::ByteLiteral, TextType::Text], TextType::Text, convert_from),
        byte("convert_to", &[TextType::Text, TextType::Text], TextType::Bytes, convert_to),
        byte("bytea_concat*", &[TextType::ByteLiteral, TextType::ByteLiteral], TextType::Bytes, |row, output| {
            output.bytes(&[row.bytes(0)?, row.bytes(1)?].concat())
        }),
    ]
}

fn check_index(position: i64, length: usize) -> Result<usize> {
    let index = usize::try_from(position).ok().filter(|index| *index < length);
    index.ok_or_else(|| exec_datafusion_err!("index {position} out of valid range, 0..{}", length as i64 - 1))
}

fn get_byte(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let bytes = row.bytes(0)?;
    output.integer(i64::from(bytes[check_index(row.bigint(1)?, bytes.len())?]))
}

fn set_byte(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let mut bytes = row.bytes(0)?.into_owned();
    let index = check_index(row.bigint(1)?, bytes.len())?;
    bytes[index] = (row.bigint(2)? & 0xff) as u8;
    output.bytes(&bytes)
}

fn get_bit(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let bytes = row.bytes(0)?;
    let index = check_index(row.bigint(1)?, bytes.len() * 8)?;
    output.integer(i64::from(bytes[index / 8] >> (index % 8) & 1))
}

fn set_bit(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let mut bytes = row.bytes(0)?.into_owned();
    let index = check_index(row.bigint(1)?, bytes.len() * 8)?;
    let bit = 1 << (index % 8);
    match row.bigint(2)? {
        0 => bytes[index / 8] &= !bit,
        1 => bytes[index / 8] |= bit,
        _ => return exec_err!("new bit must be 0 or 1"),
    }
    output.bytes(&bytes)
}

fn check_encoding(name: &str) -> Result<()> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    if plain.eq_ignore_ascii_case("utf8") || plain.eq_ignore_ascii_case("unicode") {
        return Ok(());
    }
    exec_err!("the encoding \"{name}\" is not available; write 'UTF8'")
}

fn convert_from(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    check_encoding(row.text(1)?)?;
    let bytes = row.bytes(0)?;
    let text = std::str::from_utf8(&bytes).ok().filter(|text| !text.contains('\0'));
    output.text(text.ok_or_else(|| exec_datafusion_err!("invalid byte sequence for encoding \"UTF8\""))?)
}

fn convert_to(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    check_encoding(row.text(1)?)?;
    output.bytes(row.text(0)?.as_bytes())
}

/// Characters of a line of base64.
const LINE_CHARACTERS: usize = 76;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encoding_functions() -> Vec<TextFunction> {
    vec![
        TextFunction::single("encode", &[TextType::ByteLiteral, TextType::Text], TextType::Text, encode),
        TextFunction::single("decode", &[TextType::Text, TextType::Text], TextType::Bytes, decode),
    ]
}

fn unknown_format_error<T>(format: &str) -> Result<T> {
    exec_err!("unrecognized encoding: \"{format}\"; write 'hex', 'base64' or 'escape'")
}

fn encode(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let bytes = row.bytes(0)?;
    match row.text(1)?.to_ascii_lowercase().as_str() {
        "hex" => output.text(&hex::encode(&bytes)),
        "base64" => output.text(&to_base64(&bytes)),
        "escape" => output.text(&to_escaped(&bytes)),
        other => unknown_format_error(other),
    }
}

fn decode(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let text = row.text(0)?;
    match row.text(1)?.to_ascii_lowercase().as_str() {
        "hex" => output.bytes(&from_hex(text.as_bytes())?),
        "base64" => output.bytes(&from_base64(text)?),
        "escape" => output.bytes(&from_escaped(text.as_bytes())?),
        other => unknown_format_error(other),
    }
}

fn to_escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            0 | 0x80.. => text.push_str(&format!("\\{byte:03o}")),
            b'\\' => text.push_str("\\\\"),
            _ => text.push(char::from(*byte)),
        }
    }
    text
}

fn to_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 4 / 3 + bytes.len() / 57 + 4);
    let mut line = 0;
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for index in 0..4 {
            let symbol = if index > chunk.len() { b'=' } else { LETTERS[(bits >> (18 - 6 * index) & 63) as usize] };
            text.push(char::from(symbol));
        }
        line += 4;
        if line >= LINE_CHARACTERS {
            text.push('\n');
            line = 0;
        }
    }
    text
}

fn from_base64(text: &str) -> Result<Vec<u8>> {
    let (mut bytes, mut bits, mut count, mut padding) = (Vec::new(), 0_u32, 0, 0);
    for byte in text.bytes() {
        let value = match byte {
            b' ' | b'\t' | b'\n' | b'\r' => continue,
            b'=' if padding == 0 && count == 2 => {
                padding = 1;
                0
            }
            b'=' if padding < 2 && count == 3 => {
                padding = if padding == 0 { 1 } else { 2 };
                0
            }
            b'=' => return exec_err!("unexpected \"=\" while decoding base64 sequence"),
            _ => {
                let value = LETTERS.iter().position(|symbol| *symbol == byte).filter(|_| padding == 0);
                value.ok_or_else(|| {
                    exec_datafusion_err!("invalid symbol \"{}\" found while decoding base64 sequence", char::from(byte))
                })? as u32
            }
        };
        bits = bits << 6 | value;
        count += 1;
        if count == 4 {
            bytes.extend_from_slice(&[(bits >> 16) as u8, (bits >> 8) as u8, bits as u8][..3 - padding]);
            (bits, count) = (0, 0);
        }
    }
    if count != 0 {
        return exec_err!(
            "invalid base64 end sequence: input data is missing padding, is truncated, or is otherwise corrupted"
        );
    }
    Ok(bytes)
}
