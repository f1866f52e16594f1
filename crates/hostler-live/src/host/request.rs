//! From what people ask for to what the engine schedules: checks and units.

use std::collections::BTreeSet;

use hostler_core::border::check_spec;
use hostler_core::id::{GroupId, ModelId, ProfileKey, TenantId};
use hostler_core::job::{Checkpoint, Demand, Gang, JobKind, JobSpec, Locality, Models, Sharing};
use hostler_core::state::ClusterState;
use hostler_core::units::{Mib, Milli, Span};
use hostler_core::window::StayBound;

use super::{Desk, HostError};
use crate::image::{ImageKind, Mount, path_of};
use crate::job::{self, JobRequest, is_variable, umask_of};
use crate::limits::{
    COMMAND_BYTES_MAX, CPU_MILLI_MAX, CPU_MILLI_MIN, GPU_MILLI_MIN, GRACE_SECS, GRACE_SECS_MAX,
    GROUPS_MAX, MOUNTS_MAX, NAME_CHARS_MAX, SECS_MAX, TASKS_MAX,
};

/// What the engine schedules for a request, and the names that have to be numbered first.
pub(super) fn spec_of(
    request: &JobRequest,
    desk: &Desk,
    tenant: &str,
) -> Result<(JobSpec, Vec<String>), HostError> {
    let state = desk.state();
    let demand = demand_of(request, state)?;
    let (group, profile, names) = numbers_of(request, desk, tenant);
    let grace = grace_of(request)?;
    let secs = |field, secs: Option<u64>| match secs {
        Some(secs) if secs == 0 || secs > SECS_MAX => {
            Err(invalid(field, format!("{secs}; use seconds from 1 to {SECS_MAX}")))
        }
        Some(secs) => Ok(Some(Span::from_secs(secs))),
        None => Ok(None),
    };
    secs("linger_secs", request.interactive.and_then(|interactive| interactive.linger_secs))?;
    let deadline = secs("deadline_secs", request.deadline_secs)?;
    let tasks = request.tasks;
    if !(1..=TASKS_MAX).contains(&tasks) {
        return Err(invalid("tasks", format!("{tasks}; use 1 to {TASKS_MAX}")));
    }
    if request.steps == Some(0) {
        return Err(invalid("steps", "0; use 1 or more".to_owned()));
    }
    let skew = skew_of(request)?;
    let no_suspend = request.no_suspend;
    let checkpoint = if request.checkpoints {
        Checkpoint { save: grace, no_suspend, ..Checkpoint::default() }
    } else {
        Checkpoint { never: true, no_suspend, ..Checkpoint::default() }
    };
    let spec = JobSpec {
        name: name_of(request).into(),
        tenant: TenantId(desk.tenants.get(tenant).expect("the tenant was looked up").row.id),
        group: group.map(GroupId),
        kind: if request.checkpoints { JobKind::Training } else { JobKind::Batch },
        gangs: [Gang { count: tasks, demand }].into(),
        priority: request.priority,
        deadline: deadline.map(|span| desk.now + span),
        time_limit: secs("max_secs", request.max_secs)?,
        user_estimate: secs("estimate_secs", request.estimate_secs)?,
        elastic: None,
        checkpoint,
        sharing: match request.sharing {
            job::Sharing::Never => Sharing::Never,
            job::Sharing::Willing => Sharing::Willing,
        },
        profile,
        work: request.steps,
        skew,
        ..JobSpec::default()
    };
    check_spec(state, &spec).map_err(|fault| invalid("job", fault.to_string()))?;
    Ok((spec, names))
}

/// How much of its model its largest tensor is.
fn skew_of(request: &JobRequest) -> Result<Option<Milli>, HostError> {
    match request.skew {
        Some(skew) if !(0.0..=1.0).contains(&skew) => {
            Err(invalid("skew", format!("{skew}; use 0 to 1")))
        }
        skew => Ok(skew.map(|skew| Milli((skew * 1000.0).round() as u32))),
    }
}

/// The numbers of the group of a job and of its speeds, and the names that have to be numbered for
/// them, in this order. Speeds are by tenant: one must not mislead the scheduler about the jobs of
/// another.
fn numbers_of(
    request: &JobRequest,
    desk: &Desk,
    tenant: &str,
) -> (Option<u32>, Option<ProfileKey>, Vec<String>) {
    if request.group.is_empty() {
        return (None, None, Vec::new());
    }
    // No name has a slash, so that this is nobody's group.
    let names = [request.group.clone(), format!("{tenant}/{}", request.group)];
    let known = names.iter().filter(|name| desk.groups.contains_key(*name)).count();
    if desk.groups.len() + names.len() - known > GROUPS_MAX {
        return (desk.groups.get(&request.group).copied(), None, Vec::new());
    }
    let mut unknown = Vec::new();
    let numbers = names.map(|name| match desk.groups.get(&name) {
        Some(number) => *number,
        None => {
            unknown.push(name);
            (desk.groups.len() + unknown.len() - 1) as u32
        }
    });
    (Some(numbers[0]), Some(ProfileKey(numbers[1])), unknown)
}

/// The name that people see.
pub(super) fn name_of(request: &JobRequest) -> String {
    if !request.name.is_empty() {
        return request.name.clone();
    }
    let program = request.command.first().map_or("", String::as_str);
    program.rsplit('/').next().unwrap_or(program).chars().take(NAME_CHARS_MAX).collect()
}

/// Time from the signal to the end by force.
pub fn grace_of(request: &JobRequest) -> Result<Span, HostError> {
    let secs = request.grace_secs.unwrap_or(GRACE_SECS);
    if secs > GRACE_SECS_MAX {
        return Err(invalid("grace_secs", format!("{secs}; at most {GRACE_SECS_MAX}")));
    }
    Ok(Span::from_secs(secs))
}

/// Whether a name can be shown on a line and put into a path.
pub(super) fn check_name(field: &'static str, name: &str) -> Result<(), HostError> {
    let sane = |char: char| !char.is_control() && char != '/';
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || !name.chars().all(sane) {
        let fault = format!(
            "`{}`; use 1 to {NAME_CHARS_MAX} characters, no slashes and no control characters",
            name.chars().take(NAME_CHARS_MAX).collect::<String>().escape_debug()
        );
        return Err(invalid(field, fault));
    }
    Ok(())
}

/// Whether what is to be run can be.
pub(super) fn check_texts(request: &JobRequest) -> Result<(), HostError> {
    if request.command.first().is_none_or(String::is_empty) {
        return Err(invalid("command", "it names no program".to_owned()));
    }
    if !request.name.is_empty() {
        check_name("name", &request.name)?;
    }
    if !request.group.is_empty() {
        check_name("group", &request.group)?;
    }
    crate::notice::check(request).map_err(|(field, fault)| invalid(field, fault))?;
    let env = request.env.iter().flat_map(|(name, value)| [name, value]);
    let own = [&request.workdir, &request.script, &request.image];
    let texts = request.command.iter().chain(own).chain(&request.mounts).chain(env);
    let mut bytes = 0;
    for text in texts {
        bytes += text.len() + 1;
        if text.contains('\0') {
            return Err(invalid("command", "command, folder or variables hold a zero byte".into()));
        }
    }
    if !request.workdir.is_empty() && !request.workdir.starts_with('/') {
        let fault = format!("`{}`; name the folder from `/` on", request.workdir.escape_debug());
        return Err(invalid("workdir", fault));
    }
    if !request.umask.is_empty() && umask_of(&request.umask).is_none() {
        let fault = format!("`{}`; use octal digits as in 027", request.umask.escape_debug());
        return Err(invalid("umask", fault));
    }
    if bytes > COMMAND_BYTES_MAX {
        let fault = format!(
            "command, script and variables have {bytes} bytes, at most {COMMAND_BYTES_MAX}"
        );
        return Err(invalid("command", fault));
    }
    if !request.script.is_empty() && !request.script.starts_with("#!") {
        let fault = "it does not begin with `#!` and the program that reads it".to_owned();
        return Err(invalid("script", fault));
    }
    check_image(request)?;
    match request.env.keys().find(|name| !is_variable(name)) {
        Some(name) => {
            let fault = format!(
                "`{}` is no name of a variable; use letters, digits and `_`, and no digit first",
                name.escape_debug()
            );
            Err(invalid("env", fault))
        }
        None => Ok(()),
    }
}

/// Whether the image and what is seen in it can be told to a program that runs it.
fn check_image(request: &JobRequest) -> Result<(), HostError> {
    let JobRequest { image, mounts, workdir, .. } = request;
    if image.is_empty() {
        return match mounts.is_empty() {
            true => Ok(()),
            false => Err(invalid("mounts", "they are for jobs with an image".to_owned())),
        };
    }
    if ImageKind::of(image).is_none() {
        let fault = format!(
            "`{}`; use docker://NAME, oci-archive:/FILE, docker-archive:/FILE, or a file or folder \
             from `/` on, without `:` and `,`",
            image.escape_debug()
        );
        return Err(invalid("image", fault));
    }
    if !workdir.is_empty() && path_of(workdir).is_none() {
        let fault = format!("`{}`; with an image it has no `:` and no `,`", workdir.escape_debug());
        return Err(invalid("workdir", fault));
    }
    if mounts.len() > MOUNTS_MAX {
        return Err(invalid("mounts", format!("{}; at most {MOUNTS_MAX}", mounts.len())));
    }
    match mounts.iter().find(|mount| Mount::parse(mount).is_none()) {
        Some(mount) => {
            let fault = format!(
                "`{}`; use FROM, FROM:TO or FROM:TO:ro with paths from `/` on",
                mount.escape_debug()
            );
            Err(invalid("mounts", fault))
        }
        None => Ok(()),
    }
}

fn demand_of(request: &JobRequest, state: &ClusterState) -> Result<Demand, HostError> {
    let mut models = Vec::new();
    for name in &request.gpu_models {
        let known = state.models().iter().position(|model| *model.name == **name);
        let Some(at) = known else {
            let known: BTreeSet<&str> = state.models().iter().map(|model| &*model.name).collect();
            let known: Vec<&str> = known.into_iter().collect();
            let (name, known) = (name.clone(), known.join(", "));
            return Err(HostError::UnknownModel { name, known });
        };
        models.push(ModelId(at as u32));
    }
    let gpu = milli("gpus", request.gpus)?;
    if gpu.0 > 1000 && !gpu.0.is_multiple_of(1000) {
        return Err(invalid("gpus", format!("{}; {}", request.gpus, limits_of("gpus"))));
    }
    let cpu = milli("cpus", request.cpus)?;
    check_least(gpu, cpu)?;
    let locality = match (request.one_node, request.apart) {
        (true, true) => return Err(invalid("apart", "not together with `one_node`".to_owned())),
        (true, false) => Locality::Node,
        (false, true) => Locality::Apart,
        (false, false) => Locality::Any,
    };
    Ok(Demand {
        gpu,
        gpu_mem: Mib(request.gpu_mem_mib),
        cpu,
        mem: Mib(request.mem_mib),
        models: if models.is_empty() { Models::Any } else { Models::Ordered(models.into()) },
        locality,
        stay: StayBound::of_limit(request.max_secs.map(Span::from_secs)),
        needs: ImageKind::of(&request.image).map(ImageKind::needs).unwrap_or_default(),
        ..Demand::default()
    })
}

/// A task must take up something, or a node would be given any number of them.
fn check_least(gpu: Milli, cpu: Milli) -> Result<(), HostError> {
    let least = |milli: u32| f64::from(milli) / 1000.0;
    if gpu.0 == 0 && cpu.0 < CPU_MILLI_MIN {
        let (cores, least) = (least(cpu.0), least(CPU_MILLI_MIN));
        return Err(HostError::TooFewCores { cores, least });
    }
    if gpu.0 > 0 && gpu.0 < GPU_MILLI_MIN {
        return Err(invalid("gpus", format!("{}; {}", least(gpu.0), limits_of("gpus"))));
    }
    Ok(())
}

fn milli(field: &'static str, value: f64) -> Result<Milli, HostError> {
    let milli = (value * 1000.0).round();
    let tiny = value > 0.0 && milli < 1.0;
    if !(0.0..=f64::from(CPU_MILLI_MAX)).contains(&milli) || tiny {
        return Err(invalid(field, format!("{value}; {}", limits_of(field))));
    }
    Ok(Milli(milli as u32))
}

/// What a task may ask for, in words.
fn limits_of(field: &str) -> String {
    let (least, most) = (f64::from(GPU_MILLI_MIN) / 1000.0, CPU_MILLI_MAX / 1000);
    match field {
        "gpus" => format!("use 0, a part of one GPU from {least} to 1, or whole ones up to {most}"),
        _ => format!("use 0, or from 0.001 to {most}"),
    }
}

pub(super) fn invalid(field: &'static str, fault: String) -> HostError {
    HostError::Invalid { field, fault }
}
