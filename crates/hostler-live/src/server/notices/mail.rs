//! Mail: a program of the operator's gets each message, with its head, on standard input.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use super::Tried;
use crate::limits::MAIL_SECS_MAX;
use crate::notice::{Notice, NotifyEvent};

/// What sends mail.
pub(super) struct Mailer {
    /// Program and arguments, as in `/usr/sbin/sendmail -t`.
    pub command: Vec<String>,
    /// Whom it comes from.
    pub from: Option<String>,
}

impl Mailer {
    /// Sends one mail.
    pub async fn send(&self, notice: &Notice) -> Tried {
        let message = message(notice, self.from.as_deref());
        match timeout(Duration::from_secs(MAIL_SECS_MAX), self.run(message)).await {
            Ok(Ok(())) => Tried::Delivered,
            Ok(Err(fault)) => Tried::Failed(fault),
            Err(_) => Tried::Failed(format!("it takes longer than {MAIL_SECS_MAX} s")),
        }
    }

    async fn run(&self, message: String) -> Result<(), String> {
        let (program, arguments) = self.command.split_first().ok_or("no program")?;
        // The daemon's variables may hold secrets, and are no business of the program.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .env("PATH", path)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|fault| format!("`{program}` cannot be started: {fault}"))?;
        let input = child.stdin.take();
        if let Some(mut input) = input {
            let written = input.write_all(message.as_bytes()).await;
            written.map_err(|fault| format!("`{program}` does not read the mail: {fault}"))?;
        }
        let ended = child.wait().await.map_err(|fault| fault.to_string())?;
        match ended.success() {
            true => Ok(()),
            false => Err(format!("`{program}`: {ended}")),
        }
    }
}

/// The mail about a notice. What people wrote stands behind words of ours and has no line ends, so
/// that it cannot become a head or the end of the mail.
fn message(notice: &Notice, from: Option<&str>) -> String {
    let outcome = outcome(notice);
    let which = match (notice.array_of, notice.array_index) {
        (Some(array), Some(index)) => format!("{array}_{index}"),
        _ => notice.job.to_string(),
    };
    let name = one_line(&notice.name);
    let plain = |char: char| if char.is_ascii() { char } else { '?' };
    let subject: String = format!("job {which} ({name}) {outcome}").chars().map(plain).collect();
    let mut mail = format!("To: {}\n", notice.mail_to);
    if let Some(from) = from {
        mail += &format!("From: {from}\n");
    }
    mail += &format!("Subject: [hostler] {subject}\n");
    mail += "Auto-Submitted: auto-generated\nMIME-Version: 1.0\n\
             Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n";
    mail += &format!("Job {which}, {name}, of {}: {outcome}.\n\n", one_line(&notice.user));
    if let (Some(started), Some(ended)) = (notice.started, notice.ended) {
        let waited = (started - notice.submitted).max(0.0);
        let ran = (ended - started).max(0.0);
        mail += &format!("waited {waited:.0} s, ran {ran:.0} s\n");
    }
    if !notice.nodes.is_empty() {
        mail += &format!("nodes: {}\n", one_line(&notice.nodes.join(" ")));
    }
    if !notice.reason.is_empty() {
        mail += &format!("reason: {}\n", one_line(&notice.reason));
    }
    mail + &format!("\nhostler show {which}\nhostler logs {which}\n")
}

fn outcome(notice: &Notice) -> String {
    use crate::job::JobState;
    let code = notice.exit_code.map(|code| format!(" with exit code {code}")).unwrap_or_default();
    match (notice.event, notice.state) {
        (NotifyEvent::Start, _) => "runs".to_owned(),
        (_, JobState::Finished) => "finished".to_owned(),
        (_, JobState::Cancelled) => "was cancelled".to_owned(),
        (_, JobState::TimedOut) => "ran out of time".to_owned(),
        (_, JobState::Rejected) => "can never run here".to_owned(),
        _ => format!("failed{code}"),
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::job::JobState;

    #[test]
    fn what_people_write_becomes_no_head_of_a_mail() {
        let notice = Notice {
            event: NotifyEvent::Fail,
            number: 1,
            cluster: "c".to_owned(),
            job: 17,
            array_of: Some(15),
            array_index: Some(2),
            name: "größer\nBcc: eve@lab.example".to_owned(),
            user: "ada".to_owned(),
            tenant: "lab".to_owned(),
            state: JobState::Failed,
            exit_code: Some(3),
            submitted: 10.0,
            started: Some(12.0),
            ended: Some(20.5),
            nodes: vec!["n0".to_owned()],
            reason: "it did\n.\nnot work".to_owned(),
            mail_to: "ada@lab.example".to_owned(),
        };
        expect![[r#"
            To: ada@lab.example
            From: hostler@lab.example
            Subject: [hostler] job 15_2 (gr??er Bcc: eve@lab.example) failed with exit code 3
            Auto-Submitted: auto-generated
            MIME-Version: 1.0
            Content-Type: text/plain; charset=utf-8
            Content-Transfer-Encoding: 8bit

            Job 15_2, größer Bcc: eve@lab.example, of ada: failed with exit code 3.

            waited 2 s, ran 8 s
            nodes: n0
            reason: it did . not work

            hostler show 15_2
            hostler logs 15_2
        "#]]
        .assert_eq(&message(&notice, Some("hostler@lab.example")));
    }
}
