//! Finds the end of a reply, and nothing else in it.

/// Where the bytes of one reply stand. End markers are not deprecated in the login, so a result ends with the
/// second of them.
#[derive(Default)]
pub(crate) struct Reply {
    /// Bytes of the packet under way that are still to come.
    left: usize,
    /// A header, or the first bytes of a payload, that lie across two reads.
    kept: Vec<u8>,
    /// Packets seen, and end markers among them.
    packets: usize,
    ends: usize,
}

impl Reply {
    /// Takes the next bytes; true when the reply is complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<bool, String> {
        let joined;
        let mut bytes = if self.kept.is_empty() {
            bytes
        } else {
            self.kept.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.kept);
            &joined
        };
        loop {
            let skipped = self.left.min(bytes.len());
            self.left -= skipped;
            bytes = &bytes[skipped..];
            if bytes.is_empty() {
                return Ok(false);
            }
            // A header and the first byte of its payload.
            let Some(&[a, b, c, _, first]) = bytes.first_chunk() else {
                self.kept = bytes.to_vec();
                return Ok(false);
            };
            let length = u32::from_le_bytes([a, b, c, 0]) as usize;
            self.left = 4 + length;
            self.packets += 1;
            match first {
                0xff => return Err(String::from_utf8_lossy(&bytes[5..]).into_owned()),
                0x00 if self.packets == 1 => self.ends = 2,
                0xfe if length < 9 => self.ends += 1,
                _ => {}
            }
            if self.ends == 2 {
                *self = Self { left: (4 + length).saturating_sub(bytes.len()), ..Self::default() };
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_ends_with_its_second_marker_or_with_an_ok() {
        let ok = b"\x07\x00\x00\x01\x00\x01\x00\x02\x00\x00\x00";
        let end = b"\x05\x00\x00\x03\xfe\x00\x00\x02\x00";
        let rows =
            [b"\x01\x00\x00\x01\x01".as_slice(), b"\x02\x00\x00\x02ab", end, b"\x02\x00\x00\x04\x01a", end]
                .concat();
        for size in 1..rows.len() {
            let mut reply = Reply::default();
            let ends: Vec<bool> = rows.chunks(size).map(|piece| reply.feed(piece).unwrap()).collect();
            assert_eq!(ends.iter().filter(|&&end| end).count(), 1, "pieces of {size}");
        }
        assert!(Reply::default().feed(ok).unwrap());
    }
}
