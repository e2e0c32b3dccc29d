//! What a principal may reach: the sum of its roles.

use crate::limits::Allowance;
use crate::name_pattern::NamePattern;

/// Which names are allowed. The default allows none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedNames {
    /// Every name.
    Everything,
    /// The names that fit one of these patterns.
    Matching(Vec<NamePattern>),
}

impl AllowedNames {
    /// No name.
    pub const NOTHING: Self = Self::Matching(Vec::new());

    /// The names that fit one of `patterns`; the pattern `*` allows every name.
    pub fn matching<P: Into<String>>(patterns: impl IntoIterator<Item = P>) -> Self {
        let patterns: Vec<NamePattern> = patterns.into_iter().map(NamePattern::new).collect();
        if patterns.iter().any(|pattern| pattern.as_str() == "*") {
            return Self::Everything;
        }
        Self::Matching(patterns)
    }

    /// Whether `name` is allowed.
    pub fn includes(&self, name: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Matching(patterns) => patterns.iter().any(|pattern| pattern.matches(name)),
        }
    }

    /// What this or `other` allows.
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

/// Who holds this access name runs the node: sees and ends everybody's jobs, and may have a call logged whole.
const OPERATOR_ACCESS: &str = "operator";

/// What a principal may reach: the sum of its roles. The default grants nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// Access names it holds; [`crate::Access`] demands them.
    pub access: AllowedNames,
    /// Tools, resources and prompts it may reach, by name.
    pub entries: AllowedNames,
    /// Toolsets whose doors it may enter.
    pub toolsets: AllowedNames,
    /// Databases that it may ask with the tools that take a database's name.
    pub databases: AllowedNames,
    /// How much of the node it may have; where nothing is said, what every principal may have.
    pub limits: Allowance,
}

impl Grants {
    /// Everything there is.
    pub fn everything() -> Self {
        Self {
            access: AllowedNames::Everything,
            entries: AllowedNames::Everything,
            toolsets: AllowedNames::Everything,
            databases: AllowedNames::Everything,
            limits: Allowance::default(),
        }
    }

    /// What is open to everybody as long as nobody has to prove who they are: all but what demands an access name.
    pub fn for_anonymous() -> Self {
        Self { access: AllowedNames::NOTHING, ..Self::everything() }
    }

    /// Whether its holder runs the node.
    pub fn is_operator(&self) -> bool {
        self.access.includes(OPERATOR_ACCESS)
    }

    /// What this or `other` grants.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self {
            access: self.access.or(&other.access),
            entries: self.entries.or(&other.entries),
            toolsets: self.toolsets.or(&other.toolsets),
            databases: self.databases.or(&other.databases),
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
}
