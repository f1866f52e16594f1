//! A program that runs images, and an image of nothing but a shell.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// The program that is installed, and the words before an agent under which it works here: layers
/// over layers are not to be had on every file system, and `crun` wants control groups of one
/// version.
pub fn program() -> Option<(&'static str, Vec<String>)> {
    let found = |name: &&str| ["/usr/bin", "/usr/local/bin"].iter().any(|folder| is(folder, name));
    let program = ["apptainer", "podman"].into_iter().find(|name| found(name))?;
    busybox()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let is_mixed = mounts.contains(" /sys/fs/cgroup/unified ");
    let mut words = Vec::new();
    if is_mixed && rustix::process::geteuid().is_root() {
        let script = "umount /sys/fs/cgroup/unified; exec \"$@\"";
        words.extend(["unshare", "--mount", "sh", "-c", script, "sh"]);
    }
    words.extend(["env", "STORAGE_DRIVER=vfs"]);
    Some((program, words.into_iter().map(str::to_owned).collect()))
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
