//! Unpacking on a thread of its own, so that a packed trace takes the longer of unpacking and parsing, not both.

use super::source::{Opened, Unpacked};
use crate::error::{Error, Result};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// Bytes per piece, and pieces in flight at most.
const PIECE_BYTES: usize = 1 << 18;
const PIECES: usize = 4;

/// What the unpacking thread says.
enum Piece {
    Bytes(Vec<u8>),
    End(Ended),
    Failed(Error),
}

/// What is known at the end of a source.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Members (gzip) or frames (zstd).
    pub(crate) members: u64,
    /// Why the archive ended before its end.
    pub(crate) cut: Option<String>,
}

/// The unpacked bytes of a source, read in place or on a thread.
pub(crate) struct Stream {
    from: From,
    opened: Opened,
    ended: Ended,
}

enum From {
    /// Plain files: reading them costs less than handing them over.
    Here(Unpacked),
    Thread(Pieces),
    Done,
}

struct Pieces {
    filled: Receiver<Piece>,
    /// Emptied buffers go back to be filled again.
    back: Sender<Vec<u8>>,
    current: Vec<u8>,
    at: usize,
}

impl Stream {
    pub(crate) fn new(unpacked: Unpacked) -> Self {
        let opened = unpacked.opened();
        let from = if unpacked.is_packed() { From::Thread(spawn(unpacked)) } else { From::Here(unpacked) };
        Self { from, opened, ended: Ended::default() }
    }

    /// Reads into `out`; 0 = the end.
    ///
    /// # Errors
    /// `io` when the source fails.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let got = match &mut self.from {
            From::Done => Ok(0),
            From::Here(unpacked) => unpacked.read(out),
            From::Thread(pieces) => pieces.read(out, &mut self.ended),
        };
        if !matches!(got, Ok(1..)) {
            self.from = From::Done;
        }
        got
    }

    /// Bytes taken from the source so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.opened.bytes_read()
    }

    pub(crate) fn ended(&self) -> &Ended {
        &self.ended
    }
}

impl Pieces {
    fn read(&mut self, out: &mut [u8], ended: &mut Ended) -> Result<usize> {
        if self.at == self.current.len() {
            // The thread may have ended; then nobody needs the buffer.
            let _ = self.back.send(std::mem::take(&mut self.current));
            self.at = 0;
            match self.filled.recv() {
                Ok(Piece::Bytes(bytes)) => self.current = bytes,
                Ok(Piece::End(end)) => {
                    *ended = end;
                    return Ok(0);
                }
                Ok(Piece::Failed(error)) => return Err(error),
                Err(_) => {
                    let message = "the thread that unpacks the file stopped";
                    return Err(Error::trace(
                        "io",
                        message,
                        "this is a defect of kvreplay or of the file object",
                    ));
                }
            }
        }
        let rest = &self.current[self.at..];
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

/// Starts the thread. It stops when its receiver is gone, at the next piece.
fn spawn(unpacked: Unpacked) -> Pieces {
    let (send, filled) = sync_channel(PIECES);
    let (back, spare) = channel();
    thread::spawn(move || work(unpacked, &send, &spare));
    Pieces { filled, back, current: Vec::new(), at: 0 }
}

fn work(mut unpacked: Unpacked, send: &SyncSender<Piece>, spare: &Receiver<Vec<u8>>) {
    loop {
        let mut bytes = spare.try_recv().unwrap_or_default();
        bytes.resize(PIECE_BYTES, 0);
        let piece = match fill(&mut unpacked, &mut bytes) {
            Ok(0) => {
                let _ = send.send(Piece::End(unpacked.end()));
                return;
            }
            Ok(count) => {
                bytes.truncate(count);
                Piece::Bytes(bytes)
            }
            Err(error) => Piece::Failed(error),
        };
        let failed = matches!(piece, Piece::Failed(_));
        if send.send(piece).is_err() || failed {
            return;
        }
    }
}

/// Fills the buffer as far as the source goes.
fn fill(unpacked: &mut Unpacked, bytes: &mut [u8]) -> Result<usize> {
    let mut count = 0;
    while count < bytes.len() {
        match unpacked.read(&mut bytes[count..]) {
            Ok(0) => break,
            Ok(n) => count += n,
            // What came before the failure is of no use: the whole read fails.
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}
