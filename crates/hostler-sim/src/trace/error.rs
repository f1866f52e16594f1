//! What can go wrong with traces and cluster files, and how it is told.
//!
//! A [`Fault`] is one bad place in a table; a [`TraceError`] ends an operation. Rules between rows
//! of a table that was read well are in `check`, not here.

use std::fmt;
use std::path::PathBuf;

use super::check::Rule;
use super::limits::{
    FAULTS_MAX, FIELD_BYTES_MAX, QUOTE_CHARS_MAX, RECORD_BYTES_MAX, ROWS_MAX, THROUGHPUT_ROWS_MAX,
};
use super::text::TextPoolFull;

/// An operation on a trace or cluster file that failed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The system refused to read or write a file.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// `read`, `write` or `create`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A needed file is not there.
    #[error("no `{name}` in `{}`; expected it plain, `.gz` or `.zst`", folder.display())]
    Missing {
        /// File name without compression suffix.
        name: &'static str,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// The same table is there twice.
    #[error("both `{}` and `{}` exist; remove one", first.display(), second.display())]
    Ambiguous {
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// A folder to write to that already holds a table.
    #[error("`{}` exists; remove it or write elsewhere", path.display())]
    Exists {
        /// The file in the way.
        path: PathBuf,
    },
    /// What was named is not there.
    #[error("there is no file or folder `{}`", path.display())]
    NotThere {
        /// File or folder given.
        path: PathBuf,
    },
    /// Tables that could not be read.
    #[error("{0}")]
    Faults(Faults),
    /// A TOML file that could not be read.
    #[error("{file}:{line}: {message}")]
    Toml {
        /// File name.
        file: String,
        /// Line from 1.
        line: u32,
        /// What the parser says.
        message: String,
    },
    /// A cluster that breaks a limit or says something twice or not at all.
    #[error("{file}: {problem}")]
    Cluster {
        /// File name.
        file: String,
        /// What is wrong.
        problem: ClusterProblem,
    },
    /// An option outside its range.
    #[error("invalid `{name}`: {value}; expected {expected}")]
    Option {
        /// Name of the option.
        name: &'static str,
        /// Value given.
        value: String,
        /// What is allowed.
        expected: String,
    },
    /// A trace without time between its jobs has no load to change.
    #[error(
        "no two jobs are submitted at different times, so no load can be set; leave the loads out"
    )]
    OneInstant,
    /// A trace whose jobs keep nothing busy has no load to change.
    #[error(
        "the jobs keep nothing of the cluster busy, so no load can be set; give `gpu_milli` or \
         `cpu_milli` and run times in tasks.csv"
    )]
    NoLoad,
    /// Whole milliseconds cannot say submissions this close together or far apart.
    #[error(
        "load `{target}` is out of reach: times are whole milliseconds up to 2^53; give another"
    )]
    LoadOutOfReach {
        /// The load asked for.
        target: f64,
    },
    /// An option that the format has no meaning for.
    #[error("format `{format}` has no option `--{name}`; leave it out")]
    NotTaken {
        /// Name of the option.
        name: &'static str,
        /// Name of the importer.
        format: &'static str,
    },
    /// No importer has this name.
    #[error("unknown trace format `{name}`; known: {known}")]
    UnknownFormat {
        /// Name given.
        name: String,
        /// Names that exist.
        known: String,
    },
    /// No importer knows these files.
    #[error("`{}` is in no known trace format; name one of: {known}", path.display())]
    Undetected {
        /// File or folder given.
        path: PathBuf,
        /// Names that exist.
        known: String,
    },
    /// Rows were dropped although `strict` was asked.
    #[error("{total} rows would be dropped ({reasons}); convert without `--strict` to drop them")]
    Dropped {
        /// How many.
        total: u64,
        /// `reason: count, ..`.
        reasons: String,
    },
    /// The text of the trace exceeds what ids can name.
    #[error(transparent)]
    TextPoolFull(#[from] TextPoolFull),
}

/// What is wrong with a cluster as a whole.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ClusterProblem {
    /// A node group names a model without entry.
    #[error("node group {group} names GPU model `{model}` without a `[[gpu_models]]` entry")]
    UnknownModel {
        /// Group number from 1.
        group: usize,
        /// Name given.
        model: String,
    },
    /// Two models of one name.
    #[error("GPU model `{0}` is defined twice")]
    DuplicateModel(String),
    /// A value outside its range.
    #[error("`{key}` of {place} out of range: {value}; expected {expected}")]
    Range {
        /// Key in the file.
        key: &'static str,
        /// Group or model.
        place: String,
        /// Value given.
        value: String,
        /// What is allowed.
        expected: String,
    },
    /// Two keys that exclude each other, or neither of two.
    #[error("node group {group} needs exactly one of `mem_mib` and `mem_gib`")]
    Memory {
        /// Group number from 1.
        group: usize,
    },
    /// GPUs without a model.
    #[error("node group {group} has {gpus} GPUs but no `gpu_model`")]
    NoModel {
        /// Group number from 1.
        group: usize,
        /// GPUs given.
        gpus: u32,
    },
    /// More than the limit.
    #[error("too many {what}: {count}; at most {limit}")]
    TooMany {
        /// Nodes or models.
        what: &'static str,
        /// How many.
        count: u64,
        /// Limit.
        limit: u64,
    },
    /// Nothing to run on.
    #[error("no nodes; add at least one (`[[nodes]]` with `count`, or a row)")]
    NoNodes,
}

/// One bad place in a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// File name.
    pub file: String,
    /// Line from 1; 0 = the file as a whole.
    pub line: u64,
    /// Column name; empty = the row as a whole.
    pub column: String,
    /// The bad value, shortened to one line.
    pub value: String,
    /// What is wrong with it.
    pub problem: Problem,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, &self.file, self.line, &self.column)?;
        match self.value.is_empty() {
            true => write!(f, "{}", self.problem),
            false => write!(f, "{}: `{}`", self.problem, self.value),
        }
    }
}

/// `file:line: column `name`: `, leaving out what is not known.
pub(super) fn write_place(
    f: &mut fmt::Formatter<'_>,
    file: &str,
    line: u64,
    column: &str,
) -> fmt::Result {
    write!(f, "{file}")?;
    if line > 0 {
        write!(f, ":{line}")?;
    }
    match column.is_empty() {
        true => write!(f, ": "),
        false => write!(f, ": column `{column}`: "),
    }
}

/// What is wrong with a value, a row or a file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// No header line.
    #[error("the file is empty; expected a header line")]
    EmptyFile,
    /// A needed column is not in the header.
    #[error("column is missing")]
    MissingColumn,
    /// The header has a column that the table does not.
    #[error("unknown column; known: {0}")]
    UnknownColumn(String),
    /// The header has a column twice.
    #[error("column is there twice")]
    DuplicatedColumn,
    /// A row with more or fewer fields than the header.
    #[error("{found} fields, but the header has {expected}")]
    FieldCount {
        /// Fields of the header.
        expected: usize,
        /// Fields of the row.
        found: usize,
    },
    /// A row of a file without header that has another number of fields.
    #[error("{found} fields; expected {expected}")]
    Fields {
        /// Numbers that are known.
        expected: &'static str,
        /// Fields of the row.
        found: usize,
    },
    /// A record beyond the limit, usually an unclosed quote or a damaged file.
    #[error("record is longer than {RECORD_BYTES_MAX} bytes; is a quote left open?")]
    RecordTooLong,
    /// A field beyond the limit.
    #[error("value is longer than {FIELD_BYTES_MAX} bytes")]
    FieldTooLong,
    /// More rows than row numbers allow.
    #[error("more than {ROWS_MAX} rows; split the trace")]
    TooManyRows,
    /// Bytes that are no text.
    #[error("not UTF-8")]
    NotUtf8,
    /// A needed value is empty.
    #[error("value is empty")]
    Empty,
    /// Not a number at all.
    #[error("not a whole number")]
    NotInteger,
    /// Not a finite decimal number.
    #[error("not a number")]
    NotNumber,
    /// Below zero.
    #[error("negative")]
    Negative,
    /// Above the limit of the column.
    #[error("larger than {0}")]
    TooLarge(u64),
    /// Not one of a closed set.
    #[error("unknown value; known: {0}")]
    UnknownWord(String),
    /// Not `key=value;key=value`.
    #[error("not `key=value;key=value`")]
    Labels,
    /// A run or pair that the table has already.
    #[error("the same run is there already")]
    Repeated,
    /// A pair names a workload without a speed of its own.
    #[error("no such workload in `throughputs.csv`")]
    UnknownWorkload,
    /// A number of GPUs that nothing runs on.
    #[error("less than 1")]
    BelowOne,
    /// More rows than a throughput table may have.
    #[error("more than {THROUGHPUT_ROWS_MAX} rows; leave some out")]
    TooManyThroughputs,
    /// Cut off, damaged, or refused by the system.
    #[error("cannot read on: {0}")]
    Unreadable(String),
    /// A rule between rows is broken.
    #[error("{}", .0.words())]
    Rule(Rule),
    /// The text of the trace exceeds what ids can name.
    #[error(transparent)]
    TextPoolFull(#[from] TextPoolFull),
}

/// The bad places of a set of tables: the first hundred, and whether reading stopped there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// In the order of reading.
    pub list: Vec<Fault>,
    /// Reading stopped because the list was full; there may be more.
    pub stopped: bool,
}

impl Faults {
    /// Adds one; after [`FAULTS_MAX`] only notes that there are more.
    pub fn push(&mut self, fault: Fault) {
        match self.list.len() < FAULTS_MAX {
            true => self.list.push(fault),
            false => self.stopped = true,
        }
    }

    /// Whether reading should end.
    pub fn is_full(&self) -> bool {
        self.list.len() >= FAULTS_MAX
    }

    /// `value` if nothing is wrong, otherwise the faults as an error.
    pub fn or<T>(mut self, value: T) -> Result<T, TraceError> {
        if self.list.is_empty() {
            return Ok(value);
        }
        self.stopped |= self.is_full();
        Err(TraceError::Faults(self))
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, fault) in self.list.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{fault}")?;
        }
        if self.stopped {
            write!(f, "\nstopped after {} faults", self.list.len())?;
        }
        Ok(())
    }
}

/// A value as a message quotes it: one line, printable, not long; bytes that are no text as `\xff`.
pub(super) fn quote(value: &[u8]) -> String {
    let mut quoted = String::new();
    for chunk in value.utf8_chunks() {
        let letters = chunk.valid().chars().flat_map(char::escape_debug);
        let bytes = chunk.invalid().escape_ascii().map(char::from);
        for letter in letters.chain(bytes) {
            if quoted.chars().count() >= QUOTE_CHARS_MAX {
                quoted.push_str("..");
                return quoted;
            }
            quoted.push(letter);
        }
    }
    quoted
}
