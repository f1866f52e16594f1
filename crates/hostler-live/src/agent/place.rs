//! Where the agent in a daemon's own process keeps its things: below the daemon's folder, or, where
//! jobs cannot come there, in a folder of the system that the daemon's folder points to.
//!
//! Root's home is closed to everybody else, and root's jobs run as somebody else.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::AgentError;
use super::folder::{DATA_PATH_BYTES_MAX, make};
use super::user::JobUser;

/// Folder of the system for agents whose daemon's folder is closed to jobs.
pub const OPEN_FOLDER: &str = "/var/lib/hostler-with-agent";

/// The folder of the agent of a daemon that keeps its things in `data`. One that was chosen before
/// stays: leases are written down there.
pub fn choose(data: &Path, user: Option<&JobUser>, open: &Path) -> Result<PathBuf, AgentError> {
    let cannot = |fault| AgentError::Data { path: data.to_owned(), fault };
    make(data, 0o711).map_err(cannot)?;
    let inside = data.canonicalize().map_err(cannot)?.join("agent");
    let Some(user) = user else { return Ok(inside) };
    let is_short = inside.as_os_str().len() <= DATA_PATH_BYTES_MAX;
    let is_chosen = inside.symlink_metadata().is_ok();
    if is_chosen || (is_short && user.can_work_in(data).is_ok()) {
        return Ok(inside);
    }
    let outside = outside(open).map_err(|fault| AgentError::Data { path: open.into(), fault })?;
    symlink(&outside, &inside).map_err(cannot)?;
    tracing::info!(
        folder = %outside.display(),
        "jobs run as `{}`, who cannot enter `{}`: their files go elsewhere",
        user.name,
        data.display()
    );
    Ok(inside)
}

/// A new folder that everybody may pass through.
fn outside(open: &Path) -> io::Result<PathBuf> {
    let name = format!("{:08x}", getrandom::u32().map_err(io::Error::other)?);
    let folder = open.join(name);
    make(&folder, 0o711)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use tempfile::TempDir;

    use super::*;
    use crate::agent::user::is_root;

    fn nobody() -> JobUser {
        JobUser::bare(65534, 65534, "nobody", "/")
    }

    fn folder(mode: u32) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
        folder
    }

    #[test]
    fn a_folder_that_jobs_cannot_enter_gets_one_elsewhere_that_stays() {
        if !is_root() {
            println!("skipped: only root starts programs as somebody else");
            return;
        }
        let (home, open) = (folder(0o700), folder(0o711));
        let (data, open) = (home.path().join("data"), open.path());
        let chosen = choose(&data, Some(&nobody()), open).unwrap();
        assert_eq!(chosen, data.join("agent"));
        let target = chosen.canonicalize().unwrap();
        assert!(target.starts_with(open), "{}", target.display());
        nobody().can_work_in(&chosen.canonicalize().unwrap()).unwrap();
        assert_eq!(choose(&data, Some(&nobody()), open).unwrap(), chosen);
        assert_eq!(chosen.canonicalize().unwrap(), target);
        assert_eq!(std::fs::read_dir(open).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_jobs_can_enter_keeps_everything_together() {
        let (data, open) = (folder(0o711), folder(0o711));
        let user = is_root().then(nobody);
        let chosen = choose(data.path(), user.as_ref(), open.path()).unwrap();
        assert_eq!(chosen, data.path().join("agent"));
        assert!(!chosen.exists(), "the agent makes it itself");
    }
}
