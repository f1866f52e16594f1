//! Who jobs run as, for the two commands that run an agent.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use hostler_live::agent::user::{JobUser, JobUsers, is_root};
use hostler_live::person::FIRST_PERSON_UID;

use crate::cli::JobUserOptions;

/// What `--job-user` says for the person who submitted a job.
const PERSON: &str = "person";

/// Who jobs run as. Jobs of a root agent do not run as root unless that is said.
pub fn job_users(options: &JobUserOptions) -> Result<JobUsers> {
    find(options, is_root(), Path::new("/etc/passwd"))
}

fn find(options: &JobUserOptions, is_root: bool, passwd: &Path) -> Result<JobUsers> {
    let name = match (&options.job_user, options.job_users, is_root) {
        (None, None, false) => return Ok(JobUsers::Own),
        (_, _, false) => bail!(
            "jobs run as other users only when the agent is root; leave out `--job-user` and \
             `--job-users`"
        ),
        (_, Some((first, last)), true) => return Ok(JobUsers::PerTenant { first, last }),
        (None, None, true) => "nobody",
        (Some(name), None, true) if name == PERSON => {
            let uid_min = options.uid_min.unwrap_or(FIRST_PERSON_UID);
            return Ok(JobUsers::People { uid_min });
        }
        (Some(name), None, true) => name,
    };
    let user = JobUser::find(name, passwd);
    Ok(JobUsers::One(user.with_context(|| {
        format!("unknown user `{name}`; name one with `--job-user`, or write UID:GID")
    })?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_root_run_as_root_only_when_that_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let passwd = folder.path().join("passwd");
        std::fs::write(&passwd, "root:x:0:0::/root:/bin/sh\njobs:x:7:8::/srv:/bin/sh\n").unwrap();
        let found = |named: Option<&str>, range, is_root| {
            let job_user = named.map(str::to_owned);
            let options = JobUserOptions { job_user, job_users: range, uid_min: None };
            find(&options, is_root, &passwd)
        };
        let uid = |named| found(Some(named), None, true).unwrap().any().map(|user| user.uid);
        // There is no `nobody` on this machine.
        let fault = found(None, None, true).unwrap_err().to_string();
        assert!(fault.contains("unknown user `nobody`; name one with `--job-user`"), "{fault}");
        assert_eq!((uid("jobs"), uid("0:0")), (Some(7), Some(0)));
        assert_eq!(found(None, None, false).unwrap(), JobUsers::Own);
        let people = found(Some("person"), None, true).unwrap();
        assert_eq!(people, JobUsers::People { uid_min: 1000 });
        assert!(found(Some("person"), None, false).is_err());
        assert!(found(Some("jobs"), None, false).is_err());
        let range = Some((60_000, 60_999));
        let each = JobUsers::PerTenant { first: 60_000, last: 60_999 };
        assert_eq!(found(None, range, true).unwrap(), each);
        assert!(found(None, range, false).is_err());
    }
}
