//! The normal forms of Unicode.

use datafusion::common::{Result, exec_err};
use unicode_normalization::UnicodeNormalization;

use super::function::{Function, Kind};
use super::regexp::optional;
use super::value::{Output, Row};

pub(super) fn functions() -> Vec<Function> {
    vec![
        Function::new(
            "normalize",
            optional(&[Kind::Text, Kind::Text], 1, Kind::Text, |row, output| output.text(&normalized(row)?)),
        ),
        Function::new("is_normalized", optional(&[Kind::Text, Kind::Text], 1, Kind::Boolean, is_normalized)),
    ]
}

fn normalized(row: &Row<'_>) -> Result<String> {
    let text = row.text(0)?;
    let form = if row.len() > 1 { row.text(1)? } else { "NFC" };
    Ok(match form.to_ascii_uppercase().as_str() {
        "NFC" => text.nfc().collect(),
        "NFD" => text.nfd().collect(),
        "NFKC" => text.nfkc().collect(),
        "NFKD" => text.nfkd().collect(),
        _ => return exec_err!("invalid normalization form: {form}; write NFC, NFD, NFKC or NFKD"),
    })
}

fn is_normalized(row: &Row<'_>, output: &mut Output) -> Result<()> {
    output.boolean(normalized(row)? == row.text(0)?)
}
