//! Checks the size of a workbook before it is read.

use std::fs::File;
use std::io::{self, Read};

use zip::ZipArchive;

use super::{NamedFormat, SAVE_AS_ADVICE, SHEET_CELLS_MAX, WORKBOOK_BYTES_MAX, too_large_message, unreadable_message};

/// The part of an `.ods` file that contains its sheets.
const ODS_CONTENT: &str = "content.xml";

/// Unpacks the workbook without keeping the data.
pub(super) fn check_workbook_size(file: &mut File, format: NamedFormat) -> Result<(), String> {
    let mut archive = ZipArchive::new(file).map_err(unreadable_message)?;
    let mut bytes_left = WORKBOOK_BYTES_MAX;
    for index in 0..archive.len() {
        let mut part = archive.by_index(index).map_err(unreadable_message)?.take(bytes_left + 1);
        let is_content = format == NamedFormat::Ods && part.get_ref().name().is_ok_and(|name| name == ODS_CONTENT);
        let bytes = if is_content {
            let mut content = Vec::new();
            let bytes = part.read_to_end(&mut content).map_err(unreadable_message)?;
            if bytes as u64 <= bytes_left && count_ods_cells(&content) > SHEET_CELLS_MAX {
                return Err(too_large_message());
            }
            bytes as u64
        } else {
            io::copy(&mut part, &mut io::sink()).map_err(unreadable_message)?
        };
        if bytes > bytes_left {
            let mebibytes = WORKBOOK_BYTES_MAX >> 20;
            return Err(format!("it is larger than {mebibytes} MiB when unpacked; {SAVE_AS_ADVICE}"));
        }
        bytes_left -= bytes;
    }
    Ok(())
}

/// An upper bound for the number of cells of an `.ods` file: for each row, the position of its last filled cell times
/// the number of repetitions of the row.
fn count_ods_cells(content: &[u8]) -> usize {
    let (mut cells, mut row_repeats, mut column, mut last_filled) = (0_usize, 1, 0_usize, 0);
    for tag in content.split(|byte| *byte == b'<').skip(1) {
        let end = tag.iter().position(|byte| *byte == b'>').unwrap_or(tag.len());
        let tag = &tag[..end];
        if tag.starts_with(b"table:table-row") && !tag.starts_with(b"table:table-rows") {
            (row_repeats, column, last_filled) = (repeat_count(tag, b"number-rows-repeated=\""), 0, 0);
        } else if tag.starts_with(b"table:table-cell") || tag.starts_with(b"table:covered-table-cell") {
            column = column.saturating_add(repeat_count(tag, b"number-columns-repeated=\""));
            let is_filled = tag.last() != Some(&b'/') || find(tag, b"value-type=").is_some();
            if is_filled {
                last_filled = column;
            }
        } else if tag.starts_with(b"/table:table-row") {
            cells = cells.saturating_add(last_filled.saturating_mul(row_repeats));
        }
    }
    cells
}

/// The number after `attribute`; one if the attribute is missing.
fn repeat_count(tag: &[u8], attribute: &[u8]) -> usize {
    let Some(position) = find(tag, attribute) else { return 1 };
    let digits = tag[position + attribute.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0_usize, |number, digit| number.saturating_mul(10).saturating_add(usize::from(digit - b'0')))
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_cells_are_counted() {
        let row = |rows: &str, cells: &str| format!("<table:table-row {rows}>{cells}</table:table-row>");
        let filled =
            r#"<table:table-cell office:value-type="float" office:value="1"><text:p>1</text:p></table:table-cell>"#;
        let empty = r#"<table:table-cell table:number-columns-repeated="16384"/>"#;
        let text = row("", &format!("{filled}{filled}{empty}"));
        assert_eq!(count_ods_cells(text.as_bytes()), 2);
        assert_eq!(count_ods_cells(row(r#"table:number-rows-repeated="1048576""#, empty).as_bytes()), 0);
        let bomb = filled.replace("<table:table-cell", r#"<table:table-cell table:number-columns-repeated="16384""#);
        let bomb = row(r#"table:number-rows-repeated="1048576""#, &bomb);
        assert!(count_ods_cells(bomb.as_bytes()) > SHEET_CELLS_MAX);
    }
}
