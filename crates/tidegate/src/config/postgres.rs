//! PostgreSQL databases of the file.

use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget};
use tidegate_postgres::{ClaimSettings, PostgresDatabase, PostgresOptions, RunAs, TenantIsolation};
use tidegate_postgres_handlers::{HandlerOptions, SchemaName, SchemaNameError};

use super::problem::ConfigProblem;
use super::quantities::{OneOrMany, SecretText};
use super::types::{Config, DatabaseConfig, HandlerSchemaConfig, HandlersConfig, RoleChoice, TenancyConfig};

const CONNECTIONS_MAX: usize = 1_000;
/// The messages about a connection and a statement, other than its rows, are smaller.
const MESSAGE_BYTES_MIN: u64 = 64 << 10;

/// Opens the database of `entry` at `path` with the connection string `target`; also returns the options of its handlers.
pub(super) fn open_database(
    entry: &DatabaseConfig,
    target: &SecretText,
    config: &Config,
    path: &str,
) -> Result<(PostgresDatabase, Option<HandlerOptions>), Vec<ConfigProblem>> {
    let mut problems = Vec::new();
    let problem = |member: &str, message: String| ConfigProblem::new(format!("{path}.{member}"), message);
    let target = ConnectTarget::parse(target.0.expose(), &ConnectEnvironment::from_process());
    let target = target.map_err(|error| problems.push(problem("postgres", error.to_string()))).ok();
    let run_as = to_run_as(entry, config).map_err(|message| problems.push(problem("role", message))).ok();
    for setting in entry.claims.iter().chain(entry.settings.keys()).filter(|setting| !is_custom_setting(setting)) {
        let message = format!("{setting} is no setting of one's own; it needs a prefix and a dot, as app.tenant");
        problems.push(problem(if entry.claims.as_ref() == Some(setting) { "claims" } else { "settings" }, message));
    }
    let handlers = match entry.handlers.as_ref().map(to_handler_options).transpose() {
        Ok(handlers) => handlers,
        Err(error) => {
            problems.push(problem("handlers", error.to_string()));
            None
        }
    };
    if entry.connections.is_some_and(|count| count == 0 || count > CONNECTIONS_MAX) {
        problems.push(problem("connections", format!("must be 1 to {CONNECTIONS_MAX}")));
    }
    if entry.max_message_bytes.is_some_and(|size| size.0 < MESSAGE_BYTES_MIN) {
        problems.push(problem("max_message_bytes", "must be at least 64KiB".to_owned()));
    }
    let (Some(target), Some(run_as), true) = (target, run_as, problems.is_empty()) else { return Err(problems) };
    let default = PostgresOptions::default();
    let options = PostgresOptions {
        run_as,
        claims: ClaimSettings {
            combined: entry.claims.clone(),
            per_claim: entry.settings.clone(),
            for_handlers: handlers.is_some(),
        },
        tenancy: match entry.tenancy {
            TenancyConfig::Roles => TenantIsolation::Roles,
            TenancyConfig::Settings => TenantIsolation::Settings,
        },
        schemas: entry.schemas.clone(),
        ingest_tables: entry.ingest.clone().map(OneOrMany::into_vec).unwrap_or_default(),
        strict: entry.strict,
        handler_schema: handlers.as_ref().map(|handlers| handlers.schema.as_str().to_owned()),
        is_behind_pooler: entry.pgbouncer,
        allowed_functions: entry.allow_functions.clone(),
        message_bytes_max: entry.max_message_bytes.map_or(default.message_bytes_max, |size| size.0 as usize),
        max_cost: entry.max_cost,
        connections_max: entry.connections.unwrap_or(default.connections_max),
        acquire_timeout: entry.connection_timeout.map_or(default.acquire_timeout, |time| time.0),
        cached_answer_max_age: entry.cache.map(|time| time.0),
        lock_timeout: entry.lock_timeout.map_or(default.lock_timeout, |time| time.0),
        idle_timeout: default.idle_timeout,
    };
    PostgresDatabase::open(entry.name.clone(), target, options)
        .map(|database| (database, handlers))
        .map_err(|error| vec![problem("postgres", error.to_string())])
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
fn to_run_as(entry: &DatabaseConfig, config: &Config) -> Result<RunAs, String> {
    let chosen = match &entry.role {
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
