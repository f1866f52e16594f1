//! A program that runs images, and an image of nothing but a shell.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::harness::surroundings;

/// The program that is installed, and the words before an agent under which it works here.
pub fn program() -> Option<(&'static str, Vec<String>)> {
    let found = |name: &&str| ["/usr/bin", "/usr/local/bin"].iter().any(|folder| is(folder, name));
    let program = ["apptainer", "podman"].into_iter().find(|name| found(name))?;
    busybox()?;
    Some((program, surroundings().into_iter().map(str::to_owned).collect()))
}

fn is(folder: &str, name: &str) -> bool {
    Path::new(folder).join(name).is_file()
}

fn busybox() -> Option<&'static str> {
    ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists())
}

/// Makes a root file system.
pub fn make(root: &Path) {
    for folder in ["bin", "dev", "etc", "proc", "sys", "tmp", "run", "var/tmp"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    let busybox = busybox().expect("the caller found it");
    fs::copy(busybox, root.join("bin/busybox")).unwrap();
    for name in ["sh", "cat", "ls"] {
        symlink("busybox", root.join("bin").join(name)).unwrap();
    }
    fs::write(root.join("etc/motd"), "hello from the image\n").unwrap();
    if rustix::process::geteuid().is_root() {
        // As whom jobs of root's agents run.
        let owned = Command::new("chown").args(["-R", "nobody:"]).arg(root).status();
        assert!(owned.unwrap().success());
    }
}
