//! Which names somebody asks for, lately and often: what completion puts first.
//!
//! Each somebody has counts of its own. Were they shared, the order of a list would tell what others ask.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::{Caller, Owner};

/// Somebodies whose uses are known; with the names of each they are 10,000 names at most.
const SOMEBODIES_MAX: NonZeroUsize = match NonZeroUsize::new(100) {
    Some(count) => count,
    None => NonZeroUsize::MIN,
};
/// Names of each that are known.
const NAMES_MAX: NonZeroUsize = match NonZeroUsize::new(100) {
    Some(count) => count,
    None => NonZeroUsize::MIN,
};
/// Longer names are not counted, so that memory has a bound.
const NAME_BYTES_MAX: usize = 256;
/// Questions after which a use counts for half as much.
const HALVED_AFTER: f64 = 100.0;

/// Which names somebody asks for, lately and often.
#[derive(Debug)]
pub struct Uses {
    of: Mutex<LruCache<Owner, Names>>,
}

#[derive(Debug)]
struct Names {
    questions: u64,
    /// By database and table; a database by itself has no table.
    counts: LruCache<(String, Option<String>), Count>,
}

/// How often a name was used, later uses counting for more.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    uses: f64,
    /// The question that it was used in last.
    at: u64,
}

/// How much somebody uses each of some names.
#[derive(Debug, Default)]
pub struct Ranks(HashMap<String, f64>);

impl Default for Uses {
    fn default() -> Self {
        Self { of: Mutex::new(LruCache::new(SOMEBODIES_MAX)) }
    }
}

impl Uses {
    /// Counts a question of `caller` to `database` about `tables`.
    pub fn count(&self, caller: &Caller, database: &str, tables: &[String]) {
        let mut of = self.of.lock();
        let names =
            of.get_or_insert_mut(Owner::of(caller), || Names { questions: 0, counts: LruCache::new(NAMES_MAX) });
        names.questions += 1;
        let at = names.questions;
        for table in tables.iter().map(|table| Some(table.clone())).chain([None]) {
            if database.len().max(table.as_ref().map_or(0, String::len)) <= NAME_BYTES_MAX {
                let count = names.counts.get_or_insert_mut((database.to_owned(), table), Count::default);
                *count = Count { uses: count.worth(at) + 1.0, at };
            }
        }
    }

    /// How much `caller` uses the databases.
    pub fn databases(&self, caller: &Caller) -> Ranks {
        self.ranks(caller, |database, table| table.is_none().then_some(database))
    }

    /// How much `caller` uses the tables of `database`, or of all while none is chosen.
    pub fn tables(&self, caller: &Caller, database: Option<&str>) -> Ranks {
        self.ranks(caller, |of, table| table.filter(|_| database.is_none_or(|database| database == of)))
    }

    fn ranks(&self, caller: &Caller, name: impl for<'a> Fn(&'a str, Option<&'a str>) -> Option<&'a str>) -> Ranks {
        let mut ranks = HashMap::new();
        if let Some(names) = self.of.lock().peek(&Owner::of(caller)) {
            for ((database, table), count) in &names.counts {
                if let Some(name) = name(database, table.as_deref()) {
                    *ranks.entry(name.to_owned()).or_default() += count.worth(names.questions);
                }
            }
        }
        Ranks(ranks)
    }
}

impl Ranks {
    /// Puts the names that are used most first; those that are used alike stay in their order.
    pub fn order(&self, names: &mut [String]) {
        let rank = |name: &String| self.0.get(name).copied().unwrap_or_default();
        names.sort_by(|one, other| rank(other).total_cmp(&rank(one)));
    }
}

impl Count {
    /// What it counts for at the question `now`.
    fn worth(self, now: u64) -> f64 {
        let since = now.saturating_sub(self.at) as f64;
        self.uses * (-since / HALVED_AFTER).exp2()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tidegate_core::{Origin, Principal, TransportKind};

    use super::*;

    fn caller(address: u8) -> Caller {
        let peer = Some(IpAddr::from([10, 0, 0, address]));
        Caller::new(Principal::anonymous(), Origin { transport: TransportKind::StreamableHttp, peer })
    }

    fn ordered(ranks: &Ranks) -> String {
        let mut names = ["a", "b", "c"].map(str::to_owned);
        ranks.order(&mut names);
        names.concat()
    }

    #[test]
    fn what_is_used_lately_and_often_comes_first_for_who_uses_it() {
        let uses = Uses::default();
        let ask = |database: &str, table: &str, times: usize| {
            (0..times).for_each(|_| uses.count(&caller(1), database, &[table.to_owned()]));
        };
        assert_eq!(ordered(&uses.tables(&caller(1), None)), "abc", "ties stay as they were");
        ask("shop", "c", 1);
        assert_eq!(ordered(&uses.tables(&caller(1), Some("shop"))), "cab");
        ask("shop", "b", 2);
        assert_eq!(ordered(&uses.tables(&caller(1), Some("shop"))), "bca");
        ask("other", "a", 5);
        assert_eq!(ordered(&uses.tables(&caller(1), Some("shop"))), "bca", "of another database");
        assert_eq!(ordered(&uses.tables(&caller(1), None)), "abc");
        ask("b", "a", 500);
        ask("c", "c", 9);
        assert_eq!(ordered(&uses.tables(&caller(1), None)), "acb", "what was used long ago fades");
        assert_eq!(ordered(&uses.databases(&caller(1))), "bca");
        assert_eq!(ordered(&uses.tables(&caller(2), None)), "abc", "others see nothing of it");
    }

    #[test]
    fn the_memory_of_names_has_a_bound() {
        let uses = Uses::default();
        for n in 0..300 {
            uses.count(&caller(1), "shop", &[format!("t{n}"), "x".repeat(10_000)]);
            uses.count(&caller((n % 200) as u8), "shop", &[]);
        }
        assert_eq!(uses.of.lock().len(), 100);
        assert!(uses.of.lock().iter().all(|(_, names)| names.counts.len() <= 100));
        assert!(uses.tables(&caller(1), None).0.keys().all(|name| name.len() < 10));
    }
}
