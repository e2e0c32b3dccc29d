//! The hashes of values: keyed by the file (SipHash-2-4), or those of older files (Bob Jenkins' lookup3).

use siphasher::sip::SipHasher24;

use crate::header::FileHeader;

/// The hash of `value` in the file of `header`.
pub(crate) fn hash_value(header: &FileHeader, value: &[u8]) -> u64 {
    if header.is_keyed_hash() { SipHasher24::new_with_key(&header.file_id.0).hash(value) } else { lookup3(value) }
}

/// The two hashes of lookup3 as one number, the first in the upper half.
pub(crate) fn lookup3(bytes: &[u8]) -> u64 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut rest = bytes;
    while let Some((block, further)) = rest.split_at_checked(12).filter(|(_, further)| !further.is_empty()) {
        let [x, y, z] = words(block);
        (a, b, c) = mix(a.wrapping_add(x), b.wrapping_add(y), c.wrapping_add(z));
        rest = further;
    }
    if !rest.is_empty() {
        let [x, y, z] = words(rest);
        (b, c) = finish(a.wrapping_add(x), b.wrapping_add(y), c.wrapping_add(z));
    }
    u64::from(c) << 32 | u64::from(b)
}

/// Up to twelve bytes as three numbers, filled with zeros.
fn words(bytes: &[u8]) -> [u32; 3] {
    let mut words = [0_u32; 3];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(4)) {
        *word = chunk.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    words
}

fn mix(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    for (first, second, third) in [(4, 6, 8), (16, 19, 4)] {
        a = a.wrapping_sub(c) ^ c.rotate_left(first);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(second);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(third);
        b = b.wrapping_add(a);
    }
    (a, b, c)
}

fn finish(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32) {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    (b, c)
}

#[cfg(test)]
mod tests {
    use super::lookup3;

    /// The vectors that its author published.
    #[test]
    fn lookup3_of_known_texts() {
        assert_eq!(lookup3(b""), 0xdead_beef_dead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551_ce72_26e6);
    }
}
