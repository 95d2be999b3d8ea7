//! The files: made, opened, removed.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Instant;

use dbdyno_random::Rng;

use super::buffer::Buffer;
use super::checksum;
use super::options::{Mode, Options, size};
use crate::test::{Fault, Line};

const MIB: f64 = 1_048_576.0;

/// The name of a file.
pub(super) fn name(number: usize) -> String {
    format!("test_file.{number}")
}

/// What the system says of a failure, in the original's form.
pub(super) fn errno(error: &io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or_default();
    format!("errno = {} ({words})", error.raw_os_error().unwrap_or(0))
}

/// How all files are opened.
fn how(options: &Options) -> OpenOptions {
    let flags = options.flags;
    let named = [(flags.sync, libc::O_SYNC), (flags.dsync, libc::O_DSYNC), (flags.direct, libc::O_DIRECT)];
    let mut how = OpenOptions::new();
    how.custom_flags(named.iter().filter(|(on, _)| *on).fold(0, |all, (_, flag)| all | flag)).mode(0o600);
    how
}

/// Makes the files, or makes them longer.
pub(super) fn prepare(options: &Options, say: &mut dyn FnMut(Line)) -> Result<(), Fault> {
    let Options { files, file_bytes, total_bytes, .. } = *options;
    say(Line::notice(format!("{files} files, {}Kb each, {}Mb total", file_bytes >> 10, total_bytes >> 20)));
    say(Line::notice("Creating files for the test..."));
    say(options.flags_line());
    let (began, mut written) = (Instant::now(), 0);
    let mut buffer = Buffer::new(options.block_bytes as usize);
    let mut rng = Rng::new(options.seed, &[u64::from_be_bytes(*b"contents")]);
    for number in 0..files {
        written += fill(options, number, &mut buffer, &mut rng, say)?;
    }
    if written == 0 {
        say(Line::notice("No bytes written."));
        return Ok(());
    }
    let seconds = began.elapsed().as_secs_f64();
    let rate = written as f64 / MIB / seconds.max(1e-9);
    say(Line::notice(format!("{written} bytes written in {seconds:.2} seconds ({rate:.2} MiB/sec).")));
    Ok(())
}

/// Appends whole blocks until a file is as long as it should be. Returns the bytes written.
fn fill(
    options: &Options,
    number: usize,
    buffer: &mut Buffer,
    rng: &mut Rng,
    say: &mut dyn FnMut(Line),
) -> Result<u64, Fault> {
    let name = name(number);
    let fault = |what: &str, error: io::Error| Fault::fatal(format!("{what} '{name}' {}", errno(&error)));
    let mut file = how(options)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&name)
        .map_err(|error| fault("Can't open file", error))?;
    let there = file.seek(SeekFrom::End(0)).map_err(|error| fault("Failed to seek in file", error))?;
    let what = match there {
        there if there >= options.file_bytes => "Reusing existing",
        0 => "Creating",
        _ => "Extending existing",
    };
    say(Line::notice(format!("{what} file {name}")));
    let mut at = there;
    while at < options.file_bytes {
        if options.validate {
            checksum::seal(buffer.bytes_mut(), at, rng);
        }
        file.write_all(buffer.bytes()).map_err(|error| fault("Failed to write file", error))?;
        at += options.block_bytes;
    }
    file.sync_all().map_err(|error| fault("Failed to fsync file", error))?;
    Ok(at - there)
}

/// Removes the files; those that are not there are no fault.
pub(super) fn cleanup(options: &Options, say: &mut dyn FnMut(Line)) -> Result<(), Fault> {
    say(Line::notice("Removing test files..."));
    for number in 0..options.files {
        match std::fs::remove_file(name(number)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let said = format!("Cannot remove file '{}' {}", name(number), errno(&error));
                return Err(Fault::fatal(said));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Opens the files for a run, and sees whether they are long enough. The creation test makes them anew.
pub(super) fn open(options: &Options) -> Result<Vec<File>, Vec<Line>> {
    let mut files = Vec::with_capacity(options.files);
    for number in 0..options.files {
        let name = name(number);
        if options.mode == Mode::SeqWrite {
            // What was there is made anew, and a file that cannot be removed cannot be created either.
            let _ = std::fs::remove_file(&name);
            let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name);
            created.map_err(|error| {
                vec![Line::fatal(format!("Cannot create file '{name}' {}", errno(&error)))]
            })?;
        }
        let file = how(options).read(true).write(true).open(&name).map_err(|error| {
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

fn check(file: &File, name: &str, least: u64) -> Result<(), Vec<Line>> {
    let there = file.metadata().map_or(0, |metadata| metadata.len());
    if there >= least {
        return Ok(());
    }
    let (there, least) = (size(there), size(least));
    Err(vec![
        Line::fatal(format!("Size of file '{name}' is {there}, but at least {least} is expected.")),
        Line::warning("Did you run 'prepare' with different --file-total-size or --file-num values?"),
    ])
}
