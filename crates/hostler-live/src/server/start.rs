//! How a daemon begins and ends: store, host, certificate, listener; and back.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use hostler_core::units::Time;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::backup::Backups;
use super::health::Pulse;
use super::notices::{self, Herald};
use super::rate::{Buckets, Rate};
use super::tls::{self, Identity, TlsError, write_secret};
use super::{App, Engine, LocalSettings, Parts, listen, local, paths, router};
use crate::host::{
    self, Command, DEFAULT_TENANT, Experience, Host, HostError, HostHandle, HostThread,
    PolicyBuilder, Principal, Secret, TokenView,
};
use crate::limits::{CALLERS_MAX, GUESSES_PART, STREAMS_MAX};
use crate::store::{self, Batch, Role, Row, StoreError, TenantQuota, TokenRow};

/// File in the data folder with the token that the daemon made for an admin.
pub const ADMIN_TOKEN: &str = "admin-token";

/// How a daemon runs.
pub struct Settings {
    /// Folder of everything that must survive.
    pub data: PathBuf,
    /// Address of a database server, instead of the folder.
    pub store: Option<String>,
    /// Whether a store that cannot be used is moved aside, to begin anew.
    pub new_store: bool,
    /// Time between two snapshots of the store; none are taken without.
    pub snapshot_every: Option<Duration>,
    /// Where it listens.
    pub listen: SocketAddr,
    /// How it listens to users of its machine, if it does.
    pub local: Option<LocalSettings>,
    /// How callers know it.
    pub certificate: Certificate,
    /// How often each caller may ask.
    pub rate: Rate,
    /// What runs the jobs.
    pub engine: Engine,
    /// How the host behaves.
    pub host: host::Settings,
    /// Makes policies.
    pub policies: PolicyBuilder,
    /// What was learnt elsewhere.
    pub experience: Experience,
    /// Who is told of jobs that begin, end or fail.
    pub notices: notices::Settings,
}

/// How callers know the daemon.
pub enum Certificate {
    /// By one that is made at the first start and kept.
    Kept,
    /// By these files.
    Own {
        /// The chain.
        chain: PathBuf,
        /// The key of its first certificate.
        key: PathBuf,
    },
    /// Not at all: nothing is encrypted, so it must not leave the machine.
    None,
}

/// Why there is no daemon.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The data folder cannot be used.
    #[error("cannot use the data folder `{}`: {fault}", path.display())]
    Data {
        /// The folder.
        path: PathBuf,
        /// Why.
        fault: io::Error,
    },
    /// The address cannot be used.
    #[error("cannot listen on `{address}`: {fault}; is another daemon running? see --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        fault: io::Error,
    },
    /// The socket for users of this machine cannot be made.
    #[error("cannot listen on `{}`: {fault}; name another with `--socket`, or `none`", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// Why.
        fault: io::Error,
    },
    /// Nothing would be encrypted.
    #[error("`--plain` is for loopback only, not for `{address}`; leave it out")]
    Plain {
        /// The address.
        address: SocketAddr,
    },
    /// No certificate.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// No store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No host, or not any more.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Nobody could be told anything.
    #[error(transparent)]
    Notices(#[from] notices::NoticesError),
}

/// A daemon that runs.
pub struct Running {
    address: SocketAddr,
    fingerprint: Option<String>,
    first_token: Option<String>,
    data: PathBuf,
    host: HostHandle,
    thread: HostThread,
    stop: watch::Sender<bool>,
    listening: JoinHandle<()>,
    local: Option<(PathBuf, JoinHandle<()>)>,
    backups: Arc<Backups>,
    snapshots: bool,
    herald: Herald,
}

/// Opens the store, recovers the host and listens.
pub async fn start(settings: Settings) -> Result<Running, ServeError> {
    let Settings { data, store, listen: wanted, certificate, rate, engine, .. } = settings;
    let Settings { host, policies, experience, new_store, snapshot_every, local, .. } = settings;
    let notices = settings.notices.check()?;
    if matches!(certificate, Certificate::None) && !wanted.ip().is_loopback() {
        return Err(ServeError::Plain { address: wanted });
    }
    create(&data).map_err(|fault| ServeError::Data { path: data.clone(), fault })?;
    let backups = Arc::new(Backups::new(data.clone(), store.is_some()));
    // Reading a long log takes a while, and the client of PostgreSQL does not work on a thread
    // that drives tasks.
    let folder = data.clone();
    let opening = Opening { store, new_store, policies, experience, engine, settings: host };
    let opened = tokio::task::spawn_blocking(move || opening.open(&folder)).await;
    let (handle, thread) = opened.map_err(|_| panicked())??;
    let herald = Herald::start(notices, &handle);
    let identity = match certificate {
        Certificate::Kept => Some(tls::kept(&data, wanted.ip())?),
        Certificate::Own { chain, key } => Some(tls::own(&chain, &key)?),
        Certificate::None => None,
    };
    let refused = |fault| ServeError::Listen { address: wanted, fault };
    let listener = TcpListener::bind(wanted).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let first_token = first_token(&handle, &data).await?;
    let local_tenant = local.as_ref().and_then(|local| local.tenant.clone());
    if let Some(tenant) = &local_tenant {
        add_tenant(&handle, tenant).await?;
    }
    let (stop, stopped) = watch::channel(false);
    let (paths, document) = paths();
    let pulse = Pulse::new();
    tokio::spawn(pulse.clone().feel(handle.clone()));
    if let Some(every) = snapshot_every {
        tokio::spawn(Arc::clone(&backups).keep_snapshots(every));
    }
    let guesses = rate.per_second * GUESSES_PART;
    let guesses = Rate { per_second: guesses, burst: guesses.max(1.0) };
    let app = App(Arc::new(Parts {
        host: handle.clone(),
        buckets: Buckets::new(rate, CALLERS_MAX),
        guesses: Buckets::new(guesses, 1),
        pulse,
        streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        job_streams: Arc::default(),
        stop: stopped.clone(),
        document: Arc::new(document),
        backups: Arc::clone(&backups),
        local_tenant,
        notices: herald.counts(),
    }));
    let acceptor = identity.as_ref().map(|identity| TlsAcceptor::from(identity.config.clone()));
    let router = router(paths, app);
    let local = local.map(|local| serve_local(local, router.clone(), stopped.clone()));
    let local = local.transpose()?.flatten();
    let listening = tokio::spawn(listen::serve(listener, acceptor, router, stopped));
    let fingerprint = identity.map(|Identity { fingerprint, .. }| fingerprint);
    Ok(Running {
        address,
        fingerprint,
        first_token,
        data,
        host: handle,
        thread,
        stop,
        listening,
        local,
        backups,
        snapshots: snapshot_every.is_some(),
        herald,
    })
}

/// Listens to users of this machine. Where nobody asked for it, it may be impossible.
fn serve_local(
    settings: LocalSettings,
    router: Router,
    stop: watch::Receiver<bool>,
) -> Result<Option<(PathBuf, JoinHandle<()>)>, ServeError> {
    let LocalSettings { socket: path, must, .. } = settings;
    match local::bind(&path) {
        Ok(listener) => {
            let serving = tokio::spawn(local::serve(listener, path.clone(), router, stop));
            Ok(Some((path, serving)))
        }
        Err(fault) if must => Err(ServeError::Socket { path, fault }),
        Err(fault) => {
            tracing::warn!(socket = %path.display(), %fault, "no socket for users of this machine");
            Ok(None)
        }
    }
}

/// Adds a tenant that is not there.
async fn add_tenant(host: &HostHandle, name: &str) -> Result<(), ServeError> {
    let wanted = name.to_owned();
    if host.read(move |host| host.tenant(&wanted)).await?.is_none() {
        let (name, quota) = (name.to_owned(), TenantQuota::default());
        host.command(&Principal::daemon(), Command::SetTenant { name, quota }).await?;
    }
    Ok(())
}

/// What a store is opened with.
struct Opening {
    store: Option<String>,
    new_store: bool,
    policies: PolicyBuilder,
    experience: Experience,
    engine: Engine,
    settings: host::Settings,
}

impl Opening {
    /// Opens the store and puts the host that it holds on its thread.
    fn open(self, data: &Path) -> Result<(HostHandle, HostThread), ServeError> {
        let host = match self.host(data) {
            Err(HostError::Store(fault)) if self.store.is_none() => {
                let fault = store::with_way_back(data, fault);
                if !self.new_store || !matches!(fault, StoreError::Gone { .. }) {
                    return Err(fault.into());
                }
                let aside = store::begin_anew(data)?;
                tracing::warn!(%fault, ?aside, "beginning anew");
                self.host(data)
            }
            host => host,
        };
        let runtime = Handle::current();
        Ok(HostThread::start_with(host?, |ear| self.engine.caller(runtime, ear))?)
    }

    fn host(&self, data: &Path) -> Result<Host, HostError> {
        let store = store::open(data, self.store.as_deref())?;
        let driver = self.engine.driver(&self.settings);
        let (policies, experience) = (self.policies.clone(), self.experience.clone());
        Host::open_with(driver, store, policies, self.settings.clone(), experience, now())
    }
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

fn panicked() -> HostError {
    HostError::Stopped { fault: "its thread panicked".to_owned() }
}

/// A folder that only its owner lists; jobs of an agent in this process pass through to theirs.
fn create(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o711).create(folder)
}

/// The token of the first admin, when nobody can come in.
async fn first_token(host: &HostHandle, data: &Path) -> Result<Option<String>, ServeError> {
    let is_live =
        |token: &TokenView| token.role == Role::Admin && token.revoked.is_none() && !token.local;
    if host.read(move |host| host.tokens().iter().any(is_live)).await? {
        return Ok(None);
    }
    kept_token(host, &data.join(ADMIN_TOKEN), Role::Admin, "admin").await.map(Some)
}

/// Makes a token whose secret is in a file before anybody can use it: killed in between, the next
/// start makes another.
async fn kept_token(
    host: &HostHandle,
    path: &Path,
    role: Role,
    name: &str,
) -> Result<String, ServeError> {
    let secret = Secret::generate()?;
    write_secret(path, secret.reveal())?;
    let (hash, tenant, name) = (secret.hash(), DEFAULT_TENANT.to_owned(), name.to_owned());
    let (one_time, person) = (false, None);
    let command = Command::CreateToken { hash, role, tenant, name, one_time, person };
    host.command(&Principal::daemon(), command).await?;
    Ok(secret.reveal().to_owned())
}

/// Makes another admin token in the store of a daemon that does not run, for those who lost theirs.
/// Gives the file that holds it.
pub fn reset_admin(data: &Path, store: Option<&str>) -> Result<PathBuf, ServeError> {
    if store.is_none() && !data.join("hostler.db").exists() {
        return Err(StoreError::Missing { store: data.display().to_string() }.into());
    }
    let mut store = store::open(data, store)?;
    let tokens = store.load()?.tokens;
    let secret = Secret::generate()?;
    let token = TokenRow {
        id: tokens.last().map_or(1, |token| token.id + 1),
        hash: secret.hash(),
        role: Role::Admin,
        tenant: DEFAULT_TENANT.to_owned(),
        name: "admin".to_owned(),
        created: now().0,
        revoked: None,
        one_time: false,
        person: None,
    };
    let path = data.join(ADMIN_TOKEN);
    write_secret(&path, secret.reveal())?;
    store.commit(&Batch { rows: vec![Row::Token(token)], ..Batch::default() })?;
    Ok(path)
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens to users of this machine.
    pub fn socket(&self) -> Option<&Path> {
        self.local.as_ref().map(|(path, _)| path.as_path())
    }

    /// How clients reach it.
    pub fn url(&self) -> String {
        let scheme = if self.fingerprint.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.nearest())
    }

    /// Host and port by which this machine reaches it.
    pub fn reachable(&self) -> (String, u16) {
        let address = self.nearest();
        (address.ip().to_string(), address.port())
    }

    fn nearest(&self) -> SocketAddr {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            let loopback = if address.is_ipv6() { "::1" } else { "127.0.0.1" };
            address.set_ip(loopback.parse().expect("a loopback address is one"));
        }
        address
    }

    /// SHA-256 of its certificate.
    pub fn fingerprint(&self) -> Option<&str> {
        self.fingerprint.as_deref()
    }

    /// The token of the first admin, at the first start.
    pub fn first_token(&self) -> Option<&str> {
        self.first_token.as_deref()
    }

    /// The host.
    pub fn host(&self) -> &HostHandle {
        &self.host
    }

    /// A token for an agent in this process: made once, and kept in the data folder.
    pub async fn own_agent_token(&self, node: &str) -> Result<String, ServeError> {
        let path = self.data.join("agent-token");
        if let Ok(kept) = std::fs::read_to_string(&path)
            && let Some((who, _)) = self.host.authenticate(&kept)
            && who.user == node
        {
            return Ok(kept);
        }
        kept_token(&self.host, &path, Role::Agent, node).await
    }

    /// Runs until a signal comes or the host fails, then stops.
    pub async fn until_told_to_stop(self) -> Result<(), ServeError> {
        let cannot = |fault| ServeError::Listen { address: self.address, fault };
        let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
        let mut fault = self.host.fault();
        tokio::select! {
            _ = terminate.recv() => tracing::info!("told to stop"),
            _ = interrupt.recv() => tracing::info!("told to stop"),
            _ = fault.wait_for(Option::is_some) => tracing::error!("the host has failed"),
        }
        self.stop().await
    }

    /// Ends connections and saves the state.
    pub async fn stop(self) -> Result<(), ServeError> {
        self.stop.send_replace(true);
        // A listener that panicked has nothing left to end.
        let _ = self.listening.await;
        if let Some((_, serving)) = self.local {
            let _ = serving.await;
        }
        // A reader would keep the write-ahead log from being merged.
        self.backups.rest().await;
        self.host.stop().await;
        let joined = tokio::task::spawn_blocking(|| self.thread.join()).await;
        joined.map_err(|_| panicked())??;
        self.herald.finish().await;
        if self.snapshots {
            self.backups.take_last().await;
        }
        Ok(())
    }
}
