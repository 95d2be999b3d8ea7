//! sysbench's sequence of requests, shared by all threads.

use dbdyno_random::Rng;

use super::options::{Mode, Options};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Read(Span),
    Write(Span),
    Sync { file: usize },
}

/// A range of bytes in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) file: usize,
    pub(super) at: u64,
    pub(super) bytes: usize,
}

/// Generates the sequence of requests.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    mode: Mode,
    files: usize,
    file_bytes: u64,
    block_bytes: u64,
    /// Maximum bytes of a sequential request.
    merged_bytes: u64,
    sync_every: u64,
    rw_ratio: f64,
    /// The file of the next sequential request; `at` is its offset.
    file: usize,
    at: u64,
    /// Reads and writes since the last round of syncs; a round syncs every file once.
    since_sync: u64,
    /// Whether any request since the last round was a write.
    dirty: bool,
    /// The file to sync next during a round; `None` between rounds.
    syncing: Option<usize>,
    reads: u64,
    writes: u64,
}

impl Requests {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            mode: options.mode,
            files: options.files,
            file_bytes: options.file_bytes,
            block_bytes: options.block_bytes,
            merged_bytes: options.block_bytes * options.merged_blocks.max(1),
            sync_every: if options.sync_all { 0 } else { options.sync_every },
            rw_ratio: options.rw_ratio,
            file: 0,
            at: 0,
            since_sync: 0,
            dirty: false,
            syncing: None,
            reads: 0,
            writes: 0,
        }
    }

    pub(super) fn next(&mut self, rng: &mut Rng) -> Request {
        if let Some(file) = self.syncing {
            self.syncing = (file + 1 < self.files).then_some(file + 1);
            return Request::Sync { file };
        }
        let span = if self.mode.is_random() { self.random(rng) } else { self.sequential() };
        let writes = match self.mode {
            Mode::SeqWrite | Mode::SeqRewrite | Mode::RandomWrite => true,
            Mode::SeqRead | Mode::RandomRead => false,
            Mode::RandomMixed => (self.reads + 1) as f64 / (self.writes + 1) as f64 >= self.rw_ratio,
        };
        self.count(writes);
        if writes { Request::Write(span) } else { Request::Read(span) }
    }

    /// Counts a request. After `sync_every` requests, begins a round of syncs if any of them was a write.
    fn count(&mut self, writes: bool) {
        let counter = if writes { &mut self.writes } else { &mut self.reads };
        *counter += 1;
        self.dirty |= writes;
        self.since_sync += 1;
        if self.sync_every != 0 && self.since_sync == self.sync_every {
            self.since_sync = 0;
            if std::mem::take(&mut self.dirty) {
                self.syncing = Some(0);
            }
        }
    }

    /// The next blocks of the current file. After the last file, starts again at the first one.
    fn sequential(&mut self) -> Span {
        let bytes = self.merged_bytes.min(self.file_bytes - self.at);
        let span = Span { file: self.file, at: self.at, bytes: bytes as usize };
        self.at += bytes;
        if self.at >= self.file_bytes {
            (self.at, self.file) = (0, (self.file + 1) % self.files);
        }
        span
    }

    /// A random block of a random file, cut off at the end of the file.
    fn random(&self, rng: &mut Rng) -> Span {
        let total = self.file_bytes * self.files as u64;
        let position = (rng.unit() * total as f64) as u64;
        let position = position - position % self.block_bytes;
        let at = position % self.file_bytes;
        let bytes = self.block_bytes.min(self.file_bytes - at);
        Span { file: (position / self.file_bytes) as usize, at, bytes: bytes as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(mode: Mode) -> Options {
        Options {
            mode,
            files: 2,
            file_bytes: 64 << 10,
            total_bytes: 128 << 10,
            block_bytes: 16 << 10,
            sync_every: 5,
            rw_ratio: 1.5,
            ..Options::default()
        }
    }

    /// R, W and F for each request, with the file it is about.
    fn letters(options: &Options, count: usize) -> String {
        let (mut requests, mut rng) = (Requests::new(options), Rng::new(1, &[]));
        let letters = (0..count).map(|_| match requests.next(&mut rng) {
            Request::Read(_) => "R".to_owned(),
            Request::Write(_) => "W".to_owned(),
            Request::Sync { file } => format!("F{file}"),
        });
        letters.collect()
    }

    #[test]
    fn rounds_of_syncs_come_after_so_many_requests() {
        assert_eq!(letters(&options(Mode::SeqWrite), 14), "WWWWWF0F1WWWWWF0F1");
        assert_eq!(letters(&options(Mode::SeqRead), 12), "RRRRRRRRRRRR");
        assert_eq!(letters(&options(Mode::RandomWrite), 8), "WWWWWF0F1W");
        let never = Options { sync_every: 0, ..options(Mode::RandomWrite) };
        assert_eq!(letters(&never, 7), "WWWWWWW");
        let each = Options { sync_all: true, ..options(Mode::RandomWrite) };
        assert_eq!(letters(&each, 7), "WWWWWWW");
    }

    /// As sysbench 1.0.20 does it.
    #[test]
    fn reads_and_writes_are_mixed_by_their_ratio() {
        assert_eq!(letters(&options(Mode::RandomMixed), 24), "RWRWRF0F1RWRWRF0F1RWRWRF0F1RWR");
        let few = Options { rw_ratio: 20.0, ..options(Mode::RandomMixed) };
        assert_eq!(letters(&few, 25), format!("{}WF0F1RRR", "R".repeat(19)));
        let none = Options { rw_ratio: 0.0, sync_every: 0, ..options(Mode::RandomMixed) };
        assert_eq!(letters(&none, 4), "WWWW");
    }

    fn spans(options: &Options, count: usize) -> Vec<(usize, u64, usize)> {
        let (mut requests, mut rng) = (Requests::new(options), Rng::new(1, &[]));
        let mut spans = Vec::new();
        while spans.len() < count {
            match requests.next(&mut rng) {
                Request::Read(span) | Request::Write(span) => spans.push((span.file, span.at, span.bytes)),
                Request::Sync { .. } => {}
            }
        }
        spans
    }

    #[test]
    fn sequential_requests_follow_each_other_through_all_files() {
        let k = 1 << 10;
        let merged = Options { merged_blocks: 3, ..options(Mode::SeqRewrite) };
        let all = [(0, 0, 48 * 1024), (0, 48 * k, 16 * 1024), (1, 0, 48 * 1024), (1, 48 * k, 16 * 1024)];
        assert_eq!(spans(&merged, 8), [all, all].concat());
        let uneven = Options { block_bytes: 20 * k, merged_blocks: 2, ..options(Mode::SeqRead) };
        assert_eq!(spans(&uneven, 2), [(0, 0, 40_960), (0, 40_960, 24_576)]);
    }

    #[test]
    fn random_requests_are_blocks_within_their_file() {
        let uneven = Options { block_bytes: 20 << 10, ..options(Mode::RandomRead) };
        let mut seen = std::collections::BTreeSet::new();
        for (file, at, bytes) in spans(&uneven, 1000) {
            let position = file as u64 * (64 << 10) + at;
            assert!(position.is_multiple_of(20 << 10) && at + bytes as u64 <= 64 << 10);
            assert!(bytes == 20 << 10 || at + bytes as u64 == 64 << 10);
            seen.insert(position / (20 << 10));
        }
        assert_eq!(seen.len(), 7, "all blocks of 128 KiB, the last of them 8 KiB long");
    }
}
