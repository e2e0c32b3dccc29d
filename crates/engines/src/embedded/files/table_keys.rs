//! Which files the keys under `tables` of a database mean: one rule for the options of all formats.
//!
//! A key is the path of a file with its extension, the name of its table, or a folder that the file is in. If several
//! keys mean a file, the most exact one applies. Only a path makes a table of a file that is none by its name.

use super::file_kind::{NamedFormat, parse_file_name};
use super::names::to_sql_name;
use super::rotated_logs::{log_base_name, log_table_name};
use super::snapshot::extension;

/// How a key names a file, from the most exact way to the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    /// Its path with its extension: `sales/report.csv`, `./console`. The rotated files of a log have that of the file that is
    /// written.
    Path,
    /// The name of its table, or the one that the table has if another file has this name: `sales.report`,
    /// `sales.report_csv`.
    Table,
    /// A folder that it is in, or the name of its table if a file has this name: `sales`, `sales_folder`.
    Folder,
}

/// The keys that mean the file at `location`, the most exact one first. With `is_log`, the file is read as a log.
pub(super) fn keys_of_file(location: &str, is_log: bool) -> impl Iterator<Item = (KeyKind, String)> {
    let short = without_folder_number(location);
    let forms = std::iter::once(location).chain((short != location).then_some(short));
    let paths = forms.clone().flat_map(move |form| [Some(path_key(form)), is_log.then(|| log_path_key(form))]);
    let tables = forms.clone().flat_map(move |form| table_names(form, is_log));
    let folders = forms.flat_map(folder_names);
    let paths = paths.flatten().map(|path| (KeyKind::Path, path));
    paths.chain(tables.map(|table| (KeyKind::Table, table))).chain(folders.map(|folder| (KeyKind::Folder, folder)))
}

/// The key of the file at `location` in advice: the name of its table, or its path if it is no table by its name.
pub(super) fn suggested_key(location: &str) -> String {
    let location = without_folder_number(location);
    match parse_file_name(location) {
        Some((_, kind)) if kind.format == NamedFormat::Log => log_name(location),
        Some((stem, _)) => stem.replace('/', "."),
        None => path_key(location),
    }
}

/// The key that means only the file at `location`, or the log that it belongs to.
pub(super) fn exact_key(location: &str, is_log: bool) -> String {
    if is_log { log_path_key(location) } else { path_key(location) }
}

/// The path as a key. It is no name of a table: one without `/` and without an extension begins with `./`.
fn path_key(location: &str) -> String {
    if location.contains(['/', '.']) { location.to_owned() } else { format!("./{location}") }
}

/// The key of a sheet of the workbook at `location`.
pub(super) fn sheet_key(location: &str, sheet: &str) -> String {
    format!("{}_{sheet}", suggested_key(location))
}

/// The name of the table of the file at `location`, if it is a log.
pub(super) fn log_name(location: &str) -> String {
    let (folder, file_name) = split_folder(without_folder_number(location));
    format!("{}{}", folder.replace('/', "."), log_table_name(file_name))
}

/// The path of the file that is written, of the log that the file at `location` belongs to, as a key.
fn log_path_key(location: &str) -> String {
    let (folder, file_name) = split_folder(location);
    path_key(&format!("{folder}{}", log_base_name(file_name)))
}

/// Whether statements have `key` for the table that is called `name`.
pub(super) fn is_sql_name(key: &str, name: &str) -> bool {
    let plain = |character: char| if character.is_alphanumeric() { character } else { '_' };
    // The comparison of letters spares most names the parser of SQL.
    key.chars().map(plain).eq(name.chars().map(plain)) && key == to_sql_name(name)
}

/// The folder with its last `/`, and the name of the file.
fn split_folder(location: &str) -> (&str, &str) {
    location.split_at(location.rfind('/').map_or(0, |end| end + 1))
}

fn table_names(location: &str, is_log: bool) -> Vec<String> {
    let named = parse_file_name(location);
    let is_named_log = named.is_some_and(|(_, kind)| kind.format == NamedFormat::Log);
    let of_log = (is_log || is_named_log).then(|| (log_name(location), "log".to_owned()));
    let of_file = named.filter(|_| !is_named_log).map(|(stem, _)| (stem.replace('/', "."), extension(location)));
    let with_suffix = |(name, suffix): (String, String)| {
        let suffixed = format!("{name}_{suffix}");
        [name, suffixed]
    };
    of_log.into_iter().chain(of_file).flat_map(with_suffix).collect()
}

fn folder_names(location: &str) -> impl Iterator<Item = String> {
    location.rmatch_indices('/').flat_map(move |(end, _)| {
        let name = location[..end].replace('/', ".");
        let suffixed = format!("{name}_folder");
        [name, suffixed]
    })
}

/// `location` without the folder of the database that it begins with if there are several: `2~sales/`.
fn without_folder_number(location: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match location.split_once('/') {
        Some((folder, rest)) if folder.split_once('~').is_some_and(|(number, _)| is_number(number)) => rest,
        _ => location,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(location: &str, is_log: bool) -> String {
        let keys = keys_of_file(location, is_log).map(|(kind, key)| format!("{kind:?} {key}"));
        keys.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_file_has_its_path_its_table_and_its_folders() {
        assert_eq!(keys("report.csv", false), "Path report.csv, Table report, Table report_csv");
        assert_eq!(
            keys("a/b.c/x.CSV.gz", false),
            "Path a/b.c/x.CSV.gz, Table a.b.c.x, Table a.b.c.x_csv_gz, Folder a.b.c, Folder a.b.c_folder, Folder a, \
             Folder a_folder"
        );
        assert_eq!(keys("app.log.2.gz", true), "Path app.log.2.gz, Path app.log, Table app, Table app_log");
        // They are no tables by their names.
        assert_eq!(keys("app.env", false), "Path app.env");
        assert_eq!(keys("app", false), "Path ./app");
        assert_eq!(
            keys("2~d/x.csv", false),
            "Path 2~d/x.csv, Path x.csv, Table 2~d.x, Table 2~d.x_csv, Table x, Table x_csv, Folder 2~d, \
             Folder 2~d_folder"
        );
    }
}
