//! Creates, opens and removes the files.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Instant;

use dbdyno_random::Rng;
use memmap2::MmapMut;

use super::checksum;
use super::options::{Mode, Options, size};
use crate::test::{Line, TestError, errno};

const MIB: f64 = 1_048_576.0;

pub(super) fn name(number: usize) -> String {
    format!("test_file.{number}")
}

fn open_options(options: &Options) -> OpenOptions {
    let flags = options.flags;
    let flags = [(flags.sync, libc::O_SYNC), (flags.dsync, libc::O_DSYNC), (flags.direct, libc::O_DIRECT)];
    let mut open_options = OpenOptions::new();
    open_options
        .custom_flags(flags.iter().filter(|(on, _)| *on).fold(0, |all, (_, flag)| all | flag))
        .mode(0o600);
    open_options
}

/// Creates or extends the files.
pub(super) fn prepare(options: &Options, log: &mut dyn FnMut(Line)) -> Result<(), TestError> {
    let Options { files, file_bytes, total_bytes, .. } = *options;
    log(Line::notice(format!("{files} files, {}Kb each, {}Mb total", file_bytes >> 10, total_bytes >> 20)));
    log(Line::notice("Creating files for the test..."));
    log(options.flags_line());
    let (began, mut written) = (Instant::now(), 0);
    let mut buffer = page_aligned(options.block_bytes as usize)?;
    let mut rng = Rng::new(options.seed, &[u64::from_be_bytes(*b"contents")]);
    for number in 0..files {
        written += fill(options, number, &mut buffer, &mut rng, log)?;
    }
    if written == 0 {
        log(Line::notice("No bytes written."));
        return Ok(());
    }
    let seconds = began.elapsed().as_secs_f64();
    let rate = written as f64 / MIB / seconds.max(1e-9);
    log(Line::notice(format!("{written} bytes written in {seconds:.2} seconds ({rate:.2} MiB/sec).")));
    Ok(())
}

/// A buffer of zeros for direct I/O, which requires page alignment.
pub(super) fn page_aligned(bytes: usize) -> Result<MmapMut, Vec<Line>> {
    let buffer = MmapMut::map_anon(bytes);
    buffer.map_err(|error| vec![Line::fatal(format!("Failed to allocate a buffer. {}", errno(&error)))])
}

/// Appends blocks until the file has its full size. Returns the number of bytes written.
fn fill(
    options: &Options,
    number: usize,
    buffer: &mut [u8],
    rng: &mut Rng,
    log: &mut dyn FnMut(Line),
) -> Result<u64, TestError> {
    let name = name(number);
    let failed =
        |what: &str, error: io::Error| TestError::fatal(format!("{what} '{name}' {}", errno(&error)));
    let mut file = open_options(options)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&name)
        .map_err(|error| failed("Can't open file", error))?;
    let size = file.seek(SeekFrom::End(0)).map_err(|error| failed("Failed to seek in file", error))?;
    let what = match size {
        size if size >= options.file_bytes => "Reusing existing",
        0 => "Creating",
        _ => "Extending existing",
    };
    log(Line::notice(format!("{what} file {name}")));
    let mut at = size;
    while at < options.file_bytes {
        if options.validate {
            checksum::fill_block(buffer, at, rng);
        }
        file.write_all(buffer).map_err(|error| failed("Failed to write file", error))?;
        at += options.block_bytes;
    }
    file.sync_all().map_err(|error| failed("Failed to fsync file", error))?;
    Ok(at - size)
}

/// Removes the files; a missing file is not an error.
pub(super) fn cleanup(options: &Options, log: &mut dyn FnMut(Line)) -> Result<(), TestError> {
    log(Line::notice("Removing test files..."));
    for number in 0..options.files {
        match std::fs::remove_file(name(number)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let text = format!("Cannot remove file '{}' {}", name(number), errno(&error));
                return Err(TestError::fatal(text));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Opens the files for a run and checks their sizes. In mode seqwr, replaces them by empty files.
pub(super) fn open(options: &Options) -> Result<Vec<File>, Vec<Line>> {
    let mut files = Vec::with_capacity(options.files);
    for number in 0..options.files {
        let name = name(number);
        if options.mode == Mode::SeqWrite {
            // If the file cannot be removed, its creation below fails and reports the error.
            let _ = std::fs::remove_file(&name);
            let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name);
            created.map_err(|error| {
                vec![Line::fatal(format!("Cannot create file '{name}' {}", errno(&error)))]
            })?;
        }
        let file = open_options(options).read(true).write(true).open(&name).map_err(|error| {
            vec![
                Line::fatal(format!("Cannot open file '{name}' {}", errno(&error))),
                Line::warning("Did you forget to run the prepare step?"),
            ]
        })?;
        if options.mode != Mode::SeqWrite {
            check(&file, &name, options.file_bytes)?;
        }
        files.push(file);
    }
    Ok(files)
}

fn check(file: &File, name: &str, min_bytes: u64) -> Result<(), Vec<Line>> {
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    if bytes >= min_bytes {
        return Ok(());
    }
    let (bytes, min) = (size(bytes), size(min_bytes));
    Err(vec![
        Line::fatal(format!("Size of file '{name}' is {bytes}, but at least {min} is expected.")),
        Line::warning("Did you run 'prepare' with different --file-total-size or --file-num values?"),
    ])
}
