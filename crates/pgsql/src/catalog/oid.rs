//! The numbers by which the catalogs name things, and names as the catalogs' functions read and write them.

use std::collections::BTreeSet;

/// Below are PostgreSQL's own numbers.
const FIRST_OF_USERS: u64 = 16_384;
/// An oid has 32 bits. Half of them, so that it is a number for clients that take it for an integer.
const OIDS: u64 = (1 << 31) - FIRST_OF_USERS;

/// The schemas of every database.
pub(super) const SCHEMAS: &[(&str, i64)] = &[("information_schema", 13_215), ("pg_catalog", 11), ("public", 2_200)];

/// The owner of everything.
pub(super) const OWNER: i64 = 10;
/// The one database.
pub(super) const DATABASE: i64 = 5;

/// Relations whose oids clients compare with: the catalogs that others point into.
pub(super) const CATALOGS: &[(&str, i64)] = &[
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

pub(super) fn is_of_every_database(schema: &str) -> bool {
    SCHEMAS.iter().any(|(name, _)| *name == schema)
}

/// The oid of a schema of every database.
pub(super) fn of_schema(name: &str) -> i64 {
    SCHEMAS.iter().find(|(schema, _)| *schema == name).map_or(0, |(_, oid)| *oid)
}

/// The oid of a catalog that others point into.
pub(super) fn of_catalog(name: &str) -> i64 {
    CATALOGS.iter().find(|(catalog, _)| *catalog == name).map_or(0, |(_, oid)| *oid)
}

/// A number for the thing with that name: the same in each statement, so that a client may ask for it by its number.
///
/// It depends on nothing but the name, unless two names meet, and never on what the caller may not see.
pub(super) fn of_name(parts: &[&str], taken: &mut BTreeSet<u64>) -> i64 {
    // FNV-1a, which is the same in every version and process.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    let mut place = hash % OIDS;
    while !taken.insert(place) {
        place = (place + 1) % OIDS;
    }
    i64::try_from(FIRST_OF_USERS + place).unwrap_or_default()
}

/// The parts of a name as PostgreSQL reads it: `Public."Two Words"` is `public` and `Two Words`. None where it is no name.
pub(super) fn identifiers(text: &str) -> Option<Vec<String>> {
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

/// A part in double quotes, of which the first is gone, and what follows it.
fn quoted_part(text: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' if characters.next_if(|(_, next)| *next == '"').is_some() => part.push('"'),
            '"' => return Some((part, &text[place + 1..])),
            other => part.push(other),
        }
    }
    None
}

/// `name` as `quote_ident` writes it; words with a meaning of their own are left as they are.
pub(super) fn quoted(name: &str) -> String {
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
        assert_eq!(identifiers("Public.Flights").unwrap(), ["public", "flights"]);
        assert_eq!(identifiers("\"Two \"\"W.\".x").unwrap(), ["Two \"W.", "x"]);
        assert_eq!(identifiers("a..b"), None);
        assert_eq!(identifiers("\"a"), None);
        assert_eq!(quoted("two words"), "\"two words\"");
        assert_eq!(quoted("flights_2"), "flights_2");
    }

    #[test]
    fn numbers_depend_on_the_name_alone() {
        let (mut one, mut two) = (BTreeSet::new(), BTreeSet::new());
        let before = of_name(&["public", "a"], &mut one);
        of_name(&["public", "other"], &mut two);
        assert_eq!(of_name(&["public", "a"], &mut two), before);
        assert_ne!(of_name(&["public", "a"], &mut two), before);
    }
}
