//! Names and oids: what PostgreSQL's types `regclass`, `regtype`, `regnamespace` and `regrole` read and write.

use datafusion::common::{Result, ScalarValue, exec_err};

use super::function::{number_of, text, text_of};
use super::objects::{OWNER, Objects};
use super::relation::{INFORMATION_SCHEMA, PG_CATALOG, relation_name};
use super::{oid, system, types};

/// The oid of the relation that `name` means, and its name as a `regclass` is written.
pub(super) fn class(objects: &Objects, name: &str) -> Option<(i64, String)> {
    if let Some(table) = objects.by_name(name) {
        return Some((table.oid, table.qualified_name()));
    }
    let parts = oid::identifiers(name)?;
    let (schema, name) = match parts.as_slice() {
        [name] => (None, name),
        [schema, name] => (Some(schema.as_str()), name),
        _ => return None,
    };
    let full = relation_name(schema, name)?;
    let shown = full.strip_prefix("pg_catalog.").unwrap_or(full);
    Some((oid_of_catalog(full), shown.to_owned()))
}

/// Those that nothing points into have a number of their name's.
fn oid_of_catalog(full: &str) -> i64 {
    let name = full.strip_prefix("pg_catalog.").unwrap_or(full);
    match oid::of_catalog(name) {
        0 => oid::of_name(&[full], &mut std::collections::BTreeSet::new()),
        known => known,
    }
}

pub(super) fn class_oid(objects: &Objects, args: &[ScalarValue]) -> Result<ScalarValue> {
    if let Some(oid) = given_oid(args) {
        return Ok(oid.into());
    }
    let name = text_of(args.first());
    match class(objects, name) {
        Some((oid, _)) => Ok(oid.into()),
        None => exec_err!("relation \"{name}\" does not exist; to_regclass('{name}') gives NULL then"),
    }
}

pub(super) fn class_name(objects: &Objects, args: &[ScalarValue]) -> Result<ScalarValue> {
    let name = text_of(args.first());
    let Some(oid) = given_oid(args) else {
        return match class(objects, name) {
            Some((_, name)) => Ok(text(name)),
            None => exec_err!("relation \"{name}\" does not exist; to_regclass('{name}') gives NULL then"),
        };
    };
    if let Some(table) = objects.by_oid(oid) {
        return Ok(text(table.qualified_name()));
    }
    let catalog = oid::CATALOGS.iter().find(|(_, known)| *known == oid);
    Ok(catalog.map_or_else(|| number(oid), |(name, _)| text(*name)))
}

pub(super) fn type_oid(_: &Objects, args: &[ScalarValue]) -> Result<ScalarValue> {
    match given_oid(args) {
        Some(oid) => Ok(oid.into()),
        None => named_type(args).map(|known| known.oid.into()),
    }
}

pub(super) fn type_name(_: &Objects, args: &[ScalarValue]) -> Result<ScalarValue> {
    match given_oid(args) {
        Some(oid) if types::by_oid(oid).is_none() => Ok(number(oid)),
        Some(oid) => Ok(text(types::format_type(oid, None))),
        None => named_type(args).map(|known| text(&known.sql_name)),
    }
}

fn named_type(args: &[ScalarValue]) -> Result<&'static types::Type> {
    let name = text_of(args.first());
    match types::by_name(name) {
        Some(known) => Ok(known),
        None => exec_err!("type \"{name}\" does not exist; to_regtype('{name}') gives NULL then"),
    }
}

pub(super) fn schema_oid(objects: &Objects, args: &[ScalarValue]) -> Result<ScalarValue> {
    if let Some(oid) = given_oid(args) {
        return Ok(oid.into());
    }
    schema(objects, text_of(args.first())).map(|(_, oid)| oid.into())
}

pub(super) fn schema_name(objects: &Objects, args: &[ScalarValue]) -> Result<ScalarValue> {
    match given_oid(args) {
        Some(oid) => {
            let found = objects.schemas.iter().find(|(_, known)| **known == oid);
            Ok(found.map_or_else(|| number(oid), |(name, _)| text(oid::quoted(name))))
        }
        None => schema(objects, text_of(args.first())).map(|(name, _)| text(oid::quoted(&name))),
    }
}

/// The schema that `name` means, and its oid.
pub(super) fn schema(objects: &Objects, name: &str) -> Result<(String, i64)> {
    let folded = oid::identifiers(name).filter(|parts| parts.len() == 1).and_then(|parts| parts.into_iter().next());
    match folded.as_ref().and_then(|name| objects.schemas.get_key_value(name)) {
        Some((name, oid)) => Ok((name.clone(), *oid)),
        None => exec_err!(
            "schema \"{name}\" does not exist; {PG_CATALOG}.pg_namespace has those that do, beside \
             {INFORMATION_SCHEMA}.schemata"
        ),
    }
}

pub(super) fn role_oid(objects: &Objects, args: &[ScalarValue]) -> Result<ScalarValue> {
    if let Some(oid) = given_oid(args) {
        return Ok(oid.into());
    }
    role(objects, text_of(args.first())).map(Into::into)
}

pub(super) fn role_name(objects: &Objects, args: &[ScalarValue]) -> Result<ScalarValue> {
    let oid = match given_oid(args) {
        Some(oid) => oid,
        None => role(objects, text_of(args.first()))?,
    };
    Ok(match oid {
        oid::OWNER => text(OWNER),
        system::USER => text(oid::quoted(&objects.user)),
        other => number(other),
    })
}

/// The oid of the role called `name`.
pub(super) fn role(objects: &Objects, name: &str) -> Result<i64> {
    match name {
        OWNER => Ok(oid::OWNER),
        name if name.trim_matches('"') == objects.user => Ok(system::USER),
        name => exec_err!("role \"{name}\" does not exist; current_user is the one that does"),
    }
}

/// The oid that is given in place of a name, as a number or as its digits.
pub(super) fn given_oid(args: &[ScalarValue]) -> Option<i64> {
    number_of(args.first()).or_else(|| text_of(args.first()).parse().ok())
}

fn number(oid: i64) -> ScalarValue {
    text(oid.to_string())
}
