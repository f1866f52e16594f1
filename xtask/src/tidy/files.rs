//! Lists and reads the files of the project.
//!
//! Git knows them: what is tracked, and what is new and not ignored. Without git, as in an unpacked
//! archive, everything counts but build outputs.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// A file of the project.
pub struct File {
    /// Path from the root, with slashes.
    pub path: String,
    /// Size on disk.
    pub bytes: u64,
    /// The content, unless it is binary.
    pub text: Option<String>,
}

/// Folders that hold nothing of ours when git cannot tell.
const NOT_OURS: &[&str] = &[".git", "target", "node_modules"];

/// Reads all files of the project, sorted by path.
pub fn read(root: &Path) -> Result<Vec<File>> {
    let mut paths = match listed_by_git(root) {
        Some(paths) => paths,
        None => walked(root)?,
    };
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        files.extend(read_one(root, path)?);
    }
    Ok(files)
}

fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let names = String::from_utf8(output.stdout).ok()?;
    let paths: Vec<String> = names.split_terminator('\0').map(String::from).collect();
    // A copy without its `.git` may lie inside another repository that ignores it.
    let ours = paths.iter().any(|path| path == "Cargo.toml");
    (output.status.success() && ours).then_some(paths)
}

fn walked(root: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let place = root.join(&folder);
        let entries = place.read_dir().with_context(|| format!("could not list {place:?}"))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            if kind.is_dir() && !NOT_OURS.contains(&name.as_str()) {
                folders.push(format!("{folder}{name}/"));
            } else if kind.is_file() {
                paths.push(format!("{folder}{name}"));
            }
        }
    }
    Ok(paths)
}

/// The file, or nothing for folders behind links and for what is deleted but still in the index.
fn read_one(root: &Path, path: String) -> Result<Option<File>> {
    let place = root.join(&path);
    let Ok(metadata) = place.metadata() else {
        return Ok(None);
    };
    if !metadata.is_file() {
        return Ok(None);
    }
    let content = std::fs::read(&place).with_context(|| format!("could not read `{path}`"))?;
    let text = String::from_utf8(content).ok().filter(|text| !text.contains('\0'));
    Ok(Some(File { path, bytes: metadata.len(), text }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_finds_what_git_lists() {
        let root = crate::root();
        let walked = walked(&root).unwrap();
        for path in ["Cargo.toml", "xtask/src/tidy/files.rs", ".ci/run"] {
            assert!(walked.iter().any(|found| found == path), "{path} is found");
        }
        assert!(!walked.iter().any(|found| found.starts_with("target/")), "outputs are left out");
    }
}
