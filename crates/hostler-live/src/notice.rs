//! What is told about a job to those who are not looking: that it began, ended, or failed.
//!
//! Jobs say of which events they want to be told, and to which address. To whom else, and by what
//! means, is the operator's business: nobody else names an address that the daemon calls.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::host::of_row;
use crate::job::{JobRequest, JobState};
use crate::store::JobRow;

/// Of what somebody wants to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotifyEvent {
    /// It runs for the first time.
    Start,
    /// It is over, well or badly.
    End,
    /// It is over and did not do its work: it failed, ran out of time, can never run, or
    /// what it waits for will never come.
    Fail,
}

/// What is told, as webhooks get it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// `start`, `end` or `fail`.
    pub event: NotifyEvent,
    /// Larger with every change of the cluster: a notice that comes twice has the same.
    pub number: u64,
    /// Name of the cluster.
    pub cluster: String,
    /// Number of the job.
    pub job: u32,
    /// First job of its array.
    pub array_of: Option<u32>,
    /// Index in its array.
    pub array_index: Option<u32>,
    /// Its name.
    pub name: String,
    /// Who submitted it.
    pub user: String,
    /// Who pays.
    pub tenant: String,
    /// Where it stands.
    pub state: JobState,
    /// Exit code of the first task that failed, else of rank 0; 128 + signal when killed by one.
    pub exit_code: Option<i32>,
    /// Seconds since the epoch.
    pub submitted: f64,
    /// First start.
    pub started: Option<f64>,
    /// End.
    pub ended: Option<f64>,
    /// Nodes that it runs on, or last ran on.
    pub nodes: Vec<String>,
    /// Why it ended as it did, in words; often empty.
    pub reason: String,
    /// Where mail about it goes; nobody else is told.
    #[serde(skip)]
    pub mail_to: String,
}

/// What is to be told of a job that just came to where it stands; nothing where nobody asked. One
/// that waited in vain for others is cancelled, but no person did that: it failed.
pub fn of_change(
    row: &JobRow,
    in_vain: bool,
    cluster: &str,
    always: &[NotifyEvent],
) -> Option<Notice> {
    let failed = (NotifyEvent::Fail, &[NotifyEvent::End, NotifyEvent::Fail][..]);
    let (event, kinds) = match row.state {
        JobState::Running => (NotifyEvent::Start, &[NotifyEvent::Start][..]),
        JobState::Cancelled if in_vain => failed,
        JobState::Finished | JobState::Cancelled => (NotifyEvent::End, &[NotifyEvent::End][..]),
        JobState::Failed | JobState::TimedOut | JobState::Rejected => failed,
        JobState::Held | JobState::Queued | JobState::Starting | JobState::Stopping => return None,
    };
    let asked = |wanted: &[NotifyEvent]| kinds.iter().any(|kind| wanted.contains(kind));
    let by_job = asked(&row.request.notify);
    if !by_job && !asked(always) {
        return None;
    }
    let view = of_row(row);
    Some(Notice {
        event,
        number: row.version,
        cluster: cluster.to_owned(),
        job: row.id,
        array_of: row.array_of,
        array_index: view.array_index,
        name: view.name,
        user: view.user,
        tenant: view.tenant,
        state: row.state,
        exit_code: view.exit_code,
        submitted: view.submitted,
        started: view.started,
        ended: view.ended,
        nodes: view.nodes,
        reason: view.reason,
        // What the operator wants to hear of is no reason to write to people.
        mail_to: if by_job { view.request.mail_to } else { String::new() },
    })
}

/// Whether a text can be the one address of a mail. Narrower than what mail knows: some programs
/// that send mail take `|` and `/` at the beginning of a name for a program and a file.
pub fn is_address(text: &str) -> bool {
    let (name, host) = match text.split_once('@') {
        Some((name, host)) => (name, Some(host)),
        None => (text, None),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._%+=-".contains(&byte);
    let of_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    let sane_name = !name.is_empty() && !name.starts_with('-') && name.bytes().all(plain);
    let sane_host =
        |host: &str| !host.is_empty() && !host.starts_with('-') && host.bytes().all(of_host);
    text.len() <= 254 && sane_name && host.is_none_or(sane_host)
}

/// What is wrong with what a job wants to be told, and where.
pub(crate) fn check(request: &JobRequest) -> Result<(), (&'static str, String)> {
    if !request.mail_to.is_empty() && !is_address(&request.mail_to) {
        let shown = request.mail_to.escape_debug().to_string();
        let shown: String = shown.chars().take(80).collect();
        return Err(("mail_to", format!("`{shown}`; use one address, as in ada@lab.example")));
    }
    if !request.mail_to.is_empty() && request.notify.is_empty() {
        return Err(("mail_to", "nothing is to be told; name events, as in `end`".to_owned()));
    }
    if request.notify.len() > 3 {
        return Err(("notify", "there are three events: start, end, fail".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_is_an_address_and_nothing_that_a_mailer_would_run() {
        for good in ["ada@lab.example", "ada", "a.b+c@x-y.org", "ada%lab@gate"] {
            assert!(is_address(good), "{good}");
        }
        let long = "a".repeat(255);
        for bad in ["", "@lab", "ada@", "-oQ/tmp", "|sh", "/etc/passwd", "a b@c", "a@b,c@d", &long]
        {
            assert!(!is_address(bad), "{bad}");
        }
        for bad in ["a@b\nBcc: c@d", "a@b\r", "a;b", "a@b@c", "<a@b>", "a@-b"] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
