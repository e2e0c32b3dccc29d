//! Tickets: the command that a `DoGet` runs, signed for the caller that received it.
//!
//! The caller of `DoGet` is authenticated again and runs the command with its own rights. The signature adds that a ticket
//! works for its receiver alone, and that a ticket of another server is reported as such.

use arrow_flight::Ticket;
use arrow_flight::sql::Any;
use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use tidegate_core::{Caller, CallerIdentity, HmacSigner};
use tonic::Status;

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
