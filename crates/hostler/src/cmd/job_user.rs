//! Who jobs run as, for the two commands that run an agent.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use hostler_live::agent::user::{JobUser, is_root};

/// Who jobs run as; none for the agent's own user. Jobs of a root agent do not run as root unless
/// that is said.
pub fn job_user(named: Option<&str>) -> Result<Option<JobUser>> {
    find(named, is_root(), Path::new("/etc/passwd"))
}

fn find(named: Option<&str>, is_root: bool, passwd: &Path) -> Result<Option<JobUser>> {
    let name = match (named, is_root) {
        (None, false) => return Ok(None),
        (None, true) => "nobody",
        (Some(name), _) => name,
    };
    if !is_root {
        bail!("jobs run as another user only when the agent is root; leave out `--job-user`");
    }
    let user = JobUser::find(name, passwd);
    Ok(Some(user.with_context(|| {
        format!("unknown user `{name}`; name one with `--job-user`, or write UID:GID")
    })?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_root_run_as_root_only_when_that_is_said() {
        let passwd = std::env::temp_dir().join(format!("hostler-passwd-{}", std::process::id()));
        std::fs::write(&passwd, "root:x:0:0::/root:/bin/sh\njobs:x:7:8::/srv:/bin/sh\n").unwrap();
        let found = |named, is_root| find(named, is_root, &passwd);
        // There is no `nobody` on this machine.
        let fault = found(None, true).unwrap_err().to_string();
        assert!(fault.contains("unknown user `nobody`; name one with `--job-user`"), "{fault}");
        assert_eq!(found(Some("jobs"), true).unwrap().map(|user| user.uid), Some(7));
        assert_eq!(found(Some("0:0"), true).unwrap().map(|user| user.uid), Some(0));
        assert_eq!(found(None, false).unwrap(), None);
        assert!(found(Some("jobs"), false).is_err());
        std::fs::remove_file(&passwd).unwrap();
    }
}
