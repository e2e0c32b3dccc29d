//! What the caller may do: read what the catalogs tell it of, and nothing else.

use datafusion::common::{Result, ScalarValue, exec_err};

use super::function::{number_of, text_of};
use super::objects::{Objects, Table};
use super::{oid, reference, system};

const OF_TABLES: &[&str] = &["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"];
const OF_SCHEMAS: &[&str] = &["USAGE", "CREATE"];
const OF_DATABASES: &[&str] = &["CONNECT", "CREATE", "TEMPORARY", "TEMP"];

pub(super) fn of_table(objects: &Objects, args: &[ScalarValue]) -> Result<ScalarValue> {
    let (args, may) = split(objects, args, 2, OF_TABLES)?;
    Ok(ScalarValue::Boolean(table(objects, args)?.map(|_| may)))
}

pub(super) fn of_column(objects: &Objects, args: &[ScalarValue]) -> Result<ScalarValue> {
    let (args, may) = split(objects, args, 3, OF_TABLES)?;
    let Some(table) = table(objects, args)? else { return Ok(ScalarValue::Boolean(None)) };
    let found = match number_of(args.get(1)) {
        Some(position) => {
            let index = usize::try_from(position).ok().and_then(|position| position.checked_sub(1));
            index.is_some_and(|index| index < table.columns.len())
        }
        None => {
            let name = text_of(args.get(1));
            if !table.columns.iter().any(|field| field.name() == name) {
                return exec_err!("column \"{name}\" of relation \"{}\" does not exist", table.name);
            }
            true
        }
    };
    Ok(ScalarValue::Boolean(found.then_some(may)))
}

pub(super) fn of_schema(objects: &Objects, args: &[ScalarValue]) -> Result<ScalarValue> {
    let (args, may) = split(objects, args, 2, OF_SCHEMAS)?;
    let found = match reference::given_oid(args) {
        Some(oid) => objects.schemas.values().any(|known| *known == oid),
        None => reference::schema(objects, text_of(args.first())).map(|_| true)?,
    };
    Ok(ScalarValue::Boolean(found.then_some(may)))
}

pub(super) fn of_database(objects: &Objects, args: &[ScalarValue]) -> Result<ScalarValue> {
    let (args, may) = split(objects, args, 2, OF_DATABASES)?;
    let found = match reference::given_oid(args) {
        Some(oid) => oid == oid::DATABASE,
        None if text_of(args.first()) == objects.database => true,
        None => return exec_err!("database \"{}\" does not exist", text_of(args.first())),
    };
    Ok(ScalarValue::Boolean(found.then_some(may)))
}

fn table<'a>(objects: &'a Objects, args: &[ScalarValue]) -> Result<Option<&'a Table>> {
    if let Some(oid) = reference::given_oid(args) {
        return Ok(objects.by_oid(oid));
    }
    let name = text_of(args.first());
    match objects.by_name(name) {
        Some(table) => Ok(Some(table)),
        None => exec_err!("relation \"{name}\" does not exist; to_regclass('{name}') gives NULL then"),
    }
}

/// The arguments without the user, which may stand before them, and whether one of the privileges that come last is one
/// that the caller has. With the user there are more arguments than `without_user`.
fn split<'a>(
    objects: &Objects,
    args: &'a [ScalarValue],
    without_user: usize,
    known: &[&str],
) -> Result<(&'a [ScalarValue], bool)> {
    let args = if args.len() > without_user {
        let user = match reference::given_oid(args) {
            Some(oid) => oid,
            None => reference::role(objects, text_of(args.first()))?,
        };
        if user != system::USER {
            return exec_err!("the privileges of other users are not known; leave the user out");
        }
        &args[1..]
    } else {
        args
    };
    let mut may = false;
    for privilege in text_of(args.last()).split(',') {
        let privilege = privilege.trim().to_uppercase();
        let (name, grants) = match privilege.strip_suffix(" WITH GRANT OPTION") {
            Some(name) => (name, true),
            None => (privilege.as_str(), false),
        };
        if !known.contains(&name) {
            return exec_err!("unrecognized privilege type: \"{privilege}\"; write one of {}", known.join(", "));
        }
        may |= !grants && matches!(name, "SELECT" | "USAGE" | "CONNECT");
    }
    Ok((args, may))
}
