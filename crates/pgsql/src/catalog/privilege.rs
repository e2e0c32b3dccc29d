//! The caller's privileges: to read the objects in the catalogs, and nothing else.

use datafusion::common::{Result, ScalarValue, exec_err};

use super::function::{as_number, as_text};
use super::objects::{VisibleObjects, VisibleTable};
use super::{oid, pg_catalog, reference};

const TABLE_PRIVILEGES: &[&str] = &["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"];
const SCHEMA_PRIVILEGES: &[&str] = &["USAGE", "CREATE"];
const DATABASE_PRIVILEGES: &[&str] = &["CONNECT", "CREATE", "TEMPORARY", "TEMP"];

pub(super) fn has_table_privilege(objects: &VisibleObjects, args: &[ScalarValue]) -> Result<ScalarValue> {
    let (args, may) = split_user(objects, args, 2, TABLE_PRIVILEGES)?;
    Ok(ScalarValue::Boolean(find_table(objects, args)?.map(|_| may)))
}

pub(super) fn has_column_privilege(objects: &VisibleObjects, args: &[ScalarValue]) -> Result<ScalarValue> {
    let (args, may) = split_user(objects, args, 3, TABLE_PRIVILEGES)?;
    let Some(table) = find_table(objects, args)? else { return Ok(ScalarValue::Boolean(None)) };
    let found = match as_number(args.get(1)) {
        Some(position) => {
            let index = usize::try_from(position).ok().and_then(|position| position.checked_sub(1));
            index.is_some_and(|index| index < table.columns.len())
        }
        None => {
            let name = as_text(args.get(1));
            if !table.columns.iter().any(|field| field.name() == name) {
                return exec_err!("column \"{name}\" of relation \"{}\" does not exist", table.name);
            }
            true
        }
    };
    Ok(ScalarValue::Boolean(found.then_some(may)))
}

pub(super) fn has_schema_privilege(objects: &VisibleObjects, args: &[ScalarValue]) -> Result<ScalarValue> {
    let (args, may) = split_user(objects, args, 2, SCHEMA_PRIVILEGES)?;
    let found = match reference::given_oid(args) {
        Some(oid) => objects.schemas.values().any(|schema| *schema == oid),
        None => reference::resolve_schema(objects, as_text(args.first())).map(|_| true)?,
    };
    Ok(ScalarValue::Boolean(found.then_some(may)))
}

pub(super) fn has_database_privilege(objects: &VisibleObjects, args: &[ScalarValue]) -> Result<ScalarValue> {
    let (args, may) = split_user(objects, args, 2, DATABASE_PRIVILEGES)?;
    let found = match reference::given_oid(args) {
        Some(oid) => oid == oid::DATABASE_OID,
        None if as_text(args.first()) == objects.database => true,
        None => return exec_err!("database \"{}\" does not exist", as_text(args.first())),
    };
    Ok(ScalarValue::Boolean(found.then_some(may)))
}

fn find_table<'a>(objects: &'a VisibleObjects, args: &[ScalarValue]) -> Result<Option<&'a VisibleTable>> {
    if let Some(oid) = reference::given_oid(args) {
        return Ok(objects.by_oid(oid));
    }
    let name = as_text(args.first());
    match objects.by_name(name) {
        Some(table) => Ok(Some(table)),
        None => exec_err!("relation \"{name}\" does not exist; to_regclass('{name}') returns NULL instead"),
    }
}

/// Strips the optional leading user from the arguments, and returns whether the caller has one of the privileges in the
/// last argument. With the user there are more arguments than `without_user`.
fn split_user<'a>(
    objects: &VisibleObjects,
    args: &'a [ScalarValue],
    without_user: usize,
    valid: &[&str],
) -> Result<(&'a [ScalarValue], bool)> {
    let args = if args.len() > without_user {
        let user = match reference::given_oid(args) {
            Some(oid) => oid,
            None => reference::resolve_role(objects, as_text(args.first()))?,
        };
        if user != pg_catalog::USER_OID {
            return exec_err!("the privileges of other users are not available; omit the user");
        }
        &args[1..]
    } else {
        args
    };
    let mut may = false;
    for privilege in as_text(args.last()).split(',') {
        let privilege = privilege.trim().to_uppercase();
        let (name, grants) = match privilege.strip_suffix(" WITH GRANT OPTION") {
            Some(name) => (name, true),
            None => (privilege.as_str(), false),
        };
        if !valid.contains(&name) {
            return exec_err!("unrecognized privilege type: \"{privilege}\"; write one of {}", valid.join(", "));
        }
        may |= !grants && matches!(name, "SELECT" | "USAGE" | "CONNECT");
    }
    Ok((args, may))
}
