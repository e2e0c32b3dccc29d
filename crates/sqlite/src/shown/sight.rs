//! How one table is shown, and the views that show it.

use std::collections::BTreeSet;

use rusqlite::Connection;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{Mask, PolicyColumn, TableView, ValueKind};

use super::filter;
use super::ledger::{MASK_PREFIX, Shape};
use super::{Asker, mask_code};
use crate::files::Files;
use crate::tables::{Kind, Table, TableColumn, quoted};

/// How a table is shown.
pub(crate) enum Sight {
    /// Through a view.
    Guarded(Guarded),
    /// Not at all.
    Barred(Error),
}

impl Sight {
    /// The names of the views that may read the table as it is.
    pub(super) fn barriers(&self) -> Vec<String> {
        match self {
            Self::Guarded(guarded) => {
                guarded.open.iter().map(|open| &open.name).chain([&guarded.barrier]).cloned().collect()
            }
            Self::Barred(_) => Vec::new(),
        }
    }
}

/// A table behind a view.
pub(crate) struct Guarded {
    /// The view's name in `temp`.
    pub(crate) shadow: String,
    /// The columns of the table and their masks.
    pub(crate) masks: Vec<(String, Option<Mask>)>,
    /// The name of the view that the one called `shadow` reads.
    pub(super) barrier: String,
    /// Views by their names, in the order in which they are made.
    pub(super) made: Vec<Made>,
    /// The view that is no barrier, for statements that SQLite may merge with it; only before a table.
    pub(super) open: Option<Made>,
}

/// A view of `temp`.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) name: String,
    pub(super) sql: String,
}

/// No rows, of which SQLite expects a million. Joined with itself they are more than the four billion that it counts
/// to, so that, added to a table's, the estimate of a view is the same whatever the table holds, and so are the plans
/// of those who read it. Its column is called as no column of a table is: one of that name would mean either.
fn none(token: &str) -> String {
    format!("WITH RECURSIVE none(\"{token}\") AS (SELECT 1 WHERE 0 UNION ALL SELECT \"{token}\" FROM none)")
}

/// The names that policies may know `table` by; callers see the first.
pub(crate) fn names(files: &Files, table: &Table) -> [String; 3] {
    [files.display(&table.schema, &table.name), format!("{}.{}", table.schema, table.name), table.name.clone()]
}

/// What the values of a column are, by its declared type. SQLite holds nobody to it but where it makes numbers of
/// texts.
pub(crate) fn kind_of(declared: &str) -> ValueKind {
    let declared = declared.to_uppercase();
    let has = |part: &str| declared.contains(part);
    // The order is SQLite's own.
    match () {
        () if has("INT") => ValueKind::Integer,
        () if has("CHAR") || has("CLOB") || has("TEXT") => ValueKind::Text,
        () if has("BLOB") || declared.is_empty() => ValueKind::Any,
        () if has("REAL") || has("FLOA") || has("DOUB") => ValueKind::Number,
        () if has("BOOL") => ValueKind::Boolean,
        () => ValueKind::Any,
    }
}

/// How the table of `shape` is shown to `asker`; none if it is as it is.
pub(super) fn sight(asker: &Asker, files: &Files, shape: &Shape, is_alone: bool, token: &str) -> Option<Sight> {
    let Shape { table, columns, sources } = shape;
    let names = names(files, table);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let of_policy: Vec<PolicyColumn<'_>> =
        columns.iter().map(|column| PolicyColumn { name: &column.name, kind: kind_of(column.declared()) }).collect();
    let view = match asker.policies.view(&names, &of_policy, &asker.principal) {
        Ok(None) => return None,
        Ok(Some(view)) => TableView { masks: with_sources(view.masks, sources), ..view },
        Err(error) => return Some(Sight::Barred(error)),
    };
    Some(guarded(table, columns, &view, files, is_alone, token).map_or_else(Sight::Barred, Sight::Guarded))
}

/// `masks`, where no column is shown that is made of one with a mask, unless it has its own.
fn with_sources(mut masks: Vec<Option<Mask>>, sources: &[BTreeSet<usize>]) -> Vec<Option<Mask>> {
    // Computed columns may be made of each other.
    loop {
        let tells = |position: usize, masks: &[Option<Mask>]| sources[position].iter().any(|one| masks[*one].is_some());
        let found = (0..masks.len()).find(|position| masks[*position].is_none() && tells(*position, &masks));
        match found {
            Some(position) => masks[position] = Some(Mask::Deny),
            None => return masks,
        }
    }
}

fn guarded(
    table: &Table,
    columns: &[TableColumn],
    view: &TableView,
    files: &Files,
    is_alone: bool,
    token: &str,
) -> Result<Guarded, Error> {
    let display = files.display(&table.schema, &table.name);
    let cannot = |reason: String| {
        let message = format!("the table {display:?} cannot be read: its row policy does not fit it");
        Error::new(ErrorKind::Unavailable, message).with_detail(reason)
    };
    let all: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let rows = filter::sql(&view.rows, &all).map_err(cannot)?;
    let mut shown = Vec::new();
    for position in view.shown() {
        let name = quoted(&all[position]);
        shown.push(match view.masks[position] {
            None => name.clone(),
            Some(mask) => match mask_code(mask) {
                None => format!("NULL AS {name}"),
                Some((code, kept)) => {
                    // Cast, so that it is compared as a column of texts is.
                    format!("CAST({MASK_PREFIX}{token}(CAST({name} AS TEXT), {code}, {kept}) AS TEXT) AS {name}")
                }
            },
        });
    }
    if shown.is_empty() {
        return Err(cannot("no column of it is shown".to_owned()));
    }
    let shown = shown.join(", ");
    let shadow = if is_alone { table.name.clone() } else { format!("{}.{}", table.schema, table.name) };
    let (barrier, open) = (format!("{display}#{token}"), format!("{display}##{token}"));
    // A view is read as it was made again, over what is shown of its own tables.
    let again = (table.kind == Kind::View && files.is_single()).then(|| format!("{}#{token}#", table.name));
    let source = match &again {
        Some(again) => format!("temp.{}", quoted(again)),
        None => format!("{}.{}", quoted(&table.schema), quoted(&table.name)),
    };
    let shut = format!(
        "CREATE TEMP VIEW {} AS {none} SELECT {shown} FROM none AS a CROSS JOIN none AS b CROSS JOIN {source} \
         UNION ALL SELECT {shown} FROM {source} WHERE {rows} LIMIT -1 OFFSET 0",
        quoted(&barrier),
        none = none(token)
    );
    let named = format!("CREATE TEMP VIEW {} AS SELECT * FROM temp.{}", quoted(&shadow), quoted(&barrier));
    let through = format!("CREATE TEMP VIEW {} AS SELECT {shown} FROM {source} WHERE {rows}", quoted(&open));
    let made = [Made { name: barrier.clone(), sql: shut }, Made { name: shadow.clone(), sql: named }];
    Ok(Guarded {
        shadow,
        barrier,
        masks: all.into_iter().zip(view.masks.iter().copied()).collect(),
        made: made.to_vec(),
        open: (table.kind == Kind::Table).then_some(Made { name: open, sql: through }),
    })
}

/// The owner's view of that name as one of `temp` called `name`; none if what makes it is not written as SQLite does.
pub(super) fn made_again(connection: &Connection, table: &Table, name: &str) -> Option<Made> {
    let sql = format!("SELECT sql FROM {}.sqlite_schema WHERE type = 'view' AND name = ?1", quoted(&table.schema));
    let sql: String = connection.query_row(&sql, [&table.name], |row| row.get(0)).ok()?;
    let rest = after_name(sql.strip_prefix("CREATE VIEW ")?.trim_start())?;
    Some(Made { name: name.to_owned(), sql: format!("CREATE TEMP VIEW {}{rest}", quoted(name)) })
}

/// What follows the name that `sql` begins with.
fn after_name(sql: &str) -> Option<&str> {
    let first = sql.chars().next()?;
    let end = match first {
        '"' | '`' | '\'' | '[' => {
            let close = if first == '[' { ']' } else { first };
            let mut at = 1;
            loop {
                at += sql[at..].find(close)? + 1;
                // A doubled quote is a part of the name.
                match first != '[' && sql[at..].starts_with(close) {
                    true => at += 1,
                    false => break at,
                }
            }
        }
        _ => sql.find(|letter: char| letter.is_whitespace() || letter == '(')?,
    };
    Some(&sql[end..])
}

/// Why a virtual table without a policy is not read: what its module reads is not known.
pub(super) fn of_unknown_rows(files: &Files, table: &Table) -> Error {
    let name = files.display(&table.schema, &table.name);
    Error::new(
        ErrorKind::Unavailable,
        format!("the table {name:?} cannot be read: no row policy says what is shown of it"),
    )
    .with_hint("Where policies bind the caller, tables of modules need one of their own.")
}

/// Why `table` is not read that fails over what is shown: the caller reads nothing of the `reason`, which may name what
/// is not.
pub(crate) fn not_over_what_is_shown(files: &Files, table: &Table, reason: &str) -> Error {
    let name = files.display(&table.schema, &table.name);
    Error::new(ErrorKind::Unavailable, format!("the table {name:?} cannot be read where row policies apply"))
        .with_detail(format!("reading {name:?} over what row policies show: {reason}"))
}

/// Why a table is not read that a module keeps rows in.
pub(super) fn kept_by_a_module(name: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the table {name:?} cannot be read: another is made of its rows"))
}
