//! What is installed in a schema of handlers, as far as the role that asks may see it.

use tidegate_core::Error;
use tokio_postgres::Client;

use super::layer::Step;
use super::refusal;
use super::schema_name::SchemaName;
use super::survey::{self, Survey};

/// Lines of the exchange log that are counted; beyond them only that there are more is said.
const LINES_COUNTED_MAX: i64 = 1_000_000;

/// What is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The database.
    pub database: String,
    /// The schema.
    pub schema: SchemaName,
    /// The role that owns it.
    pub owner: String,
    /// Whether the role that asked has the owner's rights. Another one sees less.
    pub is_of_owner: bool,
    /// The version of what is installed.
    pub version: InstalledVersion,
    /// How many handlers there are of each type that there is; none when that may not be read.
    pub handlers: Option<Vec<(String, u64)>>,
    /// The exchange log; none when that may not be read or is not there.
    pub exchange: Option<ExchangeLog>,
    /// The roles that may dispatch.
    pub dispatching: Vec<String>,
}

/// The version of what is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstalledVersion {
    /// It may not be read.
    Hidden,
    /// It was made before versions were counted.
    Uncounted,
    /// This one.
    Counted(u32),
}

/// The exchange log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeLog {
    /// Whether calls are written down.
    pub is_on: bool,
    /// How many lines it holds; none when that may not be read.
    pub lines: Option<Lines>,
}

/// How many lines there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// So many.
    Counted(u64),
    /// More than these.
    MoreThan(u64),
}

/// What may be read.
struct Readable {
    migration: bool,
    handler: bool,
    registry: bool,
    exchange: bool,
}

impl Status {
    pub(super) async fn ask(client: &Client, survey: &Survey) -> Result<Self, Error> {
        let ask = async |sql: &str| {
            let sql = sql.replace("@schema@", survey.schema.as_str());
            client.query_typed(&sql, &[]).await.map_err(refusal::of)
        };
        let rows = ask(READABLE).await?;
        let readable = rows.first().map(|row| {
            Ok(Readable {
                migration: row.try_get(0)?,
                handler: row.try_get(1)?,
                registry: row.try_get(2)?,
                exchange: row.try_get(3)?,
            })
        });
        let readable = readable.ok_or_else(|| Error::internal("the catalog gave no row"))?.map_err(refusal::of)?;
        let version = match readable.migration {
            true => InstalledVersion::of(&survey::steps(client, &survey.schema).await?),
            false => InstalledVersion::Hidden,
        };
        let handlers = match readable.handler {
            true => Some(counted(&ask(HANDLERS).await?).map_err(refusal::of)?),
            false => None,
        };
        let lines = match readable.exchange {
            true => {
                Some(Lines::of(ask(LINES).await?.first().map_or(Ok(0), |row| row.try_get(0)).map_err(refusal::of)?))
            }
            false => None,
        };
        let exchange = match readable.registry {
            true => {
                let is_on = ask(SWITCH).await?.first().map_or(Ok(false), |row| row.try_get(0)).map_err(refusal::of)?;
                Some(ExchangeLog { is_on, lines })
            }
            false => None,
        };
        let dispatching = ask(DISPATCHING).await?;
        let dispatching =
            dispatching.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>().map_err(refusal::of)?;
        Ok(Self {
            database: survey.database.clone(),
            schema: survey.schema.clone(),
            owner: survey.owner().to_owned(),
            is_of_owner: survey.is_of_owner(),
            version,
            handlers,
            exchange,
            dispatching,
        })
    }
}

impl InstalledVersion {
    fn of(steps: &[Step]) -> Self {
        steps.iter().filter_map(Step::version).max().map_or(Self::Uncounted, Self::Counted)
    }
}

impl Lines {
    fn of(counted: i64) -> Self {
        match u64::try_from(counted.min(LINES_COUNTED_MAX)).unwrap_or(0) {
            count if counted > LINES_COUNTED_MAX => Self::MoreThan(count),
            count => Self::Counted(count),
        }
    }
}

fn counted(rows: &[tokio_postgres::Row]) -> Result<Vec<(String, u64)>, tokio_postgres::Error> {
    let count = |row: &tokio_postgres::Row| Ok((row.try_get(0)?, row.try_get::<_, i64>(1)?.unsigned_abs()));
    rows.iter().map(count).collect()
}

/// The exchange log is younger than the rest, so its switch may be missing.
const READABLE: &str = "
    SELECT coalesce(bool_or(relname = 'migration'), false), coalesce(bool_or(relname = 'handler'), false),
        coalesce(bool_or(relname = 'registry' AND EXISTS (
            SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attname = 'logs_exchanges' AND NOT attisdropped
        )), false),
        coalesce(bool_or(relname = 'exchange'), false)
    FROM pg_class
    WHERE relnamespace = '@schema@'::regnamespace AND relkind = 'r'
        AND has_schema_privilege(relnamespace, 'USAGE') AND has_table_privilege(oid, 'SELECT')";

const HANDLERS: &str =
    "SELECT type, count(*) FROM @schema@.handler GROUP BY type ORDER BY type = 'prompt', type = 'resource', type";
const SWITCH: &str = "SELECT logs_exchanges FROM @schema@.registry";
const LINES: &str = "SELECT count(*) FROM (SELECT FROM @schema@.exchange LIMIT 1000001) AS line";
const DISPATCHING: &str = "
    SELECT DISTINCT rolname::text
    FROM pg_proc, aclexplode(proacl) AS entry JOIN pg_roles ON pg_roles.oid = grantee
    WHERE pronamespace = '@schema@'::regnamespace AND proname = 'mcp_handle_request' AND grantee <> proowner
    ORDER BY 1";
