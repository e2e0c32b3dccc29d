//! The identity of callers in a database server: the role that a call runs as, and the settings with the caller's claims.
//!
//! Both come from the configuration and from verified claims, never from what a caller writes. Roles are always from a
//! list, so a claim can only choose among them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tidegate_core::{AuthMethod, Error, ErrorKind, Principal};

use crate::stable_hash::StableHasher;

/// The role that a call runs as.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RunAs {
    /// The login role of the connection.
    #[default]
    Login,
    /// The same role for all callers.
    Fixed(String),
    /// The role that a claim of the caller names, if it is among `allow`.
    Claim {
        /// The name of the claim.
        claim: String,
        /// The roles that it may name, at least one.
        allow: Vec<String>,
        /// The role of callers without the claim; if there is none, they are refused.
        default: Option<String>,
    },
    /// The role that is mapped to the first role of the configuration that the caller has.
    Roles {
        /// Roles of the configuration and the database roles that they are mapped to, in order of precedence.
        mapping: Vec<(String, String)>,
        /// The role of callers with none of them; if there is none, they are refused.
        default: Option<String>,
    },
}

impl RunAs {
    /// The database role of `principal`; `None` is the login role.
    ///
    /// # Errors
    /// `Forbidden` if it has none.
    pub fn role_of(&self, principal: &Principal) -> Result<Option<&str>, Error> {
        let refused = || {
            Error::new(ErrorKind::Forbidden, "your identity has no role in this database")
                .with_hint("Ask the owner of the node for a key or a token that has one.")
        };
        let role = match self {
            Self::Login => return Ok(None),
            Self::Fixed(role) => Some(role),
            Self::Claim { claim, allow, default } => match resolve_claim(principal, claim) {
                None | Some(Value::Null) => default.as_ref(),
                Some(Value::String(name)) => allow.iter().find(|role| **role == name),
                Some(_) => None,
            },
            Self::Roles { mapping, default } => {
                let mapped = mapping.iter().find(|(role, _)| principal.roles.contains(role)).map(|(_, role)| role);
                mapped.or(default.as_ref())
            }
        };
        role.map(|role| Some(role.as_str())).ok_or_else(refused)
    }

    /// Any suitable role for preparing statements of the owner.
    pub fn any_role(&self) -> Option<&str> {
        match self {
            Self::Login => None,
            Self::Fixed(role) => Some(role),
            Self::Claim { allow, default, .. } => default.as_ref().or(allow.first()).map(String::as_str),
            Self::Roles { mapping, default } => {
                default.as_ref().or(mapping.first().map(|(_, role)| role)).map(String::as_str)
            }
        }
    }

    /// Every role that a call may run as.
    pub fn roles(&self) -> Vec<&str> {
        let mut roles: Vec<&str> = match self {
            Self::Login => Vec::new(),
            Self::Fixed(role) => vec![role],
            Self::Claim { allow, default, .. } => allow.iter().chain(default).map(String::as_str).collect(),
            Self::Roles { mapping, default } => {
                mapping.iter().map(|(_, role)| role).chain(default).map(String::as_str).collect()
            }
        };
        roles.sort_unstable();
        roles.dedup();
        roles
    }
}

/// The settings with the caller's claims: for `current_setting` in policies of PostgreSQL, and variables of MySQL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimSettings {
    /// The setting for all claims as one JSON object, such as `request.jwt.claims`.
    pub combined: Option<String>,
    /// Settings, and the claim of each.
    pub per_claim: BTreeMap<String, String>,
    /// Whether `auth.user_id` and `auth.tenant_id` are set, as handlers inside the database expect. They are empty for
    /// anonymous callers.
    pub for_handlers: bool,
}

/// Claims that differ in each token or each login of the same principal.
const PER_TOKEN_CLAIMS: [&str; 16] = [
    // RFC 7519, section 4.1.
    "exp",
    "iat",
    "jti",
    "nbf",
    // OpenID Connect Core, sections 2, 3.1.3.6 and 3.3.2.11; Front-Channel Logout, section 3.
    "at_hash",
    "auth_time",
    "c_hash",
    "nonce",
    "sid",
    // Microsoft Entra.
    "aio",
    "rh",
    "uti",
    // Keycloak.
    "session_state",
    // Amazon Cognito.
    "event_id",
    "origin_jti",
    // FAPI.
    "s_hash",
];

/// The setting with the name of the caller of a handler.
const USER_SETTING: &str = "auth.user_id";
/// The setting with the tenant of the caller of a handler.
const TENANT_SETTING: &str = "auth.tenant_id";

impl ClaimSettings {
    /// The names of the settings, in the order of [`ClaimSettings::values`].
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let handlers = self.for_handlers.then_some([USER_SETTING, TENANT_SETTING]).into_iter().flatten();
        self.combined.iter().chain(self.per_claim.keys()).map(String::as_str).chain(handlers)
    }

    /// The values of the settings for `principal`; missing claims are empty.
    pub fn values(&self, principal: &Principal) -> Vec<String> {
        self.setting_values(all_claims(principal), principal)
    }

    /// The values without claims of a single token. A claim with its own setting stays, since policies use it by name.
    fn stable_values(&self, principal: &Principal) -> Vec<String> {
        let mut principal = principal.clone();
        // The order of names is arbitrary.
        principal.claims.values_mut().for_each(Value::sort_all_objects);
        let mut all = all_claims(&principal);
        all.retain(|name, _| !PER_TOKEN_CLAIMS.contains(&name.as_str()));
        all.sort_keys();
        self.setting_values(all, &principal)
    }

    fn setting_values(&self, all: Map<String, Value>, principal: &Principal) -> Vec<String> {
        let all = self.combined.as_ref().map(|_| Value::Object(all).to_string());
        let single = self.per_claim.values().map(|claim| match resolve_claim(principal, claim) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
        });
        let handlers = self.for_handlers.then(|| user_and_tenant(principal)).into_iter().flatten();
        // The server does not accept NUL. It is escaped, so that different values stay different.
        all.into_iter().chain(single).chain(handlers).map(|text| text.replace('\0', "\\u0000")).collect()
    }
}

/// A hash of the database identity of `principal`: the same for all its tokens with the same role and settings, and zero
/// if all callers run as the login role.
pub fn identity_fingerprint(run_as: &RunAs, settings: &ClaimSettings, principal: &Principal) -> u64 {
    if *run_as == RunAs::Login && settings.names().next().is_none() {
        return 0;
    }
    let mut hasher = StableHasher::default();
    hasher.add(match run_as.role_of(principal) {
        Ok(Some(role)) => format!("role {role}"),
        Ok(None) => "login".to_owned(),
        Err(_) => "none".to_owned(),
    });
    for (name, value) in settings.names().zip(settings.stable_values(principal)) {
        hasher.add(name);
        hasher.add(value);
    }
    hasher.finish()
}

/// The verified name and tenant of `principal`; empty for anonymous callers.
pub fn user_and_tenant(principal: &Principal) -> [String; 2] {
    match principal.auth_method {
        AuthMethod::Anonymous => [String::new(), String::new()],
        _ => {
            let tenant = resolve_claim(principal, "tenant");
            [principal.subject.clone(), tenant.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()]
        }
    }
}

/// A claim of `principal`. `sub`, `tenant` and `roles` do not depend on a token.
fn resolve_claim(principal: &Principal, name: &str) -> Option<Value> {
    match name {
        "sub" => Some(json!(principal.subject)),
        "tenant" if principal.tenant.is_some() => Some(json!(principal.tenant)),
        "roles" => Some(json!(principal.roles)),
        _ => principal.claims.get(name).cloned(),
    }
}

fn all_claims(principal: &Principal) -> Map<String, Value> {
    let mut claims = principal.claims.clone();
    for name in ["sub", "tenant", "roles"] {
        if let Some(value) = resolve_claim(principal, name) {
            claims.insert(name.to_owned(), value);
        }
    }
    claims
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use tidegate_core::{AuthMethod, Grants};

    use super::*;

    fn caller(claims: Value) -> Principal {
        let mut principal = Principal::new("ann", AuthMethod::Token, Arc::new(Grants::default()));
        principal.claims = claims.as_object().unwrap().clone();
        principal.roles = ["support".to_owned()].into();
        principal
    }

    #[test]
    fn claim_selects_only_allowed_roles() {
        let allow = vec!["reader".to_owned(), "analyst".to_owned()];
        let strict = RunAs::Claim { claim: "db_role".into(), allow: allow.clone(), default: None };
        assert_eq!(strict.role_of(&caller(json!({"db_role": "analyst"}))).unwrap(), Some("analyst"));
        for invalid in
            [json!({}), json!({"db_role": "postgres"}), json!({"db_role": ["reader"]}), json!({"db_role": null})]
        {
            assert_eq!(strict.role_of(&caller(invalid)).unwrap_err().kind(), ErrorKind::Forbidden);
        }
        let lenient = RunAs::Claim { claim: "db_role".into(), allow, default: Some("guest".into()) };
        assert_eq!(lenient.role_of(&caller(json!({}))).unwrap(), Some("guest"));
        assert!(lenient.role_of(&caller(json!({"db_role": "postgres"}))).is_err());
        assert_eq!(lenient.roles(), ["analyst", "guest", "reader"]);
    }

    #[test]
    fn first_matching_role_is_used() {
        let of = vec![("admin".to_owned(), "boss".to_owned()), ("support".to_owned(), "reader".to_owned())];
        let roles = RunAs::Roles { mapping: of, default: None };
        assert_eq!(roles.role_of(&caller(json!({}))).unwrap(), Some("reader"));
        assert!(roles.role_of(&Principal::anonymous()).is_err());
    }

    #[test]
    fn settings_hold_claims_as_text() {
        let settings = ClaimSettings {
            combined: Some("request.jwt.claims".into()),
            per_claim: [("app.tenant".to_owned(), "tenant".to_owned()), ("app.level".to_owned(), "level".to_owned())]
                .into(),
            for_handlers: true,
        };
        let caller = caller(json!({"tenant": "acme", "level": 7}));
        let names = ["request.jwt.claims", "app.level", "app.tenant", "auth.user_id", "auth.tenant_id"];
        assert_eq!(settings.names().collect::<Vec<_>>(), names);
        let all = r#"{"tenant":"acme","level":7,"sub":"ann","roles":["support"]}"#;
        assert_eq!(settings.values(&caller), [all, "7", "acme", "ann", "acme"]);
    }

    #[test]
    fn fingerprint_depends_on_role_and_claims() {
        let first = caller(json!({"level": 7, "team": "a", "exp": 1, "jti": "x"}));
        let later = caller(json!({"jti": "y", "exp": 2, "team": "a", "level": 7}));
        let (other_level, other_team) = (caller(json!({"level": 8, "team": "a"})), caller(json!({"level": 7})));
        let single = [("app.level".to_owned(), "level".to_owned())];
        let of_level = ClaimSettings { per_claim: single.into(), ..ClaimSettings::default() };
        let of_all = ClaimSettings { combined: Some("request.jwt.claims".into()), ..ClaimSettings::default() };
        let of_claim = RunAs::Claim { claim: "team".into(), allow: vec!["a".into()], default: None };
        let nothing = ClaimSettings::default();
        // Whether each distinguishes callers by the level, and by the team.
        for (run_as, settings, by_level, by_team) in [
            (&RunAs::Login, &of_level, true, false),
            (&RunAs::Login, &of_all, true, true),
            (&of_claim, &nothing, false, true),
            (&of_claim, &of_level, true, true),
        ] {
            let fingerprint = |principal| identity_fingerprint(run_as, settings, principal);
            assert_ne!(fingerprint(&first), 0);
            assert_eq!(fingerprint(&first), fingerprint(&later), "{run_as:?} {settings:?}");
            assert_eq!(fingerprint(&first) != fingerprint(&other_level), by_level, "{run_as:?} {settings:?}");
            assert_eq!(fingerprint(&first) != fingerprint(&other_team), by_team, "{run_as:?} {settings:?}");
        }
        // It is written down, and means the same to every version of this program.
        assert_eq!(format!("{:016x}", identity_fingerprint(&RunAs::Login, &of_level, &first)), "4bab8f41cc8c02eb");
        assert_eq!(identity_fingerprint(&RunAs::Login, &nothing, &first), 0);
    }

    #[test]
    fn fingerprint_changes_with_role_or_setting() {
        let ann = caller(json!({"level": 7}));
        let under = |run_as: &RunAs, setting: Option<&str>| {
            let single = setting.map(|setting| (setting.to_owned(), "level".to_owned())).into_iter().collect();
            identity_fingerprint(run_as, &ClaimSettings { per_claim: single, ..ClaimSettings::default() }, &ann)
        };
        let [analyst, reader] = ["analyst", "reader"].map(|role| RunAs::Fixed(role.into()));
        let chosen = RunAs::Claim { claim: "role".into(), allow: vec!["x".into()], default: Some("reader".into()) };
        let fingerprints = [
            under(&RunAs::Login, None),
            under(&analyst, None),
            under(&reader, None),
            under(&reader, Some("app.level")),
            under(&reader, Some("app.rank")),
            under(&RunAs::Login, Some("app.rank")),
        ];
        assert_eq!(BTreeSet::from(fingerprints).len(), fingerprints.len(), "{fingerprints:?}");
        assert_eq!(under(&chosen, None), under(&reader, None), "whoever chose it");
    }

    #[test]
    fn fingerprint_ignores_per_token_claims() {
        let of_all = ClaimSettings { combined: Some("request.jwt.claims".into()), ..ClaimSettings::default() };
        let by_all = |claims: &Value| identity_fingerprint(&RunAs::Login, &of_all, &caller(claims.clone()));
        let first = json!({"scope": "a", "groups": ["x", "y"], "realm": {"roles": {"of": {"a": 1, "b": 2}}, "id": 1}});
        let mut second =
            json!({"realm": {"id": 1, "roles": {"of": {"b": 2, "a": 1}}}, "groups": ["x", "y"], "scope": "a"});
        for name in PER_TOKEN_CLAIMS {
            second[name] = json!(name);
        }
        assert_eq!(by_all(&first), by_all(&second));
        for (name, other) in
            [("scope", json!("b")), ("groups", json!(["y"])), ("realm", json!({})), ("acr", json!("1"))]
        {
            let mut third = second.clone();
            third[name] = other;
            assert_ne!(by_all(&first), by_all(&third), "{name}");
        }
        // What a setting holds by itself counts, and may be an object.
        let single = |claim: &str, claims: &Value| {
            let single = [("app.it".to_owned(), claim.to_owned())].into();
            identity_fingerprint(
                &RunAs::Login,
                &ClaimSettings { per_claim: single, ..ClaimSettings::default() },
                &caller(claims.clone()),
            )
        };
        assert_eq!(single("realm", &first), single("realm", &second));
        assert_ne!(single("sid", &first), single("sid", &second));
        assert_eq!(single("scope", &first), single("scope", &second));
    }

    #[test]
    fn anonymous_caller_has_empty_handler_settings() {
        let settings = ClaimSettings { for_handlers: true, ..ClaimSettings::default() };
        assert_eq!(settings.values(&Principal::anonymous()), ["", ""]);
        assert_eq!(settings.values(&Principal::process_user()), ["owner", ""]);
    }
}
