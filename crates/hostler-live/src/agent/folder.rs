//! Where things lie in the agent's data folder, and how they are written so that a crash leaves
//! the old or the new and never half of it.
//!
//! ```text
//! <data>/leases.log           leases ever taken on (journal)
//! <data>/alive                fence: until when shims may go on
//! <data>/agent.sock           where shims find the agent
//! <data>/shims.log            last words of shims
//! <data>/leases/<id>/order.json, script, pids.json, end.json, socket, stdout-<rank>.<n>
//! <data>/jobs/<job>/          folder of a job that names none
//! <data>/checkpoints/<job>/   HOSTLER_CHECKPOINT_DIR
//! <data>/images/<user>/       what the program that runs images keeps for a user
//! ```

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::Serialize;
use serde::de::DeserializeOwned;

use hostler_core::id::{JobId, LeaseId};

use super::processes;
use crate::wire::Instance;

/// Bytes of the data folder's path: names of sockets below it end at 107.
pub const DATA_PATH_BYTES_MAX: usize = 72;

/// The agent's data folder.
#[derive(Clone, Debug)]
pub struct DataFolder {
    path: PathBuf,
}

impl DataFolder {
    /// Makes the folder if it is not there. Others may pass through it, to sockets and folders that
    /// are theirs, and see nothing.
    pub fn open(path: &Path) -> io::Result<DataFolder> {
        make(path, 0o711)?;
        let path = path.canonicalize()?;
        if path.as_os_str().len() > DATA_PATH_BYTES_MAX {
            let fault = format!(
                "its path has {} bytes, sockets need it shorter than {DATA_PATH_BYTES_MAX}",
                path.as_os_str().len()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, fault));
        }
        make(&path.join("leases"), 0o711)?;
        Ok(DataFolder { path })
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What tells an agent on this folder from one on a copy of it.
    pub fn instance(&self) -> io::Result<Instance> {
        let metadata = std::fs::metadata(&self.path)?;
        let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        Ok(Instance {
            boot: processes::boot_id(),
            machine: machine.trim().to_owned(),
            folder: self.path.display().to_string(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// The journal of leases.
    pub fn journal(&self) -> PathBuf {
        self.path.join("leases.log")
    }

    /// The fence.
    pub fn alive(&self) -> PathBuf {
        self.path.join("alive")
    }

    /// Where shims find the agent.
    pub fn agent_socket(&self) -> PathBuf {
        self.path.join("agent.sock")
    }

    /// Last words of shims.
    pub fn shims_log(&self) -> PathBuf {
        self.path.join("shims.log")
    }

    /// The folder of a lease.
    pub fn lease(&self, lease: LeaseId) -> LeaseFolder {
        LeaseFolder { path: self.path.join("leases").join(lease.0.to_string()) }
    }

    /// The folder of a job that names none.
    pub fn job(&self, job: JobId) -> PathBuf {
        self.path.join("jobs").join(job.0.to_string())
    }

    /// Where what runs images keeps its things for a user.
    pub fn images(&self, uid: u32) -> PathBuf {
        self.path.join("images").join(uid.to_string())
    }

    /// The highest job that has a folder here. A folder for checkpoints of all machines does not
    /// count: who may write there is not known.
    pub fn last_job(&self) -> Option<JobId> {
        let number =
            |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
        let folders = [self.path.join("jobs"), self.checkpoints()];
        let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
        entries.filter_map(number).max().map(JobId)
    }

    /// Where a job's checkpoints go, unless a folder for all machines is set.
    pub fn checkpoints(&self) -> PathBuf {
        self.path.join("checkpoints")
    }
}

/// The folder of one lease.
#[derive(Clone, Debug)]
pub struct LeaseFolder {
    path: PathBuf,
}

impl LeaseFolder {
    /// The folder at a path, for a shim that was told only that.
    pub fn at(path: &Path) -> LeaseFolder {
        LeaseFolder { path: path.to_owned() }
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// What the shim is to do.
    pub fn order(&self) -> PathBuf {
        self.file("order.json")
    }

    /// The processes that the shim started.
    pub fn pids(&self) -> PathBuf {
        self.file("pids.json")
    }

    /// How the lease ended on this machine.
    pub fn end(&self) -> PathBuf {
        self.file("end.json")
    }

    /// Millijoules that it used so far.
    pub fn energy(&self) -> PathBuf {
        self.file("energy.json")
    }

    /// There while its tasks are suspended.
    pub fn suspended(&self) -> PathBuf {
        self.file("suspended")
    }

    /// The script that travels with the job.
    pub fn script(&self) -> PathBuf {
        self.file("script")
    }

    /// Where the job tells its progress.
    pub fn socket(&self) -> PathBuf {
        self.file("socket")
    }

    /// Takes the lock that a living shim holds; none when it is taken. It is on the folder itself:
    /// every file that a short job needs is one more to make and to remove.
    pub fn lock(&self) -> io::Result<Option<File>> {
        let folder = File::open(&self.path)?;
        match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(folder)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(fault) => Err(fault.into()),
        }
    }
}

/// Makes a folder and those above it, unless it is there.
pub fn make(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(path)
}

/// Writes a value so that readers see all of it or nothing. `safe` waits until it survives a loss
/// of power.
pub fn write_json(path: &Path, value: &impl Serialize, safe: bool) -> io::Result<()> {
    let partial = path.with_extension("partial");
    let mut file =
        OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&partial)?;
    file.write_all(&serde_json::to_vec(value)?)?;
    if safe {
        file.sync_all()?;
    }
    std::fs::rename(&partial, path)?;
    if safe { sync_folder(path) } else { Ok(()) }
}

/// Returns when a file that was written survives a loss of power.
pub fn make_safe(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()?;
    sync_folder(path)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Writes a short value over an old one, which needs no room. A reader may see half of it, and must
/// take that for nothing.
pub fn overwrite(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(value)?;
    let length = usize::try_from(std::fs::metadata(path)?.len()).unwrap_or(usize::MAX);
    if bytes.len() > length {
        return Err(io::ErrorKind::StorageFull.into());
    }
    bytes.resize(length, b' ');
    OpenOptions::new().write(true).open(path)?.write_all(&bytes)
}

/// Whether a fault is one of the machine, whatever job meets it. What is missing or closed is the
/// machine's own doing where the job named no folder.
pub fn is_of_machine(kind: io::ErrorKind, own_folder: bool) -> bool {
    let missing = matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied);
    (missing && own_folder)
        || matches!(
            kind,
            io::ErrorKind::StorageFull
                | io::ErrorKind::QuotaExceeded
                | io::ErrorKind::ReadOnlyFilesystem
                | io::ErrorKind::OutOfMemory
                | io::ErrorKind::WouldBlock
                | io::ErrorKind::StaleNetworkFileHandle
        )
}

/// Reads a value; none when there is no file or no such value in it.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_job_with_files_is_found_among_what_is_no_job() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::open(folder.path()).unwrap();
        assert_eq!(data.last_job(), None);
        for name in ["jobs/9", "jobs/10", "jobs/old", "checkpoints/12", "checkpoints/-13"] {
            make(&folder.path().join(name), 0o700).unwrap();
        }
        assert_eq!(data.last_job(), Some(JobId(12)));
    }
}
