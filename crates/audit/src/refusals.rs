//! Limits the lines for refused messages. Anyone can cause any number of them, so each network, and each principal
//! beyond its rate limit, gets one line a minute; further messages are counted into one more line at the end of the
//! minute.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use tidegate_core::{AuthMethod, CallOrigin, Principal, TransportKind, quota_address};
use tokio::time::Instant;

use crate::record::{Record, RefusedMessage};

const WINDOW: Duration = Duration::from_secs(60);
/// Networks and principals with counts of their own in that time; all others share one.
const SOURCES_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct RefusalCounter {
    since: Option<Instant>,
    /// Messages after the first one, by their source.
    repeated: HashMap<RefusalSource, Option<RefusedMessage>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum RefusalSource {
    Network(TransportKind, Option<IpAddr>),
    Principal { subject: String, tenant: Option<String> },
    Others,
}

impl RefusalSource {
    fn from_message(message: &RefusedMessage) -> Self {
        match message.principal.as_deref().filter(|principal| principal.auth_method != AuthMethod::Anonymous) {
            Some(Principal { subject, tenant, .. }) => {
                Self::Principal { subject: subject.clone(), tenant: tenant.clone() }
            }
            None => Self::Network(message.origin.transport, message.origin.peer.map(quota_address)),
        }
    }
}

impl RefusalCounter {
    /// Counts a message; returns it if it gets a line of its own.
    pub(crate) fn record(&mut self, message: RefusedMessage, now: Instant) -> Option<RefusedMessage> {
        self.since.get_or_insert(now);
        let own = RefusalSource::from_message(&message);
        let has_room = self.repeated.len() < SOURCES_MAX || self.repeated.contains_key(&own);
        let source = if has_room { own } else { RefusalSource::Others };
        let Some(counted) = self.repeated.get_mut(&source) else {
            self.repeated.insert(source, None);
            return Some(message);
        };
        let times = counted.as_ref().map_or(0, |counted| counted.times) + message.times;
        *counted = Some(RefusedMessage { times, ..message });
        None
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + WINDOW)
    }

    /// Records of the counted messages. Each has the origin and reason of the last message of its source.
    pub(crate) fn drain(&mut self) -> Vec<Record> {
        self.since = None;
        let counted = self.repeated.drain().filter_map(|(source, counted)| {
            let counted = counted?;
            let counted = match source {
                RefusalSource::Others => {
                    let origin = CallOrigin { peer: None, ..counted.origin };
                    RefusedMessage { principal: None, origin, ..counted }
                }
                _ => counted,
            };
            Some(Record::now(counted.into()))
        });
        counted.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::record::RecordKind;

    fn message(address: impl Into<IpAddr>) -> RefusedMessage {
        let peer = Some(address.into());
        RefusedMessage::new(CallOrigin { transport: TransportKind::Rest, peer }, "unknown caller")
    }

    fn counts(records: Vec<Record>) -> Vec<(Option<IpAddr>, u64)> {
        let rendered = records.into_iter().map(|record| match record.kind {
            RecordKind::RefusedMessage(message) => (message.origin.peer, message.times),
            _ => unreachable!("only refused messages are counted"),
        });
        let mut rendered: Vec<_> = rendered.collect();
        rendered.sort();
        rendered
    }

    #[test]
    fn first_refusal_of_each_network_has_its_own_line() {
        let mut refusals = RefusalCounter::default();
        let now = Instant::now();
        let addresses = ["10.0.0.1", "10.0.0.2", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"];
        let first =
            addresses.map(|address| refusals.record(message(address.parse::<IpAddr>().unwrap()), now).is_some());
        assert_eq!(first, [true, true, true, false, true]);
        for _ in 0..9 {
            assert!(refusals.record(message([10, 0, 0, 1]), now).is_none());
        }
        assert_eq!(refusals.due(), Some(now + WINDOW));
        let expected = [("10.0.0.1", 9), ("2001:db8::2", 1)].map(|(address, times)| (address.parse().ok(), times));
        assert_eq!(counts(refusals.drain()), expected);
        assert!(refusals.due().is_none() && refusals.drain().is_empty());
        assert!(refusals.record(message([10, 0, 0, 1]), now).is_some());
    }

    #[test]
    fn refusals_of_many_networks_are_bounded() {
        let mut refusals = RefusalCounter::default();
        let now = Instant::now();
        let all: u32 = 10_000;
        let own = (0..all).filter_map(|number| refusals.record(message(Ipv4Addr::from_bits(number)), now)).count();
        assert_eq!(own, SOURCES_MAX + 1);
        assert_eq!(counts(refusals.drain()), [(None, u64::from(all) - own as u64)]);
    }
}
