//! A real daemon on loopback with a real store, for one test.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use hostler_live::api::{Accepted, MadeToken, NewToken};
use hostler_live::client::{Access, Ask, Client, HttpAnswer, Method};
use hostler_live::host;
use hostler_live::server::rate::Rate;
use hostler_live::server::{self, Certificate, Running, ServeError, Settings};
use hostler_live::store::Role;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// A daemon and the token of its first admin.
pub struct Daemon {
    runtime: Runtime,
    running: Option<Running>,
    folder: TempDir,
    pub admin: String,
}

/// How the daemons of tests run.
pub fn settings(folder: &Path, certificate: Certificate) -> Settings {
    Settings {
        data: folder.to_owned(),
        store: None,
        new_store: false,
        snapshot_every: None,
        notices: server::notices::Settings::default(),
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        local: None,
        certificate,
        engine: server::Engine::Agents,
        rate: Rate { per_second: 10_000.0, burst: 10_000.0 },
        experience: host::Experience::default(),
        host: host::Settings::new("kind = \"fifo-backfill\"\nestimate = \"user\"\n"),
        policies: Arc::new(|text| {
            hostler_policies::builtin().from_toml(text).map_err(|e| e.to_string())
        }),
    }
}

/// A runtime for daemons.
pub fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads start")
}

impl Daemon {
    pub fn start(certificate: Certificate) -> Daemon {
        Daemon::set_up(certificate, |_| ())
    }

    /// A daemon that hears so many requests a second of each token.
    pub fn with_rate(per_second: f64) -> Daemon {
        let rate = Rate { per_second, burst: per_second };
        Daemon::changed(|settings| settings.rate = rate)
    }

    /// A daemon with other settings than usual.
    pub fn changed(change: impl FnOnce(&mut Settings)) -> Daemon {
        Daemon::set_up(Certificate::None, change)
    }

    fn set_up(certificate: Certificate, change: impl FnOnce(&mut Settings)) -> Daemon {
        let (runtime, folder) = (runtime(), tempfile::tempdir().expect("there is a disk"));
        let mut settings = settings(folder.path(), certificate);
        change(&mut settings);
        let running = runtime.block_on(server::start(settings));
        let running = running.expect("the daemon works");
        let admin = running.first_token().expect("a new store has no admin").to_owned();
        Daemon { runtime, running: Some(running), folder, admin }
    }

    pub fn plain() -> Daemon {
        Daemon::start(Certificate::None)
    }

    pub fn running(&self) -> &Running {
        self.running.as_ref().expect("it runs")
    }

    pub fn data(&self) -> &Path {
        self.folder.path()
    }

    pub fn client(&self, token: &str) -> Client {
        let running = self.running();
        Client::new(
            Access::new(&running.url(), token, running.fingerprint()).expect("the daemon works"),
        )
        .expect("the daemon works")
    }

    pub fn admin(&self) -> Client {
        self.client(&self.admin)
    }

    pub fn token(&self, role: Role, tenant: &str, name: &str) -> String {
        let (name, tenant) = (name.to_owned(), Some(tenant.to_owned()));
        let new = NewToken { role, name, tenant, new_tenant: true, unix_user: None };
        self.admin().post::<MadeToken>("/tokens", &new).expect("the daemon works").token
    }

    pub fn again(mut self) -> Daemon {
        let running = self.running.take().expect("it runs");
        self.runtime.block_on(running.stop()).expect("the daemon works");
        let settings = settings(self.folder.path(), Certificate::None);
        let running: Result<Running, ServeError> = self.runtime.block_on(server::start(settings));
        self.running = Some(running.expect("the daemon works"));
        self
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            let stopped = self.runtime.block_on(running.stop());
            assert!(stopped.is_ok() || std::thread::panicking(), "{stopped:?}");
        }
    }
}

/// A job that would do nothing.
pub fn job() -> Value {
    json!({ "command": ["true"], "tasks": 1, "gpus": 1.0 })
}

pub fn submit(client: &mut Client) -> u32 {
    client.post::<Accepted>("/jobs", &job()).expect("the daemon works").first
}

pub fn ask(
    client: &mut Client,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> HttpAnswer {
    let body = body.map(|body| serde_json::to_vec(body).expect("the daemon works"));
    client.ask(&Ask { method, path, headers, body }).expect("the daemon works")
}
