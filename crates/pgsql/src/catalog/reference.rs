//! Conversion between names and oids for PostgreSQL's types `regclass`, `regtype`, `regnamespace` and `regrole`.

use datafusion::common::{Result, ScalarValue, exec_err};

use super::function::{as_number, as_text, text};
use super::objects::{OWNER_NAME, VisibleObjects};
use super::relation::{INFORMATION_SCHEMA, PG_CATALOG, relation_name};
use super::{oid, pg_catalog, types};

/// Returns the oid of the relation that `name` refers to, and its name as a `regclass` prints it.
pub(super) fn resolve_class(objects: &VisibleObjects, name: &str) -> Option<(i64, String)> {
    if let Some(table) = objects.by_name(name) {
        return Some((table.oid, table.qualified_name()));
    }
    let parts = oid::parse_identifiers(name)?;
    let (schema, name) = match parts.as_slice() {
        [name] => (None, name),
        [schema, name] => (Some(schema.as_str()), name),
        _ => return None,
    };
    let full = relation_name(schema, name)?;
    let visible = full.strip_prefix("pg_catalog.").unwrap_or(full);
    Some((oid_of_catalog(full), visible.to_owned()))
}

/// Catalogs that no other catalog refers to get an oid assigned from their name.
fn oid_of_catalog(full: &str) -> i64 {
    let name = full.strip_prefix("pg_catalog.").unwrap_or(full);
    match oid::builtin_catalog_oid(name) {
        0 => oid::assign_oid(&[full], &mut std::collections::BTreeSet::new()),
        other => other,
    }
}

pub(super) fn class_oid(objects: &VisibleObjects, args: &[ScalarValue]) -> Result<ScalarValue> {
    if let Some(oid) = given_oid(args) {
        return Ok(oid.into());
    }
    let name = as_text(args.first());
    match resolve_class(objects, name) {
        Some((oid, _)) => Ok(oid.into()),
        None => exec_err!("relation \"{name}\" does not exist; to_regclass('{name}') returns NULL instead"),
    }
}

pub(super) fn class_name(objects: &VisibleObjects, args: &[ScalarValue]) -> Result<ScalarValue> {
    let name = as_text(args.first());
    let Some(oid) = given_oid(args) else {
        return match resolve_class(objects, name) {
            Some((_, name)) => Ok(text(name)),
            None => exec_err!("relation \"{name}\" does not exist; to_regclass('{name}') returns NULL instead"),
        };
    };
    if let Some(table) = objects.by_oid(oid) {
        return Ok(text(table.qualified_name()));
    }
    let catalog = oid::CATALOG_OIDS.iter().find(|(_, other)| *other == oid);
    Ok(catalog.map_or_else(|| number(oid), |(name, _)| text(*name)))
}

pub(super) fn type_oid(_: &VisibleObjects, args: &[ScalarValue]) -> Result<ScalarValue> {
    match given_oid(args) {
        Some(oid) => Ok(oid.into()),
        None => find_type(args).map(|sql_type| sql_type.oid.into()),
    }
}

pub(super) fn type_name(_: &VisibleObjects, args: &[ScalarValue]) -> Result<ScalarValue> {
    match given_oid(args) {
        Some(oid) if types::find_by_oid(oid).is_none() => Ok(number(oid)),
        Some(oid) => Ok(text(types::format_type(oid, None))),
        None => find_type(args).map(|sql_type| text(&sql_type.sql_name)),
    }
}

fn find_type(args: &[ScalarValue]) -> Result<&'static types::PgType> {
    let name = as_text(args.first());
    match types::find_by_name(name) {
        Some(oid) => Ok(oid),
        None => exec_err!("type \"{name}\" does not exist; to_regtype('{name}') returns NULL instead"),
    }
}

pub(super) fn schema_oid(objects: &VisibleObjects, args: &[ScalarValue]) -> Result<ScalarValue> {
    if let Some(oid) = given_oid(args) {
        return Ok(oid.into());
    }
    resolve_schema(objects, as_text(args.first())).map(|(_, oid)| oid.into())
}

pub(super) fn schema_name(objects: &VisibleObjects, args: &[ScalarValue]) -> Result<ScalarValue> {
    match given_oid(args) {
        Some(oid) => {
            let found = objects.schemas.iter().find(|(_, other)| **other == oid);
            Ok(found.map_or_else(|| number(oid), |(name, _)| text(oid::quote_identifier(name))))
        }
        None => resolve_schema(objects, as_text(args.first())).map(|(name, _)| text(oid::quote_identifier(&name))),
    }
}

/// Returns the name and the oid of the schema that `name` refers to.
pub(super) fn resolve_schema(objects: &VisibleObjects, name: &str) -> Result<(String, i64)> {
    let folded =
        oid::parse_identifiers(name).filter(|parts| parts.len() == 1).and_then(|parts| parts.into_iter().next());
    match folded.as_ref().and_then(|name| objects.schemas.get_key_value(name)) {
        Some((name, oid)) => Ok((name.clone(), *oid)),
        None => exec_err!(
            "schema \"{name}\" does not exist; {PG_CATALOG}.pg_namespace and \
             {INFORMATION_SCHEMA}.schemata list the schemas"
        ),
    }
}

pub(super) fn role_oid(objects: &VisibleObjects, args: &[ScalarValue]) -> Result<ScalarValue> {
    if let Some(oid) = given_oid(args) {
        return Ok(oid.into());
    }
    resolve_role(objects, as_text(args.first())).map(Into::into)
}

pub(super) fn role_name(objects: &VisibleObjects, args: &[ScalarValue]) -> Result<ScalarValue> {
    let oid = match given_oid(args) {
        Some(oid) => oid,
        None => resolve_role(objects, as_text(args.first()))?,
    };
    Ok(match oid {
        oid::OWNER_OID => text(OWNER_NAME),
        pg_catalog::USER_OID => text(oid::quote_identifier(&objects.user)),
        other => number(other),
    })
}

/// Returns the oid of the role `name`.
pub(super) fn resolve_role(objects: &VisibleObjects, name: &str) -> Result<i64> {
    match name {
        OWNER_NAME => Ok(oid::OWNER_OID),
        name if name.trim_matches('"') == objects.user => Ok(pg_catalog::USER_OID),
        name => exec_err!("role \"{name}\" does not exist; the only role is current_user"),
    }
}

/// Returns an oid that is passed instead of a name, as a number or as its digits.
pub(super) fn given_oid(args: &[ScalarValue]) -> Option<i64> {
    as_number(args.first()).or_else(|| as_text(args.first()).parse().ok())
}

fn number(oid: i64) -> ScalarValue {
    text(oid.to_string())
}
