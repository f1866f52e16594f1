//! The daemon's socket for users of its own machine: who is at the other end is what the kernel
//! says, and nothing that is said over it.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::listen::{BREATHER, GOODBYE, requests, told};
use crate::host::{HostHandle, Principal, stranger};
use crate::limits::{LOCAL_CONNECTIONS_MAX, LOCAL_CONNECTIONS_PER_USER_MAX, NAMES_KEPT};
use crate::person::{Account, FIRST_PERSON_UID, OVERFLOW_UID};

/// Time for which the name of a number is believed.
const NAME_KEPT: Duration = Duration::from_secs(60);

/// How a daemon listens to users of its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalSettings {
    /// Where.
    pub socket: PathBuf,
    /// Whether there is no daemon without it.
    pub must: bool,
    /// The tenant of people of whom nothing else is said; they are refused when none.
    pub tenant: Option<String>,
}

/// Who is at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The number, by the kernel.
    pub uid: u32,
    /// The name that the machine has for it.
    pub name: Option<String>,
}

impl Peer {
    /// Who that is to the daemon: what was said of the user, or somebody of the tenant for all. The
    /// system's users and those whom the kernel cannot name, as which jobs may run, are never
    /// meant by the latter.
    pub fn principal(&self, host: &HostHandle, tenant: Option<&str>) -> Option<Principal> {
        let name = self.name.as_deref()?;
        let known = host.local_user(name, self.uid);
        known.or_else(|| {
            let is_person = self.uid >= FIRST_PERSON_UID && self.uid != OVERFLOW_UID;
            stranger(name, self.uid, tenant.filter(|_| is_person)?)
        })
    }

    /// In words, with what an admin types to let it in.
    pub fn unknown(&self) -> (String, String) {
        match &self.name {
            Some(name) => (
                format!("user `{name}` ({}) is not known here", self.uid),
                format!("an admin types `hostler user add {name}`; or use `hostler login`"),
            ),
            None => (
                format!("user {} has no name on the daemon's machine", self.uid),
                "use `hostler login` with a token".to_owned(),
            ),
        }
    }
}

/// A socket that others may connect to. One that a daemon left behind is taken away.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    if let Ok(metadata) = path.symlink_metadata() {
        if !metadata.file_type().is_socket() {
            let fault = "there is something else of this name";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, fault));
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another daemon listens there"));
        }
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

/// Serves until `stop` turns true, and takes the socket away.
pub async fn serve(
    listener: UnixListener,
    path: PathBuf,
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    let desk = Arc::new(FrontDesk::default());
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = told(&mut stop) => break,
        };
        while connections.try_join_next().is_some() {}
        match accepted.and_then(|(stream, _)| Ok((stream.peer_cred()?.uid(), stream))) {
            Ok((uid, stream)) => {
                // Who has too many waits for nobody: others are to have a place.
                let Some(place) = desk.place(uid) else { continue };
                let (desk, router, stop) = (desk.clone(), router.clone(), stop.clone());
                connections.spawn(connection(stream, uid, desk, place, router, stop));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(BREATHER).await;
            }
        }
    }
    // It may have been taken away by hand.
    let _ = std::fs::remove_file(path);
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(GOODBYE, all).await;
}

async fn connection(
    stream: UnixStream,
    uid: u32,
    desk: Arc<FrontDesk>,
    _place: Place,
    router: Router,
    stop: watch::Receiver<bool>,
) {
    let name = tokio::task::spawn_blocking(move || desk.name(uid)).await.ok().flatten();
    requests(stream, router, Some(Peer { uid, name }), stop).await;
}

/// Names that were looked up, and who has how many connections.
#[derive(Default)]
struct FrontDesk {
    names: Mutex<HashMap<u32, (Option<String>, Instant)>>,
    open: Mutex<HashMap<u32, usize>>,
}

impl FrontDesk {
    /// The name of a number. What is asked for again and again costs no process.
    fn name(&self, uid: u32) -> Option<String> {
        self.name_by(uid, Account::numbered)
    }

    /// The same by another way of asking. What could not be found out is asked for again.
    fn name_by(
        &self,
        uid: u32,
        look_up: impl Fn(u32) -> io::Result<Option<Account>>,
    ) -> Option<String> {
        let now = Instant::now();
        if let Some((name, at)) = held(&self.names).get(&uid)
            && now.duration_since(*at) < NAME_KEPT
        {
            return name.clone();
        }
        let name = match look_up(uid) {
            Ok(account) => account.map(|account| account.name),
            Err(error) => {
                tracing::warn!(uid, %error, "cannot look up who connects");
                return None;
            }
        };
        let mut names = held(&self.names);
        if names.len() >= NAMES_KEPT {
            names.clear();
        }
        names.insert(uid, (name.clone(), now));
        name
    }

    fn place(self: &Arc<FrontDesk>, uid: u32) -> Option<Place> {
        let mut open = held(&self.open);
        let all: usize = open.values().sum();
        let own = open.get(&uid).copied().unwrap_or(0);
        if all >= LOCAL_CONNECTIONS_MAX || own >= LOCAL_CONNECTIONS_PER_USER_MAX {
            return None;
        }
        open.insert(uid, own + 1);
        Some(Place { desk: self.clone(), uid })
    }
}

/// A connection that is counted.
struct Place {
    desk: Arc<FrontDesk>,
    uid: u32,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = held(&self.desk.open);
        if let Some(count) = open.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.uid);
            }
        }
    }
}

fn held<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic in between leaves whole entries.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_up_that_failed_is_tried_again_and_one_that_went_well_is_kept() {
        let desk = FrontDesk::default();
        assert_eq!(desk.name_by(7, |_| Err(io::ErrorKind::TimedOut.into())), None);
        let account = |uid| Account {
            name: "ada".to_owned(),
            uid,
            gid: uid,
            home: "/".to_owned(),
            shell: String::new(),
        };
        assert_eq!(desk.name_by(7, |uid| Ok(Some(account(uid)))).as_deref(), Some("ada"));
        let unasked = |_| -> io::Result<Option<Account>> { panic!("it is known") };
        assert_eq!(desk.name_by(7, unasked).as_deref(), Some("ada"));
    }

    #[test]
    fn nobody_takes_all_places() {
        let desk = Arc::new(FrontDesk::default());
        let take = |uid| desk.place(uid);
        let mine: Vec<Place> = std::iter::from_fn(|| take(7)).collect();
        assert_eq!(mine.len(), LOCAL_CONNECTIONS_PER_USER_MAX);
        assert!(take(8).is_some());
        drop(mine);
        assert!(take(7).is_some());
        assert!(held(&desk.open).is_empty());
    }
}
