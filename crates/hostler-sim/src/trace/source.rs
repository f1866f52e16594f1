//! Files of a trace: finding them, unpacking them, counting and hashing their bytes.
//!
//! Knows nothing of tables. Everything is a stream; memory does not grow with the file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::error::TraceError;
use super::limits::TOML_BYTES_MAX;
use super::meta::InputFile;

/// How a table is packed; the file name says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// `.csv`
    #[default]
    None,
    /// `.csv.gz`
    Gzip,
    /// `.csv.zst`
    Zstd,
}

impl Compression {
    /// Every packing with its file name suffix.
    pub const SUFFIXES: [(Compression, &'static str); 3] =
        [(Compression::None, ""), (Compression::Gzip, ".gz"), (Compression::Zstd, ".zst")];

    /// File name suffix, with its dot.
    pub fn suffix(self) -> &'static str {
        Compression::SUFFIXES[self as usize].1
    }

    /// Packing of a file, by its name.
    pub fn of(path: &Path) -> Compression {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Compression::Gzip,
            Some("zst") => Compression::Zstd,
            _ => Compression::None,
        }
    }
}

/// Is told `(bytes read, bytes in all)` about every mebibyte; both count packed bytes.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Counts bytes over several files and tells a [`Progress`].
pub(crate) struct Meter<'a> {
    read: u64,
    told: u64,
    total: u64,
    progress: Progress<'a>,
}

const TELL_EVERY_BYTES: u64 = 1 << 20;

impl<'a> Meter<'a> {
    pub(crate) fn new(total: u64, progress: Progress<'a>) -> Meter<'a> {
        Meter { read: 0, told: 0, total, progress }
    }

    fn add(&mut self, bytes: u64) {
        self.read += bytes;
        if self.read - self.told >= TELL_EVERY_BYTES {
            self.told = self.read;
            (self.progress)(self.read, self.total);
        }
    }

    pub(crate) fn finish(&mut self) {
        (self.progress)(self.read, self.total);
    }
}

struct Metered<'m, 'a> {
    file: File,
    meter: &'m mut Meter<'a>,
}

impl Read for Metered<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read(buffer)?;
        self.meter.add(bytes as u64);
        Ok(bytes)
    }
}

/// Opens a file for reading, unpacked.
pub fn unpacked(path: &Path) -> Result<Box<dyn Read>, TraceError> {
    decode(path, File::open(path).map_err(cannot("read", path))?)
}

/// Like [`unpacked`], and counts.
pub(crate) fn open<'m>(
    path: &Path,
    meter: &'m mut Meter<'_>,
) -> Result<Box<dyn Read + 'm>, TraceError> {
    let file = File::open(path).map_err(cannot("read", path))?;
    decode(path, Metered { file, meter })
}

fn decode<'m>(path: &Path, file: impl Read + 'm) -> Result<Box<dyn Read + 'm>, TraceError> {
    let packed = io::BufReader::with_capacity(1 << 16, file);
    Ok(match Compression::of(path) {
        Compression::None => Box::new(packed),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
        Compression::Zstd => {
            let decoder = zstd::Decoder::with_buffer(packed);
            Box::new(decoder.map_err(cannot("read", path))?)
        }
    })
}

/// The file of a table in a folder, packed or not; an error if there are several.
pub(crate) fn find(folder: &Path, name: &str) -> Result<Option<PathBuf>, TraceError> {
    let mut found: Option<PathBuf> = None;
    for (_, suffix) in Compression::SUFFIXES {
        let path = folder.join(format!("{name}{suffix}"));
        if !path.is_file() {
            continue;
        }
        if let Some(first) = found {
            return Err(TraceError::Ambiguous { first, second: path });
        }
        found = Some(path);
    }
    Ok(found)
}

/// Like [`find`], for a table that must be there.
pub(super) fn need(folder: &Path, name: &'static str) -> Result<PathBuf, TraceError> {
    let missing = || match folder.exists() {
        true => TraceError::Missing { name, folder: folder.to_owned() },
        false => TraceError::NotThere { path: folder.to_owned() },
    };
    find(folder, name)?.ok_or_else(missing)
}

/// Size of a file, 0 if it cannot be had (only progress depends on it).
pub(crate) fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |data| data.len())
}

/// Reads a small text file whole.
pub(super) fn read_small(path: &Path) -> Result<String, TraceError> {
    let file = File::open(path).map_err(cannot("read", path))?;
    let mut bytes = Vec::new();
    file.take(TOML_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(cannot("read", path))?;
    let too_long = || io::Error::other(format!("longer than {TOML_BYTES_MAX} bytes"));
    if bytes.len() as u64 > TOML_BYTES_MAX {
        return Err(cannot("read", path)(too_long()));
    }
    String::from_utf8(bytes).map_err(|_| cannot("read", path)(io::Error::other("not UTF-8")))
}

/// Name, size and SHA-256 of a file as stored.
pub fn fingerprint(path: &Path) -> Result<InputFile, TraceError> {
    let mut file = File::open(path).map_err(cannot("read", path))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        let got = file.read(&mut buffer).map_err(cannot("read", path))?;
        if got == 0 {
            break;
        }
        bytes += got as u64;
        hash.update(&buffer[..got]);
    }
    let sha256 = HEXLOWER.encode(&hash.finalize());
    Ok(InputFile { file: file_name(path), bytes, sha256 })
}

/// The last part of a path, for messages and provenance.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Turns a system error into one that names the file.
pub(crate) fn cannot(action: &'static str, path: &Path) -> impl Fn(io::Error) -> TraceError {
    let path = path.to_owned();
    move |source| TraceError::Io { action, path: path.clone(), source }
}
