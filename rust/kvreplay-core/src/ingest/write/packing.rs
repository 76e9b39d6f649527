//! Compression of what is written.

use super::io_error;
use crate::error::Result;
use flate2::{Compression, GzBuilder};
use std::io::Write;

const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// How a written file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    Plain,
    /// gzip, without a name or a time in its header: equal traces give equal bytes.
    Gzip,
    /// zstd.
    Zstd,
}

impl Packing {
    /// By the end of a file's name: `.gz` or `.zst`.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        match std::path::Path::new(name).extension().and_then(|end| end.to_str()) {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => Self::Plain,
        }
    }
}

/// Runs `work` with a writer that packs into `out`, and ends the archive.
///
/// # Errors
/// Those of `work`; `io` when `out` fails.
pub(super) fn through(
    packing: Packing,
    out: &mut dyn Write,
    work: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let io = |error: std::io::Error| io_error(&error);
    match packing {
        Packing::Plain => work(out)?,
        Packing::Gzip => {
            let mut packed = GzBuilder::new().write(&mut *out, Compression::new(GZIP_LEVEL));
            work(&mut packed)?;
            packed.finish().map_err(io)?;
        }
        Packing::Zstd => {
            let mut packed = zstd::stream::write::Encoder::new(&mut *out, ZSTD_LEVEL).map_err(io)?;
            work(&mut packed)?;
            packed.finish().map_err(io)?;
        }
    }
    out.flush().map_err(io)
}
