//! Who was given links to one stored result. Each link speaks for the caller that it was made for and no other, so that
//! neither a later reader nor a call of yesterday changes what a link is worth.

use tidegate_core::Caller;

/// Callers whose links to one result are known at the same time. Beyond them the links of one end before their time.
pub(super) const READERS_MAX: usize = 8;

/// Who was given links to one result that are good yet.
#[derive(Debug, Default)]
pub(super) struct Readers {
    known: Vec<Reader>,
    /// How many there have been.
    count: u64,
}

#[derive(Debug)]
struct Reader {
    number: u64,
    caller: Caller,
    /// When the last of its links ends, in milliseconds since 1970.
    until_ms: u64,
}

impl Readers {
    /// The number of `caller`, who is given a link until `until_ms`. It is never another's.
    pub(super) fn enter(&mut self, caller: &Caller, until_ms: u64) -> u64 {
        if let Some(reader) = self.known.iter_mut().find(|reader| reader.is(caller)) {
            reader.until_ms = reader.until_ms.max(until_ms);
            return reader.number;
        }
        let number = self.count;
        self.count += 1;
        self.known.push(Reader { number, caller: Caller { state: None, ..caller.clone() }, until_ms });
        if self.known.len() > READERS_MAX {
            // Those whom an earlier gate let in open nothing any more.
            let order = |reader: &&Reader| (reader.caller.principal.gate, reader.until_ms, reader.number);
            let first = self.known.iter().min_by_key(order).map(|reader| reader.number);
            self.known.retain(|reader| Some(reader.number) != first);
        }
        number
    }

    /// Who has the number.
    pub(super) fn get(&self, number: u64) -> Option<Caller> {
        self.known.iter().find(|reader| reader.number == number).map(|reader| reader.caller.clone())
    }

    /// Forgets those whose links are over.
    pub(super) fn sweep(&mut self, now_ms: u64) {
        self.known.retain(|reader| reader.until_ms > now_ms);
    }
}

impl Reader {
    /// Whether a link of this one is worth the same as one of `caller`: let in by the same gate, with the same rights, at
    /// the same door.
    fn is(&self, caller: &Caller) -> bool {
        let (principal, other) = (&self.caller.principal, &caller.principal);
        let is_same = principal == other && self.caller.is_same_as(caller);
        is_same && principal.gate == other.gate && self.caller.toolset == caller.toolset
    }
}
