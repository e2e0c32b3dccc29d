//! Workbooks that are encrypted with a password, and others in the container of old Office programs, a compound file.
//!
//! An encrypted `.xlsx` file is no archive, but a compound file with the archive in its stream `EncryptedPackage`. Only the
//! marks of encryption are looked for: nothing of the container is trusted.

use std::fs::File;
use std::io::{self, Read, Seek};

use memchr::memmem;

const COMPOUND_FILE_MAGIC: &[u8] = b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1";
/// The name of the stream in UTF-16, as the directory of a compound file has it.
const ENCRYPTED_PACKAGE: &[u8] = b"E\0n\0c\0r\0y\0p\0t\0e\0d\0P\0a\0c\0k\0a\0g\0e\0";
/// The beginning of the record BOF of the globals of a workbook (MS-XLS 2.4.21).
const WORKBOOK_BEGIN: &[u8] = b"\x09\x08\x10\0\0\x06\x05\0";
/// The bytes of that record.
const WORKBOOK_BEGIN_BYTES: usize = 20;
/// An empty record WriteProtect, which may stand before the next one (MS-XLS 2.4.349).
const WRITE_PROTECT: &[u8] = b"\x86\0\0\0";
/// The type of the record FilePass (MS-XLS 2.4.117).
const FILE_PASS: &[u8] = b"\x2F\0";

const PIECE_BYTES: usize = 1 << 20;
/// No mark is longer.
const OVERLAP_BYTES: usize = 64;

/// The refusal of a workbook that is encrypted.
pub(super) const ENCRYPTED: &str =
    "it is encrypted with a password; open it in a spreadsheet program, and save it without a password";

/// Why a workbook in a compound file is not read. Nothing if `file` is none.
pub(super) fn compound_file_refusal(file: &mut File) -> io::Result<Option<&'static str>> {
    let mut piece = Vec::new();
    file.by_ref().take(COMPOUND_FILE_MAGIC.len() as u64).read_to_end(&mut piece)?;
    if piece != COMPOUND_FILE_MAGIC {
        file.rewind()?;
        return Ok(None);
    }
    loop {
        piece = piece.split_off(piece.len().saturating_sub(OVERLAP_BYTES));
        let read = file.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        if is_marked_as_encrypted(&piece) {
            return Ok(Some(ENCRYPTED));
        }
        if read == 0 {
            return Ok(Some(
                "it has the format of workbooks before Excel 2007 (.xls), whatever its name is; save it as .xlsx, .ods or \
                 .csv",
            ));
        }
    }
}

fn is_marked_as_encrypted(piece: &[u8]) -> bool {
    let has_file_pass = |begin: usize| {
        let records = piece.get(begin + WORKBOOK_BEGIN_BYTES..).unwrap_or_default();
        records.strip_prefix(WRITE_PROTECT).unwrap_or(records).starts_with(FILE_PASS)
    };
    memmem::find(piece, ENCRYPTED_PACKAGE).is_some() || memmem::find_iter(piece, WORKBOOK_BEGIN).any(has_file_pass)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn refusal(bytes: &[u8]) -> Option<&'static str> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        compound_file_refusal(&mut file).unwrap()
    }

    #[test]
    fn marks_of_encryption_are_found_wherever_they_are() {
        let compound = |gap: usize, mark: &[u8]| {
            [COMPOUND_FILE_MAGIC, vec![7_u8; gap].as_slice(), mark, b".....".as_slice()].concat()
        };
        let begin = |next: &[u8]| [WORKBOOK_BEGIN, vec![0_u8; WORKBOOK_BEGIN_BYTES - 8].as_slice(), next].concat();
        let (pass, protected) = (begin(b"\x2F\0\x36\0"), begin(b"\x86\0\0\0\x2F\0"));
        for gap in [0, 504, PIECE_BYTES - 50, PIECE_BYTES - 10] {
            for mark in [ENCRYPTED_PACKAGE, pass.as_slice(), protected.as_slice()] {
                assert_eq!(refusal(&compound(gap, mark)), Some(ENCRYPTED), "{gap}");
            }
        }
        assert!(refusal(&compound(504, &begin(b"\xE1\0\x02\0"))).unwrap().contains("before Excel 2007"));
        assert_eq!(refusal(b"PK\x03\x04"), None);
        assert_eq!(refusal(b""), None);
    }
}
