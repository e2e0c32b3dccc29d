//! All meters of a node, and the admission of requests and calls.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_core::{
    Allowance, AuthMethod, CallLimits, CallTarget, Caller, DailyLimits, LimitLevel, LimitMeasure, Limits, Owner,
    RateLimit,
};

use super::admission::{Admission, AdmissionGuard, PermitQueue, PermitQueues};
use super::charges::Charges;
use super::meter::UsageMeter;
use super::meter_table::{MeterTable, ToolHolder};
use super::usage::{Calendar, DailyUsage};
use super::usage_file::{self, UsageRecord};
use crate::limits::charges::ReachedLimit;

/// All meters of a node.
#[derive(Debug)]
pub(crate) struct Meters {
    principals: MeterTable<Owner>,
    tenants: MeterTable<String>,
    tools: MeterTable<ToolHolder>,
    node: Arc<UsageMeter>,
    calendar: Calendar,
    /// Whether there were charges since the usage file was written.
    has_changed: Arc<AtomicBool>,
}

/// One holder's meter and its limits.
struct AppliedLimit {
    level: LimitLevel,
    meter: Arc<UsageMeter>,
    allowance: Allowance,
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

    /// Counts a request of `caller`. The caller's own rate comes first, so that excess requests of one caller use
    /// nothing of the others' rates.
    pub(crate) fn admit_request(&self, caller: &Caller, limits: &Limits) -> Result<(), ReachedLimit> {
        let (principal, tenant) = (principal_allowance(caller, limits), tenant_allowance(caller, limits));
        if let Some(rate) = principal.rate {
            admit_rate(&self.principal_meter(caller), rate, LimitLevel::Principal)?;
        }
        if let (Some(rate), Some(name)) = (tenant.rate, &caller.principal.tenant) {
            admit_rate(&self.tenant_meter(name), rate, LimitLevel::Tenant)?;
        }
        limits.rate.map_or(Ok(()), |rate| admit_rate(&self.node, rate, LimitLevel::Node))
    }

    /// Admits `call` to an entry with the limits `entry`, if every level that applies has room for one more open call
    /// and daily usage left.
    pub(crate) fn admit_call(
        &self,
        caller: &Caller,
        target: &CallTarget,
        is_on_behalf: bool,
        entry: &CallLimits,
        limits: &Limits,
    ) -> Result<Admission, ReachedLimit> {
        let bounded = self.applied_limits(caller, Some((target, entry)), limits);
        let mut held = AdmissionGuard::default();
        let mut charges = Charges::new(self.calendar.clone(), self.has_changed.clone());
        for AppliedLimit { level, meter, allowance, .. } in &bounded {
            self.check_daily_limits(*level, meter, allowance)?;
            if let Some(open_max) = allowance.open_calls_max() {
                held.open_calls
                    .push(meter.try_open_call(open_max).ok_or_else(|| ReachedLimit::open_calls(*level, open_max))?);
            }
            if !allowance.daily.is_unbounded() {
                // The call on whose behalf this one is made charges everything except the rows.
                let is_rows_alone = is_on_behalf && *level != LimitLevel::Tool;
                charges.add(*level, meter.clone(), allowance.daily, is_rows_alone);
            }
        }
        for AppliedLimit { meter, allowance, .. } in bounded.iter().filter(|bounded| bounded.level == LimitLevel::Tool)
        {
            allowance.rate.map_or(Ok(()), |rate| admit_rate(meter, rate, LimitLevel::Tool))?;
        }
        if !is_on_behalf {
            return Ok(Admission { permit_queues: Some(permit_queues(&bounded)), charges, guard: held });
        }
        // It holds permits already. If it waited for another one, it could wait for a call that waits for its permits.
        let tool = bounded.iter().find(|bounded| bounded.level == LimitLevel::Tool && !bounded.takes_turns);
        if let Some((tool, running_max)) = tool.and_then(|tool| Some((tool, tool.allowance.running_calls_max?))) {
            let place = tool.meter.slots.resize(running_max).try_acquire_owned();
            held.tool_permit = Some(place.map_err(|_| ReachedLimit::open_calls(LimitLevel::Tool, running_max))?);
        }
        Ok(Admission { permit_queues: None, charges, guard: held })
    }

    /// Admits `caller` to work that needs a run permit but is not a call.
    pub(crate) fn admit_listing(
        &self,
        caller: &Caller,
        limits: &Limits,
    ) -> Result<(PermitQueues, AdmissionGuard), ReachedLimit> {
        let bounded = self.applied_limits(caller, None, limits);
        let mut held = AdmissionGuard::default();
        for AppliedLimit { level, meter, allowance, .. } in &bounded {
            if let Some(open_max) = allowance.open_calls_max() {
                held.open_calls
                    .push(meter.try_open_call(open_max).ok_or_else(|| ReachedLimit::open_calls(*level, open_max))?);
            }
        }
        // It is not in the list of jobs, which limits only calls.
        let open_max = limits.open_calls_max;
        held.open_calls.push(
            self.node.try_open_call(open_max).ok_or_else(|| ReachedLimit::open_calls(LimitLevel::Node, open_max))?,
        );
        Ok((permit_queues(&bounded), held))
    }

    /// Restores the usage of `file`, if it is from today.
    ///
    /// # Errors
    /// If the file exists and cannot be read.
    pub(crate) fn restore(&self, file: &Path) -> std::io::Result<()> {
        let Some(written) = usage_file::read(file)? else { return Ok(()) };
        let day = self.calendar.day();
        if written.day == day {
            self.principals.restore(day, written.principals);
            self.tenants.restore(day, written.tenants);
            self.tools.restore(day, written.tools);
            self.node.restore(DailyUsage::new(day, written.node));
        }
        Ok(())
    }

    /// The usage to write, if it changed since the last call of this function.
    pub(crate) fn take_changed_usage(&self) -> Option<UsageRecord> {
        let day = self.calendar.day();
        self.has_changed.swap(false, Ordering::Relaxed).then(|| UsageRecord {
            day,
            principals: self.principals.usage_on(day),
            tenants: self.tenants.usage_on(day),
            tools: self.tools.usage_on(day),
            node: self.node.usage_on(day),
        })
    }

    /// Records that the usage could not be written.
    pub(crate) fn mark_changed(&self) {
        self.has_changed.store(true, Ordering::Relaxed);
    }

    /// The limits that apply to `caller` and to the target of its call, in the order in which calls wait.
    fn applied_limits(
        &self,
        caller: &Caller,
        call: Option<(&CallTarget, &CallLimits)>,
        limits: &Limits,
    ) -> Vec<AppliedLimit> {
        let mut bounded = Vec::with_capacity(6);
        let mut add =
            |level, meter, allowance| bounded.push(AppliedLimit { level, meter, allowance, takes_turns: false });
        let (principal, tenant) = (principal_allowance(caller, limits), tenant_allowance(caller, limits));
        if bounds_calls(&principal) {
            add(LimitLevel::Principal, self.principal_meter(caller), principal);
        }
        if let Some(name) = caller.principal.tenant.as_ref().filter(|_| bounds_calls(&tenant)) {
            add(LimitLevel::Tenant, self.tenant_meter(name), tenant);
        }
        if let Some((CallTarget::Tool(name), CallLimits { all_callers: of_all, .. })) = call
            && (bounds_calls(of_all) || of_all.rate.is_some())
        {
            bounded.extend(self.tool_limits(name, caller, *of_all));
        }
        // The list of jobs limits how many calls are open in total.
        let running_calls_max = Some(limits.running_calls_max);
        let allowance = Allowance { running_calls_max, daily: limits.daily, ..Allowance::default() };
        bounded.push(AppliedLimit { level: LimitLevel::Node, meter: self.node.clone(), allowance, takes_turns: false });
        bounded
    }

    /// The limits of the tool `name` for `caller`; `of_all` is the allowance of all callers together. The limit on
    /// running calls is shared by all callers, who take turns; the rate and the daily limits apply to each tenant.
    fn tool_limits(&self, name: &str, caller: &Caller, of_all: Allowance) -> Vec<AppliedLimit> {
        let tool = name.to_owned();
        let is_known = caller.principal.auth_method != AuthMethod::Process;
        let tenant = caller.principal.tenant.clone().filter(|_| is_known);
        let bounded = |level, holder, allowance, takes_turns| {
            let meter = self.tools.get_or_insert(holder, self.calendar.day());
            AppliedLimit { level, meter, allowance, takes_turns }
        };
        let takes_turns = of_all.running_calls_max.is_some();
        let quota = Allowance { rate: of_all.rate, daily: of_all.daily, ..Allowance::default() };
        // One caller cannot fill the whole queue.
        let waiting_calls_max = of_all.waiting_calls_max.map(|waiting| waiting.div_ceil(2));
        let turns =
            Allowance { waiting_calls_max, running_calls_max: of_all.running_calls_max, ..Allowance::default() };
        let mut all = Vec::with_capacity(3);
        if takes_turns && is_known {
            let owner = Owner::for_quota(caller);
            all.push(bounded(LimitLevel::Tool, ToolHolder::Principal { tool: tool.clone(), owner }, turns, true));
        }
        let of_everybody = match tenant {
            None => of_all,
            Some(tenant) => {
                let holder = ToolHolder::Tenant { tool: tool.clone(), tenant };
                all.push(bounded(LimitLevel::Tool, holder, turns.or(quota), takes_turns));
                Allowance { rate: None, daily: DailyLimits::default(), ..of_all }
            }
        };
        all.push(bounded(LimitLevel::Tool, ToolHolder::AllCallers(tool), of_everybody, false));
        all
    }

    fn check_daily_limits(
        &self,
        level: LimitLevel,
        meter: &UsageMeter,
        allowance: &Allowance,
    ) -> Result<(), ReachedLimit> {
        if allowance.daily.is_unbounded() {
            return Ok(());
        }
        let used_up = meter.usage_on(self.calendar.day()).reached_limit(&allowance.daily);
        used_up.map_or(Ok(()), |(measure, bound)| {
            Err(ReachedLimit { level, measure, bound, retry_after: self.calendar.until_tomorrow() })
        })
    }

    fn principal_meter(&self, caller: &Caller) -> Arc<UsageMeter> {
        self.principals.get_or_insert(Owner::for_quota(caller), self.calendar.day())
    }

    fn tenant_meter(&self, name: &str) -> Arc<UsageMeter> {
        self.tenants.get_or_insert(name.to_owned(), self.calendar.day())
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
fn principal_allowance(caller: &Caller, limits: &Limits) -> Allowance {
    let of_roles = caller.principal.grants.limits;
    if caller.principal.auth_method == AuthMethod::Process { of_roles } else { of_roles.or(limits.per_principal) }
}

/// The limits of the caller's tenant, if it has one.
fn tenant_allowance(caller: &Caller, limits: &Limits) -> Allowance {
    let is_bounded = caller.principal.tenant.is_some() && caller.principal.auth_method != AuthMethod::Process;
    if is_bounded { limits.per_tenant } else { Allowance::default() }
}

fn bounds_calls(allowance: &Allowance) -> bool {
    allowance.running_calls_max.is_some() || !allowance.daily.is_unbounded()
}

fn permit_queues(bounded: &[AppliedLimit]) -> PermitQueues {
    let lines = bounded.iter().filter_map(|bounded| match bounded.takes_turns {
        true => Some(PermitQueue::FairTurn(bounded.meter.slots.resize(1))),
        false => Some(PermitQueue::Run(bounded.meter.slots.resize(bounded.allowance.running_calls_max?))),
    });
    PermitQueues(lines.collect())
}
