//! Images of containers: how people name them, which programs run which of them, and what that
//! asks of a node.
//!
//! Not for running them: that is the agent's business.

use hostler_core::id::Features;
use serde::{Deserialize, Serialize};

use crate::wire::Machine;

/// The word by which an agent says that it understands images in orders.
pub const ABILITY: &str = "images";

/// What sort of thing an image is. The number of each is its bit among the features of a node, and
/// in the log: it never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageKind {
    /// A file of Apptainer.
    Sif = 0,
    /// A folder that holds a root file system.
    Folder = 1,
    /// A name that is fetched from a registry.
    Registry = 2,
    /// A file that holds layers, as `podman save` writes it.
    Archive = 3,
    /// A squashfs file, as enroot writes it.
    Squash = 4,
}

impl ImageKind {
    /// All of them.
    pub const ALL: [ImageKind; 5] = [
        ImageKind::Sif,
        ImageKind::Folder,
        ImageKind::Registry,
        ImageKind::Archive,
        ImageKind::Squash,
    ];

    /// The kind of an image by how it is named; none where that is no name of one.
    pub fn of(image: &str) -> Option<ImageKind> {
        if let Some(name) = image.strip_prefix("docker://") {
            let sane = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:/@+".contains(&byte);
            let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
            return (first && name.bytes().all(sane)).then_some(ImageKind::Registry);
        }
        let path = path_of(image)?;
        Some(match path.rsplit_once('.').map(|(_, ending)| ending) {
            _ if path != image => ImageKind::Archive,
            Some("tar") => ImageKind::Archive,
            Some("sif") => ImageKind::Sif,
            Some("sqsh" | "squashfs") => ImageKind::Squash,
            _ => ImageKind::Folder,
        })
    }

    /// What a node must be able to do to run it.
    pub fn needs(self) -> Features {
        Features(1 << self as u64)
    }

    /// What it is, in words.
    pub fn words(self) -> &'static str {
        match self {
            ImageKind::Sif => "a SIF file",
            ImageKind::Folder => "a folder",
            ImageKind::Registry => "an image of a registry",
            ImageKind::Archive => "an archive of layers",
            ImageKind::Squash => "a squashfs file",
        }
    }
}

/// The path of an image that is a file or a folder, from `/` on.
pub fn path_of(image: &str) -> Option<&str> {
    let archive = ["oci-archive:", "docker-archive:"];
    let path = archive.iter().find_map(|prefix| image.strip_prefix(prefix)).unwrap_or(image);
    // What separates paths in the arguments of every program that runs images cannot be in one.
    let sane = path.starts_with('/') && !path.contains([':', ',']);
    (sane && !path.contains(char::is_control)).then_some(path)
}

/// A program that runs images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// Apptainer.
    Apptainer,
    /// Apptainer under the name that it had before, or SingularityCE.
    Singularity,
    /// Podman.
    Podman,
    /// enroot.
    Enroot,
}

impl Program {
    /// All of them, the one that is taken first where a node has several.
    pub const ALL: [Program; 4] =
        [Program::Apptainer, Program::Singularity, Program::Podman, Program::Enroot];

    /// As it is called.
    pub fn name(self) -> &'static str {
        match self {
            Program::Apptainer => "apptainer",
            Program::Singularity => "singularity",
            Program::Podman => "podman",
            Program::Enroot => "enroot",
        }
    }

    /// The program of a name.
    pub fn named(name: &str) -> Option<Program> {
        Program::ALL.into_iter().find(|program| program.name() == name)
    }

    /// Whether it runs images of a kind.
    pub fn runs(self, kind: ImageKind) -> bool {
        match self {
            Program::Apptainer | Program::Singularity => true,
            Program::Podman => {
                matches!(kind, ImageKind::Folder | ImageKind::Registry | ImageKind::Archive)
            }
            Program::Enroot => matches!(kind, ImageKind::Registry | ImageKind::Squash),
        }
    }
}

/// A program that runs images on a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runtime {
    /// Its name; one that is not known here runs nothing.
    pub name: String,
    /// What it says of itself.
    pub version: String,
}

/// What a machine can do for jobs with images.
pub fn features(machine: &Machine) -> Features {
    if !machine.abilities.iter().any(|ability| ability == ABILITY) {
        return Features::default();
    }
    let programs = machine.runtimes.iter().filter_map(|runtime| Program::named(&runtime.name));
    let programs: Vec<Program> = programs.collect();
    let runs = |kind: &ImageKind| programs.iter().any(|program| program.runs(*kind));
    Features(ImageKind::ALL.into_iter().filter(runs).fold(0, |all, kind| all | kind.needs().0))
}

/// What a node would need to run what asks for this, in words.
pub fn wanted(needs: Features) -> Option<String> {
    let kind = ImageKind::ALL.into_iter().find(|kind| needs.cover(kind.needs()))?;
    let able = Program::ALL.into_iter().filter(|program| program.runs(kind));
    let able: Vec<&str> = able.map(Program::name).collect();
    Some(format!("its image is {}, which needs one of {}", kind.words(), able.join(", ")))
}

/// A folder or file of the node that is seen inside of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it is.
    pub from: String,
    /// Where it is seen.
    pub to: String,
    /// Whether it cannot be written to.
    pub read_only: bool,
}

impl Mount {
    /// The same path inside and outside.
    pub fn same(path: &str) -> Mount {
        Mount { from: path.to_owned(), to: path.to_owned(), read_only: false }
    }

    /// Reads `FROM[:TO[:ro]]`.
    pub fn parse(text: &str) -> Option<Mount> {
        let words: Vec<&str> = text.split(':').collect();
        let (from, to, how) = match words[..] {
            [from] => (from, from, "rw"),
            [from, to] if to == "ro" || to == "rw" => (from, from, to),
            [from, to] => (from, to, "rw"),
            [from, to, how] => (from, to, how),
            _ => return None,
        };
        let sane = |path: &str| path_of(path) == Some(path);
        let known = how == "ro" || how == "rw";
        let mount = Mount { from: from.to_owned(), to: to.to_owned(), read_only: how == "ro" };
        (sane(from) && sane(to) && known).then_some(mount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_known_by_their_names() {
        let kind = ImageKind::of;
        assert_eq!(kind("docker://nvcr.io/nvidia/pytorch:24.01-py3"), Some(ImageKind::Registry));
        assert_eq!(kind("docker://busybox@sha256:00ff"), Some(ImageKind::Registry));
        assert_eq!(kind("/images/a.b.sif"), Some(ImageKind::Sif));
        assert_eq!(kind("/images/torch.sqsh"), Some(ImageKind::Squash));
        assert_eq!(kind("/images/torch.tar"), Some(ImageKind::Archive));
        assert_eq!(kind("oci-archive:/images/torch"), Some(ImageKind::Archive));
        assert_eq!(kind("/images/root.fs/x"), Some(ImageKind::Folder));
        for wrong in ["", "busybox", "docker://", "docker://-v", "docker://a b", "a.sif", "/a:b"] {
            assert_eq!(kind(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_machine_runs_what_one_of_its_programs_does() {
        let machine = |names: &[&str], abilities: &[&str]| {
            let mut machine = Machine::default();
            let runtime = |name: &&str| Runtime { name: (*name).into(), version: "1".into() };
            machine.runtimes = names.iter().map(runtime).collect();
            machine.abilities = abilities.iter().map(|word| (*word).to_owned()).collect();
            features(&machine)
        };
        assert_eq!(machine(&["podman"], &["images"]), Features(0b01110));
        assert_eq!(machine(&["enroot", "podman"], &["streams", "images"]), Features(0b11110));
        assert_eq!(machine(&["apptainer"], &["images"]), Features(0b11111));
        assert_eq!(machine(&["docker"], &["images"]), Features(0));
        assert_eq!(machine(&["podman"], &[]), Features(0));
        let words = wanted(ImageKind::Sif.needs()).unwrap();
        assert_eq!(words, "its image is a SIF file, which needs one of apptainer, singularity");
    }

    #[test]
    fn mounts_are_read_with_one_path_or_two() {
        let mount = |from: &str, to: &str, read_only| {
            Some(Mount { from: from.to_owned(), to: to.to_owned(), read_only })
        };
        assert_eq!(Mount::parse("/data"), mount("/data", "/data", false));
        assert_eq!(Mount::parse("/data:ro"), mount("/data", "/data", true));
        assert_eq!(Mount::parse("/data:/in"), mount("/data", "/in", false));
        assert_eq!(Mount::parse("/data:/in:ro"), mount("/data", "/in", true));
        for wrong in ["", "data", "/a:b", "/a:/b:x", "/a:/b:ro:z", "/a,b", "/a\n"] {
            assert_eq!(Mount::parse(wrong), None, "{wrong}");
        }
    }
}
