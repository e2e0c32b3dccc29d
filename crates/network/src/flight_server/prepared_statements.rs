//! Prepared statements: they belong to the caller that created them, and are forgotten when they are not used.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tidegate_core::{Caller, CallerIdentity};
use tokio::time::Instant;
use tonic::Status;
use uuid::Uuid;

/// Statements of one caller; a further one replaces the one that was not used for the longest time.
const PER_CALLER_MAX: usize = 100;
/// Statements of all callers.
const TOTAL_MAX: usize = 10_000;
/// Bytes of the text and the parameters of all statements.
const TOTAL_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A statement that was not used for this time is forgotten.
const IDLE_MAX: Duration = Duration::from_secs(60 * 60);

/// A statement with the values that are bound to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PreparedStatement {
    /// The database, if the client named one.
    pub(super) database: Option<String>,
    /// The text.
    pub(super) sql: String,
    /// The bound values.
    pub(super) parameters: Vec<Value>,
    /// The columns of its answer as an encapsulated IPC message.
    pub(super) schema: Bytes,
}

struct StoredStatement {
    owner: CallerIdentity,
    statement: PreparedStatement,
    /// Bytes that count for the limit.
    bytes: usize,
    used_at: Instant,
}

/// The prepared statements of all callers.
#[derive(Default)]
pub(super) struct PreparedStatements(Mutex<HashMap<Uuid, StoredStatement>>);

impl PreparedStatements {
    /// Stores `statement` for `caller`, and returns its handle.
    ///
    /// # Errors
    /// `ResourceExhausted` when there is no room.
    pub(super) fn create(&self, statement: PreparedStatement, caller: &Caller) -> Result<Bytes, Status> {
        let owner = CallerIdentity::from_caller(caller);
        let (bytes, now) = (bytes_of(&statement), Instant::now());
        let mut statements = self.0.lock();
        statements.retain(|_, stored| now.duration_since(stored.used_at) < IDLE_MAX);
        let own = statements.iter().filter(|(_, stored)| stored.owner == owner);
        if own.clone().count() >= PER_CALLER_MAX
            && let Some(oldest) = own.min_by_key(|(_, stored)| stored.used_at).map(|(handle, _)| *handle)
        {
            statements.remove(&oldest);
        }
        if statements.len() >= TOTAL_MAX {
            return Err(no_room());
        }
        check_room(statements.values(), bytes)?;
        let handle = Uuid::new_v4();
        statements.insert(handle, StoredStatement { owner, statement, bytes, used_at: now });
        Ok(Bytes::copy_from_slice(handle.as_bytes()))
    }

    /// The statement of `handle`.
    ///
    /// # Errors
    /// `NotFound`, the same whether it belongs to another caller or does not exist.
    pub(super) fn get(&self, handle: &[u8], caller: &Caller) -> Result<PreparedStatement, Status> {
        self.with(handle, caller, |stored| stored.statement.clone())
    }

    /// Binds `parameters` to the statement of `handle`.
    ///
    /// # Errors
    /// As [`Self::get`] and [`Self::create`].
    pub(super) fn bind(&self, handle: &[u8], parameters: Vec<Value>, caller: &Caller) -> Result<(), Status> {
        let added: usize = parameters.iter().map(value_bytes).sum();
        check_room(self.0.lock().values(), added)?;
        self.with(handle, caller, |stored| {
            stored.statement.parameters = parameters;
            stored.bytes = bytes_of(&stored.statement);
        })
    }

    /// Forgets the statement of `handle`; one that does not exist is no error.
    pub(super) fn close(&self, handle: &[u8], caller: &Caller) {
        let owner = CallerIdentity::from_caller(caller);
        let Ok(handle) = Uuid::from_slice(handle) else { return };
        let mut statements = self.0.lock();
        if statements.get(&handle).is_some_and(|stored| stored.owner == owner) {
            statements.remove(&handle);
        }
    }

    fn with<T>(
        &self,
        handle: &[u8],
        caller: &Caller,
        action: impl FnOnce(&mut StoredStatement) -> T,
    ) -> Result<T, Status> {
        let owner = CallerIdentity::from_caller(caller);
        let mut statements = self.0.lock();
        let stored = Uuid::from_slice(handle).ok().and_then(|handle| statements.get_mut(&handle));
        let stored = stored.filter(|stored| stored.owner == owner).ok_or_else(|| {
            Status::not_found(
                "there is no such prepared statement: it was closed, was not used for an hour, or the server was \
                 restarted; prepare it again",
            )
        })?;
        stored.used_at = Instant::now();
        Ok(action(stored))
    }
}

fn check_room<'a>(stored: impl Iterator<Item = &'a StoredStatement>, added: usize) -> Result<(), Status> {
    let used: usize = stored.map(|stored| stored.bytes).sum();
    if used.saturating_add(added) > TOTAL_BYTES_MAX { Err(no_room()) } else { Ok(()) }
}

fn no_room() -> Status {
    Status::resource_exhausted("the server has no room for further prepared statements; close some and try again")
}

fn bytes_of(statement: &PreparedStatement) -> usize {
    let parameters: usize = statement.parameters.iter().map(value_bytes).sum();
    size_of::<StoredStatement>() + statement.sql.len() + statement.schema.len() + parameters
}

fn value_bytes(value: &Value) -> usize {
    size_of::<Value>() + value.as_str().map_or(0, str::len)
}
