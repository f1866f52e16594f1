//! A thread that reads what is over, so that long lists do not hold up the host.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use tokio::sync::oneshot;

use super::view::{in_list, of_row};
use super::{Host, HostError};
use crate::job::JobView;
use crate::store::{HistoryFilter, JobRow, Reader};

/// Reads that wait; each is bounded by a page.
const WAITING_MAX: usize = 256;

type Read = Box<dyn FnOnce(&mut dyn Reader) + Send>;

/// Reaches the reading thread.
pub(super) struct HistoryReader {
    reads: SyncSender<Read>,
}

impl HistoryReader {
    pub(super) fn start(reader: Box<dyn Reader>) -> Result<HistoryReader, HostError> {
        let (reads, inbox) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new().name("library".to_owned());
        // It ends with the last handle.
        let spawned = thread.spawn(move || serve(reader, &inbox));
        spawned.map_err(|fault| HostError::Stopped { fault: fault.to_string() })?;
        Ok(HistoryReader { reads })
    }

    pub(super) async fn job(&self, id: u32) -> Result<Option<JobView>, HostError> {
        self.read(move |reader| Ok(reader.job(id)?.as_ref().map(of_row))).await
    }

    pub(super) async fn history(&self, filter: HistoryFilter) -> Result<Vec<JobView>, HostError> {
        self.read(move |reader| Ok(reader.history(&filter)?.iter().map(in_list).collect())).await
    }

    /// The same as rows, with what is only counted.
    pub(super) async fn rows(&self, filter: HistoryFilter) -> Result<Vec<JobRow>, HostError> {
        self.read(move |reader| Ok(reader.history(&filter)?)).await
    }

    pub(super) async fn records(
        &self,
        after: u64,
        most: usize,
    ) -> Result<Vec<(u64, String)>, HostError> {
        self.read(move |reader| Ok(reader.records(after, most)?)).await
    }

    async fn read<Out: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Reader) -> Result<Out, HostError> + Send + 'static,
    ) -> Result<Out, HostError> {
        let (reply, answer) = oneshot::channel();
        let read: Read = Box::new(move |reader| {
            // Whoever asked may be gone.
            let _ = reply.send(work(reader));
        });
        self.reads.try_send(read).map_err(|error| match error {
            TrySendError::Full(_) => HostError::Busy,
            TrySendError::Disconnected(_) => gone(),
        })?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

fn gone() -> HostError {
    HostError::Stopped { fault: "the reading thread is gone".to_owned() }
}

fn serve(mut reader: Box<dyn Reader>, inbox: &Receiver<Read>) {
    while let Ok(read) = inbox.recv() {
        read(&mut *reader);
    }
}

impl Host {
    /// A second view on the store.
    pub(super) fn reader(&self) -> Result<Box<dyn Reader>, HostError> {
        Ok(self.desk.store.reader()?)
    }
}
