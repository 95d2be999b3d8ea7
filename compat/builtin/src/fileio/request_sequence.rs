//! Chooses the next request as sysbench does. All threads share one sequence.

use dbdyno_random::Rng;

use super::options::{Mode, Options};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Read(ByteRange),
    Write(ByteRange),
    Sync { file: usize },
}

/// A range of bytes in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteRange {
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) bytes: usize,
}

#[derive(Clone, Debug)]
pub(super) struct RequestSequence {
    mode: Mode,
    files: usize,
    file_bytes: u64,
    block_bytes: u64,
    /// Maximum bytes of a sequential request.
    merged_bytes: u64,
    sync_every: u64,
    rw_ratio: f64,
    /// The file of the next sequential request, and the offset in it.
    file: usize,
    offset: u64,
    /// Number of reads and writes since the last round of syncs; a round syncs every file once.
    requests_since_sync: u64,
    /// Whether any request since the last round was a write.
    has_unsynced_writes: bool,
    /// The next file to sync during a round; `None` between rounds.
    next_sync: Option<usize>,
    reads: u64,
    writes: u64,
}

impl RequestSequence {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            mode: options.mode,
            files: options.files,
            file_bytes: options.file_bytes,
            block_bytes: options.block_bytes,
            merged_bytes: options.block_bytes * options.merged_blocks.max(1),
            sync_every: if options.sync_each_write { 0 } else { options.sync_every },
            rw_ratio: options.rw_ratio,
            file: 0,
            offset: 0,
            requests_since_sync: 0,
            has_unsynced_writes: false,
            next_sync: None,
            reads: 0,
            writes: 0,
        }
    }

    pub(super) fn next(&mut self, rng: &mut Rng) -> Request {
        if let Some(file) = self.next_sync {
            self.next_sync = (file + 1 < self.files).then_some(file + 1);
            return Request::Sync { file };
        }
        let range = if self.mode.is_random() { self.random_range(rng) } else { self.sequential_range() };
        let is_write = match self.mode {
            Mode::SeqWrite | Mode::SeqRewrite | Mode::RandomWrite => true,
            Mode::SeqRead | Mode::RandomRead => false,
            Mode::RandomMixed => (self.reads + 1) as f64 / (self.writes + 1) as f64 >= self.rw_ratio,
        };
        self.count(is_write);
        if is_write { Request::Write(range) } else { Request::Read(range) }
    }

    /// Counts a request. After `sync_every` requests, begins a round of syncs if any of them was a write.
    fn count(&mut self, is_write: bool) {
        let counter = if is_write { &mut self.writes } else { &mut self.reads };
        *counter += 1;
        self.has_unsynced_writes |= is_write;
        self.requests_since_sync += 1;
        if self.sync_every != 0 && self.requests_since_sync == self.sync_every {
            self.requests_since_sync = 0;
            if std::mem::take(&mut self.has_unsynced_writes) {
                self.next_sync = Some(0);
            }
        }
    }

    /// Returns the next blocks of the current file. After the last file, continues with the first file.
    fn sequential_range(&mut self) -> ByteRange {
        let bytes = self.merged_bytes.min(self.file_bytes - self.offset);
        let range = ByteRange { file: self.file, offset: self.offset, bytes: bytes as usize };
        self.offset += bytes;
        if self.offset >= self.file_bytes {
            (self.offset, self.file) = (0, (self.file + 1) % self.files);
        }
        range
    }

    /// Returns a random block of a random file, truncated at the end of the file.
    fn random_range(&self, rng: &mut Rng) -> ByteRange {
        let total = self.file_bytes * self.files as u64;
        let position = (rng.unit() * total as f64) as u64;
        let position = position - position % self.block_bytes;
        let offset = position % self.file_bytes;
        let bytes = self.block_bytes.min(self.file_bytes - offset);
        ByteRange { file: (position / self.file_bytes) as usize, offset, bytes: bytes as usize }
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

    /// One letter for each request: R, W, or F with the number of the synced file.
    fn letters(options: &Options, count: usize) -> String {
        let (mut requests, mut rng) = (RequestSequence::new(options), Rng::new(1, &[]));
        let letters = (0..count).map(|_| match requests.next(&mut rng) {
            Request::Read(_) => "R".to_owned(),
            Request::Write(_) => "W".to_owned(),
            Request::Sync { file } => format!("F{file}"),
        });
        letters.collect()
    }

    #[test]
    fn a_round_of_syncs_follows_each_sync_every_requests() {
        assert_eq!(letters(&options(Mode::SeqWrite), 14), "WWWWWF0F1WWWWWF0F1");
        assert_eq!(letters(&options(Mode::SeqRead), 12), "RRRRRRRRRRRR");
        assert_eq!(letters(&options(Mode::RandomWrite), 8), "WWWWWF0F1W");
        let never = Options { sync_every: 0, ..options(Mode::RandomWrite) };
        assert_eq!(letters(&never, 7), "WWWWWWW");
        let each = Options { sync_each_write: true, ..options(Mode::RandomWrite) };
        assert_eq!(letters(&each, 7), "WWWWWWW");
    }

    /// The sequences are those of sysbench 1.0.20.
    #[test]
    fn reads_and_writes_are_mixed_by_their_ratio() {
        assert_eq!(letters(&options(Mode::RandomMixed), 24), "RWRWRF0F1RWRWRF0F1RWRWRF0F1RWR");
        let few = Options { rw_ratio: 20.0, ..options(Mode::RandomMixed) };
        assert_eq!(letters(&few, 25), format!("{}WF0F1RRR", "R".repeat(19)));
        let none = Options { rw_ratio: 0.0, sync_every: 0, ..options(Mode::RandomMixed) };
        assert_eq!(letters(&none, 4), "WWWW");
    }

    fn ranges(options: &Options, count: usize) -> Vec<(usize, u64, usize)> {
        let (mut requests, mut rng) = (RequestSequence::new(options), Rng::new(1, &[]));
        let mut ranges = Vec::new();
        while ranges.len() < count {
            match requests.next(&mut rng) {
                Request::Read(range) | Request::Write(range) => {
                    ranges.push((range.file, range.offset, range.bytes))
                }
                Request::Sync { .. } => {}
            }
        }
        ranges
    }

    #[test]
    fn sequential_requests_cover_all_files_in_order() {
        let k = 1 << 10;
        let merged = Options { merged_blocks: 3, ..options(Mode::SeqRewrite) };
        let all = [(0, 0, 48 * 1024), (0, 48 * k, 16 * 1024), (1, 0, 48 * 1024), (1, 48 * k, 16 * 1024)];
        assert_eq!(ranges(&merged, 8), [all, all].concat());
        let uneven = Options { block_bytes: 20 * k, merged_blocks: 2, ..options(Mode::SeqRead) };
        assert_eq!(ranges(&uneven, 2), [(0, 0, 40_960), (0, 40_960, 24_576)]);
    }

    #[test]
    fn random_requests_are_blocks_within_their_file() {
        let uneven = Options { block_bytes: 20 << 10, ..options(Mode::RandomRead) };
        let mut blocks = std::collections::BTreeSet::new();
        for (file, at, bytes) in ranges(&uneven, 1000) {
            let position = file as u64 * (64 << 10) + at;
            assert!(position.is_multiple_of(20 << 10) && at + bytes as u64 <= 64 << 10);
            assert!(bytes == 20 << 10 || at + bytes as u64 == 64 << 10);
            blocks.insert(position / (20 << 10));
        }
        assert_eq!(blocks.len(), 7, "all blocks of 128 KiB; the last block is 8 KiB long");
    }
}
