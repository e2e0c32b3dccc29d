//! `bytea`: its literals, and functions of bytes.

use datafusion::common::{Result, exec_datafusion_err, exec_err};
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::function::TextFunction;
use super::row_values::{RowArguments, TextOutput};
use super::text_type::TextType;

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
