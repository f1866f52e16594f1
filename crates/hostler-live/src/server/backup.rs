//! A backup of the store, for admins who are not on the daemon's machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;
use tokio::sync::Mutex;

use super::App;
use super::access::{Caller, Operate};
use super::fault::ApiFault;
use crate::api::Problem;
use crate::limits::SNAPSHOT_AT_STOP_BYTES_MAX;
use crate::store::{self, StoreError};

/// Bytes that are sent at a time.
const PIECE_BYTES: usize = 256 << 10;

/// Takes backups of a daemon's store, one after the other: each reads all of it.
pub struct Backups {
    folder: PathBuf,
    /// Whether everything is on a database server.
    on_server: bool,
    /// Whether no more are taken.
    over: Mutex<bool>,
}

impl Backups {
    /// Of the store in a data folder, or of none where it is on a database server.
    pub fn new(folder: PathBuf, on_server: bool) -> Backups {
        Backups { folder, on_server, over: Mutex::new(false) }
    }

    /// Takes snapshots from time to time, for as long as it is let.
    pub async fn keep_snapshots(self: Arc<Backups>, every: Duration) {
        if self.on_server {
            return;
        }
        loop {
            tokio::time::sleep(every).await;
            let over = self.over.lock().await;
            if *over {
                return;
            }
            self.snapshot().await;
        }
    }

    /// Waits until nobody takes one any more.
    pub async fn rest(&self) {
        *self.over.lock().await = true;
    }

    /// Takes the last snapshot, of a store that nobody writes to any more.
    pub async fn take_last(&self) {
        let bytes = store::store_bytes(&self.folder);
        if !self.on_server && bytes <= SNAPSHOT_AT_STOP_BYTES_MAX {
            self.snapshot().await;
        }
    }

    async fn snapshot(&self) {
        let folder = self.folder.clone();
        let taken = tokio::task::spawn_blocking(move || store::snapshot(&folder)).await;
        match taken {
            Ok(Ok(Some(file))) => tracing::debug!(file = %file.display(), "took a snapshot"),
            Ok(Ok(None)) => {}
            Ok(Err(fault)) => tracing::error!(%fault, "cannot take a snapshot of the store"),
            Err(_) => tracing::error!("taking a snapshot panicked"),
        }
    }

    /// A backup that is nowhere but here: its file has no name any more.
    async fn take(&self) -> Result<(File, u64), ApiFault> {
        if self.on_server {
            let fault = "the store is on a PostgreSQL server";
            return Err(ApiFault::new(StatusCode::CONFLICT, fault)
                .hint("take a backup of the database with `pg_dump --format=custom`"));
        }
        let over = self.over.lock().await;
        if *over {
            return Err(ApiFault::unavailable("the daemon stops"));
        }
        let (folder, file) = (self.folder.clone(), self.folder.join("backup.sending"));
        // It lies beside the store until it is sent, and the daemon stops when its disk is full.
        if !store::has_room(&folder).unwrap_or(true) {
            let fault = "there is too little room for a backup in the daemon's data folder";
            return Err(ApiFault::unavailable(fault)
                .hint("on its machine, `hostler backup FILE --data DIR` needs none there"));
        }
        let taking = move || {
            let facts = store::back_up(&folder, &file)?;
            let opened = std::fs::File::open(&file);
            // Who reads it has it open; when the daemon is killed in between, the next one takes
            // the place of this file.
            let _ = std::fs::remove_file(&file);
            let fault = |error: std::io::Error| error.to_string();
            opened
                .map(|opened| (opened, facts.bytes))
                .map_err(|error| StoreError::Folder { path: file, fault: fault(error) })
        };
        let taken = tokio::task::spawn_blocking(taking).await;
        let taken = taken.map_err(|_| ApiFault::unavailable("taking a backup panicked"))?;
        let (file, bytes) = taken.map_err(|fault| ApiFault::unavailable(fault.to_string()))?;
        Ok((File::from_std(file), bytes))
    }
}

/// Takes a backup of everything that the daemon keeps.
///
/// One SQLite file, as the store was at one moment, for `hostler restore`. It holds the key of the
/// daemon's certificate and the environments of jobs: keep it secret.
#[utoipa::path(
    get, path = "/backup", tag = "cluster",
    responses(
        (status = 200, description = "The backup.", body = Vec<u8>,
            content_type = "application/vnd.sqlite3"),
        (status = 409, description = "The store is on a database server, which has its own way.",
            body = Problem),
    ),
)]
pub async fn backup(State(app): State<App>, _: Caller<Operate>) -> Result<Response, ApiFault> {
    let (file, bytes) = app.backups.take().await?;
    let pieces = stream::unfold(file, |mut file| async move {
        let mut piece = vec![0; PIECE_BYTES];
        match file.read(&mut piece).await {
            Ok(0) => None,
            Ok(read) => {
                piece.truncate(read);
                Some((Ok(Bytes::from(piece)), file))
            }
            Err(fault) => Some((Err(fault), file)),
        }
    });
    let heads = [
        (header::CONTENT_TYPE, "application/vnd.sqlite3".to_owned()),
        // Who gets less knows that something is missing.
        (header::CONTENT_LENGTH, bytes.to_string()),
    ];
    Ok((heads, Body::from_stream(pieces)).into_response())
}
