//! The oids of objects, and how the catalog functions parse and write names.

use std::collections::BTreeSet;

/// The first oid that is not PostgreSQL's own.
const FIRST_USER_OID: u64 = 16_384;
/// The number of oids to assign. Only half of the 32 bits are used, for clients that read an oid as a signed integer.
const OID_COUNT: u64 = (1 << 31) - FIRST_USER_OID;

/// The schemas of every database.
pub(super) const SCHEMA_OIDS: &[(&str, i64)] = &[("information_schema", 13_215), ("pg_catalog", 11), ("public", 2_200)];

/// The owner of everything.
pub(super) const OWNER_OID: i64 = 10;
/// The one database.
pub(super) const DATABASE_OID: i64 = 5;

/// Relations whose oids clients compare with: the catalogs that others point into.
pub(super) const CATALOG_OIDS: &[(&str, i64)] = &[
    ("pg_attrdef", 2_604),
    ("pg_attribute", 1_249),
    ("pg_authid", 1_260),
    ("pg_class", 1_259),
    ("pg_constraint", 2_606),
    ("pg_database", 1_262),
    ("pg_description", 2_609),
    ("pg_index", 2_610),
    ("pg_namespace", 2_615),
    ("pg_proc", 1_255),
    ("pg_rewrite", 2_618),
    ("pg_trigger", 2_620),
    ("pg_type", 1_247),
];

pub(super) fn is_builtin_schema(schema: &str) -> bool {
    SCHEMA_OIDS.iter().any(|(name, _)| *name == schema)
}

/// Returns the oid of a schema of every database.
pub(super) fn builtin_schema_oid(name: &str) -> i64 {
    SCHEMA_OIDS.iter().find(|(schema, _)| *schema == name).map_or(0, |(_, oid)| *oid)
}

/// Returns the oid of a catalog that others point into.
pub(super) fn builtin_catalog_oid(name: &str) -> i64 {
    CATALOG_OIDS.iter().find(|(catalog, _)| *catalog == name).map_or(0, |(_, oid)| *oid)
}

/// Assigns an oid to the object with this name. It is the same in each statement, so a client may look the object up by
/// it.
///
/// It depends only on the name, unless two names collide, and never on objects that the caller may not see.
pub(super) fn assign_oid(parts: &[&str], used: &mut BTreeSet<u64>) -> i64 {
    // FNV-1a is the same in every version and process.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    let mut position = hash % OID_COUNT;
    while !used.insert(position) {
        position = (position + 1) % OID_COUNT;
    }
    i64::try_from(FIRST_USER_OID + position).unwrap_or_default()
}

/// Parses the parts of a name as PostgreSQL does: `Public."Two Words"` is `public` and `Two Words`. Returns `None` if
/// it is not a name.
pub(super) fn parse_identifiers(text: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_part(quoted)?,
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                (rest[..end].trim().to_lowercase(), &rest[end..])
            }
        };
        if part.is_empty() {
            return None;
        }
        parts.push(part);
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.trim().is_empty() => return Some(parts),
            None => return None,
        }
    }
}

/// Parses a quoted part after its first quote. Returns the part and the remaining text.
fn quoted_part(text: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((position, character)) = characters.next() {
        match character {
            '"' if characters.next_if(|(_, next)| *next == '"').is_some() => part.push('"'),
            '"' => return Some((part, &text[position + 1..])),
            other => part.push(other),
        }
    }
    None
}

/// Quotes `name` as `quote_ident` does, but leaves keywords unquoted.
pub(super) fn quote_identifier(name: &str) -> String {
    let starts_well = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
    let is_plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_';
    if starts_well && name.chars().all(is_plain) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_postgresql_reads_them() {
        assert_eq!(parse_identifiers("Public.Flights").unwrap(), ["public", "flights"]);
        assert_eq!(parse_identifiers("\"Two \"\"W.\".x").unwrap(), ["Two \"W.", "x"]);
        assert_eq!(parse_identifiers("a..b"), None);
        assert_eq!(parse_identifiers("\"a"), None);
        assert_eq!(quote_identifier("two words"), "\"two words\"");
        assert_eq!(quote_identifier("flights_2"), "flights_2");
    }

    #[test]
    fn numbers_depend_on_the_name_alone() {
        let (mut one, mut two) = (BTreeSet::new(), BTreeSet::new());
        let before = assign_oid(&["public", "a"], &mut one);
        assign_oid(&["public", "other"], &mut two);
        assert_eq!(assign_oid(&["public", "a"], &mut two), before);
        assert_ne!(assign_oid(&["public", "a"], &mut two), before);
    }
}
