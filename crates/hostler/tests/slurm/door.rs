//! A way to the controller that can be shut: whoever comes then is refused, while the controller,
//! its nodes and its jobs go on. It can be long, too.

use std::fs;
use std::io::ErrorKind;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::lab::Lab;

/// Time between two looks for somebody at the door.
const LOOK: Duration = Duration::from_millis(5);

pub struct Door {
    /// A configuration by which commands come through it.
    pub conf: PathBuf,
    at: u16,
    to: u16,
    is_open: Arc<AtomicBool>,
    way_ms: Arc<AtomicU64>,
    keeper: Option<JoinHandle<()>>,
}

impl Door {
    /// One to the controller of a cluster, open.
    pub fn to(lab: &Lab) -> Door {
        let text = fs::read_to_string(lab.conf()).unwrap();
        let line = text.lines().find(|line| line.starts_with("SlurmctldPort=")).unwrap();
        let to = line["SlurmctldPort=".len()..].parse().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = free.local_addr().unwrap().port();
        drop(free);
        let folder = lab.path("door");
        fs::create_dir(&folder).unwrap();
        let conf = folder.join("slurm.conf");
        fs::write(&conf, text.replace(line, &format!("SlurmctldPort={at}"))).unwrap();
        let is_open = Arc::new(AtomicBool::new(false));
        let way_ms = Arc::new(AtomicU64::new(0));
        let mut door = Door { conf, at, to, is_open, way_ms, keeper: None };
        door.open();
        door
    }

    pub fn open(&mut self) {
        let (to, is_open) = (self.to, Arc::clone(&self.is_open));
        let way_ms = Arc::clone(&self.way_ms);
        let listener = TcpListener::bind(("127.0.0.1", self.at)).unwrap();
        listener.set_nonblocking(true).unwrap();
        is_open.store(true, Ordering::SeqCst);
        self.keeper = Some(std::thread::spawn(move || {
            while is_open.load(Ordering::SeqCst) {
                match listener.accept() {
                    Ok((caller, _)) => {
                        let way = Duration::from_millis(way_ms.load(Ordering::SeqCst));
                        std::thread::spawn(move || lead(caller, to, way));
                    }
                    Err(fault) if fault.kind() == ErrorKind::WouldBlock => {
                        std::thread::sleep(LOOK);
                    }
                    Err(fault) => panic!("{fault}"),
                }
            }
        }));
    }

    /// How long it takes from here to the controller: what is told by then may not hold any more.
    pub fn takes(&self, way: Duration) {
        self.way_ms.store(way.as_millis() as u64, Ordering::SeqCst);
    }

    pub fn shut(&mut self) {
        self.is_open.store(false, Ordering::SeqCst);
        if let Some(keeper) = self.keeper.take() {
            keeper.join().unwrap();
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.is_open.store(false, Ordering::SeqCst);
    }
}

/// Hands what one side says to the other until both have said all.
fn lead(caller: TcpStream, to: u16, way: Duration) {
    caller.set_nonblocking(false).unwrap();
    std::thread::sleep(way);
    // Without a controller there is nobody to be led to.
    let Ok(controller) = TcpStream::connect(("127.0.0.1", to)) else { return };
    let ways =
        [(caller.try_clone().unwrap(), controller.try_clone().unwrap()), (controller, caller)];
    for (mut from, mut into) in ways {
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut into);
            let _ = into.shutdown(Shutdown::Write);
        });
    }
}
