//! Texts as arrays.

use datafusion::common::Result;

use super::function::{Overload, TextFunction};
use super::regexp_functions::optional;
use super::row_values::{RowArguments, TextOutput};
use super::text_type::TextType;

pub(super) fn functions() -> Vec<TextFunction> {
    use TextType::{Text, TextList};
    let split = |name| {
        let overloads = optional(&[Text, Text, Text], 2, TextList, to_array);
        TextFunction::new(name, overloads.into_iter().map(Overload::lenient).collect())
    };
    vec![split("string_to_array").with_alias("string_to_list"), split("string_to_table*")]
}

fn to_array(row: &RowArguments<'_>, output: &mut TextOutput) -> Result<()> {
    let Some(text) = row.optional_text(0)? else { return output.null() };
    let null = if row.len() > 2 { row.optional_text(2)? } else { None };
    let element = |part| Some(part).filter(|part| Some(*part) != null);
    if text.is_empty() {
        return output.list([]);
    }
    match row.optional_text(1)? {
        None => output.list(text.char_indices().map(|(at, character)| element(&text[at..at + character.len_utf8()]))),
        Some("") => output.list([element(text)]),
        Some(separator) => output.list(text.split(separator).map(element)),
    }
}
