//! Offered load: how much of a cluster the jobs of a trace would keep busy.

use super::cluster::{Cluster, capacity};
use super::fit::Fit;
use super::table::{JobRow, NodeRow, TaskRow, Trace};

/// Work that arrives, over what the cluster could do in the time in which it arrives; above 1 the
/// queue grows without end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Of all GPUs together; 0 when there is nothing to divide by.
    pub gpu: f64,
    /// Of all cores together.
    pub cpu: f64,
}

impl Load {
    /// Of the scarcer resource.
    pub fn max(self) -> f64 {
        self.gpu.max(self.cpu)
    }
}

/// Sum of count x request x duration over (first to last submission x capacity). Tasks without a
/// known duration count nothing; node intervals are taken as always up.
pub fn load(trace: &Trace, nodes: &[NodeRow]) -> Load {
    offered(trace, nodes, trace.tasks.iter())
}

/// The same, of jobs that these machines could ever run: what is turned away keeps nobody busy.
pub fn runnable_load(trace: &Trace, cluster: &Cluster) -> Load {
    let mut fit = Fit::on(trace, &cluster.nodes, &cluster.text);
    let able: Vec<&JobRow> = trace.jobs.iter().filter(|job| fit.holds(job)).collect();
    offered(trace, &cluster.nodes, able.iter().flat_map(|job| trace.tasks_of(job)))
}

fn offered<'a>(trace: &Trace, nodes: &[NodeRow], tasks: impl Iterator<Item = &'a TaskRow>) -> Load {
    let (mut gpu, mut cpu) = (0u128, 0u128);
    for task in tasks {
        let busy = u128::from(task.count) * u128::from(task.run_ms().unwrap_or(0));
        gpu += busy * u128::from(task.gpu_milli.or(0));
        cpu += busy * u128::from(task.cpu_milli.or(0));
    }
    let first = trace.jobs.iter().map(|job| job.submit_ms).min().unwrap_or(0);
    let last = trace.jobs.iter().map(|job| job.submit_ms).max().unwrap_or(0);
    let span = u128::from((last - first).max(1));
    let total = capacity(nodes);
    let share = |work: u128, capacity: u128| match capacity {
        0 => 0.0,
        capacity => work as f64 / (span * capacity) as f64,
    };
    Load {
        gpu: share(gpu, 1000 * u128::from(total.gpus)),
        cpu: share(cpu, u128::from(total.cpu_milli)),
    }
}
