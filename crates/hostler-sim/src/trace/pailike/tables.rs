//! Chances and quantiles of the PAI-like generator, fitted to published marginals of the 2020 PAI
//! trace. Nothing here is copied from the trace itself.

/// GPU types a template may run on; the cluster file has the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GpuType {
    /// No GPU asked.
    Cpu,
    /// Older models.
    Misc,
    /// Two-GPU machines.
    T4,
    /// Two-GPU machines.
    P100,
    /// Eight-GPU machines.
    V100,
    /// Eight-GPU machines with twice the GPU memory.
    V100M32,
}

impl GpuType {
    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            GpuType::Cpu => "CPU",
            GpuType::Misc => "MISC",
            GpuType::T4 => "T4",
            GpuType::P100 => "P100",
            GpuType::V100 => "V100",
            GpuType::V100M32 => "V100M32",
        }
    }

    /// Name in the simulator's CSV, which does not tell the V100s apart.
    pub fn simulator_name(self) -> &'static str {
        match self {
            GpuType::V100M32 => "V100",
            other => other.name(),
        }
    }

    /// Whether its machines hold only two GPUs.
    pub fn has_small_machines(self) -> bool {
        matches!(self, GpuType::T4 | GpuType::P100)
    }

    /// Whether templates on this type always ask for it by name.
    pub fn is_always_asked(self) -> bool {
        matches!(self, GpuType::V100 | GpuType::V100M32)
    }
}

/// Instances of a job.
pub(super) const GANG: [(u32, f64); 11] = [
    (1, 0.764),
    (2, 0.055),
    (4, 0.008),
    (5, 0.036),
    (8, 0.013),
    (10, 0.070),
    (20, 0.030),
    (50, 0.013),
    (100, 0.007),
    (200, 0.003),
    (400, 0.001),
];

/// Milli-GPU per instance of gangs below five.
pub(super) const GPU_SMALL_GANG: [(u32, f64); 14] = [
    (1000, 0.4119),
    (250, 0.1691),
    (0, 0.169),
    (500, 0.1097),
    (100, 0.0742),
    (2000, 0.0157),
    (200, 0.012),
    (50, 0.012),
    (600, 0.006),
    (300, 0.005),
    (400, 0.0047),
    (8000, 0.0047),
    (4000, 0.004),
    (750, 0.002),
];

/// Milli-GPU per instance of gangs of five and more.
pub(super) const GPU_LARGE_GANG: [(u32, f64); 5] =
    [(250, 0.44), (0, 0.22), (100, 0.18), (500, 0.10), (1000, 0.06)];

/// Gangs from this size on use [`GPU_LARGE_GANG`].
pub(super) const LARGE_GANG: u32 = 5;

/// GPU type of templates that use GPUs.
pub(super) const TYPE: [(GpuType, f64); 5] = [
    (GpuType::Misc, 0.667),
    (GpuType::T4, 0.217),
    (GpuType::P100, 0.070),
    (GpuType::V100, 0.028),
    (GpuType::V100M32, 0.018),
];

/// Milli-CPU per instance.
pub(super) const CPU: [(u32, f64); 10] = [
    (6000, 0.63),
    (8000, 0.08),
    (10000, 0.06),
    (12000, 0.06),
    (4000, 0.06),
    (1000, 0.04),
    (2000, 0.03),
    (16000, 0.02),
    (18000, 0.015),
    (24000, 0.005),
];

/// Quantiles of memory per instance in GiB.
pub(super) const MEMORY_GIB: [(f64, f64); 7] =
    [(0.0, 1.0), (0.05, 4.0), (0.25, 16.0), (0.5, 29.0), (0.75, 32.0), (0.95, 59.0), (1.0, 240.0)];

/// Quantiles of a template's median run time in seconds.
pub(super) const DURATION_SECS: [(f64, f64); 8] = [
    (0.0, 5.0),
    (0.1, 30.0),
    (0.25, 120.0),
    (0.5, 600.0),
    (0.75, 3300.0),
    (0.9, 12400.0),
    (0.99, 52000.0),
    (1.0, 600_000.0),
];

/// Most GPUs (and most instances) of one job on the full cluster.
pub(super) const GANG_CAP: u32 = 400;

/// Smallest cap after scaling: one full machine, or eight-GPU jobs would vanish.
pub(super) const GANG_CAP_MIN: u32 = 8;

/// Chance that a user repeats an earlier template.
pub(super) const REUSE: f64 = 0.78;

/// Chance of each step back among templates, from the most recent on.
pub(super) const RECENT: f64 = 0.25;

/// Spread of run times around the template's median, and its chance.
pub(super) const SIGMA: [(f64, f64); 2] = [(0.08, 0.94), (0.8, 0.06)];

/// Chance that a template asks for its type by name where it need not.
pub(super) const ASKED: f64 = 0.15;

/// Longest run time in seconds.
pub(super) const DURATION_SECS_MAX: f64 = 600_000.0;

/// Weight of user k (from 1) is k to this power.
pub(super) const USER_POWER: f64 = -1.15;

/// Value of a quantile table at `u`, linear in (u, ln value).
pub(super) fn quantile(table: &[(f64, f64)], u: f64) -> f64 {
    let above = table.iter().position(|(at, _)| u <= *at).unwrap_or(table.len() - 1).max(1);
    let ((low, x), (high, y)) = (table[above - 1], table[above]);
    let (x, y) = (libm::log(x), libm::log(y));
    libm::exp(x + (y - x) * (u - low) / (high - low))
}
