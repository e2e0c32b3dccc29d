//! The meters of one level, each found by whose it is; a bounded number of them.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::meter::Meter;
use super::usage::{Taken, Usage};
use crate::owner::Owner;

/// From so many on those that are idle are forgotten.
const SWEPT_FROM: usize = 1_024;
/// Holders that are known at once; all others share what one may have.
const HOLDERS_MAX: usize = 65_536;
/// Holders that are forgotten but for what they took today.
const ABSENT_MAX: usize = 65_536;
/// While a table is full it is swept no more often.
const SWEPT_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Names a holder where what it took is written down: a part of the hash of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct HolderId(pub(super) [u8; 16]);

/// Whose a meter is.
pub(super) trait Holder: Eq + Hash {
    /// All that tells it from others, as text.
    fn text(&self) -> String;
}

impl Holder for Owner {
    fn text(&self) -> String {
        self.to_text()
    }
}

impl Holder for String {
    fn text(&self) -> String {
        self.clone()
    }
}

/// Whose a meter of a tool is. Tools have names that the registry knows, so that nobody fills the table with others.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum OfTool {
    /// All its callers together.
    All(String),
    /// Those of one tenant.
    Tenant { tool: String, tenant: String },
    /// One principal.
    Principal { tool: String, owner: Owner },
}

impl Holder for OfTool {
    fn text(&self) -> String {
        match self {
            Self::All(tool) => tool.clone(),
            Self::Tenant { tool, tenant } => json!(["tenant", tool, tenant]).to_string(),
            Self::Principal { tool, owner } => json!(["principal", tool, owner]).to_string(),
        }
    }
}

/// The meters of one level.
#[derive(Debug)]
pub(super) struct Table<H> {
    known: Mutex<Known<H>>,
    /// What all those share for whom there is no room.
    of_others: Arc<Meter>,
}

#[derive(Debug)]
struct Known<H> {
    meters: HashMap<H, Arc<Meter>>,
    /// What those took who are not among `meters`.
    absent: HashMap<HolderId, Usage>,
    /// From so many meters on they are swept.
    sweep_from: usize,
    swept_at: Option<Instant>,
}

impl<H: Holder> Default for Table<H> {
    fn default() -> Self {
        let (meters, absent) = (HashMap::new(), HashMap::new());
        let known = Known { meters, absent, sweep_from: SWEPT_FROM, swept_at: None };
        Self { known: Mutex::new(known), of_others: Arc::default() }
    }
}

impl<H: Holder> Table<H> {
    /// The meter of `holder`; `day` is today.
    pub(super) fn of(&self, holder: H, day: u64) -> Arc<Meter> {
        let mut known = self.known.lock();
        if let Some(meter) = known.meters.get(&holder) {
            return meter.clone();
        }
        if known.meters.len() >= known.sweep_from {
            known.sweep(day);
        }
        if known.meters.len() >= HOLDERS_MAX {
            return self.of_others.clone();
        }
        let usage = match known.absent.is_empty() {
            true => Usage::default(),
            false => known.absent.remove(&HolderId::of(&holder)).unwrap_or_default(),
        };
        let meter = Arc::new(Meter::with_usage(usage));
        known.meters.insert(holder, meter.clone());
        meter
    }

    /// What each holder took on `day`.
    pub(super) fn taken(&self, day: u64) -> BTreeMap<HolderId, Taken> {
        let known = self.known.lock();
        let present = known.meters.iter().map(|(holder, meter)| (holder, meter.taken(day)));
        let present = present.filter(|(_, taken)| *taken != Taken::default());
        let present = present.map(|(holder, taken)| (HolderId::of(holder), taken));
        let absent = known.absent.iter().map(|(id, usage)| (*id, usage.of(day)));
        absent.filter(|(_, taken)| *taken != Taken::default()).chain(present).collect()
    }

    /// Takes over what holders took on `day`, before any of them is asked for.
    pub(super) fn restore(&self, day: u64, taken: BTreeMap<HolderId, Taken>) {
        let usages = taken.into_iter().map(|(id, taken)| (id, Usage::new(day, taken)));
        self.known.lock().absent.extend(usages.take(ABSENT_MAX));
    }
}

impl<H: Holder> Known<H> {
    /// Forgets those that are idle, but for what they took on `day`, which is today.
    fn sweep(&mut self, day: u64) {
        if self.swept_at.is_some_and(|then| then.elapsed() < SWEPT_AGAIN_AFTER) && self.sweep_from >= HOLDERS_MAX {
            return;
        }
        let Self { meters, absent, .. } = self;
        absent.retain(|_, usage| usage.of(day) != Taken::default());
        meters.retain(|holder, meter| {
            // Whoever else has it may use it at any moment; nobody new gets it while the table is locked.
            if Arc::strong_count(meter) > 1 || !meter.is_idle() {
                return true;
            }
            let taken = meter.taken(day);
            if taken != Taken::default() {
                if absent.len() >= ABSENT_MAX {
                    return true;
                }
                absent.insert(HolderId::of(holder), Usage::new(day, taken));
            }
            false
        });
        self.sweep_from = (2 * self.meters.len()).clamp(SWEPT_FROM, HOLDERS_MAX);
        self.swept_at = Some(Instant::now());
    }
}

impl HolderId {
    fn of(holder: &impl Holder) -> Self {
        let hash: [u8; 32] = Sha256::digest(holder.text().as_bytes()).into();
        let mut id = [0; 16];
        id.copy_from_slice(&hash[..16]);
        Self(id)
    }
}
