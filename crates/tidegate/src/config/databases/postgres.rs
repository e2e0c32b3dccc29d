//! Servers of PostgreSQL.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_core::PrincipalRule;
use tidegate_engines::{LiveTable, PostgresTable};
use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget, is_connection_string, without_password};
use tidegate_postgres::{
    ClaimSettings, PostgresDatabase, PostgresIngest, PostgresIngestOptions, PostgresOptions, RunAs, TenantIsolation,
};
use tidegate_postgres_handlers::{Compatibility, DatabaseHandlers, HandlerOptions, SchemaName, SchemaNameError};
use tidegate_query::Database;

use super::{
    CONNECTIONS_MAX, ConfiguredDatabase, KindParts, MESSAGE_BYTES_MIN, Opening, OpeningResult, ServerKind, UsedKeys,
    key_problem,
};
use crate::config::ingest::engine_tables;
use crate::config::problem::ConfigProblem;
use crate::config::problems::Problems;
use crate::config::quantities::{OneOrMany, SecretText, Size, Time};
use crate::config::types::{
    CompatibilityConfig, Config, HandlerSchemaConfig, HandlersConfig, RoleChoice, StampsConfig, TenancyConfig,
};

const POLICIES_MESSAGE: &str = "is for files, SQLite and MySQL; PostgreSQL has row-level security of its own: CREATE POLICY for rows, GRANT for \
                                columns, and role, claims or settings here say who calls";

static SERVER: ServerKind = ServerKind {
    key: "postgres",
    title: "PostgreSQL",
    form: "postgres://USER@HOST:PORT/DATABASE",
    is_address: is_connection_string,
    without_password: |text| without_password(text).map_err(|error| error.to_string()),
    database: |text| Ok(parse_target(text)?.database().to_owned()),
    open: |name, text| {
        let opened = PostgresDatabase::open(name, parse_target(text)?, PostgresOptions::default());
        Ok(Arc::new(opened.map_err(|error| error.to_string())?))
    },
    open_with_handlers: Some(open_with_handlers),
    variables: &["DATABASE_URL", "POSTGRES_URL", "POSTGRES_DSN"],
    comments: &[
        "The password comes from the variable, PGPASSWORD or .pgpass, never from this file.",
        "`tidegate pg role` prints the SQL of a role that can only read.",
    ],
    password_advice: "Put the address into the variable DATABASE_URL, or the password into .pgpass",
};

fn open_with_handlers(
    name: String,
    text: &str,
    schema: &SchemaName,
) -> Result<(Arc<dyn Database>, Arc<DatabaseHandlers>), String> {
    let options = PostgresOptions {
        claims: ClaimSettings { for_handlers: true, ..ClaimSettings::default() },
        ..PostgresOptions::default()
    };
    let opened = PostgresDatabase::open(name.as_str(), parse_target(text)?, options);
    let database = Arc::new(opened.map_err(|error| error.to_string())?);
    let options = HandlerOptions {
        schema: schema.clone(),
        writes: false,
        records_calls: false,
        compatibility: Compatibility::None,
    };
    let handlers = DatabaseHandlers::new(&name, database.clone(), options);
    Ok((database, handlers))
}

fn parse_target(text: &str) -> Result<ConnectTarget, String> {
    ConnectTarget::parse(text, &ConnectEnvironment::from_process()).map_err(|error| error.to_string())
}

/// A database of PostgreSQL.
#[derive(Deserialize, JsonSchema)]
pub(super) struct PostgresConfig {
    /// Connection string: a URI or keywords. The service file, PG* variables and .pgpass supply missing parts.
    postgres: SecretText,
    /// Role that calls run as. Default: the login role.
    role: Option<RoleChoice>,
    /// Setting with all claims as one JSON object: request.jwt.claims. Default: none.
    claims: Option<String>,
    /// Settings with one claim each: {app.tenant: tenant}. A missing claim leaves its setting empty. Default: none.
    #[serde(default)]
    settings: BTreeMap<String, String>,
    /// What separates tenants. With settings, SQL that callers write is refused. Default: roles.
    #[serde(default)]
    tenancy: TenancyConfig,
    /// Visible schemas. Default: all that the role may use.
    schemas: Option<Vec<String>>,
    /// Refuses the database if a role can do more than read and append under ingest. Otherwise this is a warning.
    /// Default: false.
    #[serde(default)]
    strict: bool,
    /// Whether connections pass a pooler in transaction mode. Default: false.
    #[serde(default)]
    pgbouncer: bool,
    /// Whether /ready fails without this database. Default: true.
    required: Option<bool>,
    /// Maximum planner cost of SQL that callers write. Default: no limit.
    max_cost: Option<f64>,
    /// VOLATILE or SECURITY DEFINER functions that callers may use, with or without a schema: [reports.total,
    /// uuid_generate_v4]. Default: none.
    #[serde(default)]
    allow_functions: Vec<String>,
    /// Maximum size of a row or message, at least 64KiB. A larger one ends its call with an error. Default: 64MiB.
    max_message_bytes: Option<Size>,
    /// Schema whose handlers are tools, resources and prompts. tidegate pg install creates it. Default: none.
    handlers: Option<HandlersConfig>,
    /// Maximum number of connections. Default: 10.
    connections: Option<usize>,
    /// Maximum wait for a connection. Default: 10s.
    connection_timeout: Option<Time>,
    /// Maximum wait for a lock. Default: 5s.
    lock_timeout: Option<Time>,
    /// How long an answer is reused for the same caller. Default: never.
    cache: Option<Time>,
    /// Names of tables that take rows. Roles grant the right to write. Default: none.
    ingest: Option<OneOrMany>,
    /// Options of tables that take rows. Default: none.
    #[serde(default)]
    tables: BTreeMap<String, StampsConfig>,
}

impl ConfiguredDatabase for PostgresConfig {
    fn advice(key: &str) -> Option<&'static str> {
        (key == "policies").then_some(POLICIES_MESSAGE)
    }

    fn server() -> Option<&'static ServerKind> {
        Some(&SERVER)
    }

    fn used_keys(&self) -> UsedKeys<'_> {
        UsedKeys {
            required: self.required,
            strict: self.strict,
            role: self.role.as_ref(),
            settings: Some(&self.settings),
            ingest_tables: self.ingest.clone().map(OneOrMany::into_vec),
            ..UsedKeys::default()
        }
    }

    fn live_tables(&self, database: &Arc<dyn Database>, readers: &PrincipalRule) -> Vec<Arc<dyn LiveTable>> {
        PostgresTable::all(database, readers)
    }

    fn open(&self, name: &str, path: &str, opening: &mut Opening<'_>) -> OpeningResult {
        let (target, options, handlers) = self.to_options(&opening.loaded.config, path)?;
        let ingest_options = PostgresOptions {
            schemas: options.schemas.clone(),
            acquire_timeout: options.acquire_timeout,
            lock_timeout: options.lock_timeout,
            ..PostgresOptions::default()
        };
        let opened = PostgresDatabase::open(name, target.clone(), options);
        let database = Arc::new(opened.map_err(|error| key_problem(path, "postgres", error))?);
        let handlers = handlers.map(|options| DatabaseHandlers::new(name, database.clone(), options));
        let mut ingest_target = None;
        if let Some(tables) = engine_tables(self.used_keys().ingest_tables, &self.tables, path)? {
            let ingest = PostgresIngestOptions { tables, ..PostgresIngestOptions::default() };
            let opened = PostgresIngest::open(name, target, ingest_options, ingest);
            let opened = opened.map_err(|error| key_problem(path, "ingest", error))?;
            ingest_target = Some(opening.counted(name, opened));
        }
        Ok((database, KindParts { handlers, target: ingest_target, ..KindParts::default() }))
    }
}

impl PostgresConfig {
    /// Where the server is, how it is used, and the options of its handlers.
    fn to_options(
        &self,
        config: &Config,
        path: &str,
    ) -> Result<(ConnectTarget, PostgresOptions, Option<HandlerOptions>), Vec<ConfigProblem>> {
        let problems = Problems::at_path(path);
        let target = parse_target(self.postgres.0.expose()).map_err(|message| problems.add("postgres", message)).ok();
        let run_as = to_run_as(self.role.as_ref(), config).map_err(|message| problems.add("role", message)).ok();
        for setting in self.claims.iter().chain(self.settings.keys()).filter(|setting| !is_custom_setting(setting)) {
            let message = format!("{setting} is no setting of one's own; it needs a prefix and a dot, as app.tenant");
            problems.add(if self.claims.as_ref() == Some(setting) { "claims" } else { "settings" }, message);
        }
        let handlers = match self.handlers.as_ref().map(to_handler_options).transpose() {
            Ok(handlers) => handlers,
            Err(error) => {
                problems.add("handlers", error.to_string());
                None
            }
        };
        if self.connections.is_some_and(|count| count == 0 || count > CONNECTIONS_MAX) {
            problems.add("connections", format!("must be 1 to {CONNECTIONS_MAX}"));
        }
        if self.max_message_bytes.is_some_and(|size| size.0 < MESSAGE_BYTES_MIN) {
            problems.add("max_message_bytes", "must be at least 64KiB");
        }
        let (Some(target), Some(run_as), true) = (target, run_as, problems.is_empty()) else {
            return Err(problems.into_vec());
        };
        let default = PostgresOptions::default();
        let options = PostgresOptions {
            run_as,
            claims: ClaimSettings {
                combined: self.claims.clone(),
                per_claim: self.settings.clone(),
                for_handlers: handlers.is_some(),
            },
            tenancy: match self.tenancy {
                TenancyConfig::Roles => TenantIsolation::Roles,
                TenancyConfig::Settings => TenantIsolation::Settings,
            },
            schemas: self.schemas.clone(),
            ingest_tables: self.used_keys().ingest_tables.unwrap_or_default(),
            strict: self.strict,
            is_behind_pooler: self.pgbouncer,
            allowed_functions: self.allow_functions.clone(),
            message_bytes_max: self.max_message_bytes.map_or(default.message_bytes_max, |size| size.0 as usize),
            max_cost: self.max_cost,
            connections_max: self.connections.unwrap_or(default.connections_max),
            acquire_timeout: self.connection_timeout.map_or(default.acquire_timeout, |time| time.0),
            cached_answer_max_age: self.cache.map(|time| time.0),
            lock_timeout: self.lock_timeout.map_or(default.lock_timeout, |time| time.0),
            idle_timeout: default.idle_timeout,
        };
        Ok((target, options, handlers))
    }
}

fn to_handler_options(entry: &HandlersConfig) -> Result<HandlerOptions, SchemaNameError> {
    let (schema, writes, records_calls, compatibility) = match entry {
        HandlersConfig::Schema(schema) => (schema, false, false, None),
        HandlersConfig::Options(HandlerSchemaConfig { schema, writes, exchange_log, compatibility }) => {
            (schema, *writes, *exchange_log, *compatibility)
        }
    };
    let compatibility = match compatibility {
        Some(CompatibilityConfig::Pgmi) => Compatibility::Pgmi,
        None => Compatibility::None,
    };
    Ok(HandlerOptions { schema: SchemaName::parse(schema)?, writes, records_calls, compatibility })
}

/// The role that calls run as. Of several roles of a caller, the first one in the file counts.
pub(super) fn to_run_as(role: Option<&RoleChoice>, config: &Config) -> Result<RunAs, String> {
    let chosen = match role {
        None => return Ok(RunAs::Login),
        Some(RoleChoice::Fixed(role)) => return Ok(RunAs::Fixed(role.clone())),
        Some(RoleChoice::Chosen(chosen)) => chosen,
    };
    match (&chosen.claim, chosen.by_role.is_empty()) {
        (Some(claim), true) if !chosen.allow.is_empty() => {
            Ok(RunAs::Claim { claim: claim.clone(), allow: chosen.allow.clone(), default: chosen.default.clone() })
        }
        (Some(_), true) => Err("a claim needs allow: the roles that it may name".to_owned()),
        (None, false) => {
            let unknown = chosen.by_role.keys().find(|name| config.roles.iter().all(|role| role.name != **name));
            if let Some(unknown) = unknown {
                return Err(format!("there is no role {unknown} under roles"));
            }
            let mapping = config.roles.iter();
            let mapping = mapping.filter_map(|role| Some((role.name.clone(), chosen.by_role.get(&role.name)?.clone())));
            Ok(RunAs::Roles { mapping: mapping.collect(), default: chosen.default.clone() })
        }
        _ => Err("needs either claim with allow, or by_role".to_owned()),
    }
}

/// Whether the name has a prefix, so that it is not a setting of PostgreSQL itself, such as `role`.
fn is_custom_setting(setting: &str) -> bool {
    let mut parts = setting.split('.');
    let is_word = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && part.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
    };
    parts.clone().count() > 1 && parts.all(is_word)
}
