//! Where bytes come from: files and readers, plain, gzip or zstd (recognised by content, not by name).

use super::prefetch::Ended;
use crate::error::{Error, Result};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One input: a name for messages and the bytes behind it.
pub struct Source {
    name: String,
    place: Place,
}

enum Place {
    Path(PathBuf),
    Reader(Box<dyn Read + Send>, Option<u64>),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Source {
    /// A file, opened when its turn comes.
    #[must_use]
    pub fn path(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        Self { name: path.display().to_string(), place: Place::Path(path.to_owned()) }
    }

    /// Bytes from any reader; `bytes` is how many there are, for the progress, if that is known.
    #[must_use]
    pub fn reader(name: &str, reader: Box<dyn Read + Send>, bytes: Option<u64>) -> Self {
        Self { name: name.to_owned(), place: Place::Reader(reader, bytes) }
    }

    /// The name used in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes before decompression, if known.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        match &self.place {
            Place::Path(path) => {
                std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|m| m.len())
            }
            Place::Reader(_, bytes) => *bytes,
        }
    }

    /// Opens the source and looks at its first bytes.
    ///
    /// # Errors
    /// `io` when it cannot be opened.
    pub(crate) fn open(self) -> Result<Unpacked> {
        let name = self.name;
        let failed = |error: &io::Error, name: &str| io_error(error).at(name, None);
        let reader: Box<dyn Read + Send> = match self.place {
            Place::Reader(reader, _) => reader,
            Place::Path(path) => {
                if path.is_dir() {
                    let hint = "give the trace files inside it";
                    return Err(Error::trace("io", "this is a directory", hint).at(&name, None));
                }
                Box::new(File::open(path).map_err(|e| failed(&e, &name))?)
            }
        };
        let watch = Arc::new(Watch::default());
        let mut raw = BufReader::with_capacity(1 << 17, Watched { reader, watch: Arc::clone(&watch) });
        let packing = packing_of(raw.fill_buf().map_err(|e| failed(&e, &name))?);
        Ok(Unpacked { watch, stream: Stream::Between(raw), packing, members: 0, cut: None })
    }
}

fn io_error(error: &io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "check the permissions of the file",
        _ => "the file could not be read to its end; fetch it again",
    };
    Error::trace("io", error.to_string(), hint)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Zstd,
}

fn packing_of(head: &[u8]) -> Packing {
    match head {
        [0x1f, 0x8b, ..] => Packing::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Packing::Zstd,
        _ => Packing::Plain,
    }
}

/// What the raw reader has seen: decoders hide whether the file or its packing is at fault.
#[derive(Default)]
struct Watch {
    bytes: AtomicU64,
    failed: AtomicBool,
}

struct Watched {
    reader: Box<dyn Read + Send>,
    watch: Arc<Watch>,
}

impl Read for Watched {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let got = self.reader.read(out);
        match &got {
            Ok(n) => drop(self.watch.bytes.fetch_add(*n as u64, Ordering::Relaxed)),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.watch.failed.store(true, Ordering::Relaxed),
        }
        got
    }
}

type Raw = BufReader<Watched>;

enum Stream {
    /// Before the first member, between two, or behind the last.
    Between(Raw),
    Gzip(Box<flate2::bufread::GzDecoder<Raw>>),
    Zstd(zstd::stream::read::Decoder<'static, Raw>),
    Done,
}

/// The decompressed bytes of a source.
pub(crate) struct Unpacked {
    watch: Arc<Watch>,
    stream: Stream,
    packing: Packing,
    /// Members (gzip) or frames (zstd) begun.
    members: u64,
    /// Why the archive ended before its end.
    cut: Option<String>,
}

/// How far a source is read, wherever that happens.
pub(crate) struct Opened(Arc<Watch>);

impl Opened {
    /// Bytes taken from the source so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }
}

impl Unpacked {
    pub(crate) fn opened(&self) -> Opened {
        Opened(Arc::clone(&self.watch))
    }

    /// Whether the bytes come out of an archive.
    pub(crate) fn is_packed(&self) -> bool {
        self.packing != Packing::Plain
    }

    /// What is known at the end.
    pub(crate) fn end(self) -> Ended {
        Ended { members: self.members, cut: self.cut }
    }

    /// Reads into `out`; 0 = the end. A damaged archive ends there, which [`Self::end`] says.
    ///
    /// # Errors
    /// `io` when the source itself fails.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        loop {
            let got = match &mut self.stream {
                Stream::Done => return Ok(0),
                Stream::Between(raw) if self.packing == Packing::Plain => raw.read(out),
                Stream::Between(_) => match self.next_member() {
                    Ok(()) => continue,
                    Err(error) => Err(error),
                },
                Stream::Gzip(decoder) => decoder.read(out),
                Stream::Zstd(decoder) => decoder.read(out),
            };
            match got {
                Ok(0) => {
                    self.stream = match std::mem::replace(&mut self.stream, Stream::Done) {
                        Stream::Gzip(decoder) => Stream::Between(decoder.into_inner()),
                        Stream::Zstd(decoder) => Stream::Between(decoder.finish()),
                        Stream::Between(_) | Stream::Done => Stream::Done,
                    };
                }
                Ok(n) => return Ok(n),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if self.watch.failed.load(Ordering::Relaxed) || self.packing == Packing::Plain => {
                    return Err(io_error(&e));
                }
                Err(e) => {
                    self.cut = Some(e.to_string());
                    self.stream = Stream::Done;
                }
            }
        }
    }

    /// Begins the next member, or ends the stream behind the last one.
    fn next_member(&mut self) -> io::Result<()> {
        let Stream::Between(mut raw) = std::mem::replace(&mut self.stream, Stream::Done) else {
            return Ok(());
        };
        // Tape and block devices pad archives with zeros.
        while self.members > 0 && raw.fill_buf()?.first() == Some(&0) {
            raw.consume(1);
        }
        let head = raw.fill_buf()?;
        if head.is_empty() {
            return Ok(());
        }
        if self.members > 0 && !continues(self.packing, head) {
            self.cut = Some("bytes that belong to no archive follow".to_owned());
            return Ok(());
        }
        self.members += 1;
        self.stream = match self.packing {
            Packing::Gzip => Stream::Gzip(Box::new(flate2::bufread::GzDecoder::new(raw))),
            _ => Stream::Zstd(zstd::stream::read::Decoder::with_buffer(raw)?.single_frame()),
        };
        Ok(())
    }
}

/// Whether `head` begins another member. Only the first byte is surely there: a buffer may end behind it.
fn continues(packing: Packing, head: &[u8]) -> bool {
    match packing {
        Packing::Gzip => head[0] == 0x1f,
        _ => head[0] == 0x28 || (0x50..=0x5f).contains(&head[0]),
    }
}
