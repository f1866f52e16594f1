//! Tells webhooks of the operator, and people by mail, that jobs begin, end or fail.
//!
//! Each receiver has a task and a bounded queue of its own, so that a slow one holds up neither the
//! host nor the others. A notice is tried a few times and then given up, counted and told in the
//! log. Delivery is best effort: what is in a queue is lost with the daemon, and a notice whose
//! answer was lost comes again, under the same number.

mod mail;
mod webhook;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::host::HostHandle;
use crate::limits::{NOTICE_TRIES_MAX, NOTICES_LAST_SECS_MAX, WEBHOOKS_MAX};
use crate::notice::{Notice, is_address};
use mail::Mailer;
use webhook::Webhook;

/// Who is told, as the operator says it.
#[derive(Clone, Default)]
pub struct Settings {
    /// Addresses that get a POST for each notice; they may hold secrets.
    pub webhooks: Vec<String>,
    /// What signs it.
    pub secret: Option<Vec<u8>>,
    /// Certificates of authorities (PEM) for webhooks; those of the system when not given.
    pub authorities: Option<PathBuf>,
    /// Program and arguments that send a mail that they read; none is sent when empty.
    pub mail_command: Vec<String>,
    /// Whom mail comes from; the program decides when not given.
    pub mail_from: Option<String>,
}

/// Why nobody could be told.
#[derive(Debug, thiserror::Error)]
pub enum NoticesError {
    /// An address makes no sense; it is not shown, since it may hold a secret.
    #[error("invalid webhook number {number}: {fault}; write `https://HOST[:PORT]/PATH`")]
    Address {
        /// Which.
        number: usize,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// There are too many.
    #[error("{count} webhooks; at most {WEBHOOKS_MAX}")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// Webhooks could not be known by their certificates.
    #[error("no certificates of authorities {place}: {fault}; name a file with `--webhook-ca`")]
    Authorities {
        /// Where they were looked for.
        place: String,
        /// Why there are none.
        fault: String,
    },
    /// Nobody could have sent the mail.
    #[error("invalid `--mail-from`: `{text}`; use one address, as in hostler@lab.example")]
    From {
        /// What was given.
        text: String,
    },
}

impl Settings {
    /// The receivers, if all of them make sense.
    pub(super) fn check(self) -> Result<Receivers, NoticesError> {
        let count = self.webhooks.len();
        if count > WEBHOOKS_MAX {
            return Err(NoticesError::TooMany { count });
        }
        if let Some(text) = self.mail_from.as_ref().filter(|from| !is_address(from)) {
            return Err(NoticesError::From { text: text.escape_debug().to_string() });
        }
        let webhooks = webhook::all(&self.webhooks, self.secret, self.authorities)?;
        let mailer = (!self.mail_command.is_empty())
            .then_some(Mailer { command: self.mail_command, from: self.mail_from });
        Ok(Receivers { webhooks, mailer })
    }
}

/// Those who are told.
pub(super) struct Receivers {
    webhooks: Vec<Webhook>,
    mailer: Option<Mailer>,
}

/// One of them.
enum Target {
    Webhook(Webhook),
    Mail(Mailer),
}

/// What came of one try.
enum Tried {
    Delivered,
    /// It may go better next time.
    Failed(String),
    /// It will not.
    Refused(String),
}

/// How many notices came to what end, of webhooks and of mail.
#[derive(Debug, Default)]
pub struct Counts {
    delivered: [AtomicU64; 2],
    failed_tries: [AtomicU64; 2],
    lost: [AtomicU64; 2],
    mails: bool,
    calls: bool,
}

/// The same, at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoticeCounts {
    pub delivered: [u64; 2],
    pub failed_tries: [u64; 2],
    pub lost: [u64; 2],
}

impl Counts {
    /// How many there are now.
    pub(super) fn told(&self) -> NoticeCounts {
        let all = |of: &[AtomicU64; 2]| [0, 1].map(|by| of[by].load(Ordering::Relaxed));
        NoticeCounts {
            delivered: all(&self.delivered),
            failed_tries: all(&self.failed_tries),
            lost: all(&self.lost),
        }
    }

    /// Whether a webhook is told.
    pub(super) fn calls(&self) -> bool {
        self.calls
    }

    /// Whether anybody gets mail.
    pub(super) fn mails(&self) -> bool {
        self.mails
    }
}

/// The tasks that tell.
pub(super) struct Herald {
    counts: Arc<Counts>,
    tasks: Vec<JoinHandle<()>>,
    closing: watch::Sender<bool>,
}

impl Herald {
    /// Listens to the host from now on.
    pub fn start(receivers: Receivers, host: &HostHandle) -> Herald {
        let mails = receivers.mailer.is_some();
        let calls = !receivers.webhooks.is_empty();
        let counts = Arc::new(Counts { mails, calls, ..Counts::default() });
        let (closing, closed) = watch::channel(false);
        let targets = receivers.webhooks.into_iter().map(Target::Webhook);
        let targets = targets.chain(receivers.mailer.map(Target::Mail));
        let tell = |target| {
            let task = Task { target, counts: counts.clone(), closed: closed.clone() };
            tokio::spawn(task.run(host.notices()))
        };
        let tasks = targets.map(tell).collect();
        Herald { counts, tasks, closing }
    }

    /// For the figures.
    pub fn counts(&self) -> Arc<Counts> {
        self.counts.clone()
    }

    /// Tries once more what is left, for a little while.
    pub async fn finish(self) {
        self.closing.send_replace(true);
        let aborts: Vec<_> = self.tasks.iter().map(JoinHandle::abort_handle).collect();
        let all = async {
            for task in self.tasks {
                // One that panicked has nothing left to tell.
                let _ = task.await;
            }
        };
        if timeout(Duration::from_secs(NOTICES_LAST_SECS_MAX), all).await.is_err() {
            tracing::warn!("the daemon ends before all notices were delivered");
            aborts.iter().for_each(tokio::task::AbortHandle::abort);
        }
    }
}

/// What tells one receiver.
struct Task {
    target: Target,
    counts: Arc<Counts>,
    closed: watch::Receiver<bool>,
}

impl Task {
    async fn run(mut self, mut coming: Receiver<Arc<Notice>>) {
        loop {
            let next = tokio::select! {
                next = coming.recv() => next,
                _ = self.closed.wait_for(|closed| *closed) => break,
            };
            match next {
                Ok(notice) => self.tell(&notice).await,
                Err(RecvError::Lagged(count)) => self.missed(count),
                Err(RecvError::Closed) => return,
            }
        }
        loop {
            match coming.try_recv() {
                Ok(notice) => self.tell(&notice).await,
                Err(TryRecvError::Lagged(count)) => self.missed(count),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    async fn tell(&mut self, notice: &Notice) {
        if matches!(self.target, Target::Mail(_)) && notice.mail_to.is_empty() {
            return;
        }
        let (job, to) = (notice.job, self.name());
        for attempt in 1..=NOTICE_TRIES_MAX {
            let tried = match &self.target {
                Target::Webhook(webhook) => webhook.post(notice).await,
                Target::Mail(mailer) => mailer.send(notice).await,
            };
            let (fault, last) = match tried {
                Tried::Delivered => return self.count(&self.counts.delivered, 1),
                Tried::Failed(fault) => (fault, attempt == NOTICE_TRIES_MAX),
                Tried::Refused(fault) => (fault, true),
            };
            self.count(&self.counts.failed_tries, 1);
            let pause = Duration::from_secs(1 << (2 * (attempt - 1)));
            if last || !self.pause(pause).await {
                tracing::warn!(job, to, fault, attempt, "a notice is given up");
                return self.count(&self.counts.lost, 1);
            }
            tracing::debug!(job, to, fault, attempt, "a notice could not be delivered");
        }
    }

    /// Waits before the next try; there is none when the daemon stops meanwhile.
    async fn pause(&mut self, pause: Duration) -> bool {
        tokio::select! {
            () = sleep(pause) => true,
            _ = self.closed.wait_for(|closed| *closed) => false,
        }
    }

    fn missed(&self, count: u64) {
        tracing::warn!(count, to = self.name(), "notices are lost: too many of them wait");
        self.count(&self.counts.lost, count);
    }

    fn count(&self, of: &[AtomicU64; 2], count: u64) {
        let by = usize::from(matches!(self.target, Target::Mail(_)));
        of[by].fetch_add(count, Ordering::Relaxed);
    }

    /// How the receiver is called in the log.
    fn name(&self) -> String {
        match &self.target {
            Target::Webhook(webhook) => webhook.name(),
            Target::Mail(_) => "mail".to_owned(),
        }
    }
}
