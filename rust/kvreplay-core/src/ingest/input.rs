//! A source as a sliding window of bytes: bounded buffers, whatever the size of the file.

use super::prefetch::{Ended, Stream};
use super::source::Unpacked;
use crate::error::{Error, Result};
use crate::progress::Progress;

/// The largest row that is read; a longer one is taken for something that is no trace.
const MAX_ROW_BYTES: usize = 256 << 20;
/// Room for a window; a longer row makes it grow.
const WINDOW_BYTES: usize = 1 << 18;
/// Readable bytes behind the data, so that eight bytes can be loaded at any place of a row.
const SLACK_BYTES: usize = 16;

/// The bytes of a source that are in memory: `bytes()[begin..end]`, followed by [`SLACK_BYTES`] line ends.
pub(crate) struct Input<'p> {
    stream: Stream,
    progress: &'p Progress,
    /// Bytes of the sources before this one.
    before_bytes: u64,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    eof: bool,
}

impl<'p> Input<'p> {
    pub(crate) fn new(unpacked: Unpacked, progress: &'p Progress, before_bytes: u64) -> Self {
        let buffer = vec![0; WINDOW_BYTES + SLACK_BYTES];
        Self { stream: Stream::new(unpacked), progress, before_bytes, buffer, begin: 0, end: 0, eof: false }
    }

    /// What is in memory and not consumed, and where it begins in [`Self::bytes`].
    pub(crate) fn window(&self) -> &[u8] {
        &self.buffer[self.begin..self.end]
    }

    /// The window with the slack behind it.
    pub(crate) fn padded(&self) -> &[u8] {
        &self.buffer[self.begin..self.end + SLACK_BYTES]
    }

    /// Whether nothing follows the window.
    pub(crate) fn at_end(&self) -> bool {
        self.eof
    }

    /// Drops the first `count` bytes of the window.
    pub(crate) fn consume(&mut self, count: usize) {
        self.begin += count;
        debug_assert!(self.begin <= self.end);
    }

    /// Reads more behind the window. `false` when there is nothing more.
    ///
    /// # Errors
    /// `io` when the source fails, `row_too_long` when the window holds one row and is at its limit.
    pub(crate) fn more(&mut self) -> Result<bool> {
        if self.eof {
            return Ok(false);
        }
        self.progress.advance_to(self.before_bytes + self.stream.bytes_read())?;
        let held = self.end - self.begin;
        self.buffer.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, held);
        let room = self.buffer.len() - SLACK_BYTES;
        if held * 2 > room {
            if held >= MAX_ROW_BYTES {
                return Err(Error::trace(
                    "row_too_long",
                    format!("a row is longer than {} MiB", MAX_ROW_BYTES >> 20),
                    "this does not look like a trace: one row is one request; check that the file has line ends",
                ));
            }
            // Text has no zero bytes: a packed disk image or a bomb of zeros ends here, not at the limit.
            if memchr::memchr(0, self.window()).is_some() {
                let hint =
                    "give a trace as text: JSON lines, a JSON array or CSV, perhaps packed with gzip or zstd";
                return Err(Error::trace("not_text", "the file holds binary data", hint));
            }
            self.buffer.resize((room * 2).min(MAX_ROW_BYTES + WINDOW_BYTES) + SLACK_BYTES, 0);
        }
        let room = self.buffer.len() - SLACK_BYTES;
        // Fill what a decoder or pipe gives in small pieces: rows cost more to split than bytes to read.
        while self.end < room {
            let got = self.stream.read(&mut self.buffer[self.end..room])?;
            if got == 0 {
                self.eof = true;
                break;
            }
            self.end += got;
            if self.end - held >= WINDOW_BYTES / 4 {
                break;
            }
        }
        self.buffer[self.end..self.end + SLACK_BYTES].fill(b'\n');
        Ok(self.end > held || !self.eof)
    }

    /// What the archive was like, known at the end.
    pub(crate) fn ended(&self) -> &Ended {
        self.stream.ended()
    }

    /// Bytes taken from the source.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.stream.bytes_read()
    }
}
