//! Tools of operators over tables that take rows: `ingest_status` and `maintain_ingest`.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{Access, Acl, AllowedNames, AuthMethod, Error, ErrorKind, Principal, PrincipalRule};
use tidegate_query::{IngestMaintenance, IngestStatus};
use tidegate_runtime::{Answer, RunningCall, SnapshotBuilder, Tool};

use super::{IngestToolOptions, PROGRAM_TRANSPORTS};
use crate::arguments::parse_arguments;
use crate::table_names::strip_database;
use crate::tool_definition::{
    InputSchemaBuilder, add_tools, built_in_tool, changing_hints, context_handler, read_only_tool,
};

/// How many tables an error names.
const CHOICES_MAX: usize = 20;

/// A table, and the database that keeps it up.
type SelectedTable = (Arc<dyn IngestMaintenance>, IngestStatus);

struct MaintenanceContext {
    databases: Vec<Arc<dyn IngestMaintenance>>,
    options: IngestToolOptions,
}

/// Adds the tools that operators keep `databases` up with to `builder`, as far as `allowed` includes their names. Without
/// databases, nobody has them.
pub fn register_ingest_maintenance(
    builder: SnapshotBuilder,
    databases: Vec<Arc<dyn IngestMaintenance>>,
    options: IngestToolOptions,
    allowed: &AllowedNames,
) -> SnapshotBuilder {
    if databases.is_empty() {
        return builder;
    }
    let context = Arc::new(MaintenanceContext { databases, options });
    let rule_context = context.clone();
    let rule = PrincipalRule::new(move |principal| {
        // Without authentication, every caller may write and drop these tables anyway.
        let may_keep_up = principal.grants.is_operator() || principal.auth_method == AuthMethod::Anonymous;
        may_keep_up && rule_context.databases_for(principal).next().is_some()
    });
    let transports = (!context.options.is_advanced).then(|| PROGRAM_TRANSPORTS.to_vec());
    let access = Access { principal_rule: Some(rule), acl: Acl { transports, networks: None }, ..Access::default() };
    add_tools(builder, [status_tool(&context), maintain_tool(&context)], &access, allowed)
}

fn status_tool(context: &Arc<MaintenanceContext>) -> Tool {
    read_only_tool(
        "ingest_status",
        "State of ingestion",
        "Tables that take rows: rows that wait in the log, files, and the last error.",
        InputSchemaBuilder::new().with_database().with("table", json!({"type": "string"})),
        context_handler(context, answer_status),
    )
}

fn maintain_tool(context: &Arc<MaintenanceContext>) -> Tool {
    built_in_tool(
        "maintain_ingest",
        "Maintain tables that take rows",
        "Move waiting rows to files (flush), join small files (compact), or compare files with what was written (verify).",
        InputSchemaBuilder::new()
            .with_required("action", json!({"type": "string", "enum": ["flush", "compact", "verify"]}))
            .with_database()
            .with("table", json!({"type": "string"})),
        changing_hints(false, true),
        context_handler(context, answer_maintenance),
    )
}

#[derive(Deserialize)]
struct Selection {
    database: Option<String>,
    table: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Flush,
    Compact,
    Verify,
}

#[derive(Deserialize)]
struct MaintenanceArguments {
    action: Action,
    #[serde(flatten)]
    selection: Selection,
}

async fn answer_status(context: Arc<MaintenanceContext>, call: RunningCall) -> Result<Answer, Error> {
    let selection: Selection = parse_arguments(&call)?;
    let tables = context.select(&selection, call.principal())?;
    let tables = tables.iter().map(|(database, status)| Value::Object(status_json(database.database(), status)));
    Ok(Answer::json(Map::from_iter([("tables".to_owned(), tables.collect())])))
}

async fn answer_maintenance(context: Arc<MaintenanceContext>, call: RunningCall) -> Result<Answer, Error> {
    let MaintenanceArguments { action, selection } = parse_arguments(&call)?;
    let tables = context.select(&selection, call.principal())?;
    let mut answers = Vec::new();
    for (database, status) in tables {
        if call.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "the call was cancelled between two tables"));
        }
        call.record_database(database.database());
        let mut members = Map::from_iter([
            ("database".to_owned(), Value::from(database.database())),
            ("table".to_owned(), Value::from(status.table.as_str())),
        ]);
        let result = match action {
            Action::Verify => run_step(database.as_ref(), &status, action).await?,
            // A step that has begun ends, also when the caller leaves meanwhile.
            Action::Flush | Action::Compact => {
                let step = tokio::spawn(async move { run_step(database.as_ref(), &status, action).await }).await;
                step.unwrap_or_else(|error| Err(Error::internal(format!("a step failed: {error}"))))?
            }
        };
        members.extend(result);
        answers.push(Value::Object(members));
    }
    Ok(Answer::json(Map::from_iter([("tables".to_owned(), Value::Array(answers))])))
}

async fn run_step(
    database: &dyn IngestMaintenance,
    status: &IngestStatus,
    action: Action,
) -> Result<Map<String, Value>, Error> {
    let table = &status.table;
    let members = match action {
        Action::Flush => {
            database.flush(table).await?;
            json!({"flushed_rows": status.waiting_rows})
        }
        Action::Compact => json!({"joined_files": database.compact(table).await?}),
        Action::Verify => {
            let found = database.verify(table).await?;
            json!({
                "intact": found.problems.is_empty(),
                "files": found.files,
                "file_rows": found.file_rows,
                "log_rows": found.log_rows,
                "problems": found.problems,
            })
        }
    };
    match members {
        Value::Object(members) => Ok(members),
        _ => Err(Error::internal("the result of a step is no object")),
    }
}

fn status_json(database: &str, status: &IngestStatus) -> Map<String, Value> {
    let members = [
        ("database", Value::from(database)),
        ("table", status.table.as_str().into()),
        ("waiting_rows", status.waiting_rows.into()),
        ("waiting_bytes", status.waiting_bytes.into()),
        ("oldest_seconds", status.oldest_age.map(|age| age.as_secs_f64()).into()),
        ("files", status.files.into()),
        ("rows", status.rows.into()),
        ("bytes", status.bytes.into()),
        ("sequence", status.sequence.into()),
        ("flushed_sequence", status.flushed_sequence.into()),
        ("flushes", status.flushes.into()),
        ("compactions", status.compactions.into()),
        ("last_error", status.last_error.as_deref().into()),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl MaintenanceContext {
    /// The databases that exist for `principal`.
    fn databases_for(&self, principal: &Principal) -> impl Iterator<Item = &Arc<dyn IngestMaintenance>> {
        self.databases.iter().filter(move |database| self.options.tenancy.admits(database.database(), principal))
    }

    /// The tables that are meant: one, those of a database, or all.
    fn select(&self, selection: &Selection, principal: &Principal) -> Result<Vec<SelectedTable>, Error> {
        let Selection { database, table } = selection;
        let all = self.databases_for(principal);
        let named = all.filter(|known| database.as_deref().is_none_or(|name| known.database() == name));
        let tables: Vec<_> =
            named.flat_map(|known| known.status().into_iter().map(|status| (known.clone(), status))).collect();
        let is_known = |name: &str| self.databases_for(principal).any(|known| known.database() == name);
        if let Some(name) = database.as_deref().filter(|name| !is_known(name)) {
            let choices = self.databases_for(principal).map(|known| known.database().to_owned()).take(CHOICES_MAX);
            let message = format!("there is no database {name:?} with tables in a folder that take rows");
            return Err(Error::new(ErrorKind::NotFound, message).with_choices(choices));
        }
        let Some(table) = table else { return Ok(tables) };
        let choices: Vec<String> = tables.iter().map(|(_, status)| status.table.clone()).take(CHOICES_MAX).collect();
        let is_named = |(known, status): &SelectedTable| {
            status.table == *table || strip_database(table, known.database()) == Some(status.table.as_str())
        };
        let found: Vec<_> = tables.into_iter().filter(is_named).collect();
        if found.is_empty() {
            let message = format!("there is no table {table:?} that takes rows and has columns");
            return Err(Error::new(ErrorKind::NotFound, message).with_choices(choices));
        }
        Ok(found)
    }
}
