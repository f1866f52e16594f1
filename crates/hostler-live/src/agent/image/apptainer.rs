//! The words by which Apptainer, or Singularity, runs a task.

use std::collections::BTreeMap;

use super::{Container, Launch, inside, outside};
use crate::agent::shim::ShimOrder;
use crate::image::Program;
use crate::wire::TaskOrder;

pub(super) fn launch(
    container: &Container,
    shim: &ShimOrder,
    task: &TaskOrder,
    env: BTreeMap<String, String>,
) -> Launch {
    let name = if container.program == Program::Apptainer { "APPTAINER" } else { "SINGULARITY" };
    let mut own = outside(container, shim);
    own.insert(format!("{name}_CACHEDIR"), container.folder("cache"));
    own.insert(format!("{name}_TMPDIR"), container.folder("tmp"));
    for (variable, value) in inside(shim, &container.image, env) {
        own.insert(format!("{name}ENV_{variable}"), value);
    }
    let mut command = vec![container.path.display().to_string()];
    for word in ["--quiet", "exec", "--cleanenv", "--no-home", "--no-privs", "--pwd"] {
        command.push(word.to_owned());
    }
    command.push(shim.workdir.display().to_string());
    command.extend(container.mounted(":ro", |from, to, how| format!("--bind={from}:{to}{how}")));
    if !container.gpus(task).is_empty() {
        command.push("--nv".to_owned());
    }
    command.extend(container.args.iter().cloned());
    command.push(container.source());
    command.extend(shim.order.command.iter().cloned());
    Launch { command, env: own }
}
