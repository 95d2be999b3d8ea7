//! Creates, opens and removes the files.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Instant;

use dbdyno_random::Rng;
use memmap2::MmapMut;

use super::checksum;
use super::options::{Mode, Options, format_size};
use crate::test::{LogMessage, TestError, errno_text};

const MIB: f64 = 1_048_576.0;

pub(super) fn file_name(number: usize) -> String {
    format!("test_file.{number}")
}

fn open_options(options: &Options) -> OpenOptions {
    let flags = options.flags;
    let flags = [(flags.sync, libc::O_SYNC), (flags.dsync, libc::O_DSYNC), (flags.direct, libc::O_DIRECT)];
    let mut open_options = OpenOptions::new();
    open_options
        .custom_flags(flags.iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag))
        .mode(0o600);
    open_options
}

/// Creates or extends the files.
pub(super) fn prepare(options: &Options, log: &mut dyn FnMut(LogMessage)) -> Result<(), TestError> {
    let Options { files, file_bytes, total_bytes, .. } = *options;
    log(LogMessage::notice(format!(
        "{files} files, {}Kb each, {}Mb total",
        file_bytes >> 10,
        total_bytes >> 20
    )));
    log(LogMessage::notice("Creating files for the test..."));
    log(options.flags_message());
    let (start, mut written) = (Instant::now(), 0);
    let mut buffer = page_aligned(options.block_bytes as usize)?;
    let mut rng = Rng::new(options.seed, &[u64::from_be_bytes(*b"contents")]);
    for number in 0..files {
        written += extend_file(options, number, &mut buffer, &mut rng, log)?;
    }
    if written == 0 {
        log(LogMessage::notice("No bytes written."));
        return Ok(());
    }
    let seconds = start.elapsed().as_secs_f64();
    let rate = written as f64 / MIB / seconds.max(1e-9);
    log(LogMessage::notice(format!("{written} bytes written in {seconds:.2} seconds ({rate:.2} MiB/sec).")));
    Ok(())
}

/// A buffer of zeros for direct I/O, which requires page alignment.
pub(super) fn page_aligned(bytes: usize) -> Result<MmapMut, Vec<LogMessage>> {
    let buffer = MmapMut::map_anon(bytes);
    buffer.map_err(|error| {
        vec![LogMessage::fatal(format!("Failed to allocate a buffer. {}", errno_text(&error)))]
    })
}

/// Appends blocks until the file has its full size. Returns the number of bytes written.
fn extend_file(
    options: &Options,
    number: usize,
    buffer: &mut [u8],
    rng: &mut Rng,
    log: &mut dyn FnMut(LogMessage),
) -> Result<u64, TestError> {
    let name = file_name(number);
    let failure =
        |what: &str, error: io::Error| TestError::fatal(format!("{what} '{name}' {}", errno_text(&error)));
    let mut file = open_options(options)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&name)
        .map_err(|error| failure("Can't open file", error))?;
    let size = file.seek(SeekFrom::End(0)).map_err(|error| failure("Failed to seek in file", error))?;
    let action = match size {
        size if size >= options.file_bytes => "Reusing existing",
        0 => "Creating",
        _ => "Extending existing",
    };
    log(LogMessage::notice(format!("{action} file {name}")));
    let mut offset = size;
    while offset < options.file_bytes {
        if options.validate {
            checksum::fill_block(buffer, offset, rng);
        }
        file.write_all(buffer).map_err(|error| failure("Failed to write file", error))?;
        offset += options.block_bytes;
    }
    file.sync_all().map_err(|error| failure("Failed to fsync file", error))?;
    Ok(offset - size)
}

/// Removes the files; a missing file is not an error.
pub(super) fn cleanup(options: &Options, log: &mut dyn FnMut(LogMessage)) -> Result<(), TestError> {
    log(LogMessage::notice("Removing test files..."));
    for number in 0..options.files {
        match std::fs::remove_file(file_name(number)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let text = format!("Cannot remove file '{}' {}", file_name(number), errno_text(&error));
                return Err(TestError::fatal(text));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Opens the files for a run and checks their sizes. In mode seqwr, replaces the files by empty ones.
pub(super) fn open(options: &Options) -> Result<Vec<File>, Vec<LogMessage>> {
    let mut files = Vec::with_capacity(options.files);
    for number in 0..options.files {
        let name = file_name(number);
        if options.mode == Mode::SeqWrite {
            // If the file cannot be removed, its creation below fails and reports the error.
            let _ = std::fs::remove_file(&name);
            let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name);
            created.map_err(|error| {
                vec![LogMessage::fatal(format!("Cannot create file '{name}' {}", errno_text(&error)))]
            })?;
        }
        let file = open_options(options).read(true).write(true).open(&name).map_err(|error| {
            vec![
                LogMessage::fatal(format!("Cannot open file '{name}' {}", errno_text(&error))),
                LogMessage::warning("Did you forget to run the prepare step?"),
            ]
        })?;
        if options.mode != Mode::SeqWrite {
            check_size(&file, &name, options.file_bytes)?;
        }
        files.push(file);
    }
    Ok(files)
}

fn check_size(file: &File, name: &str, min_bytes: u64) -> Result<(), Vec<LogMessage>> {
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    if bytes >= min_bytes {
        return Ok(());
    }
    let (bytes, min) = (format_size(bytes), format_size(min_bytes));
    Err(vec![
        LogMessage::fatal(format!("Size of file '{name}' is {bytes}, but at least {min} is expected.")),
        LogMessage::warning("Did you run 'prepare' with different --file-total-size or --file-num values?"),
    ])
}
