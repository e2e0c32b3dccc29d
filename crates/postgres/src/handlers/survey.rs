//! What stands in a database where handlers are, or are to be, and what the role that asks may do about it.

use std::collections::BTreeMap;

use tidegate_core::{Error, ErrorKind};
use tokio_postgres::{Client, Row};

use super::layer::Step;
use super::refusal;
use super::schema_name::SchemaName;

/// What stands there, as its catalog says, which everybody may read.
pub(super) struct Survey {
    pub(super) database: String,
    pub(super) schema: SchemaName,
    /// The role that asks.
    role: String,
    may_create_schemas: bool,
    /// None where there is no such schema.
    owner: Option<Owner>,
    /// Whether handlers are installed there.
    pub(super) is_installed: bool,
}

/// Whose the schema is and what is in it.
struct Owner {
    name: String,
    /// Whether the role that asks has the owner's rights.
    is_asking: bool,
}

impl Survey {
    pub(super) async fn ask(client: &Client, schema: &SchemaName) -> Result<Self, Error> {
        let rows = client.query_typed(&SURVEY.replace("@schema@", schema.as_str()), &[]).await.map_err(refusal::of)?;
        let row = rows.first().ok_or_else(|| Error::internal("the catalog gave no row"))?;
        let read = |row: &Row| -> Result<Self, tokio_postgres::Error> {
            let owner: Option<String> = row.try_get(3)?;
            let is_asking = row.try_get(4)?;
            Ok(Self {
                database: row.try_get(0)?,
                schema: schema.clone(),
                role: row.try_get(1)?,
                may_create_schemas: row.try_get(2)?,
                owner: owner.map(|name| Owner { name, is_asking }),
                is_installed: row.try_get(5)?,
            })
        };
        read(row).map_err(refusal::of)
    }

    /// Whose the schema is.
    pub(super) fn owner(&self) -> &str {
        self.owner.as_ref().map_or("", |owner| owner.name.as_str())
    }

    /// Whether the role that asks may change what is installed.
    pub(super) fn is_of_owner(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.is_asking)
    }

    /// Refuses a role that may not make or change the schema, before the server does so in the middle of it.
    pub(super) fn check_rights(&self) -> Result<(), Error> {
        let Self { database, schema, role, .. } = self;
        match &self.owner {
            None if self.may_create_schemas => Ok(()),
            None => Err(Error::new(
                ErrorKind::Forbidden,
                format!("the role {role} may make no schema in the database {database}: it lacks the privilege CREATE there"),
            )
            .with_hint(format!(
                "Have the owner of the database run GRANT CREATE ON DATABASE {0} TO {1}, or CREATE SCHEMA {schema} AUTHORIZATION {1}.",
                quoted(database),
                quoted(role)
            ))),
            Some(owner) if owner.is_asking => Ok(()),
            Some(Owner { name, .. }) => Err(Error::new(
                ErrorKind::Forbidden,
                format!("the schema {schema} of the database {database} is {name}'s, and the role {role} has not the rights of {name}"),
            )
            .with_hint(format!("Connect as {name} or as a member of it, or choose another schema."))),
        }
    }

    /// Refuses a schema that holds no handlers.
    pub(super) fn check_installed(&self) -> Result<(), Error> {
        let Self { database, schema, .. } = self;
        let message = match &self.owner {
            _ if self.is_installed => return Ok(()),
            None => format!("the database {database} has no schema {schema}: nothing is installed there"),
            Some(_) => format!("the schema {schema} of the database {database} holds no handlers' registry"),
        };
        Err(Error::new(ErrorKind::NotFound, message).with_hint("tidegate pg install puts one there."))
    }
}

/// A name as SQL takes it, for statements that a person is told to run.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Where handlers are installed, their owner counts beside the schema's: only who has the rights of both may change
/// them.
const SURVEY: &str = "
    SELECT current_database()::text, current_user::text, has_database_privilege(current_database(), 'CREATE'),
        pg_get_userbyid(CASE WHEN pg_has_role(held.owner, 'USAGE') THEN nspowner ELSE held.owner END)::text,
        coalesce(pg_has_role(nspowner, 'USAGE') AND pg_has_role(held.owner, 'USAGE'), false),
        coalesce(held.is_installed, false)
    FROM (VALUES (1)) AS one
        LEFT JOIN pg_namespace ON nspname = '@schema@'
        LEFT JOIN LATERAL (
            SELECT count(*) = 3 AS is_installed,
                CASE WHEN count(*) = 3 THEN min(relowner::bigint)::oid ELSE nspowner END AS owner
            FROM pg_class
            WHERE relnamespace = pg_namespace.oid AND relname IN ('migration', 'handler', 'mcp_request')
        ) AS held ON true";

/// What the steps and the functions of a schema are, to tell what an installation changed.
#[derive(Default)]
pub(super) struct Inventory {
    pub(super) steps: Vec<Step>,
    /// A digest of each function, by its signature.
    pub(super) functions: BTreeMap<String, String>,
}

impl Inventory {
    /// Takes it, in a schema in which handlers are installed.
    pub(super) async fn take(client: &Client, schema: &SchemaName) -> Result<Self, Error> {
        let steps = steps(client, schema).await?;
        let functions = FUNCTIONS.replace("@schema@", schema.as_str());
        let functions = client.query_typed(&functions, &[]).await.map_err(refusal::of)?;
        let functions = functions.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        let functions = functions.collect::<Result<_, tokio_postgres::Error>>().map_err(refusal::of)?;
        Ok(Self { steps, functions })
    }
}

/// The steps that were taken in making the schema.
pub(super) async fn steps(client: &Client, schema: &SchemaName) -> Result<Vec<Step>, Error> {
    let sql = format!("SELECT version, name FROM {schema}.migration ORDER BY version");
    let rows = client.query_typed(&sql, &[]).await.map_err(refusal::of)?;
    let steps = rows.iter().map(|row| {
        let number: i32 = row.try_get(0)?;
        Ok(Step { number: number.unsigned_abs(), name: row.try_get(1)? })
    });
    steps.collect::<Result<_, tokio_postgres::Error>>().map_err(refusal::of)
}

const FUNCTIONS: &str = "
    SELECT oid::regprocedure::text, md5(pg_get_functiondef(oid)) FROM pg_proc
    WHERE pronamespace = '@schema@'::regnamespace AND prokind = 'f'";
