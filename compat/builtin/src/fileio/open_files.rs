//! The open files of a run, which all threads share.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, RwLock};

use super::files;
use super::mapped::Mapped;
use super::options::{IoMode, Mode, Options};
use super::requests::{Requests, Span};
use crate::test::{Line, Work, errno};

pub(super) struct OpenFiles {
    pub(super) options: Options,
    pub(super) files: Vec<File>,
    /// One mapping per file in mode mmap; empty in other modes.
    pub(super) maps: Vec<Mapped>,
    /// One lock per file with `--validate`; empty without it.
    pub(super) guards: Vec<RwLock<()>>,
    pub(super) requests: Mutex<Requests>,
}

impl OpenFiles {
    pub(super) fn new(options: Options) -> Result<Self, Vec<Line>> {
        let files = files::open(&options)?;
        let maps = if options.io_mode == IoMode::Mapped { map(&files, &options)? } else { Vec::new() };
        let guarded = if options.validate { options.files } else { 0 };
        let guards = (0..guarded).map(|_| RwLock::new(())).collect();
        Ok(Self { requests: Mutex::new(Requests::new(&options)), options, files, maps, guards })
    }

    pub(super) fn sync(&self, file: usize) -> Result<Work, Vec<Line>> {
        let handle = &self.files[file];
        let (what, done) = match (self.maps.get(file), self.options.data_only) {
            (Some(map), _) => ("msync", map.sync()),
            (None, true) => ("fdatasync", handle.sync_data()),
            (None, false) => ("fsync", handle.sync_all()),
        };
        done.map_err(|error| {
            let text = format!("Failed to {what} file! file: {} {}", handle.as_raw_fd(), errno(&error));
            vec![Line::fatal(text)]
        })?;
        Ok(Work { syncs: 1, ..Work::default() })
    }

    /// Fails unless the call read or wrote the complete span.
    pub(super) fn check_complete(
        &self,
        what: &str,
        span: Span,
        done: io::Result<usize>,
    ) -> Result<(), Vec<Line>> {
        let why = match done {
            Ok(bytes) if bytes == span.bytes => return Ok(()),
            Ok(bytes) => format!("{bytes} of {} bytes", span.bytes),
            Err(error) => errno(&error),
        };
        let file = self.files[span.file].as_raw_fd();
        Err(vec![Line::fatal(format!("Failed to {what} file! file: {file} pos: {} {why}", span.at))])
    }
}

/// Maps every file. In mode seqwr the files are empty and get their size here.
fn map(files: &[File], options: &Options) -> Result<Vec<Mapped>, Vec<Line>> {
    let map_file = |(number, file): (usize, &File)| {
        if options.mode == Mode::SeqWrite {
            file.set_len(options.file_bytes)?;
        }
        Mapped::new(file, options.file_bytes as usize)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", files::name(number))))
    };
    let mapped: io::Result<Vec<_>> = files.iter().enumerate().map(map_file).collect();
    mapped.map_err(|error| vec![Line::fatal(format!("mmap() failed: {error}"))])
}
