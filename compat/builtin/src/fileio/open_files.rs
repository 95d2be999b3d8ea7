//! The open files of a run, which all threads share.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, RwLock};

use super::files;
use super::mapped::MappedFile;
use super::options::{IoMode, Mode, Options};
use super::request_sequence::{ByteRange, RequestSequence};
use crate::test::{IoCounts, LogMessage, errno_text};

pub(super) struct OpenFiles {
    pub(super) options: Options,
    pub(super) files: Vec<File>,
    /// One mapping per file in I/O mode mmap; empty in other modes.
    pub(super) mappings: Vec<MappedFile>,
    /// One lock per file with `--validate`; empty without it.
    pub(super) file_locks: Vec<RwLock<()>>,
    pub(super) requests: Mutex<RequestSequence>,
}

impl OpenFiles {
    pub(super) fn new(options: Options) -> Result<Self, Vec<LogMessage>> {
        let files = files::open(&options)?;
        let mappings =
            if options.io_mode == IoMode::Mapped { map_files(&files, &options)? } else { Vec::new() };
        let locks = if options.validate { options.files } else { 0 };
        let file_locks = (0..locks).map(|_| RwLock::new(())).collect();
        Ok(Self {
            requests: Mutex::new(RequestSequence::new(&options)),
            options,
            files,
            mappings,
            file_locks,
        })
    }

    pub(super) fn sync(&self, file: usize) -> Result<IoCounts, Vec<LogMessage>> {
        let handle = &self.files[file];
        let (call, result) = match (self.mappings.get(file), self.options.use_fdatasync) {
            (Some(map), _) => ("msync", map.sync()),
            (None, true) => ("fdatasync", handle.sync_data()),
            (None, false) => ("fsync", handle.sync_all()),
        };
        result.map_err(|error| {
            let text = format!("Failed to {call} file! file: {} {}", handle.as_raw_fd(), errno_text(&error));
            vec![LogMessage::fatal(text)]
        })?;
        Ok(IoCounts { syncs: 1, ..IoCounts::default() })
    }

    /// Returns an error unless the call has read or written the complete range.
    pub(super) fn check_complete(
        &self,
        call: &str,
        range: ByteRange,
        result: io::Result<usize>,
    ) -> Result<(), Vec<LogMessage>> {
        let problem = match result {
            Ok(bytes) if bytes == range.bytes => return Ok(()),
            Ok(bytes) => format!("{bytes} of {} bytes", range.bytes),
            Err(error) => errno_text(&error),
        };
        let file = self.files[range.file].as_raw_fd();
        Err(vec![LogMessage::fatal(format!(
            "Failed to {call} file! file: {file} pos: {} {problem}",
            range.offset
        ))])
    }
}

/// Maps every file. In mode seqwr the files are empty and get their size here.
fn map_files(files: &[File], options: &Options) -> Result<Vec<MappedFile>, Vec<LogMessage>> {
    let map_file = |(number, file): (usize, &File)| {
        if options.mode == Mode::SeqWrite {
            file.set_len(options.file_bytes)?;
        }
        MappedFile::new(file, options.file_bytes as usize)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", files::file_name(number))))
    };
    let mapped: io::Result<Vec<_>> = files.iter().enumerate().map(map_file).collect();
    mapped.map_err(|error| vec![LogMessage::fatal(format!("mmap() failed: {error}"))])
}
