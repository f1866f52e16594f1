//! `hostler forward`: ports of this machine that lead to ports of a job.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use hostler_live::client::stream::{JobStream, Streams};
use hostler_live::job::JobView;
use hostler_live::limits::JOB_STREAMS_PER_JOB_MAX;
use hostler_live::stream::{Frame, Frames, StreamKind, StreamRequest};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::session::Person;
use super::{block_on, narrow, not_over, one};
use crate::ExitWith;
use crate::cli::Forward;
use crate::live::{access, client, ending};
use crate::say::say;

/// Time between two looks whether the job is over.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Leads ports to a job until the person or the job ends it.
pub fn run(args: &Forward) -> Result<()> {
    let mut client = client()?;
    let view = one(&mut client, args.job)?;
    not_over(&view)?;
    let job = view.id;
    let streams = Streams::new(access()?)?;
    let client = Arc::new(Mutex::new(client));
    let asked = client.clone();
    let signal = block_on(async move {
        let mut person = Person::new()?;
        for (local, remote) in &args.ports {
            spawn(&streams, job, args.rank, *local, *remote, false).await?;
            say(format_args!("http://localhost:{local} leads to port {remote} of job {job}"));
        }
        let over = async {
            loop {
                let client = asked.clone();
                let look = tokio::task::spawn_blocking(move || {
                    let mut client = client.lock().unwrap_or_else(PoisonError::into_inner);
                    client.get::<JobView>(&format!("/jobs/{job}"))
                });
                // A daemon that is away comes back.
                if let Ok(Ok(view)) = look.await
                    && view.ended.is_some()
                {
                    return view;
                }
                sleep(LOOK_AGAIN).await;
            }
        };
        Ok(tokio::select! {
            view = over => {
                say(format_args!("job {job}: {}", ending(&view)));
                0
            }
            signal = person.told_to_end() => signal,
        })
    })?;
    match signal {
        0 => Ok(()),
        signal => Err(ExitWith { code: narrow(128 + signal), words: String::new() }.into()),
    }
}

/// Listens on a port of this machine from now on. Faults are told unless the terminal belongs to
/// the job.
pub async fn spawn(
    streams: &Streams,
    job: u32,
    rank: u32,
    local: u16,
    remote: u16,
    is_quiet: bool,
) -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", local)).await;
    let listener = listener.with_context(|| {
        format!("cannot listen on port {local}; write OTHER:{remote} for another port")
    })?;
    let (streams, places) = (streams.clone(), Arc::new(Semaphore::new(JOB_STREAMS_PER_JOB_MAX)));
    tokio::spawn(async move {
        loop {
            let Ok(place) = places.clone().acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else { continue };
            let streams = streams.clone();
            tokio::spawn(async move {
                let what = StreamKind::Port { port: remote };
                match streams.open(job, &StreamRequest { rank, counts: false, what }).await {
                    Ok(opened) => carry(stream, opened).await,
                    Err(fault) if !is_quiet => say(format_args!("port {local}: {fault}")),
                    Err(_) => {}
                }
                drop(place);
            });
        }
    });
    Ok(())
}

/// Carries bytes in both directions until the job's side has ended, or both have.
async fn carry(stream: TcpStream, opened: JobStream) {
    let _ = stream.set_nodelay(true);
    let (reader, mut writer) = stream.into_split();
    let JobStream { mut sender, mut receiver, .. } = opened;
    let there = async {
        let mut frames = Frames::of(reader);
        while let Some(frame) = frames.next().await {
            if !sender.send(&frame).await {
                return;
            }
        }
    };
    let back = async {
        while let Some(frame) = receiver.next().await {
            let taken = match frame {
                Frame::Data(bytes) => writer.write_all(&bytes).await.is_ok(),
                // Nothing that still goes there is answered.
                Frame::End => {
                    let _ = writer.shutdown().await;
                    false
                }
                _ => true,
            };
            if !taken {
                return;
            }
        }
    };
    tokio::select! { () = there => {}, () = back => {} }
    sender.close().await;
}
