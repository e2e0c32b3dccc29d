//! Servers of MySQL and MariaDB.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_mysql::{MySqlDatabase, MySqlIngest, MySqlOptions, MySqlTarget, is_mysql_uri, without_mysql_password};
use tidegate_query::{ClaimSettings, RowPolicies, RunAs};

use super::postgres::to_run_as;
use super::{
    CONNECTIONS_MAX, ConfiguredDatabase, KindParts, MESSAGE_BYTES_MIN, Opening, OpeningResult, ServerKind, UsedKeys,
    key_problem,
};
use crate::config::ingest::engine_tables;
use crate::config::problems::Problems;
use crate::config::quantities::{OneOrMany, SecretText, Size, Time};
use crate::config::types::{MaskConfig, NamedMask, PolicyConfig, RoleChoice, StampsConfig};

/// Name of a database whose address names none.
const DEFAULT_NAME: &str = "mysql";
const HASH_MESSAGE: &str =
    "the mask hash is not for MySQL, because the server would need its key; use deny, null, keep_first or keep_last";

static SERVER: ServerKind = ServerKind {
    key: "mysql",
    title: "MySQL",
    form: "mysql://USER@HOST:PORT/DATABASE",
    is_address: is_mysql_uri,
    without_password: |text| Ok(without_mysql_password(text)),
    database: |text| Ok(parse_target(text)?.database().unwrap_or(DEFAULT_NAME).to_owned()),
    open: |name, text| {
        let opened = MySqlDatabase::open(name, &parse_target(text)?, MySqlOptions::default());
        Ok(Arc::new(opened.map_err(|error| error.to_string())?))
    },
    open_with_handlers: None,
    variables: &["DATABASE_URL", "MYSQL_URL", "MARIADB_URL"],
    comments: &[
        "The password comes from the variable, never from this file.",
        "`tidegate mysql role` prints the SQL of an account that can only read.",
    ],
    password_advice: "Put the address into the variable DATABASE_URL",
};

fn parse_target(text: &str) -> Result<MySqlTarget, String> {
    MySqlTarget::parse(text).map_err(|error| error.to_string())
}

/// A database of MySQL or MariaDB.
#[derive(Deserialize, JsonSchema)]
pub(super) struct MySqlConfig {
    /// Connection string: keywords or a URI, mysql://USER:PASSWORD@HOST:3306/DATABASE?ssl-mode=VERIFY_IDENTITY.
    mysql: SecretText,
    /// Role that calls run as (SET ROLE). Default: that of the login.
    role: Option<RoleChoice>,
    /// Variable with all claims as one JSON object: claims for @claims. Default: none.
    claims: Option<String>,
    /// Variables with one claim each: {app_tenant: tenant} for @app_tenant. A missing claim leaves its variable empty.
    /// Default: none.
    #[serde(default)]
    settings: BTreeMap<String, String>,
    /// Visible databases of the server. Default: that of the connection string; without one, all that the account may
    /// use.
    schemas: Option<Vec<String>>,
    /// Refuses the database if the account or a role can do more than read and write under ingest. Otherwise this is a
    /// warning. Default: false.
    #[serde(default)]
    strict: bool,
    /// Whether /ready fails without this database. Default: true.
    required: Option<bool>,
    /// Maximum size of a row or message, at least 64KiB. A larger one ends its call with an error. Default: 64MiB.
    max_message_bytes: Option<Size>,
    /// Maximum number of connections. Default: 10.
    connections: Option<usize>,
    /// Maximum wait for a connection. Default: 10s.
    connection_timeout: Option<Time>,
    /// Maximum wait for a lock. Default: 5s.
    lock_timeout: Option<Time>,
    /// Maximum time of a statement on the server, with the time in which its rows are read. Default: that of the server.
    timeout: Option<Time>,
    /// How long an answer is reused for the same caller. Default: never.
    cache: Option<Time>,
    /// Row and column policies. Default: none.
    #[serde(default)]
    policies: Vec<PolicyConfig>,
    /// Names of tables that take rows. Roles grant the right to write. Default: none.
    ingest: Option<OneOrMany>,
    /// Options of tables that take rows. Default: none.
    #[serde(default)]
    tables: BTreeMap<String, StampsConfig>,
}

impl ConfiguredDatabase for MySqlConfig {
    fn server() -> Option<&'static ServerKind> {
        Some(&SERVER)
    }

    fn used_keys(&self) -> UsedKeys<'_> {
        UsedKeys {
            policies: &self.policies,
            required: self.required,
            strict: self.strict,
            role: self.role.as_ref(),
            settings: Some(&self.settings),
            ingest_tables: self.ingest.clone().map(OneOrMany::into_vec),
            ..UsedKeys::default()
        }
    }

    fn open(&self, name: &str, path: &str, opening: &mut Opening<'_>) -> OpeningResult {
        let problems = Problems::at_path(path);
        for (index, policy) in self.policies.iter().enumerate() {
            let hashed = policy.columns.iter().filter(|(_, mask)| **mask == MaskConfig::Named(NamedMask::Hash));
            for (column, _) in hashed {
                problems.add(format_args!("policies[{index}].columns.{column}"), HASH_MESSAGE);
            }
        }
        let target = parse_target(self.mysql.0.expose()).map_err(|message| problems.add("mysql", message)).ok();
        let run_as = to_run_as(self.role.as_ref(), &opening.loaded.config);
        let run_as = run_as.map_err(|message| problems.add("role", message)).ok();
        for setting in self.claims.iter().chain(self.settings.keys()).filter(|setting| !is_variable(setting)) {
            let message = format!("{setting} is no variable; its name is made of letters, digits and underscores");
            problems.add(if self.claims.as_ref() == Some(setting) { "claims" } else { "settings" }, message);
        }
        if self.connections.is_some_and(|count| count == 0 || count > CONNECTIONS_MAX) {
            problems.add("connections", format!("must be 1 to {CONNECTIONS_MAX}"));
        }
        if self.max_message_bytes.is_some_and(|size| size.0 < MESSAGE_BYTES_MIN) {
            problems.add("max_message_bytes", "must be at least 64KiB");
        }
        let (Some(target), Some(run_as), true) = (target, run_as, problems.is_empty()) else {
            return Err(problems.into_vec());
        };
        let row_policies = opening.row_policies(&self.policies, path)?;
        let options = self.to_options(run_as, row_policies);
        let opened = MySqlDatabase::open(name, &target, options.clone());
        let database = opened.map_err(|error| key_problem(path, "mysql", error))?;
        let mut ingest_target = None;
        if let Some(tables) = engine_tables(self.used_keys().ingest_tables, &self.tables, path)? {
            let opened = MySqlIngest::open(name, &target, options, tables);
            let opened = opened.map_err(|error| key_problem(path, "ingest", error))?;
            ingest_target = Some(opening.counted(name, opened));
        }
        Ok((Arc::new(database), KindParts { target: ingest_target, ..KindParts::default() }))
    }
}

impl MySqlConfig {
    fn to_options(&self, run_as: RunAs, row_policies: RowPolicies) -> MySqlOptions {
        let default = MySqlOptions::default();
        MySqlOptions {
            run_as,
            claims: ClaimSettings {
                combined: self.claims.clone(),
                per_claim: self.settings.clone(),
                for_handlers: false,
            },
            schemas: self.schemas.clone(),
            ingest_tables: self.used_keys().ingest_tables.unwrap_or_default(),
            strict: self.strict,
            message_bytes_max: self.max_message_bytes.map_or(default.message_bytes_max, |size| size.0 as usize),
            connections_max: self.connections.unwrap_or(default.connections_max),
            acquire_timeout: self.connection_timeout.map_or(default.acquire_timeout, |time| time.0),
            lock_timeout: self.lock_timeout.map_or(default.lock_timeout, |time| time.0),
            statement_timeout: self.timeout.map(|time| time.0),
            cached_answer_max_age: self.cache.map(|time| time.0),
            row_policies,
        }
    }
}

/// Whether `setting` is the name of a variable, without its `@`. The server refuses names of more than 64 characters.
fn is_variable(setting: &str) -> bool {
    (1..=64).contains(&setting.len())
        && setting.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}
