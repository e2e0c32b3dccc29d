//! Detects whether the composite types of a statement changed after the driver loaded them.
//!
//! The driver loads a type once for each connection, and the server does not report changes. Renamed members would keep
//! their old names.

use std::collections::BTreeMap;

use tokio_postgres::types::{Kind, Type};
use tokio_postgres::{Client, Error};

/// The members of types, in order.
const MEMBERS: &str = "
    SELECT t.oid, a.attname::text, a.atttypid
    FROM pg_catalog.pg_type t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.typrelid
    WHERE t.oid = ANY ($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY t.oid, a.attnum";

/// Names and types of the members of each composite type.
type CompositeMembers = BTreeMap<u32, Vec<(String, u32)>>;

/// The composite types of a statement, as the driver loaded them.
#[derive(Debug, Clone)]
pub(crate) struct CompositeTypes(CompositeMembers);

impl CompositeTypes {
    /// The composite types among `types`.
    pub(crate) fn new(types: &[Type]) -> Self {
        let mut known = CompositeMembers::new();
        types.iter().for_each(|of| collect_composites(of, &mut known));
        Self(known)
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the types still have the same members. Queries the server if there are any.
    pub(crate) async fn are_current(&self, client: &Client) -> Result<bool, Error> {
        if self.is_empty() {
            return Ok(true);
        }
        let composites: Vec<u32> = self.0.keys().copied().collect();
        let mut current = CompositeMembers::new();
        for row in client.query_typed(MEMBERS, &[(&composites, Type::OID_ARRAY)]).await? {
            current.entry(row.try_get(0)?).or_default().push((row.try_get(1)?, row.try_get(2)?));
        }
        // A type without members has no rows.
        let known = self.0.iter().filter(|(_, members)| !members.is_empty());
        Ok(known.eq(current.iter()))
    }
}

fn collect_composites(of: &Type, known: &mut CompositeMembers) {
    match of.kind() {
        Kind::Array(inner) | Kind::Domain(inner) | Kind::Range(inner) => collect_composites(inner, known),
        Kind::Composite(fields) => {
            let members = fields.iter().map(|field| (field.name().to_owned(), field.type_().oid()));
            known.insert(of.oid(), members.collect());
            fields.iter().for_each(|field| collect_composites(field.type_(), known));
        }
        _ => {}
    }
}
