//! Backups that a daemon takes of its own store, now and then and when it stops, so that there is a
//! way back when nobody took any.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{StoreError, backup, mark, sqlite};
use crate::limits::{SNAPSHOT_FREE_BYTES_MIN, SNAPSHOTS_BYTES_MAX, SNAPSHOTS_KEPT};

const FOLDER: &str = "snapshots";

/// Seconds between two snapshots that are both worth keeping. Many stops in a row must not drive
/// out those of before.
const SPACING_SECS: u64 = 1800;

/// A snapshot in the folder of them.
struct Taken {
    path: PathBuf,
    at: u64,
    bytes: u64,
}

/// Takes a snapshot of the store of a data folder, and drops old ones. None when there is too
/// little room for it.
pub fn snapshot(data: &Path) -> Result<Option<PathBuf>, StoreError> {
    let folder = data.join(FOLDER);
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .map_err(|error| unusable(&folder, &error))?;
    drop_drafts(&folder);
    if !has_room(data)? {
        tracing::warn!("too little room for a snapshot of the store");
        return Ok(None);
    }
    let path = folder.join(format!("snapshot-{:012}.db", now()));
    let _ = fs::remove_file(&path);
    backup::back_up(data, &path)?;
    thin_out(&folder);
    Ok(Some(path))
}

/// Whether a copy of the store beside it leaves enough free for the daemon to go on.
pub fn has_room(data: &Path) -> Result<bool, StoreError> {
    let room = rustix::fs::statvfs(data).map_err(|error| unusable(data, &error.into()))?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    Ok(free >= 2 * store_bytes(data) + SNAPSHOT_FREE_BYTES_MIN)
}

/// Bytes of the store of a data folder.
pub fn store_bytes(data: &Path) -> u64 {
    let sizes = sqlite::files(data).into_iter().filter_map(|file| fs::metadata(file).ok());
    sizes.map(|file| file.len()).sum()
}

/// What can be done about a store of a data folder that cannot be used.
pub(super) fn way_back(data: &Path) -> String {
    let shown = data.display();
    let mut way = format!("restore a backup with `hostler restore FILE --data {shown} --force`");
    if let Some(newest) = taken(&data.join(FOLDER)).pop() {
        let age = now().saturating_sub(newest.at);
        let age = match age {
            0..120 => format!("{age} s"),
            120..7200 => format!("{} min", age / 60),
            7200..172_800 => format!("{} h", age / 3600),
            _ => format!("{} days", age / 86_400),
        };
        way += &format!("; the newest snapshot is `{}`, {age} old", newest.path.display());
    }
    let store = data.join(sqlite::FILE);
    // The database would drop the log of an empty file, which may be all that is left.
    let has_content = fs::metadata(&store).is_ok_and(|file| file.len() > 0);
    if has_content && backup::inspect(&store).is_ok() {
        way += &format!("; `{}` as FILE goes on with what is left", store.display());
    }
    way + "; `hostler serve --new-store` moves all of it aside and begins anew"
}

/// The same fault with what can be done about it, where the store of a data folder is at fault.
pub fn with_way_back(data: &Path, fault: StoreError) -> StoreError {
    match fault {
        StoreError::Damaged { store, fault } => {
            let fault = format!("is damaged: {fault}");
            StoreError::Gone { store, fault, way: way_back(data) }
        }
        fault => fault,
    }
}

/// Moves everything of a store that cannot be used aside, into the folder `lost-N`, so that the
/// next start is a first one.
pub fn begin_anew(data: &Path) -> Result<Option<PathBuf>, StoreError> {
    let _lock = sqlite::lock(data)?;
    backup::set_aside(data, "lost", &mark::remains(data))
}

/// Drops snapshots that are too many, too large together, or too close to the one before.
fn thin_out(folder: &Path) {
    let mut kept = taken(folder);
    if let [.., before, last, _newest] = &kept[..]
        && last.at - before.at < SPACING_SECS
    {
        let dropped = kept.remove(kept.len() - 2);
        let _ = fs::remove_file(dropped.path);
    }
    let mut bytes: u64 = kept.iter().map(|taken| taken.bytes).sum();
    while kept.len() > SNAPSHOTS_KEPT || (kept.len() > 1 && bytes > SNAPSHOTS_BYTES_MAX) {
        let dropped = kept.remove(0);
        bytes -= dropped.bytes;
        // One that stays is tried again next time.
        let _ = fs::remove_file(dropped.path);
    }
}

/// Snapshots in their folder, oldest first.
fn taken(folder: &Path) -> Vec<Taken> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut taken: Vec<Taken> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let at = name.strip_prefix("snapshot-")?.strip_suffix(".db")?.parse().ok()?;
            Some(Taken { path: entry.path(), at, bytes: entry.metadata().ok()?.len() })
        })
        .collect();
    taken.sort_by_key(|taken| taken.at);
    taken
}

/// Removes what a daemon that was killed in the middle left.
fn drop_drafts(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|ending| ending == "draft") {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn unusable(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Folder { path: path.to_owned(), fault: error.to_string() }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_snapshots_go_and_many_in_a_row_leave_those_of_before() {
        let folder = tempfile::tempdir().unwrap();
        let add = |at: u64| {
            fs::write(folder.path().join(format!("snapshot-{at:012}.db")), "x").unwrap();
            thin_out(folder.path());
        };
        let times = || taken(folder.path()).iter().map(|taken| taken.at).collect::<Vec<_>>();
        (1..=6).for_each(|hour| add(hour * 3600));
        assert_eq!(times(), [3 * 3600, 4 * 3600, 5 * 3600, 6 * 3600]);
        // Twenty stops, a minute apart.
        (1..=20).for_each(|minute| add(6 * 3600 + minute * 60));
        assert_eq!(times().len(), SNAPSHOTS_KEPT);
        assert_eq!(times().last(), Some(&(6 * 3600 + 1200)));
        assert!(times().contains(&(6 * 3600)) && times().contains(&(5 * 3600)), "{:?}", times());
    }
}
