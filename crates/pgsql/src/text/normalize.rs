//! The normal forms of Unicode.

use datafusion::common::{Result, exec_err};
use unicode_normalization::UnicodeNormalization;

use super::function::TextFunction;
use super::regexp_functions::optional;
use super::row_values::{RowArguments, TextOutput};
use super::text_type::TextType;

pub(super) fn functions() -> Vec<TextFunction> {
    vec![
        TextFunction::new(
            "normalize",
            optional(&[TextType::Text, TextType::Text], 1, TextType::Text, |row, output| {
                output.text(&normalized(row)?)
            }),
        ),
        TextFunction::new(
            "is_normalized",
            optional(&[TextType::Text, TextType::Text], 1, TextType::Boolean, is_normalized),
        ),
    ]
}

fn normalized(row: &RowArguments<'_>) -> Result<String> {
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

fn is_normalized(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    output.boolean(normalized(row)? == row.text(0)?)
}
