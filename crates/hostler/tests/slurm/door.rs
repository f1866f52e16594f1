//! A way to the controller that can be shut: whoever comes then is refused, while the controller,
//! its nodes and its jobs go on.

use std::fs;
use std::io::ErrorKind;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
        let mut door = Door { conf, at, to, is_open, keeper: None };
        door.open();
        door
    }

    pub fn open(&mut self) {
        let (to, is_open) = (self.to, Arc::clone(&self.is_open));
        let listener = TcpListener::bind(("127.0.0.1", self.at)).unwrap();
        listener.set_nonblocking(true).unwrap();
        is_open.store(true, Ordering::SeqCst);
        self.keeper = Some(std::thread::spawn(move || {
            while is_open.load(Ordering::SeqCst) {
                match listener.accept() {
                    Ok((caller, _)) => lead(caller, to),
                    Err(fault) if fault.kind() == ErrorKind::WouldBlock => {
                        std::thread::sleep(LOOK);
                    }
                    Err(fault) => panic!("{fault}"),
                }
            }
        }));
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
fn lead(caller: TcpStream, to: u16) {
    caller.set_nonblocking(false).unwrap();
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
