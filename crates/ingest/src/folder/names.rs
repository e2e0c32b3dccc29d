//! Names of tables. A name is the name of a folder too, so it must mean the same on every file system.

use tidegate_core::{Error, ErrorKind};
use tidegate_query::REJECTS_SUFFIX;

/// The bytes of a name, without the suffix of rejected rows.
const NAME_BYTES_MAX: usize = 128;
/// Folders in a Delta table. Readers such as Spark search no table in folders with these names, and take the folder
/// around `_delta_log` for a table.
const RESERVED_NAMES: [&str; 2] = ["_delta_log", "_samples"];

/// Checks the name of a table that is created.
pub(crate) fn check_new_table_name(name: &str) -> Result<(), Error> {
    check_table_name(name)?;
    let stem = name.strip_suffix(REJECTS_SUFFIX).unwrap_or(name);
    if RESERVED_NAMES.contains(&table_key(stem).as_str()) {
        let other = stem.trim_start_matches('_');
        let problem = format!("is that of a folder in a Delta table; choose another one, such as {other:?}");
        return Err(Error::new(ErrorKind::InvalidArguments, format!("the table name {name:?} {problem}")));
    }
    Ok(())
}

/// Checks the name of a table that may exist.
pub(crate) fn check_table_name(name: &str) -> Result<(), Error> {
    let stem = name.strip_suffix(REJECTS_SUFFIX).unwrap_or(name);
    let problem = if stem.is_empty() {
        "is empty".to_owned()
    } else if stem.len() > NAME_BYTES_MAX {
        format!("has {} bytes; a name may have {NAME_BYTES_MAX}", stem.len())
    } else if stem.starts_with('-') {
        "begins with \"-\"".to_owned()
    } else if let Some(other) = stem.chars().find(|character| !is_name_character(*character)) {
        format!("contains {other:?}; a name has letters from a to z, digits, \"_\" and \"-\"")
    } else {
        return Ok(());
    };
    let quoted: String = name.chars().take(NAME_BYTES_MAX).collect();
    Err(Error::new(ErrorKind::InvalidArguments, format!("the table name {quoted:?} {problem}")))
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

/// Tables whose names have the same key would share a folder on some file systems.
pub(crate) fn table_key(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// Whether the table has the rejected rows of another one.
pub(crate) fn is_rejects(name: &str) -> bool {
    name.ends_with(REJECTS_SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::{check_new_table_name, check_table_name};

    #[test]
    fn names_that_are_folder_names_everywhere_are_accepted() {
        for name in ["a", "Sensors_2", "2024-01", "_x", "sensors__rejects", &"n".repeat(128)] {
            assert!(check_new_table_name(name).is_ok(), "{name}");
        }
        for name in ["", "..", ".x", "a/b", "a\\b", "a b", "ä", "-rf", "a\0", "__rejects", "a.b", &"n".repeat(129)] {
            assert!(check_table_name(name).is_err(), "{name}");
        }
        for name in ["_delta_log", "_Delta_LOG", "_samples", "_delta_log__rejects"] {
            assert!(check_table_name(name).is_ok() && check_new_table_name(name).is_err(), "{name}");
        }
    }
}
