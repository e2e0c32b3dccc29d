//! The node's own tables in the database of system tables: jobs, sessions, connection pools and what is stored.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tidegate_core::{DatabaseTenants, Error, Principal, PrincipalRule, StoredResults as _};
use tidegate_engines::{Engine, LiveTable, ReadContext, RowCallback};
use tidegate_query::{Connections, Database};
use tidegate_results::ResultStore;
use tidegate_runtime::{JobStatus, Jobs, SessionStatus, Sessions};
use tidegate_system::{ReadOptions, ReadSummary, SystemColumn, SystemColumnType, SystemTableDescription, SystemValue};

/// What the tables of the node read.
#[derive(Clone)]
pub(crate) struct ServerTables {
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) store: Option<Arc<ResultStore>>,
    pub(crate) engine: Engine,
    /// Which callers may query the databases whose connections are shown.
    pub(crate) tenants: DatabaseTenants,
}

/// A small table whose rows are all produced at once.
struct SmallTable<F> {
    description: SystemTableDescription,
    produce: F,
}

impl<F> LiveTable for SmallTable<F>
where
    F: Fn(&ReadContext) -> Vec<Vec<SystemValue>> + Send + Sync + 'static,
{
    fn description(&self) -> &SystemTableDescription {
        &self.description
    }

    fn read(
        &self,
        context: &ReadContext,
        options: &ReadOptions,
        on_row: RowCallback<'_>,
    ) -> Result<ReadSummary, Error> {
        let mut summary = ReadSummary { rows: 0, is_truncated: false };
        for row in (self.produce)(context) {
            if summary.rows >= options.rows_max {
                summary.is_truncated = true;
                break;
            }
            summary.rows += 1;
            if on_row(row) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(summary)
    }
}

fn table(
    name: &'static str,
    description: &'static str,
    columns: Vec<SystemColumn>,
    produce: impl Fn(&ReadContext) -> Vec<Vec<SystemValue>> + Send + Sync + 'static,
) -> Arc<dyn LiveTable> {
    let (name, description): (Cow<'static, str>, Cow<'static, str>) = (name.into(), description.into());
    let description = SystemTableDescription { name, description, columns, parameters: Vec::new() };
    Arc::new(SmallTable { description, produce })
}

fn text(name: &'static str, description: &'static str) -> SystemColumn {
    SystemColumn::new(name, SystemColumnType::Text, description)
}

fn count(name: &'static str, description: &'static str) -> SystemColumn {
    SystemColumn::new(name, SystemColumnType::Unsigned, description)
}

impl ServerTables {
    /// The tables. `databases` have connections.
    pub(crate) fn all(&self, databases: Vec<Arc<dyn Database>>) -> Vec<Arc<dyn LiveTable>> {
        vec![self.jobs(), self.sessions(), pools_table(databases, self.tenants.clone()), self.caches()]
    }

    fn jobs(&self) -> Arc<dyn LiveTable> {
        let columns = vec![
            text("id", "The id of the job.").good_filter(),
            text("kind", "tool, resource, prompt or completion.").good_filter(),
            text("target", "The name of what was called.").good_filter(),
            text("status", "waiting, running, done, or the kind of the error.").good_filter(),
            text("subject", "The caller.").good_filter(),
            text("transport", "How the call came.").good_filter(),
            SystemColumn::new("started_at", SystemColumnType::Timestamp, "The time when the call was accepted."),
            SystemColumn::new("elapsed_seconds", SystemColumnType::Duration, "The time so far, or in total.")
                .with_unit("seconds")
                .good_filter(),
            count("rows", "The rows so far."),
            count("bytes", "The bytes of the answer, and of the body of the request, so far.").with_unit("bytes"),
            text("result", "The URI of its stored result."),
        ];
        let jobs = self.jobs.clone();
        let description = "Calls of this server that run, wait or ended recently, as far as you may see them: your own, \
                           or those of your tenant for operators.";
        table("jobs", description, columns, move |context| {
            jobs.list(context.job.caller()).iter().map(job_row).collect()
        })
    }

    fn sessions(&self) -> Arc<dyn LiveTable> {
        let columns = vec![
            count("number", "The number of the session since the start of the server."),
            text("transport", "How the client is connected.").good_filter(),
            text("subject", "The caller that opened it.").good_filter(),
            text("tenant", "The tenant of that caller.").good_filter(),
            text("address", "The address of the client; null without a network.").good_filter(),
            text("toolset", "The toolset of its endpoint; null for all tools.").good_filter(),
            SystemColumn::new("opened_at", SystemColumnType::Timestamp, "The time when it was opened."),
        ];
        let sessions = self.sessions.clone();
        let description = "Open sessions, connections and subscriptions of MCP clients, as far as you may see them: your \
                           own, or those of your tenant for operators. Clients of revision 2026-07-28 have none over \
                           HTTP, unless they subscribe.";
        table("sessions", description, columns, move |context| {
            sessions.list(context.job.caller()).iter().map(session_row).collect()
        })
    }

    fn caches(&self) -> Arc<dyn LiveTable> {
        let columns = vec![
            text("name", "stored_results, query_memory, decoded_parquet or spilled_rows.").good_filter(),
            count("entries", "The number of entries; null where it has none."),
            count("used_bytes", "The size now.").with_unit("bytes"),
        ];
        let (store, engine) = (self.store.clone(), self.engine.clone());
        let produce = move |_: &ReadContext| {
            let size = |name: &str, entries: SystemValue, bytes: u64| vec![name.into(), entries, bytes.into()];
            let stored = store.as_ref().map(|store| store.stats());
            let stored = stored.map(|stats| size("stored_results", stats.results.into(), stats.bytes));
            let of_engine = [
                size("query_memory", SystemValue::Null, engine.memory_used_bytes() as u64),
                size("decoded_parquet", SystemValue::Null, engine.decoding_bytes() as u64),
                size("spilled_rows", SystemValue::Null, engine.spilled_bytes()),
            ];
            stored.into_iter().chain(of_engine).collect()
        };
        table("caches", "Memory and disk that this server uses for results and running queries.", columns, produce)
    }
}

fn job_row(job: &JobStatus) -> Vec<SystemValue> {
    let caller = &job.caller;
    vec![
        job.id.to_string().into(),
        job.target.0.into(),
        job.target.1.as_str().into(),
        job.state.name().into(),
        caller.principal.subject.as_str().into(),
        caller.origin.transport.name().into(),
        timestamp(job.started_at),
        job.elapsed.as_secs_f64().into(),
        job.rows.into(),
        job.bytes.into(),
        job.result.as_deref().map_or(SystemValue::Null, Into::into),
    ]
}

fn session_row(session: &SessionStatus) -> Vec<SystemValue> {
    let SessionStatus { number, caller, opened_at } = session;
    let optional = |text: Option<&str>| text.map_or(SystemValue::Null, Into::into);
    let address = caller.origin.peer.map(|peer| peer.to_canonical().to_string());
    vec![
        (*number).into(),
        caller.origin.transport.name().into(),
        caller.principal.subject.as_str().into(),
        optional(caller.principal.tenant.as_deref()),
        optional(address.as_deref()),
        optional(caller.toolset.as_ref().map(|toolset| toolset.name.as_str())),
        timestamp(*opened_at),
    ]
}

fn timestamp(time: SystemTime) -> SystemValue {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_micros()).map_or(SystemValue::Null, SystemValue::Timestamp)
}

/// The rule that allows principals that may query `database`.
pub(crate) fn may_query(database: &str, tenants: &DatabaseTenants) -> PrincipalRule {
    let (database, tenants) = (database.to_owned(), tenants.clone());
    PrincipalRule::new(move |principal: &Principal| {
        principal.grants.databases.includes(&database) && tenants.admits(&database, principal)
    })
}

fn pools_table(databases: Vec<Arc<dyn Database>>, tenants: DatabaseTenants) -> Arc<dyn LiveTable> {
    let columns = vec![
        text("database", "The name of the database.").good_filter(),
        text("kind", "The kind of the database, such as postgres or sqlite.").good_filter(),
        count("connections_in_use", "Connections that calls hold now; null if those that are free are counted."),
        count("connections_free", "Connections on which a query could start now; null if those in use are counted."),
    ];
    let produce = move |context: &ReadContext| {
        let row = |database: &Arc<dyn Database>| {
            let (in_use, free): (SystemValue, SystemValue) = match database.connections()? {
                Connections::InUse(count) => ((count as u64).into(), SystemValue::Null),
                Connections::Free(count) => (SystemValue::Null, (count as u64).into()),
            };
            let name = database.name();
            let is_visible = may_query(name, &tenants).allows_principal(&context.principal);
            is_visible.then(|| vec![name.into(), database.kind().name().into(), in_use, free])
        };
        databases.iter().filter_map(row).collect()
    };
    table("pools", "Connections of this server to the databases that you may query.", columns, produce)
}
