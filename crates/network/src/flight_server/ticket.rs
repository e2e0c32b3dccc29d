//! What a client receives for later requests: tickets and prepared statements. Both belong to the caller that received them.
//!
//! A ticket is the command that a `DoGet` runs, signed for its caller. The caller of `DoGet` is authenticated again and runs
//! the command with its own rights. The signature adds that a ticket works for its receiver alone, and that a ticket of
//! another server is reported as such. Prepared statements are forgotten when they are not used.

use std::collections::HashMap;
use std::time::Duration;

use arrow_flight::Ticket;
use arrow_flight::sql::Any;
use bytes::{BufMut, Bytes, BytesMut};
use parking_lot::Mutex;
use prost::Message;
use serde_json::Value;
use tidegate_core::{Caller, CallerIdentity, HmacSigner};
use tokio::time::Instant;
use tonic::Status;
use uuid::Uuid;

const PURPOSE: &str = "flight ticket";
/// The first byte of a ticket: the version of its layout.
const VERSION: u8 = 1;

/// Signs tickets with a key of this process.
pub(super) struct TicketSigner(HmacSigner);

impl TicketSigner {
    pub(super) fn new() -> Self {
        Self(HmacSigner::with_random_key())
    }

    /// A ticket for `command` that only `caller` can use.
    pub(super) fn issue(&self, command: &Any, caller: &Caller) -> Ticket {
        let command = command.encode_to_vec();
        let signature = self.0.sign(PURPOSE, &[identity_of(caller).as_bytes(), &command]);
        let mut ticket = BytesMut::with_capacity(2 + signature.len() + command.len());
        ticket.put_u8(VERSION);
        ticket.put_u8(u8::try_from(signature.len()).unwrap_or(u8::MAX));
        ticket.put_slice(&signature);
        ticket.put_slice(&command);
        Ticket { ticket: ticket.freeze() }
    }

    /// The command of `ticket`.
    pub(super) fn open(&self, ticket: &Ticket, caller: &Caller) -> Result<Any, Status> {
        let refused = || {
            Status::invalid_argument(
                "the ticket is not valid: it belongs to another caller, or to a server that was restarted; \
                 request a new one with GetFlightInfo",
            )
        };
        let (signature, command) = split(&ticket.ticket).ok_or_else(refused)?;
        if !self.0.verify(PURPOSE, &[identity_of(caller).as_bytes(), command], signature) {
            return Err(refused());
        }
        Any::decode(Bytes::copy_from_slice(command)).map_err(|_| refused())
    }
}

fn identity_of(caller: &Caller) -> String {
    CallerIdentity::from_caller(caller).to_text()
}

fn split(ticket: &[u8]) -> Option<(&[u8], &[u8])> {
    let (version, rest) = ticket.split_first()?;
    let (length, rest) = rest.split_first()?;
    let parts = rest.split_at_checked(usize::from(*length))?;
    (*version == VERSION).then_some(parts)
}

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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_flight::sql::{CommandGetCatalogs, ProstMessageExt};
    use tidegate_core::{AuthMethod, CallOrigin, Grants, Principal, TransportKind};

    use super::*;

    fn caller(subject: &str) -> Caller {
        let principal = Principal::new(subject, AuthMethod::Key, Arc::new(Grants::for_anonymous()));
        Caller::new(Arc::new(principal), CallOrigin { transport: TransportKind::FlightSql, peer: None })
    }

    #[test]
    fn a_ticket_is_valid_for_its_caller_alone() {
        let signer = TicketSigner::new();
        let command = CommandGetCatalogs {}.as_any();
        let ticket = signer.issue(&command, &caller("ann"));
        assert_eq!(signer.open(&ticket, &caller("ann")).unwrap(), command);
        assert!(signer.open(&ticket, &caller("bob")).is_err());
        assert!(TicketSigner::new().open(&ticket, &caller("ann")).is_err());
    }

    #[test]
    fn changed_tickets_are_refused() {
        let signer = TicketSigner::new();
        let ticket = signer.issue(&CommandGetCatalogs {}.as_any(), &caller("ann")).ticket;
        for length in 0..ticket.len() {
            let short = Ticket { ticket: ticket.slice(..length) };
            assert!(signer.open(&short, &caller("ann")).is_err(), "{length}");
        }
        for index in 0..ticket.len() {
            let mut changed = ticket.to_vec();
            changed[index] ^= 1;
            assert!(signer.open(&Ticket { ticket: changed.into() }, &caller("ann")).is_err(), "{index}");
        }
    }
}
