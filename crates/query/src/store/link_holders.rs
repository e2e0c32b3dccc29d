//! Who was given links to one stored result. Each link speaks for the caller that it was made for and no other, so that
//! neither a later reader nor a call of yesterday changes what a link is worth.

use tidegate_core::Caller;

/// Callers whose links to one result are known at the same time. Beyond them the links of one end before their time.
pub(super) const LINK_HOLDERS_MAX: usize = 8;

/// Who was given links to one result that are good yet.
#[derive(Debug, Default)]
pub(super) struct LinkHolders {
    holders: Vec<LinkHolder>,
    /// How many there have been.
    registered: u64,
}

#[derive(Debug)]
struct LinkHolder {
    number: u64,
    caller: Caller,
    /// When the last of its links ends, in milliseconds since 1970.
    expires_at_ms: u64,
}

impl LinkHolders {
    /// The number of `caller`, who is given a link until `expires_at_ms`. It is never another's.
    pub(super) fn register(&mut self, caller: &Caller, until_ms: u64) -> u64 {
        if let Some(reader) = self.holders.iter_mut().find(|reader| reader.matches(caller)) {
            reader.expires_at_ms = reader.expires_at_ms.max(until_ms);
            return reader.number;
        }
        let number = self.registered;
        self.registered += 1;
        self.holders.push(LinkHolder {
            number,
            caller: Caller { snapshot: None, ..caller.clone() },
            expires_at_ms: until_ms,
        });
        if self.holders.len() > LINK_HOLDERS_MAX {
            // Those whom an earlier gate let in open nothing any more.
            let order = |reader: &&LinkHolder| {
                (reader.caller.principal.authenticator_version, reader.expires_at_ms, reader.number)
            };
            let first = self.holders.iter().min_by_key(order).map(|reader| reader.number);
            self.holders.retain(|reader| Some(reader.number) != first);
        }
        number
    }

    /// Who has the number.
    pub(super) fn get(&self, number: u64) -> Option<Caller> {
        self.holders.iter().find(|reader| reader.number == number).map(|reader| reader.caller.clone())
    }

    /// Forgets those whose links are over.
    pub(super) fn remove_expired(&mut self, now_ms: u64) {
        self.holders.retain(|reader| reader.expires_at_ms > now_ms);
    }
}

impl LinkHolder {
    /// Whether a link of this one is worth the same as one of `caller`: let in by the same gate, with the same rights, at
    /// the same door.
    fn matches(&self, caller: &Caller) -> bool {
        let (principal, other) = (&self.caller.principal, &caller.principal);
        let is_same = principal == other && self.caller.is_same_identity(caller);
        is_same
            && principal.authenticator_version == other.authenticator_version
            && self.caller.toolset == caller.toolset
    }
}
