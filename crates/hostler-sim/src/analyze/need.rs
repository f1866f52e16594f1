//! What a figure needs, whether it is there, and what it is called in each source.

use super::input::{Input, Source};

/// Something that a figure cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Tasks with their number of instances and requests.
    Tasks,
    /// Who submitted.
    Users,
    /// When tasks were submitted.
    Submissions,
    /// Tasks or instances, listed or not.
    Sizes,
    /// How long tasks or instances ran.
    Runs,
    /// When tasks started after they were asked for.
    Starts,
    /// Instances, with times.
    Instances,
    /// Which machine an instance ran on.
    Placement,
    /// Machines with their capacities.
    Machines,
    /// What instances used.
    Usage,
    /// Which GPU of a machine an instance used.
    GpuNames,
    /// Network traffic of instances.
    Network,
    /// Main memory used.
    Groups,
    /// What machines did.
    Metrics,
    /// The simulator's table.
    Simulator,
    /// Mini-batch times.
    MiniBatches,
}

impl Need {
    /// Whether the input has it.
    pub fn is_met(self, input: &Input) -> bool {
        match self {
            Need::Tasks => input.tasks_listed && !input.tasks.is_empty(),
            Need::Sizes => !input.tasks.is_empty(),
            Need::Users => {
                input.jobs_listed && input.tasks.iter().any(|task| !task.user.is_empty())
            }
            Need::Submissions => input.tasks.iter().any(|task| task.asked.is_finite()),
            Need::Runs => {
                input.tasks.iter().any(|task| task.run > 0.0)
                    || input.workers.iter().any(|worker| worker.run() > 0.0)
            }
            Need::Starts => input.tasks.iter().any(|task| task.wait().is_finite()),
            Need::Instances => input.workers.iter().any(|worker| worker.run() > 0.0),
            Need::Placement => input.workers.iter().any(|row| input.machine_of(row).is_some()),
            Need::Machines => input.machines.iter().any(|machine| machine.known),
            Need::Usage => !input.usage.is_empty() && !input.workers.is_empty(),
            Need::GpuNames => input.usage.iter().any(|usage| !usage.gpu_name.is_empty()),
            Need::Network => input.usage.iter().any(|usage| usage.read.is_finite()),
            Need::Groups => input.groups_listed,
            Need::Metrics => !input.metrics.is_empty(),
            Need::Simulator => input.simulator.as_ref().is_some_and(|own| own.jobs() > 0),
            Need::MiniBatches => !input.minibatches.is_empty(),
        }
    }

    /// The table or column that would bring it.
    pub fn words(self, source: Source) -> &'static str {
        let native = match self {
            Need::Tasks | Need::Sizes => "tasks.csv",
            Need::Users => "column `user` of jobs.csv",
            Need::Submissions => "column `submit_ms` of jobs.csv",
            Need::Runs => "column `duration_ms` of tasks.csv",
            Need::Starts => "column `start_ms` of tasks.csv or instances.csv",
            Need::Instances => "instances.csv with `start_ms` and `end_ms`",
            Need::Placement => "column `node_id` of instances.csv, and nodes.csv",
            Need::Machines => "nodes.csv",
            Need::Usage => "columns `cpu_use_milli` and `gpu_use_milli` of instances.csv",
            Need::GpuNames => "which GPU each instance used (pai_sensor_table; no native column)",
            Need::Network => "network traffic of instances (pai_sensor_table; no native column)",
            Need::Groups => "column `group_tag` of jobs.csv",
            Need::Metrics => "use of machines (pai_machine_metric; no native table)",
            Need::Simulator => "a CSV of the PAI job simulator",
            Need::MiniBatches => "files `minibatch_job_*.csv`",
        };
        let pai = match self {
            Need::Tasks | Need::Submissions | Need::Starts => "pai_task_table",
            Need::Sizes => "pai_task_table or pai_instance_table",
            Need::Users => "pai_job_table",
            Need::Runs | Need::Instances => "pai_instance_table",
            Need::Placement => "pai_instance_table and pai_machine_spec",
            Need::Machines => "pai_machine_spec",
            Need::Usage | Need::GpuNames | Need::Network => "pai_sensor_table",
            Need::Groups => "pai_group_tag_table",
            Need::Metrics => "pai_machine_metric",
            Need::Simulator | Need::MiniBatches => native,
        };
        if source == Source::Pai { pai } else { native }
    }
}
