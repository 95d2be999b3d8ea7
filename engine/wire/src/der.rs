//! A parser for the part of DER that keys and certificates use. It trusts no length in the input.

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(crate) const SEQUENCE: u8 = 0x30;

/// The content of the first element if its tag is `tag`, and the bytes that follow the element.
pub(crate) fn read_element(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[first, short], rest) = der.split_first_chunk()?;
    if first != tag {
        return None;
    }
    let (length, rest) = match short {
        0..=0x7f => (usize::from(short), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(short - 0x80))?;
            (digits.iter().fold(0usize, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}
