//! Log messages for clients: the events of a call, for its own caller, at the level that the client requests.
//!
//! A message contains fixed text, numbers, and names that the caller used itself. It never contains arguments, SQL or
//! the detail of an error.

use serde_json::{Value, json};
use tidegate_core::LogLevel;

use super::{Event, QueryStep, Subscriber};
use crate::job::Job;

const CALL: &str = "call";
const QUERY: &str = "query";

/// Puts the events of a call into its reply as log messages.
#[derive(Debug, Default)]
pub struct ClientLogSubscriber;

impl Subscriber for ClientLogSubscriber {
    fn on_event(&self, event: Event<'_>) {
        match event {
            Event::CallStarted { job } => {
                job.client_log.log(LogLevel::Debug, CALL, || json!({"message": "the call was accepted"}));
            }
            Event::CallWaiting { job } => {
                job.client_log.log(
                    LogLevel::Info,
                    CALL,
                    || json!({"message": "the call waits for other calls to end"}),
                );
            }
            Event::CallEnded { job, outcome } => job.client_log.log(stage_level(job), CALL, || {
                json!({
                    "message": "the call ended", "outcome": outcome, "rows": job.usage().rows(),
                    "bytes": job.usage().bytes(),
                    "elapsed_ms": job.elapsed().as_millis() as u64,
                })
            }),
            Event::QueryEnded { job, database, elapsed, rows } => job.client_log.log(LogLevel::Debug, QUERY, || {
                let message =
                    json!({"message": "the query ended", "rows": rows, "elapsed_ms": elapsed.as_millis() as u64});
                with_database(message, job, database)
            }),
            Event::QueryStep { job, step } => log_step(job, step),
            _ => {}
        }
    }
}

/// The level of the stages that each call has. A client that requests `info` wants them; libraries that request `debug`
/// with each call, such as FastMCP, show their user what is above it.
fn stage_level(job: &Job) -> LogLevel {
    match job.request().log_level {
        Some(LogLevel::Info) => LogLevel::Info,
        _ => LogLevel::Debug,
    }
}

fn log_step(job: &Job, step: QueryStep<'_>) {
    match step {
        QueryStep::Planning { database } => job.client_log.log(LogLevel::Debug, QUERY, || {
            with_database(json!({"message": "the query is planned"}), job, database)
        }),
        QueryStep::Running { database } => job.client_log.log(stage_level(job), QUERY, || {
            with_database(json!({"message": "the query runs"}), job, database)
        }),
        QueryStep::Cached => {
            job.client_log.log(stage_level(job), QUERY, || json!({"message": "an earlier answer is still valid"}));
        }
        QueryStep::MemberRunning { member } => job.client_log.log(stage_level(job), QUERY, || {
            with_names(json!({"message": "a member database is queried"}), job, "member", || member.into())
        }),
        QueryStep::Retried { reason } => job.client_log.log(LogLevel::Notice, QUERY, || {
            json!({"message": "the query runs again", "reason": reason})
        }),
        QueryStep::Spilled { files, bytes } => job.client_log.log(LogLevel::Notice, QUERY, || {
            json!({"message": "the query exceeded its memory and used temporary files", "files": files, "bytes": bytes})
        }),
        QueryStep::Storing { rows_max } => job.client_log.log(LogLevel::Notice, QUERY, || {
            let mut message = json!({"message": "the rows do not fit into the answer and are stored"});
            if let Some(rows_max) = rows_max {
                message["rows_max"] = rows_max.into();
            }
            message
        }),
        QueryStep::NodesMissing { nodes } => job.client_log.log(LogLevel::Warning, QUERY, || {
            let message = json!({"message": "the answer is partial: nodes are missing", "count": nodes.nodes.len()});
            with_names(message, job, "nodes", || nodes.names().into())
        }),
        QueryStep::Truncated { rows } => job.client_log.log(LogLevel::Warning, QUERY, || {
            json!({"message": "the answer is partial: more rows exist", "rows": rows})
        }),
    }
}

/// Adds names, unless the owner declared the query: its databases may be hidden from the caller.
fn with_names(mut message: Value, job: &Job, key: &str, names: impl FnOnce() -> Value) -> Value {
    if !job.databases().is_empty() {
        message[key] = names();
    }
    message
}

/// Adds the database if the caller queries it with its own rights.
fn with_database(mut message: Value, job: &Job, database: &str) -> Value {
    if job.databases().contains(database) {
        message["database"] = database.into();
    }
    message
}
