//! Servers of PostgreSQL.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget};
use tidegate_postgres::{
    ClaimSettings, PostgresDatabase, PostgresIngest, PostgresIngestOptions, PostgresOptions, RunAs, TenantIsolation,
};
use tidegate_postgres_handlers::{DatabaseHandlers, HandlerOptions, SchemaName, SchemaNameError};
use tidegate_query::CountedTarget;

use super::kinds::keys_of_kind;
use super::{ConfiguredDatabase, KindParts, Opening, OpeningResult, key_problem};
use crate::config::ingest::engine_tables;
use crate::config::problem::ConfigProblem;
use crate::config::problems::Problems;
use crate::config::quantities::{OneOrMany, SecretText, Size, Time};
use crate::config::types::{
    Config, DatabaseConfig, HandlerSchemaConfig, HandlersConfig, RoleChoice, TableConfig, TenancyConfig,
};
use crate::node_tables::ConnectionPool;

const CONNECTIONS_MAX: usize = 1_000;
/// The messages about a connection and a statement, other than its rows, are smaller.
const MESSAGE_BYTES_MIN: u64 = 64 << 10;
const POLICIES_MESSAGE: &str = "is for files and SQLite; PostgreSQL has row-level security of its own: CREATE POLICY for rows, GRANT for \
                                columns, and role, claims or settings here say who calls";

keys_of_kind! {
    struct PostgresConfig {
        postgres: SecretText,
        role: Option<RoleChoice>,
        claims: Option<String>,
        settings: BTreeMap<String, String>,
        tenancy: TenancyConfig,
        schemas: Option<Vec<String>>,
        strict: bool,
        pgbouncer: bool,
        max_cost: Option<f64>,
        allow_functions: Vec<String>,
        max_message_bytes: Option<Size>,
        handlers: Option<HandlersConfig>,
        connections: Option<usize>,
        connection_timeout: Option<Time>,
        lock_timeout: Option<Time>,
        cache: Option<Time>,
        ingest: Option<OneOrMany>,
        tables: BTreeMap<String, TableConfig>,
    }
    elsewhere { required }
}

impl ConfiguredDatabase for PostgresConfig {
    fn advice(&self, key: &str, _: &DatabaseConfig) -> Option<&'static str> {
        (key == "policies").then_some(POLICIES_MESSAGE)
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
        if let Some(tables) = engine_tables(self.ingest.as_ref(), &self.tables, path)? {
            let ingest = PostgresIngestOptions { tables, ..PostgresIngestOptions::default() };
            let opened = PostgresIngest::open(name, target, ingest_options, ingest);
            let opened = opened.map_err(|error| key_problem(path, "ingest", error))?;
            ingest_target = Some(Arc::new(CountedTarget::new(Arc::new(opened))));
        }
        let connections = Some(ConnectionPool::Postgres(database.clone()));
        Ok((database, KindParts { connections, handlers, target: ingest_target, ..KindParts::default() }))
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
        let target = ConnectTarget::parse(self.postgres.0.expose(), &ConnectEnvironment::from_process());
        let target = target.map_err(|error| problems.add("postgres", error.to_string())).ok();
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
            ingest_tables: self.ingest.clone().map(OneOrMany::into_vec).unwrap_or_default(),
            strict: self.strict,
            handler_schema: handlers.as_ref().map(|handlers| handlers.schema.as_str().to_owned()),
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

/// What the inspection of a server found.
#[derive(Default)]
pub(super) struct Inspection {
    pub(super) problems: Vec<ConfigProblem>,
    pub(super) warnings: Vec<String>,
    /// Set if the server refuses the configured login.
    pub(super) refused_login: Option<ConfigProblem>,
}

/// Whether the server whose keys stand at `path` answers, and what its roles could do beyond reading.
pub(super) async fn inspect(server: &PostgresDatabase, is_strict: bool, path: &str) -> Inspection {
    let inspection = Inspection::default();
    match server.inspect().await {
        Ok(findings) if is_strict => {
            let problem = |finding: String| ConfigProblem::new(format!("{path}.strict"), finding);
            Inspection { problems: findings.iter().map(|finding| problem(finding.to_string())).collect(), ..inspection }
        }
        Ok(findings) => Inspection { warnings: findings.iter().map(ToString::to_string).collect(), ..inspection },
        Err(error) => {
            let reason = error.detail().map_or_else(|| error.to_string(), str::to_owned);
            // The warning has the details of the connection.
            let refused_login = error.is_configuration_fault().then(|| ConfigProblem::new(path, error.message()));
            Inspection { warnings: vec![reason], refused_login, ..inspection }
        }
    }
}

fn to_handler_options(entry: &HandlersConfig) -> Result<HandlerOptions, SchemaNameError> {
    let (schema, writes, exchange_log) = match entry {
        HandlersConfig::Schema(schema) => (schema, false, false),
        HandlersConfig::Options(HandlerSchemaConfig { schema, writes, exchange_log }) => {
            (schema, *writes, *exchange_log)
        }
    };
    Ok(HandlerOptions { schema: SchemaName::parse(schema)?, writes, records_calls: exchange_log })
}

/// The role that calls run as. Of several roles of a caller, the first one in the file counts.
fn to_run_as(role: Option<&RoleChoice>, config: &Config) -> Result<RunAs, String> {
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
