//! The options of `hostler serve` that say who is told of jobs.

use std::path::PathBuf;

use clap::Args;

use super::submit::Notify;

/// Who is told of jobs that begin, end or fail.
#[derive(Debug, Args)]
pub struct NoticeOptions {
    /// Address that gets a POST with a JSON document when a job with `--notify` begins, ends or
    /// fails; `@FILE` reads it from a file. May be given several times.
    #[arg(long, value_name = "URL|@FILE")]
    pub webhook: Vec<String>,
    /// What webhooks are told of all jobs, whether they ask for it or not.
    #[arg(long, value_enum, value_name = "EVENT", value_delimiter = ',', requires = "webhook")]
    pub webhook_events: Vec<Notify>,
    /// File with the secret that signs what webhooks get (HMAC-SHA256).
    #[arg(long, value_name = "FILE", requires = "webhook")]
    pub webhook_secret: Option<PathBuf>,
    /// Certificates of authorities (PEM) for webhooks; those of the system when left out.
    #[arg(long, value_name = "FILE", requires = "webhook")]
    pub webhook_ca: Option<PathBuf>,
    /// Program that sends a mail that it reads, with its arguments, as in
    /// `/usr/sbin/sendmail -t`; no mail is sent when left out.
    #[arg(long, value_name = "COMMAND")]
    pub mail_command: Option<String>,
    /// Whom mail comes from; the program decides when left out.
    #[arg(long, value_name = "ADDRESS", requires = "mail_command")]
    pub mail_from: Option<String>,
}
