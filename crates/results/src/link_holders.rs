//! The callers that received links to one stored result. Each link acts for the caller that it was created for, so that
//! neither later readers nor earlier calls change what a link permits.

use tidegate_core::Caller;

/// The maximum number of callers with valid links to one result. Beyond it, the links of one caller end early.
pub(crate) const LINK_HOLDERS_MAX: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct LinkHolders {
    holders: Vec<LinkHolder>,
    registered: u64,
}

#[derive(Debug)]
struct LinkHolder {
    number: u64,
    caller: Caller,
    /// When the last of its links expires, in milliseconds since 1970.
    expires_at_ms: u64,
}

impl LinkHolders {
    /// Returns the number of `caller`, which receives a link until `until_ms`. A number is never reused for another
    /// caller.
    pub(crate) fn register(&mut self, caller: &Caller, until_ms: u64) -> u64 {
        if let Some(reader) = self.holders.iter_mut().find(|reader| reader.matches(caller)) {
            reader.expires_at_ms = reader.expires_at_ms.max(until_ms);
            return reader.number;
        }
        let number = self.registered;
        self.registered += 1;
        let caller = Caller { pinned_snapshot: None, ..caller.clone() };
        self.holders.push(LinkHolder { number, caller, expires_at_ms: until_ms });
        if self.holders.len() > LINK_HOLDERS_MAX {
            // Links of callers that an earlier authenticator admitted are no longer valid, so they go first.
            let version = |holder: &LinkHolder| holder.caller.principal.authenticator_version;
            self.holders.sort_by_key(|holder| (version(holder), holder.expires_at_ms, holder.number));
            self.holders.remove(0);
        }
        number
    }

    pub(crate) fn get(&self, number: u64) -> Option<Caller> {
        self.holders.iter().find(|reader| reader.number == number).map(|reader| reader.caller.clone())
    }

    pub(crate) fn remove_expired(&mut self, now_ms: u64) {
        self.holders.retain(|reader| reader.expires_at_ms > now_ms);
    }
}

impl LinkHolder {
    /// Whether a link of this holder permits the same as one of `caller`: the same authenticator version, rights and
    /// toolset.
    fn matches(&self, caller: &Caller) -> bool {
        let (principal, other) = (&self.caller.principal, &caller.principal);
        let is_same = principal == other && self.caller.is_same_identity(caller);
        is_same
            && principal.authenticator_version == other.authenticator_version
            && self.caller.toolset == caller.toolset
    }
}
