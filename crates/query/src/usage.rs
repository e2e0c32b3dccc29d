//! Tracks which names each caller uses recently and often; completion ranks them first.
//!
//! Each caller has separate counts. Shared counts would reveal the queries of others.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::{Caller, CallerIdentity};

/// Maximum number of tracked callers; with 100 names each, at most 10,000 names.
const CALLERS_MAX: NonZeroUsize = NonZeroUsize::new(100).unwrap();
const NAMES_MAX: NonZeroUsize = NonZeroUsize::new(100).unwrap();
/// Longer names are not counted, so that memory has a bound.
const NAME_BYTES_MAX: usize = 256;
/// The number of queries after which a use counts half.
const HALF_LIFE_QUERIES: f64 = 100.0;

/// Tracks which names each caller uses recently and often.
#[derive(Debug)]
pub struct UsageTracker {
    by_owner: Mutex<LruCache<CallerIdentity, CallerUsage>>,
}

#[derive(Debug)]
struct CallerUsage {
    queries: u64,
    /// By database and table; a database by itself has no table.
    counts: LruCache<(String, Option<String>), NameUsage>,
}

#[derive(Debug, Clone, Copy, Default)]
struct NameUsage {
    uses: f64,
    last_query: u64,
}

/// The usage rank of each name for one caller.
#[derive(Debug, Default)]
pub struct UsageRanks(HashMap<String, f64>);

impl Default for UsageTracker {
    fn default() -> Self {
        Self { by_owner: Mutex::new(LruCache::new(CALLERS_MAX)) }
    }
}

impl UsageTracker {
    /// Records a query of `caller` to `database` that reads `tables`.
    pub fn record(&self, caller: &Caller, database: &str, tables: &[String]) {
        let mut by_owner = self.by_owner.lock();
        let names = by_owner.get_or_insert_mut(CallerIdentity::from_caller(caller), || CallerUsage {
            queries: 0,
            counts: LruCache::new(NAMES_MAX),
        });
        names.queries += 1;
        let query = names.queries;
        for table in tables.iter().map(|table| Some(table.clone())).chain([None]) {
            if database.len().max(table.as_ref().map_or(0, String::len)) <= NAME_BYTES_MAX {
                let count = names.counts.get_or_insert_mut((database.to_owned(), table), NameUsage::default);
                *count = NameUsage { uses: count.decayed_uses(query) + 1.0, last_query: query };
            }
        }
    }

    /// The ranks of the databases for `caller`.
    pub fn rank_databases(&self, caller: &Caller) -> UsageRanks {
        self.rank_names(caller, |database, table| table.is_none().then_some(database))
    }

    /// The ranks of the tables of `database` for `caller`, or of all databases without one.
    pub fn rank_tables(&self, caller: &Caller, database: Option<&str>) -> UsageRanks {
        self.rank_names(caller, |of, table| table.filter(|_| database.is_none_or(|database| database == of)))
    }

    fn rank_names(
        &self,
        caller: &Caller,
        name: impl for<'a> Fn(&'a str, Option<&'a str>) -> Option<&'a str>,
    ) -> UsageRanks {
        let mut ranks = HashMap::new();
        if let Some(names) = self.by_owner.lock().peek(&CallerIdentity::from_caller(caller)) {
            for ((database, table), count) in &names.counts {
                if let Some(name) = name(database, table.as_deref()) {
                    *ranks.entry(name.to_owned()).or_default() += count.decayed_uses(names.queries);
                }
            }
        }
        UsageRanks(ranks)
    }
}

impl UsageRanks {
    /// Sorts the most used names first; names with equal ranks keep their order.
    pub fn sort(&self, names: &mut [String]) {
        let rank = |name: &String| self.0.get(name).copied().unwrap_or_default();
        names.sort_by(|one, other| rank(other).total_cmp(&rank(one)));
    }
}

impl NameUsage {
    fn decayed_uses(self, now: u64) -> f64 {
        let since = now.saturating_sub(self.last_query) as f64;
        self.uses * (-since / HALF_LIFE_QUERIES).exp2()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tidegate_core::{CallOrigin, Principal, TransportKind};

    use super::*;

    fn caller(address: u8) -> Caller {
        let peer = Some(IpAddr::from([10, 0, 0, address]));
        Caller::new(Principal::anonymous(), CallOrigin { transport: TransportKind::StreamableHttp, peer })
    }

    fn ordered(ranks: &UsageRanks) -> String {
        let mut names = ["a", "b", "c"].map(str::to_owned);
        ranks.sort(&mut names);
        names.concat()
    }

    #[test]
    fn ranks_names_by_recent_use_per_caller() {
        let usage_tracker = UsageTracker::default();
        let ask = |database: &str, table: &str, times: usize| {
            (0..times).for_each(|_| usage_tracker.record(&caller(1), database, &[table.to_owned()]));
        };
        assert_eq!(ordered(&usage_tracker.rank_tables(&caller(1), None)), "abc", "ties stay as they were");
        ask("shop", "c", 1);
        assert_eq!(ordered(&usage_tracker.rank_tables(&caller(1), Some("shop"))), "cab");
        ask("shop", "b", 2);
        assert_eq!(ordered(&usage_tracker.rank_tables(&caller(1), Some("shop"))), "bca");
        ask("other", "a", 5);
        assert_eq!(ordered(&usage_tracker.rank_tables(&caller(1), Some("shop"))), "bca", "of another database");
        assert_eq!(ordered(&usage_tracker.rank_tables(&caller(1), None)), "abc");
        ask("b", "a", 500);
        ask("c", "c", 9);
        assert_eq!(ordered(&usage_tracker.rank_tables(&caller(1), None)), "acb", "what was used long ago fades");
        assert_eq!(ordered(&usage_tracker.rank_databases(&caller(1))), "bca");
        assert_eq!(ordered(&usage_tracker.rank_tables(&caller(2), None)), "abc", "others see nothing of it");
    }

    #[test]
    fn bounds_callers_and_names() {
        let usage_tracker = UsageTracker::default();
        for n in 0..300 {
            usage_tracker.record(&caller(1), "shop", &[format!("t{n}"), "x".repeat(10_000)]);
            usage_tracker.record(&caller((n % 200) as u8), "shop", &[]);
        }
        assert_eq!(usage_tracker.by_owner.lock().len(), 100);
        assert!(usage_tracker.by_owner.lock().iter().all(|(_, names)| names.counts.len() <= 100));
        assert!(usage_tracker.rank_tables(&caller(1), None).0.keys().all(|name| name.len() < 10));
    }
}
