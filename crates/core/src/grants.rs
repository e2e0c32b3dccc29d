//! The rights of a principal: the sum of the rights of its roles.

use crate::limits::LevelLimits;
use crate::name_pattern::NamePattern;

/// A set of names. The default is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedNames {
    /// Every name.
    Everything,
    /// The names that match one of these patterns.
    Matching(Vec<NamePattern>),
}

impl AllowedNames {
    /// No name.
    pub const NOTHING: Self = Self::Matching(Vec::new());

    /// The names that match one of `patterns`; the pattern `*` matches every name.
    pub fn matching<P: Into<String>>(patterns: impl IntoIterator<Item = P>) -> Self {
        let patterns: Vec<NamePattern> = patterns.into_iter().map(NamePattern::new).collect();
        if patterns.iter().any(|pattern| pattern.as_str() == "*") {
            return Self::Everything;
        }
        Self::Matching(patterns)
    }

    /// Whether `name` is in the set.
    pub fn includes(&self, name: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Matching(patterns) => patterns.iter().any(|pattern| pattern.matches(name)),
        }
    }

    /// The union of both sets.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        match (self, other) {
            (Self::Matching(mut patterns), Self::Matching(more)) => {
                patterns.extend(more.iter().filter(|pattern| !patterns.contains(pattern)).cloned().collect::<Vec<_>>());
                Self::Matching(patterns)
            }
            _ => Self::Everything,
        }
    }
}

impl Default for AllowedNames {
    fn default() -> Self {
        Self::NOTHING
    }
}

/// The access name of operators. They can list and cancel the jobs of others, and request full logging of a call.
const OPERATOR_ACCESS: &str = "operator";

/// The rights of a principal: the sum of the rights of its roles. The default grants nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// The access names that it holds; [`crate::Access`] requires them.
    pub access: AllowedNames,
    /// The tools, resources and prompts that it can call, by name.
    pub entries: AllowedNames,
    /// The toolsets whose endpoints it can use.
    pub toolsets: AllowedNames,
    /// The databases that it can query with the tools that take a database's name.
    pub databases: AllowedNames,
    /// The tables that it can write rows to, as `database.table`.
    pub ingest: AllowedNames,
    /// Its limits; for those that no role sets, the limits of every principal apply.
    pub limits: LevelLimits,
}

impl Grants {
    /// All rights.
    pub fn everything() -> Self {
        Self {
            access: AllowedNames::Everything,
            entries: AllowedNames::Everything,
            toolsets: AllowedNames::Everything,
            databases: AllowedNames::Everything,
            ingest: AllowedNames::Everything,
            limits: LevelLimits::default(),
        }
    }

    /// The rights of all callers if authentication is not required: everything except entries that require an access
    /// name. Rows can be written to the tables that the owner declared for it.
    pub fn for_anonymous() -> Self {
        Self { access: AllowedNames::NOTHING, ..Self::everything() }
    }

    /// Whether the principal can write rows to this table of this database.
    pub fn may_ingest(&self, database: &str, table: &str) -> bool {
        self.ingest.includes(&format!("{database}.{table}"))
    }

    /// Whether the principal can write rows to some table of this database, whether or not the table exists.
    pub fn may_ingest_into(&self, database: &str) -> bool {
        match &self.ingest {
            AllowedNames::Everything => true,
            AllowedNames::Matching(patterns) => patterns.iter().any(|pattern| {
                let of_database = pattern.as_str().split_once('.').map(|(of_database, _)| of_database);
                of_database.is_some_and(|pattern| NamePattern::new(pattern).matches(database))
            }),
        }
    }

    /// Whether the principal is an operator of the node.
    pub fn is_operator(&self) -> bool {
        self.access.includes(OPERATOR_ACCESS)
    }

    /// The union of the rights of both.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self {
            access: self.access.or(&other.access),
            entries: self.entries.or(&other.entries),
            toolsets: self.toolsets.or(&other.toolsets),
            databases: self.databases.or(&other.databases),
            ingest: self.ingest.or(&other.ingest),
            limits: self.limits.largest(other.limits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn or_unites_names_of_both() {
        let allowed = AllowedNames::matching(["orders_*"]).or(&AllowedNames::matching(["find_customer", "orders_*"]));
        assert_eq!(allowed, AllowedNames::matching(["orders_*", "find_customer"]));
        assert!(allowed.includes("orders_of") && allowed.includes("find_customer") && !allowed.includes("sql"));
        assert_eq!(allowed.or(&AllowedNames::matching(["*"])), AllowedNames::Everything);
        assert!(!AllowedNames::NOTHING.includes(""));
        assert_eq!(Grants::default().or(&Grants::everything()), Grants::everything());
    }

    #[test]
    fn tables_that_take_rows_are_granted_by_database_and_table() {
        let ingest = AllowedNames::matching(["plant.*", "shop.ev?nts"]);
        let grants = Grants::default().or(&Grants { ingest, ..Grants::default() });
        assert!(grants.may_ingest("plant", "sensors") && grants.may_ingest("shop", "events"));
        assert!(!grants.may_ingest("shop", "orders") && !grants.may_ingest("plants", "sensors"));
        assert!(grants.may_ingest_into("plant") && grants.may_ingest_into("shop") && !grants.may_ingest_into("plan"));
        assert!(!Grants::default().may_ingest_into("plant") && Grants::everything().may_ingest("plant", "sensors"));
    }
}
