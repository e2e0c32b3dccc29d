//! API keys in memory, and the check of a presented key.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use chrono::{DateTime, Utc};
use tidegate_core::{AuthMethod, Principal};

use crate::key_file::{KeyFile, KeyFileError};
use crate::roles::Roles;
use crate::secret::ParsedKey;
use crate::secret::{Digest, sha256};

pub(crate) struct ApiKeys(HashMap<String, ApiKey>);

struct ApiKey {
    digest: Digest,
    expires: Option<DateTime<Utc>>,
    principal: Arc<Principal>,
}

impl ApiKeys {
    /// Reads `file`. A role that is not among `roles` grants nothing and is logged.
    pub(crate) fn read(file: &KeyFile, roles: &Roles) -> Result<Self, KeyFileError> {
        let mut keys = HashMap::new();
        let mut unknown: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for entry in file.entries()?.into_iter().filter(|entry| entry.revoked.is_none()) {
            let (known, undefined): (BTreeSet<_>, BTreeSet<_>) =
                entry.roles.into_iter().partition(|name| roles.has(name));
            for role in undefined {
                unknown.entry(role).or_default().push(entry.name.clone());
            }
            // A manual edit can leave the tenant empty. An empty tenant must not turn into "no tenant".
            if entry.tenant.as_deref().is_some_and(|tenant| tenant.trim().is_empty()) {
                tracing::warn!(key = entry.name, "key ignored: its tenant is empty");
                continue;
            }
            let principal = roles.build_principal(entry.name, AuthMethod::Key, known);
            let expires_at = entry.expires.map(Into::into);
            let principal = Principal { tenant: entry.tenant, expires_at, ..principal };
            let key = ApiKey { digest: entry.sha256, expires: entry.expires, principal: Arc::new(principal) };
            keys.insert(entry.id, key);
        }
        for (role, keys) in unknown {
            tracing::warn!(role, ?keys, "keys name an undefined role, which grants nothing");
        }
        Ok(Self(keys))
    }

    pub(crate) fn principal_for(&self, text: &str, now: DateTime<Utc>) -> Option<Arc<Principal>> {
        let parsed_key = ParsedKey::parse(text)?;
        let key = self.0.get(parsed_key.id);
        // Constant time: an unknown id costs as much as a wrong secret, and timing reveals nothing about the secret.
        let expected = key.map_or(Digest::default(), |key| key.digest);
        let is_right = verify_slices_are_equal(&sha256(parsed_key.secret), &expected).is_ok();
        let key = key.filter(|_| is_right)?;
        key.expires.is_none_or(|expires| now < expires).then(|| key.principal.clone())
    }
}
