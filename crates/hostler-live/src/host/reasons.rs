//! Why a job waits, in words: what it needs, where it comes closest, and what would have to end.

use std::collections::BTreeMap;

use hostler_core::capacity::Capacity;
use hostler_core::cluster::Node;
use hostler_core::gate::Gate;
use hostler_core::id::{JobId, NodeId};
use hostler_core::job::{Demand, Gang, Job, Phase};
use hostler_core::placement::Lease;
use hostler_core::reason::Reason;
use hostler_core::units::{Milli, Span, Time};
use hostler_core::window::Kept;

use super::Host;
use super::jobs::LiveJob;
use super::reservations::span_words;
use crate::image;

/// Sentences about demands that do not fit now: jobs that wait differ in few ways that matter.
pub(super) type Shortages = BTreeMap<(Demand, u32), String>;

/// Jobs that are named as those that would have to end.
const NAMED_MAX: usize = 4;

impl Host {
    /// Why a job stands where it stands, in words; nothing where all is well.
    pub(super) fn reason(&self, id: u32, job: &Job, known: &mut Shortages) -> String {
        let live = &self.desk.jobs[&id];
        match job.phase {
            Phase::Running(_) | Phase::Starting(_) => {
                self.silence_of(job).or_else(|| self.drain_of(job)).unwrap_or_default()
            }
            Phase::Done(_) => String::new(),
            Phase::Stopping(_) if job.cancelled => "cancelled; it is being stopped".to_owned(),
            Phase::Stopping(_) => "it is being stopped".to_owned(),
            Phase::Pending => match job.reason {
                Reason::StartFailed if !live.row.facts.reason.is_empty() => {
                    format!("{}; it is tried again", live.row.facts.reason)
                }
                Reason::NoCapacity { .. } => {
                    self.shortage_of(job, known).unwrap_or_else(|| job.reason.to_string())
                }
                Reason::Behind { head: other } | Reason::WouldDelay { reserved: other }
                    if !self.desk.state().pending().contains(&other) =>
                {
                    let short = self.shortage_of(job, known);
                    short.unwrap_or_else(|| "jobs that came before it come first".to_owned())
                }
                reason => reason.to_string(),
            },
            Phase::Held => self.held_reason(live, job),
        }
    }

    /// A job on a node that says nothing may run or not.
    fn silence_of(&self, job: &Job) -> Option<String> {
        let lease = self.desk.state().lease(job.lease()?)?;
        let mut parts = lease.placement.parts.iter();
        let (node, status) = parts.find_map(|part| {
            let status = self.driver.node(&self.desk, part.node);
            status.silent.then_some((part.node, status))
        })?;
        let name = &self.desk.state().node(node).spec.name;
        let silence =
            format!("node `{name}` has said nothing for {:.0} s", status.silence.secs_f64());
        Some(match status.connected {
            true => silence,
            false => format!("{silence}; its agent is not connected"),
        })
    }

    /// A job on a node that is drained may have to end soon, and its owner should know why.
    fn drain_of(&self, job: &Job) -> Option<String> {
        let lease = self.desk.state().lease(job.lease()?)?;
        lease.placement.parts.iter().find_map(|part| {
            let name = &self.desk.state().node(part.node).spec.name;
            let drained = self.desk.node_row(name).is_some_and(|row| row.draining);
            let note = || self.kept_note(name, part.node);
            drained.then(|| match note().as_str() {
                "" => format!("node `{name}` is drained; what runs there goes on"),
                note => format!("node `{name}` is drained: {note}"),
            })
        })
    }

    /// What keeps a job from the policy, in words.
    fn held_reason(&self, live: &LiveJob, job: &Job) -> String {
        match job.gates.first() {
            Some(Gate::After) => self.desk.waits_for(job.id),
            Some(Gate::Pause) => format!("{}; it is tried again soon", live.row.facts.reason),
            Some(Gate::NoNode) => self.no_node(job),
            Some(Gate::Quota) => self.over_quota(live, job),
            Some(Gate::Budget) => self.over_budget(live, job),
            Some(Gate::Window) => {
                let mut notes =
                    job.spec.gangs.iter().filter_map(|gang| self.window_note(&gang.demand));
                notes.next().unwrap_or_else(|| job.reason.to_string())
            }
            Some(Gate::Engine) if !live.row.facts.reason.is_empty() => {
                live.row.facts.reason.clone()
            }
            Some(Gate::Person | Gate::Array | Gate::Engine) | None => job.reason.to_string(),
        }
    }

    fn no_node(&self, job: &Job) -> String {
        let needs = job.spec.gangs.iter().find_map(|gang| image::wanted(gang.demand.needs));
        let why = match (job.reason, needs) {
            (Reason::NoSuchFeature, Some(wanted)) => format!("no node can run it: {wanted}"),
            (reason @ Reason::NodeTooSmall { .. }, _) => {
                self.too_small(job).unwrap_or_else(|| reason.to_string())
            }
            (reason, _) => reason.to_string(),
        };
        format!("{why}; it waits for other nodes to join")
    }

    /// What no node has enough of for one task, were it empty, and the node that has most of it.
    fn too_small(&self, job: &Job) -> Option<String> {
        let nodes = self.desk.state().nodes().iter().filter(|node| !node.retired);
        job.spec.gangs.iter().find_map(|Gang { demand, .. }| {
            let able: Vec<&Node> = nodes.clone().filter(|node| accepts(demand, node)).collect();
            beyond(demand, &able)
        })
    }

    fn over_quota(&self, live: &LiveJob, job: &Job) -> String {
        let state = self.desk.state();
        let tenant = &state.tenants()[job.spec.tenant.index()];
        let (asked, most) = (gpus(job.spec.gpu_milli()), tenant.gpus_max.unwrap_or_default());
        let through = state.let_through(job.spec.tenant);
        let name = &live.row.tenant;
        if job.reason == Reason::QuotaTooSmall {
            return format!("it asks for {asked} GPUs; the quota of tenant `{name}` is {most}");
        }
        // Who was let through counts against the quota, whether it runs already or not.
        let run = self.desk.tenants.get(name).map_or(0, |tenant| tenant.leased_gpu_milli);
        let are = match run {
            0 => "none run".to_owned(),
            1..=1000 => format!("{} runs", gpus(run)),
            _ => format!("{} run", gpus(run)),
        };
        let unit = if most == 1 { "GPU" } else { "GPUs" };
        let mut said = format!("tenant `{name}` may have {most} {unit} at once: {are}");
        let ahead = through.saturating_sub(run);
        if ahead > 0 {
            let are = if ahead <= 1000 { "is" } else { "are" };
            said += &format!(", {} {are} asked for by jobs that wait before it", gpus(ahead));
        }
        if through + job.spec.gpu_milli() <= u64::from(most) * 1000 {
            return format!("{said}; an earlier job of that tenant waits for more");
        }
        format!("{said}; it asks for {asked}")
    }

    fn over_budget(&self, live: &LiveJob, job: &Job) -> String {
        let state = self.desk.state();
        let tenant = job.spec.tenant;
        let Some(budget) = state.tenant(tenant).budget else { return job.reason.to_string() };
        let account = state.tenant_account(tenant);
        let hours = |span: Span| span.secs_f64() / 3600.0;
        let anew = (account.period_from + budget.every).since(state.now());
        format!(
            "tenant `{}` has used {:.1} of the {:.0} GPU hours of its budget; there are more in \
             {}, or when an admin says so (`hostler tenant set`)",
            live.row.tenant,
            hours(account.spent_at(state.now())),
            hours(budget.gpu_time),
            span_words(anew)
        )
    }

    /// What is missing for a job that does not fit now.
    fn shortage_of(&self, job: &Job, known: &mut Shortages) -> Option<String> {
        let free = self.desk.state().capacity();
        let gang = job.spec.gangs.iter().find(|gang| !fits(free, gang))?;
        let key = (gang.demand.clone(), gang.count);
        if let Some(said) = known.get(&key) {
            return Some(said.clone());
        }
        let said = self.shortage(gang);
        known.insert(key, said.clone());
        Some(said)
    }

    fn shortage(&self, gang: &Gang) -> String {
        let (state, demand) = (self.desk.state(), &gang.demand);
        let free = state.capacity();
        let all = state.nodes().iter().filter(|node| !node.retired);
        let open: Vec<&Node> = all.clone().filter(|node| node.usable()).collect();
        if open.is_empty() {
            return match all.count() {
                0 => "there are no nodes".to_owned(),
                all => format!("none of {all} nodes takes jobs; see `hostler nodes`"),
            };
        }
        let able = |node: &&Node| node.spec.features.cover(demand.needs);
        if let Some(wanted) = image::wanted(demand.needs)
            && !open.iter().any(able)
        {
            return format!("no node that takes jobs can run it: {wanted}");
        }
        let accepted: Vec<&Node> = open.into_iter().filter(|node| accepts(demand, node)).collect();
        if accepted.is_empty() {
            return "no node that takes jobs has a GPU model that it accepts".to_owned();
        }
        let fit = accepted.iter().map(|node| free.slots(node.id, demand, u32::MAX)).sum::<u32>();
        if fit > 0 && gang.count > 1 {
            let (count, each) = (gang.count, need(demand));
            return format!("{fit} of its {count} tasks, which need {each} each, would fit now");
        }
        let kept = |node: &&&Node| !Kept::admits(node.kept, demand);
        match accepted.iter().filter(kept).count() {
            0 => lacking(free, demand, &accepted),
            kept => {
                let others: Vec<&Node> = accepted
                    .iter()
                    .filter(|node| Kept::admits(node.kept, demand))
                    .copied()
                    .collect();
                let limit = match demand.stay.is_none() {
                    true => "; with `--max-time` it may start where it would end before",
                    false => "",
                };
                let are =
                    if kept == 1 { "1 node is".to_owned() } else { format!("{kept} nodes are") };
                let words = format!("{are} kept for others{limit}");
                if others.is_empty() {
                    return words;
                }
                format!("{}; {words}", lacking(free, demand, &others))
            }
        }
    }

    /// The node on which a waiting job of one task would fit first, and the jobs that would have to
    /// end there, as far as that is believed.
    pub(super) fn room_when(&self, job: &Job) -> Option<String> {
        let [gang] = &*job.spec.gangs else { return None };
        let state = self.desk.state();
        if gang.count > 1 || fits(state.capacity(), gang) {
            return None;
        }
        let nodes = state.nodes().iter().filter(|node| node.usable());
        let nodes = nodes.filter(|node| accepts(&gang.demand, node));
        let (_, node, jobs) = nodes
            .filter_map(|node| self.ends_before_room(node, &gang.demand))
            .min_by_key(|(at, node, jobs)| (*at, jobs.len(), *node))?;
        let name = &state.node(node).spec.name;
        let named: Vec<String> = jobs.iter().take(NAMED_MAX).map(|job| job.0.to_string()).collect();
        let more = jobs.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let (word, end) = if jobs.len() == 1 { ("job", "ends") } else { ("jobs", "end") };
        Some(format!("it would fit on `{name}` once {word} {}{more} {end}", named.join(", ")))
    }

    /// When the stays on a node have freed enough for one task, and whose they are; soonest first.
    fn ends_before_room(&self, node: &Node, demand: &Demand) -> Option<(Time, NodeId, Vec<JobId>)> {
        let state = self.desk.state();
        let mut stays: Vec<&Lease> =
            node.leases.iter().filter_map(|lease| state.lease(*lease)).collect();
        stays.sort_by_key(|lease| (lease.expected_end, lease.id));
        let free = state.capacity();
        let (mut gpu, own) = (free.gpu_free(node.id), free.node(node.id));
        let (mut cpu, mut mem) = (own.cpu, own.mem);
        let mut jobs = Vec::new();
        for stay in stays {
            for part in stay.placement.parts.iter().filter(|part| part.node == node.id) {
                gpu = Milli(gpu.0 + state.gpu_of(part).0);
                cpu = Milli(cpu.0 + part.cpu.0);
                mem.0 += part.mem.0;
            }
            jobs.push(stay.job);
            if gpu >= demand.gpu && cpu >= demand.cpu && mem >= demand.mem {
                return Some((stay.expected_end, node.id, jobs));
            }
        }
        None
    }

    /// When a waiting job may start, if those before it start first and everything ends as
    /// believed: GPUs are counted, not placed.
    pub(super) fn expected_start(&self, job: &Job) -> Option<Time> {
        let state = self.desk.state();
        let usable = state.nodes().iter().filter(|node| node.usable());
        let all: u64 = usable.clone().map(|node| u64::from(node.spec.gpus) * 1000).sum();
        if job.spec.gpu_milli() == 0 {
            return None;
        }
        let mut free: u64 =
            usable.map(|node| u64::from(state.capacity().gpu_free(node.id).0)).sum();
        let mut now = state.now();
        // Who runs or is to start ends then, and gives back so much.
        let mut ends: BTreeMap<Time, u64> = BTreeMap::new();
        for lease in state.by_expected_end() {
            let held = lease.placement.parts.iter().map(|part| u64::from(state.gpu_of(part).0));
            *ends.entry(lease.expected_end).or_default() += held.sum::<u64>();
        }
        for ahead in state.pending().range(..=job.id).filter_map(|id| state.job(*id)) {
            let asked = ahead.spec.gpu_milli();
            if asked > all {
                continue;
            }
            while free < asked {
                let (end, back) = ends.pop_first().filter(|(end, _)| *end != Time::NEVER)?;
                (now, free) = (now.max(end), free + back);
            }
            free -= asked;
            let end = ahead.remaining().map_or(Time::NEVER, |left| now + left.max(Span(1)));
            *ends.entry(end).or_default() += asked;
        }
        (job.spec.gpu_milli() <= all).then_some(now)
    }
}

/// Whether all tasks of a role would find room now, counted by node.
fn fits(free: &Capacity, gang: &Gang) -> bool {
    free.may_hold(&gang.demand, gang.count)
        && (0..free.node_count() as u32)
            .map(|node| free.slots(NodeId(node), &gang.demand, gang.count))
            .fold(0u32, u32::saturating_add)
            >= gang.count
}

fn accepts(demand: &Demand, node: &Node) -> bool {
    let models = demand.models.set();
    let model = || node.spec.gpu_model.is_some_and(|model| models.contains(model));
    node.spec.features.cover(demand.needs) && (!demand.names_models() || model())
}

/// What no node has enough of for one task, and the node that has most of it.
fn lacking(free: &Capacity, demand: &Demand, nodes: &[&Node]) -> String {
    let name = |node: &Node| format!("node `{}`", node.spec.name);
    let with_gpus: Vec<&&Node> =
        nodes.iter().filter(|node| free.largest_gpu(node.id) >= demand.gpu).collect();
    if with_gpus.is_empty() {
        let most = nodes.iter().max_by_key(|node| (free.largest_gpu(node.id), node.id));
        let Some(best) = most else { return need(demand) };
        let (asked, most) = (need(demand), gpus(free.largest_gpu(best.id).0.into()));
        return match demand.gpu.0 {
            ..=999 => format!("needs {asked}; the most free of one is {most} ({})", name(best)),
            1000 => format!("needs {asked}; none is free"),
            _ => format!(
                "needs {asked} on one node; the most free on one is {most} ({})",
                name(best)
            ),
        };
    }
    let with_cores: Vec<&&&Node> =
        with_gpus.iter().filter(|node| free.node(node.id).cpu >= demand.cpu).collect();
    let beside = if demand.gpu.0 > 0 { " beside its GPUs" } else { "" };
    if with_cores.is_empty() {
        let most = with_gpus.iter().max_by_key(|node| (free.node(node.id).cpu, node.id));
        let Some(best) = most else { return need(demand) };
        let (asked, most) = (cores(demand.cpu), cores(free.node(best.id).cpu));
        return format!("needs {asked} cores{beside}; the most free is {most} ({})", name(best));
    }
    let most = with_cores.iter().max_by_key(|node| (free.node(node.id).mem, node.id));
    match most {
        Some(best) if free.node(best.id).mem < demand.mem => {
            let (asked, most) = (gib(demand.mem.0), gib(free.node(best.id).mem.0));
            format!("needs {asked} GiB of memory{beside}; the most free is {most} ({})", name(best))
        }
        Some(_) | None => format!("needs {}; no node has that free together", need(demand)),
    }
}

/// What a task needs more of than each of these nodes has in all, and the one that has most.
fn beyond(demand: &Demand, nodes: &[&Node]) -> Option<String> {
    let told = |asked: String, best: &Node, has: String| {
        let name = &best.spec.name;
        Some(format!("needs {asked} on one node; the largest, `{name}`, has {has}"))
    };
    let most = nodes.iter().max_by_key(|node| (node.spec.gpus, node.spec.cpu))?;
    if most.spec.gpus * 1000 < demand.gpu.0 {
        let asked = format!("{} GPUs", gpus(demand.gpu.0.into()));
        return told(asked, most, most.spec.gpus.to_string());
    }
    let beside = if demand.gpu.0 > 0 { " beside its GPUs" } else { "" };
    let able = nodes.iter().filter(|node| node.spec.gpus * 1000 >= demand.gpu.0);
    let most = able.clone().max_by_key(|node| (node.spec.cpu, node.id))?;
    if most.spec.cpu < demand.cpu {
        let asked = format!("{} cores{beside}", cores(demand.cpu));
        return told(asked, most, cores(most.spec.cpu));
    }
    let able = able.filter(|node| node.spec.cpu >= demand.cpu);
    let most = able.max_by_key(|node| (node.spec.mem, node.id))?;
    if most.spec.mem < demand.mem {
        let asked = format!("{} GiB of memory{beside}", gib(demand.mem.0));
        return told(asked, most, format!("{} GiB", gib(most.spec.mem.0)));
    }
    None
}

/// What one task needs, in a few words.
fn need(demand: &Demand) -> String {
    match demand.gpu.0 {
        0 => format!("{} cores", cores(demand.cpu)),
        1000 => "1 GPU".to_owned(),
        part if part < 1000 => format!("{} of a GPU", gpus(part.into())),
        more => format!("{} GPUs", gpus(more.into())),
    }
}

fn gpus(milli: u64) -> String {
    format!("{}", milli as f64 / 1000.0)
}

fn cores(milli: Milli) -> String {
    gpus(milli.0.into())
}

fn gib(mib: u32) -> String {
    format!("{:.1}", f64::from(mib) / 1024.0)
}
