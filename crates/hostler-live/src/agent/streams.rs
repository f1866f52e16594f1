//! Streams of people to jobs on this machine: a connection to the daemon for each, which leads to a
//! shim or to a port of the job.
//!
//! The shim is told to connect and does so over the agent's own socket, so that a job has no more
//! files than without. Nothing here touches the agent's one connection for orders and beats.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{interval, timeout};
use tokio_tungstenite::tungstenite::Message;

use hostler_core::id::LeaseId;

use super::connect::{Daemon, connect_stream};
use super::folder::LeaseFolder;
use super::ports;
use super::shim::ToShim;
use crate::client::socket::Socket;
use crate::limits::{
    JOB_STREAMS_MAX, STREAM_ALIVE_SECS, STREAM_FRAME_BYTES_MAX, STREAM_LAST_WORDS_SECS_MAX,
    STREAM_SILENT_SECS_MAX,
};
use crate::stream::{Frame, Frames, Opened, StreamFault, StreamKind, StreamRequest};
use crate::wire::StreamOrder;

/// Seconds for a shim to connect.
const ARRIVAL_SECS_MAX: u64 = 5;

/// Seconds for a port to be connected to.
const PORT_SECS_MAX: u64 = 5;

/// Connections of shims that are waited for.
#[derive(Clone, Default)]
pub(super) struct Arrivals(Arc<Mutex<BTreeMap<u64, Waiting>>>);

struct Waiting {
    lease: LeaseId,
    arrival: oneshot::Sender<UnixStream>,
}

impl Arrivals {
    fn expect(&self, number: u64, lease: LeaseId) -> oneshot::Receiver<UnixStream> {
        let (arrival, receiver) = oneshot::channel();
        self.lock(|waiting| waiting.insert(number, Waiting { lease, arrival }));
        receiver
    }

    /// A shim connected for a stream. One that nobody waits for is closed.
    pub fn arrived(&self, number: u64, lease: LeaseId, stream: UnixStream) {
        let waiting = self.lock(|waiting| waiting.remove(&number));
        if let Some(waiting) = waiting.filter(|waiting| waiting.lease == lease) {
            let _ = waiting.arrival.send(stream);
        }
    }

    fn lock<T>(&self, act: impl FnOnce(&mut BTreeMap<u64, Waiting>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// All streams of this machine.
#[derive(Clone)]
pub(super) struct Streams {
    daemon: Arc<Daemon>,
    arrivals: Arrivals,
    places: Arc<Semaphore>,
}

impl Streams {
    pub fn new(daemon: Daemon) -> Streams {
        let places = Arc::new(Semaphore::new(JOB_STREAMS_MAX));
        Streams { daemon: Arc::new(daemon), arrivals: Arrivals::default(), places }
    }

    /// Where shims arrive.
    pub fn arrivals(&self) -> Arrivals {
        self.arrivals.clone()
    }

    /// Connects to the daemon for a stream and leads it to where it is wanted; `shim` is none when
    /// the lease does not run here.
    pub async fn open(
        self,
        order: StreamOrder,
        shim: Option<mpsc::Sender<ToShim>>,
        folder: LeaseFolder,
    ) {
        // The daemon stops waiting by itself.
        let Ok(_place) = self.places.clone().try_acquire_owned() else { return };
        let StreamOrder { number, lease, request } = order;
        let socket = match connect_stream(&self.daemon, number).await {
            Ok(socket) => socket,
            Err(fault) => {
                tracing::warn!(%fault, "cannot connect to the daemon for a stream");
                return;
            }
        };
        let led = match &request.what {
            StreamKind::Port { port } => ports::connect(&folder, *port, PORT_SECS_MAX)
                .await
                .map(End::Port)
                .map_err(|fault| StreamFault { fault, retry: false }),
            StreamKind::Attach { .. } | StreamKind::Exec { .. } => {
                self.arrival(number, lease, shim).await.map(End::Shim)
            }
        };
        match led {
            Ok(End::Shim(stream)) => carry_shim(socket, stream, &request).await,
            Ok(End::Port(stream)) => carry_port(socket, stream, lease).await,
            Err(fault) => refuse(socket, fault).await,
        }
    }

    /// Lets the shim of a lease connect.
    async fn arrival(
        &self,
        number: u64,
        lease: LeaseId,
        shim: Option<mpsc::Sender<ToShim>>,
    ) -> Result<UnixStream, StreamFault> {
        // Between two agents, or after the end, a shim is not there.
        let gone = "the job is not there (any more)".to_owned();
        let shim = shim.ok_or(StreamFault { fault: gone, retry: true })?;
        let arrival = self.arrivals.expect(number, lease);
        let told = shim.try_send(ToShim::Stream { stream: number }).is_ok();
        let limit = Duration::from_secs(ARRIVAL_SECS_MAX);
        let arrived = match told {
            true => timeout(limit, arrival).await.ok().and_then(Result::ok),
            false => None,
        };
        self.arrivals.lock(|waiting| waiting.remove(&number));
        let fault = "the job does not let anybody in: it was started before its agent could do \
                     that, or too many are inside";
        arrived.ok_or_else(|| StreamFault { fault: fault.to_owned(), retry: false })
    }
}

/// Where a stream leads.
enum End {
    Shim(UnixStream),
    Port(TcpStream),
}

type Sink = SplitSink<Socket, Message>;
type Source = SplitStream<Socket>;

async fn refuse(mut socket: Socket, fault: StreamFault) {
    let _ = socket.send(Message::binary(Frame::Fault(fault).to_bytes())).await;
    let _ = socket.close(None).await;
}

/// Carries frames between the daemon and a shim, without looking into them.
async fn carry_shim(socket: Socket, stream: UnixStream, request: &StreamRequest) {
    let (mut reader, mut writer) = stream.into_split();
    let request = serde_json::to_vec(request).expect("keys of messages are text");
    if write_block(&mut writer, &request).await.is_err() {
        let fault = "the job is over".to_owned();
        return refuse(socket, StreamFault { fault, retry: true }).await;
    }
    let (mut sink, mut source) = socket.split();
    let unread = tokio::select! {
        unread = from_shim(&mut reader, &mut sink) => unread,
        () = to_shim(&mut source, &mut writer) => false,
    };
    if unread {
        // The last words of a person who has gone may have come before it is seen.
        let limit = Duration::from_secs(STREAM_LAST_WORDS_SECS_MAX);
        let _ = timeout(limit, to_shim(&mut source, &mut writer)).await;
    }
    let _ = sink.close().await;
}

/// Carries what the job's side says; says whether nobody takes it.
async fn from_shim(reader: &mut OwnedReadHalf, sink: &mut Sink) -> bool {
    let mut alive = interval(Duration::from_secs(STREAM_ALIVE_SECS));
    // A block that was read in part must not be given up for a sign of life.
    let (blocks, mut waiting) = mpsc::channel(1);
    let read = async move {
        while let Ok(Some(block)) = read_block(reader).await {
            if blocks.send(block).await.is_err() {
                return;
            }
        }
    };
    let send = async {
        loop {
            let block = tokio::select! {
                block = waiting.recv() => match block {
                    Some(block) => block,
                    None => return false,
                },
                _ = alive.tick() => Frame::Alive.to_bytes(),
            };
            if sink.send(Message::binary(block)).await.is_err() {
                return true;
            }
        }
    };
    // What was read is sent, also when nothing more comes.
    let read = async {
        read.await;
        std::future::pending().await
    };
    tokio::select! {
        unread = read => unread,
        unread = send => unread,
    }
}

/// Carries what the person says until that one is gone. A job's side that does not listen any more
/// may still have something to say: how it ended.
async fn to_shim(source: &mut Source, writer: &mut OwnedWriteHalf) {
    let mut listens = true;
    while let Some(bytes) = next(source).await {
        listens = listens && write_block(writer, &bytes).await.is_ok();
    }
}

/// The next frame of the daemon; none when it is over or silent.
async fn next(source: &mut Source) -> Option<Vec<u8>> {
    let limit = Duration::from_secs(STREAM_SILENT_SECS_MAX);
    loop {
        match timeout(limit, source.next()).await.ok()??.ok()? {
            Message::Binary(bytes) => return Some(bytes.into()),
            Message::Close(_) => return None,
            _ => {}
        }
    }
}

/// Carries bytes between the daemon and a port of the job.
async fn carry_port(socket: Socket, stream: TcpStream, lease: LeaseId) {
    let _ = stream.set_nodelay(true);
    let (reader, mut writer) = stream.into_split();
    let (mut sink, mut source) = socket.split();
    let opened = Frame::Opened(Opened { lease, offset: 0, terminal: false, room: None });
    if sink.send(Message::binary(opened.to_bytes())).await.is_err() {
        return;
    }
    let out = async {
        let mut frames = Frames::of(reader);
        while let Some(frame) = frames.next().await {
            if sink.send(Message::binary(frame.to_bytes())).await.is_err() {
                return;
            }
        }
    };
    let back = async {
        let mut listens = true;
        while let Some(frame) = next(&mut source).await.and_then(|bytes| Frame::parse(&bytes)) {
            // A port that takes nothing more may still have something to say.
            listens = listens
                && match frame {
                    Frame::Data(bytes) => writer.write_all(&bytes).await.is_ok(),
                    Frame::End => writer.shutdown().await.is_ok(),
                    _ => true,
                };
        }
    };
    tokio::select! { () = out => {}, () = back => {} }
    let _ = sink.close().await;
}

/// Writes a block: its length and itself.
async fn write_block(writer: &mut OwnedWriteHalf, block: &[u8]) -> io::Result<()> {
    let length = u32::try_from(block.len()).map_err(io::Error::other)?;
    writer.write_all(&[&length.to_be_bytes()[..], block].concat()).await
}

/// Reads a block; none at the end.
async fn read_block(reader: &mut OwnedReadHalf) -> io::Result<Option<Vec<u8>>> {
    let length = match reader.read_u32().await {
        Ok(length) => length as usize,
        Err(fault) if fault.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(fault) => return Err(fault),
    };
    if length > STREAM_FRAME_BYTES_MAX + 1 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a block is too long"));
    }
    let mut block = vec![0; length];
    reader.read_exact(&mut block).await?;
    Ok(Some(block))
}
