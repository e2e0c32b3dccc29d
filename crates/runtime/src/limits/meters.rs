//! All meters of a node, and the admission of requests and calls.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_core::{
    AuthMethod, CallLimits, CallTarget, Caller, CallerIdentity, DailyLimits, LevelLimits, LimitLevel, LimitMeasure,
    Limits, RateLimit,
};

use super::admission::{Admission, AdmissionGuard, PermitQueue, PermitQueues};
use super::charges::{ReachedLimit, UsageCharges};
use super::meter::UsageMeter;
use super::meter_table::{MeterKey, MeterTable};
use super::usage::{Calendar, DailyUsage};
use super::usage_file::UsageRecord;

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
