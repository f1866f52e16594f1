//! Starting the program, and folders for it to work in.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder that is removed when the test ends.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("the temporary folder can be made"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        let parent = path.parent().expect("a file is in a folder");
        std::fs::create_dir_all(parent).expect("the folder can be made");
        std::fs::write(&path, content).expect("the file can be written");
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).expect("the file is text")
    }

    /// The program, started in this folder.
    pub fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hostler"));
        command.current_dir(&self.0).stdin(Stdio::null());
        command
    }

    /// Runs a command line; words are parted by spaces.
    pub fn run(&self, line: &str) -> Ran {
        Ran::of(self.program().args(line.split_whitespace()))
    }

    /// Runs a command line that must succeed without a word on stderr.
    pub fn quiet(&self, line: &str) -> String {
        let ran = self.run(line).ok();
        assert_eq!(ran.stderr, "", "`{line}` has something to say");
        ran.stdout
    }

    /// Runs a command line that must succeed and print JSON.
    pub fn json(&self, line: &str) -> Value {
        let ran = self.run(line).ok();
        serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e} in {}", ran.stdout))
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        self.0.path()
    }
}

/// What a run of the program gave.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(command: &mut Command) -> Ran {
        let output = command.output().expect("the program can be started");
        Ran::new(&output)
    }

    pub fn new(output: &Output) -> Ran {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("output is text");
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(!stderr.contains("panicked"), "{stderr}");
        Ran { code: output.status.code(), stdout, stderr }
    }

    #[track_caller]
    pub fn ok(self) -> Ran {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self
    }

    /// It failed with this exit code, printed no result and named all these words.
    #[track_caller]
    pub fn fails(self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "a failure prints no result");
        assert!(
            self.stderr.starts_with("error: ") || self.stderr.contains("\nerror: "),
            "{self:?}"
        );
        for word in words {
            assert!(self.stderr.contains(word), "no `{word}` in: {}", self.stderr);
        }
    }
}

/// A file of the repository.
pub fn repository(name: &str) -> String {
    let root =
        Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where")).join("../..");
    root.join(name).to_str().expect("the path is text").to_owned()
}

/// The tables of a small trace, to be changed by a test.
pub struct Tables {
    pub nodes: String,
    pub jobs: String,
    pub tasks: String,
}

impl Tables {
    /// One node with two GPUs of model V100, no jobs.
    pub fn new() -> Tables {
        Tables {
            nodes: "node_id,gpu_model,gpu_count,cpu_milli,mem_mib,up_from_s,up_to_s\n\
                    n1,V100,2,8000,65536,,\n"
                .to_owned(),
            jobs: "job_id,user,priority_class,submit_ms,deadline_ms,time_limit_ms\n".to_owned(),
            tasks: "job_id,count,gpu_milli,gpu_models,cpu_milli,duration_ms,model\n".to_owned(),
        }
    }

    /// Adds a job of one task; `task` is `count,gpu_milli,gpu_models,cpu_milli,duration_ms,model`.
    pub fn job(mut self, name: &str, submit_ms: u64, task: &str) -> Tables {
        self.jobs += &format!("{name},ada,,{submit_ms},,\n");
        self.tasks += &format!("{name},{task}\n");
        self
    }

    /// Adds a job that takes one GPU for ten seconds.
    pub fn plain_job(self, name: &str, submit_ms: u64) -> Tables {
        self.job(name, submit_ms, "1,1000,,1000,10000,")
    }

    /// Writes the tables into the folder `trace`.
    pub fn write(&self, folder: &Folder) {
        folder.write("trace/nodes.csv", &self.nodes);
        folder.write("trace/jobs.csv", &self.jobs);
        folder.write("trace/tasks.csv", &self.tasks);
    }
}
