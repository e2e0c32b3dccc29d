//! All meters of a node, and the admission of requests and calls. A meter is the current usage of one principal,
//! tenant, tool or node; the number of meters of a level is bounded.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use governor::clock::Clock as GovernorClock;
use governor::middleware::StateInformationMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use tidegate_core::{
    AuthMethod, CallLimits, CallTarget, Caller, CallerIdentity, DailyLimits, LevelLimits, LimitLevel, LimitMeasure,
    Limits, RateLimit,
};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use uuid::Uuid;

use super::usage::{Calendar, DailyUsage, UsageAmount, UsageRecord};
use super::{Admission, AdmissionGuard, PermitQueue, PermitQueues, ReachedLimit, UsageCharges};

#[derive(Debug)]
pub(crate) struct Meters {
    principals: MeterTable,
    tenants: MeterTable,
    tools: MeterTable,
    node: Arc<UsageMeter>,
    calendar: Calendar,
    has_changed: Arc<AtomicBool>,
}

struct AppliedLimit {
    level: LimitLevel,
    meter: Arc<UsageMeter>,
    limits: LevelLimits,
    /// Whether its calls take turns with those of others, instead of having run permits of their own.
    takes_turns: bool,
}

impl Meters {
    pub(crate) fn new(calendar: Calendar) -> Self {
        Self {
            principals: MeterTable::default(),
            tenants: MeterTable::default(),
            tools: MeterTable::default(),
            node: Arc::default(),
            calendar,
            has_changed: Arc::default(),
        }
    }

    /// The caller's own rate comes first, so that excess requests of one caller use nothing of the others' rates.
    pub(crate) fn admit_request(&self, caller: &Caller, limits: &Limits) -> Result<(), ReachedLimit> {
        let (principal, tenant) = (principal_limits(caller, limits), tenant_limits(caller, limits));
        if let Some(rate) = principal.rate {
            admit_rate(&self.principal_meter(caller), rate, LimitLevel::Principal)?;
        }
        if let (Some(rate), Some(name)) = (tenant.rate, &caller.principal.tenant) {
            admit_rate(&self.tenant_meter(name), rate, LimitLevel::Tenant)?;
        }
        limits.rate.map_or(Ok(()), |rate| admit_rate(&self.node, rate, LimitLevel::Node))
    }

    /// Admits `call` if every level that applies has room for one more open call and daily usage left.
    pub(crate) fn admit_call(
        &self,
        caller: &Caller,
        target: &CallTarget,
        is_on_behalf: bool,
        entry: &CallLimits,
        limits: &Limits,
    ) -> Result<Admission, ReachedLimit> {
        let applied_limits = self.applied_limits(caller, Some((target, entry)), limits);
        let mut guard = AdmissionGuard::default();
        let mut charges = UsageCharges::new(self.calendar.clone(), self.has_changed.clone());
        for AppliedLimit { level, meter, limits, .. } in &applied_limits {
            self.check_daily_limits(*level, meter, &limits.daily)?;
            if let Some(open_max) = limits.open_calls_max() {
                guard.open_call(*level, meter, open_max)?;
            }
            if !limits.daily.is_unbounded() {
                // The call on whose behalf this one is made charges everything except the rows.
                let charges_rows_only = is_on_behalf && *level != LimitLevel::Tool;
                charges.add(*level, meter.clone(), limits.daily, charges_rows_only);
            }
        }
        let tool_limits = || applied_limits.iter().filter(|applied| applied.level == LimitLevel::Tool);
        for AppliedLimit { meter, limits, .. } in tool_limits() {
            limits.rate.map_or(Ok(()), |rate| admit_rate(meter, rate, LimitLevel::Tool))?;
        }
        if !is_on_behalf {
            return Ok(Admission { permit_queues: Some(permit_queues(&applied_limits)), charges, guard });
        }
        // It holds permits already. If it waited for another one, it could wait for a call that waits for its permits.
        let tool = tool_limits().find(|applied| !applied.takes_turns);
        if let Some((tool, running_max)) = tool.and_then(|tool| Some((tool, tool.limits.running_calls_max?))) {
            let permit = tool.meter.slots.resize(running_max).try_acquire_owned();
            guard.tool_permit = Some(permit.map_err(|_| ReachedLimit::open_calls(LimitLevel::Tool, running_max))?);
        }
        Ok(Admission { permit_queues: None, charges, guard })
    }

    /// Admits `caller` to work that needs a run permit but is not a call.
    pub(crate) fn admit_listing(
        &self,
        caller: &Caller,
        limits: &Limits,
    ) -> Result<(PermitQueues, AdmissionGuard), ReachedLimit> {
        let applied_limits = self.applied_limits(caller, None, limits);
        let mut guard = AdmissionGuard::default();
        for AppliedLimit { level, meter, limits, .. } in &applied_limits {
            if let Some(open_max) = limits.open_calls_max() {
                guard.open_call(*level, meter, open_max)?;
            }
        }
        // It is not in the list of jobs, which limits only calls.
        guard.open_call(LimitLevel::Node, &self.node, limits.open_calls_max)?;
        Ok((permit_queues(&applied_limits), guard))
    }

    /// Restores the usage of `file`, if it is from today.
    pub(crate) fn restore(&self, file: &Path) -> std::io::Result<()> {
        let day = self.calendar.day();
        if let Some(record) = UsageRecord::read(file)?.filter(|record| record.day == day) {
            self.principals.restore(day, record.principals);
            self.tenants.restore(day, record.tenants);
            self.tools.restore(day, record.tools);
            self.node.restore(DailyUsage::new(day, record.node));
        }
        Ok(())
    }

    pub(super) fn take_changed_usage(&self) -> Option<UsageRecord> {
        let day = self.calendar.day();
        self.has_changed.swap(false, Ordering::Relaxed).then(|| UsageRecord {
            day,
            principals: self.principals.usage_on(day),
            tenants: self.tenants.usage_on(day),
            tools: self.tools.usage_on(day),
            node: self.node.usage_on(day),
        })
    }

    pub(super) fn mark_changed(&self) {
        self.has_changed.store(true, Ordering::Relaxed);
    }

    /// The limits that apply to `caller` and to the target of its call, in the order in which calls wait.
    fn applied_limits(
        &self,
        caller: &Caller,
        call: Option<(&CallTarget, &CallLimits)>,
        limits: &Limits,
    ) -> Vec<AppliedLimit> {
        let mut applied = Vec::with_capacity(6);
        let mut add = |level, meter, limits| applied.push(AppliedLimit { level, meter, limits, takes_turns: false });
        let (principal, tenant) = (principal_limits(caller, limits), tenant_limits(caller, limits));
        if bounds_calls(&principal) {
            add(LimitLevel::Principal, self.principal_meter(caller), principal);
        }
        if let Some(name) = caller.principal.tenant.as_ref().filter(|_| bounds_calls(&tenant)) {
            add(LimitLevel::Tenant, self.tenant_meter(name), tenant);
        }
        // The list of jobs limits how many calls are open in total.
        let running_calls_max = Some(limits.running_calls_max);
        let node = LevelLimits { running_calls_max, daily: limits.daily, ..LevelLimits::default() };
        if let Some((CallTarget::Tool(name), CallLimits { all_callers, .. })) = call
            && (bounds_calls(all_callers) || all_callers.rate.is_some())
        {
            applied.extend(self.tool_limits(name, caller, *all_callers));
        }
        let meter = self.node.clone();
        applied.push(AppliedLimit { level: LimitLevel::Node, meter, limits: node, takes_turns: false });
        applied
    }

    /// The limits of the tool `name` for `caller`. The limit on running calls is shared by all callers, who take turns;
    /// the rate and the daily limits apply to each tenant.
    fn tool_limits(&self, name: &str, caller: &Caller, all_callers: LevelLimits) -> Vec<AppliedLimit> {
        let tool = name.to_owned();
        let is_network_caller = caller.principal.auth_method != AuthMethod::Process;
        let tenant = caller.principal.tenant.clone().filter(|_| is_network_caller);
        let mut applied = Vec::with_capacity(3);
        let mut add = |key, limits, takes_turns| {
            let meter = self.tools.get_or_insert(key, self.calendar.day());
            applied.push(AppliedLimit { level: LimitLevel::Tool, meter, limits, takes_turns });
        };
        let LevelLimits { rate, running_calls_max, waiting_calls_max, daily } = all_callers;
        let takes_turns = running_calls_max.is_some();
        // One caller cannot fill the whole queue.
        let waiting_calls_max = waiting_calls_max.map(|waiting| waiting.div_ceil(2));
        let turns = LevelLimits { running_calls_max, waiting_calls_max, ..LevelLimits::default() };
        if takes_turns && is_network_caller {
            let owner = CallerIdentity::for_quota(caller);
            add(MeterKey::ToolPrincipal { tool: tool.clone(), owner }, turns, true);
        }
        let mut shared = all_callers;
        if let Some(tenant) = tenant {
            add(MeterKey::ToolTenant { tool: tool.clone(), tenant }, LevelLimits { rate, daily, ..turns }, takes_turns);
            shared = LevelLimits { rate: None, daily: DailyLimits::default(), ..all_callers };
        }
        add(MeterKey::Tool(tool), shared, false);
        applied
    }

    fn check_daily_limits(
        &self,
        level: LimitLevel,
        meter: &UsageMeter,
        daily: &DailyLimits,
    ) -> Result<(), ReachedLimit> {
        if daily.is_unbounded() {
            return Ok(());
        }
        let used_up = meter.usage_on(self.calendar.day()).reached_limit(daily);
        used_up.map_or(Ok(()), |(measure, bound)| {
            Err(ReachedLimit { level, measure, bound, retry_after: self.calendar.until_tomorrow() })
        })
    }

    fn principal_meter(&self, caller: &Caller) -> Arc<UsageMeter> {
        self.principals.get_or_insert(MeterKey::Principal(CallerIdentity::for_quota(caller)), self.calendar.day())
    }

    fn tenant_meter(&self, name: &str) -> Arc<UsageMeter> {
        self.tenants.get_or_insert(MeterKey::Tenant(name.to_owned()), self.calendar.day())
    }
}

fn admit_rate(meter: &UsageMeter, rate: RateLimit, level: LimitLevel) -> Result<(), ReachedLimit> {
    let bound = rate.burst().get().into();
    meter.rate.admit(rate).map_err(|retry_after| ReachedLimit {
        level,
        measure: LimitMeasure::Requests,
        bound,
        retry_after,
    })
}

/// The limits of the caller's principal. For the user of the process only limits of its roles apply.
fn principal_limits(caller: &Caller, limits: &Limits) -> LevelLimits {
    let of_roles = caller.principal.grants.limits;
    if caller.principal.auth_method == AuthMethod::Process { of_roles } else { of_roles.or(limits.per_principal) }
}

fn tenant_limits(caller: &Caller, limits: &Limits) -> LevelLimits {
    let is_bounded = caller.principal.tenant.is_some() && caller.principal.auth_method != AuthMethod::Process;
    if is_bounded { limits.per_tenant } else { LevelLimits::default() }
}

fn bounds_calls(limits: &LevelLimits) -> bool {
    limits.running_calls_max.is_some() || !limits.daily.is_unbounded()
}

fn permit_queues(applied: &[AppliedLimit]) -> PermitQueues {
    let queues = applied.iter().filter_map(|applied| match applied.takes_turns {
        true => Some(PermitQueue::FairTurn(applied.meter.slots.resize(1))),
        false => Some(PermitQueue::Run(applied.meter.slots.resize(applied.limits.running_calls_max?))),
    });
    PermitQueues(queues.collect())
}

/// The number of meters from which on idle ones are removed.
const SWEEP_THRESHOLD: usize = 1_024;
/// The maximum number of keys with a meter of their own; all others share one meter.
const METERS_MAX: usize = 65_536;
/// The maximum number of keys without a meter whose daily usage is stored.
const EVICTED_MAX: usize = 65_536;
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// What one meter measures. Tools are registered ones, so callers cannot fill the table with other names.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum MeterKey {
    Principal(CallerIdentity),
    Tenant(String),
    /// All callers of a tool together.
    Tool(String),
    ToolTenant {
        tool: String,
        tenant: String,
    },
    ToolPrincipal {
        tool: String,
        owner: CallerIdentity,
    },
}

/// A key in the usage file. It is hashed, so that the file does not reveal the callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct MeterKeyHash(#[serde(with = "uuid::serde::simple")] Uuid);

impl MeterKey {
    fn hash(&self) -> MeterKeyHash {
        let text = match self {
            Self::Principal(owner) => owner.to_text(),
            Self::Tenant(name) | Self::Tool(name) => name.clone(),
            Self::ToolTenant { tool, tenant } => json!(["tenant", tool, tenant]).to_string(),
            Self::ToolPrincipal { tool, owner } => json!(["principal", tool, owner]).to_string(),
        };
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&Sha256::digest(text)[..16]);
        MeterKeyHash(Uuid::from_bytes(bytes))
    }
}

#[derive(Debug, Default)]
struct MeterTable {
    state: Mutex<MeterTableState>,
    overflow_meter: Arc<UsageMeter>,
}

#[derive(Debug, Default)]
struct MeterTableState {
    meters: HashMap<MeterKey, Arc<UsageMeter>>,
    /// The usage of keys that are not in `meters`.
    evicted: HashMap<MeterKeyHash, DailyUsage>,
    /// The number of meters from which on they are swept again.
    sweep_from: usize,
    swept_at: Option<Instant>,
}

impl MeterTable {
    /// The meter of `key`; `day` is today.
    fn get_or_insert(&self, key: MeterKey, day: u64) -> Arc<UsageMeter> {
        let mut state = self.state.lock();
        if let Some(meter) = state.meters.get(&key) {
            return meter.clone();
        }
        if state.meters.len() >= state.sweep_from.max(SWEEP_THRESHOLD) {
            state.sweep(day);
        }
        if state.meters.len() >= METERS_MAX {
            return self.overflow_meter.clone();
        }
        let usage = match state.evicted.is_empty() {
            true => DailyUsage::default(),
            false => state.evicted.remove(&key.hash()).unwrap_or_default(),
        };
        let meter = Arc::new(UsageMeter::with_usage(usage));
        state.meters.insert(key, meter.clone());
        meter
    }

    fn usage_on(&self, day: u64) -> BTreeMap<MeterKeyHash, UsageAmount> {
        let state = self.state.lock();
        let metered = state.meters.iter().map(|(key, meter)| (key, meter.usage_on(day)));
        let metered = metered.filter(|(_, amount)| *amount != UsageAmount::default());
        let metered = metered.map(|(key, amount)| (key.hash(), amount));
        let evicted = state.evicted.iter().map(|(hash, usage)| (*hash, usage.on_day(day)));
        evicted.filter(|(_, amount)| *amount != UsageAmount::default()).chain(metered).collect()
    }

    /// Restores the usage of `day`. Must run before the first meter is requested.
    fn restore(&self, day: u64, amounts: BTreeMap<MeterKeyHash, UsageAmount>) {
        let usages = amounts.into_iter().map(|(hash, amount)| (hash, DailyUsage::new(day, amount)));
        self.state.lock().evicted.extend(usages.take(EVICTED_MAX));
    }
}

impl MeterTableState {
    /// Removes idle meters and stores their usage of `day`, which is today.
    fn sweep(&mut self, day: u64) {
        if self.swept_at.is_some_and(|then| then.elapsed() < SWEEP_INTERVAL) && self.sweep_from >= METERS_MAX {
            return;
        }
        let Self { meters, evicted, .. } = self;
        evicted.retain(|_, usage| usage.on_day(day) != UsageAmount::default());
        meters.retain(|key, meter| {
            // A meter that is referenced elsewhere can be used at any time. No new reference can arise while the table
            // is locked.
            if Arc::strong_count(meter) > 1 || !meter.is_idle() {
                return true;
            }
            let amount = meter.usage_on(day);
            if amount != UsageAmount::default() {
                if evicted.len() >= EVICTED_MAX {
                    return true;
                }
                evicted.insert(key.hash(), DailyUsage::new(day, amount));
            }
            false
        });
        self.sweep_from = (2 * self.meters.len()).clamp(SWEEP_THRESHOLD, METERS_MAX);
        self.swept_at = Some(Instant::now());
    }
}

#[derive(Debug, Default)]
pub(super) struct UsageMeter {
    rate: RateMeter,
    slots: ResizableSemaphore,
    open_calls: AtomicUsize,
    usage: Mutex<DailyUsage>,
}

/// One call that runs or waits. Dropping this ends it.
#[derive(Debug)]
pub(super) struct OpenCallPermit(Arc<UsageMeter>);

impl UsageMeter {
    fn with_usage(usage: DailyUsage) -> Self {
        Self { usage: Mutex::new(usage), ..Self::default() }
    }

    /// Counts one more open call, unless `open_max` calls are open.
    pub(super) fn try_open_call(self: &Arc<Self>, open_max: usize) -> Option<OpenCallPermit> {
        let increment = |open: usize| (open < open_max).then_some(open + 1);
        self.open_calls.fetch_update(Ordering::AcqRel, Ordering::Acquire, increment).ok()?;
        Some(OpenCallPermit(self.clone()))
    }

    /// Adds what a call used on `day` and returns the total of that day.
    pub(super) fn charge(&self, day: u64, more: UsageAmount) -> UsageAmount {
        let mut usage = self.usage.lock();
        usage.add(day, more);
        usage.on_day(day)
    }

    fn usage_on(&self, day: u64) -> UsageAmount {
        self.usage.lock().on_day(day)
    }

    pub(super) fn restore(&self, usage: DailyUsage) {
        *self.usage.lock() = usage;
    }

    /// Whether removal changes only the daily usage. The caller makes sure that no one obtains the meter meanwhile.
    fn is_idle(&self) -> bool {
        self.open_calls.load(Ordering::Acquire) == 0 && self.slots.is_idle() && self.rate.is_idle()
    }
}

impl Drop for OpenCallPermit {
    fn drop(&mut self) {
        self.0.open_calls.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The run permits of one meter, given out in the order of requests.
#[derive(Debug)]
struct ResizableSemaphore {
    semaphore: Arc<Semaphore>,
    /// The number of permits, including those that are held.
    permit_count: Mutex<usize>,
}

impl Default for ResizableSemaphore {
    fn default() -> Self {
        Self { semaphore: Arc::new(Semaphore::new(0)), permit_count: Mutex::new(0) }
    }
}

impl ResizableSemaphore {
    /// Whether no permit is held or waited for.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.semaphore) == 1
    }

    /// Sets the number of permits. Of surplus permits, held ones are removed in a later call of this function.
    fn resize(&self, count: usize) -> Arc<Semaphore> {
        let target = count.min(Semaphore::MAX_PERMITS);
        let mut current = self.permit_count.lock();
        if target > *current {
            self.semaphore.add_permits(target - *current);
            *current = target;
        } else if target < *current {
            *current -= self.semaphore.forget_permits(*current - target);
        }
        self.semaphore.clone()
    }
}

type GovernorLimiter = RateLimiter<NotKeyed, InMemoryState, ElapsedClock, StateInformationMiddleware>;

/// The requests of one meter. Without a rate it measures nothing.
#[derive(Debug, Default)]
struct RateMeter(Mutex<Option<ActiveRate>>);

#[derive(Debug)]
struct ActiveRate {
    rate: RateLimit,
    limiter: GovernorLimiter,
    clock: ElapsedClock,
    last_request: Instant,
}

#[derive(Debug, Clone, Copy)]
struct ElapsedClock(Instant);

impl GovernorClock for ElapsedClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.elapsed().into()
    }
}

impl RateMeter {
    /// Counts one more request. The error is the time until `rate` admits it.
    fn admit(&self, rate: RateLimit) -> Result<(), Duration> {
        let mut state = self.0.lock();
        let active = match &mut *state {
            Some(active) if active.rate == rate => active,
            other => other.insert(ActiveRate::carry_over(other.as_ref(), rate)),
        };
        active.last_request = Instant::now();
        active.limiter.check().map(drop).map_err(|not_yet| not_yet.wait_time_from(active.clock.now()))
    }

    /// Whether the meter can be removed without changing anything: a whole burst is available again.
    fn is_idle(&self) -> bool {
        self.0.lock().as_ref().is_none_or(ActiveRate::is_idle)
    }
}

impl ActiveRate {
    /// Continues `before`: a caller that alternates between roles with two rates must not get a full burst each time.
    fn carry_over(before: Option<&Self>, rate: RateLimit) -> Self {
        // A period that is not zero is always a valid quota.
        let quota = Quota::with_period(rate.period()).unwrap_or(Quota::per_second(rate.burst()));
        let now = Instant::now();
        let clock = ElapsedClock(now);
        let limiter = RateLimiter::direct_with_clock(quota.allow_burst(rate.burst()), clock).with_middleware();
        let new = Self { rate, limiter, clock, last_request: now };
        if let Some(before) = before.filter(|before| !before.is_idle()) {
            let left = before.limiter.check().map_or(0, |state| state.remaining_burst_capacity());
            if let Some(used) = NonZeroU32::new(rate.burst().get().saturating_sub(left)) {
                // At most a burst, so that the limiter has room for them.
                let _ = new.limiter.check_n(used);
            }
        }
        new
    }

    fn is_idle(&self) -> bool {
        let full_after = self.rate.period().saturating_mul(self.rate.burst().get());
        self.last_request.elapsed() >= full_after
    }
}
