//! A terminal with the program in it, and hands to type.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// The longest time that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// See the module.
pub struct Terminal {
    keys: File,
    seen: Arc<Mutex<Vec<u8>>>,
    child: Child,
}

impl Terminal {
    /// Starts a command in a terminal of 33 rows and 101 columns.
    pub fn start(command: &mut Command) -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let theirs = ioctl_tiocgptpeer(&ours, flags).unwrap();
        let (one, two) = (theirs.try_clone().unwrap(), theirs.try_clone().unwrap());
        let keys = File::from(ours);
        resize(&keys, 33, 101);
        command.stdin(one).stdout(two).stderr(theirs).env("TERM", "vt100");
        let child = command.spawn().unwrap();
        // What is left of the terminal's end here would keep it open.
        command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        command.stderr(std::process::Stdio::null());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, shown) = (keys.try_clone().unwrap(), seen.clone());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut buffer) {
                shown.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Terminal { keys, seen, child }
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// All that was shown.
    pub fn screen(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    /// Waits until a text is shown.
    pub fn until(&self, text: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if screen.contains(text) {
                return screen;
            }
            assert!(Instant::now() < end, "waited in vain for {text:?}:\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses the same keys until a text is shown.
    pub fn press_until(&mut self, keys: &str, text: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.screen().contains(text) {
            assert!(Instant::now() < end, "waited in vain for {text:?}:\n{}", self.screen());
            self.press(keys);
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// Gives the terminal another size and tells the program, as the kernel does where the terminal
    /// is that of its session.
    pub fn resize(&self, rows: u16, columns: u16) {
        resize(&self.keys, rows, columns);
        self.signal(Signal::WINCH);
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for the end of the program; gives its code.
    pub fn code(&mut self) -> Option<i32> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < end, "it does not end:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The number of the job that the program said first.
    pub fn job(&self) -> String {
        let screen = self.until("job ");
        let rest = screen.split("job ").nth(1).unwrap();
        rest.chars().take_while(char::is_ascii_digit).collect()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resize(terminal: &File, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).unwrap();
}
